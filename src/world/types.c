// Looks names up along the MRO of classes, through the door. A class that Python code can change is
// met as the type of an outside object, or comes through the door itself. Each name that is looked
// up in it is guarded once.
#include "src/world/inner.h"
#include "src/world/world.h"

PyTypeObject *type_deque, *type_defaultdict, *type_partial, *type_enum, *type_typing;

static int import_type(PyTypeObject **type, const char *module, const char *name) {
    if (!*type)
        *type = (PyTypeObject *)py_import(module, name);
    return *type ? 0 : -1;
}

int types_setup(void) {
    if (import_type(&type_deque, "collections", "deque") < 0 ||
        import_type(&type_defaultdict, "collections", "defaultdict") < 0 ||
        import_type(&type_partial, "functools", "partial") < 0 ||
        import_type(&type_enum, "enum", "EnumMeta") < 0)
        return -1;
    return import_type(&type_typing, "typing", "_Final");
}

// --- where a class is found ---

status type_met(world *w, source *s, PyTypeObject *type) {
    if (!raw_is_python_class(type) || record_of(w, (PyObject *)type))
        return ST_OK;
    source *at = guard_source(w->guards, SOURCE_TYPE, s, NULL, 0);
    if (!at)
        return ST_ERROR;
    record *r = record_new(w, RECORD_OBJECT, at, (PyObject *)type, (PyObject *)type);
    if (!r)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    r->pinned = true;
    return ST_OK;
}

// Through an outside object of that class whose type did not matter so far: a class, for its
// metaclass.
static status meet_by_instance(world *w, PyTypeObject *type) {
    for (uint32_t i = 0; i < w->in.all.count; i++) {
        record *r = w->in.all.items[i];
        if (Py_TYPE(r->outside) == type)
            return door_guard_type(w, r->source, r->outside);
    }
    return ST_OK;
}

// Through the MRO of a class that is known.
static status meet_as_base(world *w, PyTypeObject *type) {
    for (uint32_t i = 0; i < w->in.all.count; i++) {
        record *r = w->in.all.items[i];
        if (!PyType_Check(r->outside) || !PyType_IsSubtype((PyTypeObject *)r->outside, type))
            continue;
        PyObject *mro = ((PyTypeObject *)r->outside)->tp_mro;
        Py_ssize_t at = 0;
        while (at < PyTuple_GET_SIZE(mro) && PyTuple_GET_ITEM(mro, at) != (PyObject *)type)
            at++;
        if (at == PyTuple_GET_SIZE(mro))
            continue;
        TRY(type_guard_mro(w, (PyTypeObject *)r->outside));
        source *s = guard_source(w->guards, SOURCE_TYPE_BASE, r->source, NULL, at);
        record *made =
            s ? record_new(w, RECORD_OBJECT, s, (PyObject *)type, (PyObject *)type) : NULL;
        if (!made)
            return w->stop.broken ? ST_BREAK : ST_ERROR;
        made->pinned = true;
        return ST_OK;
    }
    return ST_OK;
}

// The class of tensors that operations make is one object for ever, wherever the program has it from.
static status meet_as_result(world *w, PyTypeObject *type) {
    if (!world_tensors || !world_tensors->gives(type))
        return ST_OK;
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, (PyObject *)type, 0);
    record *made = s ? record_new(w, RECORD_OBJECT, s, (PyObject *)type, (PyObject *)type) : NULL;
    if (!made)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    made->pinned = true;
    return ST_OK;
}

source *type_source(world *w, PyTypeObject *type) {
    if (!raw_is_python_class(type))
        return NULL;
    record *r = record_of(w, (PyObject *)type);
    if (!r) {
        if (meet_by_instance(w, type) != ST_OK)
            return NULL;
        r = record_of(w, (PyObject *)type);
    }
    if (!r) {
        if (meet_as_base(w, type) != ST_OK)
            return NULL;
        r = record_of(w, (PyObject *)type);
    }
    if (!r) {
        if (meet_as_result(w, type) != ST_OK)
            return NULL;
        r = record_of(w, (PyObject *)type);
    }
    if (!r) {
        world_break(w, REASON_ATTRIBUTE, "class %s did not pass the door", type->tp_name);
        return NULL;
    }
    return r->source;
}

status type_guard_mro(world *w, PyTypeObject *type) {
    if (!raw_is_python_class(type) || type_is_made(w, type))
        return ST_OK;
    source *s = type_source(w, type);
    if (!s)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    return guard_add(w->guards, GUARD_MRO, s, NULL, type->tp_mro, 0);
}

// --- lookup ---

typedef struct lookup {
    PyTypeObject *type;
    PyObject *name; // kept by the arena
    PyObject *raw, *inside;
    struct lookup *next; // another pair with the same key in the map
} lookup;

static uint64_t lookup_key(PyTypeObject *type, PyObject *name) {
    uint64_t a = map_key(type), b = map_key(name);
    uint64_t key = (a >> 4) * UINT64_C(0x9E3779B97F4A7C15) ^ (b >> 3);
    return key == MAP_NO_KEY ? 0 : key;
}

static lookup *lookup_known(const world *w, PyTypeObject *type, PyObject *name) {
    uint64_t *first = map_get(&w->in.lookups, lookup_key(type, name));
    lookup *l = first ? (lookup *)(uintptr_t)*first : NULL;
    while (l && (l->type != type || l->name != name))
        l = l->next;
    return l;
}

static lookup *lookup_note(world *w, PyTypeObject *type, PyObject *name, PyObject *raw,
                           PyObject *inside) {
    uint64_t key = lookup_key(type, name);
    uint64_t *first = map_get(&w->in.lookups, key);
    lookup *l = arena_new(&w->arena, lookup);
    if (!l || !world_keep(w, Py_NewRef(name)) || !world_keep(w, Py_NewRef(type)))
        return NULL;
    *l = (lookup){type, name, raw, inside, first ? (lookup *)(uintptr_t)*first : NULL};
    return map_put(&w->in.lookups, key, map_key(l)) == ST_OK ? l : NULL;
}

static bool is_dunder(PyObject *name) {
    Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    return length > 4 && PyUnicode_READ_CHAR(name, 0) == '_' &&
           PyUnicode_READ_CHAR(name, 1) == '_' && PyUnicode_READ_CHAR(name, length - 1) == '_' &&
           PyUnicode_READ_CHAR(name, length - 2) == '_';
}

// C descriptors say the same for ever and need no record.
static bool is_c_descriptor(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return t == &PyMethodDescr_Type || t == &PyWrapperDescr_Type || t == &PyGetSetDescr_Type ||
           t == &PyMemberDescr_Type || t == &PyClassMethodDescr_Type;
}

// Plain data of a class: the value may change from call to call, but not its type, on which it
// depends whether it is a descriptor.
static PyObject *data_of_class(world *w, source *at, PyObject *raw) {
    PyObject *loaded = door_load(w, at, raw);
    if (!loaded)
        return NULL;
    Py_DECREF(loaded); // the arena has it
    return door_type(w, loaded) ? loaded : NULL;
}

// Descriptors, and all that native code finds by itself, are guarded to be the very object.
static PyObject *bring_found(world *w, source *type, PyObject *name, PyObject *raw) {
    bool descriptor = Py_TYPE(raw)->tp_descr_get || Py_TYPE(raw)->tp_descr_set;
    bool strict = descriptor || is_dunder(name);
    if (strict && guard_add_lookup(w->guards, type, name, raw) != ST_OK)
        return NULL;
    if (strict && (is_c_descriptor(raw) || raw == Py_None))
        return raw;
    source *at = guard_source(w->guards, SOURCE_TYPE_ATTR, type, name, 0);
    if (!at)
        return NULL;
    return descriptor ? door_bring_pinned(w, at, raw) : data_of_class(w, at, raw);
}

// What the class's own held-back changes say: 1 and *value (NULL: deleted, and no base has it), 0
// if they say nothing about this name, -1.
static int held_back(world *w, PyTypeObject *type, PyObject *name, PyObject **value) {
    PyObject *mro = type->tp_mro;
    bool deleted = false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *base = PyTuple_GET_ITEM(mro, i), *raw;
        record *r = record_of(w, base);
        PyObject *pending = r && r->names ? r->names->pending : NULL;
        *value = pending ? PyDict_GetItemWithError(pending, name) : NULL;
        if (*value == world_absent) {
            deleted = true;
            continue;
        }
        if (*value)
            return 1;
        if (raw_dict_get(raw_type_dict((PyTypeObject *)base), name, &raw) == RAW_ABSENT)
            continue;
        if (!deleted)
            return 0;
        world_break(w, REASON_CLASS_WRITE, "%U uncovers an attribute of a base", name);
        return -1;
    }
    *value = NULL;
    return deleted;
}

// What a C class has is the same in each call and needs no guard; but an outside place can hold it,
// too (datetime.timezone.utc), and that is asked by value_could_be_outside.
static PyObject *found_on_c_class(world *w, PyObject *raw) {
    if (!raw || Py_TYPE(raw)->tp_descr_get || value_could_be_outside(w, raw))
        return raw;
    return map_put(&w->in.fixed, map_key(raw), 1) == ST_OK ? raw : NULL;
}

status type_fix_namespace(world *w, PyTypeObject *type) {
    raw_cursor at = {0};
    PyObject *key, *value;
    while (raw_dict_next(raw_type_dict(type), &at, &key, &value))
        if (!found_on_c_class(w, value))
            return ST_ERROR;
    return ST_OK;
}

int type_has_own(world *w, PyTypeObject *class, PyObject *name) {
    PyObject *value = NULL;
    if (!raw_is_python_class(class) || type_is_made(w, class))
        return raw_dict_get(raw_type_dict(class), name, &value) == RAW_FOUND;
    record *r = type_source(w, class) ? record_of(w, (PyObject *)class) : NULL;
    names *own = r ? names_of_object(w, r) : NULL;
    value = own ? names_get(w, own, name) : NULL;
    if (!value)
        return w->stop.broken || PyErr_Occurred() ? -1 : 0;
    Py_DECREF(value);
    return 1;
}

static PyObject *look_up(world *w, PyTypeObject *type, PyObject *name, PyObject **raw) {
    switch (raw_type_get(type, name, raw)) {
    case RAW_UNSURE:
        return world_break(w, REASON_ATTRIBUTE, "%U of class %s", name, type->tp_name);
    case RAW_ABSENT:
        *raw = NULL;
        break;
    case RAW_FOUND:
        break;
    }
    if (!raw_is_python_class(type))
        return found_on_c_class(w, *raw);
    source *s = type_source(w, type);
    if (!s)
        return NULL;
    if (!*raw) {
        guard_add_lookup(w->guards, s, name, NULL);
        return NULL;
    }
    return bring_found(w, s, name, *raw);
}

static PyObject *type_lookup_one(world *w, PyTypeObject *type, PyObject *name, PyObject **raw);

// Whether the rest of an MRO is the MRO of its first class: a lookup in that class is enough.
static bool is_own_mro(PyObject *mro, Py_ssize_t from) {
    PyObject *own = ((PyTypeObject *)PyTuple_GET_ITEM(mro, from))->tp_mro;
    Py_ssize_t n = PyTuple_GET_SIZE(mro) - from;
    bool same = PyTuple_GET_SIZE(own) == n;
    for (Py_ssize_t i = 0; same && i < n; i++)
        same = PyTuple_GET_ITEM(own, i) == PyTuple_GET_ITEM(mro, from + i);
    return same;
}

// The class itself needs no guard, but its bases from outside do.
static PyObject *look_up_made(world *w, PyTypeObject *type, PyObject *name, PyObject **raw) {
    PyObject *mro = type->tp_mro;
    *raw = NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        bool made = type_is_made(w, base);
        if (!made && is_own_mro(mro, i))
            return type_lookup_one(w, base, name, raw);
        int own = type_has_own(w, base, name);
        if (own == 0)
            continue;
        if (own < 0 || !made)
            return own < 0 ? NULL : type_lookup_one(w, base, name, raw);
        raw_dict_get(raw_type_dict(base), name, raw);
        return *raw;
    }
    return NULL;
}

static PyObject *type_lookup_one(world *w, PyTypeObject *type, PyObject *name, PyObject **raw) {
    if (w->facts.class_written) {
        PyObject *value;
        int held = held_back(w, type, name, &value);
        if (held != 0)
            return held < 0 ? NULL : (*raw = value);
    }
    if (type_is_made(w, type)) // it may change at any time
        return look_up_made(w, type, name, raw);
    lookup *known = lookup_known(w, type, name);
    if (!known) {
        PyObject *found = NULL, *inside = look_up(w, type, name, &found);
        if (!inside && (found || w->stop.broken || PyErr_Occurred()))
            return NULL;
        known = lookup_note(w, type, name, found, inside);
        if (!known)
            return NULL;
    }
    *raw = known->raw;
    return known->inside;
}

// One of the equal names. The program's own str is not interned for a lookup: CPython does not do
// that, and sys.intern() would tell.
static PyObject *one_name(world *w, PyObject *name) {
    if (PyUnicode_CHECK_INTERNED(name))
        return name;
    if (!w->in.computed && !(w->in.computed = world_keep(w, PyDict_New())))
        return NULL;
    return PyDict_SetDefault(w->in.computed, name, name);
}

PyObject *type_lookup(world *w, PyTypeObject *type, PyObject *name, PyObject **raw) {
    PyObject *ignored;
    if (!PyUnicode_CheckExact(name))
        return world_break(w, REASON_ATTRIBUTE, "a name that is no plain str");
    name = one_name(w, name);
    return name ? type_lookup_one(w, type, name, raw ? raw : &ignored) : NULL;
}
