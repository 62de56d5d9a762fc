// The two parts of a match statement that are more than a type flag: keys of a mapping, and
// attributes for a class pattern.
#include "src/interp/match.h"

#include "src/py/natives.h"

// 0 if `key` is new in the set `seen` (it is then in it), 1 if it was there, -1.
static int see(PyObject *seen, PyObject *key) {
    int there = PySet_Contains(seen, key);
    return there != 0 ? there : PySet_Add(seen, key);
}

int match_see_key(PyObject *seen, PyObject *key) {
    int again = see(seen, key);
    if (again > 0)
        PyErr_Format(PyExc_ValueError, "mapping pattern checks duplicate key (%R)", key);
    return again == 0 ? 0 : -1;
}

// subject.get(key, missing), by the method that was looked up once.
static PyObject *match_get(PyObject *get, bool unbound, PyObject *subject, PyObject *key,
                           PyObject *missing) {
    PyObject *args[] = {subject, key, missing};
    return unbound ? PyObject_Vectorcall(get, args, 3, NULL)
                   : PyObject_Vectorcall(get, args + 1, 2, NULL);
}

// Fills `values`: 1, or 0 if a key is missing, or -1.
static int match_fill(PyObject *get, bool unbound, PyObject *subject, PyObject *keys,
                      PyObject *seen, PyObject *missing, PyObject *values) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); i++) {
        PyObject *key = PyTuple_GET_ITEM(keys, i);
        if (match_see_key(seen, key) < 0)
            return -1;
        PyObject *value = match_get(get, unbound, subject, key, missing);
        if (!value)
            return -1;
        if (value == missing) {
            Py_DECREF(value);
            return 0;
        }
        PyTuple_SET_ITEM(values, i, value);
    }
    return 1;
}

PyObject *match_keys(PyObject *subject, PyObject *keys) {
    if (PyTuple_GET_SIZE(keys) == 0)
        return PyTuple_New(0);
    // get() with a default, not subscription: a defaultdict must not grow.
    PyObject *get = NULL, *seen = NULL, *missing = NULL, *values = NULL;
    bool unbound = _PyObject_GetMethod(subject, py_name.get, &get) != 0;
    int matched = -1;
    if (get && (seen = PySet_New(NULL)) &&
        (missing = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type)) &&
        (values = PyTuple_New(PyTuple_GET_SIZE(keys))))
        matched = match_fill(get, unbound, subject, keys, seen, missing, values);
    Py_XDECREF(get);
    Py_XDECREF(seen);
    Py_XDECREF(missing);
    if (matched > 0)
        return values;
    Py_XDECREF(values);
    return matched == 0 ? Py_NewRef(Py_None) : NULL;
}

// --- class patterns ---

int match_check_class(PyObject *type) {
    if (PyType_Check(type))
        return 0;
    PyErr_SetString(PyExc_TypeError, PY_TEXT_MATCH_NOT_CLASS);
    return -1;
}

int match_see_name(PyObject *seen, PyTypeObject *type, PyObject *name) {
    if (!PyUnicode_CheckExact(name)) {
        PyErr_Format(PyExc_TypeError, "__match_args__ elements must be strings (got %s)",
                     Py_TYPE(name)->tp_name);
        return -1;
    }
    int again = see(seen, name);
    if (again > 0)
        PyErr_Format(PyExc_TypeError, "%s() got multiple sub-patterns for attribute %R",
                     type->tp_name, name);
    return again == 0 ? 0 : -1;
}

int match_check_count(PyTypeObject *type, PyObject *match_args, Py_ssize_t given) {
    if (match_args && !PyTuple_CheckExact(match_args)) {
        PyErr_Format(PyExc_TypeError, "%s.__match_args__ must be a tuple (got %s)", type->tp_name,
                     Py_TYPE(match_args)->tp_name);
        return -1;
    }
    Py_ssize_t allowed =
        match_args ? PyTuple_GET_SIZE(match_args) : PyType_HasFeature(type, _Py_TPFLAGS_MATCH_SELF);
    if (given <= allowed)
        return 0;
    PyErr_Format(PyExc_TypeError, "%s() accepts %d positional sub-pattern%s (%d given)",
                 type->tp_name, (int)allowed, allowed == 1 ? "" : "s", (int)given);
    return -1;
}

// What a class pattern has gathered so far.
typedef struct gather {
    PyObject *subject;  // borrowed from the caller
    PyTypeObject *type; // likewise
    PyObject *seen;     // owned: the names already asked for
    PyObject *attrs;    // owned: a list
} gather;

// 1, or 0 if the subject has no such attribute, or -1.
static int gather_attr(gather *g, PyObject *name) {
    PyObject *value;
    if (match_see_name(g->seen, g->type, name) < 0)
        return -1;
    int found = py_lookup_attr(g->subject, name, &value);
    if (found > 0 && PyList_Append(g->attrs, value) < 0)
        found = -1;
    Py_XDECREF(value);
    return found;
}

static int gather_names(gather *g, PyObject *names, Py_ssize_t count) {
    int found = 1;
    for (Py_ssize_t i = 0; i < count && found > 0; i++)
        found = gather_attr(g, PyTuple_GET_ITEM(names, i));
    return found;
}

// Positional sub-patterns by __match_args__; without it, a builtin type may match the subject
// itself.
static int gather_positional(gather *g, Py_ssize_t count) {
    PyObject *match_args;
    int found = py_lookup_attr((PyObject *)g->type, py_name.match_args, &match_args);
    if (found < 0)
        return -1;
    if (match_check_count(g->type, match_args, count) < 0)
        found = -1;
    else if (match_args)
        found = gather_names(g, match_args, count);
    else
        found = PyList_Append(g->attrs, g->subject) < 0 ? -1 : 1;
    Py_XDECREF(match_args);
    return found;
}

PyObject *match_class(PyObject *subject, PyObject *type, Py_ssize_t positional, PyObject *names) {
    if (match_check_class(type) < 0)
        return NULL;
    int matched = PyObject_IsInstance(subject, type);
    if (matched <= 0)
        return matched < 0 ? NULL : Py_NewRef(Py_None);
    gather g = {subject, (PyTypeObject *)type, PySet_New(NULL), PyList_New(0)};
    if (!g.seen || !g.attrs)
        matched = -1;
    if (matched > 0 && positional > 0)
        matched = gather_positional(&g, positional);
    if (matched > 0)
        matched = gather_names(&g, names, PyTuple_GET_SIZE(names));
    PyObject *result = NULL;
    if (matched >= 0)
        result = matched ? PyList_AsTuple(g.attrs) : Py_NewRef(Py_None);
    Py_XDECREF(g.seen);
    Py_XDECREF(g.attrs);
    return result;
}
