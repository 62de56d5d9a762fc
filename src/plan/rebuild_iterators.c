// Turns an inside iterator of a C type into the steps that make it again: an empty one of its type,
// the objects that it holds, and how far it has come. No code calls iter() or next() for this.
#include "src/py/iterators.h"

#include "src/plan/build.h"

bool rebuild_is_iterator(PyObject *o) {
    bool known = py_iterator_form_of(o) != NULL;
    if (!known)
        PyErr_Clear(); // without memory none is known, and each is refused
    return known;
}

status rebuild_empty_iterator(builder *b, PyObject *o, operand *out) {
    step s = step_of(STEP_ITERATOR, -1, OPERAND_NONE, OPERAND_NONE);
    return rebuild_make(b, o, s, NULL, (PyObject *)Py_TYPE(o), out);
}

// zip_longest drops iterators that have ended out of its tuple, which nobody else has.
static bool has_gaps(PyObject *field) {
    if (!field || !PyTuple_CheckExact(field))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(field); i++) {
        if (!PyTuple_GET_ITEM(field, i))
            return true;
    }
    return false;
}

static status tuple_with_gaps(builder *b, PyObject *tuple, operands *to) {
    operands items = {0};
    step s = step_of(STEP_TUPLE, build_register(b), OPERAND_NONE, OPERAND_NONE);
    status done = ST_OK;
    for (Py_ssize_t i = 0; done == ST_OK && i < PyTuple_GET_SIZE(tuple); i++)
        done = rebuild_field(b, PyTuple_GET_ITEM(tuple, i), &items);
    if (done == ST_OK)
        done = build_step(b, &b->making, s, &items, NULL);
    vec_free(&items);
    return done == ST_OK ? vec_push(to, s.out) : done;
}

static status fields_of(builder *b, const py_iterator_form *form, PyObject *o, operands *to) {
    int count = py_iterator_fields(form);
    for (int i = 0; i < count; i++) {
        PyObject *field = py_iterator_field(form, o, i);
        if (has_gaps(field))
            TRY(tuple_with_gaps(b, field, to));
        else
            TRY(rebuild_field(b, field, to));
    }
    return ST_OK;
}

static status fill_step(builder *b, const py_iterator_form *form, PyObject *o, operand to) {
    operands fields = {0};
    PyObject *numbers = py_iterator_numbers(form, o);
    status done = numbers ? fields_of(b, form, o, &fields) : ST_ERROR;
    if (done == ST_OK)
        done = build_step(b, &b->making, step_of(STEP_ITERATOR_FILL, -1, to, OPERAND_NONE), &fields,
                          numbers);
    vec_free(&fields);
    Py_XDECREF(numbers);
    return done;
}

// What it goes through gets its final content by fills and writes: the place is found behind them.
// Where the order of a set differs from call to call, there is no place to be found.
static status place_step(builder *b, const py_iterator_form *form, PyObject *o, operand to) {
    PyObject *container = py_iterator_is_placed(form) ? py_iterator_field(form, o, 0) : NULL;
    if (!container) // it counts, or has ended
        return ST_OK;
    step s = step_of(STEP_ITERATOR_PLACE, -1, to, OPERAND_NONE);
    s.index = py_iterator_steps(form, o);
    if (s.index < 0)
        return rebuild_refuse(b, o);
    if (PyAnySet_Check(container) && PySet_GET_SIZE(container) > 1)
        TRY(rebuild_set_order(b, container));
    return build_step(b, &b->late, s, NULL, NULL);
}

status rebuild_fill_iterator(builder *b, PyObject *o, operand to) {
    const py_iterator_form *form = py_iterator_form_of(o);
    TRY(fill_step(b, form, o, to));
    return place_step(b, form, o, to);
}
