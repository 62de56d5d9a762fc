// Memory that is all given back at once, and references that are all dropped at once: a trace owns
// an arena, the arena owns what was allocated from it and the references it was given.
#pragma once

#include "src/base/status.h"
#include "src/base/vec.h"

typedef struct arena_chunk arena_chunk;

// All zero is an empty arena.
typedef struct arena {
    arena_chunk *chunks; // newest first
    char *next, *end;    // what is left of the newest
    VEC(PyObject *) owned;
} arena;

// Aligned for any type, not cleared. NULL with MemoryError.
void *arena_alloc(arena *a, size_t size);

// Takes the reference over, also when it fails (then it is dropped at once).
status arena_own(arena *a, PyObject *o);

// Drops the references, the last one given first, and all memory; the arena is empty then. Dropping
// may run any code, so nothing may point into the arena any more.
void arena_clear(arena *a);

#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, type, count) ((type *)arena_alloc((a), (count) * sizeof(type)))
