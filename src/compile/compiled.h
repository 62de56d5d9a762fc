// Compiled callables: a C object that stands in a function's place. A call of it runs an entry, or
// traces.
#pragma once

#include "src/py/frame.h"

int compile_setup(PyObject *module);
extern PyMethodDef compile_methods[];

// Who runs a frame.
typedef enum drive_whose {
    DRIVE_MINE,     // Stator: it has run already
    DRIVE_CPYTHONS, // CPython; the frames that it calls may be compiled
    DRIVE_OFF,      // CPython, and all frames that it calls, too
} drive_whose;

// Gets a frame that comes to the hook while its thread runs uncompiled parts of a compiled call.
// Returns the frame's value, if it ran.
PyObject *compile_frame(PyThreadState *ts, py_frame *f, drive_whose *whose);
