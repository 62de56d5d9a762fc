// Parts of calls: opens bound methods, prepares star arguments, makes functions.
#include "src/py/functions.h"

#include "src/interp/call.h"
#include "src/interp/errors.h"

bool call_open_method(py_slot *bottom) {
    PyObject *callable = py_slot_get(bottom + (PY_CALLABLE_FIRST ? 0 : 1));
    if (!Py_IS_TYPE(callable, &PyMethod_Type))
        return false;
    py_slot_put(bottom, Py_NewRef(PyMethod_GET_FUNCTION(callable)));
    py_slot_put(bottom + 1, Py_NewRef(PyMethod_GET_SELF(callable)));
    Py_DECREF(callable);
    return true;
}

static int make_tuple(PyObject *callable, py_slot *slot) {
    PyObject *args = py_slot_get(slot);
    if (PyTuple_CheckExact(args))
        return 0;
    if (error_check_star_args(callable, args) < 0)
        return -1;
    PyObject *tuple = PySequence_Tuple(args);
    if (!tuple)
        return -1;
    py_slot_set(slot, tuple);
    return 0;
}

static int make_dict(PyObject *callable, py_slot *slot) {
    PyObject *keywords = py_slot_get(slot);
    if (PyDict_CheckExact(keywords))
        return 0;
    PyObject *dict = PyDict_New();
    if (!dict)
        return -1;
    if (_PyDict_MergeEx(dict, keywords, 2) < 0) {
        Py_DECREF(dict);
        error_dict_merge(callable, keywords);
        return -1;
    }
    py_slot_set(slot, dict);
    return 0;
}

int call_prepare_star(PyObject *callable, py_slot *args, py_slot *keywords) {
    if (keywords && make_dict(callable, keywords) < 0)
        return -1;
    return make_tuple(callable, args);
}

static int flatten_keywords(flat_args *f, PyObject *keywords) {
    PyObject *key, *value;
    Py_ssize_t position = 0, n = 0;
    while (PyDict_Next(keywords, &position, &key, &value)) {
        if (!PyUnicode_Check(key)) {
            PyErr_SetString(PyExc_TypeError, "keywords must be strings");
            return -1;
        }
        PyTuple_SET_ITEM(f->names, n++, Py_NewRef(key));
        py_slot_put(&f->items[f->count++], Py_NewRef(value));
    }
    return 0;
}

flat_args call_flatten(PyObject *args, PyObject *keywords) {
    flat_args f = {.given = (size_t)PyTuple_GET_SIZE(args)};
    size_t room = f.given + (size_t)PyDict_GET_SIZE(keywords);
    f.names = PyTuple_New(PyDict_GET_SIZE(keywords));
    f.items = f.names ? PyMem_Malloc(room * sizeof(py_slot)) : NULL;
    if (!f.items) {
        if (f.names)
            PyErr_NoMemory();
        Py_CLEAR(f.names);
        return f;
    }
    for (; f.count < (Py_ssize_t)f.given; f.count++)
        py_slot_put(&f.items[f.count], Py_NewRef(PyTuple_GET_ITEM(args, f.count)));
    if (flatten_keywords(&f, keywords) < 0) {
        call_drop_flat(&f);
        f.items = NULL;
    }
    return f;
}

void call_drop_flat(flat_args *f) {
    for (Py_ssize_t n = 0; n < f->count; n++)
        Py_XDECREF(py_slot_get(&f->items[n]));
    PyMem_Free(f->items);
    Py_CLEAR(f->names);
}

enum { WITH_DEFAULTS = 1, WITH_KWDEFAULTS = 2, WITH_ANNOTATIONS = 4, WITH_CLOSURE = 8 };

void call_set_function_attribute(PyObject *function, int flag, PyObject *value) {
    PyFunctionObject *f = (PyFunctionObject *)function;
    switch (flag) {
    case WITH_CLOSURE:
        Py_XSETREF(f->func_closure, value);
        break;
    case WITH_ANNOTATIONS:
        Py_XSETREF(f->func_annotations, value);
        break;
    case WITH_KWDEFAULTS:
        Py_XSETREF(f->func_kwdefaults, value);
        break;
    default:
        Py_XSETREF(f->func_defaults, value);
        break;
    }
}

PyObject *call_make_function(PyObject *globals, const py_slot *sp, int flags) {
    PyObject *function = py_function_new(py_slot_get(--sp), globals);
    if (!function)
        return NULL;
    for (int flag = WITH_CLOSURE; flag; flag >>= 1)
        if (flags & flag)
            call_set_function_attribute(function, flag, py_slot_get(--sp));
    return function;
}
