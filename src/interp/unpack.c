// Takes a value apart into stack slots: tuples and lists by their items, the rest by iteration.
#include "src/interp/unpack.h"

static void drop_slots(py_slot *top, int filled) {
    for (int i = filled; i > 0; i--)
        py_slot_set(top - i, NULL);
}

// An exact tuple or list that has just the right length; no code of anybody's can run.
static bool unpack_items(PyObject *v, int before, py_slot *top) {
    PyObject **items;
    if (PyTuple_CheckExact(v) && PyTuple_GET_SIZE(v) == before)
        items = ((PyTupleObject *)v)->ob_item;
    else if (PyList_CheckExact(v) && PyList_GET_SIZE(v) == before)
        items = ((PyListObject *)v)->ob_item;
    else
        return false;
    for (int i = 0; i < before; i++)
        py_slot_put(top - 1 - i, Py_NewRef(items[i]));
    return true;
}

static void error_too_few(int before, int after, Py_ssize_t got) {
    if (after < 0)
        PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %d, got %zd)", before,
                     got);
    else
        PyErr_Format(PyExc_ValueError,
                     "not enough values to unpack (expected at least %d, got %zd)", before + after,
                     got);
}

static PyObject *unpack_iter(PyObject *v) {
    PyObject *it = PyObject_GetIter(v);
    if (!it && PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(v)->tp_iter &&
        !PySequence_Check(v))
        PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object",
                     Py_TYPE(v)->tp_name);
    return it;
}

// The list of what is left goes to `star`, its last `after` elements to the slots below.
static int unpack_rest(PyObject *it, int before, int after, py_slot *star) {
    PyObject *list = PySequence_List(it);
    if (!list)
        return -1;
    Py_ssize_t kept = PyList_GET_SIZE(list) - after;
    if (kept < 0) {
        error_too_few(before, after, before + PyList_GET_SIZE(list));
        Py_DECREF(list);
        return -1;
    }
    for (int i = 0; i < after; i++)
        py_slot_put(star - 1 - i, PyList_GET_ITEM(list, kept + i)); // the list's reference moves
    Py_SET_SIZE(list, kept);
    py_slot_put(star, list);
    return 0;
}

static int unpack_end(PyObject *it, int before) {
    PyObject *extra = PyIter_Next(it);
    if (!extra)
        return PyErr_Occurred() ? -1 : 0;
    Py_DECREF(extra);
    PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", before);
    return -1;
}

int unpack_sequence(PyObject *v, int before, int after, py_slot *top) {
    if (after < 0 && unpack_items(v, before, top))
        return 0;
    PyObject *it = unpack_iter(v);
    if (!it)
        return -1;
    int filled = 0, failed = 0;
    for (; filled < before && !failed; filled += !failed) {
        PyObject *item = PyIter_Next(it);
        py_slot_put(top - 1 - filled, item);
        failed = !item;
    }
    if (failed && !PyErr_Occurred())
        error_too_few(before, after, filled);
    if (!failed)
        failed =
            after < 0 ? unpack_end(it, before) : unpack_rest(it, before, after, top - before - 1);
    if (failed)
        drop_slots(top, filled);
    Py_DECREF(it);
    return failed ? -1 : 0;
}
