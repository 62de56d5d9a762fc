// Goes on after a graph has raised: finds the frames where the program continues, or lets CPython
// run the frame from its start.
#include "src/py/evalhook.h"
#include "src/py/raised.h"

#include "src/interp/image.h"

#include "src/compile/room.h"

// Nothing is left of what the graph did: CPython runs the frame, and its handlers work.
static bool is_repeatable(const graph_failure *failure) {
    return !((failure->done | failure->raised) & EFFECTS_LASTING) &&
           PyErr_ExceptionMatches(PyExc_Exception);
}

// Whether an exception comes from what the machine has left, not from what the operation was given.
static bool is_accident(PyObject *exception) {
    if (!PyExceptionInstance_Check(exception) ||
        PyErr_GivenExceptionMatches(exception, PyExc_MemoryError))
        return true;
    PyObject *mro = Py_TYPE(exception)->tp_mro;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        const char *name = ((PyTypeObject *)PyTuple_GET_ITEM(mro, i))->tp_name;
        size_t length = strlen(name), own = strlen("OutOfMemoryError");
        if (length >= own && strcmp(name + length - own, "OutOfMemoryError") == 0)
            return true;
    }
    return !PyErr_GivenExceptionMatches(exception, PyExc_Exception);
}

// Effects of the calls from one number up to another.
static int effects_between(const graph *g, int from, int to) {
    int effects = 0;
    for (Py_ssize_t i = g->inputs; i < PyList_GET_SIZE(g->nodes); i++) {
        const node *n = (node *)PyList_GET_ITEM(g->nodes, i);
        if (n->number >= from && n->number < to)
            effects |= n->effects;
    }
    return effects;
}

// Whether the instruction that failed may be run once more, so that it raises as it does in plain
// Python: it has done nothing yet but compute. (Native code of one instruction may have made
// several calls.)
static bool may_run_again(const graph *g, const graph_failure *failure, int calls,
                          PyObject *exception) {
    return effects_between(g, calls, failure->number) == 0 && failure->raised == 0 &&
           !is_accident(exception);
}

// The frames as they stood before the instruction whose call failed; what the graph has computed up
// to there is taken. NULL without an exception if that cannot be.
static image *frames_at_failure(entry *e, product *made, guard_frame *f, graph_failure *failure) {
    graph *whole = plan_graph_of(e->plan);
    PyObject **regs = registers_new(guard_registers(made->guards));
    PyObject *result = NULL;
    int failed;
    if (regs && made->broke && made->calls <= failure->number &&
        graph_begins_like(whole, plan_graph_of(made->plan), made->calls) &&
        guard_check(made->guards, f, regs, &failed)) {
        hook_mode before = hook_swap(HOOK_OFF);
        result = plan_run_taken(made->plan, regs, failure->values);
        hook_swap(before);
    }
    PyMem_Free(regs);
    return (image *)result;
}

// The frame is traced once more, up to the instruction whose call failed. The guards of the entry
// have passed, and what they look at is as it was: so is the trace.
static bool trace_to_failure(compiler *c, const entry *e, guard_frame *f, int number,
                             product *out) {
    world *w = product_world(c, &e->asked);
    if (!w)
        return false;
    w->time.stop_call = number;
    w->terms.recovering = true;
    trace_end end = product_trace(c, &w, f, e->reach, out);
    py_raised aside = py_put_aside();
    world_free(w);
    py_put_on(aside);
    return end == TRACE_DONE;
}

// Whether all that the entry's trace has seen is as it was then: the registers, to be freed, or
// NULL.
static PyObject **pass_again(const entry *e, guard_frame *f) {
    PyObject **regs = registers_new(guard_registers(e->guards));
    int failed;
    Py_CLEAR(f->kept);
    if (!regs || guard_check(e->guards, f, regs, &failed))
        return regs;
    PyMem_Free(regs);
    return NULL;
}

static bool still_passes(const entry *e, guard_frame *f) {
    PyObject **regs = pass_again(e, f);
    bool passes = regs != NULL;
    PyMem_Free(regs);
    Py_CLEAR(f->kept);
    return passes;
}

static bool find_failure(const entry *e, guard_frame *f, bool stop, graph_failure *failure) {
    PyObject **regs = pass_again(e, f);
    hook_mode before = hook_swap(HOOK_OFF);
    bool found = regs && plan_find_failure(e->plan, regs, stop, failure);
    hook_swap(before);
    PyMem_Free(regs);
    return found;
}

// Each frame goes on in CPython; the innermost instruction raises, or is run for real.
static void mark_frames(image *innermost, PyObject *raises) {
    innermost->raises = Py_XNewRef(raises);
    for (image *i = innermost; i; i = i->caller)
        i->native = true;
}

// The frames as they stood where the graph failed, or NULL; no exception is set.
static image *frames_of(compiler *c, entry *e, guard_frame *f, graph_failure *failure,
                        product *made) {
    image *frames = NULL;
    if (failure->values && trace_to_failure(c, e, f, failure->number, made))
        frames = frames_at_failure(e, made, f, failure);
    PyErr_Clear();
    Py_CLEAR(f->kept);
    return frames;
}

// A compiled graph does not say where it failed: that is looked for, and the operation's own
// exception takes the place of the backend's. If the frames cannot be had there, for lack of a
// value that may not be computed twice, they are had where it would have been.
static image *frames_of_compiled(compiler *c, entry *e, guard_frame *f, graph_failure *failure,
                                 product *made, PyObject **exception) {
    image *frames = NULL;
    for (int stop = 0; stop < 2 && !frames; stop++) {
        bool found = find_failure(e, f, stop, failure);
        PyObject *own = py_take_raised();
        product_clear(made);
        frames = found ? frames_of(c, e, f, failure, made) : NULL;
        if (frames && own)
            Py_SETREF(*exception, Py_NewRef(own));
        Py_XDECREF(own);
    }
    return frames;
}

// What the graph did up to the failure is done and stays; the program goes on from there.
static outcome recover(compiler *c, entry *e, guard_frame *f, graph_failure *failure,
                       PyObject **result, int *reach) {
    PyObject *exception = py_take_raised();
    product made = {0};
    image *frames = NULL;
    if (failure->number < 0)
        frames = frames_of_compiled(c, e, f, failure, &made, &exception);
    else if (still_passes(e, f))
        frames = frames_of(c, e, f, failure, &made);
    if (frames) {
        bool again = may_run_again(plan_graph_of(e->plan), failure, made.calls, exception);
        mark_frames(frames, again ? NULL : exception);
        *reach = made.reach;
        Py_CLEAR(exception);
    }
    product_clear(&made);
    py_set_raised(exception);
    *result = (PyObject *)frames;
    return frames ? OUTCOME_BROKE : OUTCOME_ERROR;
}

outcome failure_handle(compiler *c, entry *e, guard_frame *f, graph_failure *failure,
                       PyObject **result, int *reach) {
    outcome how;
    if (is_repeatable(failure)) {
        PyErr_Clear();
        how = OUTCOME_NATIVE;
        *reach = 0; // once: the frames below may have better luck
    } else {
        how = recover(c, e, f, failure, result, reach);
    }
    py_raised aside = py_put_aside();
    Py_CLEAR(failure->values);
    Py_CLEAR(failure->saved);
    py_put_on(aside);
    return how;
}
