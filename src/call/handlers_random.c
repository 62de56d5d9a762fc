// Draws from generators of Python's own random numbers (`random.random()`, and all that `random`
// computes of that). A trace draws nothing: it looks at the number that comes next, which later
// calls of the entry find in the same way (the source DRAW), and holds the draw back. So guards can
// tell what depends on the numbers, and a call that fits no entry has drawn nothing.
#include "src/py/random.h"

#include "src/world/number.h"

#include "src/attr/attr.h"

#include "src/call/call.h"
#include "src/call/handlers.h"
#include "src/call/rules.h"

enum { MOST_DRAWS = 64, MOST_BITS = 60 };

// draw(generator, kind): what the plan does.
static PyObject *draw(PyObject *none, PyObject *const *args, Py_ssize_t count) {
    (void)none;
    return count == 2 && py_is_random(args[0]) ? py_random_draw(args[0], args[1])
                                               : Py_NewRef(Py_None);
}

static PyObject *draw_function(void) {
    static PyMethodDef definition = {"draw", (PyCFunction)(void (*)(void))draw, METH_FASTCALL,
                                     NULL};
    static PyObject *function;
    if (!function)
        function = PyCFunction_New(&definition, NULL);
    return function;
}

bool random_is_drawn(const world *w) {
    for (uint32_t i = 0; i < w->held.calls.count; i++)
        if (w->held.calls.items[i].function == draw_function())
            return true;
    return false;
}

// All draws from the generator in this trace, with this one. New tuple.
static PyObject *draws_of(const world *w, PyObject *generator, PyObject *last) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < w->held.calls.count; i++) {
        const held_call *h = &w->held.calls.items[i];
        if (h->function == draw_function() && h->self == generator &&
            PyList_Append(list, h->argument) < 0)
            Py_CLEAR(list);
    }
    if (list && PyList_Append(list, last) < 0)
        Py_CLEAR(list);
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

// The number is left open from the start: it is another one in each call.
static PyObject *opened(world *w, source *s, PyObject *value, int64_t high) {
    number hint, n;
    PyObject *loaded = door_load(w, s, value);
    if (!loaded || !is_lazy(loaded) || !number_from_object(value, &hint))
        return loaded;
    lazy *l = (lazy *)loaded;
    if (!door_type(w, loaded) || number_symbol(w, s, hint, 0, high, &n) != ST_OK) {
        Py_DECREF(loaded);
        return NULL;
    }
    l->number = n;
    l->is_number = true;
    return loaded;
}

static PyObject *drawn(world *w, record *r, PyObject *kind, int64_t high) {
    PyObject *draws = draws_of(w, r->outside, kind);
    if (draws && PyTuple_GET_SIZE(draws) > MOST_DRAWS) {
        Py_DECREF(draws);
        return world_break(w, REASON_RANDOM_STATE, "more than %d numbers", MOST_DRAWS);
    }
    PyObject *value = draws ? py_random_peek(r->outside, draws) : NULL, *result = NULL;
    source *s = value ? guard_source(w->guards, SOURCE_DRAW, r->source, draws, 0) : NULL;
    if (s)
        result = opened(w, s, value, high);
    Py_XDECREF(draws);
    Py_XDECREF(value);
    record_write(w, r->outside);
    held_call held = {.function = draw_function(), .self = r->outside, .argument = kind};
    if (result && world_hold_call(w, held) != ST_OK)
        Py_CLEAR(result);
    return result;
}

// The draw that a symbol stands for; its place in the held-back calls tells when it was.
static uint64_t drawn_at(const world *w, const source *place) {
    Py_ssize_t nth = PyTuple_GET_SIZE(place->key);
    for (uint32_t i = 0; i < w->held.calls.count; i++) {
        const held_call *h = &w->held.calls.items[i];
        const record *r = h->function == draw_function() ? record_of(w, h->self) : NULL;
        if (r && r->source == place->parent && --nth == 0)
            return h->since;
    }
    return 0;
}

status random_end(world *w) {
    for (uint32_t i = 0; !w->terms.whole && i < w->numbers.symbols.count; i++) {
        const symbol *s = &w->numbers.symbols.items[i];
        if (s->place->kind != SOURCE_DRAW || number_current(w->numbers.sizes, s->number).e)
            continue;
        uint64_t since = drawn_at(w, s->place);
        world_break(w, REASON_RANDOM_STATE, "a number whose value is needed");
        if (since)
            world_break_earlier(w, since);
        return ST_BREAK;
    }
    return ST_OK;
}

static PyObject *drawn_as(world *w, record *r, long long kind, int64_t high) {
    PyObject *number = PyLong_FromLongLong(kind);
    PyObject *result = number && door_type(w, r->outside) ? drawn(w, r, number, high) : NULL;
    Py_XDECREF(number);
    return result;
}

// A generator from outside, in a trace that may hold draws back; or NULL.
static record *generator(world *w, PyObject *self) {
    record *r = record_of(w, self);
    bool held = !w->time.trial && w->scope == w->graph && !(w->graph->effects & EFFECT_UNKNOWN);
    return r && r->outside == self && py_is_random(self) && held && draw_function() ? r : NULL;
}

// An exact int within bounds, or 0.
static long long within(PyObject *o, long long most) {
    long long value = PyLong_CheckExact(o) ? PyLong_AsLongLong(o) : 0;
    if (PyErr_Occurred())
        PyErr_Clear();
    return value > 0 && value <= most ? value : 0;
}

// Random._randbelow(n), which draws until a number is below n: one draw for the trace, as many as it
// takes for the generator. The method is the generator's own if `getrandbits` is C's.
static HANDLER(random_below) {
    PyObject *self = door_open(w, c->args[0]), *n = self ? door_open(w, c->args[1]) : NULL;
    if (!n)
        return NULL;
    record *r = generator(w, self);
    long long most = within(n, INT64_C(1) << MOST_BITS);
    PyObject *name = PyUnicode_InternFromString("getrandbits");
    PyObject *method = r && most && name ? attr_get(w, self, name) : NULL;
    bool own = method && PyCFunction_Check(method);
    Py_XDECREF(name);
    Py_XDECREF(method);
    if (r && most && !method)
        return NULL;
    if (own)
        return drawn_as(w, r, -most, most - 1);
    if (!record_of(w, c->callable))
        return world_break(w, REASON_RANDOM_STATE, "Random._randbelow");
    call interpreted = call_again(c, c->callable);
    return call_function(w, &interpreted);
}

PyObject *random_know(PyObject *module, PyObject *function) {
    static const rule row = {.path = "random.Random._randbelow",
                             .kind = RULE_HANDLED,
                             .handler = handle_random_below,
                             .takes = ARGS(2, 2),
                             .writes = W_NONE};
    (void)module;
    if (rules_add(function, &row) != ST_OK)
        return NULL;
    Py_RETURN_NONE;
}

HANDLER(random_draw) {
    PyObject *self = door_open(w, c->args[0]);
    PyObject *bits = self && c->given > 1 ? door_open(w, c->args[1]) : NULL;
    if (!self || (c->given > 1 && !bits))
        return NULL;
    record *r = generator(w, self);
    long long kind = bits ? within(bits, MOST_BITS) : 0;
    if (!r || (bits && !kind))
        return world_break(w, REASON_RANDOM_STATE, "%s", c->rule->path);
    return drawn_as(w, r, kind, bits ? (INT64_C(1) << kind) - 1 : INT64_MAX);
}
