// What the files of this room share, and nobody else uses.
#pragma once

#include "src/world/world.h"

// --- types that CPython does not declare (types.c) ---

extern PyTypeObject *type_deque, *type_defaultdict, *type_partial, *type_enum;
int types_setup(void);

// A class was met as the type of what is at `s`, and guarded there: it gets a record if Python code
// can change it.
status type_met(world *w, source *s, PyTypeObject *type);

// Where an opened immutable came from; one object may come from several places.
typedef struct value {
    source *source;
    PyObject *object; // kept by the arena
    struct value *next;
    struct value *next_nan;    // the next in world.in.nans
    struct value *next_holder; // the next in world.in.holders
} value;

// --- the door ---

// Remembers where an opened value came from, in case its identity is asked for; only for a NaN does
// it guard anything.
status value_note(world *w, source *s, PyObject *o);
// The same of a key of a dict, or an element of a set, whose guards let one interned str pass only.
status value_note_key(world *w, source *s, PyObject *o);

// The type of what is at `s` is guarded, and known to the world.
status door_guard_type(world *w, source *s, PyObject *object);
// A recorded object was found at one more place. `pinned`: a guard there lets only this object
// pass.
status door_again(world *w, record *r, source *s, bool pinned);
// A guard is going to hold this object. One that has no weak references is kept alive by that:
// breaks where somebody may be waiting for its end.
status door_keep(world *w, PyObject *o);
status door_keep_items(world *w, PyObject *tuple);
// Whether a place can hold no other object, because what it hangs from is pinned and never changes.
bool door_pinned(const world *w, const source *s);
// Opens what is already known to be the very object (found on a type, imported).
PyObject *door_bring_pinned(world *w, source *s, PyObject *object);

// --- twins ---

// Whether an object is a container that twin_open makes a twin of.
bool twin_wanted(PyObject *o, record_kind *kind);
// An empty instance of a dict's class, by the C function that the class statement's own would call.
PyObject *twin_empty_dict(world *w, record *r, PyObject *dict);
int twin_dict_set(PyObject *twin, PyObject *key, PyObject *value); // NULL deletes
// Whether a key's hash comes from an address that another object has inside: it is or holds a
// partial, or a method of what has a twin.
bool key_hashed_otherwise(PyObject *key);
// Whether it is found by being the same object as another, so that it need not be the one that it
// was: only what it is the same as. And such a key, or any other, opened.
bool key_is_any(PyObject *key);
PyObject *open_any_key(world *w, source *s, PyObject *key);
// Whether the content of a twin is not what it was filled with; of a dict `names` knows.
bool twin_written(const record *r);
// The record's object is also found as `inside`.
status record_register(world *w, record *r, PyObject *inside);

// --- checks.c: guards that only this room needs ---

int checks_setup(void);
// An instance of a subclass of an immutable builtin (its class is guarded already): the builtin
// part, bit for bit.
status check_base_value(world *w, source *s, PyObject *o);
// A bound C method: the same C function, whatever it is bound to.
status check_c_method(world *w, source *s, PyObject *method);
// A bound slot wrapper: the same slot, whatever it is bound to.
status check_wrapper(world *w, source *s, PyObject *method);
// An immutable C object whose own == runs no Python code.
status check_equal(world *w, source *s, PyObject *o);
// A bytearray that may be resized, and that nobody writes to or reads from behind the trace.
status check_not_exported(world *w, source *s);
status check_cell_empty(world *w, source *s);
status check_slot_empty(world *w, source *s, Py_ssize_t offset);
status check_context_set(world *w, source *s, bool set);
status check_maxlen(world *w, source *s, PyObject *deque);
PyObject *deque_maxlen(PyObject *deque); // new reference
