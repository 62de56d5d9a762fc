// The reason of the break for a C callable that has no row.
#pragma once

#include "src/world/world.h"

// The reason that the table has for the callable's module.
reason home_reason(PyObject *callable);
