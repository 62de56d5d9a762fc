// What surrounds a call: methods opened, star arguments made ready, functions made.
#pragma once

#include "src/py/py.h"

// The two slots under a call's arguments hold a bound method and a NULL: puts function and self there
// instead. False, and nothing changed, if it is no bound method.
bool call_open_method(PyObject **bottom);

// Makes *args a tuple and, if there are keywords, *keywords a dict. 0, or -1 with an exception.
int call_prepare_star(PyObject *callable, PyObject **args, PyObject **keywords);

// MAKE_FUNCTION: the code object is below sp, what the flags name below that. Takes the references of
// the latter, not of the code. NULL with an exception, and then takes nothing.
PyObject *call_make_function(PyObject *globals, PyObject **sp, int flags);

// SET_FUNCTION_ATTRIBUTE; takes the reference to value.
void call_set_function_attribute(PyObject *function, int flag, PyObject *value);
