// Match statements in a trace: reads values of keys, and attributes for class patterns, through the
// door.
#include "src/py/natives.h"

#include "src/interp/match.h"

#include "src/attr/attr.h"

#include "src/call/call.h"
#include "src/call/protocol.h"

#include "src/trace/instructions.h"

// --- keys ---

// subject.get(key, missing) for each key: 1, or 0 if a key is missing, or -1.
static int take_values(world *w, PyObject *list, PyObject *subject, PyObject *keys) {
    PyObject *seen = PySet_New(NULL), *get = seen ? attr_get(w, subject, py_name.get) : NULL;
    PyObject *missing = get ? PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type) : NULL;
    int found = missing ? 1 : -1;
    for (Py_ssize_t i = 0; found == 1 && i < PyTuple_GET_SIZE(keys); i++) {
        PyObject *args[] = {PyTuple_GET_ITEM(keys, i), missing};
        PyObject *value = match_see_key(seen, args[0]) == 0 ? call_with(w, get, args, 2) : NULL;
        if (!value || PyList_Append(list, value) < 0)
            found = -1;
        else if (value == missing)
            found = 0;
        Py_XDECREF(value);
    }
    Py_XDECREF(seen);
    Py_XDECREF(get);
    Py_XDECREF(missing);
    return found;
}

// Of a mapping with methods of its own.
static PyObject *match_by_get(world *w, PyObject *subject, PyObject *keys) {
    PyObject *list = PyList_New(0), *values = NULL;
    int found = !list ? -1 : PyTuple_GET_SIZE(keys) == 0 ? 1 : take_values(w, list, subject, keys);
    if (found >= 0)
        values = found ? PyList_AsTuple(list) : Py_NewRef(Py_None);
    Py_XDECREF(list);
    return values;
}

// Keys that are no constants come from a tuple made before, and that may have been in another
// trace.
PyObject *do_match_keys(world *w, PyObject *subject, PyObject *keys) {
    PyObject *opened = Py_XNewRef(door_open(w, subject)), *wanted = Py_NewRef(keys);
    PyObject *values = NULL;
    bool ready = opened && protocol_open(w, &wanted, P_NONE) == ST_OK &&
                 protocol_open_elements(w, &wanted, P_HASH | P_EQ) == ST_OK;
    if (ready && !PyDict_CheckExact(opened))
        values = match_by_get(w, opened, wanted);
    else if (ready && protocol_open(w, &opened, P_ITEM) == ST_OK)
        values = match_keys(opened, wanted);
    Py_XDECREF(opened);
    Py_DECREF(wanted);
    return values;
}

// --- class patterns ---

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

// What a class pattern asks for. All are borrowed.
typedef struct pattern {
    PyObject *subject;
    PyTypeObject *type;
    PyObject *seen;  // a set: the names so far
    PyObject *attrs; // a list: the attributes so far
} pattern;

// Appends the attributes of these names: 1, 0 if one is missing, -1.
static int take_attributes(world *w, const pattern *p, PyObject *names, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = door_open(w, PyTuple_GET_ITEM(names, i));
        if (!name || match_see_name(p->seen, p->type, name) < 0)
            return -1;
        PyObject *value = attribute(w, p->subject, name);
        if (!value)
            return PyErr_Occurred() ? -1 : 0;
        int failed = PyList_Append(p->attrs, value);
        Py_DECREF(value);
        if (failed < 0)
            return -1;
    }
    return 1;
}

static int take_positional(world *w, const pattern *p, Py_ssize_t positional) {
    PyObject *names = match_args(w, (PyObject *)p->type);
    if (!names && PyErr_Occurred())
        return -1;
    int found = -1;
    if (match_check_count(p->type, names, positional) == 0)
        found = names ? take_attributes(w, p, names, positional)
                      : (PyList_Append(p->attrs, p->subject) < 0 ? -1 : 1);
    Py_XDECREF(names);
    return found;
}

static PyObject *match_instance(world *w, const pattern *p, Py_ssize_t positional,
                                PyObject *keywords) {
    int found = positional ? take_positional(w, p, positional) : 1;
    if (found == 1)
        found = take_attributes(w, p, keywords, PyTuple_GET_SIZE(keywords));
    if (found < 0)
        return NULL;
    return found ? PyList_AsTuple(p->attrs) : Py_NewRef(Py_None);
}

PyObject *do_match_class(world *w, PyObject *subject, PyObject *type, Py_ssize_t positional,
                         PyObject *keywords) {
    type = door_open(w, type);
    if (!type || match_check_class(type) < 0)
        return NULL;
    int fits = op_isinstance(w, subject, type);
    if (fits <= 0)
        return fits < 0 ? NULL : Py_NewRef(Py_None);
    pattern p = {door_open(w, subject), (PyTypeObject *)type, PySet_New(NULL), PyList_New(0)};
    PyObject *result =
        p.subject && p.seen && p.attrs ? match_instance(w, &p, positional, keywords) : NULL;
    Py_XDECREF(p.seen);
    Py_XDECREF(p.attrs);
    return result;
}
