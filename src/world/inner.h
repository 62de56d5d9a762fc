// Declarations for the files of this room only.
#pragma once

#include "src/world/world.h"

// --- types that CPython does not declare (types.c) ---

extern PyTypeObject *type_deque, *type_defaultdict, *type_partial, *type_enum;
extern PyTypeObject *type_typing; // of typing's forms and aliases: List, List[int], Any
int types_setup(void);

// The object at `s` has this class, and a guard checks that. The class gets a record if Python code
// can change it.
status type_met(world *w, source *s, PyTypeObject *type);

// A source of an opened immutable. One object may have several.
typedef struct value {
    source *source;
    PyObject *object; // the arena keeps it alive
    struct value *next;
    struct value *next_nan;    // the next in world.in.nans
    struct value *next_holder; // the next in world.in.holders
} value;

// --- the door ---

// Remembers the source of an opened value, in case the program asks for its identity. Adds a guard
// only for a NaN.
status value_note(world *w, source *s, PyObject *o);
// The same for a key of a dict or an element of a set, whose guards pass for one interned str only.
status value_note_key(world *w, source *s, PyObject *o);

// Guards the type of the object at `s`, and makes the type known to the world.
status door_guard_type(world *w, source *s, PyObject *object);
// An object with a record was found at one more place. `pinned`: a guard there passes for this
// object only.
status door_again(world *w, record *r, source *s, bool pinned);
// A guard is going to hold this object. If the object cannot have weak references, the guard keeps
// it alive, so this breaks if somebody may wait for the object's end.
status door_keep(world *w, PyObject *o);
status door_keep_items(world *w, PyObject *tuple);
// Whether a place can hold no other object, because its parent is pinned and never changes.
bool door_pinned(const world *w, const source *s);
// Opens an object that is known to be the same in every call (found on a type, imported).
PyObject *door_bring_pinned(world *w, source *s, PyObject *object);
// The same, but a number that is kept open (door_number) stays a lazy.
PyObject *door_bring_number(world *w, source *s, PyObject *object);

// --- twins ---

// Whether an object is a container for which twin_open makes a twin.
bool twin_wanted(PyObject *o, record_kind *kind);
// Whether an iterator of C code can have a twin: so can all that it goes through.
bool twin_of_iterator_wanted(const world *w, PyObject *o);
bool twin_of_iterator_written(const record *r);
// Makes an empty instance of a dict's class, by the C function that the class's own tp_new calls.
PyObject *twin_empty_dict(world *w, record *r, PyObject *dict);
int twin_dict_set(PyObject *twin, PyObject *key, PyObject *value); // NULL deletes
// Whether a key's hash depends on the address of an object that is another object inside: the key
// is or holds a partial, or a method of an object that has a twin.
bool key_hashed_otherwise(PyObject *key);
// Whether a key is found by its identity alone, so that a later call may have another object there,
// if that one is identical to the same others. And opening such a key, or any other.
bool key_is_any(PyObject *key);
PyObject *open_any_key(world *w, source *s, PyObject *key);
// Makes the record also the record of `inside`.
status record_register(world *w, record *r, PyObject *inside);

// --- checks.c: guards that only this room needs ---

int checks_setup(void);
// Guards the builtin part of an instance of a subclass of an immutable builtin, bit for bit. (Its
// class is guarded already.)
status check_base_value(world *w, source *s, PyObject *o);
// Guards the C function of a bound C method, but not the object that it is bound to.
status check_c_method(world *w, source *s, PyObject *method);
// Guards the slot of a bound slot wrapper, but not the object that it is bound to.
status check_wrapper(world *w, source *s, PyObject *method);
// Guards that a bytearray may be resized: nobody else has a view of its memory.
status check_not_exported(world *w, source *s);
status check_iterator(world *w, source *s, PyObject *iterator);
status check_cell_empty(world *w, source *s);
status check_slot_empty(world *w, source *s, Py_ssize_t offset);
status check_context_set(world *w, source *s, bool set);
status check_maxlen(world *w, source *s, PyObject *deque);
PyObject *deque_maxlen(PyObject *deque); // new reference
