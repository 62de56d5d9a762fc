// Functions for Python: tests and tools build, print and run a graph without a trace.
#include "src/graph/graph.h"

static bool check_open(graph *g) {
    if (g->closed)
        PyErr_SetString(PyExc_ValueError, "the graph is closed");
    return !g->closed;
}

static PyObject *method_input(graph *g, PyObject *args, PyObject *kwargs) {
    static char *words[] = {"source", "name", "example", NULL};
    PyObject *source, *name = NULL, *example = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|UO", words, &source, &name, &example) ||
        !check_open(g))
        return NULL;
    return (PyObject *)graph_input(g, name, source, example);
}

static PyObject *method_call(graph *g, PyObject *args, PyObject *kwargs) {
    static char *words[] = {"target", "args", "kwargs", "example", "stack", NULL};
    PyObject *target, *given, *keywords = NULL, *example = NULL, *stack = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!|O!OO", words, &target, &PyTuple_Type,
                                     &given, &PyDict_Type, &keywords, &example, &stack) ||
        !check_open(g))
        return NULL;
    node_op op = PyUnicode_Check(target) ? NODE_CALL_METHOD : NODE_CALL_FUNCTION;
    if (op == NODE_CALL_METHOD && PyTuple_GET_SIZE(given) == 0) {
        PyErr_SetString(PyExc_ValueError, "a method needs its object");
        return NULL;
    }
    return (PyObject *)graph_call(g, op, target, given, keywords, example, stack);
}

// Of a body: what stands for a node of a graph around it.
static PyObject *method_lift(graph *g, PyObject *n) {
    if (is_node(n) && check_open(g))
        return Py_XNewRef(graph_lift(g, (node *)n));
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "not a node");
    return NULL;
}

static PyObject *method_body(graph *g, PyObject *unused) {
    (void)unused;
    return check_open(g) ? (PyObject *)graph_open_body(g) : NULL;
}

static PyObject *method_attribute(graph *g, PyObject *args) {
    PyObject *stem, *value;
    if (!PyArg_ParseTuple(args, "UO", &stem, &value) || !check_open(g))
        return NULL;
    if (Py_IS_TYPE(value, &graph_type) && !((graph *)value)->closed) {
        PyErr_SetString(PyExc_ValueError, "the body is not closed");
        return NULL;
    }
    return (PyObject *)graph_attribute(g, stem, value);
}

static PyObject *method_rename(graph *g, PyObject *args) {
    node *n;
    PyObject *name;
    if (!PyArg_ParseTuple(args, "O!U", &node_type, &n, &name) || graph_rename(g, n, name) != ST_OK)
        return NULL;
    Py_RETURN_NONE;
}

// The list of which inputs stayed.
static PyObject *method_close(graph *g, PyObject *outputs) {
    if (!PyTuple_CheckExact(outputs)) {
        PyErr_SetString(PyExc_TypeError, "outputs are a tuple");
        return NULL;
    }
    if (!check_open(g))
        return NULL;
    int count = g->inputs;
    bool *used = PyMem_Calloc((size_t)count + 1, sizeof(bool));
    PyObject *result = NULL;
    if (!used)
        return PyErr_NoMemory();
    if (graph_close(g, outputs, used) == ST_OK)
        result = PyList_New(count);
    for (int i = 0; result && i < count; i++)
        PyList_SET_ITEM(result, i, PyBool_FromLong(used[i]));
    PyMem_Free(used);
    return result;
}

static PyObject *method_replay(graph *g, PyObject *const *args, Py_ssize_t count) {
    if (!g->closed || count != g->inputs) {
        PyErr_Format(PyExc_ValueError, "a closed graph takes as many arguments as it has inputs");
        return NULL;
    }
    replay *r = replay_new(g);
    PyObject *result = r ? replay_run(r, args, NULL) : NULL;
    replay_free(r);
    return result;
}

PyMethodDef graph_methods[] = {
    {"add_input", (PyCFunction)(void (*)(void))method_input, METH_VARARGS | METH_KEYWORDS,
     "add_input(source, name=None, example=None): a new placeholder."},
    {"add_call", (PyCFunction)(void (*)(void))method_call, METH_VARARGS | METH_KEYWORDS,
     "add_call(target, args, kwargs=None, example=None, stack=None): a new node; a str is a "
     "method's "
     "name."},
    {"open_body", (PyCFunction)method_body, METH_NOARGS, "open_body(): a graph inside this one."},
    {"lift", (PyCFunction)method_lift, METH_O,
     "lift(node): of a body, its placeholder for a node of a graph around it."},
    {"add_attribute", (PyCFunction)method_attribute, METH_VARARGS,
     "add_attribute(stem, value): a node that reads an attribute, such as a closed body."},
    {"rename", (PyCFunction)method_rename, METH_VARARGS, "rename(node, name)"},
    {"close", (PyCFunction)method_close, METH_O,
     "close(outputs): adds the output; says of each input whether it stayed."},
    {"replay", (PyCFunction)(void (*)(void))method_replay, METH_FASTCALL,
     "replay(*inputs): runs the operations, and gives a tuple of the outputs."},
    {0},
};
