// What a write takes out may die of it. In plain Python a finalizer or a weak reference's callback
// runs at that moment, and the rest of the function sees what it did; here the write comes last. So
// it is guarded that what is displaced dies without a sound.
#include "src/plan/build.h"

#include <internal/pycore_object.h>

enum { DEEP = 8 };

// A look through what may die. While a trace is there, it has references of its own to what it has
// a record of: the last but those may be the last.
typedef struct visiting {
    world *w; // NULL: there is no trace
    int depth;
} visiting;

static bool quiet_with(const visiting *v, PyObject *o, bool last);

// Classes and what belongs to them outlive an instance; were it otherwise, the guard would see it.
static bool is_last(const visiting *v, PyObject *o) {
    if (Py_REFCNT(o) == 1)
        return true;
    return v->w && !PyType_Check(o) && !PyFunction_Check(o) && !PyModule_Check(o) &&
           record_of(v->w, o);
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

// Whether nobody notices if one reference to this goes. What has others stays alive; parts die with
// the whole if it has their only reference.
static bool quiet_with(const visiting *v, PyObject *o, bool last) {
    PyTypeObject *t = Py_TYPE(o);
    if (t->tp_finalize || t->tp_del)
        return PyGen_CheckExact(o) ? ((PyGenObject *)o)->gi_frame_state >= FRAME_COMPLETED : false;
    bool tensor = is_tensor(o);
    if (last && has_weak_references(o, tensor))
        return false;
    if (tensor || !last || !PyObject_IS_GC(o) || !t->tp_traverse)
        return true;
    return v->depth < DEEP && t->tp_traverse(o, visit, (void *)v) == 0;
}

static bool is_quiet(PyObject *o, int depth) {
    visiting v = {NULL, depth};
    return quiet_with(&v, o, Py_REFCNT(o) == 1);
}

// --- the places of an object that are written ---

typedef struct displaced {
    death_place place;
    PyObject *key; // strong, or NULL
    Py_ssize_t low, high;
} displaced;

static bool items_quiet(PyObject *list, Py_ssize_t low, Py_ssize_t high) {
    for (Py_ssize_t i = low; i < high && i < PyList_GET_SIZE(list); i++) {
        if (!is_quiet(PyList_GET_ITEM(list, i), 0))
            return false;
    }
    return true;
}

static bool deque_quiet(PyObject *deque) {
    for (Py_ssize_t i = 0; i < Py_SIZE(deque); i++) {
        if (!is_quiet(raw_deque_item(deque, i), 0))
            return false;
    }
    return true;
}

static bool set_quiet(PyObject *set) {
    Py_ssize_t at = 0;
    PyObject *item;
    while (raw_set_next(set, &at, &item)) {
        if (!is_quiet(item, 0))
            return false;
    }
    return true;
}

static bool place_quiet(PyObject *o, const displaced *d) {
    PyObject *old = NULL;
    switch (d->place) {
    case DEATH_ITSELF:
        return is_quiet(o, 0);
    case DEATH_LIST:
        return items_quiet(o, d->low, d->high);
    case DEATH_DEQUE:
        return deque_quiet(o);
    case DEATH_SET:
        return set_quiet(o);
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
    return !old || is_quiet(old, 0);
}

static bool check(PyObject *o, void *data) {
    return o && place_quiet(o, data);
}

static PyObject *text(const char *source, void *data) {
    const displaced *d = data;
    if (d->key)
        return PyUnicode_FromFormat("no finalizer is behind %R of %s", d->key, source);
    return PyUnicode_FromFormat("no finalizer is behind what %s loses", source);
}

static void drop(void *data) {
    displaced *d = data;
    Py_XDECREF(d->key);
    PyMem_Free(d);
}

static const guard_custom quiet_guard = {"quiet", check, text, NULL, drop};

status deaths_guard(builder *b, source *s, PyObject *o, death_place place, PyObject *key,
                    Py_ssize_t low, Py_ssize_t high) {
    displaced *d = PyMem_Malloc(sizeof(displaced));
    if (!d) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    *d = (displaced){place, Py_XNewRef(key), low, high};
    if (place_quiet(o, d))
        return guard_add_custom(b->w->guards, s, &quiet_guard, d);
    drop(d);
    return world_break_status(b->w, REASON_FINALIZER, "lets go of something in a %s",
                              Py_TYPE(o)->tp_name);
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

// Immutable: nobody notices.
static bool root_known(const root *r) {
    return r->inside && death_known(r->inside) && !is_tensor(r->outside);
}

static status root_dies(builder *b, const root *r) {
    world *w = b->w;
    visiting v = {w, 0};
    if (root_known(r))
        return ST_OK;
    if (quiet_with(&v, r->outside, true))
        return deaths_guard(b, r->source, r->outside, DEATH_ITSELF, NULL, 0, 0);
    const uint64_t *dropped = r->inside ? map_get(&w->born, map_key(r->inside)) : NULL;
    w->again = dropped ? *dropped : 1; // it dies for real, in an instruction that is
    return world_break_status(w, REASON_FINALIZER, "lets go of a %s", Py_TYPE(r->outside)->tp_name);
}

status deaths_of_roots(builder *b) {
    for (uint32_t i = 0; i < b->w->roots.count; i++) {
        const root *r = &b->w->roots.items[i];
        if (!r->stays && !map_get(&b->sources, map_key(r->source)))
            TRY(root_dies(b, r));
    }
    return ST_OK;
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
