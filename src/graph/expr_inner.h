// Types and functions that only the files of symbolic numbers share.
#pragma once

#include "src/base/arena.h"

#include "src/graph/expr.h"

// How an expression is written. An int is an atom (a symbol, or an operation that is no addition or
// multiplication), a product of atoms, or a sum of products with coefficients.
typedef enum expr_form { FORM_SYMBOL, FORM_OPERATION, FORM_PRODUCT, FORM_SUM } expr_form;

// INT64_MIN as a lower bound and INT64_MAX as an upper one stand for "none".
typedef struct interval {
    int64_t low, high;
} interval;

// --- intervals (interval.c) ---

extern const interval interval_all;
bool bound_is_endless(int64_t bound);
interval interval_both(interval a, interval b);   // what lies in both
interval interval_either(interval a, interval b); // the smallest that holds both
interval interval_add(interval a, interval b);
interval interval_mul(interval a, interval b);
interval interval_times(interval a, int64_t k);
interval interval_floordiv(interval a, interval b);
interval interval_mod(interval a, interval b);
interval interval_abs(interval a);

// Facts about an expression that follow from decisions. The trail keeps earlier copies of the
// facts, by which a rollback undoes decisions.
typedef struct expr_facts {
    interval bounds; // of an int
    // A decision made the expression equal to `becomes`, or, if that is NULL, to the plain `value`.
    bool rewritten;
    const expr *becomes;
    int64_t value;
    // The operation counts as a symbol (it is a part of one): rewriting does not look at its
    // operands.
    bool opaque;
    int8_t truth; // of a bool: 1 or 0 by a decision, or -1
} expr_facts;

// A coefficient, and a product or an atom; NULL: the constant term.
typedef struct term {
    int64_t coefficient;
    const expr *of;
} term;

struct expr {
    sizes *owner;
    uint32_t id, hash;
    uint32_t seen;          // the number of the last walk that came here
    uint8_t form, kind, op; // expr_form, number_kind, number_op
    uint8_t a_kind, b_kind; // of an operation: what its operands are
    bool busy;              // its current form is being made
    bool unbacked;          // it has a symbol in it that has no hint: its own means nothing
    bool inner;             // it has a symbol in it that only the graph knows
    uint16_t depth, count;  // how deep operations are nested; how many words there are
    int64_t hint;           // or the bits of a double
    expr_facts facts;
    // The current form by the facts of `now_version`: the expression `now`, or, if that is NULL,
    // the plain `now_value` (a float or bool: its hint). And the bounds by the facts of
    // `bounds_version`; for a bool `low` is the answer of number_known.
    uint32_t now_version, bounds_version;
    const expr *now;
    int64_t now_value;
    interval now_bounds;
    // Symbol: its place. Operation: expression and bits of a, of b. Product: its atoms by id. Sum:
    // its terms by id, the constant first.
    uint64_t words[];
};
static_assert(sizeof(term) == 2 * sizeof(uint64_t), "terms are words");

typedef struct trail_entry {
    expr *of;
    expr_facts facts;
} trail_entry;

struct sizes {
    arena memory;
    expr **table; // of all expressions, by hash
    uint32_t room, count;
    map places;       // → symbol
    uint32_t version; // of the facts
    uint32_t walks;   // through expressions, so far
    int deep;         // how many calls of bounds_of and the like are nested
    bool failed;
    bool rewrote;      // a rewrite was noted, so that conditions tell more
    int unbacked;      // how many symbols have no hint
    map values;        // symbol without a hint that is found outside → its value in this call
    const expr *asked; // the first question that only a hint could have answered, and has none
    VEC(number) facts; // what the graph checks
    VEC(number) conditions;
    VEC(trail_entry) trail;
};

enum {
    MOST_TERMS = 64,    // of a sum
    MOST_EXPANDED = 16, // of a product of sums that is multiplied out
    MOST_FACTORS = 32,
    MOST_DEPTH = 64, // of nested operations
    MOST_DEEP = 250, // nested calls of bounds_of: deeper expressions are not simplified
};

// A sum that is being made.
typedef struct poly {
    int count;
    term terms[MOST_TERMS]; // by id, the constant first; no coefficient is 0
} poly;

// --- expressions (expr.c) ---

static inline expr *own(const expr *e) {
    return (expr *)(uintptr_t)e;
}
static inline const expr *factor_of(const expr *e, int i) {
    return (const expr *)(uintptr_t)e->words[i];
}
static inline const term *terms_of(const expr *e) {
    return (const term *)(const void *)e->words;
}
static inline bool is_operation(const expr *e, number_op op) {
    return e->form == FORM_OPERATION && e->op == op;
}
static inline number hint_of(const expr *e) { // a plain number
    number n = {.kind = (number_kind)e->kind};
    memcpy(&n.hint, &e->hint, sizeof(n.hint));
    return n;
}
static inline number whole(const expr *e) {
    number n = hint_of(e);
    n.e = e;
    return n;
}
number operand_of(const expr *e, int i); // of an operation
static inline uint64_t bits_of(number n) {
    uint64_t bits;
    memcpy(&bits, &n.hint, sizeof(bits));
    return bits;
}
static inline sizes *owner_of(number a, number b) {
    return a.e ? a.e->owner : b.e ? b.e->owner : NULL;
}
// The one expression of this form. NULL with an exception, and then s->failed is set. An operation
// is not simplified.
expr *intern_operation(sizes *s, number_op op, number a, number b, number hint);
// The same as a number, whose hint is computed. False if the hint cannot be computed, the operation
// is nested too deeply, or there is no memory.
bool operation(sizes *s, number_op op, number a, number b, number *n);
expr *intern_product(sizes *s, const expr *const *atoms, int count, int64_t hint);
expr *intern_sum(sizes *s, const term *terms, int count, int64_t hint);
// The sum if the trace has made this sum before; else NULL.
expr *find_sum(sizes *s, const term *terms, int count);

// --- ints (polynomial.c) ---

// All bool functions here: false without an exception if there is no such expression, or false
// with one.
void poly_constant(poly *p, int64_t value);
void poly_of(poly *p, number n);
bool poly_add(poly *p, const poly *q, int64_t coefficient); // p + q * coefficient
bool poly_number(sizes *s, const poly *p, number *n);
int64_t poly_take_constant(poly *p); // removes the constant term from p
// Removes the constant term and divides p by the greatest common divisor of its coefficients; the
// first coefficient becomes positive. Returns the divisor; 0: p was constant.
int64_t poly_content(poly *p);
bool int_add(sizes *s, number a, number b, int64_t coefficient, number *n); // a + b * coefficient
bool int_multiply(sizes *s, number a, number b, number *n);
bool int_floordiv(sizes *s, number a, number b, number *n); // b is not 0
bool int_mod(sizes *s, number a, number b, number *n);
bool int_minmax(sizes *s, number_op op, number a, number b, number *n);
// a op 0, in the form in which equal questions are the same expression: EQ, NE or GE.
bool int_question(sizes *s, number_op op, number a, number *truth);
// The product without `factor`, which must be one of its atoms.
bool product_without(sizes *s, const expr *product, const expr *factor, number *n);
int factors_in(const expr *product, const expr *factor); // how often the product has this atom
bool floor_divide(int64_t a, int64_t b, int64_t *quotient);

// --- facts (known.c) ---

interval bounds_of(number n);
// Whether an int is at least 0: 1, 0, or -1 if the facts do not tell.
int known_not_negative(sizes *s, number n);
