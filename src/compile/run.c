// Turns a call or a frame at rest into its result, by an entry that fits.
#include "src/py/evalhook.h"

#include "src/compile/room.h"
#include "src/compile/watch.h"

#define REGISTERS_ON_STACK 128

__attribute__((tls_model("initial-exec"))) _Thread_local bool compiler_told;

// A program that is to be one graph gets what it was told as compiled, be the graph empty.
static bool runs_natively(const compiler *c, const entry *e) {
    return e->empty && !c->keep_empty && !(e->told && c->fullgraph);
}

outcome run_entry(compiler *c, entry *e, guard_frame *f, PyObject *const *regs, PyObject **result,
                  int *reach) {
    *reach = e->reach;
    if (runs_natively(c, e))
        return OUTCOME_NATIVE;
    graph_failure failure = {0};
    if (e->told && (hook_here == HOOK_COMPILE || plan_breaks(e->plan)))
        compiler_told = true;
    cache_hold(e);
    hook_mode before = hook_swap(HOOK_OFF); // torch's own Python code is not the program's
    *result = plan_run(e->plan, regs, &failure);
    hook_swap(before);
    outcome how = !*result ? OUTCOME_ERROR : plan_breaks(e->plan) ? OUTCOME_BROKE : OUTCOME_DONE;
    if (failure.failed)
        how = failure_handle(c, e, f, &failure, result, reach);
    cache_release(e);
    return how;
}

bool run_fitting(compiler *c, cache *k, guard_frame *f, PyObject **regs, PyObject **result,
                 int *reach, outcome *how) {
    entry *e = cache_find(k, f, regs);
    if (e) {
        c->hits++;
        *how = run_entry(c, e, f, regs, result, reach);
    }
    Py_CLEAR(f->kept);
    return e != NULL;
}

outcome compiler_run(compiler *c, cache *k, guard_frame *f, PyObject **result, int *reach) {
    PyObject *few[REGISTERS_ON_STACK], **regs = few;
    int needed = k->registers;
    *reach = 0;
    if (needed > REGISTERS_ON_STACK)
        regs = PyMem_Malloc((size_t)needed * sizeof(PyObject *));
    if (!regs) {
        PyErr_NoMemory();
        return OUTCOME_ERROR;
    }
    outcome how;
    if (!run_fitting(c, k, f, regs, result, reach, &how)) {
        PyThreadState *ts = PyThreadState_Get();
        bool suspended = watch_suspend(ts, frame_code(f));
        how = make_entry(c, k, f, result, reach);
        watch_resume(ts, suspended);
    }
    if (regs != few)
        PyMem_Free(regs);
    return how;
}
