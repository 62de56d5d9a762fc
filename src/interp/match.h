// What a match statement asks of its subject: values of keys, attributes of a class pattern.
// (Whether it is a mapping or a sequence is a type flag.)
#pragma once

#include "src/py/py.h"

// A new tuple of the values of `keys` (a tuple) in `subject`, or None (new reference) if one is
// missing; NULL with an exception.
PyObject *match_keys(PyObject *subject, PyObject *keys);

// A new tuple of the attributes that Type(pattern, …, name=pattern, …) looks at, or None (new
// reference) if subject does not match; NULL with an exception. `names` are the keywords.
PyObject *match_class(PyObject *subject, PyObject *type, Py_ssize_t positional, PyObject *names);
