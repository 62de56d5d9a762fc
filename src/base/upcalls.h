// Calls from an earlier room into a later one. The order of rooms forbids including the later
// room's header, so that room fills in a pointer here when it is set up. There are no others:
// tools/check_includes.py refuses a pointer to a function that is `extern` in any other file. (The
// earlier rooms also call src/torch through two tables of functions, standin_kind and tensor_ops,
// in src/world.)
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

struct _PyInterpreterFrame;
struct call;
struct image_place;
struct resume_request;
struct rule;
struct world;

// From src/interp to src/compile: continues a frame that was put back, by the entries of its code.
// Only the driver knows entries.
extern PyObject *(*image_drive)(PyThreadState *ts, struct _PyInterpreterFrame *f,
                                struct resume_request *q, const struct image_place *at);

// From src/guard to src/torch: reads an attribute of a tensor without running Python code. New
// reference, or NULL without an exception. While the pointer is NULL (torch is not attached)
// nothing lies at a TENSOR_GRAD source.
extern PyObject *(*source_read_tensor)(PyObject *tensor, PyObject *name);
// The same: how many dimensions a tensor has, their sizes and strides, borrowed from the tensor;
// false if the object is no tensor that can be read so. Without it SIZE and STRIDE are not there.
extern bool (*source_read_sizes)(PyObject *tensor, int64_t *dims, const int64_t **sizes,
                                 const int64_t **strides);
// The same: a tensor over the memory of an array of numpy's, for ARRAY sources. New reference, or NULL
// without an exception.
extern PyObject *(*source_read_array)(PyObject *array);
// The C function that gives the item of torch's stack of modes at a place; borrowed, or NULL.
extern PyObject *source_stack;

// From src/call to src/trace: calls a Python function, known to the world, by PyObject_Vectorcall,
// after telling the hook to expect its frame. Only src/trace knows frames.
extern PyObject *(*call_function)(struct world *w, const struct call *c);

// From src/call to src/torch: finds the row that a mark gives to a call's callable. NULL without an
// exception if the callable has no mark that matters; `row` is the callable's row in the table, or
// NULL.
extern const struct rule *(*call_mark_rule)(struct world *w, const struct call *c,
                                            const struct rule *row);

// From src/call to src/compile: compiled callables, which stand in a Python function's place. A
// call of one is a call of its function (borrowed); breaks in a strict one are errors.
extern PyTypeObject *call_compiled_type;
extern PyObject *(*call_compiled_function)(PyObject *compiled);
extern bool (*call_compiled_strict)(PyObject *compiled);
