// Runs a whole program, in the interpreter or in CPython, as `python script.py` would: there is no
// frame of ours below it, the recursion limit is the program's own, and an exception that leaves the program is
// printed and becomes an exit status.
#include "src/hook/program.h"

#include "src/py/frame.h"

#include "src/hook/hook.h"
#include "src/hook/scope.h"

#include <signal.h>

// --- the stack below ---

typedef struct cut {
    py_frame *frame;
    int frames;
} cut;

static int count_frames(py_frame *f) {
    int count = 0;
    for (; f; f = py_frame_caller(f))
        count += !py_frame_incomplete(f);
    return count;
}

// The frames that led here are taken off the thread, and what they took from the recursion limit is
// given back; `sys._getframe`, warnings and tracebacks then end at the program's own first frame.
static cut cut_stack(PyThreadState *ts) {
    cut c = {.frame = py_current_frame(ts)};
    c.frames = count_frames(c.frame);
    py_set_current_frame(ts, NULL);
    py_give_recursion(ts, c.frames);
    return c;
}

static void join_stack(PyThreadState *ts, const cut *c) {
    py_give_recursion(ts, -c->frames);
    py_set_current_frame(ts, c->frame);
}

// --- the program ---

static PyObject *run_target(PyObject *target, PyObject *globals) {
    if (PyCode_Check(target))
        return PyEval_EvalCode(target, globals, globals);
    return PyObject_CallNoArgs(target);
}

// SystemExit ends the process inside PyErr_Print, with its own status.
static PyObject *report(PyObject *result) {
    if (result) {
        Py_DECREF(result);
        return PyLong_FromLong(0);
    }
    bool interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    PyErr_Print();
    return PyLong_FromLong(interrupted ? -SIGINT : 1);
}

PyObject *program_run(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *target, *globals = Py_None;
    int evaluated = true;
    if (!PyArg_ParseTuple(args, "O|Op", &target, &globals, &evaluated))
        return NULL;
    if (PyCode_Check(target) ? !PyDict_Check(globals) : !PyCallable_Check(target)) {
        PyErr_SetString(PyExc_TypeError,
                        "run_program() needs a code object and its globals, or a callable");
        return NULL;
    }
    PyThreadState *ts = PyThreadState_Get();
    scope s;
    cut below = cut_stack(ts);
    if (evaluated)
        scope_enter(&s, HOOK_EVALUATE);
    PyObject *result = run_target(target, globals);
    if (evaluated)
        scope_leave(&s);
    PyObject *status = report(result);
    join_stack(ts, &below);
    return status;
}
