// Arithmetic on intervals of 64-bit numbers.
#include "src/graph/expr_inner.h"

const interval interval_all = {INT64_MIN, INT64_MAX};

interval interval_both(interval a, interval b) {
    return (interval){Py_MAX(a.low, b.low), Py_MIN(a.high, b.high)};
}

interval interval_either(interval a, interval b) {
    return (interval){Py_MIN(a.low, b.low), Py_MAX(a.high, b.high)};
}

bool bound_is_endless(int64_t bound) {
    return bound == INT64_MIN || bound == INT64_MAX;
}

// A bound that does not fit 64 bits becomes endless.
static int64_t bound_add(int64_t a, int64_t b) {
    int64_t sum;
    if (bound_is_endless(a))
        return a;
    if (bound_is_endless(b))
        return b;
    if (__builtin_add_overflow(a, b, &sum))
        return a < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

static int64_t bound_mul(int64_t a, int64_t b) {
    int64_t product;
    if (a == 0 || b == 0)
        return 0;
    if (bound_is_endless(a) || bound_is_endless(b) || __builtin_mul_overflow(a, b, &product))
        return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return product;
}

interval interval_add(interval a, interval b) {
    return (interval){bound_add(a.low, b.low), bound_add(a.high, b.high)};
}

interval interval_mul(interval a, interval b) {
    int64_t ends[] = {bound_mul(a.low, b.low), bound_mul(a.low, b.high), bound_mul(a.high, b.low),
                      bound_mul(a.high, b.high)};
    interval r = {ends[0], ends[0]};
    for (int i = 1; i < 4; i++)
        r = interval_either(r, (interval){ends[i], ends[i]});
    return r;
}

interval interval_times(interval a, int64_t k) {
    return interval_mul(a, (interval){k, k});
}

// The divisor is positive.
static int64_t bound_div(int64_t a, int64_t b) {
    int64_t quotient = 0;
    if (bound_is_endless(b))
        return a < 0 ? -1 : 0;
    if (bound_is_endless(a))
        return a;
    (void)floor_divide(a, b, &quotient);
    return quotient;
}

interval interval_floordiv(interval a, interval b) {
    if (b.high < 0) {
        a = interval_times(a, -1);
        b = interval_times(b, -1);
    }
    if (b.low <= 0)
        return interval_all;
    interval r = {bound_div(a.low, b.low), bound_div(a.high, b.low)};
    return interval_either(r, (interval){bound_div(a.low, b.high), bound_div(a.high, b.high)});
}

interval interval_mod(interval a, interval b) {
    if (b.high < 0)
        return (interval){bound_add(b.low, 1), 0};
    if (b.low <= 0)
        return interval_all;
    interval r = {0, bound_add(b.high, -1)};
    if (a.low < 0)
        return r;
    r.high = Py_MIN(r.high, a.high);
    return a.high < b.low ? a : r;
}

interval interval_abs(interval a) {
    interval r = {0, Py_MAX(a.high, bound_mul(a.low, -1))};
    if (a.low >= 0)
        r.low = a.low;
    else if (a.high < 0)
        r.low = bound_mul(a.high, -1);
    return r;
}
