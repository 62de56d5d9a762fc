// Entries: compiled versions of (code, offset), most recently used first.
#pragma once

#include "src/base/vec.h"

#include "src/world/world.h"

#include "src/plan/plan.h"

#include <stdatomic.h>

typedef struct entry {
    struct entry *next; // of the dead
    guard_program *guards;
    plan *plan;
    PyObject *code;    // borrowed: the cache belongs to it
    long number;       // of those of its compiler, in the order they were made
    PyObject *why;     // strong, or NULL: the break it ends in, as people are told of it
    PyObject *misfits; // strong, or NULL: why the entries before it did not fit, list of str
    long hits;
    int held;     // runs of it now
    bool dropped; // out of its cache: the last run frees it
    bool empty;   // no operation: the frame is left to CPython, unless kept
    bool told;    // its trace was told that it is compiled
    bool last;    // made by a trace that had to stop early: others are tried first
    int depth;    // frames that the program has on top of each other in it, its own included
    // Frames below the first one, nearest first: they must be there, each standing on its call. Its
    // trace went on in `reach` of them; guards may look at more.
    int reach, looked;
    struct waiting_place {
        PyObject *code; // strong
        uint32_t unit;
        bool init;
    } *below;
} entry;

// Entries of one rank. A hit writes nothing but the word `recent`, so that threads without a common
// lock could look at the same time; the array changes only where an entry comes or goes.
typedef struct shelf {
    VEC(entry *) all; // in the order of their last use, as it was when the array last changed
    // The order of use since then: eight indexes into `all`, a byte each, the latest lowest. The
    // first `count` bytes count where there are fewer entries.
    _Atomic(uint64_t) recent;
} shelf;

// Entries are tried in the order of their ranks: first those that go on in frames below, last those
// whose trace had to stop early.
enum { RANK_REACHES, RANK_ENDS, RANK_STOPPED, RANKS };

typedef struct cache {
    uint32_t unit;      // where frames of its code go on; 0: they are called
    struct cache *next; // of the same code
    shelf shelves[RANKS];
    int registers; // the most that guards of its entries need
    entry *dead;   // can never pass again; freed where code may run
    int count;
    int made;      // entries ever, with those that died with what they held weakly
    int reaching;  // of these, how many went on in frames below, or would have
    int drops;     // traces dropped
    bool given_up; // limit reached: the frame runs uncompiled
    bool off;      // and so does all that it calls
    // Slots (LOCAL's index) whose number differed in each of several entries. No further entry is
    // made for such a number: a trace breaks where the program looks at it.
    Py_ssize_t varying[8];
    int varying_count;
} cache;

// Each reference that its entries have to a code object.
void cache_each_code(const cache *c, plan_visit visit, void *data);
// The cache of a compiled callable and a code object; made when missing. NULL with an exception.
cache *cache_new(void);
void cache_free(cache *c);
void cache_clear(cache *c);
// The entry whose guards pass (the first to be tried next time), with its registers in `regs` (room
// for c->registers). NULL if there is none.
entry *cache_find(cache *c, guard_frame *f, PyObject **regs);
// One entry after another; NULL behind the last. *at begins with 0. After cache_sort they come in
// the order in which they are tried.
entry *cache_next(const cache *c, uint32_t *at);
void cache_sort(cache *c);
// Takes over guards and plan of an entry that is otherwise set up, made by a trace of this frame.
// -1 with an exception, and they stay the caller's.
int cache_add(cache *c, const entry *new, const guard_frame *f, entry **added);
// Whether a frame that waits may be left for another one: nobody looks at it, and its function
// still has its code.
bool cache_may_go_on(const guard_frame *f);
// Whether the frames below stand as the entry needs them.
bool cache_is_place(const entry *e, const guard_frame *f);
// Entries that end with the frame: the others do not count, they may be many.
int cache_alone(const cache *c);
// Why none of the entries for this place fits now: new list of str.
PyObject *cache_reasons(cache *c, guard_frame *f);

// Looks for slots whose number is what keeps entries from fitting.
void cache_find_varying(cache *c, guard_frame *f);

// An entry that is being run is not freed meanwhile, whoever resets the cache.
void cache_hold(entry *e);
void cache_release(entry *e);
