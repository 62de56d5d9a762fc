// Torch's state outside of objects: guarded as a group, set for real while tracing, put back at the
// end.
#include "src/torch/room.h"

#include <dlfcn.h>

// --- the guard ---

typedef struct state_seen {
    PyObject *guard, *check; // strong: torch's own guard object, and its method
    uint64_t keys[2];        // this thread's included and excluded dispatch keys
    bool inference;
} state_seen;

// Torch keeps it in a thread-local variable, so each thread has to look for it.
static const uint64_t *local_keys(void) {
    static _Thread_local const uint64_t *address;
    if (!address && facts.local_keys)
        address = dlsym(facts.local_keys, "_ZN3c104impl26raw_local_dispatch_key_setE");
    return address;
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

static bool state_check(PyObject *unused, void *data) {
    (void)unused;
    state_seen *s = data;
    return same_keys(s->keys) && facts.mode_count() == 0 && facts.inference() == s->inference &&
           ask(s->check);
}

static PyObject *state_text(const char *source, void *data) {
    (void)source, (void)data;
    return PyUnicode_FromString("torch's global state is unchanged");
}

static PyObject *state_reason(const char *source, PyObject *o, void *data) {
    (void)source, (void)o;
    state_seen *s = data;
    PyObject *why = PyObject_CallMethod(s->guard, "reason", NULL);
    PyObject *result = why ? PyUnicode_FromFormat("torch's global state changed: %S", why) : NULL;
    Py_XDECREF(why);
    return result;
}

static void state_drop(void *data) {
    state_seen *s = data;
    Py_XDECREF(s->guard);
    Py_XDECREF(s->check);
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
static status check_modes(world *w) {
    if (facts.mode_count() != 0)
        return world_break_status(w, REASON_TORCH_STATE, "a torch function mode is on");
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
    TRY(check_modes(w));
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
    if (!s->check) {
        state_drop(s);
        return ST_ERROR;
    }
    t->state = s;
    return guard_add_custom(w->guards, NULL, &state_custom, s);
}

bool state_unchanged(torch_trace *t) {
    return !t->before || state_check(NULL, t->state);
}

// --- setting ---

static status state_save(torch_trace *t) {
    if (t->before)
        return ST_OK;
    quiet q;
    quiet_begin(&q);
    t->before = PyObject_CallNoArgs(glue_function("save_state"));
    quiet_end(&q);
    return t->before ? ST_OK : ST_ERROR;
}

void state_restore(torch_trace *t) {
    if (!t->before)
        return;
    quiet q;
    quiet_begin(&q);
    PyObject *done = PyObject_CallOneArg(glue_function("restore_state"), t->before);
    quiet_end(&q);
    if (!done)
        PyErr_WriteUnraisable(t->before);
    Py_XDECREF(done);
    Py_CLEAR(t->before);
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

PyObject *state_set(world *w, const row *r, call_args a) {
    torch_trace *t = trace_of(w);
    if (!t || state_save(t) != ST_OK)
        return NULL;
    if (a.keywords && PyTuple_GET_SIZE(a.keywords) > 0)
        return world_break(w, REASON_TORCH_STATE, "%R with keywords", r->callable);
    PyObject *args = plain_tuple(w, a.args, a.given);
    PyObject *result = args ? PyObject_CallObject(r->callable, args) : NULL;
    node *n = result ? record_setter(w, r->callable, args) : NULL;
    Py_XDECREF(args);
    if (!n)
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

// As Dynamo's cleanup_graph: a switch away and, next to it, the switch back.
status state_tidy(world *w, torch_trace *t) {
    PyObject *nodes = w->graph->nodes;
    PyObject *grad = t->before ? PyTuple_GET_ITEM(t->before, 0) : NULL;
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

// New tuple: the function, then its arguments as plain values.
static PyObject *question_of(world *w, const row *r, call_args a) {
    PyObject *args = plain_tuple(w, a.args, a.given);
    PyObject *function = args ? PyTuple_Pack(1, r->callable) : NULL;
    PyObject *call = function ? PySequence_Concat(function, args) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(function);
    return call;
}

static PyObject *ask_first(world *w, torch_trace *t, PyObject *call) {
    PyObject *answer = ask_again(call);
    if (!answer)
        return NULL;
    if (!value_immutable(answer) && Py_TYPE(answer) != facts.dtype &&
        Py_TYPE(answer) != facts.device) {
        Py_DECREF(answer);
        return world_break(w, REASON_TORCH_STATE, "%R", PyTuple_GET_ITEM(call, 0));
    }
    if (PyDict_SetItem(t->asked, call, answer) < 0 || guard_answer(w, call, answer) != ST_OK)
        Py_CLEAR(answer);
    return answer;
}

PyObject *state_asked(world *w, const row *r, call_args a) {
    torch_trace *t = trace_of(w);
    if (!t || (!t->asked && !(t->asked = PyDict_New())))
        return NULL;
    if (a.keywords && PyTuple_GET_SIZE(a.keywords) > 0)
        return world_break(w, REASON_TORCH_STATE, "%R with keywords", r->callable);
    PyObject *call = question_of(w, r, a);
    PyObject *known = call ? PyDict_GetItemWithError(t->asked, call) : NULL;
    PyObject *answer = known                       ? Py_NewRef(known)
                       : call && !PyErr_Occurred() ? ask_first(w, t, call)
                                                   : NULL;
    Py_XDECREF(call);
    PyObject *fixed = answer ? fixed_value(w, answer) : NULL;
    Py_XDECREF(answer);
    return fixed;
}

// --- autocast ---

// The four values that torch's own functions for graphs take, from an instance made in this trace.
static PyObject *autocast_values(world *w, PyObject *self) {
    static const char *const names[] = {"device", "fast_dtype", "_enabled", "_cache_enabled"};
    PyObject *values = PyTuple_New(4);
    for (int i = 0; values && i < 4; i++) {
        PyObject *name = PyUnicode_InternFromString(names[i]), *found = NULL;
        bool there = name && raw_attr_get(self, name, &found) == RAW_FOUND;
        PyObject *value = there ? plain_value(w, found) : NULL;
        Py_XDECREF(name);
        if (!value && name && !there)
            world_break(w, REASON_TORCH_STATE, "autocast without %s", names[i]);
        if (value)
            PyTuple_SET_ITEM(values, i, value);
        else
            Py_CLEAR(values);
    }
    return values;
}

// Whether to cache is what it is anyway, mostly: None says so, as Dynamo does.
static status forget_cache(PyObject *values) {
    PyObject *now = PyObject_CallNoArgs(glue_function("cache_enabled"));
    if (!now)
        return ST_ERROR;
    if (now == PyTuple_GET_ITEM(values, 3)) {
        Py_DECREF(PyTuple_GET_ITEM(values, 3));
        PyTuple_SET_ITEM(values, 3, Py_NewRef(Py_None));
    }
    Py_DECREF(now);
    return ST_OK;
}

static PyObject *autocast_self(world *w, call_args a) {
    PyObject *self = a.given > 0 ? door_open(w, a.args[0]) : NULL;
    if (!self)
        return NULL;
    if (record_of(w, self))
        return world_break(w, REASON_TORCH_STATE, "an autocast object from outside");
    return self;
}

// Entered contexts, innermost last: (the object, torch's context, the node).
static status push_context(torch_trace *t, PyObject *self, PyObject *context, node *n) {
    if (!t->contexts && !(t->contexts = PyList_New(0)))
        return ST_ERROR;
    PyObject *entry = PyTuple_Pack(3, self, context, n);
    int failed = entry ? PyList_Append(t->contexts, entry) : -1;
    Py_XDECREF(entry);
    return failed < 0 ? ST_ERROR : ST_OK;
}

PyObject *autocast_enter(world *w, const row *r, call_args a) {
    torch_trace *t = trace_of(w);
    PyObject *self = t ? autocast_self(w, a) : NULL;
    PyObject *values = self && state_save(t) == ST_OK ? autocast_values(w, self) : NULL;
    if (!values || forget_cache(values) != ST_OK) {
        Py_XDECREF(values);
        return NULL;
    }
    quiet q;
    quiet_begin(&q);
    PyObject *context = PyObject_CallObject(r->extra, values);
    quiet_end(&q);
    node *n = context ? record_setter(w, r->extra, values) : NULL;
    PyObject *result = n && push_context(t, self, context, n) == ST_OK ? Py_NewRef(self) : NULL;
    Py_DECREF(values);
    Py_XDECREF(context);
    Py_XDECREF(n);
    return result;
}

PyObject *autocast_exit(world *w, const row *r, call_args a) {
    torch_trace *t = trace_of(w);
    PyObject *self = t ? autocast_self(w, a) : NULL;
    if (!self)
        return NULL;
    Py_ssize_t count = t->contexts ? PyList_GET_SIZE(t->contexts) : 0;
    PyObject *top = count ? PyList_GET_ITEM(t->contexts, count - 1) : NULL;
    if (!top || PyTuple_GET_ITEM(top, 0) != self)
        return world_break(w, REASON_TORCH_STATE, "autocast left in another order than entered");
    quiet q;
    quiet_begin(&q);
    PyObject *done = PyObject_CallOneArg(r->extra, PyTuple_GET_ITEM(top, 1));
    quiet_end(&q);
    PyObject *args = done ? PyTuple_Pack(1, PyTuple_GET_ITEM(top, 2)) : NULL;
    node *n = args ? record_setter(w, r->extra, args) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(args);
    if (!n || PyList_SetSlice(t->contexts, count - 1, count, NULL) < 0) {
        Py_XDECREF(n);
        return NULL;
    }
    Py_DECREF(n);
    return Py_NewRef(Py_False);
}
