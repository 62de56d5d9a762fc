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
    body->custom = Py_XNewRef(outer->custom);
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

static void take_value(node *to, const node *from) {
    to->meta = from->meta;
    to->is_number = from->is_number;
    to->value = from->value;
}

// Named after the node it stands for, whose example and meta it has.
static node *add_placeholder(graph *g, node *n) {
    node *made = graph_input(g, n->name, n->name, n->example);
    if (!made)
        return NULL;
    take_value(made, n);
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

// --- two bodies with the same operands ---

// The nodes that a body has lifted and the other one has, or has not, sorted by name. New list.
static PyObject *lifted_by(const graph *body, const graph *other, bool both) {
    PyObject *list = PyList_New(0), *n;
    Py_ssize_t at = 0;
    while (list && PyDict_Next(body->lifted, &at, &n, NULL)) {
        int has = PyDict_Contains(other->lifted, n);
        Py_ssize_t i = 0;
        if (has == !both)
            continue;
        while (i < PyList_GET_SIZE(list) &&
               PyUnicode_Compare(((node *)PyList_GET_ITEM(list, i))->name, ((node *)n)->name) < 0)
            i++;
        if (has < 0 || PyList_Insert(list, i, n) < 0)
            Py_CLEAR(list);
    }
    return list;
}

// The body's placeholder for `n`, which is made if there is none, by its name with the suffix.
// Borrowed.
static node *placeholder_for(graph *g, node *n, PyObject *suffix) {
    node *known = (node *)PyDict_GetItemWithError(g->lifted, (PyObject *)n);
    PyObject *target = suffix ? PyUnicode_FromFormat("%U_%U", n->name, suffix) : NULL;
    if (PyErr_Occurred())
        return NULL;
    if (!known) {
        known = graph_input(g, target, target, n->example);
        if (known)
            take_value(known, n);
        Py_XDECREF(known); // the graph's
    } else if (graph_retarget(g, known, target ? target : known->target) != ST_OK) {
        known = NULL;
    }
    Py_XDECREF(target);
    return known;
}

// Adds the placeholders of these nodes to those that the body has so far.
static status place(graph *g, PyObject *nodes, PyObject *suffix, PyObject *lifted) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(nodes); i++) {
        PyObject *n = PyList_GET_ITEM(nodes, i);
        node *made = placeholder_for(g, (node *)n, suffix);
        if (!made || PyDict_SetItem(lifted, n, (PyObject *)made) < 0)
            return ST_ERROR;
    }
    return ST_OK;
}

// Its own placeholders stay in front.
static status sort_lifted(graph *g) {
    int *ranks = PyMem_Calloc((size_t)g->inputs + 1, sizeof(int)), rank = 0;
    PyObject *n;
    Py_ssize_t at = 0;
    if (!ranks) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    while (PyDict_Next(g->lifted, &at, NULL, &n))
        ranks[((node *)n)->index] = ++rank;
    graph_sort_inputs(g, ranks);
    PyMem_Free(ranks);
    return ST_OK;
}

status graph_unite(graph *first, graph *second, PyObject *first_suffix, PyObject *second_suffix) {
    assert(first->outer == second->outer && !first->closed && !second->closed);
    PyObject *both = lifted_by(first, second, true), *one = lifted_by(first, second, false);
    PyObject *other = lifted_by(second, first, false);
    graph *bodies[] = {first, second};
    status done = both && one && other ? ST_OK : ST_ERROR;
    for (int i = 0; done == ST_OK && i < 2; i++) {
        graph *g = bodies[i];
        PyObject *lifted = PyDict_New();
        done = lifted ? place(g, both, NULL, lifted) : ST_ERROR;
        done = done == ST_OK ? place(g, one, first_suffix, lifted) : done;
        done = done == ST_OK ? place(g, other, second_suffix, lifted) : done;
        if (done == ST_OK)
            Py_SETREF(g->lifted, Py_NewRef(lifted));
        Py_XDECREF(lifted);
        g->united = true;
        done = done == ST_OK ? sort_lifted(g) : done;
    }
    Py_XDECREF(both);
    Py_XDECREF(one);
    Py_XDECREF(other);
    return done;
}

// --- attributes ---

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
