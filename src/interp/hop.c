// Frames that hop, for tests: at chosen boundaries a frame's image is put into a fresh frame, which
// continues in our interpreter or in CPython. This file also decides what happens to a frame whose
// countdown has ended.
#include "src/py/trap.h"

#include "src/interp/image.h"
#include "src/interp/interp.h"

#include <limits.h>

static uint64_t next_random(interp_thread *t) {
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return t->random;
}

long image_next_hop(interp_thread *t) {
    if (t->every <= 1)
        return 1;
    return 1 + (long)(next_random(t) % (uint64_t)(2 * t->every - 1));
}

// Hopping once goes to CPython.
static engine choose_engine(interp_thread *t) {
    if (t->every == 0)
        return ENGINE_CPYTHON;
    return next_random(t) % 4 == 0 ? ENGINE_CPYTHON : ENGINE_STATOR;
}

// A frame that was moved stands on the boundary it stopped at: that one counts, too.
static long hop_length(interp_thread *t) {
    return t->every ? image_next_hop(t) + 1 : LONG_MAX;
}

// What was taken by the frame that the last hop made; the abandoning ends here.
static image *claim_taken(interp_thread *t) {
    image *i = t->taken;
    t->taken = NULL;
    if (!i)
        return NULL;
    t->abandoning = false;
    PyErr_Clear();
    return i;
}

// A boundary to stop CPython at: any of the code's that a path leads to, but not where it stands.
static const insn *choose_trap(interp_thread *t, const code *c, uint32_t standing) {
    const flow *fl = code_flow((code *)c);
    for (int tries = 0; fl && tries < 8; tries++) {
        uint64_t n = next_random(t) % c->count;
        const insn *pc = &c->insns[n];
        if ((pc->flags & INSN_BOUNDARY) && fl->depth[n] >= 0 && insn_start(pc) > 0 &&
            insn_start(pc) != standing)
            return pc;
    }
    PyErr_Clear();
    return NULL;
}

static PyObject *make_trap_generator(image *i, uint32_t unit) {
    PyCodeObject *trap = py_trap_code(i->code, unit);
    if (!trap)
        return NULL;
    PyObject *function =
        PyFunction_New((PyObject *)trap, ((PyFunctionObject *)i->function)->func_globals);
    PyObject *generator = function ? image_call_with_dummies(function) : NULL;
    Py_XDECREF(function);
    Py_DECREF(trap);
    return generator;
}

// CPython runs the frame up to a boundary: the next image, or NULL with *result where it ended
// before.
static image *run_natively(run *r, image *i, const insn *stop, PyObject **result) {
    PyObject *made = make_trap_generator(i, insn_start(stop));
    if (!made)
        return NULL;
    PyGenObject *generator = (PyGenObject *)made;
    py_frame *f = (py_frame *)generator->gi_iframe;
    image_fill(i, r->ts->exc_info, f);
    bool trapped;
    int depth = r->code->flow->depth[stop - r->code->insns];
    *result = py_trap_run(r->ts, generator, depth, &trapped);
    image *next = trapped ? image_take(r->ts, f, r->code, stop, true) : NULL;
    py_trap_sever(generator);
    Py_DECREF(generator);
    return next;
}

// One stretch of a frame that hops: through CPython to a boundary, through CPython to the end, or
// through our loop to a boundary. The next image, or NULL with the result.
static image *hop_once(run *r, image *i, PyObject **result) {
    interp_thread *t = r->thread;
    engine engine = choose_engine(t);
    // The first unit of the copy makes the generator: a frame that stands there goes another way,
    // and so does code that begins by making cells (CPython looks back at that to know them from
    // values).
    bool free = i->unit > 0 && r->code->insns[0].op == OP_RESUME;
    if (engine == ENGINE_CPYTHON && t->every && free) {
        const insn *stop = choose_trap(t, r->code, i->unit);
        if (stop)
            return run_natively(r, i, stop, result);
    }
    long left = hop_length(t);
    *result = image_resume(i, engine, NULL, NULL, &left);
    return claim_taken(t);
}

// One frame after the other, in flat depth: each stops at its boundary, gives its image back to
// this loop and ends, until one returns. If a frame cannot be made, what it would have held goes
// back into the first one, and ends with it.
static PyObject *hop_through(run *r, image *i) {
    PyObject *result = NULL;
    while (i) {
        image *next = hop_once(r, i, &result);
        if (!i->spent)
            image_fill(i, r->ts->exc_info, r->frame);
        Py_DECREF(i);
        i = next;
    }
    return result;
}

// A generator keeps its own frame: the image goes back into it.
static stopped hop_in_place(run *r, PyObject **result) {
    interp_thread *t = r->thread;
    image *i = image_take(r->ts, r->frame, r->code, r->pc, true);
    if (!i)
        return STOPPED_RAISE;
    image_fill(i, r->ts->exc_info, r->frame);
    Py_DECREF(i);
    if (choose_engine(t) == ENGINE_CPYTHON && !py_tools_stale(r->ts, r->code->py)) {
        *result = interp_hand_over(r);
        return STOPPED_LEFT;
    }
    *r->countdown = hop_length(t);
    r->sp = py_frame_stack_pointer(r->frame);
    return STOPPED_ON;
}

static stopped hop(run *r, PyObject **result) {
    image *i = image_take(r->ts, r->frame, r->code, r->pc, true);
    if (!i)
        return STOPPED_RAISE;
    py_leave_handed_over(r->ts, r->frame, &r->entry);
    *result = hop_through(r, i);
    py_discard(r->ts, r->frame);
    return STOPPED_LEFT;
}

static stopped stop_here(run *r, PyObject **result) {
    if (r->to_cpython) {
        *result = interp_hand_over(r);
        return STOPPED_LEFT;
    }
    if (r->thread->stop == STOP_HOP && py_frame_in_generator(r->frame))
        return hop_in_place(r, result);
    if (r->thread->stop == STOP_TAKE || r->moved)
        return image_abandon(r, false, result);
    return hop(r, result);
}

// Without memory for an image the frame goes on, and is asked again at the next boundary: an
// exception cannot be raised just anywhere (between an exception's arrival and PUSH_EXC_INFO, say).
stopped image_stopped(run *r, PyObject **result) {
    *r->countdown = LONG_MAX;
    stopped what = stop_here(r, result);
    if (what != STOPPED_RAISE)
        return what;
    PyErr_Clear();
    *r->countdown = 2; // this boundary counts once more
    return STOPPED_ON;
}
