// A size: how many elements a tensor has along a dimension, or a stride: how far apart they lie. It
// is a plain number, or an expression over symbols (expr.h) whose value in this call is its hint.
// It is a struct so that the compiler refuses arithmetic and comparisons that go past the functions
// below.
//
// Arithmetic needs no context: an expression knows the `sizes` that it belongs to. Nor does it
// fail: where there is no expression (the hint overflows, the divisor is 0), the operands are
// settled, and the result is plain.
//
// A question does need one. Where its answer is not the same for every value the symbols may have,
// the hint answers and a condition keeps the answer. Those conditions, and what they tell about
// symbols, are facts of the whole trace: `sizes` has them, and every graph of the trace points to
// it; rules get it by their call. Without a `sizes` (NULL) the hint answers and nothing is noted:
// for texts, and for checks against fakes that have this call's sizes.
//
// Strides are sizes: they are products of sizes, and rules compare the two. Storage offsets are
// plain numbers: no rule computes with them, and their guard compares this call's value.
#pragma once

#include "src/graph/expr.h"

typedef struct size {
    int64_t hint;
    const expr *e; // NULL: a plain number
} size;

static inline size size_of(int64_t number) {
    return (size){.hint = number};
}
static inline bool size_is_plain(size a) {
    return LIKELY(!a.e);
}
static inline number number_of_size(size a) {
    return (number){.kind = NUMBER_INT, .hint.i = a.hint, .e = a.e};
}
static inline size size_of_number(number n) { // an int
    assert(n.kind == NUMBER_INT);
    return (size){.hint = n.hint.i, .e = n.e};
}

// --- of expressions (size.c) ---

size size_apply(number_op op, size a, size b);
size size_apply_div_up(size a, size b);
int size_ask(number_op op, size a, size b);                   // what is known
bool size_decide(sizes *known, number_op op, size a, size b); // a comparison
bool size_decide_multiple(sizes *known, size a, size b);
void size_note(sizes *known, size a); // that it has the value of its hint

// --- arithmetic ---

static inline size size_add(size a, size b) {
    return LIKELY(!a.e && !b.e) ? size_of(a.hint + b.hint) : size_apply(NUMBER_ADD, a, b);
}
static inline size size_sub(size a, size b) {
    return LIKELY(!a.e && !b.e) ? size_of(a.hint - b.hint) : size_apply(NUMBER_SUB, a, b);
}
static inline size size_mul(size a, size b) {
    return LIKELY(!a.e && !b.e) ? size_of(a.hint * b.hint) : size_apply(NUMBER_MUL, a, b);
}
// The same, or false if the product is too large for torch to count to.
static inline bool size_mul_fits(size a, size b, size *product) {
    int64_t ignored;
    if (__builtin_mul_overflow(a.hint, b.hint, &ignored))
        return false;
    *product = size_mul(a, b);
    return true;
}
// Rounded down; b is not 0.
static inline size size_floordiv(size a, size b) {
    if (LIKELY(!a.e && !b.e && a.hint >= 0 && b.hint > 0))
        return size_of(a.hint / b.hint);
    return size_apply(NUMBER_FLOORDIV, a, b);
}
// How many pieces of size b it takes to make a; neither is negative, b is not 0.
static inline size size_div_up(size a, size b) {
    return LIKELY(!a.e && !b.e) ? size_of(a.hint / b.hint + (a.hint % b.hint != 0))
                                : size_apply_div_up(a, b);
}

// --- what is known, without a condition ---

// Whether a op b (a comparison) is true for all values that the symbols can have: 1; for none: 0;
// -1: it depends.
static inline int size_known(number_op op, size a, size b) {
    if (LIKELY(!a.e && !b.e && op == NUMBER_EQ))
        return a.hint == b.hint;
    return size_ask(op, a, b);
}
static inline bool size_is_surely(size a, size b) {
    return size_known(NUMBER_EQ, a, b) == 1;
}

// --- questions, each of which may become a condition ---

static inline bool size_is(sizes *known, size a, size b) {
    return LIKELY(!a.e && !b.e) ? a.hint == b.hint : size_decide(known, NUMBER_EQ, a, b);
}
static inline bool size_is_zero(sizes *known, size a) {
    return size_is(known, a, size_of(0));
}
static inline bool size_is_one(sizes *known, size a) {
    return size_is(known, a, size_of(1));
}
static inline bool size_is_less(sizes *known, size a, size b) {
    return LIKELY(!a.e && !b.e) ? a.hint < b.hint : size_decide(known, NUMBER_LT, a, b);
}
static inline bool size_is_multiple(sizes *known, size a, size b) {
    return LIKELY(!a.e && !b.e) ? a.hint % b.hint == 0 : size_decide_multiple(known, a, b);
}
// Whether a subscript finds one of so many elements: those below 0 count from the end.
static inline bool size_is_index(sizes *known, size at, size count) {
    return size_is_less(known, at, count) && !size_is_less(known, size_add(at, count), size_of(0));
}
static inline bool sizes_are(sizes *known, const size *a, const size *b, int count) {
    for (int i = 0; i < count; i++)
        if (!size_is(known, a[i], b[i]))
            return false;
    return true;
}
// The value, which the trace relies on from now on: the number of results, of rows to iterate over.
static inline int64_t size_settle(sizes *known, size a) {
    if (UNLIKELY(a.e))
        size_note(known, a);
    return a.hint;
}
