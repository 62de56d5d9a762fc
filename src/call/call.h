// Calls in a trace. Arguments are borrowed and may be lazies; results are new references; NULL or
// -1 comes with an exception or a break (world.stop.broken is set then).
#pragma once

#include "src/base/upcalls.h"

#include "src/world/world.h"

#include "src/attr/later.h"

#include "src/call/operators.h"

// A call of another callable with the same arguments. The engine uses the value itself.
static inline call call_again(const call *c, PyObject *callable) {
    return (call){
        .callable = callable, .args = c->args, .given = c->given, .keywords = c->keywords};
}
// Does the same call with one more argument before all others.
PyObject *call_with_first(world *w, const call *c, PyObject *first);
// The tuple of *args and the dict of **keywords; `callable` is for messages. New references.
PyObject *call_star_args(world *w, PyObject *callable, PyObject *args);
PyObject *call_star_keywords(world *w, PyObject *callable, PyObject *keywords);
// callable(*args, **keywords); keywords may be NULL.
PyObject *call_star(world *w, PyObject *callable, PyObject *args, PyObject *keywords,
                    run_result result);
// type.__call__ for a callable that is a class: __new__, then __init__.
PyObject *call_type_call(world *w, const call *c);
// The same once it is known that the class may be called.
PyObject *call_make(world *w, const call *c);
// Sets up the names and types that this room knows, once. 0, or -1 with an exception.
int call_setup(void);

// Whether draws of Python's own random numbers are held back (handlers_random.c).
bool random_is_drawn(const world *w);
// know_random(function), for Python: the function is random.Random's `_randbelow`.
PyObject *random_know(PyObject *module, PyObject *function);
// At the end of a trace: ST_BREAK if the trace needs the value of such a number, so that it fits
// this call alone.
status random_end(world *w);
// Does a native call, and checks it. A break in a callback counts even if native code swallowed its
// exception. If `suspicious`, an exception becomes a break, since a stand-in may have caused it.
PyObject *call_native(world *w, PyObject *callable, PyObject *const *args, size_t given,
                      PyObject *keywords, bool suspicious);
