// Match statements in a trace: reads values of keys, and attributes for class patterns, through the
// door.
#include "src/py/natives.h"

#include "src/interp/match.h"

#include "src/attr/attr.h"

#include "src/call/call.h"
#include "src/call/protocol.h"

#include "src/trace/instructions.h"

// Keys that are no constants come from a tuple made before, and that may have been in another
// trace.
PyObject *do_match_keys(world *w, PyObject *subject, PyObject *keys) {
    PyObject *opened = Py_NewRef(subject), *wanted = Py_NewRef(keys), *values = NULL;
    if (protocol_open(w, &opened, P_ITEM) == ST_OK && protocol_open(w, &wanted, P_NONE) == ST_OK &&
        protocol_open_elements(w, &wanted, P_HASH | P_EQ) == ST_OK) {
        if (PyDict_CheckExact(opened))
            values = match_keys(opened, wanted);
        else
            world_break(w, REASON_PROTOCOL, "match on a mapping that is no dict");
    }
    Py_DECREF(opened);
    Py_DECREF(wanted);
    return values;
}

// The attribute, or NULL without an exception if there is none.
static PyObject *attribute(world *w, PyObject *o, PyObject *name) {
    PyObject *value = attr_get(w, o, name);
    if (!value && !w->stop.broken && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    return value;
}

static PyObject *match_args(world *w, PyObject *type) {
    PyObject *names = attribute(w, type, py_name.match_args);
    PyObject *opened = names ? door_open(w, names) : NULL;
    Py_XINCREF(opened);
    Py_XDECREF(names);
    return opened;
}

// One name twice is an error, in CPython's own words.
static bool has_twice(world *w, PyObject *names, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++)
        for (Py_ssize_t j = 0; j < i; j++) {
            PyObject *one = door_open(w, PyTuple_GET_ITEM(names, i));
            PyObject *other = one ? door_open(w, PyTuple_GET_ITEM(names, j)) : NULL;
            if (!other || !PyUnicode_CheckExact(one) || !PyUnicode_CheckExact(other) ||
                PyUnicode_Compare(one, other) == 0)
                return true;
        }
    return false;
}

// Appends the attributes of these names: 1, 0 if one is missing, -1.
static int take_attributes(world *w, PyObject *list, PyObject *subject, PyObject *names,
                           Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = door_open(w, PyTuple_GET_ITEM(names, i));
        if (name && !PyUnicode_CheckExact(name))
            world_break(w, REASON_CODE, "__match_args__ holds what is no name");
        PyObject *value = name && !w->stop.broken ? attribute(w, subject, name) : NULL;
        if (!value)
            return PyErr_Occurred() ? -1 : 0;
        int failed = PyList_Append(list, value);
        Py_DECREF(value);
        if (failed < 0)
            return -1;
    }
    return 1;
}

static int take_positional(world *w, PyObject *list, PyObject *subject, PyObject *type,
                           Py_ssize_t positional) {
    PyObject *names = match_args(w, type);
    if (!names && PyErr_Occurred())
        return -1;
    int found = -1;
    bool itself = ((PyTypeObject *)type)->tp_flags & _Py_TPFLAGS_MATCH_SELF;
    if (names && PyTuple_CheckExact(names) && positional <= PyTuple_GET_SIZE(names) &&
        !has_twice(w, names, positional))
        found = take_attributes(w, list, subject, names, positional);
    else if (!names && itself && positional == 1)
        found = PyList_Append(list, subject) < 0 ? -1 : 1;
    else
        world_break(w, REASON_CODE, "a class pattern that does not fit its class");
    Py_XDECREF(names);
    return found;
}

PyObject *do_match_class(world *w, PyObject *subject, PyObject *type, Py_ssize_t positional,
                         PyObject *keywords) {
    type = door_open(w, type);
    if (!type)
        return NULL;
    if (!PyType_Check(type))
        return world_break(w, REASON_CODE, "a class pattern of what is no class");
    if (positional > 0 && PyTuple_GET_SIZE(keywords) > 0) // one name twice is an error
        return world_break(w, REASON_CODE, "a class pattern with names given and implied");
    int fits = op_isinstance(w, subject, type);
    if (fits <= 0)
        return fits < 0 ? NULL : Py_NewRef(Py_None);
    subject = door_open(w, subject);
    PyObject *list = subject ? PyList_New(0) : NULL, *result = NULL;
    if (!list)
        return NULL;
    int found = positional ? take_positional(w, list, subject, type, positional) : 1;
    if (found == 1)
        found = take_attributes(w, list, subject, keywords, PyTuple_GET_SIZE(keywords));
    if (found == 1)
        result = PyList_AsTuple(list);
    else if (found == 0)
        result = Py_NewRef(Py_None);
    Py_DECREF(list);
    return result;
}
