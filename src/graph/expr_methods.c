// Symbolic numbers from Python: for tests and tools that compute with them without a trace. A
// number is an index into those that its `Sizes` has given.
#include "src/graph/expr.h"
#include "src/graph/meta.h"

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
    sizes_mark mark = {0}; // no test makes checks here
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

// --- rules ---

// A tensor is ("tensor", dtype, sizes, strides, requires_grad), a number ("number", n); sizes and
// strides are numbers too. A dtype as an argument is ("dtype", dtype).

static bool is_called(PyObject *o, const char *word) {
    return PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o) > 1 &&
           PyUnicode_Check(PyTuple_GET_ITEM(o, 0)) &&
           PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(o, 0), word) == 0;
}

static bool take_sizes(sizes_object *o, PyObject *tuple, size *to, int *count) {
    *count = (int)PyTuple_GET_SIZE(tuple);
    for (int i = 0; i < *count; i++) {
        number n;
        if (*count > META_MOST_DIMS || !take(o, PyTuple_GET_ITEM(tuple, i), &n))
            return false;
        to[i] = size_of_number(n);
    }
    return true;
}

static bool fill_node(sizes_object *o, PyObject *value, node *n) {
    PyObject *shape, *strides;
    int dtype, grad;
    if (is_called(value, "number")) {
        n->is_number = true;
        return take(o, PyTuple_GET_ITEM(value, 1), &n->value);
    }
    if (!PyArg_ParseTuple(value, "siO!O!p", &(const char *){0}, &dtype, &PyTuple_Type, &shape,
                          &PyTuple_Type, &strides, &grad))
        return false;
    n->meta.dtype = dtype;
    n->meta.requires_grad = grad;
    n->meta.device_type = 0;
    n->meta.device_index = -1;
    return take_sizes(o, strides, n->meta.strides, &n->meta.dims) &&
           take_sizes(o, shape, n->meta.sizes, &n->meta.dims);
}

static PyObject *as_node(sizes_object *o, graph *g, PyObject *value) {
    PyObject *name = PyUnicode_FromString("a");
    node *n = name ? graph_input(g, name, name, NULL) : NULL;
    if (n && !fill_node(o, value, n))
        Py_CLEAR(n);
    Py_XDECREF(name);
    return (PyObject *)n;
}

// The argument with nodes in it. New reference.
static PyObject *as_argument(sizes_object *o, graph *g, PyObject *value) {
    if (is_called(value, "tensor") || is_called(value, "number"))
        return as_node(o, g, value);
    if (is_called(value, "dtype"))
        return Py_NewRef(value);
    if (PySlice_Check(value)) {
        PySliceObject *slice = (PySliceObject *)value;
        PyObject *parts[] = {slice->start, slice->stop, slice->step}, *made = NULL;
        PyObject *list = PyTuple_Pack(3, parts[0], parts[1], parts[2]);
        PyObject *nodes = list ? as_argument(o, g, list) : NULL;
        if (nodes)
            made = PySlice_New(PyTuple_GET_ITEM(nodes, 0), PyTuple_GET_ITEM(nodes, 1),
                               PyTuple_GET_ITEM(nodes, 2));
        Py_XDECREF(list);
        Py_XDECREF(nodes);
        return made;
    }
    if (!PyTuple_CheckExact(value) && !PyList_CheckExact(value))
        return Py_NewRef(value);
    PyObject *list = PySequence_List(value), *tuple = NULL;
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        PyObject *item = as_argument(o, g, PyList_GET_ITEM(list, i));
        if (!item || PyList_SetItem(list, i, item) < 0)
            Py_CLEAR(list);
    }
    if (!list || PyList_CheckExact(value))
        return list;
    tuple = PyList_AsTuple(list);
    Py_DECREF(list);
    return tuple;
}

static PyObject *as_named(sizes_object *o, graph *g, PyObject *dict) {
    PyObject *named = PyDict_New(), *key, *value;
    Py_ssize_t at = 0;
    while (named && PyDict_Next(dict, &at, &key, &value)) {
        PyObject *item = as_argument(o, g, value);
        if (!item || PyDict_SetItem(named, key, item) < 0)
            Py_CLEAR(named);
        Py_XDECREF(item);
    }
    return named;
}

static PyObject *give_sizes(sizes_object *o, const size *items, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *item = give(o, number_of_size(items[i]));
        if (item)
            PyTuple_SET_ITEM(tuple, i, item);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

// None for a result that is None.
static PyObject *give_result(sizes_object *o, const meta *m) {
    if (m->dims < 0)
        return Py_NewRef(Py_None);
    return Py_BuildValue("(iNNN)", m->dtype, give_sizes(o, m->sizes, m->dims),
                         give_sizes(o, m->strides, m->dims), PyBool_FromLong(m->requires_grad));
}

static PyObject *give_answer(sizes_object *o, meta_answer answer, const meta_call *c) {
    bool number = answer == META_NUMBER, truth = answer == META_TRUTH;
    int count = answer == META_UNKNOWN || number || truth ? 0 : c->count;
    PyObject *results = PyList_New(count);
    for (int i = 0; results && i < count; i++) {
        PyObject *item = give_result(o, &c->results[i]);
        if (item)
            PyList_SET_ITEM(results, i, item);
        else
            Py_CLEAR(results);
    }
    PyObject *value = number  ? give(o, number_of_size(c->number))
                      : truth ? PyBool_FromLong(c->truth)
                              : Py_NewRef(Py_None);
    return results && value ? Py_BuildValue("(iNN)", (int)answer, results, value) : NULL;
}

static int32_t usual_dtype(void) {
    return 6; // float32
}

static int32_t dtype_of(PyObject *o) {
    return is_called(o, "dtype") ? (int32_t)PyLong_AsLong(PyTuple_GET_ITEM(o, 1)) : -1;
}

static bool no_device(PyObject *o, int32_t *type, int32_t *index) {
    (void)o, (void)type, (void)index;
    return false;
}

static bool fused_attention(void) {
    return true;
}

static PyObject *method_ask(sizes_object *o, PyObject *args) {
    const char *name;
    PyObject *given, *keywords, *answer = NULL;
    int way;
    if (!PyArg_ParseTuple(args, "siO!O!", &name, &way, &PyTuple_Type, &given, &PyDict_Type,
                          &keywords))
        return NULL;
    const meta_rule *rule = meta_find(name);
    graph *g = rule ? graph_new() : NULL;
    PyObject *positional = g ? as_argument(o, g, given) : NULL;
    PyObject *named = positional ? as_named(o, g, keywords) : NULL;
    meta_context context = {(meta_way)way, true, usual_dtype, dtype_of, no_device, fused_attention};
    meta_call c;
    if (named) {
        meta_answer found = meta_infer(rule, &context, o->sizes, positional, named, &c);
        answer = finish(o, give_answer(o, found, &c));
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "no such rule");
    }
    Py_XDECREF(named);
    Py_XDECREF(positional);
    Py_XDECREF(g);
    return answer;
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
    {"ask", (PyCFunction)method_ask, METH_VARARGS,
     "ask(rule, way, args, kwargs): (answer, results, value) of a meta rule."},
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
