// The default device: torch keeps it as a mode of torch functions (torch.set_default_device, `with
// torch.device(…)`), which gives functions that make tensors a `device`. A trace does that itself.
#include "src/torch/overrides.h"

// New reference, or NULL if it is none of a default device.
static PyObject *mode_at(int64_t place) {
    PyObject *index = PyLong_FromLongLong(place);
    PyObject *mode = index ? PyObject_CallOneArg(glue_function("mode_at"), index) : NULL;
    Py_XDECREF(index);
    if (mode && Py_TYPE(mode) != (PyTypeObject *)glue_function("DeviceContext"))
        Py_CLEAR(mode);
    return mode;
}

static PyObject *device_of(PyObject *mode) {
    PyObject *device;
    if (raw_attr_get(mode, glue_function("device_name"), &device) != RAW_FOUND ||
        !Py_IS_TYPE(device, facts.device))
        return NULL;
    return Py_NewRef(device);
}

// Of those below all other modes: the last one that was put on is asked first, and says where.
PyObject *device_now(void) {
    PyObject *device = NULL;
    int64_t count = facts.mode_count() - modes_now();
    for (int64_t i = 0; i < count; i++) {
        PyObject *mode = mode_at(i);
        Py_XSETREF(device, mode ? device_of(mode) : NULL);
        Py_XDECREF(mode);
        if (!device)
            break;
    }
    PyErr_Clear();
    return device;
}

// torch.device compares in C.
bool device_is(PyObject *expected) {
    if (!expected)
        return facts.mode_count() == modes_now();
    PyObject *now = device_now();
    bool same = now && (now == expected || PyObject_RichCompareBool(now, expected, Py_EQ) == 1);
    Py_XDECREF(now);
    return same;
}

// Where the caller says None, the mode says it, too: that one argument is replaced.
static Py_ssize_t device_given(const call *c) {
    Py_ssize_t count = c->keywords ? PyTuple_GET_SIZE(c->keywords) : 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(c->keywords, i), "device") == 0)
            return i;
    return count;
}

static PyObject *names_with_device(const call *c, Py_ssize_t at) {
    Py_ssize_t count = c->keywords ? PyTuple_GET_SIZE(c->keywords) : 0;
    if (at < count)
        return Py_NewRef(c->keywords);
    PyObject *names = PyTuple_New(count + 1);
    for (Py_ssize_t i = 0; names && i < count; i++)
        PyTuple_SET_ITEM(names, i, Py_NewRef(PyTuple_GET_ITEM(c->keywords, i)));
    if (names)
        PyTuple_SET_ITEM(names, count, Py_NewRef(glue_function("device_name")));
    return names;
}

static PyObject *call_on(world *w, const call *c, Py_ssize_t at, PyObject *device) {
    size_t count = call_count(c);
    PyObject **args = PyMem_New(PyObject *, count + 1), *names = names_with_device(c, at);
    PyObject *result = NULL;
    if (args && names) {
        memcpy(args, c->args, count * sizeof(PyObject *));
        args[c->given + (size_t)at] = device;
        call with = *c;
        with.args = args;
        with.keywords = names;
        result = record_call(w, NODE_CALL_FUNCTION, c->callable, &with);
    } else if (!args) {
        PyErr_NoMemory();
    }
    Py_XDECREF(names);
    PyMem_Free(args);
    return result;
}

// As DeviceContext.__torch_function__.
PyObject *device_call(world *w, const call *c) {
    torch_trace *t = trace_of(w);
    int makes = t && t->device ? PySet_Contains(glue_function("constructors"), c->callable) : 0;
    if (!t || makes < 0)
        return NULL;
    Py_ssize_t at = makes ? device_given(c) : 0;
    PyObject *said = NULL;
    if (makes && at < (c->keywords ? PyTuple_GET_SIZE(c->keywords) : 0) &&
        !(said = door_open(w, c->args[c->given + (size_t)at])))
        return NULL;
    if (!makes || (said && said != Py_None))
        return record_call(w, NODE_CALL_FUNCTION, c->callable, c);
    return call_on(w, c, at, t->device);
}
