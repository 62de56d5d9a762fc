// Installs and removes the eval hook, beside the hooks of others.
#include "src/py/evalhook.h"

#include "src/py/natives.h"
#include "src/py/raised.h"

static _PyFrameEvalFunction own_eval;      // ours
static _PyFrameEvalFunction previous_eval; // what was there when the hook was put on
static long scopes;                        // in all threads; guarded by the GIL
static bool helper_seen;                   // guarded by the GIL
static bool on; // ours is in the chain: on top, or below a hook that someone put on later
static __attribute__((tls_model("initial-exec"))) _Thread_local long scopes_here;
__attribute__((tls_model("initial-exec"))) _Thread_local hook_mode hook_here;

void hook_use(_PyFrameEvalFunction eval) {
    own_eval = eval;
}

void hook_saw_helper(void) {
    helper_seen = true;
}

static bool is_default(_PyFrameEvalFunction eval) {
    return !eval || eval == _PyEval_EvalFrameDefault;
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
// (If CPython's own eval is back, someone has put back the state before ours.)
static void install(PyInterpreterState *interp) {
    _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(interp);
    if (current == own_eval || (on && !is_default(current) && frames_come()))
        return;
    previous_eval = current;
    _PyInterpreterState_SetEvalFrameFunc(interp, own_eval);
    on = true;
}

// If someone has put a hook on top of ours and calls it, ours stays, and passes everything on.
static void uninstall(PyInterpreterState *interp) {
    if (_PyInterpreterState_GetEvalFrameFunc(interp) != own_eval)
        return;
    _PyInterpreterState_SetEvalFrameFunc(interp, previous_eval);
    on = false;
}

void hook_ensure(void) {
    install(PyInterpreterState_Get());
}

bool hook_installed(void) {
    return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == own_eval;
}

void hook_enter(hook_scope *before, hook_mode wanted) {
    before->mode = hook_swap(wanted);
    scopes_here++;
    scopes++;
    install(PyInterpreterState_Get());
}

void hook_leave(const hook_scope *before) {
    hook_here = before->mode;
    scopes_here--;
    if (--scopes == 0)
        uninstall(PyInterpreterState_Get());
}

hook_mode hook_swap(hook_mode wanted) {
    hook_mode before = hook_here;
    hook_here = wanted;
    return before;
}

void hook_after_fork(PyThreadState *ts) {
    scopes = scopes_here;
    if (ts && scopes == 0)
        uninstall(ts->interp);
}

static __attribute__((tls_model("initial-exec"))) _Thread_local py_frame *passed_on;

// What CPython runs itself between Python functions costs it no C recursion; only the hook turned
// it into evals. The hook that was there before ours may have been put on once more, on top of ours
// (as torch's own is). It passes the frame down to ours then, which must not pass it up again.
PyObject *hook_pass_on(PyThreadState *ts, py_frame *f, int throwing) {
    if (is_default(previous_eval) || passed_on == f)
        return py_eval_default(ts, f, throwing, true);
    py_frame *outer = passed_on;
    passed_on = f;
    PyObject *result = previous_eval(ts, f, throwing);
    passed_on = outer;
    return result;
}

bool hook_has_passed_on(const py_frame *f) {
    return passed_on == f;
}

PyObject *hook_pass_on_watched(PyThreadState *ts, py_frame *f, int throwing) {
    if (!PY_HOOK_SHOWS)
        return hook_pass_on(ts, f, throwing);
    PyInterpreterState *interp = ts->interp;
    uninstall(interp);
    PyObject *result = hook_pass_on(ts, f, throwing);
    if (scopes > 0)
        install(interp);
    return result;
}
