// The exception being raised, as one object on every version.
#pragma once

#include "src/py/py.h"

// Takes the current exception: normalised, its traceback in it. New reference; NULL if there is none.
static inline PyObject *py_take_raised(void) {
#if PY_VERSION_HEX >= 0x030c0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type == NULL)
        return NULL;
    PyErr_NormalizeException(&type, &value, &traceback);
    PyException_SetTraceback(value, traceback ? traceback : Py_None);
    Py_XDECREF(traceback);
    Py_DECREF(type);
    return value;
#endif
}

// Makes it current again, with the traceback it has. Takes the reference; NULL clears.
static inline void py_set_raised(PyObject *exception) {
#if PY_VERSION_HEX >= 0x030c0000
    PyErr_SetRaisedException(exception);
#else
    if (exception == NULL) {
        PyErr_Clear();
        return;
    }
    PyErr_Restore(Py_NewRef(Py_TYPE(exception)), exception, PyException_GetTraceback(exception));
#endif
}
