// Descriptors, in the call room only: what was found on a type, and what it gives for an object.
// The three files behind attr.h meet here.
#pragma once

#include "src/attr/attr.h"

// What the MRO of a type has under a name. All borrowed.
typedef struct descr {
    PyObject *found; // as it is inside, maybe a lazy; NULL: nothing there
    PyObject *raw;   // the object itself
    bool gets, data; // has __get__; has __set__ or __delete__. Guarded either way
} descr;

// How a type does what a special method stands for: in C, or by something to be called. Both NULL:
// not at all.
typedef struct way {
    void *native;
    PyObject *found, *raw; // borrowed
} way;

static inline status failed(const world *w) {
    return w->stop.broken ? ST_BREAK : ST_ERROR;
}

status descr_find(world *w, PyTypeObject *type, PyObject *name, descr *d);
// The same of an object at hand.
status descr_of(world *w, PyObject *found, PyObject *raw, descr *d);
// `o` NULL: looked up on the class itself.
PyObject *descr_get(world *w, const descr *d, PyObject *o, PyTypeObject *type);
int descr_set(world *w, const descr *d, PyObject *o, PyObject *value); // NULL deletes

// What a classmethod, staticmethod or property holds under a name; NULL without an exception:
// nothing.
PyObject *descr_held(world *w, const descr *d, source_kind kind, PyObject *name);

// `slot` is what the type has in that slot, which counts for types that Python code cannot change.
status way_find(world *w, PyTypeObject *type, PyObject *name, void *slot, way *s);
// Calls one that is not native: args[0] is self.
PyObject *way_call(world *w, const way *s, PyObject *const *args, size_t count);

// A class as a value, known to the world; borrowed.
PyObject *class_value(world *w, PyTypeObject *type);
// Whether an object is itself outside, neither a twin nor a stand-in; its record.
record *record_itself(const world *w, PyObject *o);
// What a place below an outside object holds: a lazy. NULL with a break if it is not there.
PyObject *load_field(world *w, record *r, source_kind kind, PyObject *key, Py_ssize_t index);

// C members and getsets (field.c). The descriptor is d->raw.
PyObject *field_get(world *w, const descr *d, PyObject *o, PyTypeObject *type);
int field_set(world *w, const descr *d, PyObject *o, PyObject *value);

// --- attr.c ---

// The AttributeError of a missing attribute, in CPython's own words. Always NULL.
PyObject *attr_missing(world *w, PyObject *o, PyObject *name, getattrofunc native);
