// Finds out whether one trace has recorded the same first calls as another: compares them call by
// call, by their numbers.
#include "src/graph/graph.h"

static bool same_argument(PyObject *a, PyObject *b);

static bool same_node(const node *a, const node *b) {
    if (a->op == NODE_PLACEHOLDER && b->op == NODE_PLACEHOLDER)
        return PyUnicode_Compare(a->target, b->target) == 0;
    return a->op == b->op && a->number == b->number;
}

static bool same_items(PyObject **a, PyObject **b, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (!same_argument(a[i], b[i]))
            return false;
    return true;
}

static bool same_dict(PyObject *a, PyObject *b) {
    Py_ssize_t at = 0;
    PyObject *key, *value;
    if (PyDict_GET_SIZE(a) != PyDict_GET_SIZE(b))
        return false;
    while (PyDict_Next(a, &at, &key, &value)) {
        PyObject *other = PyDict_GetItemWithError(b, key);
        if (!other || !same_argument(value, other))
            return false;
    }
    return true;
}

static bool same_slice(const PySliceObject *a, const PySliceObject *b) {
    return same_argument(a->start, b->start) && same_argument(a->stop, b->stop) &&
           same_argument(a->step, b->step);
}

// Constants of arguments are plain values and objects of torch's: comparing runs no code of the
// program's.
static bool same_constant(PyObject *a, PyObject *b) {
    if (PyFloat_CheckExact(a)) // NaN, and the sign of zero
        return memcmp(&((PyFloatObject *)a)->ob_fval, &((PyFloatObject *)b)->ob_fval,
                      sizeof(double)) == 0;
    return PyObject_RichCompareBool(a, b, Py_EQ) > 0;
}

static bool same_argument(PyObject *a, PyObject *b) {
    if (a == b)
        return true;
    if (Py_TYPE(a) != Py_TYPE(b))
        return false;
    if (is_node(a))
        return same_node((node *)a, (node *)b);
    if (PyTuple_CheckExact(a) || PyList_CheckExact(a))
        return PySequence_Fast_GET_SIZE(a) == PySequence_Fast_GET_SIZE(b) &&
               same_items(PySequence_Fast_ITEMS(a), PySequence_Fast_ITEMS(b),
                          PySequence_Fast_GET_SIZE(a));
    if (PyDict_CheckExact(a))
        return same_dict(a, b);
    if (PySlice_Check(a))
        return same_slice((PySliceObject *)a, (PySliceObject *)b);
    return same_constant(a, b);
}

// Methods are bound anew each time (`apply` of an autograd.Function, which some versions of torch
// have in C).
static bool same_bound(PyObject *a, PyObject *b) {
    if (a == b)
        return true;
    if (!a || !b || Py_TYPE(a) != Py_TYPE(b))
        return false;
    if (PyMethod_Check(a))
        return PyMethod_GET_SELF(a) == PyMethod_GET_SELF(b) &&
               PyMethod_GET_FUNCTION(a) == PyMethod_GET_FUNCTION(b);
    return PyCFunction_Check(a) && PyCFunction_GET_SELF(a) == PyCFunction_GET_SELF(b) &&
           ((PyCFunctionObject *)a)->m_ml == ((PyCFunctionObject *)b)->m_ml;
}

static bool same_variables(PyObject *mine, PyObject *other) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mine); i++)
        if (!same_bound(PyCell_GET(PyTuple_GET_ITEM(mine, i)),
                        PyCell_GET(PyTuple_GET_ITEM(other, i))))
            return false;
    return true;
}

// Of what the glue makes anew in each trace (it calls a function of the program's) the code and the
// variables.
static bool same_target(PyObject *a, PyObject *b) {
    if (a == b)
        return true;
    if (PyFunction_Check(a) && PyFunction_Check(b)) {
        PyObject *mine = PyFunction_GET_CLOSURE(a), *other = PyFunction_GET_CLOSURE(b);
        return PyFunction_GET_CODE(a) == PyFunction_GET_CODE(b) && mine && other &&
               same_variables(mine, other);
    }
    return PyUnicode_Check(a) && PyUnicode_Check(b) && PyUnicode_Compare(a, b) == 0;
}

static bool same_call(const node *a, const node *b) {
    bool named = a->kwargs && b->kwargs;
    if (a->op == NODE_GET_ATTR && a->example != b->example)
        return false;
    return a->op == b->op && a->effects == b->effects && same_target(a->target, b->target) &&
           same_argument(a->args, b->args) &&
           (named ? same_dict(a->kwargs, b->kwargs) : a->kwargs == b->kwargs);
}

// The call of this number, if it is the next one at *at.
static const node *call_at(const graph *g, Py_ssize_t *at, int number) {
    const node *n = (node *)PyList_GET_ITEM(g->nodes, *at); // the output comes last
    if (n->op == NODE_OUTPUT || n->number != number)
        return NULL;
    ++*at;
    return n;
}

bool graph_begins_like(const graph *whole, const graph *start, int calls) {
    assert(whole->closed && start->closed);
    Py_ssize_t mine = whole->inputs, other = start->inputs;
    for (int i = 0; i < calls; i++) {
        const node *a = call_at(whole, &mine, i), *b = call_at(start, &other, i);
        if (a && b ? !same_call(a, b) : (a && a->effects) || (b && b->effects))
            return false;
    }
    return true;
}
