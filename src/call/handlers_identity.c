// Handlers of what tells one object from another: addresses, id(), hashes, weak references.
#include "src/attr/attr.h"
#include "src/attr/descr.h"

#include "src/call/call.h"
#include "src/call/handlers.h"
#include "src/call/native.h"
#include "src/call/special.h"

// --- addresses ---

HANDLER(address) {
    return world_break(w, REASON_ADDRESS, "%s", c->rule->path);
}

// Whether a guard that asks for this very object is worth it: tensors come as new ones in each
// call.
static bool is_lasting(const record *r) {
    return r->kind != RECORD_TENSOR || r->source->kind != SOURCE_LOCAL;
}

// The number itself where a guard makes it the same in every call; what was made inside is only
// told apart from others. A value may be one object or another, and nobody guards which.
HANDLER(id) {
    PyObject *o = door_open(w, c->args[0]);
    if (!o)
        return NULL;
    record *r = record_of(w, o);
    if (r && is_lasting(r))
        return record_identity(w, r) == ST_OK ? PyLong_FromVoidPtr(r->outside) : NULL;
    bool only = o == Py_None || PyBool_Check(o) || o == Py_Ellipsis || o == Py_NotImplemented;
    if (only || (PyType_Check(o) && !raw_is_python_class((PyTypeObject *)o)))
        return PyLong_FromVoidPtr(o);
    if (r || value_could_be_outside(w, o) || PyMethod_Check(o) || is_trampoline(o))
        return world_break(w, REASON_ADDRESS, "id of a %s object", Py_TYPE(o)->tp_name);
    return address_new(w, o);
}

// --- hashes ---

// What hash() makes of the number that __hash__ gave (slot_tp_hash).
static PyObject *as_hash(world *w, PyObject *function, PyObject *number) {
    Py_ssize_t hash = PyLong_AsSsize_t(number);
    if (hash == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return call_native(w, function, &number, 1, NULL, false);
    }
    return PyLong_FromSsize_t(hash == -1 ? -2 : hash);
}

// hash() of an object of a Python class, by its own __hash__; that there is none is guarded as
// well.
static PyObject *hash_by_method(world *w, PyObject *function, PyObject *o) {
    PyObject *name = PyUnicode_InternFromString("__hash__"), *result = NULL;
    way own;
    status st = name ? way_find(w, Py_TYPE(o), name, NULL, &own) : ST_ERROR;
    Py_XDECREF(name);
    if (st != ST_OK)
        return NULL;
    if (Py_TYPE(o)->tp_hash == PyObject_HashNotImplemented)
        return call_native(w, function, &o, 1, NULL, false);
    PyObject *value = handler_special(w, o, "__hash__");
    PyObject *opened = value ? door_open(w, value) : NULL;
    if (opened && PyLong_Check(opened))
        result = as_hash(w, function, opened);
    else if (opened)
        PyErr_SetString(PyExc_TypeError, "__hash__ method should return an integer");
    Py_XDECREF(value);
    return result;
}

// How many objects are looked at: sets of sets of sets are large.
enum { LOOKED_AT = 1000 };

static bool hash_lasts(world *w, PyObject *o, int *left);

// Of all that a tuple, a frozenset or a slice holds.
static bool hashes_last(world *w, PyObject *o, int *left) {
    PyObject *item;
    bool all = true;
    for (Py_ssize_t i = 0; all && PyTuple_Check(o) && i < PyTuple_GET_SIZE(o); i++)
        all = hash_lasts(w, PyTuple_GET_ITEM(o, i), left);
    for (Py_ssize_t at = 0; all && PyFrozenSet_Check(o) && raw_set_next(o, &at, &item);)
        all = hash_lasts(w, item, left);
    if (!PySlice_Check(o))
        return all;
    PySliceObject *s = (PySliceObject *)o;
    return hash_lasts(w, s->start, left) && hash_lasts(w, s->stop, left) &&
           hash_lasts(w, s->step, left);
}

// Whether a hash is the same in every call: of values (but a NaN is hashed by its address), of an
// object whose __hash__ is Python code (which is interpreted), of one that a guard lets pass by its
// identity.
static bool hash_lasts(world *w, PyObject *o, int *left) {
    if (--*left < 0 || is_standin(o) || is_address(o))
        return false;
    if (PyTuple_CheckExact(o) || PyFrozenSet_CheckExact(o))
        return hashes_last(w, o, left);
    if (value_has_nan(o))
        return false;
    if (value_immutable(o) || special_is_python(w, o, SPECIAL_hash) == 1)
        return true;
    record *r = record_of(w, o);
    if (r && PyCFunction_CheckExact(o)) // by the addresses of its C function and of its self
        return record_identity(w, r) == ST_OK;
    bool known = r && (r->identity || r->pinned);
    bool class = PyType_Check(o) && !type_is_made(w, (PyTypeObject *)o);
    return (known || class) && Py_TYPE(o)->tp_hash == PyBaseObject_Type.tp_hash;
}

// The number, by C code alone. `lasts` says whether it is the same in every call.
static PyObject *hash_natively(world *w, PyObject *function, PyObject *o,
                               bool (*lasts)(world *, PyObject *, int *)) {
    int left = LOOKED_AT;
    bool never = Py_TYPE(o)->tp_hash == PyObject_HashNotImplemented;
    if (!never && world_pin_hashed(w) != ST_OK)
        return NULL;
    if (never || lasts(w, o, &left))
        return call_native(w, function, &o, 1, NULL, false);
    return world_break(w, REASON_ADDRESS, "hash() of a %s object", Py_TYPE(o)->tp_name);
}

HANDLER(hash) {
    PyObject *o = native_open(w, c->args[0], P_NONE), *result = NULL;
    if (!o)
        return NULL;
    bool value = value_immutable(o), holds = PyTuple_Check(o) || PyFrozenSet_Check(o);
    status st = holds && !value ? protocol_open_elements(w, &o, P_HASH) : ST_OK;
    if (st == ST_OK && raw_is_python_class(Py_TYPE(o)) && !is_standin(o))
        result = hash_by_method(w, c->callable, o);
    else if (st == ST_OK)
        result = hash_natively(w, c->callable, o, hash_lasts);
    Py_DECREF(o);
    return result;
}

// tuple.__hash__ and its like.
HANDLER(hash_of_parts) {
    PyObject *o = native_open(w, c->args[0], P_NONE), *result = NULL;
    if (o && protocol_open_elements(w, &o, P_HASH) == ST_OK)
        result = hash_natively(w, c->callable, o, hashes_last);
    Py_XDECREF(o);
    return result;
}

// --- weak references ---

// A reference of this trace.
static PyObject *call_own_reference(world *w, PyObject *self) {
    PyObject *object = raw_weakref_get(self);
    if (object && special_lives(w, object))
        return Py_NewRef(object);
    return world_break(w, REASON_NATIVE_CALL, "a weak reference to an object that may be dead");
}

HANDLER(weakref_call) {
    PyObject *self = door_open(w, c->args[0]);
    record *r = self ? record_of(w, self) : NULL;
    if (self && !r && PyWeakref_CheckRefExact(self))
        return call_own_reference(w, self);
    PyObject *object = r ? raw_weakref_get(self) : NULL;
    if (!object)
        return !self || PyErr_Occurred() ? NULL
                                         : world_break(w, REASON_NATIVE_CALL, "a weak reference");
    source *s = guard_source(w->guards, SOURCE_WEAKREF, r->source, NULL, 0);
    return s ? door_load(w, s, object) : NULL;
}

// Whether a reference to an object of a Python class, without a callback, may be made.
static bool can_refer(const call *c, PyObject *o, PyObject *callback) {
    return !is_standin(o) && !PyType_Check(o) && raw_is_python_class(Py_TYPE(o)) &&
           (c->given == 1 || callback == Py_None);
}

// CPython gives the reference without a callback that an object has already: it may be one from
// outside.
static PyObject *refuse_shared(world *w, PyObject *made) {
    if (!made || Py_REFCNT(made) == 1 || map_get(&w->time.born, map_key(made)))
        return made;
    Py_DECREF(made);
    return world_break(w, REASON_NATIVE_CALL, "a weak reference that others hold");
}

// weakref.ref(o), weakref.ref(class, callback). A class dies, if ever, when the collector runs, so
// that no callback is missed; of another object it would be.
HANDLER(weakref_new) {
    PyObject *items[2] = {NULL}, *made = NULL;
    for (size_t i = 0; i < c->given; i++)
        if (!(items[i] = door_open(w, c->args[i])))
            return NULL;
    PyObject *o = items[0];
    bool class = PyType_Check(o) && class_value(w, (PyTypeObject *)o);
    bool refers = can_refer(c, o, items[1]), outside = record_of(w, o) != NULL;
    bool own =
        (refers && !outside) || is_scalar(o); // which has no weak references, and CPython says so
    if (w->stop.broken || PyErr_Occurred())
        return NULL;
    if (!class && !own && !refers)
        return world_break(w, REASON_NATIVE_CALL, "weakref.ref of a %s object",
                           Py_TYPE(o)->tp_name);
    made = call_native(w, c->callable, items, c->given, NULL, false);
    if (refers && outside)
        made = refuse_shared(w, made);
    if (made && (world_born(w, made) != ST_OK || (own && world_born(w, o) != ST_OK)))
        Py_CLEAR(made);
    return made;
}

// A proxy of something made inside; its attributes are those of what it stands for (attr.c).
HANDLER(weakref_proxy) {
    PyObject *o = c->given == 1 ? door_open(w, c->args[0]) : NULL;
    if (w->stop.broken || PyErr_Occurred())
        return NULL;
    if (!o || record_of(w, o) || is_standin(o) || !raw_is_python_class(Py_TYPE(o)) ||
        PyType_Check(o) || PyCallable_Check(o))
        return world_break(w, REASON_NATIVE_CALL, "weakref.proxy of a %s object",
                           Py_TYPE(o ? o : c->args[0])->tp_name);
    PyObject *proxy = call_native(w, c->callable, &o, 1, NULL, false);
    if (proxy && (world_born(w, proxy) != ST_OK || world_born(w, o) != ST_OK))
        Py_CLEAR(proxy);
    return proxy;
}
