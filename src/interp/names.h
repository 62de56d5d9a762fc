// Names in namespaces, and the special methods and built-in protocols that single instructions use.
// Arguments are borrowed, results are new references, NULL or -1 comes with an exception.
#pragma once

#include "src/py/py.h"

// ---- namespaces; `locals` is any mapping; NULL gives CPython's SystemError
PyObject *load_name(PyObject *locals, PyObject *globals, PyObject *builtins, PyObject *name);
PyObject *load_global(PyObject *globals, PyObject *builtins, PyObject *name);
// LOAD_FROM_DICT_OR_GLOBALS.
PyObject *load_dict_or_global(PyObject *dict, PyObject *globals, PyObject *builtins,
                              PyObject *name);
// LOAD_CLASSDEREF, LOAD_FROM_DICT_OR_DEREF. `index` is an index in localsplus, `cell` is the cell
// at that index.
PyObject *load_dict_or_cell(PyObject *dict, PyObject *cell, PyCodeObject *code, int index);
// LOAD_LOCALS.
PyObject *load_locals(PyObject *locals);
int store_name(PyObject *locals, PyObject *name, PyObject *value);
int delete_name(PyObject *locals, PyObject *name);
int delete_global(PyObject *globals, PyObject *name);
PyObject *load_build_class(PyObject *builtins);
int setup_annotations(PyObject *locals);

// ---- with BEFORE_WITH and BEFORE_ASYNC_WITH without the call of `enter`: 0 with both methods
// bound, or -1 with both NULL.
int with_lookup(PyObject *manager, bool async, PyObject **enter, PyObject **exit);
// WITH_EXCEPT_START: exit(type, exc, traceback).
PyObject *with_exit(PyObject *exit, PyObject *exc);

// ---- iteration
PyObject *get_aiter(PyObject *o);
PyObject *get_anext(PyObject *aiter);
// `flags` are the co_flags of the code that does the `yield from`.
PyObject *get_yield_from_iter(PyObject *o, int flags);

// ---- text
// conversion: 0 none, 1 str, 2 repr, 3 ascii; spec may be NULL.
PyObject *format_value(PyObject *value, int conversion, PyObject *spec);
PyObject *convert_value(PyObject *value, int conversion);
// Calls sys.displayhook(value) and returns its result.
PyObject *print_expr(PyObject *value);
