// Computes operations on symbolic numbers, by the kinds of the operands. Adds the conditions under
// which Python gives a number of the same kind and does not raise.
#include "src/graph/expr_inner.h"

#include <float.h>
#include <math.h>

static const number nothing = {0};

// Adds the condition a op b, which must hold for the hints. False: it does not, there is no
// such expression, or the number has no hint and facts do not tell.
static bool require(sizes *s, number_op op, number a, number b) {
    number truth;
    if (!number_apply(s, op, a, b, &truth))
        return false;
    if (number_is_unbacked(truth))
        return number_known(s, truth) == 1 && !s->failed;
    return truth.hint.i != 0 && number_decide(s, truth) && !s->failed;
}

// --- conversions ---

// A bool counts as 0 or 1.
static bool count(sizes *s, number *n) {
    if (n->kind != NUMBER_BOOL)
        return true;
    if (!n->e) {
        *n = number_int(n->hint.i);
        return true;
    }
    return operation(s, NUMBER_TO_INT, *n, nothing, n);
}

// Requires that an int, and the ints around it, are equal to a double. An int without a hint needs
// neither: Python computes with it, in the graph.
static bool require_exact(sizes *s, number n) {
    const int64_t most = (int64_t)1 << 53;
    return n.kind != NUMBER_INT || number_is_unbacked(n) ||
           (require(s, NUMBER_LE, n, number_int(most)) &&
            require(s, NUMBER_GE, n, number_int(-most)));
}

static bool require_finite(sizes *s, number n) {
    number size;
    return number_is_unbacked(n) || (number_apply(s, NUMBER_ABS, n, nothing, &size) &&
                                     require(s, NUMBER_LE, size, number_float(DBL_MAX)));
}

static bool to_int(sizes *s, number_op op, number a, number *n) {
    *n = a;
    if (a.kind != NUMBER_FLOAT)
        return count(s, n);
    return require_finite(s, a) && operation(s, op, a, nothing, n);
}

static bool to_float(sizes *s, number a, number *n) {
    *n = a;
    return a.kind == NUMBER_FLOAT ||
           (count(s, &a) && require_exact(s, a) && operation(s, NUMBER_TO_FLOAT, a, nothing, n));
}

static bool compare_zero(sizes *s, number_op op, number a, number *n) {
    if (a.kind == NUMBER_INT)
        return int_question(s, op, a, n);
    return operation(s, op, a, number_float(0.0), n);
}

static bool to_bool(sizes *s, number a, number *n) {
    *n = a;
    return a.kind == NUMBER_BOOL || compare_zero(s, NUMBER_NE, a, n);
}

// --- bools ---

// Negates p >= 0: -p - 1 >= 0.
static bool turn_question(sizes *s, number p, number *n) {
    number turned;
    return int_add(s, number_int(-1), p, -1, &turned) && int_question(s, NUMBER_GE, turned, n);
}

static bool not_of(sizes *s, number a, number *n) {
    if (a.kind != NUMBER_BOOL)
        return compare_zero(s, NUMBER_EQ, a, n);
    if (is_operation(a.e, NUMBER_NOT)) {
        *n = operand_of(a.e, 0);
        return true;
    }
    bool question =
        is_operation(a.e, NUMBER_GE) && a.e->a_kind == NUMBER_INT && a.e->b_kind == NUMBER_INT;
    if (question && turn_question(s, operand_of(a.e, 0), n))
        return true;
    return !s->failed && operation(s, NUMBER_NOT, a, nothing, n);
}

// & | ^ of bools, one of which may be plain.
static bool logic(sizes *s, number_op op, number a, number b, number *n) {
    if (!a.e || !b.e) {
        number plain = a.e ? b : a, other = a.e ? a : b;
        bool set = plain.hint.i != 0;
        if (op == NUMBER_XOR) {
            *n = other;
            return !set || not_of(s, other, n);
        }
        *n = set == (op == NUMBER_OR) ? plain : other;
        return true;
    }
    if (a.e == b.e) {
        *n = op == NUMBER_XOR ? number_bool(false) : a;
        return true;
    }
    return operation(s, op, a, b, n);
}

// --- ints ---

// A power or a left shift of a positive number by one that is left open. Asked whether the result is
// positive, a guard computes it, and fails where it is too large or b is negative.
static bool int_grow(sizes *s, number_op op, number a, number b, number *n) {
    return !a.e && a.hint.i > 0 && operation(s, op, a, b, n) &&
           require(s, NUMBER_GE, *n, number_int(1));
}

static bool int_power(sizes *s, number a, number b, number *n) {
    enum { MOST_POWER = 16 };
    if (b.e)
        return int_grow(s, NUMBER_POW, a, b, n);
    if (b.hint.i < 0 || b.hint.i > MOST_POWER)
        return false;
    number result = number_int(1);
    for (int64_t i = 0; i < b.hint.i; i++)
        if (!int_multiply(s, result, a, &result))
            return false;
    *n = result;
    return true;
}

static bool int_shift(sizes *s, number_op op, number a, number b, number *n) {
    if (b.e)
        return op == NUMBER_LSHIFT && int_grow(s, op, a, b, n);
    if (b.hint.i < 0 || b.hint.i > 62)
        return false;
    number power = number_int((int64_t)1 << b.hint.i);
    return op == NUMBER_LSHIFT ? int_multiply(s, a, power, n) : int_floordiv(s, a, power, n);
}

static bool int_abs(sizes *s, number a, number *n) {
    int sign = known_not_negative(s, a);
    *n = a;
    if (sign < 0)
        return operation(s, NUMBER_ABS, a, nothing, n);
    return sign == 1 || int_add(s, number_int(0), a, -1, n);
}

static bool int_binary(sizes *s, number_op op, number a, number b, number *n) {
    bool divides = op == NUMBER_FLOORDIV || op == NUMBER_MOD || op == NUMBER_TRUEDIV;
    if (divides && !require(s, NUMBER_NE, b, number_int(0)))
        return false;
    switch (op) {
    case NUMBER_ADD:
        return int_add(s, a, b, 1, n);
    case NUMBER_SUB:
        return int_add(s, a, b, -1, n);
    case NUMBER_MUL:
        return int_multiply(s, a, b, n);
    case NUMBER_FLOORDIV:
        return int_floordiv(s, a, b, n);
    case NUMBER_MOD:
        return int_mod(s, a, b, n);
    case NUMBER_TRUEDIV:
        return require_exact(s, a) && require_exact(s, b) && operation(s, op, a, b, n);
    case NUMBER_POW:
        return int_power(s, a, b, n);
    case NUMBER_LSHIFT:
    case NUMBER_RSHIFT:
        return int_shift(s, op, a, b, n);
    case NUMBER_MIN:
    case NUMBER_MAX:
        return int_minmax(s, op, a, b, n);
    case NUMBER_AND:
    case NUMBER_OR:
    case NUMBER_XOR:
        return operation(s, op, a, b, n);
    default:
        return false;
    }
}

// --- floats ---

// Asked whether it is NaN, a guard computes the float, and fails where that raises.
static bool require_value(sizes *s, number n) {
    return require(s, NUMBER_EQ, n, n) || (!s->failed && require(s, NUMBER_NE, n, n));
}

// Both a float, or one of them an int.
static bool float_binary(sizes *s, number_op op, number a, number b, number *n) {
    bool divides = op == NUMBER_FLOORDIV || op == NUMBER_MOD || op == NUMBER_TRUEDIV;
    number zero = b.kind == NUMBER_INT ? number_int(0) : number_float(0.0);
    if (divides && !require(s, NUMBER_NE, b, zero))
        return false;
    bool choice = op == NUMBER_MIN || op == NUMBER_MAX;
    if (choice && a.kind != b.kind) // the kind of the result depends on which operand is taken
        return false;
    if (!require_exact(s, a) || !require_exact(s, b) || !operation(s, op, a, b, n))
        return false;
    return op != NUMBER_POW || n->kind != NUMBER_FLOAT || number_is_unbacked(*n) ||
           require_value(s, *n);
}

static bool apply_math(sizes *s, number_op op, number a, number *n) {
    return !number_is_unbacked(a) && count(s, &a) && require_exact(s, a) &&
           operation(s, op, a, nothing, n) && require_value(s, *n);
}

// --- comparisons ---

static number_op flip(number_op op) {
    switch (op) {
    case NUMBER_LT:
        return NUMBER_GT;
    case NUMBER_LE:
        return NUMBER_GE;
    case NUMBER_GT:
        return NUMBER_LT;
    case NUMBER_GE:
        return NUMBER_LE;
    default:
        return op;
    }
}

static bool compare_ints(sizes *s, number_op op, number a, number b, number *n) {
    bool turned = op == NUMBER_LT || op == NUMBER_LE, strict = op == NUMBER_LT || op == NUMBER_GT;
    number difference;
    if (!int_add(s, turned ? b : a, turned ? a : b, -1, &difference) ||
        (strict && !int_add(s, difference, number_int(1), -1, &difference)))
        return false;
    return int_question(s, op == NUMBER_EQ || op == NUMBER_NE ? op : NUMBER_GE, difference, n);
}

// Compares an int with a plain float as ints: n < 2.5 is n < 3. False: no such comparison of ints.
static bool compare_rounded(sizes *s, number_op op, number a, double d, number *n) {
    if (!(fabs(d) <= 9007199254740992.0))
        return false;
    if ((op == NUMBER_EQ || op == NUMBER_NE) && floor(d) != d) {
        *n = number_bool(op == NUMBER_NE);
        return true;
    }
    bool up = op == NUMBER_LT || op == NUMBER_GE;
    return compare_ints(s, op, a, number_int((int64_t)(up ? ceil(d) : floor(d))), n);
}

static bool compare(sizes *s, number_op op, number a, number b, number *n) {
    if (!count(s, &a) || !count(s, &b))
        return false;
    if (a.kind == NUMBER_INT && b.kind == NUMBER_INT)
        return op != NUMBER_SAME && compare_ints(s, op, a, b, n);
    if (op != NUMBER_SAME && a.kind == NUMBER_INT && !b.e && compare_rounded(s, op, a, b.hint.d, n))
        return true;
    if (op != NUMBER_SAME && b.kind == NUMBER_INT && !a.e &&
        compare_rounded(s, flip(op), b, a.hint.d, n))
        return true;
    return !s->failed && operation(s, op, a, b, n);
}

// --- all ---

static bool apply_unary(sizes *s, number_op op, number a, number *n) {
    if (number_is_math(op))
        return apply_math(s, op, a, n);
    switch (op) {
    case NUMBER_NOT:
        return not_of(s, a, n);
    case NUMBER_TO_BOOL:
        return to_bool(s, a, n);
    case NUMBER_TO_FLOAT:
        return to_float(s, a, n);
    case NUMBER_TO_INT:
    case NUMBER_FLOOR:
    case NUMBER_CEIL:
    case NUMBER_ROUND:
        return to_int(s, op, a, n);
    case NUMBER_SQRT: {
        number negative;
        if (!count(s, &a) || !require_exact(s, a) ||
            !number_apply(s, NUMBER_LT, a, number_float(0.0), &negative) ||
            !number_apply(s, NUMBER_NOT, negative, nothing, &negative))
            return false;
        return !number_is_unbacked(negative) && negative.hint.i && number_decide(s, negative) &&
               !s->failed && operation(s, op, a, nothing, n);
    }
    default:
        break;
    }
    if ((op == NUMBER_INVERT && a.kind != NUMBER_INT) || !count(s, &a))
        return false;
    if (a.kind == NUMBER_FLOAT)
        return operation(s, op, a, nothing, n);
    if (op == NUMBER_ABS)
        return int_abs(s, a, n);
    return int_add(s, number_int(op == NUMBER_INVERT ? -1 : 0), a, -1, n);
}

static bool apply_binary(sizes *s, number_op op, number a, number b, number *n) {
    if (op >= NUMBER_EQ && op <= NUMBER_SAME)
        return compare(s, op, a, b, n);
    if (a.kind == NUMBER_BOOL && b.kind == NUMBER_BOOL) {
        if (op == NUMBER_AND || op == NUMBER_OR || op == NUMBER_XOR)
            return logic(s, op, a, b, n);
        if (op == NUMBER_MIN || op == NUMBER_MAX)
            return logic(s, op == NUMBER_MIN ? NUMBER_AND : NUMBER_OR, a, b, n);
    }
    if (a.kind != b.kind && (op == NUMBER_MIN || op == NUMBER_MAX))
        return false;
    if (!count(s, &a) || !count(s, &b))
        return false;
    if (a.kind == NUMBER_INT && b.kind == NUMBER_INT)
        return int_binary(s, op, a, b, n);
    return float_binary(s, op, a, b, n);
}

bool number_apply(sizes *s, number_op op, number a, number b, number *result) {
    number hint, left, right;
    bool unary = number_is_unary(op);
    if (s && s->failed)
        return false;
    if (a.e)
        a = number_current(s, a);
    b = unary ? nothing : b.e ? number_current(s, b) : b;
    left = a;
    right = b;
    left.e = right.e = NULL;
    if (!number_compute(op, left, right, &hint))
        return false;
    if (!a.e && !b.e) {
        *result = hint;
        return true;
    }
    sizes_mark mark = sizes_now(s);
    bool fine = unary ? apply_unary(s, op, a, result) : apply_binary(s, op, a, b, result);
    assert(!fine ||
           (result->kind == hint.kind && (s->unbacked || bits_of(*result) == bits_of(hint))));
    if (!fine)
        sizes_rollback(s, mark); // the requirements are not needed: there is no result
    else if (result->kind == NUMBER_BOOL)
        *result = number_current(s, *result);
    return fine && !s->failed;
}
