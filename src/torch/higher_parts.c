// Operators that give their bodies other tensors than the program gave them (slices, carries), and
// that give back other tensors than a body does: torch.cond, scan, while_loop, map.
#include "src/torch/higher.h"

// --- what a body is given ---

static bool is_taken(const world *w, PyObject *name) {
    for (const graph *g = w->scope; g; g = g->outer)
        if (PySet_Contains(g->names, name) == 1)
            return true;
    const applied *r = higher_now(w->torch);
    for (uint32_t i = 0; i < r->bodies.count; i++)
        if (PySet_Contains(r->bodies.items[i]->targets, name) == 1)
            return true;
    return false;
}

// As in Dynamo: "child", "child_1", …, a name that no graph around has.
static PyObject *new_name(const world *w) {
    PyObject *name = PyUnicode_FromString("child");
    for (int i = 1; name && is_taken(w, name); i++)
        Py_SETREF(name, PyUnicode_FromFormat("child_%d", i));
    return name;
}

// The stand-in for a tensor of the program's; borrowed. NULL with an exception or a break.
static standin *tensor_of(world *w, PyObject *argument) {
    PyObject *o = door_open(w, argument);
    if (!o)
        return NULL;
    bool known =
        is_tensor_standin(o) &&
        (higher_is_open(w) ? ((standin *)o)->node->meta.dims >= 0
                           : PyObject_TypeCheck(((standin *)o)->node->example, facts.fake));
    if (!known) {
        world_break(w, REASON_HIGHER_ORDER, "of an object of type %s", Py_TYPE(o)->tp_name);
        return NULL;
    }
    return (standin *)o;
}

// A placeholder is no input: nothing outside is its value. Of `fake` and `m` one is NULL.
static PyObject *new_placeholder(world *w, PyObject *fake, const meta *m) {
    PyObject *name = new_name(w);
    node *n = name ? graph_input(w->scope, name, name, fake) : NULL;
    if (n && m)
        n->meta = *m;
    standin *s = n ? (standin *)standin_new(w, n, facts.tensor) : NULL;
    if (s)
        Py_CLEAR(s->input);
    if (s && m)
        memory_own(s);
    Py_XDECREF(name);
    Py_XDECREF(n);
    return (PyObject *)s;
}

PyObject *higher_given(world *w, const call *c) {
    const torch_trace *t = w->torch;
    const standin *s = tensor_of(w, c->args[0]);
    PyObject *sliced = s ? door_open(w, c->args[1]) : NULL;
    if (sliced && higher_is_open(w)) {
        meta m = sliced == Py_True ? higher_open_slice(&s->node->meta) : s->node->meta;
        return new_placeholder(w, NULL, &m);
    }
    PyObject *question = sliced ? PyTuple_Pack(2, s->node->example, sliced) : NULL;
    PyObject *fake = question ? higher_ask(t, "given_like", question) : NULL;
    PyObject *made = fake ? new_placeholder(w, fake, NULL) : NULL;
    Py_XDECREF(question);
    Py_XDECREF(fake);
    return made;
}

// --- what bodies did ---

PyObject *higher_listed(world *w, const call *c) {
    (void)c;
    higher_last(higher_now(w->torch))->form = FORM_LIST;
    return Py_NewRef(Py_None);
}

PyObject *higher_unite(world *w, const call *c) {
    const applied *r = higher_now(w->torch);
    PyObject *first = door_open(w, c->args[0]), *second = first ? door_open(w, c->args[1]) : NULL;
    assert(r->bodies.count == 2);
    if (!second || graph_unite(r->bodies.items[0], r->bodies.items[1], first, second) != ST_OK)
        return NULL;
    return Py_NewRef(Py_None);
}

// Adds the fakes of all that a body is given to a list.
static status add_inputs(const graph *body, PyObject *to) {
    for (int i = 0; i < body->inputs; i++)
        if (PyList_Append(to, ((node *)PyList_GET_ITEM(body->nodes, i))->example) < 0)
            return ST_ERROR;
    return ST_OK;
}

// The fakes of what the body gives and of what it was given, as a question. 1 if one of its
// results is no tensor of its own; -1.
static int results_of(const world *w, const call *c, PyObject *made) {
    const graph *body = higher_asked_of(w);
    for (size_t i = 0; i < call_count(c); i++) {
        PyObject *o = is_lazy(c->args[i]) ? ((lazy *)c->args[i])->inside : c->args[i];
        if (!o || !is_tensor_standin(o) || ((standin *)o)->node->scope != body->scope ||
            ((standin *)o)->node->op == NODE_PLACEHOLDER)
            return 1;
        if (PyList_Append(made, ((standin *)o)->node->example) < 0)
            return -1;
    }
    return 0;
}

static PyObject *truth(int answer) {
    return answer < 0 ? NULL : PyBool_FromLong(answer);
}

PyObject *higher_shares(world *w, const call *c) {
    if (higher_is_open(w))
        return truth(higher_open_shares(w, c));
    PyObject *made = PyList_New(0), *given = PyList_New(0), *answer = NULL;
    int shared = made && given ? results_of(w, c, made) : -1;
    if (shared == 0 && add_inputs(higher_asked_of(w), given) != ST_OK)
        shared = -1;
    PyObject *question = shared == 0 ? PyTuple_Pack(2, made, given) : NULL;
    if (shared > 0)
        answer = Py_NewRef(Py_True);
    else if (question)
        answer = higher_ask(w->torch, "share_memory", question);
    Py_XDECREF(made);
    Py_XDECREF(given);
    Py_XDECREF(question);
    return answer;
}

PyObject *higher_alike(world *w, const call *c) {
    const standin *a = tensor_of(w, c->args[0]), *b = a ? tensor_of(w, c->args[1]) : NULL;
    if (b && higher_is_open(w))
        return truth(higher_open_alike(w, a, b));
    PyObject *question = b ? PyTuple_Pack(2, a->node->example, b->node->example) : NULL;
    PyObject *answer = question ? higher_ask(w->torch, "are_alike", question) : NULL;
    Py_XDECREF(question);
    return answer;
}

// Whether what the bodies lift shares memory with each other or with these operands.
PyObject *higher_overlaps(world *w, const call *c) {
    if (higher_is_open(w))
        return truth(higher_open_overlaps(w, c));
    const graph *body = higher_last(higher_now(w->torch));
    PyObject *lifted = PyList_New(0), *operands = PyList_New(0), *n, *answer = NULL;
    Py_ssize_t at = 0;
    while (lifted && PyDict_Next(body->lifted, &at, &n, NULL))
        if (PyList_Append(lifted, ((node *)n)->example) < 0)
            Py_CLEAR(lifted);
    for (size_t i = 0; operands && i < call_count(c); i++) {
        const standin *s = tensor_of(w, c->args[i]);
        if (!s || PyList_Append(operands, s->node->example) < 0)
            Py_CLEAR(operands);
    }
    PyObject *question = lifted && operands ? PyTuple_Pack(2, lifted, operands) : NULL;
    if (question)
        answer = higher_ask(w->torch, "share_memory", question);
    Py_XDECREF(lifted);
    Py_XDECREF(operands);
    Py_XDECREF(question);
    return answer;
}

// Whether torch's operator gives tensors that require gradients: one that it is given does.
static PyObject *open_needs(world *w, const call *c, const applied *r) {
    bool needs = false;
    for (uint32_t i = 0; i < r->bodies.count; i++)
        needs = needs || higher_open_needs(r->bodies.items[i]);
    for (size_t i = 0; i < call_count(c); i++) {
        const standin *s = tensor_of(w, c->args[i]);
        if (!s)
            return NULL;
        needs = needs || s->node->meta.requires_grad;
    }
    return PyBool_FromLong(needs && state_records_gradients());
}

PyObject *higher_needs(world *w, const call *c) {
    const applied *r = higher_now(w->torch);
    if (higher_is_open(w))
        return open_needs(w, c, r);
    PyObject *given = PyList_New(0);
    for (uint32_t i = 0; given && i < r->bodies.count; i++)
        if (add_inputs(r->bodies.items[i], given) != ST_OK)
            Py_CLEAR(given);
    for (size_t i = 0; given && i < call_count(c); i++) {
        const standin *s = tensor_of(w, c->args[i]);
        if (!s || PyList_Append(given, s->node->example) < 0)
            Py_CLEAR(given);
    }
    PyObject *answer = given ? higher_ask(w->torch, "need_gradients", given) : NULL;
    Py_XDECREF(given);
    return answer;
}

// --- what the operator gives ---

bool higher_add_result(world *w, PyObject *fakes, PyObject *example, PyObject *count,
                       PyObject *needs) {
    PyObject *question = PyTuple_Pack(3, example, count, needs);
    PyObject *fake = question ? higher_ask(w->torch, "result_like", question) : NULL;
    bool added = fake && PyList_Append(fakes, fake) == 0;
    Py_XDECREF(question);
    Py_XDECREF(fake);
    return added;
}

// New list of fakes like those of the tuple's stand-ins.
static PyObject *results_like(world *w, PyObject *like, PyObject *count, PyObject *needs) {
    PyObject *fakes = PyList_New(0);
    for (Py_ssize_t i = 0; fakes && i < PyTuple_GET_SIZE(like); i++) {
        const standin *s = tensor_of(w, PyTuple_GET_ITEM(like, i));
        if (!s || !higher_add_result(w, fakes, s->node->example, count, needs))
            Py_CLEAR(fakes);
    }
    return fakes;
}

PyObject *higher_items(world *w, node *whole, PyObject *fakes) {
    PyObject *items = PyTuple_New(PyList_GET_SIZE(fakes));
    for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(fakes); i++) {
        node *n = record_item(w, whole, i, PyList_GET_ITEM(fakes, i));
        PyObject *s = n ? standin_new(w, n, facts.tensor) : NULL;
        if (s)
            PyTuple_SET_ITEM(items, i, s);
        else
            Py_CLEAR(items);
        Py_XDECREF(n);
    }
    return items;
}

// (target, stems, tuple of (tensors, count or None), whether they require gradients, argument, …):
// the operator gives tensors like these, each stacked so many times. New tuple of them.
PyObject *higher_results(world *w, const call *c) {
    PyObject *opened[4];
    for (int i = 0; i < 4; i++)
        if (!(opened[i] = door_open(w, c->args[i])))
            return NULL;
    if (higher_is_open(w)) {
        node *whole = higher_node(w, c, 4, opened[0], opened[1], NULL);
        PyObject *items =
            whole ? higher_open_results(w, whole, opened[2], opened[3] == Py_True) : NULL;
        if (items)
            higher_over(w, w->torch);
        Py_XDECREF(whole);
        return items;
    }
    PyObject *fakes = PyList_New(0), *result = NULL;
    for (Py_ssize_t i = 0; fakes && i < PyTuple_GET_SIZE(opened[2]); i++) {
        PyObject *group = PyTuple_GET_ITEM(opened[2], i);
        PyObject *more =
            results_like(w, PyTuple_GET_ITEM(group, 0), PyTuple_GET_ITEM(group, 1), opened[3]);
        if (!more || PyList_SetSlice(fakes, PY_SSIZE_T_MAX, PY_SSIZE_T_MAX, more) < 0)
            Py_CLEAR(fakes);
        Py_XDECREF(more);
    }
    PyObject *example = fakes ? PyList_AsTuple(fakes) : NULL;
    node *n = example ? higher_node(w, c, 4, opened[0], opened[1], example) : NULL;
    if (n && (result = higher_items(w, n, fakes)))
        higher_over(w, w->torch);
    Py_XDECREF(fakes);
    Py_XDECREF(example);
    Py_XDECREF(n);
    return result;
}

// Whether an operator of this name is around the innermost one.
PyObject *higher_within(world *w, const call *c) {
    const torch_trace *t = w->torch;
    PyObject *name = door_open(w, c->args[0]);
    for (uint32_t i = 0; name && i + 1 < t->applied.count; i++)
        if (higher_is(&t->applied.items[i], name))
            return Py_NewRef(Py_True);
    return name ? Py_NewRef(Py_False) : NULL;
}
