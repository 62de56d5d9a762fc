// What attributes need of calls. src/call defines these functions, a later room: an attribute may
// be a call (a property, __getattr__), and a call begins with an attribute.
#pragma once

#include "src/base/upcalls.h"

#include "src/world/world.h"

PyObject *call_any(world *w, const call *c);
// callable(*args), whose value is the engine's own: the instruction does more with it.
static inline PyObject *call_with(world *w, PyObject *callable, PyObject *const *args,
                                  size_t given) {
    return call_any(w, &(call){.callable = callable, .args = args, .given = given});
}

// The object that native code got in place of a C callable, and that callable (borrowed).
bool is_trampoline(PyObject *o);
PyObject *trampoline_callable(PyObject *o);

// The value of a getset of `o` by the rule that a later room gave to the getset; *known is false,
// and NULL returned, if there is no such rule.
PyObject *rule_read_getset(world *w, PyObject *getset, PyObject *o, bool *known);

// What the caller handles is hidden during a trace. That it handles nothing is guarded: then what
// the trace sees (sys.exception(), the __context__ of an exception) is all there is.
status raised_nothing_outside(world *w);
