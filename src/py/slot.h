// A slot of a frame: a variable, a cell, or a place on the value stack. A slot holds a strong
// reference or nothing. Up to 3.13 a slot is a pointer to an object, later a word with further
// bits; all code reads, writes and empties slots by these functions.
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

// Takes the reference, or NULL. The old reference is not dropped.
static inline void py_slot_put(py_slot *s, PyObject *object) {
    s->object = object;
}

// Empties the slot and hands its reference, or NULL, to the caller.
static inline PyObject *py_slot_take(py_slot *s) {
    PyObject *object = py_slot_get(s);
    py_slot_put(s, NULL);
    return object;
}

// Takes the reference, or NULL, and drops the old one, which may run code.
static inline void py_slot_set(py_slot *s, PyObject *object) {
    PyObject *old = py_slot_get(s);
    py_slot_put(s, object);
    Py_XDECREF(old);
}

// The objects of neighbouring slots as an array, as native code takes arguments. Borrowed.
static inline PyObject **py_slots_objects(py_slot *first) {
    return &first->object;
}

// Drops the references from `sp` down to `base`, the topmost first. Returns `base`.
static inline py_slot *py_slots_drop(py_slot *base, py_slot *sp) {
    while (sp > base)
        Py_XDECREF(py_slot_get(--sp));
    return sp;
}
