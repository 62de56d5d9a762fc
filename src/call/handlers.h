// Handlers of the HANDLED rows of rules.def. A handler does what the C callable of the row would
// do, but through the door and the interpreter's own operations.
#pragma once

#include "src/call/rules.h"

#define HANDLER(name) PyObject *handle_##name(world *w, const call *c)

#define HANDLED(owners, names, handler, takes, writes, state) HANDLER(handler);
#include "src/call/rules.def"

// --- functions that handlers share (handlers_common.c) ---

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
// Fills the room with `self`, whose reference it takes (NULL: there is none), and the arguments.
// Returns r->items, or NULL with an exception.
PyObject **room_open(arg_room *r, PyObject *self, const call *c);
void room_close(arg_room *r);
// A keyword argument; borrowed, or NULL.
PyObject *handler_keyword(const call *c, const char *name);
// An opened exact str; borrowed, or NULL with an exception or a break.
PyObject *handler_name(world *w, PyObject *o);
// Calls the native callable on arguments that were made ready.
PyObject *handler_native(world *w, PyObject *callable, PyObject *const *args, size_t given);
// Interprets the Python function itself. A break in the function becomes a break before the call.
PyObject *handler_interpret(world *w, const call *c);
// A new list of all elements of an iterable; asks for the length first, as list(iterable) does.
PyObject *handler_gather(world *w, PyObject *iterable);
// An attribute by its name; NULL with an exception or a break.
PyObject *handler_attr(world *w, PyObject *o, const char *name);
// The same, but NULL without an exception if there is no such attribute.
PyObject *handler_find(world *w, PyObject *o, const char *name);
// The result of a special method; a break if the type has no such method.
PyObject *handler_special(world *w, PyObject *o, const char *special);
// Whether the error is that there is no such attribute.
bool handler_missed(const world *w);
// Whether `o` or an object that it holds is a stand-in.
bool handler_meets_standin(PyObject *o, int depth);
PyObject *handler_bool(int truth); // -1: NULL

// Each adds rows for Python functions: those of handlers_raised.c, handlers_classes.c,
// handlers_iterate.c, handlers_copy.c and handlers_text.c.
status frame_setup(void);
status raised_setup(void);
status classes_setup(void);
status manager_setup(void);
status copy_setup(void);
status text_setup(void);
