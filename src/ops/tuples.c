// Tuples of C classes that look at their items, such as torch.Size, with numbers in them that are
// kept open: joined, repeated and sliced by the class's own code, which sees the places of the items
// in their stead.
#include "src/world/number.h"

#include "src/call/operators.h"

static bool holds_open(world *w, PyObject *tuple) {
    number n;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (door_number(w, PyTuple_GET_ITEM(tuple, i), &n) > 0)
            return true;
    return false;
}

// The class would refuse what is no int.
static bool holds_ints(world *w, PyObject *tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (door_type(w, PyTuple_GET_ITEM(tuple, i)) != &PyLong_Type)
            return false;
    return true;
}

static bool is_of_c_class(PyObject *o) {
    return PyTuple_Check(o) && !PyTuple_CheckExact(o) && !raw_is_python_class(Py_TYPE(o)) &&
           Py_TYPE(o)->tp_dictoffset == 0;
}

bool op_is_open_tuple(world *w, PyObject *o) {
    return is_of_c_class(o) && holds_open(w, o) && holds_ints(w, o);
}

// The same with the numbers from `first` on in place of the items. Others are themselves.
static PyObject *numbered(PyObject *o, Py_ssize_t first) {
    if (!PyTuple_Check(o))
        return Py_NewRef(o);
    Py_ssize_t count = PyTuple_GET_SIZE(o);
    PyObject *made = Py_TYPE(o)->tp_alloc(Py_TYPE(o), count);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *place = PyLong_FromSsize_t(first + i);
        if (!place)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, place);
    }
    return made;
}

// Puts the items of both back, in place of their numbers; takes the tuple over.
static PyObject *items_back(PyObject *tuple, PyObject *left, PyObject *right) {
    Py_ssize_t border = PyTuple_Check(left) ? PyTuple_GET_SIZE(left) : 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject **item = &((PyTupleObject *)tuple)->ob_item[i];
        Py_ssize_t place = PyLong_AsSsize_t(*item);
        PyObject *from = place < border ? left : right;
        Py_SETREF(*item,
                  Py_NewRef(PyTuple_GET_ITEM(from, place < border ? place : place - border)));
    }
    return tuple;
}

PyObject *op_on_tuples(binaryfunc function, PyObject *left, PyObject *right) {
    PyObject *a = numbered(left, 0);
    PyObject *b = a ? numbered(right, PyTuple_Check(left) ? PyTuple_GET_SIZE(left) : 0) : NULL;
    PyObject *result = b ? function(a, b) : NULL;
    Py_XDECREF(a);
    Py_XDECREF(b);
    return result && PyTuple_Check(result) ? items_back(result, left, right) : result;
}

bool op_takes_open_tuple(world *w, PyObject *o) {
    return PyTuple_Check(o) && holds_ints(w, o);
}
