// Declarations for the files of this room only: how a frame that no entry fits gets an entry.
#pragma once

#include "src/trace/trace.h"

#include "src/compile/compiler.h"
#include "src/compile/policy.h"

// The result of a trace: guards and a plan.
typedef struct product {
    guard_program *guards;
    plan *plan;
    // The graph has numbers that differ from call to call, and goes to a backend: what that relies
    // on is still to be guarded. `guards` is for trial, and needs the trace.
    bool open_end;
    world *trace; // owned, while open_end is true and the trace is done
    bool broke;
    bool told;         // see entry
    bool last;         // the trace had to stop early
    int reach, looked; // see entry
    int calls;         // number of calls that the program itself recorded
    int depth;         // see entry
    int made_before;   // number of entries that had been made for the place when the trace began
    policy_break why;
    PyObject *misfits;   // strong, or NULL: why the older entries did not fit
    entry_numbers asked; // see entry
    bool dynamic;        // likewise
    PyObject *settled;   // strong, or NULL: of what was open, the numbers that the trace settled
} product;

static inline PyCodeObject *frame_code(const guard_frame *f) {
    return (PyCodeObject *)PyFunction_GET_CODE(f->function);
}

// Registers for a guard program that needs this many; NULL without an exception if memory is short.
static inline PyObject **registers_new(int count) {
    return PyMem_Calloc((size_t)count + 1, sizeof(PyObject *));
}

// why.c. Describes why a trace stopped. If a signal handler raised meanwhile, its exception is set.
policy_break break_of(world *w, PyCodeObject *co);
void break_clear(policy_break *b);

// product.c
// The world borrows the numbers to leave open.
world *product_world(const compiler *c, const entry_numbers *asked);
// Traces the frame and up to `below` frames under it. If the trace cannot end where it broke, it is
// done again in a new world, and breaks earlier.
trace_end product_trace(compiler *c, world **w, guard_frame *f, int below, product *out);
// What the backend returned, if it is good for calling; takes it over. NULL with an exception.
PyObject *backend_callable(PyObject *returned);
// Whether a break of this trace is an error.
bool product_is_strict(const compiler *c, world *w);
void product_clear(product *p);

// numbers.c: no entry fits the frame. Notes which numbers the next trace leaves open, and says so
// behind the first of the reasons. -1 with an exception.
int numbers_learn(compiler *c, cache *k, guard_frame *f, PyObject *reasons);
// The trace is done, and changes numbers that it read: whether it is to be done again with these left
// open. 1, 0, -1 with an exception.
int numbers_grow(const compiler *c, cache *k, world *w);
// What the next trace is to leave open, into `out`. -1 with an exception.
int numbers_terms(const compiler *c, const cache *k, product *out);
// The values of tensors that may be in a graph (CAPTURE_…), by the settings of the entry.
int numbers_captured(const compiler *c, unsigned settings);

// The trace is over, or the backend is done (`whose`: "trace", "backend"): which of the numbers that
// were left open are settled, into `out`. -1 with an exception, also if the user promised that one
// of them differs.
int numbers_end(world *w, product *out, const char *whose);
// An entry was made of it: numbers that were settled are not left open again. -1 with an exception.
int numbers_keep(cache *k, const product *made);

// pieces.c: the trace broke. Notes in each image of the chain which numbers of its frame are open. -1
// with an exception.
int pieces_note(world *w, struct image *innermost);
// No entry fits the frame, which goes on or waits: what was open in it then is left open. -1 with an
// exception.
int pieces_inherit(cache *k, const guard_frame *f);

// growth.c: the trace is done. Notes the numbers that the program itself changes, to be left open:
// 1 if there are any that were not before, 0, -1 with an exception. `allowed`: as for cache_open.
int growth_find(world *w, cache *k, unsigned allowed);

// run.c. Runs an entry whose guards have passed; `regs` has its registers.
outcome run_entry(compiler *c, entry *e, guard_frame *f, PyObject *const *regs, PyObject **result,
                  int *reach);
// Finds an entry that fits and runs it; false if none fits. `regs` has room for any entry of the
// cache.
bool run_fitting(compiler *c, cache *k, guard_frame *f, PyObject **regs, PyObject **result,
                 int *reach, outcome *how);

// hand_over.c. Gives the graph of a product with an open end to the backend, guards what the
// backend relies on, and seals the guards. `regs` has the registers of those so far. New reference,
// or NULL with an exception.
PyObject *hand_over_numbers(compiler *c, product *made, PyObject *const *regs);

// make.c. Traces the frame, makes an entry and runs it.
outcome make_entry(compiler *c, cache *k, guard_frame *f, PyObject **result, int *reach);

// failure.c. Finds out how to go on after the graph of an entry has raised. The exception is set.
outcome failure_handle(compiler *c, entry *e, guard_frame *f, graph_failure *failure,
                       PyObject **result, int *reach);
