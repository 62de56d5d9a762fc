// Stops CPython in the middle of a frame, for tests. CPython's eval runs a frame to its end, unless
// the frame belongs to a generator and comes to a YIELD_VALUE. So the frame's values are put into a
// generator whose code is a copy that yields at one chosen place.
#pragma once

#include "src/py/py.h"

// Makes a copy of a plain function's code: the copy makes a generator, and yields where `unit`
// starts. NULL with an exception.
PyCodeObject *py_trap_code(PyCodeObject *code, uint32_t unit);

// Runs the filled frame of such a generator in CPython. *trapped: the frame stopped at the unit,
// where its stack is `depth` deep. Else the frame ended, with a result, or with NULL and an
// exception.
PyObject *py_trap_run(PyThreadState *ts, PyGenObject *generator, int depth, bool *trapped);

// To be called afterwards: the emptied generator runs no code when it is freed.
void py_trap_sever(PyGenObject *generator);
