// autograd.Function as an operator with two bodies, for backends that compile a graph as a whole. While
// both are traced, the body of the backward lies in that of the forward: what the backward uses from
// there, or from further out, are the values that the forward saves for it.
#include "src/torch/higher.h"

// The stand-in for a tensor; borrowed. NULL for other objects.
static standin *tensor_in(PyObject *o) {
    o = is_lazy(o) ? ((lazy *)o)->inside : o;
    return o && is_tensor_standin(o) ? (standin *)o : NULL;
}

PyObject *function_lift(world *w, const call *c) {
    for (size_t i = 0; i < call_count(c); i++) {
        PyObject *o = door_open(w, c->args[i]);
        const standin *s = o ? tensor_in(o) : NULL;
        if (!o || (s && !graph_lift(w->scope, s->node)))
            return NULL;
    }
    return Py_NewRef(Py_None);
}

PyObject *function_forget(world *w, const call *c) {
    (void)c; // the program does it once more, in another way
    if (higher_check_body(w) != ST_OK || higher_forget_body(w) != ST_OK)
        return NULL;
    return Py_NewRef(Py_None);
}

// --- the backward ---

typedef struct search {
    const node *wanted;
    bool found;
} search;

static status compare(node *n, void *data) {
    search *s = data;
    s->found |= n == s->wanted;
    return ST_OK;
}

// 1, 0, -1.
static int uses(const graph *g, const node *n) {
    search s = {n, false};
    for (Py_ssize_t i = g->inputs; !s.found && i < PyList_GET_SIZE(g->nodes); i++)
        if (node_walk(((node *)PyList_GET_ITEM(g->nodes, i))->args, compare, &s) != ST_OK)
            return -1;
    return s.found;
}

// Which argument of the Function a placeholder of the forward stands for; -1: none.
static Py_ssize_t argument_at(graph *forward, const node *placeholder, PyObject *args) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        const standin *s = tensor_in(PyTuple_GET_ITEM(args, i));
        if (s && graph_lifted(forward, s->node) == placeholder)
            return i;
    }
    return -1;
}

// Plain Python finds such a tensor when the backward pass runs, and not before.
static status check_free(world *w, graph *forward, const graph *backward, PyObject *args) {
    PyObject *n;
    Py_ssize_t at = 0;
    while (PyDict_Next(backward->lifted, &at, &n, NULL)) {
        bool outside = ((node *)n)->op == NODE_PLACEHOLDER;
        int used =
            !outside || argument_at(forward, (node *)n, args) >= 0 ? 1 : uses(forward, (node *)n);
        if (used < 0)
            return ST_ERROR;
        if (!used)
            return world_break_status(w, REASON_TENSOR_OPERATION,
                                      "an autograd.Function whose backward alone uses a tensor");
    }
    return ST_OK;
}

// What the body gives for each tensor that the operator is given: a node or None. New tuple.
static PyObject *gradients_of(world *w, graph *forward, PyObject *gradients, PyObject *args) {
    PyObject *result = PyList_New(0), *n;
    Py_ssize_t at = 0;
    while (result && PyDict_Next(forward->lifted, &at, NULL, &n)) {
        Py_ssize_t i = argument_at(forward, (node *)n, args);
        PyObject *o = i < 0 ? Py_None : door_open(w, PyTuple_GET_ITEM(gradients, i));
        standin *s = o ? tensor_in(o) : NULL;
        PyObject *given = !o ? NULL : s ? (PyObject *)graph_lift(w->scope, s->node) : Py_None;
        if (!given || PyList_Append(result, given) < 0)
            Py_CLEAR(result);
    }
    PyObject *tuple = result ? PyList_AsTuple(result) : NULL;
    Py_XDECREF(result);
    return tuple;
}

// Which of the values that the backward uses were given to save_for_backward. New list.
static PyObject *saved_at(graph *forward, const graph *backward, PyObject *saved) {
    PyObject *result = PyList_New(0), *n;
    Py_ssize_t at = 0, i = 0;
    for (; result && PyDict_Next(backward->lifted, &at, &n, NULL); i++) {
        PyObject *index = argument_at(forward, (node *)n, saved) < 0 ? NULL : PyLong_FromSsize_t(i);
        if (index && PyList_Append(result, index) < 0)
            Py_CLEAR(result);
        Py_XDECREF(index);
    }
    return result;
}

// The body goes to the call around this one, which is the Function's.
static status hand_down(world *w, torch_trace *t) {
    const applied *r = higher_now(t);
    applied *outer = &t->applied.items[t->applied.count - 2];
    TRY(vec_push(&outer->bodies, (graph *)Py_NewRef(r->bodies.items[0])));
    TRY(vec_push(&outer->outputs, Py_NewRef(r->outputs.items[0])));
    higher_over(w, t);
    return ST_OK;
}

// (gradients, arguments, saved tensors)
PyObject *function_backward(world *w, const call *c) {
    PyObject *opened[3];
    for (int i = 0; i < 3; i++)
        if (!(opened[i] = door_open(w, c->args[i])))
            return NULL;
    if (higher_check_body(w) != ST_OK)
        return NULL;
    graph *backward = w->scope, *forward = backward->outer;
    backward->united = true; // what is saved is given, whether it is used in the end or not
    PyObject *given = gradients_of(w, forward, opened[0], opened[1]);
    if (!given || check_free(w, forward, backward, opened[1]) != ST_OK) {
        Py_XDECREF(given);
        return NULL;
    }
    PyObject *saved = saved_at(forward, backward, opened[2]);
    if (higher_leave_body(w, given) != ST_OK || !saved || hand_down(w, w->torch) != ST_OK)
        Py_CLEAR(saved);
    return saved;
}

// --- the node ---

// The nodes of tensors of the open body. New tuple.
static PyObject *nodes_in(world *w, PyObject *tensors) {
    PyObject *nodes = PyTuple_New(PyTuple_GET_SIZE(tensors));
    for (Py_ssize_t i = 0; nodes && i < PyTuple_GET_SIZE(tensors); i++) {
        const standin *s = tensor_in(PyTuple_GET_ITEM(tensors, i));
        node *n = s ? graph_lift(w->scope, s->node) : NULL;
        if (n)
            PyTuple_SET_ITEM(nodes, i, Py_NewRef(n));
        else
            Py_CLEAR(nodes);
    }
    return nodes;
}

// ((what the Function gives, …), (what it saves, …)). New reference.
static PyObject *outputs_of(world *w, const graph *backward, PyObject *tensors) {
    PyObject *given = nodes_in(w, tensors), *keys = PyDict_Keys(backward->lifted);
    PyObject *saved = keys ? PyList_AsTuple(keys) : NULL;
    PyObject *both = given && saved ? PyTuple_Pack(2, given, saved) : NULL;
    Py_XDECREF(given);
    Py_XDECREF(keys);
    Py_XDECREF(saved);
    return both;
}

// As an autograd.Function gives them. New list of fakes.
static PyObject *results_like(world *w, PyObject *tensors, PyObject *needs) {
    PyObject *fakes = PyList_New(0);
    for (Py_ssize_t i = 0; fakes && i < PyTuple_GET_SIZE(tensors); i++) {
        PyObject *example = tensor_in(PyTuple_GET_ITEM(tensors, i))->node->example;
        if (!higher_add_result(w, fakes, example, Py_None, PyTuple_GET_ITEM(needs, i)))
            Py_CLEAR(fakes);
    }
    return fakes;
}

static void swap_bodies(const applied *r) {
    graph *body = r->bodies.items[0];
    PyObject *outputs = r->outputs.items[0];
    r->bodies.items[0] = r->bodies.items[1];
    r->outputs.items[0] = r->outputs.items[1];
    r->bodies.items[1] = body;
    r->outputs.items[1] = outputs;
}

static PyObject *add_node(world *w, const call *c, PyObject *target, PyObject *stems,
                          PyObject *fakes) {
    torch_trace *t = w->torch;
    PyObject *example = PyList_AsTuple(fakes), *items = NULL;
    t->pending |= EFFECT_UNKNOWN; // a failure is not looked for in there
    node *n = example ? higher_node(w, c, 4, target, stems, example) : NULL;
    if (n && (items = higher_items(w, n, fakes)))
        higher_over(w, t);
    Py_XDECREF(example);
    Py_XDECREF(n);
    return items;
}

// (target, stems, the tensors that the forward gives, whether each requires a gradient, argument, …):
// the tensors that the node gives. New tuple.
PyObject *function_node(world *w, const call *c) {
    PyObject *opened[4];
    for (int i = 0; i < 4; i++)
        if (!(opened[i] = door_open(w, c->args[i])))
            return NULL;
    const applied *r = higher_now(w->torch);
    if (higher_check_body(w) != ST_OK)
        return NULL;
    w->scope->united = true;
    PyObject *fakes = results_like(w, opened[2], opened[3]);
    PyObject *outputs = fakes ? outputs_of(w, r->bodies.items[0], opened[2]) : NULL, *items = NULL;
    if (outputs && higher_leave_body(w, outputs) == ST_OK) {
        swap_bodies(r);
        items = add_node(w, c, opened[0], opened[1], fakes);
    }
    Py_XDECREF(fakes);
    return items;
}
