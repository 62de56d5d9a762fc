// What surrounds a call: methods opened, star arguments made ready, functions made.
#pragma once

#include "src/py/slot.h"

// The two slots under a call's arguments hold a bound method and a NULL: puts function and self
// there instead. False, and nothing changed, if it is no bound method.
bool call_open_method(py_slot *bottom);

// Makes *args a tuple and, if there are keywords, *keywords a dict. 0, or -1 with an exception.
int call_prepare_star(PyObject *callable, py_slot *args, py_slot *keywords);

// f(*args, **keywords) of a Python function: all arguments in one array of strong references, to be
// lent to its frame. PyObject_Call would keep the keywords' values alive during the call.
typedef struct flat_args {
    py_slot *items; // NULL: with an exception
    Py_ssize_t count;
    size_t given;    // positional ones
    PyObject *names; // strong
} flat_args;

flat_args call_flatten(PyObject *args, PyObject *keywords);
// What the callee's frame did not take over.
void call_drop_flat(flat_args *f);

// MAKE_FUNCTION: the code object is below sp, what the flags name below that. Takes the references
// of the latter, not of the code. NULL with an exception, and then takes nothing.
PyObject *call_make_function(PyObject *globals, const py_slot *sp, int flags);

// SET_FUNCTION_ATTRIBUTE; takes the reference to value.
void call_set_function_attribute(PyObject *function, int flag, PyObject *value);
