// Puts the arguments of a call into the slots that the callee's frame would have.
#pragma once

#include "src/py/slot.h"

// The number of argument slots of a code object.
static inline Py_ssize_t bind_count(const PyCodeObject *co) {
    return co->co_argcount + co->co_kwonlyargcount + ((co->co_flags & CO_VARARGS) != 0) +
           ((co->co_flags & CO_VARKEYWORDS) != 0);
}

// Fills `slots` (bind_count of them, strong references) as CPython does. Returns 1; 0 if the
// arguments do not fit the function, and CPython must raise its error; -1 with an exception. Only
// if it returns 1, the slots are filled.
int bind_call(PyObject *function, PyObject *const *args, size_t given, PyObject *keywords,
              py_slot *slots);

void bind_drop(py_slot *slots, Py_ssize_t count);
