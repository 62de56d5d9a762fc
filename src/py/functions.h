// Making function objects, which differs by version.
#pragma once

#include "src/py/py.h"

// A new function of a code object. Its qualified name is the code's; it has no defaults.
static inline PyObject *py_function_new(PyObject *code, PyObject *globals) {
    PyObject *function = PyFunction_New(code, globals);
#if PY_VERSION_HEX >= 0x030d0000
    // Lets CPython specialise calls of functions made from the same code alike.
    if (function)
        _PyFunction_SetVersion((PyFunctionObject *)function, ((PyCodeObject *)code)->co_version);
#endif
    return function;
}
