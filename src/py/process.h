// State of the process that C code reads or changes without getting it as an argument.
#pragma once

#include "src/py/py.h"

#include <internal/pycore_long.h>

// The most digits that an int may have when it is converted to or from text; 0: no limit
// (sys.set_int_max_str_digits). PY_LEAST_DIGITS is the least limit that can be set.
int py_most_digits(void);
enum { PY_LEAST_DIGITS = _PY_LONG_MAX_STR_DIGITS_THRESHOLD };
// repr() for our own texts. An int with more digits is no error here.
PyObject *py_repr(PyObject *o);

// C code warns by making an instance of a builtin category, before it looks at any filter (see
// warn_explicit in _warnings.c): `made` is called each time, and if it returns -1 with an
// exception, the warning fails. ResourceWarning is left out, since deallocation gives it. To be
// called once; it cannot be undone.
void py_watch_warnings(int (*made)(void));
// The same for a category of an extension's, a Python class that its C code warns by. Instances are
// made as before.
void py_watch_category(PyTypeObject *category);
