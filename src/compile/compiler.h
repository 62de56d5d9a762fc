// One call of stator.compile: its settings, and the caches of all code objects that were compiled
// with these settings.
#pragma once

#include "src/base/map.h"
#include "src/base/vec.h"

#include "src/cache/cache.h"

typedef struct compiler {
    PyObject_HEAD
    struct compiler *next, *previous; // the list of all compilers, for reset
    PyObject *backend; // strong: called with (graph, examples), it returns the graph's callable;
                       // None: the graph is replayed in C
    PyObject *error;   // strong: the exception class for fullgraph
    PyObject *policy;  // strong: see policy.h; None: only `limit` and `fullgraph` decide
    PyObject
        *symbolic; // strong: for tests, a dict: what each trace leaves open (world_terms); or None
    map caches;    // code object → cache *
    VEC(PyObject *) codes; // strong; the keys
    VEC(cache *) all;
    uint32_t sweep_at; // at this number of caches, code objects that only compilers hold are let go
    bool fullgraph, keep_empty;
    int limit;     // the most entries that a code object may have
    int numbers;   // of compiler_numbers: which numbers are left open without a policy
    int recursion; // the backend raises the recursion limit to at least this while it compiles
    bool warned;
    long traces, restarts, hits, compiled;
    long longest; // the number of instructions of the longest trace of a call
    // For tests. break_at: each call's trace breaks before this instruction (0: no). break_every:
    // every trace breaks before a random instruction, on average after this many (0: no).
    long break_at, break_every;
    uint64_t random;                       // state of the random generator
    PyObject *drops, *breaks, *recompiles; // strong, lists of str
    PyObject *dropped;                     // strong, list of dict: the texts of `drops`, in parts
} compiler;

// Which numbers are left open, so that one entry fits all their values. The attribute `numbers` of
// the policy has these bits.
typedef enum compiler_numbers {
    NUMBERS_CHANGED = 1,      // those that were seen to change
    NUMBERS_ALL = 2,          // sizes and ints of all inputs but parameters, from the start
    NUMBERS_INTS = 4,         // ints may be left open
    NUMBERS_FLOATS = 8,       // floats may be
    NUMBERS_SCALARS = 16,     // numbers of tensors are computed by the graph, and do not end it
    NUMBERS_SHAPES = 32,      // so are sizes that depend on values
    NUMBERS_PARAMETERS = 64,  // sizes of parameters may be left open
    NUMBERS_MODULES = 128,    // NUMBERS_ALL means tensors of modules, too
    NUMBERS_LENIENT = 256,    // a mark that cannot be kept is no error
    NUMBERS_UNHINTED = 512,   // nobody may rely on the values of sizes that changed
    NUMBERS_GRADIENTS = 1024, // backward passes may be in the graph
} compiler_numbers;

extern compiler *all_compilers; // guarded by the GIL

typedef enum outcome {
    OUTCOME_DONE,        // there is a result
    OUTCOME_BROKE,       // the result is the image of the innermost frame that goes on
    OUTCOME_NATIVE,      // CPython runs the frame
    OUTCOME_OFF,         // and the functions that it calls, too
    OUTCOME_INSTRUCTION, // a frame that goes on runs one instruction for real, and then tries again
    OUTCOME_ERROR,       // an exception is set
} outcome;

// A part of this thread's compiled call has run in which the program was told that it is compiled,
// and the call has not ended. Reset when the outermost call ends.
extern __attribute__((tls_model("initial-exec"))) _Thread_local bool compiler_told;

cache *compiler_cache(compiler *c, PyCodeObject *co, uint32_t unit);
// Drops a code object that only compilers hold, with its entries. This may run Python code.
void compiler_let_go(PyObject *code);
// Runs a call with its bound arguments, or a frame that goes on with all its slots, by an entry
// that fits or by a new one. The function of a frame that goes on must still have the frame's code.
// *reach: how many frames below this one the outcome also applies to.
outcome compiler_run(compiler *c, cache *known, guard_frame *f, PyObject **result, int *reach);
// A list with one dict for each entry: name, file, line, graph, guards, plan, writes, …; its break
// in parts (`why`), and why the older entries did not fit (`misfits`). New reference.
PyObject *compiler_describe(compiler *c);
// The same of one entry; None if there is none with this number.
PyObject *compiler_describe_one(compiler *c, long number);
