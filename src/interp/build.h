// Makes containers of stack slots.
#pragma once

#include "src/py/py.h"

// These functions take the references in the slots. If they fail, the slots keep them.
PyObject *build_tuple(PyObject **items, Py_ssize_t count);
PyObject *build_list(PyObject **items, Py_ssize_t count);

// These functions borrow the references.
PyObject *build_set(PyObject **items, Py_ssize_t count);
PyObject *build_map(PyObject **keys, Py_ssize_t key_step, PyObject **values, Py_ssize_t value_step,
                    Py_ssize_t count);
PyObject *build_slice(PyObject **parts, int count);
PyObject *build_string(PyObject **parts, Py_ssize_t count);
