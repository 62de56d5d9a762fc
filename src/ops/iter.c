// Iteration: makes iterators, advances them, unpacks values, and does the instructions that put all
// items of an iterable into a container.
#include "src/interp/errors.h"
#include "src/interp/unpack.h"

#include "src/attr/attr.h"

#include "src/call/call.h"
#include "src/call/feed.h"
#include "src/call/native.h"
#include "src/call/special.h"

// --- iterators ---

// What a Python __iter__ gives must be an iterator; that is asked of the opened one.
static PyObject *check_iterator(world *w, PyObject *iterator) {
    PyObject *opened = Py_XNewRef(door_open(w, iterator));
    Py_DECREF(iterator);
    if (!opened || PyIter_Check(opened))
        return opened;
    PyErr_Format(PyExc_TypeError, "iter() returned non-iterator of type '%.100s'",
                 Py_TYPE(opened)->tp_name);
    Py_DECREF(opened);
    return NULL;
}

static PyObject *iter_natively(world *w, PyObject *o) {
    PyObject *opened = native_open(w, o, P_ITER);
    PyObject *iterator = opened ? native_result(w, PyObject_GetIter(opened), false) : NULL;
    Py_XDECREF(opened);
    return iterator;
}

PyObject *op_iter(world *w, PyObject *o) {
    PyObject *opened = native_open(w, o, P_NONE);
    if (!opened)
        return NULL;
    bool called;
    PyObject *iterator = special_call(w, opened, SPECIAL_iter, NULL, 0, &called);
    if (called)
        iterator = iterator ? check_iterator(w, iterator) : NULL;
    else if (!PyErr_Occurred())
        iterator = iter_natively(w, opened);
    Py_DECREF(opened);
    return iterator;
}

// Whether an iterator's own C code does something to the elements, which may be stand-ins: then
// what it raises is not believed.
static bool is_suspicious(const world *w, PyObject *o) {
    static const char *const names[] = {"accumulate", "compress",    "count",
                                        "dropwhile",  "filterfalse", "groupby",
                                        "islice",     "starmap",     "takewhile"};
    if (!w->torch)
        return false; // no tensor was met
    const char *name = Py_TYPE(o)->tp_name, *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < Py_ARRAY_LENGTH(names); i++)
        if (strcmp(names[i], dot + 1) == 0)
            return true;
    return Py_IS_TYPE(o, &PyFilter_Type) || Py_IS_TYPE(o, &PyMap_Type);
}

// An iterator that may be moved: made inside, or one whose __next__ is Python code.
static PyObject *open_movable(world *w, PyObject *iterator) {
    PyObject *o = Py_XNewRef(door_open(w, iterator));
    if (!o)
        return NULL;
    if (special_open(w, o, SPECIAL_next) == ST_OK)
        return o;
    Py_DECREF(o);
    return NULL;
}

static PyObject *not_an_iterator(PyObject *o) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not an iterator", Py_TYPE(o)->tp_name);
    return NULL;
}

// One step, as the iterator's class has it: StopIteration stays.
static PyObject *next_of(world *w, PyObject *o) {
    bool called;
    PyObject *item = special_call(w, o, SPECIAL_next, NULL, 0, &called);
    if (called || PyErr_Occurred())
        return item;
    return Py_TYPE(o)->tp_iternext ? Py_TYPE(o)->tp_iternext(o) : not_an_iterator(o);
}

// At the end native code may leave a StopIteration or nothing; the caller sees nothing either way.
static PyObject *advance(world *w, PyObject *o) {
    PyObject *item = next_of(w, o);
    if (broke(w))
        return native_result(w, item, false);
    if (item || !PyErr_Occurred())
        return item;
    if (PyErr_ExceptionMatches(PyExc_StopIteration)) {
        PyErr_Clear();
        return NULL;
    }
    return native_result(w, NULL, is_suspicious(w, o));
}

PyObject *op_next(world *w, PyObject *iterator) {
    PyObject *o = open_movable(w, iterator);
    if (!o)
        return NULL;
    PyObject *item = advance(w, o);
    Py_DECREF(o);
    return item;
}

// --- sending ---

static PySendResult send_result(world *w, PySendResult how, PyObject **result) {
    if (!broke(w))
        return how;
    Py_CLEAR(*result);
    native_failed(w, false);
    return PYGEN_ERROR;
}

// StopIteration's value is the result of what is delegated to.
static PySendResult send_ended(PyObject *item, PyObject **result) {
    *result = item;
    if (item)
        return PYGEN_NEXT;
    return _PyGen_FetchStopIterationValue(result) == 0 ? PYGEN_RETURN : PYGEN_ERROR;
}

static PyObject *call_send(world *w, PyObject *receiver, PyObject *sent) {
    PyObject *name = PyUnicode_InternFromString("send");
    PyObject *method = name ? attr_get(w, receiver, name) : NULL;
    PyObject *item = method ? call_with(w, method, &sent, 1) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(method);
    return item;
}

static PySendResult send_opened(world *w, PyObject *o, PyObject *sent, PyObject **result) {
    int none = door_is(w, sent, Py_None);
    if (none < 0)
        return PYGEN_ERROR;
    if (PyGen_CheckExact(o))
        return PyIter_Send(o, none ? Py_None : sent, result);
    if (!none)
        return send_ended(call_send(w, o, sent), result);
    return send_ended(next_of(w, o), result);
}

PySendResult op_send(world *w, PyObject *receiver, PyObject *sent, PyObject **result) {
    *result = NULL;
    PyObject *o = open_movable(w, receiver);
    if (!o)
        return PYGEN_ERROR;
    PySendResult how = send_result(w, send_opened(w, o, sent, result), result);
    Py_DECREF(o);
    return how;
}

// --- taking apart ---

static int drop_all(py_slot *top, int count) {
    for (int i = 1; i <= count; i++)
        py_slot_set(top - i, NULL);
    return -1;
}

// What native code may iterate in place of `o`: where Python code makes the iterator, a feed, so
// that the iterator is prepared as well.
static PyObject *open_iterable(world *w, PyObject *o) {
    PyObject *opened = native_open(w, o, P_NONE);
    int python = opened ? special_is_python(w, opened, SPECIAL_iter) : -1;
    if (python > 0)
        Py_SETREF(opened, feed_new(w, opened, P_NONE));
    else if (python < 0 || protocol_open(w, &opened, P_ITER) != ST_OK)
        Py_CLEAR(opened);
    return opened;
}

// Items of a tuple of values are not looked at: 1 if it was one, 0, -1.
static int unpack_values(world *w, PyObject *sequence, int count, py_slot *top) {
    Py_ssize_t length = door_items(w, sequence);
    if (length != count)
        return w->stop.broken || PyErr_Occurred() ? -1 : 0;
    for (int i = 0; i < count; i++) {
        PyObject *item = door_item(w, sequence, i);
        py_slot_put(top - 1 - i, item);
        if (!item)
            return drop_all(top, i);
    }
    return 1;
}

int op_unpack(world *w, PyObject *sequence, int before, int after, py_slot *top) {
    int done = after < 0 ? unpack_values(w, sequence, before, top) : 0;
    if (done)
        return done < 0 ? -1 : 0;
    PyObject *o = open_iterable(w, sequence);
    if (!o)
        return -1;
    int failed = unpack_sequence(o, before, after, top);
    Py_DECREF(o);
    if (failed == 0 && broke(w))
        drop_all(top, before + (after < 0 ? 0 : 1 + after));
    return native_status(w, failed, false);
}

// --- pouring ---

int op_list_extend(world *w, PyObject *list, PyObject *iterable) {
    PyObject *o = open_iterable(w, iterable);
    if (!o)
        return -1;
    PyObject *none = native_result(w, _PyList_Extend((PyListObject *)list, o), false);
    Py_XDECREF(none);
    if (!none && !broke(w))
        error_list_extend(o);
    Py_DECREF(o);
    return none ? 0 : -1;
}

int op_set_add(world *w, PyObject *set, PyObject *value) {
    PyObject *o = native_open(w, value, P_HASH);
    if (!o)
        return -1;
    int failed = native_status(w, PySet_Add(set, o), false);
    Py_DECREF(o);
    return failed;
}

// Each element is prepared before the set hashes it.
static int add_each(world *w, PyObject *set, PyObject *iterator) {
    PyObject *item;
    while ((item = op_next(w, iterator))) {
        int failed = op_set_add(w, set, item);
        Py_DECREF(item);
        if (failed)
            return -1;
    }
    return PyErr_Occurred() ? -1 : 0;
}

// What is hashed already goes over as it is: that keeps the order CPython would have.
static int update_natively(world *w, PyObject *set, PyObject *o) {
    PyObject *source = Py_NewRef(o);
    int failed = -1;
    if (protocol_open_elements(w, &source, P_HASH) == ST_OK)
        failed = native_status(w, _PySet_Update(set, source), false);
    Py_DECREF(source);
    return failed;
}

int op_set_update(world *w, PyObject *set, PyObject *iterable) {
    PyObject *o = native_open(w, iterable, P_ITER);
    if (!o)
        return -1;
    int failed = -1;
    if (PyAnySet_Check(o) || PyDict_CheckExact(o)) { // whatever its class has for __iter__
        failed = update_natively(w, set, o);
    } else {
        PyObject *iterator = op_iter(w, o);
        if (iterator)
            failed = add_each(w, set, iterator);
        Py_XDECREF(iterator);
    }
    Py_DECREF(o);
    return failed;
}

// --- pouring into dicts ---

int op_dict_set(world *w, PyObject *dict, PyObject *key, PyObject *value) {
    PyObject *k = native_open(w, key, P_HASH);
    if (!k)
        return -1;
    int failed = native_status(w, PyDict_SetItem(dict, k, value), false);
    Py_DECREF(k);
    return failed;
}

static int check_new_key(world *w, PyObject *dict, PyObject *key) {
    PyObject *k = native_open(w, key, P_HASH);
    int found = k ? native_status(w, PyDict_Contains(dict, k), false) : -1;
    if (found > 0)
        _PyErr_SetKeyError(k);
    Py_XDECREF(k);
    return found ? -1 : 0;
}

static int add_keys(world *w, PyObject *dict, PyObject *mapping, PyObject *keys, bool merge) {
    PyObject *key;
    while ((key = op_next(w, keys))) {
        int failed = merge ? check_new_key(w, dict, key) : 0;
        PyObject *value = failed ? NULL : op_getitem(w, mapping, key);
        if (value)
            failed = op_dict_set(w, dict, key, value);
        Py_DECREF(key);
        Py_XDECREF(value);
        if (!value || failed)
            return -1;
    }
    return PyErr_Occurred() ? -1 : 0;
}

// All keys at once, as PyMapping_Keys does.
static PyObject *list_keys(world *w, PyObject *given) {
    PyObject *feed = feed_new(w, given, P_NONE);
    PyObject *iterator = feed ? native_result(w, PyObject_GetIter(feed), false) : NULL;
    if (feed && !iterator && !broke(w) && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        world_break(w, REASON_NATIVE_ERROR, "keys() that gives no iterable"); // its own words
    }
    PyObject *list = iterator ? native_result(w, PySequence_List(iterator), false) : NULL;
    Py_XDECREF(feed);
    Py_XDECREF(iterator);
    return list;
}

// A mapping of a Python class is asked for its keys, and then for each value, as PyDict_Update
// does.
static int update_by_keys(world *w, PyObject *dict, PyObject *mapping, bool merge) {
    PyObject *name = PyUnicode_InternFromString("keys");
    PyObject *method = name ? attr_get(w, mapping, name) : NULL;
    PyObject *given = method ? call_with(w, method, NULL, 0) : NULL;
    PyObject *keys = given ? list_keys(w, given) : NULL;
    PyObject *iterator = keys ? op_iter(w, keys) : NULL;
    int failed = iterator ? add_keys(w, dict, mapping, iterator, merge) : -1;
    Py_XDECREF(name);
    Py_XDECREF(method);
    Py_XDECREF(given);
    Py_XDECREF(keys);
    Py_XDECREF(iterator);
    return failed;
}

// Whether PyDict_Update reads the dict's own entries: that is so unless the class has its own
// iteration.
static int is_plain_dict(world *w, PyObject *o) {
    if (!PyDict_Check(o))
        return 0;
    if (!raw_is_python_class(Py_TYPE(o)))
        return 1;
    int python = special_is_python(w, o, SPECIAL_iter);
    return python < 0 ? -1 : Py_TYPE(o)->tp_iter == PyDict_Type.tp_iter;
}

static int update_opened(world *w, PyObject *dict, PyObject *o, bool merge) {
    int plain = is_plain_dict(w, o);
    if (plain < 0)
        return -1;
    if (!plain)
        return update_by_keys(w, dict, o, merge);
    return native_status(w, merge ? _PyDict_MergeEx(dict, o, 2) : PyDict_Update(dict, o), false);
}

// The texts of a call's errors name the callable, which may be a lazy: those calls break.
static int update_failed(world *w, PyObject *o, bool merge) {
    if (broke(w) || !native_born_here())
        return -1;
    if (!merge) {
        error_dict_update(o);
        return -1;
    }
    PyErr_Clear();
    world_break(w, REASON_NATIVE_ERROR, "keyword arguments that do not fit together");
    return -1;
}

int op_dict_update(world *w, PyObject *dict, PyObject *update, bool merge) {
    PyObject *o = native_open(w, update, P_NONE);
    if (!o)
        return -1;
    int failed = update_opened(w, dict, o, merge);
    if (failed < 0)
        update_failed(w, o, merge);
    Py_DECREF(o);
    return failed;
}
