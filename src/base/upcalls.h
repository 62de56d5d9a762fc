// Calls from an earlier room into a later one. The order of rooms forbids including the later
// room's header, so that room fills in a pointer here when it is set up. These are all there are:
// tools/check_includes.py refuses a pointer to a function that is `extern` anywhere else. (What is
// asked of torch is in two tables of functions: src/world/standin.h and tensor_ops.)
#pragma once

#include <Python.h>
#include <stdbool.h>

struct _PyInterpreterFrame;
struct call;
struct image_place;
struct resume_request;
struct rule;
struct world;

// From src/interp to src/compile: a frame that was put back goes on by its entries, which only the
// driver knows.
extern PyObject *(*image_drive)(PyThreadState *ts, struct _PyInterpreterFrame *f,
                                struct resume_request *q, const struct image_place *at);

// From src/guard to src/torch: an attribute of a tensor, read without running Python code. New
// reference, or NULL without an exception. Without it (no torch) TENSOR_GRAD is a
// place that is not there.
extern PyObject *(*source_read_tensor)(PyObject *tensor, PyObject *name);

// From src/call to src/trace: calls a Python function, known to the world, by PyObject_Vectorcall,
// after telling the hook to expect its frame. Only src/trace knows frames.
extern PyObject *(*call_function)(struct world *w, const struct call *c);

// From src/call to src/torch: the row that a mark gives to a callable; NULL: it has no mark that
// matters here, or with an exception. `row`: that of the table, or NULL.
extern const struct rule *(*call_mark_rule)(struct world *w, PyObject *callable,
                                            const struct rule *row);

// From src/call to src/compile: objects that stand in a Python function's place. What calls one
// calls its function (borrowed); where it is strict, its breaks are errors.
extern PyTypeObject *call_compiled_type;
extern PyObject *(*call_compiled_function)(PyObject *compiled);
extern bool (*call_compiled_strict)(PyObject *compiled);
