// Finds the numbers that the next trace leaves open, from a frame that fits no entry: the numbers
// that alone keep the nearest entry from fitting; or, if other things keep all entries from fitting,
// the floats that have changed besides: a learning rate has, while the first step of an optimizer
// has made its state.
#include "src/cache/cache.h"

status cache_settle(cache *c, PyObject *place, unsigned bits) {
    unsigned again = bits & guard_open_bits(c->settled_once, place);
    TRY(guard_open_add(&c->settled_once, place, bits));
    bits = again;
    TRY(guard_open_add(&c->settled, place, bits));
    unsigned open = guard_open_bits(c->open, place);
    return open ? guard_open_set(c->open, place, open & ~bits) : ST_OK;
}

void entry_numbers_clear(entry_numbers *n) {
    Py_CLEAR(n->open);
    Py_CLEAR(n->settled);
    Py_CLEAR(n->named);
}

entry_numbers entry_numbers_copy(const entry_numbers *n) {
    Py_XINCREF(n->open);
    Py_XINCREF(n->settled);
    Py_XINCREF(n->named);
    return *n;
}

status cache_inherit(cache *c, PyObject *place, unsigned bits) {
    bits &= ~guard_open_bits(c->settled, place);
    return bits ? guard_open_add(&c->open, place, bits) : ST_OK;
}

// --- the entry that fits best ---

// Whether all numbers that differ are of kinds that may be left open.
static bool is_allowed(PyObject *places, unsigned allowed) {
    PyObject *place, *bits;
    Py_ssize_t at = 0;
    while (PyDict_Next(places, &at, &place, &bits)) {
        unsigned open = (unsigned)PyLong_AsUnsignedLongMask(bits);
        bool is_float = open & GUARD_OPEN_FLOAT, value = open & GUARD_OPEN_VALUE;
        if (open & ~(allowed | GUARD_OPEN_VALUE | GUARD_OPEN_FLOAT))
            return false;
        if (value && !(allowed & (is_float ? GUARD_OPEN_FLOAT : GUARD_OPEN_VALUE)))
            return false;
    }
    return true;
}

// Puts `found` in the place of `best` if only numbers keep the entry from fitting, and fewer
// numbers than in `best`. An entry that fails for other reasons too is no candidate, even if it has
// fewer failures: an empty key-value cache is one failure, one that has grown is two for each
// layer. Takes the reference of `found`.
static void keep_better(guard_misfits *best, guard_misfits found, unsigned allowed) {
    bool numbers = found.count > 0 && found.numbers && is_allowed(found.places, allowed);
    if (!numbers || (best->places && best->count <= found.count)) {
        Py_DECREF(found.places);
        return;
    }
    Py_XSETREF(best->places, found.places);
    best->count = found.count;
}

// Of the numbers that differ only floats; NULL without an exception if there are none.
static PyObject *floats_of(PyObject *places, unsigned allowed) {
    PyObject *floats = NULL, *place, *bits;
    Py_ssize_t at = 0;
    while (allowed & GUARD_OPEN_FLOAT && PyDict_Next(places, &at, &place, &bits)) {
        unsigned open = (unsigned)PyLong_AsUnsignedLongMask(bits);
        if (open & GUARD_OPEN_FLOAT && guard_open_add(&floats, place, open) != ST_OK)
            Py_CLEAR(floats);
        if (PyErr_Occurred())
            return NULL;
    }
    return floats;
}

// There are few entries, and the check runs no code that could remove one.
static status find_best(cache *c, guard_frame *f, unsigned allowed, guard_misfits *best,
                        PyObject **floats) {
    PyObject **regs = PyMem_New(PyObject *, (size_t)c->registers + 1);
    status done = regs ? ST_OK : ST_ERROR;
    if (!regs)
        PyErr_NoMemory();
    uint32_t at = 0;
    cache_sort(c);
    for (entry *e; done == ST_OK && (e = cache_next(c, &at));) {
        guard_misfits found;
        if (!cache_is_place(e, f))
            continue;
        done = guard_find_misfits(e->guards, f, regs, &found);
        if (done != ST_OK)
            break;
        if (!*floats)
            *floats = floats_of(found.places, allowed);
        keep_better(best, found, allowed);
        done = PyErr_Occurred() ? ST_ERROR : ST_OK;
    }
    PyMem_Free(regs);
    return done;
}

static status open_all(cache *c, PyObject *places, PyObject **fresh, PyObject **stuck) {
    PyObject *place, *bits;
    Py_ssize_t at = 0;
    while (PyDict_Next(places, &at, &place, &bits)) {
        unsigned open = (unsigned)PyLong_AsUnsignedLongMask(bits) & ~(unsigned)GUARD_OPEN_FLOAT;
        unsigned settled = open & guard_open_bits(c->settled, place);
        if (settled)
            TRY(guard_open_add(stuck, place, settled));
        open &= ~(settled | guard_open_bits(c->open, place));
        if (!open)
            continue;
        TRY(guard_open_add(&c->open, place, open));
        TRY(guard_open_add(fresh, place, open));
    }
    return ST_OK;
}

PyObject *cache_open(cache *c, guard_frame *f, unsigned allowed, PyObject **stuck) {
    guard_misfits best = {0};
    PyObject *fresh = PyDict_New(), *floats = NULL;
    *stuck = PyDict_New();
    status done = fresh && *stuck ? find_best(c, f, allowed, &best, &floats) : ST_ERROR;
    PyObject *places = best.places ? best.places : floats;
    if (done == ST_OK && places)
        done = open_all(c, places, &fresh, stuck);
    if (done != ST_OK) {
        Py_CLEAR(fresh);
        Py_CLEAR(*stuck);
    }
    Py_XDECREF(best.places);
    Py_XDECREF(floats);
    return fresh;
}
