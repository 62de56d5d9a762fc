// torch.Size with numbers in it that are left open: its constructor and numel(), which look at the
// items.
#include "src/world/number.h"

#include "src/call/operators.h"

#include "src/torch/room.h"

#include <opcode.h>

// Whether it is a tuple with a number that is left open.
static bool holds_open(PyObject *o) {
    for (Py_ssize_t i = 0; PyTuple_Check(o) && i < PyTuple_GET_SIZE(o); i++)
        if (is_lazy(PyTuple_GET_ITEM(o, i)))
            return true;
    return false;
}

static PyObject *product(world *w, PyObject *size) {
    PyObject *result = PyLong_FromLong(1);
    for (Py_ssize_t i = 0; result && i < PyTuple_GET_SIZE(size); i++)
        Py_SETREF(result, op_binary(w, NB_MULTIPLY, result, PyTuple_GET_ITEM(size, i)));
    return result;
}

PyObject *call_numel(world *w, const call *c) {
    PyObject *size = c->given == 1 && !c->keywords ? door_open(w, c->args[0]) : NULL;
    if (!size && PyErr_Occurred())
        return NULL;
    return size && Py_TYPE(size) == facts.size && holds_open(size) ? product(w, size)
                                                                   : call_plain(w, c);
}

// Whether all are ints, of which one at least is left open: 1, 0, -1.
static int are_open_ints(world *w, PyObject *tuple) {
    int found = 0;
    for (Py_ssize_t i = 0; found >= 0 && i < PyTuple_GET_SIZE(tuple); i++) {
        number n;
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        int open = door_number(w, item, &n);
        if (open < 0 || (open > 0 && n.kind != NUMBER_INT))
            return open < 0 ? -1 : 0;
        found |= open;
        if (!open && !(item = door_open(w, item)))
            return -1;
        if (!open && !PyLong_CheckExact(item))
            return 0;
    }
    return found;
}

static PyObject *size_of_items(PyObject *tuple) {
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    PyObject *made = facts.size->tp_alloc(facts.size, count);
    for (Py_ssize_t i = 0; made && i < count; i++)
        PyTuple_SET_ITEM(made, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
    return made;
}

// Of a tuple or list: others are looked at by torch's own code.
PyObject *call_size(world *w, const call *c) {
    PyObject *items = c->given == 1 && !c->keywords ? door_open(w, c->args[0]) : NULL;
    if (!items && PyErr_Occurred())
        return NULL;
    if (!items || !(PyTuple_Check(items) || PyList_CheckExact(items)))
        return call_plain(w, c);
    PyObject *tuple = PyList_Check(items) ? PyList_AsTuple(items) : Py_NewRef(items), *made = NULL;
    int open = tuple ? are_open_ints(w, tuple) : -1;
    if (open >= 0)
        made = open ? size_of_items(tuple) : call_plain(w, c);
    Py_XDECREF(tuple);
    return made;
}
