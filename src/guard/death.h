// The callback of the weak references that a guard program holds.
#pragma once

#include "src/guard/guard.h"

int death_setup(void);
// New reference.
PyObject *death_new(guard_program *p);
// The program is going: the callback may still be called, and does nothing then.
void death_forget(PyObject *death);
