// Decides for each Python frame that comes to the eval hook who runs it.
#include "src/py/natives.h"
#include "src/py/raised.h"

#include "src/code/code.h"

#include "src/interp/image.h"
#include "src/interp/interp.h"

#include "src/trace/trace.h"

#include "src/torch/marks.h"

#include "src/compile/compiled.h"

#include "src/hook/hook.h"

#include <pthread.h>

// Code whose frames are not compiled: how far that reaches, plus one; keys are strong.
static map skips;

int hook_skip(PyCodeObject *py, hook_reach reach) {
    code *c = code_of(py);
    if (!c || map_put(&skips, map_key(py), (uint64_t)reach + 1) != ST_OK)
        return -1;
    Py_INCREF(py);
    c->skip = true;
    return 0;
}

static int reach_of_code(PyCodeObject *co) {
    uint64_t *found = map_get(&skips, map_key(co));
    return found ? (int)*found - 1 : -1;
}

// How far a frame is CPython's, or -1 if it may be compiled.
static int reach_of(PyThreadState *ts, py_frame *f) {
    int own = reach_of_code(py_frame_code(f));
    if (own >= 0)
        return own;
    py_frame *caller = py_current_frame(ts); // a fresh frame is not linked yet
    if (caller && !py_frame_incomplete(caller) &&
        reach_of_code(py_frame_code(caller)) == HOOK_FRAME_AND_NEXT)
        return HOOK_FRAME;
    PyObject *function = py_frame_function(f);
    mark_reach marked = PyFunction_Check(function) ? mark_disabled(function) : MARK_NOT;
    return marked == MARK_NOT ? -1 : marked == MARK_BELOW ? HOOK_ALL_BELOW : HOOK_FRAME;
}

static PyObject *pass_on_off(PyThreadState *ts, py_frame *f, int throwing) {
    hook_mode before = hook_swap(HOOK_OFF);
    PyObject *result = hook_pass_on(ts, f, throwing);
    hook_swap(before);
    return result;
}

static bool wants(PyThreadState *ts, py_frame *f, int throwing) {
    if (UNLIKELY(py_is_native_helper(py_frame_code(f)))) {
        hook_saw_helper();
        return false;
    }
    if (hook_here != HOOK_EVALUATE || !interp_can_run(ts, f))
        return false;
    py_raised thrown = {0}; // on its way into the frame
    if (throwing)
        thrown = py_put_aside();
    code *c = code_of(py_frame_code(f));
    if (!c)
        PyErr_Clear(); // said again, where the frame can be ended with it
    if (throwing)
        py_put_on(thrown);
    return !c || !c->skip;
}

static PyObject *evaluate_frame(PyThreadState *ts, py_frame *f, int throwing, bool thin) {
    interp_thread *t = &interp_here;
    long left;
    switch (t->stop) {
    case STOP_TAKE:
        return interp_eval(ts, f, throwing, thin, thin && t->lent.counted ? &t->left : NULL);
    case STOP_HOP:
        // A generator comes here at each resumption: some are CPython's, and the next ones ours
        // again.
        if (py_frame_in_generator(f) && t->every && image_next_hop(t) % 4 == 0)
            return hook_pass_on(ts, f, throwing);
        left = image_next_hop(t);
        return interp_eval(ts, f, throwing, thin, t->every ? &left : &t->left);
    default:
        return interp_eval(ts, f, throwing, thin, NULL);
    }
}

// Frames of torch's own Python code, imports and signal handlers are no part of a trace.
static bool traced(py_frame *f) {
    return hook_here == HOOK_TRACE && world_here && world_here->inside.quiet == 0 &&
           !py_is_native_helper(py_frame_code(f));
}

static _Thread_local PyObject *caught; // strong: the function of the first frame, or NULL

static PyObject *catch_frame(PyThreadState *ts, py_frame *f) {
    if (!caught)
        caught = Py_NewRef(py_frame_function(f));
    py_discard(ts, f);
    PyErr_SetString(PyExc_RuntimeError, "only the function was looked for");
    return NULL;
}

PyObject *hook_first_function(PyObject *callable, PyObject *args, PyObject *kwargs) {
    hook_scope before;
    hook_enter(&before, HOOK_CATCH);
    PyObject *result = PyObject_Call(callable, args, kwargs);
    hook_leave(&before);
    PyObject *function = caught;
    caught = NULL;
    if (function)
        PyErr_Clear();
    else if (result)
        function = Py_NewRef(Py_None);
    Py_XDECREF(result);
    return function;
}

static PyObject *route(PyThreadState *ts, py_frame *f, int throwing) {
    if (UNLIKELY(hook_here == HOOK_CATCH) && !py_is_native_helper(py_frame_code(f)))
        return catch_frame(ts, f);
    if (traced(f))
        return trace_eval(ts, f, throwing);
    int reach = hook_here == HOOK_COMPILE && !throwing ? reach_of(ts, f) : HOOK_FRAME;
    if (reach == HOOK_ALL_BELOW)
        return pass_on_off(ts, f, throwing);
    if (reach < 0) {
        drive_whose whose;
        PyObject *result = compile_frame(ts, f, &whose);
        if (whose != DRIVE_CPYTHONS)
            return whose == DRIVE_MINE ? result : pass_on_off(ts, f, throwing);
    }
    interp_thread *t = &interp_here;
    bool thin = run_take_lent(t, f);
    if (image_expects(t, f))
        return image_arrived(ts, f);
    if (!wants(ts, f, throwing)) {
        bool watched = py_tools_on(ts, py_frame_code(f));
        return watched ? hook_pass_on_watched(ts, f, throwing) : hook_pass_on(ts, f, throwing);
    }
    return evaluate_frame(ts, f, throwing, thin);
}

static PyObject *hook_eval(PyThreadState *ts, py_frame *f, int throwing) {
    if (UNLIKELY(hook_has_passed_on(f)))
        return hook_pass_on(ts, f, throwing);
    if (UNLIKELY(py_stack_short()))
        return py_stack_extend(route, ts, f, throwing);
    return route(ts, f, throwing);
}

// Only the forking thread lives on in the child; what the others had asked for is gone with them.
static void after_fork_in_child(void) {
    PyThreadState *ts = _PyThreadState_UncheckedGet();
    if (ts)
        trace_after_fork();
    hook_after_fork(ts);
}

int hook_setup(void) {
    static bool done;
    if (!done && pthread_atfork(NULL, NULL, after_fork_in_child) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "cannot register a fork handler");
        return -1;
    }
    done = true;
    hook_use(hook_eval);
    return 0;
}
