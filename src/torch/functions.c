// autograd.Function: a call becomes a single node, which runs the program's own code. Before that,
// forward and backward are traced on trial, to check that they only compute, and to find what they
// depend on; their nodes are recorded in a body that is thrown away. If they do more, the trace is
// done again, and breaks before the call.
#include "src/interp/run.h"

#include "src/torch/levels.h"

static Py_ssize_t count_contexts(const torch_trace *t) {
    return t->contexts ? PyList_GET_SIZE(t->contexts) : 0;
}

// Writes to what is no tensor, and no state of torch's.
static uint64_t count_writes(const world *w, const torch_trace *t) {
    return w->held.writes - t->effects;
}

// --- what was seen ---

static bool is_given(graph *outer, const call *c, node *n) {
    for (size_t i = 0; i < call_count(c); i++) {
        PyObject *arg = c->args[i];
        arg = is_lazy(arg) ? ((lazy *)arg)->inside : arg;
        standin *s = arg && is_tensor_standin(arg) ? (standin *)arg : NULL;
        if (s &&
            (graph_lifted(outer, s->node) == n || (s->input && graph_lifted(outer, s->input) == n)))
            return true;
    }
    return false;
}

// A backend that traces the node finds real tensors in its way, if it uses others than it was
// given.
static bool uses_others(const graph *body, const call *c) {
    PyObject *n;
    Py_ssize_t at = 0;
    while (PyDict_Next(body->lifted, &at, &n, NULL))
        if (!is_given(body->outer, c, (node *)n))
            return true;
    return false;
}

static status add_fake(PyObject *o, PyObject *list) {
    o = is_lazy(o) ? ((lazy *)o)->inside : o;
    if (!o || !is_tensor_standin(o))
        return ST_OK;
    return PyList_Append(list, ((standin *)o)->node->example) < 0 ? ST_ERROR : ST_OK;
}

// New list.
static PyObject *fakes_of(PyObject *const *items, size_t count) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++)
        if (add_fake(items[i], list) != ST_OK)
            Py_CLEAR(list);
    return list;
}

static int ask(torch_trace *t, const char *question, PyObject *a, PyObject *b) {
    PyObject *args[] = {t->mode, a, b};
    quiet q;
    quiet_begin(&q);
    PyObject *answer = PyObject_Vectorcall(glue_function(question), args, b ? 3 : 2, NULL);
    quiet_end(&q);
    Py_XDECREF(answer);
    return answer ? answer == Py_True : -1;
}

// 1, 0, -1.
static int writes_to_given(torch_trace *t, const call *c) {
    PyObject *given = t->mode ? fakes_of(c->args, call_count(c)) : NULL;
    int wrote = given ? ask(t, "were_written", given, NULL) : t->mode ? -1 : 0;
    Py_XDECREF(given);
    return wrote;
}

static const char *objection(world *w, const torch_trace *t, const look *l, const call *c) {
    if (count_writes(w, t) != l->writes)
        return "writes to what is outside";
    if (world_wrote(w) &&
        (w->facts.met || w->facts.class_written)) // what is held back is not done by then
        return "may read what was written before";
    if (count_contexts(t) != l->contexts || t->inference)
        return "changes torch's state";
    if (!w->terms.replayed && uses_others(w->scope, c))
        return "uses a tensor that it was not given";
    return NULL;
}

// What operations of the look have given back stands for what it did before.
static void restore(torch_trace *t, const look *l) {
    while (t->moved.count > l->moved) {
        moved m = t->moved.items[--t->moved.count];
        Py_SETREF(m.standin->node, m.was);
        Py_CLEAR(m.standin->earlier);
    }
}

static status end_look(world *w, torch_trace *t, const look *l, const call *c) {
    restore(t, l);
    const char *why = objection(w, t, l, c);
    int wrote = why || w->terms.replayed ? 0 : writes_to_given(t, c);
    if (wrote < 0)
        return ST_ERROR;
    if (wrote)
        why = "writes to a tensor that it is given";
    if (why)
        return world_break_status(w, REASON_TENSOR_OPERATION, "an autograd.Function that %s", why);
    world_leave_body(w);
    if (l->stateless && t->before && state_unchanged(t))
        state_restore(t);
    return ST_OK;
}

// --- the look ---

status function_look(world *w) {
    torch_trace *t = trace_of(w);
    if (!t || !w->run)
        return t ? world_break_status(w, REASON_TENSOR_OPERATION, "an autograd.Function")
                 : ST_ERROR;
    TRY(fakes_settle(w)); // what is lifted into the body has a fake
    look l = {.since = w->time.trial ? w->time.trial : w->run->started,
              .writes = count_writes(w, t),
              .contexts = count_contexts(t),
              .moved = t->moved.count,
              .stateless = !t->before};
    TRY(vec_push(&t->looks, l));
    TRY(world_open_body(w));
    if (w->time.trial == 0) {
        w->facts.met = false;
        if (t->mode && ask(t, "forget_writes", Py_None, NULL) < 0)
            return ST_ERROR;
    }
    w->time.trial = l.since;
    return ST_OK;
}

// --- the node ---

// `kept`: what the node holds, and where among the arguments.
static PyObject *add_node(world *w, PyObject *class, PyObject *kept, const call *c) {
    quiet q;
    quiet_begin(&q);
    PyObject *function = PyObject_CallFunctionObjArgs(glue_function("applier"), class, kept, NULL);
    quiet_end(&q);
    call applied = *c;
    applied.callable = function;
    PyObject *result = function ? record_call(w, NODE_CALL_FUNCTION, function, &applied) : NULL;
    Py_XDECREF(function);
    return result;
}

// AOTAutograd makes outputs that share memory with something else from that anew: then gradients do
// not come by the Function.
static status note_shared(torch_trace *t, uint64_t since, const call *c, PyObject *result) {
    bool many = PyTuple_Check(result);
    PyObject *given = fakes_of(c->args, call_count(c));
    PyObject *made = many
                         ? fakes_of(PySequence_Fast_ITEMS(result), (size_t)PyTuple_GET_SIZE(result))
                         : fakes_of(&result, 1);
    int shares = given && made ? ask(t, "note_shared", given, made) : -1;
    Py_XDECREF(given);
    Py_XDECREF(made);
    if (shares > 0 && !t->shared)
        t->shared = since;
    return shares < 0 ? ST_ERROR : ST_OK;
}

status function_end(world *w) {
    const torch_trace *t = w->torch;
    if (t->looks.count == 0)
        return ST_OK;
    world_break(w, REASON_TENSOR_OPERATION, "an autograd.Function that raises");
    world_break_earlier(w, w->time.trial);
    return ST_BREAK;
}

status function_outputs(world *w, node *const *nodes, uint32_t count) {
    torch_trace *t = w->torch;
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i]->scope != w->graph->scope) {
            higher_escaped(w, nodes[i]);
            return ST_BREAK;
        }
    if (!t || !t->shared || w->terms.replayed)
        return ST_OK;
    PyObject *fakes = PyList_New(0);
    for (uint32_t i = 0; fakes && i < count; i++)
        if (PyList_Append(fakes, nodes[i]->example) < 0)
            Py_CLEAR(fakes);
    PyObject *goes_on =
        w->stop.image ? Py_True : Py_False; // behind a break the program may look at it
    int escapes = fakes ? ask(t, "are_shared", fakes, goes_on) : -1;
    Py_XDECREF(fakes);
    if (escapes <= 0)
        return escapes < 0 ? ST_ERROR : ST_OK;
    world_break(w, REASON_TENSOR_OPERATION, "an autograd.Function that gives back its argument");
    world_break_earlier(w, t->shared);
    return ST_BREAK;
}

// The class, which the entry is good for alone; borrowed.
static PyObject *class_of(world *w, const call *c) {
    PyObject *class = door_open(w, c->args[0]);
    record *known = class ? record_of(w, class) : NULL;
    if (!class || (known && record_identity(w, known) != ST_OK))
        return NULL;
    return known ? class
                 : world_break(w, REASON_TENSOR_OPERATION, "an autograd.Function made inside");
}

PyObject *function_allowed(world *w, const call *c) {
    PyObject *class = class_of(w, c);
    if (!class || levels_forbid(w, "an autograd.Function") != ST_OK ||
        body_enters(w, class, true) != ST_OK || fakes_settle(w) != ST_OK)
        return NULL;
    call rest = *c;
    rest.args++;
    rest.given--;
    ((torch_trace *)w->torch)->pending = EFFECT_UNKNOWN;
    PyObject *none = PyTuple_New(0);
    PyObject *result = none ? add_node(w, class, none, &rest) : NULL;
    Py_XDECREF(none);
    return result;
}

PyObject *function_apply(world *w, const call *c) {
    torch_trace *t = trace_of(w);
    PyObject *class = t ? class_of(w, c) : NULL, *kept = class ? operand_kept(w, c->args[1]) : NULL;
    if (!kept)
        return NULL;
    call rest = *c;
    rest.args += 2;
    rest.given -= 2;
    const look l = t->looks.items[t->looks.count - 1];
    PyObject *result = end_look(w, t, &l, &rest) == ST_OK ? add_node(w, class, kept, &rest) : NULL;
    Py_DECREF(kept);
    if (result && note_shared(t, l.since, &rest, result) != ST_OK)
        Py_CLEAR(result);
    t->looks.count--;
    if (result)
        w->time.trial = t->looks.count || t->applied.count ? l.since : 0;
    return result;
}
