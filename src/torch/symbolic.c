// Operations without a rule on open sizes: torch runs them on fakes whose sizes are symbols. The
// trace takes over the conditions that torch decides meanwhile.
#include "src/torch/room.h"

// --- what torch is told ---

typedef struct describing {
    const torch_trace *trace;
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

// NULL, perhaps without an exception: too little is known of it.
static PyObject *describe_tensor(describing *d, const node *n) {
    const meta *m = &n->meta;
    PyObject *dtype = m->dims < 0 ? NULL : dtype_object(m->dtype);
    PyObject *device = dtype ? device_object(m) : NULL;
    PyObject *shape = device ? sizes_given(d, m->sizes, m->dims) : NULL;
    PyObject *strides = shape ? sizes_given(d, m->strides, m->dims) : NULL;
    PyObject *result = NULL;
    if (strides)
        result = Py_BuildValue("(sOOOOOi)", "tensor", shape, strides, dtype, device,
                               m->requires_grad ? Py_True : Py_False, memory_of(d->trace, n));
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
    PyObject *said = n->is_number ? describe_number(d, n->value) : describe_tensor(d, n);
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

static bool take_tensor(given *g, PyObject *from, symbolic_result *r) {
    PyObject *shape, *strides, *dtype, *device, *base;
    int grad, plainly;
    if (!PyArg_ParseTuple(from, "O!O!OOpOp", &PyTuple_Type, &shape, &PyTuple_Type, &strides, &dtype,
                          &device, &grad, &base, &plainly))
        return false;
    meta *m = &r->meta;
    *m = (meta){.dtype = rule_dtype(dtype), .requires_grad = grad};
    r->base = is_node(base) ? (node *)base : NULL;
    r->own = base == Py_None;
    r->plainly = plainly;
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
static bool take_fresh(world *w, given *g, PyObject *row, symbolic *s) {
    const char *kind;
    PyObject *low, *high;
    int i = s->fresh_count, of, dim;
    if (i == META_MOST_RESULTS || !PyArg_ParseTuple(row, "sOOii", &kind, &low, &high, &of, &dim))
        return false;
    s->fresh[i].of = of;
    s->fresh[i].dim = dim;
    s->fresh_count++;
    int64_t from = bound_of(low, INT64_MIN), to = bound_of(high, INT64_MAX);
    return !PyErr_Occurred() &&
           number_unbacked(w, kind_named(kind), from, to, &s->fresh[i].symbol) == ST_OK &&
           given_name(g, s->fresh[i].symbol);
}

static bool take_all_fresh(world *w, given *g, PyObject *rows, symbolic *s) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++)
        if (!take_fresh(w, g, PyList_GET_ITEM(rows, i), s))
            return false;
    return true;
}

static bool take_check(given *g, PyObject *check, number *n) {
    return given_take(g, check, n) && n->kind == NUMBER_BOOL;
}

static bool take_checks(given *g, PyObject *checks, symbolic *s) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(checks); i++) {
        number n;
        if (!take_check(g, PyList_GET_ITEM(checks, i), &n) || vec_push(&s->checks, n) != ST_OK)
            return false;
    }
    return true;
}

// Each check may only make sense if those before it hold: that a number is not zero comes before a
// division by it.
static bool record_checks(world *w, given *g, PyObject *checks) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(checks); i++) {
        number n;
        if (!take_check(g, PyList_GET_ITEM(checks, i), &n) || record_check(w, n) != ST_OK)
            return false;
    }
    return true;
}

bool symbolic_take(torch_trace *t, const symbolic *s, Py_ssize_t i, symbolic_result *r) {
    PyObject *from = PyList_GET_ITEM(s->results, i);
    *r = (symbolic_result){.same = is_node(from) ? (node *)from : NULL, .none = from == Py_None};
    return r->same || r->none || take_tensor(&t->given, from, r);
}

static bool take_results(torch_trace *t, const symbolic *s) {
    symbolic_result ignored;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(s->results); i++)
        if (!symbolic_take(t, s, i, &ignored))
            return false;
    return true;
}

// What is checked of numbers that were there before the call is checked before the call, since sizes
// of results may only make sense if it holds (`x.view(n, -1)` divides by n). Checks about the
// results come behind the call.
static bool take_checks_and_results(world *w, PyObject *checks, symbolic *s) {
    torch_trace *t = w->torch;
    if (s->fresh_count > 0)
        return take_results(t, s) && take_checks(&t->given, checks, s);
    return record_checks(w, &t->given, checks) && take_results(t, s);
}

// The number of a tensor that only the operation itself sees is a number of the graph, too: fakes
// with this call's sizes alone cannot run the operation.
static bool note_inner(world *w, bool inner) {
    number n;
    return !inner || number_unbacked(w, NUMBER_FLOAT, INT64_MIN, INT64_MAX, &n) == ST_OK;
}

// False without an exception, if something in the answer has no expression.
static bool take_answer(world *w, symbolic *s) {
    torch_trace *t = w->torch;
    PyObject *conditions, *pinned, *fresh, *checks, *number;
    int inner;
    if (!PyArg_ParseTuple(s->answer, "O!O!iOO!O!O!O!Op", &PyList_Type, &conditions, &PyList_Type,
                          &pinned, &s->effects, &s->whole, &PyList_Type, &s->results, &PyList_Type,
                          &s->written, &PyList_Type, &fresh, &PyList_Type, &checks, &number,
                          &inner))
        return false;
    s->is_number = number != Py_None;
    return given_decide(&t->given, conditions, pinned) >= 0 &&
           take_all_fresh(w, &t->given, fresh, s) && take_checks_and_results(w, checks, s) &&
           note_inner(w, inner) && (!s->is_number || given_take(&t->given, number, &s->number));
}

void symbolic_clear(symbolic *s) {
    Py_CLEAR(s->answer);
    vec_free(&s->checks);
}

static PyObject *new_runner(world *w) {
    enum { REPLAYED = 4 };
    PyObject *captures = PyLong_FromLong(w->terms.captures | (w->terms.replayed ? REPLAYED : 0));
    PyObject *runner =
        captures ? PyObject_CallOneArg(glue_function("make_runner"), captures) : NULL;
    Py_XDECREF(captures);
    if (!runner)
        w->stop.interrupted = true; // as where fakes_mode fails
    return runner;
}

static PyObject *ask(world *w, torch_trace *t, PyObject *callable, PyObject *args, PyObject *kwargs,
                     PyObject *nodes) {
    if (!t->runner)
        t->runner = new_runner(w);
    PyObject *numbers = t->runner ? given_numbers(&t->given, NULL, text_of) : NULL;
    PyObject *given[] = {t->runner, callable, args, kwargs ? kwargs : Py_None, nodes, numbers};
    PyObject *answer =
        numbers ? PyObject_Vectorcall(glue_function("run_symbolic"), given, 6, NULL) : NULL;
    Py_XDECREF(numbers);
    return answer;
}

// Whether a number may be open later in the trace, be there none so far.
static bool wants_open(const world *w) {
    return w->terms.symbolic || w->terms.symbolic_all || w->terms.captures;
}

// Asks torch; false without an exception: there is no answer.
static bool ask_all(world *w, PyObject *callable, PyObject *args, PyObject *kwargs,
                    symbolic_why why, symbolic *s) {
    torch_trace *t = w->torch;
    describing d = {t, &t->given, PyDict_New(), why != SYMBOLIC_OPEN};
    bool fine = d.nodes && node_walk(args, describe_node, &d) == ST_OK &&
                (!kwargs || node_walk(kwargs, describe_node, &d) == ST_OK);
    // Plain sizes may be those of what was made of open ones: torch's own fakes would settle these.
    if (fine && (d.open || numbers_are_open(w)))
        s->answer = ask(w, t, callable, args, kwargs, d.nodes);
    Py_XDECREF(d.nodes);
    if (s->answer == Py_None)
        Py_CLEAR(s->answer);
    return s->answer != NULL;
}

bool symbolic_infer(world *w, PyObject *callable, PyObject *args, PyObject *kwargs,
                    symbolic_why why, symbolic *s) {
    torch_trace *t = w->torch;
    *s = (symbolic){0};
    bool first = why == SYMBOLIC_VALUES || (why == SYMBOLIC_WRITES && wants_open(w));
    if (t->checking || (first ? !world_sizes(w) : !w->graph->sizes))
        return false;
    t->given.sizes = w->graph->sizes;
    if (!ask_all(w, callable, args, kwargs, why, s))
        return false;
    sizes_mark before = sizes_now(w->graph->sizes);
    number question;
    bool taken = take_answer(w, s) && !sizes_asked(w->graph->sizes, &question);
    if (taken && (s->fresh_count == 0 || w->scope == w->graph)) // bodies get no such numbers
        return true;
    if (w->stop.broken) // a check cannot be recorded
        return symbolic_clear(s), false;
    sizes_rollback(w->graph->sizes, before);
    Py_CLEAR(t->runner); // it knows decisions that were undone
    symbolic_clear(s);
    return false;
}
