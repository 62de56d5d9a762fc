// Words of memory that prove the outcome of a raw read: while they are as they were, the read gives
// the same again. A word may be compared only if the words before it are equal: they prove that the
// object which holds it is alive. What proves what is CPython's, and differs by version.
#pragma once

#include "src/base/map.h"
#include "src/base/vec.h"

#include "src/py/raw.h"

typedef struct word {
    const uint64_t *at;
    uint64_t mask, value;
} word;

typedef struct words {
    VEC(word) all;
    map known;   // the address of each word → its index
    bool failed; // there was no memory
} words;
void words_free(words *w);

static inline bool word_holds(const word *w) {
    uint64_t now;
    memcpy(&now, w->at, sizeof(now));
    return (now & w->mask) == w->value;
}

// What equal words prove of the object that a read gave.
typedef enum proof {
    PROVES_NOTHING, // there are no words: the read must be done
    PROVES_POINTER, // an object lies at the same address. It may be another object
    PROVES_SAME,    // it is the same object, which was held all the time
} proof;

// Adds the aligned word at an address, as it is now; or a part of one.
void words_add(words *w, const void *at);
void words_add_part(words *w, const void *at, size_t size);

// Whether an object can never get another class.
bool words_class_is_fixed(PyObject *o);
// That an object has its type, and the type its layout and bases. `same`: it is the same object.
bool words_type(words *w, PyObject *o, bool same);
// That a type has the attributes and bases it has, along its whole MRO.
bool words_class(words *w, PyTypeObject *type);
// What raw_attr_get gives, or that there is no such attribute.
proof words_attr(words *w, PyObject *o, PyObject *name, bool same);
// The names in the instance dict, in order.
bool words_attr_names(words *w, PyObject *o, bool same);
// What raw_dict gives.
bool words_own_dict(words *w, PyObject *o, bool same);
// What raw_dict_get gives for a text, or that there is no such entry. The caller has proved that
// the object is a dict. `ordered`: the dict was read from an object that holds the dict, and that
// never drops one of its values before the dict has a new version.
proof words_item(words *w, PyObject *dict, PyObject *key, bool ordered);
// All keys of such a dict, in order. Not of an OrderedDict, which has an order of its own.
bool words_keys(words *w, PyObject *dict);
