// Chains of frames into tuples of (filename, line, function name).
#include "src/graph/trail.h"

typedef struct trail {
    PyObject_HEAD
    PyObject *parent; // strong: a trail, or NULL
    PyObject *row;    // strong
    Py_ssize_t depth; // how many rows there are up to this one
} trail;

// Rows hold texts and numbers only, so no collector has to look here.
static void trail_dealloc(PyObject *self) {
    trail *t = (trail *)self;
    Py_XDECREF(t->parent);
    Py_DECREF(t->row);
    PyObject_Free(t);
}

static PyTypeObject trail_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.Trail",
    .tp_doc = "Where the program was.",
    .tp_basicsize = sizeof(trail),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = trail_dealloc,
};

int trail_setup(void) {
    return PyType_Ready(&trail_type);
}

PyObject *trail_new(PyObject *parent, PyObject *row) {
    trail *t = PyObject_New(trail, &trail_type);
    if (!t)
        return NULL;
    t->parent = Py_XNewRef(parent);
    t->row = Py_NewRef(row);
    t->depth = parent ? ((trail *)parent)->depth + 1 : 1;
    return (PyObject *)t;
}

PyObject *trail_rows(PyObject *o) {
    if (!Py_IS_TYPE(o, &trail_type))
        return Py_NewRef(o);
    Py_ssize_t at = ((trail *)o)->depth;
    PyObject *rows = PyTuple_New(at);
    for (trail *t = (trail *)o; rows && t; t = (trail *)t->parent)
        PyTuple_SET_ITEM(rows, --at, Py_NewRef(t->row));
    return rows;
}

static int add_file(PyObject *row, PyObject *set, PyObject **last) {
    PyObject *file = PyTuple_GET_ITEM(row, 0);
    if (file == *last) // most frames are in the file of their caller
        return 0;
    *last = file;
    return PySet_Add(set, file);
}

int trail_files(PyObject *o, PyObject *set) {
    PyObject *last = NULL;
    int failed = 0;
    if (PyTuple_Check(o)) {
        for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(o); i++)
            failed = add_file(PyTuple_GET_ITEM(o, i), set, &last);
        return failed;
    }
    trail *t = Py_IS_TYPE(o, &trail_type) ? (trail *)o : NULL;
    for (; t && !failed; t = (trail *)t->parent)
        failed = add_file(t->row, set, &last);
    return failed;
}
