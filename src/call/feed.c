// Feeds. iter() of a feed is a feed of iter() of its iterable; its length and its length hint are
// those of the iterable. next() is the interpreter's own next, and gives an element that is
// prepared for native code. Native code may ask a feed for its iterator or its length again
// (PySequence_Fast does).
#include "src/call/feed.h"

#include "src/call/call.h"
#include "src/call/native.h"
#include "src/call/protocol.h"

typedef struct feed {
    PyObject_HEAD
    PyObject *source; // strong: an iterable, or the iterator of one
    world *world;
    unsigned protocols; // what native code does to the elements
} feed;

static PyTypeObject feed_type;

static PyObject *make(world *w, PyObject *source, unsigned protocols);

bool is_feed(PyObject *o) {
    return Py_IS_TYPE(o, &feed_type);
}

// What it stands for, as long as the trace that made it runs in this thread.
static PyObject *source_of(feed *f) {
    if (f->world == world_here)
        return f->source;
    PyErr_SetString(PyExc_RuntimeError, "stator: a feed was used after its trace ended");
    return NULL;
}

PyObject *feed_source(PyObject *o) {
    return ((feed *)o)->source;
}

// --- slots ---

static PyObject *feed_iter(PyObject *self) {
    feed *f = (feed *)self;
    PyObject *source = source_of(f), *iterator = source ? op_iter(f->world, source) : NULL;
    PyObject *made = iterator ? make(f->world, iterator, f->protocols) : NULL;
    Py_XDECREF(iterator);
    return made;
}

static PyObject *feed_next(PyObject *self) {
    feed *f = (feed *)self;
    PyObject *source = source_of(f), *item = source ? op_next(f->world, source) : NULL;
    if (item && f->protocols &&
        (protocol_handed_over(f->world, &item) != ST_OK ||
         protocol_open(f->world, &item, f->protocols) != ST_OK))
        Py_CLEAR(item);
    return item;
}

// Where there is none, the TypeError is what PyObject_LengthHint looks past.
static Py_ssize_t feed_length(PyObject *self) {
    PyObject *source = source_of((feed *)self);
    return source ? PyObject_Size(source) : -1;
}

// PyObject_LengthHint takes NotImplemented for "no hint".
static PyObject *feed_hint(PyObject *self, PyObject *none) {
    PyObject *source = source_of((feed *)self), *name = NULL, *method = NULL, *hint = NULL;
    (void)none;
    if (source)
        name = PyUnicode_InternFromString("__length_hint__");
    if (name)
        method = _PyType_Lookup(Py_TYPE(source), name);
    Py_XDECREF(name);
    if (!name)
        return NULL;
    if (!method)
        return Py_NewRef(Py_NotImplemented);
    descrgetfunc get = Py_TYPE(method)->tp_descr_get;
    PyObject *bound = get ? get(method, source, (PyObject *)Py_TYPE(source)) : Py_NewRef(method);
    hint = bound ? PyObject_CallNoArgs(bound) : NULL;
    Py_XDECREF(bound);
    return hint;
}

static int feed_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((feed *)self)->source);
    return 0;
}

static int feed_clear(PyObject *self) {
    Py_CLEAR(((feed *)self)->source);
    return 0;
}

static void feed_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    feed_clear(self);
    PyObject_GC_Del(self);
}

static PyMethodDef feed_methods[] = {
    {"__length_hint__", feed_hint, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PySequenceMethods feed_sequence = {.sq_length = feed_length};

static PyTypeObject feed_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.feed_standin",
    .tp_basicsize = sizeof(feed),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = feed_dealloc,
    .tp_traverse = feed_traverse,
    .tp_clear = feed_clear,
    .tp_as_sequence = &feed_sequence,
    .tp_methods = feed_methods,
    .tp_iter = feed_iter,
    .tp_iternext = feed_next,
};

// --- making one ---

// The trace does not keep feeds: an iterator that native code stopped early dies with the call, or
// with the iterator that native code made of it.
static PyObject *make(world *w, PyObject *source, unsigned protocols) {
    if (!(feed_type.tp_flags & Py_TPFLAGS_READY) && PyType_Ready(&feed_type) < 0)
        return NULL;
    feed *f = PyObject_GC_New(feed, &feed_type);
    if (!f)
        return NULL;
    f->source = Py_NewRef(source);
    f->world = w;
    f->protocols = protocols;
    PyObject_GC_Track(f);
    return (PyObject *)f;
}

PyObject *feed_new(world *w, PyObject *iterable, unsigned protocols) {
    PyObject *source = native_open(w, iterable, P_ITER | P_UNORDERED);
    PyObject *made = source ? make(w, source, protocols) : NULL;
    Py_XDECREF(source);
    return made;
}
