// An arena frees all its memory at once and drops all its references at once. A trace owns an
// arena; the arena owns the memory allocated from it and the references given to it.
#pragma once

#include "src/base/status.h"
#include "src/base/vec.h"

typedef struct arena_chunk arena_chunk;

// All zero is an empty arena.
typedef struct arena {
    arena_chunk *chunks; // newest first
    char *next, *end;    // the free part of the newest chunk
    VEC(PyObject *) owned;
} arena;

// Aligned for any type, not cleared. NULL with MemoryError.
void *arena_alloc(arena *a, size_t size);

// The arena takes the reference over. If that fails, the reference is dropped at once.
status arena_own(arena *a, PyObject *o);

// Drops the references, the last one given first, and frees all memory. The arena is empty then.
// Dropping a reference may run any code, so nobody may use memory of the arena any more.
void arena_clear(arena *a);

#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, type, count) ((type *)arena_alloc((a), (count) * sizeof(type)))
