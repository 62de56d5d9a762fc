// Chunks that grow with the arena; an allocation too large for the usual chunk has its own.
#include "src/base/arena.h"

#include <stddef.h>

struct arena_chunk {
    arena_chunk *older;
    _Alignas(max_align_t) char bytes[];
};

enum { ALIGNMENT = _Alignof(max_align_t), CHUNK = 16 * 1024 - sizeof(arena_chunk) };

static status add_chunk(arena *a, size_t size) {
    arena_chunk *chunk = PyMem_Malloc(sizeof(arena_chunk) + size);
    if (!chunk) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    chunk->older = a->chunks;
    a->chunks = chunk;
    a->next = chunk->bytes;
    a->end = chunk->bytes + size;
    return ST_OK;
}

void *arena_alloc(arena *a, size_t size) {
    if (size > PTRDIFF_MAX - ALIGNMENT) {
        PyErr_NoMemory();
        return NULL;
    }
    size += size == 0; // every block has an address
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (UNLIKELY(size > (size_t)(a->end - a->next)) &&
        add_chunk(a, size < CHUNK ? CHUNK : size) != ST_OK)
        return NULL;
    void *result = a->next;
    a->next += size;
    return result;
}

status arena_own(arena *a, PyObject *o) {
    if (vec_push(&a->owned, o) == ST_OK)
        return ST_OK;
    Py_DECREF(o);
    return ST_ERROR;
}

void arena_clear(arena *a) {
    arena old = *a; // dropping may come back here and use the arena anew
    *a = (arena){0};
    while (old.owned.count > 0)
        Py_DECREF(old.owned.items[--old.owned.count]);
    vec_free(&old.owned);
    while (old.chunks) {
        arena_chunk *older = old.chunks->older;
        PyMem_Free(old.chunks);
        old.chunks = older;
    }
}
