// Torch's state outside of objects. It is guarded as a group, set for real while tracing, and
// restored at the end. If the program would have left it changed, the plan sets it by calls of C
// functions.
#include "src/py/raised.h"

#include "src/interp/run.h"

#include "src/torch/overrides.h"

// --- the guard ---

typedef struct state_seen {
    PyObject *guard, *check; // strong: torch's own guard object, and its method
    torch_flags flags;       // what the guard object has seen, if facts.flags
    PyObject *device;        // strong: the default one, or NULL
    uint64_t keys[2];        // this thread's included and excluded dispatch keys
    int64_t modes;           // function modes that are on besides
    unsigned floats;         // how this thread's processor rounds, see float_mode
    bool inference;
    bool whole; // a backend compiles the graph as a whole: what it made has no place for autograd's
                // hooks and tangents, which a replay of the operations serves by itself
} state_seen;

// Whether the dispatch keys of the thread are what they usually are in inference mode, or outside of
// it, but perhaps for these that are excluded. (Torch keeps the difference to what is usual.)
static bool has_usual_keys(uint64_t but) {
    static const uint64_t none[2];
    const uint64_t *now = local_keys(), *usual = facts.inference() ? facts.inference_keys : none;
    return now && now[0] == usual[0] && ((now[1] ^ usual[1]) & ~but) == 0;
}

static bool excludes(uint64_t keys) {
    const uint64_t *now = local_keys();
    return now && keys && (now[1] & keys) == keys;
}

bool state_ignores(uint64_t keys) {
    const uint64_t *now = local_keys();
    return now && (now[1] & keys) != 0;
}

// Inference mode does without autograd's keys, and without the one that makes results views.
bool state_records_gradients(void) {
    return facts.grad_enabled() && !excludes(facts.inference_keys[1]);
}

bool state_has_views(void) {
    return !excludes(facts.inference_keys[0]);
}

// A kernel of the program's runs with the keys excluded that torch had to do with before it.
bool state_is_usual(void) {
    return has_usual_keys(facts.wrapping_keys | facts.autocast_keys) &&
           (state_has_views() || excludes(facts.inference_keys[1]));
}

// In inference mode, and in a kernel, results have the sizes, strides and dtypes that they have
// elsewhere.
bool state_has_rules(void) {
    return has_usual_keys(facts.wrapping_keys & ~facts.autocast_keys);
}

static bool same_keys(const uint64_t *expected) {
    const uint64_t *now = local_keys();
    return !now || (now[0] == expected[0] && now[1] == expected[1]);
}

// torch's guard is C++ behind a method, and runs no Python code.
static bool ask(PyObject *check) {
    PyObject *answer = PyObject_CallNoArgs(check);
    if (!answer)
        PyErr_Clear();
    Py_XDECREF(answer);
    return answer == Py_True;
}

// Torch's guard asks for autocast, grad mode, the default dtype, threads and the like: all that
// flags_read reads, and the dispatch keys.
static bool same_flags(const state_seen *s) {
    torch_flags now;
    if (!facts.flags || !flags_read(&now))
        return ask(s->check);
    bool same = memcmp(&now, &s->flags, sizeof(now)) == 0;
    assert(!same || ask(s->check));
    return same;
}

// torch.set_flush_denormal changes what arithmetic gives, Python's own included, and so what a
// trace has folded. The flags that tell of past exceptions are left out.
static unsigned float_mode(void) {
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & ~0x3fu;
#elif defined(__aarch64__)
    return (unsigned)__builtin_aarch64_get_fpcr();
#else
    return 0;
#endif
}

// Forward-mode differentiation. Torch has no function that tells: it has one level, which cannot be
// entered twice, and for which a program need not have used torch's Python functions.
static bool dual_level(void) {
    bool dual, saved;
    if (facts.quick && quick_state(&dual, &saved))
        return dual;
    PyObject *level = PyObject_CallNoArgs(glue_function("enter_dual_level"));
    PyObject *left =
        level ? PyObject_CallOneArg(glue_function("exit_dual_level"), level) : Py_NewRef(Py_None);
    bool on = !level;
    if (PyErr_Occurred())
        PyErr_Clear();
    Py_XDECREF(level);
    Py_XDECREF(left);
    return on;
}

bool torch_is_traced(void) {
    return *facts.tracing_state() != NULL;
}

static bool saves_with_hooks(void) {
    bool dual, saved;
    if (facts.quick && quick_state(&dual, &saved) && !saved)
        return false; // else torch knows whether the hooks are in force
    PyObject *hooks = PyObject_CallOneArg(glue_function("top_saved_hooks"), Py_False);
    if (!hooks)
        PyErr_Clear();
    Py_XDECREF(hooks);
    return hooks != Py_None;
}

// Within redispatch_function: nobody is asked of the next call that would ask.
bool state_skips_hop(void) {
    if (facts.skip_next)
        return facts.skip_next();
    return facts.skips_one_hop != Py_None && ask(facts.skips_one_hop);
}

// Whether what a backend has made of a whole graph would miss something.
static bool suits_whole(void) {
    bool dual, saved;
    if (facts.quick && quick_state(&dual, &saved) && !saved)
        return !dual;
    return !dual_level() && !saves_with_hooks();
}

// The device is a mode, too.
static bool same_modes(const state_seen *s) {
    if (!s->device && s->modes == 0)
        return facts.mode_count() == 0;
    return device_is(s->device) && modes_now() == s->modes;
}

static bool state_check(PyObject *unused, void *data) {
    (void)unused;
    state_seen *s = data;
    return same_keys(s->keys) && same_modes(s) && facts.inference() == s->inference &&
           float_mode() == s->floats && !node_hooks() && !state_skips_hop() && same_flags(s) &&
           (!s->whole || suits_whole());
}

static PyObject *state_text(const char *source, void *data) {
    (void)source, (void)data;
    return PyUnicode_FromString("torch's global state is unchanged");
}

static PyObject *state_reason(const char *source, PyObject *o, void *data) {
    (void)source, (void)o;
    state_seen *s = data;
    const char *own = float_mode() != s->floats           ? "flush_denormal"
                      : node_hooks()                      ? "a node creation hook is on"
                      : state_skips_hop()                 ? "redispatch_function"
                      : s->whole && dual_level()          ? "forward-mode differentiation"
                      : s->whole && saves_with_hooks()    ? "saved-tensor hooks"
                      : facts.inference() != s->inference ? "inference_mode"
                      : modes_now() != s->modes           ? "torch function modes"
                                                          : NULL;
    PyObject *why = own ? PyUnicode_FromString(own) : PyObject_CallMethod(s->guard, "reason", NULL);
    PyObject *result = why ? PyUnicode_FromFormat("torch's global state changed: %S", why) : NULL;
    Py_XDECREF(why);
    return result;
}

static void state_drop(void *data) {
    state_seen *s = data;
    Py_XDECREF(s->guard);
    Py_XDECREF(s->check);
    Py_XDECREF(s->device);
    PyMem_Free(s);
}

static const guard_custom state_custom = {
    .name = "TORCH_STATE",
    .check = state_check,
    .text = state_text,
    .reason = state_reason,
    .drop = state_drop,
};

// What is on must be nothing that would see the trace's own calls.
static status check_modes(world *w, torch_trace *t) {
    t->device = device_now();
    if (dual_level())
        return world_break_status(w, REASON_TORCH_STATE, "forward-mode differentiation is on");
    if (node_hooks())
        return world_break_status(w, REASON_TORCH_STATE, "a node creation hook is on");
    if (state_skips_hop())
        return world_break_status(w, REASON_TORCH_STATE, "a call of redispatch_function's");
    quiet q;
    quiet_begin(&q);
    PyObject *why = PyObject_CallNoArgs(glue_function("state_refusal"));
    quiet_end(&q);
    if (!why)
        return ST_ERROR;
    status result = why == Py_None ? ST_OK : world_break_status(w, REASON_TORCH_STATE, "%S", why);
    Py_DECREF(why);
    return result;
}

status state_guard_add(world *w, torch_trace *t) {
    TRY(check_modes(w, t));
    state_seen *s = PyMem_Calloc(1, sizeof(state_seen));
    if (!s) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    s->guard = PyObject_CallNoArgs(facts.state_guard);
    s->check = s->guard ? PyObject_GetAttrString(s->guard, "check") : NULL;
    const uint64_t *keys = local_keys();
    if (keys)
        memcpy(s->keys, keys, sizeof(s->keys));
    if (facts.flags)
        flags_read(&s->flags);
    s->inference = facts.inference();
    s->floats = float_mode();
    s->modes = modes_now();
    s->whole = !w->terms.replayed;
    s->device = Py_XNewRef(t->device);
    memcpy(t->keys, s->keys, sizeof(t->keys));
    if (!s->check) {
        state_drop(s);
        return ST_ERROR;
    }
    t->state = s;
    return guard_add_custom(w->guards, NULL, &state_custom, s);
}

bool state_unchanged(torch_trace *t) {
    return state_check(NULL, t->state);
}

// --- setting ---

// What autocast counts; C functions, so that nothing comes between.
static int count(PyObject *function, PyObject **depth) {
    PyObject *now = PyObject_CallNoArgs(function);
    if (depth)
        *depth = now;
    else
        Py_XDECREF(now);
    return now ? 0 : -1;
}

PyObject *state_depth(void) {
    PyObject *depth = NULL;
    return count(facts.increment, NULL) < 0 || count(facts.decrement, &depth) < 0 ? NULL : depth;
}

PyObject *state_leave_nesting(void) {
    PyObject *left = NULL;
    if (count(facts.decrement, &left) < 0)
        return NULL;
    bool last = PyLong_AsLong(left) == 0;
    Py_DECREF(left);
    return last ? PyObject_CallNoArgs(facts.clear_cache) : Py_NewRef(Py_None);
}

PyObject *state_set_now(void) {
    quiet q;
    quiet_begin(&q);
    PyObject *now = PyObject_CallNoArgs(glue_function("save_state"));
    quiet_end(&q);
    return now;
}

// As long as the trace sets the state, no context is the last to go, so that the cache of the
// contexts around the trace stays as it is.
status state_save(torch_trace *t) {
    if (t->before)
        return ST_OK;
    PyObject *now = state_set_now();
    if (!now || count(facts.increment, NULL) < 0) {
        Py_XDECREF(now);
        return ST_ERROR;
    }
    t->before = now;
    return ST_OK;
}

static int restore_depth(PyObject *wanted) {
    PyObject *now = state_depth();
    long more = now ? PyLong_AsLong(wanted) - PyLong_AsLong(now) : 0;
    Py_XDECREF(now);
    for (; more > 0; more--)
        if (count(facts.increment, NULL) < 0)
            return -1;
    for (; more < 0; more++)
        if (count(facts.decrement, NULL) < 0)
            return -1;
    return now ? 0 : -1;
}

// Of the setters one is Python code, which must not be interrupted on the way.
static int restore_all(PyObject *state) {
    PyObject *depth = PyTuple_GET_ITEM(state, 1), *setters = PyTuple_GET_ITEM(state, 2);
    int failed = restore_depth(depth);
    quiet q;
    quiet_begin(&q);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(setters); i++) {
        PyObject *setter = PyTuple_GET_ITEM(setters, i);
        PyObject *done =
            PyObject_Call(PyTuple_GET_ITEM(setter, 0), PyTuple_GET_ITEM(setter, 1), NULL);
        Py_XDECREF(done);
        failed = done ? failed : -1;
    }
    quiet_end(&q);
    return PyLong_AsLong(depth) == 0 && count(facts.clear_cache, NULL) < 0 ? -1 : failed;
}

PyObject *state_put_back(PyObject *state) {
    if (!PyTuple_Check(state) || PyTuple_GET_SIZE(state) != 3) {
        PyErr_SetString(PyExc_TypeError, "no state of torch's");
        return NULL;
    }
    return restore_all(state) < 0 ? NULL : Py_NewRef(Py_None);
}

void state_restore(torch_trace *t) {
    if (!t->before)
        return;
    py_raised aside = py_put_aside();
    if (restore_all(t->before) < 0)
        PyErr_WriteUnraisable(t->before);
    py_put_on(aside);
    Py_CLEAR(t->before);
}

// How many dispatch modes are on; -1 with an exception.
static long modes_on(void) {
    PyObject *count = PyObject_CallNoArgs(glue_function("dispatch_modes"));
    long on = count ? PyLong_AsLong(count) : -1;
    Py_XDECREF(count);
    return on;
}

// Python code of torch's that was interrupted may have left dispatch modes and keys behind. A trace
// begins without modes.
void state_mend(torch_trace *t) {
    uint64_t *keys = (uint64_t *)local_keys();
    for (long on = modes_on(); on > 0; on--) {
        PyObject *mode = PyObject_CallOneArg(glue_function("pop_dispatch_mode"), Py_None);
        if (!mode)
            break;
        Py_DECREF(mode);
    }
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(NULL);
    if (keys && !same_keys(t->keys))
        memcpy(keys, t->keys, sizeof(t->keys));
}

static PyObject *plain_tuple(world *w, PyObject *const *items, size_t count) {
    PyObject *result = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; result && i < count; i++) {
        PyObject *value = plain_value(w, items[i]);
        if (value)
            PyTuple_SET_ITEM(result, (Py_ssize_t)i, value);
        else
            Py_CLEAR(result);
    }
    return result;
}

// torch.no_grad and its kin set grad mode to what it is: no node, as in Dynamo.
static bool sets_nothing(const world *w, const rule *r, PyObject *args) {
    if (r->object != facts.set_grad || PyTuple_GET_SIZE(args) != 1 || !w->run)
        return false;
    PyObject *file = w->run->code->py->co_filename;
    if (PyUnicode_Compare(file, glue_function("grad_mode_file")) != 0)
        return false;
    PyObject *now = PyObject_CallNoArgs(glue_function("is_grad_enabled"));
    Py_XDECREF(now); // a bool
    PyErr_Clear();
    return now == PyTuple_GET_ITEM(args, 0);
}

status state_set_grad(bool on) {
    PyObject *flag = on ? Py_True : Py_False;
    PyObject *done = PyObject_CallOneArg(facts.set_grad, flag);
    Py_XDECREF(done);
    return done ? ST_OK : ST_ERROR;
}

PyObject *state_set(world *w, const call *c) {
    const rule *r = c->rule;
    torch_trace *t = trace_of(w);
    PyObject *answer; // of the setters, modes are asked of this one alone
    if (t && r->object == facts.set_grad && modes_are_on(t->overrides) &&
        overrides_answer(w, c, &answer))
        return answer;
    if (!t || state_save(t) != ST_OK)
        return NULL;
    t->switched |= r->object != facts.set_grad;
    w->held.writes++;
    t->effects++;
    PyObject *args = plain_tuple(w, c->args, c->given);
    bool idle = args && sets_nothing(w, r, args);
    PyObject *result = args ? PyObject_CallObject(r->object, args) : NULL;
    node *n = result && !idle ? record_setter(w, r->object, args) : NULL;
    Py_XDECREF(args);
    if (!n && !idle)
        Py_CLEAR(result);
    Py_XDECREF(n);
    return result;
}

// --- switches that cancel ---

// The node's argument if it switches grad mode; NULL for others.
static PyObject *switched_to(PyObject *o) {
    node *n = (node *)o;
    if (n->op != NODE_CALL_FUNCTION || n->target != facts.set_grad ||
        PyTuple_GET_SIZE(n->args) != 1)
        return NULL;
    return PyTuple_GET_ITEM(n->args, 0);
}

static bool calls(PyObject *o, const char *glue) {
    node *n = (node *)o;
    return n->op == NODE_CALL_FUNCTION && n->target == glue_function(glue);
}

// Autocast around an operator with a body lies around that body alone.
static status tidy_autocast(PyObject *nodes) {
    for (Py_ssize_t i = 0; i + 1 < PyList_GET_SIZE(nodes);) {
        PyObject *enter = PyList_GET_ITEM(nodes, i), *leave = PyList_GET_ITEM(nodes, i + 1);
        bool empty = calls(enter, "enter_autocast") && calls(leave, "exit_autocast") &&
                     PyTuple_GET_ITEM(((node *)leave)->args, 0) == enter;
        if (empty && PyList_SetSlice(nodes, i, i + 2, NULL) < 0)
            return ST_ERROR;
        i += !empty;
    }
    return ST_OK;
}

// As Dynamo's cleanup_graph: a switch away and, next to it, the switch back. (Inference mode is
// such a switch, too: then all stay.)
status state_tidy(world *w, torch_trace *t) {
    PyObject *nodes = w->graph->nodes;
    if (t->before)
        TRY(tidy_autocast(nodes));
    PyObject *grad = t->before && !t->inference ? PyTuple_GET_ITEM(t->before, 0) : NULL;
    for (Py_ssize_t i = 0; grad && i + 1 < PyList_GET_SIZE(nodes);) {
        PyObject *to = switched_to(PyList_GET_ITEM(nodes, i));
        PyObject *back = to ? switched_to(PyList_GET_ITEM(nodes, i + 1)) : NULL;
        if (to && to != grad && back == grad) {
            if (PyList_SetSlice(nodes, i, i + 2, NULL) < 0)
                return ST_ERROR;
            continue;
        }
        grad = to ? to : grad;
        i++;
    }
    return ST_OK;
}

// --- questions of C functions ---

typedef struct asked_seen {
    PyObject *call;   // strong: tuple of function and arguments
    PyObject *answer; // strong
} asked_seen;

static PyObject *ask_again(PyObject *call) {
    PyObject *const *items = ((PyTupleObject *)call)->ob_item;
    return PyObject_Vectorcall(items[0], items + 1, (size_t)PyTuple_GET_SIZE(call) - 1, NULL);
}

// Answers are compared only where that runs no Python code.
static bool same_answer(PyObject *a, PyObject *b) {
    if (a == b)
        return true;
    if (Py_TYPE(a) != Py_TYPE(b) || raw_is_python_class(Py_TYPE(a)))
        return false;
    return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

static bool asked_check(PyObject *unused, void *data) {
    (void)unused;
    asked_seen *s = data;
    PyObject *now = ask_again(s->call);
    bool same = now && same_answer(now, s->answer);
    PyErr_Clear();
    Py_XDECREF(now);
    return same;
}

static PyObject *asked_text(const char *source, void *data) {
    (void)source;
    asked_seen *s = data;
    PyObject *name = PyObject_GetAttrString(PyTuple_GET_ITEM(s->call, 0), "__name__");
    PyObject *args = name ? PyTuple_GetSlice(s->call, 1, PyTuple_GET_SIZE(s->call)) : NULL;
    PyObject *text = args ? PyUnicode_FromFormat("%S%R == %R", name, args, s->answer) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(args);
    return text;
}

static void asked_drop(void *data) {
    asked_seen *s = data;
    Py_XDECREF(s->call);
    Py_XDECREF(s->answer);
    PyMem_Free(s);
}

static const guard_custom asked_custom = {
    .name = "TORCH_ASKED",
    .check = asked_check,
    .text = asked_text,
    .drop = asked_drop,
};

status state_guard_answer(world *w, PyObject *call, PyObject *answer) {
    asked_seen *s = PyMem_Calloc(1, sizeof(asked_seen));
    if (!s) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    s->call = Py_NewRef(call);
    s->answer = Py_NewRef(answer);
    return guard_add_custom(w->guards, NULL, &asked_custom, s);
}

// New tuple: the function, or the C callable that its row has for it, then its arguments as plain
// values.
static PyObject *question_of(world *w, const call *c) {
    const rule *r = c->rule;
    PyObject *args = plain_tuple(w, c->args, c->given);
    PyObject *asked = PyCallable_Check(r->extra) ? r->extra : r->object;
    PyObject *function = args ? PyTuple_Pack(1, asked) : NULL;
    PyObject *call = function ? PySequence_Concat(function, args) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(function);
    return call;
}

PyObject *state_asked_so_far(world *w) {
    torch_trace *t = trace_of(w);
    if (t && !t->asked)
        t->asked = PyDict_New();
    return t ? t->asked : NULL;
}

// Borrowed from what was asked.
static PyObject *answer_to(world *w, PyObject *call) {
    PyObject *asked = state_asked_so_far(w);
    PyObject *known = asked ? PyDict_GetItemWithError(asked, call) : NULL;
    if (known || !asked || PyErr_Occurred())
        return known;
    PyObject *answer = ask_again(call);
    if (answer &&
        (PyDict_SetItem(asked, call, answer) < 0 || state_guard_answer(w, call, answer) != ST_OK))
        Py_CLEAR(answer);
    Py_XDECREF(answer); // the dict has it
    return answer;
}

PyObject *state_answer(world *w, PyObject *question) {
    PyObject *call = PyTuple_Pack(1, question);
    PyObject *answer = call ? answer_to(w, call) : NULL;
    Py_XDECREF(call);
    return answer;
}

status state_answers(world *w, PyObject *question, PyObject *answer) {
    PyObject *asked = state_asked_so_far(w), *call = asked ? PyTuple_Pack(1, question) : NULL;
    int failed = call ? PyDict_SetItem(asked, call, answer) : -1;
    Py_XDECREF(call);
    return failed < 0 ? ST_ERROR : ST_OK;
}

status state_matters(world *w, PyObject *questions) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(questions); i++)
        if (!state_answer(w, PyTuple_GET_ITEM(questions, i)))
            return ST_ERROR;
    return ST_OK;
}

// A list of numbers is a new one each time.
static PyObject *give_answer(world *w, PyObject *call, PyObject *answer) {
    if (PyList_CheckExact(answer)) {
        bool plain = true;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(answer); i++)
            plain &= value_immutable(PyList_GET_ITEM(answer, i));
        if (plain)
            return PyList_GetSlice(answer, 0, PyList_GET_SIZE(answer));
    }
    bool known = value_immutable(answer) || Py_IS_TYPE(answer, facts.dtype) ||
                 Py_IS_TYPE(answer, facts.device);
    return known ? fixed_value(w, answer)
                 : world_break_at(w, REASON_TORCH_STATE, PyTuple_GET_ITEM(call, 0), "");
}

PyObject *state_asked(world *w, const call *c) {
    PyObject *call = question_of(w, c);
    PyObject *answer = call ? Py_XNewRef(answer_to(w, call)) : NULL;
    PyObject *given = answer ? give_answer(w, call, answer) : NULL;
    Py_XDECREF(call);
    Py_XDECREF(answer);
    return given;
}

// No trace is made under a dispatch mode.
PyObject *state_no_mode(world *w, const call *c) {
    PyObject *count = state_answer(w, c->rule->extra);
    int on = count ? PyObject_IsTrue(count) : -1;
    if (on > 0)
        world_break(w, REASON_TORCH_STATE, "a torch dispatch mode is on");
    return on == 0 ? Py_NewRef(Py_None) : NULL;
}

// --- the end of a trace ---

static status undo_grad(world *w, torch_trace *t, PyObject *now) {
    PyObject *before = PyTuple_GET_ITEM(t->before, 0);
    if (PyTuple_GET_ITEM(now, 0) == before)
        return ST_OK;
    PyObject *args = PyTuple_Pack(1, before);
    node *n = args ? record_setter(w, facts.set_grad, args) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(n);
    return n ? ST_OK : ST_ERROR;
}

static status note_switches(world *w, torch_trace *t, PyObject *now) {
    quiet q;
    quiet_begin(&q);
    PyObject *switches =
        PyObject_CallFunctionObjArgs(glue_function("state_switches"), t->before, now, NULL);
    quiet_end(&q);
    status done = switches ? settings_leave(w, t, switches) : ST_ERROR;
    PyObject *all = done == ST_OK ? PySequence_Tuple(switches) : NULL;
    Py_XDECREF(switches);
    if (all && PyTuple_GET_SIZE(all) > 0)
        Py_XSETREF(w->held.switches, Py_NewRef(all));
    Py_XDECREF(all);
    return all ? ST_OK : ST_ERROR;
}

// The glue has all targets of nodes that set state.
static bool is_setter(const node *n) {
    int found = PySet_Contains(glue_function("state_nodes"), n->target);
    if (found < 0)
        PyErr_Clear(); // a target that has no hash
    return found == 1;
}

// State that is set for nobody.
static status drop_setters(world *w) {
    PyObject *nodes = w->graph->nodes;
    Py_ssize_t count = PyList_GET_SIZE(nodes), inputs = w->graph->inputs;
    for (Py_ssize_t i = inputs; i < count; i++)
        if (!is_setter((node *)PyList_GET_ITEM(nodes, i)))
            return ST_OK;
    return PyList_SetSlice(nodes, inputs, count, NULL) < 0 ? ST_ERROR : ST_OK;
}

status state_leave(world *w, torch_trace *t) {
    TRY(inference_left(w, t));
    PyObject *now = count(facts.decrement, NULL) < 0 ? NULL : state_set_now();
    status done = now ? note_switches(w, t, now) : ST_ERROR;
    if (done == ST_OK)
        done = autocast_leave_all(w, t);
    if (done == ST_OK)
        done = undo_grad(w, t, now);
    Py_XDECREF(now);
    return done == ST_OK ? drop_setters(w) : done;
}
