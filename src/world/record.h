// What a trace knows of one outside object: its record, the entries of a dict by key, places that
// hold one reference, and the lazy that stands for an object that the program has not looked at.
#pragma once

#include "src/base/vec.h"

#include "src/py/py.h"

#include "src/graph/expr.h"

#include "src/guard/guard.h"

typedef enum record_kind {
    RECORD_OBJECT,    // the object itself; attributes in `names` and `slots`
    RECORD_LIST,      // twin; `initial`
    RECORD_TUPLE,     // twin; `initial`. Also namedtuples and user subclasses
    RECORD_DICT,      // read by key through `names`; a twin once filled. Also OrderedDict,
                      // defaultdict, …
    RECORD_SET,       // twin; `initial`. Also frozenset
    RECORD_DEQUE,     // twin; `initial`
    RECORD_BYTEARRAY, // twin
    RECORD_ITERATOR,  // twin; `initial` are its fields, `layout` its numbers (py/iterators.h)
    RECORD_CELL,      // the cell itself; its content in `content`
    RECORD_TENSOR,    // stand-in
    RECORD_CONTEXT_VAR,
} record_kind;

// The entries of a dict, read by key, and their held-back changes. The dict is an object, or the
// instance dict of an object (which need not exist as an object itself). Each dict has one `names`,
// by whatever path the program reached it.
typedef struct names {
    PyObject *owner; // borrowed from the arena: the dict, or the object whose instance dict it is
    source *source;  // of the owner
    bool instance;   // the owner is an object
    PyObject *known; // dict (arena's): key → lazy, or world_absent; the keys that were read
    // dict (arena's): key → value, or world_absent for a deleted key; NULL: nothing was written
    PyObject *pending;
    PyObject *twin;    // dict (arena's): the whole dict, once it is filled; else NULL
    PyObject *initial; // dict (arena's): key → lazy, as the twin was filled; else NULL
    bool written;      // at least once, even if a later write restored the old value
    bool handles;      // its keys are handles (handles.c), which guards do not compare
} names;

// A place that holds one reference: a cell, a slot, a context variable.
typedef struct place {
    PyObject *initial; // lazy, or NULL if the place was empty or was not read
    PyObject *pending; // held-back value (arena's); world_absent: deleted; NULL: not written
    bool looked;       // the place was read
    bool empty;        // it was empty when it was read, and a guard checks that
} place;

typedef struct slot_place {
    PyObject *descriptor; // borrowed from the arena: member descriptor
    place place;
} slot_place;

typedef struct record {
    record_kind kind;
    source *source;    // the first source that led to the object
    PyObject *outside; // borrowed from the arena
    PyObject *inside;  // borrowed from the arena; NULL: the program has not needed a whole dict yet
    names *names;      // RECORD_DICT: entries; others: instance dict; NULL until needed
    names *attributes; // RECORD_DICT (class D(dict)): the instance dict; NULL until needed
    // The first items of a twin, in order: lazies; in sets the elements themselves.
    PyObject **initial;
    Py_ssize_t count;
    VEC(slot_place) slots;
    place content; // cells, context variables
    bool written;  // at least once, even if a later write restored the old value
    bool identity; // the program compared or hashed this object by identity
    bool hashed;   // the program found this object in a dict or set by its address
    bool pinned;   // a guard on `source` passes for this very object only
    bool ordered;  // sets: the twin iterates as the original does
    // Sets, iterators: the original's when it was opened (arena's). The original itself may have
    // changed when the trace ends: another thread runs, or a fake's code.
    PyObject *layout;
} record;

typedef struct lazy {
    PyObject_HEAD
    struct world *world; // NULL once the trace has ended: any use is an error then
    source *source;
    PyObject *outside; // strong
    PyObject *inside;  // strong; NULL until opened as a whole
    record *record;    // set once a container was read by key, or opened
    bool type_known;   // the type is guarded already
    bool is_number;    // number.h: it has an expression
    number number;     // then: what it is; `outside` is only its value in this call
} lazy;
