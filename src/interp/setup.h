// What the interpreter's room sets up and offers to Python.
#pragma once

#include "src/py/py.h"

int interp_setup(PyObject *module);
extern PyMethodDef interp_methods[];
