// Who decides whether to compile, and is told how it went: an object of Python's, given with the
// settings. Its methods run with the hook off, when the trace is over.
#pragma once

#include "src/compile/compiler.h"

// A break, as far as a policy wants to know it. References are strong.
typedef struct policy_break {
    const char *reason; // id of its row
    PyObject *text, *stack;
    PyObject *row; // dict: what `text` says, in parts; may be NULL
    bool strict;   // the program itself has asked for breaks to be errors
} policy_break;

static inline bool policy_is_there(const compiler *c) {
    return c->policy != NULL && c->policy != Py_None;
}

typedef enum policy_answer {
    POLICY_ERROR = -1, // an exception is set
    POLICY_NOT_NOW,    // CPython runs it this time
    POLICY_TRACE,
    POLICY_NEVER, // CPython runs it whenever no entry fits, and nobody need be asked
} policy_answer;

// No entry fits, for these reasons. `entries`: how many of this code's entries end with the frame.
policy_answer policy_miss(compiler *c, const cache *k, PyCodeObject *co, int entries,
                          PyObject *reasons);
// 0, or -1 with an exception: nothing is published then, and the exception is the program's.
int policy_broke(compiler *c, const cache *k, PyCodeObject *co, const policy_break *b);
// An entry was added; `g` may be NULL.
void policy_made(compiler *c, const cache *k, PyCodeObject *co, graph *g);
// A call of this code is left to CPython because of a tool; told once.
void policy_watched(compiler *c, PyCodeObject *co);
// The current exception came out of the engine ("trace") or the backend ("backend"): whether it is
// to be forgotten. If not, an exception is set, that one or another.
bool policy_forgives(compiler *c, const cache *k, PyCodeObject *co, const char *where);
