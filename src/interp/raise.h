// Raising and matching exceptions: the raise statement, `except` and `except*` clauses.
#pragma once

#include "src/py/py.h"

// `raise` (both NULL), `raise exc`, `raise exc from cause`; borrows both. An exception is always
// set afterwards. True for a bare `raise` that found an exception: the frame then adds no traceback
// entry.
bool raise_varargs(PyThreadState *ts, PyObject *exc, PyObject *cause);

// CHECK_EXC_MATCH: 1, 0, or -1 with a TypeError for a type that cannot be caught.
int except_match(PyObject *exc, PyObject *type);

// CHECK_EG_MATCH: `*match` is the group to handle or None, `*rest` is the exception that replaces
// exc on the stack (exc itself if nothing matched); new references. A match becomes the handled
// exception of the thread. 0, or -1 with an exception and both NULL.
int except_star_match(PyObject *exc, PyObject *type, PyObject **match, PyObject **rest);
