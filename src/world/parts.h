// The parts of a world, each a struct. world.h puts them together and declares their functions.
#pragma once

#include "src/base/map.h"
#include "src/base/vec.h"

#include "src/report/report.h"

#include "src/py/py.h"

#include "src/guard/guard.h"

#include "src/world/record.h"

// --- the terms: what the caller of the trace says about it ---

// Numbers that only the graph knows: those of tensors (`item`), and sizes of what an operation gives
// (`nonzero`). Others end the graph.
enum world_captures { CAPTURE_SCALARS = 1, CAPTURE_SHAPES = 2 };

// A trace that is done again has the same terms.
typedef struct world_terms {
    bool whole;       // the trace may not break, so it also does what is better done outside of it
    bool replayed;    // the graph's operations run one by one, and autograd sees each
    bool recovering;  // the trace looks for the place where a graph failed; its break is no news to
                      // anybody
    bool handling;    // a caller of the first frame is handling an exception
    bool told_before; // an earlier piece of this call was told that it is compiled
    bool showing;     // the first frame was called while the thread makes the repr of a container
                      // (py_is_showing)
    const Py_ssize_t *varying; // borrowed: slots of the first frame (LOCAL's index) whose number
    int varying_count;         // is another one each time
    // borrowed, or NULL: dict of a place's text → the numbers of what lies there that are to be left
    // open: bits of number.h
    PyObject *symbolic;
    int captures;      // of world_captures: what values of tensors may be in the graph
    bool symbolic_all; // sizes of all inputs and all ints are to be left open, but for those that
                       // the next three leave out
    PyObject
        *settled;    // borrowed, or NULL: as `symbolic`, numbers that earlier traces had to settle
    bool parameters; // sizes of parameters may be left open
    bool modules;    // those of other tensors of modules may be before they were seen to change
    // borrowed, or NULL: called with the text of a place and its number or sizes, it returns what
    // the user's settings want symbolic there: bits of number.h
    PyObject *named;
    bool unhinted;  // nobody may rely on the values of sizes that are left open since they changed
    bool gradients; // backward passes may be in the graph
    bool lenient;   // a mark that cannot be kept is no error
    bool history;  // every operation runs on fakes that know what came before; no size is left open
    int recursion; // the backend raises the recursion limit to at least this
    int watching;  // how many calls of tools the thread was inside of when the trace
                   // began
} world_terms;

// --- what came in from outside ---

// A result that was found in the cache of a function wrapped by functools.lru_cache.
typedef struct cache_hit {
    source *cache, *link; // link: NULL if the cache has no links
} cache_hit;

typedef struct world_input {
    source *function;   // the function of the first frame
    map records;        // outside or inside pointer → record *
    VEC(record *) all;  // in order of opening
    VEC(names *) names; // in the order they were made; each held-back change of a dict is in one of
                        // them
    bool handles;       // some of them have handles for keys
    map lazies;         // source * → lazy *
    map dicts;  // outside dict → names *, even if the program only met the object whose instance
                // dict it is
    map values; // opened immutable → struct value *: where it came from
    struct value *nans;    // the sources of opened NaNs, since containers compare by identity first
    struct value *holders; // the sources of opened tuples and frozensets, whose items are found
                           // when needed
    map lookups;           // (type, name) → struct lookup *
    map fixed; // data found on C classes, which never change: pointer → 1; the class keeps it alive
    VEC(cache_hit) hits;
    PyObject *computed; // dict (arena's): names of attributes that are not interned → themselves
    PyObject *states;   // set (arena's) of the process's state that was guarded (states.c)
} world_input;

// --- numbers that are kept open ---

typedef struct symbol {
    source *place;
    number number;
    int since;         // guard_needed when it was made
    bool promised;     // the user said that it differs: settling it is an error
    bool excused;      // a limit of the engine's own settled it
    int64_t low, high; // the range that was promised
    PyObject *stack;   // borrowed from the arena, or NULL: where the program settled it
} symbol;

typedef struct world_numbers {
    sizes *sizes;               // what is known of them; NULL as long as there is none
    map sources;                // computed expression → source *
    VEC(lazy *) computed;       // what stands for them; the arena's
    VEC(struct symbol) symbols; // in the order in which they were made
    int guarded;                // how many of the conditions of `sizes` are guards
    int unbacked;               // how many symbols only the graph knows
    bool promises;              // some symbol is promised to stay open
} world_numbers;

// --- what was made inside ---

typedef struct world_made {
    // Functions, mappingproxies, … and generators: pointer → 1; classes: pointer → MADE_CLASS;
    // namespaces of code: pointer → MADE_NAMESPACE. The arena keeps all of them alive except
    // generators.
    map objects;
    VEC(PyObject *) generators; // weak references; generators that live at the end are severed
} world_made;

// --- what is held back until the graph has run ---

// `names` has the changes of dicts, `place` those of cells, slots and context variables; twins have
// those of containers.

// A call that is held back: function(self) or function(self, argument). Its result fills `made`,
// which stands for the result inside. `made` is sealed: its content is not known during the trace.
// A call that is put off is done behind all writes: function(*self), the last ones by `names`.
typedef struct held_call {
    PyObject *function, *self; // borrowed from the arena
    PyObject *argument, *made; // borrowed from the arena, or NULL
    PyObject *names;           // borrowed from the arena, or NULL: tuple of keywords
    bool later;                // it is put off
    Py_ssize_t nodes;          // of one that is put off: nodes behind these must not write
    uint64_t since;            // when it was held back
} held_call;

typedef struct world_held {
    VEC(held_call) calls; // in order
    map sealed;           // the objects that they will fill
    // strong: how to set torch's state as the trace leaves it, or NULL. A tuple of (C function,
    // arguments, C function that undoes it, arguments).
    PyObject *switches;
    PyObject *cached; // list (arena's): (function, key, result) of calls that lru_cache would keep
    uint64_t writes;  // how often something outside was written, including tensors and torch's
                      // state
} world_held;

// --- facts: true from the first time on ---

typedef struct world_facts {
    bool identity_mattered; // guards must check that all records are distinct objects
    bool class_written;     // some class has held-back changes
    bool addressed;         // the program called id() on an object made inside
    bool mutated_tensor;    // a tensor from outside was written, or one that shares its memory
    bool random;            // the graph draws random numbers
    bool told;              // the program asked whether it is compiled, and was told so
    bool shows;             // a guard checks that the thread makes no repr of a container
    bool assumed;           // the trace goes on as if an assertion about a tensor's value held
    bool handles_seen;      // other code than the library's may have seen handles (handles.c)
    bool met;               // while `trial` was set, the program read something that can change
} world_facts;

// --- why the trace stopped ---

typedef struct world_stopped {
    bool broken;
    reason reason;
    PyObject *detail;        // strong, str
    PyObject *stack;         // strong, tuple of (filename, line, function), outermost first
    struct image *image;     // strong: the innermost frame where it broke; NULL: the frames cannot
                             // go on there
    struct image *outermost; // borrowed from that chain
    PyObject *handled;       // borrowed: the exception that the next outer frame handles
    PyObject *awaited;       // strong: the object of the __init__ that was left last, or NULL
    struct run *broke_in;
    bool in_strict;     // it broke in a compiled callable that must not break
    bool refused;       // torch refused the arguments of an operation; plain Python is likely to
                        // raise, too
    bool wants_history; // the trace is to be done again with `terms.history`
    bool outdated;      // the trace is to be done again, since it has changed something outside for
                        // real (a lazy module)
    bool interrupted;   // a signal handler raised; its exception belongs to the user, not to the
                        // trace
} world_stopped;

// --- time, in instructions begun ---

// A trace cannot undo what an instruction has begun to do. A trace that breaks in the middle of an
// instruction is done again, and breaks before that instruction.
typedef struct world_clocks {
    uint64_t now;
    uint64_t touched;   // when an inside object last changed, or native code last ran
    uint64_t raised_at; // when the current exception was raised
    map born;           // object that may not survive a break → when it was made
    uint64_t trial;     // the code is traced on trial: a break in it becomes a break before this
                        // instruction; 0: no
    bool trial_told;    // the code on trial is one that only a compiled program runs
    uint64_t again;     // a new trace must break before this instruction; 0: no
    uint64_t stop_at;   // break before the instruction that begins at this time
    int stop_call;      // break before the instruction that records the call of this number; -1: no
    reason stop_reason; // of `stop_at`: why the earlier trace broke
    PyObject *stop_detail, *stop_stack; // strong
} world_clocks;

// --- roots: the frames that the trace begins in ---

// The object that a slot of a frame that goes on held when the trace began.
typedef struct root {
    source *source;
    PyObject *outside; // borrowed from the frame
    PyObject *inside;  // borrowed: its lazy; NULL if the object was opened at once
    bool stays;        // the frame holds the object to its end, and drops it then
} root;

typedef struct world_roots {
    guard_frame *start; // borrowed: the frame that the trace begins in, and the frames that wait
                        // for it
    int reached;        // the number of frames below the first one that the trace continued in
    int looked;         // the number of frames below the first one that the guards look at
    VEC(root) slots;    // the objects that frames which go on held
    map dying;          // of those objects and their parts, the ones that only these frames hold:
                        // see losses
} world_roots;

// --- what the trace is inside of: counts ---

typedef struct world_nesting {
    int strict;         // compiled callables that must not break
    int warning;        // calls that make an instance of a warning class without giving a warning
    PyCodeObject *text; // code that eval() is about to run, borrowed; its frame knows no function
    int quiet;          // code whose frames CPython runs: torch's own, imports, signal handlers
    int wary;           // quiet code that must not warn: the trace breaks if it does
    int caches;         // looking for a key in what functools.lru_cache keeps: the cache holds what
                        // the key holds, so guards may hold it as well
    int trials;         // functions of caches that are traced to see what they do
    int bare;           // which numbers of numpy's the arguments of a call may have (operands.c)
    int left;           // frames that the recursion limit still allowed when the trace began
    int deepest;        // the most frames that lay on each other so far
} world_nesting;
