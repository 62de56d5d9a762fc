// The functions that the world calls for tensors, and the functions that Python sees.
#include "src/interp/run.h"

#include "src/torch/dims.h"
#include "src/torch/levels.h"
#include "src/torch/overrides.h"

// --- the trace's part ---

// What torch.fx.traceback.annotate says around the call that is traced.
static void annotate(graph *g) {
    PyObject *now = PyObject_GetAttrString(glue_function("fx_traceback"), "current_meta");
    PyObject *custom = now && PyDict_Check(now) ? PyDict_GetItemString(now, "custom") : NULL;
    if (custom && PyDict_CheckExact(custom))
        g->custom = PyDict_Copy(custom);
    Py_XDECREF(now);
    PyErr_Clear(); // without a note the graph is as good
}

torch_trace *trace_of(world *w) {
    if (w->torch)
        return w->torch;
    torch_trace *t = PyMem_Calloc(1, sizeof(torch_trace));
    if (!t)
        return (torch_trace *)PyErr_NoMemory();
    w->torch = t;
    if (state_guard_add(w, t) == ST_OK) {
        annotate(w->graph);
        t->late = facts.rules_on && !w->terms.history && state_is_usual();
        return modes_now() == 0 || overrides_of(w) ? t : NULL;
    }
    w->torch = NULL;
    Py_XDECREF(t->device);
    PyMem_Free(t);
    return NULL;
}

static void sever(world *w) {
    torch_trace *t = w->torch;
    if (!t)
        return;
    w->torch = NULL;
    levels_drop(t);
    state_restore(t); // before modes may be asked again
    overrides_free(t);
    state_mend(t);
    fakes_drop(t);
    standins_sever(t);
    alias_group_drop(t->group);
    map_clear(&t->looked);
    map_clear(&t->numbers);
    given_clear(&t->given);
    Py_XDECREF(t->runner);
    modules_cut(t, 0);
    vec_free(&t->modules);
    vec_free(&t->looks);
    higher_free(t);
    vec_free(&t->bodies);
    vec_free(&t->within);
    map_clear(&t->classes);
    Py_XDECREF(t->asked);
    Py_XDECREF(t->contexts);
    Py_XDECREF(t->index_mode);
    Py_XDECREF(t->inference);
    Py_XDECREF(t->mode);
    Py_XDECREF(t->device);
    settings_free(t);
    PyMem_Free(t);
}

// An operation that fails must not leave the state as the operations before it have set it.
static status keep_state(graph *g, const torch_trace *t) {
    PyObject *pairs = levels_pairs(t, settings_pairs(t));
    g->keeper = pairs ? PyObject_CallOneArg(glue_function("state_keeper"), pairs) : NULL;
    Py_XDECREF(pairs);
    return g->keeper ? ST_OK : ST_ERROR;
}

// The inputs that the graph writes to are marked.
static status mark_written(world *w, const torch_trace *t) {
    for (uint32_t i = 0; t->late && i < t->all.count; i++) {
        const standin *s = (standin *)t->all.items[i];
        if (s->input)
            s->input->effects = memory_is_written(t, s) ? EFFECT_OUTSIDE : 0;
    }
    for (int i = 0; !t->late && i < w->graph->inputs; i++) {
        node *n = (node *)PyList_GET_ITEM(w->graph->nodes, i);
        PyObject *args[] = {t->mode, n->example};
        PyObject *written = PyObject_Vectorcall(glue_function("is_written"), args, 2, NULL);
        if (!written)
            return ST_ERROR;
        n->effects = written == Py_True ? EFFECT_OUTSIDE : 0;
        Py_DECREF(written);
    }
    return ST_OK;
}

static PyObject *examples_of(const graph *g) {
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(g->nodes); i++)
        if (PyList_Append(list, ((node *)PyList_GET_ITEM(g->nodes, i))->example) < 0)
            Py_CLEAR(list);
    return list;
}

// A compiled graph that fails is either undone or found again step by step; where operations are
// run one by one, it is known how far they came.
static status add_witness(world *w, const torch_trace *t) {
    graph *g = w->graph;
    if (w->terms.replayed || w->terms.recovering || !(g->effects & EFFECTS_LASTING))
        return ST_OK;
    quiet q;
    quiet_begin(&q);
    status done = t->mode || t->late ? mark_written(w, t) : ST_OK;
    PyObject *random = g->effects & EFFECT_RANDOM ? Py_True : Py_False;
    PyObject *args[] = {random, done == ST_OK ? examples_of(g) : NULL};
    if (args[1])
        g->witness = PyObject_Vectorcall(glue_function("witness"), args, 2, NULL);
    Py_XDECREF(args[1]);
    quiet_end(&q);
    return g->witness ? ST_OK : ST_ERROR;
}

// The memory of a bytearray may be a tensor's (torch.frombuffer): the twin does not see what the
// graph writes there, nor the graph what is held back.
static status check_bytes(world *w, const torch_trace *t) {
    for (uint32_t i = 0; t->group && i < w->in.all.count; i++) {
        const record *r = w->in.all.items[i];
        if (r->kind != RECORD_BYTEARRAY || !r->inside || !(r->written || w->facts.mutated_tensor))
            continue;
        const uint64_t *opened = map_get(&w->time.born, map_key(r->inside));
        world_break(w, REASON_WRITE_BACK, "a bytearray or a tensor, which may share memory");
        w->time.again = opened ? *opened : 0;
        return ST_BREAK;
    }
    return ST_OK;
}

static status end(world *w) {
    torch_trace *t = w->torch;
    if (!t)
        return ST_OK;
    TRY(levels_end(w, t));
    TRY(function_end(w));
    TRY(higher_end(w));
    TRY(bodies_end(w));
    TRY(operator_checked(w, t));
    TRY(check_bytes(w, t));
    TRY(hooks_end(w));
    TRY(random_end(w));
    TRY(logging_end(w));
    if (!w->terms.replayed)
        inputs_settle_shared(w, t);
    TRY(fakes_complete(w));
    TRY(numbers_guard(w));
    standins_date(t, w->graph);
    TRY(add_witness(w, t));
    TRY(inputs_sort(w));
    w->graph->literal = graph_is_literal(t, w->graph);
    TRY(overrides_end(w, t));
    if (!t->before) {
        overrides_wake(t);
        return ST_OK;
    }
    TRY(state_leave(w, t));
    TRY(state_tidy(w, t));
    TRY(keep_state(w->graph, t));
    state_restore(t);
    overrides_wake(t);
    if (!state_unchanged(t))
        return world_break_status(w, REASON_TORCH_STATE, "it cannot be put back");
    return ST_OK;
}

// --- what the world asks ---

// AOTAutograd makes inputs that share a storage, if one of them is written to, from one tensor. It
// makes outputs that are views of an input from that tensor, too, as if the tensor were the input.
static status replay_views(world *w, node *const *nodes, uint32_t count) {
    int escapes = w->terms.replayed ? 0 : memory_escapes(w, nodes, count);
    if (escapes > 0)
        w->graph->literal = true;
    return escapes < 0 ? ST_ERROR : ST_OK;
}

static status outputs(world *w, node *const *nodes, uint32_t count) {
    TRY(levels_outputs(w, nodes, count));
    TRY(replay_views(w, nodes, count));
    TRY(leaf_outputs(w, nodes, count));
    TRY(gradients_outputs(w, nodes, count));
    return function_outputs(w, nodes, count);
}

static bool is_tensor(PyObject *o) {
    return PyObject_TypeCheck(o, facts.base) && !is_tensor_standin(o);
}

static bool gives(const PyTypeObject *type) {
    return type == facts.tensor;
}

static bool is_model(PyObject *o) {
    PyTypeObject *type = PyType_Check(o) ? (PyTypeObject *)o : Py_TYPE(o);
    return PyType_IsSubtype(type, facts.module);
}

static PyTypeObject *type_of(PyObject *o) {
    return ((standin *)o)->type;
}

static node *node_of(PyObject *o) {
    standin *s = (standin *)o;
    return s->input ? s->input : s->node;
}

static PyObject *dresser_of(PyObject *o, PyTypeObject **class) {
    *class = ((standin *)o)->type;
    return ((standin *)o)->dressed ? facts.as_subclass : NULL;
}

static PyObject *attrs_of(PyObject *o) {
    return ((standin *)o)->attrs;
}

// The interpreter has no other operand to ask where a tensor declines.
static PyObject *binary(world *w, int kind, PyObject *left, PyObject *right) {
    PyObject *result = operator_binary(w, kind, left, right);
    if (result != Py_NotImplemented)
        return result;
    Py_DECREF(result);
    PyObject *other = is_tensor_standin(left) ? right : left;
    w->stop.refused = true;
    return world_break(w, REASON_TENSOR_OPERATION, "an operator of a tensor and a %s",
                       Py_TYPE(other)->tp_name);
}

// x == None is False, and so for all builtins that are no numbers: torch declines, and so do they.
static PyObject *compare(world *w, PyObject *left, PyObject *right, int kind) {
    PyObject *result = operator_compare(w, left, right, kind);
    if (result != Py_NotImplemented)
        return result;
    Py_DECREF(result);
    PyObject *other = door_open(w, is_tensor_standin(left) ? right : left);
    if (!other)
        return NULL;
    bool builtin = value_immutable(other) || PyList_CheckExact(other) || PyDict_CheckExact(other);
    if (builtin && (kind == Py_EQ || kind == Py_NE))
        return PyBool_FromLong(kind == Py_NE);
    return world_break(w, REASON_TENSOR_OPERATION, "a comparison of a tensor and a %s",
                       Py_TYPE(other)->tp_name);
}

// As Dynamo does: the first name that a node's value gets.
static void named(world *w, PyObject *o, PyObject *name) {
    standin *s = (standin *)o;
    if (s->world != w)
        return;
    if (!name) {
        standin_dropped(w, s);
        return;
    }
    Py_CLEAR(s->earlier); // it is a variable's value now
    if (w->run && world_is_own(w->run->code->py))
        return;
    if (s->node->renamed || s->node->op == NODE_PLACEHOLDER)
        return;
    graph *g = graph_of(w->scope, s->node);
    if (g && graph_rename(g, s->node, name) != ST_OK)
        PyErr_Clear();
}

const standin_kind tensor_kind = {
    .type = &standin_type,
    .rank = 1, // above numbers
    .type_of = type_of,
    .get = attr_of_standin,
    .set = attr_set_standin,
    .binary = binary,
    .compare = compare,
    .getitem = operator_getitem,
    .setitem = operator_setitem,
    .length = operator_len,
    .check = operator_check,
    .node_of = node_of,
    .attrs_of = attrs_of,
    .dresser_of = dresser_of,
    .named = named,
};

static bool makes_operators(PyTypeObject *type) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(facts.operator_homes); i++)
        if (PyTuple_GET_ITEM(facts.operator_homes, i) == (PyObject *)type)
            return true;
    return type == facts.packet;
}

// torch.ops, its namespaces and its packets find an operator at its first use, and keep it as an
// attribute. That it is kept is nothing that a program can tell.
static status prepare(PyObject *o, PyObject *name) {
    PyObject *kept;
    if (!makes_operators(Py_TYPE(o)) || raw_attr_get(o, name, &kept) != RAW_ABSENT)
        return ST_OK;
    quiet q;
    quiet_begin(&q);
    PyObject *made = PyObject_GetAttr(o, name);
    quiet_end(&q);
    if (!made && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return ST_ERROR;
    PyErr_Clear(); // the program finds that there is none
    Py_XDECREF(made);
    return ST_OK;
}

const tensor_ops torch_ops = {
    .package = "torch",
    .manner = type_manner_of,
    .is_tensor = is_tensor,
    .is_model = is_model,
    .gives = gives,
    .open = input_open,
    .is_array = arrays_are,
    .open_array = arrays_open,
    .is_array_standin = is_array_standin,
    .call_array = arrays_call,
    .sever = sever,
    .end = end,
    .promises = dim_promises,
    .outputs = outputs,
    .number = number_node,
    .check = record_check,
    .prepare = prepare,
    .is_taken = state_skips_hop,
};

// --- what Python sees ---

static PyObject *attached(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyBool_FromLong(world_tensors != NULL);
}

static PyObject *quick_now(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    bool dual, saved;
    if (!world_tensors || !quick_state(&dual, &saved))
        Py_RETURN_NONE;
    return Py_BuildValue("NN", PyBool_FromLong(dual), PyBool_FromLong(saved));
}

static PyObject *trust_quick(PyObject *module, PyObject *on) {
    (void)module;
    facts.quick = on == Py_True;
    Py_RETURN_NONE;
}

static PyObject *flags_now(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return flags_dict();
}

static PyObject *trust_flags(PyObject *module, PyObject *on) {
    (void)module;
    facts.flags = on == Py_True && local_keys();
    Py_RETURN_NONE;
}

static PyObject *add(PyObject *module, PyObject *rows) {
    (void)module;
    if (table_add(rows) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *tensor_facts(PyObject *module, PyObject *tensor) {
    (void)module;
    if (world_tensors && is_tensor(tensor))
        return input_facts(tensor);
    PyErr_SetString(PyExc_TypeError, "not a tensor, or torch is not attached");
    return NULL;
}

static PyObject *rule_names(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return meta_names();
}

static PyObject *if_attached(PyObject *(*function)(void)) {
    if (world_tensors)
        return function();
    PyErr_SetString(PyExc_RuntimeError, "torch is not attached");
    return NULL;
}

static PyObject *leave_autocast(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return if_attached(state_leave_nesting);
}

static PyObject *autocast_depth(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return if_attached(state_depth);
}

static PyObject *check_rules(PyObject *module, PyObject *on) {
    (void)module;
    int truth = PyObject_IsTrue(on);
    if (truth < 0)
        return NULL;
    facts.check_rules = truth;
    Py_RETURN_NONE;
}

static PyObject *restore_state(PyObject *module, PyObject *state) {
    (void)module;
    if (world_tensors)
        return state_put_back(state);
    PyErr_SetString(PyExc_RuntimeError, "torch is not attached");
    return NULL;
}

static PyObject *ended_standin(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return standin_ended();
}

static PyObject *state_now(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return version_state();
}

PyMethodDef torch_methods[] = {
    {"torch_attach", attach, METH_O,
     "torch_attach(settings): makes torch known, as stator._torch describes it."},
    {"torch_add", add, METH_O,
     "torch_add(rows): further callables of torch's, as they are in the settings of torch_attach."},
    {"torch_quick_state", quick_now, METH_NOARGS,
     "Whether forward-mode differentiation is on and hooks see saved tensors, as read from torch's "
     "memory; None if that cannot be read."},
    {"torch_flags", flags_now, METH_NOARGS,
     "The state that torch's guard compares, as torch's getters tell; None if it lacks one."},
    {"torch_trust_flags", trust_flags, METH_O, "Whether guards go by torch_flags()."},
    {"torch_layout", fakes_layout, METH_O,
     "torch_layout(node): sizes, strides, dtype, device and requires_grad of the tensor that a "
     "node gives, or None."},
    {"torch_trust_quick_state", trust_quick, METH_O, "Whether guards go by torch_quick_state()."},
    {"torch_attached", attached, METH_NOARGS, "Whether torch is known."},
    {"torch_facts", tensor_facts, METH_O,
     "What a tensor's guard sees: keys, sizes, strides, dtype, device type and index, "
     "requires_grad, offset, (storage, where its memory begins, where it ends)."},
    {"torch_autocast_depth", autocast_depth, METH_NOARGS, "How many contexts are entered."},
    {"torch_leave_autocast", leave_autocast, METH_NOARGS,
     "One autocast context less; the last one to go takes the cache along."},
    {"torch_restore_state", restore_state, METH_O, "Sets it as stator._state.save_state gave it."},
    {"torch_ended_standin", ended_standin, METH_NOARGS,
     "A tensor stand-in as traces leave them behind: every use of it is an error."},
    {"torch_state", state_now, METH_NOARGS,
     "What the engine reads of the thread's state: grad mode, inference mode, how many function "
     "modes, included and excluded dispatch keys, whether hooks see new nodes of autograd."},
    {"torch_rules", rule_names, METH_NOARGS, "Names of operations whose results rules know."},
    {"torch_check_rules", check_rules, METH_O,
     "torch_check_rules(on): whether each trace compares what rules said with torch's fakes."},
    {"torch_record", stage_record, METH_VARARGS,
     "torch_record(function, tensors): runs it on stand-ins; the graph, or why there is none."},
    {"torch_ask_rule", stage_ask_rule, METH_VARARGS,
     "torch_ask_rule(callable, args, kwargs): what its rule says of a call with these tensors: the "
     "kind of answer, (dtype, sizes, strides, requires_grad, device) of each result, a number."},
    {0},
};

int torch_setup(PyObject *module) {
    (void)module;
    return dims_setup();
}
