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
// The innermost call is done: from here on breaks are where they happen, unless another one is
// around it.
void higher_over(world *w, torch_trace *t);
// A question of the glue's, answered by function(mode, argument). New reference.
PyObject *higher_ask(const torch_trace *t, const char *question, PyObject *argument);
// Records the operator's node. Its arguments are those of the call from `from` on. New reference.
node *higher_node(world *w, const call *c, size_t from, PyObject *target, PyObject *stems,
                  PyObject *example);
