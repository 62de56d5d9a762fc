// Open addressing with linear probing, at most three quarters full. No key is ever removed.
#include <Python.h> // must come before any other header

#include "src/base/map.h"

#include <assert.h>
#include <string.h>

// Where a key is, or where it would go.
static map_slot *find(map_slot *slots, uint32_t room, uint64_t key) {
    // Pointers differ in their middle bits: the product brings them to the top.
    uint32_t at = (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (room - 1);
    while (slots[at].key != key && slots[at].key != MAP_NO_KEY)
        at = (at + 1) & (room - 1);
    return &slots[at];
}

static status grow(map *m) {
    uint32_t room = m->room ? 2 * m->room : 16;
    map_slot *slots = room > m->room ? PyMem_New(map_slot, room) : NULL;
    if (!slots) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    memset(slots, 0xff, room * sizeof(map_slot)); // MAP_NO_KEY
    for (uint32_t i = 0; i < m->room; i++) {
        if (m->slots[i].key != MAP_NO_KEY)
            *find(slots, room, m->slots[i].key) = m->slots[i];
    }
    PyMem_Free(m->slots);
    m->slots = slots;
    m->room = room;
    return ST_OK;
}

uint64_t *map_get(const map *m, uint64_t key) {
    assert(key != MAP_NO_KEY);
    if (m->room == 0)
        return NULL;
    map_slot *slot = find(m->slots, m->room, key);
    return slot->key == key ? &slot->value : NULL;
}

status map_put(map *m, uint64_t key, uint64_t value) {
    uint64_t *known = map_get(m, key);
    if (known) {
        *known = value;
        return ST_OK;
    }
    if (m->count >= m->room / 4 * 3)
        TRY(grow(m));
    *find(m->slots, m->room, key) = (map_slot){key, value};
    m->count++;
    return ST_OK;
}

void map_clear(map *m) {
    PyMem_Free(m->slots);
    *m = (map){0};
}
