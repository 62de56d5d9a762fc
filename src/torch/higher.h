// Calls of operators that take functions, as they are traced: what higher.c and higher_parts.c share.
#pragma once

#include "src/torch/room.h"

// A call of an operator: (its name in bodies.def, the Python function that is interpreted). New
// reference.
PyObject *higher_apply(world *w, const call *c, PyObject *operator);
// The innermost call that is being traced.
applied *higher_now(torch_trace *t);
// Whether it is a call of the operator of this name.
bool higher_is(const applied *r, PyObject *name);
// The body of it that has ended last.
graph *higher_last(const applied *r);
// The body that a question is about: the one that is open, else the last one.
graph *higher_asked_of(const world *w);
// Checks that the open body did nothing that a body may not.
status higher_check_body(world *w);
// Ends the open body. `outputs` is stolen: a list of the stand-ins that it gives, or a tuple of what
// its output node has.
status higher_leave_body(world *w, PyObject *outputs);
// Ends the open body as if its operations had never run.
status higher_forget_body(world *w);
// The innermost call is done: from here on breaks are where they happen, unless another one is
// around it.
void higher_over(world *w, torch_trace *t);
// A question of the glue's, answered by function(mode, argument). New reference.
PyObject *higher_ask(const torch_trace *t, const char *question, PyObject *argument);

// --- at open sizes (higher_open.c) ---

// Whether sizes may be open, and there are no fakes with a history.
bool higher_is_open(const world *w);
// As body_shares, body_overlaps and body_alike in kinds.def: 1, 0, -1 with a break or an exception.
int higher_open_shares(world *w, const call *c);
int higher_open_overlaps(world *w, const call *c);
int higher_open_alike(world *w, const standin *a, const standin *b);
// Whether a body is given a tensor that requires a gradient.
bool higher_open_needs(const graph *body);
// What a tensor's slices by its first dimension are like.
meta higher_open_slice(const meta *m);
PyObject *higher_open_results(world *w, node *whole, PyObject *like, bool needs);

// Adds to a list the fake of a result like the example, stacked `count` times (or None), which
// requires a gradient or not. False with an exception or a break.
bool higher_add_result(world *w, PyObject *fakes, PyObject *example, PyObject *count,
                       PyObject *needs);
// The items of what a node gives, as stand-ins with these fakes. New tuple.
PyObject *higher_items(world *w, node *whole, PyObject *fakes);
// Records the operator's node. Its arguments are those of the call from `from` on. New reference.
node *higher_node(world *w, const call *c, size_t from, PyObject *target, PyObject *stems,
                  PyObject *example);
