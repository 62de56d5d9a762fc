// Facts about symbols: guaranteed bounds, and facts that follow from decisions. A fact is a bound
// of an expression, a rewrite of one expression into another, or the truth of a question. Each fact
// is stored in its expression. The trail undoes facts.
#include "src/graph/expr_inner.h"

// --- bounds ---

// How many relations of atoms a proof may combine, and how many terms its sums may have.
enum { MOST_RELATIONS = 3, MOST_RELATED = 8 };

static bool is_atom(const expr *e) {
    return e->form == FORM_SYMBOL || e->form == FORM_OPERATION;
}

static interval operation_bounds(const expr *e) {
    number a = operand_of(e, 0), b = operand_of(e, 1);
    if (e->op == NUMBER_TO_INT && a.kind == NUMBER_BOOL)
        return (interval){0, 1};
    if (a.kind != NUMBER_INT)
        return interval_all;
    interval x = bounds_of(a), y = number_is_unary((number_op)e->op) ? interval_all : bounds_of(b);
    switch (e->op) {
    case NUMBER_FLOORDIV:
        return interval_floordiv(x, y);
    case NUMBER_MOD:
        return interval_mod(x, y);
    case NUMBER_MIN:
        return (interval){Py_MIN(x.low, y.low), Py_MIN(x.high, y.high)};
    case NUMBER_MAX:
        return (interval){Py_MAX(x.low, y.low), Py_MAX(x.high, y.high)};
    case NUMBER_MUL:
        return interval_mul(x, y);
    case NUMBER_ABS:
        return interval_abs(x);
    case NUMBER_AND: // the result has no more bits than the mask
        if (x.low >= 0 || y.low >= 0)
            return (interval){0, x.low < 0 ? y.high : y.low < 0 ? x.high : Py_MIN(x.high, y.high)};
        return interval_all;
    default:
        return interval_all;
    }
}

// Equal factors stand side by side; an even number of them is never negative.
static interval product_bounds(const expr *e) {
    interval r = {1, 1};
    for (int i = 0; i < e->count;) {
        const expr *atom = factor_of(e, i);
        interval one = bounds_of(whole(atom)), power = {1, 1};
        int times = 0;
        for (; i < e->count && factor_of(e, i) == atom; i++, times++)
            power = interval_mul(power, one);
        if (times % 2 == 0)
            power.low = Py_MAX(power.low, 0);
        r = interval_mul(r, power);
    }
    return r;
}

// The bounds that decisions gave this sum, with any constant and either sign.
static interval sum_facts(sizes *s, const poly *p) {
    poly m = *p;
    int64_t constant = poly_take_constant(&m), content = poly_content(&m);
    if (content == 0 || (m.count == 1 && m.terms[0].coefficient == 1))
        return interval_all;
    const expr *e = find_sum(s, m.terms, m.count);
    if (!e)
        return interval_all;
    return interval_add(interval_times(e->facts.bounds, content), (interval){constant, constant});
}

static interval terms_bounds(const poly *p) {
    interval r = {0, 0};
    for (int i = 0; i < p->count; i++) {
        interval one = p->terms[i].of ? bounds_of(whole(p->terms[i].of)) : (interval){1, 1};
        r = interval_add(r, interval_times(one, p->terms[i].coefficient));
    }
    return r;
}

// An atom that every term but the constant has; NULL: there is none.
static const expr *common_atom(const poly *p) {
    int first = p->count > 0 && !p->terms[0].of;
    const expr *of = p->count - first > 1 ? p->terms[first].of : NULL;
    for (int i = 0; of && i < (of->form == FORM_PRODUCT ? of->count : 1); i++) {
        const expr *atom = of->form == FORM_PRODUCT ? factor_of(of, i) : of;
        bool common = true;
        for (int j = first; common && j < p->count; j++)
            common = factors_in(p->terms[j].of, atom) > 0;
        if (common)
            return atom;
    }
    return NULL;
}

static bool divide_by_atom(sizes *s, const poly *p, const expr *atom, poly *to) {
    to->count = 0;
    for (int i = 0; i < p->count; i++) {
        number n;
        poly one;
        if (!product_without(s, p->terms[i].of, atom, &n))
            return false;
        poly_of(&one, n);
        if (!poly_add(to, &one, p->terms[i].coefficient))
            return false;
    }
    return true;
}

static interval poly_bounds(sizes *s, const poly *p, int more);

// a*b - a is a * (b - 1).
static interval factored_bounds(sizes *s, const poly *p, const expr *atom, int more) {
    poly m = *p, rest;
    int64_t constant = poly_take_constant(&m);
    if (!divide_by_atom(s, &m, atom, &rest))
        return interval_all;
    interval r = interval_mul(bounds_of(whole(atom)), poly_bounds(s, &rest, more));
    return interval_add(r, (interval){constant, constant});
}

static int64_t coefficient_in(const poly *p, const expr *of) {
    for (int i = 0; i < p->count; i++)
        if (p->terms[i].of == of)
            return p->terms[i].coefficient;
    return 0;
}

// x is k * (x // k) + rest, with 0 <= rest < k: writes one for the other in p.
static interval quotient_bounds(sizes *s, const poly *p, const expr *quotient, bool forward,
                                int more) {
    number x = operand_of(quotient, 0), k = operand_of(quotient, 1);
    poly px, changed = *p, single;
    if (k.e || k.hint.i <= 0)
        return interval_all;
    poly_of(&px, x);
    poly_of(&single, whole(quotient));
    term lead = px.terms[px.count - 1];
    int64_t from = forward ? coefficient_in(p, quotient) : coefficient_in(p, lead.of), times;
    int64_t by = forward ? k.hint.i : lead.coefficient, taken;
    if (from == 0 || from % by != 0 || from == INT64_MIN)
        return interval_all;
    times = from / by;
    if (__builtin_mul_overflow(times, k.hint.i, &taken))
        return interval_all;
    // forward: times * k * (x // k) becomes times * (x - rest); else the reverse
    bool fits = forward ? poly_add(&changed, &single, -taken) && poly_add(&changed, &px, times)
                        : poly_add(&changed, &single, taken) && poly_add(&changed, &px, -times);
    if (!fits)
        return interval_all;
    interval rest = interval_times((interval){0, k.hint.i - 1}, forward ? -times : times);
    return interval_add(poly_bounds(s, &changed, more), rest);
}

static interval replaced_bounds(sizes *s, const poly *p, const expr *atom, int64_t coefficient,
                                number by, int more) {
    poly changed = *p, single, other;
    poly_of(&single, whole(atom));
    poly_of(&other, by);
    if (!poly_add(&changed, &single, -coefficient) || !poly_add(&changed, &other, coefficient))
        return interval_all;
    return poly_bounds(s, &changed, more);
}

// min(x, y) is x or y, and neither is less than it.
static interval choice_bounds(sizes *s, const poly *p, const expr *choice, int64_t coefficient,
                              int more) {
    interval found[2];
    for (int i = 0; i < 2; i++)
        found[i] = replaced_bounds(s, p, choice, coefficient, operand_of(choice, i), more);
    interval r = interval_either(found[0], found[1]);
    if ((choice->op == NUMBER_MIN) == (coefficient > 0))
        r.high = Py_MIN(found[0].high, found[1].high);
    else
        r.low = Py_MAX(found[0].low, found[1].low);
    return r;
}

// 0 <= x % k <= k - 1, of a positive k.
static interval rest_bounds(sizes *s, const poly *p, const expr *rest, int64_t coefficient,
                            int more) {
    number k = operand_of(rest, 1), most;
    if (bounds_of(k).low <= 0 || !int_add(s, k, number_int(1), -1, &most))
        return interval_all;
    interval least = replaced_bounds(s, p, rest, coefficient, number_int(0), more);
    interval last = replaced_bounds(s, p, rest, coefficient, most, more);
    return coefficient > 0 ? (interval){least.low, last.high} : (interval){last.low, least.high};
}

// `more`: how many more relations of atoms the proof may combine.
static interval poly_bounds(sizes *s, const poly *p, int more) {
    interval r = terms_bounds(p);
    if (p->count < 2 || (p->count == 2 && !p->terms[0].of))
        return r;
    r = interval_both(r, sum_facts(s, p));
    if (more == 0 || p->count > MOST_RELATED)
        return r;
    const expr *atom = common_atom(p);
    if (atom)
        r = interval_both(r, factored_bounds(s, p, atom, more - 1));
    for (int i = 0; i < p->count; i++) {
        const expr *of = p->terms[i].of;
        if (!of || of->form != FORM_OPERATION)
            continue;
        if (of->op == NUMBER_FLOORDIV && operand_of(of, 0).e) {
            r = interval_both(r, quotient_bounds(s, p, of, true, more - 1));
            r = interval_both(r, quotient_bounds(s, p, of, false, more - 1));
        } else if (of->op == NUMBER_MIN || of->op == NUMBER_MAX) {
            r = interval_both(r, choice_bounds(s, p, of, p->terms[i].coefficient, more - 1));
        } else if (of->op == NUMBER_MOD && operand_of(of, 1).e) {
            r = interval_both(r, rest_bounds(s, p, of, p->terms[i].coefficient, more - 1));
        }
    }
    return r;
}

static interval structure_bounds(expr *e) {
    poly p;
    switch ((expr_form)e->form) {
    case FORM_SYMBOL:
        return interval_all;
    case FORM_OPERATION:
        return operation_bounds(e);
    case FORM_PRODUCT:
        return product_bounds(e);
    default:
        poly_of(&p, whole(e));
        return poly_bounds(e->owner, &p, MOST_RELATIONS);
    }
}

static number now_of(number n);

interval bounds_of(number n) {
    expr *e = own(n.e);
    if (!e)
        return (interval){n.hint.i, n.hint.i};
    if (e->kind != NUMBER_INT)
        return interval_all;
    if (e->bounds_version == e->owner->version)
        return e->now_bounds;
    // a nested call for the same expression gets the bounds of its facts
    sizes *s = e->owner;
    e->bounds_version = s->version;
    e->now_bounds = e->facts.bounds;
    if (s->deep == MOST_DEEP)
        return e->now_bounds;
    s->deep++;
    interval r = interval_both(e->facts.bounds, structure_bounds(e));
    number now = now_of(whole(e));
    if (now.e != e)
        r = interval_both(r, bounds_of(now));
    s->deep--;
    return e->now_bounds = r;
}

// --- current forms ---

static bool is_settled(sizes *s, number n);

static bool rebuild_operation(sizes *s, expr *e, number *n) {
    number a = operand_of(e, 0), b = operand_of(e, 1);
    number_op op = (number_op)e->op;
    if (a.kind != NUMBER_INT) { // an int that was made of a float or bool
        *n = number_int(e->hint);
        return !e->unbacked && is_settled(s, a);
    }
    a = now_of(a);
    if (!number_is_unary(op))
        b = now_of(b);
    switch (op) {
    case NUMBER_FLOORDIV:
        return int_floordiv(s, a, b, n);
    case NUMBER_MOD: { // a - b * (a // b)
        number quotient, product;
        return int_floordiv(s, a, b, &quotient) && int_multiply(s, b, quotient, &product) &&
               int_add(s, a, product, -1, n);
    }
    case NUMBER_MIN:
    case NUMBER_MAX:
        return int_minmax(s, op, a, b, n);
    case NUMBER_MUL:
        return int_multiply(s, a, b, n);
    default:
        return false;
    }
}

static bool rebuild(sizes *s, expr *e, number *n) {
    *n = number_int(e->form == FORM_PRODUCT);
    if (e->form == FORM_OPERATION)
        return rebuild_operation(s, e, n);
    if (e->form == FORM_PRODUCT) {
        for (int i = 0; i < e->count; i++)
            if (!int_multiply(s, *n, now_of(whole(factor_of(e, i))), n))
                return false;
        return true;
    }
    poly sum = {0}, one;
    const term *terms = terms_of(e);
    for (int i = 0; i < e->count / 2; i++) {
        poly_of(&one, terms[i].of ? now_of(whole(terms[i].of)) : number_int(1));
        if (!poly_add(&sum, &one, terms[i].coefficient))
            return false;
    }
    return poly_number(s, &sum, n);
}

static number rewritten(const expr *e) {
    number n = number_int(e->facts.value);
    return e->facts.becomes ? whole(e->facts.becomes) : n;
}

static number find_now(expr *e) {
    number n = whole(e);
    if (e->facts.rewritten)
        return now_of(rewritten(e));
    if (e->form == FORM_SYMBOL || e->facts.opaque || !rebuild(e->owner, e, &n) || n.e == e)
        return whole(e);
    return n.e ? now_of(n) : n;
}

// An int after all rewrites that the facts allow.
static number now_of(number n) {
    expr *e = own(n.e);
    if (!e || e->busy || e->owner->failed)
        return n;
    if (e->now_version != e->owner->version) {
        if (e->owner->deep == MOST_DEEP)
            return n;
        e->busy = true;
        e->owner->deep++;
        number now = find_now(e);
        e->owner->deep--;
        e->busy = false;
        e->now_version = e->owner->version;
        e->now = now.e;
        e->now_value = now.hint.i;
    }
    return e->now ? whole(e->now) : number_int(e->now_value);
}

// --- questions ---

// The truth that a decision gave this very question, in the form of int_question.
static int told_zero(sizes *s, number n) {
    number question;
    if (!int_question(s, NUMBER_EQ, n, &question))
        return -1;
    return question.e ? question.e->facts.truth : (int)question.hint.i;
}

static int known_zero(sizes *s, number n);

// If a is not 0, a * b - a * c is 0 exactly where b - c is.
static bool drop_factor(sizes *s, number *n) {
    poly p, rest;
    poly_of(&p, *n);
    const expr *atom = p.count > 0 && p.terms[0].of ? common_atom(&p) : NULL;
    if (!atom || known_zero(s, whole(atom)) != 0)
        return false;
    return divide_by_atom(s, &p, atom, &rest) && poly_number(s, &rest, n);
}

// Whether an int is 0: 1, 0, or -1 if the facts do not tell.
static int known_zero(sizes *s, number n) {
    interval b = bounds_of(n);
    if (b.low > 0 || b.high < 0)
        return 0;
    if (b.low == 0 && b.high == 0)
        return 1;
    number now = now_of(n);
    do {
        b = bounds_of(now);
        if (!now.e || b.low > 0 || b.high < 0 || (b.low == 0 && b.high == 0))
            return now.e ? b.low == 0 && b.high == 0 : now.hint.i == 0;
        int told = told_zero(s, now);
        if (told >= 0)
            return told;
    } while (drop_factor(s, &now));
    const expr *product = now.e->form == FORM_PRODUCT ? now.e : NULL;
    for (int i = 0; product && i < product->count; i++)
        if (known_zero(s, whole(factor_of(product, i))) != 0)
            return -1;
    return product ? 0 : -1;
}

int known_not_negative(sizes *s, number n) {
    (void)s;
    interval b = bounds_of(n);
    return b.low >= 0 ? 1 : b.high < 0 ? 0 : -1;
}

static bool is_of_ints(const expr *e) {
    return e->a_kind == NUMBER_INT && e->b_kind == NUMBER_INT;
}

static int known_truth(sizes *s, number t);

static int find_truth(sizes *s, const expr *e) {
    if (e->facts.truth >= 0)
        return e->facts.truth;
    if (e->form != FORM_OPERATION)
        return -1;
    number a = operand_of(e, 0);
    int x, y, decides = e->op == NUMBER_OR;
    switch (e->op) {
    case NUMBER_EQ:
        return is_of_ints(e) ? known_zero(s, a) : -1;
    case NUMBER_GE:
        return is_of_ints(e) ? known_not_negative(s, a) : -1;
    case NUMBER_NOT:
        x = known_truth(s, a);
        return x < 0 ? x : !x;
    case NUMBER_AND:
    case NUMBER_OR:
        x = known_truth(s, a);
        y = known_truth(s, operand_of(e, 1));
        return x == decides || y == decides ? decides : x < 0 || y < 0 ? -1 : !decides;
    default:
        return -1;
    }
}

static int known_truth(sizes *s, number t) {
    expr *e = own(t.e);
    if (!e)
        return t.hint.i != 0;
    if (e->bounds_version != s->version) {
        e->now_bounds.low = find_truth(s, e);
        e->bounds_version = s->version;
    }
    return (int)e->now_bounds.low;
}

int number_known(sizes *s, number truth) {
    if (truth.kind != NUMBER_BOOL && !number_apply(s, NUMBER_TO_BOOL, truth, (number){0}, &truth))
        return -1;
    return known_truth(s, truth);
}

// --- facts ---

static expr_facts *change(sizes *s, const expr *e) {
    if (vec_push(&s->trail, ((trail_entry){own(e), e->facts})) != ST_OK) {
        s->failed = true;
        return NULL;
    }
    s->version++;
    return &own(e)->facts;
}

static void learn_not_negative(sizes *s, number n);
static void learn_zero(sizes *s, number n);

// low <= e <= high.
static void learn_bounds(sizes *s, const expr *e, interval told) {
    interval now = interval_both(e->facts.bounds, told);
    if (now.low == e->facts.bounds.low && now.high == e->facts.bounds.high)
        return;
    expr_facts *facts = change(s, e);
    if (!facts)
        return;
    facts->bounds = now;
    number k = is_operation(e, NUMBER_FLOORDIV) ? operand_of(e, 1) : number_int(0), n, x, limit;
    if (!k.e && k.hint.i > 0 && !e->facts.opaque) { // x // k >= v where x >= k * v
        x = operand_of(e, 0);
        int64_t v;
        if (!bound_is_endless(told.low) && !__builtin_mul_overflow(told.low, k.hint.i, &v) &&
            int_add(s, x, number_int(v), -1, &n))
            learn_not_negative(s, n);
        if (!bound_is_endless(told.high) && !__builtin_mul_overflow(told.high, k.hint.i, &v) &&
            int_add(s, number_int(v), number_int(k.hint.i - 1), 1, &limit) &&
            int_add(s, limit, x, -1, &n))
            learn_not_negative(s, n);
    }
    if (now.low == now.high && !e->facts.rewritten && is_atom(e) &&
        int_add(s, whole(e), number_int(now.low), -1, &n))
        learn_zero(s, n);
}

static void learn_not_negative(sizes *s, number n) {
    poly p;
    n = now_of(n);
    if (!n.e)
        return;
    poly_of(&p, n);
    int64_t constant = poly_take_constant(&p), content = poly_content(&p), v;
    number m;
    // content * m + constant >= 0
    if (constant == INT64_MIN || !floor_divide(constant, Py_ABS(content), &v) ||
        !poly_number(s, &p, &m))
        return;
    // v is floor(constant / |content|)
    if (content > 0)
        learn_bounds(s, m.e, (interval){-v, INT64_MAX});
    else
        learn_bounds(s, m.e, (interval){INT64_MIN, v});
}

static void learn_truth(sizes *s, const expr *e, bool truth) {
    expr_facts *facts = e->facts.truth == truth ? NULL : change(s, e);
    if (facts)
        facts->truth = truth;
}

static void tell(sizes *s, number n, bool zero) {
    number question;
    if (int_question(s, NUMBER_EQ, n, &question) && question.e)
        learn_truth(s, question.e, zero);
}

static void learn_not_zero(sizes *s, number n) {
    poly p;
    n = now_of(n);
    if (!n.e)
        return;
    tell(s, n, false);
    if (drop_factor(s, &n))
        tell(s, n, false);
    interval b = bounds_of(n);
    number m;
    if (b.low == 0 && int_add(s, n, number_int(1), -1, &m))
        learn_not_negative(s, m);
    poly_of(&p, n);
    poly minus = {0};
    if (b.high == 0 && poly_add(&minus, &p, -1) && poly_number(s, &minus, &m) &&
        int_add(s, m, number_int(1), -1, &m))
        learn_not_negative(s, m);
    for (int i = 0; n.e->form == FORM_PRODUCT && i < n.e->count; i++)
        learn_not_zero(s, whole(factor_of(n.e, i)));
}

// Whether an expression contains this one, at any depth. A walk visits each expression once, and
// does not look at the parts of opaque ones.
static bool walk(const expr *e, const expr *in, uint32_t number) {
    if (e == in || in->seen == number)
        return e == in;
    own(in)->seen = number;
    if (in->form == FORM_SYMBOL || in->facts.opaque)
        return false;
    bool found = false;
    for (int i = 0; !found && i < in->count; i++) {
        bool part = in->form == FORM_PRODUCT || i % 2 == (in->form == FORM_SUM);
        const expr *next = part ? (const expr *)(uintptr_t)in->words[i] : NULL;
        found = next && walk(e, next, number);
    }
    return found;
}

static bool occurs(sizes *s, const expr *e, const expr *in) {
    return walk(e, in, ++s->walks);
}

// Notes the fact that e is equal to `to`.
static void rewrite(sizes *s, const expr *e, number to) {
    interval bounds = e->facts.bounds;
    expr_facts *facts = change(s, e);
    number n;
    if (!facts)
        return;
    facts->rewritten = true;
    facts->becomes = to.e;
    facts->value = to.hint.i;
    s->rewrote = true;
    if (!to.e)
        return;
    if (!bound_is_endless(bounds.low) && int_add(s, to, number_int(bounds.low), -1, &n))
        learn_not_negative(s, n);
    if (!bound_is_endless(bounds.high) && int_add(s, number_int(bounds.high), to, -1, &n))
        learn_not_negative(s, n);
}

// p is 0. The atom to solve p for: the newest symbol, or else another atom.
static int solvable(sizes *s, const poly *p) {
    int best = -1;
    for (int i = 0; i < p->count; i++) {
        const expr *of = p->terms[i].of;
        int64_t c = p->terms[i].coefficient;
        bool fits = of && is_atom(of) && (c == 1 || c == -1);
        for (int j = 0; fits && j < p->count; j++)
            fits = j == i || !p->terms[j].of || !occurs(s, of, p->terms[j].of);
        if (fits && (best < 0 || of->form == FORM_SYMBOL || p->terms[best].of->form != FORM_SYMBOL))
            best = i;
    }
    return best;
}

// p is 0. Rewrites the atom of term `at` into the rest of p.
static bool solve(sizes *s, const poly *p, int at) {
    poly rest = *p, single = {.count = 1, .terms = {p->terms[at]}}, turned = {0};
    number to;
    if (!poly_add(&rest, &single, -1) ||
        !poly_add(&turned, &rest, p->terms[at].coefficient > 0 ? -1 : 1) ||
        !poly_number(s, &turned, &to))
        return false;
    rewrite(s, p->terms[at].of, to);
    return true;
}

// The quotient of a term ±k * (x // k) of p, if p is ±(x - k * (x // k)); else NULL. *equation
// becomes x - k * (x // k).
static const expr *quotient_in(sizes *s, const poly *p, term t, poly *equation) {
    for (int i = 0; t.of && i < (t.of->form == FORM_PRODUCT ? t.of->count : 1); i++) {
        const expr *q = t.of->form == FORM_PRODUCT ? factor_of(t.of, i) : t.of;
        number product;
        poly taken, rest = {0};
        if (!is_operation(q, NUMBER_FLOORDIV) || q->facts.opaque ||
            !int_multiply(s, whole(q), operand_of(q, 1), &product))
            continue;
        poly_of(equation, operand_of(q, 0));
        poly_of(&taken, product);
        if (poly_add(equation, &taken, -1) && poly_add(&rest, p, t.coefficient < 0 ? 1 : -1) &&
            poly_add(&rest, equation, -1) && rest.count == 0)
            return q;
    }
    return NULL;
}

// x - k * (x // k) is 0: x is k times its quotient. The quotient counts as a symbol from now on.
static bool learn_multiple(sizes *s, const poly *p) {
    poly x, equation;
    const expr *quotient = NULL;
    for (int i = 0; !quotient && i < p->count; i++)
        quotient = quotient_in(s, p, p->terms[i], &equation);
    if (!quotient)
        return false;
    poly_of(&x, operand_of(quotient, 0));
    number k = operand_of(quotient, 1);
    int at = solvable(s, &x);
    if (at < 0 && x.count == 1 && x.terms[0].coefficient == 1)
        at = 0; // a product
    const expr *target = at < 0 ? NULL : x.terms[at].of;
    if (!target || (k.e && occurs(s, target, k.e)))
        return false;
    interval bounds = bounds_of(whole(quotient));
    expr_facts *facts = change(s, quotient);
    if (!facts)
        return false;
    facts->opaque = true;
    facts->bounds = interval_both(facts->bounds, bounds);
    for (int i = 0; i < equation.count; i++)
        if (equation.terms[i].of == target)
            return solve(s, &equation, i);
    return false;
}

static void learn_zero(sizes *s, number n) {
    poly p;
    n = now_of(n);
    if (!n.e)
        return;
    tell(s, n, true);
    while (drop_factor(s, &n))
        tell(s, n, true);
    poly_of(&p, n);
    int64_t constant = poly_take_constant(&p), content = poly_content(&p);
    poly more;
    number m;
    if (constant == INT64_MIN || constant % content != 0 || !poly_number(s, &p, &m))
        return;
    // m is -constant / content
    int64_t value = -(constant / content);
    learn_bounds(s, m.e, (interval){value, value});
    if (m.e->facts.rewritten)
        return;
    if (m.e->form != FORM_SUM) {
        rewrite(s, m.e, number_int(value));
        return;
    }
    poly_constant(&more, -value);
    if (!poly_add(&p, &more, 1) || learn_multiple(s, &p))
        return;
    int at = solvable(s, &p);
    if (at >= 0)
        (void)solve(s, &p, at);
}

static void learn(sizes *s, const expr *truth) {
    bool no = is_operation(truth, NUMBER_NOT);
    const expr *e = no ? operand_of(truth, 0).e : truth;
    learn_truth(s, e, !no);
    if (e->form != FORM_OPERATION || !is_of_ints(e))
        return;
    number a = operand_of(e, 0);
    if (e->op == NUMBER_EQ && no)
        learn_not_zero(s, a);
    else if (e->op == NUMBER_EQ)
        learn_zero(s, a);
    else if (e->op == NUMBER_GE && !no)
        learn_not_negative(s, a);
}

static void ask(sizes *s, const expr *question) {
    if (!s->asked)
        s->asked = question;
}

// What conditions and checks tell, once a rewrite lets them tell more.
static void learn_all(sizes *s) {
    for (uint32_t i = 0; i < s->conditions.count; i++)
        learn(s, s->conditions.items[i].e);
    for (uint32_t i = 0; i < s->facts.count; i++)
        learn(s, s->facts.items[i].e);
}

static void learn_fully(sizes *s, const expr *truth) {
    learn(s, truth);
    for (int round = 0; s->rewrote && !s->failed && round < 4; round++) {
        s->rewrote = false;
        learn_all(s);
    }
    s->rewrote = false;
}

// A condition is noted as it was asked; rewrites since then let older ones tell more.
// Every answer that comes from a hint comes by here, so no hint that means nothing gets away.
static void note(sizes *s, number truth) {
    if (truth.e->unbacked)
        ask(s, truth.e);
    else if (vec_push(&s->conditions, truth) != ST_OK)
        s->failed = true;
    else
        learn_fully(s, truth.e);
}

void sizes_check(sizes *s, number truth) {
    assert(truth.kind == NUMBER_BOOL);
    if (!number_is_unbacked(truth) || known_truth(s, truth) >= 0)
        return;
    if (is_operation(truth.e, NUMBER_AND)) {
        sizes_check(s, operand_of(truth.e, 0));
        sizes_check(s, operand_of(truth.e, 1));
    } else if (vec_push(&s->facts, truth) != ST_OK)
        s->failed = true;
    else
        learn_fully(s, truth.e);
}

void sizes_rely(sizes *s, number truth) {
    assert(truth.kind == NUMBER_BOOL && !number_is_inner(truth));
    if (!truth.e || known_truth(s, truth) == 1)
        return;
    if (vec_push(&s->conditions, truth) != ST_OK)
        s->failed = true;
    else
        learn_fully(s, truth.e);
}

// --- decisions ---

static void decide_truth(sizes *s, number truth, bool wanted);

// Notes the parts of a conjunction one by one.
static bool decide_parts(sizes *s, const expr *e, bool wanted) {
    bool conjunction = e->form == FORM_OPERATION && e->op == (wanted ? NUMBER_AND : NUMBER_OR);
    if (conjunction) {
        decide_truth(s, operand_of(e, 0), wanted);
        decide_truth(s, operand_of(e, 1), wanted);
    }
    return conjunction;
}

static void decide_truth(sizes *s, number truth, bool wanted) {
    if (!truth.e || known_truth(s, truth) >= 0 || s->failed)
        return;
    if (is_operation(truth.e, NUMBER_NOT)) {
        decide_truth(s, operand_of(truth.e, 0), !wanted);
        return;
    }
    if (decide_parts(s, truth.e, wanted))
        return;
    if (!wanted && !number_apply(s, NUMBER_NOT, truth, (number){0}, &truth)) {
        const expr *e = intern_operation(s, NUMBER_NOT, truth, (number){0}, number_bool(true));
        truth = e ? whole(e) : truth;
    }
    if (truth.e && !s->failed) // plain: the facts tell the negation
        note(s, truth);
}

bool number_decide(sizes *s, number truth) {
    if (truth.e && truth.kind != NUMBER_BOOL &&
        !number_apply(s, NUMBER_TO_BOOL, truth, (number){0}, &truth)) {
        truth = number_settle(s, truth);
    }
    if (truth.kind == NUMBER_FLOAT)
        return truth.hint.d != 0;
    int known = known_truth(s, truth);
    bool answer = truth.hint.i != 0;
    assert(known < 0 || known == answer || s->failed || s->unbacked);
    if (known >= 0)
        return known;
    decide_truth(s, truth, answer);
    return answer;
}

// Settles all symbols of an expression.
static void settle_symbols(sizes *s, const expr *e, uint32_t number) {
    if (e->seen == number || s->failed)
        return;
    own(e)->seen = number;
    if (e->form == FORM_SYMBOL)
        number_settle(s, whole(e));
    for (int i = 0; e->form != FORM_SYMBOL && i < e->count; i++) {
        bool part = e->form == FORM_PRODUCT || i % 2 == (e->form == FORM_SUM);
        if (part && e->words[i])
            settle_symbols(s, (const expr *)(uintptr_t)e->words[i], number);
    }
}

number number_settle(sizes *s, number n) {
    n = number_current(s, n);
    number value = n, truth = n;
    value.e = NULL;
    if (!n.e || s->failed)
        return value;
    if (n.e->unbacked) {
        ask(s, n.e);
        return value;
    }
    if (n.kind != NUMBER_BOOL &&
        !number_apply(s, n.kind == NUMBER_INT ? NUMBER_EQ : NUMBER_SAME, n, value, &truth)) {
        settle_symbols(s, n.e, ++s->walks); // the difference to its value does not fit 64 bits
        return value;
    }
    (void)number_decide(s, truth);
    expr_facts *facts = n.kind == NUMBER_FLOAT && !s->failed ? change(s, n.e) : NULL;
    if (facts)
        facts->rewritten = true;
    return value;
}

// The value of an int that facts leave only one for; an expression where they leave more.
static number only_value(number n) {
    interval b = bounds_of(n);
    number now = now_of(n);
    if (now.e && b.low == b.high && !bound_is_endless(b.low))
        return number_int(b.low);
    return now.e ? n : now;
}

// Whether all symbols of a float or bool are settled.
static bool is_settled(sizes *s, number n) {
    expr *e = own(n.e);
    if (!e)
        return true;
    if (e->unbacked)
        return false;
    if (n.kind == NUMBER_INT) { // what the graph checks may forbid the hint
        number only = only_value(n);
        return !only.e && (s->unbacked == 0 || only.hint.i == e->hint);
    }
    if (n.kind == NUMBER_BOOL ? known_truth(s, n) >= 0 : e->facts.rewritten)
        return true;
    if (e->form != FORM_OPERATION)
        return false;
    if (e->now_version != s->version) {
        bool settled = is_settled(s, operand_of(e, 0)) && is_settled(s, operand_of(e, 1));
        e->now = settled ? NULL : e;
        e->now_version = s->version;
    }
    return !e->now;
}

// What is known goes before the hint.
number number_current(sizes *s, number n) {
    if (!n.e)
        return n;
    if (n.kind == NUMBER_INT)
        return only_value(n);
    int truth = n.kind == NUMBER_BOOL ? known_truth(s, n) : -1;
    if (truth >= 0)
        return number_bool(truth);
    if (is_settled(s, n))
        n.e = NULL;
    return n;
}

// --- moments ---

int sizes_conditions(const sizes *s) {
    return (int)s->conditions.count;
}

number sizes_condition(const sizes *s, int index) {
    return s->conditions.items[index];
}

sizes_mark sizes_now(const sizes *s) {
    return (sizes_mark){(int)s->conditions.count, (int)s->trail.count, (int)s->facts.count,
                        s->asked};
}

void sizes_rollback(sizes *s, sizes_mark to) {
    s->asked = to.asked;
    s->facts.count = (uint32_t)to.facts;
    if ((int)s->trail.count == to.trail && (int)s->conditions.count == to.conditions)
        return;
    while ((int)s->trail.count > to.trail) {
        trail_entry last = s->trail.items[--s->trail.count];
        last.of->facts = last.facts;
    }
    s->conditions.count = (uint32_t)to.conditions;
    s->version++;
}
