// Calls of functions that functools.lru_cache wraps.
#pragma once

#include "src/world/world.h"

// Adds rows for Python functions of functools. To be called before the first trace.
status cached_setup(void);

PyObject *call_cached(world *w, const call *by);
