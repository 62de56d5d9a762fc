// Calls of what functools.lru_cache made.
#pragma once

#include "src/world/world.h"

PyObject *call_cached(world *w, PyObject *o, PyObject *const *args, size_t given,
                      PyObject *keywords);
