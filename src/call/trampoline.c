// Trampolines. Native code calls a trampoline in place of a C callable, and the trampoline does the
// interpreter's own call, so that rules apply. Hash, ==, repr and attributes of a trampoline are
// those of the callable.
#include "src/attr/attr.h"

#include "src/call/call.h"
#include "src/call/native.h"
#include "src/call/rules.h"

typedef struct trampoline {
    PyObject_HEAD
    PyObject *callable; // strong; NULL once the trace has ended
    world *world;
    vectorcallfunc vectorcall;
    unsigned protocols; // what native code does to the result
} trampoline;

static PyTypeObject trampoline_type;

bool is_trampoline(PyObject *o) {
    return Py_IS_TYPE(o, &trampoline_type);
}

PyObject *trampoline_callable(PyObject *o) {
    return ((trampoline *)o)->callable;
}

// The callable, as long as the trace that made the trampoline runs in this thread.
static PyObject *callable_of(PyObject *o) {
    trampoline *t = (trampoline *)o;
    if (t->callable && t->world == world_here)
        return t->callable;
    PyErr_SetString(PyExc_RuntimeError, "stator: a trampoline was used after its trace ended");
    return NULL;
}

// --- slots ---

// Native code gets the result, so it is opened.
static PyObject *trampoline_call(PyObject *self, PyObject *const *args, size_t given,
                                 PyObject *keywords) {
    PyObject *callable = callable_of(self);
    if (!callable)
        return NULL;
    world *w = ((trampoline *)self)->world;
    Py_INCREF(callable);
    call c = {.callable = callable, .args = args, .given = given, .keywords = keywords};
    PyObject *result = native_result(w, call_any(w, &c), false);
    Py_DECREF(callable);
    unsigned protocols = ((trampoline *)self)->protocols;
    if (result && (protocol_handed_over(w, &result) != ST_OK ||
                   (protocols && protocol_open(w, &result, protocols) != ST_OK)))
        Py_CLEAR(result);
    return result;
}

static PyObject *see_through(PyObject *o) {
    return is_trampoline(o) ? callable_of(o) : o;
}

static PyObject *trampoline_compare(PyObject *a, PyObject *b, int kind) {
    PyObject *left = see_through(a), *right = left ? see_through(b) : NULL;
    return right ? op_compare(world_here, left, right, kind) : NULL;
}

static Py_hash_t trampoline_hash(PyObject *self) {
    PyObject *callable = callable_of(self);
    PyObject *opened = callable ? native_open(world_here, callable, P_HASH) : NULL;
    if (!opened)
        return -1;
    Py_hash_t hash = PyObject_Hash(opened);
    Py_DECREF(opened);
    return hash;
}

static PyObject *trampoline_repr(PyObject *self) {
    PyObject *callable = callable_of(self);
    PyObject *opened = callable ? native_open(world_here, callable, P_REPR) : NULL;
    PyObject *text = opened ? PyObject_Repr(opened) : NULL;
    Py_XDECREF(opened);
    return text;
}

static PyObject *trampoline_get(PyObject *self, PyObject *name) {
    PyObject *callable = callable_of(self);
    PyObject *value = callable ? attr_get(world_here, callable, name) : NULL;
    if (value && protocol_handed_over(world_here, &value) != ST_OK)
        Py_CLEAR(value);
    return value;
}

static void trampoline_dealloc(PyObject *self) {
    Py_XDECREF(((trampoline *)self)->callable);
    PyObject_Free(self);
}

static PyTypeObject trampoline_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.trampoline",
    .tp_basicsize = sizeof(trampoline),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_vectorcall_offset = offsetof(trampoline, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = trampoline_dealloc,
    .tp_richcompare = trampoline_compare,
    .tp_hash = trampoline_hash,
    .tp_repr = trampoline_repr,
    .tp_getattro = trampoline_get,
};

// --- making one ---

static void sever(PyObject *capsule) {
    trampoline *t = PyCapsule_GetPointer(capsule, NULL);
    t->world = NULL;
    Py_CLEAR(t->callable);
    Py_DECREF(t);
}

// The trace owns a capsule that severs the trampoline when the trace ends.
static PyObject *keep(world *w, trampoline *t) {
    PyObject *capsule = PyCapsule_New(t, NULL, sever);
    if (!capsule) {
        Py_DECREF(t);
        return NULL;
    }
    PyObject *given = Py_NewRef((PyObject *)t);
    if (!world_keep(w, capsule))
        Py_CLEAR(given);
    return given;
}

PyObject *trampoline_new(world *w, PyObject *callable) {
    if (!(trampoline_type.tp_flags & Py_TPFLAGS_READY) && PyType_Ready(&trampoline_type) < 0)
        return NULL;
    trampoline *t = PyObject_New(trampoline, &trampoline_type);
    if (!t)
        return NULL;
    t->callable = Py_NewRef(is_trampoline(callable) ? trampoline_callable(callable) : callable);
    t->world = w;
    t->vectorcall = trampoline_call;
    t->protocols = P_NONE;
    return keep(w, t);
}

PyObject *trampoline_for(world *w, PyObject *callable, unsigned protocols) {
    PyObject *t = trampoline_new(w, callable);
    if (t)
        ((trampoline *)t)->protocols = protocols;
    return t;
}
