// Says whether a frame that CPython would run is worth compiling by itself: its code is the
// program's, and it has to do with torch.
#include "src/py/raw.h"

#include "src/code/code.h"

#include "src/world/world.h"

#include "src/compile/bind.h"
#include "src/compile/worth.h"

// --- whose code it is ---

PyObject *worth_set_library(PyObject *module, PyObject *folders) {
    (void)module;
    if (!PyTuple_CheckExact(folders))
        return PyErr_Format(PyExc_TypeError, "a tuple of folders is needed, not %R", folders);
    code_set_library(folders);
    Py_RETURN_NONE;
}

// --- what the code names ---

static bool is_package(PyObject *o) {
    PyObject *name = PyModule_Check(o) ? PyModule_GetNameObject(o) : NULL;
    if (!name) {
        PyErr_Clear();
        return false;
    }
    const char *text = PyUnicode_AsUTF8(name), *package = world_tensors->package;
    size_t length = strlen(package);
    bool is =
        text && strncmp(text, package, length) == 0 && (text[length] == 0 || text[length] == '.');
    if (!text)
        PyErr_Clear();
    Py_DECREF(name);
    return is;
}

// Whether a global that the code names is torch, or a module of torch's. Asked once for a code: what
// the names stand for later is not looked at.
static bool names_package(PyCodeObject *co, PyObject *globals) {
    code *c = code_of(co);
    if (!c) {
        PyErr_Clear();
        return false;
    }
    for (Py_ssize_t i = 0; c->torch == 0 && i < PyTuple_GET_SIZE(co->co_names); i++) {
        PyObject *found;
        if (raw_dict_get(globals, PyTuple_GET_ITEM(co->co_names, i), &found) == RAW_FOUND &&
            is_package(found))
            c->torch = 1;
    }
    if (c->torch == 0)
        c->torch = -1;
    return c->torch > 0;
}

// --- what its locals hold ---

enum { DEPTH = 8, OBJECTS = 1000 }; // how far a look goes: containers may hold each other

static bool holds_tensor(PyObject *o, int depth, int *left);

static bool one_holds(PyObject *const *items, Py_ssize_t count, int depth, int *left) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (holds_tensor(items[i], depth, left))
            return true;
    return false;
}

static bool value_holds(PyObject *dict, int depth, int *left) {
    PyObject *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, NULL, &value))
        if (holds_tensor(value, depth, left))
            return true;
    return false;
}

static bool holds_tensor(PyObject *o, int depth, int *left) {
    if (!o || --*left < 0)
        return false;
    if (world_tensors->is_tensor(o) || world_tensors->is_model(o) || world_tensors->is_array(o))
        return true;
    if (depth == 0)
        return false;
    if (PyList_CheckExact(o) || PyTuple_Check(o))
        return one_holds(PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o), depth - 1, left);
    return PyDict_CheckExact(o) && value_holds(o, depth - 1, left);
}

static bool local_holds(py_frame *f) {
    Py_ssize_t count = bind_count(py_frame_code(f));
    int left = OBJECTS;
    for (Py_ssize_t i = 0; i < count; i++)
        if (holds_tensor(py_frame_get(f, i), DEPTH, &left))
            return true;
    return false;
}

bool worth_compiling(py_frame *f) {
    PyCodeObject *co = py_frame_code(f);
    if (!world_tensors || code_in_library(co))
        return false;
    PyObject *globals = PyFunction_GET_GLOBALS(py_frame_function(f));
    return names_package(co, globals) || local_holds(f);
}
