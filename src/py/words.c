// Finds the words of memory that prove the outcome of raw reads.
#include "src/py/keeping.h"
#include "src/py/words.h"

void words_free(words *w) {
    vec_free(&w->all);
    map_clear(&w->known);
}

static bool is_known(const words *w, const void *at, uint64_t mask) {
    uint64_t *index = map_get(&w->known, map_key(at));
    return index && w->all.items[*index].mask == mask;
}

static void add(words *w, const void *at, uint64_t mask) {
    word added = {.at = at, .mask = mask};
    if (w->failed || is_known(w, at, mask))
        return;
    memcpy(&added.value, at, sizeof(added.value));
    added.value &= mask;
    if (map_put(&w->known, map_key(at), w->all.count) != ST_OK ||
        vec_push(&w->all, added) != ST_OK) {
        PyErr_Clear();
        w->failed = true;
    }
}

void words_add(words *w, const void *at) {
    assert((uintptr_t)at % sizeof(uint64_t) == 0);
    add(w, at, UINT64_MAX);
}

void words_add_part(words *w, const void *at, size_t size) {
    size_t from = (uintptr_t)at % sizeof(uint64_t);
    uint64_t mask = 0;
    assert(from + size <= sizeof(mask));
    memset((char *)&mask + from, 0xff, size);
    add(w, (const char *)at - from, mask);
}

// --- types ---

// Modules can get another class, though the class of most lives for good.
bool words_class_is_fixed(PyObject *o) {
    return !(Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !PyModule_Check(o);
}

// A version is never used again, so it tells a class from a later one at the same address.
bool words_class(words *w, PyTypeObject *type) {
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return true;
    if (raw_type_version(type) == 0)
        return false;
    words_add_part(w, &type->tp_version_tag, sizeof(type->tp_version_tag));
    return true;
}

bool words_type(words *w, PyObject *o, bool same) {
    if (same && words_class_is_fixed(o))
        return true;
    words_add(w, &o->ob_type);
    return words_class(w, Py_TYPE(o));
}

// --- dicts ---

// The lowest bits of a dict's version are not the version's.
#if PY_VERSION_HEX >= 0x030d0000
enum { OTHER_BITS = DICT_MAX_WATCHERS + DICT_WATCHED_MUTATION_BITS };
#elif PY_VERSION_HEX >= 0x030c0000
enum { OTHER_BITS = DICT_MAX_WATCHERS };
#else
enum { OTHER_BITS = 0 };
#endif

// Since 3.13 an object stores into values that it shares with its dict, and the dict's version
// stays. Before, the version is right for such a dict, too.
enum { SHARES_VALUES = PY_VERSION_HEX >= 0x030d0000 };

// Before 3.13, STORE_ATTR_WITH_HINT drops the old value before it gives the dict a new version: code
// that runs then sees another value under the old version. CPython uses this instruction only for
// classes whose tp_setattro is PyObject_GenericSetAttr.
enum { STORES_BEFORE_VERSION = PY_VERSION_HEX < 0x030d0000 };

// A version is never used again, so it tells a dict from a later one at the same address.
static bool add_version(words *w, PyDictObject *d) {
    uint64_t mask = UINT64_MAX << OTHER_BITS;
    if ((SHARES_VALUES && d->ma_values) || (d->ma_version_tag & mask) == 0)
        return false;
    add(w, &d->ma_version_tag, mask);
    return true;
}

// The place of an entry's value. The table may move under an equal version, hence its address and
// its layout.
static void add_value(words *w, PyDictObject *d, Py_ssize_t index) {
    PyDictKeysObject *keys = d->ma_keys;
    words_add(w, &d->ma_keys);
    words_add_part(w, &keys->dk_log2_size, 3); // with dk_log2_index_bytes and dk_kind
    words_add(w, &d->ma_values);
    if (d->ma_values)
        words_add(w, &d->ma_values->values[index]);
    else
        words_add(w, &DK_UNICODE_ENTRIES(keys)[index].me_value);
}
static_assert(offsetof(PyDictKeysObject, dk_kind) == offsetof(PyDictKeysObject, dk_log2_size) + 2,
              "three bytes tell the layout of a table");

// Whether no code can run when somebody drops the object.
static bool dies_quietly(PyObject *o) {
    return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
           PyUnicode_CheckExact(o) || PyBytes_CheckExact(o);
}

// That no code runs while the value is another one and the version is still the old one. One
// reference to the dict means that nobody but its known holder can store into it; an object of
// another class could have it as its __dict__.
static void add_order(words *w, PyDictObject *d, Py_ssize_t index, bool ordered) {
    if (ordered && Py_REFCNT(d) == 1)
        words_add(w, &((PyObject *)d)->ob_refcnt);
    else
        add_value(w, d, index);
}

proof words_item(words *w, PyObject *dict, PyObject *key, bool ordered) {
    PyDictObject *d = (PyDictObject *)dict;
    raw_hint hint = -1;
    PyObject *value;
    // Other keys may be equal to this one by code of their own.
    if (!PyUnicode_CheckExact(key) || !DK_IS_UNICODE(d->ma_keys) ||
        raw_dict_get_near(dict, key, &hint, &value) == RAW_UNSURE || !add_version(w, d))
        return PROVES_NOTHING;
    if (STORES_BEFORE_VERSION && value && !dies_quietly(value))
        add_order(w, d, raw_hint_get(&hint), ordered);
    return PROVES_SAME;
}

bool words_keys(words *w, PyObject *dict) {
    return !PyODict_Check(dict) && add_version(w, (PyDictObject *)dict);
}

// --- attributes ---

// Where an object keeps its attributes, and its dict, if it has one. Its type is proved.
#if PY_VERSION_HEX >= 0x030d0000
static void add_managed(words *w, PyObject *o, bool dict) {
    bool can = Py_TYPE(o)->tp_flags & Py_TPFLAGS_INLINE_VALUES;
    PyDictValues *values = can ? _PyObject_InlineValues(o) : NULL;
    if (values)
        words_add_part(w, &values->capacity, 4); // with size, embedded and valid
    if (dict || !values || !values->valid)
        words_add(w, _PyObject_ManagedDictPointer(o));
}
static_assert(offsetof(PyDictValues, valid) == offsetof(PyDictValues, capacity) + 3,
              "four bytes tell the state of inline values");
#elif PY_VERSION_HEX >= 0x030c0000
static void add_managed(words *w, PyObject *o, bool dict) {
    (void)dict;
    words_add(w, _PyObject_DictOrValuesPointer(o));
}
#else
static void add_managed(words *w, PyObject *o, bool dict) {
    (void)dict;
    if (!*_PyObject_ManagedDictPointer(o)) // an object with a dict has no inline values
        words_add(w, _PyObject_ValuesPointer(o));
    words_add(w, _PyObject_ManagedDictPointer(o));
}
#endif

static bool add_keeping(words *w, PyObject *o, bool same, bool dict) {
    PyTypeObject *type = Py_TYPE(o);
    if (PyType_Check(o) || !words_type(w, o, same))
        return false;
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT)
        return add_managed(w, o, dict), true;
    if (type->tp_dictoffset < 0 || type->tp_dictoffset % (Py_ssize_t)sizeof(void *) != 0)
        return false; // negative: its place depends on the object's length
    if (type->tp_dictoffset > 0)
        words_add(w, (char *)o + type->tp_dictoffset);
    return true;
}

// The names of inline values are the class's, and only grow.
static proof attr_inline(words *w, PyObject *o, PyObject *name, keeping k) {
    raw_hint hint = -1;
    PyObject *value;
    if (raw_attr_get_near(o, name, &hint, &value) == RAW_UNSURE)
        return PROVES_NOTHING;
    words_add(w, &((PyHeapTypeObject *)Py_TYPE(o))->ht_cached_keys);
    if (raw_hint_get(&hint) >= 0)
        words_add(w, &k.values->values[raw_hint_get(&hint)]);
    else
        words_add(w, &k.keys->dk_nentries);
    return PROVES_POINTER;
}

// A class stores into its own dict as PyDict_SetItem does. Static types may keep theirs elsewhere,
// for good.
static proof attr_of_class(words *w, PyObject *o, PyObject *name, bool same) {
    PyTypeObject *type = (PyTypeObject *)o;
    PyObject *dict = raw_type_dict(type);
    if (!dict || !words_type(w, o, same))
        return PROVES_NOTHING;
    if (dict == type->tp_dict)
        words_add(w, &type->tp_dict);
    return words_item(w, dict, name, true);
}

proof words_attr(words *w, PyObject *o, PyObject *name, bool same) {
    if (PyType_Check(o))
        return PyUnicode_CheckExact(name) ? attr_of_class(w, o, name, same) : PROVES_NOTHING;
    if (!PyUnicode_CheckExact(name) || !add_keeping(w, o, same, false))
        return PROVES_NOTHING;
    keeping k = keeping_of(o);
    if (k.values)
        return attr_inline(w, o, name, k);
    bool ordered = Py_TYPE(o)->tp_setattro != PyObject_GenericSetAttr;
    return k.dict ? words_item(w, k.dict, name, ordered) : PROVES_POINTER;
}

bool words_attr_names(words *w, PyObject *o, bool same) {
    if (!add_keeping(w, o, same, false))
        return false;
    keeping k = keeping_of(o);
    return !k.values && (!k.dict || words_keys(w, k.dict));
}

bool words_own_dict(words *w, PyObject *o, bool same) {
    return add_keeping(w, o, same, true);
}
