// What to do after native code has run. A break counts even if native code swallowed its exception.
// An exception that a stand-in or a lazy may have caused becomes a break.
#pragma once

#include "src/interp/fault.h"

#include "src/world/world.h"

static inline bool broke(world *w) {
    return w->stop.broken;
}

// Whether native code itself raised the current exception: an exception that passed through a frame
// has a traceback.
bool native_born_here(void);
// For native code that failed: a break stays a break, or the exception stays. Always -1.
int native_failed(world *w, bool suspicious);
// Whether an argument is a lazy: C code would raise an error about the lazy with another text than
// about the value.
bool native_has_lazy(const call *c);

// Notes when native code made an object, if a plan may be unable to make it again. If such an
// object lives at a break, the trace is done again and breaks before the object was made.
void native_made(world *w, PyObject *o);

// Checks the result of native code. Takes the reference.
static inline PyObject *native_result(world *w, PyObject *result, bool suspicious) {
    world_touch(w);
    if (FAULTY(false, true))
        Py_CLEAR(result);
    if (LIKELY(result && !w->stop.broken))
        return result;
    Py_XDECREF(result);
    native_failed(w, suspicious);
    return NULL;
}

static inline int native_status(world *w, int result, bool suspicious) {
    world_touch(w);
    result = FAULTY(result, -1);
    return LIKELY(result >= 0 && !w->stop.broken) ? result : native_failed(w, suspicious);
}

// A new reference to `o`, opened and prepared; NULL with an exception or a break.
PyObject *native_open(world *w, PyObject *o, unsigned protocols);
