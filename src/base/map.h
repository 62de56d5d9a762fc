// A hash map from 64-bit keys, which pointers are too, to 64-bit values. It holds no references.
#pragma once

#include "src/base/status.h"

#include <stdint.h>

#define MAP_NO_KEY UINT64_MAX // the one key that cannot be used

typedef struct map_slot {
    uint64_t key, value;
} map_slot;

// All zero is an empty map.
typedef struct map {
    map_slot *slots;
    uint32_t count;
    uint32_t room; // a power of two, or 0
} map;

// The value's place, until the next map_put; NULL if the key is not there.
uint64_t *map_get(const map *m, uint64_t key);

// Sets the value, whether the key was there or not. ST_ERROR with MemoryError, and nothing changed.
status map_put(map *m, uint64_t key, uint64_t value);

void map_clear(map *m);

static inline uint64_t map_key(const void *pointer) {
    return (uint64_t)(uintptr_t)pointer;
}
