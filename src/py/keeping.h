// Where an object keeps its attributes: for the files of this room that read them.
#pragma once

#include "src/py/raw.h"

#include <internal/pycore_object.h>

typedef struct keeping {
    PyDictKeysObject *keys; // inline values: their names
    PyDictValues *values;   // inline values, else NULL
    PyObject *dict;         // the dict as an object, or NULL
} keeping;

static inline PyObject *dict_at_offset(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    Py_ssize_t offset = type->tp_dictoffset;
    if (offset == 0)
        return NULL;
    if (PyType_Check(o))
        return raw_type_dict((PyTypeObject *)o);
    if (offset < 0) {
        Py_ssize_t size = Py_SIZE(o);
        offset += (Py_ssize_t)_PyObject_VAR_SIZE(type, size < 0 ? -size : size);
    }
    return *(PyObject **)((char *)o + offset);
}

static inline PyDictKeysObject *shared_keys(PyObject *o) {
    return ((PyHeapTypeObject *)Py_TYPE(o))->ht_cached_keys;
}

#if PY_VERSION_HEX >= 0x030d0000
static inline keeping managed_keeping(PyObject *o) {
    PyObject *dict = (PyObject *)_PyObject_ManagedDictPointer(o)->dict;
    // A dict that exists may still share these values; stores go to either.
    if ((Py_TYPE(o)->tp_flags & Py_TPFLAGS_INLINE_VALUES) && _PyObject_InlineValues(o)->valid)
        return (keeping){shared_keys(o), _PyObject_InlineValues(o), dict};
    return (keeping){.dict = dict};
}
#elif PY_VERSION_HEX >= 0x030c0000
static inline keeping managed_keeping(PyObject *o) {
    PyDictOrValues kept = *_PyObject_DictOrValuesPointer(o);
    if (_PyDictOrValues_IsValues(kept))
        return (keeping){shared_keys(o), _PyDictOrValues_GetValues(kept), NULL};
    return (keeping){.dict = _PyDictOrValues_GetDict(kept)};
}
#else
static inline keeping managed_keeping(PyObject *o) {
    PyDictValues *values = *_PyObject_ValuesPointer(o);
    if (values)
        return (keeping){shared_keys(o), values, NULL};
    return (keeping){.dict = *_PyObject_ManagedDictPointer(o)};
}
#endif

static inline keeping keeping_of(PyObject *o) {
    if (Py_TYPE(o)->tp_flags & Py_TPFLAGS_MANAGED_DICT)
        return managed_keeping(o);
    return (keeping){.dict = dict_at_offset(o)};
}
