// Handlers of dict and similar classes. An outside dict that is read by key stays a lazy, and a
// guard checks that key. Everything else runs natively on the twin.
#include "src/attr/attr.h"

#include "src/call/call.h"
#include "src/call/feed.h"
#include "src/call/handlers.h"
#include "src/call/native.h"
#include "src/call/special.h"

#include <opcode.h>

static bool went_wrong(const world *w) {
    return w->stop.broken || PyErr_Occurred();
}

// --- by key ---

// 1: the dict is outside and asked by key, a new reference to which is in *opened; 0: it is to be
// opened as a whole; -1.
static int keyed(world *w, PyObject *dict, PyObject *key, names **n, PyObject **opened) {
    if (!is_lazy(dict) || ((lazy *)dict)->inside)
        return 0;
    record *r = door_dict(w, dict);
    if (!r || r->inside || PyODict_Check(r->outside))
        return went_wrong(w) ? -1 : 0;
    *opened = native_open(w, key, P_HASH);
    if (!*opened)
        return -1;
    bool simple = raw_key_simple(*opened) && !is_standin(*opened);
    if ((simple || names_have_tensor(w, r, *opened)) && (*n = names_of_dict(w, r)))
        return 1;
    Py_CLEAR(*opened);
    return went_wrong(w) ? -1 : 0;
}

// dict's own C method on the twin: the key is made ready, what follows it is only moved. A dict
// whose order is kept elsewhere must not be written to behind its back.
static PyObject *natively(world *w, const call *c, bool writes) {
    PyObject *ready[3] = {NULL}, *result = NULL;
    for (size_t i = 0; i < c->given; i++)
        ready[i] = Py_NewRef(c->args[i]);
    status st = protocol_open(w, &ready[0], P_NONE);
    if (st == ST_OK && c->given > 1)
        st = protocol_open(w, &ready[1], P_HASH);
    if (st == ST_OK && (is_standin(ready[0]) || (writes && PyODict_Check(ready[0]))))
        st = world_break_status(w, REASON_NATIVE_CALL, "dict's own method on a %s object",
                                Py_TYPE(ready[0])->tp_name);
    if (st == ST_OK)
        result = call_native(w, c->callable, ready, c->given, NULL,
                             c->given > 1 && is_standin(ready[1]));
    for (size_t i = 0; i < c->given; i++)
        Py_DECREF(ready[i]);
    return result;
}

HANDLER(dict_get) {
    names *n;
    PyObject *key;
    int by_key = keyed(w, c->args[0], c->args[1], &n, &key);
    if (by_key <= 0)
        return by_key < 0 ? NULL : natively(w, c, false);
    PyObject *value = names_get(w, n, key);
    Py_DECREF(key);
    if (value || went_wrong(w))
        return value;
    return Py_NewRef(c->given == 3 ? c->args[2] : Py_None);
}

HANDLER(dict_setdefault) {
    names *n;
    PyObject *key;
    int by_key = keyed(w, c->args[0], c->args[1], &n, &key);
    if (by_key <= 0)
        return by_key < 0 ? NULL : natively(w, c, true);
    PyObject *value = names_get(w, n, key);
    if (!value && !went_wrong(w)) {
        value = Py_NewRef(c->given == 3 ? c->args[2] : Py_None);
        if (names_set(w, n, key, value) != ST_OK)
            Py_CLEAR(value);
    }
    Py_DECREF(key);
    return value;
}

HANDLER(dict_pop) {
    names *n;
    PyObject *key;
    int by_key = keyed(w, c->args[0], c->args[1], &n, &key);
    if (by_key <= 0)
        return by_key < 0 ? NULL : natively(w, c, true);
    PyObject *value = names_get(w, n, key);
    if (value && names_set(w, n, key, NULL) != ST_OK)
        Py_CLEAR(value);
    else if (!value && !went_wrong(w) && c->given == 3)
        value = Py_NewRef(c->args[2]);
    else if (!value && !went_wrong(w))
        _PyErr_SetKeyError(key);
    Py_DECREF(key);
    return value;
}

// Whether a dict's own C method is what its type uses: then the interpreter's operation does the
// same.
static int is_plain(world *w, PyObject *dict) {
    PyTypeObject *type = door_type(w, dict);
    return type ? !raw_is_python_class(type) && !PyType_IsSubtype(type, &PyODict_Type) : -1;
}

HANDLER(dict_getitem) {
    int plain = is_plain(w, c->args[0]);
    if (plain)
        return plain < 0 ? NULL : op_getitem(w, c->args[0], c->args[1]);
    PyObject *self = door_open(w, c->args[0]);
    if (!self || special_open(w, self, SPECIAL_missing) != ST_OK)
        return NULL;
    return natively(w, c, false);
}

HANDLER(dict_contains) {
    int plain = is_plain(w, c->args[0]);
    if (plain)
        return plain < 0 ? NULL : handler_bool(op_contains(w, c->args[0], c->args[1]));
    return natively(w, c, false);
}

HANDLER(dict_setitem) {
    int plain = is_plain(w, c->args[0]);
    if (plain <= 0)
        return plain < 0 ? NULL : natively(w, c, true);
    return op_setitem(w, c->args[0], c->args[1], c->args[2]) < 0 ? NULL : Py_NewRef(Py_None);
}

HANDLER(dict_delitem) {
    int plain = is_plain(w, c->args[0]);
    if (plain <= 0)
        return plain < 0 ? NULL : natively(w, c, true);
    return op_setitem(w, c->args[0], c->args[1], NULL) < 0 ? NULL : Py_NewRef(Py_None);
}

HANDLER(dict_len) {
    int plain = is_plain(w, c->args[0]);
    if (plain)
        return plain < 0 ? NULL : op_len(w, c->args[0]);
    return natively(w, c, false);
}

// --- filling ---

// How one entry goes in: dict's own way, or by the type's __setitem__.
typedef int (*store)(world *w, PyObject *dict, PyObject *key, PyObject *value);

// As PyDict_MergeFromSeq2 says it of an element, `both` of which has been taken apart.
static void no_pair(world *w, PyObject *pair, PyObject *both, Py_ssize_t at) {
    if (both)
        PyErr_Format(PyExc_ValueError,
                     "dictionary update sequence element #%zd has length %zd; 2 is required", at,
                     PyList_GET_SIZE(both));
    else if (is_lazy(pair) ? ((lazy *)pair)->inside && value_immutable(((lazy *)pair)->inside)
                           : value_immutable(pair))
        PyErr_Format(PyExc_TypeError,
                     "cannot convert dictionary update sequence element #%zd to a sequence", at);
    else
        world_break(w, REASON_NATIVE_ERROR, "an update sequence whose elements are no pairs");
}

static int store_pair(world *w, PyObject *dict, PyObject *pair, Py_ssize_t at) {
    PyObject *feed = feed_new(w, pair, P_NONE), *both = NULL;
    int failed = -1;
    if (feed) // as PyDict_MergeFromSeq2
        both = native_result(w, PySequence_Fast(feed, ""), false);
    Py_XDECREF(feed);
    if (both && PyList_GET_SIZE(both) == 2)
        failed = op_dict_set(w, dict, PyList_GET_ITEM(both, 0), PyList_GET_ITEM(both, 1));
    else if (both || !went_wrong(w) || (!w->stop.broken && PyErr_ExceptionMatches(PyExc_TypeError)))
        no_pair(w, pair, both, at);
    Py_XDECREF(both);
    return failed;
}

// OrderedDict takes a pair apart step by step, and asks for a third element.
static int store_unpacked(world *w, PyObject *dict, PyObject *pair, store put) {
    PyObject *parts[3] = {NULL}, *iterator = op_iter(w, pair);
    int count = 0, failed = -1;
    while (iterator && count < 3 && (parts[count] = op_next(w, iterator)))
        count++;
    if (iterator && !went_wrong(w) && count == 2)
        failed = put(w, dict, parts[0], parts[1]);
    else if (iterator && !went_wrong(w)) // as mutablemapping_add_pairs says it
        PyErr_SetString(PyExc_ValueError, count == 0   ? "need more than 0 values to unpack"
                                          : count == 1 ? "need more than 1 value to unpack"
                                                       : "too many values to unpack (expected 2)");
    for (int i = 0; i < count; i++)
        Py_DECREF(parts[i]);
    Py_XDECREF(iterator);
    return failed;
}

static int store_pairs(world *w, PyObject *dict, PyObject *pairs, store put) {
    PyObject *iterator = op_iter(w, pairs), *pair;
    int failed = iterator ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && (pair = op_next(w, iterator)); i++) {
        failed =
            put == op_dict_set ? store_pair(w, dict, pair, i) : store_unpacked(w, dict, pair, put);
        Py_DECREF(pair);
    }
    Py_XDECREF(iterator);
    return failed || went_wrong(w) ? -1 : 0;
}

static int store_keywords(world *w, PyObject *dict, PyObject *const *values, PyObject *names,
                          store put) {
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
        if (put(w, dict, PyTuple_GET_ITEM(names, i), values[i]) < 0)
            return -1;
    return 0;
}

// dict_update_arg: what has keys is a mapping, else it gives pairs. 1, 0, -1.
static int is_mapping(world *w, PyObject *o) {
    if (PyDict_Check(o))
        return 1;
    if (is_standin(o))
        return world_break(w, REASON_NATIVE_CALL, "a dict made from a tensor"), -1;
    PyObject *keys = handler_find(w, o, "keys");
    Py_XDECREF(keys);
    return keys ? 1 : went_wrong(w) ? -1 : 0;
}

static int update(world *w, PyObject *dict, PyObject *other) {
    PyObject *opened = door_open(w, other);
    int mapping = opened ? is_mapping(w, opened) : -1;
    if (mapping < 0)
        return -1;
    return mapping ? op_dict_update(w, dict, opened, false)
                   : store_pairs(w, dict, opened, op_dict_set);
}

// By the argument at `first`, if it is given, and by keywords.
static int fill(world *w, PyObject *dict, const call *c, size_t first) {
    if (c->given > first && update(w, dict, c->args[first]) < 0)
        return -1;
    return store_keywords(w, dict, c->args + c->given, c->keywords, op_dict_set);
}

HANDLER(dict) {
    PyObject *dict = PyDict_New();
    if (dict && fill(w, dict, c, 0) < 0)
        Py_CLEAR(dict);
    return dict;
}

// The dict itself, opened: inside or a twin. NULL with an exception or a break.
static PyObject *open_dict(world *w, PyObject *o) {
    PyObject *dict = door_open(w, o);
    if (!dict || (PyDict_Check(dict) && !PyODict_Check(dict)))
        return dict;
    return world_break(w, REASON_NATIVE_CALL, "dict's own method on a %s object",
                       Py_TYPE(dict)->tp_name);
}

HANDLER(dict_update) {
    PyObject *dict = open_dict(w, c->args[0]);
    return dict && fill(w, dict, c, 1) == 0 ? Py_NewRef(Py_None) : NULL;
}

// Of __or__, or of __ror__; borrowed.
static status open_operands(world *w, PyObject *callable, PyObject *const *args, PyObject **left,
                            PyObject **right) {
    bool swapped = PyUnicode_CompareWithASCIIString(PyDescr_NAME(callable), "__ror__") == 0;
    *left = door_open(w, args[swapped]);
    *right = *left ? door_open(w, args[!swapped]) : NULL;
    return *right ? ST_OK : ST_ERROR;
}

HANDLER(dict_or) {
    PyObject *left, *right;
    if (open_operands(w, c->callable, c->args, &left, &right) != ST_OK)
        return NULL;
    if (!PyDict_Check(left) || !PyDict_Check(right))
        return Py_NewRef(Py_NotImplemented);
    PyObject *both = PyDict_Copy(left);
    if (both && op_dict_update(w, both, right, false) < 0)
        Py_CLEAR(both);
    return both;
}

HANDLER(dict_ior) {
    PyObject *dict = open_dict(w, c->args[0]);
    return dict && update(w, dict, c->args[1]) == 0 ? Py_NewRef(dict) : NULL;
}

// --- OrderedDict ---

static int store_by_keys(world *w, PyObject *dict, PyObject *other, PyObject *method) {
    PyObject *keys = call_with(w, method, NULL, 0), *key = NULL;
    PyObject *iterator = keys ? op_iter(w, keys) : NULL;
    int failed = iterator ? 0 : -1;
    while (!failed && (key = op_next(w, iterator))) {
        PyObject *value = op_getitem(w, other, key);
        failed = value ? op_setitem(w, dict, key, value) : -1;
        Py_XDECREF(value);
        Py_DECREF(key);
    }
    Py_XDECREF(keys);
    Py_XDECREF(iterator);
    return failed || went_wrong(w) ? -1 : 0;
}

static int store_items(world *w, PyObject *dict, PyObject *method) {
    PyObject *items = call_with(w, method, NULL, 0);
    int failed = items ? store_pairs(w, dict, items, op_setitem) : -1;
    Py_XDECREF(items);
    return failed;
}

// mutablemapping_update: the items of a dict, else by keys(), else by items(), else pairs.
static int update_ordered(world *w, PyObject *dict, PyObject *other) {
    PyObject *opened = door_open(w, other);
    if (!opened)
        return -1;
    if (is_standin(opened))
        return world_break(w, REASON_NATIVE_CALL, "a dict made from a tensor"), -1;
    if (PyDict_CheckExact(opened)) {
        PyObject *items = PyDict_Items(opened);
        int failed = items ? store_pairs(w, dict, items, op_setitem) : -1;
        Py_XDECREF(items);
        return failed;
    }
    PyObject *method = handler_find(w, opened, "keys");
    bool by_keys = method != NULL;
    if (!method && !went_wrong(w))
        method = handler_find(w, opened, "items");
    if (went_wrong(w))
        return -1;
    if (!method)
        return store_pairs(w, dict, opened, op_setitem);
    int failed = by_keys ? store_by_keys(w, dict, opened, method) : store_items(w, dict, method);
    Py_DECREF(method);
    return failed;
}

// The call, __init__ and update take the same arguments; entries go in by the type's __setitem__.
HANDLER(ordered_update) {
    bool new = PyType_Check(c->callable);
    size_t first = new ? 0 : 1;
    PyObject *dict = new ? PyObject_CallNoArgs(c->callable) : Py_XNewRef(door_open(w, c->args[0]));
    int failed = dict ? 0 : -1;
    if (dict && !PyODict_Check(dict)) {
        world_break(w, REASON_NATIVE_CALL, "OrderedDict's own method on a %s object",
                    Py_TYPE(dict)->tp_name);
        failed = -1;
    }
    if (!failed && c->given > first)
        failed = update_ordered(w, dict, c->args[first]);
    if (!failed)
        failed = store_keywords(w, dict, c->args + c->given, c->keywords, op_setitem);
    if (failed)
        Py_CLEAR(dict);
    else if (!new)
        Py_SETREF(dict, Py_NewRef(Py_None));
    return dict;
}

// odict_or: what is no dict is somebody else's. A class of the program's may have its own |.
HANDLER(ordered_or) {
    PyObject *left, *right;
    if (open_operands(w, c->callable, c->args, &left, &right) != ST_OK)
        return NULL;
    if (!PyDict_Check(left) || !PyDict_Check(right))
        return Py_NewRef(Py_NotImplemented);
    if (raw_is_python_class(Py_TYPE(left)) || raw_is_python_class(Py_TYPE(right)))
        return world_break(w, REASON_NATIVE_CALL, "OrderedDict's own | on a %s object",
                           Py_TYPE(raw_is_python_class(Py_TYPE(left)) ? left : right)->tp_name);
    return op_binary(w, NB_OR, left, right);
}

HANDLER(ordered_ior) {
    PyObject *dict = door_open(w, c->args[0]);
    if (!dict || !PyODict_Check(dict))
        return !dict ? NULL : handler_misuse(w, c);
    return update_ordered(w, dict, c->args[1]) == 0 ? Py_NewRef(dict) : NULL;
}

// --- defaultdict ---

// A factory that native code may call by itself: C types without arguments, Python functions that
// are known. Others go through a trampoline.
static PyObject *open_factory(world *w, PyObject *factory) {
    PyObject *o = native_open(w, factory, P_NONE);
    if (!o || (PyType_Check(o) && !raw_is_python_class((PyTypeObject *)o) && rule_of(o)))
        return o;
    if (protocol_open(w, &o, P_CALL) != ST_OK)
        Py_CLEAR(o);
    return o;
}

// The empty defaultdict, or self with its factory set; new reference.
static PyObject *start_default(world *w, const call *c) {
    bool new = PyType_Check(c->callable);
    size_t at = new ? 0 : 1;
    PyObject *dict = new ? NULL : door_open(w, c->args[0]);
    PyObject *factory = c->given > at ? open_factory(w, c->args[at]) : Py_NewRef(Py_None);
    if ((!new && !dict) || !factory) {
        Py_XDECREF(factory);
        return NULL;
    }
    PyObject *both[] = {dict, factory};
    PyObject *made = call_native(w, c->callable, both + new, 2 - new, NULL, false);
    Py_DECREF(factory);
    if (made && !new)
        Py_SETREF(made, Py_NewRef(dict));
    return made;
}

HANDLER(defaultdict_update) {
    bool new = PyType_Check(c->callable);
    size_t first = new ? 1 : 2;
    PyObject *dict = start_default(w, c);
    if (dict && fill(w, dict, c, first) < 0)
        Py_CLEAR(dict);
    if (dict && !new)
        Py_SETREF(dict, Py_NewRef(Py_None));
    return dict;
}

HANDLER(defaultdict_missing) {
    PyObject *dict = door_open(w, c->args[0]), *key = dict ? door_open(w, c->args[1]) : NULL;
    PyObject *factory = key ? raw_field_get(RAW_DEFAULT_FACTORY, dict) : NULL;
    if (!key)
        return NULL;
    int none = factory ? door_is(w, factory, Py_None) : 1;
    if (none) {
        if (none > 0)
            _PyErr_SetKeyError(key);
        return NULL;
    }
    PyObject *value = call_with(w, factory, NULL, 0);
    if (value && op_setitem(w, dict, key, value) < 0)
        Py_CLEAR(value);
    return value;
}

// --- mappingproxy ---

// One of a dict that is inside or a twin. Others that a trace meets may show what did not pass the
// door: int.__dict__.
HANDLER(mapping_proxy) {
    size_t at = PyType_Check(c->callable) ? 0 : 1;
    PyObject *both[] = {at ? door_open(w, c->args[0]) : NULL, door_open(w, c->args[at])};
    if ((at && !both[0]) || !both[1])
        return NULL;
    if (!PyDict_CheckExact(both[1]) && !PyODict_CheckExact(both[1]))
        return world_break(w, REASON_NATIVE_CALL, "a mappingproxy of a %s object",
                           Py_TYPE(both[1])->tp_name);
    PyObject *proxy = call_native(w, c->callable, both + !at, at + 1, NULL, false);
    if (proxy &&
        (!world_keep(w, Py_NewRef(proxy)) || map_put(&w->made.objects, map_key(proxy), 1) != ST_OK))
        Py_CLEAR(proxy);
    return proxy;
}

// Of an outside class's namespace by key; else natively.
HANDLER(proxy_get) {
    names *n = door_namespace(w, c->args[0]);
    PyObject *key = n ? native_open(w, c->args[1], P_HASH) : NULL, *value = NULL;
    if (n && (!key || PyUnicode_CheckExact(key))) {
        value = key ? names_get(w, n, key) : NULL;
        if (!value && !went_wrong(w))
            value = Py_NewRef(c->given == 3 ? c->args[2] : Py_None);
    } else if (!went_wrong(w)) {
        PyObject *self = door_open(w, c->args[0]);
        if (self && special_open(w, self, SPECIAL_getitem) == ST_OK)
            value = natively(w, c, false);
    }
    Py_XDECREF(key);
    return value;
}

// --- Counter ---

// Other classes than dict are called for the dict, which is then filled by item
// (_PyDict_FromKeys).
static PyObject *fill_from_keys(world *w, PyObject *class, PyObject *keys, PyObject *value) {
    PyObject *dict = call_with(w, class, NULL, 0), *key = NULL;
    PyObject *opened = dict ? door_open(w, dict) : NULL;
    if (opened && PyDict_CheckExact(opened)) // filled in dict's own way
        world_break(w, REASON_NATIVE_CALL, "fromkeys of a class that makes a dict");
    if (!opened || w->stop.broken)
        Py_CLEAR(dict);
    PyObject *iterator = dict ? op_iter(w, keys) : NULL;
    if (!iterator)
        Py_CLEAR(dict);
    while (dict && (key = op_next(w, iterator))) {
        if (op_setitem(w, dict, key, value) < 0)
            Py_CLEAR(dict);
        Py_DECREF(key);
    }
    if (went_wrong(w))
        Py_CLEAR(dict);
    Py_XDECREF(iterator);
    return dict;
}

// OrderedDict's own also takes value=.
HANDLER(dict_fromkeys) {
    PyObject *named = handler_keyword(c, "value");
    if (c->keywords && (!named || call_count(c) != 3))
        return handler_misuse(w, c);
    PyObject *class = door_open(w, c->args[0]);
    if (!class)
        return NULL;
    PyObject *value = named ? named : c->given == 3 ? c->args[2] : Py_None;
    if (PyType_Check(class) && class != (PyObject *)&PyDict_Type &&
        PyType_IsSubtype((PyTypeObject *)class, &PyDict_Type))
        return fill_from_keys(w, class, c->args[1], value);
    rule plain = *c->rule;
    plain.kind = RULE_STRUCT;
    plain.first = P_ITER | R_FEED | R_SELF;
    plain.elements = P_HASH;
    return rule_call(w, &plain, c);
}

// Whether a mapping's own get and __setitem__ are dict's, which is what _count_elements asks: 1, 0,
// -1.
static int counts_as_dict(world *w, PyObject *mapping) {
    static const char *const names[] = {"get", "__setitem__"};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++) {
        PyObject *name = PyUnicode_InternFromString(names[i]), *raw = NULL;
        if (!name)
            return -1;
        type_lookup(w, Py_TYPE(mapping), name, &raw);
        PyObject *own = _PyType_Lookup(&PyDict_Type, name);
        Py_DECREF(name);
        if (went_wrong(w) || raw != own)
            return went_wrong(w) ? -1 : 0;
    }
    return 1;
}

HANDLER(count_elements) {
    PyObject *mapping = native_open(w, c->args[0], P_NONE), *items = NULL, *result = NULL;
    int plain = mapping && PyDict_Check(mapping) ? counts_as_dict(w, mapping) : 0;
    if (mapping && plain == 0)
        world_break(w, REASON_NATIVE_CALL, "_count_elements into a %s object",
                    Py_TYPE(mapping)->tp_name);
    if (mapping && plain > 0 && protocol_open_elements(w, &mapping, P_NUMBER) == ST_OK)
        items = feed_new(w, c->args[1], P_HASH);
    if (items) {
        PyObject *both[] = {mapping, items};
        result = handler_native(w, c->callable, both, 2);
    }
    Py_XDECREF(mapping);
    Py_XDECREF(items);
    return result;
}
