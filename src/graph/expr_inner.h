// What the files of symbolic numbers share, and nobody else uses.
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

// What decisions have told about an expression; a copy of it in the trail undoes them.
typedef struct expr_facts {
    interval bounds; // of an int
    // It is equal to this, by a decision: an expression, or with NULL a plain number.
    bool rewritten;
    const expr *becomes;
    int64_t value;
    // An operation that stands for a part of a symbol, as a symbol does: it is not looked into.
    bool opaque;
    int8_t truth; // of a bool: what was decided, or -1
} expr_facts;

// A coefficient, and a product or an atom; NULL: the constant term.
typedef struct term {
    int64_t coefficient;
    const expr *of;
} term;

struct expr {
    sizes *owner;
    uint32_t id, hash;
    uint32_t seen;          // by the walk of this number
    uint8_t form, kind, op; // expr_form, number_kind, number_op
    uint8_t a_kind, b_kind; // of an operation: what its operands are
    bool busy;              // its current form is being made
    uint16_t depth, count;  // how deep operations are nested; how many words there are
    int64_t hint;           // or the bits of a double
    expr_facts facts;
    // What it is by the facts of this version: an expression, or with NULL a plain number (a float
    // or bool: its hint). And its bounds, or for a bool in `low` what number_known says.
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
    int deep;         // how many expressions are being looked into, one within the other
    bool failed;
    bool rewrote; // a rewrite was noted, so that conditions tell more
    VEC(number) conditions;
    VEC(trail_entry) trail;
};

enum {
    MOST_TERMS = 64,    // of a sum
    MOST_EXPANDED = 16, // of a product of sums that is multiplied out
    MOST_FACTORS = 32,
    MOST_DEPTH = 64, // of nested operations
    MOST_DEEP = 250, // looked into at once: what lies deeper is taken as it is
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
// The one expression of this form. NULL with an exception, and then s->failed is set. Of an
// operation: as it is written, without any simplification.
expr *intern_operation(sizes *s, number_op op, number a, number b, number hint);
// The same as a number, whose hint the operation gives. False if it has none, is nested too deeply,
// or there is no memory.
bool operation(sizes *s, number_op op, number a, number b, number *n);
expr *intern_product(sizes *s, const expr *const *atoms, int count, int64_t hint);
expr *intern_sum(sizes *s, const term *terms, int count, int64_t hint);
// The sum if there is one already; else NULL.
expr *find_sum(sizes *s, const term *terms, int count);

// --- ints (polynomial.c) ---

// All of these: false without an exception if there is no such expression, or with one.
void poly_constant(poly *p, int64_t value);
void poly_of(poly *p, number n);
bool poly_add(poly *p, const poly *q, int64_t coefficient); // p + q * coefficient
bool poly_number(sizes *s, const poly *p, number *n);
int64_t poly_take_constant(poly *p); // and leaves p without it
// Divides by the greatest common divisor of all coefficients but the constant's, which is left out
// of p; the first coefficient becomes positive. Gives by what p was divided; 0: p is constant.
int64_t poly_content(poly *p);
bool int_add(sizes *s, number a, number b, int64_t coefficient, number *n); // a + b * coefficient
bool int_multiply(sizes *s, number a, number b, number *n);
bool int_floordiv(sizes *s, number a, number b, number *n); // b is not 0
bool int_mod(sizes *s, number a, number b, number *n);
bool int_minmax(sizes *s, number_op op, number a, number b, number *n);
// a op 0, in the form in which equal questions are the same expression: EQ, NE or GE.
bool int_question(sizes *s, number_op op, number a, number *truth);
// The product without this factor, which it has.
bool product_without(sizes *s, const expr *product, const expr *factor, number *n);
int factors_in(const expr *product, const expr *factor); // how often it has this atom
bool floor_divide(int64_t a, int64_t b, int64_t *quotient);

// --- what is known (known.c) ---

interval bounds_of(number n);
// 1, 0 or -1 for an int: is it at least 0?
int known_not_negative(sizes *s, number n);
