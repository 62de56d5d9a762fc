// Generators of Python's own random numbers, `_random.Random`: their next numbers, without drawing
// them.
#pragma once

#include "src/py/py.h"

// Whether an object is such a generator, whose C methods draw from the state in it.
bool py_is_random(PyObject *o);
// The number that the last one of these draws will give, in order. A draw is an int: 0 for random(),
// k for getrandbits(k), -n for the first getrandbits() of as many bits as n has that is below n, as
// random.py draws it. New reference, or NULL with an exception.
PyObject *py_random_peek(PyObject *generator, PyObject *draws);
// Draws one number for real. New reference.
PyObject *py_random_draw(PyObject *generator, PyObject *draw);
