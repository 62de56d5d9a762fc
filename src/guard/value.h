// Values bit for bit: what tells True from 1, -0.0 from 0.0, and a NaN from another.
#pragma once

#include "src/py/py.h"

// Whether two objects are identical, or of the same exact builtin immutable type with the same
// bits, deeply in tuples, slices, ranges and (in the order of iteration) frozensets. Runs no code.
bool value_same(PyObject *a, PyObject *b);

// Two that are the same have the same hash. Runs no code.
uint64_t value_hash(PyObject *o);
