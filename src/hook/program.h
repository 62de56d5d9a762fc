// Runs whole programs: evaluates a module's code, or a function that runs one, as if it were the
// first frame.
#pragma once

#include "src/py/py.h"

// run_program(target, globals): see the method table. METH_VARARGS.
PyObject *program_run(PyObject *self, PyObject *args);
