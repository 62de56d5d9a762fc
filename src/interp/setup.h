// Sets the interpreter up; and the functions that it offers to Python.
#pragma once

#include "src/py/py.h"

int interp_setup(PyObject *module);
extern PyMethodDef interp_methods[];
