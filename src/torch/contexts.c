// Autocast and inference mode: contexts that the program enters and leaves. Each becomes a node, and
// is entered and left for real while tracing.
#include "src/attr/attr.h"

#include "src/torch/levels.h"

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
        (PyDict_SetItem(t->asked, call, dtype) < 0 || state_guard_answer(w, call, dtype) != ST_OK))
        Py_CLEAR(dtype);
    Py_XDECREF(dtype); // the dict has it
    return dtype;
}

// The dtype that autocast had when the trace began: torch's guard holds it only where autocast is
// on. Borrowed from what was asked, or NULL.
static PyObject *guard_autocast_dtype(world *w, PyObject *device) {
    PyObject *asked = state_asked_so_far(w);
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
        return world_break_at(w, REASON_TORCH_STATE, r->object, " with other arguments");
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
    PyObject *values = self && state_save(t) == ST_OK ? autocast_values(w, self) : NULL;
    if (!values)
        return NULL;
    world_touch(w);
    t->switched = true;
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
    t->switched = true;
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

// Tensors that were made in inference mode are not like others. Which ones were, only fakes with
// history tell.
static void note_inference(torch_trace *t, bool was_on) {
    t->switched = true;
    t->left_inference |= was_on && !facts.inference();
}

// What __enter__ keeps in the object is torch's own guard, which nobody could make again: a trace
// that ends before the mode is left is done again, and breaks before it is entered.
static status inference_begin(world *w, torch_trace *t, PyObject *function, PyObject *self,
                              PyObject *mode) {
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("_inference_mode_context")))
        return ST_ERROR;
    bool was_on = facts.inference();
    PyObject *context = call_quietly(function, mode);
    note_inference(t, was_on);
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
    if (!t || levels_forbid(w, "inference mode") != ST_OK)
        return NULL;
    PyObject *self = door_open(w, c->args[0]);
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
    bool was_on = facts.inference();
    PyObject *context = PyTuple_Pack(1, PyTuple_GET_ITEM(top, 1));
    PyObject *done = context ? call_quietly(r->extra, context) : NULL;
    note_inference(t, was_on);
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

// --- the end of a trace ---

status inference_left(world *w, torch_trace *t) {
    if (!inference_top(t))
        return ST_OK;
    PyObject *context = PyTuple_GET_ITEM(PyList_GET_ITEM(t->inference, 0), 1);
    world_break(w, REASON_TORCH_STATE, "inference mode is entered, and not left in the same piece");
    const uint64_t *born = map_get(&w->time.born, map_key(context));
    w->time.again = born ? *born : 0;
    return ST_BREAK;
}

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

status autocast_leave_all(world *w, torch_trace *t) {
    while (top_context(t))
        TRY(undo_context(w, t));
    return ST_OK;
}
