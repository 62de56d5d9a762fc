// Attributes, looked up in the order of PyObject_GenericGetAttr: type MRO, data descriptors,
// instance dict, other descriptors, __getattr__. Each lookup goes through the door. Results are new
// references; NULL or -1 comes with an exception or a break.
#pragma once

#include "src/world/world.h"

PyObject *attr_get(world *w, PyObject *o, PyObject *name);
// is_own_proxy: whether `o` is a weak proxy that was made inside. attr_behind_proxy: the object
// behind it, a new reference, or a break if the object could be dead.
static inline bool is_own_proxy(const world *w, PyObject *o) {
    return PyWeakref_CheckProxy(o) && !record_of(w, o);
}
PyObject *attr_behind_proxy(world *w, PyObject *proxy);
// Like LOAD_METHOD: 1 if *value is a plain function, to be called with `o` as the first argument,
// else 0.
int attr_get_method(world *w, PyObject *o, PyObject *name, PyObject **value);
int attr_set(world *w, PyObject *o, PyObject *name, PyObject *value); // NULL deletes
// type.__setattr__, whatever the metaclass says.
int attr_set_class(world *w, PyObject *class, PyObject *name, PyObject *value);
PyObject *attr_super(world *w, PyTypeObject *type, PyObject *self, PyObject *name);
// pybind11's metaclass, which src/torch finds. Its __getattribute__ works like type's, except that
// it does not bind an instancemethod.
void attr_know_pybind(const PyTypeObject *metaclass);
bool attr_is_pybind(const PyTypeObject *metaclass);
// A special method, looked up on the type and bound; NULL without an exception if there is none.
PyObject *attr_special(world *w, PyObject *o, PyObject *name);
// object.__getattribute__ and object.__setattr__: the generic order, even if the type has its own.
PyObject *attr_get_generic(world *w, PyObject *o, PyObject *name);
int attr_set_generic(world *w, PyObject *o, PyObject *name, PyObject *value); // NULL deletes
// type.__getattribute__.
PyObject *attr_get_class(world *w, PyObject *class, PyObject *name);
