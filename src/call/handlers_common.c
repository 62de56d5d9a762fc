// Functions that all handlers share: they read arguments, gather iterables, and make native calls.
#include "src/attr/attr.h"

#include "src/call/call.h"
#include "src/call/feed.h"
#include "src/call/handlers.h"
#include "src/call/native.h"

PyObject *handler_misuse(world *w, const call *c) {
    static const char says[] = " with these arguments";
    if (c->rule && c->rule->weak) // torch might take them all the same, and change its state
        return world_break_at(w, REASON_TENSOR_OPERATION, c->callable, says);
    if (native_has_lazy(c))
        return world_break_at(w, REASON_NATIVE_CALL, c->callable, says);
    PyObject *result = PyObject_Vectorcall(c->callable, c->args, c->given, c->keywords);
    if (!result)
        return NULL;
    // It took them after all: what it did with unopened arguments is not believed.
    Py_DECREF(result);
    return world_break_at(w, REASON_NATIVE_CALL, c->callable, says);
}

PyObject **room_open(arg_room *r, PyObject *self, const call *c) {
    size_t first = self != NULL;
    r->count = first + call_count(c);
    bool few = r->count <= Py_ARRAY_LENGTH(r->few);
    r->items = few ? r->few : PyMem_New(PyObject *, r->count);
    if (!r->items) {
        Py_XDECREF(self);
        PyErr_NoMemory();
        return NULL;
    }
    if (self)
        r->items[0] = self;
    for (size_t i = first; i < r->count; i++)
        r->items[i] = Py_NewRef(c->args[i - first]);
    return r->items;
}

void room_close(arg_room *r) {
    for (size_t i = 0; i < r->count; i++)
        Py_DECREF(r->items[i]);
    if (r->items != r->few)
        PyMem_Free(r->items);
}

PyObject *handler_keyword(const call *c, const char *name) {
    for (Py_ssize_t i = 0; c->keywords && i < PyTuple_GET_SIZE(c->keywords); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(c->keywords, i), name) == 0)
            return c->args[c->given + (size_t)i];
    return NULL;
}

PyObject *handler_name(world *w, PyObject *o) {
    PyObject *name = door_open(w, o);
    if (!name || PyUnicode_CheckExact(name))
        return name;
    if (!PyUnicode_Check(name) && !is_standin(name)) {
        PyErr_Format(PyExc_TypeError, "attribute name must be string, not '%.200s'",
                     Py_TYPE(name)->tp_name);
        return NULL;
    }
    return world_break(w, REASON_ATTRIBUTE, "a name that is a %s object", Py_TYPE(name)->tp_name);
}

PyObject *handler_native(world *w, PyObject *callable, PyObject *const *args, size_t given) {
    bool suspicious = false;
    for (size_t i = 0; i < given && !suspicious; i++)
        suspicious = handler_meets_standin(args[i], 3);
    return call_native(w, callable, args, given, NULL, suspicious);
}

PyObject *handler_interpret(world *w, const call *c) {
    call again = call_again(c, c->callable);
    return call_function(w, &again);
}

PyObject *handler_gather(world *w, PyObject *iterable) {
    PyObject *feed = feed_new(w, iterable, P_NONE);
    PyObject *list = feed ? native_result(w, PySequence_List(feed), false) : NULL;
    Py_XDECREF(feed);
    return list;
}

PyObject *handler_attr(world *w, PyObject *o, const char *name) {
    PyObject *text = PyUnicode_InternFromString(name);
    PyObject *value = text ? attr_get(w, o, text) : NULL;
    Py_XDECREF(text);
    return value;
}

PyObject *handler_special(world *w, PyObject *o, const char *special) {
    PyObject *name = PyUnicode_InternFromString(special);
    PyObject *method = name ? attr_special(w, o, name) : NULL;
    PyObject *result = method ? call_with(w, method, NULL, 0) : NULL;
    if (!method && !w->stop.broken && !PyErr_Occurred())
        world_break(w, REASON_PROTOCOL, "%s of a %s object", special, Py_TYPE(o)->tp_name);
    Py_XDECREF(name);
    Py_XDECREF(method);
    return result;
}

bool handler_missed(const world *w) {
    return !w->stop.broken && PyErr_ExceptionMatches(PyExc_AttributeError);
}

PyObject *handler_find(world *w, PyObject *o, const char *name) {
    PyObject *value = handler_attr(w, o, name);
    if (!value && handler_missed(w))
        PyErr_Clear();
    return value;
}

static bool any_standin(PyObject *const *items, Py_ssize_t count, int depth) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (handler_meets_standin(items[i], depth))
            return true;
    return false;
}

bool handler_meets_standin(PyObject *o, int depth) {
    if (is_standin(o) || is_lazy(o) || depth == 0)
        return true;
    if (PyTuple_Check(o))
        return any_standin(((PyTupleObject *)o)->ob_item, PyTuple_GET_SIZE(o), depth - 1);
    if (PyList_Check(o))
        return any_standin(((PyListObject *)o)->ob_item, PyList_GET_SIZE(o), depth - 1);
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (PyDict_Check(o) && PyDict_Next(o, &at, &key, &value))
        if (handler_meets_standin(key, depth - 1) || handler_meets_standin(value, depth - 1))
            return true;
    return false;
}

PyObject *handler_bool(int truth) {
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}
