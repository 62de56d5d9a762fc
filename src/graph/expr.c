// Expressions: each is made once, found by its hash, and lives as long as its `sizes`. Readers get
// sums and products as operations with two operands.
#include "src/graph/expr_inner.h"

const char *const number_op_names[NUMBER_OPS] = {
#define NUMBER(name, text) text,
#include "src/graph/numbers.def"
#undef NUMBER
};

sizes *sizes_new(void) {
    sizes *s = PyMem_Calloc(1, sizeof(sizes));
    if (!s)
        PyErr_NoMemory();
    else
        s->version = 1;
    return s;
}

void sizes_free(sizes *s) {
    if (!s)
        return;
    arena_clear(&s->memory);
    map_clear(&s->places);
    map_clear(&s->values);
    PyMem_Free(s->table);
    vec_free(&s->conditions);
    vec_free(&s->trail);
    vec_free(&s->facts);
    PyMem_Free(s);
}

bool sizes_failed(const sizes *s) {
    return s->failed;
}

// --- one expression of each form ---

static uint32_t hash_of(const expr *like, const uint64_t *words) {
    uint64_t h = (uint64_t)like->form | (uint64_t)like->op << 8 | (uint64_t)like->kind << 16 |
                 (uint64_t)like->a_kind << 24 | (uint64_t)like->b_kind << 32;
    for (int i = 0; i < like->count; i++) {
        h = (h ^ words[i]) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    h *= 0xBF58476D1CE4E5B9u;
    return (uint32_t)(h >> 32);
}

static bool is_like(const expr *e, const expr *like, const uint64_t *words) {
    return e->hash == like->hash && e->form == like->form && e->op == like->op &&
           e->kind == like->kind && e->a_kind == like->a_kind && e->b_kind == like->b_kind &&
           e->count == like->count && memcmp(e->words, words, like->count * sizeof(*words)) == 0;
}

// The slot of the table that has the expression, or where it belongs.
static expr **slot_of(const sizes *s, const expr *like, const uint64_t *words) {
    uint32_t at = like->hash & (s->room - 1);
    while (s->table[at] && !is_like(s->table[at], like, words))
        at = (at + 1) & (s->room - 1);
    return &s->table[at];
}

static bool grow_table(sizes *s) {
    if (s->count * 2 < s->room)
        return true;
    uint32_t room = s->room ? 2 * s->room : 64;
    expr **table = PyMem_Calloc(room, sizeof(*table));
    if (!table) {
        PyErr_NoMemory();
        return false;
    }
    for (uint32_t i = 0; i < s->room; i++) {
        if (!s->table[i])
            continue;
        uint32_t at = s->table[i]->hash & (room - 1);
        while (table[at])
            at = (at + 1) & (room - 1);
        table[at] = s->table[i];
    }
    PyMem_Free(s->table);
    s->table = table;
    s->room = room;
    return true;
}

static expr *intern(sizes *s, expr *like, const uint64_t *words) {
    like->hash = hash_of(like, words);
    expr **slot = s->room ? slot_of(s, like, words) : NULL;
    if (slot && *slot)
        return *slot;
    size_t bytes = like->count * sizeof(*words);
    expr *e = grow_table(s) ? arena_alloc(&s->memory, sizeof(expr) + bytes) : NULL;
    if (!e) {
        s->failed = true;
        return NULL;
    }
    *e = *like;
    memcpy(e->words, words, bytes);
    e->owner = s;
    e->id = ++s->count;
    e->facts = (expr_facts){.bounds = {INT64_MIN, INT64_MAX}, .truth = -1};
    *slot_of(s, e, e->words) = e;
    return e;
}

expr *intern_operation(sizes *s, number_op op, number a, number b, number hint) {
    uint64_t words[] = {(uintptr_t)a.e, a.e ? 0 : bits_of(a), (uintptr_t)b.e, b.e ? 0 : bits_of(b)};
    int inner = a.e ? a.e->depth : 0, other = b.e ? b.e->depth : 0;
    expr like = {.form = FORM_OPERATION,
                 .op = (uint8_t)op,
                 .kind = (uint8_t)hint.kind,
                 .a_kind = (uint8_t)a.kind,
                 .b_kind = (uint8_t)b.kind,
                 .count = 4,
                 .unbacked = (a.e && a.e->unbacked) || (b.e && b.e->unbacked),
                 .inner = (a.e && a.e->inner) || (b.e && b.e->inner),
                 .depth = (uint16_t)(1 + (inner > other ? inner : other)),
                 .hint = (int64_t)bits_of(hint)};
    return intern(s, &like, words);
}

bool operation(sizes *s, number_op op, number a, number b, number *n) {
    number hint, left = a, right = b;
    left.e = right.e = NULL;
    if ((a.e && a.e->depth >= MOST_DEPTH) || (b.e && b.e->depth >= MOST_DEPTH) ||
        !number_compute(op, left, right, &hint))
        return false;
    const expr *e = intern_operation(s, op, a, b, hint);
    if (e)
        *n = whole(e);
    return e != NULL;
}

expr *intern_product(sizes *s, const expr *const *atoms, int count, int64_t hint) {
    expr like = {.form = FORM_PRODUCT, .kind = NUMBER_INT, .count = (uint16_t)count, .hint = hint};
    uint64_t words[MOST_FACTORS];
    for (int i = 0; i < count; i++) {
        words[i] = (uintptr_t)atoms[i];
        like.depth = atoms[i]->depth > like.depth ? atoms[i]->depth : like.depth;
        like.unbacked |= atoms[i]->unbacked;
        like.inner |= atoms[i]->inner;
    }
    return intern(s, &like, words);
}

static expr like_sum(const term *terms, int count, int64_t hint) {
    expr like = {
        .form = FORM_SUM, .kind = NUMBER_INT, .count = (uint16_t)(2 * count), .hint = hint};
    for (int i = 0; i < count; i++) {
        if (terms[i].of && terms[i].of->depth > like.depth)
            like.depth = terms[i].of->depth;
        like.unbacked |= terms[i].of && terms[i].of->unbacked;
        like.inner |= terms[i].of && terms[i].of->inner;
    }
    return like;
}

expr *intern_sum(sizes *s, const term *terms, int count, int64_t hint) {
    expr like = like_sum(terms, count, hint);
    return intern(s, &like, (const uint64_t *)(const void *)terms);
}

expr *find_sum(sizes *s, const term *terms, int count) {
    expr like = like_sum(terms, count, 0);
    const uint64_t *words = (const uint64_t *)(const void *)terms;
    like.hash = hash_of(&like, words);
    return s->room ? *slot_of(s, &like, words) : NULL;
}

// Whether a symbol has a hint, and who knows its value without one.
typedef enum hinted { HINTED, UNHINTED, INNER } hinted;

static bool add_symbol(sizes *s, void *place, number hint, hinted how, interval bounds,
                       number *symbol) {
    uint64_t *known = map_get(&s->places, map_key(place)), word = (uintptr_t)place;
    expr like = {.form = FORM_SYMBOL,
                 .kind = (uint8_t)hint.kind,
                 .count = 1,
                 .unbacked = how != HINTED,
                 .inner = how == INNER,
                 .hint = (int64_t)bits_of(hint)};
    expr *e = known ? (expr *)(uintptr_t)*known : intern(s, &like, &word);
    if (!e || (!known && map_put(&s->places, map_key(place), map_key(e)) != ST_OK)) {
        s->failed = true;
        return false;
    }
    if (!known && hint.kind == NUMBER_INT) {
        assert(how != HINTED || (bounds.low <= hint.hint.i && hint.hint.i <= bounds.high));
        e->facts.bounds = bounds;
    }
    *symbol = whole(e);
    return true;
}

bool sizes_symbol(sizes *s, void *place, number hint, int64_t low, int64_t high, number *symbol) {
    return add_symbol(s, place, hint, HINTED, (interval){low, high}, symbol);
}

// --- symbols without a hint ---

// A number to compute with where expressions want one: like a size, and of no importance.
static number stand_in(number_kind kind, int index) {
    return kind == NUMBER_FLOAT  ? number_float(1.5)
           : kind == NUMBER_BOOL ? number_bool(true)
                                 : number_int(8191 + index);
}

bool sizes_unbacked(sizes *s, void *place, number_kind kind, int64_t low, int64_t high,
                    number *symbol) {
    return add_symbol(s, place, stand_in(kind, s->unbacked++), INNER, (interval){low, high},
                      symbol);
}

bool sizes_unhinted(sizes *s, void *place, int64_t value, int64_t low, int64_t high,
                    number *symbol) {
    number hint = stand_in(NUMBER_INT, s->unbacked++);
    if (!add_symbol(s, place, hint, UNHINTED, (interval){low, high}, symbol))
        return false;
    s->failed = s->failed || map_put(&s->values, map_key(symbol->e), (uint64_t)value) != ST_OK;
    return !s->failed;
}

bool sizes_value(const sizes *s, number symbol, int64_t *value) {
    uint64_t *found = symbol.e ? map_get(&s->values, map_key(symbol.e)) : NULL;
    if (found)
        *value = (int64_t)*found;
    return found != NULL;
}

bool sizes_has_unbacked(const sizes *s) {
    return s && s->unbacked > 0;
}

bool number_is_unbacked(number n) {
    return n.e && n.e->unbacked;
}

bool number_is_inner(number n) {
    return n.e && n.e->inner;
}

bool sizes_asked(const sizes *s, number *question) {
    if (s && s->asked)
        *question = whole(s->asked);
    return s && s->asked;
}

void sizes_unask(sizes *s) {
    s->asked = NULL;
}

int sizes_checks(const sizes *s) {
    return (int)s->facts.count;
}

number sizes_checked(const sizes *s, int index) {
    return s->facts.items[index];
}

// --- reading ---

number operand_of(const expr *e, int i) {
    const expr *of = (const expr *)(uintptr_t)e->words[2 * i];
    number n = {.kind = (number_kind)(i == 0 ? e->a_kind : e->b_kind)};
    if (of)
        return whole(of);
    memcpy(&n.hint, &e->words[2 * i + 1], sizeof(n.hint));
    return n;
}

void *expr_place(const expr *symbol) {
    assert(symbol->form == FORM_SYMBOL);
    return (void *)(uintptr_t)symbol->words[0];
}

void expr_bounds(const expr *e, int64_t *low, int64_t *high) {
    interval b = bounds_of(whole(e));
    *low = b.low;
    *high = b.high;
}

// A product: all atoms but the last, times the last.
static bool split_product(const expr *e, number *a, number *b) {
    number first = whole(factor_of(e, 0));
    const expr *last = factor_of(e, e->count - 1);
    *b = whole(last);
    *a = first;
    return e->count == 2 || product_without(e->owner, e, last, a);
}

// One term: a coefficient times a product.
static bool split_term(term t, number_op *op, number *a, number *b) {
    *op = t.coefficient == -1 ? NUMBER_NEG : NUMBER_MUL;
    *a = t.coefficient == -1 ? whole(t.of) : number_int(t.coefficient);
    *b = t.coefficient == -1 ? (number){0} : whole(t.of);
    return true;
}

// A sum of several terms: one term is the right operand: the constant, else the last term with a
// negative coefficient, else the last term. So a - b and a + 1 read as the program wrote them.
// poly_number made sure that the hint of each part fits 64 bits.
static bool split_sum(const expr *e, number_op *op, number *a, number *b) {
    const term *terms = terms_of(e);
    int count = e->count / 2, last = -1;
    if (count == 1)
        return split_term(terms[0], op, a, b);
    if (!terms[0].of)
        last = 0;
    for (int i = count - 1; last < 0 && i >= 0; i--)
        if (terms[i].coefficient < 0)
            last = i;
    last = last < 0 ? count - 1 : last;
    term t = terms[last];
    bool minus = t.coefficient < 0 && t.coefficient != INT64_MIN;
    poly rest = {0}, end = {.count = 1, .terms = {t}};
    for (int i = 0; i < count; i++)
        if (i != last)
            rest.terms[rest.count++] = terms[i];
    if (minus)
        end.terms[0].coefficient = -t.coefficient;
    *op = minus ? NUMBER_SUB : NUMBER_ADD;
    return poly_number(e->owner, &rest, a) && poly_number(e->owner, &end, b);
}

// p == 0 and p >= 0: the positive terms go to the left side, the others to the right.
static bool split_question(const expr *e, number_op *op, number *a, number *b) {
    poly p, left = {0}, right = {0};
    poly_of(&p, operand_of(e, 0));
    bool strict = *op == NUMBER_GE && p.count > 1 && !p.terms[0].of && p.terms[0].coefficient == -1;
    for (int i = strict; i < p.count; i++) {
        term t = p.terms[i];
        if (t.coefficient == INT64_MIN)
            return false;
        poly *to = t.coefficient > 0 ? &left : &right;
        if (t.coefficient < 0)
            t.coefficient = -t.coefficient;
        to->terms[to->count++] = t;
    }
    if (!poly_number(e->owner, &left, a) || !poly_number(e->owner, &right, b))
        return false;
    *op = strict ? NUMBER_GT : *op;
    if (a->e || *op == NUMBER_EQ || *op == NUMBER_NE)
        return true;
    number kept = *a;
    *a = *b;
    *b = kept;
    *op = strict ? NUMBER_LT : NUMBER_LE;
    return true;
}

static bool is_int_question(const expr *e) {
    return (is_operation(e, NUMBER_EQ) || is_operation(e, NUMBER_GE)) && e->a_kind == NUMBER_INT &&
           e->b_kind == NUMBER_INT;
}

bool expr_split(const expr *e, number_op *op, number *a, number *b) {
    if (e->form == FORM_SYMBOL)
        return false;
    *op = (number_op)e->op;
    *b = (number){0};
    if (e->form == FORM_PRODUCT || e->form == FORM_SUM) {
        *op = NUMBER_MUL;
        bool fine = e->form == FORM_SUM ? split_sum(e, op, a, b) : split_product(e, a, b);
        assert(fine || e->owner->failed);
        return fine;
    }
    *a = operand_of(e, 0);
    if (!number_is_unary(*op))
        *b = operand_of(e, 1);
    const expr *inner = is_operation(e, NUMBER_NOT) ? a->e : NULL;
    bool unequal = inner && is_int_question(inner) && inner->op == NUMBER_EQ;
    number_op asked = unequal ? NUMBER_NE : *op;
    number left, right;
    if ((unequal || is_int_question(e)) &&
        split_question(unequal ? inner : e, &asked, &left, &right)) {
        *op = asked;
        *a = left;
        *b = right;
    }
    return true;
}
