#include "src/py/each.h"

#include "src/py/raised.h"

PyObject *py_each(PyObject *const *items, Py_ssize_t count, bool tuple, each_becomes becomes,
                  void *data) {
    PyObject *to = tuple ? PyTuple_New(count) : PyList_New(count);
    for (Py_ssize_t i = 0; to && i < count; i++) {
        PyObject *item = becomes(data, items[i]);
        if (!item)
            Py_CLEAR(to);
        else if (tuple)
            PyTuple_SET_ITEM(to, i, item);
        else
            PyList_SET_ITEM(to, i, item);
    }
    return to;
}

PyObject *py_each_of_slice(PySliceObject *slice, each_becomes becomes, void *data) {
    PyObject *const parts[] = {slice->start, slice->stop, slice->step};
    PyObject *all = py_each(parts, 3, true, becomes, data);
    PyObject *made = all ? PySlice_New(PyTuple_GET_ITEM(all, 0), PyTuple_GET_ITEM(all, 1),
                                       PyTuple_GET_ITEM(all, 2))
                         : NULL;
    Py_XDECREF(all);
    return made;
}

PyObject *py_enter_context(PyObject *class) {
    PyObject *context = PyObject_CallNoArgs(class);
    PyObject *done = context ? PyObject_CallMethod(context, "__enter__", NULL) : NULL;
    if (!done)
        Py_CLEAR(context);
    Py_XDECREF(done);
    return context;
}

void py_leave_context(PyObject *context) {
    py_raised aside = py_put_aside();
    PyObject *done = PyObject_CallMethod(context, "__exit__", "OOO", Py_None, Py_None, Py_None);
    if (!done)
        PyErr_WriteUnraisable(context);
    Py_XDECREF(done);
    Py_DECREF(context);
    py_put_on(aside);
}
