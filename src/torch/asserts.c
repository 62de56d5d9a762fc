// What the graph has to check of numbers that only the graph knows: nodes that fail where the check
// is not met.
#include "src/interp/run.h"

#include "src/torch/room.h"

static status outcome_of(const world *w, bool fine) {
    return fine ? ST_OK : w->stop.broken ? ST_BREAK : ST_ERROR;
}

static status record_assertion(world *w, const char *function, PyObject *condition,
                               PyObject *name) {
    PyObject *message = PyUnicode_FromFormat("Runtime assertion failed for %U", name);
    PyObject *args = message ? PyTuple_Pack(2, condition, message) : NULL;
    node *made = args ? record_fallible(w, glue_function(function), args) : NULL;
    Py_XDECREF(message);
    Py_XDECREF(args);
    Py_XDECREF(made); // the graph's
    return outcome_of(w, made);
}

// --- equality ---

// AOTAutograd replaces a number of the graph by the one that it is said to be equal to, and then has
// nothing left to check. So the tensors whose elements the numbers are get compared, too.

typedef struct symbols_seen {
    bool hinted;       // a symbol with a hint is among them
    const expr *first; // the first of the others
    bool several;      // and there is another one
} symbols_seen;

static void see_symbols(number n, symbols_seen *seen) {
    number_op op;
    number a = {0}, b = {0};
    if (!n.e)
        return;
    if (expr_split(n.e, &op, &a, &b)) {
        see_symbols(a, seen);
        see_symbols(b, seen);
    } else if (!number_is_unbacked(n))
        seen->hinted = true;
    else if (!seen->first)
        seen->first = n.e;
    else
        seen->several = seen->several || seen->first != n.e;
}

// Whether an equality says that a number of the graph is one from outside, or a plain one.
static bool fixes_number(number equality) {
    symbols_seen seen = {0};
    see_symbols(equality, &seen);
    return seen.hinted || !seen.several;
}

// The tensor that still has the symbol as its element; NULL: there is none, or it was written to.
static const node *tensor_with(const torch_trace *t, number symbol) {
    for (uint32_t i = 0; i < t->values.count; i++) {
        const known_value *v = &t->values.items[i];
        if (v->value.e == symbol.e && v->effects == t->effects)
            return v->of;
    }
    return NULL;
}

static bool is_at_least_zero(sizes *known, number n) {
    number truth;
    return number_apply(known, NUMBER_GE, n, number_of_size(size_of(0)), &truth) &&
           number_known(known, truth) == 1;
}

// Operations that give the same for tensors of int64 as for Python's ints. (The lowest int64 divided
// by -1 has no result.)
static bool is_of_ints(sizes *known, number_op op, number a, number b) {
    if (op == NUMBER_MOD || op == NUMBER_FLOORDIV)
        return (!b.e && b.hint.i > 0) || (!number_is_inner(a) && is_at_least_zero(known, a));
    return op == NUMBER_ADD || op == NUMBER_SUB || op == NUMBER_MUL || op == NUMBER_EQ;
}

// The same of float64 and Python's floats.
static bool is_of_floats(number_op op) {
    return op == NUMBER_ADD || op == NUMBER_SUB || op == NUMBER_MUL || op == NUMBER_EQ;
}

// The method that rounds a tensor as Python rounds a float to an int; NULL: `op` does not round.
static const char *rounding(number_op op) {
    return op == NUMBER_TO_INT  ? "trunc"
           : op == NUMBER_FLOOR ? "floor"
           : op == NUMBER_CEIL  ? "ceil"
           : op == NUMBER_ROUND ? "round"
                                : NULL;
}

static bool has_tensors(const world *w, number n);

static bool is_computed(const world *w, number_op op, number a, number b) {
    if (number_is_unary(op))
        return a.kind == NUMBER_FLOAT && rounding(op) && has_tensors(w, a);
    bool known = a.kind == NUMBER_INT ? is_of_ints(w->graph->sizes, op, a, b) : is_of_floats(op);
    return a.kind == b.kind && a.kind != NUMBER_BOOL && known && has_tensors(w, a) &&
           has_tensors(w, b);
}

// Whether tensors have all numbers in it that only the graph knows, or they are sizes of tensors.
static bool has_tensors(const world *w, number n) {
    const torch_trace *t = w->torch;
    number_op op;
    number a = {0}, b = {0};
    if (!number_is_inner(n))
        return n.kind == NUMBER_INT || !n.e;
    if (!expr_split(n.e, &op, &a, &b))
        return tensor_with(t, n) || unbacked_size_of(t, n);
    return is_computed(w, op, a, b);
}

static PyObject *call_recorded(world *w, PyObject *function, PyObject *args) {
    PyObject *made = function && args ? (PyObject *)record_fallible(w, function, args) : NULL;
    Py_XDECREF(args);
    return made;
}

static PyObject *method_recorded(world *w, const char *method, PyObject *of) {
    PyObject *name = PyUnicode_InternFromString(method), *args = PyTuple_Pack(1, of);
    PyObject *made = name && args ? (PyObject *)record_method(w, name, args) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(args);
    return made;
}

// In the memory of the processor: elsewhere a failed assertion ends the device's work. With 64 bits,
// as Python's numbers.
static PyObject *symbol_by_tensor(world *w, number symbol) {
    const torch_trace *t = w->torch;
    const node *tensor = tensor_with(t, symbol);
    const unbacked_size *size = tensor ? NULL : unbacked_size_of(t, symbol);
    if (size) // the backend must not know what the operator gives
        return call_recorded(w, glue_function("size_tensor"),
                             Py_BuildValue("(Oi)", size->of, size->dim));
    PyObject *here = method_recorded(w, "cpu", (PyObject *)tensor);
    const char *wide = symbol.kind == NUMBER_FLOAT ? "double" : "long";
    PyObject *made = here ? method_recorded(w, wide, here) : NULL;
    Py_XDECREF(here);
    return made;
}

// A float that is no int of 64 bits fails the check.
static status record_range(world *w, PyObject *rounded) {
    number any = {.kind = NUMBER_INT}; // the function is the same for all numbers
    PyObject *amount = method_recorded(w, "abs", rounded);
    PyObject *fits = amount ? call_recorded(w, number_function(NUMBER_LT, any, any),
                                            Py_BuildValue("(Od)", amount, 0x1p62))
                            : NULL;
    Py_XDECREF(amount);
    TRY(outcome_of(w, fits));
    status done = record_assertion(w, "assert_async", fits, ((node *)fits)->name);
    Py_DECREF(fits); // the graph's
    return done;
}

static PyObject *round_tensor(world *w, const char *method, PyObject *tensor) {
    PyObject *rounded = tensor ? method_recorded(w, method, tensor) : NULL;
    Py_XDECREF(tensor);
    PyObject *made =
        rounded && record_range(w, rounded) == ST_OK ? method_recorded(w, "long", rounded) : NULL;
    Py_XDECREF(rounded);
    return made;
}

// The same computed with tensors in the place of numbers that only the graph knows. New reference.
static PyObject *by_tensors(world *w, number n) {
    number_op op;
    number a = {0}, b = {0};
    if (!number_is_inner(n))
        return number_argument(w, n);
    if (!expr_split(n.e, &op, &a, &b))
        return symbol_by_tensor(w, n);
    if (number_is_unary(op))
        return round_tensor(w, rounding(op), by_tensors(w, a));
    PyObject *left = by_tensors(w, a), *right = left ? by_tensors(w, b) : NULL;
    PyObject *args = right ? PyTuple_Pack(2, left, right) : NULL;
    Py_XDECREF(left);
    Py_XDECREF(right);
    return call_recorded(w, number_function(op, a, b), args);
}

static status record_equality(world *w, number equality) {
    if (!has_tensors(w, equality))
        return fixes_number(equality)
                   ? world_break_status(w, REASON_UNBACKED, "to be equal to one that is known")
                   : ST_OK;
    PyObject *condition = by_tensors(w, equality);
    TRY(outcome_of(w, condition));
    status done = record_assertion(w, "assert_async", condition, ((node *)condition)->name);
    Py_DECREF(condition); // the graph's
    return done;
}

static status record_equalities(world *w, number truth) {
    number_op op;
    number a = {0}, b = {0};
    if (!truth.e || !expr_split(truth.e, &op, &a, &b))
        return ST_OK;
    if (op == NUMBER_EQ)
        return record_equality(w, truth);
    if (op != NUMBER_AND && op != NUMBER_OR && op != NUMBER_NOT)
        return ST_OK;
    TRY(record_equalities(w, a));
    return record_equalities(w, b);
}

// The equality of the two sides of a bound, which holds if another bound meets it.
static bool equality_of_sides(sizes *known, number bound, number *equality) {
    number_op op;
    number a = {0}, b = {0};
    return expr_split(bound.e, &op, &a, &b) && op != NUMBER_EQ && !number_is_unary(op) &&
           a.kind == NUMBER_INT && b.kind == NUMBER_INT &&
           number_apply(known, NUMBER_EQ, a, b, equality) && equality->e;
}

// --- all checks ---

static status record_truth(world *w, number truth) {
    TRY(w->terms.replayed ? ST_OK : record_equalities(w, truth));
    node *condition = number_node(w, truth);
    TRY(outcome_of(w, condition));
    return record_assertion(w, "assert_scalar", (PyObject *)condition, condition->name);
}

status record_check(world *w, number truth) {
    torch_trace *t = w->torch;
    sizes *known = w->graph->sizes;
    truth = number_current(known, truth);
    if (!truth.e)
        return truth.hint.i ? ST_OK
                            : world_break_status(w, REASON_TENSOR_ERROR, "a check is not met");
    if (!number_is_inner(truth)) { // guards check it
        sizes_rely(known, truth);
        return numbers_guard(w);
    }
    number equality;
    bool bounds = !w->terms.replayed && equality_of_sides(known, truth, &equality);
    TRY(record_truth(w, truth));
    w->facts.assumed = true;
    if (!t->asserted && w->run)
        t->asserted = w->run->started;
    sizes_check(known, truth);
    if (sizes_failed(known))
        return ST_ERROR;
    return bounds && number_known(known, equality) == 1 ? record_equality(w, equality) : ST_OK;
}
