// A size: the number of elements along a dimension of a tensor, or a stride: the distance between
// two of them. A size is a plain number, or an expression over symbols (expr.h) whose value in this
// call is its hint. The type is a struct, so that code cannot compute or compare without the
// functions below.
//
// Arithmetic needs no `sizes`: each expression knows its own. Arithmetic never fails: where the
// result has no expression (the hint overflows, the divisor is 0), the operands are settled, and
// the result is plain.
//
// A question needs a `sizes`. If the answer depends on the values of the symbols, the hint answers
// and a condition notes the answer. The conditions, and the facts that follow from them, belong to
// the whole trace: `sizes` has them. Every graph of the trace points to the `sizes`; rules get it
// from their call. A question about a size without a hint (expr.h) stays unanswered, and the rule's
// answer is not used. Without a `sizes` (NULL) the hint answers and nothing is noted: texts, and
// checks against fakes that have this call's sizes, do that.
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
int size_ask(number_op op, size a, size b);                   // as size_known
bool size_decide(sizes *known, number_op op, size a, size b); // a comparison
bool size_decide_multiple(sizes *known, size a, size b);
int64_t size_note(sizes *known, size a); // its value, which is relied on

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
// The same, or false if the product has more than 63 bits, which torch refuses.
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
// a / b, rounded up; neither is negative, b is not 0.
static inline size size_div_up(size a, size b) {
    return LIKELY(!a.e && !b.e) ? size_of(a.hint / b.hint + (a.hint % b.hint != 0))
                                : size_apply_div_up(a, b);
}

// --- answers by facts, without a condition ---

// A comparison a op b. 1: true for all values that the symbols can have; 0: for none; -1: for some.
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
// Whether a subscript is in range for `count` elements; a negative one counts from the end.
static inline bool size_is_index(sizes *known, size at, size count) {
    return size_is_less(known, at, count) && !size_is_less(known, size_add(at, count), size_of(0));
}
static inline bool sizes_are(sizes *known, const size *a, const size *b, int count) {
    for (int i = 0; i < count; i++)
        if (!size_is(known, a[i], b[i]))
            return false;
    return true;
}
// The value as a plain number, on which the trace relies from now on: the number of results of an
// operation, or of rows to iterate over.
static inline int64_t size_settle(sizes *known, size a) {
    return LIKELY(!a.e) ? a.hint : size_note(known, a);
}
