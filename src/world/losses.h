// Finds the objects that die when references are dropped, and whether anybody notices. Every
// dropped reference is counted; an object that loses its last one dies, and then drops its
// references to its parts.
#pragma once

#include "src/world/world.h"

// A struct of zeros compares with the reference counts that objects have now.
typedef struct losses {
    map lost;          // object with more than one reference → how many are dropped
    map *found;        // to be filled: object that dies → its reference count, or 0 if somebody may
                       // notice
    const map *before; // an earlier `found`, whose counts are used instead of those of now
    map kept;          // objects that live on, by references that will be made
    int depth;
    uint32_t dead;
} losses;

// Whether the program has a weak reference to an object. Those of guards do not count, nor those of
// another class to tensors, which are torch's.
bool losses_watched(PyObject *o);
// One more reference to this object is dropped. False: somebody may notice.
bool losses_add(losses *l, PyObject *o);
// This object does not die. False: no memory was left to note that.
bool losses_keep(losses *l, PyObject *o);
// All references to this object are dropped. False: somebody may notice.
bool losses_last(losses *l, PyObject *o);
void losses_clear(losses *l);
