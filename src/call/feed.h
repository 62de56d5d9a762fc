// A feed is an iterator that native code gets in place of an iterable whose elements cannot be
// prepared beforehand. When native code asks for an element, the interpreter's own next takes it
// and prepares it. So native code that stops early, or fails half way, has taken and stored the
// same elements as in plain Python.
#pragma once

#include "src/world/world.h"

// A new reference. `protocols`: what native code does to the elements; P_NONE: it only moves them.
// Opens the iterable and prepares it for P_ITER: native code may ask the feed for its length.
PyObject *feed_new(world *w, PyObject *iterable, unsigned protocols);
bool is_feed(PyObject *o);
// The iterable or iterator that a feed stands for; borrowed. An iterator that native code made of a
// feed is rebuilt with it.
PyObject *feed_source(PyObject *o);
