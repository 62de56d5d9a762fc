// What C code reads of the process, or does to it, besides what its arguments lead to.
#pragma once

#include "src/py/py.h"

#include <internal/pycore_long.h>

// How many digits an int may have that becomes text or is made of text; 0: any number
// (sys.set_int_max_str_digits). The least limit that can be set is PY_LEAST_DIGITS.
int py_most_digits(void);
enum { PY_LEAST_DIGITS = _PY_LONG_MAX_STR_DIGITS_THRESHOLD };
// repr() for our own texts, where an int of more digits is no error.
PyObject *py_repr(PyObject *o);

// C code warns by making an instance of a builtin category, before it looks at any filter (see
// warn_explicit in _warnings.c): `made` is asked each time, and -1 with an exception set makes the
// warning fail. Not of ResourceWarning, which deallocation gives. Said once, for good.
void py_watch_warnings(int (*made)(void));
