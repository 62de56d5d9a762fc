// The operators of BINARY_OP.
#pragma once

#include "src/py/py.h"

enum { PY_ADD = 0, PY_INPLACE_ADD = 13 };

// The function of each operator, by the argument of BINARY_OP.
extern const binaryfunc py_binary_functions[];
