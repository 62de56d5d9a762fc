// A call as a value: what is called, with what, and how its result becomes that of the instruction
// being traced.
#pragma once

#include "src/py/py.h"

#include "src/interp/result.h"

// It is passed down by pointer. Who goes on to another callable copies it and changes what differs.
// All references are borrowed from the caller, who keeps them until the call returns. (Slots that a
// caller lends are taken over by the callee's frame: lent_slots.)
typedef struct call {
    PyObject *callable;
    PyObject *const *args;   // by position, then the values of `keywords`
    size_t given;            // how many by position, without vectorcall's flag
    PyObject *keywords;      // tuple of names; NULL: none (it is never empty)
    run_result result;       // how the callee's value becomes the instruction's
    PyObject *made;          // of an __init__: the object that it is for; else NULL
    const struct rule *rule; // of what a handler gets: the row that led to it; else NULL
} call;

// How many arguments, by position and by keyword.
static inline size_t call_count(const call *c) {
    return c->given + (c->keywords ? (size_t)PyTuple_GET_SIZE(c->keywords) : 0);
}

// The frame that an instruction, or a call, has asked CPython for, and that comes next.
typedef struct expectation {
    PyObject *of;      // borrowed: the function or generator whose frame it is; NULL: none is asked
    const call *call;  // of a function: the call it is made by; NULL: a generator, or a root frame
    run_result result; // how its value becomes the instruction's
    int level;         // of a frame that was there before the trace: how far below; else -1
} expectation;

// Of a generator that is resumed; of any other iterator, no frame.
static inline expectation expect_generator(PyObject *o) {
    return (expectation){.of = PyGen_CheckExact(o) ? o : NULL, .level = -1};
}
