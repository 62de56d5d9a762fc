// Numbers that differ from call to call: expressions over symbols. A symbol stands for an int or a
// float that was read from a place outside (a size of an input, an argument); its value in the
// traced call is its hint. Arithmetic on such numbers makes expressions. A question about them (is
// it equal, is it less) is answered by what is known of the symbols, or by the hints; in the second
// case the answer is noted as a condition, which guards check in later calls.
//
// A `sizes` has the symbols of one trace, what is known of them, and the conditions. Expressions
// are hash-consed in it: the same expression is the same pointer. They die with it.
//
// Integers are polynomials in a canonical form, so that a + b and b + a are one expression. Floats
// and bools are trees as the program wrote them: rounding, -0.0 and NaN forbid algebra.
#pragma once

#include "src/base/status.h"

#include "src/py/py.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sizes sizes;
typedef struct expr expr;

typedef enum number_kind { NUMBER_INT, NUMBER_FLOAT, NUMBER_BOOL } number_kind;

// A number of a trace. With e == NULL it is plain: the same in every call.
typedef struct number {
    number_kind kind;
    union {
        int64_t i; // INT, BOOL
        double d;  // FLOAT
    } hint;
    const expr *e;
} number;

static inline number number_int(int64_t value) {
    return (number){.kind = NUMBER_INT, .hint.i = value};
}
static inline number number_float(double value) {
    return (number){.kind = NUMBER_FLOAT, .hint.d = value};
}
static inline number number_bool(bool value) {
    return (number){.kind = NUMBER_BOOL, .hint.i = value};
}

// Python's operators and functions, with Python's meaning: `//` and `%` round down. Unary ones have
// no second operand.
typedef enum number_op {
    // NUMBER(name, python text)
    NUMBER_ADD,
    NUMBER_SUB,
    NUMBER_MUL,
    NUMBER_FLOORDIV,
    NUMBER_MOD,
    NUMBER_TRUEDIV,
    NUMBER_POW,
    NUMBER_LSHIFT,
    NUMBER_RSHIFT,
    NUMBER_AND, // & of ints and bools
    NUMBER_OR,
    NUMBER_XOR,
    NUMBER_MIN,
    NUMBER_MAX,
    NUMBER_EQ, // comparisons give a bool
    NUMBER_NE,
    NUMBER_LT,
    NUMBER_LE,
    NUMBER_GT,
    NUMBER_GE,
    NUMBER_NEG, // unary from here on
    NUMBER_ABS,
    NUMBER_INVERT,
    NUMBER_NOT,
    NUMBER_TO_INT,   // int(): rounds towards zero
    NUMBER_TO_FLOAT, // float()
    NUMBER_TO_BOOL,  // bool()
    NUMBER_FLOOR,    // math.floor
    NUMBER_CEIL,
    NUMBER_ROUND, // round() without digits: to even
    NUMBER_SQRT,  // math.sqrt
    NUMBER_OPS,
} number_op;
static inline bool number_is_unary(number_op op) {
    return op >= NUMBER_NEG;
}

sizes *sizes_new(void); // NULL with an exception
void sizes_free(sizes *s);

// The symbol of a place, which is made at the first time. `place` is whatever the caller finds it
// by. low and high (INT) are what the caller guarantees of it: sizes are not negative. False with
// an exception.
bool sizes_symbol(sizes *s, void *place, number hint, int64_t low, int64_t high, number *symbol);

// What a op b is. False, without an exception: there is no expression for it (the hint overflows 64
// bits, it would raise, or Python's result is of a kind that is none of these); or with one. The
// caller then settles its operands and computes as Python does.
bool number_apply(sizes *s, number_op op, number a, number b, number *result);

// Whether a bool is true for all values that the symbols can have: 1; for none: 0; -1: it depends.
int number_known(sizes *s, number truth);
// The same; where it depends the hint answers, and that is noted as a condition. An int or float is
// true if it is not zero.
bool number_decide(sizes *s, number truth);
// Its value from now on is its hint, on condition that it is.
void number_settle(sizes *s, number n);
// The number as it is known now: plain, if its symbols have been settled meanwhile.
number number_current(sizes *s, number n);

// Conditions in the order in which they were noted: each is a bool that must be true.
int sizes_conditions(const sizes *s);
number sizes_condition(const sizes *s, int index);
// A moment to come back to: what was decided since then is forgotten.
typedef struct sizes_mark {
    int conditions, trail;
} sizes_mark;
sizes_mark sizes_now(const sizes *s);
void sizes_rollback(sizes *s, sizes_mark to);
// No memory was left at some point: what was decided since is not to be trusted. An exception is
// set, and the trace ends.
bool sizes_failed(const sizes *s);

// --- reading ---

// The operation that an expression is, with its operands (plain numbers or expressions); false for
// a symbol.
bool expr_split(const expr *e, number_op *op, number *a, number *b);
void *expr_place(const expr *symbol);
number expr_number(const expr *e); // with its hint and kind
// Bounds of an INT.
void expr_bounds(const expr *e, int64_t *low, int64_t *high);
