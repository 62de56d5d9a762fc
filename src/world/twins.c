// Turns an outside container into its twin: a real container of the same class, filled with lazies,
// that stands for it inside. Native code changes the twin, and never the original.
#include "src/py/frame.h"
#include "src/py/iterators.h"
#include "src/py/sets.h"

#include "src/interp/run.h"

#include "src/world/inner.h"
#include "src/world/world.h"

// --- classes ---

// Whether instances are made and dropped by CPython's own code for class statements: C code that
// subclasses a builtin may keep fields of its own in an instance.
static bool is_statement_class(PyTypeObject *t) {
    return t->tp_dealloc == ((PyTypeObject *)world_break_error)->tp_dealloc;
}

static bool is_plain_class(PyTypeObject *t, PyTypeObject *base) {
    while (t != base && is_statement_class(t))
        t = t->tp_base;
    return t == base;
}

// A new, empty instance of a class on top of a builtin, made by the builtin's own C function.
static PyObject *new_instance(world *w, PyTypeObject *base, PyTypeObject *type,
                              PyObject *argument) {
    if (!is_plain_class(type, base))
        return world_break(w, REASON_PROTOCOL, "%s, made in C on top of %s", type->tp_name,
                           base->tp_name);
    // A twin dies when the trace ends, and nobody may notice.
    if (type != base && (type->tp_finalize || type->tp_del))
        return world_break(w, REASON_FINALIZER, "%s", type->tp_name);
    PyObject *args = argument ? PyTuple_Pack(1, argument) : PyTuple_New(0);
    PyObject *made = args ? base->tp_new(type, args, NULL) : NULL;
    Py_XDECREF(args);
    return made;
}

bool twin_wanted(PyObject *o, record_kind *kind) {
    if (PyTuple_Check(o))
        *kind = RECORD_TUPLE;
    else if (PyList_Check(o))
        *kind = RECORD_LIST;
    else if (PyDict_Check(o))
        *kind = RECORD_DICT;
    else if (PyAnySet_Check(o))
        *kind = RECORD_SET;
    else if (PyObject_TypeCheck(o, type_deque))
        *kind = RECORD_DEQUE;
    else if (PyByteArray_Check(o))
        *kind = RECORD_BYTEARRAY;
    else if (raw_view_mapping(o))
        *kind = RECORD_OBJECT;
    else
        return false;
    return true;
}

// --- elements ---

static status guard_length(world *w, record *r, Py_ssize_t length) {
    return guard_add(w->guards, GUARD_LENGTH, r->source, NULL, NULL, length);
}

static status room_for_initial(world *w, record *r, Py_ssize_t count) {
    r->initial = arena_array(&w->arena, PyObject *, (size_t)count);
    r->count = count;
    return r->initial ? ST_OK : ST_ERROR;
}

// A lazy; new reference.
static PyObject *load_item(world *w, record *r, source_kind kind, PyObject *item, Py_ssize_t i) {
    source *s = guard_source(w->guards, kind, r->source, NULL, i);
    return s ? door_load(w, s, item) : NULL;
}

// Takes the reference to `twin`; NULL fails.
static status finish(world *w, record *r, PyObject *twin) {
    status result = twin ? record_register(w, r, twin) : w->stop.broken ? ST_BREAK : ST_ERROR;
    Py_XDECREF(twin);
    return result;
}

// --- lists ---

static status open_list(world *w, record *r) {
    Py_ssize_t count = PyList_GET_SIZE(r->outside);
    PyTypeObject *type = Py_TYPE(r->outside);
    TRY(guard_length(w, r, count));
    TRY(room_for_initial(w, r, count));
    bool exact = type == &PyList_Type;
    PyObject *twin = exact ? PyList_New(count) : new_instance(w, &PyList_Type, type, NULL);
    for (Py_ssize_t i = 0; twin && i < count; i++) {
        PyObject *item = load_item(w, r, SOURCE_LIST_ITEM, PyList_GET_ITEM(r->outside, i), i);
        r->initial[i] = item;
        if (!item)
            Py_CLEAR(twin);
        else if (exact)
            PyList_SET_ITEM(twin, i, item);
        else if (PyList_Append(twin, item) < 0)
            Py_CLEAR(twin);
        if (!exact)
            Py_XDECREF(item); // the arena has it
    }
    return finish(w, r, twin);
}

// --- tuples ---

static bool items_immutable(PyObject *tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (!value_immutable(PyTuple_GET_ITEM(tuple, i)))
            return false;
    return true;
}

static PyObject *lazy_items(world *w, record *r) {
    Py_ssize_t count = PyTuple_GET_SIZE(r->outside);
    PyObject *items = PyTuple_New(count);
    for (Py_ssize_t i = 0; items && i < count; i++) {
        PyObject *item = load_item(w, r, SOURCE_TUPLE_ITEM, PyTuple_GET_ITEM(r->outside, i), i);
        r->initial[i] = item;
        if (!item)
            Py_CLEAR(items);
        else
            PyTuple_SET_ITEM(items, i, item);
    }
    return items;
}

// time.struct_time and its like: only where all fields are also items.
static PyObject *new_structseq(world *w, PyTypeObject *type, PyObject *items) {
    PyObject *fields = PyDict_GetItemString(raw_type_dict(type), "n_fields");
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    if (!fields || !PyLong_Check(fields) || PyLong_AsSsize_t(fields) != count)
        return world_break(w, REASON_PROTOCOL, "%s, a tuple made in C", type->tp_name);
    PyObject *made = PyStructSequence_New(type);
    for (Py_ssize_t i = 0; made && i < count; i++)
        PyStructSequence_SetItem(made, i, Py_NewRef(PyTuple_GET_ITEM(items, i)));
    return made;
}

static PyObject *tuple_of_class(world *w, PyTypeObject *type, PyObject *items) {
    if (type == &PyTuple_Type)
        return Py_NewRef(items);
    return is_plain_class(type, &PyTuple_Type) ? new_instance(w, &PyTuple_Type, type, items)
                                               : new_structseq(w, type, items);
}

// torch.Size: C code made it, and only C code could make another.
static bool is_size(PyObject *o) {
    bool ints = !PyDict_GetItemString(raw_type_dict(Py_TYPE(o)), "n_fields");
    for (Py_ssize_t i = 0; ints && i < PyTuple_GET_SIZE(o); i++)
        ints = PyLong_CheckExact(PyTuple_GET_ITEM(o, i));
    return ints;
}

// Its items, each of which is left open or opened: a new tuple. *open: one is left open.
static PyObject *ints_of_size(world *w, record *r, bool *open) {
    Py_ssize_t count = PyTuple_GET_SIZE(r->outside);
    PyTypeObject *type = Py_TYPE(r->outside);
    PyObject *made = type->tp_alloc(type, count);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        source *at = guard_source(w->guards, SOURCE_TUPLE_ITEM, r->source, NULL, i);
        PyObject *item = at ? door_bring_number(w, at, PyTuple_GET_ITEM(r->outside, i)) : NULL;
        *open |= item && is_lazy(item);
        if (item)
            PyTuple_SET_ITEM(made, i, Py_NewRef(item));
        else
            Py_CLEAR(made);
    }
    return made;
}

static status open_size(world *w, record *r) {
    bool open = false;
    TRY(guard_length(w, r, PyTuple_GET_SIZE(r->outside)));
    PyObject *made = ints_of_size(w, r, &open);
    r->count = 0;
    if (made && !open)
        Py_SETREF(made, Py_NewRef(r->outside));
    return finish(w, r, made);
}

static status open_tuple(world *w, record *r) {
    PyTypeObject *type = Py_TYPE(r->outside);
    TRY(room_for_initial(w, r, PyTuple_GET_SIZE(r->outside)));
    bool plain = is_plain_class(type, &PyTuple_Type);
    if (!plain && is_size(r->outside))
        return open_size(w, r);
    if (!plain && items_immutable(r->outside)) {
        TRY(check_base_value(w, r->source, r->outside));
        r->count = 0;
        r->inside = r->outside;
        return ST_OK;
    }
    TRY(guard_length(w, r, PyTuple_GET_SIZE(r->outside)));
    PyObject *items = lazy_items(w, r);
    PyObject *twin = items ? tuple_of_class(w, type, items) : NULL;
    Py_XDECREF(items);
    return finish(w, r, twin);
}

// --- dicts ---

static status set_default_factory(world *w, record *r, PyObject *dict, PyObject *twin) {
    PyObject *raw = raw_field_get(RAW_DEFAULT_FACTORY, dict);
    source *s = guard_source(w->guards, SOURCE_DEFAULT_FACTORY, r->source, NULL, 0);
    PyObject *factory = s ? door_bring(w, s, raw ? raw : Py_None) : NULL;
    if (!factory)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    PyObject *member = PyDict_GetItemString(raw_type_dict(type_defaultdict), "default_factory");
    return member && Py_TYPE(member)->tp_descr_set(member, twin, factory) == 0 ? ST_OK : ST_ERROR;
}

PyObject *twin_empty_dict(world *w, record *r, PyObject *dict) {
    if (!dict || PyDict_CheckExact(dict))
        return PyDict_New();
    if (!r)
        return world_break(w, REASON_PROTOCOL, "an instance dict of type %s",
                           Py_TYPE(dict)->tp_name);
    bool defaults = PyObject_TypeCheck(dict, type_defaultdict);
    PyTypeObject *base = defaults              ? type_defaultdict
                         : PyODict_Check(dict) ? &PyODict_Type
                                               : &PyDict_Type;
    PyObject *twin = new_instance(w, base, Py_TYPE(dict), NULL);
    if (twin && defaults && set_default_factory(w, r, dict, twin) != ST_OK)
        Py_CLEAR(twin);
    return twin;
}

// An OrderedDict keeps its order beside the entries.
int twin_dict_set(PyObject *twin, PyObject *key, PyObject *value) {
    if (PyODict_Check(twin))
        return value ? PyODict_SetItem(twin, key, value) : PyODict_DelItem(twin, key);
    return value ? PyDict_SetItem(twin, key, value) : PyDict_DelItem(twin, key);
}

static status open_dict(world *w, record *r) {
    names *n = names_of_dict(w, r);
    PyObject *twin = n ? names_fill(w, n) : NULL;
    return finish(w, r, Py_XNewRef(twin));
}

// --- sets ---

static PyObject *items_of_set(PyObject *set) {
    PyObject *items = PyTuple_New(PySet_GET_SIZE(set)), *item;
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; items && raw_set_next(set, &at, &item); i++)
        PyTuple_SET_ITEM(items, i, Py_NewRef(item));
    return items;
}

// As they are guarded.
static PyObject *guarded_items(world *w, PyObject *items) {
    PyObject *guarded = world_keep(w, PyTuple_New(PyTuple_GET_SIZE(items)));
    for (Py_ssize_t i = 0; guarded && i < PyTuple_GET_SIZE(items); i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        PyTuple_SET_ITEM(guarded, i, Py_NewRef(key_is_any(item) ? guard_any : item));
    }
    return guarded;
}

// What stands for each element inside: immutables are themselves, the others pass the door.
static status open_elements(world *w, record *r, PyObject *items) {
    for (Py_ssize_t i = 0; i < r->count; i++) {
        source *s = guard_source(w->guards, SOURCE_SET_ITEM, r->source, NULL, i);
        r->initial[i] = s ? open_any_key(w, s, PyTuple_GET_ITEM(items, i)) : NULL;
        if (!r->initial[i])
            return w->stop.broken ? ST_BREAK : ST_ERROR;
    }
    return ST_OK;
}

// The twin gets the original's very table: what is done to it comes out in the order it would
// there.
static PyObject *new_set(world *w, record *r) {
    PyTypeObject *base = PyFrozenSet_Check(r->outside) ? &PyFrozenSet_Type : &PySet_Type;
    PyObject *twin = new_instance(w, base, Py_TYPE(r->outside), NULL);
    if (twin && py_set_lay_out(twin, r->layout, r->initial) < 0)
        Py_CLEAR(twin);
    return twin;
}

static status open_set_of(world *w, record *r, PyObject *items) {
    TRY(room_for_initial(w, r, PyTuple_GET_SIZE(items)));
    PyObject *guarded = guarded_items(w, items);
    if (!guarded)
        return ST_ERROR;
    TRY(door_keep_items(w, guarded));
    TRY(guard_add(w->guards, GUARD_SET_ITEMS, r->source, NULL, guarded, 0));
    TRY(open_elements(w, r, items));
    r->ordered = true;
    return finish(w, r, new_set(w, r));
}

static status open_set(world *w, record *r) {
    PyObject *items = world_keep(w, items_of_set(r->outside));
    r->layout = items ? world_keep(w, py_set_layout(r->outside)) : NULL;
    if (items && !r->layout)
        return ST_ERROR;
    if (items && world_has_tensor(items))
        return world_break_status(w, REASON_PROTOCOL, "a set of tensors");
    if (items && key_hashed_otherwise(items))
        return world_break_status(w, REASON_PROTOCOL, "a set of partials, or of methods");
    return items ? open_set_of(w, r, items) : ST_ERROR;
}

// --- deques ---

static int init_deque(PyObject *twin, PyObject *items, PyObject *maxlen) {
    PyObject *args = PyTuple_Pack(2, items, maxlen);
    int done = args ? type_deque->tp_init(twin, args, NULL) : -1;
    Py_XDECREF(args);
    return done;
}

static PyObject *deque_items(world *w, record *r) {
    PyObject *items = PyTuple_New(r->count);
    for (Py_ssize_t i = 0; items && i < r->count; i++) {
        PyObject *raw = raw_deque_item(r->outside, i);
        PyObject *item = raw ? load_item(w, r, SOURCE_DEQUE_ITEM, raw, i) : NULL;
        r->initial[i] = item;
        if (!item)
            Py_CLEAR(items);
        else
            PyTuple_SET_ITEM(items, i, item);
    }
    return items;
}

static status open_deque(world *w, record *r) {
    Py_ssize_t count = raw_length(r->outside);
    TRY(guard_length(w, r, count));
    TRY(check_maxlen(w, r->source, r->outside));
    TRY(room_for_initial(w, r, count));
    PyObject *maxlen = deque_maxlen(r->outside);
    PyObject *items = maxlen ? deque_items(w, r) : NULL;
    PyObject *twin = items ? new_instance(w, type_deque, Py_TYPE(r->outside), NULL) : NULL;
    if (twin && init_deque(twin, items, maxlen) < 0)
        Py_CLEAR(twin);
    Py_XDECREF(items);
    Py_XDECREF(maxlen);
    return finish(w, r, twin);
}

// --- bytearrays ---

static status open_bytearray(world *w, record *r) {
    if (((PyByteArrayObject *)r->outside)->ob_exports > 0)
        return world_break_status(w, REASON_PROTOCOL, "a bytearray whose buffer someone has");
    TRY(check_not_exported(w, r->source));
    Py_ssize_t size = PyByteArray_GET_SIZE(r->outside);
    PyObject *content = PyBytes_FromStringAndSize(PyByteArray_AS_STRING(r->outside), size);
    if (!content)
        return ST_ERROR;
    status guarded = guard_add(w->guards, GUARD_BYTES, r->source, NULL, content, 0);
    Py_DECREF(content);
    TRY(guarded);
    PyObject *twin = new_instance(w, &PyByteArray_Type, Py_TYPE(r->outside), NULL);
    if (twin && PyByteArray_Resize(twin, size) < 0)
        Py_CLEAR(twin);
    if (twin)
        memcpy(PyByteArray_AS_STRING(twin), PyByteArray_AS_STRING(r->outside), (size_t)size);
    if (twin && world_born(w, twin) != ST_OK)
        Py_CLEAR(twin);
    return finish(w, r, twin);
}

// --- iterators ---

static const py_iterator_form *form_of(PyObject *o) {
    const py_iterator_form *form = py_iterator_form_of(o);
    if (!form)
        PyErr_Clear(); // without memory none is known
    return form && py_iterator_is_simple(form) ? form : NULL;
}

// Whether only the frame that goes on holds an iterator, and the instruction that asks for its items
// is in no loop: then every call comes here with an iterator that is as far. In a loop each round
// would be an entry of its own.
static bool is_as_far_each_time(const world *w, PyObject *o) {
    const run *r = map_get(&w->roots.dying, map_key(o)) ? w->run : NULL;
    while (r && r->below)
        r = r->below;
    const insn *pc = r ? code_at(r->code, py_frame_lasti(r->frame)) : NULL;
    return pc && !code_in_loop(r->code, pc);
}

bool twin_of_iterator_wanted(const world *w, PyObject *o) {
    const py_iterator_form *form = form_of(o);
    if (!form || !(w->terms.whole || is_as_far_each_time(w, o)))
        return false;
    for (int i = 0; i < py_iterator_fields(form); i++) {
        PyObject *field = py_iterator_field(form, o, i);
        if (field && PyIter_Check(field) && !twin_of_iterator_wanted(w, field))
            return false;
    }
    return true;
}

static status open_fields(world *w, record *r, const py_iterator_form *form) {
    for (int i = 0; i < r->count; i++) {
        PyObject *field = py_iterator_field(form, r->outside, i);
        source *s =
            field ? guard_source(w->guards, SOURCE_ITERATOR_FIELD, r->source, NULL, i) : NULL;
        r->initial[i] = s ? door_bring(w, s, field) : NULL;
        if (field && !r->initial[i])
            return w->stop.broken ? ST_BREAK : ST_ERROR;
        if (field && r->initial[i] == field && PyIter_Check(field)) // native code would move it
            return world_break_status(w, REASON_OUTSIDE_ITERATOR, "%s", Py_TYPE(field)->tp_name);
    }
    return ST_OK;
}

static status open_iterator(world *w, record *r) {
    const py_iterator_form *form = form_of(r->outside);
    r->layout = world_keep(w, py_iterator_numbers(form, r->outside));
    if (!r->layout)
        return ST_ERROR;
    TRY(check_iterator(w, r->source, r->outside));
    TRY(room_for_initial(w, r, py_iterator_fields(form)));
    TRY(open_fields(w, r, form));
    PyObject *twin = py_iterator_new(Py_TYPE(r->outside));
    if (twin && py_iterator_fill(twin, r->initial, r->layout) < 0)
        Py_CLEAR(twin);
    return finish(w, r, twin);
}

bool twin_of_iterator_written(const record *r) {
    const py_iterator_form *form = form_of(r->inside);
    PyObject *numbers = form ? py_iterator_numbers(form, r->inside) : NULL;
    bool written = !numbers || PyBytes_GET_SIZE(numbers) != PyBytes_GET_SIZE(r->layout) ||
                   memcmp(PyBytes_AS_STRING(numbers), PyBytes_AS_STRING(r->layout),
                          (size_t)PyBytes_GET_SIZE(numbers)) != 0;
    for (int i = 0; !written && i < r->count; i++)
        written = py_iterator_field(form, r->inside, i) != r->initial[i];
    Py_XDECREF(numbers);
    PyErr_Clear(); // without memory it counts as written
    return written;
}

// --- views ---

static bool is_ordered_view(PyTypeObject *type) {
    return type == &PyODictKeys_Type || type == &PyODictItems_Type || type == &PyODictValues_Type;
}

// dict.keys(an OrderedDict): in the order that dict knows, which the twin does not share.
static bool shows_other_order(PyTypeObject *type, PyObject *mapping) {
    return PyODict_Check(mapping) && !is_ordered_view(type) && type != &PyDictProxy_Type;
}

static PyObject *new_view(PyTypeObject *type, PyObject *mapping) {
    if (type == &PyDictProxy_Type)
        return PyDictProxy_New(mapping);
    const char *method = PyType_IsSubtype(type, &PyDictKeys_Type)    ? "keys"
                         : PyType_IsSubtype(type, &PyDictItems_Type) ? "items"
                                                                     : "values";
    PyObject *owner = (PyObject *)(is_ordered_view(type) ? &PyODict_Type : &PyDict_Type);
    return PyObject_CallMethod(owner, method, "(O)", mapping);
}

static status open_view(world *w, record *r) {
    source *s = guard_source(w->guards, SOURCE_VIEW_DICT, r->source, NULL, 0);
    PyObject *mapping = s ? door_bring(w, s, raw_view_mapping(r->outside)) : NULL;
    if (!mapping)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    if (!PyDict_Check(mapping) || shows_other_order(Py_TYPE(r->outside), mapping))
        return world_break_status(w, REASON_PROTOCOL, "a view of a %s", Py_TYPE(mapping)->tp_name);
    return finish(w, r, new_view(Py_TYPE(r->outside), mapping));
}

// --- all of them ---

status twin_open(world *w, record *r) {
    TRY(door_guard_type(w, r->source, r->outside));
    switch (r->kind) {
    case RECORD_LIST:
        return open_list(w, r);
    case RECORD_TUPLE:
        return open_tuple(w, r);
    case RECORD_DICT:
        return open_dict(w, r);
    case RECORD_SET:
        return open_set(w, r);
    case RECORD_DEQUE:
        return open_deque(w, r);
    case RECORD_BYTEARRAY:
        return open_bytearray(w, r);
    case RECORD_ITERATOR:
        return open_iterator(w, r);
    default:
        return open_view(w, r);
    }
}
