// A hash map from 64-bit keys, such as pointers, to 64-bit values. The map holds no references.
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

// A pointer to the value, valid until the next map_put; NULL if the map does not have the key.
uint64_t *map_get(const map *m, uint64_t key);

// Sets the value of a key, new or not. On ST_ERROR (MemoryError) the map is unchanged.
status map_put(map *m, uint64_t key, uint64_t value);

void map_clear(map *m);

static inline uint64_t map_key(const void *pointer) {
    return (uint64_t)(uintptr_t)pointer;
}
