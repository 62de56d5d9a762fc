// A scope in which a thread is in one mode: saves and restores the state of the hook and of the
// interpreter.
#pragma once

#include "src/interp/run.h"

#include "src/hook/hook.h"

typedef struct scope {
    hook_scope hook;
    interp_thread thread;
} scope;

static inline interp_thread *scope_enter(scope *s, hook_mode mode) {
    s->thread = interp_here;
    interp_here = (interp_thread){0};
    hook_enter(&s->hook, mode);
    return &interp_here;
}

static inline void scope_leave(scope *s) {
    Py_CLEAR(interp_here.taken);
    hook_leave(&s->hook);
    interp_here = s->thread;
}
