// The entries of one code object and offset. They are found by their guards, the most recently used
// first, and removed when an object that they rely on has died.
#include "src/cache/cache.h"

#include "src/py/frame.h"

enum { VARIES = 4 }; // entries that a number made not to fit

static void entry_forget_below(entry *e) {
    for (int i = 0; i < e->looked; i++)
        Py_DECREF(e->below[i].code);
    PyMem_Free(e->below);
}

static void entry_free(entry *e) {
    entry_forget_below(e);
    guard_program_free(e->guards);
    plan_free(e->plan);
    Py_XDECREF(e->why);
    Py_XDECREF(e->misfits);
    entry_numbers_clear(&e->asked);
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

// --- shelves ---

enum { RECENT = 8, INDEX_BITS = 8, INDEX_MASK = 255 };
#define IN_ORDER UINT64_C(0x0706050403020100)

static uint32_t recent_at(uint64_t recent, uint32_t place) {
    return (uint32_t)(recent >> INDEX_BITS * place) & INDEX_MASK;
}

static uint32_t recent_count(const shelf *s) {
    return s->all.count < RECENT ? s->all.count : RECENT;
}

static bool is_recent(const shelf *s, uint64_t recent, uint32_t index) {
    for (uint32_t i = 0; i < recent_count(s); i++)
        if (recent_at(recent, i) == index)
            return true;
    return false;
}

// The word with the index of a place moved to the front, or with another index put there.
static uint64_t recent_first(uint64_t recent, uint32_t place, uint64_t index) {
    uint64_t before = (UINT64_C(1) << INDEX_BITS * place) - 1;
    uint64_t behind = ~(before << INDEX_BITS | INDEX_MASK);
    return (recent & behind) | (recent & before) << INDEX_BITS | index;
}

// Brings the array into the order of use.
static void shelf_sort(shelf *s) {
    uint64_t recent = atomic_load_explicit(&s->recent, memory_order_relaxed);
    uint32_t count = recent_count(s), to = s->all.count;
    entry *first[RECENT], **all = s->all.items;
    for (uint32_t i = 0; i < count; i++)
        first[i] = all[recent_at(recent, i)];
    for (uint32_t i = to; i-- > 0;)
        if (!is_recent(s, recent, i))
            all[--to] = all[i];
    for (uint32_t i = 0; i < count; i++)
        all[i] = first[i];
    atomic_store_explicit(&s->recent, IN_ORDER, memory_order_relaxed);
}

void cache_sort(cache *c) {
    for (int rank = 0; rank < RANKS; rank++)
        shelf_sort(&c->shelves[rank]);
}

entry *cache_next(const cache *c, uint32_t *at) {
    uint32_t i = (*at)++;
    for (const shelf *s = c->shelves; s < c->shelves + RANKS; i -= s++->all.count)
        if (i < s->all.count)
            return s->all.items[i];
    return NULL;
}

// What has died is only put aside: between a guard pass and the plan that uses its registers no
// code may run.
static void put_aside(cache *c, entry *e) {
    e->next = c->dead;
    c->dead = e;
    c->count--;
}

static void bury(cache *c) {
    for (shelf *s = c->shelves; s < c->shelves + RANKS; s++) {
        uint32_t kept = 0;
        shelf_sort(s);
        for (uint32_t i = 0; i < s->all.count; i++) {
            entry *e = s->all.items[i];
            if (guard_dead(e->guards))
                put_aside(c, e);
            else
                s->all.items[kept++] = e;
        }
        s->all.count = kept;
    }
}

static shelf *shelf_of(cache *c, const entry *e) {
    int rank = e->last ? RANK_STOPPED : e->reach == 0 ? RANK_ENDS : RANK_REACHES;
    return &c->shelves[2 * rank + e->dynamic];
}

// There is room for it.
static void put_in(cache *c, entry *e) {
    shelf *s = shelf_of(c, e);
    shelf_sort(s);
    memmove(s->all.items + 1, s->all.items, s->all.count++ * sizeof(entry *));
    s->all.items[0] = e;
    c->count++;
}

// --- caches ---

static void drop_dead(cache *c) {
    entry *dead = c->dead;
    c->dead = NULL; // freeing may run any code, which may come back to this cache
    while (dead) {
        entry *e = dead;
        dead = e->next;
        entry_drop(e);
    }
}

cache *cache_new(void) {
    cache *c = PyMem_Calloc(1, sizeof(cache));
    if (!c)
        PyErr_NoMemory();
    return c;
}

void cache_clear(cache *c) {
    for (int rank = 0; rank < RANKS; rank++) {
        shelf *s = &c->shelves[rank];
        while (s->all.count > 0)
            put_aside(c, s->all.items[--s->all.count]);
    }
    c->made = c->reaching = c->drops = c->registers = 0;
    c->given_up = c->off = false;
    c->varying_count = 0;
    Py_CLEAR(c->open);
    Py_CLEAR(c->settled_once);
    Py_CLEAR(c->settled);
    drop_dead(c);
}

void cache_free(cache *c) {
    cache_clear(c);
    for (int rank = 0; rank < RANKS; rank++)
        vec_free(&c->shelves[rank].all);
    PyMem_Free(c);
}

static void entry_each_code(const entry *e, plan_visit visit, void *data) {
    plan_each_code(e->plan, visit, data);
    for (int i = 0; i < e->looked; i++)
        visit(e->below[i].code, data);
    PyObject *why = e->why ? PyDict_GetItemString(e->why, "code") : NULL;
    if (why)
        visit(why, data);
}

void cache_each_code(const cache *c, plan_visit visit, void *data) {
    uint32_t at = 0;
    for (entry *e; (e = cache_next(c, &at));)
        entry_each_code(e, visit, data);
    for (const entry *e = c->dead; e; e = e->next)
        entry_each_code(e, visit, data);
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
        if (!f || f->unit != e->below[i].unit || f->how != e->below[i].how ||
            (PyObject *)py_frame_code(f->frame) != code || !cache_may_go_on(f) ||
            py_tools_on(ts, (PyCodeObject *)code))
            return false;
    }
    return true;
}

int cache_alone(const cache *c) {
    int count = 0;
    uint32_t at = 0;
    for (const entry *e; (e = cache_next(c, &at));)
        count += e->reach == 0;
    return count;
}

// --- looking for an entry ---

static inline bool passes(const entry *e, guard_frame *f, PyObject **regs, bool *met_dead) {
    if (cache_is_place(e, f) && guard_pass(e->guards, f, regs) &&
        e->depth <= py_recursion_left(PyThreadState_Get()))
        return true;
    *met_dead |= guard_dead(e->guards);
    return false;
}

// Behind the recent ones, where there are more. One that passes takes the place of the least
// recent.
static entry *find_old(shelf *s, guard_frame *f, PyObject **regs, bool *met_dead) {
    uint64_t recent = atomic_load_explicit(&s->recent, memory_order_relaxed);
    for (uint32_t i = 0; i < s->all.count; i++) {
        if (is_recent(s, recent, i) || !passes(s->all.items[i], f, regs, met_dead))
            continue;
        if (i <= INDEX_MASK)
            atomic_store_explicit(&s->recent, recent_first(recent, RECENT - 1, i),
                                  memory_order_relaxed);
        return s->all.items[i];
    }
    return NULL;
}

static inline entry *find_on(shelf *s, guard_frame *f, PyObject **regs, bool *met_dead) {
    uint64_t recent = atomic_load_explicit(&s->recent, memory_order_relaxed), rest = recent;
    uint32_t count = recent_count(s);
    for (uint32_t i = 0; i < count; i++, rest >>= INDEX_BITS) {
        entry *e = s->all.items[rest & INDEX_MASK];
        if (!passes(e, f, regs, met_dead))
            continue;
        if (i > 0)
            atomic_store_explicit(&s->recent, recent_first(recent, i, rest & INDEX_MASK),
                                  memory_order_relaxed);
        return e;
    }
    return s->all.count > RECENT ? find_old(s, f, regs, met_dead) : NULL;
}

entry *cache_find(cache *c, guard_frame *f, PyObject **regs) {
    bool met_dead = false;
    entry *e = NULL;
    for (shelf *s = c->shelves; s < c->shelves + RANKS && !e; s++)
        if (s->all.count > 0)
            e = find_on(s, f, regs, &met_dead);
    if (UNLIKELY(met_dead))
        bury(c);
    if (e)
        e->hits++;
    return e;
}

// --- adding one ---

static int note_below(entry *e, const guard_frame *f, int count) {
    e->below = PyMem_Calloc((size_t)count + 1, sizeof(*e->below));
    for (; e->below && e->looked < count; e->looked++) {
        f = f->below;
        PyObject *code = Py_NewRef(PyFunction_GET_CODE(f->function));
        e->below[e->looked] = (struct waiting_place){code, f->unit, f->how};
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
    if (vec_reserve(&shelf_of(c, e)->all, 1) != ST_OK) {
        entry_forget_below(e);
        PyMem_Free(e);
        return -1;
    }
    e->empty = graph_operations(plan_graph_of(e->plan)) == 0 && !plan_breaks(e->plan);
    put_in(c, e);
    int registers = guard_registers(e->guards);
    if (registers > c->registers)
        c->registers = registers;
    c->made++;
    c->reaching += e->reach > 0;
    *added = e;
    return 0;
}

// --- why none fits ---

static PyObject *reason_of(const entry *e, guard_frame *f) {
    PyObject **regs = PyMem_New(PyObject *, (size_t)guard_registers(e->guards) + 1);
    int failed;
    if (!regs)
        return PyErr_NoMemory();
    bool passes = guard_check(e->guards, f, regs, &failed);
    PyMem_Free(regs);
    if (passes && e->depth > py_recursion_left(PyThreadState_Get()))
        return PyUnicode_FromFormat("the recursion limit leaves no room for %d frames", e->depth);
    return passes ? PyUnicode_FromString("passes now") : guard_reason(e->guards, failed, f);
}

// The entries for this place now, held: writing down a reason may run code that takes them out of
// the cache.
static entry **hold_all(cache *c, const guard_frame *f) {
    entry **all = PyMem_New(entry *, (size_t)c->count + 1), **next = all;
    if (!all) {
        PyErr_NoMemory();
        return NULL;
    }
    uint32_t at = 0;
    cache_sort(c);
    for (entry *e; (e = cache_next(c, &at));) {
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
    PyObject **regs = PyMem_New(PyObject *, (size_t)c->registers + 1);
    if (!regs)
        return;
    uint32_t at = 0;
    cache_sort(c);
    for (entry *e; count < (int)Py_ARRAY_LENGTH(seen) && (e = cache_next(c, &at));) {
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
