// A moment to which a trace can return: later changes are compared with the state at the moment, or
// undone.
//
// A rollback undoes: held-back changes of dicts, cells, slots and context variables, with the notes
// that they were written; held-back calls; changes of lists, dicts, cells and instances that the
// code can reach, twins and inside objects alike; facts about what the program did; the body that
// was opened. Sets, deques and bytearrays are only compared: if one has changed, the trace cannot
// return. An object of an unknown kind counts as changed. Guards, opened objects and clocks stay:
// they make the trace stricter, or have no effect.
#include "src/py/natives.h"

#include "src/world/inner.h"
#include "src/world/world.h"

enum { MOST_OBJECTS = 10000 };

typedef enum kept_kind {
    KEPT_LIST,  // content: a list
    KEPT_DICT,  // a dict
    KEPT_CELL,  // what it holds, or NULL
    KEPT_ATTRS, // dict of the instance's attributes
    KEPT_PARTS, // a tuple; it can only be compared
} kept_kind;

typedef struct kept {
    kept_kind kind;
    PyObject *object, *content; // strong
} kept;

typedef struct kept_names {
    names *names;
    PyObject *pending; // strong: a copy, or NULL
    bool written, filled;
} kept_names;

typedef struct kept_record {
    record *record;
    place content, *slots; // slots: owned; the pending values are the arena's
    uint32_t slot_count;
    bool written, opened;
} kept_record;

struct moment {
    VEC(kept) objects;
    VEC(kept_names) names;    // all there were
    VEC(kept_record) records; // likewise
    VEC(PyObject *) queue;    // borrowed: what is looked at next
    map seen;                 // object → 1
    PyObject *unknown;        // borrowed: something within reach that may change; NULL: nothing
    graph *scope;             // strong
    uint32_t calls;           // held back
    uint64_t writes;
    Py_ssize_t cached;
    world_facts facts;
};

// --- what the code can get at ---

static status reach(moment *m, PyObject *o) {
    if (!o || o == world_absent || map_get(&m->seen, map_key(o)))
        return ST_OK;
    TRY(map_put(&m->seen, map_key(o), 1));
    return vec_push(&m->queue, o);
}

static status keep(moment *m, kept_kind kind, PyObject *o, PyObject *content) {
    if (!content && kind != KEPT_CELL)
        return ST_ERROR;
    kept k = {kind, Py_NewRef(o), content};
    if (vec_push(&m->objects, k) == ST_OK)
        return ST_OK;
    Py_DECREF(o);
    Py_XDECREF(content);
    return ST_ERROR;
}

static int reach_part(PyObject *o, void *data) {
    return reach(data, o) == ST_OK ? 0 : -1;
}

static int add_part(PyObject *o, void *list) {
    return PyList_Append(list, o);
}

// What an object holds, in its own order. New tuple.
static PyObject *parts_of(PyObject *o) {
    if (PyFunction_Check(o)) { // without its globals, which are outside
        const PyFunctionObject *f = (PyFunctionObject *)o;
        PyObject *const all[] = {f->func_code,    f->func_defaults,    f->func_kwdefaults,
                                 f->func_closure, f->func_annotations, f->func_dict};
        PyObject *parts = PyTuple_New(Py_ARRAY_LENGTH(all));
        for (size_t i = 0; parts && i < Py_ARRAY_LENGTH(all); i++)
            PyTuple_SET_ITEM(parts, (Py_ssize_t)i, Py_NewRef(all[i] ? all[i] : Py_None));
        return parts;
    }
    if (PyByteArray_Check(o))
        return Py_BuildValue(
            "(N)", PyBytes_FromStringAndSize(PyByteArray_AS_STRING(o), PyByteArray_GET_SIZE(o)));
    PyObject *list = PyList_New(0), *item, *parts = NULL;
    Py_ssize_t at = 0;
    bool fine = list != NULL;
    while (fine && PyAnySet_Check(o) && raw_set_next(o, &at, &item))
        fine = PyList_Append(list, item) == 0;
    if (fine && !PyAnySet_Check(o))
        fine = Py_TYPE(o)->tp_traverse(o, add_part, list) == 0;
    if (fine)
        parts = PyList_AsTuple(list);
    Py_XDECREF(list);
    return parts;
}

// New dict, in order.
static PyObject *attributes_of(PyObject *o) {
    PyObject *found = raw_attr_names(o), *to = found ? PyDict_New() : NULL, *value;
    for (Py_ssize_t i = 0; to && i < PyList_GET_SIZE(found); i++) {
        PyObject *name = PyList_GET_ITEM(found, i);
        if (raw_attr_get(o, name, &value) != RAW_FOUND || PyDict_SetItem(to, name, value) < 0)
            Py_CLEAR(to);
    }
    Py_XDECREF(found);
    return to;
}

static status keep_dict(moment *m, kept_kind kind, PyObject *o, PyObject *copy) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    TRY(keep(m, kind, o, copy));
    while (PyDict_Next(copy, &at, &key, &value)) {
        TRY(reach(m, key));
        TRY(reach(m, value));
    }
    return ST_OK;
}

static status keep_parts(moment *m, PyObject *o) {
    PyObject *parts = parts_of(o);
    TRY(keep(m, KEPT_PARTS, o, parts));
    return Py_TYPE(parts)->tp_traverse(parts, reach_part, m) == 0 ? ST_OK : ST_ERROR;
}

// Of an instance of a user's class: whether its classes add more than the instance dict.
static bool has_slots(PyTypeObject *type) {
    for (PyTypeObject *t = type; t; t = t->tp_base)
        if (raw_is_python_class(t) && Py_SIZE(t) > 0)
            return true;
    return false;
}

static PyTypeObject *builtin_base(PyTypeObject *type) {
    while (type->tp_base && raw_is_python_class(type))
        type = type->tp_base;
    return type;
}

static status keep_builtin(moment *m, PyObject *o, const PyTypeObject *base) {
    if (base == &PyList_Type) {
        TRY(keep(m, KEPT_LIST, o, PyList_GetSlice(o, 0, PyList_GET_SIZE(o))));
        return Py_TYPE(o)->tp_traverse(o, reach_part, m) == 0 ? ST_OK : ST_ERROR;
    }
    if (base == &PyDict_Type || base == type_defaultdict)
        return keep_dict(m, KEPT_DICT, o, PyDict_Copy(o));
    if (base == &PySet_Type || base == type_deque || base == &PyByteArray_Type ||
        base == &PyODict_Type || base == &PyFunction_Type || base == type_partial)
        return keep_parts(m, o);
    if (base == &PyTuple_Type || base == &PyFrozenSet_Type || base == &PyMethod_Type ||
        base == &PySuper_Type)
        return base->tp_traverse(o, reach_part, m) == 0 ? ST_OK : ST_ERROR;
    if (base != &PyBaseObject_Type && base != &PyLong_Type && base != &PyFloat_Type &&
        base != &PyUnicode_Type && base != &PyBytes_Type)
        m->unknown = o;
    return ST_OK;
}

static status keep_object(const world *w, moment *m, PyObject *o) {
    PyTypeObject *type = Py_TYPE(o), *base = builtin_base(type);
    if (is_lazy(o))
        return reach(m, ((lazy *)o)->inside);
    const standin_kind *kind = standin_kind_of(o);
    if (kind) {
        PyObject *attrs = kind->attrs_of(o);
        return attrs ? reach(m, attrs) : ST_OK;
    }
    const record *r = record_of(w, o);
    bool twin = r && r->inside == o && r->outside != o;
    if (value_immutable(o) || (r && !twin) || PyModule_Check(o) || type == &PyBaseObject_Type ||
        (PyType_Check(o) && !type_is_made(w, (PyTypeObject *)o)))
        return ST_OK;
    if (type == &PyCell_Type) {
        TRY(keep(m, KEPT_CELL, o, Py_XNewRef(PyCell_GET(o))));
        return reach(m, PyCell_GET(o));
    }
    if (type == &PyCFunction_Type)
        return reach(m, PyCFunction_GET_SELF(o));
    if (raw_is_python_class(type) && has_slots(type))
        TRY(keep_parts(m, o));
    if (!twin && raw_is_python_class(type) && raw_has_dict(type))
        TRY(keep_dict(m, KEPT_ATTRS, o, attributes_of(o)));
    return keep_builtin(m, o, base);
}

// --- noting ---

static status note_names(world *w, moment *m) {
    for (uint32_t i = 0; i < w->in.names.count; i++) {
        names *n = w->in.names.items[i];
        PyObject *pending = n->pending ? PyDict_Copy(n->pending) : NULL, *key, *value;
        Py_ssize_t at = 0;
        if ((n->pending && !pending) ||
            vec_push(&m->names, ((kept_names){n, pending, n->written, n->twin != NULL})) != ST_OK) {
            Py_XDECREF(pending);
            return ST_ERROR;
        }
        TRY(reach(m, n->twin));
        while (pending && PyDict_Next(pending, &at, &key, &value))
            TRY(reach(m, value));
    }
    return ST_OK;
}

static status note_record(moment *m, record *r) {
    kept_record k = {.record = r,
                     .content = r->content,
                     .slot_count = r->slots.count,
                     .written = r->written,
                     .opened = r->inside != NULL};
    if (k.slot_count > 0 && !(k.slots = PyMem_New(place, k.slot_count))) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    for (uint32_t i = 0; i < k.slot_count; i++)
        k.slots[i] = r->slots.items[i].place;
    if (vec_push(&m->records, k) != ST_OK) {
        PyMem_Free(k.slots);
        return ST_ERROR;
    }
    for (uint32_t i = 0; i < k.slot_count; i++)
        TRY(reach(m, k.slots[i].pending));
    TRY(reach(m, r->content.pending));
    return r->inside != r->outside ? reach(m, r->inside) : ST_OK;
}

static status note(world *w, moment *m, PyObject *const *roots, size_t count) {
    for (uint32_t i = 0; i < w->in.all.count; i++)
        TRY(note_record(m, w->in.all.items[i]));
    TRY(note_names(w, m));
    for (size_t i = 0; i < count; i++)
        TRY(reach(m, roots[i]));
    for (uint32_t i = 0; i < m->queue.count && !m->unknown; i++) {
        if (i == MOST_OBJECTS)
            m->unknown = m->queue.items[i];
        else
            TRY(keep_object(w, m, m->queue.items[i]));
    }
    m->calls = w->held.calls.count;
    m->writes = w->held.writes;
    m->cached = w->held.cached ? PyList_GET_SIZE(w->held.cached) : 0;
    m->facts = w->facts;
    m->scope = (graph *)Py_NewRef(w->scope);
    return ST_OK;
}

moment *world_mark(world *w, PyObject *const *roots, size_t count) {
    moment *m = PyMem_Calloc(1, sizeof(moment));
    if (!m)
        return (moment *)PyErr_NoMemory();
    if (note(w, m, roots, count) == ST_OK)
        return m;
    moment_free(m);
    return NULL;
}

void moment_free(moment *m) {
    if (!m)
        return;
    for (uint32_t i = 0; i < m->objects.count; i++) {
        Py_DECREF(m->objects.items[i].object);
        Py_XDECREF(m->objects.items[i].content);
    }
    for (uint32_t i = 0; i < m->names.count; i++)
        Py_XDECREF(m->names.items[i].pending);
    for (uint32_t i = 0; i < m->records.count; i++)
        PyMem_Free(m->records.items[i].slots);
    vec_free(&m->objects);
    vec_free(&m->names);
    vec_free(&m->records);
    vec_free(&m->queue);
    map_clear(&m->seen);
    Py_XDECREF(m->scope);
    PyMem_Free(m);
}

// --- comparing ---

// The same keys and values in the same order; what was a lazy may have been opened since.
static bool same_dict(PyObject *now, PyObject *then) {
    raw_cursor at = {0}, before = {0};
    PyObject *key, *value, *old_key, *old_value;
    if (PyDict_GET_SIZE(now) != PyDict_GET_SIZE(then))
        return false;
    while (raw_dict_next(now, &at, &key, &value))
        if (!raw_dict_next(then, &before, &old_key, &old_value) || key != old_key ||
            !twin_unchanged(value, old_value))
            return false;
    return true;
}

static bool same_items(PyObject *now, PyObject *then) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(then);
    bool same = PySequence_Fast_GET_SIZE(now) == count;
    for (Py_ssize_t i = 0; same && i < count; i++)
        same = twin_unchanged(PySequence_Fast_GET_ITEM(now, i), PySequence_Fast_GET_ITEM(then, i));
    return same;
}

// 1, 0, -1.
static int same_parts(const kept *k) {
    PyObject *now = parts_of(k->object);
    if (!now)
        return -1;
    int same = PyByteArray_Check(k->object) ? PyObject_RichCompareBool(now, k->content, Py_EQ)
                                            : same_items(now, k->content);
    Py_DECREF(now);
    return same;
}

static int same_attributes(const kept *k) {
    PyObject *now = attributes_of(k->object);
    int same = now ? same_dict(now, k->content) : -1;
    Py_XDECREF(now);
    return same;
}

static int same_object(const kept *k) {
    switch (k->kind) {
    case KEPT_LIST:
        return same_items(k->object, k->content);
    case KEPT_DICT:
        return same_dict(k->object, k->content);
    case KEPT_CELL:
        return PyCell_GET(k->object) == k->content ||
               (PyCell_GET(k->object) && twin_unchanged(PyCell_GET(k->object), k->content));
    case KEPT_ATTRS:
        return same_attributes(k);
    case KEPT_PARTS:
        return same_parts(k);
    }
    Py_UNREACHABLE();
}

// What a place held then, or what it was found to hold since.
static bool same_place(const place *now, const place *then) {
    PyObject *pending = then ? then->pending : NULL;
    if (!now->pending || now->pending == pending)
        return now->pending == pending;
    if (pending)
        return pending != world_absent && twin_unchanged(now->pending, pending);
    return now->looked &&
           (now->empty ? now->pending == world_absent : twin_unchanged(now->pending, now->initial));
}

static bool same_record(const record *r, const kept_record *k) {
    if (!same_place(&r->content, k ? &k->content : NULL))
        return false;
    for (uint32_t i = 0; i < r->slots.count; i++)
        if (!same_place(&r->slots.items[i].place, k && i < k->slot_count ? &k->slots[i] : NULL))
            return false;
    return true;
}

// The twin of a dict that was filled since, as it would be had nothing been written. New dict.
static PyObject *twin_then(const names *n, const kept_names *k) {
    PyObject *twin = PyDict_Copy(n->initial), *key, *value;
    Py_ssize_t at = 0;
    while (twin && k && k->pending && PyDict_Next(k->pending, &at, &key, &value)) {
        bool gone = value == world_absent;
        int there = gone ? PyDict_Contains(twin, key) : 1;
        if (there < 0 ||
            (there && (gone ? PyDict_DelItem(twin, key) : PyDict_SetItem(twin, key, value)) < 0))
            Py_CLEAR(twin);
    }
    return twin;
}

// One key of a dict that is read by key: what was pending then, or what was found there.
static bool same_entry(const names *n, const kept_names *k, PyObject *key, PyObject *value) {
    PyObject *then = k && k->pending ? PyDict_GetItemWithError(k->pending, key) : NULL;
    then = then ? then : PyDict_GetItemWithError(n->known, key);
    if (!then || then == world_absent || value == world_absent)
        return then == value;
    return twin_unchanged(value, then);
}

static int same_names(const names *n, const kept_names *k) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (n->twin) {
        if (k && k->filled)
            return 1; // its twin is one of the objects
        PyObject *twin = twin_then(n, k);
        int same = twin ? same_dict(n->twin, twin) : -1;
        Py_XDECREF(twin);
        return same;
    }
    while (n->pending && PyDict_Next(n->pending, &at, &key, &value))
        if (!same_entry(n, k, key, value))
            return 0;
    at = 0; // what was pending, and is no more
    while (k && k->pending && PyDict_Next(k->pending, &at, &key, &value))
        if (!PyDict_GetItemWithError(n->pending, key) && !same_entry(n, NULL, key, value))
            return 0;
    return 1;
}

static const kept_record *record_then(const moment *m, uint32_t i) {
    return i < m->records.count ? &m->records.items[i] : NULL;
}

static const kept_names *names_then(const moment *m, uint32_t i) {
    return i < m->names.count ? &m->names.items[i] : NULL;
}

int world_changed(const world *w, const moment *m) {
    int same = !m->unknown && w->held.calls.count == m->calls &&
               (w->held.cached ? PyList_GET_SIZE(w->held.cached) : 0) == m->cached;
    for (uint32_t i = 0; same > 0 && i < m->objects.count; i++)
        same = same_object(&m->objects.items[i]);
    for (uint32_t i = 0; same > 0 && i < w->in.names.count; i++)
        same = same_names(w->in.names.items[i], names_then(m, i));
    for (uint32_t i = 0; same > 0 && i < w->in.all.count; i++) {
        const kept_record *k = record_then(m, i);
        same = same_record(w->in.all.items[i], k) &&
               ((k && k->opened) || !twin_written(w->in.all.items[i]));
    }
    return same < 0 ? -1 : !same;
}

const char *moment_unknown(const moment *m) {
    return m->unknown ? Py_TYPE(m->unknown)->tp_name : NULL;
}

// --- the way back ---

// A dict's keys are put in again: nobody's code may run for that.
static bool has_plain_keys(PyObject *dict) {
    PyObject *key;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, NULL))
        if (!raw_key_simple(key))
            return false;
    return true;
}

// Whether an object whose content is another one now can get back what it had. 1, 0, -1.
static int can_restore(const kept *k) {
    if (k->kind == KEPT_PARTS)
        return same_parts(k);
    return k->kind != KEPT_DICT || same_dict(k->object, k->content) ||
           (has_plain_keys(k->content) && has_plain_keys(k->object));
}

static bool can_refill(const names *n, const kept_names *k) {
    bool filled = n->twin && !(k && k->filled);
    return !filled || (!PyODict_Check(n->twin) && has_plain_keys(n->twin));
}

static int can_return(const world *w, const moment *m) {
    int can = !m->unknown;
    for (uint32_t i = 0; can > 0 && i < m->objects.count; i++)
        can = can_restore(&m->objects.items[i]);
    for (uint32_t i = 0; can > 0 && i < w->in.names.count; i++)
        can = can_refill(w->in.names.items[i], names_then(m, i));
    for (uint32_t i = 0; can > 0 && i < w->in.all.count; i++) {
        const kept_record *k = record_then(m, i);
        const record *r = w->in.all.items[i];
        bool placed = r->kind == RECORD_LIST || (k && k->opened);
        can = placed || !twin_written(r);
    }
    return can;
}

static int refill(PyObject *dict, PyObject *content) {
    PyDict_Clear(dict);
    return PyDict_Update(dict, content);
}

static int restore_attributes(const kept *k) {
    PyObject *found = raw_attr_names(k->object), *name, *value;
    Py_ssize_t at = 0;
    int failed = found ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(found); i++)
        failed = raw_attr_set(k->object, PyList_GET_ITEM(found, i), NULL);
    while (!failed && PyDict_Next(k->content, &at, &name, &value))
        failed = raw_attr_set(k->object, name, value);
    Py_XDECREF(found);
    return failed;
}

static int restore_object(const kept *k) {
    int same = same_object(k);
    if (same != 0)
        return same < 0 ? -1 : 0;
    switch (k->kind) {
    case KEPT_LIST:
        return PyList_SetSlice(k->object, 0, PyList_GET_SIZE(k->object), k->content);
    case KEPT_DICT:
        return refill(k->object, k->content);
    case KEPT_CELL:
        return PyCell_Set(k->object, k->content);
    case KEPT_ATTRS:
        return restore_attributes(k);
    case KEPT_PARTS:
        break;
    }
    Py_UNREACHABLE();
}

static int restore_names(names *n, const kept_names *k) {
    n->written = k && k->written;
    if (n->pending)
        PyDict_Clear(n->pending);
    if (!n->twin)
        return k && k->pending ? PyDict_Update(n->pending, k->pending) : 0;
    if (k && k->filled)
        return 0;
    PyObject *twin = twin_then(n, k);
    int failed = twin ? (same_dict(n->twin, twin) ? 0 : refill(n->twin, twin)) : -1;
    Py_XDECREF(twin);
    return failed;
}

// The twin of a list that was opened since.
static int restore_list(record *r) {
    PyObject *items = PyList_New(r->count);
    for (Py_ssize_t i = 0; items && i < r->count; i++)
        PyList_SET_ITEM(items, i, Py_NewRef(r->initial[i]));
    int failed = items ? PyList_SetSlice(r->inside, 0, PyList_GET_SIZE(r->inside), items) : -1;
    Py_XDECREF(items);
    return failed;
}

static int restore_record(record *r, const kept_record *k) {
    r->written = k && k->written;
    r->content.pending = k ? k->content.pending : NULL;
    for (uint32_t i = 0; i < r->slots.count; i++)
        r->slots.items[i].place.pending = k && i < k->slot_count ? k->slots[i].pending : NULL;
    return r->kind == RECORD_LIST && !(k && k->opened) && twin_written(r) ? restore_list(r) : 0;
}

// That objects must be distinct, and that none is being shown, is guarded by now or will be.
static void restore_facts(world *w, const moment *m) {
    bool distinct = w->facts.identity_mattered, shows = w->facts.shows;
    w->facts = m->facts;
    w->facts.identity_mattered = distinct;
    w->facts.shows = shows;
}

int world_rollback(world *w, const moment *m) {
    int can = can_return(w, m);
    if (can <= 0)
        return can;
    int failed = 0;
    for (uint32_t i = 0; !failed && i < m->objects.count; i++)
        failed = restore_object(&m->objects.items[i]);
    for (uint32_t i = 0; !failed && i < w->in.names.count; i++)
        failed = restore_names(w->in.names.items[i], names_then(m, i));
    for (uint32_t i = 0; !failed && i < w->in.all.count; i++)
        failed = restore_record(w->in.all.items[i], record_then(m, i));
    if (!failed && w->held.cached)
        failed = PyList_SetSlice(w->held.cached, m->cached, PY_SSIZE_T_MAX, NULL);
    if (failed) { // half of it is undone
        world_break(w, REASON_RESOURCES, "MemoryError");
        return -1;
    }
    w->held.calls.count = m->calls; // what they would have made nobody has
    w->held.writes = m->writes;
    restore_facts(w, m);
    Py_SETREF(w->scope, (graph *)Py_NewRef(m->scope));
    world_touch(w);
    return 1;
}
