// Tensors that the program makes and that require gradients of their own: leaves of autograd's graph.
// A graph that is replayed makes them as the program does. A backend that compiles the graph as a
// whole knows no other leaves than the inputs, so that no tensor with such a history may get out.
#include "src/interp/run.h"

#include "src/torch/room.h"

bool leaf_is_made(PyObject *kwargs) {
    static PyObject *name;
    if (!name)
        name = PyUnicode_InternFromString("requires_grad");
    PyObject *value = name ? PyDict_GetItemWithError(kwargs, name) : NULL;
    PyErr_Clear();
    return value == Py_True;
}

void leaf_note(world *w) {
    torch_trace *t = w->torch;
    if (!t->leaf && !w->terms.replayed)
        t->leaf = w->time.trial ? w->time.trial : w->run->started;
}

static bool makes_leaf(const node *n) {
    return (n->kwargs && leaf_is_made(n->kwargs)) ||
           (n->op == NODE_CALL_METHOD &&
            PyUnicode_CompareWithASCIIString(n->target, "requires_grad_") == 0);
}

// --- what depends on them ---

typedef struct reached {
    PyObject *nodes; // set
    bool found;      // what is looked at depends on one of them
    bool written;    // one was written to a tensor, which others may share
} reached;

static status look_at(node *n, void *data) {
    reached *r = data;
    int has = PySet_Contains(r->nodes, (PyObject *)n);
    r->found |= has > 0;
    return has < 0 ? ST_ERROR : ST_OK;
}

static status follow(reached *r, node *n) {
    r->found = makes_leaf(n);
    TRY(node_walk(n->args, look_at, r));
    if (n->kwargs)
        TRY(node_walk(n->kwargs, look_at, r));
    if (!r->found)
        return ST_OK;
    r->written |= n->effects & EFFECT_WRITES;
    return PySet_Add(r->nodes, (PyObject *)n) < 0 ? ST_ERROR : ST_OK;
}

// 1, 0, -1.
static int needs_gradient(const node *n) {
    if (n->meta.dims >= 0)
        return n->meta.requires_grad;
    return n->example && n->example != Py_None ? flag_of(n->example, "requires_grad") : 1;
}

// What a node says of its value does not hold any more where another one writes to that: 1, 0, -1.
static int gets_out(const reached *r, node *n) {
    int dependent = r->written ? 1 : PySet_Contains(r->nodes, (PyObject *)n);
    return dependent > 0 && !r->written ? needs_gradient(n) : dependent;
}

static int any_gets_out(const world *w, node *const *nodes, uint32_t count) {
    reached r = {.nodes = PySet_New(NULL)};
    int out = r.nodes ? 0 : -1;
    for (Py_ssize_t i = 0; out == 0 && i < PyList_GET_SIZE(w->graph->nodes); i++)
        out = follow(&r, (node *)PyList_GET_ITEM(w->graph->nodes, i)) == ST_OK ? 0 : -1;
    for (uint32_t i = 0; out == 0 && i < count; i++)
        out = gets_out(&r, nodes[i]);
    Py_XDECREF(r.nodes);
    return out;
}

status leaf_outputs(world *w, node *const *nodes, uint32_t count) {
    const torch_trace *t = w->torch;
    if (!t || !t->leaf || w->terms.replayed)
        return ST_OK;
    quiet q;
    quiet_begin(&q);
    int out = any_gets_out(w, nodes, count);
    quiet_end(&q);
    if (out <= 0)
        return out < 0 ? ST_ERROR : ST_OK;
    world_break(w, REASON_TENSOR_OPERATION,
                "a new tensor that requires a gradient, and does not stay in the graph");
    world_break_earlier(w, t->leaf);
    return ST_BREAK;
}
