// attempt(function, answer), for tests of moments. A trace calls the function, undoes its changes,
// and returns whether there were any. Code that is not traced does not call the function, and gets
// `answer`.
#include "src/py/raised.h"

#include "src/call/attempt.h"
#include "src/call/call.h"
#include "src/call/handlers.h"

static PyObject *attempt(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count == 2)
        return Py_NewRef(args[1]);
    PyErr_SetString(PyExc_TypeError, "attempt() takes a function and an answer");
    return NULL;
}

static PyObject *undo(world *w, const moment *m) {
    int changed = world_changed(w, m), done = changed < 0 ? -1 : world_rollback(w, m);
    if (done == 0)
        return world_break(w, REASON_WRITE_BACK, "what an attempt has done cannot be undone");
    return done > 0 ? PyBool_FromLong(changed) : NULL;
}

static PyObject *handle_attempt(world *w, const call *c) {
    moment *m = world_mark(w, c->args, 1);
    if (!m || world_open_body(w) != ST_OK) {
        moment_free(m);
        return NULL;
    }
    call inner = {.callable = c->args[0]};
    PyObject *value = call_any(w, &inner), *result = NULL;
    bool caught = !value && !w->stop.broken && PyErr_ExceptionMatches(PyExc_Exception) &&
                  !PyErr_ExceptionMatches(PyExc_MemoryError);
    Py_XDECREF(value);
    if (caught)
        PyErr_Clear();
    if (value || caught)
        result = undo(w, m);
    moment_free(m);
    return result;
}

PyMethodDef attempt_methods[] = {
    {"attempt", (PyCFunction)(void (*)(void))attempt, METH_FASTCALL,
     "attempt(function, answer): for tests. In a trace: calls it, undoes what it did, and says "
     "whether it had changed anything. Else: the answer."},
    {0},
};

int attempt_setup(void) {
    static const rule row = {.path = "attempt",
                             .kind = RULE_HANDLED,
                             .handler = handle_attempt,
                             .takes = ARGS(2, 2),
                             .writes = W_NONE};
    return rules_add_definition(&attempt_methods[0], &row) == ST_OK ? 0 : -1;
}
