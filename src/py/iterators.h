// Iterators of C types, field by field: what they hold, and how far they are. None of this asks an
// iterator for itself or for an item, so no code of anybody runs.
#pragma once

#include "src/py/py.h"

// The form of one type: where its references to objects are. All else are numbers.
typedef struct py_iterator_form py_iterator_form;

// NULL without an exception if it is no iterator, or one of a type that is not known here.
const py_iterator_form *py_iterator_form_of(PyObject *iterator);

// The references, in order; each may be empty. How many, and each, borrowed.
int py_iterator_fields(const py_iterator_form *form);
PyObject *py_iterator_field(const py_iterator_form *form, PyObject *iterator, int index);
// All that is no reference, as bytes; new reference.
PyObject *py_iterator_numbers(const py_iterator_form *form, PyObject *iterator);

// A new one of the type that holds nothing, and is of no use before it is filled. And filling it:
// `fields` are borrowed, `numbers` as above. -1 with an exception.
PyObject *py_iterator_new(PyTypeObject *type);
int py_iterator_fill(PyObject *iterator, PyObject *const *fields, PyObject *numbers);

// Iterators on hash tables and deques know their place by where an item lies, and notice when what
// they go through has changed size. Others count, and need no placing.
bool py_iterator_is_placed(const py_iterator_form *form);
// How many items it has left behind; -1 if what it goes through was changed meanwhile.
Py_ssize_t py_iterator_steps(const py_iterator_form *form, PyObject *iterator);
// Moves the iterator forward by a number of items of the container it holds.
void py_iterator_place(PyObject *iterator, Py_ssize_t steps);
// How often a deque grew or shrank, or was rotated, and how often keys were put in, taken out of or
// moved in an OrderedDict: their iterators notice that.
size_t py_deque_state(PyObject *o);
size_t py_ordered_state(PyObject *o);
