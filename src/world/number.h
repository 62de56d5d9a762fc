// Numbers that a trace keeps open: ints, floats and bools that may be others in the next call.
//
// Such a number is a lazy (record.h) that has an expression (expr.h). Its source is the place where
// its symbol was found, or a computed place (SIZE, STRIDE, EXPR): what the tensor or the expression
// gives in a later call. So whoever only moves the number need not know of it: a plan loads it from
// its source. And whoever opens it with door_open gets the plain value: the number is settled, which
// guards it. Only code that can go on without the value asks door_number first.
#pragma once

#include "src/graph/expr.h"

#include "src/world/world.h"

// What the terms of a trace want symbolic of the object at a place (world_terms.symbolic): bits.
enum {
    SYMBOLIC_SIZES = 0,       // bit d: the size of dimension d
    SYMBOLIC_STRIDES = 16,    // bit 16 + d: its stride
    SYMBOLIC_VALUE = 1 << 30, // an int or float: its value
    SYMBOLIC_DIM_MASK = 0xffff,
};
// These bits for a place; 0: all of it is guarded as it is, or there is an exception.
unsigned world_symbolic(const world *w, const source *s);

// Whether `o` is a number that is kept open: a lazy that has an expression, or an unopened lazy of
// an exact int (of 64 bits) or float at a place that the terms want symbolic: its type is guarded
// and it gets its symbol now. 1: *n is the number. 0: it is none, or was settled. -1: error or
// break.
int door_number(world *w, PyObject *o, number *n);
// The same for a place whose number the caller has read. Of sizes low is 0.
status number_symbol(world *w, source *s, number hint, int64_t low, int64_t high, number *n);
// What the program sees of a number: a plain one is an int, float or bool; any other a lazy. One
// that is computed afresh is another object each time, as in plain Python. New reference.
PyObject *number_object(world *w, number n);
// Whether it is decided to be true: 1, 0, -1.
int number_truth(world *w, number n);
// What was decided and settled since the last call of this becomes guards, at the user's line now.
status numbers_guard(world *w);

// Python's operators, where one of the operands at least is open and the others are numbers. 1:
// *result is a new reference. 0: the operands have to be opened, or are no numbers. -1: error or
// break. number_unary and number_binary are of objects; a unary op has no second operand.
int number_unary(world *w, number_op op, PyObject *o, PyObject **result);
int number_binary(world *w, number_op op, PyObject *a, PyObject *b, PyObject **result);

// --- for the door ---

// An open number is opened as a whole: its value is guarded. A computed one has its inside then.
status number_settled(world *w, lazy *l);
// Whether it is a lazy whose object is made afresh in each call.
static inline bool number_is_computed(PyObject *o) {
    if (!is_lazy(o))
        return false;
    const source *s = ((lazy *)o)->source;
    return s->kind == SOURCE_SIZE || s->kind == SOURCE_STRIDE || s->kind == SOURCE_EXPR;
}
