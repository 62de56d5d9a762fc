// Compiled callables: a C object in a function's place whose call looks an entry up, or traces.
#pragma once

#include "src/py/frame.h"

int compile_setup(PyObject *module);
extern PyMethodDef compile_methods[];

// Who runs a frame.
typedef enum drive_whose {
    DRIVE_MINE,     // it has been run
    DRIVE_CPYTHONS, // CPython; what it calls may be compiled
    DRIVE_OFF,      // CPython, with all that it calls
} drive_whose;

// A frame that comes in while its thread runs compiled code's uncompiled parts: what it returns, if
// it was run.
PyObject *compile_frame(PyThreadState *ts, py_frame *f, drive_whose *whose);
