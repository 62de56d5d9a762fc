// The eval hook (PEP 523): decides for each Python frame who runs it. Installed only while some
// thread is in a scope, on top of whatever hook was there, and taken off again.
#include "src/py/natives.h"
#include "src/py/raised.h"

#include "src/code/code.h"

#include "src/interp/image.h"
#include "src/interp/interp.h"

#include "src/call/marks.h"

#include "src/trace/trace.h"

#include "src/hook/compile.h"
#include "src/hook/hook.h"

#include <pthread.h>

// --- installation ---

static _PyFrameEvalFunction previous_eval; // what was there when the hook was put on
static long scopes;                        // in all threads; guarded by the GIL
static __attribute__((tls_model("initial-exec"))) _Thread_local hook_mode mode;
static __attribute__((tls_model("initial-exec"))) _Thread_local long scopes_here;
static bool helper_seen; // a frame that is CPython's by rule came by; guarded by the GIL

static PyObject *hook_eval(PyThreadState *ts, py_frame *f, int throwing);

static bool on; // ours is in the chain: on top, or below a hook that someone put on later

static bool is_default(_PyFrameEvalFunction eval) {
    return eval == NULL || eval == _PyEval_EvalFrameDefault;
}

// Whether the hook on top passes frames down to ours; asked by a function that does nothing.
static bool frames_come(void) {
    py_raised aside = py_put_aside();
    helper_seen = false;
    if (py_call_helper() < 0)
        PyErr_Clear();
    py_put_on(aside);
    return helper_seen;
}

// Never twice: a hook above ours passes frames down to it, and ours must not pass them up again.
// (If CPython's own eval is back, someone has put the state of before ours back.)
static void install(PyInterpreterState *interp) {
    _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(interp);
    if (current == hook_eval || (on && !is_default(current) && frames_come()))
        return;
    previous_eval = current;
    _PyInterpreterState_SetEvalFrameFunc(interp, hook_eval);
    on = true;
}

// Someone may have put a hook on top of ours, and calls it: then it stays, and passes everything
// on.
static void uninstall(PyInterpreterState *interp) {
    if (_PyInterpreterState_GetEvalFrameFunc(interp) != hook_eval)
        return;
    _PyInterpreterState_SetEvalFrameFunc(interp, previous_eval);
    on = false;
}

// Frames that are to be filled must come here, or a user's function would run on dummies; a watched
// frame may have taken the hook off for its own time.
static void ensure(void) {
    install(PyInterpreterState_Get());
}

void hook_enter(hook_scope *before, hook_mode wanted) {
    before->mode = mode;
    mode = wanted;
    scopes_here++;
    scopes++;
    install(PyInterpreterState_Get());
}

void hook_leave(const hook_scope *before) {
    mode = before->mode;
    scopes_here--;
    if (--scopes == 0)
        uninstall(PyInterpreterState_Get());
}

bool hook_compiles(void) {
    return mode == HOOK_COMPILE;
}

hook_mode hook_swap(hook_mode wanted) {
    hook_mode before = mode;
    mode = wanted;
    return before;
}

// Only the forking thread lives on in the child; what the others had asked for is gone with them.
static void after_fork_in_child(void) {
    scopes = scopes_here;
    PyThreadState *ts = _PyThreadState_UncheckedGet();
    if (ts == NULL)
        return;
    trace_after_fork();
    if (scopes == 0)
        uninstall(ts->interp);
}

// --- who gets a frame ---

// Code whose frames are not compiled: how far that reaches, plus one; keys are strong.
static map skips;

int hook_skip(PyCodeObject *py, hook_reach reach) {
    code *c = code_of(py);
    if (c == NULL || map_put(&skips, map_key(py), (uint64_t)reach + 1) != ST_OK)
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
    if (caller != NULL && !py_frame_incomplete(caller) &&
        reach_of_code(py_frame_code(caller)) == HOOK_FRAME_AND_NEXT)
        return HOOK_FRAME;
    PyObject *function = py_frame_function(f);
    mark_reach marked = PyFunction_Check(function) ? mark_disabled(function) : MARK_NOT;
    return marked == MARK_NOT ? -1 : marked == MARK_BELOW ? HOOK_ALL_BELOW : HOOK_FRAME;
}

// To the hook that was there, or CPython's own eval. What CPython runs itself between Python
// functions costs it no C recursion; only the hook turned it into evals.
static PyObject *pass_on(PyThreadState *ts, py_frame *f, int throwing) {
    if (is_default(previous_eval))
        return py_eval_default(ts, f, throwing, true);
    return previous_eval(ts, f, throwing);
}

static PyObject *pass_on_off(PyThreadState *ts, py_frame *f, int throwing) {
    hook_mode before = hook_swap(HOOK_OFF);
    PyObject *result = pass_on(ts, f, throwing);
    hook_swap(before);
    return result;
}

// A watched frame runs with no hook at all, as long as it runs: CPython takes other ways through
// its instructions under a hook, and tools can see that (a coroutine's end raises StopIteration
// then).
static PyObject *run_watched(PyThreadState *ts, py_frame *f, int throwing) {
    if (!PY_HOOK_SHOWS)
        return pass_on(ts, f, throwing);
    PyInterpreterState *interp = ts->interp;
    uninstall(interp);
    PyObject *result = pass_on(ts, f, throwing);
    if (scopes > 0)
        install(interp);
    return result;
}

static bool wants(PyThreadState *ts, py_frame *f, int throwing) {
    if (UNLIKELY(py_is_native_helper(py_frame_code(f)))) {
        helper_seen = true;
        return false;
    }
    if (mode != HOOK_EVALUATE || !interp_can_run(ts, f))
        return false;
    py_raised thrown = {0}; // on its way into the frame
    if (throwing)
        thrown = py_put_aside();
    code *c = code_of(py_frame_code(f));
    if (c == NULL)
        PyErr_Clear(); // said again, where the frame can be ended with it
    if (throwing)
        py_put_on(thrown);
    return c == NULL || !c->skip;
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
            return pass_on(ts, f, throwing);
        left = image_next_hop(t);
        return interp_eval(ts, f, throwing, thin, t->every ? &left : &t->left);
    default:
        return interp_eval(ts, f, throwing, thin, NULL);
    }
}

// Frames of torch's own Python code, imports and signal handlers are no part of a trace.
static bool traced(py_frame *f) {
    return mode == HOOK_TRACE && world_here != NULL && world_here->quiet == 0 &&
           !py_is_native_helper(py_frame_code(f));
}

static PyObject *route(PyThreadState *ts, py_frame *f, int throwing) {
    if (traced(f))
        return trace_eval(ts, f, throwing);
    int reach = mode == HOOK_COMPILE && !throwing ? reach_of(ts, f) : HOOK_FRAME;
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
        return watched ? run_watched(ts, f, throwing) : pass_on(ts, f, throwing);
    }
    return evaluate_frame(ts, f, throwing, thin);
}

static PyObject *hook_eval(PyThreadState *ts, py_frame *f, int throwing) {
    if (UNLIKELY(py_stack_short()))
        return py_stack_extend(route, ts, f, throwing);
    return route(ts, f, throwing);
}

bool hook_installed(void) {
    return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == hook_eval;
}

int hook_setup(void) {
    static bool done;
    if (!done && pthread_atfork(NULL, NULL, after_fork_in_child) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "cannot register a fork handler");
        return -1;
    }
    done = true;
    image_ensure_hook = ensure;
    interp_eval_watched = run_watched;
    return 0;
}
