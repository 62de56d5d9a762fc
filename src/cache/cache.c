// Entries of one code object: found by their guards, most recently used first; thrown away when
// what they rely on has died.
#include "src/cache/cache.h"

#include "src/py/frame.h"

enum { MOST_REASONS = 64 };
enum { VARIES = 4 }; // entries that a number made not to fit

static void entry_free(entry *e) {
    for (int i = 0; i < e->looked; i++)
        Py_DECREF(e->below[i].code);
    PyMem_Free(e->below);
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
    c->count = c->made = c->reaching = c->drops = 0;
    c->given_up = c->off = false;
    c->varying_count = 0;
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

static void entries_each_code(const entry *e, plan_visit visit, void *data) {
    for (; e != NULL; e = e->next) {
        plan_each_code(e->plan, visit, data);
        for (int i = 0; i < e->looked; i++)
            visit(e->below[i].code, data);
        PyObject *why = e->why ? PyDict_GetItemString(e->why, "code") : NULL;
        if (why != NULL)
            visit(why, data);
    }
}

void cache_each_code(const cache *c, plan_visit visit, void *data) {
    entries_each_code(c->entries, visit, data);
    entries_each_code(c->dead, visit, data);
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

// Those that stopped early are tried last, and of the others those first that go further.
static int rank(const entry *e) {
    return e->last ? 2 : e->reach == 0;
}

static void put_in(cache *c, entry *e) {
    entry **place = &c->entries;
    while (*place && rank(*place) < rank(e))
        place = &(*place)->next;
    e->next = *place;
    *place = e;
}

bool cache_may_go_on(const guard_frame *f) {
    return !py_frame_seen(f->frame) &&
           PyFunction_GET_CODE(f->function) == (PyObject *)py_frame_code(f->frame);
}

bool cache_is_place(const entry *e, const guard_frame *f) {
    PyThreadState *ts = e->looked > 0 ? PyThreadState_Get() : NULL;
    for (int i = 0; i < e->looked; i++) {
        f = f->below;
        PyObject *code = e->below[i].code;
        if (f == NULL || f->unit != e->below[i].unit || f->init != e->below[i].init ||
            (PyObject *)py_frame_code(f->frame) != code || !cache_may_go_on(f) ||
            py_tools_on(ts, (PyCodeObject *)code))
            return false;
    }
    return true;
}

int cache_alone(const cache *c) {
    int count = 0;
    for (const entry *e = c->entries; e; e = e->next)
        count += e->reach == 0;
    return count;
}

entry *cache_find(cache *c, guard_frame *f, PyObject **regs) {
    entry **place = &c->entries;
    while (*place) {
        entry *e = *place;
        int failed;
        if (guard_dead(e->guards)) {
            bury(c, place);
        } else if (cache_is_place(e, f) && guard_check(e->guards, f, regs, &failed)) {
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

static int note_below(entry *e, const guard_frame *f, int count) {
    e->below = PyMem_Calloc((size_t)count + 1, sizeof(*e->below));
    for (; e->below && e->looked < count; e->looked++) {
        f = f->below;
        PyObject *code = Py_NewRef(PyFunction_GET_CODE(f->function));
        e->below[e->looked] = (struct waiting_place){code, f->unit, f->init};
    }
    return e->below ? 0 : -1;
}

int cache_add(cache *c, const entry *new, const guard_frame *f, entry **added) {
    entry *e = PyMem_Malloc(sizeof(entry));
    if (e) {
        *e = *new;
        e->looked = 0;
    }
    if (!e || note_below(e, f, new->looked) < 0) {
        PyMem_Free(e);
        PyErr_NoMemory();
        return -1;
    }
    drop_dead(c);
    e->empty = graph_operations(plan_graph_of(e->plan)) == 0 && !plan_breaks(e->plan);
    put_in(c, e);
    c->count++;
    c->made++;
    c->reaching += e->reach > 0;
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

// The entries for this place now, held: writing down a reason may run code that takes them out of
// the cache.
static entry **hold_all(const cache *c, const guard_frame *f) {
    entry **all = PyMem_New(entry *, (size_t)c->count + 1), **next = all;
    if (!all) {
        PyErr_NoMemory();
        return NULL;
    }
    for (entry *e = c->entries; e; e = e->next) {
        if (!cache_is_place(e, f))
            continue;
        cache_hold(e);
        *next++ = e;
    }
    *next = NULL;
    return all;
}

PyObject *cache_reasons(cache *c, guard_frame *f) {
    drop_dead(c);
    PyObject *reasons = PyList_New(0);
    entry **all = hold_all(c, f);
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

static bool is_varying(const cache *c, Py_ssize_t slot) {
    for (int i = 0; i < c->varying_count; i++)
        if (c->varying[i] == slot)
            return true;
    return false;
}

// The number, if that is what keeps the entry from fitting: else -1.
static Py_ssize_t misfit_of(const entry *e, guard_frame *f, PyObject **regs) {
    int failed = -1;
    Py_ssize_t slot;
    if (!cache_is_place(e, f) || guard_check(e->guards, f, regs, &failed) ||
        !guard_is_number(e->guards, failed, &slot))
        return -1;
    return slot;
}

void cache_find_varying(cache *c, guard_frame *f) {
    Py_ssize_t seen[16];
    int count = 0;
    PyObject **regs = PyMem_New(PyObject *, (size_t)cache_registers(c) + 1);
    if (!regs)
        return;
    for (const entry *e = c->entries; e && count < (int)Py_ARRAY_LENGTH(seen); e = e->next) {
        Py_ssize_t slot = misfit_of(e, f, regs);
        if (slot < 0 || is_varying(c, slot))
            continue;
        seen[count++] = slot;
        int times = 0;
        for (int i = 0; i < count; i++)
            times += seen[i] == slot;
        if (times == VARIES && c->varying_count < (int)Py_ARRAY_LENGTH(c->varying))
            c->varying[c->varying_count++] = slot;
    }
    PyMem_Free(regs);
}
