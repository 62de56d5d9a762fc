// Turns a call or a frame at rest into guards and a plan, by a trace. If the trace cannot end where
// it broke, it is done again and breaks earlier.
#include "src/py/evalhook.h"
#include "src/py/raised.h"
#include "src/py/shown.h"

#include "src/graph/given.h"

#include "src/call/numpy.h"

#include "src/torch/marks.h"

#include "src/compile/room.h"

#define MOST_RESTARTS 100

// What a trace has made. The numbers to leave open stay: a trace that is done again goes by them.
static void clear_made(product *p) {
    if (p->open_end)
        guard_trial_free(p->guards);
    else
        guard_program_free(p->guards);
    py_raised aside = py_put_aside();
    if (p->trace)
        world_free(p->trace);
    py_put_on(aside);
    plan_free(p->plan);
    break_clear(&p->why);
    Py_CLEAR(p->settled);
    *p = (product){.misfits = p->misfits, .asked = p->asked};
}

void product_clear(product *p) {
    clear_made(p);
    Py_CLEAR(p->misfits);
    entry_numbers_clear(&p->asked);
    *p = (product){0};
}

world *product_world(const compiler *c, const entry_numbers *asked) {
    world *w = numpy_meet() == ST_OK ? world_new() : NULL;
    if (!w)
        return NULL;
    w->terms.symbolic = asked->open;
    w->terms.settled = asked->settled;
    w->terms.named = asked->named;
    w->terms.symbolic_all = asked->settings & NUMBERS_ALL;
    w->terms.parameters = asked->settings & NUMBERS_PARAMETERS;
    w->terms.modules = asked->settings & NUMBERS_MODULES;
    w->terms.lenient = asked->settings & NUMBERS_LENIENT;
    w->terms.unhinted = asked->settings & NUMBERS_UNHINTED;
    w->terms.gradients = asked->settings & NUMBERS_GRADIENTS;
    w->terms.captures = numbers_captured(c, asked->settings);
    w->terms.whole = c->fullgraph;
    w->terms.replayed = c->backend == Py_None;
    w->terms.recursion = c->recursion;
    w->terms.handling = py_is_handling();
    w->terms.told_before = compiler_told;
    w->terms.showing = py_is_showing();
    if (c->symbolic != Py_None)
        w->terms.symbolic = c->symbolic;
    return w;
}

bool product_is_strict(const compiler *c, world *w) {
    return !w->terms.recovering && (c->fullgraph || mark_strict(w));
}

// The frames of a break are a result like any other. A reason not to rebuild them takes the place
// of the one why it broke.
static void forget_break(world *w) {
    w->stop.broken = false;
    w->time.again = 0;
    Py_CLEAR(w->stop.detail);
    Py_CLEAR(w->stop.stack);
}

// A trace that only looks for the place of a failure is given to no backend.
static bool has_open_end(const world *w) {
    const graph *g = w->graph;
    return !w->terms.replayed && !w->terms.recovering && !g->literal && graph_operations(g) > 0 &&
           given_is_open(g);
}

static trace_end make_product(world *w, PyObject *value, PyCodeObject *co, product *out) {
    PyObject *result = value;
    if (w->stop.broken) {
        result = (PyObject *)w->stop.image;
        out->broke = true;
        out->why = break_of(w, co);
        if (PyErr_Occurred()) { // a signal came while it was put in words
            clear_made(out);
            return TRACE_ERROR;
        }
        forget_break(w);
        if (pieces_note(w, w->stop.image) < 0) {
            clear_made(out);
            return TRACE_ERROR;
        }
    }
    out->calls = w->graph->calls; // the end may add some
    out->depth = w->inside.deepest;
    bool fine = !world_tensors || world_tensors->end(w) == ST_OK;
    out->plan = fine ? plan_build(w, result) : NULL;
    if (out->plan && world_finish(w) == ST_OK)
        out->guards =
            (out->open_end = has_open_end(w)) ? guard_trial(w->guards) : guard_seal(w->guards);
    if (out->guards && numbers_end(w, out, "trace") == 0)
        return TRACE_DONE;
    clear_made(out);
    return w->stop.broken ? TRACE_BROKE : TRACE_ERROR;
}

static bool is_done_again(const world *w) {
    return w->stop.wants_history || w->stop.outdated;
}

static trace_end trace_once(compiler *c, world *w, guard_frame *f, int below, product *out) {
    PyCodeObject *co = frame_code(f);
    hook_scope before;
    PyObject *value;
    c->traces++;
    hook_enter(&before, HOOK_TRACE);
    trace_end end = trace_function(w, f, below, &value);
    out->reach = w->roots.reached;
    out->looked = w->roots.looked;
    out->told = w->facts.told;
    if (f->unit == 0 && (long)w->time.now > c->longest)
        c->longest = (long)w->time.now;
    bool ends_there = w->stop.image && !is_done_again(w) && !product_is_strict(c, w);
    if (end == TRACE_DONE || (end == TRACE_BROKE && ends_there))
        end = make_product(w, value, co, out);
    hook_leave(&before);
    if (end == TRACE_ERROR && !w->stop.interrupted && PyErr_ExceptionMatches(PyExc_MemoryError)) {
        w->time.again = 0;
        world_break(w, REASON_RESOURCES, "MemoryError");
        end = TRACE_BROKE; // the program itself may need less
    }
    if (end == TRACE_BROKE)
        PyErr_Clear();
    py_raised aside = py_put_aside();
    if (value && !world_keep(w, value)) // a generator in it must not end by itself
        PyErr_Clear();
    py_put_on(aside);
    return end;
}

// Once more on fakes with history, if the trace needs these and cannot make them by itself, and for
// each lazy module that it has initialised.
static trace_end trace_so(compiler *c, world **w, guard_frame *f, int below, product *out) {
    enum { MOST_TIMES = 1000 };
    trace_end end = trace_once(c, *w, f, below, out);
    for (int i = 0; end == TRACE_BROKE && is_done_again(*w) && i < MOST_TIMES; i++) {
        world *next = world_new();
        if (!next)
            return end;
        c->restarts++;
        world_anew(next, *w);
        world_free(*w);
        *w = next;
        end = trace_once(c, *w, f, below, out);
    }
    return end;
}

trace_end product_trace(compiler *c, world **w, guard_frame *f, int below, product *out) {
    trace_end end = trace_so(c, w, f, below, out);
    for (int i = 0; i < MOST_RESTARTS && end == TRACE_BROKE && !product_is_strict(c, *w); i++) {
        if ((*w)->time.again == 0 || (*w)->time.again >= (*w)->time.stop_at)
            break;
        world *next = world_new();
        if (!next)
            break;
        c->restarts++;
        world_again(next, *w);
        world_free(*w);
        *w = next;
        end = trace_so(c, w, f, below, out);
        out->last = true;
    }
    return end;
}
