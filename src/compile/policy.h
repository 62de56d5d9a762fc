// The policy: a Python object, given with the settings, that decides whether to compile and is told
// the outcome. Its methods run with the hook off, after the trace.
#pragma once

#include "src/compile/compiler.h"

// A break, as a policy is told of it. References are strong.
typedef struct policy_break {
    const char *reason; // the id of its row
    PyObject *text, *stack;
    PyObject *row; // dict: the contents of `text` in parts; may be NULL
    bool strict;   // the program itself has said that breaks are errors
} policy_break;

static inline bool policy_is_there(const compiler *c) {
    return c->policy && c->policy != Py_None;
}

typedef enum policy_answer {
    POLICY_ERROR = -1, // an exception is set
    POLICY_NOT_NOW,    // CPython runs the frame this time
    POLICY_TRACE,
    POLICY_NEVER, // CPython runs the frame whenever no entry fits; the policy is not asked again
} policy_answer;

// Asks whether to trace, since no entry fits, for these reasons. `entries`: how many entries end
// with the frame.
policy_answer policy_miss(compiler *c, const cache *k, PyCodeObject *co, int entries,
                          PyObject *reasons);
// Tells of a break. 0, or -1 with an exception: then no entry is made, and the program gets the
// exception.
int policy_broke(compiler *c, const cache *k, PyCodeObject *co, const policy_break *b);
// Tells that an entry was added.
void policy_made(compiler *c, const cache *k, PyCodeObject *co, const entry *e);
// Tells that CPython runs a call of this code because of a tool. To be called once.
void policy_watched(compiler *c, PyCodeObject *co);
// The engine ("trace") or the backend ("backend") raised the current exception. Returns whether it
// is to be forgotten. If not, an exception is set, this one or another.
bool policy_forgives(compiler *c, const cache *k, PyCodeObject *co, const char *where);
