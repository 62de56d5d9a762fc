// Compiled callables: a C object in a function's place whose call looks an entry up, or traces.
#pragma once

#include "src/py/frame.h"

extern PyTypeObject compiler_type, compiled_type;
int compile_setup(PyObject *module);
extern PyMethodDef compile_methods[];

// A frame that comes in while its thread runs compiled code's uncompiled parts: what it returns, or
// *mine is false and the frame is CPython's to run.
PyObject *compile_frame(PyThreadState *ts, py_frame *f, bool *mine);
