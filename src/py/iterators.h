// Iterators of C types, field by field: the objects they hold, and how far they are. No function
// here calls iter() or next() on an iterator, so no Python code runs.
#pragma once

#include "src/py/py.h"

// The form of one type: where its references to objects lie. The rest of the object is numbers.
typedef struct py_iterator_form py_iterator_form;

// NULL without an exception if the object is no iterator, or if its type is not known here.
const py_iterator_form *py_iterator_form_of(PyObject *iterator);

// The number of references, and one of them: borrowed, or NULL if the field is empty.
int py_iterator_fields(const py_iterator_form *form);
PyObject *py_iterator_field(const py_iterator_form *form, PyObject *iterator, int index);
// The numbers, as bytes; new reference.
PyObject *py_iterator_numbers(const py_iterator_form *form, PyObject *iterator);

// Makes an iterator that holds nothing and may not be used before it is filled; and fills it.
// `fields` are borrowed, `numbers` is what py_iterator_numbers gave. -1 with an exception.
PyObject *py_iterator_new(PyTypeObject *type);
int py_iterator_fill(PyObject *iterator, PyObject *const *fields, PyObject *numbers);

// Whether an iterator of this form gives items of what it holds, or numbers, and calls nothing.
bool py_iterator_is_simple(const py_iterator_form *form);
// Makes such an iterator one that has these fields and numbers. The old fields are left to the
// caller: *old has room for all of them, and gets the references.
void py_iterator_move(const py_iterator_form *form, PyObject *iterator, PyObject *const *fields,
                      PyObject *numbers, PyObject **old);

// Whether iterators of this form must be placed. Iterators on hash tables and deques remember where
// in the container's memory they are, and notice if the container has changed its size. Others only
// count items.
bool py_iterator_is_placed(const py_iterator_form *form);
// How many items the iterator has passed; -1 if its container has changed since it was made.
Py_ssize_t py_iterator_steps(const py_iterator_form *form, PyObject *iterator);
// Moves the iterator forward by a number of items of the container it holds.
void py_iterator_place(PyObject *iterator, Py_ssize_t steps);
// How often a deque grew, shrank or was rotated, and how often a key of an OrderedDict was added,
// removed or moved. Their iterators notice such changes.
size_t py_deque_state(PyObject *o);
size_t py_ordered_state(PyObject *o);
