// Special methods of an opened value. Each is looked up through the door before native code may use
// it.
#pragma once

#include "src/call/protocol.h"

typedef enum special {
#define SPECIAL(name, protocols, slot) SPECIAL_##name,
#include "src/call/special.def"
#undef SPECIAL
    SPECIAL_COUNT,
} special;

// Where an object must come from so that the slots of its C type may run natively. slots.def
// explains the words.
typedef enum slots_where { SLOTS_VALUE, SLOTS_HELD, SLOTS_INSIDE, SLOTS_TWIN } slots_where;

typedef struct slots_row {
    const char *name; // tp_name
    unsigned protocols;
    slots_where where;
} slots_row;

// Adds the rows of an extension's C types to those of slots.def. The last row has no name.
void special_add_slots(const slots_row *rows);

// "__name__", interned; borrowed. NULL with an exception.
PyObject *special_name(special id);
// Prepares `o`, which is no lazy, for native code that uses this method.
status special_open(world *w, PyObject *o, special id);
// The same for all methods of these protocols.
status special_open_all(world *w, PyObject *o, unsigned protocols);
// Whether this method of o's class is Python code. If so, it gets a record. -1: error or break.
int special_is_python(world *w, PyObject *o, special id);
// Whether o's type, even a Python class, has the slot that native code would use for this method.
bool special_slot_is_there(PyObject *o, special id);
// Calls the method as the interpreter would, if it is Python code: a new reference, and *called is
// true. Else *called is false and the result is NULL, with an exception or a break only if one is
// set.
PyObject *special_call(world *w, PyObject *o, special id, PyObject *const *args, int count,
                       bool *called);
// Whether plain Python would keep an object alive at this point, too. (World and arena may keep it
// longer.) Also false if finding out would take long.
bool special_lives(world *w, PyObject *o);
// Whether `==` of o's class is object's own, which compares identity. -1: error or break.
int special_eq_is_identity(world *w, PyObject *o);

// Whether `o` is an immutable builtin of exact type that holds no other objects.
static inline bool is_scalar(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return t == &PyLong_Type || t == &PyUnicode_Type || t == &PyFloat_Type || t == &PyBool_Type ||
           o == Py_None || t == &PyBytes_Type || t == &PyComplex_Type || o == Py_Ellipsis ||
           o == Py_NotImplemented;
}
