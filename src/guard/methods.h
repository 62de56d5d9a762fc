// The functions that this room offers to Python, for src/module.c.
#pragma once

#include "src/py/py.h"

extern PyMethodDef guard_methods[]; // ends in an empty row
