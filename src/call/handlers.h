// Handlers of the rows that rules.def calls HANDLED: C functions that do, by way of the door and
// the interpreter's own operations, what the C callable of that name would do.
#pragma once

#include "src/call/rules.h"

#define HANDLER(name) PyObject *handle_##name(world *w, const call *c)

#define HANDLED(owners, names, handler, takes, writes, state) HANDLER(handler);
#include "src/call/rules.def"

// --- what handlers share (handlers_common.c) ---

// The callable does not take these arguments: the native function is called and raises the error. A
// function of torch's is not called: the trace breaks. (A handler is never called with more or
// fewer arguments than its row takes.)
PyObject *handler_misuse(world *w, const call *c);
// A call's arguments while they are made ready: strong references, those by position first.
typedef struct arg_room {
    PyObject **items;
    size_t count;
    PyObject *few[8]; // room for the usual number
} arg_room;
// The arguments behind `self`, which is taken over (NULL: there is none): r->items, or NULL with an
// exception.
PyObject **room_open(arg_room *r, PyObject *self, const call *c);
void room_close(arg_room *r);
// A keyword argument; borrowed, or NULL.
PyObject *handler_keyword(const call *c, const char *name);
// An opened exact str; borrowed, or NULL with an exception or a break.
PyObject *handler_name(world *w, PyObject *o);
// The native callable itself, on arguments that were made ready.
PyObject *handler_native(world *w, PyObject *callable, PyObject *const *args, size_t given);
// The Python function itself, interpreted. A break in it is one before the call, as of native code.
PyObject *handler_interpret(world *w, const call *c);
// All elements of an iterable, in order; a new list. As list(iterable) does it, length and all.
PyObject *handler_gather(world *w, PyObject *iterable);
// An attribute by its name; NULL with an exception or a break.
PyObject *handler_attr(world *w, PyObject *o, const char *name);
// The same; NULL without an exception if there is none.
PyObject *handler_find(world *w, PyObject *o, const char *name);
// What a special method gives; a break if the type has none.
PyObject *handler_special(world *w, PyObject *o, const char *special);
// Whether what failed is that there is no such attribute.
bool handler_missed(const world *w);
// Whether a stand-in lies in `o` or in what it holds.
bool handler_meets_standin(PyObject *o, int depth);
PyObject *handler_bool(int truth); // -1: NULL

// Each gives rows to Python functions: handlers_raised.c, handlers_classes.c, handlers_iterate.c,
// handlers_copy.c and handlers_text.c.
status raised_setup(void);
status classes_setup(void);
status manager_setup(void);
status copy_setup(void);
status text_setup(void);
