// Bodies. A body is a graph inside another one, and an argument of a call: its operations run when
// that call runs. A body uses nodes of the graphs around it through placeholders; each such node is
// lifted once.
#include "src/graph/graph.h"

graph *graph_open_body(graph *outer) {
    assert(!outer->closed);
    graph *body = graph_new(), *root = outer;
    while (root->outer)
        root = root->outer;
    if (!body || !(body->lifted = PyDict_New())) {
        Py_XDECREF(body);
        return NULL;
    }
    body->outer = (graph *)Py_NewRef(outer);
    body->scope = ++root->bodies;
    body->sizes = outer->sizes;
    return body;
}

graph *graph_of(graph *g, const node *n) {
    while (g && g->scope != n->scope)
        g = g->outer;
    return g;
}

node *graph_lifted(graph *g, node *n) {
    if (n->scope == g->scope)
        return n;
    n = g->outer ? graph_lifted(g->outer, n) : NULL;
    PyObject *known = n ? PyDict_GetItemWithError(g->lifted, (PyObject *)n) : NULL;
    return (node *)known;
}

// Named after the node it stands for, whose example and meta it has.
static node *add_placeholder(graph *g, node *n) {
    node *made = graph_input(g, n->name, n->name, n->example);
    if (!made)
        return NULL;
    made->meta = n->meta;
    int failed = PyDict_SetItem(g->lifted, (PyObject *)n, (PyObject *)made);
    Py_DECREF(made); // the graph's
    return failed < 0 ? NULL : made;
}

node *graph_lift(graph *g, node *n) {
    if (n->scope == g->scope)
        return n;
    if (!g->outer) {
        PyErr_SetString(PyExc_ValueError, "a node of a body that has ended");
        return NULL;
    }
    if (!(n = graph_lift(g->outer, n)))
        return NULL;
    PyObject *known = PyDict_GetItemWithError(g->lifted, (PyObject *)n);
    if (known || PyErr_Occurred())
        return (node *)known;
    return add_placeholder(g, n);
}

// "stem_0", "stem_1", …: no number is used twice in a graph with all its bodies.
static PyObject *attribute_name(graph *g, PyObject *stem) {
    while (g->outer)
        g = g->outer;
    if (!g->stems && !(g->stems = PyDict_New()))
        return NULL;
    PyObject *last = PyDict_GetItemWithError(g->stems, stem);
    if (!last && PyErr_Occurred())
        return NULL;
    long number = last ? PyLong_AsLong(last) + 1 : 0;
    PyObject *now = PyLong_FromLong(number);
    int failed = now ? PyDict_SetItem(g->stems, stem, now) : -1;
    Py_XDECREF(now);
    return failed < 0 ? NULL : PyUnicode_FromFormat("%U_%ld", stem, number);
}

node *graph_attribute(graph *g, PyObject *stem, PyObject *value) {
    assert(!Py_IS_TYPE(value, &graph_type) || ((graph *)value)->closed);
    PyObject *name = attribute_name(g, stem), *empty = PyTuple_New(0);
    node *n = name && empty ? graph_call(g, NODE_GET_ATTR, name, empty, NULL, value, NULL) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(empty);
    return n;
}
