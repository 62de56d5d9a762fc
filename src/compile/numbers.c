// Which numbers a trace leaves open: turns the settings, and the numbers that were seen to change,
// into the terms of the trace and into texts for people.
#include "src/py/evalhook.h"

#include "src/world/number.h"

#include "src/compile/room.h"

static_assert((int)SYMBOLIC_VALUE == (int)GUARD_OPEN_VALUE, "the guards' bits are the world's");

// --- settings ---

// An attribute of the policy, read anew each time: torch's settings may change. New reference; NULL
// without an exception if there is none.
static PyObject *attribute_of(const compiler *c, const char *name) {
    if (!policy_is_there(c))
        return NULL;
    hook_mode before = hook_swap(HOOK_OFF);
    PyObject *found = PyObject_GetAttrString(c->policy, name);
    hook_swap(before);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    return found;
}

static int settings_of(const compiler *c) {
    PyObject *found = attribute_of(c, "numbers");
    if (!found)
        return PyErr_Occurred() ? -1 : c->numbers;
    long flags = PyLong_AsLong(found);
    Py_XDECREF(found);
    return (int)flags;
}

// What the user's settings say about places; NULL: nothing.
static int named_of(const compiler *c, PyObject **named) {
    PyObject *found = attribute_of(c, "named");
    if (found && found != Py_None)
        *named = Py_NewRef(found);
    Py_XDECREF(found);
    return PyErr_Occurred() ? -1 : 0;
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

// What would have said so from the start, for the sizes among the places: "mark_dynamic(x, 0)"; new
// str, empty if there are none.
static PyObject *marks_for(PyObject *places) {
    PyObject *text = PyUnicode_FromString(""), *place, *bits;
    Py_ssize_t at = 0;
    while (text && PyDict_Next(places, &at, &place, &bits)) {
        unsigned sizes = (unsigned)PyLong_AsUnsignedLongMask(bits) >> SYMBOLIC_SIZES;
        for (int dim = 0; text && dim < META_MOST_DIMS; dim++)
            if (sizes & 1U << dim)
                text = add_words(text, "mark_dynamic(%U, %d)", place, dim);
    }
    return text;
}

// Says behind the first of the reasons what becomes of these numbers.
static int say(PyObject *reasons, PyObject *places, const char *format) {
    if (PyDict_GET_SIZE(places) == 0 || PyList_GET_SIZE(reasons) == 0)
        return 0;
    PyObject *words = words_of(places), *marks = words ? marks_for(places) : NULL, *text = NULL;
    if (marks)
        text = PyUnicode_FromFormat(
            format, PyList_GET_ITEM(reasons, 0), words,
            PyUnicode_GET_LENGTH(marks) ? "; from the start with torch._dynamo." : "", marks);
    Py_XDECREF(words);
    Py_XDECREF(marks);
    return text ? PyList_SetItem(reasons, 0, text) : -1;
}

static const char open_words[] = "%U (from now on any number will do for %U%s%U)";
static const char stuck_words[] =
    "%U (each value of %U is compiled on its own, since the program or "
    "the backend needs it)";

// --- the terms ---

int numbers_learn(compiler *c, cache *k, guard_frame *f, PyObject *reasons) {
    int settings = settings_of(c);
    if (settings < 0)
        return -1;
    if (!(settings & NUMBERS_CHANGED) || k->count == 0)
        return 0;
    PyObject *stuck, *fresh = cache_open(k, f, allowed_by(settings), &stuck);
    Py_CLEAR(f->kept);
    int done =
        !fresh || say(reasons, fresh, open_words) < 0 ? -1 : say(reasons, stuck, stuck_words);
    Py_XDECREF(fresh);
    Py_XDECREF(stuck);
    return done;
}

// A graph that may not end has them all, as stock's.
int numbers_captured(const compiler *c, unsigned settings) {
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

// Another thread may learn more while this one traces. NULL for an empty dict.
static int copy_dict(PyObject *dict, PyObject **copy) {
    if (dict && PyDict_GET_SIZE(dict) > 0)
        *copy = PyDict_Copy(dict);
    return PyErr_Occurred() ? -1 : 0;
}

int numbers_terms(const compiler *c, const cache *k, product *out) {
    int settings = settings_of(c);
    if (settings < 0)
        return -1;
    entry_numbers_clear(&out->asked);
    out->asked.settings = (unsigned)settings;
    if (named_of(c, &out->asked.named) < 0)
        return -1;
    return copy_dict(k->open, &out->asked.open) < 0 ? -1
                                                    : copy_dict(k->settled, &out->asked.settled);
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

int numbers_end(world *w, product *out, const char *whose) {
    out->dynamic = false;
    if (w->numbers.promises && world_tensors->promises(w, whose) != ST_OK)
        return -1;
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
