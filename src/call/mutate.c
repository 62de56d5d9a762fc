// Changes rows of the table of rules while the process runs, to test the tests. Empty in a build
// without STATOR_FAULT.
#include "src/call/methods.h"
#include "src/call/rules.h"

#ifdef STATOR_FAULT

// What can be changed: unsigned numbers, by their place in a row. An enum is as wide.
static const struct column {
    const char *name;
    size_t offset;
} columns[] = {
    {"kind", offsetof(rule, kind)},         {"first", offsetof(rule, first)},
    {"args", offsetof(rule, args)},         {"elements", offsetof(rule, elements)},
    {"writes", offsetof(rule, writes)},     {"state", offsetof(rule, state)},
    {"least", offsetof(rule, takes.least)}, {"most", offsetof(rule, takes.most)},
    {"gives", offsetof(rule, gives)},
};
static_assert(sizeof(rule_kind) == sizeof(unsigned) && sizeof(rule_writes) == sizeof(unsigned) &&
                  sizeof(rule_gives) == sizeof(unsigned),
              "columns are unsigned numbers");

// rule_change(row, column, value): what was there before.
static PyObject *rule_change(PyObject *module, PyObject *args) {
    Py_ssize_t number;
    const char *name;
    unsigned value;
    size_t count;
    (void)module;
    if (!PyArg_ParseTuple(args, "nsI", &number, &name, &value) || rules_setup() < 0)
        return NULL;
    const rule *const *all = rules_all(&count);
    if (number < 0 || (size_t)number >= count)
        return PyErr_Format(PyExc_IndexError, "no such row");
    for (size_t i = 0; i < Py_ARRAY_LENGTH(columns); i++) {
        if (strcmp(columns[i].name, name) != 0)
            continue;
        // The rows lie on the heap; only readers see them as constant.
        unsigned *at = (unsigned *)((char *)all[number] + columns[i].offset), before = *at;
        *at = value;
        return PyLong_FromUnsignedLong(before);
    }
    return PyErr_Format(PyExc_KeyError, "no such column: %s", name);
}

// For each row the line of rules.def that it comes from, counted from 0 over the lines that give
// rows; -1: another row of the same C function stands for it.
static PyObject *rule_lines(PyObject *module, PyObject *none) {
    size_t count = 0;
    PyObject *lines = rules_setup() == 0 ? PyList_New(0) : NULL;
    const rule *const *all = rules_all(&count);
    (void)module, (void)none;
    for (size_t i = 0; lines && i < count; i++) {
        PyObject *line = PyLong_FromLong(all[i]->number > 0 ? all[i]->line : -1);
        if (!line || PyList_Append(lines, line) < 0)
            Py_CLEAR(lines);
        Py_XDECREF(line);
    }
    return lines;
}

PyMethodDef mutate_methods[] = {
    {"rule_change", rule_change, METH_VARARGS, "Set a column of a row; gives what it was."},
    {"rule_lines", rule_lines, METH_NOARGS, "The line of rules.def each row comes from."},
    {NULL, NULL, 0, NULL},
};

#else

PyMethodDef mutate_methods[] = {{NULL, NULL, 0, NULL}};

#endif
