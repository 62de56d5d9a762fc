// Hash tables of sets. Two sets of the same elements may iterate differently and grow differently:
// a layout says where each element lies, so that an equal set with the same order can be made.
#pragma once

#include "src/py/py.h"

// Whether a set has the smallest table and no element was ever removed, like a set that was just
// made.
bool py_set_is_fresh(PyObject *set);
// The positions of elements, holes and the search finger, as bytes; new reference.
PyObject *py_set_layout(PyObject *set);
// Whether a set's table has this layout.
bool py_set_has_layout(PyObject *set, PyObject *layout);
// Gives a set or frozenset a table of this layout, with these elements in the order of iteration.
// Their hashes must be those of the elements from which the layout was taken. The old elements are
// dropped. -1 with an exception.
int py_set_lay_out(PyObject *set, PyObject *layout, PyObject *const *items);
