// Torch's state outside of objects. It is guarded as a group, set for real while tracing, and
// restored at the end. If the program would have left it changed, the plan sets it by calls of C
// functions.
#include "src/py/raised.h"

#include "src/interp/run.h"

#include "src/attr/attr.h"

#include "src/torch/room.h"

// --- the guard ---

typedef struct state_seen {
    PyObject *guard, *check; // strong: torch's own guard object, and its method
    PyObject *device;        // strong: the default one, or NULL
    uint64_t keys[2];        // this thread's included and excluded dispatch keys
    unsigned floats;         // how this thread's processor rounds, see float_mode
    bool inference;
    bool whole; // a backend compiles the graph as a whole: what it made has no place for autograd's
                // hooks and tangents, which a replay of the operations serves by itself
} state_seen;

// Torch keeps the difference to what is usual.
bool state_is_plain(void) {
    const uint64_t *now = local_keys();
    return now && now[0] == 0 && now[1] == 0;
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

static bool saves_with_hooks(void) {
    PyObject *hooks = PyObject_CallOneArg(glue_function("top_saved_hooks"), Py_False);
    if (!hooks)
        PyErr_Clear();
    Py_XDECREF(hooks);
    return hooks != Py_None;
}

static bool state_check(PyObject *unused, void *data) {
    (void)unused;
    state_seen *s = data;
    return same_keys(s->keys) && device_is(s->device) && facts.inference() == s->inference &&
           float_mode() == s->floats && !node_hooks() && ask(s->check) &&
           !(s->whole && (dual_level() || saves_with_hooks()));
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
                      : s->whole && dual_level()          ? "forward-mode differentiation"
                      : s->whole && saves_with_hooks()    ? "saved-tensor hooks"
                      : facts.inference() != s->inference ? "inference_mode"
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
    if (!t->device && facts.mode_count() != 0)
        return world_break_status(w, REASON_TORCH_STATE, "a torch function mode is on");
    if (dual_level())
        return world_break_status(w, REASON_TORCH_STATE, "forward-mode differentiation is on");
    if (node_hooks())
        return world_break_status(w, REASON_TORCH_STATE, "a node creation hook is on");
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
    s->inference = facts.inference();
    s->floats = float_mode();
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

static PyObject *state_now(void) {
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
    PyObject *now = state_now();
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
    if (!t || state_save(t) != ST_OK)
        return NULL;
    if (r->object != facts.set_grad && fakes_settle(w) != ST_OK)
        return NULL;
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

// As Dynamo's cleanup_graph: a switch away and, next to it, the switch back. (Inference mode is
// such a switch, too: then all stay.)
status state_tidy(world *w, torch_trace *t) {
    PyObject *nodes = w->graph->nodes;
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

static status guard_answer(world *w, PyObject *call, PyObject *answer) {
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

static PyObject *asked_so_far(world *w) {
    torch_trace *t = trace_of(w);
    if (t && !t->asked)
        t->asked = PyDict_New();
    return t ? t->asked : NULL;
}

// Borrowed from what was asked.
static PyObject *answer_to(world *w, PyObject *call) {
    PyObject *asked = asked_so_far(w);
    PyObject *known = asked ? PyDict_GetItemWithError(asked, call) : NULL;
    if (known || !asked || PyErr_Occurred())
        return known;
    PyObject *answer = ask_again(call);
    if (answer &&
        (PyDict_SetItem(asked, call, answer) < 0 || guard_answer(w, call, answer) != ST_OK))
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
    PyObject *asked = asked_so_far(w), *call = asked ? PyTuple_Pack(1, question) : NULL;
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
                 : world_break(w, REASON_TORCH_STATE, "%R", PyTuple_GET_ITEM(call, 0));
}

PyObject *state_asked(world *w, const call *c) {
    PyObject *call = question_of(w, c);
    PyObject *answer = call ? Py_XNewRef(answer_to(w, call)) : NULL;
    PyObject *given = answer ? give_answer(w, call, answer) : NULL;
    Py_XDECREF(call);
    Py_XDECREF(answer);
    return given;
}

// --- autocast ---

// Attributes as plain values. New tuple.
static PyObject *read_fields(world *w, PyObject *self, const char *const *names, int count) {
    PyObject *values = PyTuple_New(count);
    for (int i = 0; values && i < count; i++) {
        PyObject *name = PyUnicode_InternFromString(names[i]);
        PyObject *found = name ? attr_get(w, self, name) : NULL;
        PyObject *value = found ? plain_value(w, found) : NULL;
        Py_XDECREF(name);
        Py_XDECREF(found);
        if (value)
            PyTuple_SET_ITEM(values, i, value);
        else
            Py_CLEAR(values);
    }
    return values;
}

// What torch's own functions for graphs take.
static PyObject *autocast_values(world *w, PyObject *self) {
    static const char *const names[] = {"device", "fast_dtype", "_enabled", "_cache_enabled"};
    return read_fields(w, self, names, 4);
}

// What __enter__ puts aside in the object, for __exit__.
static const char *const put_aside[] = {"prev", "prev_fastdtype", "prev_cache_enabled"};

// What it was, asked again before each call. Borrowed from what was asked, or NULL.
static PyObject *guard_entry_dtype(world *w, PyObject *call, PyObject *device) {
    torch_trace *t = w->torch;
    quiet q;
    quiet_begin(&q);
    PyObject *dtype = PyObject_CallFunctionObjArgs(glue_function("autocast_dtype_in"),
                                                   t->before ? t->before : Py_None, device, NULL);
    quiet_end(&q);
    if (dtype &&
        (PyDict_SetItem(t->asked, call, dtype) < 0 || guard_answer(w, call, dtype) != ST_OK))
        Py_CLEAR(dtype);
    Py_XDECREF(dtype); // the dict has it
    return dtype;
}

// The dtype that autocast had when the trace began: torch's guard holds it only where autocast is
// on. Borrowed from what was asked, or NULL.
static PyObject *guard_autocast_dtype(world *w, PyObject *device) {
    PyObject *asked = asked_so_far(w);
    PyObject *call = asked ? PyTuple_Pack(2, glue_function("get_autocast_dtype"), device) : NULL;
    PyObject *known = call ? PyDict_GetItemWithError(asked, call) : NULL;
    if (call && !known && !PyErr_Occurred())
        known = guard_entry_dtype(w, call, device);
    Py_XDECREF(call);
    return known;
}

// As it is now, which the trace itself may have made it.
PyObject *autocast_dtype(world *w, const call *c) {
    const rule *r = c->rule;
    if (c->given != (r->extra == Py_None))
        return world_break(w, REASON_TORCH_STATE, "%R with other arguments", r->object);
    PyObject *device = c->given ? plain_value(w, c->args[0]) : Py_NewRef(r->extra);
    PyObject *before = device ? guard_autocast_dtype(w, device) : NULL;
    PyObject *now =
        before ? PyObject_CallOneArg(glue_function("get_autocast_dtype"), device) : NULL;
    PyObject *given = now ? fixed_value(w, now) : NULL;
    Py_XDECREF(device);
    Py_XDECREF(now);
    return given;
}

// The same three values as they are now. New tuple.
static PyObject *autocast_now(world *w, PyObject *device) {
    if (!guard_autocast_dtype(w, device))
        return NULL;
    quiet q;
    quiet_begin(&q);
    PyObject *now = PyObject_CallOneArg(glue_function("autocast_now"), device);
    quiet_end(&q);
    return now;
}

static status put_fields(world *w, PyObject *self, PyObject *now) {
    for (int i = 0; i < 3; i++) {
        PyObject *name = PyUnicode_InternFromString(put_aside[i]);
        PyObject *value = name ? fixed_value(w, PyTuple_GET_ITEM(now, i)) : NULL;
        int failed = value ? attr_set(w, self, name, value) : -1;
        Py_XDECREF(name);
        Py_XDECREF(value);
        if (failed < 0)
            return ST_ERROR;
    }
    return ST_OK;
}

// Whether to cache is what it is anyway, mostly: None says so, as Dynamo does.
static void forget_cache(PyObject *values, PyObject *now) {
    if (PyTuple_GET_ITEM(values, 3) != PyTuple_GET_ITEM(now, 2))
        return;
    Py_DECREF(PyTuple_GET_ITEM(values, 3));
    PyTuple_SET_ITEM(values, 3, Py_NewRef(Py_None));
}

// Contexts, innermost last. Entered: (the object, torch's context, the node, what was put aside).
// Left, and entered before the trace: (None, arguments to return to it, the node, None).
static status push_context(torch_trace *t, PyObject *self, PyObject *context, node *n,
                           PyObject *now) {
    if (!t->contexts && !(t->contexts = PyList_New(0)))
        return ST_ERROR;
    PyObject *entry = PyTuple_Pack(4, self, context, n, now);
    int failed = entry ? PyList_Append(t->contexts, entry) : -1;
    Py_XDECREF(entry);
    return failed < 0 ? ST_ERROR : ST_OK;
}

static PyObject *call_quietly(PyObject *function, PyObject *args) {
    quiet q;
    quiet_begin(&q);
    PyObject *result = PyObject_CallObject(function, args);
    quiet_end(&q);
    return result;
}

static status enter(world *w, torch_trace *t, PyObject *function, PyObject *self,
                    PyObject *values) {
    PyObject *now = autocast_now(w, PyTuple_GET_ITEM(values, 0));
    if (!now || put_fields(w, self, now) != ST_OK) {
        Py_XDECREF(now);
        return ST_ERROR;
    }
    forget_cache(values, now);
    PyObject *context = call_quietly(function, values);
    node *n = context ? record_setter(w, function, values) : NULL;
    status done = n ? push_context(t, self, context, n, now) : ST_ERROR;
    Py_DECREF(now);
    Py_XDECREF(context);
    Py_XDECREF(n);
    return done;
}

PyObject *autocast_enter(world *w, const call *c) {
    const rule *r = c->rule;
    torch_trace *t = trace_of(w);
    PyObject *self = t ? door_open(w, c->args[0]) : NULL;
    if (self && fakes_settle(w) != ST_OK)
        return NULL;
    PyObject *values = self && state_save(t) == ST_OK ? autocast_values(w, self) : NULL;
    if (!values)
        return NULL;
    world_touch(w);
    status done = enter(w, t, r->extra, self, values);
    Py_DECREF(values);
    return done == ST_OK ? Py_NewRef(self) : NULL;
}

static PyObject *top_context(const torch_trace *t) {
    Py_ssize_t count = t->contexts ? PyList_GET_SIZE(t->contexts) : 0;
    return count ? PyList_GET_ITEM(t->contexts, count - 1) : NULL;
}

static status pop_context(torch_trace *t) {
    Py_ssize_t count = PyList_GET_SIZE(t->contexts);
    return PyList_SetSlice(t->contexts, count - 1, count, NULL) < 0 ? ST_ERROR : ST_OK;
}

// The trace itself has entered it.
static status leave_entered(world *w, torch_trace *t, PyObject *function, PyObject *top) {
    PyObject *context = PyTuple_Pack(1, PyTuple_GET_ITEM(top, 1));
    PyObject *done = context ? call_quietly(function, context) : NULL;
    PyObject *args = done ? PyTuple_Pack(1, PyTuple_GET_ITEM(top, 2)) : NULL;
    node *n = args ? record_setter(w, function, args) : NULL;
    Py_XDECREF(context);
    Py_XDECREF(done);
    Py_XDECREF(args);
    Py_XDECREF(n);
    return n ? pop_context(t) : ST_ERROR;
}

// The frame was in it already when the trace began.
static status leave_outer(world *w, torch_trace *t, PyObject *device, PyObject *before) {
    PyObject *function = glue_function("leave_autocast"), *first = PyTuple_Pack(1, device);
    PyObject *now = first ? autocast_now(w, device) : NULL;
    PyObject *back = now ? PySequence_Concat(first, now) : NULL;
    PyObject *args = back ? PySequence_Concat(first, before) : NULL;
    PyObject *done = args ? call_quietly(function, args) : NULL;
    node *n = done ? record_setter(w, function, args) : NULL;
    status result = n ? push_context(t, Py_None, back, n, Py_None) : ST_ERROR;
    Py_XDECREF(first);
    Py_XDECREF(now);
    Py_XDECREF(back);
    Py_XDECREF(args);
    Py_XDECREF(done);
    Py_XDECREF(n);
    return result;
}

// In another order than entered, or with other values than were put aside: then the real one runs.
static status leave(world *w, torch_trace *t, PyObject *function, PyObject *self,
                    PyObject *before) {
    PyObject *top = top_context(t);
    if (top && PyTuple_GET_ITEM(top, 0) == Py_None)
        top = NULL;
    if (top && (PyTuple_GET_ITEM(top, 0) != self ||
                PyObject_RichCompareBool(PyTuple_GET_ITEM(top, 3), before, Py_EQ) != 1))
        return world_break_status(w, REASON_TORCH_STATE,
                                  "autocast left in another order than entered");
    world_touch(w);
    if (top)
        return leave_entered(w, t, function, top);
    static const char *const name[] = {"device"};
    PyObject *device = read_fields(w, self, name, 1);
    status done = device ? leave_outer(w, t, PyTuple_GET_ITEM(device, 0), before) : ST_ERROR;
    Py_XDECREF(device);
    return done;
}

PyObject *autocast_exit(world *w, const call *c) {
    const rule *r = c->rule;
    torch_trace *t = trace_of(w);
    PyObject *self = t ? door_open(w, c->args[0]) : NULL;
    if (self && fakes_settle(w) != ST_OK)
        return NULL;
    PyObject *before = self && state_save(t) == ST_OK ? read_fields(w, self, put_aside, 3) : NULL;
    if (!before)
        return NULL;
    status done = leave(w, t, r->extra, self, before);
    Py_DECREF(before);
    return done == ST_OK ? Py_NewRef(Py_False) : NULL;
}

// --- inference mode ---

static status inference_push(world *w, torch_trace *t, PyObject *self, PyObject *context, node *n) {
    if (!t->inference && !(t->inference = PyList_New(0)))
        return ST_ERROR;
    if (PyList_GET_SIZE(t->inference) == 0) {
        t->inference_scope = w->scope;
        t->inference_effects = 0;
    }
    PyObject *entry = PyTuple_Pack(3, self, context, n);
    int failed = entry ? PyList_Append(t->inference, entry) : -1;
    Py_XDECREF(entry);
    return failed < 0 ? ST_ERROR : world_born(w, context);
}

static PyObject *inference_top(const torch_trace *t) {
    Py_ssize_t count = t->inference ? PyList_GET_SIZE(t->inference) : 0;
    return count ? PyList_GET_ITEM(t->inference, count - 1) : NULL;
}

// What __enter__ keeps in the object is torch's own guard, which nobody could make again: a trace
// that ends before the mode is left is done again, and breaks before it is entered.
static status inference_begin(world *w, torch_trace *t, PyObject *function, PyObject *self,
                              PyObject *mode) {
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("_inference_mode_context")))
        return ST_ERROR;
    PyObject *context = call_quietly(function, mode);
    node *n = context ? record_setter(w, function, mode) : NULL;
    status done = n ? inference_push(w, t, self, context, n) : ST_ERROR;
    if (done == ST_OK && attr_set(w, self, name, context) < 0)
        done = ST_ERROR;
    Py_XDECREF(context);
    Py_XDECREF(n);
    return done;
}

PyObject *inference_enter(world *w, const call *c) {
    const rule *r = c->rule;
    static const char *const names[] = {"mode"};
    torch_trace *t = trace_of(w);
    PyObject *self = t ? door_open(w, c->args[0]) : NULL;
    if (self && fakes_settle(w) != ST_OK)
        return NULL;
    PyObject *mode = self && state_save(t) == ST_OK ? read_fields(w, self, names, 1) : NULL;
    if (!mode)
        return NULL;
    world_touch(w);
    status done = inference_begin(w, t, r->extra, self, mode);
    Py_DECREF(mode);
    return done == ST_OK ? Py_NewRef(Py_None) : NULL;
}

PyObject *inference_exit(world *w, const call *c) {
    const rule *r = c->rule;
    torch_trace *t = trace_of(w);
    PyObject *self = t ? door_open(w, c->args[0]) : NULL;
    PyObject *top = self ? inference_top(t) : NULL;
    if (self && (!top || PyTuple_GET_ITEM(top, 0) != self))
        return world_break(w, REASON_TORCH_STATE, "torch.inference_mode.__exit__");
    if (!top)
        return NULL;
    world_touch(w);
    PyObject *context = PyTuple_Pack(1, PyTuple_GET_ITEM(top, 1));
    PyObject *done = context ? call_quietly(r->extra, context) : NULL;
    PyObject *args = done ? PyTuple_Pack(1, PyTuple_GET_ITEM(top, 2)) : NULL;
    node *n = args ? record_setter(w, r->extra, args) : NULL;
    Py_ssize_t count = PyList_GET_SIZE(t->inference);
    bool fine = n && PyList_SetSlice(t->inference, count - 1, count, NULL) == 0;
    if (count == 1)
        t->inference_scope = NULL;
    Py_XDECREF(context);
    Py_XDECREF(done);
    Py_XDECREF(args);
    Py_XDECREF(n);
    return fine ? Py_NewRef(Py_None) : NULL;
}

static status inference_left(world *w, torch_trace *t) {
    if (!inference_top(t))
        return ST_OK;
    PyObject *context = PyTuple_GET_ITEM(PyList_GET_ITEM(t->inference, 0), 1);
    world_break(w, REASON_TORCH_STATE, "inference mode is entered, and not left in the same piece");
    const uint64_t *born = map_get(&w->time.born, map_key(context));
    w->time.again = born ? *born : 0;
    return ST_BREAK;
}

// --- the end of a trace ---

// A node that undoes a context's; neither, if nothing has come between.
static status undo_context(world *w, torch_trace *t) {
    PyObject *top = top_context(t), *nodes = w->graph->nodes;
    Py_ssize_t last = PyList_GET_SIZE(nodes) - 1;
    if (PyList_GET_ITEM(nodes, last) == PyTuple_GET_ITEM(top, 2))
        return PyList_SetSlice(nodes, last, last + 1, NULL) < 0 ? ST_ERROR : pop_context(t);
    bool entered = PyTuple_GET_ITEM(top, 0) != Py_None;
    PyObject *function = glue_function(entered ? "_exit_autocast" : "return_to_autocast");
    PyObject *args =
        entered ? PyTuple_Pack(1, PyTuple_GET_ITEM(top, 2)) : Py_NewRef(PyTuple_GET_ITEM(top, 1));
    node *n = args ? record_setter(w, function, args) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(n);
    return n ? pop_context(t) : ST_ERROR;
}

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
    PyObject *now = count(facts.decrement, NULL) < 0 ? NULL : state_now();
    status done = now ? note_switches(w, t, now) : ST_ERROR;
    while (done == ST_OK && top_context(t))
        done = undo_context(w, t);
    if (done == ST_OK)
        done = undo_grad(w, t, now);
    Py_XDECREF(now);
    return done == ST_OK ? drop_setters(w) : done;
}
