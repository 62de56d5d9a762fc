// For tests of moments: a function whose call a trace does and undoes.
#pragma once

#include "src/py/py.h"

int attempt_setup(void);
extern PyMethodDef attempt_methods[];
