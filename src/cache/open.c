// A frame that no entry fits into the numbers that the next trace leaves open: those that alone keep
// the best of the entries from fitting.
#include "src/cache/cache.h"

static status put_bits(PyObject **places, PyObject *place, unsigned bits) {
    if (!*places && !(*places = PyDict_New()))
        return ST_ERROR;
    return guard_open_set(*places, place, guard_open_bits(*places, place) | bits);
}

status cache_settle(cache *c, PyObject *place, unsigned bits) {
    TRY(put_bits(&c->settled, place, bits));
    unsigned open = guard_open_bits(c->open, place);
    return open ? guard_open_set(c->open, place, open & ~bits) : ST_OK;
}

// --- the entry that fits best ---

// Whether no other kind of number differs than those that may be left open.
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

// Takes the place of `best` if numbers alone keep the entry from fitting, and fewer than there. An
// entry that anything else keeps from fitting may be nearer in count: a cache that was empty then
// counts once, and each layer of one that has grown counts twice. Takes the reference of `found`.
static void keep_better(guard_misfits *best, guard_misfits found, unsigned allowed) {
    bool numbers = found.count > 0 && found.numbers && is_allowed(found.places, allowed);
    if (!numbers || (best->places && best->count <= found.count)) {
        Py_DECREF(found.places);
        return;
    }
    Py_XSETREF(best->places, found.places);
    best->count = found.count;
}

// The entries are few, and finding out about them runs no code that could take them out.
static status find_best(cache *c, guard_frame *f, unsigned allowed, guard_misfits *best) {
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
        if (done == ST_OK)
            keep_better(best, found, allowed);
    }
    PyMem_Free(regs);
    return done;
}

static status open_all(cache *c, PyObject *places, PyObject **fresh) {
    PyObject *place, *bits;
    Py_ssize_t at = 0;
    while (PyDict_Next(places, &at, &place, &bits)) {
        unsigned open = (unsigned)PyLong_AsUnsignedLongMask(bits) & ~(unsigned)GUARD_OPEN_FLOAT;
        open &= ~(guard_open_bits(c->settled, place) | guard_open_bits(c->open, place));
        if (!open)
            continue;
        TRY(put_bits(&c->open, place, open));
        TRY(put_bits(fresh, place, open));
    }
    return ST_OK;
}

PyObject *cache_open(cache *c, guard_frame *f, unsigned allowed) {
    guard_misfits best = {0};
    PyObject *fresh = PyDict_New();
    status done = fresh ? find_best(c, f, allowed, &best) : ST_ERROR;
    if (done == ST_OK && best.places)
        done = open_all(c, best.places, &fresh);
    if (done != ST_OK)
        Py_CLEAR(fresh);
    Py_XDECREF(best.places);
    return fresh;
}
