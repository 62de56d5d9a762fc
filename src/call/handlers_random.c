// Draws from generators of Python's own random numbers (`random.random()`, and all that `random`
// computes of that). A trace draws nothing: it looks at the number that comes next, which later
// calls of the entry find in the same way (the source DRAW), and holds the draw back. So guards can
// tell what depends on the numbers, and a call that fits no entry has drawn nothing.
#include "src/py/random.h"

#include "src/world/number.h"

#include "src/call/call.h"
#include "src/call/handlers.h"

enum { MOST_DRAWS = 64, MOST_BITS = 60 };

// draw(generator, kind): what the plan does.
static PyObject *draw(PyObject *none, PyObject *const *args, Py_ssize_t count) {
    (void)none;
    return count == 2 && py_is_random(args[0]) ? py_random_draw(args[0], args[1])
                                               : (Py_INCREF(Py_None), Py_None);
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

HANDLER(random_draw) {
    PyObject *self = door_open(w, c->args[0]);
    PyObject *bits = self && c->given > 1 ? door_open(w, c->args[1]) : NULL;
    if (!self || (c->given > 1 && !bits))
        return NULL;
    record *r = record_of(w, self);
    long kind = bits && PyLong_CheckExact(bits) ? PyLong_AsLong(bits) : bits ? -1 : 0;
    bool fits = bits ? kind > 0 && kind <= MOST_BITS : true;
    if (PyErr_Occurred())
        PyErr_Clear(), fits = false;
    if (!r || r->outside != self || !py_is_random(self) || !fits || w->time.trial ||
        w->scope != w->graph || w->graph->effects & EFFECT_UNKNOWN || !draw_function())
        return world_break(w, REASON_RANDOM_STATE, "%s", c->rule->path);
    PyObject *number = PyLong_FromLong(kind);
    PyObject *result = number && door_type(w, self)
                           ? drawn(w, r, number, bits ? (INT64_C(1) << kind) - 1 : INT64_MAX)
                           : NULL;
    Py_XDECREF(number);
    return result;
}
