// The exception being raised, as one object in every version.
#pragma once

#include "src/py/py.h"

// Clears the current exception and returns it: normalised, with its traceback. New reference; NULL
// if there is none.
static inline PyObject *py_take_raised(void) {
#if PY_VERSION_HEX >= 0x030c0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (!type)
        return NULL;
    PyErr_NormalizeException(&type, &value, &traceback);
    PyException_SetTraceback(value, traceback ? traceback : Py_None);
    Py_XDECREF(traceback);
    Py_DECREF(type);
    return value;
#endif
}

// Makes an exception the current one, with its own traceback. Takes the reference; NULL clears.
static inline void py_set_raised(PyObject *exception) {
#if PY_VERSION_HEX >= 0x030c0000
    PyErr_SetRaisedException(exception);
#else
    if (!exception) {
        PyErr_Clear();
        return;
    }
    PyErr_Restore(Py_NewRef(Py_TYPE(exception)), exception, PyException_GetTraceback(exception));
#endif
}

// The current exception, put aside unchanged. In 3.11 an exception may still be a class and its
// arguments until somebody catches it, and making the instance would run code.
typedef struct py_raised {
    PyObject *type, *value, *traceback;
} py_raised;

static inline py_raised py_put_aside(void) {
    py_raised r = {0};
#if PY_VERSION_HEX >= 0x030c0000
    r.value = PyErr_GetRaisedException();
#else
    PyErr_Fetch(&r.type, &r.value, &r.traceback);
#endif
    return r;
}

// Borrowed; NULL if the exception has passed through no frame yet.
static inline PyObject *py_raised_traceback(const py_raised *r) {
#if PY_VERSION_HEX >= 0x030c0000
    return r->value ? ((PyBaseExceptionObject *)r->value)->traceback : NULL;
#else
    return r->traceback;
#endif
}

static inline void py_put_on(py_raised r) {
#if PY_VERSION_HEX >= 0x030c0000
    PyErr_SetRaisedException(r.value);
#else
    PyErr_Restore(r.type, r.value, r.traceback);
#endif
}

// Drops an exception that was put aside. The current exception stays.
static inline void py_forget(py_raised r) {
    py_raised current = py_put_aside();
    py_put_on(r);
    PyErr_Clear();
    py_put_on(current);
}

// Whether some frame of this thread is handling an exception.
static inline bool py_is_handling(void) {
    PyObject *handled = PyErr_GetHandledException();
    bool some = handled && handled != Py_None;
    Py_XDECREF(handled); // the handler has it
    return some;
}
