// Arithmetic and questions of sizes that are expressions.
#include "src/graph/size.h"

#include "src/graph/expr_inner.h"

static int64_t plain_value(number_op op, size a, size b) {
    number n;
    if (number_compute(op, number_int(a.hint), number_int(b.hint), &n))
        return n.hint.i;
    switch (op) { // as the plain functions do: torch refuses such sizes anyway
    case NUMBER_ADD:
        return (int64_t)((uint64_t)a.hint + (uint64_t)b.hint);
    case NUMBER_SUB:
        return (int64_t)((uint64_t)a.hint - (uint64_t)b.hint);
    case NUMBER_MUL:
        return (int64_t)((uint64_t)a.hint * (uint64_t)b.hint);
    default:
        return 0;
    }
}

static sizes *owner_of_sizes(size a, size b) {
    return a.e ? a.e->owner : b.e ? b.e->owner : NULL;
}

size size_apply(number_op op, size a, size b) {
    sizes *s = owner_of_sizes(a, b);
    number n;
    if (s && number_apply(s, op, number_of_size(a), number_of_size(b), &n))
        return size_of_number(n);
    return size_of(plain_value(op, size_of(size_settle(s, a)), size_of(size_settle(s, b))));
}

size size_apply_div_up(size a, size b) {
    size turned = size_apply(NUMBER_FLOORDIV, size_sub(size_of(0), a), b);
    return size_sub(size_of(0), turned);
}

// The answer by the bounds of both sizes, without making an expression; -1: the bounds do not tell.
static int ask_bounds(number_op op, interval a, interval b) {
    if (op == NUMBER_EQ)
        return a.high < b.low || b.high < a.low ? 0 : -1;
    if (op == NUMBER_LT)
        return a.high < b.low ? 1 : a.low >= b.high ? 0 : -1;
    return -1;
}

static int ask_quickly(number_op op, size a, size b) {
    if (a.e && a.e == b.e)
        return op == NUMBER_EQ || op == NUMBER_LE || op == NUMBER_GE;
    return ask_bounds(op, bounds_of(number_of_size(a)), bounds_of(number_of_size(b)));
}

int size_ask(number_op op, size a, size b) {
    sizes *s = owner_of_sizes(a, b);
    int quick = s ? ask_quickly(op, a, b) : -1;
    number truth;
    if (quick >= 0)
        return quick;
    if (!number_apply(s, op, number_of_size(a), number_of_size(b), &truth))
        return -1;
    return truth.e ? number_known(s, truth) : truth.hint.i != 0;
}

bool size_decide(sizes *known, number_op op, size a, size b) {
    number truth, plain;
    bool fine = number_compute(op, number_int(a.hint), number_int(b.hint), &plain);
    assert(fine && plain.kind == NUMBER_BOOL);
    int quick = known ? ask_quickly(op, a, b) : -1;
    if (quick >= 0)
        return quick;
    if (!fine || !known)
        return plain.hint.i != 0;
    if (number_apply(known, op, number_of_size(a), number_of_size(b), &truth))
        return number_decide(known, truth);
    number left = number_int(size_settle(known, a)), right = number_int(size_settle(known, b));
    return number_compute(op, left, right, &plain) && plain.hint.i != 0;
}

bool size_decide_multiple(sizes *known, size a, size b) {
    if (!known || b.hint == 0) {
        size_settle(known, b);
        return b.hint != 0 && a.hint % b.hint == 0;
    }
    return size_is_zero(known, size_apply(NUMBER_MOD, a, b));
}

int64_t size_note(sizes *known, size a) {
    return known ? number_settle(known, number_of_size(a)).hint.i : a.hint;
}
