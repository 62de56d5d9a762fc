// The functions that this room offers to Python, for src/module.c.
#pragma once

#include "src/py/py.h"

extern PyMethodDef call_methods[], mutate_methods[]; // each ends in an empty row
