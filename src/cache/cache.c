// Entries of one code object: found by their guards, most recently used first; thrown away when
// what they rely on has died.
#include "src/cache/cache.h"

enum { MOST_REASONS = 64 };

static void entry_free(entry *e) {
    guard_program_free(e->guards);
    plan_free(e->plan);
    Py_XDECREF(e->why);
    Py_XDECREF(e->misfits);
    PyMem_Free(e);
}

static void entry_drop(entry *e) {
    e->dropped = true;
    if (e->held == 0)
        entry_free(e);
}

void cache_hold(entry *e) {
    e->held++;
}

void cache_release(entry *e) {
    if (--e->held == 0 && e->dropped)
        entry_free(e);
}

// Freeing may run any code, which may come back to this cache: the list is taken off first.
static void drop_entries(entry **from) {
    while (*from) {
        entry *e = *from;
        *from = e->next;
        entry_drop(e);
    }
}

cache *cache_new(void) {
    cache *c = PyMem_Calloc(1, sizeof(cache));
    if (c && (c->reasons = PyList_New(0)))
        return c;
    if (!c)
        PyErr_NoMemory();
    PyMem_Free(c);
    return NULL;
}

void cache_clear(cache *c) {
    entry *all = c->entries, *dead = c->dead;
    PyObject *reasons = PyList_New(0);
    c->entries = c->dead = NULL;
    c->count = c->made = c->drops = 0;
    c->given_up = false;
    if (!reasons)
        PyErr_Clear(); // the old ones stay
    else
        Py_SETREF(c->reasons, reasons);
    drop_entries(&all);
    drop_entries(&dead);
}

void cache_free(cache *c) {
    entry *all = c->entries, *dead = c->dead;
    PyObject *reasons = c->reasons;
    PyMem_Free(c);
    drop_entries(&all);
    drop_entries(&dead);
    Py_DECREF(reasons);
}

// What has died is only put aside: between a guard pass and the plan that uses its registers no
// code may run.
static void bury(cache *c, entry **place) {
    entry *e = *place;
    *place = e->next;
    e->next = c->dead;
    c->dead = e;
    c->count--;
}

// To the front, or to the front of those that are tried last.
static void put_in(cache *c, entry *e) {
    entry **place = &c->entries;
    while (e->last && *place && !(*place)->last)
        place = &(*place)->next;
    e->next = *place;
    *place = e;
}

entry *cache_find(cache *c, guard_frame *f, PyObject **regs) {
    entry **place = &c->entries;
    while (*place) {
        entry *e = *place;
        int failed;
        if (guard_dead(e->guards)) {
            bury(c, place);
        } else if (guard_check(e->guards, f, regs, &failed)) {
            *place = e->next;
            put_in(c, e);
            e->hits++;
            return e;
        } else {
            place = &e->next;
        }
    }
    return NULL;
}

int cache_registers(const cache *c) {
    int most = 0;
    for (const entry *e = c->entries; e; e = e->next) {
        int registers = guard_registers(e->guards);
        most = registers > most ? registers : most;
    }
    return most;
}

static void drop_dead(cache *c) {
    entry *dead = c->dead;
    c->dead = NULL;
    drop_entries(&dead);
}

int cache_add(cache *c, guard_program *guards, plan *plan, bool last, entry **added) {
    entry *e = PyMem_Calloc(1, sizeof(entry));
    if (!e) {
        PyErr_NoMemory();
        return -1;
    }
    drop_dead(c);
    e->guards = guards;
    e->plan = plan;
    e->empty = graph_operations(plan_graph_of(plan)) == 0 && !plan_breaks(plan);
    e->last = last;
    put_in(c, e);
    c->count++;
    c->made++;
    if (added)
        *added = e;
    return 0;
}

int cache_note(cache *c, PyObject *reason) {
    PyObject *reasons = c->reasons;
    if (PyList_GET_SIZE(reasons) >= MOST_REASONS && PyList_SetSlice(reasons, 0, 1, NULL) < 0)
        return -1;
    return PyList_Append(reasons, reason);
}

static PyObject *reason_of(const entry *e, guard_frame *f) {
    PyObject **regs = PyMem_New(PyObject *, (size_t)guard_registers(e->guards) + 1);
    int failed;
    if (!regs)
        return PyErr_NoMemory();
    bool passes = guard_check(e->guards, f, regs, &failed);
    PyMem_Free(regs);
    return passes ? PyUnicode_FromString("passes now") : guard_reason(e->guards, failed, f);
}

// The entries now, held: writing down a reason may run code that takes them out of the cache.
static entry **hold_all(const cache *c) {
    entry **all = PyMem_New(entry *, (size_t)c->count + 1), **next = all;
    if (!all) {
        PyErr_NoMemory();
        return NULL;
    }
    for (entry *e = c->entries; e; e = e->next) {
        cache_hold(e);
        *next++ = e;
    }
    *next = NULL;
    return all;
}

PyObject *cache_reasons(cache *c, guard_frame *f) {
    drop_dead(c);
    PyObject *reasons = PyList_New(0);
    entry **all = hold_all(c);
    for (entry **e = all; e && *e; e++) {
        PyObject *reason = reasons ? reason_of(*e, f) : NULL;
        if (reasons && (!reason || PyList_Append(reasons, reason) < 0))
            Py_CLEAR(reasons);
        Py_XDECREF(reason);
        cache_release(*e);
    }
    if (!all)
        Py_CLEAR(reasons);
    PyMem_Free(all);
    return reasons;
}
