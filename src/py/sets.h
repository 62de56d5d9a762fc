// Hash tables of sets. Two sets of the same elements may iterate differently and grow differently:
// a layout says where each element lies, so that a set can be made again as it is.
#pragma once

#include "src/py/py.h"

// Whether it is as one that was just made: the smallest table, and nothing was ever taken out.
bool py_set_is_fresh(PyObject *set);
// Where elements, holes and the search finger are, as bytes; new reference.
PyObject *py_set_layout(PyObject *set);
// Whether a set's table is laid out so.
bool py_set_has_layout(PyObject *set, PyObject *layout);
// Gives a set or frozenset this table, with these elements in the order of iteration: they must
// hash as those did that the layout was taken of. What was in it before is let go. -1 with an
// exception.
int py_set_lay_out(PyObject *set, PyObject *layout, PyObject *const *items);
