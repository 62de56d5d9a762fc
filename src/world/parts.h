// The parts of a world, each a struct. world.h puts them together and has their functions.
#pragma once

#include "src/base/map.h"
#include "src/base/vec.h"

#include "src/report/report.h"

#include "src/py/py.h"

#include "src/guard/guard.h"

#include "src/world/record.h"

// --- the terms: what the caller of the trace says about it ---

// A trace that is done again has the same terms.
typedef struct world_terms {
    bool whole;       // it may not break: what is better done outside is done all the same
    bool replayed;    // the graph's operations are run one by one, each seen by autograd
    bool recovering;  // all this is for a graph that failed: nobody asked for the break
    bool handling;    // whoever called the first frame handles an exception
    bool told_before; // a piece of this call that has run already was told that it is compiled
    bool showing;     // the first frame was called while a container is being shown (py_is_showing)
    const Py_ssize_t *varying; // borrowed: slots of the first frame (LOCAL's index) whose number
    int varying_count;         // is another one each time
    int watching;              // how deep in tools' own calls the thread was when the trace began
} world_terms;

// --- what came in from outside ---

// A result that was found in the cache of what functools.lru_cache made.
typedef struct cache_hit {
    source *cache, *link; // link: NULL if results lie in none
} cache_hit;

typedef struct world_input {
    source *function;   // root function
    map records;        // outside or inside pointer → record *
    VEC(record *) all;  // in order of opening
    VEC(names *) names; // in order of making: each held-back change of a dict is in one of them
    map lazies;         // source * → lazy *
    map dicts;  // outside dict → names *, also where only the owner of an instance dict was met
    map values; // opened immutable → struct value *: where it came from
    struct value *nans;    // where an opened NaN came from: containers compare by identity first
    struct value *holders; // and tuples and frozensets: their items are found when asked for
    map lookups;           // (type, name) → struct lookup *
    map fixed; // data found on C classes, which have it for good: pointer → 1, kept by the class
    VEC(cache_hit) hits;
    PyObject *computed; // dict (arena's): names of attributes that are not interned → themselves
    PyObject *states;   // set (arena's) of what was guarded of the process's state (states.c)
} world_input;

// --- what was made inside ---

typedef struct world_made {
    // Functions, mappingproxies, … and generators: pointer → 1; classes: pointer → MADE_CLASS. The
    // arena keeps all of them but generators.
    map objects;
    VEC(PyObject *) generators; // weak references; the living are severed at the end
} world_made;

// --- what is held back until the graph has run ---

// Changes of dicts are in `names`, those of cells, slots and context variables in `place`, and
// those of containers in their twins.

// A call that is held back: function(self) or function(self, argument). What it makes fills `made`,
// which stands for it inside, and is sealed: nothing can be known of its content.
typedef struct held_call {
    PyObject *function, *self; // borrowed from the arena
    PyObject *argument, *made; // likewise, or NULL
    uint64_t since;            // when it was held back
} held_call;

typedef struct world_held {
    VEC(held_call) calls; // in order
    map sealed;           // what they make, before it is made
    // strong: how torch's state is set as the trace leaves it, or NULL. A tuple of (C function,
    // arguments, C function that undoes it, arguments).
    PyObject *switches;
    PyObject *cached; // list (arena's): (function, key, result) of calls that lru_cache would keep
    uint64_t writes;  // how often something outside was written, tensors and torch's state too
} world_held;

// --- facts: true from the first time on ---

typedef struct world_facts {
    bool identity_mattered; // distinctness of all records is to be guarded
    bool class_written;     // some class has held-back changes
    bool addressed;         // id() of something made inside was asked for
    bool mutated_tensor;    // one that came from outside, or what shares its memory
    bool random;            // the graph draws random numbers
    bool told;              // the program asked whether it is compiled, and was told so
    bool shows;             // that no container is being shown is guarded
    bool met;               // while `trial` was set, something was read that can change
} world_facts;

// --- why the trace stopped ---

typedef struct world_stopped {
    bool broken;
    reason reason;
    PyObject *detail;        // strong, str
    PyObject *stack;         // strong, tuple of (filename, line, function), outermost first
    struct image *image;     // strong: innermost frame where it broke; NULL: it cannot go on there
    struct image *outermost; // borrowed from that chain
    PyObject *handled;       // borrowed: what the next frame out handles
    PyObject *awaited;       // strong: the object of the __init__ that was left last, or NULL
    struct run *broke_in;
    bool in_strict;   // it broke in a callable of another compile that must not break
    bool refused;     // torch did not take its arguments, and eager is likely to raise
    bool interrupted; // a signal handler raised: its exception is the user's, not the trace's
} world_stopped;

// --- time, in instructions begun ---

// What happened since an instruction began cannot be undone: a trace that breaks in it is done
// again, and breaks before it.
typedef struct world_clocks {
    uint64_t now;
    uint64_t touched;   // when something inside was last changed, or native code last ran
    uint64_t raised_at; // when the current exception was raised
    map born;           // object that may not survive a break → when it came to be
    uint64_t trial; // what is traced is thrown away: a break is one before this instruction; 0: no
    uint64_t again; // break before this instruction in a new trace; 0: no
    uint64_t stop_at;   // break before the instruction that begins then
    int stop_call;      // break before the instruction that records the call of this number; -1
    reason stop_reason; // of `stop_at`: why the trace before broke
    PyObject *stop_detail, *stop_stack; // strong
} world_clocks;

// --- roots: the frames that the trace begins in ---

// What a slot of a frame that goes on held when the trace began.
typedef struct root {
    source *source;
    PyObject *outside; // borrowed from the frame
    PyObject *inside;  // borrowed: its lazy; NULL for what was opened at once
    bool stays;        // the frame has it to its end, and lets it go then
} root;

typedef struct world_roots {
    guard_frame *start; // borrowed: the frame that the trace begins in, and those that await it
    int reached;        // how many frames below the first one the trace went on in
    int looked;         // at how many of them the guards look
    VEC(root) slots;    // what frames that go on held
    map dying;          // of that and its parts, what only these frames hold: see losses
} world_roots;

// --- what the trace is inside of: counts ---

typedef struct world_nesting {
    int strict;  // callables of other compiles that must not break
    int warning; // the making of an object of a category of warnings, which is no warning
    int quiet;   // code whose frames go to CPython: torch's own, imports, signal handlers
    int left;    // frames that the recursion limit allowed when the trace began
    int deepest; // most frames on top of each other so far
} world_nesting;
