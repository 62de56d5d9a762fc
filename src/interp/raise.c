// Raises and matches exceptions: the raise statement, `except` and `except*` clauses.
#include "src/interp/raise.h"

#include "src/py/natives.h"

#include "src/interp/errors.h"

static bool raise_again(void) {
    PyObject *value = PyErr_GetHandledException();
    if (!value || value == Py_None) {
        Py_XDECREF(value);
        PyErr_SetString(PyExc_RuntimeError, "No active exception to reraise");
        return false;
    }
    PyErr_Restore(Py_NewRef(PyExceptionInstance_Class(value)), value,
                  PyException_GetTraceback(value));
    return true;
}

// Calls an exception class. The result may be anything; `check` wants an exception.
static PyObject *raise_call(PyObject *class, bool check) {
    PyObject *value = PyObject_CallNoArgs(class);
    if (value && check && !PyExceptionInstance_Check(value)) {
        PyErr_Format(PyExc_TypeError,
                     "calling %R should have returned an instance of BaseException, not %R", class,
                     Py_TYPE(value));
        Py_CLEAR(value);
    }
    return value;
}

static int raise_set_cause(PyObject *value, PyObject *cause) {
    if (PyExceptionClass_Check(cause)) {
        cause = raise_call(cause, PY_CHECKS_CAUSE);
        if (!cause)
            return -1;
    } else if (PyExceptionInstance_Check(cause)) {
        Py_INCREF(cause);
    } else if (cause == Py_None) {
        cause = NULL;
    } else {
        PyErr_SetString(PyExc_TypeError, "exception causes must derive from BaseException");
        return -1;
    }
    PyException_SetCause(value, cause);
    return 0;
}

bool raise_varargs(PyThreadState *ts, PyObject *exc, PyObject *cause) {
    (void)ts;
    if (!exc)
        return raise_again();
    PyObject *type, *value;
    if (PyExceptionClass_Check(exc)) {
        type = exc; // even if the class makes an instance of another
        value = raise_call(exc, true);
    } else if (PyExceptionInstance_Check(exc)) {
        type = PyExceptionInstance_Class(exc);
        value = Py_NewRef(exc);
    } else {
        PyErr_SetString(PyExc_TypeError, "exceptions must derive from BaseException");
        return false;
    }
    if (value && (!cause || raise_set_cause(value, cause) == 0))
        PyErr_SetObject(type, value);
    Py_XDECREF(value);
    return false;
}

int except_match(PyObject *exc, PyObject *type) {
    if (error_check_except_type(type) < 0)
        return -1;
    return PyErr_GivenExceptionMatches(exc, type);
}

// A group's own split(), which a subclass may have replaced.
static int split_group(PyObject *group, PyObject *type, PyObject **match, PyObject **rest) {
    PyObject *pair = PyObject_CallMethodOneArg(group, py_name.split, type);
    if (!pair)
        return -1;
    if (!PyTuple_CheckExact(pair))
        PyErr_Format(PyExc_TypeError, "%.200s.split must return a tuple, not %.200s",
                     Py_TYPE(group)->tp_name, Py_TYPE(pair)->tp_name);
    else if (PyTuple_GET_SIZE(pair) < 2)
        PyErr_Format(PyExc_TypeError, "%.200s.split must return a 2-tuple, got tuple of size %zd",
                     Py_TYPE(group)->tp_name, PyTuple_GET_SIZE(pair));
    bool good = PyTuple_CheckExact(pair) && PyTuple_GET_SIZE(pair) >= 2;
    if (good) {
        *match = Py_NewRef(PyTuple_GET_ITEM(pair, 0));
        *rest = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
    }
    Py_DECREF(pair);
    return good ? 0 : -1;
}

static int star_match(PyObject *exc, PyObject *type, PyObject **match, PyObject **rest) {
    bool group = PyObject_TypeCheck(exc, (PyTypeObject *)PyExc_BaseExceptionGroup);
    if (exc != Py_None && PyErr_GivenExceptionMatches(exc, type)) {
        *match = group ? Py_NewRef(exc) : py_wrap_naked(exc);
        if (!*match)
            return -1;
        *rest = Py_NewRef(Py_None);
        return 0;
    }
    if (group)
        return split_group(exc, type, match, rest);
    *match = Py_NewRef(Py_None);
    *rest = Py_NewRef(exc);
    return 0;
}

int except_star_match(PyObject *exc, PyObject *type, PyObject **match, PyObject **rest) {
    *match = *rest = NULL;
    if (error_check_except_star_type(type) < 0 || star_match(exc, type, match, rest) < 0)
        return -1;
    if (*match != Py_None)
        PyErr_SetHandledException(*match);
    else if (PY_KEEPS_UNMATCHED)
        Py_SETREF(*rest, Py_NewRef(exc));
    return 0;
}
