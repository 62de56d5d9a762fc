// Operations on plain numbers, with Python's results; expressions as flat programs that guards run;
// and expressions as Python objects.
#include "src/graph/expr_inner.h"

#include <math.h>

static bool is_exact(int64_t n) {
    return n >= -((int64_t)1 << 53) && n <= (int64_t)1 << 53;
}

static bool as_double(number n, double *d) {
    *d = n.kind == NUMBER_FLOAT ? n.hint.d : (double)n.hint.i;
    return n.kind == NUMBER_FLOAT || is_exact(n.hint.i);
}

static bool give_int(number *r, int64_t value) {
    *r = number_int(value);
    return true;
}

static bool give_float(number *r, double value) {
    *r = number_float(value);
    return true;
}

static bool give_bool(number *r, bool value) {
    *r = number_bool(value);
    return true;
}

// --- comparisons ---

enum { LESS = -1, SAME = 0, MORE = 1, UNORDERED = 2 };

static int order_doubles(double a, double b) {
    return a < b ? LESS : a > b ? MORE : a == b ? SAME : UNORDERED;
}

// Compares an int with a float, and rounds neither.
static int order_mixed(int64_t a, double b) {
    const double limit = 9223372036854775808.0;
    if (isnan(b))
        return UNORDERED;
    if (b >= limit)
        return LESS;
    if (b < -limit)
        return MORE;
    int64_t down = (int64_t)floor(b);
    if (a != down)
        return a < down ? LESS : MORE;
    return floor(b) < b ? LESS : SAME;
}

static int order(number a, number b) {
    if (a.kind == NUMBER_FLOAT && b.kind == NUMBER_FLOAT)
        return order_doubles(a.hint.d, b.hint.d);
    if (b.kind == NUMBER_FLOAT)
        return order_mixed(a.hint.i, b.hint.d);
    if (a.kind == NUMBER_FLOAT) {
        int turned = order_mixed(b.hint.i, a.hint.d);
        return turned == UNORDERED ? turned : -turned;
    }
    return a.hint.i < b.hint.i ? LESS : a.hint.i > b.hint.i ? MORE : SAME;
}

static bool compare(number_op op, number a, number b) {
    int o = order(a, b);
    switch (op) {
    case NUMBER_EQ:
        return o == SAME;
    case NUMBER_NE:
        return o != SAME;
    case NUMBER_LT:
        return o == LESS;
    case NUMBER_LE:
        return o == LESS || o == SAME;
    case NUMBER_GT:
        return o == MORE;
    case NUMBER_GE:
        return o == MORE || o == SAME;
    default:
        return bits_of(a) == bits_of(b);
    }
}

// --- floats ---

// CPython computes the result, on its own objects.
static bool ask_python(number_op op, double a, double b, number *r) {
    PyObject *left = PyFloat_FromDouble(a), *right = PyFloat_FromDouble(b), *result = NULL;
    if (left && right)
        result = op == NUMBER_POW   ? PyNumber_Power(left, right, Py_None)
                 : op == NUMBER_MOD ? PyNumber_Remainder(left, right)
                                    : PyNumber_FloorDivide(left, right);
    bool fine = result && PyFloat_CheckExact(result);
    if (fine)
        *r = number_float(PyFloat_AS_DOUBLE(result));
    else
        PyErr_Clear();
    Py_XDECREF(left);
    Py_XDECREF(right);
    Py_XDECREF(result);
    return fine;
}

// A function of `math`, as CPython has it: borrowed, or NULL.
static PyObject *math_function(number_op op) {
    static PyObject *found[NUMBER_OPS];
    PyObject *math = found[op] ? NULL : PyImport_ImportModule("math");
    if (math)
        found[op] = PyObject_GetAttrString(math, number_op_names[op]);
    Py_XDECREF(math);
    PyErr_Clear();
    return found[op] && PyCFunction_Check(found[op]) ? found[op] : NULL;
}

// False where the function raises.
static bool ask_math(number_op op, number a, number *r) {
    double d;
    PyObject *function = as_double(a, &d) ? math_function(op) : NULL;
    PyObject *argument = function ? PyFloat_FromDouble(d) : NULL;
    PyObject *result = argument ? PyObject_CallOneArg(function, argument) : NULL;
    bool fine = result && PyFloat_CheckExact(result);
    if (fine)
        *r = number_float(PyFloat_AS_DOUBLE(result));
    else
        PyErr_Clear();
    Py_XDECREF(argument);
    Py_XDECREF(result);
    return fine;
}

static bool float_binary(number_op op, number x, number y, number *r) {
    double a, b;
    if (!as_double(x, &a) || !as_double(y, &b))
        return false;
    switch (op) {
    case NUMBER_ADD:
        return give_float(r, a + b);
    case NUMBER_SUB:
        return give_float(r, a - b);
    case NUMBER_MUL:
        return give_float(r, a * b);
    case NUMBER_TRUEDIV:
        return b != 0 && give_float(r, a / b);
    case NUMBER_FLOORDIV:
    case NUMBER_MOD:
        return b != 0 && ask_python(op, a, b, r);
    case NUMBER_POW:
        return ask_python(op, a, b, r);
    case NUMBER_MIN:
        return x.kind == y.kind && give_float(r, b < a ? b : a);
    case NUMBER_MAX:
        return x.kind == y.kind && give_float(r, b > a ? b : a);
    default:
        return false;
    }
}

static bool round_float(number_op op, double d, number *r) {
    const double limit = 9223372036854775808.0;
    double whole_part = op == NUMBER_FLOOR ? floor(d) : op == NUMBER_CEIL ? ceil(d) : trunc(d);
    if (op == NUMBER_ROUND) {
        whole_part = round(d);
        if (fabs(d - whole_part) == 0.5) // to even
            whole_part = 2.0 * round(d / 2.0);
    }
    return whole_part >= -limit && whole_part < limit && give_int(r, (int64_t)whole_part);
}

static bool float_unary(number_op op, double d, number *r) {
    switch (op) {
    case NUMBER_NEG:
        return give_float(r, -d);
    case NUMBER_ABS:
        return give_float(r, fabs(d));
    case NUMBER_NOT:
        return give_bool(r, d == 0);
    case NUMBER_TO_BOOL:
        return give_bool(r, d != 0);
    case NUMBER_TO_FLOAT:
        return give_float(r, d);
    case NUMBER_SQRT:
        return !(d < 0) && give_float(r, sqrt(d));
    case NUMBER_INVERT:
        return false;
    default:
        return round_float(op, d, r);
    }
}

// --- ints ---

static bool int_power(int64_t a, int64_t b, number *r) {
    int64_t product = 1;
    if (a == 1 || a == 0 || a == -1)
        return b >= 0 && give_int(r, b == 0 ? 1 : a == -1 && b % 2 == 0 ? 1 : a);
    for (int64_t i = 0; i < b; i++)
        if (__builtin_mul_overflow(product, a, &product))
            return false;
    return b >= 0 && give_int(r, product);
}

static bool int_shift(number_op op, int64_t a, int64_t b, number *r) {
    int64_t product;
    if (b < 0)
        return false;
    if (op == NUMBER_RSHIFT)
        return give_int(r, a >> (b > 63 ? 63 : b));
    if (a == 0)
        return give_int(r, 0);
    return b <= 62 && !__builtin_mul_overflow(a, (int64_t)1 << b, &product) && give_int(r, product);
}

static bool int_binary(number_op op, int64_t a, int64_t b, number *r) {
    int64_t value;
    switch (op) {
    case NUMBER_ADD:
        return !__builtin_add_overflow(a, b, &value) && give_int(r, value);
    case NUMBER_SUB:
        return !__builtin_sub_overflow(a, b, &value) && give_int(r, value);
    case NUMBER_MUL:
        return !__builtin_mul_overflow(a, b, &value) && give_int(r, value);
    case NUMBER_FLOORDIV:
        return floor_divide(a, b, &value) && give_int(r, value);
    case NUMBER_MOD:
        if (b == 0 || b == -1)
            return b != 0 && give_int(r, 0);
        value = a % b;
        return give_int(r, value != 0 && (value < 0) != (b < 0) ? value + b : value);
    case NUMBER_TRUEDIV:
        return b != 0 && is_exact(a) && is_exact(b) && give_float(r, (double)a / (double)b);
    case NUMBER_POW:
        return int_power(a, b, r);
    case NUMBER_LSHIFT:
    case NUMBER_RSHIFT:
        return int_shift(op, a, b, r);
    case NUMBER_AND:
        return give_int(r, a & b);
    case NUMBER_OR:
        return give_int(r, a | b);
    case NUMBER_XOR:
        return give_int(r, a ^ b);
    case NUMBER_MIN:
        return give_int(r, b < a ? b : a);
    case NUMBER_MAX:
        return give_int(r, b > a ? b : a);
    default:
        return false;
    }
}

// Of bools too.
static bool int_unary(number_op op, number n, number *r) {
    int64_t a = n.hint.i;
    switch (op) {
    case NUMBER_NEG:
        return a != INT64_MIN && give_int(r, -a);
    case NUMBER_ABS:
        return a != INT64_MIN && give_int(r, a < 0 ? -a : a);
    case NUMBER_INVERT: // of a bool Python warns
        return n.kind == NUMBER_INT && give_int(r, ~a);
    case NUMBER_NOT:
        return give_bool(r, a == 0);
    case NUMBER_TO_BOOL:
        return give_bool(r, a != 0);
    case NUMBER_TO_FLOAT:
        return is_exact(a) && give_float(r, (double)a);
    case NUMBER_SQRT:
        return a >= 0 && is_exact(a) && give_float(r, sqrt((double)a));
    default:
        return give_int(r, a);
    }
}

static bool bool_binary(number_op op, number a, number b, number *r) {
    number n;
    bool logic = op == NUMBER_AND || op == NUMBER_OR || op == NUMBER_XOR || op == NUMBER_MIN ||
                 op == NUMBER_MAX;
    if (!int_binary(op, a.hint.i, b.hint.i, &n))
        return false;
    *r = logic ? number_bool(n.hint.i) : n;
    return true;
}

bool number_compute(number_op op, number a, number b, number *result) {
    if (number_is_math(op))
        return ask_math(op, a, result);
    if (number_is_unary(op))
        return a.kind == NUMBER_FLOAT ? float_unary(op, a.hint.d, result)
                                      : int_unary(op, a, result);
    if (op == NUMBER_SAME && (a.kind != NUMBER_FLOAT || b.kind != NUMBER_FLOAT))
        return false;
    if (op >= NUMBER_EQ && op <= NUMBER_SAME)
        return give_bool(result, compare(op, a, b));
    if (a.kind == NUMBER_FLOAT || b.kind == NUMBER_FLOAT)
        return float_binary(op, a, b, result);
    if (a.kind == NUMBER_BOOL && b.kind == NUMBER_BOOL)
        return bool_binary(op, a, b, result);
    if (a.kind != b.kind && (op == NUMBER_MIN || op == NUMBER_MAX))
        return false;
    return int_binary(op, a.hint.i, b.hint.i, result);
}

// --- programs ---

static bool add_step(expr_program *p, expr_code code, int *step) {
    *step = (int)p->code.count;
    return vec_push(&p->code, code) == ST_OK;
}

static bool add_leaf(expr_program *p, const expr *e, int *step) {
    expr_leaf leaf = {expr_place(e), (number_kind)e->kind};
    int32_t index = (int32_t)p->leaves.count;
    return vec_push(&p->leaves, leaf) == ST_OK &&
           add_step(p, (expr_code){.op = CODE_LEAF, .a = index}, step);
}

static bool add_operation(expr_program *p, const expr *e, int *step) {
    number_op op;
    number a, b;
    int left, right = 0;
    return expr_split(e, &op, &a, &b) && expr_flatten(p, a, &left) &&
           (number_is_unary(op) || expr_flatten(p, b, &right)) &&
           add_step(p, (expr_code){.op = (uint8_t)op, .a = left, .b = right}, step);
}

bool expr_flatten(expr_program *p, number n, int *step) {
    if (!n.e)
        return add_step(p, (expr_code){.op = CODE_CONSTANT, .constant = n}, step);
    uint64_t *known = map_get(&p->steps, map_key(n.e));
    if (known) {
        *step = (int)*known;
        return true;
    }
    if (!(n.e->form == FORM_SYMBOL ? add_leaf(p, n.e, step) : add_operation(p, n.e, step)))
        return false;
    return map_put(&p->steps, map_key(n.e), (uint64_t)*step) == ST_OK;
}

void expr_program_free(expr_program *p) {
    vec_free(&p->code);
    vec_free(&p->leaves);
    map_clear(&p->steps);
    *p = (expr_program){0};
}

bool number_evaluate(const expr_code *code, int from, int to, const number *leaves,
                     number *values) {
    for (int i = from; i < to; i++) {
        const expr_code *c = &code[i];
        if (c->op == CODE_CONSTANT)
            values[i] = c->constant;
        else if (c->op == CODE_LEAF)
            values[i] = leaves[c->a];
        else if (!number_compute((number_op)c->op, values[c->a], values[c->b], &values[i]))
            return false;
    }
    return true;
}

// --- as Python objects ---

PyObject *number_as_object(number n) {
    return n.kind == NUMBER_FLOAT  ? PyFloat_FromDouble(n.hint.d)
           : n.kind == NUMBER_BOOL ? PyBool_FromLong(n.hint.i != 0)
                                   : PyLong_FromLongLong(n.hint.i);
}

// `done` has the objects made so far, so that a part that occurs twice is one object.
typedef struct writer {
    expr_name name;
    void *data;
    PyObject *done; // dict of an expression's address → its object
} writer;

static PyObject *write_number(const writer *w, number n);

static PyObject *write_operation(const writer *w, const expr *e) {
    number_op op;
    number a, b;
    if (!expr_split(e, &op, &a, &b))
        return NULL;
    PyObject *left = write_number(w, a), *result = NULL;
    PyObject *right = left && !number_is_unary(op) ? write_number(w, b) : NULL;
    if (left && number_is_unary(op))
        result = Py_BuildValue("(sO)", number_op_names[op], left);
    else if (left && right)
        result = Py_BuildValue("(sOO)", number_op_names[op], left, right);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return result;
}

static PyObject *write_expr(const writer *w, const expr *e) {
    if (e->form != FORM_SYMBOL)
        return write_operation(w, e);
    PyObject *name = w->name(w->data, expr_place(e));
    return name ? Py_BuildValue("(sN)", "symbol", name) : NULL;
}

static PyObject *write_number(const writer *w, number n) {
    if (!n.e)
        return number_as_object(n);
    PyObject *key = PyLong_FromVoidPtr(own(n.e));
    PyObject *result = key ? PyDict_GetItemWithError(w->done, key) : NULL;
    if (result)
        Py_INCREF(result);
    else if (!PyErr_Occurred())
        result = write_expr(w, n.e);
    if (result && PyDict_SetItem(w->done, key, result) < 0)
        Py_CLEAR(result);
    Py_XDECREF(key);
    return result;
}

PyObject *expr_to_object(number n, expr_name name, void *data) {
    writer w = {name, data, PyDict_New()};
    PyObject *result = w.done ? write_number(&w, n) : NULL;
    Py_XDECREF(w.done);
    return result;
}

static int find_op(PyObject *text) {
    for (int op = 0; PyUnicode_Check(text) && op < NUMBER_OPS; op++)
        if (PyUnicode_CompareWithASCIIString(text, number_op_names[op]) == 0)
            return op;
    return -1;
}

static bool read_operation(sizes *s, PyObject *o, expr_named named, void *data, number *n) {
    number a, b = {0};
    int op = find_op(PyTuple_GET_ITEM(o, 0));
    if (op < 0 || PyTuple_GET_SIZE(o) != (number_is_unary((number_op)op) ? 2 : 3) ||
        !expr_from_object(s, PyTuple_GET_ITEM(o, 1), named, data, &a))
        return false;
    if (!number_is_unary((number_op)op) &&
        !expr_from_object(s, PyTuple_GET_ITEM(o, 2), named, data, &b))
        return false;
    return number_apply(s, (number_op)op, a, b, n);
}

bool expr_from_object(sizes *s, PyObject *o, expr_named named, void *data, number *n) {
    if (!PyTuple_CheckExact(o))
        return number_from_object(o, n);
    if (PyTuple_GET_SIZE(o) < 2 || !PyUnicode_Check(PyTuple_GET_ITEM(o, 0)))
        return false;
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(o, 0), "symbol") == 0)
        return named(data, PyTuple_GET_ITEM(o, 1), n);
    if (Py_EnterRecursiveCall(" while reading an expression"))
        return false;
    bool fine = read_operation(s, o, named, data, n);
    Py_LeaveRecursiveCall();
    return fine;
}
