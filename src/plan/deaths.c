// What a write takes out may die of it. In plain Python a finalizer or a weak reference's callback
// runs at that moment, and the rest of the function sees what it did; here the write comes last. So
// it is guarded that what is displaced dies without a sound.
#include "src/plan/build.h"

#include <internal/pycore_object.h>

enum { DEEP = 8 };

static bool is_quiet(PyObject *o, int depth);

typedef struct visiting {
    int depth;
} visiting;

static int visit(PyObject *o, void *data) {
    return !is_quiet(o, ((visiting *)data)->depth + 1);
}

static bool has_weak_references(PyObject *o) {
    return Py_TYPE(o)->tp_weaklistoffset != 0 && !PyType_Check(o) &&
           *_PyObject_GET_WEAKREFS_LISTPTR(o) != NULL;
}

static bool is_tensor(PyObject *o) {
    return world_tensors && world_tensors->is_tensor(o);
}

// Whether nobody notices if one reference to this goes. What has others stays alive; parts die with
// the whole if it has their only reference.
static bool is_quiet(PyObject *o, int depth) {
    PyTypeObject *t = Py_TYPE(o);
    if (t->tp_finalize || t->tp_del)
        return PyGen_CheckExact(o) ? ((PyGenObject *)o)->gi_frame_state >= FRAME_COMPLETED : false;
    if (is_tensor(o)) // torch itself has weak references to tensors, and they are quiet
        return true;
    if (has_weak_references(o) && Py_REFCNT(o) == 1)
        return false;
    if (Py_REFCNT(o) > 1 || !PyObject_IS_GC(o) || !t->tp_traverse)
        return true;
    visiting v = {depth};
    return depth < DEEP && t->tp_traverse(o, visit, &v) == 0;
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
