// Data that a tensor is made of: tensors of one number in lists into numbers that only the graph
// knows.
#include "src/call/handlers.h"

#include "src/torch/room.h"

// Whether its number gives the new tensor the dtype that Python's own number does.
static bool is_like_python(int32_t dtype) {
    for (number_kind kind = NUMBER_INT; kind <= NUMBER_BOOL; kind++)
        if (dtype == meta_number_dtype(kind, default_dtype()))
            return true;
    return false;
}

static bool is_read(const standin *s, bool typed) {
    const meta *m = &s->node->meta;
    return m->dims == 0 && !m->requires_grad && (typed || is_like_python(m->dtype));
}

static bool is_list(PyObject *o) {
    return PyList_CheckExact(o) || PyTuple_CheckExact(o);
}

// Whether tensors are in lists, all of which can be read. *read: at least one. False, perhaps with a
// break or an exception.
static bool can_read(world *w, PyObject *data, bool typed, bool *read) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(data); i++) {
        PyObject *item = opened_or_number(w, PySequence_Fast_GET_ITEM(data, i));
        if (!item || (is_list(item) && !can_read(w, item, typed, read)))
            return false;
        if (!is_tensor_standin(item))
            continue;
        *read = true;
        if (!is_read((standin *)item, typed))
            return false;
    }
    return true;
}

// New reference; NULL with a break or an exception.
static PyObject *values_in(world *w, PyObject *data) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(data);
    PyObject *result = PyTuple_New(count);
    for (Py_ssize_t i = 0; result && i < count; i++) {
        PyObject *item = opened_or_number(w, PySequence_Fast_GET_ITEM(data, i));
        PyObject *value = !item                     ? NULL
                          : is_tensor_standin(item) ? value_of_tensor(w, item)
                          : is_list(item)           ? values_in(w, item)
                                                    : Py_NewRef(item);
        if (value)
            PyTuple_SET_ITEM(result, i, value);
        else
            Py_CLEAR(result);
    }
    return result;
}

PyObject *data_call(world *w, const call *c, PyObject *data) {
    PyObject *dtype = handler_keyword(c, "dtype");
    bool typed = dtype && door_open(w, dtype) != Py_None, read = false;
    bool captured = (w->terms.captures & CAPTURE_SCALARS) && is_list(data);
    if (!captured || !can_read(w, data, typed, &read) || !read)
        return PyErr_Occurred() || w->stop.broken ? NULL : device_call(w, c);
    size_t count = call_count(c);
    PyObject *values = values_in(w, data), *result = NULL;
    PyObject **args = values ? PyMem_Malloc(count * sizeof(PyObject *)) : NULL;
    if (args) {
        memcpy(args, c->args, count * sizeof(PyObject *));
        args[0] = values;
        call changed = *c;
        changed.args = args;
        result = device_call(w, &changed);
        PyMem_Free(args);
    } else if (values)
        PyErr_NoMemory();
    Py_XDECREF(values);
    return result;
}
