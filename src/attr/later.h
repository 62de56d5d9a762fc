// Functions that src/call, a later room, defines for this one: reading an attribute may be a call
// (a property, __getattr__), and a call may begin with reading an attribute.
#pragma once

#include "src/base/upcalls.h"

#include "src/world/world.h"

PyObject *call_any(world *w, const call *c);
// Calls callable(*args). The engine uses the value itself: it is not yet the value of the
// instruction.
static inline PyObject *call_with(world *w, PyObject *callable, PyObject *const *args,
                                  size_t given) {
    return call_any(w, &(call){.callable = callable, .args = args, .given = given});
}

// Whether `o` is the object that native code got in place of a C callable; and that callable
// (borrowed).
bool is_trampoline(PyObject *o);
PyObject *trampoline_callable(PyObject *o);

// Reads a getset of `o` by the rule that a later room gave to the getset. If there is no such rule,
// *known is false and the result is NULL.
PyObject *rule_read_getset(world *w, PyObject *getset, PyObject *o, bool *known);

// Guards that the caller handles no exception. A trace does not see the exception that the caller
// handles; if there is none, what the trace sees (sys.exception(), the __context__ of an exception)
// is right.
status raised_nothing_outside(world *w);
