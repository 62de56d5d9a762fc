#include "src/graph/given.h"

void given_clear(given *g) {
    vec_free(&g->places);
    map_clear(&g->names);
    *g = (given){0};
}

static bool is_open(sizes *known, const size *items, int count) {
    for (int i = 0; i < count; i++)
        if (items[i].e && number_current(known, number_of_size(items[i])).e)
            return true;
    return false;
}

bool given_is_open(const graph *g) {
    if (sizes_has_unbacked(g->sizes))
        return true;
    for (int i = 0; g->sizes && i < g->inputs; i++) {
        const node *n = (node *)PyList_GET_ITEM(g->nodes, i);
        if (n->is_number || is_open(g->sizes, n->meta.sizes, n->meta.dims) ||
            is_open(g->sizes, n->meta.strides, n->meta.dims))
            return true;
    }
    return false;
}

// --- names ---

static PyObject *name_of(void *data, void *place) {
    given *g = data;
    uint64_t *known = map_get(&g->names, map_key(place));
    if (known)
        return PyLong_FromUnsignedLongLong(*known);
    uint64_t name = g->places.count;
    if (vec_push(&g->places, place) != ST_OK || map_put(&g->names, map_key(place), name) != ST_OK)
        return NULL;
    return PyLong_FromUnsignedLongLong(name);
}

static bool symbol_at(given *g, Py_ssize_t name, number *symbol) {
    if (name < 0 || name >= (Py_ssize_t)g->places.count)
        return false;
    return sizes_symbol(g->sizes, g->places.items[name], number_int(0), 0, 0, symbol);
}

static bool symbol_named(void *data, PyObject *name, number *symbol) {
    return PyLong_CheckExact(name) && symbol_at(data, PyLong_AsSsize_t(name), symbol);
}

// --- what the backend is told ---

// A settled number is plain. A symbol stays the symbol even if a fact makes it equal to another
// expression: its placeholder needs a symbol of its own.
PyObject *given_number(given *g, number n) {
    if (n.e && !number_current(g->sizes, n).e)
        n.e = NULL;
    return expr_to_object(n, name_of, g);
}

static PyObject *sizes_to_tuple(given *g, const size *items, int count) {
    PyObject *result = PyTuple_New(count);
    for (int i = 0; result && i < count; i++) {
        PyObject *item = given_number(g, number_of_size(items[i]));
        if (item)
            PyTuple_SET_ITEM(result, i, item);
        else
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *input_to_object(given *g, const node *n) {
    if (n->is_number)
        return given_number(g, n->value);
    const meta *m = &n->meta;
    if (m->dims < 0)
        return Py_NewRef(Py_None);
    PyObject *shape = sizes_to_tuple(g, m->sizes, m->dims);
    PyObject *strides = shape ? sizes_to_tuple(g, m->strides, m->dims) : NULL;
    PyObject *result = strides ? PyTuple_Pack(2, shape, strides) : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return result;
}

static bool append(PyObject *list, PyObject *item) {
    bool done = item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return done;
}

static bool add_inputs(given *g, const graph *graph, PyObject *list) {
    for (int i = 0; i < graph->inputs; i++)
        if (!append(list, input_to_object(g, (node *)PyList_GET_ITEM(graph->nodes, i))))
            return false;
    return true;
}

static bool add_conditions(given *g, PyObject *list) {
    for (int i = 0; i < sizes_conditions(g->sizes); i++)
        if (!append(list, expr_to_object(sizes_condition(g->sizes, i), name_of, g)))
            return false;
    return true;
}

static bool add_checks(given *g, PyObject *list) {
    for (int i = 0; i < sizes_checks(g->sizes); i++)
        if (!append(list, expr_to_object(sizes_checked(g->sizes, i), name_of, g)))
            return false;
    return true;
}

// INT64_MIN and INT64_MAX stand for "no bound".
static PyObject *bound(int64_t value) {
    bool none = value == INT64_MIN || value == INT64_MAX;
    return none ? Py_NewRef(Py_None) : PyLong_FromLongLong(value);
}

static PyObject *unbacked_row(const sizes *s, number n, PyObject *text) {
    static const char *const kinds[] = {
        [NUMBER_INT] = "int", [NUMBER_FLOAT] = "float", [NUMBER_BOOL] = "bool"};
    int64_t low = INT64_MIN, high = INT64_MAX;
    if (n.kind == NUMBER_INT)
        expr_bounds(n.e, &low, &high);
    int64_t value;
    PyObject *from = bound(low), *to = bound(high), *row = NULL;
    PyObject *there = sizes_value(s, n, &value) ? PyLong_FromLongLong(value) : Py_NewRef(Py_None);
    if (from && to && there)
        row = Py_BuildValue("(OOOOs)", there, text, from, to, kinds[n.kind]);
    Py_XDECREF(there);
    Py_XDECREF(from);
    Py_XDECREF(to);
    return row;
}

static PyObject *symbol_row(const sizes *s, number n, PyObject *text) {
    if (number_is_unbacked(n))
        return unbacked_row(s, n, text);
    if (n.kind == NUMBER_FLOAT)
        return Py_BuildValue("(dOOO)", n.hint.d, text, Py_None, Py_None);
    int64_t low = n.hint.i, high = n.hint.i;
    if (n.e)
        expr_bounds(n.e, &low, &high);
    PyObject *from = bound(low), *to = bound(high), *row = NULL;
    if (from && to)
        row = Py_BuildValue("(LOOO)", (long long)n.hint.i, text, from, to);
    Py_XDECREF(from);
    Py_XDECREF(to);
    return row;
}

static bool add_symbols(given *g, given_text text, PyObject *list) {
    for (uint32_t i = 0; i < g->places.count; i++) {
        number n;
        if (!symbol_at(g, (Py_ssize_t)i, &n))
            return false;
        PyObject *place = text(g->places.items[i]);
        bool done = place && append(list, symbol_row(g->sizes, n, place));
        Py_XDECREF(place);
        if (!done)
            return false;
    }
    return true;
}

PyObject *given_numbers(given *g, const graph *graph, given_text text) {
    PyObject *symbols = PyList_New(0), *inputs = PyList_New(0), *conditions = PyList_New(0);
    PyObject *checks = PyList_New(0), *result = NULL;
    if (symbols && inputs && conditions && checks && (!graph || add_inputs(g, graph, inputs)) &&
        add_conditions(g, conditions) && (graph || add_checks(g, checks)) &&
        add_symbols(g, text, symbols))
        result = PyTuple_Pack(4, symbols, inputs, conditions, checks);
    Py_XDECREF(checks);
    Py_XDECREF(symbols);
    Py_XDECREF(inputs);
    Py_XDECREF(conditions);
    return result;
}

// --- what the backend answers ---

// The number has its value of this call from now on.
static void pin(given *g, number n) {
    int64_t value;
    number truth;
    if (!sizes_value(g->sizes, n, &value))
        number_settle(g->sizes, n);
    else if (number_apply(g->sizes, NUMBER_EQ, n, number_int(value), &truth))
        sizes_rely(g->sizes, truth);
}

// Settles all symbols of an answer that has no expression: its value would overflow, or is no int,
// float or bool.
static bool settle_all(given *g, PyObject *o) {
    if (!PyTuple_CheckExact(o))
        return true;
    number n;
    PyObject *first = PyTuple_GET_SIZE(o) > 0 ? PyTuple_GET_ITEM(o, 0) : NULL;
    if (first && PyUnicode_Check(first) && PyUnicode_CompareWithASCIIString(first, "symbol") == 0) {
        if (PyTuple_GET_SIZE(o) != 2 || !symbol_named(g, PyTuple_GET_ITEM(o, 1), &n))
            return false;
        pin(g, n);
        return true;
    }
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(o); i++)
        if (!settle_all(g, PyTuple_GET_ITEM(o, i)))
            return false;
    return true;
}

bool given_name(given *g, number symbol) {
    PyObject *name = name_of(g, expr_place(symbol.e));
    Py_XDECREF(name);
    return name != NULL;
}

bool given_take(given *g, PyObject *o, number *n) {
    return expr_from_object(g->sizes, o, symbol_named, g, n);
}

static bool decide(given *g, PyObject *condition) {
    number n;
    if (!given_take(g, condition, &n))
        return !PyErr_Occurred() && settle_all(g, condition);
    if (!number_is_unbacked(n) || number_is_inner(n) || n.kind != NUMBER_BOOL)
        return number_decide(g->sizes, n);
    sizes_rely(g->sizes, n);
    return true;
}

static int refuse(PyObject *what) {
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "a backend relies on %R, which is not so", what);
    return -1;
}

int given_decide(given *g, PyObject *conditions, PyObject *pinned) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pinned); i++) {
        number n;
        if (!symbol_named(g, PyList_GET_ITEM(pinned, i), &n))
            return refuse(PyList_GET_ITEM(pinned, i));
        pin(g, n);
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(conditions); i++)
        if (!decide(g, PyList_GET_ITEM(conditions, i)))
            return refuse(PyList_GET_ITEM(conditions, i));
    return sizes_failed(g->sizes) ? -1 : 0;
}
