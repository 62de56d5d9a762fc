// Who gets a frame: what becomes of each Python frame that comes to the eval hook.
#pragma once

#include "src/py/evalhook.h"

int hook_setup(void);

// How far code is CPython's.
typedef enum hook_reach {
    HOOK_FRAME,          // its own frames; what they call is decided anew
    HOOK_FRAME_AND_NEXT, // and those that they start directly
    HOOK_ALL_BELOW,      // and all below
} hook_reach;

// Frames of this code are run by CPython from now on.
int hook_skip(PyCodeObject *code, hook_reach reach);
