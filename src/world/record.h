// What the world knows of one object from outside: its record, the entries of a dict by key, places
// that hold one reference, and the lazy that stands for a place nobody has looked at.
#pragma once

#include "src/base/vec.h"

#include "src/py/py.h"

#include "src/guard/guard.h"

typedef enum record_kind {
    RECORD_OBJECT,    // itself; attributes by `names` and `slots`
    RECORD_LIST,      // twin; `initial`
    RECORD_TUPLE,     // twin; `initial`. Also namedtuples and user subclasses
    RECORD_DICT,      // by key through `names`; twin once filled. Also OrderedDict, defaultdict, …
    RECORD_SET,       // twin; `initial`. Also frozenset
    RECORD_DEQUE,     // twin; `initial`
    RECORD_BYTEARRAY, // twin
    RECORD_CELL,      // itself; content by `content`
    RECORD_TENSOR,    // stand-in
    RECORD_CONTEXT_VAR,
} record_kind;

// A dict's entries, read by key and with held-back changes: of a dict, or of an object's instance
// dict (which need not exist as an object). Whatever path leads to a dict ends in the one `names`.
typedef struct names {
    PyObject *owner; // borrowed from the arena: the dict, or the object whose instance dict it is
    source *source;  // of the owner
    bool instance;   // the owner is an object
    PyObject *known; // dict (arena's): key → lazy, or world_absent; what was read by key
    // dict (arena's): key → value, or world_absent for a deleted key; NULL: nothing was written
    PyObject *pending;
    PyObject *twin;    // dict (arena's): has everything once it is filled, else NULL
    PyObject *initial; // dict (arena's): key → lazy at the time of filling, else NULL
    bool written;      // at least once, even if a later write restored the old value
} names;

// A place that holds one reference: a cell, a slot, a context variable.
typedef struct place {
    PyObject *initial; // lazy, or NULL if it was empty or not looked at
    PyObject *pending; // held-back value (arena's), world_absent for deleted, NULL: not written
    bool looked;       // `initial` was asked for
    bool empty;        // it was empty then, and that is guarded
} place;

typedef struct slot_place {
    PyObject *descriptor; // borrowed from the arena: member descriptor
    place place;
} slot_place;

typedef struct record {
    record_kind kind;
    source *source;    // the first that led here
    PyObject *outside; // borrowed from the arena
    PyObject *inside;  // borrowed from the arena; NULL as long as no whole was needed (dicts)
    names *names;      // RECORD_DICT: entries; others: instance dict; NULL until needed
    names *attributes; // RECORD_DICT (class D(dict)): the instance dict; NULL until needed
    // What a twin was filled with, in order: lazies; in sets the elements themselves.
    PyObject **initial;
    Py_ssize_t count;
    VEC(slot_place) slots;
    place content; // cells, context variables
    bool written;  // at least once, even if a later write restored the old value
    bool identity; // the program compared or hashed this object by identity
    bool hashed;   // the program found this object in a dict or set by its address
    bool pinned;   // a guard on `source` lets only this very object pass
    bool ordered;  // sets: the twin iterates as the original does
} record;

typedef struct lazy {
    PyObject_HEAD
    struct world *world; // NULL once the trace has ended: any use is an error then
    source *source;
    PyObject *outside; // strong
    PyObject *inside;  // strong; NULL until opened as a whole
    record *record;    // once a container was looked at by key, or opened
    bool type_known;   // guarded already
} lazy;
