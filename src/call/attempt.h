// For tests of moments: a function that traces call and undo.
#pragma once

#include "src/py/py.h"

int attempt_setup(void);
extern PyMethodDef attempt_methods[];
