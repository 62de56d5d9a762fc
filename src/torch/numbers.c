// Open numbers as arguments of calls: placeholders for numbers that were read from outside, nodes
// for computed numbers. The first use of a number makes its placeholder or node.
#include "src/interp/run.h"

#include "src/torch/room.h"

PyObject *opened_or_number(world *w, PyObject *o) {
    number n;
    int open = is_lazy(o) ? door_number(w, o, &n) : 0;
    return open > 0 ? o : open < 0 ? NULL : door_open(w, o);
}

PyObject *number_value(world *w, const node *n) {
    const torch_trace *t = w->torch;
    number value = n->value;
    if (value.e && !t->checking) {
        if (number_may_settle(w, value) != ST_OK)
            return NULL;
        value = number_settle(w->graph->sizes, value);
        numbers_excuse(w);
    }
    return numbers_guard(w) == ST_OK ? number_as_object(value) : NULL;
}

static int made_at(const world *w, const source *place) {
    for (uint32_t i = 0; i < w->numbers.symbols.count; i++)
        if (w->numbers.symbols.items[i].place == place)
            return w->numbers.symbols.items[i].since;
    return guard_needed(w->guards);
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
    return 4 * (register_tells(place) ? place->reg : made_at(w, place));
}

// --- nodes ---

const unbacked_size *unbacked_size_of(const torch_trace *t, number symbol) {
    const source *place = expr_place(symbol.e);
    for (uint32_t i = 0; i < t->unbacked.count; i++)
        if (t->unbacked.items[i].place == place)
            return &t->unbacked.items[i];
    return NULL;
}

// The size of what an operation has given, where no other way leads to it.
static node *new_size(world *w, const torch_trace *t, number n) {
    const unbacked_size *u = unbacked_size_of(t, n);
    if (!u) {
        PyErr_SetString(PyExc_SystemError, "a number that no operation gives");
        return NULL;
    }
    PyObject *args = Py_BuildValue("(Oi)", u->of, u->dim), *stack = world_trail(w);
    node *made = args && stack ? graph_call(w->graph, NODE_CALL_FUNCTION, glue_function("sym_size"),
                                            args, NULL, NULL, stack)
                               : NULL;
    Py_XDECREF(args);
    Py_XDECREF(stack);
    return made;
}

static node *new_symbol(world *w, number n) {
    if (number_is_unbacked(n))
        return new_size(w, w->torch, n);
    PyObject *name = input_name(w, expr_place(n.e));
    node *made = name ? graph_input(w->graph, NULL, name, NULL) : NULL;
    Py_XDECREF(name);
    return made;
}

PyObject *number_function(number_op op, number a, number b) {
    bool mixed = !number_is_unary(op) && a.kind != b.kind;
    if (mixed && (op == NUMBER_MIN || op == NUMBER_MAX)) // torch's function would make both floats
        return NULL;
    PyObject *functions = PyDict_GetItemString(facts.glue, "numbers");
    return functions ? PyDict_GetItemString(functions, number_op_names[op]) : NULL;
}

// New tuple; NULL with an exception or a break.
static PyObject *arguments_of(world *w, number_op op, number a, number b) {
    PyObject *left = number_argument(w, a), *args = NULL;
    PyObject *right = left && !number_is_unary(op) ? number_argument(w, b) : NULL;
    if (left && (right || number_is_unary(op)))
        args = right ? PyTuple_Pack(2, left, right) : PyTuple_Pack(1, left);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return args;
}

// 1 or 0: sym_int() would ask a SymBool for its value.
static PyObject *count_arguments(world *w, number truth) {
    PyObject *argument = number_argument(w, truth);
    PyObject *args = argument ? Py_BuildValue("(Oii)", argument, 1, 0) : NULL;
    Py_XDECREF(argument);
    return args;
}

static node *new_operation(world *w, number n) {
    number_op op;
    number a, b;
    if (!expr_split(n.e, &op, &a, &b))
        return new_symbol(w, n);
    bool counts = op == NUMBER_TO_INT && a.kind == NUMBER_BOOL;
    PyObject *function = counts ? glue_function("sym_ite") : number_function(op, a, b);
    if (!function)
        return NULL;
    PyObject *args = counts ? count_arguments(w, a) : arguments_of(w, op, a, b);
    PyObject *stack = args ? world_trail(w) : NULL;
    node *made =
        stack ? graph_call(w->graph, NODE_CALL_FUNCTION, function, args, NULL, NULL, stack) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(stack);
    return made;
}

// One node for an expression. Borrowed from the graph.
static node *node_of_number(world *w, torch_trace *t, number n) {
    uint64_t *known = map_get(&t->numbers, map_key(n.e));
    if (known)
        return (node *)(uintptr_t)*known;
    t->outer_numbers++; // a computed number is one of the outermost graph, and so is what it is of
    node *made = new_operation(w, n);
    t->outer_numbers--;
    if (!made)
        return NULL;
    made->is_number = true;
    made->value = n;
    bool kept = map_put(&t->numbers, map_key(n.e), map_key(made)) == ST_OK;
    Py_DECREF(made); // the graph's
    return kept ? made : NULL;
}

// A body takes ints from the graph around it: torch's operators refuse other numbers. Nodes of those
// that only the graph knows may lie in a body that has ended.
static bool lifts_number(const torch_trace *t, number n) {
    return t->late && n.kind == NUMBER_INT && !number_is_unbacked(n);
}

PyObject *number_argument(world *w, number n) {
    torch_trace *t = trace_of(w);
    if (!t)
        return NULL;
    if (n.e)
        n = number_current(w->graph->sizes, n);
    node *made =
        n.e && (w->scope == w->graph || lifts_number(t, n)) ? node_of_number(w, t, n) : NULL;
    made = made && w->scope != w->graph && !t->outer_numbers ? graph_lift(w->scope, made) : made;
    if (made)
        return Py_NewRef(made);
    if (PyErr_Occurred() || w->stop.broken)
        return NULL;
    if (n.e) {
        if (number_may_settle(w, n) != ST_OK)
            return NULL;
        n = number_settle(w->graph->sizes, n);
        numbers_excuse(w);
    }
    return numbers_guard(w) == ST_OK ? number_as_object(n) : NULL;
}

status number_of_node(world *w, node *n, number symbol) {
    torch_trace *t = w->torch;
    n->is_number = true;
    n->value = symbol;
    return map_put(&t->numbers, map_key(symbol.e), map_key(n));
}

node *number_node(world *w, number n) {
    PyObject *made = number_argument(w, n);
    node *found = made && is_node(made) ? (node *)made : NULL;
    if (made && !found)
        world_break(w, REASON_UNBACKED, "a number in a graph within a graph");
    Py_XDECREF(made); // the graph's
    return found;
}

PyObject *value_of_tensor(world *w, PyObject *o) {
    PyObject *item = PyObject_GetAttrString((PyObject *)facts.base, "item");
    PyObject *name = item ? PyUnicode_InternFromString("item") : NULL;
    PyObject *value = NULL;
    if (name)
        value = record_call(w, NODE_CALL_METHOD, name,
                            &(call){.callable = item, .args = &o, .given = 1});
    Py_XDECREF(item);
    Py_XDECREF(name);
    return value;
}

// As a list of numbers, if the graph may have them.
PyObject *call_listed(world *w, const call *c) {
    if (w->terms.captures & CAPTURE_SCALARS)
        return call_other(w, c->rule->extra, c);
    return world_break(w, REASON_TOLIST, "Tensor.tolist");
}

// --- what a program says of numbers: torch.fx.experimental.symbolic_shapes ---

// The number that the only argument is, or a plain one. False: it is none, or an exception is set.
static bool argument_of(world *w, const call *c, number *n) {
    int open = c->given == 1 && is_lazy(c->args[0]) ? door_number(w, c->args[0], n) : 0;
    if (open != 0)
        return open > 0;
    PyObject *o = c->given > 0 ? door_open(w, c->args[0]) : NULL;
    return o && number_from_object(o, n);
}

static PyObject *not_a_number(world *w) {
    return PyErr_Occurred()
               ? NULL
               : world_break(w, REASON_TENSOR_OPERATION, "of something that is no bool");
}

// expect_true: what torch._check and its like come to.
PyObject *call_expected(world *w, const call *c) {
    number n;
    if (!argument_of(w, c, &n) || n.kind != NUMBER_BOOL)
        return not_a_number(w);
    if (!number_is_unbacked(n))
        return Py_NewRef(c->args[0]);
    return trace_of(w) && record_check(w, n) == ST_OK ? Py_NewRef(Py_True) : NULL;
}

// Where the answer about an open number may differ from plain Python's, it is one that compiled
// programs get.
static void note_told(world *w, number n) {
    w->facts.told = w->facts.told || n.e;
}

PyObject *call_known(world *w, const call *c) {
    number n;
    if (!argument_of(w, c, &n) || n.kind != NUMBER_BOOL)
        return not_a_number(w);
    note_told(w, n);
    return PyBool_FromLong(n.e ? number_known(w->graph->sizes, n) == 1 : n.hint.i != 0);
}

PyObject *call_static(world *w, const call *c) {
    number n;
    if (!argument_of(w, c, &n))
        return not_a_number(w);
    note_told(w, n);
    return PyBool_FromLong(!n.e || !number_current(w->graph->sizes, n).e);
}

// guard_or_false, guard_or_true; `extra`: what they say where no fact tells.
PyObject *call_presumed(world *w, const call *c) {
    number n;
    if (!argument_of(w, c, &n) || n.kind != NUMBER_BOOL)
        return not_a_number(w);
    if (!number_is_unbacked(n))
        return Py_NewRef(c->args[0]);
    note_told(w, n);
    return Py_NewRef(c->rule->extra);
}

// Supposes that each symbol without a hint that may be a size is at least 2.
static void suppose_sizes(sizes *s, number n) {
    number_op op;
    number a = {0}, b = {0}, large;
    if (!n.e || !number_is_unbacked(n))
        return;
    if (expr_split(n.e, &op, &a, &b)) {
        suppose_sizes(s, a);
        suppose_sizes(s, b);
    } else if (n.kind == NUMBER_INT && number_apply(s, NUMBER_GE, n, number_int(2), &large))
        sizes_check(s, large);
}

// guard_size_oblivious: what holds of sizes that are neither 0 nor 1.
PyObject *call_oblivious(world *w, const call *c) {
    number n;
    if (!argument_of(w, c, &n) || n.kind != NUMBER_BOOL)
        return not_a_number(w);
    if (!number_is_unbacked(n))
        return Py_NewRef(c->args[0]);
    sizes *s = w->graph->sizes;
    sizes_mark before = sizes_now(s);
    suppose_sizes(s, n);
    int known = number_known(s, n);
    sizes_rollback(s, before);
    note_told(w, n);
    return known < 0 ? Py_NewRef(c->args[0]) : PyBool_FromLong(known);
}
