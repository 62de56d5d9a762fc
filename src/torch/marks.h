// Marks that people put on functions: disabled, kept out of graphs, forbidden, constant; and what a
// trace does when it meets one.
#pragma once

#include "src/world/world.h"

struct rule;

// What torch's allow_in_graph was called on becomes a node, unseen, by this row.
void mark_allow_by(const struct rule *row);

typedef enum mark_reach {
    MARK_NOT,   // not disabled
    MARK_FRAME, // its own frame is CPython's, what it calls may be compiled
    MARK_BELOW, // and so is all that it calls
} mark_reach;
// How far a Python function is disabled.
mark_reach mark_disabled(PyObject *function);

// Whether breaks are errors here, as the program itself has set it by now.
bool mark_strict(world *w);

int marks_setup(void);
extern PyMethodDef marks_methods[]; // ends in an empty row
