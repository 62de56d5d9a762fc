// The stack of function modes (torch.overrides.TorchFunctionMode), as the program sees it. The real
// stack stays as it is while the trace runs.
#include "src/attr/attr.h"

#include "src/torch/overrides.h"

// How many default devices lie below all other modes.
static int64_t devices_below(void) {
    int64_t below = 0;
    for (int64_t count = facts.mode_count(); below < count; below++) {
        PyObject *index = PyLong_FromLongLong(below);
        PyObject *mode = index ? PyObject_CallOneArg(glue_function("mode_at"), index) : NULL;
        bool device = mode && Py_TYPE(mode) == (PyTypeObject *)glue_function("DeviceContext");
        Py_XDECREF(index);
        Py_XDECREF(mode);
        if (!device)
            break;
    }
    PyErr_Clear();
    return below;
}

int64_t modes_now(void) {
    int64_t count = facts.mode_count();
    return count == 0 ? 0 : count - devices_below();
}

static Py_ssize_t count_of(const overrides *o) {
    return o && o->modes ? PyList_GET_SIZE(o->modes) : 0;
}

bool modes_are_on(const overrides *o) {
    return count_of(o) > 0 && o->state != FUNCTIONS_OFF;
}

static status push(world *w, overrides *o, PyObject *mode) {
    if (!o->modes && !(o->modes = PyList_New(0)))
        return ST_ERROR;
    TRY(vec_push(&o->pushed, w->time.now));
    return PyList_Append(o->modes, mode) < 0 ? ST_ERROR : ST_OK;
}

// A default device above another mode is asked before it.
static bool has_device(const overrides *o) {
    for (Py_ssize_t i = 0; i < count_of(o); i++) {
        PyObject *mode = PyList_GET_ITEM(o->modes, i);
        mode = is_lazy(mode) ? ((lazy *)mode)->outside : mode;
        if (Py_TYPE(mode) == (PyTypeObject *)glue_function("DeviceContext"))
            return true;
    }
    return false;
}

static PyObject *load_mode(world *w, int64_t place) {
    source *stack = guard_source(w->guards, SOURCE_FIXED, NULL, glue_function("mode_at"), 0);
    source *s =
        stack ? guard_source(w->guards, SOURCE_STACK, stack, NULL, (Py_ssize_t)place) : NULL;
    PyObject *kept = NULL;
    PyObject *mode =
        s ? source_read(SOURCE_STACK, glue_function("mode_at"), NULL, (Py_ssize_t)place, &kept)
          : NULL;
    PyObject *loaded = mode ? door_load(w, s, mode) : NULL;
    Py_XDECREF(kept);
    return loaded;
}

status modes_begin(world *w, overrides *o) {
    int64_t below = devices_below(), count = facts.mode_count();
    for (int64_t i = below; i < count; i++) {
        PyObject *mode = load_mode(w, i);
        status done = mode ? push(w, o, mode) : ST_ERROR;
        Py_XDECREF(mode);
        TRY(done);
    }
    o->below = below;
    o->outside = count - below;
    if (has_device(o))
        return world_break_status(w, REASON_TORCH_STATE, "a default device above another mode");
    return ST_OK;
}

status modes_end(world *w, const overrides *o) {
    if (count_of(o) == o->outside)
        return ST_OK;
    world_break(w, REASON_TORCH_STATE, "a mode is entered, and not left in the same piece");
    w->time.again = o->pushed.items[o->outside];
    return ST_BREAK;
}

static void truncate_to(overrides *o, Py_ssize_t count) {
    if (o->modes && PyList_SetSlice(o->modes, count, count_of(o), NULL) < 0)
        PyErr_Clear();
    o->pushed.count = (uint32_t)count;
}

// While a mode is asked it is off. What it left on the stack when it failed goes.
PyObject *mode_ask(world *w, overrides *o, PyObject *const *args, size_t given) {
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("__torch_function__")))
        return NULL;
    Py_ssize_t top = count_of(o) - 1;
    uint64_t since = o->pushed.items[top];
    PyObject *mode = Py_NewRef(PyList_GET_ITEM(o->modes, top));
    truncate_to(o, top);
    PyObject *method = attr_get(w, mode, name);
    call c = {.callable = method, .args = args, .given = given, .result = RUN_NATIVE};
    PyObject *result = method ? call_any(w, &c) : NULL;
    Py_XDECREF(method);
    if (result && count_of(o) != top)
        Py_SETREF(result, world_break(w, REASON_TORCH_STATE, "a mode that leaves another one on"));
    truncate_to(o, top);
    if (vec_push(&o->pushed, since) != ST_OK || PyList_Append(o->modes, mode) < 0)
        Py_CLEAR(result);
    Py_DECREF(mode);
    return result;
}

// --- what the program calls ---

PyObject *mode_push(world *w, const call *c) {
    if (index_enter(w, c->args[0]))
        return Py_NewRef(Py_None);
    overrides *o = w->stop.broken || PyErr_Occurred() ? NULL : overrides_of(w);
    PyObject *mode = o ? door_open(w, c->args[0]) : NULL;
    if (mode && Py_TYPE(mode) == (PyTypeObject *)glue_function("DeviceContext"))
        return world_break(w, REASON_TORCH_STATE, "a default device is set");
    if (!mode || push(w, o, mode) != ST_OK)
        return NULL;
    world_touch(w);
    return Py_NewRef(Py_None);
}

// One that was on before the trace is taken off for real.
PyObject *mode_pop(world *w, const call *c) {
    (void)c;
    PyObject *taken = w->torch ? index_leave(w->torch) : NULL;
    overrides *o = taken ? NULL : overrides_of(w);
    if (taken)
        return taken;
    if (o && count_of(o) <= o->outside)
        return world_break(w, REASON_TORCH_STATE, "a mode is left that was entered before");
    if (!o)
        return NULL;
    PyObject *mode = Py_NewRef(PyList_GET_ITEM(o->modes, count_of(o) - 1));
    truncate_to(o, count_of(o) - 1);
    world_touch(w);
    return mode;
}

PyObject *mode_count(world *w, const call *c) {
    (void)c;
    overrides *o = overrides_of(w);
    return o ? PyLong_FromSsize_t(count_of(o) + (Py_ssize_t)o->below) : NULL;
}

PyObject *mode_get(world *w, const call *c) {
    overrides *o = overrides_of(w);
    PyObject *index = o ? plain_value(w, c->args[0]) : NULL;
    Py_ssize_t at = index ? PyNumber_AsSsize_t(index, NULL) - (Py_ssize_t)o->below : -1;
    Py_XDECREF(index);
    if (!o || !index)
        return NULL;
    if (at < 0 || at >= count_of(o))
        return world_break(w, REASON_TORCH_STATE, "a mode at an odd place of the stack");
    return Py_NewRef(PyList_GET_ITEM(o->modes, at));
}

PyObject *mode_any(world *w, const call *c) {
    (void)c;
    overrides *o = overrides_of(w);
    return o ? PyBool_FromLong(o->state != FUNCTIONS_OFF && count_of(o) + o->below > 0) : NULL;
}
