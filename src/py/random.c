// Python's own random numbers: the state of a generator is a block of plain numbers behind the
// head of its object (RandomObject in _randommodule.c), which a second generator gets a copy of.
#include "src/py/random.h"

static PyTypeObject *base_of(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    while (t && strcmp(t->tp_name, "_random.Random") != 0)
        t = t->tp_base;
    return t;
}

bool py_is_random(PyObject *o) {
    const PyTypeObject *base = base_of(o);
    return base && !PyType_HasFeature((PyTypeObject *)base, Py_TPFLAGS_HAVE_GC) &&
           base->tp_basicsize > (Py_ssize_t)(sizeof(PyObject) + 624 * sizeof(uint32_t));
}

static PyObject *copy_of(PyObject *o) {
    PyTypeObject *base = base_of(o);
    PyObject *copy = base->tp_alloc(base, 0);
    if (copy)
        memcpy((char *)copy + sizeof(PyObject), (char *)o + sizeof(PyObject),
               (size_t)base->tp_basicsize - sizeof(PyObject));
    return copy;
}

static int bits_of(long long n) {
    int bits = 0;
    for (; n; n >>= 1)
        bits++;
    return bits;
}

static PyObject *draw_below(PyObject *generator, long long n) {
    PyObject *bits = PyLong_FromLong(bits_of(n)), *drawn = NULL;
    while (bits) {
        Py_XSETREF(drawn, py_random_draw(generator, bits));
        if (!drawn || PyLong_AsLongLong(drawn) < n)
            break;
    }
    Py_XDECREF(bits);
    return drawn;
}

// The methods of C, whatever the class of the generator has in their place.
PyObject *py_random_draw(PyObject *generator, PyObject *draw) {
    long long kind = PyLong_AsLongLong(draw);
    if (kind < 0)
        return PyErr_Occurred() ? NULL : draw_below(generator, -kind);
    bool plain = kind == 0;
    PyObject *method =
        PyObject_GetAttrString((PyObject *)base_of(generator), plain ? "random" : "getrandbits");
    PyObject *drawn =
        method ? PyObject_CallFunctionObjArgs(method, generator, plain ? NULL : draw, NULL) : NULL;
    Py_XDECREF(method);
    return drawn;
}

PyObject *py_random_peek(PyObject *generator, PyObject *draws) {
    PyObject *copy = copy_of(generator), *drawn = NULL;
    for (Py_ssize_t i = 0; copy && i < PyTuple_GET_SIZE(draws); i++) {
        Py_XSETREF(drawn, py_random_draw(copy, PyTuple_GET_ITEM(draws, i)));
        if (!drawn)
            break;
    }
    Py_XDECREF(copy);
    return drawn;
}
