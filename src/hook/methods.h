// The functions of the hook and the interpreter that Python sees.
#pragma once

#include "src/py/py.h"

extern PyMethodDef hook_methods[];
