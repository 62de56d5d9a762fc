// Ints as sums of products of atoms, in a form in which equal polynomials are the same expression.
// Quotients, remainders, minima and products that are too large are atoms.
#include "src/graph/expr_inner.h"

// --- plain ints ---

bool floor_divide(int64_t a, int64_t b, int64_t *quotient) {
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    *quotient = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
    return true;
}

static uint64_t magnitude(int64_t n) {
    return n < 0 ? -(uint64_t)n : (uint64_t)n;
}

// The divisor is not negative; of INT64_MIN and another number it is 1.
static int64_t common_divisor(int64_t a, int64_t b) {
    uint64_t x = magnitude(a), y = magnitude(b);
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x > INT64_MAX ? 1 : (int64_t)x;
}

// --- sums ---

void poly_constant(poly *p, int64_t value) {
    p->count = value != 0;
    p->terms[0] = (term){value, NULL};
}

void poly_of(poly *p, number n) {
    assert(n.kind == NUMBER_INT);
    if (!n.e) {
        poly_constant(p, n.hint.i);
    } else if (n.e->form == FORM_SUM) {
        p->count = n.e->count / 2;
        memcpy(p->terms, n.e->words, n.e->count * sizeof(uint64_t));
    } else {
        p->count = 1;
        p->terms[0] = (term){1, n.e};
    }
}

static uint32_t term_id(term t) {
    return t.of ? t.of->id : 0;
}

bool poly_add(poly *p, const poly *q, int64_t coefficient) {
    poly sum;
    int i = 0, j = 0;
    for (sum.count = 0; i < p->count || j < q->count;) {
        uint64_t left = i < p->count ? term_id(p->terms[i]) : UINT64_MAX;
        uint64_t right = j < q->count ? term_id(q->terms[j]) : UINT64_MAX;
        term t = {0, left <= right ? p->terms[i].of : q->terms[j].of};
        if (left <= right)
            t.coefficient = p->terms[i++].coefficient;
        if (right <= left) {
            int64_t more;
            if (__builtin_mul_overflow(q->terms[j++].coefficient, coefficient, &more) ||
                __builtin_add_overflow(t.coefficient, more, &t.coefficient))
                return false;
        }
        if (t.coefficient == 0)
            continue;
        if (sum.count == MOST_TERMS || t.coefficient == INT64_MIN) // INT64_MIN has no negative
            return false;
        sum.terms[sum.count++] = t;
    }
    p->count = sum.count;
    memcpy(p->terms, sum.terms, (size_t)sum.count * sizeof(term));
    return true;
}

int64_t poly_take_constant(poly *p) {
    if (p->count == 0 || p->terms[0].of)
        return 0;
    int64_t value = p->terms[0].coefficient;
    memmove(p->terms, p->terms + 1, (size_t)--p->count * sizeof(term));
    return value;
}

int64_t poly_content(poly *p) {
    int64_t content = 0;
    poly_take_constant(p);
    for (int i = 0; i < p->count; i++)
        content = common_divisor(p->terms[i].coefficient, content);
    if (content == 0)
        return 0;
    if (p->terms[0].coefficient < 0)
        content = -content;
    for (int i = 0; i < p->count; i++)
        p->terms[i].coefficient /= content;
    return content;
}

// Computes the hint in the order in which expr_split takes the sum apart, so that the hint of each
// part fits 64 bits. expr_split subtracts a term with a negative coefficient: the negative of the
// term must fit, too.
static bool poly_hint(const poly *p, int64_t *hint) {
    *hint = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < p->count; i++) {
            term t = p->terms[i];
            int64_t value;
            if (round != (!t.of ? 2 : t.coefficient < 0))
                continue;
            if (__builtin_mul_overflow(t.coefficient, t.of ? t.of->hint : 1, &value) ||
                value == INT64_MIN || __builtin_add_overflow(*hint, value, hint))
                return false;
        }
    }
    return true;
}

bool poly_number(sizes *s, const poly *p, number *n) {
    int64_t hint;
    if (p->count == 0 || (p->count == 1 && !p->terms[0].of)) {
        *n = number_int(p->count ? p->terms[0].coefficient : 0);
        return true;
    }
    if (!poly_hint(p, &hint))
        return false;
    const expr *e = p->count == 1 && p->terms[0].coefficient == 1
                        ? p->terms[0].of
                        : intern_sum(s, p->terms, p->count, hint);
    if (e)
        *n = whole(e);
    return e != NULL;
}

// --- products ---

static int factor_count(const expr *e) {
    return !e ? 0 : e->form == FORM_PRODUCT ? e->count : 1;
}

static const expr *factor_at(const expr *e, int i) {
    return e->form == FORM_PRODUCT ? factor_of(e, i) : e;
}

int factors_in(const expr *product, const expr *factor) {
    int found = 0;
    for (int i = 0; i < factor_count(product); i++)
        found += factor_at(product, i) == factor;
    return found;
}

// The atoms are sorted by id.
static bool product_of(sizes *s, const expr *const *atoms, int count, const expr **e) {
    int64_t hint = 1;
    for (int i = 0; i < count; i++)
        if (__builtin_mul_overflow(hint, atoms[i]->hint, &hint))
            return false;
    *e = count == 0 ? NULL : count == 1 ? atoms[0] : intern_product(s, atoms, count, hint);
    return count == 0 || *e;
}

static bool multiply_products(sizes *s, const expr *a, const expr *b, const expr **e) {
    const expr *atoms[MOST_FACTORS];
    int i = 0, j = 0, count = 0, left = factor_count(a), right = factor_count(b);
    if (left + right > MOST_FACTORS)
        return false;
    while (i < left || j < right) {
        bool first = j == right || (i < left && factor_at(a, i)->id <= factor_at(b, j)->id);
        atoms[count++] = first ? factor_at(a, i++) : factor_at(b, j++);
    }
    return product_of(s, atoms, count, e);
}

// *e = a / b, if a has all factors of b; false if one is missing.
static bool divide_products(sizes *s, const expr *a, const expr *b, const expr **e) {
    const expr *atoms[MOST_FACTORS];
    int count = 0, j = 0, right = factor_count(b);
    for (int i = 0; i < factor_count(a); i++) {
        if (j < right && factor_at(a, i) == factor_at(b, j))
            j++;
        else
            atoms[count++] = factor_at(a, i);
    }
    return j == right && product_of(s, atoms, count, e);
}

bool product_without(sizes *s, const expr *product, const expr *factor, number *n) {
    const expr *e;
    if (!divide_products(s, product, factor, &e))
        return false;
    *n = e ? whole(e) : number_int(1);
    return true;
}

static bool poly_multiply(sizes *s, const poly *p, const poly *q, poly *to) {
    to->count = 0;
    if (p->count == 1 && !p->terms[0].of)
        return poly_add(to, q, p->terms[0].coefficient);
    if (q->count == 1 && !q->terms[0].of)
        return poly_add(to, p, q->terms[0].coefficient);
    for (int i = 0; i < p->count; i++) {
        poly row = {0};
        for (int j = 0; j < q->count; j++) {
            poly one = {.count = 1};
            if (__builtin_mul_overflow(p->terms[i].coefficient, q->terms[j].coefficient,
                                       &one.terms[0].coefficient) ||
                !multiply_products(s, p->terms[i].of, q->terms[j].of, &one.terms[0].of) ||
                !poly_add(&row, &one, 1))
                return false;
        }
        if (!poly_add(to, &row, 1))
            return false;
    }
    return true;
}

// --- the operations ---

// Writes a remainder as x - k * (x // k) where this cancels other terms. So n + -n % 8 becomes a
// multiple of 8, and n // 8 * 8 + n % 8 becomes n.
static void cancel_rest(sizes *s, poly *p, int at) {
    const expr *rest = p->terms[at].of;
    number x = operand_of(rest, 0), k = operand_of(rest, 1), quotient, product;
    poly changed = *p, single, whole_x, taken;
    int64_t c = p->terms[at].coefficient;
    if (c == INT64_MIN || !int_floordiv(s, x, k, &quotient) ||
        !int_multiply(s, k, quotient, &product))
        return;
    poly_of(&single, whole(rest));
    poly_of(&whole_x, x);
    poly_of(&taken, product);
    if (poly_add(&changed, &single, -c) && poly_add(&changed, &whole_x, c) &&
        poly_add(&changed, &taken, -c) && changed.count < p->count)
        *p = changed;
}

bool int_add(sizes *s, number a, number b, int64_t coefficient, number *n) {
    poly p, q;
    poly_of(&p, a);
    poly_of(&q, b);
    if (!poly_add(&p, &q, coefficient))
        return false;
    for (int i = 0; p.count > 1 && i < p.count; i++)
        if (p.terms[i].of && is_operation(p.terms[i].of, NUMBER_MOD))
            cancel_rest(s, &p, i);
    return !s->failed && poly_number(s, &p, n);
}

bool int_multiply(sizes *s, number a, number b, number *n) {
    poly p, q, product;
    poly_of(&p, a);
    poly_of(&q, b);
    bool small = p.count <= 1 || q.count <= 1 || p.count * q.count <= MOST_EXPANDED;
    if (small && poly_multiply(s, &p, &q, &product))
        return poly_number(s, &product, n);
    if (s->failed || !a.e || !b.e)
        return false;
    bool swap = a.e->id > b.e->id;
    return operation(s, NUMBER_MUL, swap ? b : a, swap ? a : b, n);
}

// The product that divides every term of p and of q; NULL: only 1 does.
static bool common_product(sizes *s, const poly *p, const poly *q, const expr **common) {
    const expr *atoms[MOST_FACTORS];
    int count = 0;
    const expr *first = q->terms[0].of;
    for (int i = 0; i < factor_count(first); i++) {
        const expr *a = factor_at(first, i);
        int most = factors_in(first, a), before = 0;
        for (int j = 0; j < p->count; j++)
            most = Py_MIN(most, factors_in(p->terms[j].of, a));
        for (int j = 1; j < q->count; j++)
            most = Py_MIN(most, factors_in(q->terms[j].of, a));
        for (int j = 0; j < count; j++)
            before += atoms[j] == a;
        if (before < most)
            atoms[count++] = a;
    }
    return product_of(s, atoms, count, common);
}

static bool divide_terms(sizes *s, poly *p, int64_t number, const expr *product) {
    poly result = {0};
    for (int i = 0; i < p->count; i++) {
        poly one = {.count = 1, .terms = {{p->terms[i].coefficient / number, NULL}}};
        if (!divide_products(s, p->terms[i].of, product, &one.terms[0].of) ||
            !poly_add(&result, &one, 1))
            return false;
    }
    *p = result;
    return true;
}

// Divides p and q by `content` times `common`, which divide every term of both. The quotient of p
// and q stays the same, since q is not 0.
static bool cancel(sizes *s, poly *p, poly *q, int64_t *content, const expr **common) {
    *content = 0;
    for (int i = 0; i < p->count; i++)
        *content = common_divisor(p->terms[i].coefficient, *content);
    for (int i = 0; i < q->count; i++)
        *content = common_divisor(q->terms[i].coefficient, *content);
    if (!common_product(s, p, q, common))
        return false;
    if (*content <= 1 && !*common)
        return true;
    return divide_terms(s, p, *content, *common) && divide_terms(s, q, *content, *common);
}

// q is a single term. Moves the terms that q divides from p to *outside: the old p // q is *outside
// + p // q. If q is plain, the coefficients that stay in p are as small as possible, with any sign.
static bool take_multiples(sizes *s, poly *p, term q, poly *outside) {
    poly left = {0};
    outside->count = 0;
    for (int i = 0; i < p->count; i++) {
        term t = p->terms[i];
        poly one = {.count = 1, .terms = {t}};
        const expr *quotient = t.of;
        int64_t times = 0;
        if (t.coefficient == INT64_MIN || q.coefficient == INT64_MIN)
            return false;
        bool divides = !q.of || divide_products(s, t.of, q.of, &quotient);
        if (divides)
            (void)floor_divide(t.coefficient, q.coefficient, &times);
        else if (s->failed)
            return false;
        int64_t rest = divides ? t.coefficient % q.coefficient : t.coefficient;
        rest += divides && rest != 0 && (rest < 0) != (q.coefficient < 0) ? q.coefficient : 0;
        if (q.of && rest != 0) { // the whole term or nothing: smaller coefficients are not simpler
            rest = t.coefficient;
            times = 0;
        } else if (t.of && q.coefficient > 0 && rest > q.coefficient / 2) {
            rest -= q.coefficient;
            times++;
        }
        one.terms[0] = (term){times, quotient};
        if (times != 0 && !poly_add(outside, &one, 1))
            return false;
        one.terms[0] = (term){rest, t.of};
        if (rest != 0 && !poly_add(&left, &one, 1))
            return false;
    }
    *p = left;
    return true;
}

// floor(-x / k) is -floor((x + k - 1) / k): takes the one whose first term is positive.
static bool turn_around(poly *p, int64_t k, poly *outside, int64_t *sign) {
    int first = p->count > 0 && !p->terms[0].of;
    poly turned = {0}, more;
    *sign = 1;
    if (first == p->count || p->terms[first].coefficient > 0)
        return true;
    poly_constant(&more, k - 1);
    if (!poly_add(&turned, p, -1) || !poly_add(&turned, &more, 1))
        return false;
    int64_t constant = poly_take_constant(&turned), times;
    (void)floor_divide(constant, k, &times);
    poly_constant(&more, times);
    if (!poly_add(outside, &more, -1))
        return false;
    poly_constant(&more, constant - times * k);
    *sign = -1;
    *p = turned;
    return poly_add(p, &more, 1);
}

// x // a // b is x // (a * b).
static bool merge_quotients(poly *p, int64_t *k) {
    const expr *inner = p->count == 1 ? p->terms[0].of : NULL;
    int64_t product;
    if (!inner || p->terms[0].coefficient != 1 || !is_operation(inner, NUMBER_FLOORDIV) ||
        inner->facts.opaque)
        return false;
    number x = operand_of(inner, 0), by = operand_of(inner, 1);
    if (by.e || by.hint.i <= 0 || *k <= 0 || __builtin_mul_overflow(by.hint.i, *k, &product))
        return false;
    poly_of(p, x);
    *k = product;
    return true;
}

static bool quotient_of(sizes *s, poly *p, poly *q, number *n) {
    poly outside = {0}, last;
    int64_t sign = 1, k = q->count == 1 && !q->terms[0].of ? q->terms[0].coefficient : 0;
    number a, b, quotient;
    if (q->count == 1 && !take_multiples(s, p, q->terms[0], &outside))
        return false;
    if (k > 0 && merge_quotients(p, &k)) {
        poly_constant(q, k);
        number inner;
        if (!quotient_of(s, p, q, &inner))
            return false;
        poly_of(&last, inner);
        return poly_add(&outside, &last, 1) && poly_number(s, &outside, n);
    }
    if (k > 0 && !turn_around(p, k, &outside, &sign))
        return false;
    if (!poly_number(s, p, &a) || !poly_number(s, q, &b))
        return false;
    if (!a.e && !b.e) {
        int64_t value;
        if (!floor_divide(a.hint.i, b.hint.i, &value))
            return false;
        quotient = number_int(value);
    } else if (!a.e && a.hint.i == 0) {
        quotient = a;
    } else if (!operation(s, NUMBER_FLOORDIV, a, b, &quotient)) {
        return false;
    }
    poly_of(&last, quotient);
    return poly_add(&outside, &last, sign) && poly_number(s, &outside, n);
}

// The place of the term with the most factors.
static int leading_term(const poly *p) {
    int lead = 0;
    for (int i = 1; i < p->count; i++)
        if (factor_count(p->terms[i].of) > factor_count(p->terms[lead].of))
            lead = i;
    return lead;
}

// *quotient: a term of p divided by another term; the one with the most factors that can be.
static bool divide_some_term(sizes *s, const poly *p, term by, term *quotient) {
    int most = 0;
    for (int i = 0; i < p->count; i++) {
        term t = p->terms[i];
        const expr *rest;
        if (factor_count(t.of) <= most || t.coefficient % by.coefficient != 0 ||
            !divide_products(s, t.of, by.of, &rest))
            continue;
        most = factor_count(t.of);
        *quotient = (term){t.coefficient / by.coefficient, rest};
    }
    return most > 0;
}

// *quotient times q is p. False, perhaps with s->failed: there is no such sum of products, or none
// was found.
static bool divide_exactly(sizes *s, poly p, const poly *q, poly *quotient) {
    term by = q->terms[leading_term(q)];
    quotient->count = 0;
    if (!by.of || by.coefficient == -1) // INT64_MIN has no negative
        return false;
    for (int steps = 0; p.count > 0 && steps < MOST_TERMS; steps++) {
        poly one = {.count = 1}, product;
        if (!divide_some_term(s, &p, by, &one.terms[0]) || !poly_multiply(s, &one, q, &product) ||
            !poly_add(&p, &product, -1) || !poly_add(quotient, &one, 1))
            return false;
    }
    return p.count == 0;
}

bool int_floordiv(sizes *s, number a, number b, number *n) {
    poly p, q, exact, turned = {0};
    int64_t content;
    const expr *common;
    poly_of(&p, a);
    poly_of(&q, b);
    if (!b.e && b.hint.i < 0 && b.hint.i != INT64_MIN && poly_add(&turned, &p, -1)) {
        p = turned; // x // -k is -x // k
        poly_constant(&q, -b.hint.i);
    }
    if (q.count > 1 && divide_exactly(s, p, &q, &exact))
        return poly_number(s, &exact, n);
    return q.count > 0 && !s->failed && cancel(s, &p, &q, &content, &common) &&
           quotient_of(s, &p, &q, n);
}

// Takes common factors out of a remainder, and drops multiples of the divisor.
bool int_mod(sizes *s, number a, number b, number *n) {
    poly p, q, exact, outside = {0};
    int64_t content;
    const expr *common;
    number x, by, rest;
    poly_of(&p, a);
    poly_of(&q, b);
    if (q.count > 1 && divide_exactly(s, p, &q, &exact)) {
        *n = number_int(0);
        return true;
    }
    if (q.count == 0 || s->failed || !cancel(s, &p, &q, &content, &common) ||
        (q.count == 1 && !take_multiples(s, &p, q.terms[0], &outside)) || !poly_number(s, &p, &x) ||
        !poly_number(s, &q, &by))
        return false;
    if (!x.e && !by.e) {
        if (!number_compute(NUMBER_MOD, x, by, &rest))
            return false;
    } else if (!x.e && x.hint.i == 0) {
        rest = x;
    } else if (!operation(s, NUMBER_MOD, x, by, &rest)) {
        return false;
    }
    number factor = common ? whole(common) : number_int(1), scaled;
    return int_multiply(s, rest, number_int(content), &scaled) &&
           int_multiply(s, scaled, factor, n);
}

bool int_minmax(sizes *s, number_op op, number a, number b, number *n) {
    number difference;
    if (!int_add(s, a, b, -1, &difference))
        return !s->failed && operation(s, op, a, b, n);
    int least = known_not_negative(s, difference); // is a >= b?
    if (least >= 0) {
        *n = (op == NUMBER_MIN) == (least == 1) ? b : a;
        return true;
    }
    number negative;
    if (int_add(s, b, a, -1, &negative) && known_not_negative(s, negative) == 1) {
        *n = op == NUMBER_MIN ? a : b;
        return true;
    }
    bool swap = a.e && (!b.e || a.e->id > b.e->id); // min(a, b) and min(b, a) are one expression
    return !s->failed && operation(s, op, swap ? b : a, swap ? a : b, n);
}

// --- questions ---

static bool question(sizes *s, number_op op, const poly *p, number *truth) {
    number n, zero = number_int(0);
    if (!poly_number(s, p, &n))
        return false;
    if (!n.e) {
        *truth = number_bool(op == NUMBER_EQ ? n.hint.i == 0 : n.hint.i >= 0);
        return true;
    }
    bool hint = op == NUMBER_EQ ? n.hint.i == 0 : n.hint.i >= 0;
    const expr *e = intern_operation(s, op, n, zero, number_bool(hint));
    if (e)
        *truth = whole(e);
    return e != NULL;
}

// p is content * m + constant: the question becomes one about m + constant / content.
static bool shrink(number_op op, poly *p, bool *never) {
    int64_t constant = poly_take_constant(p), content = poly_content(p), rounded;
    poly more;
    *never = false;
    if (content != 0) {
        if (op != NUMBER_EQ && content < 0) { // the sign matters: turn it back
            poly turned = {0};
            if (!poly_add(&turned, p, -1))
                return false;
            *p = turned;
            content = -content;
        }
        if (!floor_divide(constant, content, &rounded))
            return false;
        *never = op == NUMBER_EQ && constant % content != 0;
        constant = rounded;
    }
    poly_constant(&more, constant);
    return poly_add(p, &more, 1);
}

bool int_question(sizes *s, number_op op, number a, number *truth) {
    poly p;
    bool never, negate = op == NUMBER_NE;
    op = negate ? NUMBER_EQ : op;
    poly_of(&p, a);
    if (!shrink(op, &p, &never))
        poly_of(&p, a);
    else if (never) {
        *truth = number_bool(negate);
        return true;
    }
    if (!question(s, op, &p, truth))
        return false;
    if (!negate)
        return true;
    number equal = *truth;
    if (!equal.e) {
        *truth = number_bool(!equal.hint.i);
        return true;
    }
    const expr *e = intern_operation(s, NUMBER_NOT, equal, (number){0}, number_bool(!equal.hint.i));
    if (e)
        *truth = whole(e);
    return e != NULL;
}
