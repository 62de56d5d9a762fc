// A slot of a frame: a variable, a cell, or a place on the value stack. It holds a strong reference
// or nothing. Up to 3.13 it is a pointer to an object, later a word that says more; whoever has a
// slot reads, writes and empties it by these functions.
#pragma once

#include "src/py/py.h"

typedef struct py_slot {
    PyObject *object;
} py_slot;
static_assert(sizeof(py_slot) == sizeof(PyObject *), "a frame's array of objects is one of slots");

// Borrowed, or NULL.
static inline PyObject *py_slot_get(const py_slot *s) {
    return s->object;
}

// Takes the reference, or NULL; what was there is not let go.
static inline void py_slot_put(py_slot *s, PyObject *object) {
    s->object = object;
}

// What was there, as a reference of the caller's, or NULL; the slot is empty then.
static inline PyObject *py_slot_take(py_slot *s) {
    PyObject *object = py_slot_get(s);
    py_slot_put(s, NULL);
    return object;
}

// Takes the reference, or NULL, and lets go of what was there: that may run code.
static inline void py_slot_set(py_slot *s, PyObject *object) {
    PyObject *old = py_slot_get(s);
    py_slot_put(s, object);
    Py_XDECREF(old);
}

// The objects of slots that lie side by side, as native code takes arguments: borrowed.
static inline PyObject **py_slots_objects(py_slot *first) {
    return &first->object;
}

// Lets go of what lies from `sp` down to `base`, the topmost first. Gives `base`.
static inline py_slot *py_slots_drop(py_slot *base, py_slot *sp) {
    while (sp > base)
        Py_XDECREF(py_slot_get(--sp));
    return sp;
}
