// Attributes of classes and of super objects, whose lookups go along an MRO themselves.
#include "src/attr/descr.h"
#include "src/attr/later.h"
#include "src/attr/words.h"

// --- classes ---

// type.__getattribute__: a data descriptor of the metatype, then the class's own MRO, then the
// metatype's other attributes.
PyObject *attr_get_class(world *w, PyObject *class, PyObject *name) {
    PyTypeObject *type = (PyTypeObject *)class, *meta = Py_TYPE(class);
    descr of_meta, own;
    if (descr_find(w, meta, name, &of_meta) != ST_OK)
        return NULL;
    if (of_meta.data && of_meta.gets)
        return descr_get(w, &of_meta, class, meta);
    if (descr_find(w, type, name, &own) != ST_OK)
        return NULL;
    if (own.found)
        return descr_get(w, &own, NULL, type);
    if (of_meta.found)
        return descr_get(w, &of_meta, class, meta);
    return attr_missing(w, class, name, PyType_Type.tp_getattro);
}

// --- the rest of an MRO ---

// What the classes behind `after` in the MRO of a class have; as descr_find.
static status find_after(world *w, PyTypeObject *type, PyTypeObject *after, PyObject *name,
                         descr *d) {
    *d = (descr){0};
    if (raw_is_python_class(type))
        TRY(type_guard_mro(w, type));
    PyObject *mro = type->tp_mro;
    Py_ssize_t n = PyTuple_GET_SIZE(mro), i = 0;
    while (i < n && PyTuple_GET_ITEM(mro, i) != (PyObject *)after)
        i++;
    for (i++; i < n; i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        int own = type_has_own(w, base, name);
        if (own != 0) // the first in a class's MRO is the class
            return own < 0 ? failed(w) : descr_find(w, base, name, d);
    }
    return ST_OK;
}

// --- super ---

// The class whose MRO super(type, self) walks (supercheck), known to the world. NULL with a break
// where only self.__class__ could tell, or with CPython's TypeError.
static PyTypeObject *start_of(world *w, PyTypeObject *type, PyObject *self) {
    PyTypeObject *start = Py_TYPE(self);
    if (PyType_Check(self) && PyType_IsSubtype((PyTypeObject *)self, type))
        start = (PyTypeObject *)self;
    else if (!PyType_IsSubtype(start, type)) {
        world_break(w, REASON_ATTRIBUTE, "super() of an object that is no instance");
        return NULL;
    }
    if (raw_is_python_class(start))
        if (!class_value(w, start) || type_guard_mro(w, start) != ST_OK)
            return NULL;
    return start;
}

PyObject *attr_super(world *w, PyTypeObject *type, PyObject *self, PyObject *name) {
    self = door_open(w, self);
    if (!self)
        return NULL;
    if (is_standin(self))
        return world_break(w, REASON_ATTRIBUTE, "super() of a tensor");
    PyTypeObject *start = start_of(w, type, self);
    descr d = {0};
    if (!start)
        return NULL;
    if (name != word.class_ && find_after(w, start, type, name, &d) != ST_OK)
        return NULL;
    if (d.found)
        return descr_get(w, &d, self == (PyObject *)start ? NULL : self, start);
    // The super object itself answers, or says that there is nothing.
    PyObject *args[] = {(PyObject *)type, self};
    PyObject *super = PyObject_Vectorcall((PyObject *)&PySuper_Type, args, 2, NULL);
    PyObject *value = super ? PyObject_GenericGetAttr(super, name) : NULL;
    Py_XDECREF(super);
    return value;
}
