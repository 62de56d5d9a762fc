// What to say of a C callable that has no row.
#pragma once

#include "src/world/world.h"

// The reason that its module stands for.
reason home_reason(PyObject *callable);
