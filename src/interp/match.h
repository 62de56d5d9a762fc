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

// What is wrong with a pattern, in CPython's words: each gives 0, or -1 with an exception.
// A key that the set `seen` has; else it is added.
int match_see_key(PyObject *seen, PyObject *key);
int match_check_class(PyObject *type);
// A name that is no str, or that the set `seen` has; else it is added.
int match_see_name(PyObject *seen, PyTypeObject *type, PyObject *name);
// More positional sub-patterns than the class has names for; match_args is NULL if it has none.
int match_check_count(PyTypeObject *type, PyObject *match_args, Py_ssize_t given);
