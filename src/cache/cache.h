// Entries: compiled versions of (code, offset). The most recently used one is tried first.
#pragma once

#include "src/base/vec.h"

#include "src/world/world.h"

#include "src/plan/plan.h"

#include <stdatomic.h>

// Which numbers a trace is to leave open. References are strong, or NULL.
typedef struct entry_numbers {
    PyObject *open, *settled; // copies of those of the cache
    PyObject *named;          // see world_terms
    unsigned settings;        // of compiler_numbers
} entry_numbers;
void entry_numbers_clear(entry_numbers *n);
entry_numbers entry_numbers_copy(const entry_numbers *n);

typedef struct entry {
    struct entry *next; // the next dead entry
    guard_program *guards;
    plan *plan;
    PyObject *code;      // borrowed: the cache belongs to it
    long number;         // its number among the compiler's entries, in the order they were made
    PyObject *why;       // strong, or NULL: the break that it ends in, as people see it
    PyObject *misfits;   // strong, or NULL: why the earlier entries did not fit, list of str
    entry_numbers asked; // the numbers that its trace was asked to leave open
    bool dynamic;        // its guards leave a number open
    long hits;
    int held;     // number of runs of the entry now
    bool dropped; // it is out of its cache; the last run frees it
    bool empty;   // its graph has no operation: CPython runs the frame, unless the compiler keeps
                  // such entries
    bool told;    // the program asked in the trace whether it is compiled, and was told so
    bool last;    // a trace that had to stop early made it; other entries are tried first
    int depth;    // the most frames that the program has on each other in it, its own included
    // Frames below the first one, nearest first. The entry fits only if they are there, each
    // standing on its call. The trace continued in `reach` of them; guards look at `looked` of
    // them.
    int reach, looked;
    struct waiting_place {
        PyObject *code; // strong
        uint32_t unit;
        awaited how;
    } *below;
} entry;

// Entries of one rank. A hit writes only the word `recent`, so that threads without a common lock
// could search at the same time; the array changes only when an entry is added or removed.
typedef struct shelf {
    VEC(entry *) all; // in the order of their last use when the array last changed
    // The order of use since then: eight indexes in `all`, one byte each, the latest in the lowest
    // byte. If there are fewer entries, only the lowest `count` bytes are used.
    _Atomic(uint64_t) recent;
} shelf;

// Entries are tried in the order of their ranks: first those that continue in frames below, last
// those whose trace had to stop early.
// Each rank has two shelves: entries that leave no number open are tried before those that do.
enum { RANK_REACHES, RANK_ENDS, RANK_STOPPED, RANKS_ALL, RANKS = 2 * RANKS_ALL };

typedef struct cache {
    uint32_t unit;      // the code unit at which frames go on; 0: calls
    struct cache *next; // the next cache of the same code
    shelf shelves[RANKS];
    int registers; // the most registers that the guards of an entry need
    entry *dead;   // entries whose guards can never pass again; freed when Python code may run
    int count;
    int made;      // entries made so far, including those that died
    int reaching;  // how many of these continued in frames below, or would have
    int drops;     // number of dropped traces
    bool given_up; // no more entries are made: where none fits, the frame runs uncompiled
    bool off;      // and so do the functions that it calls
    // Slots (LOCAL's index) whose number was another one in each of several entries. No further
    // entry is made for such a number: a trace breaks where the program looks at it.
    Py_ssize_t varying[8];
    int varying_count;
    // Numbers that the next trace leaves open: strong, dict of a place's text → bits, as
    // guard_misfits has them; or NULL. And those that a trace had to settle all the same, likewise.
    // Where that happened twice, they are never left open again. (Once may be by chance: a batch as
    // large as some other size.)
    PyObject *open, *settled_once, *settled;
} cache;

// Visits each reference that the cache's entries have to a code object.
void cache_each_code(const cache *c, plan_visit visit, void *data);
// A new, empty cache. NULL with an exception.
cache *cache_new(void);
void cache_free(cache *c);
void cache_clear(cache *c);
// Finds an entry whose guards pass; next time it is tried first. Its registers are in `regs`, which
// has room for c->registers. NULL if no entry fits.
entry *cache_find(cache *c, guard_frame *f, PyObject **regs);
// Goes through the entries; NULL behind the last one. *at begins with 0. After cache_sort the
// entries come in the order in which they are tried.
entry *cache_next(const cache *c, uint32_t *at);
void cache_sort(cache *c);
// Adds an entry that a trace of this frame made, and takes its guards and plan over. On -1 (with an
// exception) they stay the caller's.
int cache_add(cache *c, const entry *new, const guard_frame *f, entry **added);
// Whether a trace may continue in a frame that waits: nobody holds its frame object, and its
// function still has its code.
bool cache_may_go_on(const guard_frame *f);
// Whether the frames below are those that the entry needs.
bool cache_is_place(const entry *e, const guard_frame *f);
// The number of entries that end with the frame. The limit does not count the others, which may be
// many.
int cache_alone(const cache *c);
// Why no entry fits this frame: new list of str.
PyObject *cache_reasons(cache *c, guard_frame *f);

// --- numbers that are left open (open.c) ---

// No entry fits this frame. If nothing but numbers keeps the one that fits best from fitting, they
// are left open from now on; `allowed`: bits of those that may be, see guard_misfits. New dict of
// those that were not left open before; NULL with an exception. `stuck`, likewise a new dict: those
// that differ, and cannot be left open, since earlier traces had to settle them.
PyObject *cache_open(cache *c, guard_frame *f, unsigned allowed, PyObject **stuck);
// Numbers of a place were left open, and their values mattered all the same.
status cache_settle(cache *c, PyObject *place, unsigned bits);
// The piece before has left numbers of a place open: so does the next trace.
status cache_inherit(cache *c, PyObject *place, unsigned bits);

// Finds slots whose number is the reason why entries do not fit, for `varying`.
void cache_find_varying(cache *c, guard_frame *f);

// Around a run of an entry: the entry is not freed meanwhile, even if somebody resets the cache.
void cache_hold(entry *e);
void cache_release(entry *e);
