// Operators that call Python code. Native code lies between the instruction and the frame that it
// calls, but has done nothing yet when the first frame comes.
#pragma once

#include "src/interp/run.h"

#include "src/world/world.h"

// Whether a fresh frame of `function` is the first frame that the current instruction of the
// innermost frame calls, and the instruction would call it again if it were started again.
bool operator_calls(const world *w, PyObject *function);
