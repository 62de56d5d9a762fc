// Turns an inside object into the steps that make it again: containers and instances, and which
// function does other types. Each object is made once; an object that can be part of a cycle is
// made empty and filled later.
#include "src/py/entries.h"
#include "src/py/sets.h"

#include "src/world/losses.h"
#include "src/world/number.h"

#include "src/call/feed.h"
#include "src/call/rules.h"

#include "src/plan/build.h"

// An exact list or dict that is being gathered: made in one step, unless something in it asks for
// it.
static const uint64_t BUSY = UINT64_MAX - 1;
enum { DEEP = 200 }; // nesting that the C stack is used for

status rebuild_refuse(builder *b, PyObject *o) {
    return rebuild_refuse_for(b, o, REASON_REBUILD);
}

// Broken off before it was made, a trace need not make it again.
static void break_before(builder *b, PyObject *o) {
    const uint64_t *born = map_get(&b->w->time.born, map_key(o));
    if (born)
        b->w->time.again = *born;
}

status rebuild_refuse_for(builder *b, PyObject *o, reason why) {
    break_before(b, o);
    PyTypeObject *shown = PyType_Check(o) ? (PyTypeObject *)o : Py_TYPE(o);
    return world_break_status(b->w, why, "%s", shown->tp_name);
}

static status remember(builder *b, PyObject *o, operand made) {
    return map_put(&b->objects, map_key(o), (uint64_t)(uint32_t)made);
}

static bool is_made(builder *b, PyObject *o, operand *out) {
    uint64_t *known = map_get(&b->objects, map_key(o));
    if (!known || *known == BUSY)
        return false;
    *out = (operand)(uint32_t)*known;
    return true;
}

// A step that makes `o`. If `o` is part of a cycle, its parts may have asked for it and made it.
status rebuild_make(builder *b, PyObject *o, step s, const operands *more, PyObject *object,
                    operand *out) {
    if (is_made(b, o, out))
        return ST_OK;
    s.out = *out = build_register(b);
    TRY(build_step(b, &b->making, s, more, object));
    return remember(b, o, *out);
}

status rebuild_each(builder *b, PyObject *const *items, Py_ssize_t count, operands *to) {
    for (Py_ssize_t i = 0; i < count; i++) {
        operand item;
        TRY(rebuild(b, items[i], &item));
        TRY(vec_push(to, item));
    }
    return ST_OK;
}

// --- keys ---

// torch.Size: hashed and compared as any tuple, of values.
static bool is_tuple_key(PyObject *key) {
    return PyTuple_Check(key) && Py_TYPE(key)->tp_hash == PyTuple_Type.tp_hash &&
           Py_TYPE(key)->tp_richcompare == PyTuple_Type.tp_richcompare && constant_is(key);
}

hashing rebuild_hashing(builder *b, PyObject *key) {
    record *r = record_of(b->w, key);
    if (raw_key_simple(key) || is_tuple_key(key) || is_standin(key) ||
        (r && r->kind == RECORD_TENSOR))
        return HASH_AGAIN;
    return r ? HASH_KNOWN : HASH_NEVER;
}

// Two keys of one hash are compared, and only the trace could run what compares them.
static status lone_hash(builder *b, map *hashes, Py_hash_t hash, PyObject *key) {
    if (map_get(hashes, (uint64_t)hash))
        return rebuild_refuse(b, key);
    return map_put(hashes, (uint64_t)hash, 1);
}

static status check_hashes(builder *b, PyObject *dict) {
    map hashes = {0};
    Py_ssize_t at = 0;
    PyObject *key, *value;
    Py_hash_t hash;
    status done = ST_OK;
    while (done == ST_OK && py_dict_next(dict, &at, &key, &value, &hash))
        done = lone_hash(b, &hashes, hash, key);
    map_clear(&hashes);
    return done;
}

// -1, which is no hash: the key is hashed again, since its address may be another one by then.
static status put_hashed(builder *b, operand dict, PyObject *key, PyObject *value, Py_hash_t hash) {
    step s = step_of(STEP_DICT_PUT, -1, dict, OPERAND_NONE);
    TRY(rebuild(b, key, &s.b));
    TRY(rebuild(b, value, &s.c));
    s.index = rebuild_hashing(b, key) == HASH_AGAIN ? -1 : hash;
    return build_step(b, &b->making, s, NULL, NULL);
}

// --- sets ---

// One object that is hashed by its address lies alone in a table where its address says.
static bool lies_alone(builder *b, PyObject *set, PyObject *key) {
    record *r = record_of(b->w, key);
    return r && r->hashed && !r->identity && PySet_GET_SIZE(set) == 1 && py_set_is_fresh(set);
}

// Elements one by one into `to`. *lasting: they hash alike in every call, so that the inside set's
// own table can be made again.
static status elements(builder *b, PyObject *set, operands *to, bool *lasting) {
    Py_ssize_t at = 0;
    PyObject *key;
    Py_hash_t hash;
    bool known = false;
    *lasting = true;
    if (!py_set_is_fresh(set) || PySet_GET_SIZE(set) > 1)
        TRY(world_pin_hashed(b->w));
    while (_PySet_NextEntry(set, &at, &key, &hash)) {
        hashing how = rebuild_hashing(b, key);
        operand item;
        if (how == HASH_NEVER)
            return rebuild_refuse(b, key);
        known |= how == HASH_KNOWN;
        if (lies_alone(b, set, key))
            *lasting = false;
        else
            TRY(rebuild_lasting(b, key, lasting));
        TRY(rebuild(b, key, &item));
        TRY(vec_push(to, item));
    }
    return known && !*lasting ? rebuild_refuse(b, set) : ST_OK;
}

status rebuild_lasting(builder *b, PyObject *key, bool *lasting) {
    record *r = record_of(b->w, key);
    if (!r)
        *lasting &= constant_is(key) && !value_has_nan(key);
    else if (r->kind == RECORD_TENSOR)
        *lasting = false;
    else
        return record_identity(b->w, r); // hashed by its address, or by what is guarded
    return ST_OK;
}

status rebuild_set_order(builder *b, PyObject *set) {
    Py_ssize_t at = 0;
    PyObject *key;
    bool lasting = true;
    if (record_of(b->w, set))
        return ST_OK;
    while (lasting && raw_set_next(set, &at, &key))
        TRY(rebuild_lasting(b, key, &lasting));
    return lasting ? ST_OK : rebuild_refuse(b, set);
}

static status table_step(builder *b, PyObject *set, operand to, const operands *items) {
    PyObject *layout = py_set_layout(set);
    step s = step_of(STEP_SET_TABLE, -1, to, OPERAND_NONE);
    status done = layout ? build_step(b, &b->making, s, items, layout) : ST_ERROR;
    Py_XDECREF(layout);
    return done;
}

// Where elements are hashed by addresses that are new in each call, no order can be kept, and plain
// Python has none either.
static status fill_set(builder *b, PyObject *o, operand to) {
    operands items = {0};
    bool lasting;
    status done = elements(b, o, &items, &lasting);
    if (done == ST_OK && lasting)
        done = table_step(b, o, to, &items);
    else if (done == ST_OK)
        done =
            build_step(b, &b->making, step_of(STEP_SET_FILL, -1, to, OPERAND_NONE), &items, NULL);
    vec_free(&items);
    return done;
}

// --- the other containers ---

static status fill_sequence(builder *b, step_kind kind, PyObject *list, operand to) {
    operands items = {0};
    status done =
        rebuild_each(b, PySequence_Fast_ITEMS(list), PySequence_Fast_GET_SIZE(list), &items);
    if (done == ST_OK && items.count > 0)
        done = build_step(b, &b->making, step_of(kind, -1, to, OPERAND_NONE), &items, NULL);
    vec_free(&items);
    return done;
}

static status fill_list(builder *b, PyObject *o, operand to) {
    return fill_sequence(b, STEP_LIST_FILL, o, to);
}

// Keys and values in pairs; ST_OK with *known if some key must keep its hash.
static status pairs(builder *b, PyObject *dict, operands *to, bool *known) {
    Py_ssize_t at = 0;
    PyObject *key, *value;
    *known = false;
    while (PyDict_Next(dict, &at, &key, &value)) {
        hashing how = rebuild_hashing(b, key);
        PyObject *pair[] = {key, value};
        if (how == HASH_NEVER)
            return rebuild_refuse(b, key);
        *known |= how == HASH_KNOWN;
        TRY(rebuild_each(b, pair, 2, to));
    }
    return ST_OK;
}

static status put_all_hashed(builder *b, PyObject *dict, operand to) {
    Py_ssize_t at = 0;
    PyObject *key, *value;
    Py_hash_t hash;
    TRY(check_hashes(b, dict));
    while (py_dict_next(dict, &at, &key, &value, &hash))
        TRY(put_hashed(b, to, key, value, hash));
    return ST_OK;
}

static status fill_dict(builder *b, PyObject *o, operand to) {
    operands items = {0};
    bool known;
    status done = pairs(b, o, &items, &known);
    if (done == ST_OK && known)
        done = put_all_hashed(b, o, to);
    else if (done == ST_OK && items.count > 0)
        done =
            build_step(b, &b->making, step_of(STEP_DICT_FILL, -1, to, OPERAND_NONE), &items, NULL);
    vec_free(&items);
    return done;
}

static status fill_defaultdict(builder *b, PyObject *o, operand to) {
    PyObject *factory = raw_field_get(RAW_DEFAULT_FACTORY, o);
    step s = step_of(STEP_FACTORY, -1, to, OPERAND_NONE);
    if (factory && factory != Py_None) {
        TRY(rebuild(b, factory, &s.b));
        TRY(build_step(b, &b->making, s, NULL, NULL));
    }
    return fill_dict(b, o, to);
}

// In the order of its own links, which is not that of the dict below.
static status ordered_pairs(builder *b, PyObject *o, operands *to) {
    raw_cursor at = {0};
    PyObject *pair[2];
    while (raw_dict_next(o, &at, &pair[0], &pair[1])) {
        if (rebuild_hashing(b, pair[0]) != HASH_AGAIN)
            return rebuild_refuse(b, pair[0]);
        TRY(rebuild_each(b, pair, 2, to));
    }
    return ST_OK;
}

static status fill_ordered(builder *b, PyObject *o, operand to) {
    operands items = {0};
    status done = ordered_pairs(b, o, &items);
    if (done == ST_OK && items.count > 0)
        done = build_step(b, &b->making, step_of(STEP_ORDERED_FILL, -1, to, OPERAND_NONE), &items,
                          NULL);
    vec_free(&items);
    return done;
}

static status deque_length(builder *b, PyObject *o, operand to) {
    PyObject *d = plan_type.maxlen;
    PyObject *length = Py_TYPE(d)->tp_descr_get(d, o, (PyObject *)plan_type.deque);
    if (!length)
        return ST_ERROR;
    step s = step_of(STEP_DEQUE_LENGTH, -1, to, OPERAND_NONE);
    bool bounded = length != Py_None;
    if (bounded)
        s.index = PyLong_AsSsize_t(length);
    Py_DECREF(length);
    return bounded ? build_step(b, &b->making, s, NULL, NULL) : ST_OK;
}

static status fill_deque(builder *b, PyObject *o, operand to) {
    TRY(deque_length(b, o, to));
    PyObject *iterator = plan_type.deque->tp_iter(o);
    PyObject *list = iterator ? PySequence_List(iterator) : NULL;
    Py_XDECREF(iterator);
    status done = list ? fill_sequence(b, STEP_DEQUE_FILL, list, to) : ST_ERROR;
    Py_XDECREF(list);
    return done;
}

static status fill_bytearray(builder *b, PyObject *o, operand to) {
    PyObject *content =
        PyBytes_FromStringAndSize(PyByteArray_AS_STRING(o), PyByteArray_GET_SIZE(o));
    step s = step_of(STEP_BYTES_FILL, -1, to, OPERAND_NONE);
    status done = content ? build_step(b, &b->making, s, NULL, content) : ST_ERROR;
    Py_XDECREF(content);
    return done;
}

// --- what instances of classes have besides ---

static status attr_value(builder *b, PyObject *o, PyObject *name, operands *to) {
    PyObject *value;
    operand item;
    if (raw_attr_get(o, name, &value) != RAW_FOUND)
        return rebuild_refuse(b, o);
    TRY(rebuild(b, value, &item));
    return vec_push(to, item);
}

static status fill_names(builder *b, PyObject *o, PyObject *names, operand to) {
    operands items = {0};
    status done = ST_OK;
    for (Py_ssize_t i = 0; done == ST_OK && i < PyTuple_GET_SIZE(names); i++)
        done = attr_value(b, o, PyTuple_GET_ITEM(names, i), &items);
    if (done == ST_OK && items.count > 0)
        done = build_step(b, &b->making, step_of(STEP_ATTRS_FILL, -1, to, OPERAND_NONE), &items,
                          names);
    vec_free(&items);
    return done;
}

static bool all_str(PyObject *names) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(names, i)))
            return false;
    }
    return true;
}

// Whether the instance dict is known to others than its instance, or is no plain one.
static bool dict_is_shared(builder *b, PyObject *dict) {
    return !PyDict_CheckExact(dict) || Py_REFCNT(dict) > 1 || record_of(b->w, dict) ||
           map_get(&b->objects, map_key(dict));
}

status rebuild_instance_dict(builder *b, PyObject *o, operand to) {
    if (!raw_has_dict(Py_TYPE(o)))
        return ST_OK;
    PyObject *dict = raw_dict(o), *list = raw_attr_names(o);
    PyObject *names = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    if (!names)
        return ST_ERROR;
    status done;
    if (dict && (dict_is_shared(b, dict) || !all_str(names))) {
        step s = step_of(STEP_DICT_IS, -1, to, OPERAND_NONE);
        done = rebuild(b, dict, &s.b);
        if (done == ST_OK)
            done = build_step(b, &b->making, s, NULL, NULL);
    } else {
        done = fill_names(b, o, names, to);
    }
    Py_DECREF(names);
    return done;
}

static status fill_slot(builder *b, PyObject *o, const PyMemberDef *slot, operand to) {
    PyObject *value = *(PyObject **)((char *)o + slot->offset);
    step s = step_of(STEP_SLOT_FILL, -1, to, OPERAND_NONE);
    if (!value)
        return ST_OK;
    TRY(rebuild(b, value, &s.b));
    s.index = slot->offset;
    return build_step(b, &b->making, s, NULL, NULL);
}

static status fill_slots(builder *b, PyObject *o, PyTypeObject *base, operand to) {
    for (PyTypeObject *t = Py_TYPE(o); t != base; t = t->tp_base) {
        for (const PyMemberDef *m = t->tp_members; m && m->name; m++)
            TRY(fill_slot(b, o, m, to));
    }
    return ST_OK;
}

// --- classes and how their instances are made ---

static Py_ssize_t slots_of(const PyTypeObject *type) {
    Py_ssize_t count = 0;
    for (const PyMemberDef *m = type->tp_members; m && m->name; m++)
        count += m->type == T_OBJECT_EX ? 1 : -1024; // no class statement makes others
    return count;
}

// What a class statement adds to the size: slots, and the pointers to a dict and to weak references
// where they do not lie in front of the object.
static bool adds_only_slots(const PyTypeObject *type) {
    const PyTypeObject *base = type->tp_base;
    Py_ssize_t count = slots_of(type);
    count += type->tp_dictoffset > 0 && base->tp_dictoffset == 0;
    count += type->tp_weaklistoffset > 0 && base->tp_weaklistoffset == 0;
    return type->tp_basicsize == base->tp_basicsize + count * (Py_ssize_t)sizeof(PyObject *) ||
           type->tp_itemsize != 0; // variable size: such have no slots, and the rest lies behind
}

// Classes that Python code makes let go of their instances by CPython's one function for that; one
// such class is at hand.
static bool is_statement_class(PyTypeObject *type) {
    return type->tp_dealloc == ((PyTypeObject *)world_break_error)->tp_dealloc;
}

PyTypeObject *rebuild_base(PyTypeObject *type) {
    for (; raw_is_python_class(type); type = type->tp_base) {
        if (!is_statement_class(type) || !adds_only_slots(type))
            return NULL;
    }
    return type;
}

typedef status (*filler)(builder *b, PyObject *o, operand to);

static status fill_nothing(builder *b, PyObject *o, operand to) {
    (void)b, (void)o, (void)to;
    return ST_OK;
}

// Of the C types whose instances can be made empty; NULL for others.
static filler filler_of(const PyTypeObject *base) {
    const struct {
        const PyTypeObject *base;
        filler fill;
    } rows[] = {
        {&PyBaseObject_Type, fill_nothing},  {&PyList_Type, fill_list},
        {&PyDict_Type, fill_dict},           {&PySet_Type, fill_set},
        {&PyODict_Type, fill_ordered},       {&PyByteArray_Type, fill_bytearray},
        {plan_type.deque, fill_deque},       {plan_type.defaultdict, fill_defaultdict},
        {plan_type.namespace, fill_nothing},
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(rows); i++) {
        if (rows[i].base == base)
            return rows[i].fill;
    }
    return NULL;
}

static status make_empty(builder *b, PyObject *o, operand *out) {
    if (PyGen_CheckExact(o))
        return rebuild_empty_generator(b, o, out);
    if (rebuild_is_iterator(o))
        return rebuild_empty_iterator(b, o, out);
    PyTypeObject *base = rebuild_base(Py_TYPE(o));
    step s = step_of(STEP_INSTANCE, -1, OPERAND_NONE, OPERAND_NONE);
    TRY(rebuild(b, (PyObject *)Py_TYPE(o), &s.a));
    return rebuild_make(b, o, s, NULL, (PyObject *)base, out);
}

static status fill(builder *b, PyObject *o, operand to) {
    if (PyGen_CheckExact(o))
        return rebuild_fill_generator(b, o, to);
    if (rebuild_is_iterator(o))
        return rebuild_fill_iterator(b, o, to);
    PyTypeObject *base = rebuild_base(Py_TYPE(o));
    TRY(filler_of(base)(b, o, to));
    TRY(fill_slots(b, o, base, to));
    return rebuild_instance_dict(b, o, to);
}

static status make_and_fill(builder *b, PyObject *o, operand *out) {
    TRY(make_empty(b, o, out));
    return b->depth > DEEP ? vec_push(&b->queue, o) : fill(b, o, *out);
}

status rebuild_rest(builder *b) {
    while (b->queue.count > 0) {
        PyObject *o = b->queue.items[--b->queue.count];
        TRY(fill(b, o, (operand)*map_get(&b->objects, map_key(o))));
    }
    return ST_OK;
}

// --- lists and dicts in one step ---

static status gather(builder *b, PyObject *o, operands *items, bool *known) {
    *known = false;
    return PyList_CheckExact(o)
               ? rebuild_each(b, PySequence_Fast_ITEMS(o), PyList_GET_SIZE(o), items)
               : pairs(b, o, items, known);
}

static status finish_plain(builder *b, PyObject *o, const operands *items, bool known,
                           operand *out) {
    bool list = PyList_CheckExact(o);
    uint64_t made = *map_get(&b->objects, map_key(o));
    if (made == BUSY && !known)
        return rebuild_make(b, o,
                            step_of(list ? STEP_LIST : STEP_DICT, -1, OPERAND_NONE, OPERAND_NONE),
                            items, NULL, out);
    *out = (operand)(uint32_t)made;
    if (made == BUSY)
        TRY(make_empty(b, o, out));
    if (known)
        return put_all_hashed(b, o, *out);
    return build_step(b, &b->making,
                      step_of(list ? STEP_LIST_FILL : STEP_DICT_FILL, -1, *out, OPERAND_NONE),
                      items, NULL);
}

static status rebuild_plain(builder *b, PyObject *o, operand *out) {
    if (b->depth > DEEP)
        return make_and_fill(b, o, out);
    operands items = {0};
    bool known;
    status done = map_put(&b->objects, map_key(o), BUSY);
    if (done == ST_OK)
        done = gather(b, o, &items, &known);
    if (done == ST_OK)
        done = finish_plain(b, o, &items, known, out);
    vec_free(&items);
    return done;
}

// --- frozensets ---

static status tuple_step(builder *b, const operands *items, operand *out) {
    *out = build_register(b);
    return build_step(b, &b->making, step_of(STEP_TUPLE, *out, OPERAND_NONE, OPERAND_NONE), items,
                      NULL);
}

// Made whole before anything can hash it: by its table, or by a call.
static status rebuild_frozenset(builder *b, PyObject *o, operand *out) {
    operands items = {0};
    bool lasting;
    step s = step_of(STEP_VALUE, -1, OPERAND_NONE, OPERAND_NONE);
    status done = elements(b, o, &items, &lasting);
    if (done == ST_OK)
        done = rebuild(b, (PyObject *)Py_TYPE(o), &s.a);
    if (done == ST_OK && lasting)
        s.kind = STEP_INSTANCE;
    else if (done == ST_OK)
        done = tuple_step(b, &items, &s.b);
    if (done == ST_OK)
        done = rebuild_make(b, o, s, NULL, (PyObject *)&PyFrozenSet_Type, out);
    if (done == ST_OK && lasting)
        done = table_step(b, o, *out, &items);
    vec_free(&items);
    TRY(done);
    TRY(fill_slots(b, o, &PyFrozenSet_Type, *out));
    return rebuild_instance_dict(b, o, *out);
}

// --- values that are never empty ---

status rebuild_tuple(builder *b, PyObject *const *items, Py_ssize_t count, operand *out) {
    operands parts = {0};
    status done = rebuild_each(b, items, count, &parts);
    if (done == ST_OK)
        done = tuple_step(b, &parts, out);
    vec_free(&parts);
    return done;
}

static status rebuild_exact_tuple(builder *b, PyObject *o, operand *out) {
    operands parts = {0};
    status done = rebuild_each(b, PySequence_Fast_ITEMS(o), PyTuple_GET_SIZE(o), &parts);
    if (done == ST_OK)
        done = rebuild_make(b, o, step_of(STEP_TUPLE, -1, OPERAND_NONE, OPERAND_NONE), &parts, NULL,
                            out);
    vec_free(&parts);
    return done;
}

// The plain value below an instance of a subclass; new reference.
static PyObject *plain_value(PyObject *o) {
    if (PyLong_Check(o))
        return PyLong_Type.tp_as_number->nb_int(o);
    if (PyFloat_Check(o))
        return PyFloat_FromDouble(PyFloat_AS_DOUBLE(o));
    if (PyComplex_Check(o))
        return PyComplex_FromCComplex(((PyComplexObject *)o)->cval);
    if (PyUnicode_Check(o))
        return PyUnicode_FromObject(o);
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(o), PyBytes_GET_SIZE(o));
}

static status value_constant(builder *b, PyObject *o, operand *out) {
    PyObject *value = plain_value(o);
    status done = value ? build_constant(b, value, out) : ST_ERROR;
    Py_XDECREF(value);
    return done;
}

static status rebuild_value(builder *b, PyObject *o, PyTypeObject *base, operand *out) {
    step s = step_of(STEP_VALUE, -1, OPERAND_NONE, OPERAND_NONE);
    TRY(rebuild(b, (PyObject *)Py_TYPE(o), &s.a));
    if (PyTuple_Check(o))
        TRY(rebuild_tuple(b, PySequence_Fast_ITEMS(o), PyTuple_GET_SIZE(o), &s.b));
    else
        TRY(value_constant(b, o, &s.b));
    TRY(rebuild_make(b, o, s, NULL, (PyObject *)base, out));
    if (Py_TYPE(o) == base)
        return ST_OK;
    TRY(fill_slots(b, o, base, *out));
    return rebuild_instance_dict(b, o, *out);
}

// A tuple with names that C code made: only where all fields are also items.
static bool is_struct_sequence(PyObject *o) {
    PyObject *fields = NULL;
    if (!PyTuple_Check(o) || PyTuple_CheckExact(o))
        return false;
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("n_fields"))) {
        PyErr_Clear();
        return false;
    }
    return raw_dict_get(raw_type_dict(Py_TYPE(o)), name, &fields) == RAW_FOUND &&
           PyLong_CheckExact(fields) && PyLong_AsSsize_t(fields) == PyTuple_GET_SIZE(o) &&
           !is_statement_class(Py_TYPE(o)) && Py_TYPE(o)->tp_base == &PyTuple_Type;
}

// torch.Size with numbers that are kept open; of plain ones it is a constant.
static bool is_size(PyObject *o) {
    return PyTuple_Check(o) && strcmp(Py_TYPE(o)->tp_name, "torch.Size") == 0;
}

static bool is_value_base(const PyTypeObject *base) {
    return base == &PyTuple_Type || base == &PyLong_Type || base == &PyFloat_Type ||
           base == &PyUnicode_Type || base == &PyBytes_Type || base == &PyComplex_Type;
}

// --- the whole ---

static maker maker_of(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    if (t == &PyList_Type || t == &PyDict_Type)
        return rebuild_plain;
    if (t == &PyTuple_Type)
        return rebuild_exact_tuple;
    if (PyExceptionInstance_Check(o))
        return rebuild_exception;
    return t == &PyGen_Type || rebuild_is_iterator(o) ? make_and_fill : rebuild_maker_of(o);
}

// What depends on more than its parts.
static status check_kind(builder *b, PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    if (PyCoro_CheckExact(o) || PyAsyncGen_CheckExact(o))
        return world_break_status(b->w, REASON_GENERATOR, "gives out a %s", t->tp_name);
    if (raw_is_python_class(t) && (t->tp_finalize || t->tp_del))
        return rebuild_refuse_for(b, o, REASON_FINALIZER);
    if (t == &PyGen_Type ? rebuild_weakly_known(o) : losses_watched(o)) {
        break_before(b, o);
        return world_break_status(b->w, REASON_REBUILD, "%s with a weak reference to it",
                                  t->tp_name);
    }
    return ST_OK;
}

static status rebuild_by_base(builder *b, PyObject *o, operand *out) {
    bool own = is_struct_sequence(o) || is_size(o);
    PyTypeObject *base = own ? Py_TYPE(o) : rebuild_base(Py_TYPE(o));
    if (base == &PyFrozenSet_Type)
        return rebuild_frozenset(b, o, out);
    if (base && (is_value_base(base) || own))
        return rebuild_value(b, o, base, out);
    if (base && filler_of(base))
        return make_and_fill(b, o, out);
    return rebuild_refuse(b, o);
}

static status rebuild_inside(builder *b, PyObject *o, operand *out) {
    TRY(check_kind(b, o));
    maker how = maker_of(o);
    if (b->depth > 4 * DEEP)
        return rebuild_refuse(b, o);
    b->depth++;
    status done = how ? how(b, o, out) : rebuild_by_base(b, o, out);
    b->depth--;
    return done;
}

static status rebuild_constant(builder *b, PyObject *o, operand *out) {
    TRY(build_constant(b, o, out));
    return remember(b, o, *out);
}

static status fill_tensor(builder *b, PyObject *attrs, operand to) {
    operands items = {0};
    PyObject *names = PySequence_Tuple(attrs), *values = names ? PyDict_Values(attrs) : NULL;
    status done =
        values ? rebuild_each(b, PySequence_Fast_ITEMS(values), PyList_GET_SIZE(values), &items)
               : ST_ERROR;
    if (done == ST_OK)
        done = build_step(b, &b->making, step_of(STEP_ATTRS_FILL, -1, to, OPERAND_NONE), &items,
                          names);
    Py_XDECREF(names);
    Py_XDECREF(values);
    vec_free(&items);
    return done;
}

// Each stand-in with a class of its own is an object of its own.
static status put_class_on(builder *b, PyObject *o, PyObject *dresser, PyTypeObject *class,
                           operand *out) {
    step s = step_of(STEP_CALL, -1, OPERAND_NONE, OPERAND_NONE);
    operands args = {0};
    operand type;
    TRY(build_constant(b, dresser, &s.a));
    TRY(rebuild(b, (PyObject *)class, &type));
    status done = vec_push(&args, *out);
    if (done == ST_OK)
        done = vec_push(&args, type);
    if (done == ST_OK)
        done = rebuild_make(b, o, s, &args, NULL, out);
    vec_free(&args);
    return done;
}

static status rebuild_standin(builder *b, const standin_kind *kind, PyObject *o, operand *out) {
    PyObject *attrs = kind->attrs_of(o);
    PyTypeObject *class;
    PyObject *dresser = kind->dresser_of(o, &class);
    TRY(build_output(b, kind->node_of(o), out));
    if (dresser)
        TRY(put_class_on(b, o, dresser, class, out));
    if (!attrs || PyDict_GET_SIZE(attrs) == 0)
        return ST_OK;
    TRY(remember(b, o, *out)); // they may lead back to it
    return fill_tensor(b, attrs, *out);
}

// A number that was computed twice is two objects, unless it is small; a source gives one.
static status rebuild_computed(builder *b, PyObject *o, operand *out) {
    source *s = ((lazy *)o)->source;
    uint64_t *known = map_get(&b->objects, map_key(o));
    if (known) {
        *out = (operand)(uint32_t)*known;
        return ST_OK;
    }
    bool again = map_get(&b->sources, map_key(s)) != NULL;
    TRY(build_load(b, s, out));
    if (again)
        TRY(rebuild_make(b, o, step_of(STEP_NUMBER_COPY, -1, *out, OPERAND_NONE), NULL, NULL, out));
    return remember(b, o, *out);
}

// The graph gives it. What is computed twice is two objects here, too.
static status rebuild_unbacked(builder *b, PyObject *o, operand *out) {
    number n = number_current(b->w->numbers.sizes, ((lazy *)o)->number);
    if (is_made(b, o, out))
        return ST_OK;
    if (!n.e) {
        PyObject *value = number_as_object(n);
        status done = value ? build_constant(b, value, out) : ST_ERROR;
        Py_XDECREF(value);
        return done;
    }
    node *made = world_tensors->number(b->w, n);
    if (!made)
        return b->w->stop.broken ? ST_BREAK : ST_ERROR;
    bool again = map_get(&b->nodes, map_key(made)) != NULL;
    TRY(build_output(b, made, out));
    if (again)
        return rebuild_make(b, o, step_of(STEP_NUMBER_COPY, -1, *out, OPERAND_NONE), NULL, NULL,
                            out);
    return remember(b, o, *out);
}

status rebuild(builder *b, PyObject *o, operand *out) {
    if (is_lazy(o) && ((lazy *)o)->source->kind == SOURCE_GRAPH)
        return rebuild_unbacked(b, o, out);
    if (number_is_computed(o))
        return rebuild_computed(b, o, out);
    if (is_lazy(o))
        return build_load(b, ((lazy *)o)->source, out);
    if (is_trampoline(o))
        return rebuild(b, trampoline_callable(o), out);
    if (is_feed(o))
        return rebuild(b, feed_source(o), out);
    uint64_t *known = map_get(&b->objects, map_key(o));
    if (known && *known == BUSY)
        return make_empty(b, o, out);
    if (known) {
        *out = (operand)(uint32_t)*known;
        return ST_OK;
    }
    record *r = record_of(b->w, o);
    if (r)
        return build_load(b, r->source, out);
    const standin_kind *kind = standin_kind_of(o);
    if (kind)
        return rebuild_standin(b, kind, o, out);
    bool constant;
    TRY(constant_stays(b, o, &constant, out));
    if (*out != OPERAND_NONE)
        return remember(b, o, *out);
    return constant ? rebuild_constant(b, o, out) : rebuild_inside(b, o, out);
}
