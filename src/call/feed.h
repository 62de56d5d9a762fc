// Feeds: what native code gets in place of an iterable whose elements cannot be made ready
// beforehand. Each element is taken by the interpreter's own step when native code asks for it, and
// made ready then. So native code that stops early, or fails half way, has taken and stored what it
// would have in CPython.
#pragma once

#include "src/world/world.h"

// A new reference. `protocols`: what native code does to the elements; P_NONE: they are only moved.
// The iterable is opened, and prepared for P_ITER: native code may ask the feed for its length.
PyObject *feed_new(world *w, PyObject *iterable, unsigned protocols);
bool is_feed(PyObject *o);
