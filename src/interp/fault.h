// Fault injection for tests: in a build with STATOR_FAULT the n-th operation of the interpreter
// fails.
#pragma once

#include "src/py/py.h"

int fault_setup(PyObject *module);

#ifdef STATOR_FAULT
// Counts an operation. True, with InjectedFault set, if this operation is the one to fail.
bool fault_due(void);
#define FAULTY(operation, failed) (fault_due() ? (failed) : (operation))
#else
#define FAULTY(operation, failed) (operation)
#endif
