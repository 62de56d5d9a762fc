// What a match statement reads of its subject: values of keys, and attributes for a class pattern.
// (Whether the subject is a mapping or a sequence is a type flag.)
#pragma once

#include "src/py/py.h"

// A new tuple of the values of `keys` (a tuple) in `subject`, or None (new reference) if one is
// missing; NULL with an exception.
PyObject *match_keys(PyObject *subject, PyObject *keys);

// A new tuple of the attributes that Type(pattern, …, name=pattern, …) reads, or None (new
// reference) if `subject` does not match; NULL with an exception. `names` are the keywords.
PyObject *match_class(PyObject *subject, PyObject *type, Py_ssize_t positional, PyObject *names);
