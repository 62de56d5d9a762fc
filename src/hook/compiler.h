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
    map caches;        // code object → cache *
    VEC(PyObject *) codes; // strong; the keys
    VEC(cache *) all;
    bool fullgraph, keep_empty;
    int limit; // entries a code object may have
    bool warned;
    long traces, hits, compiled;
    PyObject *drops, *recompiles; // strong, lists of str
} compiler;

typedef enum outcome {
    OUTCOME_DONE,   // the result is there
    OUTCOME_NATIVE, // CPython runs the frame
    OUTCOME_ERROR,  // an exception is set
} outcome;

cache *compiler_cache(compiler *c, PyCodeObject *co);
// Runs a call with its bound arguments: by an entry that fits, or by a new one.
outcome compiler_run(compiler *c, cache *known, PyObject *function, PyObject *const *slots,
                     Py_ssize_t count, PyObject **result);
// One dict an entry: name, file, line, graph, guards, plan, writes. New list.
PyObject *compiler_describe(compiler *c);
