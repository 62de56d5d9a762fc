// The marks of a tensor's dimensions into bits, which guards compare; and the promises that come
// with them into errors, where a trace or a backend did not keep them.
#include "src/py/raw.h"

#include "src/torch/dims.h"
#include "src/torch/room.h"

static const struct {
    const char *attribute;
    dim_effect effect;
    bool guarded;
} rows[DIM_MARKS] = {
#define DIM_MARK(id, attribute, effect, guarded) {attribute, effect, guarded},
#include "src/torch/dim_marks.def"
#undef DIM_MARK
};

static struct {
    PyObject *attributes[DIM_MARKS]; // strong: interned
    PyObject *address, *guarded;     // strong, likewise: attribute and value of mark_static_address
} words;

int dims_setup(void) {
    for (int i = 0; i < DIM_MARKS; i++)
        if (!(words.attributes[i] = PyUnicode_InternFromString(rows[i].attribute)))
            return -1;
    words.address = PyUnicode_InternFromString("_dynamo_static_input_type");
    words.guarded = PyUnicode_InternFromString("guarded");
    return words.address && words.guarded ? 0 : -1;
}

// --- reading ---

// Dimensions that the tensor does not have say nothing: numbers beyond these are left out.
static bool read_set(PyObject *set, uint32_t *bits) {
    Py_ssize_t at = 0;
    PyObject *item;
    if (!PySet_CheckExact(set))
        return false;
    while (raw_set_next(set, &at, &item)) {
        int overflow = 0;
        long dim = PyLong_CheckExact(item) ? PyLong_AsLongAndOverflow(item, &overflow) : -1;
        if (!PyLong_CheckExact(item))
            return false;
        if (!overflow && dim >= 0 && dim < META_MOST_DIMS)
            *bits |= 1U << dim;
    }
    return true;
}

static bool is_guarded_address(PyObject *tensor) {
    PyObject *found;
    return raw_attr_get(tensor, words.address, &found) == RAW_FOUND &&
           PyUnicode_CheckExact(found) && PyUnicode_Compare(found, words.guarded) == 0;
}

dim_marks dim_marks_read(PyObject *tensor) {
    dim_marks marks = {0};
    if (!raw_has_attrs(tensor))
        return marks;
    for (int i = 0; i < DIM_MARKS; i++) {
        PyObject *found;
        raw how = raw_attr_get(tensor, words.attributes[i], &found);
        marks.odd |= how == RAW_UNSURE || (how == RAW_FOUND && !read_set(found, &marks.at[i]));
        marks.any |= how == RAW_FOUND;
    }
    marks.address = is_guarded_address(tensor);
    return marks;
}

bool dim_marks_fit(const dim_marks *then, const dim_marks *now) {
    if (!now->any && !now->odd)
        return true;
    bool fit = then->odd || !now->odd;
    for (int i = 0; i < DIM_MARKS; i++)
        fit = fit && (!rows[i].guarded || !(now->at[i] & ~then->at[i]));
    return fit;
}

uint32_t dim_marks_with(const dim_marks *marks, dim_effect effect) {
    uint32_t bits = 0;
    for (int i = 0; i < DIM_MARKS; i++)
        bits |= rows[i].effect == effect ? marks->at[i] : 0;
    return bits;
}

static PyObject *add_mark(PyObject *text, const char *attribute, uint32_t bits) {
    for (int dim = 0; text && dim < META_MOST_DIMS; dim++)
        if (bits & 1U << dim)
            Py_SETREF(text,
                      PyUnicode_FromFormat("%U%s%s[%d]", text,
                                           PyUnicode_GET_LENGTH(text) ? ", " : "", attribute, dim));
    return text;
}

PyObject *dim_marks_text(const dim_marks *marks) {
    PyObject *text = PyUnicode_FromString("");
    for (int i = 0; i < DIM_MARKS; i++)
        text = add_mark(text, rows[i].attribute, rows[i].guarded ? marks->at[i] : 0);
    if (text && PyUnicode_GET_LENGTH(text) == 0)
        Py_SETREF(text, PyUnicode_FromString("none"));
    return text;
}

// --- promises ---

// The error for sizes that were promised to differ. `rows`: see stator._dims.
static status raise_violation(PyObject *promises) {
    PyObject *error = PyObject_CallOneArg(glue_function("violation"), promises);
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return ST_ERROR;
}

// An end of a range; None is none.
static bool read_end(PyObject *end, int64_t none, int64_t *found) {
    int overflow = 0;
    *found = end == Py_None ? none : PyLong_AsLongLongAndOverflow(end, &overflow);
    if (overflow)
        *found = none;
    return !PyErr_Occurred();
}

static bool is_outside(const symbol *s) {
    return s->number.hint.i < s->low || s->number.hint.i > s->high;
}

status dim_promise(world *w, PyObject *range) {
    symbol *s = &w->numbers.symbols.items[w->numbers.symbols.count - 1];
    s->low = INT64_MIN;
    s->high = INT64_MAX;
    s->promised = w->numbers.promises = true;
    if (range == Py_None)
        return ST_OK;
    if (!read_end(PyTuple_GET_ITEM(range, 0), INT64_MIN, &s->low) ||
        !read_end(PyTuple_GET_ITEM(range, 1), INT64_MAX, &s->high))
        return ST_ERROR;
    if (is_outside(s))
        return ST_OK; // the end of the trace reports it
    size there = size_of_number(s->number);
    sizes *known = w->numbers.sizes;
    if (s->low > INT64_MIN)
        size_decide(known, NUMBER_GE, there, size_of(s->low));
    if (s->high < INT64_MAX)
        size_decide(known, NUMBER_LE, there, size_of(s->high));
    return numbers_guard(w);
}

// Whether it has all values that were promised; sizes of torch's symbols are 2 or more.
static bool has_range(number now, const symbol *s, int64_t *low, int64_t *high) {
    expr_bounds(now.e, low, high);
    bool ranged = s->low > INT64_MIN || s->high < INT64_MAX;
    int64_t least = s->low > 2 ? s->low : 2;
    return !ranged || (*low <= least && *high >= s->high);
}

// What became of a promise: new tuple, None if it was kept.
static PyObject *broken_promise(world *w, const symbol *s, const char *whose) {
    number now = number_current(w->numbers.sizes, s->number);
    int64_t low, high;
    if (is_outside(s))
        return Py_BuildValue("(sLLL)", "outside", (long long)s->number.hint.i, (long long)s->low,
                             (long long)s->high);
    if (s->excused || (now.e && has_range(now, s, &low, &high)))
        return Py_NewRef(Py_None);
    PyObject *place = input_name(w, s->place);
    PyObject *stack = s->stack ? s->stack : Py_None, *row = NULL;
    int64_t value = s->number.hint.i;
    (void)sizes_value(w->numbers.sizes, s->number, &value);
    if (place && !now.e)
        row = Py_BuildValue("(sOLsO)", "settled", place, (long long)value, whose, stack);
    else if (place)
        row = Py_BuildValue("(sOLLLL)", "narrowed", place, (long long)s->low, (long long)s->high,
                            (long long)low, (long long)high);
    Py_XDECREF(place);
    return row;
}

status dim_promises(world *w, const char *whose) {
    PyObject *broken = PyList_New(0);
    status done = broken ? ST_OK : ST_ERROR;
    for (uint32_t i = 0; done == ST_OK && i < w->numbers.symbols.count; i++) {
        const symbol *s = &w->numbers.symbols.items[i];
        PyObject *row = s->promised ? broken_promise(w, s, whose) : Py_NewRef(Py_None);
        if (!row || (row != Py_None && PyList_Append(broken, row) < 0))
            done = ST_ERROR;
        Py_XDECREF(row);
    }
    if (done == ST_OK && PyList_GET_SIZE(broken) > 0) {
        quiet q;
        quiet_begin(&q);
        done = raise_violation(broken);
        quiet_end(&q);
    }
    Py_XDECREF(broken);
    return done;
}
