// Unary and binary operators, comparisons, truth and length: opens the operands and prepares them
// for this one operator, then CPython's own function runs.
#include "src/py/operators.h"

#include "src/world/number.h"

#include "src/call/call.h"
#include "src/call/feed.h"
#include "src/call/native.h"
#include "src/call/numpy.h"
#include "src/call/rules.h"
#include "src/call/special.h"
#include "src/call/states.h"

#include <opcode.h>

// Two opened operands, strong.
typedef struct operands {
    PyObject *left, *right;
} operands;

// The opened value, or a number that is kept open; borrowed.
static PyObject *open_operand(world *w, PyObject *o) {
    number n;
    int open = is_lazy(o) ? door_number(w, o, &n) : 0;
    return open > 0 ? o : open < 0 ? NULL : door_open(w, o);
}

// A number that is kept open stays so beside a stand-in alone: the kind of that knows numbers.
static bool operands_open(world *w, PyObject *left, PyObject *right, operands *p) {
    PyObject *a = open_operand(w, left), *b = a ? open_operand(w, right) : NULL;
    if (b && is_lazy(a) && !is_standin(b))
        a = door_open(w, a);
    if (a && b && is_lazy(b) && !is_standin(a))
        b = door_open(w, b);
    if (!a || !b)
        return false;
    *p = (operands){Py_NewRef(a), Py_NewRef(b)};
    return true;
}

// The stand-in has declined: its operator is not its kind's affair.
static bool operands_open_all(world *w, operands *p) {
    PyObject *left = door_open(w, p->left), *right = left ? door_open(w, p->right) : NULL;
    if (!right)
        return false;
    Py_SETREF(p->left, Py_NewRef(left));
    Py_SETREF(p->right, Py_NewRef(right));
    return true;
}

static void operands_drop(operands *p) {
    Py_DECREF(p->left);
    Py_DECREF(p->right);
}

// --- unary ---

// What the function asks for; PyNumber_Index and its like try several methods.
static status unary_prepare(world *w, unaryfunc function, PyObject *o) {
    if (function == PyNumber_Negative)
        return special_open(w, o, SPECIAL_neg);
    if (function == PyNumber_Positive)
        return special_open(w, o, SPECIAL_pos);
    if (function == PyNumber_Invert)
        return special_open(w, o, SPECIAL_invert);
    if (function == PyNumber_Absolute)
        return special_open(w, o, SPECIAL_abs);
    return special_open_all(w, o, P_INDEX);
}

// A number that is kept open stays so. As number_unary.
static int unary_number(world *w, unaryfunc function, PyObject *operand, PyObject **result) {
    static const struct {
        unaryfunc function;
        number_op op;
    } rows[] = {{PyNumber_Negative, NUMBER_NEG},
                {PyNumber_Absolute, NUMBER_ABS},
                {PyNumber_Invert, NUMBER_INVERT}};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(rows); i++)
        if (rows[i].function == function)
            return number_unary(w, rows[i].op, operand, result);
    number n;
    int open = function == PyNumber_Positive ? door_number(w, operand, &n) : 0;
    if (open <= 0 || n.kind == NUMBER_BOOL) // of True it is 1
        return open < 0 ? -1 : 0;
    *result = Py_NewRef(operand);
    return 1;
}

PyObject *op_unary(world *w, unaryfunc function, PyObject *operand) {
    PyObject *result = NULL;
    int done = is_lazy(operand) ? unary_number(w, function, operand, &result) : 0;
    if (done)
        return result;
    PyObject *o = door_open(w, operand);
    if (!o)
        return NULL;
    if (numpy_is_operand(o))
        return numpy_unary(w, function, o);
    Py_INCREF(o);
    if (unary_prepare(w, function, o) == ST_OK)
        result = native_result(w, function(o), is_standin(o));
    Py_DECREF(o);
    return result;
}

// --- binary ---

// The three methods of each operator stand in a row, operators in CPython's own order.
static special binary_special(int kind, bool *inplace) {
    *inplace = kind >= PY_INPLACE_ADD;
    return (special)(SPECIAL_add + 3 * (*inplace ? kind - PY_INPLACE_ADD : kind));
}

// The order of the rows is CPython's own, so the operator in place can be told from its method.
enum { PY_INPLACE_OR = PY_INPLACE_ADD + (SPECIAL_or - SPECIAL_add) / 3 };

static_assert(SPECIAL_ixor - SPECIAL_add == 3 * PY_INPLACE_ADD - 1, "three methods per operator");

static bool is_text(PyObject *o) {
    return PyUnicode_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o);
}

static bool is_set_like(PyObject *o) {
    return PyAnySet_Check(o) || PyDictViewSet_Check(o);
}

// A sequence is repeated by whatever has __index__.
static status repeat_count(world *w, operands *p) {
    bool left = PySequence_Check(p->left), right = PySequence_Check(p->right);
    if (left && !right)
        return protocol_open(w, &p->right, P_INDEX);
    return right && !left ? protocol_open(w, &p->left, P_INDEX) : ST_OK;
}

// A view of a dict takes any iterable on its other side. What has the operator itself would be
// asked for it, which a feed cannot do.
static status view_operand(world *w, special id, PyObject **o) {
    if (rule_is_container(*o) || is_set_like(*o)) {
        TRY(protocol_open(w, o, P_ITER | P_UNORDERED));
        return protocol_open_elements(w, o, P_HASH);
    }
    if (!Py_TYPE(*o)->tp_iter && !PySequence_Check(*o))
        return ST_OK; // it is refused by native code
    for (int i = 0; i < 2; i++)
        if (special_slot_is_there(*o, (special)(id + i)))
            return world_break_status(w, REASON_PROTOCOL, "a view of a dict and a %s object",
                                      Py_TYPE(*o)->tp_name);
    PyObject *feed = feed_new(w, *o, P_HASH | P_EQ);
    if (!feed)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    Py_SETREF(*o, feed);
    return ST_OK;
}

static status set_operands(world *w, special id, operands *p) {
    if (PyDictViewSet_Check(p->left) || PyDictViewSet_Check(p->right)) {
        TRY(view_operand(w, id, &p->left));
        return view_operand(w, id, &p->right);
    }
    TRY(protocol_open(w, &p->right, P_ITER | P_UNORDERED));
    TRY(protocol_open_elements(w, &p->right, P_HASH));
    return protocol_open_elements(w, &p->left, P_HASH);
}

// `d |= x` takes pairs as well as mappings, and asks a mapping of a Python class for its keys: the
// rule of that method does so. NULL without an exception if the method is no C code.
static PyObject *dict_update_in_place(world *w, operands *p) {
    PyObject *name = special_name(SPECIAL_ior), *raw = NULL;
    PyObject *args[] = {p->left, p->right};
    if (!name || !type_lookup(w, Py_TYPE(p->left), name, &raw) ||
        !Py_IS_TYPE(raw, &PyWrapperDescr_Type))
        return NULL;
    return call_with(w, raw, args, 2);
}

// A tuple of a class of C's own, like torch.Size: it looks at what it is joined with.
static bool is_c_tuple(PyObject *o) {
    return PyTuple_Check(o) && !PyTuple_CheckExact(o) && !raw_is_python_class(Py_TYPE(o));
}

// What the operator does beyond calling special methods: `%` makes text, `+=` takes any iterable,
// sets compare elements.
static status binary_elements(world *w, special id, bool inplace, operands *p) {
    if (id == SPECIAL_mod && is_text(p->left)) {
        TRY(protocol_open(w, &p->right, P_TEXT | P_ITEM));
        return protocol_open_elements(w, &p->right, P_TEXT);
    }
    if (id == SPECIAL_mul)
        return repeat_count(w, p);
    if (id == SPECIAL_add && (is_c_tuple(p->left) || is_c_tuple(p->right))) {
        TRY(protocol_open_elements(w, &p->left, P_INDEX));
        return protocol_open_elements(w, &p->right, P_INDEX);
    }
    if (inplace && id == SPECIAL_add && PySequence_Check(p->left) && !is_scalar(p->left) &&
        !PyTuple_Check(p->left) && !is_standin(p->left))
        return protocol_open(w, &p->right, P_ITER);
    if (is_set_like(p->left) || is_set_like(p->right))
        return set_operands(w, id, p);
    return ST_OK;
}

static bool is_dict_update(int kind, operands *p) {
    return kind == PY_INPLACE_OR && PyDict_Check(p->left) &&
           (!PyDict_Check(p->right) || raw_is_python_class(Py_TYPE(p->right)));
}

static status binary_prepare(world *w, int kind, operands *p) {
    bool inplace;
    special id = binary_special(kind, &inplace);
    if (inplace)
        record_write(w, p->left);
    if (is_scalar(p->left) && is_scalar(p->right))
        return id == SPECIAL_mod && is_text(p->left) ? state_read_text(w, p->right) : ST_OK;
    for (int i = 0; i < (inplace ? 3 : 2); i++) {
        TRY(special_open(w, p->left, (special)(id + i)));
        TRY(special_open(w, p->right, (special)(id + i)));
    }
    return binary_elements(w, id, inplace, p);
}

// An operand of a Python class goes first, as in CPython; a stand-in's slots answer if it declines.
static const standin_kind *answering(operands *p) {
    bool first = is_scalar(p->left) || is_standin(p->left) || is_lazy(p->left) ||
                 numpy_is_operand(p->left); // it declines to a tensor (__array_priority__)
    return first ? standin_answering(p->left, p->right) : NULL;
}

// torch.Size + tuple and torch.Size * 2, where numbers are kept open.
static bool joins_open_tuples(world *w, int kind, operands *p) {
    bool left = op_is_open_tuple(w, p->left), right = op_is_open_tuple(w, p->right);
    int operator = kind >= PY_INPLACE_ADD ? kind - PY_INPLACE_ADD : kind;
    if (!left && !right)
        return false;
    if (operator == NB_ADD)
        return op_takes_open_tuple(w, p->left) && op_takes_open_tuple(w, p->right);
    return operator == NB_MULTIPLY && PyLong_CheckExact(left ? p->right : p->left);
}

static PyObject *binary_opened(world *w, int kind, operands *p) {
    const standin_kind *standin = answering(p);
    if (standin) {
        PyObject *result = standin->binary(w, kind, p->left, p->right);
        if (result != Py_NotImplemented)
            return native_result(w, result, false);
        Py_DECREF(result);
    }
    if (!operands_open_all(w, p))
        return NULL;
    if (numpy_is_operand(p->left) || numpy_is_operand(p->right))
        return numpy_binary(w, kind, p->left, p->right);
    if (is_dict_update(kind, p)) {
        PyObject *result = dict_update_in_place(w, p);
        if (result || PyErr_Occurred())
            return result;
    }
    if (joins_open_tuples(w, kind, p))
        return native_result(w, op_on_tuples(py_binary_functions[kind], p->left, p->right), false);
    if (PyErr_Occurred())
        return NULL;
    if (binary_prepare(w, kind, p) != ST_OK)
        return NULL;
    bool suspicious = is_standin(p->left) || is_standin(p->right);
    PyObject *result = native_result(w, py_binary_functions[kind](p->left, p->right), suspicious);
    if (result)
        native_made(w, result);
    return result;
}

// Numbers that are kept open stay so. As number_binary.
static int binary_number(world *w, int kind, PyObject *left, PyObject *right, PyObject **result) {
    static const int8_t ops[] = {
        [NB_ADD] = NUMBER_ADD,
        [NB_AND] = NUMBER_AND,
        [NB_FLOOR_DIVIDE] = NUMBER_FLOORDIV,
        [NB_LSHIFT] = NUMBER_LSHIFT,
        [NB_MATRIX_MULTIPLY] = -1,
        [NB_MULTIPLY] = NUMBER_MUL,
        [NB_REMAINDER] = NUMBER_MOD,
        [NB_OR] = NUMBER_OR,
        [NB_POWER] = NUMBER_POW,
        [NB_RSHIFT] = NUMBER_RSHIFT,
        [NB_SUBTRACT] = NUMBER_SUB,
        [NB_TRUE_DIVIDE] = NUMBER_TRUEDIV,
        [NB_XOR] = NUMBER_XOR,
    };
    int op = ops[kind >= PY_INPLACE_ADD ? kind - PY_INPLACE_ADD : kind];
    if (op < 0 || (!is_lazy(left) && !is_lazy(right)))
        return 0;
    return number_binary(w, (number_op)op, left, right, result);
}

PyObject *op_binary(world *w, int kind, PyObject *left, PyObject *right) {
    operands p;
    PyObject *number = NULL;
    if (binary_number(w, kind, left, right, &number))
        return number;
    if (!operands_open(w, left, right, &p))
        return NULL;
    PyObject *result = binary_opened(w, kind, &p);
    operands_drop(&p);
    return result;
}

// --- comparisons ---

static PyObject *truth_object(int truth) {
    return truth < 0 ? NULL : Py_NewRef(truth ? Py_True : Py_False);
}

// Both are compared by identity, by object's own methods: which of them are the same is guarded,
// not which objects they are. -1: error or break, 0: no such case.
static int compares_identity(world *w, operands *p, int kind) {
    if (kind != Py_EQ && kind != Py_NE)
        return 0;
    if (is_scalar(p->left) || is_scalar(p->right))
        return 0;
    int left = special_eq_is_identity(w, p->left);
    return left > 0 ? special_eq_is_identity(w, p->right) : left;
}

// A scalar cannot be the same object as what has methods of its own, so that identity says nothing.
static status compare_prepare(world *w, operands *p, int kind) {
    unsigned protocols = kind == Py_EQ || kind == Py_NE ? P_EQ : P_ORDER;
    bool mattered = w->facts.identity_mattered;
    TRY(protocol_open(w, &p->left, protocols));
    TRY(protocol_open(w, &p->right, protocols));
    if (is_scalar(p->left) || is_scalar(p->right))
        w->facts.identity_mattered = mattered;
    return ST_OK;
}

static PyObject *compare_natively(world *w, operands *p, int kind) {
    if (compare_prepare(w, p, kind) != ST_OK)
        return NULL;
    bool suspicious = is_standin(p->left) || is_standin(p->right);
    return native_result(w, PyObject_RichCompare(p->left, p->right, kind), suspicious);
}

static PyObject *compare_opened(world *w, PyObject *left, PyObject *right, operands *p, int kind) {
    if (is_scalar(p->left) && is_scalar(p->right))
        return native_result(w, PyObject_RichCompare(p->left, p->right, kind), false);
    const standin_kind *standin = answering(p);
    if (standin) {
        PyObject *result = standin->compare(w, p->left, p->right, kind);
        if (result != Py_NotImplemented)
            return native_result(w, result, false);
        Py_DECREF(result);
    }
    if (!operands_open_all(w, p))
        return NULL;
    if (numpy_compares(p->left) || numpy_compares(p->right))
        return numpy_compare(w, kind, p->left, p->right);
    int identity = compares_identity(w, p, kind);
    if (identity < 0)
        return NULL;
    if (!identity)
        return compare_natively(w, p, kind);
    int same = door_is(w, left, right);
    return truth_object(same < 0 ? -1 : same == (kind == Py_EQ));
}

// None differs from whatever else a builtin immutable may be: the type tells.
static int differs_from_none(world *w, PyObject *left, PyObject *right, int kind) {
    if ((kind != Py_EQ && kind != Py_NE) || (left != Py_None && right != Py_None))
        return 0;
    PyTypeObject *type = door_type(w, left == Py_None ? right : left);
    if (!type)
        return -1;
    return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyFloat_Type ||
           type == &PyBool_Type || type == &PyTuple_Type || type == &PyList_Type ||
           type == &PyDict_Type;
}

int op_compare_numbers(world *w, PyObject *left, PyObject *right, int kind, PyObject **result) {
    static const number_op ops[] = {[Py_LT] = NUMBER_LT, [Py_LE] = NUMBER_LE, [Py_EQ] = NUMBER_EQ,
                                    [Py_NE] = NUMBER_NE, [Py_GT] = NUMBER_GT, [Py_GE] = NUMBER_GE};
    if (!is_lazy(left) && !is_lazy(right))
        return 0;
    return number_binary(w, ops[kind], left, right, result);
}

PyObject *op_compare(world *w, PyObject *left, PyObject *right, int kind) {
    operands p;
    PyObject *number = NULL;
    if (op_compare_numbers(w, left, right, kind, &number))
        return number;
    int differs = differs_from_none(w, left, right, kind);
    if (differs)
        return truth_object(differs < 0 ? -1 : kind == Py_NE);
    if (!operands_open(w, left, right, &p))
        return NULL;
    PyObject *result = compare_opened(w, left, right, &p, kind);
    operands_drop(&p);
    return result;
}

// --- truth and length ---

// Containers that change, other than dicts.
static bool is_mutable(PyObject *o, record_kind *kind) {
    if (PyList_CheckExact(o))
        *kind = RECORD_LIST;
    else if (PySet_CheckExact(o))
        *kind = RECORD_SET;
    else if (PyByteArray_CheckExact(o))
        *kind = RECORD_BYTEARRAY;
    else if (raw_is_deque(o) && !raw_is_python_class(Py_TYPE(o)))
        *kind = RECORD_DEQUE;
    else
        return false;
    return true;
}

// Of a container, emptiness or length can be told without opening it. If another path may change
// it, it is on record from now on, so that it is guarded to be an object of its own. Whether it is
// still as it was outside: 1, 0, or -1.
static int note_untouched(world *w, lazy *l) {
    record_kind kind;
    if (PyDict_Check(l->outside)) {
        record *r = door_dict(w, (PyObject *)l);
        if (!r)
            return PyErr_Occurred() ? -1 : 0;
        return !r->inside && (!r->names || (!r->names->twin && !r->names->pending));
    }
    if (!is_mutable(l->outside, &kind))
        return !record_of(w, l->outside);
    if (!l->record && !record_of(w, l->outside))
        l->record = record_new(w, kind, l->source, l->outside, NULL);
    if (!l->record)
        return PyErr_Occurred() ? -1 : 0;
    return !l->record->inside;
}

static bool is_unopened(PyObject *o) {
    return is_lazy(o) && !((lazy *)o)->inside;
}

int op_truth(world *w, PyObject *o) {
    if (o == Py_True)
        return 1;
    if (o == Py_False || o == Py_None)
        return 0;
    if (is_unopened(o) && note_untouched(w, (lazy *)o) < 0)
        return -1;
    int truth = door_truth(w, o);
    if (truth != -2)
        return truth;
    PyObject *opened = native_open(w, o, P_TRUTH);
    if (!opened)
        return -1;
    truth = native_status(w, PyObject_IsTrue(opened), false);
    Py_DECREF(opened);
    return truth;
}

static bool has_raw_length(PyTypeObject *type) {
    return type == &PyList_Type || type == &PyTuple_Type || type == &PyDict_Type ||
           type == &PySet_Type || type == &PyFrozenSet_Type;
}

static PyObject *raw_len(world *w, lazy *l) {
    Py_ssize_t length = raw_length(l->outside);
    if (!door_type(w, (PyObject *)l) ||
        guard_add(w->guards, GUARD_LENGTH, l->source, NULL, NULL, length) != ST_OK)
        return NULL;
    return PyLong_FromSsize_t(length);
}

PyObject *op_len(world *w, PyObject *o) {
    if (is_unopened(o) && has_raw_length(Py_TYPE(((lazy *)o)->outside))) {
        int untouched = note_untouched(w, (lazy *)o);
        if (untouched)
            return untouched < 0 ? NULL : raw_len(w, (lazy *)o);
    }
    PyObject *opened = native_open(w, o, P_LEN);
    if (!opened)
        return NULL;
    const standin_kind *kind = standin_kind_of(opened);
    Py_ssize_t length = kind ? 0 : PyObject_Length(opened);
    PyObject *result = kind         ? kind->length(w, opened)
                       : length < 0 ? NULL
                                    : PyLong_FromSsize_t(length);
    Py_DECREF(opened);
    return native_result(w, result, false);
}
