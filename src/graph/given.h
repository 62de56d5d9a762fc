// The numbers of a graph that differ from call to call, in Python's words: what is said of them to
// a backend, and what it says it relies on (python/stator/_shapes.py).
#pragma once

#include "src/graph/graph.h"

// Whether a backend has to be told of numbers: one is a placeholder, or a size of one.
bool given_is_open(const graph *g);

// The symbols that were named, in the order of their names: 0, 1, …. All zero is none.
typedef struct given {
    sizes *sizes; // borrowed
    VEC(void *) places;
    map names; // place → name
} given;
void given_clear(given *g);

// The text of a symbol's place; new str.
typedef PyObject *(*given_text)(void *place);

// (symbols, inputs, conditions): for each symbol (value, text, low, high), for each placeholder a
// number or (sizes, strides), or None if they are not known; what was decided. Without a graph
// there are no placeholders. New reference, or NULL with an exception.
PyObject *given_numbers(given *g, const graph *graph, given_text text);

// A number as given_numbers says it; and the reverse: false, perhaps with an exception, if there is
// no expression for it.
PyObject *given_number(given *g, number n);
bool given_take(given *g, PyObject *o, number *n);

// What comes back: `conditions` is a list of what must be true, and is in this call; `pinned` one
// of symbols whose values must be those of this call. Both are decided. -1 with an exception.
int given_decide(given *g, PyObject *conditions, PyObject *pinned);
