// Calls of torch.autograd.grad and Tensor.backward into nodes, where torch's settings ask for that
// (`trace_autograd_ops`). Python functions of the glue's (_gradients.py) are interpreted in their
// place. A backward pass runs on fakes; what it may not reach is a break before the call.
#include "src/torch/higher.h"
#include "src/torch/levels.h"

// --- beginning ---

PyObject *gradients_begin(world *w, const call *c) {
    torch_trace *t = trace_of(w);
    if (!t || levels_forbid(w, "a backward pass") != ST_OK)
        return NULL;
    if (t->applied.count || t->looks.count || w->scope != w->graph)
        return world_break(w, REASON_BACKWARD, "in the body of an operator");
    if (facts.inference() || t->inference)
        return world_break(w, REASON_BACKWARD, "in inference mode");
    if (w->held.calls.count)
        return world_break(w, REASON_BACKWARD, "behind a hook that is set in the same piece");
    return higher_apply(w, c, PyTuple_GET_ITEM(c->rule->extra, 2));
}

PyObject *gradients_refuse(world *w, const call *c) {
    PyObject *text = door_open(w, c->args[0]);
    PyObject *raises = c->given > 1 ? door_open(w, c->args[1]) : Py_False;
    if (!text || !raises)
        return NULL;
    return world_break(w, raises == Py_True ? REASON_TENSOR_ERROR : REASON_BACKWARD, "%S", text);
}

// --- leaves among the inputs ---

static bool may_have_gradient(const standin *s) {
    bool known = s->type == facts.tensor || s->type == facts.parameter || s->type == facts.buffer;
    return known && s->input && s->guard && s->input->example && s->input->example != Py_None;
}

// Whether it is a leaf whose gradients somebody wants, and stays one: 1, 0, -1. Hooks on a leaf are
// called by autograd alone, so it must have none.
static int is_leaf(world *w, standin *s) {
    int wanted = may_have_gradient(s) ? flag_of(s->input->example, "requires_grad") : 0;
    if (wanted <= 0)
        return wanted;
    if (input_guard_leaf(w, s) != ST_OK || input_guard_hooks(w, s) != ST_OK)
        return -1;
    return flag_of(s->input->example, "is_leaf");
}

static status add_by_rank(PyObject *list, standin *s) {
    Py_ssize_t at = PyList_GET_SIZE(list);
    while (at > 0 && ((standin *)PyList_GET_ITEM(list, at - 1))->rank > s->rank)
        at--;
    return PyList_Insert(list, at, (PyObject *)s) < 0 ? ST_ERROR : ST_OK;
}

// Stand-ins of them, in the order of the inputs. New list.
static PyObject *leaves_of(world *w) {
    const torch_trace *t = w->torch;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < t->all.count; i++) {
        standin *s = (standin *)t->all.items[i];
        int leaf = is_leaf(w, s);
        if (leaf < 0 || (leaf && add_by_rank(list, s) != ST_OK))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *fakes_of(PyObject *standins) {
    Py_ssize_t count = PyList_GET_SIZE(standins);
    PyObject *fakes = PyList_New(count);
    for (Py_ssize_t i = 0; fakes && i < count; i++) {
        const standin *s = (standin *)PyList_GET_ITEM(standins, i);
        PyList_SET_ITEM(fakes, i, Py_NewRef(s->input->example));
    }
    return fakes;
}

// --- what a backward pass reaches ---

// Asks the glue with (mode, first, second). New reference.
static PyObject *ask(const torch_trace *t, const char *name, PyObject *first, PyObject *second) {
    PyObject *args[] = {t->mode, first, second};
    quiet q;
    quiet_begin(&q);
    PyObject *answer = PyObject_Vectorcall(glue_function(name), args, 3, NULL);
    quiet_end(&q);
    return answer;
}

// Of the leaves, those that the places in `kept` name. Steals both. New list.
static PyObject *pick(PyObject *leaves, PyObject *kept) {
    PyObject *picked = kept ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; picked && i < PyList_GET_SIZE(kept); i++) {
        Py_ssize_t at = PyLong_AsSsize_t(PyList_GET_ITEM(kept, i));
        if (PyList_Append(picked, PyList_GET_ITEM(leaves, at)) < 0)
            Py_CLEAR(picked);
    }
    Py_XDECREF(leaves);
    Py_XDECREF(kept);
    return picked;
}

// gradient_leaves(tensor): the leaves among the inputs that it was computed from. New list.
PyObject *gradients_leaves(world *w, const call *c) {
    PyObject *o = door_open(w, c->args[0]);
    if (!o || !is_tensor_standin(o))
        return o ? world_break(w, REASON_BACKWARD, "of something that is no tensor") : NULL;
    PyObject *leaves = leaves_of(w), *fakes = leaves ? fakes_of(leaves) : NULL;
    PyObject *fake = fakes ? fake_of(w, ((standin *)o)->node) : NULL;
    PyObject *kept = fake ? ask(w->torch, "gradient_places", fake, fakes) : NULL;
    Py_XDECREF(fakes);
    if (kept && PyUnicode_Check(kept)) {
        world_break(w, REASON_BACKWARD, "%S", kept);
        Py_CLEAR(kept);
    }
    return pick(leaves, kept);
}

PyObject *gradients_given(world *w, const call *c) {
    PyObject *o = door_open(w, c->args[0]);
    return o ? PyBool_FromLong(is_tensor_standin(o) && is_as_it_came((standin *)o)) : NULL;
}

// Why the pass may not be recorded: a text, or None. New reference.
static PyObject *refusal(world *w, const operands *given, PyObject *fakes) {
    torch_trace *t = w->torch;
    PyObject *args = fakes_in(w, given->args);
    PyObject *kwargs = given->kwargs ? fakes_in(w, given->kwargs) : PyDict_New();
    PyObject *since = PyLong_FromUnsignedLongLong(higher_now(t)->since);
    PyObject *call = args && kwargs && since ? PyTuple_Pack(3, args, kwargs, since) : NULL;
    PyObject *answer = call ? ask(t, "gradient_refusal", call, fakes) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    Py_XDECREF(since);
    Py_XDECREF(call);
    return answer;
}

static status check_pass(world *w, const call *c) {
    operands given = {0};
    PyObject *leaves = leaves_of(w), *fakes = leaves ? fakes_of(leaves) : NULL, *why = NULL;
    quiet q;
    quiet_begin(&q);
    if (fakes && operands_of(w, c, &given) == ST_OK)
        why = refusal(w, &given, fakes);
    operands_clear(&given);
    quiet_end(&q);
    Py_XDECREF(leaves);
    Py_XDECREF(fakes);
    if (why && why != Py_None)
        world_break(w, REASON_BACKWARD, "%S", why);
    Py_XDECREF(why);
    return w->stop.broken ? ST_BREAK : why ? ST_OK : ST_ERROR;
}

// The node. extra: torch.autograd.grad.
PyObject *gradients_derive(world *w, const call *c) {
    ((torch_trace *)w->torch)->derived = true;
    call real = *c;
    real.callable = c->rule->extra;
    return check_pass(w, &real) == ST_OK ? record_call(w, NODE_CALL_FUNCTION, real.callable, &real)
                                         : NULL;
}

// --- what gets out ---

// Autograd has thrown away what a backward pass needs of these. In plain Python a second one raises;
// through a graph that is compiled as a whole it would not.
status gradients_outputs(world *w, node *const *nodes, uint32_t count) {
    const torch_trace *t = w->torch;
    if (!t || !t->derived || w->terms.replayed)
        return ST_OK;
    PyObject *fakes = PyList_New(0), *names = PyList_New(0);
    for (uint32_t i = 0; fakes && names && i < count; i++)
        if (nodes[i]->example && nodes[i]->example != Py_None &&
            (PyList_Append(fakes, nodes[i]->example) < 0 ||
             PyList_Append(names, nodes[i]->name) < 0))
            Py_CLEAR(fakes);
    PyObject *found = fakes && names ? ask(t, "gradient_consumed", fakes, names) : NULL;
    Py_XDECREF(fakes);
    Py_XDECREF(names);
    if (!found || found == Py_None) {
        Py_XDECREF(found);
        return found ? ST_OK : ST_ERROR;
    }
    world_break(w, REASON_BACKWARD, "%S", PyTuple_GET_ITEM(found, 0));
    world_break_earlier(w, PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(found, 1)));
    Py_DECREF(found);
    return ST_BREAK;
}
