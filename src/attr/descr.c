// Turns an object found on a type into the attribute that it gives an object, or sets the
// attribute. Python code is called through call_any; this file does C descriptors itself, one
// function for each kind.
#include "src/py/classes.h"

#include "src/attr/descr.h"
#include "src/attr/later.h"
#include "src/attr/words.h"

// --- what the rooms around here share ---

PyObject *class_value(world *w, PyTypeObject *type) {
    bool known = !raw_is_python_class(type) || type_is_made(w, type) || type_source(w, type);
    return known ? (PyObject *)type : NULL;
}

record *record_itself(const world *w, PyObject *o) {
    record *r = record_of(w, o);
    return r && r->outside == o ? r : NULL;
}

PyObject *load_field(world *w, record *r, source_kind kind, PyObject *key, Py_ssize_t index) {
    PyObject *kept = NULL, *lazy = NULL;
    PyObject *object = source_read(kind, r->outside, key, index, &kept);
    source *s = object ? guard_source(w->guards, kind, r->source, key, index) : NULL;
    if (s)
        lazy = door_load(w, s, object);
    else if (!object)
        world_break(w, REASON_ATTRIBUTE, "a field of %s", Py_TYPE(r->outside)->tp_name);
    Py_XDECREF(kept);
    return lazy;
}

// --- special methods ---

status way_find(world *w, PyTypeObject *type, PyObject *name, void *slot, way *s) {
    *s = (way){0};
    if (!raw_is_python_class(type)) {
        s->native = slot;
        return ST_OK;
    }
    s->found = type_lookup(w, type, name, &s->raw);
    if (!s->found)
        return PyErr_Occurred() ? failed(w) : ST_OK;
    if (!Py_IS_TYPE(s->raw, &PyWrapperDescr_Type))
        return ST_OK;
    if (!PyType_IsSubtype(type, PyDescr_TYPE(s->raw)))
        return world_break_status(w, REASON_ATTRIBUTE, "%U of another type", name);
    s->native = ((PyWrapperDescrObject *)s->raw)->d_wrapped;
    s->found = NULL;
    return ST_OK;
}

PyObject *way_call(world *w, const way *s, PyObject *const *args, size_t count) {
    if (PyFunction_Check(s->raw))
        return call_with(w, s->found, args, count);
    descr d;
    if (descr_of(w, s->found, s->raw, &d) != ST_OK)
        return NULL;
    PyObject *bound = descr_get(w, &d, args[0], door_type(w, args[0]));
    PyObject *result = bound ? call_with(w, bound, args + 1, count - 1) : NULL;
    Py_XDECREF(bound);
    return result;
}

// --- finding ---

static status has_special(world *w, PyTypeObject *type, PyObject *name, bool *has) {
    way s;
    TRY(way_find(w, type, name, NULL, &s));
    *has = s.native || s.found;
    return ST_OK;
}

status descr_of(world *w, PyObject *found, PyObject *raw, descr *d) {
    if (is_lazy(raw)) // a held-back change of a class
        raw = ((lazy *)raw)->outside;
    PyTypeObject *kind = Py_TYPE(raw);
    *d = (descr){.found = found, .raw = raw};
    if (!raw_is_python_class(kind)) {
        d->gets = kind->tp_descr_get != NULL;
        d->data = kind->tp_descr_set != NULL;
        return ST_OK;
    }
    if (world_tensors && world_tensors->is_tensor(raw))
        return ST_OK;
    if (!door_type(w, found))
        return failed(w);
    TRY(has_special(w, kind, word.get, &d->gets));
    TRY(has_special(w, kind, word.set, &d->data));
    return d->data ? ST_OK : has_special(w, kind, word.delete_, &d->data);
}

status descr_find(world *w, PyTypeObject *type, PyObject *name, descr *d) {
    PyObject *raw = NULL;
    *d = (descr){0};
    PyObject *found = type_lookup(w, type, name, &raw);
    if (!found)
        return PyErr_Occurred() ? failed(w) : ST_OK;
    return descr_of(w, found, raw, d);
}

// --- getting: one function a kind of C descriptor ---

static PyObject *get_itself(world *w, const descr *d, PyObject *o, PyTypeObject *type) {
    (void)w, (void)o, (void)type;
    return Py_NewRef(d->found);
}

static PyObject *get_function(world *w, const descr *d, PyObject *o, PyTypeObject *type) {
    (void)w, (void)type;
    return o ? PyMethod_New(d->found, o) : Py_NewRef(d->found);
}

// A builtin method: its self must be whole.
static PyObject *get_native(world *w, const descr *d, PyObject *o, PyTypeObject *type) {
    if (o && !(o = door_open(w, o)))
        return NULL;
    return Py_TYPE(d->raw)->tp_descr_get(d->raw, o, (PyObject *)type);
}

static PyObject *get_native_class(world *w, const descr *d, PyObject *o, PyTypeObject *type) {
    (void)o;
    if (!class_value(w, type))
        return NULL;
    return Py_TYPE(d->raw)->tp_descr_get(d->raw, NULL, (PyObject *)type);
}

PyObject *descr_held(world *w, const descr *d, source_kind kind, PyObject *name) {
    record *r = record_itself(w, d->raw);
    PyObject *field = PyObject_GenericGetAttr(d->raw, name);
    if (!field || !r || field == Py_None) {
        if (field == Py_None)
            Py_CLEAR(field);
        return field;
    }
    Py_DECREF(field);
    return load_field(w, r, kind, NULL, 0);
}

static PyObject *get_property(world *w, const descr *d, PyObject *o, PyTypeObject *type) {
    if (!o || o == Py_None)
        return Py_NewRef(d->found);
    PyObject *getter = descr_held(w, d, SOURCE_PROPERTY_GET, word.fget);
    if (!getter) // CPython's own words, and no code to run
        return PyErr_Occurred() ? NULL : PyProperty_Type.tp_descr_get(d->raw, o, (PyObject *)type);
    PyObject *result = call_with(w, getter, &o, 1);
    Py_DECREF(getter);
    return result;
}

static PyObject *get_static(world *w, const descr *d, PyObject *o, PyTypeObject *type) {
    (void)o, (void)type;
    PyObject *callable = descr_held(w, d, SOURCE_WRAPPED, word.func);
    if (!callable && !PyErr_Occurred())
        Py_RETURN_NONE;
    return callable;
}

static PyObject *get_class(world *w, const descr *d, PyObject *o, PyTypeObject *type) {
    (void)o;
    PyObject *class = class_value(w, type);
    PyObject *callable = class ? get_static(w, d, NULL, NULL) : NULL;
    PyObject *opened = callable ? door_open(w, callable) : NULL;
    PyObject *bound = NULL;
    descr inner;
    if (!opened)
        ;
    else if (PyFunction_Check(opened) || !PY_CLASSMETHOD_CHAINS)
        bound = PyMethod_New(opened, class);
    else if (descr_of(w, opened, opened, &inner) == ST_OK)
        bound = inner.gets ? descr_get(w, &inner, class, type) : PyMethod_New(opened, class);
    Py_XDECREF(callable);
    return bound;
}

// What pybind11 wraps its functions in. It is known, and never wraps another.
static PyObject *get_instance_method(world *w, const descr *d, PyObject *o, PyTypeObject *type) {
    (void)type;
    PyObject *function = PyInstanceMethod_GET_FUNCTION(d->raw);
    if (!PyCFunction_Check(function)) {
        source *s = guard_source(w->guards, SOURCE_FIXED, NULL, function, 0);
        function = s ? door_bring(w, s, function) : NULL;
    }
    if (!function)
        return NULL;
    return o ? PyMethod_New(function, o) : Py_NewRef(function);
}

static PyObject *get_field(world *w, const descr *d, PyObject *o, PyTypeObject *type) {
    return o ? field_get(w, d, o, type) : Py_NewRef(d->found);
}

typedef struct getter_row {
    PyTypeObject *kind;
    PyObject *(*get)(world *w, const descr *d, PyObject *o, PyTypeObject *type);
} getter_row;

static const getter_row getters[] = {
    {&PyFunction_Type, get_function},
    {&PyMethodDescr_Type, get_native},
    {&PyWrapperDescr_Type, get_native},
    {&PyProperty_Type, get_property},
    {&PyMemberDescr_Type, get_field},
    {&PyGetSetDescr_Type, get_field},
    {&PyStaticMethod_Type, get_static},
    {&PyClassMethod_Type, get_class},
    {&PyClassMethodDescr_Type, get_native_class},
    {&PyMethod_Type, get_itself}, // already bound, and never bound again
    {&PyInstanceMethod_Type, get_instance_method},
};

static PyObject *get_by_native(world *w, const descr *d, void *native, PyObject *o,
                               PyTypeObject *type) {
    for (size_t i = 0; i < Py_ARRAY_LENGTH(getters); i++)
        if (native == (void *)getters[i].kind->tp_descr_get)
            return getters[i].get(w, d, o, type);
    if (native == (void *)word.cached->tp_descr_get || Py_TYPE(d->raw) == call_compiled_type)
        return get_function(w, d, o, type);
    if (native == (void *)word.tuple_getter->tp_descr_get)
        return get_native(w, d, o, type);
    if (native == (void *)word.partial->tp_descr_get && !o) // on an instance it warns (3.13)
        return Py_NewRef(d->found);
    return world_break(w, REASON_ATTRIBUTE, "a descriptor of type %s", Py_TYPE(d->raw)->tp_name);
}

static PyObject *get_by_code(world *w, const descr *d, const way *get, PyObject *o,
                             PyTypeObject *type) {
    PyObject *class = class_value(w, type);
    PyObject *args[] = {d->found, o ? o : Py_None, class};
    return class ? call_with(w, get->found, args, 3) : NULL; // never bound (slot_tp_descr_get)
}

PyObject *descr_get(world *w, const descr *d, PyObject *o, PyTypeObject *type) {
    PyTypeObject *kind = Py_TYPE(d->raw);
    if (!d->gets)
        return Py_NewRef(d->found);
    if (kind == &PyFunction_Type)
        return get_function(w, d, o, type);
    way get;
    if (way_find(w, kind, word.get, kind->tp_descr_get, &get) != ST_OK)
        return NULL;
    return get.native ? get_by_native(w, d, get.native, o, type) : get_by_code(w, d, &get, o, type);
}

// --- setting ---

static int set_property(world *w, const descr *d, PyObject *o, PyObject *value) {
    PyObject *setter = value ? descr_held(w, d, SOURCE_PROPERTY_SET, word.fset)
                             : descr_held(w, d, SOURCE_PROPERTY_DEL, word.fdel);
    if (!setter)
        return PyErr_Occurred() ? -1 : PyProperty_Type.tp_descr_set(d->raw, o, value);
    PyObject *args[] = {o, value};
    PyObject *result = call_with(w, setter, args, value ? 2 : 1);
    Py_DECREF(setter);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static int set_by_code(world *w, const descr *d, const way *set, PyObject *o, PyObject *value) {
    PyObject *args[] = {d->found, o, value};
    PyObject *result = way_call(w, set, args, value ? 3 : 2);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

int descr_set(world *w, const descr *d, PyObject *o, PyObject *value) {
    PyTypeObject *kind = Py_TYPE(d->raw);
    PyObject *name = value ? word.set : word.delete_;
    way set;
    if (way_find(w, kind, name, kind->tp_descr_set, &set) != ST_OK)
        return -1;
    if (set.found)
        return set_by_code(w, d, &set, o, value);
    if (!set.native) { // only the other one of the two is there (slot_tp_descr_set)
        PyErr_SetObject(PyExc_AttributeError, name);
        return -1;
    }
    if (set.native == (void *)PyProperty_Type.tp_descr_set)
        return set_property(w, d, o, value);
    if (set.native == (void *)PyMemberDescr_Type.tp_descr_set ||
        set.native == (void *)PyGetSetDescr_Type.tp_descr_set)
        return field_set(w, d, o, value);
    world_break(w, REASON_ATTRIBUTE, "writes through a descriptor of type %s", kind->tp_name);
    return -1;
}
