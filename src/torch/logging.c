// Calls of functions that only log, as torch's settings list them: left out of the trace, or put
// off until the graph has run and all writes are done.
#include "src/world/number.h"

#include "src/call/handlers.h"

#include "src/torch/marks.h"
#include "src/torch/room.h"

// Strong: sets of (id of a function, id of the object it is bound to, or 0); NULL: none.
static struct {
    PyObject *ignored, *later;
} lists;

// --- finding ---

static PyObject *outside_of(const world *w, PyObject *o) {
    if (is_lazy(o))
        return ((lazy *)o)->outside;
    record *r = record_of(w, o);
    return r && r->outside ? r->outside : o;
}

static bool has(PyObject *set, PyObject *function, PyObject *self) {
    PyObject *key = Py_BuildValue("(NN)", PyLong_FromVoidPtr(function), PyLong_FromVoidPtr(self));
    int found = key ? PySet_Contains(set, key) : -1;
    Py_XDECREF(key);
    if (found < 0)
        PyErr_Clear();
    return found > 0;
}

static bool is_listed(const world *w, PyObject *set, const call *c) {
    if (!set || PySet_GET_SIZE(set) == 0)
        return false;
    PyObject *function = outside_of(w, c->callable);
    return has(set, function, NULL) ||
           (c->given > 0 && has(set, function, outside_of(w, c->args[0])));
}

// --- calls ---

// Another object in the place of the listed one would not be listed.
static status pin(world *w, PyObject *o) {
    PyObject *opened = door_open(w, o);
    record *r = opened ? record_of(w, opened) : NULL;
    return !opened ? ST_BREAK : r ? record_identity(w, r) : ST_OK;
}

static status pin_listed(world *w, PyObject *set, const call *c) {
    bool bound = !has(set, outside_of(w, c->callable), NULL);
    TRY(pin(w, c->callable));
    return bound ? pin(w, c->args[0]) : ST_OK;
}

static HANDLER(left_out) {
    return pin_listed(w, lists.ignored, c) == ST_OK ? Py_NewRef(Py_None) : NULL;
}

static bool is_open_number(PyObject *o) {
    return is_lazy(o) && ((lazy *)o)->is_number && ((lazy *)o)->source->kind != SOURCE_GRAPH;
}

// What is logged later must be what it is now: values, and tensors that nothing writes to
// (logging_end).
static PyObject *lasting(world *w, PyObject *argument, bool *tensors) {
    if (is_open_number(argument))
        return Py_NewRef(argument);
    PyObject *o = door_open(w, argument);
    if (!o || value_immutable(o))
        return Py_XNewRef(o);
    if (!is_tensor_standin(o))
        return world_break(w, REASON_LOGGING,
                           "an object of type %s, which may change until the log"
                           " is written",
                           Py_TYPE(o)->tp_name);
    *tensors = true;
    return Py_NewRef(o);
}

static PyObject *lasting_all(world *w, const call *c, size_t from, bool *tensors) {
    Py_ssize_t count = (Py_ssize_t)(call_count(c) - from);
    PyObject *all = PyTuple_New(count);
    for (Py_ssize_t i = 0; all && i < count; i++) {
        PyObject *o = lasting(w, c->args[from + (size_t)i], tensors);
        if (o)
            PyTuple_SET_ITEM(all, i, o);
        else
            Py_CLEAR(all);
    }
    return all;
}

static HANDLER(put_off) {
    bool bound = !has(lists.later, outside_of(w, c->callable), NULL), tensors = false;
    if (w->scope != w->graph)
        return world_break(w, REASON_LOGGING, "in the body of an operator");
    PyObject *args =
        pin_listed(w, lists.later, c) == ST_OK ? lasting_all(w, c, bound, &tensors) : NULL;
    PyObject *function = args && bound ? PyMethod_New(c->callable, door_open(w, c->args[0]))
                                       : Py_XNewRef(args ? c->callable : NULL);
    held_call held = {.function = function,
                      .self = args,
                      .names = c->keywords,
                      .later = true,
                      .nodes = tensors ? PyList_GET_SIZE(w->graph->nodes) : PY_SSIZE_T_MAX};
    bool done = function && world_hold_call(w, held) == ST_OK;
    Py_XDECREF(args);
    Py_XDECREF(function);
    return done ? Py_NewRef(Py_None) : NULL;
}

const rule *logging_rule(const world *w, const call *c) {
    static const rule left_out = {.path = "left_out",
                                  .kind = RULE_HANDLED,
                                  .handler = handle_left_out,
                                  .takes = ANY,
                                  .writes = W_NONE},
                      put_off = {.path = "put_off",
                                 .kind = RULE_HANDLED,
                                 .handler = handle_put_off,
                                 .takes = ANY,
                                 .writes = W_NONE};
    if (is_listed(w, lists.ignored, c))
        return &left_out;
    return is_listed(w, lists.later, c) ? &put_off : NULL;
}

// --- the end ---

static bool writes_from(const graph *g, Py_ssize_t first) {
    for (Py_ssize_t i = first; i < PyList_GET_SIZE(g->nodes); i++)
        if (((node *)PyList_GET_ITEM(g->nodes, i))->effects & (EFFECT_WRITES | EFFECT_OUTSIDE))
            return true;
    return false;
}

status logging_end(world *w) {
    for (uint32_t i = 0; i < w->held.calls.count; i++) {
        const held_call *c = &w->held.calls.items[i];
        if (!c->later || !writes_from(w->graph, c->nodes))
            continue;
        world_break(w, REASON_LOGGING, "a tensor that is written to before the log is");
        world_break_earlier(w, c->since);
        return ST_BREAK;
    }
    return ST_OK;
}

// --- for Python ---

static PyObject *mark_logging(PyObject *module, PyObject *args) {
    PyObject *ignored, *later;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PySet_Type, &ignored, &PySet_Type, &later))
        return NULL;
    Py_XSETREF(lists.ignored, Py_NewRef(ignored));
    Py_XSETREF(lists.later, Py_NewRef(later));
    Py_RETURN_NONE;
}

PyMethodDef logging_methods[] = {
    {"mark_logging", mark_logging, METH_VARARGS,
     "mark_logging(ignored, later): calls that are left out, and that are put off until the graph "
     "has run; sets of (id of the function, id of its self or 0)."},
    {NULL, NULL, 0, NULL},
};
