// Subscripts and membership. An outside dict that is still a lazy is read by key. For inside
// containers and twins CPython's own code runs. Special methods of Python classes are called
// through CPython's own slots.
#include "src/attr/attr.h"

#include "src/call/call.h"
#include "src/call/native.h"
#include "src/call/numpy.h"
#include "src/call/special.h"

// --- outside dicts, by key ---

// A key that can be looked up by value: opened, hashable, and no code of its own runs.
typedef struct keyed {
    names *names;
    PyObject *key; // strong
} keyed;

// The lazy's dict, if it is one that is looked at by key only and was not opened. NULL without an
// exception if not.
static record *unopened_dict(world *w, PyObject *container) {
    if (!is_lazy(container) || ((lazy *)container)->inside)
        return NULL;
    return door_dict(w, container);
}

// 1 with `e` filled, 0 if the container is to be opened as a whole, -1.
static int keyed_of(world *w, PyObject *container, PyObject *key, keyed *e) {
    record *r = unopened_dict(w, container);
    names *namespace = r || PyErr_Occurred() ? NULL : door_namespace(w, container);
    if (!r && !namespace)
        return PyErr_Occurred() ? -1 : 0;
    e->key = native_open(w, key, P_HASH);
    if (!e->key)
        return -1;
    bool tensor = r && names_have_tensor(w, r, e->key);
    bool simple = tensor || (raw_key_simple(e->key) && !is_standin(e->key));
    if (tensor || (simple && PyObject_Hash(e->key) != -1))
        e->names = namespace ? namespace : names_of_dict(w, r);
    if (simple && e->names)
        return 1;
    Py_CLEAR(e->key);
    return simple ? -1 : 0;
}

// A defaultdict's own factory, as a lazy; new reference. NULL without an exception if it has none.
static PyObject *keyed_factory(world *w, const record *r) {
    PyObject *raw = raw_field_get(RAW_DEFAULT_FACTORY, r->outside);
    if (!raw)
        return NULL;
    source *s = guard_source(w->guards, SOURCE_DEFAULT_FACTORY, r->source, NULL, 0);
    PyObject *factory = s ? door_load(w, s, raw) : NULL;
    int none = factory ? door_is(w, factory, Py_None) : -1;
    if (none)
        Py_CLEAR(factory);
    return factory;
}

static PyObject *keyed_missing(world *w, PyObject *container, keyed *e) {
    record *r = door_dict(w, container);
    PyObject *factory = r ? keyed_factory(w, r) : NULL;
    if (!factory) {
        if (!PyErr_Occurred())
            _PyErr_SetKeyError(e->key);
        return NULL;
    }
    PyObject *value = call_with(w, factory, NULL, 0);
    Py_DECREF(factory);
    if (value && names_set(w, e->names, e->key, value) != ST_OK)
        Py_CLEAR(value);
    return value;
}

static PyObject *keyed_get(world *w, PyObject *container, keyed *e) {
    PyObject *value = names_get(w, e->names, e->key);
    if (!value && !PyErr_Occurred())
        value = keyed_missing(w, container, e);
    Py_DECREF(e->key);
    return value;
}

static int keyed_contains(world *w, keyed *e) {
    PyObject *value = names_get(w, e->names, e->key);
    Py_DECREF(e->key);
    Py_XDECREF(value);
    return value ? 1 : PyErr_Occurred() ? -1 : 0;
}

static int keyed_set(world *w, keyed *e, PyObject *value) {
    int failed = 0;
    if (!value) {
        PyObject *old = names_get(w, e->names, e->key);
        if (!old && !PyErr_Occurred())
            _PyErr_SetKeyError(e->key);
        failed = old ? 0 : -1;
        Py_XDECREF(old);
    }
    if (!failed && names_set(w, e->names, e->key, value) != ST_OK)
        failed = -1;
    Py_DECREF(e->key);
    return failed;
}

// --- keys of opened containers ---

// Prepares the container for its C code, and the key for what that code does to it.
static status key_open(world *w, PyObject *container, special id, PyObject **key) {
    TRY(special_open(w, container, id));
    if (PyDict_Check(container) && id == SPECIAL_getitem)
        TRY(special_open(w, container, SPECIAL_missing));
    bool hashed = PyDict_Check(container) || Py_IS_TYPE(container, &PyDictProxy_Type);
    return protocol_open(w, key, hashed ? P_HASH : P_INDEX);
}

// --- defaultdict ---

// A missing key of a defaultdict calls the factory by the trace's own call. NULL without an
// exception if the container is none, or the key is there.
static PyObject *made_by_factory(world *w, PyObject *container, PyObject *key) {
    PyObject *factory = raw_field_get(RAW_DEFAULT_FACTORY, container);
    int none = factory ? door_is(w, factory, Py_None) : 1;
    if (none || PyDict_Contains(container, key) != 0)
        return NULL;
    Py_INCREF(factory);
    PyObject *value = call_with(w, factory, NULL, 0);
    Py_DECREF(factory);
    if (value && PyObject_SetItem(container, key, value) < 0)
        Py_CLEAR(value);
    return value;
}

// --- getting ---

// Foo[int] where the metaclass has no __getitem__.
static PyObject *class_getitem(world *w, PyObject *class, PyObject *key) {
    PyObject *name = PyUnicode_InternFromString("__class_getitem__");
    PyObject *method = name ? attr_get(w, class, name) : NULL;
    Py_XDECREF(name);
    if (!method) {
        if (!w->stop.broken && PyErr_ExceptionMatches(PyExc_AttributeError))
            PyErr_Format(PyExc_TypeError, "type '%.200s' is not subscriptable",
                         ((PyTypeObject *)class)->tp_name);
        return NULL;
    }
    PyObject *result = call_with(w, method, &key, 1);
    Py_DECREF(method);
    return result;
}

static bool is_plain_class(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    return PyType_Check(o) && (!type->tp_as_mapping || !type->tp_as_mapping->mp_subscript) &&
           o != (PyObject *)&PyType_Type;
}

static PyObject *getitem_natively(world *w, PyObject *container, PyObject *key) {
    PyObject *opened = Py_NewRef(key), *result = NULL;
    if (key_open(w, container, SPECIAL_getitem, &opened) == ST_OK) {
        result = made_by_factory(w, container, opened);
        if (!result && !PyErr_Occurred() && PySlice_Check(opened) && op_is_open_tuple(w, container))
            result = op_on_tuples(PyObject_GetItem, container, opened);
        else if (!result && !PyErr_Occurred())
            result = PyObject_GetItem(container, opened);
        result = native_result(w, result, false);
    }
    Py_DECREF(opened);
    return result;
}

static PyObject *getitem_opened(world *w, PyObject *container, PyObject *key) {
    const standin_kind *kind = standin_kind_of(container);
    if (kind)
        return kind->getitem(w, container, key);
    bool called;
    PyObject *result = special_call(w, container, SPECIAL_getitem, &key, 1, &called);
    if (called || PyErr_Occurred())
        return result;
    return is_plain_class(container) ? class_getitem(w, container, key)
                                     : getitem_natively(w, container, key);
}

// Of a tuple of values only the item that is asked for is looked at. NULL without an exception: it
// is no such tuple, or has no such item.
static PyObject *item_of_tuple(world *w, PyObject *container, PyObject *key) {
    bool tuple = is_lazy(container) && PyTuple_CheckExact(((lazy *)container)->outside);
    PyObject *index = tuple ? door_open(w, key) : NULL;
    if (!index || !PyLong_CheckExact(index))
        return NULL;
    Py_ssize_t count = door_items(w, container), i = PyLong_AsSsize_t(index);
    if (count < 0 || PyErr_Occurred()) {
        if (!w->stop.broken && PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Clear();
        return NULL;
    }
    i += i < 0 ? count : 0;
    return i >= 0 && i < count ? door_item(w, container, i) : NULL;
}

PyObject *op_getitem(world *w, PyObject *container, PyObject *key) {
    keyed e = {0};
    PyObject *item = item_of_tuple(w, container, key);
    if (item || w->stop.broken || PyErr_Occurred())
        return item;
    int by_key = keyed_of(w, container, key, &e);
    if (by_key)
        return by_key < 0 ? NULL : keyed_get(w, container, &e);
    PyObject *opened = native_open(w, container, P_NONE), *result = NULL;
    if (opened)
        result = numpy_is_operand(opened) ? numpy_getitem(w, opened, key)
                                          : getitem_opened(w, opened, key);
    Py_XDECREF(opened);
    return result;
}

// --- setting ---

// A slice of a list takes any iterable; a bytearray takes numbers.
static status value_open(world *w, PyObject *container, PyObject *key, PyObject **value) {
    if (PyByteArray_Check(container))
        return protocol_open(w, value, P_INDEX | P_ITER);
    return PySlice_Check(key) ? protocol_open(w, value, P_ITER) : ST_OK;
}

static int store(PyObject *container, PyObject *key, PyObject *value) {
    return value ? PyObject_SetItem(container, key, value) : PyObject_DelItem(container, key);
}

static int setitem_natively(world *w, PyObject *container, PyObject *key, PyObject *value) {
    PyObject *k = Py_NewRef(key), *v = Py_XNewRef(value);
    int failed = -1;
    status st = key_open(w, container, value ? SPECIAL_setitem : SPECIAL_delitem, &k);
    if (st == ST_OK && v)
        st = value_open(w, container, k, &v);
    if (st == ST_OK)
        failed = native_status(w, store(container, k, v), false);
    Py_DECREF(k);
    Py_XDECREF(v);
    return failed;
}

static int setitem_opened(world *w, PyObject *container, PyObject *key, PyObject *value) {
    const standin_kind *kind = standin_kind_of(container);
    if (kind)
        return kind->setitem(w, container, key, value);
    PyObject *args[] = {key, value};
    bool called;
    PyObject *done = special_call(w, container, value ? SPECIAL_setitem : SPECIAL_delitem, args,
                                  value ? 2 : 1, &called);
    if (!called && !PyErr_Occurred())
        return setitem_natively(w, container, key, value);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int op_setitem(world *w, PyObject *container, PyObject *key, PyObject *value) {
    keyed e = {0};
    int by_key = keyed_of(w, container, key, &e);
    if (by_key)
        return by_key < 0 ? -1 : keyed_set(w, &e, value);
    PyObject *opened = native_open(w, container, P_NONE);
    if (!opened)
        return -1;
    record_write(w, opened);
    int failed = setitem_opened(w, opened, key, value);
    Py_DECREF(opened);
    return failed;
}

// --- membership ---

// Where the value is looked up by its hash; others compare it with one element after the other.
static unsigned membership(PyObject *container) {
    if (is_scalar(container))
        return P_NONE;
    bool hashes =
        PyDict_Check(container) || PyAnySet_Check(container) || PyDictViewSet_Check(container);
    return hashes ? P_HASH | P_EQ : P_EQ;
}

static int contains_natively(world *w, PyObject *container, PyObject *value) {
    PyObject *c = native_open(w, container, P_CONTAINS);
    PyObject *v = c ? native_open(w, value, membership(c)) : NULL;
    int found = -1;
    if (v) {
        w->facts.identity_mattered |= record_of(w, v) != NULL; // asked for before equality
        found = native_status(w, PySequence_Contains(c, v), is_standin(c) || is_standin(v));
    }
    Py_XDECREF(c);
    Py_XDECREF(v);
    return found;
}

// The same object, or equal. Identity says nothing new about plain numbers and text.
static int is_found(world *w, PyObject *item, PyObject *value) {
    PyObject *a = door_open(w, item), *b = a ? door_open(w, value) : NULL;
    if (!b)
        return -1;
    int same = is_scalar(a) || is_scalar(b) ? a == b : door_is(w, a, b);
    if (same)
        return same;
    PyObject *equal = op_compare(w, a, b, Py_EQ);
    int found = equal ? op_truth(w, equal) : -1;
    Py_XDECREF(equal);
    return found;
}

// Where there is no C code for it, one element after the other, as _PySequence_IterSearch does.
static int contains_by_iteration(world *w, PyObject *container, PyObject *value) {
    PyObject *iterator = op_iter(w, container), *item;
    int found = iterator ? 0 : -1;
    if (!iterator && !w->stop.broken && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        world_break(w, REASON_NATIVE_ERROR, "a search in what is not iterable"); // its own words
    }
    while (found == 0 && (item = op_next(w, iterator))) {
        found = is_found(w, item, value);
        Py_DECREF(item);
    }
    Py_XDECREF(iterator);
    return found == 0 && PyErr_Occurred() ? -1 : found;
}

static bool is_searched(PyObject *container) {
    PyTypeObject *type = Py_TYPE(container);
    bool own = type->tp_as_sequence && type->tp_as_sequence->sq_contains;
    return !own && (type->tp_iter || PySequence_Check(container));
}

static int contains_opened(world *w, PyObject *container, PyObject *value) {
    bool called;
    PyObject *answer = special_call(w, container, SPECIAL_contains, &value, 1, &called);
    if (!called && PyErr_Occurred())
        return -1;
    if (!called)
        return is_searched(container) ? contains_by_iteration(w, container, value)
                                      : contains_natively(w, container, value);
    int found = answer ? op_truth(w, answer) : -1;
    Py_XDECREF(answer);
    return found;
}

int op_contains(world *w, PyObject *container, PyObject *value) {
    keyed e = {0};
    int by_key = keyed_of(w, container, value, &e);
    if (by_key)
        return by_key < 0 ? -1 : keyed_contains(w, &e);
    PyObject *opened = native_open(w, container, P_NONE);
    if (!opened)
        return -1;
    int found = contains_opened(w, opened, value);
    Py_DECREF(opened);
    return found;
}
