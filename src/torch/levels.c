// Calls that enter and leave levels, or wrap tensors for them, into nodes; breaks where a level
// would outlive its trace.
#include "src/torch/levels.h"

#include "src/py/raised.h"

#include "src/interp/run.h"

#include "src/torch/overrides.h"

// --- tensors ---

bool is_wrapper(PyObject *o) {
    seen s;
    return Py_IS_TYPE(o, facts.tensor) && facts.keys_at && read_tensor(o, &s) &&
           (s.keys & facts.level_keys);
}

// The level that is on and has this number; levels of forward-mode differentiation wrap nothing. 0:
// none.
static uint32_t level_numbered(const levels *l, long number) {
    for (uint32_t i = l->top; i; i = l->all.items[i - 1].outer)
        if (l->all.items[i - 1].wraps && l->all.items[i - 1].number == number)
            return i;
    return 0;
}

// A wrapper whose level has ended says that it has none: all that is known is that some level of
// this trace has made it.
status levels_note(torch_trace *t, standin *s) {
    levels *l = &t->levels;
    if (l->all.count == 0 || s->level || !is_wrapper(s->node->example))
        return ST_OK;
    PyObject *said = PyObject_CallOneArg(glue_function("maybe_get_level"), s->node->example);
    long number = said ? PyLong_AsLong(said) : -1;
    Py_XDECREF(said);
    if (number == -1 && PyErr_Occurred())
        return ST_ERROR;
    uint32_t found = level_numbered(l, number);
    s->level = found ? found : l->all.count;
    return ST_OK;
}

static const level *level_of(const torch_trace *t, const standin *s) {
    return s->level ? &t->levels.all.items[s->level - 1] : NULL;
}

// Gradients may be asked of a grad level that has ended (the function that vjp gives does so). What
// vmap's tensors are by then only torch knows.
status levels_check(world *w, const standin *s) {
    const torch_trace *t = w->torch;
    for (const level *l = level_of(t, s); l;
         l = l->outer ? &t->levels.all.items[l->outer - 1] : NULL)
        if (!l->on && l->batches)
            return world_break_status(w, REASON_TENSOR_OPERATION,
                                      "a tensor of a vmap that has ended");
    return ST_OK;
}

status levels_forbid(world *w, const char *what) {
    if (!levels_on(w->torch))
        return ST_OK;
    return world_break_status(w, REASON_TENSOR_OPERATION, "%s in a function transform", what);
}

bool levels_have_effects(const torch_trace *t) {
    return levels_on(t) && t->levels.effects & EFFECTS_LASTING;
}

// --- the state around levels ---

static PyObject *call_glue(const char *name, PyObject *argument) {
    quiet q;
    quiet_begin(&q);
    PyObject *result = argument ? PyObject_CallOneArg(glue_function(name), argument)
                                : PyObject_CallNoArgs(glue_function(name));
    quiet_end(&q);
    return result;
}

// 1, 0, -1.
static int is_as_before(const levels *l) {
    PyObject *now = l->before ? call_glue("levels_now", NULL) : NULL;
    int same = now ? PyObject_RichCompareBool(now, l->before, Py_EQ) : l->before ? -1 : 1;
    Py_XDECREF(now);
    return same;
}

// The frame of the program's own that calls the transform. NULL if the trace has not called that
// frame, or goes on in frames that wait for it: a break in a level could not be one before the
// transform.
static const run *caller(const world *w) {
    const run *found = NULL;
    for (const run *r = w->run; r; r = r->below) {
        if (r->level > 0)
            return NULL;
        if (!found && !code_in_library(r->code->py))
            found = r;
    }
    return found;
}

// To be called before the trace changes anything here.
static status prepare(world *w, torch_trace *t) {
    levels *l = &t->levels;
    if (!w->run || !facts.keys_at)
        return world_break_status(w, REASON_TENSOR_OPERATION, "a function transform");
    if (facts.inference() || t->inference)
        return world_break_status(w, REASON_TORCH_STATE, "a function transform in inference mode");
    if (t->looks.count)
        return world_break_status(w, REASON_TENSOR_OPERATION,
                                  "a function transform in an autograd.Function");
    const run *whose = caller(w);
    if (!whose && !levels_on(t))
        return world_break_status(w, REASON_TENSOR_OPERATION,
                                  "a function transform, in a trace that began behind its call");
    PyObject *class = fixed_object(w, (PyObject *)facts.tensor); // torch's code asks what it wraps
    Py_XDECREF(class);
    if (!class)
        return ST_ERROR;
    TRY(fakes_settle(w));
    TRY(fakes_mode(w, t));
    TRY(state_save(t));
    if (!l->before && !(l->before = call_glue("levels_now", NULL)))
        return ST_ERROR;
    int same = levels_on(t) ? 0 : is_as_before(l);
    if (same > 0 && whose)
        l->since = whose->started;
    world_touch(w);
    return same < 0 ? ST_ERROR : ST_OK;
}

// --- calls ---

// A call's arguments, as plain values.
typedef struct given_plainly {
    PyObject *args, *kwargs; // strong; the second may be NULL
} given_plainly;

static void plainly_clear(given_plainly *p) {
    Py_CLEAR(p->args);
    Py_CLEAR(p->kwargs);
}

static status take_keywords(world *w, const call *c, PyObject *to) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c->keywords); i++) {
        PyObject *value = plain_value(w, c->args[c->given + (size_t)i]);
        int failed = value ? PyDict_SetItem(to, PyTuple_GET_ITEM(c->keywords, i), value) : -1;
        Py_XDECREF(value);
        if (failed < 0)
            return ST_ERROR;
    }
    return ST_OK;
}

static status take_plainly(world *w, const call *c, given_plainly *p) {
    p->args = PyTuple_New((Py_ssize_t)c->given);
    for (size_t i = 0; p->args && i < c->given; i++) {
        PyObject *value = plain_value(w, c->args[i]);
        if (!value)
            return ST_ERROR;
        PyTuple_SET_ITEM(p->args, (Py_ssize_t)i, value);
    }
    if (!p->args || !c->keywords)
        return p->args ? ST_OK : ST_ERROR;
    p->kwargs = PyDict_New();
    return p->kwargs ? take_keywords(w, c, p->kwargs) : ST_ERROR;
}

static node *add_node(world *w, PyObject *function, const given_plainly *p, bool shown) {
    return shown ? record_setter(w, function, p->args)
                 : record_switch(w, function, p->args, p->kwargs);
}

// Calls the row's function for real, and records it. New reference to what it gave. `shown`: the
// node says where it comes from.
static PyObject *do_both(world *w, const call *c, bool shown) {
    given_plainly p = {0};
    PyObject *result = NULL;
    if (take_plainly(w, c, &p) == ST_OK) {
        quiet q;
        quiet_begin(&q);
        result = PyObject_Call(c->rule->object, p.args, p.kwargs);
        quiet_end(&q);
        if (!result && !error_stays(w)) {
            PyErr_Clear();
            world_break(w, REASON_TENSOR_ERROR, "%s", c->rule->path);
        }
    }
    node *n = result ? add_node(w, c->rule->object, &p, shown) : NULL;
    if (!n)
        Py_CLEAR(result);
    Py_XDECREF(n);
    plainly_clear(&p);
    return result;
}

// --- entering and leaving ---

static bool is_kind(PyObject *kind, const char *name) {
    return PyUnicode_CompareWithASCIIString(kind, name) == 0;
}

static status push(world *w, levels *l, PyObject *kind, PyObject *number) {
    level made = {.kind = kind,
                  .number = PyLong_AsLong(number),
                  .outer = l->top,
                  .scope = w->scope->scope,
                  .since = l->since,
                  .on = true,
                  .wraps = !is_kind(kind, "dual"),
                  .batches = is_kind(kind, "vmap")};
    if (made.number == -1 && PyErr_Occurred())
        return ST_ERROR;
    TRY(vec_push(&l->all, made));
    if (!l->top) {
        l->effects = 0;
        l->trial = w->time.trial;
        w->time.trial = l->trial ? l->trial : l->since;
    }
    l->top = l->all.count;
    return ST_OK;
}

PyObject *level_enter(world *w, const call *c) {
    torch_trace *t = trace_of(w);
    if (!t || prepare(w, t) != ST_OK)
        return NULL;
    PyObject *number = do_both(w, c, false);
    if (number && push(w, &t->levels, c->rule->extra, number) != ST_OK)
        Py_CLEAR(number);
    return number;
}

static void pop(world *w, levels *l) {
    level *left = &l->all.items[l->top - 1];
    left->on = false;
    l->top = left->outer;
    if (!l->top)
        w->time.trial = l->trial;
}

PyObject *level_exit(world *w, const call *c) {
    torch_trace *t = trace_of(w);
    const level *top = t && levels_on(t) ? &t->levels.all.items[t->levels.top - 1] : NULL;
    if (t && (!top || top->scope != w->scope->scope ||
              PyUnicode_Compare(top->kind, c->rule->extra) != 0))
        return world_break(w, REASON_TORCH_STATE, "%s of a level that was not entered here",
                           c->rule->path);
    if (!t)
        return NULL;
    world_touch(w);
    PyObject *result = do_both(w, c, false);
    if (result)
        pop(w, &t->levels);
    return result;
}

// --- the others ---

// Gives nothing, and sets what the trace has to set back.
PyObject *level_set(world *w, const call *c) {
    torch_trace *t = trace_of(w);
    if (!t || !state_answer(w, c->rule->extra) || prepare(w, t) != ST_OK)
        return NULL;
    PyObject *result = do_both(w, c, false);
    PyObject *answer = result ? PyObject_CallNoArgs(c->rule->extra) : NULL;
    if (!answer || state_answers(w, c->rule->extra, answer) != ST_OK)
        Py_CLEAR(result);
    Py_XDECREF(answer);
    return result;
}

PyObject *level_load(world *w, const call *c) {
    torch_trace *t = trace_of(w);
    return t && prepare(w, t) == ST_OK ? do_both(w, c, true) : NULL;
}

// A wrapper's class is Tensor. Whom torch would ask of other classes is not looked into.
static status check_classes(world *w, const call *c) {
    for (size_t i = 0; i < call_count(c); i++) {
        PyObject *o = door_open(w, c->args[i]);
        PyTypeObject *type = o && is_tensor_standin(o) ? ((standin *)o)->type : NULL;
        if (!o)
            return ST_ERROR;
        if (type && type != facts.tensor && type != facts.parameter && type != facts.buffer)
            return world_break_status(w, REASON_TENSOR_OPERATION, "a %s in a function transform",
                                      type->tp_name);
    }
    return ST_OK;
}

PyObject *level_call(world *w, const call *c) {
    torch_trace *t = trace_of(w);
    if (t && t->levels.all.count == 0)
        return world_break(w, REASON_TENSOR_OPERATION, "%s outside of a transform", c->rule->path);
    if (t && c->rule->extra == Py_True && modes_are_on(t->overrides))
        return world_break(w, REASON_TENSOR_OPERATION, "%s under a function mode", c->rule->path);
    return t && check_classes(w, c) == ST_OK
               ? record_call(w, NODE_CALL_FUNCTION, c->rule->object, c)
               : NULL;
}

// Where the trace has entered a level itself, no guard could check the answer; where it has not,
// the answer is that of the state before the trace.
PyObject *level_asked(world *w, const call *c) {
    torch_trace *t = trace_of(w);
    if (!t || !levels_on(t))
        return t ? state_asked(w, c) : NULL;
    given_plainly p = {0};
    PyObject *answer =
        take_plainly(w, c, &p) == ST_OK ? PyObject_Call(c->rule->object, p.args, p.kwargs) : NULL;
    plainly_clear(&p);
    if (answer && !value_immutable(answer)) {
        Py_CLEAR(answer);
        world_break(w, REASON_TORCH_STATE, "%s in a function transform", c->rule->path);
    }
    return answer;
}

// --- the end ---

static status break_before(world *w, uint64_t since, const char *why) {
    world_break(w, REASON_TORCH_STATE, "%s", why);
    world_break_earlier(w, since);
    return ST_BREAK;
}

status levels_end(world *w, torch_trace *t) {
    const levels *l = &t->levels;
    if (levels_on(t))
        return break_before(w, l->since, "a function transform is not left in the same piece");
    int same = is_as_before(l);
    if (same < 0)
        return ST_ERROR;
    return same ? ST_OK : break_before(w, l->since, "state of function transforms is not set back");
}

status levels_outputs(world *w, node *const *nodes, uint32_t count) {
    const torch_trace *t = w->torch;
    for (uint32_t i = 0; t && t->levels.all.count && i < count; i++) {
        uint64_t *owner = map_get(&t->owners, map_key(nodes[i]));
        const level *l = owner ? level_of(t, (standin *)(uintptr_t)*owner) : NULL;
        if (l && is_wrapper(nodes[i]->example))
            return break_before(w, l->since, "a tensor of a function transform outlives it");
    }
    return ST_OK;
}

PyObject *levels_pairs(const torch_trace *t, PyObject *pairs) {
    if (!pairs || !t->levels.before)
        return pairs;
    PyObject *ours =
        Py_BuildValue("((OO))", glue_function("put_levels_back"), glue_function("levels_now"));
    PyObject *all = ours ? PySequence_Concat(ours, pairs) : NULL;
    Py_XDECREF(ours);
    Py_DECREF(pairs);
    return all;
}

void levels_drop(torch_trace *t) {
    levels *l = &t->levels;
    if (l->before) {
        py_raised aside = py_put_aside();
        PyObject *done = call_glue("put_levels_back", l->before);
        if (!done)
            PyErr_WriteUnraisable(l->before);
        Py_XDECREF(done);
        py_put_on(aside);
    }
    Py_CLEAR(l->before);
    vec_free(&l->all);
}
