// Compares two objects by value, so that no program can tell equal ones apart; and hashes an object
// accordingly.
#include "src/py/py.h"
#include "src/py/raw.h"

#include "src/guard/value.h"

#include <string.h>

// The process's one list of types; it only grows.
static value_bits bits_rows[VALUE_BITS_MOST];
static size_t bits_count;

void value_add_bits(const value_bits *row) {
    assert(bits_count < VALUE_BITS_MOST);
    bits_rows[bits_count++] = *row;
}

const value_bits *value_bits_of(const PyTypeObject *type) {
    for (size_t i = 0; i < bits_count; i++)
        if (bits_rows[i].type == type)
            return &bits_rows[i];
    return NULL;
}

static const char *bits_at(PyObject *o) {
    return (const char *)o + sizeof(PyObject);
}

static bool half_nan(const char *at) {
    uint16_t bits;
    memcpy(&bits, at, sizeof(bits));
    return (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
}

static bool float_nan(const char *at, size_t size) {
    float single;
    double wide;
    if (size == sizeof(uint16_t))
        return half_nan(at);
    if (size == sizeof(single)) {
        memcpy(&single, at, sizeof(single));
        return isnan(single);
    }
    memcpy(&wide, at, sizeof(wide));
    return isnan(wide);
}

bool value_bits_nan(const value_bits *row, PyObject *o) {
    if (row->kind == 'f')
        return float_nan(bits_at(o), row->size);
    return row->kind == 'c' && (float_nan(bits_at(o), row->size / 2) ||
                                float_nan(bits_at(o) + row->size / 2, row->size / 2));
}

enum { DEEPEST = 100 }; // keeps the C stack safe; what lies deeper is compared by identity

static bool same(PyObject *a, PyObject *b, int depth);

static bool same_long(PyObject *a, PyObject *b) {
    return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

static bool same_text(PyObject *a, PyObject *b) {
    size_t length = (size_t)PyUnicode_GET_LENGTH(a), kind = PyUnicode_KIND(a);
    // Kind 0: an old C API made it, and its text is not there yet (3.11).
    if (PyUnicode_GET_LENGTH(b) != (Py_ssize_t)length || PyUnicode_KIND(b) != kind || kind == 0)
        return false;
    return memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), length * kind) == 0;
}

static bool same_bytes(PyObject *a, PyObject *b) {
    return Py_SIZE(a) == Py_SIZE(b) &&
           memcmp(PyBytes_AS_STRING(a), PyBytes_AS_STRING(b), (size_t)Py_SIZE(a)) == 0;
}

static bool same_tuple(PyObject *a, PyObject *b, int depth) {
    Py_ssize_t count = PyTuple_GET_SIZE(a);
    if (PyTuple_GET_SIZE(b) != count)
        return false;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!same(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i), depth))
            return false;
    return true;
}

// Equal sets may iterate differently, and a trace may have iterated.
static bool same_frozenset(PyObject *a, PyObject *b, int depth) {
    Py_ssize_t at_a = 0, at_b = 0;
    PyObject *item_a, *item_b;
    if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b))
        return false;
    while (raw_set_next(a, &at_a, &item_a))
        if (!raw_set_next(b, &at_b, &item_b) || !same(item_a, item_b, depth))
            return false;
    return true;
}

static bool same_slice(PyObject *a, PyObject *b, int depth) {
    PySliceObject *x = (PySliceObject *)a, *y = (PySliceObject *)b;
    return same(x->start, y->start, depth) && same(x->stop, y->stop, depth) &&
           same(x->step, y->step, depth);
}

static bool same_range(PyObject *a, PyObject *b, int depth) {
    for (raw_field field = RAW_RANGE_START; field <= RAW_RANGE_STEP; field++) {
        PyObject *x = raw_field_get(field, a), *y = raw_field_get(field, b);
        if (!x || !y || !same(x, y, depth))
            return false;
    }
    return true;
}

static bool same(PyObject *a, PyObject *b, int depth) {
    PyTypeObject *type = Py_TYPE(a);
    if (a == b)
        return true;
    if (type != Py_TYPE(b) || depth == DEEPEST)
        return false;
    if (type == &PyLong_Type)
        return same_long(a, b);
    if (type == &PyUnicode_Type)
        return same_text(a, b);
    if (type == &PyFloat_Type)
        return memcmp(&((PyFloatObject *)a)->ob_fval, &((PyFloatObject *)b)->ob_fval,
                      sizeof(double)) == 0;
    if (type == &PyTuple_Type)
        return same_tuple(a, b, depth + 1);
    if (type == &PyBytes_Type)
        return same_bytes(a, b);
    if (type == &PyComplex_Type)
        return memcmp(&((PyComplexObject *)a)->cval, &((PyComplexObject *)b)->cval,
                      sizeof(Py_complex)) == 0;
    if (type == &PyFrozenSet_Type)
        return same_frozenset(a, b, depth + 1);
    if (type == &PySlice_Type)
        return same_slice(a, b, depth + 1);
    if (type == &PyRange_Type)
        return same_range(a, b, depth + 1);
    const value_bits *bits = value_bits_of(type);
    return bits && memcmp(bits_at(a), bits_at(b), bits->size) == 0;
}

bool value_key_is_fixed(PyObject *key) {
    return PyUnicode_CheckExact(key) && PyUnicode_CHECK_INTERNED(key);
}

bool value_same_key(PyObject *found, PyObject *guarded) {
    return found == guarded || (!value_key_is_fixed(guarded) && value_same(found, guarded));
}

bool value_same(PyObject *a, PyObject *b) {
    return same(a, b, 0);
}

static uint64_t mix(uint64_t hash, uint64_t more) {
    return (hash ^ more) * UINT64_C(0x9E3779B97F4A7C15) + (hash >> 29);
}

static uint64_t hash_of(PyObject *o, int depth) {
    PyTypeObject *type = Py_TYPE(o);
    uint64_t hash = (uintptr_t)type;
    if (type == &PyTuple_Type && depth < DEEPEST) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
            hash = mix(hash, hash_of(PyTuple_GET_ITEM(o, i), depth + 1));
        return hash;
    }
    if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyFloat_Type ||
        type == &PyBytes_Type || type == &PyComplex_Type)
        return type == &PyFloat_Type && isnan(PyFloat_AS_DOUBLE(o)) ? mix(hash, 0)
               : type == &PyComplex_Type ? mix(hash, 1)
                                         : mix(hash, (uint64_t)PyObject_Hash(o));
    if (type == &PyFrozenSet_Type || type == &PySlice_Type || type == &PyRange_Type ||
        type == &PyTuple_Type)
        return hash; // rare
    const value_bits *bits = value_bits_of(type);
    if (!bits)
        return mix(hash, (uintptr_t)o);
    for (size_t i = 0; i < bits->size; i++)
        hash = mix(hash, (unsigned char)bits_at(o)[i]);
    return hash;
}

uint64_t value_hash(PyObject *o) {
    return hash_of(o, 0);
}
