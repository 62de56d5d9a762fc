// A trace from its beginning to its end: a call with dummies starts the root frame, and the world
// says how the trace ended.
#include "src/py/raised.h"

#include "src/interp/image.h"

#include "src/call/call.h"

#include "src/trace/roots.h"
#include "src/trace/instructions.h"
#include "src/trace/trace.h"

// What a thread has while it traces, and had before: no cyclic collection, and an exception state
// of its own, so that what the caller handles does not get in as __context__.
typedef struct stage {
    world *world;
    PyThreadState *ts;
    _PyErr_StackItem handled, *outer;
} stage;

// Collection is one for all threads: the last that traces turns it on again. Guarded by the GIL.
static long tracing;
static bool collecting;
static __attribute__((tls_model("initial-exec"))) _Thread_local long tracing_here;

static void stop_collecting(void) {
    tracing_here++;
    if (tracing++ == 0)
        collecting = PyGC_Disable();
}

static void go_on_collecting(void) {
    tracing_here--;
    if (--tracing == 0 && collecting)
        PyGC_Enable();
}

void trace_after_fork(void) {
    bool last = tracing > 0 && tracing_here == 0;
    tracing = tracing_here;
    if (last && collecting)
        PyGC_Enable();
}

static void stage_enter(stage *s, world *w) {
    s->world = world_here;
    s->ts = PyThreadState_Get();
    s->outer = s->ts->exc_info;
    s->handled = (_PyErr_StackItem){0};
    s->ts->exc_info = &s->handled;
    stop_collecting();
    world_here = w;
}

// What the trace handled goes while it is still this trace's: a generator that dies with it must
// not run as if it were the program's.
static void stage_leave(stage *s) {
    py_raised aside = py_put_aside();
    Py_CLEAR(s->handled.exc_value);
    py_put_on(aside);
    world_here = s->world;
    go_on_collecting();
    s->ts->exc_info = s->outer;
}

static PyObject *call_expected(world *w, const call *c) {
    w->expected = (expectation){.of = c->callable, .call = c, .result = c->result, .level = -1};
    PyObject *result = PyObject_Vectorcall(c->callable, c->args, c->given, c->keywords);
    w->expected.of = NULL;
    if (w->stop.broken)
        Py_CLEAR(result);
    return result;
}

// The lines an exception came through, outermost first.
static PyObject *traceback_lines(PyObject *exception) {
    PyObject *lines = PyList_New(0), *tuple = NULL;
    PyTracebackObject *tb = (PyTracebackObject *)PyException_GetTraceback(exception);
    PyTracebackObject *first = tb;
    if (tb && !PyTraceBack_Check(tb)) // None: made outside of any frame
        tb = NULL;
    for (; lines && tb; tb = tb->tb_next) {
        if (!tb->tb_frame) // memory ran out while it was made
            continue;
        PyCodeObject *co = PyFrame_GetCode(tb->tb_frame);
        int line = PyCode_Addr2Line(co, tb->tb_lasti);
        PyObject *row = Py_BuildValue("(OiO)", co->co_filename, line, co->co_qualname);
        Py_DECREF(co);
        if (!row || PyList_Append(lines, row) < 0)
            Py_CLEAR(lines);
        Py_XDECREF(row);
    }
    Py_XDECREF(first);
    if (lines)
        tuple = PyList_AsTuple(lines);
    Py_XDECREF(lines);
    return tuple;
}

// An exception leaves the trace: it is to be raised for real, by frames that are real.
static void note_exception(world *w) {
    PyObject *exception = py_take_raised();
    world_break_raised(w, exception);
    PyErr_Clear();
    uint64_t *caught = map_get(&w->time.born, map_key(exception));
    if (w->stop.reason != REASON_IS_COMPILING)
        w->time.again = caught ? *caught : w->time.raised_at;
    PyObject *lines = traceback_lines(exception);
    if (lines)
        Py_XSETREF(w->stop.stack, lines);
    PyErr_Clear();
    Py_DECREF(exception);
}

static trace_end how_it_ended(world *w, PyObject *result) {
    if (w->stop.interrupted) {
        // Native code may have swallowed what the signal's handler raised.
        if (!PyErr_Occurred() || PyErr_ExceptionMatches(world_break_error))
            PyErr_SetNone(PyExc_KeyboardInterrupt);
        return TRACE_ERROR;
    }
    if (w->stop.broken) {
        PyErr_Clear();
        return TRACE_BROKE;
    }
    if (!result) {
        note_exception(w);
        return TRACE_BROKE;
    }
    return TRACE_DONE;
}

trace_end trace_function(world *w, guard_frame *f, int below, PyObject **result) {
    *result = NULL;
    stage s;
    stage_enter(&s, w);
    w->roots.start = f;
    w->terms.watching = PyThreadState_Get()->tracing;
    w->inside.left = py_recursion_left(PyThreadState_Get());
    w->in.function = guard_source(w->guards, SOURCE_FUNCTION, NULL, NULL, 0);
    if (w->in.function && (f->unit == 0 || roots_look(w, below) == ST_OK) &&
        door_bring(w, w->in.function, f->function))
        *result = root_call(w, below, RUN_NATIVE);
    trace_end end = how_it_ended(w, *result);
    if (end != TRACE_DONE)
        Py_CLEAR(*result);
    stage_leave(&s);
    return end;
}

int trace_setup(void) {
    call_function = call_expected;
    return instructions_setup();
}
