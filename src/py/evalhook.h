// The eval hook (PEP 523): CPython has one for the whole process. Stator installs its hook on top
// of the earlier one while some thread needs it, and removes it again. src/hook decides who runs
// the frames that come to the hook.
#pragma once

#include "src/py/frame.h"

// What a thread's frames are for.
typedef enum hook_mode {
    HOOK_OFF,      // frames go to the eval function that was there before
    HOOK_EVALUATE, // frames go to the interpreter
    HOOK_TRACE,    // frames go to the trace of this thread
    HOOK_COMPILE,  // frames may run as compiled entries; CPython runs the others
    HOOK_CATCH,    // the first frame is looked for, and no frame runs
} hook_mode;

// The mode of a thread before a scope; hook_leave restores it.
typedef struct hook_scope {
    hook_mode mode;
} hook_scope;

extern __attribute__((tls_model("initial-exec"))) _Thread_local hook_mode hook_here;

// Sets the function that gets the frames. To be called before the first scope.
void hook_use(_PyFrameEvalFunction eval);

// Puts the thread into a mode; the hook is installed while any thread is in a scope. Scopes nest.
void hook_enter(hook_scope *before, hook_mode mode);
void hook_leave(const hook_scope *before);
// Changes this thread's mode without installing or removing the hook. Returns the mode before.
hook_mode hook_swap(hook_mode wanted);

// Installs the hook if it is off. A frame that is about to be filled must come to the hook, or the
// user's function would run on dummies. (The hook is off while a watched frame runs.)
void hook_ensure(void);
bool hook_installed(void);

// Gives a frame to the hook that was there before, or to CPython's own eval.
PyObject *hook_pass_on(PyThreadState *ts, py_frame *f, int throwing);
// Whether the frame comes back from a hook that ours has passed it on to.
bool hook_has_passed_on(const py_frame *f);
// The same for a frame that a tool watches. Our hook is off while the frame runs: under a hook
// CPython runs some instructions in another way, and tools can see that (the end of a coroutine
// raises StopIteration then).
PyObject *hook_pass_on_watched(PyThreadState *ts, py_frame *f, int throwing);

// Notes that the frame of the function that does nothing came to the hook (see py_call_helper).
void hook_saw_helper(void);
// To be called in the child of a fork, which has one thread: the scopes of the other threads are
// gone.
void hook_after_fork(PyThreadState *ts);
