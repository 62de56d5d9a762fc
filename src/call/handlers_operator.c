// Handlers of operators: builtin functions and the operator module. They use the interpreter's own
// operations, so that operations on stand-ins are recorded.
#include "src/attr/attr.h"
#include "src/attr/descr.h"
#include "src/attr/words.h"

#include "src/call/call.h"
#include "src/call/handlers.h"

#include <opcode.h>

static const char *name_of(PyObject *callable) {
    return ((PyCFunctionObject *)callable)->m_ml->ml_name;
}

// --- unary and binary operators ---

HANDLER(unary) {
    static const struct {
        const char *name;
        unaryfunc function;
    } rows[] = {{"abs", PyNumber_Absolute},
                {"neg", PyNumber_Negative},
                {"pos", PyNumber_Positive},
                {"invert", PyNumber_Invert},
                {"inv", PyNumber_Invert}};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(rows); i++)
        if (strcmp(rows[i].name, name_of(c->callable)) == 0)
            return op_unary(w, rows[i].function, c->args[0]);
    return world_break(w, REASON_NATIVE_CALL, "operator.%s", name_of(c->callable));
}

static int binary_kind(const char *name) {
    static const struct {
        const char *name;
        int kind;
    } rows[] = {
        {"add", NB_ADD},
        {"sub", NB_SUBTRACT},
        {"mul", NB_MULTIPLY},
        {"matmul", NB_MATRIX_MULTIPLY},
        {"floordiv", NB_FLOOR_DIVIDE},
        {"truediv", NB_TRUE_DIVIDE},
        {"mod", NB_REMAINDER},
        {"lshift", NB_LSHIFT},
        {"rshift", NB_RSHIFT},
        {"and_", NB_AND},
        {"xor", NB_XOR},
        {"or_", NB_OR},
        {"pow", NB_POWER},
        {"iadd", NB_INPLACE_ADD},
        {"isub", NB_INPLACE_SUBTRACT},
        {"imul", NB_INPLACE_MULTIPLY},
        {"imatmul", NB_INPLACE_MATRIX_MULTIPLY},
        {"ifloordiv", NB_INPLACE_FLOOR_DIVIDE},
        {"itruediv", NB_INPLACE_TRUE_DIVIDE},
        {"imod", NB_INPLACE_REMAINDER},
        {"ilshift", NB_INPLACE_LSHIFT},
        {"irshift", NB_INPLACE_RSHIFT},
        {"iand", NB_INPLACE_AND},
        {"ixor", NB_INPLACE_XOR},
        {"ior", NB_INPLACE_OR},
        {"ipow", NB_INPLACE_POWER},
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].kind;
    return -1;
}

HANDLER(binary) {
    int kind = binary_kind(name_of(c->callable));
    if (kind < 0)
        return world_break(w, REASON_NATIVE_CALL, "operator.%s", name_of(c->callable));
    return op_binary(w, kind, c->args[0], c->args[1]);
}

static PyObject *power_modulo(world *w, PyObject *callable, PyObject *const *args) {
    PyObject *exact[3] = {NULL};
    status st = ST_OK;
    for (int i = 0; i < 3; i++)
        exact[i] = Py_NewRef(args[i]);
    for (int i = 0; i < 3 && st == ST_OK; i++)
        st = rule_open_exact(w, rule_of(callable), &exact[i]);
    PyObject *result = st == ST_OK ? call_native(w, callable, exact, 3, NULL, false) : NULL;
    for (int i = 0; i < 3; i++)
        Py_DECREF(exact[i]);
    return result;
}

// pow(base, exp, mod=None), each also by keyword.
HANDLER(pow) {
    static const char *const names[] = {"base", "exp", "mod"};
    PyObject *all[3] = {NULL, NULL, Py_None};
    size_t found = c->given;
    for (size_t i = 0; i < 3; i++) {
        PyObject *named = i < c->given ? c->args[i] : handler_keyword(c, names[i]);
        found += named && i >= c->given;
        all[i] = named ? named : all[i];
    }
    if (found != call_count(c) || !all[0] || !all[1])
        return handler_misuse(w, c);
    int none = door_is(w, all[2], Py_None);
    if (none < 0)
        return NULL;
    return none ? op_binary(w, NB_POWER, all[0], all[1]) : power_modulo(w, c->callable, all);
}

// --- comparing, truth, identity ---

HANDLER(compare) {
    static const char *const names[] = {[Py_LT] = "lt", [Py_LE] = "le", [Py_EQ] = "eq",
                                        [Py_NE] = "ne", [Py_GT] = "gt", [Py_GE] = "ge"};
    for (int kind = 0; kind < (int)Py_ARRAY_LENGTH(names); kind++)
        if (strcmp(names[kind], name_of(c->callable)) == 0)
            return op_compare(w, c->args[0], c->args[1], kind);
    return world_break(w, REASON_NATIVE_CALL, "operator.%s", name_of(c->callable));
}

HANDLER(truth) {
    if (c->given == 0) // bool()
        Py_RETURN_FALSE;
    return handler_bool(op_truth(w, c->args[0]));
}

HANDLER(not) {
    int truth = op_truth(w, c->args[0]);
    return truth < 0 ? NULL : PyBool_FromLong(!truth);
}

HANDLER(is) {
    bool negated = strncmp(name_of(c->callable), "is_not", 6) == 0;
    int same = door_is(w, c->args[0], c->given == 1 ? Py_None : c->args[1]);
    return same < 0 ? NULL : PyBool_FromLong(same != negated);
}

// --- subscripts ---

HANDLER(contains) {
    return handler_bool(op_contains(w, c->args[0], c->args[1]));
}

HANDLER(getitem) {
    return op_getitem(w, c->args[0], c->args[1]);
}

HANDLER(setitem) {
    return op_setitem(w, c->args[0], c->args[1], c->args[2]) < 0 ? NULL : Py_NewRef(Py_None);
}

HANDLER(delitem) {
    return op_setitem(w, c->args[0], c->args[1], NULL) < 0 ? NULL : Py_NewRef(Py_None);
}

// --- calls ---

// o.__call__(...) of functions and methods, operator.call.
HANDLER(call) {
    call rest = {.callable = c->args[0],
                 .args = c->args + 1,
                 .given = c->given - 1,
                 .keywords = c->keywords};
    return call_any(w, &rest);
}

// A partial of a partial takes the inner one apart natively.
HANDLER(partial) {
    size_t at = PyType_Check(c->callable) ? 0 : 1, all = call_count(c);
    PyObject **opened = PyMem_New(PyObject *, all), *result = NULL;
    if (!opened)
        return PyErr_NoMemory();
    memcpy(opened, c->args, all * sizeof(PyObject *));
    bool ready = true;
    for (size_t i = 0; i <= at && ready; i++)
        ready = (opened[i] = door_open(w, c->args[i])) != NULL;
    if (ready && PyObject_TypeCheck(opened[at], word.partial) && record_itself(w, opened[at]))
        world_break(w, REASON_NATIVE_CALL, "a partial of a partial from outside");
    else if (ready)
        result = call_native(w, c->callable, opened, c->given, c->keywords, is_standin(opened[at]));
    PyMem_Free(opened);
    return result;
}

// A class, or a partial of one whose keywords are immutable values.
static bool holds_values(PyObject *maker) {
    PyObject *keywords = raw_field_get(RAW_PARTIAL_KEYWORDS, maker), *key, *value;
    bool all = PyType_Check(maker) || keywords;
    for (Py_ssize_t at = 0; keywords && PyDict_Next(keywords, &at, &key, &value);)
        all = all && value_immutable(value);
    return all;
}

// What a getter or caller was made with, as its own __reduce__ tells: a new tuple (type or partial,
// arguments). Of an outside one only if no guard is needed for it.
static PyObject *taken_apart(world *w, PyObject *self) {
    PyObject *reduced = PyObject_CallMethod(self, "__reduce__", NULL);
    if (!reduced || !record_of(w, self))
        return reduced;
    PyObject *made_with = PyTuple_GET_ITEM(reduced, 1);
    if (value_immutable(made_with) && holds_values(PyTuple_GET_ITEM(reduced, 0)))
        return reduced;
    Py_DECREF(reduced);
    return world_break(w, REASON_NATIVE_CALL, "a %s that holds mutable objects",
                       Py_TYPE(self)->tp_name);
}

typedef PyObject *(*picker)(world *w, PyObject *o, PyObject *what);

// One result for one key, else a tuple of them.
static PyObject *get_all(world *w, const call *c, picker get) {
    PyObject *self = door_open(w, c->args[0]);
    PyObject *reduced = self ? taken_apart(w, self) : NULL;
    if (!reduced)
        return NULL;
    PyObject *keys = PyTuple_GET_ITEM(reduced, 1), *result = NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(keys);
    if (count == 1)
        result = get(w, c->args[1], PyTuple_GET_ITEM(keys, 0));
    else
        result = PyTuple_New(count);
    for (Py_ssize_t i = 0; count != 1 && result && i < count; i++) {
        PyObject *item = get(w, c->args[1], PyTuple_GET_ITEM(keys, i));
        if (item)
            PyTuple_SET_ITEM(result, i, item);
        else
            Py_CLEAR(result);
    }
    Py_DECREF(reduced);
    return result;
}

HANDLER(itemgetter_call) {
    return get_all(w, c, op_getitem);
}

// "a.b.c", one attribute after the other.
static PyObject *get_dotted(world *w, PyObject *o, PyObject *path) {
    PyObject *dot = PyUnicode_FromString("."), *parts = dot ? PyUnicode_Split(path, dot, -1) : NULL;
    PyObject *value = Py_NewRef(o);
    for (Py_ssize_t i = 0; parts && value && i < PyList_GET_SIZE(parts); i++) {
        PyObject *name = Py_NewRef(PyList_GET_ITEM(parts, i));
        PyUnicode_InternInPlace(&name);
        Py_SETREF(value, attr_get(w, value, name));
        Py_DECREF(name);
    }
    if (!parts)
        Py_CLEAR(value);
    Py_XDECREF(dot);
    Py_XDECREF(parts);
    return value;
}

HANDLER(attrgetter_call) {
    return get_all(w, c, get_dotted);
}

static PyObject *call_named(world *w, PyObject *o, PyObject *name, PyObject *args,
                            PyObject *keywords) {
    PyObject *method = attr_get(w, o, name);
    PyObject *result = method ? call_star(w, method, args, keywords, RUN_NATIVE) : NULL;
    Py_XDECREF(method);
    return result;
}

// The partial was made just now, of the name and the keywords.
static PyObject *call_by_partial(world *w, PyObject *o, PyObject *partial, PyObject *args) {
    PyObject *name = raw_field_get(RAW_PARTIAL_ARGS, partial);
    PyObject *keywords = raw_field_get(RAW_PARTIAL_KEYWORDS, partial);
    if (!name || !keywords || PyTuple_GET_SIZE(name) != 1)
        return world_break(w, REASON_NATIVE_CALL, "operator.methodcaller with keywords");
    return call_named(w, o, PyTuple_GET_ITEM(name, 0), args, keywords);
}

// methodcaller reduces to (methodcaller, (name, *args)), with keywords to (partial, args).
HANDLER(methodcaller_call) {
    PyObject *self = door_open(w, c->args[0]);
    PyObject *reduced = self ? taken_apart(w, self) : NULL;
    if (!reduced)
        return NULL;
    PyObject *with = PyTuple_GET_ITEM(reduced, 1), *result = NULL;
    if (PyType_Check(PyTuple_GET_ITEM(reduced, 0))) {
        PyObject *rest = PyTuple_GetSlice(with, 1, PyTuple_GET_SIZE(with));
        result = rest ? call_named(w, c->args[1], PyTuple_GET_ITEM(with, 0), rest, NULL) : NULL;
        Py_XDECREF(rest);
    } else
        result = call_by_partial(w, c->args[1], PyTuple_GET_ITEM(reduced, 0), with);
    Py_DECREF(reduced);
    return result;
}
