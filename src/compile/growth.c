// A trace that is done into the numbers that the program itself changes: the places that it read and
// wrote with another number, or with a tensor of other sizes. The next call will find another number
// there, so the frame is traced again with these left open.
#include "src/world/number.h"

#include "src/compile/room.h"

typedef struct growth {
    world *w;
    cache *k;
    unsigned allowed;
    bool found;
} growth;

// --- one place ---

// The bits of a number that was looked at, and is another one of its kind now.
static unsigned bits_of_number(const growth *g, const lazy *was, PyObject *is) {
    number old, new;
    bool known =
        was->inside && number_from_object(was->inside, &old) && number_from_object(is, &new);
    if (!known || old.kind != new.kind || old.kind == NUMBER_BOOL)
        return 0;
    bool differs = old.kind == NUMBER_INT ? old.hint.i != new.hint.i : old.hint.d != new.hint.d;
    unsigned kind = old.kind == NUMBER_INT ? GUARD_OPEN_VALUE : GUARD_OPEN_FLOAT;
    return differs && g->allowed & kind ? SYMBOLIC_VALUE : 0;
}

static const meta *meta_of(PyObject *o) {
    const standin_kind *kind = o ? standin_kind_of(o) : NULL;
    return kind ? &kind->node_of(o)->meta : NULL;
}

// The bits of the sizes in which a tensor that was looked at differs from the one there now.
static unsigned bits_of_sizes(const lazy *was, PyObject *is) {
    const meta *old = meta_of(was->inside), *new = meta_of(is);
    unsigned bits = 0;
    if (!old || !new || old->dims != new->dims || old->dtype != new->dtype)
        return 0;
    for (int d = 0; d < old->dims; d++)
        if (size_is_plain(old->sizes[d]) && old->sizes[d].hint != new->sizes[d].hint)
            bits |= 1U << (SYMBOLIC_SIZES + d);
    return bits;
}

static status compare(growth *g, PyObject *was, PyObject *is) {
    if (!was || !is || was == is || !is_lazy(was) || is == world_absent)
        return ST_OK;
    const lazy *l = (lazy *)was;
    PyObject *now = is_lazy(is) && ((lazy *)is)->inside ? ((lazy *)is)->inside : is;
    unsigned bits = bits_of_number(g, l, now) | bits_of_sizes(l, now);
    if (!bits)
        return ST_OK;
    PyObject *text = source_text(l->source);
    bits &= text ? ~(guard_open_bits(g->k->open, text) | guard_open_bits(g->k->settled, text)) : 0;
    g->found |= bits != 0;
    status done = text ? cache_inherit(g->k, text, bits) : ST_ERROR;
    Py_XDECREF(text);
    return done;
}

// --- all of them ---

static status compare_dicts(growth *g, PyObject *was, PyObject *is) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (was && is && PyDict_Next(is, &at, &key, &value))
        if (PyUnicode_CheckExact(key) || PyLong_CheckExact(key))
            TRY(compare(g, PyDict_GetItemWithError(was, key), value));
    return PyErr_Occurred() ? ST_ERROR : ST_OK;
}

static status compare_names(growth *g, const names *n) {
    if (!n->written)
        return ST_OK;
    return n->twin ? compare_dicts(g, n->initial, n->twin) : compare_dicts(g, n->known, n->pending);
}

static status compare_record(growth *g, const record *r) {
    bool list = r->written && r->kind == RECORD_LIST && r->inside;
    for (Py_ssize_t i = 0; list && i < r->count && i < PyList_GET_SIZE(r->inside); i++)
        TRY(compare(g, r->initial[i], PyList_GET_ITEM(r->inside, i)));
    for (uint32_t i = 0; i < r->slots.count; i++)
        TRY(compare(g, r->slots.items[i].place.initial, r->slots.items[i].place.pending));
    return compare(g, r->content.initial, r->content.pending);
}

int growth_find(world *w, cache *k, unsigned allowed) {
    growth g = {w, k, allowed, false};
    for (uint32_t i = 0; i < w->in.names.count; i++)
        if (compare_names(&g, w->in.names.items[i]) != ST_OK)
            return -1;
    for (uint32_t i = 0; i < w->in.all.count; i++)
        if (compare_record(&g, w->in.all.items[i]) != ST_OK)
            return -1;
    return g.found;
}
