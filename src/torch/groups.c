// torch.distributed: questions about a process group, which stays as it was made; placements, which
// are values; and functions of tensors that also take a mesh and placements.
#include "src/torch/room.h"

// What stands for an object of torch's is the object itself.
static PyObject *group_of(world *w, PyObject *o) {
    PyObject *group = door_open(w, o);
    record *r = group ? record_of(w, group) : NULL;
    if (group && (!r || r->outside != group))
        return world_break(w, REASON_TENSOR_OPERATION, "a process group made inside");
    return r && record_identity(w, r) == ST_OK ? group : NULL;
}

PyObject *group_asked(world *w, const call *c) {
    PyObject *group = group_of(w, c->args[0]);
    quiet q;
    quiet_begin(&q);
    PyObject *answer = group ? PyObject_CallOneArg(c->rule->object, group) : NULL;
    quiet_end(&q);
    bool plain = answer && (PyLong_CheckExact(answer) || PyUnicode_CheckExact(answer));
    if (!answer || plain)
        return answer;
    Py_DECREF(answer);
    return world_break(w, REASON_TENSOR_OPERATION, "%s", c->rule->path);
}

// The group of this name, which is asked for again before each call.
PyObject *group_found(world *w, const call *c) {
    PyObject *name = plain_value(w, c->args[0]);
    PyObject *question = name ? PyTuple_Pack(2, c->rule->object, name) : NULL;
    quiet q;
    quiet_begin(&q);
    PyObject *group = question ? PyObject_CallOneArg(c->rule->object, name) : NULL;
    quiet_end(&q);
    source *s = group && state_guard_answer(w, question, group) == ST_OK
                    ? guard_source(w->guards, SOURCE_FIXED, NULL, group, 0)
                    : NULL;
    PyObject *given = !s                    ? NULL
                      : record_of(w, group) ? Py_NewRef(group)
                                            : Py_XNewRef(door_bring(w, s, group));
    Py_XDECREF(group);
    Py_XDECREF(question);
    Py_XDECREF(name);
    return given;
}

// --- objects that never change ---

static PyObject *constant_of(world *w, PyObject *o);

static PyObject *constants_of(world *w, PyObject *sequence) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
    PyObject *items = PyList_New(count);
    for (Py_ssize_t i = 0; items && i < count; i++) {
        PyObject *item = constant_of(w, PySequence_Fast_GET_ITEM(sequence, i));
        if (item)
            PyList_SET_ITEM(items, i, item);
        else
            Py_CLEAR(items);
    }
    if (items && PyTuple_Check(sequence))
        Py_SETREF(items, PyList_AsTuple(items));
    return items;
}

// A plain value, a mesh, a placement, or a list or tuple of such; new reference.
static PyObject *constant_of(world *w, PyObject *o) {
    if (!(o = door_open(w, o)))
        return NULL;
    if (PyTuple_CheckExact(o) || PyList_CheckExact(o))
        return constants_of(w, o);
    record *r = record_of(w, o);
    if (is_plain_value(o) || !r || r->outside != o)
        return plain_value(w, o);
    quiet q;
    quiet_begin(&q);
    PyObject *manner = PyObject_CallOneArg(glue_function("held_manner"), o);
    quiet_end(&q);
    bool lasting = manner && PyUnicode_Check(manner);
    Py_XDECREF(manner);
    if (manner && !lasting)
        return plain_value(w, o);
    return manner && record_identity(w, r) == ST_OK ? Py_NewRef(o) : NULL;
}

// A placement is made of plain values, and is the same one in each call.
PyObject *placement_make(world *w, const call *c) {
    PyObject *args = PyTuple_New((Py_ssize_t)c->given);
    PyObject *kwargs = args && c->keywords ? PyDict_New() : NULL;
    bool fine = args && (kwargs || !c->keywords);
    for (size_t i = 0; fine && i < call_count(c); i++) {
        PyObject *value = plain_value(w, c->args[i]);
        fine = value != NULL;
        if (fine && i < c->given)
            PyTuple_SET_ITEM(args, (Py_ssize_t)i, Py_NewRef(value));
        else if (fine)
            fine = PyDict_SetItem(kwargs, PyTuple_GET_ITEM(c->keywords, i - c->given), value) == 0;
        Py_XDECREF(value);
    }
    quiet q;
    quiet_begin(&q);
    PyObject *made = fine ? PyObject_Call(c->rule->object, args, kwargs) : NULL;
    quiet_end(&q);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    source *s = made ? guard_source(w->guards, SOURCE_FIXED, NULL, made, 0) : NULL;
    PyObject *result = Py_XNewRef(s ? door_bring(w, s, made) : NULL);
    Py_XDECREF(made);
    return result;
}

// --- functions of tensors and of such objects ---

typedef struct binding {
    PyObject *tensors; // strong: list of stand-ins
    PyObject *args;    // strong: list of constants; a tensor is the marker
    PyObject *names;   // borrowed: tuple of keywords, or an empty one
} binding;

static status bind_all(world *w, const call *c, binding *b) {
    for (size_t i = 0; i < call_count(c); i++) {
        PyObject *o = door_open(w, c->args[i]);
        bool tensor = o && is_tensor_standin(o);
        PyObject *value = tensor ? Py_NewRef(Py_Ellipsis) : o ? constant_of(w, o) : NULL;
        int failed = value ? PyList_Append(b->args, value) : -1;
        Py_XDECREF(value);
        if (failed == 0 && tensor)
            failed = PyList_Append(b->tensors, o);
        if (failed < 0)
            return ST_ERROR;
    }
    return ST_OK;
}

// The node calls a function that has the constants in it: graphs are code, which cannot name them.
PyObject *group_bound(world *w, const call *c) {
    PyObject *none = PyTuple_New(0), *target = NULL, *result = NULL;
    binding b = {PyList_New(0), PyList_New(0), c->keywords ? c->keywords : none};
    if (none && b.tensors && b.args && bind_all(w, c, &b) == ST_OK) {
        quiet q;
        quiet_begin(&q);
        target = PyObject_CallFunctionObjArgs(glue_function("bound"), c->rule->object, b.args,
                                              b.names, NULL);
        quiet_end(&q);
    }
    if (target)
        result = record_function(w, target, PySequence_Fast_ITEMS(b.tensors),
                                 (size_t)PyList_GET_SIZE(b.tensors));
    Py_XDECREF(none);
    Py_XDECREF(b.tensors);
    Py_XDECREF(b.args);
    Py_XDECREF(target);
    return result;
}
