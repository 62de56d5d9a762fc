// The containers whose repr this thread is making. CPython remembers their addresses, and shows a
// container that it meets again as "[...]".
#pragma once

#include "src/py/py.h"

// Whether there is such a container (Py_ReprEnter keeps them in the thread's dict).
static inline bool py_is_showing(void) {
    PyObject *dict = PyThreadState_GetDict();
    PyObject *list = dict ? PyDict_GetItemString(dict, "Py_Repr") : NULL;
    return list && PyList_Check(list) && PyList_GET_SIZE(list) > 0;
}
