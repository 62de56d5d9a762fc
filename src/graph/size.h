// A size: how many elements a tensor has along a dimension, or a stride: how far apart they lie.
// Today a size is a plain number. Later it may also be an expression over symbols, whose value in
// this call is its hint. It is a struct so that the compiler refuses arithmetic and comparisons
// that go past the functions below.
//
// Arithmetic needs no context: an expression is kept where its parts are. A question does. Where
// its answer is not the same for every value the symbols may have, the hint answers and a guard
// keeps the answer. Those guards, and what they tell about symbols, are facts of the whole trace:
// `sizes` has them, and every graph of the trace points to it; rules get it by their call. A world
// would be the wrong thing to pass: it is of a later room. Without a `sizes` (NULL) the hint
// answers and nothing is guarded: for texts, and for checks against fakes that have this call's
// sizes.
//
// Strides are sizes: they are products of sizes, and rules compare the two. Storage offsets are
// plain numbers: no rule computes with them, and their guard compares this call's value.
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct size {
    int64_t hint;
} size;
static_assert(sizeof(size) == sizeof(int64_t), "costs as much as a number");

// What a trace knows of its symbols. There are none yet, and so every graph's is NULL.
typedef struct sizes sizes;

static inline size size_of(int64_t number) {
    return (size){number};
}

// --- arithmetic ---

static inline size size_add(size a, size b) {
    return (size){a.hint + b.hint};
}
static inline size size_sub(size a, size b) {
    return (size){a.hint - b.hint};
}
static inline size size_mul(size a, size b) {
    return (size){a.hint * b.hint};
}
// The same, or false if the product is too large for torch to count to.
static inline bool size_mul_fits(size a, size b, size *product) {
    return !__builtin_mul_overflow(a.hint, b.hint, &product->hint);
}
// How many pieces of size b it takes to make a; neither is negative, b is not 0.
static inline size size_div_up(size a, size b) {
    return (size){a.hint / b.hint + (a.hint % b.hint != 0)};
}

// --- questions, each of which may become a guard ---

typedef enum size_question { SIZE_EQUAL, SIZE_LESS, SIZE_MULTIPLE } size_question;

static inline bool size_decide(sizes *known, size_question question, size a, size b) {
    (void)known;
    return question == SIZE_EQUAL  ? a.hint == b.hint
           : question == SIZE_LESS ? a.hint < b.hint
                                   : a.hint % b.hint == 0;
}
static inline bool size_is(sizes *known, size a, size b) {
    return size_decide(known, SIZE_EQUAL, a, b);
}
static inline bool size_is_zero(sizes *known, size a) {
    return size_decide(known, SIZE_EQUAL, a, size_of(0));
}
static inline bool size_is_one(sizes *known, size a) {
    return size_decide(known, SIZE_EQUAL, a, size_of(1));
}
static inline bool size_is_less(sizes *known, size a, size b) {
    return size_decide(known, SIZE_LESS, a, b);
}
static inline bool size_is_multiple(sizes *known, size a, size b) {
    return size_decide(known, SIZE_MULTIPLE, a, b);
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
    (void)known;
    return a.hint;
}
