// The containers that this thread is making a repr of: CPython knows them by their addresses, and
// shows one that is met again as "[...]".
#pragma once

#include "src/py/py.h"

// Whether there are any (Py_ReprEnter keeps them in the thread's dict).
static inline bool py_is_showing(void) {
    PyObject *dict = PyThreadState_GetDict();
    PyObject *list = dict ? PyDict_GetItemString(dict, "Py_Repr") : NULL;
    return list != NULL && PyList_Check(list) && PyList_GET_SIZE(list) > 0;
}
