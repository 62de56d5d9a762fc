// Handlers about exceptions, except raising them: the exception being handled, tracebacks,
// texts.
#include "src/py/raised.h"

#include "src/attr/attr.h"
#include "src/attr/descr.h"

#include "src/call/call.h"
#include "src/call/handlers.h"

// --- the exception being handled ---

static bool nothing_handled(PyObject *object, void *data) {
    (void)object, (void)data;
    return !py_is_handling();
}

static PyObject *nothing_handled_text(const char *source, void *data) {
    (void)source, (void)data;
    return PyUnicode_FromString("sys.exception() is None");
}

static const guard_custom nothing_handled_guard = {
    .name = "handled exception", .check = nothing_handled, .text = nothing_handled_text};

status raised_nothing_outside(world *w) {
    if (w->terms.handling)
        return world_break_status(w, REASON_EXCEPTION_LIVES, "the one that the caller handles");
    return guard_add_custom(w->guards, NULL, &nothing_handled_guard, NULL);
}

// Asked before the native call, so that a break in it is a clean one.
static bool is_handled_here(world *w) {
    PyObject *exception = PyErr_GetHandledException();
    bool none = !exception || exception == Py_None;
    bool known =
        none ? raised_nothing_outside(w) == ST_OK : class_value(w, Py_TYPE(exception)) != NULL;
    Py_XDECREF(exception);
    return known;
}

HANDLER(exc_info) {
    return is_handled_here(w) ? call_native(w, c->callable, NULL, 0, NULL, false) : NULL;
}

// --- tracebacks ---

// An exception of this trace gets a traceback of this trace, or none.
HANDLER(with_traceback) {
    PyObject *self = door_open(w, c->args[0]), *traceback = self ? door_open(w, c->args[1]) : NULL;
    if (!traceback)
        return NULL;
    if (record_of(w, self) || record_of(w, traceback))
        return world_break(w, REASON_EXCEPTION_LIVES, "with_traceback of an outside exception");
    PyObject *opened[] = {self, traceback};
    return call_native(w, c->callable, opened, 2, NULL, false);
}

// Frames of this trace that have ended: their locals are inside objects, without finalizers, so
// when they die cannot be seen.
static HANDLER(clear_frames) {
    PyObject *traceback = door_open(w, c->args[0]);
    if (!traceback)
        return NULL;
    if (record_of(w, traceback) || (!PyTraceBack_Check(traceback) && traceback != Py_None))
        return world_break(w, REASON_FRAME, "clear_frames of an outside traceback");
    Py_RETURN_NONE;
}

// --- texts ---

// What the text of an exception shows of its arguments is opened first.
HANDLER(exception_text) {
    PyObject *self = door_open(w, c->args[0]);
    if (!self)
        return NULL;
    if (!PyExceptionInstance_Check(self) || record_of(w, self))
        return world_break(w, REASON_NATIVE_CALL, "the text of an exception from outside");
    PyObject *owned = Py_NewRef(self);
    status st = protocol_open_elements(w, &owned, P_STR | P_REPR);
    PyObject *text = st == ST_OK ? call_native(w, c->callable, &owned, 1, NULL, false) : NULL;
    Py_DECREF(owned);
    return text;
}

// --- setting up ---

// A Python function whose C type of the same name stands in the way of a row in the table.
status raised_setup(void) {
    static const rule row = {.path = "traceback.clear_frames",
                             .kind = RULE_HANDLED,
                             .handler = handle_clear_frames,
                             .takes = ARGS(1, 1),
                             .writes = W_NONE};
    return rules_add_named("traceback", "clear_frames", &row);
}
