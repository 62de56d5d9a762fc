// Calls of what functools.lru_cache made.
#pragma once

#include "src/world/world.h"

// Rows for Python functions of functools. Before the first trace.
status cached_setup(void);

PyObject *call_cached(world *w, const call *by);
