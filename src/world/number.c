// Open numbers: turns places into symbols, expressions into objects of the program, and conditions
// into guards.
#include "src/world/number.h"

#include "src/py/evalhook.h"
#include "src/py/raw.h"

#include "src/guard/expression.h"

#include "src/world/inner.h"

static PyObject *fixed_word; // strong: the attribute of classes that mark_static marks

int numbers_setup(void) {
    fixed_word = PyUnicode_InternFromString("_dynamo_marked_static");
    return fixed_word ? 0 : -1;
}

// --- which places ---

static unsigned bits_of(PyObject *places, const source *s) {
    PyObject *text = places ? source_text(s) : NULL;
    unsigned bits = text ? guard_open_bits(places, text) : 0;
    Py_XDECREF(text);
    return bits;
}

unsigned world_symbolic(const world *w, const source *s) {
    return bits_of(w->terms.symbolic, s);
}

unsigned world_settled(const world *w, const source *s) {
    return bits_of(w->terms.settled, s);
}

unsigned world_named(const world *w, const source *s, PyObject *values) {
    if (!w->terms.named || !values)
        return 0;
    PyObject *text = source_text(s), *found = NULL;
    if (text) {
        hook_mode before = hook_swap(HOOK_OFF);
        found = PyObject_CallFunctionObjArgs(w->terms.named, text, values, NULL);
        hook_swap(before);
    }
    unsigned bits = found ? (unsigned)PyLong_AsUnsignedLongMask(found) : 0;
    Py_XDECREF(text);
    Py_XDECREF(found);
    return bits;
}

sizes *world_sizes(world *w) {
    if (!w->numbers.sizes) {
        w->numbers.sizes = sizes_new();
        for (graph *g = w->scope; g; g = g->outer)
            g->sizes = w->numbers.sizes;
    }
    return w->numbers.sizes;
}

// Larger ints are settled, and so are those below -most. Expressions use the least and the largest
// int of 64 bits for "no bound"; differences and negatives of symbols must stay far from these.
static const int64_t most = INT64_C(1) << 61;

// Whether an expression may have the number. Python tells NaNs apart by identity; expressions
// cannot.
static bool is_usable(number n) {
    return n.kind == NUMBER_FLOAT  ? n.hint.d == n.hint.d
           : n.kind == NUMBER_BOOL ? true
                                   : n.hint.i >= -most && n.hint.i <= most;
}

// Whether the class of the object whose attribute it is says that its numbers stay
// (torch._dynamo.mark_static).
static bool is_fixed(const world *w, const source *s) {
    for (s = s->parent; s; s = s->parent) {
        const uint64_t *known = map_get(&w->in.lazies, map_key(s));
        const lazy *owner = known ? (lazy *)(uintptr_t)*known : NULL;
        PyObject *found;
        if (owner && owner->outside &&
            raw_type_get(Py_TYPE(owner->outside), fixed_word, &found) == RAW_FOUND)
            return found == Py_True;
    }
    return false;
}

// Whether the terms want the number at a place open: 1, 0, -1.
static int is_wanted(const world *w, const lazy *l, number hint) {
    if (hint.kind == NUMBER_BOOL || !is_usable(hint))
        return 0;
    unsigned bits = world_symbolic(w, l->source) | world_named(w, l->source, l->outside);
    if (w->terms.symbolic_all && hint.kind == NUMBER_INT && l->source->kind == SOURCE_LOCAL)
        bits |= SYMBOLIC_VALUE & ~world_settled(w, l->source);
    if (PyErr_Occurred())
        return -1;
    return bits & SYMBOLIC_VALUE && (bits & SYMBOLIC_FIRST || !is_fixed(w, l->source));
}

// --- from places to numbers ---

status number_symbol(world *w, source *s, number hint, int64_t low, int64_t high, number *n) {
    sizes *known = world_sizes(w);
    if (!known || !sizes_symbol(known, s, hint, low, high, n))
        return ST_ERROR;
    return vec_push(&w->numbers.symbols,
                    ((symbol){.place = s, .number = *n, .since = guard_needed(w->guards)}));
}

// Gives the lazy of a number its symbol, if the terms want its place open.
static int keep_open(world *w, lazy *l, number *n) {
    number hint;
    int wanted = number_from_object(l->outside, &hint) ? is_wanted(w, l, hint) : 0;
    if (wanted <= 0)
        return wanted;
    if (!door_type(w, (PyObject *)l) ||
        number_symbol(w, l->source, hint, INT64_MIN, INT64_MAX, n) != ST_OK)
        return -1;
    l->number = *n;
    l->is_number = true;
    return 1;
}

static bool has_wishes(const world *w) {
    return w->terms.symbolic || w->terms.symbolic_all || w->terms.named;
}

int door_number(world *w, PyObject *o, number *n) {
    if (!is_lazy(o))
        return 0;
    lazy *l = (lazy *)o;
    if (l->inside)
        return 0;
    if (!l->is_number)
        return has_wishes(w) ? keep_open(w, l, n) : 0;
    *n = number_current(w->numbers.sizes, l->number);
    return 1;
}

// --- from numbers to places ---

static source *graph_source(world *w, Py_ssize_t index) {
    return guard_source(w->guards, SOURCE_GRAPH, NULL, NULL, index);
}

status number_unbacked(world *w, number_kind kind, int64_t low, int64_t high, number *n) {
    sizes *known = world_sizes(w);
    source *s = known ? graph_source(w, w->numbers.unbacked) : NULL;
    if (!s || !sizes_unbacked(known, s, kind, low, high, n))
        return ST_ERROR;
    w->numbers.unbacked++;
    return ST_OK;
}

static source *computed_source(world *w, number n) {
    if (number_is_unbacked(n)) // any of its kind: nobody looks there
        return graph_source(w, -1);
    uint64_t *known = map_get(&w->numbers.sources, map_key(n.e));
    if (known)
        return (source *)(uintptr_t)*known;
    PyObject *e = expression_new(n);
    source *s = e ? guard_source(w->guards, SOURCE_EXPR, NULL, e, 0) : NULL;
    Py_XDECREF(e);
    return s && map_put(&w->numbers.sources, map_key(n.e), map_key(s)) == ST_OK ? s : NULL;
}

static bool is_symbol(number n) {
    number_op op;
    number a, b;
    return !expr_split(n.e, &op, &a, &b);
}

// The source that gives the number in later calls; NULL with an exception.
static source *number_source(world *w, number n) {
    n = n.e ? number_current(world_sizes(w), n) : n;
    if (n.e)
        return is_symbol(n) ? expr_place(n.e) : computed_source(w, n);
    PyObject *o = number_as_object(n);
    source *s = o ? guard_source(w->guards, SOURCE_FIXED, NULL, o, 0) : NULL;
    Py_XDECREF(o);
    return s;
}

// Of a number, or of its text. Takes the reference to what it is in this call.
static lazy *computed_lazy(world *w, source *s, number n, PyObject *outside) {
    lazy *l = outside ? PyObject_New(lazy, &lazy_type) : NULL;
    if (!l) {
        Py_XDECREF(outside);
        return NULL;
    }
    memset((char *)l + sizeof(PyObject), 0, sizeof(lazy) - sizeof(PyObject));
    *l = (lazy){.ob_base = l->ob_base,
                .source = s,
                .outside = outside,
                .type_known = true,
                .is_number = s->kind != SOURCE_TEXT,
                .number = n};
    if (!world_keep(w, (PyObject *)l) || vec_push(&w->numbers.computed, l) != ST_OK)
        return NULL;
    l->world = w;
    return l;
}

int number_text(world *w, PyObject *o, PyObject **text) {
    number n;
    int open = door_number(w, o, &n);
    if (open <= 0 || !n.e || n.kind == NUMBER_BOOL || number_is_unbacked(n))
        return open < 0 ? -1 : 0;
    source *place = number_source(w, n);
    source *s = place ? guard_source(w->guards, SOURCE_TEXT, place, NULL, 0) : NULL;
    PyObject *value = s ? number_as_object(n) : NULL, *now = value ? PyObject_Str(value) : NULL;
    *text = now ? Py_XNewRef((PyObject *)computed_lazy(w, s, n, now)) : NULL;
    Py_XDECREF(value);
    return *text ? 1 : -1;
}

PyObject *number_object(world *w, number n) {
    n = n.e ? number_current(world_sizes(w), n) : n;
    if (!n.e)
        return number_as_object(n);
    source *s = number_source(w, n);
    if (!s)
        return NULL;
    uint64_t *known = is_symbol(n) ? map_get(&w->in.lazies, map_key(s)) : NULL;
    lazy *l = known ? (lazy *)(uintptr_t)*known : computed_lazy(w, s, n, number_as_object(n));
    return Py_XNewRef(l);
}

// The result of an operation is a new object, even if it is equal to the number at a place.
static PyObject *computed_object(world *w, number n) {
    if (!n.e)
        return number_as_object(n);
    source *s = computed_source(w, n);
    return s ? Py_XNewRef(computed_lazy(w, s, n, number_as_object(n))) : NULL;
}

PyObject *number_again(world *w, number n) {
    return computed_object(w, n.e ? number_current(world_sizes(w), n) : n);
}

// --- conditions ---

static PyObject *text_of_leaf(void *data, source *place, int reg) {
    (void)data, (void)reg;
    return source_text(place);
}

// What was asked of a number that only the graph knows: a question, or for its value.
static status break_asked(world *w, number question) {
    PyObject *e = expression_new(question);
    PyObject *text = e ? expression_text(e, text_of_leaf, NULL) : NULL;
    Py_XDECREF(e);
    if (!text)
        return ST_ERROR;
    bool truth = question.kind == NUMBER_BOOL;
    status done = world_break_status(
        w, REASON_UNBACKED, "Could not %s data-dependent expression %U (unhinted: %U)",
        truth ? "guard on" : "extract specialized integer from", text, text);
    Py_DECREF(text);
    return done;
}

static status guard_condition(world *w, number condition) {
    PyObject *e = expression_new(condition);
    status done = e ? guard_add(w->guards, GUARD_EXPR, NULL, NULL, e, 0) : ST_ERROR;
    Py_XDECREF(e);
    return done;
}

// Of a promised number that has been settled since this was last asked: who did it.
static status blame(world *w, bool own_limit) {
    for (uint32_t i = 0; i < w->numbers.symbols.count; i++) {
        symbol *s = &w->numbers.symbols.items[i];
        if (!s->promised || s->excused || s->stack || number_current(w->numbers.sizes, s->number).e)
            continue;
        s->excused = own_limit;
        PyObject *stack = own_limit ? NULL : world_stack(w);
        if (!own_limit && !(s->stack = world_keep(w, stack)))
            return ST_ERROR;
    }
    return ST_OK;
}

void numbers_excuse(world *w) {
    if (w->numbers.promises && blame(w, true) != ST_OK)
        PyErr_Clear();
}

status numbers_guard(world *w) {
    world_numbers *k = &w->numbers;
    if (k->promises)
        TRY(blame(w, false));
    if (!k->sizes)
        return ST_OK;
    number question;
    if (sizes_failed(k->sizes))
        return ST_ERROR;
    if (sizes_asked(k->sizes, &question)) {
        status broken = break_asked(w, question);
        sizes_unask(k->sizes); // the frames that go on from here may have numbers without a hint
        return broken;
    }
    while (k->guarded < sizes_conditions(k->sizes))
        TRY(guard_condition(w, sizes_condition(k->sizes, k->guarded++)));
    return ST_OK;
}

bool numbers_are_open(world *w) {
    if (sizes_has_unbacked(w->numbers.sizes))
        return true;
    for (uint32_t i = 0; i < w->numbers.symbols.count; i++)
        if (number_current(w->numbers.sizes, w->numbers.symbols.items[i].number).e != NULL)
            return true;
    return false;
}

int number_truth(world *w, number n) {
    bool truth = number_decide(world_sizes(w), n);
    return numbers_guard(w) == ST_OK ? truth : -1;
}

// A settled number at a place is guarded by value: a guard for its condition would repeat this.
static status settle_symbol(world *w, number n) {
    TRY(numbers_guard(w));
    number_settle(w->numbers.sizes, n);
    w->numbers.guarded = sizes_conditions(w->numbers.sizes);
    return sizes_failed(w->numbers.sizes) ? ST_ERROR : ST_OK;
}

static bool is_drawn(number n) {
    number_op op;
    number a = {0}, b = {0};
    if (!n.e)
        return false;
    if (expr_split(n.e, &op, &a, &b))
        return is_drawn(a) || is_drawn(b);
    const source *place = expr_place(n.e);
    return place && place->kind == SOURCE_DRAW;
}

status number_may_settle(world *w, number n) {
    if (w->terms.whole || !is_drawn(n))
        return ST_OK;
    return world_break_status(w, REASON_RANDOM_STATE, "a number whose value is needed");
}

status number_settled(world *w, lazy *l) {
    TRY(number_may_settle(w, l->number));
    if (!number_is_computed((PyObject *)l))
        return settle_symbol(w, l->number);
    number value = number_settle(w->numbers.sizes, l->number);
    TRY(numbers_guard(w));
    l->inside = l->is_number ? number_as_object(value) : Py_NewRef(l->outside); // its text
    return l->inside ? ST_OK : ST_ERROR;
}

// --- operators ---

// Of a divisor without a hint the graph checks that it is not zero. If it is, the graph fails, and
// plain Python raises.
static status check_divisor(world *w, number_op op, number b) {
    bool divides = op == NUMBER_FLOORDIV || op == NUMBER_MOD || op == NUMBER_TRUEDIV;
    number zero = b.kind == NUMBER_FLOAT ? number_float(0.0) : number_int(0), truth;
    if (!divides || !number_is_unbacked(b) ||
        !number_apply(world_sizes(w), NUMBER_NE, b, zero, &truth))
        return PyErr_Occurred() ? ST_ERROR : ST_OK;
    return truth.e ? world_tensors->check(w, truth) : ST_OK;
}

// The result of an operation, as an object.
static int apply(world *w, number_op op, number a, number b, PyObject **result) {
    number n;
    if (check_divisor(w, op, b) != ST_OK)
        return -1;
    bool done = number_apply(world_sizes(w), op, a, b, &n);
    if (PyErr_Occurred() || numbers_guard(w) != ST_OK)
        return -1;
    if (!done || !is_usable(n))
        return 0;
    // In the graph where the program has it: what raises there raises as in plain Python.
    if (number_is_unbacked(n) && world_tensors->number(w, n) == NULL)
        return -1;
    *result = computed_object(w, number_current(world_sizes(w), n));
    return *result ? 1 : -1;
}

int number_unary(world *w, number_op op, PyObject *o, PyObject **result) {
    number n;
    int open = door_number(w, o, &n);
    bool itself = open > 0 && ((op == NUMBER_TO_INT && n.kind == NUMBER_INT) ||
                               (op == NUMBER_TO_FLOAT && n.kind == NUMBER_FLOAT));
    if (itself) { // int() of an exact int gives that object
        *result = Py_NewRef(o);
        return 1;
    }
    return open > 0 ? apply(w, op, n, number_int(0), result) : open;
}

// Whether `o` is a plain number: an opened lazy, or no lazy.
static bool is_known(PyObject *o, number *n) {
    PyObject *known = is_lazy(o) ? ((lazy *)o)->inside : o;
    return known && number_from_object(known, n) && is_usable(*n);
}

static bool may_be_number(PyObject *o) {
    number ignored;
    return number_from_object(is_lazy(o) ? ((lazy *)o)->outside : o, &ignored);
}

// An operand that is no number is opened by whoever does the operation: before the other one is
// looked at, if it stands on the left.
int number_binary(world *w, number_op op, PyObject *a, PyObject *b, PyObject **result) {
    number left, right;
    if (!may_be_number(a) || !may_be_number(b))
        return 0;
    int first = is_lazy(a) ? door_number(w, a, &left) : 0;
    int second = first >= 0 && is_lazy(b) ? door_number(w, b, &right) : 0;
    if (first < 0 || second < 0)
        return -1;
    if (!first && !second)
        return 0;
    // An unopened int is guarded by its value, as it is where the other operand is plain.
    if (!first && is_lazy(a) && !is_known(a, &left) && !door_open(w, a))
        return -1;
    if (!second && is_lazy(b) && !is_known(b, &right) && !door_open(w, b))
        return -1;
    if ((!first && !is_known(a, &left)) || (!second && !is_known(b, &right)))
        return 0;
    return apply(w, op, left, right, result);
}
