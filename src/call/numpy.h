// Numbers, dtypes and arrays of numpy. Its numbers are values, as builtin ones are; arrays that the
// trace made are real arrays. Numpy's own functions compute with both, natively. Arrays from outside
// have no rules.
#pragma once

#include "src/world/world.h"

// Called before each trace: gives numpy's callables their rows, if the program has imported a numpy
// that is known. Nothing here imports numpy.
status numpy_meet(void);

// The class of arrays; NULL while no numpy is known.
PyTypeObject *numpy_array_type(void);
// Whether an opened value is a dtype, or a class that stands for one (np.float32, float).
bool numpy_is_dtype(PyObject *o);

// Whether an opened value is a number or an array of numpy's.
bool numpy_is_operand(PyObject *o);
// The same, or one of its dtypes: what numpy_compare takes.
bool numpy_compares(PyObject *o);
// The Python number that torch takes for a number of numpy's; new reference. NULL without an
// exception if torch does not take it as that number: no number of numpy's, or bool, or complex.
PyObject *numpy_plain_number(PyObject *o);
// Operators on opened values, one of which is an operand of numpy's; a new reference, NULL with an
// exception or a break. `kind` is CPython's number of the binary operator, or a Py_LT ….
PyObject *numpy_unary(world *w, unaryfunc function, PyObject *o);
PyObject *numpy_binary(world *w, int kind, PyObject *left, PyObject *right);
PyObject *numpy_compare(world *w, int kind, PyObject *left, PyObject *right);
PyObject *numpy_getitem(world *w, PyObject *array, PyObject *key);
