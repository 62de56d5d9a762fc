// Which objects die when references go, and whether anybody notices: every reference that goes is
// counted; an object that loses its last one dies, and its parts lose one each.
#pragma once

#include "src/world/world.h"

// All zero, it counts by the references that objects have now.
typedef struct losses {
    map lost;          // object with more than one reference → how many go
    map *found;        // to be filled: what dies → its references, or 0 if that may be noticed
    const map *before; // a map that was filled so, to count by
    map kept;          // what lives on by references that are to come
    int depth;
    uint32_t dead;
} losses;

// Whether the program has a weak reference to it: guards have their own, and torch's to tensors are
// of its own class.
bool losses_watched(PyObject *o);
// One more reference to this goes. False: someone may notice.
bool losses_add(losses *l, PyObject *o);
// This does not die, whatever goes. False: no memory, and it is not known.
bool losses_keep(losses *l, PyObject *o);
// All of them do.
bool losses_last(losses *l, PyObject *o);
void losses_clear(losses *l);
