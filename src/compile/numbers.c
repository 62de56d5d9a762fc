// Which numbers a trace leaves open: turns the settings, and the numbers that were seen to change,
// into the terms of the trace and into texts for people.
#include "src/py/evalhook.h"

#include "src/world/number.h"

#include "src/compile/room.h"

static_assert((int)SYMBOLIC_VALUE == (int)GUARD_OPEN_VALUE, "the guards' bits are the world's");

// --- settings ---

// An attribute of the policy. Each call reads it again, since torch's settings may change.
static int settings_of(const compiler *c) {
    if (!policy_is_there(c))
        return c->numbers;
    hook_mode before = hook_swap(HOOK_OFF);
    PyObject *found = PyObject_GetAttrString(c->policy, "numbers");
    hook_swap(before);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        return c->numbers;
    }
    long flags = found ? PyLong_AsLong(found) : -1;
    Py_XDECREF(found);
    return (int)flags;
}

static unsigned allowed_by(int settings) {
    const unsigned dims = (1U << META_MOST_DIMS) - 1;
    return dims << SYMBOLIC_SIZES | dims << SYMBOLIC_STRIDES |
           (settings & NUMBERS_INTS ? GUARD_OPEN_VALUE : 0) |
           (settings & NUMBERS_FLOATS ? GUARD_OPEN_FLOAT : 0);
}

// --- texts ---

static PyObject *add_words(PyObject *text, const char *format, PyObject *place, int dim) {
    PyObject *words = PyUnicode_FromFormat(format, place, dim);
    PyObject *both =
        words ? PyUnicode_FromFormat("%U%s%U", text, PyUnicode_GET_LENGTH(text) ? ", " : "", words)
              : NULL;
    Py_XDECREF(words);
    Py_DECREF(text);
    return both;
}

static PyObject *add_place(PyObject *text, PyObject *place, unsigned bits) {
    if (bits & SYMBOLIC_VALUE)
        return add_words(text, "%U", place, 0);
    for (int dim = 0; text && dim < META_MOST_DIMS; dim++) {
        if (bits >> SYMBOLIC_SIZES & 1U << dim)
            text = add_words(text, "%U.size(%d)", place, dim);
        if (text && bits >> SYMBOLIC_STRIDES & 1U << dim)
            text = add_words(text, "%U.stride(%d)", place, dim);
    }
    return text;
}

// "L['x'].size(0), L['n']"; new str.
static PyObject *words_of(PyObject *places) {
    PyObject *text = PyUnicode_FromString(""), *place, *bits;
    Py_ssize_t at = 0;
    while (text && PyDict_Next(places, &at, &place, &bits))
        text = add_place(text, place, (unsigned)PyLong_AsUnsignedLongMask(bits));
    return text;
}

static int say(PyObject *reasons, PyObject *places) {
    PyObject *words = words_of(places), *text = NULL;
    if (words)
        text = PyUnicode_FromFormat("%U (from now on any number will do for %U)",
                                    PyList_GET_ITEM(reasons, 0), words);
    Py_XDECREF(words);
    return text ? PyList_SetItem(reasons, 0, text) : -1;
}

// --- the terms ---

int numbers_learn(compiler *c, cache *k, guard_frame *f, PyObject *reasons) {
    int settings = settings_of(c);
    if (settings < 0)
        return -1;
    if (!(settings & NUMBERS_CHANGED) || k->count == 0)
        return 0;
    PyObject *fresh = cache_open(k, f, allowed_by(settings));
    Py_CLEAR(f->kept);
    int done = !fresh ? -1 : 0;
    if (fresh && PyDict_GET_SIZE(fresh) > 0 && PyList_GET_SIZE(reasons) > 0)
        done = say(reasons, fresh);
    Py_XDECREF(fresh);
    return done;
}

// A graph that may not end has them all, as stock's.
static int captures_of(const compiler *c, int settings) {
    bool whole = c->fullgraph;
    return (whole || settings & NUMBERS_SCALARS ? CAPTURE_SCALARS : 0) |
           (whole || settings & NUMBERS_SHAPES ? CAPTURE_SHAPES : 0);
}

int numbers_grow(const compiler *c, cache *k, world *w) {
    int settings = w->held.writes > 0 && c->symbolic == Py_None ? settings_of(c) : 0;
    if (settings < 0)
        return -1;
    return settings & NUMBERS_CHANGED ? growth_find(w, k, allowed_by(settings)) : 0;
}

// A copy, since another thread may add to the set while this one traces.
int numbers_terms(const compiler *c, const cache *k, product *out) {
    int settings = settings_of(c);
    if (settings < 0)
        return -1;
    Py_CLEAR(out->open);
    out->open_all = settings & NUMBERS_ALL;
    out->captures = captures_of(c, settings);
    if (k->open && PyDict_GET_SIZE(k->open) > 0 && !(out->open = PyDict_Copy(k->open)))
        return -1;
    return 0;
}

// --- which numbers stayed open ---

// The place of a symbol, and the bit (number.h) of its number at that place.
static const source *owner_of(const source *place, unsigned *bit) {
    bool size = place->kind == SOURCE_SIZE;
    *bit = SYMBOLIC_VALUE;
    if (!size && place->kind != SOURCE_STRIDE)
        return place;
    *bit = 1U << ((size ? SYMBOLIC_SIZES : SYMBOLIC_STRIDES) + place->index);
    return place->parent;
}

static int note_settled(product *out, const source *place) {
    unsigned bit;
    PyObject *text = source_text(owner_of(place, &bit));
    status done = text ? guard_open_add(&out->settled, text, bit) : ST_ERROR;
    Py_XDECREF(text);
    return done == ST_OK ? 0 : -1;
}

int numbers_end(world *w, product *out) {
    out->dynamic = false;
    for (uint32_t i = 0; i < w->numbers.symbols.count; i++) {
        const symbol *s = &w->numbers.symbols.items[i];
        bool open = number_current(w->numbers.sizes, s->number).e != NULL;
        out->dynamic = out->dynamic || open;
        if (!open && note_settled(out, s->place) < 0)
            return -1;
    }
    return 0;
}

int numbers_keep(cache *k, const product *made) {
    PyObject *place, *bits;
    Py_ssize_t at = 0;
    while (made->settled && PyDict_Next(made->settled, &at, &place, &bits))
        if (cache_settle(k, place, (unsigned)PyLong_AsUnsignedLongMask(bits)) != ST_OK)
            return -1;
    return 0;
}
