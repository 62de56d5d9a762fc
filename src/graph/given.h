// The open numbers of a graph as Python objects: what a backend is told about them, and the
// conditions that it answers it relies on (python/stator/_shapes.py).
#pragma once

#include "src/graph/graph.h"

// Whether a graph has open numbers: a placeholder is one, or has an open size.
bool given_is_open(const graph *g);

// The symbols that have names, in the order of their names: 0, 1, …. All zero: no symbol has one.
typedef struct given {
    sizes *sizes; // borrowed
    VEC(void *) places;
    map names; // place → name
} given;
void given_clear(given *g);

// The text of a symbol's place; new str.
typedef PyObject *(*given_text)(void *place);

// (symbols, inputs, conditions, checks): for each symbol (value, text, low, high), or (None, text,
// low, high, kind) if only the graph knows it; for each placeholder a number or (sizes, strides), or
// None if these are not known; the conditions so far; and, without a graph, what the graph checks.
// Without a graph there are no placeholders. New reference, or NULL with an exception.
PyObject *given_numbers(given *g, const graph *graph, given_text text);

// A number in the form that given_numbers uses; and the reverse, which gives false, perhaps with an
// exception, if the number has no expression.
PyObject *given_number(given *g, number n);
bool given_take(given *g, PyObject *o, number *n);
// Gives a symbol the next name. False with an exception.
bool given_name(given *g, number symbol);

// Decides the backend's answer. `conditions` is a list of bools that must be true, and are true in
// this call; `pinned` is a list of symbols that must have the values of this call. -1 with an
// exception.
int given_decide(given *g, PyObject *conditions, PyObject *pinned);
