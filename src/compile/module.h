// Calls of compiled modules (stator._module.CompiledModule), from the slot of the wrapper's class to
// the compiled `forward`.
#pragma once

#include "src/py/py.h"

int module_setup(PyObject *module);
extern PyMethodDef module_methods[];
