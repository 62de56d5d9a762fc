// Turns operators, subscripts and iteration of stand-ins into nodes that call functions of
// `operator`, in source order.
#include "src/py/operators.h"

#include "src/interp/run.h"

#include "src/guard/value.h"

#include "src/torch/marks.h"
#include "src/torch/overrides.h"

static bool is_number(PyObject *o) {
    return PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o) || value_bits_of(Py_TYPE(o));
}

// Tensors leave other operands to the other side, as torch's operators do by NotImplemented.
static bool takes(PyObject *o) {
    return is_tensor_standin(o) || is_number(o) || is_lazy(o);
}

static PyObject *call_two(world *w, PyObject *function, PyObject *left, PyObject *right) {
    PyObject *args[] = {left, right};
    return record_function(w, function, args, 2);
}

// Whether somebody else than torch does an operator. True: *result, or NULL with an exception or a
// break.
static bool is_answered(world *w, PyObject *function, PyObject *const *operands, int count,
                        special first, int methods, PyObject **result) {
    *result = NULL;
    if (overrides_check(w, operands, count, first, methods) != ST_OK)
        return true;
    return overrides_answer_of(w, function, operands, (size_t)count, result);
}

PyObject *operator_binary(world *w, int kind, PyObject *left, PyObject *right) {
    if (!(left = opened_or_number(w, left)) || !(right = opened_or_number(w, right)))
        return NULL;
    bool inplace = kind >= PY_INPLACE_ADD;
    special id = (special)(SPECIAL_add + 3 * (inplace ? kind - PY_INPLACE_ADD : kind));
    PyObject *operands[] = {left, right}, *answer;
    if (is_answered(w, facts.binary[kind], operands, 2, id, inplace ? 3 : 2, &answer))
        return answer;
    if (!takes(left) || !takes(right))
        return Py_NewRef(Py_NotImplemented);
    if (kind >= PY_INPLACE_ADD && !is_tensor_standin(left))
        kind -= PY_INPLACE_ADD; // a number has no operator in place, and generated code could not
                                // say it
    return call_two(w, facts.binary[kind], left, right);
}

// A number on the left declines, and the tensor is asked the other way round.
PyObject *operator_compare(world *w, PyObject *left, PyObject *right, int kind) {
    if (!(left = opened_or_number(w, left)) || !(right = opened_or_number(w, right)))
        return NULL;
    PyObject *operands[] = {left, right}, *answer;
    if (is_answered(w, facts.compare[kind], operands, 2, SPECIAL_eq, 6, &answer))
        return answer;
    if (!takes(left) || !takes(right))
        return Py_NewRef(Py_NotImplemented);
    if (is_tensor_standin(left))
        return call_two(w, facts.compare[kind], left, right);
    static const int reflected[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
    return call_two(w, facts.compare[reflected[kind]], right, left);
}

PyObject *operator_unary(world *w, const char *name, PyObject *o) {
    PyObject *functions = PyDict_GetItemString(facts.glue, "unary");
    PyObject *function = functions ? PyDict_GetItemString(functions, name) : NULL;
    if (!function)
        return world_break(w, REASON_TENSOR_OPERATION, "%s of a tensor", name);
    PyObject *answer;
    if (is_answered(w, function, &o, 1, SPECIAL_neg, 4, &answer))
        return answer;
    return record_function(w, function, &o, 1);
}

// x[n] with an open n is recorded as select, as stock does: torch's own subscript takes the value of
// a symbolic n.
static PyObject *select_first(world *w, PyObject *o, PyObject *index) {
    PyObject *zero = PyLong_FromLong(0);
    PyObject *args[] = {o, zero, index};
    PyObject *result = zero ? record_function(w, facts.select, args, 3) : NULL;
    Py_XDECREF(zero);
    return result;
}

PyObject *operator_getitem(world *w, PyObject *o, PyObject *key) {
    number n;
    PyObject *operands[] = {o, key}, *answer;
    if (is_answered(w, facts.getitem, operands, 2, SPECIAL_getitem, 1, &answer))
        return answer;
    if (index_get(w, o, key, &answer))
        return answer;
    int open =
        is_tensor_standin(o) && ((standin *)o)->node->meta.dims > 0 ? door_number(w, key, &n) : 0;
    if (open < 0)
        return NULL;
    if (open > 0 && n.kind == NUMBER_INT)
        return select_first(w, o, key);
    return call_two(w, facts.getitem, o, key);
}

int operator_setitem(world *w, PyObject *o, PyObject *key, PyObject *value) {
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
        return -1;
    }
    PyObject *args[] = {o, key, value}, *result;
    if (!is_answered(w, facts.setitem, args, 3, SPECIAL_setitem, 1, &result))
        result = record_function(w, facts.setitem, args, 3);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

// The sizes as torch has them, of a fake. New tuple.
static PyObject *fake_shape(world *w, node *n) {
    quiet q;
    quiet_begin(&q);
    PyObject *fake = fake_of(w, n);
    PyObject *shape = fake ? PyObject_GetAttrString(fake, "shape") : NULL;
    quiet_end(&q);
    return shape;
}

// The size of the first dimension; -1 with an exception.
static Py_ssize_t first_size(world *w, PyObject *o, const char *complaint) {
    node *n = ((standin *)o)->node;
    int asked = w->torch ? overrides_of_tensor(w, (standin *)o) : 0;
    if (asked) {
        if (asked > 0)
            world_break(w, REASON_TENSOR_OPERATION, "the length or the rows of a %s",
                        ((standin *)o)->type->tp_name);
        return -1;
    }
    const meta *m = meta_known(w, n);
    if (m && m->dims > 0) {
        int64_t settled = size_settle(w->graph->sizes, m->sizes[0]);
        return numbers_guard(w) == ST_OK ? settled : -1;
    }
    PyObject *shape = m ? PyTuple_New(0) : fake_shape(w, n);
    Py_ssize_t found = -1;
    if (shape && PyTuple_GET_SIZE(shape) > 0)
        found = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, 0));
    else if (shape)
        PyErr_SetString(PyExc_TypeError, complaint);
    Py_XDECREF(shape);
    return found;
}

Py_ssize_t operator_length(world *w, PyObject *o) {
    return first_size(w, o, "len() of a 0-d tensor");
}

PyObject *operator_len(world *w, PyObject *o) {
    PyObject *answer;
    if (is_answered(w, glue_function("len"), &o, 1, SPECIAL_len, 1, &answer))
        return answer;
    const meta *m = meta_known(w, ((standin *)o)->node);
    if (m && m->dims > 0)
        return number_object(w, number_of_size(m->sizes[0]));
    Py_ssize_t length = operator_length(w, o);
    return length < 0 ? NULL : PyLong_FromSsize_t(length);
}

// One subscript for each row, as stock records them.
static PyObject *subscript_rows(world *w, PyObject *o, Py_ssize_t size) {
    PyObject *rows = PyTuple_New(size);
    for (Py_ssize_t i = 0; rows && i < size; i++) {
        PyObject *key = PyLong_FromSsize_t(i);
        PyObject *item = key ? operator_getitem(w, o, key) : NULL;
        Py_XDECREF(key);
        if (item)
            PyTuple_SET_ITEM(rows, i, item);
        else
            Py_CLEAR(rows);
    }
    return rows;
}

// Tensor.__iter__ takes the rows by unbind. The results of unbind are several views at once, to which
// autograd refuses writes; it does not refuse writes to subscripts.
PyObject *operator_iterate(world *w, PyObject *o) {
    Py_ssize_t size = first_size(w, o, "iteration over a 0-d tensor");
    const meta *m = size < 0 ? NULL : meta_known(w, ((standin *)o)->node);
    PyObject *rows = size < 0                 ? NULL
                     : m && !m->requires_grad ? subscript_rows(w, o, size)
                                              : record_function(w, facts.unbind, &o, 1);
    PyObject *result = rows ? PyObject_GetIter(rows) : NULL;
    Py_XDECREF(rows);
    return result;
}

// --- assertions ---

static long count_of(world *w, standin *s) {
    quiet q;
    quiet_begin(&q);
    PyObject *fake = fake_of(w, s->node);
    PyObject *count = fake ? PyObject_CallMethod(fake, "numel", NULL) : NULL;
    quiet_end(&q);
    long found = count ? PyLong_AsLong(count) : -1;
    PyErr_Clear();
    Py_XDECREF(count);
    return found;
}

static bool is_on_cpu(world *w, standin *s) {
    quiet q;
    quiet_begin(&q);
    PyObject *fake = fake_of(w, s->node);
    PyObject *device = fake ? PyObject_GetAttrString(fake, "device") : NULL;
    PyObject *type = device ? PyObject_GetAttrString(device, "type") : NULL;
    quiet_end(&q);
    bool found = type && PyUnicode_CompareWithASCIIString(type, "cpu") == 0;
    PyErr_Clear();
    Py_XDECREF(device);
    Py_XDECREF(type);
    return found;
}

// What has more elements than one, or none, has no truth: torch says so, when it is asked. A device
// that finds an assertion false is lost to the process: not where the program handles exceptions.
int operator_check(world *w, PyObject *o, PyObject *message) {
    torch_trace *t = trace_of(w);
    if (!t)
        return -1;
    if (count_of(w, (standin *)o) != 1)
        return 0;
    bool handled = message == Py_None || !(w->terms.whole || world_nobody_handles(w));
    if (handled && !is_on_cpu(w, (standin *)o))
        return 0;
    PyObject *text = PyUnicode_Check(message)
                         ? Py_NewRef(message) // without one AOTAutograd drops the assertion
                         : PyUnicode_FromString("the condition before a raise is not met");
    PyObject *args[] = {o, text};
    PyObject *done = text ? record_function(w, glue_function("assert_async"), args, 2) : NULL;
    Py_XDECREF(text);
    if (!done)
        return -1;
    Py_DECREF(done);
    w->facts.assumed = true;
    if (!t->asserted)
        t->asserted = w->run->started;
    return 1;
}

// A graph that fails is run again as Python, which raises an AssertionError; torch's own error is
// another. Where no break is wanted, that one has to do.
status operator_checked(world *w, const torch_trace *t) {
    if (!t->asserted || w->terms.whole || !(w->facts.mutated_tensor || w->facts.random) ||
        mark_strict(w))
        return ST_OK;
    world_break(w, REASON_TENSOR_TRUTH, "an assertion, in a graph that cannot be run twice");
    w->time.again = t->asserted;
    return ST_BREAK;
}
