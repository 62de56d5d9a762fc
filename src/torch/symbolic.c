// Operations without a rule on open sizes: torch runs them on fakes whose sizes are symbols. The
// trace takes over the conditions that torch decides meanwhile.
#include "src/torch/room.h"

// --- what torch is told ---

typedef struct describing {
    given *numbers;
    PyObject *nodes; // dict of a node → its description
    bool open;       // some number is open
} describing;

static PyObject *sizes_given(describing *d, const size *items, int count) {
    PyObject *result = PyTuple_New(count);
    for (int i = 0; result && i < count; i++) {
        PyObject *item = given_number(d->numbers, number_of_size(items[i]));
        d->open = d->open || (item && PyTuple_CheckExact(item));
        if (item)
            PyTuple_SET_ITEM(result, i, item);
        else
            Py_CLEAR(result);
    }
    return result;
}

// NULL, perhaps without an exception: too little is known about the tensor.
static PyObject *describe_tensor(describing *d, const meta *m) {
    PyObject *dtype = m->dims < 0 ? NULL : dtype_object(m->dtype);
    PyObject *device = dtype ? device_object(m) : NULL;
    PyObject *shape = device ? sizes_given(d, m->sizes, m->dims) : NULL;
    PyObject *strides = shape ? sizes_given(d, m->strides, m->dims) : NULL;
    PyObject *result = NULL;
    if (strides)
        result = Py_BuildValue("(sOOOOO)", "tensor", shape, strides, dtype, device,
                               m->requires_grad ? Py_True : Py_False);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return result;
}

static PyObject *describe_number(describing *d, number n) {
    PyObject *number = given_number(d->numbers, n);
    d->open = d->open || (number && PyTuple_CheckExact(number));
    return number ? Py_BuildValue("(sN)", "number", number) : NULL;
}

static status describe_node(node *n, void *data) {
    describing *d = data;
    PyObject *said = n->is_number ? describe_number(d, n->value) : describe_tensor(d, &n->meta);
    int failed = said ? PyDict_SetItem(d->nodes, (PyObject *)n, said) : -1;
    Py_XDECREF(said);
    return failed < 0 ? ST_ERROR : ST_OK;
}

static PyObject *text_of(void *place) {
    return source_text(place);
}

// --- what torch answers ---

static bool take_sizes(given *g, PyObject *from, size *to, int *count) {
    *count = (int)PyTuple_GET_SIZE(from);
    for (int i = 0; i < *count; i++) {
        number n;
        if (*count > META_MOST_DIMS || !given_take(g, PyTuple_GET_ITEM(from, i), &n) ||
            n.kind != NUMBER_INT)
            return false;
        to[i] = size_of_number(n);
    }
    return true;
}

static bool take_tensor(given *g, PyObject *from, meta *m) {
    PyObject *shape, *strides, *dtype, *device;
    int grad;
    if (!PyArg_ParseTuple(from, "O!O!OOp", &PyTuple_Type, &shape, &PyTuple_Type, &strides, &dtype,
                          &device, &grad))
        return false;
    *m = (meta){.dtype = rule_dtype(dtype), .requires_grad = grad};
    return take_sizes(g, shape, m->sizes, &m->dims) &&
           take_sizes(g, strides, m->strides, &m->dims) && m->dtype >= 0 &&
           rule_device(device, &m->device_type, &m->device_index) && device_object(m);
}

static number_kind kind_named(const char *kind) {
    return kind[0] == 'f' ? NUMBER_FLOAT : kind[0] == 'b' ? NUMBER_BOOL : NUMBER_INT;
}

// None is no bound.
static int64_t bound_of(PyObject *o, int64_t none) {
    return o == Py_None ? none : PyLong_AsLongLong(o);
}

// A number that the call makes, and only the graph will know.
static bool take_fresh(world *w, given *g, PyObject *row, symbolic_answer *a) {
    const char *kind;
    PyObject *low, *high;
    int i = a->fresh_count, of, dim;
    if (i == META_MOST_RESULTS || !PyArg_ParseTuple(row, "sOOii", &kind, &low, &high, &of, &dim))
        return false;
    a->fresh[i].of = of;
    a->fresh[i].dim = dim;
    a->fresh_count++;
    int64_t from = bound_of(low, INT64_MIN), to = bound_of(high, INT64_MAX);
    return !PyErr_Occurred() &&
           number_unbacked(w, kind_named(kind), from, to, &a->fresh[i].symbol) == ST_OK &&
           given_name(g, a->fresh[i].symbol);
}

static bool take_all_fresh(world *w, given *g, PyObject *rows, symbolic_answer *a) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++)
        if (!take_fresh(w, g, PyList_GET_ITEM(rows, i), a))
            return false;
    return true;
}

static bool take_checks(given *g, PyObject *checks, symbolic_answer *a) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(checks); i++) {
        number n;
        if (!given_take(g, PyList_GET_ITEM(checks, i), &n) || n.kind != NUMBER_BOOL ||
            vec_push(&a->checks, n) != ST_OK)
            return false;
    }
    return true;
}

static bool take_tensors(given *g, PyObject *tensors, meta_call *m) {
    m->count = (int)PyList_GET_SIZE(tensors);
    for (int i = 0; i < m->count; i++)
        if (i >= META_MOST_RESULTS || !take_tensor(g, PyList_GET_ITEM(tensors, i), &m->results[i]))
            return false;
    return true;
}

// META_UNKNOWN without an exception, if something in it has no expression.
static meta_answer take_answer(world *w, given *g, PyObject *answer, symbolic_answer *a) {
    PyObject *conditions, *pinned, *whole, *tensors, *fresh, *checks, *number;
    if (!PyArg_ParseTuple(answer, "O!O!iOO!O!O!O", &PyList_Type, &conditions, &PyList_Type, &pinned,
                          &a->call.effects, &whole, &PyList_Type, &tensors, &PyList_Type, &fresh,
                          &PyList_Type, &checks, &number))
        return META_UNKNOWN;
    if (given_decide(g, conditions, pinned) < 0 || !take_all_fresh(w, g, fresh, a) ||
        !take_tensors(g, tensors, &a->call) || !take_checks(g, checks, a))
        return META_UNKNOWN;
    a->is_number = number != Py_None;
    if (a->is_number && !given_take(g, number, &a->number))
        return META_UNKNOWN;
    a->whole = whole == Py_None || a->is_number ? NULL : Py_NewRef(whole);
    return a->is_number ? META_NUMBER : a->whole ? META_TENSORS : META_TENSOR;
}

void symbolic_clear(symbolic_answer *a) {
    Py_CLEAR(a->whole);
    vec_free(&a->checks);
}

// Bodies take tensors alone from the graph around them.
static PyObject *new_runner(const world *w) {
    PyObject *captures = PyLong_FromLong(w->terms.captures);
    PyObject *runner =
        captures ? PyObject_CallOneArg(glue_function("make_runner"), captures) : NULL;
    Py_XDECREF(captures);
    return runner;
}

static PyObject *ask(const world *w, torch_trace *t, PyObject *callable, PyObject *args,
                     PyObject *kwargs, PyObject *nodes) {
    if (!t->runner)
        t->runner = new_runner(w);
    PyObject *numbers = t->runner ? given_numbers(&t->given, NULL, text_of) : NULL;
    PyObject *given[] = {t->runner, callable, args, kwargs ? kwargs : Py_None, nodes, numbers};
    PyObject *answer =
        numbers ? PyObject_Vectorcall(glue_function("run_symbolic"), given, 6, NULL) : NULL;
    Py_XDECREF(numbers);
    return answer;
}

meta_answer symbolic_infer(world *w, PyObject *callable, PyObject *args, PyObject *kwargs,
                           bool values, symbolic_answer *a) {
    torch_trace *t = w->torch;
    *a = (symbolic_answer){0};
    if (t->checking || (values ? !world_sizes(w) : !w->graph->sizes))
        return META_UNKNOWN;
    t->given.sizes = w->graph->sizes;
    describing d = {&t->given, PyDict_New(), values};
    bool fine = d.nodes && node_walk(args, describe_node, &d) == ST_OK &&
                (!kwargs || node_walk(kwargs, describe_node, &d) == ST_OK);
    // Plain sizes may be those of what was made of open ones: torch's own fakes would settle these.
    bool asked = fine && (d.open || numbers_are_open(w));
    PyObject *answer = asked ? ask(w, t, callable, args, kwargs, d.nodes) : NULL;
    sizes_mark before = sizes_now(w->graph->sizes);
    number question;
    meta_answer result =
        answer && answer != Py_None ? take_answer(w, &t->given, answer, a) : META_UNKNOWN;
    bool refused =
        sizes_asked(w->graph->sizes, &question) || (a->fresh_count > 0 && w->scope != w->graph);
    if ((result == META_UNKNOWN || refused) && answer && answer != Py_None) {
        sizes_rollback(w->graph->sizes, before);
        Py_CLEAR(t->runner); // it knows decisions that were undone
        result = META_UNKNOWN;
    }
    Py_XDECREF(answer);
    Py_XDECREF(d.nodes);
    return result;
}
