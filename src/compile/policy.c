// Calls the methods of a policy, one for each question.
#include "src/py/evalhook.h"
#include "src/py/raised.h"
#include "src/py/signals.h"

#include "src/compile/policy.h"

static PyObject *ask(compiler *c, const char *method, const char *format, ...) {
    va_list values;
    va_start(values, format);
    hook_mode before = hook_swap(HOOK_OFF);
    unsigned long held = py_hold_signals(); // what a handler raises is not the policy's affair
    PyObject *args = Py_VaBuildValue(format, values);
    PyObject *bound = args ? PyObject_GetAttrString(c->policy, method) : NULL;
    PyObject *answer = bound ? PyObject_CallObject(bound, args) : NULL;
    py_let_signals_go(held);
    hook_swap(before);
    va_end(values);
    Py_XDECREF(args);
    Py_XDECREF(bound);
    return answer;
}

static int truth_of(PyObject *answer) {
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth;
}

static int offset_of(const cache *k) {
    return (int)(k->unit * sizeof(_Py_CODEUNIT));
}

policy_answer policy_miss(compiler *c, const cache *k, PyCodeObject *co, int entries,
                          PyObject *reasons) {
    PyObject *answer = ask(c, "miss", "OiiO", co, offset_of(k), entries, reasons);
    if (answer == Py_None) {
        Py_DECREF(answer);
        return POLICY_NEVER;
    }
    return (policy_answer)truth_of(answer);
}

int policy_broke(compiler *c, const cache *k, PyCodeObject *co, const policy_break *b) {
    PyObject *answer =
        ask(c, "broke", "OisOOO", co, offset_of(k), b->reason, b->text ? b->text : Py_None,
            b->stack ? b->stack : Py_None, b->strict ? Py_True : Py_False);
    Py_XDECREF(answer);
    return answer ? 0 : -1;
}

void policy_made(compiler *c, const cache *k, PyCodeObject *co, const entry *e) {
    graph *g = plan_graph_of(e->plan);
    PyObject *answer =
        ask(c, "made", "OiOOl", co, offset_of(k), g ? (PyObject *)g : Py_None, c, e->number);
    if (!answer)
        PyErr_WriteUnraisable(c->policy);
    Py_XDECREF(answer);
}

void policy_watched(compiler *c, PyCodeObject *co) {
    PyObject *answer = ask(c, "watched", "(O)", co);
    if (!answer)
        PyErr_WriteUnraisable(c->policy);
    Py_XDECREF(answer);
}

bool policy_forgives(compiler *c, const cache *k, PyCodeObject *co, const char *where) {
    if (!policy_is_there(c) || !PyErr_ExceptionMatches(PyExc_Exception))
        return false;
    PyObject *exception = py_take_raised();
    int forgiven = truth_of(ask(c, "failed", "OiOs", co, offset_of(k), exception, where));
    if (forgiven == 0)
        py_set_raised(Py_NewRef(exception));
    Py_DECREF(exception);
    return forgiven > 0;
}
