// Immutable values and identity: which objects are guarded by value, where each value came from,
// and `is`, which guards only its outcome.
#include "src/guard/value.h"

#include "src/world/inner.h"
#include "src/world/number.h"
#include "src/world/world.h"

// --- immutable values ---

// How much of a value is looked at: structure that is shared is compared each time it is met, so
// the work is bounded by the number of visits and not of objects.
enum { VISITS = 10000 };

static bool immutable(PyObject *o, int depth, int *left);

static bool slice_immutable(PyObject *o, int depth, int *left) {
    PySliceObject *s = (PySliceObject *)o;
    return immutable(s->start, depth, left) && immutable(s->stop, depth, left) &&
           immutable(s->step, depth, left);
}

static bool tuple_immutable(PyObject *o, int depth, int *left) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
        if (!immutable(PyTuple_GET_ITEM(o, i), depth, left))
            return false;
    return true;
}

// A NaN is itself and nothing else: each must be found where it lies.
static bool set_immutable(PyObject *o, int depth, int *left) {
    Py_ssize_t at = 0;
    PyObject *item;
    while (raw_set_next(o, &at, &item))
        if (!immutable(item, depth, left) || value_has_nan(item))
            return false;
    return true;
}

static bool immutable(PyObject *o, int depth, int *left) {
    PyTypeObject *t = Py_TYPE(o);
    if (--*left < 0)
        return false;
    if (t == &PyLong_Type || t == &PyUnicode_Type || t == &PyFloat_Type || t == &PyBool_Type ||
        o == Py_None || t == &PyBytes_Type || t == &PyComplex_Type || o == Py_Ellipsis ||
        o == Py_NotImplemented || t == &PyCode_Type || t == &PyRange_Type || value_bits_of(t))
        return true;
    if (depth == 100) // as deep as values are compared
        return false;
    return t == &PyTuple_Type       ? tuple_immutable(o, depth + 1, left)
           : t == &PyFrozenSet_Type ? set_immutable(o, depth + 1, left)
                                    : t == &PySlice_Type && slice_immutable(o, depth + 1, left);
}

bool value_immutable(PyObject *o) {
    int left = VISITS;
    return immutable(o, 0, &left);
}

// --- objects that never change ---

static map fixed; // their addresses; they live as long as the process

status value_fix(PyObject *o) {
    if (map_get(&fixed, map_key(o)))
        return ST_OK;
    TRY(map_put(&fixed, map_key(o), 1));
    Py_INCREF(o);
    return ST_OK;
}

bool value_is_fixed(PyObject *o) {
    return map_get(&fixed, map_key(o)) != NULL;
}

// What C types have for good comes in as it is, without a record.
static bool is_descriptor(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return t == &PyMethodDescr_Type || t == &PyWrapperDescr_Type || t == &PyClassMethodDescr_Type ||
           t == &PyGetSetDescr_Type || t == &PyMemberDescr_Type ||
           (PyType_HasFeature(t, Py_TPFLAGS_METHOD_DESCRIPTOR) && !PyFunction_Check(o));
}

bool value_could_be_outside(const world *w, PyObject *o) {
    if (PyFunction_Check(o) || PyType_Check(o))
        return !map_get(&w->made.objects, map_key(o));
    return PyCFunction_Check(o) || PyModule_Check(o) || is_descriptor(o) || value_immutable(o) ||
           map_get(&w->in.fixed, map_key(o)) || value_is_fixed(o);
}

// Whether CPython has only one object of this value.
static bool is_unique(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    if (t == &PyLong_Type) {
        int overflow;
        long value = PyLong_AsLongAndOverflow(o, &overflow);
        return overflow == 0 && value >= -5 && value <= 256;
    }
    if (t == &PyUnicode_Type || t == &PyTuple_Type || t == &PyBytes_Type)
        return raw_length(o) == 0;
    return o == Py_None || t == &PyBool_Type || o == Py_Ellipsis || o == Py_NotImplemented;
}

static bool is_nan(PyObject *o) {
    if (PyFloat_Check(o))
        return PyFloat_AS_DOUBLE(o) != PyFloat_AS_DOUBLE(o);
    const value_bits *bits = value_bits_of(Py_TYPE(o));
    if (bits)
        return value_bits_nan(bits, o);
    if (!PyComplex_Check(o))
        return false;
    Py_complex value = ((PyComplexObject *)o)->cval;
    return value.real != value.real || value.imag != value.imag;
}

bool value_has_nan(PyObject *o) {
    for (Py_ssize_t i = 0; PyTuple_CheckExact(o) && i < PyTuple_GET_SIZE(o); i++)
        if (value_has_nan(PyTuple_GET_ITEM(o, i)))
            return true;
    return is_nan(o);
}

static status guard_identity_of_pair(world *w, source *a, source *b, bool same) {
    if (a == b)
        return ST_OK;
    return guard_add(w->guards, same ? GUARD_SAME : GUARD_NOT_SAME, a, b, NULL, 0);
}

// `x in [y]` of NaNs asks whether they are one object: native code never shows that it asked.
static status note_nan(world *w, source *s, PyObject *o, value *v) {
    for (value *other = w->in.nans; other; other = other->next_nan)
        TRY(guard_identity_of_pair(w, other->source, s, other->object == o));
    v->next_nan = w->in.nans;
    w->in.nans = v;
    return ST_OK;
}

// Items of a tuple are found when they are asked for; only NaNs are told apart at once.
static status note_nan_items(world *w, source *s, PyObject *tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        if (!value_has_nan(item))
            continue;
        source *at = guard_source(w->guards, SOURCE_TUPLE_ITEM, s, NULL, i);
        if (!at)
            return ST_ERROR;
        TRY(value_note(w, at, item));
    }
    return ST_OK;
}

// Immutables that hold others: what lies in them is found when it is asked for.
static bool holds_items(PyObject *o) {
    return PyTuple_CheckExact(o) || PyFrozenSet_CheckExact(o);
}

// A place where this very object was found.
static value *add_place(world *w, source *s, PyObject *o) {
    uint64_t *known = map_get(&w->in.values, map_key(o));
    value *v = arena_new(&w->arena, value);
    if (!v || !world_keep(w, Py_NewRef(o)))
        return NULL;
    *v = (value){.source = s, .object = o, .next = known ? (value *)(uintptr_t)*known : NULL};
    return map_put(&w->in.values, map_key(o), map_key(v)) == ST_OK ? v : NULL;
}

status value_note(world *w, source *s, PyObject *o) {
    if (is_unique(o))
        return ST_OK;
    value *v = add_place(w, s, o);
    if (!v)
        return ST_ERROR;
    if (!holds_items(o))
        return is_nan(o) ? note_nan(w, s, o, v) : ST_OK;
    v->next_holder = w->in.holders;
    w->in.holders = v;
    return PyTuple_CheckExact(o) ? note_nan_items(w, s, o) : ST_OK;
}

status value_note_key(world *w, source *s, PyObject *o) {
    return value_key_is_fixed(o) ? ST_OK : value_note(w, s, o);
}

// --- identity ---

// One side of `is`: which object it is outside, and where it was found.
typedef struct side {
    PyObject *object;
    source *source; // NULL: made inside, or a constant
    value *more;    // an opened immutable: all its places
    bool type_known;
} side;

static value *value_known(const world *w, PyObject *o) {
    uint64_t *known = map_get(&w->in.values, map_key(o));
    return known ? (value *)(uintptr_t)*known : NULL;
}

static bool is_noted(const world *w, const source *s, PyObject *o) {
    value *v = value_known(w, o);
    while (v && v->source != s)
        v = v->next;
    return v != NULL;
}

static status note_in(world *w, source *s, PyObject *holder, PyObject *o);

// `item` lies in a holder: notes the place if it is `o`, and looks for `o` in it if it is one.
static status note_item(world *w, source *s, source_kind kind, Py_ssize_t index, PyObject *item,
                        PyObject *o) {
    if (item != o && !holds_items(item))
        return ST_OK;
    source *at = guard_source(w->guards, kind, s, NULL, index);
    if (!at)
        return ST_ERROR;
    if (item != o)
        return note_in(w, at, item, o);
    return is_noted(w, at, o) ? ST_OK : value_note(w, at, o);
}

static status note_in(world *w, source *s, PyObject *holder, PyObject *o) {
    Py_ssize_t i = 0, at = 0;
    PyObject *item;
    if (PyFrozenSet_CheckExact(holder)) {
        for (; raw_set_next(holder, &at, &item); i++)
            TRY(note_item(w, s, SOURCE_SET_ITEM, i, item, o));
        return ST_OK;
    }
    for (; i < PyTuple_GET_SIZE(holder); i++)
        TRY(note_item(w, s, SOURCE_TUPLE_ITEM, i, PyTuple_GET_ITEM(holder, i), o));
    return ST_OK;
}

// Where an immutable came from; NULL if it is a constant or was made inside.
static status value_find(world *w, PyObject *o, value **found) {
    if (!is_unique(o) && value_immutable(o)) {
        for (value *v = w->in.holders; v; v = v->next_holder)
            TRY(note_in(w, v->source, v->object, o));
    }
    *found = value_known(w, o);
    return ST_OK;
}

status value_give_out(world *w, PyObject *o, bool fixed, source **place) {
    value *v = NULL;
    TRY(value_find(w, o, &v));
    *place = v ? v->source : NULL;
    if (v && fixed)
        TRY(guard_add(w->guards, GUARD_IS, v->source, NULL, o, 0));
    for (value *other = v ? v->next : NULL; other; other = other->next)
        TRY(guard_identity_of_pair(w, v->source, other->source, true));
    return ST_OK;
}

static status side_of(world *w, PyObject *o, side *found) {
    value *v = NULL;
    record *r = record_of(w, o);
    if (is_lazy(o)) {
        lazy *l = (lazy *)o;
        *found = (side){l->outside, l->source, NULL, l->type_known};
    } else if (r) {
        *found = (side){r->outside, r->source, NULL, true};
    } else {
        TRY(value_find(w, o, &v));
        *found = (side){o, v ? v->source : NULL, v ? v->next : NULL, true};
    }
    return ST_OK;
}

static status guard_against_object(world *w, const side *a, PyObject *object, bool same) {
    if (!same && !value_could_be_outside(w, object))
        return ST_OK;
    guard_kind kind = same ? GUARD_IS : GUARD_IS_NOT;
    TRY(guard_add(w->guards, kind, a->source, NULL, object, 0));
    for (value *v = a->more; v; v = v->next)
        TRY(guard_add(w->guards, kind, v->source, NULL, object, 0));
    return ST_OK;
}

static status guard_pairs(world *w, const side *a, const side *b, bool same) {
    TRY(guard_identity_of_pair(w, a->source, b->source, same));
    for (value *v = a->more; v; v = v->next)
        TRY(guard_identity_of_pair(w, v->source, b->source, same));
    for (value *v = b->more; v; v = v->next)
        TRY(guard_identity_of_pair(w, a->source, v->source, same));
    for (value *v = a->more; v; v = v->next)
        for (value *u = b->more; u; u = u->next)
            TRY(guard_identity_of_pair(w, v->source, u->source, same));
    return ST_OK;
}

// One pointer on both sides; an opened immutable may have come from two places all the same.
static int is_itself(world *w, const side *a) {
    for (value *v = a->more; v; v = v->next)
        if (guard_identity_of_pair(w, a->source, v->source, true) != ST_OK)
            return -1;
    return 1;
}

// Which object a computed number is depends on how Python computed it (abs(n) may be n itself), so
// where two are equal that is known only of values that CPython has one object of.
static int is_of_opened(world *w, PyObject *a, PyObject *b) {
    PyObject *left = door_open(w, a), *right = left ? door_open(w, b) : NULL;
    if (!right)
        return -1;
    if (!value_same(left, right) || is_unique(left))
        return value_same(left, right);
    world_break(w, REASON_ADDRESS, "whether two numbers are one object");
    return -1;
}

int door_is(world *w, PyObject *a, PyObject *b) {
    side left, right;
    if (side_of(w, a, &left) != ST_OK || side_of(w, b, &right) != ST_OK)
        return -1;
    bool same = left.object == right.object;
    if (a == b)
        return is_itself(w, &left);
    // Types that are guarded and differ say it all.
    if (left.type_known && right.type_known && Py_TYPE(left.object) != Py_TYPE(right.object))
        return 0;
    if (number_is_computed(a) || number_is_computed(b))
        return is_of_opened(w, a, b);
    status result = ST_OK;
    if (left.source && right.source)
        result = guard_pairs(w, &left, &right, same);
    else if (left.source)
        result = guard_against_object(w, &left, right.object, same);
    else if (right.source)
        result = guard_against_object(w, &right, left.object, same);
    return result == ST_OK ? same : -1;
}
