// Values bit for bit: what tells True from 1, -0.0 from 0.0, and a NaN from another.
#pragma once

#include "src/py/py.h"

// Whether two objects are identical, or of the same exact builtin immutable type with the same
// bits, deeply in tuples, slices, ranges and (in the order of iteration) frozensets. Runs no code.
bool value_same(PyObject *a, PyObject *b);

// The same of a dict's keys and a set's elements. An interned str is the only one of its text that
// programs usually meet, so there it must be that very object: then it can be given out as it is.
// Other keys may be any that are the same, and who gives one out finds it by its place.
bool value_same_key(PyObject *found, PyObject *guarded);
bool value_key_is_fixed(PyObject *key);

// Two that are the same have the same hash. Runs no code.
uint64_t value_hash(PyObject *o);

// A C type of an extension whose objects never change, and are nothing but bits behind the header:
// a number of numpy's. Its objects count as values, as those of builtin immutable types do.
typedef struct value_bits {
    PyTypeObject *type; // strong
    size_t size;        // bytes
    char kind;          // as numpy's dtype.kind: b, i, u, f, c
} value_bits;

enum { VALUE_BITS_MOST = 16 };
// There is room for VALUE_BITS_MOST types.
void value_add_bits(const value_bits *row);
// NULL: the type is no such type.
const value_bits *value_bits_of(const PyTypeObject *type);
// Whether an object of such a type is a NaN, or has one.
bool value_bits_nan(const value_bits *row, PyObject *o);
