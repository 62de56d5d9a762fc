// Takes a value apart into stack slots, for UNPACK_SEQUENCE and UNPACK_EX.
#pragma once

#include "src/py/slot.h"

// Fills the slots below `top`, first element highest, as CPython's stack has them:
//   after == -1   `before` slots: element i in top[-1 - i]
//   after >= 0    before + 1 + after slots: the list of the rest in top[-1 - before], the elements
//                 behind it below that, in order downwards
// 0; or -1 with an exception, and then no slot holds anything. The caller still owns v.
int unpack_sequence(PyObject *v, int before, int after, py_slot *top);
