// The three import instructions: they turn names into modules and attributes. If a program has
// replaced `__import__` in builtins, it is called as CPython calls it.
#pragma once

#include "src/py/py.h"

// `locals` may be NULL (a function's frame has no mapping). New reference, or NULL with an
// exception.
PyObject *import_name(PyObject *globals, PyObject *builtins, PyObject *locals, PyObject *name,
                      PyObject *fromlist, PyObject *level);

// `from module import name`: the attribute, else the submodule in sys.modules, else ImportError.
PyObject *import_from(PyObject *module, PyObject *name);

// `from module import *` into a mapping. If `locals` is NULL, sets CPython's SystemError. 0 or -1.
int import_star(PyObject *module, PyObject *locals);
