// What a write takes out may die of it. In plain Python a finalizer or a weak reference's callback
// runs at that moment, and the rest of the function sees what it did; here the write comes last. So
// it is guarded that what is displaced dies without a sound.
#include "src/plan/build.h"

#include <internal/pycore_object.h>

enum { DEEP = 8 };

// What frames that go on held, and the trace lets go; borrowed from the world.
typedef VEC(const root *) root_list;

static Py_ssize_t count_same(const root_list *going, PyObject *outside) {
    Py_ssize_t count = 0;
    for (uint32_t i = 0; i < going->count; i++)
        count += going->items[i]->outside == outside;
    return count;
}

// A look through what may die. While a trace is there, it has references of its own to what it has
// a record of: the last but those may be the last.
typedef struct visiting {
    world *w;               // NULL: there is no trace
    const root_list *going; // with a trace
    int depth;
} visiting;

static bool quiet_with(const visiting *v, PyObject *o, bool last);

// Classes and what belongs to them outlive an instance; were it otherwise, the guard would see it.
static bool is_last(const visiting *v, PyObject *o) {
    if (Py_REFCNT(o) == 1)
        return true;
    if (v->w == NULL || PyType_Check(o) || PyModule_Check(o))
        return false;
    return count_same(v->going, o) > 0 || (!PyFunction_Check(o) && record_of(v->w, o));
}

static int visit(PyObject *o, void *data) {
    visiting v = *(visiting *)data;
    v.depth++;
    return !quiet_with(&v, o, is_last(&v, o));
}

// Of the program's; guards have their own. Torch's own to tensors are of its own class.
static bool has_weak_references(PyObject *o, bool tensor) {
    if (Py_TYPE(o)->tp_weaklistoffset == 0 || PyType_Check(o))
        return false;
    PyWeakReference *w = *(PyWeakReference **)_PyObject_GET_WEAKREFS_LISTPTR(o);
    for (; w != NULL; w = w->wr_next)
        if (!guard_owns_weakref((PyObject *)w) && (!tensor || PyWeakref_CheckRefExact(w)))
            return true;
    return false;
}

static bool is_tensor(PyObject *o) {
    return world_tensors && world_tensors->is_tensor(o);
}

static bool begins_with(const char *name, const char *start) {
    return strncmp(name, start, strlen(start)) == 0;
}

// C code may do anything where its objects die: a memoryview lets go of a buffer, which can be
// resized then; torch's guards switch something back. These do nothing.
static bool type_is_quiet(PyTypeObject *t) {
    static const char *const modules[] = {"collections.", "functools.", "itertools.", "operator.",
                                          "datetime.",    "decimal.",   "re.",        "types."};
    destructor python = ((PyTypeObject *)world_break_error)->tp_dealloc;
    while (t->tp_dealloc == python && t->tp_base)
        t = t->tp_base;
    bool heap = t->tp_flags & Py_TPFLAGS_HEAPTYPE;
    if (!strchr(t->tp_name, '.')) // the interpreter's own
        return !heap && t != &PyMemoryView_Type && t != &PyCapsule_Type;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(modules); i++)
        if (begins_with(t->tp_name, modules[i]))
            return true;
    return !heap && begins_with(t->tp_name, "torch.");
}

// A weak reference that dies before what it refers to does not call back.
static bool calls_back(PyObject *o) {
    return PyWeakref_Check(o) && ((PyWeakReference *)o)->wr_callback != NULL;
}

// Its module's dict outlives it.
static bool function_is_quiet(const visiting *v, PyObject *o) {
    PyFunctionObject *f = (PyFunctionObject *)o;
    PyObject *parts[] = {f->func_defaults, f->func_kwdefaults, f->func_closure, f->func_dict};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(parts); i++)
        if (parts[i] && visit(parts[i], (void *)v) != 0)
            return false;
    return true;
}

// Whether nobody notices if one reference to this goes. What has others stays alive; parts die with
// the whole if it has their only reference.
static bool quiet_with(const visiting *v, PyObject *o, bool last) {
    PyTypeObject *t = Py_TYPE(o);
    if (t->tp_finalize || t->tp_del)
        return PyGen_CheckExact(o) ? ((PyGenObject *)o)->gi_frame_state >= FRAME_COMPLETED : false;
    bool tensor = is_tensor(o);
    if (last && has_weak_references(o, tensor))
        return false;
    if (tensor || !last)
        return true;
    if (!type_is_quiet(t) || calls_back(o))
        return false;
    if (!PyObject_IS_GC(o) || !t->tp_traverse)
        return true;
    if (v->depth < DEEP && PyFunction_Check(o))
        return function_is_quiet(v, o);
    return v->depth < DEEP && t->tp_traverse(o, visit, (void *)v) == 0;
}

// Whether nobody notices if `count` references to this go.
static bool is_quiet(PyObject *o, Py_ssize_t count) {
    visiting v = {NULL, NULL, 0};
    return quiet_with(&v, o, Py_REFCNT(o) <= count);
}

// --- the places of an object that are written ---

typedef struct displaced {
    death_place place;
    PyObject *key; // strong, or NULL
    // What is guarded by identity and held weakly must not be kept alive by this: the program ends
    // with it, and asks nothing any more.
    bool borrowed;
    Py_ssize_t low, high;
    Py_ssize_t references; // that go: what has no more of them dies
    bool held;             // it had more when the trace began
} displaced;

static bool items_quiet(PyObject *list, const displaced *d) {
    for (Py_ssize_t i = d->low; i < d->high && i < PyList_GET_SIZE(list); i++)
        if (!is_quiet(PyList_GET_ITEM(list, i), d->references))
            return false;
    return true;
}

static bool deque_quiet(PyObject *deque, const displaced *d) {
    for (Py_ssize_t i = 0; i < Py_SIZE(deque); i++)
        if (!is_quiet(raw_deque_item(deque, i), d->references))
            return false;
    return true;
}

static bool set_quiet(PyObject *set, const displaced *d) {
    Py_ssize_t at = 0;
    PyObject *item;
    while (raw_set_next(set, &at, &item))
        if (!is_quiet(item, d->references))
            return false;
    return true;
}

static bool place_quiet(PyObject *o, const displaced *d) {
    PyObject *old = NULL;
    switch (d->place) {
    case DEATH_ITSELF:
        if (d->held && Py_REFCNT(o) > d->references)
            return true;
        old = o;
        break;
    case DEATH_LIST:
        return items_quiet(o, d);
    case DEATH_DEQUE:
        return deque_quiet(o, d);
    case DEATH_SET:
        return set_quiet(o, d);
    case DEATH_DICT:
        if (raw_dict_get(o, d->key, &old) == RAW_UNSURE)
            return false;
        break;
    case DEATH_ATTR:
        if (raw_attr_get(o, d->key, &old) != RAW_FOUND)
            old = NULL;
        break;
    case DEATH_SLOT:
        old = *(PyObject **)((char *)o + d->low);
        break;
    case DEATH_CELL:
        old = PyCell_GET(o);
    }
    return !old || is_quiet(old, d->references);
}

static bool check(PyObject *o, void *data) {
    return o && place_quiet(o, data);
}

static PyObject *text(const char *source, void *data) {
    const displaced *d = data;
    if (d->borrowed)
        return PyUnicode_FromFormat("no finalizer is behind an item of %s", source);
    if (d->key)
        return PyUnicode_FromFormat("no finalizer is behind %R of %s", d->key, source);
    return PyUnicode_FromFormat("no finalizer is behind what %s loses", source);
}

static void drop(void *data) {
    displaced *d = data;
    if (!d->borrowed)
        Py_XDECREF(d->key);
    PyMem_Free(d);
}

static const guard_custom quiet_guard = {"quiet", check, text, NULL, drop};

static status guard_displaced(builder *b, source *s, PyObject *o, displaced what) {
    displaced *d = PyMem_Malloc(sizeof(displaced));
    if (!d) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    *d = what;
    if (!d->borrowed)
        Py_XINCREF(d->key);
    if (place_quiet(o, d))
        return guard_add_custom(b->w->guards, s, &quiet_guard, d);
    drop(d);
    return world_break_status(b->w, REASON_FINALIZER, "lets go of something in a %s",
                              Py_TYPE(o)->tp_name);
}

// If frames let go of things that live on by other references, this may be such a one.
status deaths_guard(builder *b, source *s, PyObject *o, death_place place, PyObject *key,
                    Py_ssize_t low, Py_ssize_t high) {
    record *r = key ? record_of(b->w, key) : NULL;
    displaced d = {.place = place,
                   .key = key,
                   .low = low,
                   .high = high,
                   .references = b->lets_go ? PY_SSIZE_T_MAX : 1,
                   .borrowed = r && r->inside == r->outside && (r->identity || r->pinned) &&
                               PyType_SUPPORTS_WEAKREFS(Py_TYPE(key))};
    return guard_displaced(b, s, o, d);
}

bool death_known(PyObject *o) {
    PyObject *inside = o && is_lazy(o) ? ((lazy *)o)->inside : NULL;
    return inside && (value_immutable(inside) || is_standin(inside));
}

status deaths_guard_lazy(builder *b, PyObject *o) {
    lazy *l = (lazy *)o;
    if (!is_lazy(o) || death_known(o))
        return ST_OK;
    return deaths_guard(b, l->source, l->outside, DEATH_ITSELF, NULL, 0, 0);
}

// --- what frames that go on held ---

// Immutable: nobody notices.
static bool root_known(const root *r) {
    return r->inside && death_known(r->inside) && !is_tensor(r->outside);
}

// What had other references before the trace lives on, as long as it still has when the entry is
// run; else it may be the last one.
static status root_dies(builder *b, const root_list *going, const root *r) {
    world *w = b->w;
    visiting v = {w, going, 0};
    displaced d = {
        .place = DEATH_ITSELF, .references = count_same(going, r->outside), .held = r->held};
    b->lets_go |= r->held;
    if (r->held || quiet_with(&v, r->outside, true))
        return guard_displaced(b, r->source, r->outside, d);
    const uint64_t *dropped = map_get(&w->born, map_key(r->inside ? r->inside : r->outside));
    w->again = dropped ? *dropped : 1; // it dies for real, in an instruction that is
    return world_break_status(w, REASON_FINALIZER, "lets go of a %s", Py_TYPE(r->outside)->tp_name);
}

// References were counted for objects that are not the same: they must not be another time.
static status roots_differ(builder *b, const root_list *going, uint32_t i) {
    const root *r = going->items[i];
    for (uint32_t j = 0; r->held && j < i; j++)
        if (going->items[j]->held && going->items[j]->outside != r->outside)
            TRY(guard_add(b->w->guards, GUARD_NOT_SAME, r->source, going->items[j]->source, NULL,
                          0));
    return ST_OK;
}

static status list_roots(builder *b, root_list *going) {
    for (uint32_t i = 0; i < b->w->roots.count; i++) {
        const root *r = &b->w->roots.items[i];
        if (!r->stays && !map_get(&b->sources, map_key(r->source)) && !root_known(r))
            TRY(vec_push(going, r));
    }
    return ST_OK;
}

status deaths_of_roots(builder *b) {
    root_list going = {0};
    status done = list_roots(b, &going);
    for (uint32_t i = 0; done == ST_OK && i < going.count; i++) {
        done = root_dies(b, &going, going.items[i]);
        if (done == ST_OK)
            done = roots_differ(b, &going, i);
    }
    vec_free(&going);
    return done;
}

status deaths_of_generators(builder *b) {
    world *w = b->w;
    for (uint32_t i = 0; i < w->generators.count; i++) {
        PyObject *gen = raw_weakref_get(w->generators.items[i]);
        if (gen && gen != Py_None && ((PyGenObject *)gen)->gi_frame_state < FRAME_EXECUTING &&
            ((PyGenObject *)gen)->gi_frame_state != FRAME_CREATED &&
            !map_get(&b->objects, map_key(gen)))
            return rebuild_refuse(b, gen);
    }
    return ST_OK;
}
