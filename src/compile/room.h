// Between the files of this room: from a frame that no entry fits to an entry and its run.
#pragma once

#include "src/trace/trace.h"

#include "src/compile/compiler.h"
#include "src/compile/policy.h"

// What a trace gives: guards and a plan that stand alone.
typedef struct product {
    guard_program *guards;
    plan *plan;
    bool broke;
    bool told;         // see entry
    bool last;         // the trace had to stop early
    int reach, looked; // see entry
    int calls;         // recorded by the program itself
    int depth;         // see entry
    int made_before;   // entries that had been made for the place when the trace began
    policy_break why;
    PyObject *misfits; // strong, or NULL: why older entries did not fit
} product;

static inline PyCodeObject *frame_code(const guard_frame *f) {
    return (PyCodeObject *)PyFunction_GET_CODE(f->function);
}

// Registers for a guard program that needs this many; NULL without an exception if memory is short.
static inline PyObject **registers_new(int count) {
    return PyMem_Calloc((size_t)count + 1, sizeof(PyObject *));
}

// why.c: why a trace stopped. If a signal's handler raised meanwhile, its exception is set.
policy_break break_of(world *w, PyCodeObject *co);
void break_clear(policy_break *b);

// product.c
world *product_world(const compiler *c);
// Traces the frame and up to `below` frames under it. Where a trace cannot end where it broke, it
// is done again in a new world, and breaks earlier.
trace_end product_trace(compiler *c, world **w, guard_frame *f, int below, product *out);
// A break is an error.
bool product_is_strict(const compiler *c, world *w);
void product_clear(product *p);

// run.c: the registers of an entry whose guards have passed are in `regs`.
outcome run_entry(compiler *c, entry *e, guard_frame *f, PyObject *const *regs, PyObject **result,
                  int *reach);
// Whether an entry fits, which is then run. `regs` has room for any entry of the cache.
bool run_fitting(compiler *c, cache *k, guard_frame *f, PyObject **regs, PyObject **result,
                 int *reach, outcome *how);

// make.c: traces the frame, and runs the entry that comes of it.
outcome make_entry(compiler *c, cache *k, guard_frame *f, PyObject **result, int *reach);

// failure.c: the entry's graph has raised, and the exception is set.
outcome failure_handle(compiler *c, entry *e, guard_frame *f, graph_failure *failure,
                       PyObject **result, int *reach);
