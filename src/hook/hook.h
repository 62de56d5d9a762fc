// Who gets a frame: the eval hook, its installation, and the state of each thread that evaluates.
#pragma once

#include "src/py/frame.h"

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

int hook_setup(void);

// Frames of this thread go to the interpreter from here on; the hook is installed while any thread
// needs it. Scopes nest.
void hook_enter(hook_scope *before, hook_mode mode);
void hook_leave(const hook_scope *before);

// Changes what becomes of this thread's frames, where the hook is installed anyway; what it was.
hook_mode hook_swap(hook_mode wanted);

// How far code is CPython's.
typedef enum hook_reach {
    HOOK_FRAME,          // its own frames; what they call is decided anew
    HOOK_FRAME_AND_NEXT, // and those that they start directly
    HOOK_ALL_BELOW,      // and all below
} hook_reach;

// Frames of this code are run by CPython from now on.
int hook_skip(PyCodeObject *code, hook_reach reach);

bool hook_installed(void);
// Whether this thread runs the uncompiled parts of a compiled call.
bool hook_compiles(void);
