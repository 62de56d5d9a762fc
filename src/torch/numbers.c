// Open numbers as arguments of calls: placeholders for numbers that were read from outside, nodes
// for computed numbers. The first use of a number makes its placeholder or node.
#include "src/torch/room.h"

PyObject *opened_or_number(world *w, PyObject *o) {
    number n;
    int open = is_lazy(o) ? door_number(w, o, &n) : 0;
    return open > 0 ? o : open < 0 ? NULL : door_open(w, o);
}

PyObject *number_value(world *w, const node *n) {
    const torch_trace *t = w->torch;
    if (n->value.e && !t->checking)
        number_settle(w->graph->sizes, n->value);
    return number_as_object(n->value);
}

// Sizes of a tensor stand before the tensor, in the order of dimensions; other numbers stand where
// the program first looked at them.
int number_rank(world *w, const node *n) {
    const source *place = expr_place(n->value.e);
    const source *owner =
        place->kind == SOURCE_SIZE || place->kind == SOURCE_STRIDE ? place->parent : NULL;
    const torch_trace *t = w->torch;
    for (uint32_t i = 0; owner && i < t->all.count; i++) {
        standin *s = (standin *)t->all.items[i];
        record *r = s->input ? record_of(w, (PyObject *)s) : NULL;
        if (r && r->source == owner)
            return 2 * s->rank - 1;
    }
    return 4 * (place->reg >= 0 ? place->reg : guard_needed(w->guards));
}

// --- nodes ---

static node *new_symbol(world *w, number n) {
    PyObject *name = input_name(w, expr_place(n.e));
    node *made = name ? graph_input(w->graph, NULL, name, NULL) : NULL;
    Py_XDECREF(name);
    return made;
}

// The function that computes the operation in a graph of torch's own Dynamo. Borrowed; NULL: none.
static PyObject *function_of(number_op op, number a, number b) {
    bool mixed = !number_is_unary(op) && a.kind != b.kind;
    if (mixed && (op == NUMBER_MIN || op == NUMBER_MAX)) // torch's function would make both floats
        return NULL;
    PyObject *functions = PyDict_GetItemString(facts.glue, "numbers");
    return functions ? PyDict_GetItemString(functions, number_op_names[op]) : NULL;
}

static node *new_operation(world *w, number n) {
    number_op op;
    number a, b;
    if (!expr_split(n.e, &op, &a, &b))
        return new_symbol(w, n);
    PyObject *function = function_of(op, a, b), *args = NULL;
    if (!function)
        return NULL;
    PyObject *left = number_argument(w, a);
    PyObject *right = left && !number_is_unary(op) ? number_argument(w, b) : NULL;
    if (left && (right || number_is_unary(op)))
        args = right ? PyTuple_Pack(2, left, right) : PyTuple_Pack(1, left);
    PyObject *stack = args ? world_stack(w) : NULL;
    node *made =
        stack ? graph_call(w->graph, NODE_CALL_FUNCTION, function, args, NULL, NULL, stack) : NULL;
    Py_XDECREF(left);
    Py_XDECREF(right);
    Py_XDECREF(args);
    Py_XDECREF(stack);
    return made;
}

// One node for an expression. Borrowed from the graph.
static node *node_of_number(world *w, torch_trace *t, number n) {
    uint64_t *known = map_get(&t->numbers, map_key(n.e));
    if (known)
        return (node *)(uintptr_t)*known;
    node *made = new_operation(w, n);
    if (!made)
        return NULL;
    made->is_number = true;
    made->value = n;
    bool kept = map_put(&t->numbers, map_key(n.e), map_key(made)) == ST_OK;
    Py_DECREF(made); // the graph's
    return kept ? made : NULL;
}

PyObject *number_argument(world *w, number n) {
    torch_trace *t = trace_of(w);
    if (!t)
        return NULL;
    if (n.e)
        n = number_current(w->graph->sizes, n);
    // A body takes only tensors from the graph around it: numbers in a body are settled.
    node *made = n.e && w->scope == w->graph ? node_of_number(w, t, n) : NULL;
    if (made)
        return Py_NewRef(made);
    if (PyErr_Occurred() || w->stop.broken)
        return NULL;
    if (n.e)
        number_settle(w->graph->sizes, n);
    return number_as_object(n);
}
