// One call of stator.compile: its settings, and the caches of every code object compiled under
// them.
#pragma once

#include "src/base/map.h"
#include "src/base/vec.h"

#include "src/cache/cache.h"

typedef struct compiler {
    PyObject_HEAD
    struct compiler *next, *previous; // all that live, for reset
    PyObject *backend; // strong: called with (graph, examples), gives the graph's callable; None:
                       // replay in C
    PyObject *error;   // strong: exception class for fullgraph
    PyObject *policy;  // strong: policy.h; None: only `limit` and `fullgraph` decide
    map caches;        // code object → cache *
    VEC(PyObject *) codes; // strong; the keys
    VEC(cache *) all;
    uint32_t sweep_at; // at this number of caches, code that only compilers hold is let go
    bool fullgraph, keep_empty;
    int limit; // entries a code object may have
    bool warned;
    long traces, restarts, hits, compiled;
    long longest; // instructions of the longest trace of a call
    // For tests: each call's trace breaks before this instruction (0: no); or every trace breaks
    // before a random instruction, on average after this many (0: no).
    long break_at, break_every;
    uint64_t random;                       // state of the generator
    PyObject *drops, *breaks, *recompiles; // strong, lists of str
    PyObject *dropped;                     // strong, list of dict: the breaks of `drops`, in parts
} compiler;

extern compiler *all_compilers; // guarded by the GIL

typedef enum outcome {
    OUTCOME_DONE,        // the result is there
    OUTCOME_BROKE,       // the result is the image of the innermost frame that goes on
    OUTCOME_NATIVE,      // CPython runs the frame
    OUTCOME_OFF,         // and all that it calls
    OUTCOME_INSTRUCTION, // a frame that goes on runs one instruction for real, and is asked again
    OUTCOME_ERROR,       // an exception is set
} outcome;

// A piece of this thread's compiled call has run that was told that it is compiled; the call goes
// on behind it. Forgotten when the outermost call ends.
extern __attribute__((tls_model("initial-exec"))) _Thread_local bool compiler_told;

cache *compiler_cache(compiler *c, PyCodeObject *co, uint32_t unit);
// Lets go of a code object that compilers alone have, with its entries. Runs code.
void compiler_let_go(PyObject *code);
// Runs a call with its bound arguments, or a frame that goes on with all its slots: by an entry
// that fits, or by a new one. Of a frame that goes on, the code must be its function's.
// *reach: how many frames below this one the outcome also applies to.
outcome compiler_run(compiler *c, cache *known, guard_frame *f, PyObject **result, int *reach);
// One dict an entry: name, file, line, graph, guards, plan, writes, …; its break in parts (`why`),
// and why older ones did not fit (`misfits`). New list.
PyObject *compiler_describe(compiler *c);
