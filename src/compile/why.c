// Turns a break or a drop into what people see: a text, and the same in parts.
#include "src/torch/marks.h"

#include "src/compile/room.h"

static PyObject *place_text(PyObject *stack, PyCodeObject *co) {
    Py_ssize_t count = stack ? PyTuple_GET_SIZE(stack) : 0;
    if (count == 0)
        return PyUnicode_FromFormat("%U:%d in %U", co->co_filename, co->co_firstlineno,
                                    co->co_qualname);
    PyObject *row = PyTuple_GET_ITEM(stack, count - 1);
    return PyUnicode_FromFormat("%U:%S in %U", PyTuple_GET_ITEM(row, 0), PyTuple_GET_ITEM(row, 1),
                                PyTuple_GET_ITEM(row, 2));
}

// The calls that led there, outermost first, one line each.
static PyObject *chain_text(PyObject *stack) {
    PyObject *text = PyUnicode_FromString("");
    Py_ssize_t count = stack ? PyTuple_GET_SIZE(stack) : 0;
    for (Py_ssize_t i = 0; text && count > 1 && i < count; i++) {
        PyObject *row = PyTuple_GET_ITEM(stack, i);
        Py_SETREF(text, PyUnicode_FromFormat("%U\n  %s %U:%S in %U", text, i ? "calls" : "from",
                                             PyTuple_GET_ITEM(row, 0), PyTuple_GET_ITEM(row, 1),
                                             PyTuple_GET_ITEM(row, 2)));
    }
    return text;
}

static PyObject *break_text(const world *w, PyCodeObject *co) {
    const reason_row *row = &reason_rows[w->stop.reason];
    PyObject *place = place_text(w->stop.stack, co), *chain = chain_text(w->stop.stack),
             *text = NULL;
    if (place && chain)
        text = PyUnicode_FromFormat("%U: %s: %V [%s]%s%s%U", place, row->sentence, w->stop.detail,
                                    "", row->id, *row->hint ? "\n  hint: " : "", row->hint, chain);
    Py_XDECREF(place);
    Py_XDECREF(chain);
    return text;
}

// What the text says, in parts.
static PyObject *break_row(const world *w, PyCodeObject *co) {
    const reason_row *row = &reason_rows[w->stop.reason];
    PyObject *made = Py_BuildValue("{s:O, s:s, s:s, s:s, s:O, s:O}", "code", co, "reason", row->id,
                                   "sentence", row->sentence, "hint", row->hint, "detail",
                                   w->stop.detail ? w->stop.detail : Py_None, "stack",
                                   w->stop.stack ? w->stop.stack : Py_None);
    if (!made)
        PyErr_Clear(); // a break of which less is known
    return made;
}

policy_break break_of(world *w, PyCodeObject *co) {
    policy_break b = {.reason = reason_rows[w->stop.reason].id,
                      .text = break_text(w, co),
                      .row = break_row(w, co),
                      .stack = Py_XNewRef(w->stop.stack),
                      .strict = mark_strict(w)};
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear(); // a break without its text is still a break
    return b;
}

void break_clear(policy_break *b) {
    Py_CLEAR(b->text);
    Py_CLEAR(b->stack);
    Py_CLEAR(b->row);
}
