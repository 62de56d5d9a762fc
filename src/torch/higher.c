// Operators that take functions: torch.cond, checkpoint and their like. A Python function of the
// glue's is interpreted in the operator's place. It calls the program's functions, each in a body of
// its own, and then the operator's node is recorded, with the bodies as attributes.
//
// The trace of a body is a trial: a break in it, or something that a body may not do, becomes a
// break before the operator, which CPython then calls.
#include "src/py/each.h"

#include "src/interp/run.h"

#include "src/attr/words.h"

#include "src/torch/higher.h"
#include "src/torch/overrides.h"

enum { CHECK_EFFECTS = 1, INDEXES = 2, OPEN_SIZES = 4, OWN_WRITES = 8 };

typedef struct higher {
    const char *name;
    int checks;
} higher;

static const higher operators[] = {
#define OPERATOR(name, checks) {#name, checks},
#include "src/torch/bodies.def"
#undef OPERATOR
};

static const higher *operator_by_name(PyObject *name) {
    for (size_t i = 0; i < Py_ARRAY_LENGTH(operators); i++)
        if (PyUnicode_Check(name) && !PyUnicode_CompareWithASCIIString(name, operators[i].name))
            return &operators[i];
    PyErr_Format(PyExc_ValueError, "no such operator with bodies: %R", name);
    return NULL;
}

bool higher_is(const applied *r, PyObject *name) {
    return PyUnicode_CompareWithASCIIString(name, r->row->name) == 0;
}

applied *higher_now(torch_trace *t) {
    return &t->applied.items[t->applied.count - 1];
}

static PyObject *refuse(world *w, const applied *r, const char *why) {
    return world_break(w, REASON_HIGHER_ORDER, "%s of a body that %s", r->row->name, why);
}

// --- beginning and end of a call ---

static void call_clear(applied *r) {
    while (r->bodies.count > 0)
        Py_DECREF(r->bodies.items[--r->bodies.count]);
    while (r->outputs.count > 0)
        Py_DECREF(r->outputs.items[--r->outputs.count]);
    vec_free(&r->bodies);
    vec_free(&r->outputs);
    moment_free(r->before);
    r->before = NULL;
    Py_CLEAR(r->state);
}

void higher_free(torch_trace *t) {
    while (t->applied.count > 0)
        call_clear(&t->applied.items[--t->applied.count]);
    vec_free(&t->applied);
    vec_free(&t->ended);
}

void higher_over(world *w, torch_trace *t) {
    call_clear(higher_now(t));
    t->applied.count--;
    if (t->applied.count == 0 && t->looks.count == 0)
        w->time.trial = 0;
    if (t->applied.count == 0)
        w->time.trial_told = false;
}

static status enter_call(world *w, torch_trace *t, const higher *row) {
    applied r = {.row = row, .since = w->time.trial ? w->time.trial : w->run->started};
    TRY(vec_push(&t->applied, r));
    // torch's function around it was compiled by itself: uncompiled it does not call the operator.
    w->time.trial_told |= (row->checks & INDEXES) && w->time.trial == 0 && w->facts.told;
    w->time.trial = r.since;
    return ST_OK;
}

// Where sizes may be left open, fakes without history do for operators that ask little of them.
static bool stays_late(const world *w, torch_trace *t, const higher *row) {
    bool open = w->numbers.sizes || w->terms.symbolic || w->terms.symbolic_all;
    bool late = t->late && open && (row->checks & OPEN_SIZES) && !t->looks.count;
    t->bodied = t->bodied || late;
    return late;
}

PyObject *higher_apply(world *w, const call *c, PyObject *operator) {
    torch_trace *t = trace_of(w);
    const higher *row = operator_by_name(PyTuple_GET_ITEM(operator, 0));
    if (!t || !row)
        return NULL;
    if (!w->run)
        return world_break(w, REASON_HIGHER_ORDER, "%s", row->name);
    if ((row->checks & INDEXES) && index_begin(w, t) != ST_OK)
        return NULL;
    // What is lifted into a body has a fake, and the program may ask about shared memory.
    if ((!stays_late(w, t, row) && fakes_settle(w) != ST_OK) || enter_call(w, t, row) != ST_OK)
        return NULL;
    return call_other(w, PyTuple_GET_ITEM(operator, 1), c);
}

PyObject *higher_begin(world *w, const call *c) {
    return higher_apply(w, c, c->rule->extra);
}

bool higher_indexes(const torch_trace *t) {
    const applied *r = t->applied.count ? &t->applied.items[t->applied.count - 1] : NULL;
    return r && r->open && (r->row->checks & INDEXES);
}

// The operator has no node of its own: those that it called have.
PyObject *higher_leave(world *w, const call *c) {
    higher_over(w, w->torch);
    return Py_NewRef(c->args[0]);
}

status higher_end(world *w) {
    torch_trace *t = w->torch;
    if (t->applied.count == 0)
        return ST_OK;
    uint64_t since = t->applied.items[0].since;
    refuse(w, higher_now(t), "does not end");
    world_break_earlier(w, since);
    return ST_BREAK;
}

void higher_escaped(world *w, const node *n) {
    const torch_trace *t = w->torch;
    world_break(w, REASON_HIGHER_ORDER, "a tensor of a body that has ended");
    for (uint32_t i = 0; t && i < t->ended.count; i++)
        if (t->ended.items[i].scope == n->scope)
            world_break_earlier(w, t->ended.items[i].since);
}

graph *higher_last(const applied *r) {
    return r->bodies.items[r->bodies.count - 1];
}

graph *higher_asked_of(const world *w) {
    const applied *r = higher_now(w->torch);
    return r->open ? w->scope : higher_last(r);
}

PyObject *higher_effects(world *w, const call *c) {
    (void)c;
    return PyLong_FromLong(higher_asked_of(w)->effects);
}

PyObject *higher_asked(world *w, const call *c) {
    torch_trace *t = w->torch;
    (void)c;
    return PyBool_FromLong(t->gradient_asked != higher_now(t)->asked_before);
}

// The fakes of all tensors that a body is given. New list.
static PyObject *given_fakes(const graph *body) {
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < body->inputs; i++) {
        PyObject *example = ((node *)PyList_GET_ITEM(body->nodes, i))->example;
        if (example != Py_None && PyList_Append(list, example) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *higher_ask(const torch_trace *t, const char *question, PyObject *argument) {
    PyObject *args[] = {t->mode, argument};
    quiet q;
    quiet_begin(&q);
    PyObject *answer = PyObject_Vectorcall(glue_function(question), args, 2, NULL);
    quiet_end(&q);
    return answer;
}

PyObject *higher_writes(world *w, const call *c) {
    torch_trace *t = w->torch;
    (void)c;
    PyObject *fakes = given_fakes(higher_asked_of(w));
    PyObject *answer = fakes && t->mode ? higher_ask(t, "were_written", fakes)
                       : fakes          ? Py_NewRef(Py_False)
                                        : NULL;
    Py_XDECREF(fakes);
    return answer;
}

static bool is_given(const world *w, const call *c, const node *n) {
    for (size_t i = 0; i < call_count(c); i++) {
        PyObject *arg = c->args[i];
        arg = is_lazy(arg) ? ((lazy *)arg)->inside : arg;
        const standin *s = arg && is_tensor_standin(arg) ? (standin *)arg : NULL;
        if (s && (graph_lifted(w->scope, s->node) == n ||
                  (s->input && graph_lifted(w->scope, s->input) == n)))
            return true;
    }
    return false;
}

// 1, 0, -1.
static int has_history(const node *n) {
    int leaf = n->example == Py_None ? 1 : flag_of(n->example, "is_leaf");
    return leaf < 0 ? -1 : !leaf;
}

PyObject *higher_others(world *w, const call *c) {
    const graph *body = higher_last(higher_now(w->torch));
    PyObject *n;
    Py_ssize_t at = 0;
    int found = 0;
    if (fakes_settle(w) != ST_OK)
        return NULL;
    quiet q;
    quiet_begin(&q);
    while (found == 0 && PyDict_Next(body->lifted, &at, &n, NULL))
        found = is_given(w, c, (node *)n) ? 0 : has_history((node *)n);
    quiet_end(&q);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

PyObject *higher_replayed(world *w, const call *c) {
    (void)c;
    return PyBool_FromLong(w->terms.replayed);
}

PyObject *higher_overridden(world *w, const call *c) {
    (void)c;
    const torch_trace *t = trace_of(w);
    const overrides *o = t ? t->overrides : NULL;
    bool asked = t && o && (o->state != FUNCTIONS_ON || modes_are_on(o));
    return t ? PyBool_FromLong(asked || t->index_mode) : NULL;
}

// --- a body ---

static Py_ssize_t count_contexts(const torch_trace *t) {
    return t->contexts ? PyList_GET_SIZE(t->contexts) : 0;
}

// As in Dynamo all tensors that the operator is given count as looked at, which decides the order of
// inputs.
static status look_at(world *w, PyObject *o) {
    if (is_lazy(o))
        return torch_ops.is_tensor(((lazy *)o)->outside) ? input_looked(w, ((lazy *)o)->source)
                                                         : ST_OK;
    for (Py_ssize_t i = 0; PyTuple_CheckExact(o) && i < PyTuple_GET_SIZE(o); i++)
        TRY(look_at(w, PyTuple_GET_ITEM(o, i)));
    PyObject *value;
    Py_ssize_t at = 0;
    while (PyDict_CheckExact(o) && PyDict_Next(o, &at, NULL, &value))
        TRY(look_at(w, value));
    return ST_OK;
}

PyObject *higher_open(world *w, const call *c) {
    torch_trace *t = w->torch;
    applied *r = higher_now(t);
    for (size_t i = 0; i < call_count(c); i++)
        if (look_at(w, c->args[i]) != ST_OK)
            return NULL;
    Py_CLEAR(r->state);
    moment_free(r->before);
    r->before = world_mark(w, c->args, call_count(c));
    if (!r->before || (t->before && !(r->state = state_set_now())))
        return NULL;
    uint32_t around = t->applied.count - 1;
    bool asked = around == 0 || (around == 1 && (r->row->checks & OWN_WRITES));
    if (t->mode && asked && t->looks.count == 0) {
        PyObject *done = higher_ask(t, "forget_writes", Py_None);
        Py_XDECREF(done);
        if (!done)
            return NULL;
    }
    r->grad = facts.grad_enabled();
    r->contexts = count_contexts(t);
    r->moved = t->moved.count;
    r->asked_before = t->gradient_asked;
    if (world_open_body(w) != ST_OK)
        return NULL;
    r->open = true;
    return Py_NewRef(Py_None);
}

// Grad mode, and what setters of the table set. (Autocast's depth is one more once the trace has
// saved the state; its contexts are counted.) 1, 0, -1.
static int is_state_as_before(const torch_trace *t, const applied *r) {
    if (facts.grad_enabled() != r->grad || count_contexts(t) != r->contexts || t->inference)
        return 0;
    if (!t->before)
        return 1;
    PyObject *now = state_set_now(), *then = r->state ? r->state : t->before;
    int same =
        now ? PyObject_RichCompareBool(PyTuple_GET_ITEM(now, 2), PyTuple_GET_ITEM(then, 2), Py_EQ)
            : -1;
    Py_XDECREF(now);
    return same;
}

// Tensors from outside of the body that it has written to stand for what they did before: the
// operator's node does the writing.
static void move_back(torch_trace *t, const applied *r, const graph *body) {
    while (t->moved.count > r->moved) {
        moved m = t->moved.items[--t->moved.count];
        if (m.was->scope == body->scope) {
            Py_DECREF(m.was);
            continue;
        }
        Py_SETREF(m.standin->node, m.was);
        Py_CLEAR(m.standin->earlier);
    }
}

static status check_body(world *w, const torch_trace *t, const applied *r) {
    int same = is_state_as_before(t, r);
    int changed = same > 0 && (r->row->checks & CHECK_EFFECTS) ? world_changed(w, r->before) : 0;
    if (same < 0 || changed < 0)
        return ST_ERROR;
    if (same && !changed)
        return ST_OK;
    const char *unknown = same ? moment_unknown(r->before) : NULL;
    if (unknown)
        return world_break_status(w, REASON_HIGHER_ORDER, "%s of a body that may change a %s",
                                  r->row->name, unknown);
    refuse(w, r, same ? "changes what is outside of it" : "leaves torch's state changed");
    return ST_BREAK;
}

// --- what a body gives ---

typedef struct gathering {
    const world *w;
    int scope;
    PyObject *found; // list
    map seen;
} gathering;

static int gather(PyObject *o, void *data);

static int gather_dict(gathering *g, PyObject *dict) {
    raw_cursor at = {0};
    PyObject *key, *value;
    while (raw_dict_next(dict, &at, &key, &value))
        if (gather(key, g) < 0 || gather(value, g) < 0)
            return -1;
    return 0;
}

static int gather_attributes(gathering *g, PyObject *o) {
    PyObject *names = raw_attr_names(o), *value;
    int failed = names ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(names); i++)
        if (raw_attr_get(o, PyList_GET_ITEM(names, i), &value) == RAW_FOUND)
            failed = gather(value, g);
    Py_XDECREF(names);
    return failed;
}

static int gather_standin(gathering *g, standin *s) {
    if (s->node->scope == g->scope && PyList_Append(g->found, (PyObject *)s) < 0)
        return -1;
    return s->attrs ? gather(s->attrs, g) : 0;
}

// What a result is usually made of. A tensor that lies in something else is found when it is used,
// see higher_escaped.
static int gather(PyObject *o, void *data) {
    gathering *g = data;
    PyTypeObject *type = Py_TYPE(o);
    if (is_lazy(o))
        return ((lazy *)o)->inside ? gather(((lazy *)o)->inside, g) : 0;
    if (map_get(&g->seen, map_key(o)) || value_immutable(o))
        return 0;
    if (map_put(&g->seen, map_key(o), 1) != ST_OK)
        return -1;
    if (is_tensor_standin(o))
        return gather_standin(g, (standin *)o);
    if (is_standin(o) || PyType_Check(o) || record_of(g->w, o))
        return 0;
    if (PyDict_Check(o) && gather_dict(g, o) < 0)
        return -1;
    if (raw_is_python_class(type) && raw_has_dict(type) && gather_attributes(g, o) < 0)
        return -1;
    if (PyTuple_Check(o) || PyList_Check(o)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
            if (gather(PySequence_Fast_GET_ITEM(o, i), g) < 0)
                return -1;
        return 0;
    }
    bool holds = type == &PyCell_Type || type == &PyMethod_Type || type == &PyFunction_Type;
    return holds ? type->tp_traverse(o, gather, g) : 0;
}

// The stand-ins of the scope that a result leads to. New list.
static PyObject *outputs_of(const world *w, const graph *body, PyObject *result) {
    gathering g = {.w = w, .scope = body->scope, .found = PyList_New(0)};
    if (g.found && gather(result, &g) < 0)
        Py_CLEAR(g.found);
    map_clear(&g.seen);
    return g.found;
}

static status keep_body(torch_trace *t, applied *r, graph *body, PyObject *outputs) {
    ended_body e = {body->scope, r->since};
    if (!outputs || vec_push(&r->outputs, outputs) != ST_OK) {
        Py_XDECREF(outputs);
        return ST_ERROR;
    }
    TRY(vec_push(&r->bodies, (graph *)Py_NewRef(body)));
    return vec_push(&t->ended, e);
}

status higher_leave_body(world *w, PyObject *outputs) {
    torch_trace *t = w->torch;
    applied *r = higher_now(t);
    if (keep_body(t, r, w->scope, outputs) != ST_OK)
        return ST_ERROR;
    world_leave_body(w);
    r->open = false;
    return ST_OK;
}

status higher_check_body(world *w) {
    torch_trace *t = w->torch;
    const applied *r = higher_now(t);
    graph *body = w->scope;
    TRY(check_body(w, t, r));
    if (body->effects & EFFECT_WRITES)
        TRY(fakes_settle(w));
    move_back(t, r, body); // what the body wrote to is no result of its own
    return ST_OK;
}

PyObject *higher_close(world *w, const call *c) {
    if (higher_check_body(w) != ST_OK ||
        higher_leave_body(w, outputs_of(w, w->scope, c->args[0])) != ST_OK)
        return NULL;
    return Py_NewRef(Py_None);
}

status higher_forget_body(world *w) {
    torch_trace *t = w->torch;
    applied *r = higher_now(t);
    if (w->scope->effects != 0) {
        refuse(w, r, "raises behind an operation with effects");
        return ST_BREAK;
    }
    ended_body e = {w->scope->scope, r->since};
    TRY(vec_push(&t->ended, e));
    move_back(t, r, w->scope);
    world_leave_body(w);
    r->open = false;
    return ST_OK;
}

// The body has raised: its operations never ran in the program either, unless they did something
// besides.
PyObject *higher_drop(world *w, const call *c) {
    torch_trace *t = w->torch;
    (void)c;
    if (higher_now(t)->open && higher_forget_body(w) != ST_OK)
        return NULL;
    higher_over(w, t);
    return Py_NewRef(Py_None);
}

// --- metadata ---

// The object from outside that an argument stands for, which later calls must have, too; of a
// recipe (_higher.py) the objects in it. New reference.
static PyObject *real_object(void *data, PyObject *argument) {
    world *w = data;
    PyObject *o = door_open(w, argument);
    if (o && PyTuple_CheckExact(o))
        return py_each(PySequence_Fast_ITEMS(o), PyTuple_GET_SIZE(o), true, real_object, w);
    if (!o || value_immutable(o))
        return Py_XNewRef(o);
    record *known = is_standin(o) ? NULL : record_of(w, o);
    if (known && known->outside == o)
        return record_identity(w, known) == ST_OK ? Py_NewRef(o) : NULL;
    return world_break(w, REASON_HIGHER_ORDER, "with an object of type %s", Py_TYPE(o)->tp_name);
}

static PyObject *made_of(world *w, PyObject *recipe) {
    PyObject *real = real_object(w, recipe);
    quiet q;
    quiet_begin(&q);
    PyObject *made = real ? PyObject_CallOneArg(glue_function("made"), real) : NULL;
    quiet_end(&q);
    Py_XDECREF(real);
    return made;
}

PyObject *higher_meta(world *w, const call *c) {
    applied *r = higher_now(w->torch);
    graph *body = higher_last(r);
    PyObject *name = door_open(w, c->args[0]), *value = name ? made_of(w, c->args[1]) : NULL;
    if (value && !body->meta)
        body->meta = PyDict_New();
    int failed = value && body->meta ? PyDict_SetItem(body->meta, name, value) : -1;
    Py_XDECREF(value);
    return failed < 0 ? NULL : Py_NewRef(Py_None);
}

// torch.fx.traceback.annotate: what is said of the nodes that are made from now on.
PyObject *higher_annotate(world *w, const call *c) {
    PyObject *custom = trace_of(w) ? made_of(w, c->args[0]) : NULL;
    if (!custom)
        return NULL;
    Py_XSETREF(w->scope->custom, custom == Py_None ? NULL : Py_NewRef(custom));
    Py_DECREF(custom);
    return Py_NewRef(Py_None);
}

// --- the node ---

// Nodes of the list's stand-ins. New tuple.
static PyObject *nodes_of(PyObject *standins) {
    PyObject *nodes = PyTuple_New(PyList_GET_SIZE(standins));
    for (Py_ssize_t i = 0; nodes && i < PyList_GET_SIZE(standins); i++)
        PyTuple_SET_ITEM(nodes, i, Py_NewRef(((standin *)PyList_GET_ITEM(standins, i))->node));
    return nodes;
}

// A failure within the body asks for none of its values.
static void let_values_go(const graph *body) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(body->nodes); i++)
        ((node *)PyList_GET_ITEM(body->nodes, i))->dies = 0;
}

static status close_body(graph *body, PyObject *outputs) {
    PyObject *nodes = PyTuple_Check(outputs) ? Py_NewRef(outputs) : nodes_of(outputs);
    if (!nodes)
        return ST_ERROR;
    let_values_go(body);
    status done = graph_close(body, nodes, NULL);
    Py_DECREF(nodes);
    return done;
}

// What the operator's node is made of, by the texts that _higher.py has in their places.
typedef struct parts {
    const applied *r;
    PyObject *attributes; // list of the nodes of bodies
} parts;

// Adds what an argument stands for to a list. Lists and tuples are made again.
static status add_part(const parts *p, PyObject *argument, PyObject *to);

static PyObject *parts_in(const parts *p, PyObject *items) {
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < PySequence_Fast_GET_SIZE(items); i++)
        if (add_part(p, PySequence_Fast_GET_ITEM(items, i), list) != ST_OK)
            Py_CLEAR(list);
    if (!list || PyList_CheckExact(items))
        return list;
    PyObject *tuple = PyList_AsTuple(list);
    Py_DECREF(list);
    return tuple;
}

static status add_lifted(const graph *body, PyObject *to) {
    PyObject *n;
    Py_ssize_t at = 0;
    while (PyDict_Next(body->lifted, &at, &n, NULL))
        if (PyList_Append(to, n) < 0)
            return ST_ERROR;
    return ST_OK;
}

static bool is_marker(PyObject *o, const char *kind, unsigned *number) {
    const char *text = PyUnicode_CheckExact(o) ? PyUnicode_AsUTF8(o) : NULL;
    size_t length = strlen(kind);
    if (!text || strncmp(text, kind, length) != 0)
        return false;
    *number = (unsigned)(text[length] - '0');
    return true;
}

static status add_part(const parts *p, PyObject *o, PyObject *to) {
    unsigned number;
    if (is_marker(o, "<body ", &number) && number < p->r->bodies.count)
        return PyList_Append(to, PyList_GET_ITEM(p->attributes, number)) < 0 ? ST_ERROR : ST_OK;
    if (is_marker(o, "<lifted ", &number) && number < p->r->bodies.count)
        return add_lifted(p->r->bodies.items[number], to);
    PyObject *made = PyTuple_CheckExact(o) || PyList_CheckExact(o) ? parts_in(p, o) : Py_NewRef(o);
    int failed = made ? PyList_Append(to, made) : -1;
    Py_XDECREF(made);
    return failed < 0 ? ST_ERROR : ST_OK;
}

// The bodies, closed, as attributes of the graph around them. New list of nodes.
static PyObject *attributes_of(world *w, const applied *r, PyObject *stems) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < r->bodies.count; i++) {
        PyObject *body = (PyObject *)r->bodies.items[i];
        bool closed = close_body(r->bodies.items[i], r->outputs.items[i]) == ST_OK;
        node *n = closed ? graph_attribute(w->scope, PyTuple_GET_ITEM(stems, i), body) : NULL;
        if (!n || PyList_Append(list, (PyObject *)n) < 0)
            Py_CLEAR(list);
        Py_XDECREF(n);
    }
    return list;
}

// The arguments from `from` on, as a node has them, with the parts put in. New tuple.
static PyObject *arguments_of(world *w, const call *c, size_t from, const parts *p) {
    PyObject *list = PyList_New(0);
    for (size_t i = from; list && i < c->given; i++) {
        PyObject *argument = operand_convert(w, c->args[i]);
        if (!argument || add_part(p, argument, list) != ST_OK)
            Py_CLEAR(list);
        Py_XDECREF(argument);
    }
    PyObject *args = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return args;
}

static PyObject *keywords_of(world *w, const call *c) {
    PyObject *kwargs = PyDict_New();
    for (Py_ssize_t i = 0; kwargs && c->keywords && i < PyTuple_GET_SIZE(c->keywords); i++) {
        PyObject *value = operand_convert(w, c->args[c->given + (size_t)i]);
        if (!value || PyDict_SetItem(kwargs, PyTuple_GET_ITEM(c->keywords, i), value) < 0)
            Py_CLEAR(kwargs);
        Py_XDECREF(value);
    }
    return kwargs;
}

// The fakes of stand-ins. New tuple.
static PyObject *examples_of(PyObject *standins) {
    PyObject *fakes = PyTuple_New(PyList_GET_SIZE(standins));
    for (Py_ssize_t i = 0; fakes && i < PyList_GET_SIZE(standins); i++)
        PyTuple_SET_ITEM(fakes, i,
                         Py_NewRef(((standin *)PyList_GET_ITEM(standins, i))->node->example));
    return fakes;
}

// What the body has computed is what the operator gives, from here on.
static status point_to(world *w, torch_trace *t, node *whole, PyObject *outputs) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); i++) {
        standin *s = (standin *)PyList_GET_ITEM(outputs, i);
        node *n = record_item(w, whole, i, s->node->example);
        if (!n || map_put(&t->owners, map_key(n), map_key(s)) != ST_OK) {
            Py_XDECREF(n);
            return ST_ERROR;
        }
        n->meta = s->node->meta;
        Py_SETREF(s->node, n);
        Py_CLEAR(s->earlier);
    }
    return ST_OK;
}

node *higher_node(world *w, const call *c, size_t from, PyObject *target, PyObject *stems,
                  PyObject *example) {
    torch_trace *t = w->torch;
    const applied *r = higher_now(t);
    parts p = {r, attributes_of(w, r, stems)};
    PyObject *args = p.attributes ? arguments_of(w, c, from, &p) : NULL;
    PyObject *kwargs = args ? keywords_of(w, c) : NULL;
    for (uint32_t i = 0; i < r->bodies.count; i++)
        t->pending |= r->bodies.items[i]->effects;
    node *n = kwargs ? record_known(w, target, args, kwargs, example) : NULL;
    for (Py_ssize_t i = 0; n && i < PyList_GET_SIZE(p.attributes); i++)
        Py_SETREF(((node *)PyList_GET_ITEM(p.attributes, i))->stack, Py_NewRef(n->stack));
    Py_XDECREF(p.attributes);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return n;
}

static status add_node(world *w, const call *c, PyObject *target, PyObject *stems) {
    torch_trace *t = w->torch;
    PyObject *outputs = higher_now(t)->outputs.items[0], *example = examples_of(outputs);
    node *n = example ? higher_node(w, c, 3, target, stems, example) : NULL;
    status done = n ? point_to(w, t, n, outputs) : ST_ERROR;
    Py_XDECREF(example);
    Py_XDECREF(n);
    return done;
}

// (its target, the stems of the bodies' names, a function, argument, …): the result, which is new
// tensors. The function, called with fakes, says what they are like.
PyObject *higher_new(world *w, const call *c) {
    torch_trace *t = w->torch;
    const applied *r = higher_now(t);
    PyObject *target = door_open(w, c->args[0]);
    PyObject *stems = target ? door_open(w, c->args[1]) : NULL;
    PyObject *function = stems ? door_open(w, c->args[2]) : NULL;
    parts p = {r, function ? attributes_of(w, r, stems) : NULL};
    PyObject *stack = p.attributes ? world_trail(w) : NULL;
    for (Py_ssize_t i = 0; stack && i < PyList_GET_SIZE(p.attributes); i++)
        Py_SETREF(((node *)PyList_GET_ITEM(p.attributes, i))->stack, Py_NewRef(stack));
    operands given = {stack ? arguments_of(w, c, 3, &p) : NULL, NULL};
    PyObject *result = given.args ? record_operands(w, target, function, &given) : NULL;
    Py_XDECREF(p.attributes);
    Py_XDECREF(stack);
    operands_clear(&given);
    if (result)
        higher_over(w, t);
    return result;
}

// (what the operator gives, its target, the stems of the bodies' names, argument, …): the result.
PyObject *higher_call(world *w, const call *c) {
    torch_trace *t = w->torch;
    PyObject *target = door_open(w, c->args[1]);
    PyObject *stems = target ? door_open(w, c->args[2]) : NULL;
    if (!stems || add_node(w, c, target, stems) != ST_OK)
        return NULL;
    higher_over(w, t);
    return Py_NewRef(c->args[0]);
}
