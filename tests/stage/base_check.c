// src/base as a module of its own, so that a test can drive it: maps and arenas against Python's
// own.
#include "src/base/arena.h"
#include "src/base/map.h"

#include "src/py/py.h"

// map_check(keys): puts (key, index) for each, then reads all back; a list of the values.
static PyObject *map_check(PyObject *module, PyObject *keys) {
    map m = {0};
    PyObject *list = NULL;
    Py_ssize_t count = PyList_GET_SIZE(keys);
    (void)module;
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t key = PyLong_AsUnsignedLongLong(PyList_GET_ITEM(keys, i));
        if (map_put(&m, key, (uint64_t)i) != ST_OK)
            goto done;
    }
    list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        uint64_t key = PyLong_AsUnsignedLongLong(PyList_GET_ITEM(keys, i));
        PyObject *value = PyLong_FromUnsignedLongLong(*map_get(&m, key));
        if (!value || PyList_Append(list, value) < 0 || map_get(&m, key ^ UINT64_C(1) << 63))
            Py_CLEAR(list);
        Py_XDECREF(value);
    }
done:
    map_clear(&m);
    return list;
}

// arena_check(sizes, objects): allocates, fills, and looks whether all kept what was written.
static PyObject *arena_check(PyObject *module, PyObject *args) {
    arena a = {0};
    PyObject *sizes, *objects, *result = NULL;
    VEC(unsigned char *) blocks = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &sizes, &PyList_Type, &objects))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(objects); i++) {
        if (arena_own(&a, Py_NewRef(PyList_GET_ITEM(objects, i))) != ST_OK)
            goto done;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(sizes); i++) {
        size_t size = PyLong_AsSize_t(PyList_GET_ITEM(sizes, i));
        unsigned char *block = arena_alloc(&a, size);
        if (!block || vec_push(&blocks, block) != ST_OK)
            goto done;
        memset(block, (int)(i & 0xff), size);
    }
    result = Py_NewRef(Py_True);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(sizes); i++) {
        size_t size = PyLong_AsSize_t(PyList_GET_ITEM(sizes, i));
        bool kept = (uintptr_t)blocks.items[i] % 16 == 0;
        for (size_t at = 0; kept && at < size; at++)
            kept = blocks.items[i][at] == (i & 0xff);
        if (!kept)
            Py_SETREF(result, Py_NewRef(Py_False));
    }
done:
    vec_free(&blocks);
    arena_clear(&a);
    return result;
}

static PyMethodDef methods[] = {
    {"map_check", map_check, METH_O, NULL},
    {"arena_check", arena_check, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "base_check", .m_methods = methods};

PyMODINIT_FUNC PyInit_base_check(void) {
    return PyModule_Create(&module);
}
