// Makes maps, sets and strings of stack slots, formats values, matches exceptions: opens keys and
// parts, then CPython's own functions run.
#include "src/interp/build.h"
#include "src/interp/names.h"
#include "src/interp/raise.h"

#include "src/world/number.h"

#include "src/call/call.h"
#include "src/call/native.h"
#include "src/call/special.h"
#include "src/call/states.h"

PyObject *op_build_map(world *w, PyObject **keys, int key_step, PyObject **values, int value_step,
                       Py_ssize_t count) {
    PyObject *map = PyDict_New();
    for (Py_ssize_t i = 0; map && i < count; i++)
        if (op_dict_set(w, map, keys[i * key_step], values[i * value_step]) < 0)
            Py_CLEAR(map);
    return map;
}

PyObject *op_build_set(world *w, PyObject **items, Py_ssize_t count) {
    PyObject *set = PySet_New(NULL);
    for (Py_ssize_t i = 0; set && i < count; i++)
        if (op_set_add(w, set, items[i]) < 0)
            Py_CLEAR(set);
    return set;
}

// The parts are borrowed: the lazies that lie in the slots keep what they open to alive.
PyObject *op_build_string(world *w, PyObject **items, Py_ssize_t count) {
    PyObject *parts = PyTuple_New(count);
    for (Py_ssize_t i = 0; parts && i < count; i++) {
        PyObject *part = door_open(w, items[i]);
        if (part)
            PyTuple_SET_ITEM(parts, i, Py_NewRef(part));
        else
            Py_CLEAR(parts);
    }
    PyObject *text = parts ? build_string(((PyTupleObject *)parts)->ob_item, count) : NULL;
    Py_XDECREF(parts);
    return text;
}

// --- text ---

enum { CONVERT_NONE, CONVERT_STR, CONVERT_REPR, CONVERT_ASCII };

// object.__str__ asks for the repr, object.__format__ for the str: each is prepared only as far as
// the class does not have its own.
static status open_text(world *w, PyObject **o, special id, unsigned protocol) {
    int python = special_is_python(w, *o, id);
    if (python < 0)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    if (python)
        return ST_OK;
    TRY(protocol_open(w, o, protocol));
    if (id == SPECIAL_format)
        return open_text(w, o, SPECIAL_str, P_STR);
    return id == SPECIAL_str ? open_text(w, o, SPECIAL_repr, P_REPR) : ST_OK;
}

static status format_prepare(world *w, PyObject **o, int conversion) {
    switch (conversion) {
    case CONVERT_NONE:
        return open_text(w, o, SPECIAL_format, P_FORMAT);
    case CONVERT_STR:
        return open_text(w, o, SPECIAL_str, P_STR);
    default:
        return open_text(w, o, SPECIAL_repr, P_REPR);
    }
}

// A class's own __format__ does with the spec what it likes.
static status read_spec(world *w, PyObject *o, PyObject *spec) {
    int python = special_is_python(w, o, SPECIAL_format);
    if (python < 0)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    return python ? ST_OK : state_read_spec(w, o, spec);
}

PyObject *op_format(world *w, PyObject *value, int conversion, PyObject *spec) {
    PyObject *open;
    int number = spec ? 0 : number_text(w, value, &open);
    if (number != 0)
        return number > 0 ? open : NULL;
    PyObject *o = native_open(w, value, P_NONE);
    PyObject *s = spec && o ? native_open(w, spec, P_NONE) : NULL;
    PyObject *text = NULL;
    if (o && (s || !spec) && format_prepare(w, &o, conversion) == ST_OK &&
        (!s || read_spec(w, o, s) == ST_OK))
        text = native_result(w, format_value(o, conversion, s), false);
    Py_XDECREF(o);
    Py_XDECREF(s);
    return text;
}

PyObject *op_convert(world *w, PyObject *value, int conversion) {
    PyObject *open;
    int number = number_text(w, value, &open);
    if (number != 0)
        return number > 0 ? open : NULL;
    PyObject *o = native_open(w, value, P_NONE), *text = NULL;
    if (o && format_prepare(w, &o, conversion) == ST_OK)
        text = native_result(w, convert_value(o, conversion), false);
    Py_XDECREF(o);
    return text;
}

// --- exceptions ---

// Which classes an exception belongs to is a matter of its class's bases.
int op_except_match(world *w, PyObject *exception, PyObject *type) {
    PyObject *e = native_open(w, exception, P_NONE), *t = e ? native_open(w, type, P_NONE) : NULL;
    int matches = -1;
    if (t && protocol_open_elements(w, &t, P_NONE | P_DEEP) == ST_OK &&
        type_guard_mro(w, Py_TYPE(e)) == ST_OK)
        matches = native_status(w, except_match(e, t), false);
    Py_XDECREF(e);
    Py_XDECREF(t);
    return matches;
}
