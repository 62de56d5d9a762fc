// Makes containers of stack slots, for the BUILD_ instructions.
#include "src/interp/build.h"

PyObject *build_tuple(PyObject **items, Py_ssize_t count) {
    PyObject *tuple = PyTuple_New(count);
    if (tuple && count > 0)
        memcpy(((PyTupleObject *)tuple)->ob_item, items, (size_t)count * sizeof(PyObject *));
    return tuple;
}

PyObject *build_list(PyObject **items, Py_ssize_t count) {
    PyObject *list = PyList_New(count);
    if (list && count > 0)
        memcpy(((PyListObject *)list)->ob_item, items, (size_t)count * sizeof(PyObject *));
    return list;
}

PyObject *build_set(PyObject **items, Py_ssize_t count) {
    PyObject *set = PySet_New(NULL);
    for (Py_ssize_t i = 0; set && i < count; i++)
        if (PySet_Add(set, items[i]) < 0)
            Py_CLEAR(set);
    return set;
}

PyObject *build_map(PyObject **keys, Py_ssize_t key_step, PyObject **values, Py_ssize_t value_step,
                    Py_ssize_t count) {
    PyObject *map = count > 4 ? _PyDict_NewPresized(count) : PyDict_New();
    for (Py_ssize_t i = 0; map && i < count; i++)
        if (PyDict_SetItem(map, keys[i * key_step], values[i * value_step]) < 0)
            Py_CLEAR(map);
    return map;
}

PyObject *build_slice(PyObject **parts, int count) {
    return PySlice_New(parts[0], parts[1], count > 2 ? parts[2] : NULL);
}

PyObject *build_string(PyObject **parts, Py_ssize_t count) {
    PyObject *empty = PyUnicode_New(0, 0);
    if (!empty)
        return NULL;
    PyObject *text = _PyUnicode_JoinArray(empty, parts, count);
    Py_DECREF(empty);
    return text;
}
