// The eval hook (PEP 523) as CPython has it: one function for the whole process. It is put on while
// some thread needs it, on top of whatever hook was there, and taken off again. What becomes of the
// frames that come to it, src/hook decides.
#pragma once

#include "src/py/frame.h"

// What a thread's frames are for.
typedef enum hook_mode {
    HOOK_OFF,      // frames go to whatever eval was there before
    HOOK_EVALUATE, // frames go to the interpreter
    HOOK_TRACE,    // frames go to the trace of this thread
    HOOK_COMPILE,  // frames may run as compiled entries, else they are CPython's
} hook_mode;

// What a thread was doing before, given back on the way out.
typedef struct hook_scope {
    hook_mode mode;
} hook_scope;

extern __attribute__((tls_model("initial-exec"))) _Thread_local hook_mode hook_here;

// The function that gets the frames. Before the first scope.
void hook_use(_PyFrameEvalFunction eval);

// Puts the thread into a mode; the hook is installed while any thread is in a scope. Scopes nest.
void hook_enter(hook_scope *before, hook_mode mode);
void hook_leave(const hook_scope *before);
// Changes this thread's mode where the hook is installed anyway; returns the mode before.
hook_mode hook_swap(hook_mode wanted);

// Frames that are about to be filled must come to the hook, or a user's function would run on
// dummies. (A watched frame may have taken the hook off while it runs.)
void hook_ensure(void);
bool hook_installed(void);

// Gives a frame to the hook that was there before, or to CPython's own eval.
PyObject *hook_pass_on(PyThreadState *ts, py_frame *f, int throwing);
// The same for a frame that a tool watches, with our hook off while the frame runs: CPython takes
// other ways through its instructions under a hook, and tools can see that (a coroutine's end
// raises StopIteration then).
PyObject *hook_pass_on_watched(PyThreadState *ts, py_frame *f, int throwing);

// The frame of the function that does nothing came to the hook (see py_call_helper).
void hook_saw_helper(void);
// In the child of a fork, with its one thread: the scopes of the other threads are gone.
void hook_after_fork(PyThreadState *ts);
