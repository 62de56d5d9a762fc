// A growable array of any type: `VEC(int) v = {0}; TRY(vec_push(&v, 3)); v.items[0];
// vec_free(&v);`.
#pragma once

#include "src/base/status.h"

#include <Python.h>

#include <stdint.h>
#include <string.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *items;                                                                               \
        uint32_t count, room;                                                                      \
    }

// Makes room for `more` items behind `count`. `array` is the address of the pointer to the items,
// which may be of any type (hence the copies). On ST_ERROR (MemoryError) the array is unchanged.
static inline status vec_grow(void *array, uint32_t count, uint32_t *room, size_t more,
                              size_t size) {
    size_t needed = count + more, doubled = *room ? 2 * (size_t)*room : 8;
    if (LIKELY(needed <= *room))
        return ST_OK;
    if (doubled < needed)
        doubled = needed;
    void *items;
    memcpy(&items, array, sizeof(items));
    items = doubled < UINT32_MAX ? PyMem_Realloc(items, doubled * size) : NULL;
    if (!items) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    memcpy(array, &items, sizeof(items));
    *room = (uint32_t)doubled;
    return ST_OK;
}

#define vec_reserve(v, more)                                                                       \
    vec_grow(&(v)->items, (v)->count, &(v)->room, (more), sizeof(*(v)->items))

#define vec_push(v, value)                                                                         \
    (vec_reserve((v), 1) == ST_OK ? ((v)->items[(v)->count++] = (value), ST_OK) : ST_ERROR)

#define vec_free(v) PyMem_Free((v)->items)
