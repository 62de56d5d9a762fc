// Shows Python the table of rules, for tests and for users who ask why a call breaks.
#include "src/call/methods.h"

#include "src/call/rules.h"

static const char *kind_name(rule_kind kind) {
    static const char *const names[] = {[RULE_PURE] = "pure",
                                        [RULE_STRUCT] = "struct",
                                        [RULE_HANDLED] = "handled",
                                        [RULE_OPAQUE] = "opaque"};
    return names[kind];
}

// What has no handler takes what the C function takes.
static PyObject *takes_as_tuple(const rule *row) {
    if (row->kind != RULE_HANDLED)
        return Py_NewRef(Py_None);
    const rule_takes *t = &row->takes;
    return Py_BuildValue("(IIN)", t->least, t->most, PyBool_FromLong(t->how == TAKES_NAMES));
}

static PyObject *row_as_tuple(const rule *row) {
    PyObject *takes = takes_as_tuple(row), *state = takes ? rule_state_names(row->state) : NULL;
    if (state)
        return Py_BuildValue("(ssIIINzsN)", row->path, kind_name(row->kind), row->first, row->args,
                             row->elements, takes, row->why, rule_writes_name(row->writes), state);
    Py_XDECREF(takes);
    return NULL;
}

static PyObject *method_rules(PyObject *module, PyObject *none) {
    size_t count = 0;
    PyObject *list = rules_setup() == 0 ? PyList_New(0) : NULL;
    const rule *const *all = rules_all(&count);
    (void)module, (void)none;
    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = row_as_tuple(all[i]);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *method_rule_for(PyObject *module, PyObject *callable) {
    if (rules_setup() < 0)
        return NULL;
    const rule *row = rule_of(callable);
    while (row && row->otherwise) // of some arguments only
        row = row->otherwise;
    (void)module;
    return row ? Py_BuildValue("(ss)", row->path, kind_name(row->kind)) : Py_NewRef(Py_None);
}

static PyObject *method_rule_path(PyObject *module, PyObject *callable) {
    const rule *row = rules_setup() == 0 ? rule_of_itself(callable) : NULL;
    (void)module;
    while (row && row->otherwise)
        row = row->otherwise;
    if (!row || row->object != callable || (row->owner && !row->weak))
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    return PyUnicode_FromFormat(strchr(row->path, '.') ? "%s" : "builtins.%s", row->path);
}

PyMethodDef call_methods[] = {
    {"rules", method_rules, METH_NOARGS,
     "All rows: (path, kind, first, args, elements, takes, why, writes, state). `takes` is None or "
     "(least, most, whether keywords too)."},
    {"rule_for", method_rule_for, METH_O, "(path, kind) of the row of a callable, or None."},
    {"rule_path", method_rule_path, METH_O,
     "Where a callable with a row lies, as pkgutil.resolve_name finds it, or None."},
    {NULL, NULL, 0, NULL},
};
