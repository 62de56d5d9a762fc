// Counts the interpreter's operations and lets the one that a test asked for fail. Empty in a build
// without STATOR_FAULT.
#include "src/interp/fault.h"

#include "src/interp/setup.h"

#ifdef STATOR_FAULT

static PyObject *fault_error; // strong
static long due = -1;         // operations until the fault, -1: disarmed
static long seen;

bool fault_due(void) {
    seen++;
    if (due < 0 || due-- > 0)
        return false;
    PyErr_SetString(fault_error, "injected");
    return true;
}

static PyObject *arm(PyObject *self, PyObject *object) {
    (void)self;
    long n = PyLong_AsLong(object);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    due = n;
    seen = 0;
    Py_RETURN_NONE;
}

static PyObject *count(PyObject *self, PyObject *none) {
    (void)self;
    (void)none;
    return PyLong_FromLong(seen);
}

PyMethodDef interp_methods[] = {
    {"fault_arm", arm, METH_O, "Let the n-th operation from now fail; -1: none."},
    {"fault_count", count, METH_NOARGS, "Operations since fault_arm."},
    {NULL, NULL, 0, NULL},
};

int fault_setup(PyObject *module) {
    if (fault_error == NULL)
        fault_error = PyErr_NewException("stator._engine.InjectedFault", PyExc_Exception, NULL);
    return fault_error ? PyModule_AddObjectRef(module, "InjectedFault", fault_error) : -1;
}

#else

PyMethodDef interp_methods[] = {{NULL, NULL, 0, NULL}};

int fault_setup(PyObject *module) {
    (void)module;
    return 0;
}

#endif
