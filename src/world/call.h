// A call as a value: the callable, its arguments, and how its result becomes the value of the
// instruction being traced.
#pragma once

#include "src/py/py.h"

#include "src/interp/result.h"

// A call is passed down by pointer. A function that goes on to another callable copies the struct
// and changes the fields that differ. All references are borrowed from the caller, which keeps them
// until the call returns. (The callee's frame takes over the slots that a caller lends:
// lent_slots.)
typedef struct call {
    PyObject *callable;
    PyObject *const *args;   // the positional arguments, then the values of `keywords`
    size_t given;            // number of positional arguments, without vectorcall's flag
    PyObject *keywords;      // tuple of names; NULL: none (it is never empty)
    run_result result;       // how the callee's value becomes the instruction's
    PyObject *made;          // of an __init__: the object being made; else NULL
    const struct rule *rule; // of a call that a handler gets: the callable's row; else NULL
} call;

// The number of arguments, positional and by keyword.
static inline size_t call_count(const call *c) {
    return c->given + (c->keywords ? (size_t)PyTuple_GET_SIZE(c->keywords) : 0);
}

// The next frame: an instruction or a call makes CPython start it.
typedef struct expectation {
    PyObject *of;      // borrowed: the function or generator whose frame it is; NULL: none is
                       // expected
    const call *call;  // of a function: the call that starts the frame; NULL: a generator, or a
                       // root frame
    run_result result; // how its value becomes the instruction's
    int level;         // of a frame that existed before the trace: how far below the first one;
                       // else -1
} expectation;

// Expects the frame of a generator that is resumed; for any other iterator, no frame.
static inline expectation expect_generator(PyObject *o) {
    return (expectation){.of = PyGen_CheckExact(o) ? o : NULL, .level = -1};
}
