// Open numbers: ints, floats and bools that may have other values in the next call.
//
// An open number is a lazy (record.h) that has an expression (expr.h). Its source is the place
// where its symbol was found, or a computed place (SIZE, STRIDE, EXPR), which gives the number in a
// later call. Code that only moves the number needs no special case: the plan loads the number from
// its source. Code that opens the number with door_open gets the plain value: the number is
// settled, and its value guarded. Only code that can do without the value calls door_number first.
#pragma once

#include "src/graph/expr.h"

#include "src/world/world.h"

// Which numbers of the object at a place the terms of a trace want open (world_terms.symbolic):
// bits.
enum {
    SYMBOLIC_SIZES = 0,       // bit d: the size of dimension d
    SYMBOLIC_STRIDES = 16,    // bit 16 + d: its stride
    SYMBOLIC_UNHINTED = 16,   // of world_named: bit 16 + d: nobody may rely on the size
    SYMBOLIC_FIRST = 1 << 28, // see world_named
    SYMBOLIC_VALUE = 1 << 30, // an int or float: its value
    SYMBOLIC_DIM_MASK = 0xffff,
};
// The bits for a place; 0: all its numbers are guarded by value, or there is an exception.
unsigned world_symbolic(const world *w, const source *s);
// The same for numbers that earlier traces had to settle.
unsigned world_settled(const world *w, const source *s);
// The same for what the user's settings say about a place by its name or its number: `values` is an
// int, or a tuple of sizes. SYMBOLIC_FIRST: it counts more than what else is said of the place.
unsigned world_named(const world *w, const source *s, PyObject *values);

// Whether `o` is an open number. 1: *n is the number; `o` is a lazy that has an expression, or an
// unopened lazy of an exact int (of 64 bits) or float at a place that the terms want open, which
// now gets its symbol and a guard of its type. 0: `o` is no number, or a settled one. -1: error or
// break.
int door_number(world *w, PyObject *o, number *n);
// Makes the symbol of a place whose number the caller has read. The number is at least low and at
// most high: low is 0 for sizes.
status number_symbol(world *w, source *s, number hint, int64_t low, int64_t high, number *n);
// The object that the program gets for a number: an int, float or bool for a plain number, else a
// lazy. Each call for a computed number makes another object, as plain Python does. New reference.
PyObject *number_object(world *w, number n);
// The same number as another object. New reference.
PyObject *number_again(world *w, number n);
// What str() gives of an open number: a lazy, so that text that nobody reads settles nothing. 1: *text
// is a new reference. 0: `o` is no such number. -1: error or break.
int number_text(world *w, PyObject *o, PyObject **text);
// A symbol whose value only the graph will know (sizes_unbacked). Whoever opens it, or asks of it
// what facts do not tell, ends the trace before the instruction that does.
status number_unbacked(world *w, number_kind kind, int64_t low, int64_t high, number *n);
// Decides whether the number is true (number_decide): 1, 0, -1.
int number_truth(world *w, number n);
// Whether any number of the trace is open.
bool numbers_are_open(world *w);
// The expressions of this trace; the first call makes them. NULL with an exception.
sizes *world_sizes(world *w);
// Makes guards of all conditions since its last call, with the line that the program is in now.
status numbers_guard(world *w);
// The engine itself had to settle numbers, since the last call of numbers_guard: of those that were
// promised to differ it is no error.
void numbers_excuse(world *w);

// Python's operators on objects, if at least one operand is an open number and the other is a
// number. 1: *result is a new reference. 0: the operands are something else, or must be opened. -1:
// error or break.
int number_unary(world *w, number_op op, PyObject *o, PyObject **result);
int number_binary(world *w, number_op op, PyObject *a, PyObject *b, PyObject **result);

int numbers_setup(void);

// ST_BREAK if a number depends on one that is drawn anew in each call: an entry for its value would
// fit no other call. Where a break is an error, such an entry is better than none.
status number_may_settle(world *w, number n);

// --- for the door ---

// Settles an open number that is opened, or whose text is, and guards its value. A computed one gets
// its inside.
status number_settled(world *w, lazy *l);
// Whether `o` is a lazy for which each call of the program makes another object.
static inline bool number_is_computed(PyObject *o) {
    if (!is_lazy(o))
        return false;
    const source *s = ((lazy *)o)->source;
    return s->kind == SOURCE_SIZE || s->kind == SOURCE_STRIDE || s->kind == SOURCE_EXPR ||
           s->kind == SOURCE_TEXT || s->kind == SOURCE_GRAPH || s->kind == SOURCE_DRAW;
}
