// The world of one trace: the objects that came in from outside, the objects that stand for them
// inside, and the writes. All of it dies with the trace.
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

// A frame of the trail of the last node.
typedef struct trail_frame {
    PyCodeObject *code; // strong
    int at;             // its instruction
    PyObject *trail;    // strong, or NULL: no frame so far is one that people are shown
} trail_frame;

typedef struct world {
    arena arena;
    guards *guards;
    graph *graph;           // strong
    struct graph *scope;    // strong: the graph that gets calls now: `graph`, or a body inside it
    void *torch;            // src/torch's own state for this trace, or NULL
    struct run *root, *run; // the outermost and the innermost frame of this trace
    world_terms terms;      // what the caller says about the trace
    world_input in;         // what came in from outside
    world_numbers numbers;  // numbers that are kept open
    world_made made;        // what was made inside
    world_held held;        // what is held back until the graph has run
    world_facts facts;      // what has happened at least once
    world_clocks time;      // time, in instructions begun
    world_stopped stop;     // why the trace stopped
    world_roots roots;      // the frames that the trace begins in
    world_nesting inside;   // the kinds of code that the trace is inside of now
    expectation expected;   // the next frame; the function that gets the frame clears this
    VEC(trail_frame) trail; // outermost first
} world;

// The most instructions of a trace. A loop that waits for another thread would never end in a
// trace, which reads a variable only once.
#define MOST_INSTRUCTIONS (1 << 27)

// The trace of this thread, or NULL. (The slots of stand-ins, which native code calls, find the
// trace by it.)
extern __attribute__((tls_model("initial-exec"))) _Thread_local world *world_here;
extern PyTypeObject lazy_type;
extern PyObject *world_absent;      // a marker; never seen by Python code
extern PyObject *world_break_error; // class of the exception that unwinds native code at a break
int world_setup(PyObject *module);

world *world_new(void);
// Severs generators, lazies and stand-ins; frees everything.
void world_free(world *w);
// To be called at the end of a trace, before its guards are sealed: adds the guards that can only
// be known now (which objects must be distinct).
status world_finish(world *w);
// Whether the program has written to anything outside. Such writes are held back.
bool world_wrote(const world *w);
// Whether a write to a place is held back: an entry of a dict, or, without a key, all of an object.
bool world_holds_back(const world *w, PyObject *owner, PyObject *key);
// Whether the program has read or written the place.
bool world_touched(const world *w, PyObject *owner, PyObject *key);

// Breaks the trace: sets the reason (the first one stays) and the exception that unwinds. Always
// NULL, so that callers can return it; world_break_status is for functions that return a status.
PyObject *world_break(world *w, reason why, const char *format, ...);
status world_break_status(world *w, reason why, const char *format, ...);
// The same, with the name of a callable (found without running the user's code) and a text behind
// it as the detail.
PyObject *world_break_at(world *w, reason why, PyObject *callable, const char *behind);
// Strong, or NULL: tuple of the files of functions that are interpreted in the place of operators of
// torch's. Their frames are no frames of the program.
extern PyObject *world_own_files;
bool world_is_own(const PyCodeObject *code);
// The user's frames now: tuple of (filename, line, function name), outermost first. New reference.
PyObject *world_stack(world *w);
// The same for a node, whose rows are put together when somebody asks (src/graph/trail.h).
PyObject *world_trail(world *w);
void world_trail_free(world *w);
int breaks_setup(PyObject *module);
// Notes that something inside changes, or that native code runs which may change something or
// break.
static inline void world_touch(world *w) {
    w->time.touched = w->time.now;
}
// Notes that an object which a plan cannot make is made now. If a plan would have to make it, the
// trace is done again and breaks before this instruction.
status world_born(world *w, PyObject *o);
// Prepares a trace that is done again: it breaks before the instruction that was in the way, for
// the reason of the earlier break. If an exception was in the way, the guards that led to it stay;
// otherwise the entry would also serve calls that do not raise.
void world_again(world *w, world *before);
// Prepares a trace that is done again because the one before wants history, or is outdated.
void world_anew(world *w, const world *before);
// Breaks, because the clock has reached `stop_at`.
void world_stop(world *w);
// For a trace that has just broken: it is done again, and breaks before the instruction that began
// at this time instead.
void world_break_earlier(world *w, uint64_t clock);
// Takes the image of a frame that ends because the trace broke. The frame's instruction waits for
// the value of the frame above.
void world_leave_frame(world *w, struct run *r);
// Whether an exception raised now leaves the trace.
bool world_nobody_handles(const world *w);
// Breaks for that. The detail has the exception's text if making it runs no Python code.
void world_break_raised(world *w, PyObject *raised);
// Holds a call back, and keeps its objects alive.
status world_hold_call(world *w, held_call c);
static inline bool world_sealed(const world *w, PyObject *o) {
    return w->held.calls.count > 0 && map_get(&w->held.sealed, map_key(o));
}
// world_open_body: calls are recorded in a new body from now on. world_leave_body: they are
// recorded in the graph around the body again. The body dies then, unless the caller keeps it.
status world_open_body(world *w);
void world_leave_body(world *w);

// --- moments (moment.c) ---

// A moment to which the trace can return. `roots` are the arguments of the code that comes next; it
// can also reach other objects by itself. NULL with an exception.
typedef struct moment moment;
moment *world_mark(world *w, PyObject *const *roots, size_t count);
void moment_free(moment *m);
// Whether the code has changed something since that moment. A change that the code itself undid
// does not count; a call that is held back does. 1, 0, -1. (src/torch knows about tensors and
// torch's state.)
int world_changed(const world *w, const moment *m);
// The type of an object within the code's reach that counts as changed, since it cannot be compared;
// NULL: there is none.
const char *moment_unknown(const moment *m);
// Undoes these changes: 1; 0: some change cannot be undone, and none is; -1 with an exception or a
// break. Guards, opened objects and clocks stay as they are.
int world_rollback(world *w, const moment *m);

// Keeps `o` alive until the trace ends, and returns it. Takes the reference. NULL with an
// exception.
PyObject *world_keep(world *w, PyObject *o);
// Whether plain Python would keep an inside object alive at this point, too: the local variables of
// the trace's frames lead to it. (World and arena may keep it longer.) Also false if finding out
// would take long.
bool world_holds(world *w, PyObject *o);

// --- the door (door.c) ---

static inline bool is_lazy(PyObject *o) {
    return Py_TYPE(o) == &lazy_type;
}

// The lazy of a source (one per source), which guards nothing yet. New reference.
PyObject *door_load(world *w, source *s, PyObject *object);

// Opens a lazy as a whole: guards type and value, or makes the twin; borrowed. A dict becomes its
// filled twin. NULL with an exception or a break.
PyObject *door_open_lazy(world *w, lazy *l);
static inline PyObject *door_open(world *w, PyObject *o) {
    if (!is_lazy(o))
        return o;
    lazy *l = (lazy *)o;
    return l->inside ? l->inside : door_open_lazy(w, l);
}

// Questions that open a lazy only in part. Each guards only its answer. The type of a value;
// borrowed. (For a stand-in it is the type that it stands for.)
PyTypeObject *door_type(world *w, PyObject *o);
// a is b: 1, 0, -1.
int door_is(world *w, PyObject *a, PyObject *b);
// The truth of a value, if no code has to run for it: 1, 0; -1 error or break; -2: the object has
// its own __bool__ or __len__.
int door_truth(world *w, PyObject *o);
// The record of a lazy exact dict (or OrderedDict, defaultdict), to read it by key; guards the
// type. Also the record of a dict's twin. NULL without an exception if `o` is no such dict.
record *door_dict(world *w, PyObject *o);
// The names of an outside class, if `o` is the __dict__ of one that the program has not looked at as
// a whole. NULL without an exception if it is none.
names *door_namespace(world *w, PyObject *o);

// door_items: the length of an unopened lazy tuple of values; guards type and length. -1 without an
// exception if `o` is none. door_item: the lazy of one of its items.
Py_ssize_t door_items(world *w, PyObject *o);
PyObject *door_item(world *w, PyObject *o, Py_ssize_t index);

// Notes that the program read something which can change: no function, class, module or value.
void world_note_met(world *w, PyObject *value);
static inline void world_meet(world *w, PyObject *value) {
    if (w->time.trial != 0 && value)
        world_note_met(w, value);
}

// The record of an outside object, twin or stand-in; NULL if the object was made inside, or is
// immutable.
record *record_of(const world *w, PyObject *o);
// Notes that an outside object, or the object that a twin or stand-in stands for, is about to
// change.
static inline void record_write(world *w, PyObject *o) {
    record *r = record_of(w, o);
    if (!r)
        return;
    w->held.writes++;
    r->written = true;
    if (r->names)
        r->names->written = true;
}
// Makes a record, which both pointers lead to. `inside` may be NULL. NULL with an exception.
record *record_new(world *w, record_kind kind, source *s, PyObject *outside, PyObject *inside);
// The program compared this object by identity: guards that it is the same object (IS, weakly).
status record_identity(world *w, record *r);
// The program looked this object up by its address, among inside objects and twins. A later call
// may have another object in its place, if that one is identical to the same others.
void record_hashed(world *w, record *r);
// The addresses themselves matter (for the order of a set, or for the hash as a number). Guards the
// identity of all objects that were hashed so far, since even one that was removed may have had an
// influence.
status world_pin_hashed(world *w);
// Whether a value is an exact builtin immutable all the way down (None, bool, int, float, complex,
// str, bytes, Ellipsis, NotImplemented, range and slice of such, tuple and frozenset of such,
// code).
bool value_immutable(PyObject *o);
// Objects of an extension's C types that never change and live as long as the process: the door
// guards their identity. (Of other objects of foreign types it guards the type.)
status value_fix(PyObject *o);
bool value_is_fixed(PyObject *o);
// Whether an outside place could hold this object, which has no record. False for objects made
// inside.
bool value_could_be_outside(const world *w, PyObject *o);
// Whether a value is a NaN, or a tuple with a NaN in it: it equals only itself, and its hash is its
// address.
bool value_has_nan(PyObject *o);
// An immutable leaves the trace. *place is the source where it was found, perhaps inside a tuple,
// so that each call gives out its own object; NULL: a constant, or made inside. If it was found at
// several places, a guard checks that they hold one object. `fixed`: the program may also hold this
// object from elsewhere, so a guard checks that it is this very object.
status value_give_out(world *w, PyObject *o, bool fixed, source **place);

// Opens an outside object that has no lazy: a function found on a type, the globals of a function.
// Guards its type, and returns the inside object, borrowed.
PyObject *door_bring(world *w, source *s, PyObject *object);

// Guards that an object is equal by its C type's own comparison, which runs no Python code.
status check_equal(world *w, source *s, PyObject *o);

// --- addresses (address.c) ---

extern PyTypeObject address_type;
static inline bool is_address(PyObject *o) {
    return Py_TYPE(o) == &address_type;
}
// An object that stands for id() of an object made inside. New reference.
PyObject *address_new(world *w, PyObject *o);

// --- dicts and instance dicts (names.c) ---

names *names_of_dict(world *w, record *dict);
// Whether an outside dict has this tensor from outside as a key, so that it can be read by that
// key.
bool names_have_tensor(const world *w, const record *dict, PyObject *key);
// The instance dict of an outside object; NULL without an exception if it has none. If the dict has
// a record of its own, this is the `names` of that record.
names *names_of_object(world *w, record *object);
// A dict of globals. `s` is the dict's own source (GLOBALS, BUILTINS, DICT, …), or else the source
// of a function whose globals it is.
names *names_of_globals(world *w, source *s, PyObject *globals);
// Whether writes to the dict are held back.
bool names_written(const names *n);
// Reads a key: new reference to a lazy or a held-back value. NULL without an exception if the key
// is absent. A guard checks either answer.
PyObject *names_get(world *w, names *n, PyObject *key);
// Writes a key; the write is held back. `value` NULL deletes the key, which must exist (names_get
// says so).
status names_set(world *w, names *n, PyObject *key, PyObject *value);
// Makes the twin with all keys and guards their order; borrowed. The twin of an instance dict is
// o.__dict__ inside.
PyObject *names_fill(world *w, names *n);
// A lazy that stands for the dict itself: o.__dict__, vars(o), globals(). New reference.
PyObject *names_as_object(world *w, names *n);

// --- dicts whose keys are handles (handles.c) ---

// The attributes that hold such dicts, and the code of the library that looks at them; sets.
void handles_know(PyObject *names, PyObject *codes);
// An attribute is read, or a whole instance dict.
void handles_read(world *w, const names *n, PyObject *name);
void handles_show(world *w, const names *n);
// Whether the keys of a dict are only handles, now that it is read as a whole.
bool handles_only(world *w, const names *n);
// *answer: True or world_absent if the key is a handle, borrowed; else NULL.
status handles_ask(world *w, const names *n, PyObject *key, PyObject **answer);
// Guards the handles themselves, if other code may have seen them.
status handles_end(world *w);

// --- twins (twins.c) ---

// Opens an outside container: sets the record's `inside`, guards type and length. ST_BREAK if
// containers of its kind cannot have twins.
status twin_open(world *w, record *r);
// Whether the content of a twin has changed since it was filled. For dicts see names_written.
bool twin_written(const record *r);
// Whether an item of a twin is still the one that the twin was filled with.
static inline bool twin_unchanged(PyObject *now, PyObject *initial) {
    return now == initial || (initial && is_lazy(initial) && ((lazy *)initial)->inside == now);
}

// --- cells, slots, context variables (places.c) ---

// New reference to the content of a cell; NULL without an exception if the cell is empty.
PyObject *cell_get(world *w, PyObject *cell);
status cell_set(world *w, PyObject *cell, PyObject *value); // NULL: empties
PyObject *slot_get(world *w, record *r, PyObject *descriptor);
status slot_set(world *w, record *r, PyObject *descriptor, PyObject *value);
// The held-back gradient of a tensor from outside, borrowed, or NULL; and setting it.
PyObject *grad_pending(const record *tensor);
status grad_set(world *w, record *tensor, PyObject *value);
// The value of a context variable; NULL without an exception if the variable is not set. A guard
// checks either answer.
PyObject *context_get(world *w, PyObject *variable);
status context_set(world *w, PyObject *variable, PyObject *value); // NULL: unset

// --- classes (types.c) ---

// _PyType_Lookup through the door: looks a name up along the MRO. Borrowed: the inside object
// (functions and descriptors get records), or NULL without an exception if the name is absent. For
// classes that Python code made, a guard checks either answer. `raw`, if not NULL, gets the object
// as it is outside.
PyObject *type_lookup(world *w, PyTypeObject *type, PyObject *name, PyObject **raw);
// Whether a class has a name in its own namespace; types that can change get a guard. 1, 0, -1 with
// an exception or a break.
int type_has_own(world *w, PyTypeObject *class, PyObject *name);
// Whether a class was made inside: there are no guards about the class itself, and no source leads
// to it. Its bases may be from outside.
enum { MADE_CLASS = 2 }; // not 1: a dead generator may have had the same address
static inline bool type_is_made(const world *w, const PyTypeObject *type) {
    const uint64_t *made = map_get(&w->made.objects, map_key(type));
    return made && *made == MADE_CLASS;
}
// Whether a dict was made inside and is the globals or builtins of a frame.
enum { MADE_NAMESPACE = 3 };
static inline bool namespace_is_made(const world *w, const PyObject *dict) {
    const uint64_t *made = map_get(&w->made.objects, map_key(dict));
    return made && *made == MADE_NAMESPACE;
}
// Makes it one; the world keeps it.
status namespace_make(world *w, PyObject *dict);
// Notes what the namespace of a builtin class has, so that the program may see all of it.
status type_fix_namespace(world *w, PyTypeObject *type);
// The source of a class that the trace met as the type of an object; NULL for builtin classes.
source *type_source(world *w, PyTypeObject *type);
// Guards the MRO of a class whose identity is guarded already.
status type_guard_mro(world *w, PyTypeObject *type);

// --- tensors: functions of src/torch (those of stand-ins are in standin.h) ---

// How the door takes the objects of a C type.
typedef enum type_manner {
    TYPE_UNKNOWN,  // the extension does not know the type
    TYPE_FIXED,    // guarded by identity: its objects never change
    TYPE_BY_VALUE, // guarded by value: an equal object will do
    TYPE_STATEFUL, // guarded by type: its objects change as they are used, and using one breaks
} type_manner;

typedef struct tensor_ops {
    const char *package; // the package that holds all modules of the extension
    type_manner (*manner)(PyTypeObject *t);
    bool (*is_tensor)(PyObject *o);          // a real tensor, of any class
    bool (*is_model)(PyObject *o);           // a torch.nn.Module, or a class of them
    bool (*gives)(const PyTypeObject *type); // operations make tensors of this class
    // Guards a tensor and makes its stand-in; new reference.
    PyObject *(*open)(world *w, source *s, PyObject *tensor);
    // Whether an object is an array of numpy's; and the same as `open` for one. NULL without an
    // exception or a break: no graph can hold this array.
    bool (*is_array)(PyObject *o);
    PyObject *(*open_array)(world *w, source *s, PyObject *array);
    // A function of numpy's is called with a stand-in for an array among its arguments.
    bool (*is_array_standin)(PyObject *o);
    PyObject *(*call_array)(world *w, const struct call *c);
    void (*sever)(world *w); // the trace ends
    // Called at the end of the trace, before the plan is made: puts torch's state back, and sets
    // `switches` if the program would have left the state changed.
    status (*end)(world *w);
    // Whether all sizes that the user marked are still open, or an exception says which are not.
    // `whose`: who has decided last, "trace" or "backend".
    status (*promises)(world *w, const char *whose);
    // Tells the outputs of the graph. ST_BREAK if the trace has to be done again because of them.
    status (*outputs)(world *w, node *const *nodes, uint32_t count);
    // The node of an unbacked number, which the graph computes; borrowed. NULL with a break or an
    // exception.
    node *(*number)(world *w, number n);
    // The graph checks a bool about numbers that only the graph knows, from here on.
    status (*check)(world *w, number truth);
    // Called before an attribute of an object is read whose class has __getattr__: an attribute that
    // the library makes at its first use is made now.
    status (*prepare)(PyObject *o, PyObject *name);
    // Whether the thread's next call of the library has to be the program's own.
    bool (*is_taken)(void);
} tensor_ops;
extern const tensor_ops *world_tensors; // NULL until torch is attached

static inline type_manner world_manner(PyTypeObject *t) {
    return world_tensors ? world_tensors->manner(t) : TYPE_UNKNOWN;
}

// Whether an object is a tensor, or a tuple that has one in it.
static inline bool world_has_tensor(PyObject *o) {
    if (!world_tensors)
        return false;
    for (Py_ssize_t i = 0; PyTuple_Check(o) && i < PyTuple_GET_SIZE(o); i++)
        if (world_has_tensor(PyTuple_GET_ITEM(o, i)))
            return true;
    return world_tensors->is_tensor(o);
}
