// Entries of dicts with the hashes that the dict keeps (hashing a key again could run code), and
// the dict of an instance.
#pragma once

#include "src/py/py.h"

// Like PyDict_Next. All results are borrowed.
static inline bool py_dict_next(PyObject *dict, Py_ssize_t *at, PyObject **key, PyObject **value,
                                Py_hash_t *hash) {
#if PY_VERSION_HEX < 0x030d0000
    return _PyDict_Next(dict, at, key, value, hash);
#else
    if (!PyDict_Next(dict, at, key, value))
        return false;
    PyDictKeysObject *keys = ((PyDictObject *)dict)->ma_keys;
    // A table for general keys is never split, so the position is the entry's own.
    *hash = DK_IS_UNICODE(keys) ? PyObject_Hash(*key) : DK_ENTRIES(keys)[*at - 1].me_hash;
    return true;
#endif
}

// Sets o.__dict__, even if the class defines the name __dict__ otherwise. 0, or -1 with an
// exception.
static inline int py_set_instance_dict(PyObject *o, PyObject *dict) {
#if PY_VERSION_HEX >= 0x030d0000
    // The generic function leaves inline values valid, and they would be read first.
    if (Py_TYPE(o)->tp_flags & Py_TPFLAGS_MANAGED_DICT)
        return _PyObject_SetManagedDict(o, dict);
#endif
    return PyObject_GenericSetDict(o, dict, NULL);
}
