// A number that a guard program computes: a flat expression over places, as a Python object. The
// object is the key of an EXPR source and the object of an EXPR guard. The places of its symbols
// are sources, which get registers when a guard or the plan first needs the number.
#pragma once

#include "src/graph/expr.h"

#include "src/guard/guard.h"

int expression_setup(void);
// The object for a number; the places of its symbols are sources. New reference, or NULL with an
// exception.
PyObject *expression_new(number n);

// --- for the other files of this room ---

// The size or stride of a tensor. False if `tensor` is none, or has no such dimension.
bool dimension_read(source_kind kind, PyObject *tensor, Py_ssize_t dim, number *value);
// The index-th source that the expression reads; NULL: there are no more.
source *expression_place(PyObject *o, int index);
// To be called once these sources have their registers.
void expression_resolve(PyObject *o);
// The register of the index-th of these; -1: there are no more.
int expression_register(PyObject *o, int index);
// The value of the expression. False if there is none: a leaf has another type, a leaf or the
// result is beyond 64 bits, or Python would raise.
bool expression_value(PyObject *o, PyObject *const *regs, number *value);
// The expression as Python text; `texts` gives the text of a leaf. New str.
typedef PyObject *(*leaf_text)(void *data, source *place, int reg);
PyObject *expression_text(PyObject *o, leaf_text texts, void *data);
// The current values of the operands of the outermost comparison, or else of the leaves. New str.
PyObject *expression_now(PyObject *o, PyObject *const *regs, leaf_text texts, void *data);
