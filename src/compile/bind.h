// Arguments of a call, put into the slots that the callee's frame would have.
#pragma once

#include "src/py/slot.h"

// Number of argument slots of a code object.
static inline Py_ssize_t bind_count(const PyCodeObject *co) {
    return co->co_argcount + co->co_kwonlyargcount + ((co->co_flags & CO_VARARGS) != 0) +
           ((co->co_flags & CO_VARKEYWORDS) != 0);
}

// Fills `slots` (bind_count of them, strong references) as CPython does. 1; 0 if the call does not
// fit the function, so that CPython must say what is wrong; -1 with an exception. Slots are only
// filled if it is 1.
int bind_call(PyObject *function, PyObject *const *args, size_t given, PyObject *keywords,
              py_slot *slots);

void bind_drop(py_slot *slots, Py_ssize_t count);
