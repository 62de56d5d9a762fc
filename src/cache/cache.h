// Entries: compiled versions of (code, offset), most recently used first.
#pragma once

#include "src/world/world.h"

#include "src/plan/plan.h"

typedef struct entry {
    struct entry *next;
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
    bool last;    // made by a trace that had to stop early: others are tried first
} entry;

typedef struct cache {
    uint32_t unit;      // where frames of its code go on; 0: they are called
    struct cache *next; // of the same code
    entry *entries;
    entry *dead; // can never pass again; freed where code may run
    int count;
    int made;          // entries ever, with those that died with what they held weakly
    int drops;         // traces dropped
    bool given_up;     // limit reached: the frame runs uncompiled
    PyObject *reasons; // strong, list of str: recompile and drop reasons, bounded
} cache;

// The cache of a compiled callable and a code object; made when missing. NULL with an exception.
cache *cache_new(void);
void cache_free(cache *c);
void cache_clear(cache *c);
// The entry whose guards pass (moved to the front), with its registers in `regs` (room for
// cache_registers). NULL if there is none.
entry *cache_find(cache *c, guard_frame *f, PyObject **regs);
int cache_registers(const cache *c);
// Takes guards and plan over; `last`: see entry. -1 with an exception, and they stay the caller's.
int cache_add(cache *c, guard_program *guards, plan *plan, bool last, entry **added);
// Notes a reason; the oldest goes when there are many. -1 with an exception.
int cache_note(cache *c, PyObject *reason);
// Why none of the entries fits now: new list of str.
PyObject *cache_reasons(cache *c, guard_frame *f);

// An entry that is being run is not freed meanwhile, whoever resets the cache.
void cache_hold(entry *e);
void cache_release(entry *e);
