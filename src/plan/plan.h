// Plans: what happens when an entry's guards have passed. Flat steps over registers: run the graph,
// rebuild what is given out, write back, return.
#pragma once

#include "src/world/world.h"

typedef struct plan plan;

// How the graph is run: by a callable (a backend's result, takes the inputs, gives a tuple or
// list), or by replay in C. One of them, or neither if the graph has no operation.
typedef struct plan_graph {
    PyObject *callable;
    replay *replay;
} plan_graph;

// From a finished trace. Closes the graph: its outputs are the tensors that the result and the
// writes need. Sources that the plan loads are added to the world's guards, so this comes before
// sealing. NULL with an exception or a break (something cannot be rebuilt).
plan *plan_build(world *w, PyObject *result);
// Owns what is in `how` from here on.
void plan_set_graph(plan *p, plan_graph how);
graph *plan_graph_of(plan *p); // borrowed
void plan_free(plan *p);

// `regs` as the guard pass left them, borrowed; strong references to what is needed are taken
// first. New reference to the result, or NULL with an exception; then nothing was written, unless
// it is the MemoryError of a written container that cannot grow. `failure` says whether it was the
// graph that raised, and how far it came; its values are the caller's.
PyObject *plan_run(plan *p, PyObject *const *regs, graph_failure *failure);
// The same for a plan whose graph is the beginning of one that has failed: the values that are
// there are taken, and nothing is computed. NULL without an exception if one is missing.
PyObject *plan_run_taken(plan *p, PyObject *const *regs, PyObject *values);
// A compiled graph has failed, nobody knows where, and left something behind: its operations are
// run one by one, on copies of the inputs that it writes to, or on these, if what it wrote was
// undone. Whether one of them fails: `failure` says where, and the exception is set; see
// replay_probe.
bool plan_find_failure(plan *p, PyObject *const *regs, bool stop, graph_failure *failure);
// Each reference that the plan has to a code object: in images, and as a constant.
typedef void (*plan_visit)(PyObject *code, void *data);
void plan_each_code(const plan *p, plan_visit visit, void *data);
PyObject *plan_text(const plan *p);   // one step a line
PyObject *plan_writes(const plan *p); // list of str: what is written back
// The graph's inputs, found in the registers of a guard pass, for the backend: new list.
PyObject *plan_examples(const plan *p, PyObject *const *regs);
// Whether its result is an image: the innermost of the frames that go on.
bool plan_breaks(const plan *p);
