// The world of one trace: what came in from outside, what stands for it inside, what was written.
// All of it dies with the trace.
//
// A value inside is a plain PyObject *. It is one of:
//   a lazy            stands for a place outside that was not looked at, or only in part
//   an opened value   immutable builtins: the object itself, guarded by value
//   an outside object user objects, functions, classes, modules, C objects: the object itself, with
//   a
//                     record; its attributes are read through the door one by one
//   a twin            real list, tuple, dict, set … in place of an outside container, with a record
//   a stand-in        a tensor (src/torch), with a record if it came from outside
//   anything else     was made inside
// A raw outside container never gets inside.
#pragma once

#include "src/base/arena.h"
#include "src/base/map.h"
#include "src/base/vec.h"

#include "src/report/report.h"

#include "src/py/py.h"
#include "src/py/raw.h"

#include "src/graph/graph.h"

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
    PyObject
        *pending; // dict (arena's): key → value, or world_absent for deleted; NULL: nothing written
    PyObject *twin;    // dict (arena's): has everything once it is filled, else NULL
    PyObject *initial; // dict (arena's): key → lazy at the time of filling, else NULL
    bool written;      // at some time, be it that nothing is left of it
} names;

// A result that was found in the cache of what functools.lru_cache made.
typedef struct cache_hit {
    source *cache, *link; // link: NULL if results lie in none
} cache_hit;

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
    PyObject *
        *initial; // what a twin was filled with, in order: lazies; in sets the elements themselves
    Py_ssize_t count;
    VEC(slot_place) slots;
    place content; // cells, context variables
    bool written;  // at some time, be it that nothing is left of it
    bool identity; // what object this is mattered
    bool hashed;   // by its address, to be found among others: which of them are the same mattered
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

// A call that is held back: function(self) or function(self, argument). What it makes fills `made`,
// which stands for it inside, and is sealed: nothing can be known of its content.
typedef struct held_call {
    PyObject *function, *self; // borrowed from the arena
    PyObject *argument, *made; // likewise, or NULL
    uint64_t since;            // when it was held back
} held_call;

// What a slot of a frame that goes on held when the trace began.
typedef struct root {
    source *source;
    PyObject *outside; // borrowed from the frame
    PyObject *inside;  // borrowed: its lazy; NULL for what was opened at once
    bool stays;        // the frame has it to its end, and lets it go then
} root;

typedef struct world {
    arena arena;
    guards *guards;
    graph *graph;      // strong
    map records;       // outside or inside pointer → record *
    VEC(record *) all; // in order of opening
    VEC(names *)
    names;      // all of them, in order of making: every held-back change of a dict is in one
    map lazies; // source * → lazy *
    map dicts;  // outside dict → names *, also where only the owner of an instance dict was met
    map values; // opened immutable → struct value *: where it came from
    struct value *nans;    // where an opened NaN came from: containers compare by identity first
    struct value *holders; // and tuples and frozensets: their items are found when asked for
    map lookups;           // (type, name) → struct lookup *
    map made;  // functions, mappingproxies, … made inside: pointer → 1, kept by the arena, and
               // generators; classes: pointer → MADE_CLASS
    map fixed; // data found on C classes, which have it for good: pointer → 1, kept by the class
    VEC(PyObject *)
    generators;           // weak references to those made inside; the living are severed at the end
    VEC(held_call) calls; // held back, in order
    map sealed;           // what they make, before it is made
    source *function;     // root function
    struct run *root, *run; // the outermost and the innermost frame of this trace
    // Time, in instructions begun. What happened since an instruction began cannot be undone:
    // a trace that breaks in it is done again, and breaks before it.
    uint64_t clock;
    uint64_t touched;      // when something inside was last changed, or native code last ran
    uint64_t stop_at;      // break before the instruction that begins then
    int stop_call;         // break before the instruction that records the call of this number; -1
    bool recovering;       // all this is for a graph that failed: nobody asked for the break
    uint64_t writes;       // how often something outside was written, tensors and torch's state too
    uint64_t raised_at;    // when the current exception was raised
    map born;              // object that may not survive a break → when it came to be
    int thin, tail;        // how the frame that comes next gives its value; of the call being made
    PyObject *made_object; // borrowed: what the __init__ that comes next is for
    // why the trace stopped
    bool broken;
    reason reason;
    PyObject *detail;        // strong, str
    PyObject *stack;         // strong, tuple of (filename, line, function), outermost first
    struct image *image;     // strong: innermost frame where it broke; NULL: it cannot go on there
    struct image *outermost; // borrowed from that chain
    PyObject *handled;       // borrowed: what the next frame out handles
    PyObject *awaited;       // strong: the object of the __init__ that was left last, or NULL
    struct run *broke_in;
    uint64_t trial; // what is traced is thrown away: a break is one before this instruction; 0: no
    bool met;       // meanwhile something was read that can change
    uint64_t again; // break before this instruction in a new trace; 0: no
    reason stop_reason;                 // of `stop_at`: why the trace before broke
    PyObject *stop_detail, *stop_stack; // strong
    bool identity_mattered;             // distinctness of all records is to be guarded
    bool class_written;                 // some class has held-back changes
    bool addressed;                     // id() of something made inside was asked for
    bool mutated_tensor;                // one that came from outside, or what shares its memory
    bool random;                        // the graph draws random numbers
    int strict;                // callables of other compiles are being called that must not break
    bool strict_break;         // it broke in one
    bool whole;                // it may not break: what is better done outside is done all the same
    bool replayed;             // the graph's operations are run one by one, each seen by autograd
    const Py_ssize_t *varying; // borrowed: slots of the first frame (LOCAL's index) whose number
    int varying_count;         // is another one each time
    bool handling;             // whoever called the first frame handles an exception
    bool asked;                // the program asked whether it is compiled, and was told so
    bool asked_before;         // so did a piece of this call that has run already
    bool refused;              // torch did not take its arguments, and eager is likely to raise
    bool showing;     // the first frame was called while a container is being shown (py_is_showing)
    bool shows;       // that none is, is guarded
    bool interrupted; // a signal handler raised: its exception is the user's, not the trace's
    void *torch;      // src/torch's own state for this trace, or NULL
    // strong: how torch's state is set as the trace leaves it, or NULL. A tuple of (C function,
    // arguments, C function that undoes it, arguments).
    PyObject *switches;
    PyObject
        *expected; // borrowed: function or generator whose frame an instruction of ours asked for
    Py_ssize_t positional; // of that call: how many arguments were given by position
    PyObject *keywords;    // borrowed, or NULL: and the names of the others
    guard_frame *start;    // borrowed: the frame that the trace begins in, and those that await it
    int to_come;           // how many of these are still to be made, outermost first
    int reached;           // how many frames below the first one the trace went on in
    int looked;            // and at how many the guards look
    VEC(root) roots;       // what frames that go on held
    map dying;             // of that and its parts, what only these frames hold: see losses
    VEC(cache_hit) hits;
    PyObject *cached; // list (arena's): (function, key, result) of calls that lru_cache would keep
    PyObject *states; // set (arena's) of what was guarded of the process's state (states.c)
    int making_warning; // an object of a category of warnings is made, which is no warning
    int quiet;          // frames go to CPython: torch's own Python code, imports, signal handlers
    int depth;          // nested interpreter calls made by the call room
    int watching;       // how deep in tools' own calls the thread was when the trace began
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
    w->touched = w->clock;
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
    return w->calls.count > 0 && map_get(&w->sealed, map_key(o)) != NULL;
}
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
    if (w->trial != 0 && value != NULL)
        world_note_met(w, value);
}

// The record of an outside object, twin or stand-in; NULL: made inside (or immutable).
record *record_of(const world *w, PyObject *o);
// What an outside object is in place of is about to be changed.
static inline void record_write(world *w, PyObject *o) {
    record *r = record_of(w, o);
    if (r == NULL)
        return;
    w->writes++;
    r->written = true;
    if (r->names != NULL)
        r->names->written = true;
}
// Makes one; `inside` may be NULL. Registers both pointers. NULL with an exception.
record *record_new(world *w, record_kind kind, source *s, PyObject *outside, PyObject *inside);
// This object's identity mattered: guards it (IS, weakly).
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
// A dict found by GLOBALS, BUILTINS, MODULE_DICT …: `s` is its own source; if `s` is of any other
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
    const uint64_t *made = map_get(&w->made, map_key(type));
    return made != NULL && *made == MADE_CLASS;
}
// The source of a class that was met as the type of something, or NULL for builtin ones.
source *type_source(world *w, PyTypeObject *type);
// A class whose identity is known and whose MRO is relied on.
status type_guard_mro(world *w, PyTypeObject *type);

// --- tensors: the one way from here to src/torch ---

typedef struct tensor_ops {
    bool (*is_tensor)(PyObject *o); // a real tensor of whatever class
    bool (*is_standin)(PyObject *o);
    PyTypeObject *(*type_of)(PyObject *standin); // what type() answers
    // Guards and makes the stand-in; new reference.
    PyObject *(*open)(world *w, source *s, PyObject *tensor);
    // Attributes of a stand-in.
    PyObject *(*get)(world *w, PyObject *standin, PyObject *name);
    int (*set)(world *w, PyObject *standin, PyObject *name, PyObject *value);
    // A callable that torch's tables know (builtins of torch._C, methods of tensors, torch
    // functions kept whole). *handled is false, and NULL returned, if it is none of them.
    PyObject *(*call)(world *w, PyObject *callable, PyObject *const *args, size_t given,
                      PyObject *keywords, bool *handled);
    // Operators and subscripts where at least one operand is a stand-in.
    PyObject *(*binary)(world *w, int kind, PyObject *left, PyObject *right);
    PyObject *(*unary)(world *w, PyObject *operator_name, PyObject *o);
    PyObject *(*compare)(world *w, PyObject *left, PyObject *right, int kind);
    PyObject *(*getitem)(world *w, PyObject *o, PyObject *key);
    int (*setitem)(world *w, PyObject *o, PyObject *key, PyObject *value);
    // A node that fails if the tensor is not true: 1; 0: there is none for such a tensor; -1.
    int (*check)(world *w, PyObject *standin, PyObject *message);
    // The graph input or node a stand-in stands for; borrowed.
    node *(*node_of)(PyObject *standin);
    // What was set on a tensor made inside: dict, borrowed; NULL for nothing.
    PyObject *(*attrs_of)(PyObject *standin);
    void (*sever)(world *w); // the trace ends
    // The trace has come to its end: puts torch's state back, and sets `switches` if the program
    // would have left it changed. Before the plan.
    status (*end)(world *w);
    // What comes out of the graph is known. ST_BREAK if the trace has to be done again for it.
    status (*outputs)(world *w, node *const *nodes, uint32_t count);
    // A stand-in was stored in a local or cell of that name: its node is called so, once. NULL: the
    // stand-in that an operation gave back was dropped at once.
    void (*named)(world *w, PyObject *standin, PyObject *name);
} tensor_ops;
extern const tensor_ops *world_tensors; // NULL as long as torch is not there

// Whether an object is a tensor, or a tuple that has one in it.
static inline bool world_has_tensor(PyObject *o) {
    if (world_tensors == NULL)
        return false;
    for (Py_ssize_t i = 0; PyTuple_Check(o) && i < PyTuple_GET_SIZE(o); i++)
        if (world_has_tensor(PyTuple_GET_ITEM(o, i)))
            return true;
    return world_tensors->is_tensor(o);
}

static inline bool is_standin(PyObject *o) {
    return world_tensors != NULL && world_tensors->is_standin(o);
}
