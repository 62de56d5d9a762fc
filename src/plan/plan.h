// Plans: the steps that run when an entry's guards have passed. They work on registers: run the
// graph, rebuild the result, do the writes, return.
#pragma once

#include "src/world/world.h"

typedef struct plan plan;

// How the graph runs: by a callable (the backend's result, which takes the inputs and returns a
// tuple or list), or by replay in C. Neither is set if the graph has no operation.
typedef struct plan_graph {
    PyObject *callable;
    replay *replay;
} plan_graph;

// Builds the plan of a finished trace. Closes the graph: its outputs are the tensors that the
// result and the writes need. Sources that the plan loads are added to the world's guards, so this
// comes before sealing. NULL with an exception or a break (something cannot be rebuilt).
plan *plan_build(world *w, PyObject *result);
// The plan owns the contents of `how` from here on.
void plan_set_graph(plan *p, plan_graph how);
graph *plan_graph_of(plan *p); // borrowed
void plan_free(plan *p);

// Runs a plan. `regs` are the registers of the guard pass, borrowed; the plan first takes strong
// references to the objects that it needs. New reference to the result, or NULL with an exception:
// then nothing was written, unless memory ran out while a written container grew. `failure` says
// whether the graph raised, and how far it came; the caller owns its values.
PyObject *plan_run(plan *p, PyObject *const *regs, graph_failure *failure);
// The same for a plan whose graph is the beginning of a graph that has failed: it takes the values
// that were computed, and computes nothing. NULL without an exception if a value is missing.
PyObject *plan_run_taken(plan *p, PyObject *const *regs, PyObject *values);
// Finds the operation at which a compiled graph with lasting effects has failed: runs the
// operations one by one, on copies of the inputs that the graph writes to, or on these inputs if
// its writes were undone. True if one fails: `failure` says which, and the exception is set; see
// replay_probe.
bool plan_find_failure(plan *p, PyObject *const *regs, bool stop, graph_failure *failure);
// Visits each reference that the plan has to a code object: in images, and as a constant.
typedef void (*plan_visit)(PyObject *code, void *data);
void plan_each_code(const plan *p, plan_visit visit, void *data);
PyObject *plan_text(const plan *p);   // one step a line
PyObject *plan_writes(const plan *p); // list of str: the writes
// The graph's inputs, taken from the registers of a guard pass, for the backend: new list.
PyObject *plan_examples(const plan *p, PyObject *const *regs);
// Whether the plan's result is an image: the innermost of the frames that go on.
bool plan_breaks(const plan *p);
