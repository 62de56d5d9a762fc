// Binds the arguments of a vectorcall to the slots of a Python function, without making its frame.
#include "src/py/raw.h"

#include "src/compile/bind.h"

void bind_drop(py_slot *slots, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++)
        py_slot_set(&slots[i], NULL);
}

// The parameter of that name, or -1. Positional-only ones have no name to callers.
static Py_ssize_t find_parameter(const PyCodeObject *co, PyObject *name) {
    PyObject **names = ((PyTupleObject *)co->co_localsplusnames)->ob_item;
    Py_ssize_t end = co->co_argcount + co->co_kwonlyargcount;
    for (Py_ssize_t i = co->co_posonlyargcount; i < end; i++)
        if (names[i] == name)
            return i;
    for (Py_ssize_t i = co->co_posonlyargcount; i < end; i++)
        if (PyUnicode_CheckExact(name) && PyUnicode_Compare(names[i], name) == 0)
            return i;
    return -1;
}

static int bind_keywords(const PyCodeObject *co, PyObject *const *values, PyObject *keywords,
                         py_slot *slots, PyObject *rest) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords); i++) {
        PyObject *name = PyTuple_GET_ITEM(keywords, i);
        Py_ssize_t slot = find_parameter(co, name);
        if (slot >= 0) {
            if (py_slot_get(&slots[slot]))
                return 0;
            py_slot_put(&slots[slot], Py_NewRef(values[i]));
        } else if (!rest || !PyUnicode_CheckExact(name)) {
            return 0;
        } else if (PyDict_SetItem(rest, name, values[i]) < 0) {
            return -1;
        }
    }
    return 1;
}

static int bind_defaults(PyFunctionObject *fn, const PyCodeObject *co, py_slot *slots) {
    Py_ssize_t count = fn->func_defaults ? PyTuple_GET_SIZE(fn->func_defaults) : 0;
    Py_ssize_t first = co->co_argcount - count;
    for (Py_ssize_t i = 0; i < co->co_argcount; i++) {
        if (py_slot_get(&slots[i]))
            continue;
        if (i < first)
            return 0;
        py_slot_put(&slots[i], Py_NewRef(PyTuple_GET_ITEM(fn->func_defaults, i - first)));
    }
    for (Py_ssize_t i = co->co_argcount; i < co->co_argcount + co->co_kwonlyargcount; i++) {
        PyObject *value, *name = PyTuple_GET_ITEM(co->co_localsplusnames, i);
        if (py_slot_get(&slots[i]))
            continue;
        if (!fn->func_kwdefaults || raw_dict_get(fn->func_kwdefaults, name, &value) != RAW_FOUND)
            return 0;
        py_slot_put(&slots[i], Py_NewRef(value));
    }
    return 1;
}

static int bind_rest(const PyCodeObject *co, PyObject *const *args, Py_ssize_t given,
                     py_slot *slots, PyObject **rest) {
    Py_ssize_t next = co->co_argcount + co->co_kwonlyargcount;
    if (co->co_flags & CO_VARARGS) {
        Py_ssize_t more = given > co->co_argcount ? given - co->co_argcount : 0;
        PyObject *tuple = PyTuple_New(more);
        if (!tuple)
            return -1;
        for (Py_ssize_t i = 0; i < more; i++)
            PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[co->co_argcount + i]));
        py_slot_put(&slots[next++], tuple);
    } else if (given > co->co_argcount) {
        return 0;
    }
    if (co->co_flags & CO_VARKEYWORDS) {
        *rest = PyDict_New();
        if (!*rest)
            return -1;
        py_slot_put(&slots[next], *rest);
    }
    return 1;
}

int bind_call(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *keywords,
              py_slot *slots) {
    PyFunctionObject *fn = (PyFunctionObject *)function;
    const PyCodeObject *co = (PyCodeObject *)fn->func_code;
    Py_ssize_t given = PyVectorcall_NARGS(nargsf), count = bind_count(co);
    PyObject *rest = NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        py_slot_put(&slots[i], i < given && i < co->co_argcount ? Py_NewRef(args[i]) : NULL);
    int fits = bind_rest(co, args, given, slots, &rest);
    if (fits == 1 && keywords)
        fits = bind_keywords(co, args + given, keywords, slots, rest);
    if (fits == 1)
        fits = bind_defaults(fn, co, slots);
    if (fits != 1)
        bind_drop(slots, count);
    return fits;
}
