// A tensor's place in autograd's graph: calls of the program that concern it (hooks, kept
// gradients) are held back, and done on the tensor itself after the graph has run. Only a backward
// pass calls hooks, and no trace contains one, so nobody notices the delay.
#include "src/call/handlers.h"

#include "src/torch/higher.h"

// --- whose place it is ---

static status note_use(node *n, void *data) {
    node **wanted = data;
    if (n == *wanted)
        *wanted = NULL;
    return ST_OK;
}

// Whether a later node of the graph has taken it.
static bool is_used(const world *w, node *n) {
    PyObject *nodes = w->scope->nodes;
    node *wanted = n;
    for (Py_ssize_t i = PyList_GET_SIZE(nodes) - 1; i >= 0 && wanted; i--) {
        node *later = (node *)PyList_GET_ITEM(nodes, i);
        if (later == n)
            return false;
        (void)node_walk(later->args, note_use, &wanted);
        if (later->kwargs)
            (void)node_walk(later->kwargs, note_use, &wanted);
    }
    return true;
}

static int flag(world *w, standin *s, const char *name) {
    return fakes_settle(w) == ST_OK ? flag_of(s->node->example, name) : -1;
}

// Of a graph that is compiled as a whole autograd sees one node. What was made in it, or written
// to, and used since has no place of its own there: the trace is done again, and breaks where that
// was.
status hook_place(world *w, standin *s) {
    uint64_t changed = s->input ? ((torch_trace *)w->torch)->written : s->born;
    int leaf = s->input ? flag(w, s, "is_leaf") : 0;
    if (leaf < 0)
        return ST_ERROR;
    if (w->terms.replayed || leaf || !changed)
        return ST_OK;
    bool used = s->input || is_used(w, s->node);
    world_break(w, REASON_HOOK, "%U, in a graph that is compiled as a whole", s->node->name);
    if (used)
        world_break_earlier(w, changed + 1);
    return ST_BREAK;
}

// --- hooks ---

static PyObject *refuse(world *w, const rule *r) {
    return world_break_at(w, REASON_TENSOR_ERROR, r->object, "");
}

// Torch refuses tensors without gradient, and for some hooks those that are no leaves.
static int takes_hook(world *w, const rule *r, standin *s) {
    if (s->input && input_guard_leaf(w, s) != ST_OK)
        return -1;
    int taken = flag(w, s, "requires_grad");
    bool leaves_only = PyUnicode_Check(r->extra);
    return taken > 0 && leaves_only ? flag(w, s, "is_leaf") : taken;
}

static PyObject *new_handle(world *w) {
    PyObject *type = (PyObject *)facts.handle;
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, type, 0);
    if (!s || !door_bring(w, s, type))
        return NULL;
    PyObject *none = PyTuple_New(0);
    PyObject *made = none ? PyBaseObject_Type.tp_new(facts.handle, none, NULL) : NULL;
    Py_XDECREF(none);
    return made;
}

static status note_hooked(world *w, standin *s) {
    torch_trace *t = w->torch;
    PyObject *args[] = {t->mode, s->node->example};
    quiet q;
    quiet_begin(&q);
    PyObject *done = PyObject_Vectorcall(glue_function("hooked"), args, 2, NULL);
    quiet_end(&q);
    Py_XDECREF(done);
    return done ? ST_OK : ST_ERROR;
}

static PyObject *hold(world *w, const rule *r, standin *s, PyObject *hook) {
    PyObject *made = hook ? new_handle(w) : Py_NewRef(Py_None);
    held_call c = {
        .function = r->object, .self = (PyObject *)s, .argument = hook, .made = hook ? made : NULL};
    if (made && (note_hooked(w, s) != ST_OK || world_hold_call(w, c) != ST_OK))
        Py_CLEAR(made);
    return made;
}

// --- hooks as nodes ---

// Autograd sees a graph that is compiled as a whole as one node. Such a graph hooks the tensor
// itself, if nothing else in the trace depends on where the hook is.
static bool may_record(const world *w, const rule *r, const standin *s) {
    const torch_trace *t = w->torch;
    return !w->terms.replayed && r->extra == Py_True && !s->input && !w->time.trial &&
           t->applied.count == 0 && t->looks.count == 0 && s->node->scope == w->scope->scope &&
           glue_function("record_hook") != Py_None;
}

// Named as the tensor whose gradient it is, as in Dynamo, unless there is another name.
PyObject *hook_gradient(world *w, const call *c) {
    PyObject *o = door_open(w, c->args[0]);
    if (!o || !is_tensor_standin(o))
        return o ? world_break(w, REASON_HOOK, "of something that is no tensor") : NULL;
    const node *n = ((standin *)o)->node;
    PyObject *name = c->given > 1 ? door_open(w, c->args[1]) : n->name;
    PyObject *fake = name ? higher_ask(w->torch, "gradient_like", n->example) : NULL;
    node *made = fake ? graph_input(w->scope, name, name, fake) : NULL;
    standin *s = made ? (standin *)standin_new(w, made, facts.tensor) : NULL;
    w->scope->gradient = true;
    if (s)
        Py_CLEAR(s->input);
    Py_XDECREF(fake);
    Py_XDECREF(made);
    return (PyObject *)s;
}

// Lies in the handle of a hook that only the graph makes. Nothing can be done with such a handle: if
// the program keeps it or uses it, the trace is done again, and breaks before the call.
static PyTypeObject nothing_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "handle of a hook in the graph",
    .tp_basicsize = sizeof(PyObject),
};

static PyObject *empty_handle(world *w, uint64_t since) {
    PyObject *made = PyType_Ready(&nothing_type) == 0 ? new_handle(w) : NULL;
    PyObject *nothing = made ? PyObject_New(PyObject, &nothing_type) : NULL;
    bool fine = nothing && PyObject_SetAttrString(made, "id", nothing) == 0 &&
                map_put(&w->time.born, map_key(nothing), since) == ST_OK &&
                world_keep(w, Py_NewRef(nothing));
    Py_XDECREF(nothing);
    if (!fine)
        Py_CLEAR(made);
    return made;
}

static PyObject *nothing_in(PyObject *handle) {
    PyObject *found = NULL;
    bool plain = Py_IS_TYPE(handle, facts.handle) &&
                 raw_attr_get(handle, glue_function("id_name"), &found) == RAW_FOUND;
    return plain && found && Py_IS_TYPE(found, &nothing_type) ? found : NULL;
}

// (target, stems, tensor, argument, …): the tensor is from here on what the operator gives.
PyObject *hook_record(world *w, const call *c) {
    torch_trace *t = w->torch;
    uint64_t since = higher_now(t)->since;
    PyObject *target = door_open(w, c->args[0]), *stems = target ? door_open(w, c->args[1]) : NULL;
    standin *s = stems ? (standin *)door_open(w, c->args[2]) : NULL;
    node *n = s ? higher_node(w, c, 2, target, stems, s->node->example) : NULL;
    PyObject *made = NULL, *same = NULL;
    if (n) {
        n->meta = s->node->meta;
        same = standin_again(w, s->node, n);
    }
    if (same && note_hooked(w, s) == ST_OK && (made = empty_handle(w, since)))
        higher_over(w, t);
    Py_XDECREF(same);
    Py_XDECREF(n);
    return made;
}

// If the graph cannot hook a tensor that it has used since, the graph ends where that was made.
static PyObject *record_hook(world *w, const call *c, standin *s, PyObject *hook) {
    PyObject *both[] = {(PyObject *)s, hook};
    call by_place = {.callable = c->callable, .rule = c->rule, .args = both, .given = 2};
    if (s->born && is_used(w, s->node))
        w->time.trial = s->born + 1;
    return higher_apply(w, &by_place, glue_function("record_hook"));
}

PyObject *hook_call(world *w, const call *c) {
    const rule *r = c->rule;
    bool makes = r->extra != Py_False;
    PyObject *hook = c->given > 1 ? c->args[1] : handler_keyword(c, "hook");
    PyObject *self = door_open(w, c->args[0]);
    if (!self)
        return NULL;
    if (!is_tensor_standin(self) || makes != (hook != NULL) || call_count(c) != 1u + makes)
        return refuse(w, r);
    standin *s = (standin *)self;
    int taken = takes_hook(w, r, s);
    if (taken <= 0)
        return taken < 0 ? NULL : refuse(w, r);
    if (may_record(w, r, s))
        return record_hook(w, c, s, hook);
    return hook_place(w, s) == ST_OK ? hold(w, r, s, hook) : NULL;
}

PyObject *hook_remove(world *w, const call *a) {
    const rule *r = a->rule;
    PyObject *self = a->given == 1 && !a->keywords ? door_open(w, a->args[0]) : NULL;
    if (self && world_sealed(w, self)) {
        held_call c = {.function = r->object, .self = self};
        return world_hold_call(w, c) == ST_OK ? Py_NewRef(Py_None) : NULL;
    }
    if (PyErr_Occurred())
        return NULL;
    PyObject *nothing = self ? nothing_in(self) : NULL;
    if (nothing) {
        world_break(w, REASON_HOOK, "a hook that is removed");
        world_break_earlier(w, *map_get(&w->time.born, map_key(nothing)));
        return NULL;
    }
    if (!record_of(w, r->object))
        return world_break(w, REASON_UNKNOWN_FUNCTION, "RemovableHandle.remove");
    return call_function(w, a);
}

// --- the end ---

// The dicts that torch keeps a tensor's hooks in are the program's to look at, if it finds them.
static int is_looked_at(world *w, PyObject *tensor, const char *name) {
    PyObject *dict = PyObject_GetAttrString(tensor, name);
    bool found = dict && dict != Py_None && record_of(w, dict);
    Py_XDECREF(dict);
    return dict ? found : -1;
}

status hooks_end(world *w) {
    for (uint32_t i = 0; i < w->held.calls.count; i++) {
        record *r = record_of(w, w->held.calls.items[i].self);
        if (!r || r->kind != RECORD_TENSOR)
            continue;
        int hooks = is_looked_at(w, r->outside, "_backward_hooks");
        int others = is_looked_at(w, r->outside, "_post_accumulate_grad_hooks");
        if (hooks < 0 || others < 0)
            return ST_ERROR;
        if (hooks + others == 0)
            continue;
        world_break(w, REASON_HOOK, "a tensor whose hooks are looked at");
        world_break_earlier(w, w->held.calls.items[i].since);
        return ST_BREAK;
    }
    return ST_OK;
}

// --- what else changes places, or asks for them ---

// A tensor that is an input leaves its place for good, which a compiled graph would not do.
PyObject *hook_detach(world *w, const call *c) {
    PyObject *self = door_open(w, c->args[0]);
    if (!self)
        return NULL;
    if (is_tensor_standin(self) && (((standin *)self)->input || w->held.calls.count > 0))
        return world_break(w, REASON_HOOK, "detach_");
    return record_call(w, NODE_CALL_METHOD, c->rule->extra, c);
}

// requires_grad_(self, flag), which changes something. A tensor that the trace has made becomes a
// leaf, which a compiled graph keeps to itself (leaves.c).
PyObject *hook_requires(world *w, const call *c) {
    PyObject *self = door_open(w, c->args[0]), *flag = self ? door_open(w, c->args[1]) : NULL;
    if (!flag)
        return NULL;
    const standin *s = is_tensor_standin(self) ? (standin *)self : NULL;
    bool own = s && !s->input && !record_of(w, self) && w->scope == w->graph;
    if (!own || !(w->terms.replayed || (flag == Py_True && w->run)))
        return world_break(
            w, REASON_TENSOR_OPERATION,
            "requires_grad_() that changes a tensor from outside, or in a graph that "
            "is compiled as a whole ends its gradient");
    leaf_note(w);
    return fakes_settle(w) == ST_OK ? record_call(w, NODE_CALL_METHOD, c->rule->extra, c) : NULL;
}

static status derive_one(world *w, PyObject *o) {
    if (!(o = door_open(w, o)))
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    return is_tensor_standin(o) ? hook_place(w, (standin *)o) : ST_OK;
}

status hook_derive(world *w, const call *c) {
    PyObject *inputs = c->given > 1 ? c->args[1] : handler_keyword(c, "inputs");
    PyObject *opened = inputs ? door_open(w, inputs) : NULL;
    if (inputs && !opened)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    if (!opened || !(PyTuple_Check(opened) || PyList_Check(opened)))
        return opened ? derive_one(w, opened) : ST_OK;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(opened); i++)
        TRY(derive_one(w, PySequence_Fast_GET_ITEM(opened, i)));
    return ST_OK;
}
