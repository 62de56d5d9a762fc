// Marks that people put on functions (disabled, kept out of graphs, forbidden, constant), and what
// a trace does with a marked function.
#pragma once

#include "src/world/world.h"

struct rule;
struct call;

// Whether allow_in_graph has marked a callable.
bool mark_allows(const struct world *w, PyObject *callable);
// Sets the row by which a callable marked by allow_in_graph becomes a node; such a callable is not
// traced. Likewise one that nonstrict_trace has marked.
void mark_allow_by(const struct rule *row, const struct rule *nonstrict);
// The same for classes without a row that `makes` is true of.
void mark_make_by(const struct rule *row, bool (*makes)(PyObject *callable));

typedef enum mark_reach {
    MARK_NOT,   // not disabled
    MARK_FRAME, // CPython runs its own frame; functions that it calls may be compiled
    MARK_BELOW, // CPython also runs all functions that it calls
} mark_reach;
// How far a Python function is disabled.
mark_reach mark_disabled(PyObject *function);

// Whether breaks are errors now, as the program itself has set it.
bool mark_strict(world *w);

// logging.c. The row of a call that only logs and that torch's settings list; NULL: no such call.
const struct rule *logging_rule(const world *w, const struct call *c);
extern PyMethodDef logging_methods[]; // ends in an empty row

int marks_setup(void);
extern PyMethodDef marks_methods[]; // ends in an empty row
