// CPython stopped in the middle of a frame, for tests: its eval runs a frame to the end, unless the
// frame belongs to a generator and meets a YIELD_VALUE. So the frame's values are put into a
// generator of a copy of its code that yields at one chosen place.
#pragma once

#include "src/py/py.h"

// A copy of the code of a plain function that makes a generator, and yields where `unit` starts.
// NULL with an exception.
PyCodeObject *py_trap_code(PyCodeObject *code, uint32_t unit);

// Runs the frame of such a generator, filled and at rest, in CPython. *trapped: it stopped at the
// unit, and its stack is `depth` deep there; else it ended, with the result or NULL and an
// exception.
PyObject *py_trap_run(PyThreadState *ts, PyGenObject *generator, int depth, bool *trapped);

// Afterwards: the emptied generator runs no code of its own when it goes.
void py_trap_sever(PyGenObject *generator);
