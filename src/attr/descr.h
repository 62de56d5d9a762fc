// Descriptors, for this room and src/call: an object found on a type, and the attribute that it
// gives an object.
#pragma once

#include "src/attr/attr.h"

// The object that the MRO of a type has under a name. All references are borrowed.
typedef struct descr {
    PyObject *found; // as it is inside, maybe a lazy; NULL: the name is absent
    PyObject *raw;   // the object itself
    bool gets, data; // it has __get__; it has __set__ or __delete__. Guards check both
} descr;

// How a type does what a special method stands for: by a C function (`native`) or by calling
// `found`. Both are NULL if the type does not do it.
typedef struct way {
    void *native;
    PyObject *found, *raw; // borrowed
} way;

static inline status failed(const world *w) {
    return w->stop.broken ? ST_BREAK : ST_ERROR;
}

status descr_find(world *w, PyTypeObject *type, PyObject *name, descr *d);
// The same for an object that was found already.
status descr_of(world *w, PyObject *found, PyObject *raw, descr *d);
// The attribute that a descriptor gives. `o` is NULL if the class itself was asked for the
// attribute.
PyObject *descr_get(world *w, const descr *d, PyObject *o, PyTypeObject *type);
int descr_set(world *w, const descr *d, PyObject *o, PyObject *value); // NULL deletes

// A field of a classmethod, staticmethod or property, by its name; NULL without an exception if the
// field is empty.
PyObject *descr_held(world *w, const descr *d, source_kind kind, PyObject *name);

// Finds the way of a type. `slot` is the type's C slot for the method; types that Python code
// cannot change use it.
status way_find(world *w, PyTypeObject *type, PyObject *name, void *slot, way *s);
// Calls a way that is not native. args[0] is self.
PyObject *way_call(world *w, const way *s, PyObject *const *args, size_t count);

// A class as an inside value, known to the world; borrowed.
PyObject *class_value(world *w, PyTypeObject *type);
// The record of an object that is the outside object itself, neither a twin nor a stand-in; else
// NULL.
record *record_itself(const world *w, PyObject *o);
// The lazy of a place below an outside object. NULL with a break if there is no such place.
PyObject *load_field(world *w, record *r, source_kind kind, PyObject *key, Py_ssize_t index);

// C members and getsets (field.c). The descriptor is d->raw.
PyObject *field_get(world *w, const descr *d, PyObject *o, PyTypeObject *type);
int field_set(world *w, const descr *d, PyObject *o, PyObject *value);

// --- attr.c ---

// The AttributeError of a missing attribute, in CPython's own words. Always NULL.
PyObject *attr_missing(world *w, PyObject *o, PyObject *name, getattrofunc native);
