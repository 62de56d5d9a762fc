// Calls of a trace. Arguments are borrowed and may be lazies; results are new
// references; NULL or -1 comes with an exception or a break (world.stop.broken is set then).
#pragma once

#include "src/base/upcalls.h"

#include "src/world/world.h"

#include "src/attr/later.h"

#include "src/call/operators.h"

// The same arguments for another callable, whose value is the engine's own.
static inline call call_again(const call *c, PyObject *callable) {
    return (call){
        .callable = callable, .args = c->args, .given = c->given, .keywords = c->keywords};
}
// The same call, with one more argument before all others.
PyObject *call_with_first(world *w, const call *c, PyObject *first);
// callable(*args, **keywords); keywords may be NULL.
PyObject *call_star(world *w, PyObject *callable, PyObject *args, PyObject *keywords,
                    run_result result);
// type.__call__ of the class that is the callable: __new__, then __init__.
PyObject *call_type_call(world *w, const call *c);
// One-time setup of the names and types this room knows. 0, or -1 with an exception.
int call_setup(void);

// A native call with the engine's checks around it: a break in a callback is seen even if native
// code swallowed it, and an exception that a stand-in may have caused is not believed if
// `suspicious`.
PyObject *call_native(world *w, PyObject *callable, PyObject *const *args, size_t given,
                      PyObject *keywords, bool suspicious);
