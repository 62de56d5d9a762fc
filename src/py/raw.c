// Reads dicts and instance dicts from their tables. The answers are those of CPython's lookups,
// with a third one, "unsure", in place of calling a key's own __eq__.
#include "src/py/raw.h"

#include "src/base/status.h"

#include "src/py/keeping.h"

// --- keys ---

static bool hashed_by_identity(PyTypeObject *type) {
    return type->tp_hash == PyBaseObject_Type.tp_hash &&
           type->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

static PyTypeObject *another_plain; // borrowed: it lives as long as the process

void raw_key_type(PyTypeObject *type) {
    another_plain = type;
}

static bool plain_immutable(PyTypeObject *type) {
    return type == another_plain || type == &PyUnicode_Type || type == &PyLong_Type ||
           type == &PyFloat_Type || type == &PyBytes_Type || type == &PyBool_Type ||
           type == &PyComplex_Type || type == Py_TYPE(Py_None) || type == &PyRange_Type ||
           type == &PyCFunction_Type;
}

enum { DEEPEST = 100 }; // tuples in tuples; keeps the C stack safe

// A tuple, or (`any`) an object of a subclass that is hashed and compared as one: torch.Size.
static bool is_tuple(PyTypeObject *type, bool any) {
    return type == &PyTuple_Type || (any && PyType_HasFeature(type, Py_TPFLAGS_TUPLE_SUBCLASS) &&
                                     type->tp_hash == PyTuple_Type.tp_hash &&
                                     type->tp_richcompare == PyTuple_Type.tp_richcompare);
}

static bool key_simple(PyObject *key, bool any, int depth) {
    PyTypeObject *type = Py_TYPE(key);
    if (plain_immutable(type) || hashed_by_identity(type))
        return true;
    if (depth == DEEPEST)
        return false;
    if (is_tuple(type, any)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
            if (!key_simple(PyTuple_GET_ITEM(key, i), any, depth + 1))
                return false;
        return true;
    }
    if (type == &PyFrozenSet_Type) {
        PyObject *item;
        for (Py_ssize_t at = 0; raw_set_next(key, &at, &item);)
            if (!key_simple(item, any, depth + 1))
                return false;
        return true;
    }
    return type == &PyMethod_Type && PyFunction_Check(PyMethod_GET_FUNCTION(key));
}

bool raw_key_by_identity(PyObject *key) {
    return hashed_by_identity(Py_TYPE(key));
}

bool raw_key_simple(PyObject *key) {
    return key_simple(key, false, 0);
}

// -1 stands for "cannot be told"; no hash is -1.
static Py_hash_t simple_hash(PyObject *key) {
    if (PyUnicode_CheckExact(key)) {
        Py_hash_t known = ((PyASCIIObject *)key)->hash;
        if (known != -1)
            return known;
    } else if (!raw_key_simple(key)) {
        return -1;
    }
    Py_hash_t hash = PyObject_Hash(key);
    if (hash == -1)
        PyErr_Clear();
    return hash;
}

// Two keys with the same hash, not identical, the second one simple.
static raw keys_equal(PyObject *stored, PyObject *key) {
    if (PyUnicode_CheckExact(stored) != PyUnicode_CheckExact(key) && raw_key_simple(stored))
        return RAW_ABSENT;
    if (!key_simple(stored, true, 0))
        return RAW_UNSURE;
    int equal = PyObject_RichCompareBool(stored, key, Py_EQ);
    if (equal < 0) {
        PyErr_Clear(); // memory: an int against a float
        return RAW_UNSURE;
    }
    return equal ? RAW_FOUND : RAW_ABSENT;
}

// --- tables ---

static Py_ssize_t table_index(const PyDictKeysObject *keys, size_t i) {
    int log = keys->dk_log2_size;
    if (log < 8)
        return ((const int8_t *)keys->dk_indices)[i];
    if (log < 16)
        return ((const int16_t *)keys->dk_indices)[i];
    if (log < 32)
        return ((const int32_t *)keys->dk_indices)[i];
    return (Py_ssize_t)((const int64_t *)keys->dk_indices)[i];
}

static PyObject *entry_key(PyDictKeysObject *keys, Py_ssize_t i) {
    return DK_IS_UNICODE(keys) ? DK_UNICODE_ENTRIES(keys)[i].me_key : DK_ENTRIES(keys)[i].me_key;
}

static PyObject *entry_value(PyDictKeysObject *keys, Py_ssize_t i) {
    return DK_IS_UNICODE(keys) ? DK_UNICODE_ENTRIES(keys)[i].me_value
                               : DK_ENTRIES(keys)[i].me_value;
}

static Py_hash_t entry_hash(PyDictKeysObject *keys, Py_ssize_t i) {
    // Keys of a unicode table are exact strings, whose hash is known since they were put in.
    return DK_IS_UNICODE(keys) ? ((PyASCIIObject *)DK_UNICODE_ENTRIES(keys)[i].me_key)->hash
                               : DK_ENTRIES(keys)[i].me_hash;
}

// Follows CPython's own probing (dictobject.c, PERTURB_SHIFT). If `simple` is false the key is
// found by identity only.
static raw table_find(PyDictKeysObject *keys, PyObject *key, Py_hash_t hash, bool simple,
                      Py_ssize_t *index) {
    size_t mask = ((size_t)1 << keys->dk_log2_size) - 1, perturb = (size_t)hash;
    for (size_t i = (size_t)hash & mask;; i = (i * 5 + perturb + 1) & mask) {
        Py_ssize_t at = table_index(keys, i);
        if (at == DKIX_EMPTY)
            return RAW_ABSENT;
        if (at >= 0) {
            PyObject *stored = entry_key(keys, at);
            raw equal = RAW_ABSENT;
            if (stored == key)
                equal = RAW_FOUND;
            else if (simple && entry_hash(keys, at) == hash)
                equal = keys_equal(stored, key);
            *index = at;
            if (equal != RAW_ABSENT)
                return equal;
        }
        perturb >>= 5;
    }
}

static bool same_text(PyObject *a, PyObject *b) {
    Py_ssize_t length = PyUnicode_GET_LENGTH(a);
    return ((PyASCIIObject *)a)->hash == ((PyASCIIObject *)b)->hash &&
           PyUnicode_GET_LENGTH(b) == length && PyUnicode_KIND(a) == PyUnicode_KIND(b) &&
           memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), (size_t)length * PyUnicode_KIND(a)) == 0;
}

static raw found(PyObject *value, PyObject **result) {
    *result = value;
    return value ? RAW_FOUND : RAW_ABSENT;
}

// What lies at an index: in a table's entry, or in the values of an object that shares its table.
static PyObject *value_at(PyDictKeysObject *keys, PyDictValues *values, Py_ssize_t i) {
    return values ? values->values[i] : entry_value(keys, i);
}

// The key at the place of the hint, if it is a name in a table of names.
static inline PyObject *name_at(PyDictKeysObject *keys, Py_ssize_t hint) {
    bool is_place = hint >= 0 && hint < keys->dk_nentries && DK_IS_UNICODE(keys);
    return is_place ? DK_UNICODE_ENTRIES(keys)[hint].me_key : NULL;
}

static raw table_get_anew(PyDictKeysObject *keys, PyDictValues *values, PyObject *key,
                          raw_hint *hint, PyObject **value) {
    Py_ssize_t index = raw_hint_get(hint);
    PyObject *there = name_at(keys, index);
    *value = NULL;
    if (there && PyUnicode_CheckExact(key) && same_text(there, key))
        return found(value_at(keys, values, index), value);
    Py_hash_t hash = simple_hash(key);
    raw known = hash == -1 ? RAW_UNSURE : table_find(keys, key, hash, true, &index);
    if (known != RAW_FOUND)
        return known;
    raw_hint_set(hint, index);
    return found(value_at(keys, values, index), value);
}

// Of names there is only one with the same text, so one at the place where it was is the entry. A
// table that also has other keys may hold one before it that says it is equal.
static inline raw table_get_near(PyDictKeysObject *keys, PyDictValues *values, PyObject *key,
                                 raw_hint *hint, PyObject **value) {
    Py_ssize_t index = raw_hint_get(hint);
    return LIKELY(name_at(keys, index) == key) ? found(value_at(keys, values, index), value)
                                               : table_get_anew(keys, values, key, hint, value);
}

raw raw_dict_get_near(PyObject *dict, PyObject *key, raw_hint *hint, PyObject **value) {
    PyDictObject *d = (PyDictObject *)dict;
    if (LIKELY(PyDict_Check(dict)))
        return table_get_near(d->ma_keys, d->ma_values, key, hint, value);
    *value = NULL;
    return RAW_UNSURE;
}

raw raw_dict_get(PyObject *dict, PyObject *key, PyObject **value) {
    raw_hint hint = -1;
    return raw_dict_get_near(dict, key, &hint, value);
}

raw raw_dict_get_identical(PyObject *dict, PyObject *key, raw_hint *hint, PyObject **value) {
    PyDictObject *d = (PyDictObject *)dict;
    *value = NULL;
    if (!PyDict_Check(dict))
        return RAW_UNSURE;
    Py_ssize_t count = d->ma_keys->dk_nentries, i = raw_hint_get(hint);
    if (i < 0 || i >= count || entry_key(d->ma_keys, i) != key) {
        for (i = 0; i < count && entry_key(d->ma_keys, i) != key; i++)
            ;
    }
    if (i == count)
        return RAW_ABSENT;
    raw_hint_set(hint, i);
    return found(value_at(d->ma_keys, d->ma_values, i), value);
}

// --- order ---

// As in Objects/odictobject.c, the same in all versions; raw_setup tries it out.
typedef struct order_node {
    PyObject *key;
    Py_hash_t hash;
    struct order_node *next, *previous;
} order_node;

typedef struct ordered_dict {
    PyDictObject dict;
    order_node *first, *last;
} ordered_dict;

static bool ordered_next(PyObject *dict, raw_cursor *c, PyObject **key, PyObject **value) {
    order_node *node = c->at == 0 ? ((ordered_dict *)dict)->first : c->node;
    Py_ssize_t index;
    if (!node)
        return false;
    PyDictObject *d = &((ordered_dict *)dict)->dict;
    bool there = table_find(d->ma_keys, node->key, node->hash, false, &index) == RAW_FOUND;
    *key = node->key;
    *value = there ? value_at(d->ma_keys, d->ma_values, index)
                   : NULL; // taken out behind the OrderedDict's back
    c->node = node->next;
    c->at++;
    return true;
}

bool raw_dict_next(PyObject *dict, raw_cursor *c, PyObject **key, PyObject **value) {
    if (PyODict_Check(dict))
        return ordered_next(dict, c, key, value);
    return PyDict_Next(dict, &c->at, key, value);
}

Py_hash_t raw_dict_hash(PyObject *dict, const raw_cursor *c, PyObject *key) {
    if (PyUnicode_CheckExact(key))
        return PyObject_Hash(key);
    if (!PyODict_Check(dict)) // such keys are in a table of their own, where a cursor is an index
        return DK_ENTRIES(((PyDictObject *)dict)->ma_keys)[c->at - 1].me_hash;
    order_node *next = c->node;
    return (next ? next->previous : ((ordered_dict *)dict)->last)->hash;
}

static bool entry_at(PyObject *dict, Py_ssize_t index, PyObject **key, PyObject **value) {
    raw_cursor c = {0};
    if (!PyDict_Check(dict) || index < 0 || index >= PyDict_GET_SIZE(dict))
        return false;
    PyDictObject *d = (PyDictObject *)dict;
    if (!PyODict_Check(dict) && (d->ma_values || d->ma_keys->dk_nentries == d->ma_used))
        c.at = index, index = 0; // no holes
    for (; index >= 0; index--)
        if (!raw_dict_next(dict, &c, key, value))
            return false;
    return true;
}

PyObject *raw_dict_key(PyObject *dict, Py_ssize_t index) {
    PyObject *key, *value;
    return entry_at(dict, index, &key, &value) ? key : NULL;
}

PyObject *raw_dict_value(PyObject *dict, Py_ssize_t index) {
    PyObject *key, *value;
    return entry_at(dict, index, &key, &value) ? value : NULL;
}

uint64_t raw_dict_version(PyObject *dict) {
    PyDictObject *d = (PyDictObject *)dict;
#if PY_VERSION_HEX >= 0x030d0000
    if (d->ma_values)
        return 0; // the object stores into its inline values without a new version
    return d->ma_version_tag >> (DICT_MAX_WATCHERS + DICT_WATCHED_MUTATION_BITS);
#elif PY_VERSION_HEX >= 0x030c0000
    return d->ma_version_tag >> DICT_MAX_WATCHERS;
#else
    return d->ma_version_tag;
#endif
}

// --- attributes ---

// Inline values in the order they were stored: how many, and the index of each.
#if PY_VERSION_HEX >= 0x030d0000
static Py_ssize_t inline_count(PyDictValues *values) {
    return values->size;
}
static Py_ssize_t inline_index(PyDictValues *values, Py_ssize_t i) {
    return get_insertion_order_array(values)[i];
}
#else
static Py_ssize_t inline_count(PyDictValues *values) {
    return ((uint8_t *)values)[-2];
}
static Py_ssize_t inline_index(PyDictValues *values, Py_ssize_t i) {
    return ((uint8_t *)values)[-3 - i];
}
#endif

raw raw_attr_get_near(PyObject *o, PyObject *name, raw_hint *hint, PyObject **value) {
    keeping k = keeping_of(o);
    if (k.values)
        return table_get_near(k.keys, k.values, name, hint, value);
    if (k.dict)
        return raw_dict_get_near(k.dict, name, hint, value);
    *value = NULL;
    return RAW_ABSENT;
}

raw raw_attr_get(PyObject *o, PyObject *name, PyObject **value) {
    raw_hint hint = -1;
    return raw_attr_get_near(o, name, &hint, value);
}

bool raw_has_dict(PyTypeObject *type) {
    return type->tp_dictoffset != 0 || (type->tp_flags & Py_TPFLAGS_MANAGED_DICT);
}

bool raw_has_attrs(PyObject *o) {
    keeping k = keeping_of(o);
    return k.values ? inline_count(k.values) > 0 : k.dict && PyDict_GET_SIZE(k.dict) > 0;
}

PyObject *raw_dict(PyObject *o) {
    return keeping_of(o).dict;
}

static PyObject *inline_names(keeping k) {
    Py_ssize_t count = inline_count(k.values);
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *name = entry_key(k.keys, inline_index(k.values, i));
        PyList_SET_ITEM(list, i, Py_NewRef(name));
    }
    return list;
}

PyObject *raw_attr_names(PyObject *o) {
    keeping k = keeping_of(o);
    if (k.values)
        return inline_names(k);
    PyObject *list = PyList_New(0), *key, *value;
    raw_cursor c = {0};
    while (list && k.dict && raw_dict_next(k.dict, &c, &key, &value))
        if (PyList_Append(list, key) < 0)
            Py_CLEAR(list);
    return list;
}

static bool same_name(PyObject *a, PyObject *b, bool (*same)(PyObject *, PyObject *)) {
    return a == b || same(a, b);
}

bool raw_attr_names_are(PyObject *o, PyObject *names, bool (*same)(PyObject *, PyObject *)) {
    keeping k = keeping_of(o);
    Py_ssize_t count = PyTuple_GET_SIZE(names), i = 0;
    if (k.values) {
        if (inline_count(k.values) != count)
            return false;
        for (; i < count; i++)
            if (!same_name(entry_key(k.keys, inline_index(k.values, i)), PyTuple_GET_ITEM(names, i),
                           same))
                return false;
        return true;
    }
    if (!k.dict || PyDict_GET_SIZE(k.dict) != count)
        return !k.dict && count == 0;
    PyObject *key, *value;
    for (raw_cursor c = {0}; raw_dict_next(k.dict, &c, &key, &value); i++)
        if (i == count || !same_name(key, PyTuple_GET_ITEM(names, i), same))
            return false;
    return i == count;
}

PyObject *raw_dict_make(PyObject *o) {
    return PyObject_GenericGetDict(o, NULL);
}

// Whether the generic store would go to a descriptor on the type.
static bool type_intercepts(PyTypeObject *type, PyObject *name) {
    PyObject *descriptor;
    raw there = raw_type_get(type, name, &descriptor);
    return there == RAW_UNSURE || (there == RAW_FOUND && Py_TYPE(descriptor)->tp_descr_set);
}

int raw_attr_set(PyObject *o, PyObject *name, PyObject *value) {
    if (PyType_Check(o)) // keeps slots and versions right
        return PyType_Type.tp_setattro(o, name, value);
    if (PyUnicode_CheckExact(name) && !type_intercepts(Py_TYPE(o), name))
        return _PyObject_GenericSetAttrWithDict(o, name, value, NULL); // inline values stay inline
    PyObject *dict = raw_dict_make(o);
    int result = !dict   ? -1
                 : value ? PyDict_SetItem(dict, name, value)
                         : PyDict_DelItem(dict, name);
    Py_XDECREF(dict);
    return result;
}
