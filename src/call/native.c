// Finds out how a native operation ended: with its result, an exception, or a break that it
// swallowed.
#include "src/call/native.h"

#include "src/call/protocol.h"

bool native_born_here(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool here = type && !traceback && !PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt) &&
                !PyErr_GivenExceptionMatches(type, PyExc_MemoryError);
    PyErr_Restore(type, value, traceback);
    return here;
}

// Kinds that are always made again, and those that are given out all the time.
static bool is_common(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type || t == &PyUnicode_Type ||
           t == &PyBytes_Type || t == &PyList_Type || t == &PyTuple_Type || t == &PyDict_Type ||
           t == &PySet_Type || o == Py_None || o == Py_NotImplemented || PyType_Check(o) ||
           is_lazy(o) || is_standin(o);
}

bool native_has_lazy(const call *c) {
    for (size_t i = 0; i < call_count(c); i++)
        if (is_lazy(c->args[i]))
            return true;
    return false;
}

void native_made(world *w, PyObject *o) {
    if (is_common(o) || record_of(w, o))
        return;
    if (world_born(w, o) != ST_OK)
        PyErr_Clear(); // without memory it is only not known
}

static void name_of_raised(char *name, size_t size) {
    PyObject *type = PyErr_Occurred();
    PyOS_snprintf(name, size, "%.100s",
                  type && PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "exception");
}

int native_failed(world *w, bool suspicious) {
    world_touch(w);
    if (w->stop.broken) {
        if (!PyErr_Occurred() || !PyErr_ExceptionMatches(world_break_error))
            world_break(w, w->stop.reason, "%s", "");
        return -1;
    }
    if (!suspicious || !native_born_here())
        return -1;
    char name[128];
    name_of_raised(name, sizeof(name));
    PyErr_Clear();
    world_break(w, REASON_NATIVE_ERROR, "%s", name);
    return -1;
}

PyObject *native_open(world *w, PyObject *o, unsigned protocols) {
    PyObject *opened = Py_NewRef(o);
    if (protocol_open(w, &opened, protocols) == ST_OK)
        return opened;
    Py_DECREF(opened);
    return NULL;
}
