// Facts about classes that differ by version.
#pragma once

#include "src/py/py.h"

// Whether a classmethod binds what it wraps by that object's own __get__ (until 3.12).
#define PY_CLASSMETHOD_CHAINS (PY_VERSION_HEX < 0x030d0000)

// The longest type name that the text of an AttributeError shows whole.
#if PY_VERSION_HEX >= 0x030c0000
#define PY_ATTRIBUTE_ERROR_NAME 100
#else
#define PY_ATTRIBUTE_ERROR_NAME 50
#endif

// Takes a class out of the subclasses that a heap type knows, as the death of the class does
// (remove_subclass in typeobject.c).
static inline void py_forget_subclass(PyTypeObject *base, PyTypeObject *class) {
    PyObject *all = (PyObject *)base->tp_subclasses, *key = all ? PyLong_FromVoidPtr(class) : NULL;
    if (!key || (PyDict_Contains(all, key) == 1 && PyDict_DelItem(all, key) < 0))
        PyErr_Clear();
    Py_XDECREF(key);
}

// The AttributeError of an empty slot.
static inline void py_slot_missing(PyObject *o, const char *name) {
#if PY_VERSION_HEX >= 0x030d0000
    PyErr_Format(PyExc_AttributeError, "'%T' object has no attribute '%s'", o, name);
#else
    PyErr_Format(PyExc_AttributeError, "'%.200s' object has no attribute '%s'", Py_TYPE(o)->tp_name,
                 name);
#endif
}
