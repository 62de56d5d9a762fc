// Decides who runs each Python frame that comes to the eval hook.
#pragma once

#include "src/py/evalhook.h"

int hook_setup(void);

// Which frames CPython runs because of a code object.
typedef enum hook_reach {
    HOOK_FRAME,          // the frames of the code; frames that they call are decided anew
    HOOK_FRAME_AND_NEXT, // and the frames that they call directly
    HOOK_ALL_BELOW,      // and all frames below
} hook_reach;

// Lets CPython run the frames of this code from now on. 0, or -1 with an exception.
int hook_skip(PyCodeObject *code, hook_reach reach);

// Calls a callable up to the first Python frame, which does not run. Gives the function of that
// frame, or None if there was none: then the callable was native code, and has run. New reference,
// or NULL with an exception.
PyObject *hook_first_function(PyObject *callable, PyObject *args, PyObject *kwargs);
