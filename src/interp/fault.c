// Counts the interpreter's operations, and makes the one fail that a test has chosen. Empty in a
// build without STATOR_FAULT.
#include "src/interp/fault.h"

#include "src/base/mutant.h"

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

// mutate(table, row, change)
static PyObject *mutate(PyObject *self, PyObject *args) {
    int table, change;
    Py_ssize_t row;
    (void)self;
    if (!PyArg_ParseTuple(args, "ini", &table, &row, &change))
        return NULL;
    if (table < 0 || table >= MUTANT_TABLES || row < 0)
        return PyErr_Format(PyExc_ValueError, "no such row");
    mutant_now = (mutant){(mutant_table)table, (size_t)row, change};
    Py_RETURN_NONE;
}

// For each table the bytes of its rows.
static PyObject *used_rows(PyObject *self, PyObject *none) {
    (void)self;
    (void)none;
    PyObject *tables = PyTuple_New(MUTANT_TABLES);
    for (int i = 0; tables && i < MUTANT_TABLES; i++) {
        PyObject *used = PyBytes_FromStringAndSize((char *)mutant_used[i], MUTANT_MOST_ROWS);
        if (used)
            PyTuple_SET_ITEM(tables, i, used);
        else
            Py_CLEAR(tables);
    }
    if (tables)
        memset(mutant_used, 0, sizeof(mutant_used));
    return tables;
}

PyMethodDef interp_methods[] = {
    {"mutate", mutate, METH_VARARGS, "Change a row of a table (base/mutant.h); change 0: none."},
    {"used_rows", used_rows, METH_NOARGS, "For each table the rows used since the last call."},
    {"fault_arm", arm, METH_O, "Let the n-th operation from now fail; -1: none."},
    {"fault_count", count, METH_NOARGS, "Operations since fault_arm."},
    {NULL, NULL, 0, NULL},
};

int fault_setup(PyObject *module) {
    if (!fault_error)
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
