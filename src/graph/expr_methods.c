// Symbolic numbers from Python: for tests and tools that compute with them without a trace. A
// number is an index into those that its `Sizes` has given.
#include "src/graph/expr.h"

typedef struct sizes_object {
    PyObject_HEAD
    sizes *sizes;
    PyObject *names; // strong: dict of a name → its place, a str
    VEC(number) numbers;
} sizes_object;

static PyObject *give(sizes_object *o, number n) {
    if (vec_push(&o->numbers, n) != ST_OK)
        return NULL;
    return PyLong_FromUnsignedLong(o->numbers.count - 1);
}

static bool take(sizes_object *o, PyObject *index, number *n) {
    Py_ssize_t i = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (PyErr_Occurred())
        return false;
    if (i < 0 || i >= (Py_ssize_t)o->numbers.count) {
        PyErr_SetString(PyExc_IndexError, "no such number");
        return false;
    }
    *n = o->numbers.items[i];
    return true;
}

static bool read_plain(PyObject *o, number *n) {
    if (!expr_from_object(NULL, o, NULL, NULL, n) && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "not an int of 64 bits, float or bool");
    return !PyErr_Occurred();
}

static PyObject *plain_of(number n) {
    n.e = NULL;
    return expr_to_object(n, NULL, NULL);
}

// Nothing may have failed.
static PyObject *finish(sizes_object *o, PyObject *result) {
    if (sizes_failed(o->sizes))
        Py_CLEAR(result);
    return result;
}

static PyObject *new_sizes(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)args, (void)kwargs;
    sizes_object *o = (sizes_object *)type->tp_alloc(type, 0);
    if (!o)
        return NULL;
    o->sizes = sizes_new();
    o->names = PyDict_New();
    if (!o->sizes || !o->names)
        Py_CLEAR(o);
    return (PyObject *)o;
}

static void drop_sizes(sizes_object *o) {
    sizes_free(o->sizes);
    vec_free(&o->numbers);
    Py_XDECREF(o->names);
    Py_TYPE(o)->tp_free((PyObject *)o);
}

static PyObject *method_symbol(sizes_object *o, PyObject *args) {
    PyObject *name, *value;
    long long low = INT64_MIN, high = INT64_MAX;
    number hint, symbol;
    if (!PyArg_ParseTuple(args, "UO|LL", &name, &value, &low, &high) || !read_plain(value, &hint))
        return NULL;
    if (hint.kind == NUMBER_INT && (hint.hint.i < low || hint.hint.i > high)) {
        PyErr_SetString(PyExc_ValueError, "the value is out of bounds");
        return NULL;
    }
    PyObject *place = PyDict_SetDefault(o->names, name, name);
    if (!place || !sizes_symbol(o->sizes, place, hint, low, high, &symbol))
        return NULL;
    return give(o, symbol);
}

static PyObject *method_plain(sizes_object *o, PyObject *value) {
    number n;
    return read_plain(value, &n) ? give(o, n) : NULL;
}

static PyObject *method_apply(sizes_object *o, PyObject *args) {
    const char *text;
    PyObject *left, *right = NULL;
    number a, b = {0}, result;
    int op = 0;
    if (!PyArg_ParseTuple(args, "sO|O", &text, &left, &right) || !take(o, left, &a) ||
        (right && !take(o, right, &b)))
        return NULL;
    while (op < NUMBER_OPS && strcmp(text, number_op_names[op]) != 0)
        op++;
    if (op == NUMBER_OPS || number_is_unary((number_op)op) != !right) {
        PyErr_SetString(PyExc_ValueError, "no such operation");
        return NULL;
    }
    if (number_apply(o->sizes, (number_op)op, a, b, &result))
        return give(o, result);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *method_known(sizes_object *o, PyObject *index) {
    number n;
    return take(o, index, &n) ? finish(o, PyLong_FromLong(number_known(o->sizes, n))) : NULL;
}

static PyObject *method_decide(sizes_object *o, PyObject *index) {
    number n;
    return take(o, index, &n) ? finish(o, PyBool_FromLong(number_decide(o->sizes, n))) : NULL;
}

static PyObject *method_settle(sizes_object *o, PyObject *index) {
    number n;
    if (!take(o, index, &n))
        return NULL;
    number_settle(o->sizes, n);
    return finish(o, plain_of(n));
}

static PyObject *method_current(sizes_object *o, PyObject *index) {
    number n;
    return take(o, index, &n) ? finish(o, give(o, number_current(o->sizes, n))) : NULL;
}

static PyObject *method_hint(sizes_object *o, PyObject *index) {
    number n;
    return take(o, index, &n) ? plain_of(n) : NULL;
}

static PyObject *method_is_plain(sizes_object *o, PyObject *index) {
    number n;
    return take(o, index, &n) ? PyBool_FromLong(!n.e) : NULL;
}

static PyObject *method_is_same(sizes_object *o, PyObject *args) {
    PyObject *left, *right;
    number a, b;
    if (!PyArg_ParseTuple(args, "OO", &left, &right) || !take(o, left, &a) || !take(o, right, &b))
        return NULL;
    return PyBool_FromLong(a.e && a.e == b.e);
}

static PyObject *method_bounds(sizes_object *o, PyObject *index) {
    number n;
    int64_t low, high;
    if (!take(o, index, &n))
        return NULL;
    low = high = n.hint.i;
    if (n.e)
        expr_bounds(n.e, &low, &high);
    return finish(o, Py_BuildValue("(LL)", (long long)low, (long long)high));
}

static PyObject *method_conditions(sizes_object *o, PyObject *unused) {
    (void)unused;
    int count = sizes_conditions(o->sizes);
    PyObject *list = PyList_New(count);
    for (int i = 0; list && i < count; i++) {
        PyObject *item = give(o, sizes_condition(o->sizes, i));
        if (item)
            PyList_SET_ITEM(list, i, item);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *method_now(sizes_object *o, PyObject *unused) {
    (void)unused;
    sizes_mark mark = sizes_now(o->sizes);
    return Py_BuildValue("(ii)", mark.conditions, mark.trail);
}

static PyObject *method_rollback(sizes_object *o, PyObject *args) {
    sizes_mark mark;
    if (!PyArg_ParseTuple(args, "ii", &mark.conditions, &mark.trail))
        return NULL;
    sizes_rollback(o->sizes, mark);
    Py_RETURN_NONE;
}

static bool read_leaves(const expr_program *p, PyObject *values, number *leaves) {
    for (uint32_t i = 0; i < p->leaves.count; i++) {
        PyObject *value = PyDict_GetItemWithError(values, p->leaves.items[i].place);
        if (!value && !PyErr_Occurred())
            PyErr_SetString(PyExc_KeyError, "a symbol has no value");
        if (!value || !read_plain(value, &leaves[i]))
            return false;
        if (leaves[i].kind != p->leaves.items[i].kind) {
            PyErr_SetString(PyExc_TypeError, "a value is of another kind");
            return false;
        }
    }
    return true;
}

static PyObject *evaluate(const expr_program *p, int step, PyObject *values) {
    number *room = PyMem_Calloc(p->code.count + p->leaves.count, sizeof(number));
    number *leaves = room ? room + p->code.count : NULL;
    PyObject *result = NULL;
    if (!room)
        PyErr_NoMemory();
    else if (read_leaves(p, values, leaves))
        result = number_evaluate(p->code.items, 0, (int)p->code.count, leaves, room)
                     ? plain_of(room[step])
                     : Py_NewRef(Py_None);
    PyMem_Free(room);
    return result;
}

static PyObject *method_evaluate(sizes_object *o, PyObject *args) {
    PyObject *index, *values;
    number n;
    expr_program p = {0};
    int step;
    if (!PyArg_ParseTuple(args, "OO!", &index, &PyDict_Type, &values) || !take(o, index, &n))
        return NULL;
    PyObject *result = expr_flatten(&p, n, &step) ? evaluate(&p, step, values) : NULL;
    expr_program_free(&p);
    return result;
}

static PyObject *name_of(void *data, void *place) {
    (void)data;
    return Py_NewRef(place);
}

static PyObject *method_object(sizes_object *o, PyObject *index) {
    number n;
    return take(o, index, &n) ? expr_to_object(n, name_of, NULL) : NULL;
}

static bool symbol_named(void *data, PyObject *name, number *symbol) {
    sizes_object *o = data;
    PyObject *place = PyDict_GetItemWithError(o->names, name);
    return place && sizes_symbol(o->sizes, place, number_int(0), 0, 0, symbol);
}

static PyObject *method_read(sizes_object *o, PyObject *object) {
    number n;
    if (expr_from_object(o->sizes, object, symbol_named, o, &n))
        return give(o, n);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"symbol", (PyCFunction)method_symbol, METH_VARARGS,
     "symbol(name, value, low=-2**63, high=2**63-1): the symbol of this name."},
    {"plain", (PyCFunction)method_plain, METH_O, "plain(value): an int, float or bool."},
    {"apply", (PyCFunction)method_apply, METH_VARARGS,
     "apply(operation, a, b=None): None if there is no expression for it."},
    {"known", (PyCFunction)method_known, METH_O, "known(truth): 1, 0, or -1 if it depends."},
    {"decide", (PyCFunction)method_decide, METH_O, "decide(truth): known, or a new condition."},
    {"settle", (PyCFunction)method_settle, METH_O, "settle(number): its value from now on."},
    {"current", (PyCFunction)method_current, METH_O, "current(number): plain if it is settled."},
    {"hint", (PyCFunction)method_hint, METH_O, "hint(number): its value in this call."},
    {"is_plain", (PyCFunction)method_is_plain, METH_O, "is_plain(number)"},
    {"is_same", (PyCFunction)method_is_same, METH_VARARGS,
     "is_same(a, b): whether they are the same expression."},
    {"bounds", (PyCFunction)method_bounds, METH_O, "bounds(number): (lowest, highest)"},
    {"conditions", (PyCFunction)method_conditions, METH_NOARGS, "conditions(): noted so far."},
    {"now", (PyCFunction)method_now, METH_NOARGS, "now(): a moment for rollback(*moment)."},
    {"rollback", (PyCFunction)method_rollback, METH_VARARGS,
     "rollback(*moment): forgets what was decided since."},
    {"evaluate", (PyCFunction)method_evaluate, METH_VARARGS,
     "evaluate(number, {name: value}): as a guard does; None if that fails."},
    {"object", (PyCFunction)method_object, METH_O, "object(number): nested tuples."},
    {"read", (PyCFunction)method_read, METH_O,
     "read(object): the number of nested tuples; None if there is none."},
    {0},
};

static PyTypeObject sizes_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.Sizes",
    .tp_basicsize = sizeof(sizes_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Symbolic numbers, and what is known of them.",
    .tp_new = new_sizes,
    .tp_dealloc = (destructor)drop_sizes,
    .tp_methods = methods,
};

int expr_setup(PyObject *module) {
    return PyModule_AddType(module, &sizes_type);
}
