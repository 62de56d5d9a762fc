// After native code ran: a break is seen even if the native code swallowed it, and an exception
// that a stand-in or a lazy may have caused is not believed.
#pragma once

#include "src/interp/fault.h"

#include "src/world/world.h"

static inline bool broke(world *w) {
    return w->stop.broken;
}

// Whether the exception that is set was born in native code just now: those that passed a frame
// carry a traceback.
bool native_born_here(void);
// For what failed: the break goes on upwards, or the exception does. Always -1.
int native_failed(world *w, bool suspicious);
// What C code says about a lazy it would say in other words about the value.
bool native_has_lazy(const call *c);

// Something came out of native code. If it may be an object that cannot be made again, when it came
// to be is noted: where one lives at a break, the trace breaks before that.
void native_made(world *w, PyObject *o);

// Steals the result.
static inline PyObject *native_result(world *w, PyObject *result, bool suspicious) {
    world_touch(w);
    if (FAULTY(false, true))
        Py_CLEAR(result);
    if (LIKELY(result != NULL && !w->stop.broken))
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

// An opened and prepared strong reference; NULL with an exception or a break.
PyObject *native_open(world *w, PyObject *o, unsigned protocols);
