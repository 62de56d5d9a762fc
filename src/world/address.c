// Stands for id() of an object made inside, which has another address in every call. It can be
// hashed and compared as the number would be, and nothing else: code that looks at the number
// itself breaks. No dict or set from outside contains it.
#include "src/world/world.h"

// The object is kept by the arena.
typedef struct address {
    PyObject_HEAD
    PyObject *of;
} address;

PyObject *address_new(world *w, PyObject *o) {
    if (!world_keep(w, Py_NewRef(o)))
        return NULL;
    address *a = PyObject_New(address, &address_type);
    if (!a)
        return NULL;
    a->of = o;
    w->facts.addressed = true;
    if (world_born(w, (PyObject *)a) == ST_OK)
        return (PyObject *)a;
    Py_DECREF(a);
    return NULL;
}

// --- what is known ---

static Py_hash_t address_hash(PyObject *o) {
    return _Py_HashPointer(((address *)o)->of);
}

// --- what is not ---

static PyObject *refuse(void) {
    if (world_here)
        return world_break(world_here, REASON_ADDRESS, "a use of what id() gave");
    PyErr_SetString(PyExc_RuntimeError, "this address belongs to a trace that has ended");
    return NULL;
}

static PyObject *address_compare(PyObject *left, PyObject *right, int kind) {
    if (kind != Py_EQ && kind != Py_NE)
        return refuse();
    if (!is_address(left) || !is_address(right)) // an object of this trace, and an older one
        return PyBool_FromLong(kind == Py_NE);
    return PyBool_FromLong((((address *)left)->of == ((address *)right)->of) == (kind == Py_EQ));
}

static PyObject *address_unary(PyObject *o) {
    (void)o;
    return refuse();
}

static PyObject *address_binary(PyObject *left, PyObject *right) {
    (void)left, (void)right;
    return refuse();
}

static PyObject *address_power(PyObject *left, PyObject *right, PyObject *modulus) {
    (void)left, (void)right, (void)modulus;
    return refuse();
}

static int address_truth(PyObject *o) {
    (void)o;
    refuse();
    return -1;
}

static void address_dealloc(PyObject *o) {
    PyObject_Free(o);
}

static PyNumberMethods address_number = {
    .nb_add = address_binary,
    .nb_subtract = address_binary,
    .nb_multiply = address_binary,
    .nb_remainder = address_binary,
    .nb_divmod = address_binary,
    .nb_power = address_power,
    .nb_negative = address_unary,
    .nb_positive = address_unary,
    .nb_absolute = address_unary,
    .nb_bool = address_truth,
    .nb_invert = address_unary,
    .nb_lshift = address_binary,
    .nb_rshift = address_binary,
    .nb_and = address_binary,
    .nb_xor = address_binary,
    .nb_or = address_binary,
    .nb_int = address_unary,
    .nb_float = address_unary,
    .nb_floor_divide = address_binary,
    .nb_true_divide = address_binary,
    .nb_index = address_unary,
    .nb_matrix_multiply = address_binary,
};

PyTypeObject address_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.address",
    .tp_basicsize = sizeof(address),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = address_dealloc,
    .tp_repr = address_unary,
    .tp_str = address_unary,
    .tp_hash = address_hash,
    .tp_getattro = address_binary,
    .tp_richcompare = address_compare,
    .tp_as_number = &address_number,
};
