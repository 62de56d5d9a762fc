// Debuggers, profilers and monitors: whether one watches, and the events of a frame of ours if an
// exception and a tool arrive in it together. CPython runs watched frames, so it reports all other
// events.
#include "src/py/frame.h"
#include "src/py/raised.h"

#if PY_VERSION_HEX >= 0x030c0000

// The tools whose events someone wants, one bit each; `events` is a byte per event.
static unsigned tools_in(const void *events, size_t count) {
    const uint8_t *bytes = events;
    unsigned tools = 0;
    for (size_t i = 0; i < count; i++)
        tools |= bytes[i];
    return tools;
}

// sys.settrace and sys.setprofile are tools, too, but concern one thread: their bits stay on in the
// whole process as long as any thread had one, even one that is gone.
#define THREAD_TOOLS (1u << PY_MONITORING_SYS_PROFILE_ID | 1u << PY_MONITORING_SYS_TRACE_ID)

// A tool that has an id may have asked for events of single code objects, of which only these know.
static bool monitors_wait(PyInterpreterState *interp) {
    for (int tool = 0; tool < PY_MONITORING_SYS_PROFILE_ID; tool++)
        for (int i = 0; interp->monitoring_tool_names[tool] && i < _PY_MONITORING_EVENTS; i++)
            if (interp->monitoring_callables[tool][i])
                return true;
    return false;
}

bool py_thread_watched(PyThreadState *ts, PyCodeObject *code) {
    return py_tools_on(ts, code) || (!ts->tracing && monitors_wait(ts->interp));
}

// In a tool's own code CPython makes no events.
bool py_tools_on(PyThreadState *ts, PyCodeObject *code) {
    if (ts->tracing)
        return false;
    if (ts->c_tracefunc || ts->c_profilefunc)
        return true;
    unsigned tools = tools_in(&ts->interp->monitors, sizeof(ts->interp->monitors));
    if (code->_co_monitoring)
        tools |= tools_in(&code->_co_monitoring->local_monitors,
                          sizeof(code->_co_monitoring->local_monitors));
    return (tools & ~THREAD_TOOLS) != 0;
}

bool py_tools_stale(PyThreadState *ts, PyCodeObject *code) {
#if PY_VERSION_HEX >= 0x030d0000
    return code->_co_instrumentation_version != ts->interp->ceval.instrumentation_version;
#else
    return code->_co_instrumentation_version != ts->interp->monitoring_version;
#endif
}

#else

bool py_tools_on(PyThreadState *ts, PyCodeObject *code) {
    (void)code;
    return ts->cframe->use_tracing != 0;
}

bool py_tools_stale(PyThreadState *ts, PyCodeObject *code) {
    (void)ts;
    (void)code;
    return false;
}

#endif

// --- events ---

// Calls the function that sys.settrace or sys.setprofile left; an exception of its own replaces
// ours.
static void call_tool(PyThreadState *ts, Py_tracefunc tool, PyObject *object, int event,
                      PyObject *arg) {
    if (!tool || ts->tracing)
        return;
    PyFrameObject *frame = PyThreadState_GetFrame(ts);
    if (!frame)
        return;
    PyObject *raised = py_take_raised();
    PyThreadState_EnterTracing(ts);
    int failed = tool(object, frame, event, arg);
    PyThreadState_LeaveTracing(ts);
    Py_DECREF(frame);
    if (failed == 0)
        py_set_raised(raised);
    else
        Py_XDECREF(raised);
}

void py_tools_raised(PyThreadState *ts) {
    PyObject *raised = py_take_raised();
    PyObject *traceback = PyException_GetTraceback(raised);
    PyObject *arg =
        PyTuple_Pack(3, (PyObject *)Py_TYPE(raised), raised, traceback ? traceback : Py_None);
    Py_XDECREF(traceback);
    py_set_raised(raised);
    if (!arg)
        return;
    call_tool(ts, ts->c_tracefunc, ts->c_traceobj, PyTrace_EXCEPTION, arg);
    Py_DECREF(arg);
}

void py_tools_unwound(PyThreadState *ts) {
    call_tool(ts, ts->c_tracefunc, ts->c_traceobj, PyTrace_RETURN, Py_None);
    call_tool(ts, ts->c_profilefunc, ts->c_profileobj, PyTrace_RETURN, Py_None);
}
