// What Python sees of the hook and the interpreter.
#pragma once

#include "src/py/py.h"

extern PyMethodDef hook_methods[];
