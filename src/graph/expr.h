// Numbers that differ from call to call: expressions over symbols. A symbol stands for an int or a
// float that was read from a place outside (a size of an input, an argument); its value in the
// traced call is its hint. Arithmetic on such numbers makes expressions. A question about them (are
// two equal, is one less) is answered by the facts that are known about the symbols, or else by the
// hints. In the second case the answer is noted as a condition, which guards check in later calls.
//
// A `sizes` has the symbols of one trace, the facts that are known about them, and the conditions.
// It also owns the expressions, and keeps one pointer for equal expressions (hash-consing).
//
// Integers are polynomials in a canonical form, so that a + b and b + a are one expression. Floats
// and bools are trees as the program wrote them: rounding, -0.0 and NaN forbid algebra.
#pragma once

#include "src/base/vec.h" // Python.h, which stands before C's own headers

#include "src/base/map.h"
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

// Python's operators and functions, with Python's meaning. Unary ones have no second operand.
typedef enum number_op {
#define NUMBER(name, text) NUMBER_##name,
#include "src/graph/numbers.def"
#undef NUMBER
    NUMBER_OPS,
} number_op;
extern const char *const number_op_names[NUMBER_OPS]; // the texts
static inline bool number_is_unary(number_op op) {
    return op >= NUMBER_NEG;
}
static inline bool number_is_math(number_op op) {
    return op > NUMBER_SQRT;
}

sizes *sizes_new(void); // NULL with an exception
void sizes_free(sizes *s);

// The symbol of a place; the first call for a place makes the symbol. `place` is a pointer of the
// caller's, equal for the same place. low and high (INT) are bounds that the caller guarantees:
// sizes are not negative. False with an exception.
bool sizes_symbol(sizes *s, void *place, number hint, int64_t low, int64_t high, number *symbol);

// A symbol without a hint (*unbacked*): only the graph will know its value, or nobody may rely on
// this call's. Its hint, and that of every expression that it is part of, means nothing: facts alone
// answer questions about it. One that facts do not answer is noted (sizes_asked), and whoever has
// asked must not go on with the answer.
bool sizes_unbacked(sizes *s, void *place, number_kind kind, int64_t low, int64_t high,
                    number *symbol);
// The same for an int at a place outside: the user wants that nobody relies on its value. Whoever
// decides about it nevertheless, decides about all values (sizes_rely).
bool sizes_unhinted(sizes *s, void *place, int64_t value, int64_t low, int64_t high,
                    number *symbol);
// The value of such a symbol in this call; false: it is another one.
bool sizes_value(const sizes *s, number symbol, int64_t *value);
bool sizes_has_unbacked(const sizes *s);
bool number_is_unbacked(number n);
bool number_is_inner(number n); // it has a symbol in it that only the graph knows
// Whether such a question was asked and not taken back. *question is a bool, or the number whose
// value was wanted.
bool sizes_asked(const sizes *s, number *question);
void sizes_unask(sizes *s); // the trace ends before the instruction that asked
// What holds from now on because the graph checks it: a bool with an unbacked symbol in it.
void sizes_check(sizes *s, number truth);
// What holds from now on because it is a condition, whatever the hints are: a bool without a symbol
// that only the graph knows. If it does not hold in this call, the guards say so.
void sizes_rely(sizes *s, number truth);
int sizes_checks(const sizes *s);
number sizes_checked(const sizes *s, int index);

// *result = a op b. False without an exception: the result has no expression (the hint overflows 64
// bits, the operation would raise, or Python's result is no int, float or bool). The caller then
// settles the operands and computes as Python does. False with an exception: no memory. Where other
// values of the symbols would raise or give a result of another kind (a divisor of 0, an int too
// large to be a float), a condition excludes these values.
bool number_apply(sizes *s, number_op op, number a, number b, number *result);

// 1: the bool is true for all values that the symbols can have; 0: for none; -1: for some.
int number_known(sizes *s, number truth);
// The same, but where the values of symbols matter, the hint answers and a condition notes the
// answer. An int or float is true if it is not zero.
bool number_decide(sizes *s, number truth);
// Its value from now on, a plain number: what is known, or its hint on condition that it is that.
number number_settle(sizes *s, number n);
// The number as it is known now: plain, if its symbols have been settled meanwhile.
number number_current(sizes *s, number n);

// Conditions in the order in which they were noted: each is a bool that must be true.
int sizes_conditions(const sizes *s);
number sizes_condition(const sizes *s, int index);
// A moment of the trace. sizes_rollback forgets all decisions since that moment.
typedef struct sizes_mark {
    int conditions, trail, facts;
    const expr *asked;
} sizes_mark;
sizes_mark sizes_now(const sizes *s);
void sizes_rollback(sizes *s, sizes_mark to);
// Whether an allocation failed: decisions since then may be wrong. An exception is set, and the
// trace ends.
bool sizes_failed(const sizes *s);

// --- reading ---

// The operation that an expression is, with its operands (plain numbers or expressions); false for
// a symbol.
bool expr_split(const expr *e, number_op *op, number *a, number *b);
void *expr_place(const expr *symbol);
// Bounds of an INT.
void expr_bounds(const expr *e, int64_t *low, int64_t *high);

// --- guards ---

// Expressions as a flat program: step i computes value i from the values of earlier steps. A part
// that several expressions share is one step.
enum { CODE_CONSTANT = NUMBER_OPS, CODE_LEAF };
typedef struct expr_code {
    uint8_t op;      // of number_op, or one of the two above
    int32_t a, b;    // operands: numbers of earlier steps; of CODE_LEAF a is the leaf's number
    number constant; // of CODE_CONSTANT
} expr_code;

typedef struct expr_leaf {
    void *place; // of the symbol
    number_kind kind;
} expr_leaf;

// All zero is an empty program.
typedef struct expr_program {
    VEC(expr_code) code;
    VEC(expr_leaf) leaves; // in the order in which they were first met
    map steps;             // of an expression → the number of its step
} expr_program;
// Adds the steps that compute `n`, which may be plain; *step is the step that gives its value.
// False with an exception.
bool expr_flatten(expr_program *p, number n, int *step);
void expr_program_free(expr_program *p);

// Runs the steps from `from` up to `to`; earlier steps have run already. values[i] is the value of
// step i. `leaves` have the kinds that the program says. False without an exception: a step has no
// value in int64 or double (an overflow, a division by zero, an int that no double is equal to), or
// raises in Python. The guard then fails.
bool number_evaluate(const expr_code *code, int from, int to, const number *leaves, number *values);
// One operation on plain numbers, as above.
bool number_compute(number_op op, number a, number b, number *result);

// --- as Python objects ---

int expr_setup(PyObject *module); // adds the type `Sizes`, for tests and tools

// The value of a plain number, or the hint of another: an int, float or bool. New reference.
PyObject *number_as_object(number n);
// The number that an object is: an exact int of 64 bits, an exact float or a bool. False: none of
// these. Raises nothing.
static inline bool number_from_object(PyObject *o, number *n) {
    int overflow = 0;
    if (PyLong_CheckExact(o))
        *n = number_int(PyLong_AsLongLongAndOverflow(o, &overflow));
    else if (PyFloat_CheckExact(o))
        *n = number_float(PyFloat_AS_DOUBLE(o));
    else if (PyBool_Check(o))
        *n = number_bool(o == Py_True);
    else
        return false;
    return overflow == 0;
}
// A plain number is an int, float or bool; a symbol ("symbol", what the callback gives); anything
// else (text of the operation, operand[, operand]). New reference, NULL with an exception.
typedef PyObject *(*expr_name)(void *data, void *place); // new reference
PyObject *expr_to_object(number n, expr_name name, void *data);
// The reverse. The operations are applied again, so the number is in canonical form. False without
// an exception: there is no such expression; or false with one.
typedef bool (*expr_named)(void *data, PyObject *name, number *symbol); // false: no such symbol
bool expr_from_object(sizes *s, PyObject *o, expr_named named, void *data, number *n);
