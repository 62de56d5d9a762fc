// Finds out whether a tool that watches the thread keeps calls from running compiled. Has the
// setting that ignores tools, and logs once.
#include "src/compile/watch.h"

#include "src/py/raised.h"

#include "src/compile/policy.h"

static bool ignored; // calls are compiled nevertheless; guarded by the GIL
static bool said;    // in the log

// The log's own Python code is none of the tool's affair.
static void say_once(compiler *c, PyThreadState *ts, PyCodeObject *co) {
    if (said || !policy_is_there(c))
        return;
    said = true;
    py_raised aside = py_put_aside();
    PyThreadState_EnterTracing(ts);
    policy_watched(c, co);
    PyThreadState_LeaveTracing(ts);
    py_put_on(aside);
}

bool watch_leaves(compiler *c, PyThreadState *ts, PyCodeObject *co) {
    if (LIKELY(!py_thread_watched(ts, co)) || ignored)
        return false;
    say_once(c, ts, co);
    return true;
}

bool watch_suspend(PyThreadState *ts, PyCodeObject *co) {
    if (!ignored || !py_thread_watched(ts, co))
        return false;
    PyThreadState_EnterTracing(ts);
    return true;
}

void watch_resume(PyThreadState *ts, bool suspended) {
    if (suspended)
        PyThreadState_LeaveTracing(ts);
}

static PyObject *ignore_tools(PyObject *module, PyObject *object) {
    (void)module;
    int on = PyObject_IsTrue(object);
    if (on < 0)
        return NULL;
    bool before = ignored;
    ignored = on;
    return PyBool_FromLong(before);
}

PyMethodDef watch_methods[] = {
    {"ignore_tools", ignore_tools, METH_O,
     "Whether calls are compiled though a debugger, profiler or monitor watches; what it was."},
    {NULL, NULL, 0, NULL},
};
