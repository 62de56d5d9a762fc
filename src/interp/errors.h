// The exceptions that CPython's eval loop itself raises, with its texts and attributes.
#pragma once

#include "src/py/py.h"

// NameError: name 'x' is not defined.
void error_undefined(PyObject *name);
// UnboundLocalError of LOAD_FAST and similar instructions. `index` is an index in localsplus.
void error_unbound_local(PyCodeObject *code, int index);
// For an empty cell: UnboundLocalError for a cell of this function, NameError for a free variable.
// If an exception is set already, it stays.
void error_unbound_cell(PyCodeObject *code, int index);

// CALL_FUNCTION_EX: 0 if `args` can be made a tuple, or -1 with `f() argument after * must be …`.
int error_check_star_args(PyObject *callable, PyObject *args);
// LIST_EXTEND failed: a TypeError about something that is not iterable becomes `Value after * …`.
void error_list_extend(PyObject *iterable);
// DICT_UPDATE failed: an AttributeError becomes `'X' object is not a mapping`.
void error_dict_update(PyObject *update);
// DICT_MERGE (and CALL_FUNCTION_EX's own merge on 3.11) failed: not a mapping, or a key twice.
void error_dict_merge(PyObject *callable, PyObject *update);

// Whether a value may stand after `except` / `except*`: 0, or -1 with a TypeError.
int error_check_except_type(PyObject *type);
int error_check_except_star_type(PyObject *type);
