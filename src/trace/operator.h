// Operators that call Python code: native code lies between the instruction and the frame, but has
// done nothing yet when the first frame comes.
#pragma once

#include "src/interp/run.h"

#include "src/world/world.h"

// Whether a fresh frame of `function` is the first that the current instruction of the innermost
// frame calls, and would be called the same way if that instruction were begun once more.
bool operator_calls(const world *w, PyObject *function);
