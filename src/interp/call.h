// Parts of calls: opens bound methods, prepares star arguments, makes functions.
#pragma once

#include "src/py/slot.h"

// The two slots under a call's arguments hold a callable and a NULL. If the callable is a bound
// method, puts its function and self there instead; else returns false and changes nothing.
bool call_open_method(py_slot *bottom);

// Makes *args a tuple and, if there are keywords, *keywords a dict. 0, or -1 with an exception.
int call_prepare_star(PyObject *callable, py_slot *args, py_slot *keywords);

// f(*args, **keywords) of a Python function: all arguments in one array of strong references, which
// the callee's frame takes over. (PyObject_Call would keep the values of keywords alive during the
// call.)
typedef struct flat_args {
    py_slot *items; // NULL if an exception is set
    Py_ssize_t count;
    size_t given;    // number of positional arguments
    PyObject *names; // strong
} flat_args;

flat_args call_flatten(PyObject *args, PyObject *keywords);
// Drops the references that the callee's frame did not take over.
void call_drop_flat(flat_args *f);

// MAKE_FUNCTION: the code object lies below sp, the objects that the flags name below the code.
// Takes the references to those objects, but not the one to the code. On NULL (with an exception)
// it takes no reference.
PyObject *call_make_function(PyObject *globals, const py_slot *sp, int flags);

// SET_FUNCTION_ATTRIBUTE; takes the reference to value.
void call_set_function_attribute(PyObject *function, int flag, PyObject *value);
