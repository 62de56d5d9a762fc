// A number that a guard program computes: an expression over places, flat, as an object that
// EXPR sources have as their key and EXPR guards as their object.
// The places of its symbols are sources. They get registers when a guard or the plan first wants
// the number.
#pragma once

#include "src/graph/expr.h"

#include "src/guard/guard.h"

int expression_setup(void);
// Of a number whose symbols' places are sources. New reference, or NULL with an exception.
PyObject *expression_new(number n);

// --- for the other files of this room ---

// The size or stride of a tensor. False if it is no tensor, or has no such dimension.
bool dimension_read(source_kind kind, PyObject *tensor, Py_ssize_t dim, number *value);
// The sources that it reads, one by one; NULL: there are no more.
source *expression_place(PyObject *o, int index);
// These sources have their registers now.
void expression_resolve(PyObject *o);
// What it gives; false if it cannot be computed: a leaf is of another type or beyond 64 bits, the
// result is, or Python would raise.
bool expression_value(PyObject *o, PyObject *const *regs, number *value);
// As Python. A leaf's text is that of its register; `texts` gives it. New str.
typedef PyObject *(*leaf_text)(void *data, source *place, int reg);
PyObject *expression_text(PyObject *o, leaf_text texts, void *data);
// What the operands of its outermost comparison, or else its leaves, are now. New str.
PyObject *expression_now(PyObject *o, PyObject *const *regs, leaf_text texts, void *data);
