// Function transforms (vmap, grad, jvp) and forward-mode differentiation. Torch's Python code of a
// transform is interpreted. The functions that it calls to enter and leave a level, and to wrap and
// unwrap tensors for it, become nodes, and are called for real on fakes, so that operations in
// between see the level.
//
// A level that a trace enters must be left in the same trace. A trace that breaks in between is
// done again, and breaks before the call of the outermost transform: frames in the middle of it
// would need tensors that belong to a level, and no plan can hold a level open.
#pragma once

#include "src/torch/room.h"

static inline bool levels_on(const torch_trace *t) {
    return t->levels.top != 0;
}

// Whether a tensor is wrapped for a level: its class is Tensor, even if a fake is inside.
bool is_wrapper(PyObject *o);
// The stand-in of a new tensor: notes the level that it belongs to.
status levels_note(torch_trace *t, standin *s);
// Whether the program may use it: it does not belong to a vmap that has ended. Else ST_BREAK.
status levels_check(world *w, const standin *s);
// Torch's code that runs on fakes would run the program's own, too (backward passes, hooks):
// ST_BREAK while a level is on.
status levels_forbid(world *w, const char *what);
// Whether a call with lasting effects was made since the outermost level was entered: the program
// cannot go on in the middle of it.
bool levels_have_effects(const torch_trace *t);

// At the end of a trace, ST_BREAK if a level is on; if an output belongs to a level. The trace is
// done again then, and breaks before the transform.
status levels_end(world *w, torch_trace *t);
status levels_outputs(world *w, node *const *nodes, uint32_t count);
// Adds what saves and puts back the levels to pairs (setter, getter); takes over the reference, and
// gives a new one.
PyObject *levels_pairs(const torch_trace *t, PyObject *pairs);
// However the trace ended: leaves all levels.
void levels_drop(torch_trace *t);
