// The world of one trace: what came in from outside, what stands for it inside, what was written.
// All of it dies with the trace.
//
// A value inside is a plain PyObject *. It is one of:
//   a lazy            stands for a place outside that was not looked at, or only in part
//   an opened value   immutable builtins: the object itself, guarded by value
//   an outside object user objects, functions, classes, modules, C objects: the object itself,
//                     with a record; its attributes are read through the door one by one
//   a twin            real list, tuple, dict, set … in place of an outside container, with a record
//   a stand-in        a tensor (src/torch), with a record if it came from outside
//   anything else     was made inside
// A raw outside container never gets inside.
#pragma once

#include "src/base/arena.h"
#include "src/base/map.h"

#include "src/report/report.h"

#include "src/py/py.h"
#include "src/py/raw.h"

#include "src/graph/graph.h"

#include "src/guard/guard.h"

#include "src/world/call.h"
#include "src/world/parts.h"
#include "src/world/standin.h"

typedef struct world {
    arena arena;
    guards *guards;
    graph *graph;           // strong
    struct graph *scope;    // strong: where calls are recorded: `graph`, or a body inside it
    void *torch;            // src/torch's own state for this trace, or NULL
    struct run *root, *run; // the outermost and the innermost frame of this trace
    world_terms terms;      // what the caller of the trace says about it
    world_input in;         // what came in from outside
    world_made made;        // what was made inside
    world_held held;        // what is held back until the graph has run
    world_facts facts;      // what has happened at least once
    world_clocks time;      // time, in instructions begun
    world_stopped stop;     // why the trace stopped
    world_roots roots;      // the frames that the trace begins in
    world_nesting inside;   // what code the trace is in now
    expectation expected;   // the frame that comes next; taken by who gets that frame
} world;

// A loop that waits for another thread ends only if it looks once more.
#define MOST_INSTRUCTIONS (1 << 27)

// The trace of this thread, or NULL. (Stand-ins that native code uses have no other way to it.)
extern __attribute__((tls_model("initial-exec"))) _Thread_local world *world_here;
extern PyTypeObject lazy_type;
extern PyObject *world_absent;      // a marker; never seen by Python code
extern PyObject *world_break_error; // class of the exception that unwinds native code at a break
int world_setup(PyObject *module);

world *world_new(void);
// Severs generators, lazies and stand-ins; frees everything.
void world_free(world *w);
// The trace is done: adds what can only be said now (which objects must be distinct). Before
// sealing.
status world_finish(world *w);
// Whether anything outside was written so far, and is held back.
bool world_wrote(const world *w);

// Ends the trace: sets the reason (the first one stays) and the unwinding exception. Always NULL,
// so that it can be returned; world_break_status is the same for functions that return a status.
PyObject *world_break(world *w, reason why, const char *format, ...);
status world_break_status(world *w, reason why, const char *format, ...);
// The same for a callable, shown without running code of the user's, and what is said behind it.
PyObject *world_break_at(world *w, reason why, PyObject *callable, const char *behind);
// The user's frames now: tuple of (filename, line, function name), outermost first. New reference.
PyObject *world_stack(world *w);
// Something inside changes, or native code runs that may change it or break.
static inline void world_touch(world *w) {
    w->time.touched = w->time.now;
}
// An object that cannot be made again comes to be now: where it would have to, the trace breaks
// before this.
status world_born(world *w, PyObject *o);
// A trace that is done again: it breaks before the instruction that was in the way, for the reason
// it had. Where an exception was in the way, what led to it stays guarded: else the entry would
// also take the calls that do not raise.
void world_again(world *w, world *before);
// The clock has come to `stop_at`.
void world_stop(world *w);
// Of a trace that has just broken: it is done again, and breaks before the instruction that began
// then, not where it did.
void world_break_earlier(world *w, uint64_t clock);
// A frame ends because the trace broke: what it holds is looked at, for an instruction that awaits
// the value of the frame above it.
void world_leave_frame(world *w, struct run *r);
// Whether an exception raised now leaves the trace.
bool world_nobody_handles(const world *w);
// The break for that. Of an exception the text is shown where that runs nobody's code.
void world_break_raised(world *w, PyObject *raised);
// Holds a call back; all of it is kept.
status world_hold_call(world *w, held_call c);
static inline bool world_sealed(const world *w, PyObject *o) {
    return w->held.calls.count > 0 && map_get(&w->held.sealed, map_key(o)) != NULL;
}
// Calls are recorded in a new body from now on; and in the graph around it again. What the body has
// in it goes, unless the caller keeps it.
status world_open_body(world *w);
void world_leave_body(world *w);

// --- moments (moment.c) ---

// A moment that the trace can be brought back to. `roots`: what the code that comes next is called
// with, beside what it gets at by itself. NULL with an exception.
typedef struct moment moment;
moment *world_mark(world *w, PyObject *const *roots, size_t count);
void moment_free(moment *m);
// Whether the code since then has changed something that it could get at; what was set back is no
// change. Calls that are held back are one. 1, 0, -1. (Of tensors and torch's state src/torch
// knows.)
int world_changed(const world *w, const moment *m);
// Undoes these changes: 1; 0: some of them cannot be undone, and nothing is; -1 with an exception
// or a break. Guards and what was opened stay, and so do clocks.
int world_rollback(world *w, const moment *m);

// Keeps `o` until the trace ends and gives it back; takes the reference. NULL with an exception.
PyObject *world_keep(world *w, PyObject *o);
// Whether plain Python, too, would keep an inside object alive at this point: the locals of the
// trace's frames lead to it. (World and arena may keep it longer.) False also where that would be
// long to find out.
bool world_holds(world *w, PyObject *o);

// --- the door (door.c) ---

static inline bool is_lazy(PyObject *o) {
    return Py_TYPE(o) == &lazy_type;
}

// Something from outside, not looked at: a new reference to the lazy of that source (one per
// source).
PyObject *door_load(world *w, source *s, PyObject *object);

// Looks at it as a whole, guarding type and value or making the twin; borrowed. A dict becomes its
// filled twin. NULL with an exception or a break.
PyObject *door_open_lazy(world *w, lazy *l);
static inline PyObject *door_open(world *w, PyObject *o) {
    if (!is_lazy(o))
        return o;
    lazy *l = (lazy *)o;
    return l->inside ? l->inside : door_open_lazy(w, l);
}

// Stages. Each guards only what it says.
// The type; borrowed. For values that are no lazies it is just their type (stand-ins: torch.Tensor
// …).
PyTypeObject *door_type(world *w, PyObject *o);
// a is b: 1, 0, -1.
int door_is(world *w, PyObject *a, PyObject *b);
// Truth of a value if it needs no code to be run: 1, 0; -1 error or break; -2: ask the object's own
// __bool__ or __len__.
int door_truth(world *w, PyObject *o);
// The record of a lazy exact dict (or OrderedDict, defaultdict) that is looked at by key only, type
// guarded; also of an opened dict twin. NULL without an exception if it is no such dict.
record *door_dict(world *w, PyObject *o);

// How many items a lazy tuple of values has that was not opened, type and length guarded; -1
// without an exception if it is none. And one of its items, not looked at.
Py_ssize_t door_items(world *w, PyObject *o);
PyObject *door_item(world *w, PyObject *o, Py_ssize_t index);

// Notes that something was read which can change: not a function, class, module or value.
void world_note_met(world *w, PyObject *value);
static inline void world_meet(world *w, PyObject *value) {
    if (w->time.trial != 0 && value != NULL)
        world_note_met(w, value);
}

// The record of an outside object, twin or stand-in; NULL: made inside (or immutable).
record *record_of(const world *w, PyObject *o);
// What an outside object is in place of is about to be changed.
static inline void record_write(world *w, PyObject *o) {
    record *r = record_of(w, o);
    if (r == NULL)
        return;
    w->held.writes++;
    r->written = true;
    if (r->names != NULL)
        r->names->written = true;
}
// Makes one; `inside` may be NULL. Registers both pointers. NULL with an exception.
record *record_new(world *w, record_kind kind, source *s, PyObject *outside, PyObject *inside);
// The program compared this object by identity: guards that it is the same object (IS, weakly).
status record_identity(world *w, record *r);
// It is looked up by its address among what is inside, and among twins: any other object does as
// well, if it is the same as the same others.
void record_hashed(world *w, record *r);
// The addresses themselves matter (the order of a set, the number that is a hash): all that were
// hashed so far, since what is no longer there may have left its mark.
status world_pin_hashed(world *w);
// Whether a value is an exact builtin immutable all the way down (None, bool, int, float, complex,
// str, bytes, Ellipsis, NotImplemented, range and slice of such, tuple and frozenset of such,
// code).
bool value_immutable(PyObject *o);
// Whether an object without a record may be one that an outside place could hold: what was made
// inside never is.
bool value_could_be_outside(const world *w, PyObject *o);
// Whether it is a NaN or a tuple with one in it: equal to itself only, and hashed by its address.
bool value_has_nan(PyObject *o);
// An immutable is given out: *place is where it was found, be it inside a tuple, so that this
// call's own object can be given out; NULL: a constant, or made inside. If there are several such
// places, that they have one object is guarded. `fixed`: the program may also have it from
// elsewhere, so that it is this object is guarded.
status value_give_out(world *w, PyObject *o, bool fixed, source **place);

// An outside object that did not come by a lazy: a function found on a type, the globals of a
// function. Opens at once: type guarded; returns the inside object, borrowed.
PyObject *door_bring(world *w, source *s, PyObject *object);

// --- addresses (address.c) ---

extern PyTypeObject address_type;
static inline bool is_address(PyObject *o) {
    return Py_TYPE(o) == &address_type;
}
// What stands for id() of an object that was made inside. New reference.
PyObject *address_new(world *w, PyObject *o);

// --- dicts and instance dicts (names.c) ---

names *names_of_dict(world *w, record *dict);
// Whether an outside dict has a tensor from outside as a key: it can be read by it.
bool names_have_tensor(const world *w, const record *dict, PyObject *key);
// Instance dict half of an outside object; NULL without an exception if it has no dict. If the dict
// exists as an object with a record of its own, it is that record's.
names *names_of_object(world *w, record *object);
// A dict found by GLOBALS, BUILTINS, DICT …: `s` is its own source; if `s` is of any other
// kind it is a function's, and the dict is its globals.
names *names_of_globals(world *w, source *s, PyObject *globals);
// Whether something of it is held back.
bool names_written(const names *n);
// New reference (a lazy, or a held-back value). NULL without an exception if absent; guarded either
// way.
PyObject *names_get(world *w, names *n, PyObject *key);
// value NULL deletes (the key must be there: ask names_get first). Held back.
status names_set(world *w, names *n, PyObject *key, PyObject *value);
// Makes the twin with all keys, order guarded; borrowed. For an instance dict this is what
// o.__dict__ is.
PyObject *names_fill(world *w, names *n);
// A lazy that stands for the instance dict itself: o.__dict__, vars(o), globals(). New reference.
PyObject *names_as_object(world *w, names *n);

// --- twins (twins.c) ---

// Opens an outside container; the record's `inside` is set, type and length guarded. ST_BREAK if
// its kind cannot be twinned.
status twin_open(world *w, record *r);
// Whether what lies at a place in a twin is still what it was filled with.
static inline bool twin_unchanged(PyObject *now, PyObject *initial) {
    return now == initial || (initial && is_lazy(initial) && ((lazy *)initial)->inside == now);
}

// --- cells, slots, context variables (places.c) ---

// New reference to the content; NULL without an exception if empty.
PyObject *cell_get(world *w, PyObject *cell);
status cell_set(world *w, PyObject *cell, PyObject *value); // NULL: empties
PyObject *slot_get(world *w, record *r, PyObject *descriptor);
status slot_set(world *w, record *r, PyObject *descriptor, PyObject *value);
// The gradient of a tensor from outside: what was set, borrowed, or NULL; and setting it.
PyObject *grad_pending(const record *tensor);
status grad_set(world *w, record *tensor, PyObject *value);
// What a context variable was set to; NULL without an exception if it is not set (guarded): then
// its own default, or the caller's, counts.
PyObject *context_get(world *w, PyObject *variable);
status context_set(world *w, PyObject *variable, PyObject *value); // NULL: unset

// --- classes (types.c) ---

// _PyType_Lookup through the door: borrowed, what the MRO has under that name, as an inside object
// (functions and descriptors are recorded), or NULL without an exception if absent. For classes
// made by Python code it is guarded either way; `raw` gets the raw object if it is not NULL.
PyObject *type_lookup(world *w, PyTypeObject *type, PyObject *name, PyObject **raw);
// Whether a class was made inside. Its bases are made inside, too, or builtin: nothing about it is
// guarded, and no source leads to it.
enum { MADE_CLASS = 2 }; // an address may have been a generator's
static inline bool type_is_made(const world *w, const PyTypeObject *type) {
    const uint64_t *made = map_get(&w->made.objects, map_key(type));
    return made != NULL && *made == MADE_CLASS;
}
// The source of a class that was met as the type of something, or NULL for builtin ones.
source *type_source(world *w, PyTypeObject *type);
// A class whose identity is known and whose MRO is relied on.
status type_guard_mro(world *w, PyTypeObject *type);

// --- tensors: what src/torch is asked and told, beside what stand-ins are (standin.h) ---

// How the door takes the objects of a C type.
typedef enum type_manner {
    TYPE_UNKNOWN,  // the extension does not know the type
    TYPE_FIXED,    // by identity: its objects never change
    TYPE_BY_VALUE, // any equal object will do
    TYPE_STATEFUL, // its objects change as they are used, and using one breaks
} type_manner;

typedef struct tensor_ops {
    const char *package; // the module that all of the extension's modules lie in
    type_manner (*manner)(PyTypeObject *t);
    bool (*is_tensor)(PyObject *o); // a real tensor of whatever class
    // Guards and makes the stand-in; new reference.
    PyObject *(*open)(world *w, source *s, PyObject *tensor);
    void (*sever)(world *w); // the trace ends
    // The trace has come to its end: puts torch's state back, and sets `switches` if the program
    // would have left it changed. Before the plan.
    status (*end)(world *w);
    // What comes out of the graph is known. ST_BREAK if the trace has to be done again for it.
    status (*outputs)(world *w, node *const *nodes, uint32_t count);
} tensor_ops;
extern const tensor_ops *world_tensors; // NULL as long as torch is not there

static inline type_manner world_manner(PyTypeObject *t) {
    return world_tensors ? world_tensors->manner(t) : TYPE_UNKNOWN;
}

// Whether an object is a tensor, or a tuple that has one in it.
static inline bool world_has_tensor(PyObject *o) {
    if (world_tensors == NULL)
        return false;
    for (Py_ssize_t i = 0; PyTuple_Check(o) && i < PyTuple_GET_SIZE(o); i++)
        if (world_has_tensor(PyTuple_GET_ITEM(o, i)))
            return true;
    return world_tensors->is_tensor(o);
}
