// Sequences, slices and contexts, made and used as Python code would.
#ifndef STATOR_PY_EACH_H
#define STATOR_PY_EACH_H

#include <Python.h>
#include <stdbool.h>

// What an item becomes: a new reference, or NULL, which ends the whole.
typedef PyObject *(*each_becomes)(void *data, PyObject *item);

// A tuple or a list of what each item becomes.
PyObject *py_each(PyObject *const *items, Py_ssize_t count, bool tuple, each_becomes becomes,
                  void *data);
PyObject *py_each_of_slice(PySliceObject *slice, each_becomes becomes, void *data);

// A context of this class, which is entered; NULL with an exception.
PyObject *py_enter_context(PyObject *class);
// Leaves the context and lets it go. An exception that is being raised stays; one of the context's
// own cannot be raised.
void py_leave_context(PyObject *context);

#endif
