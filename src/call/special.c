// Checks one special method of a value before native code may use it. A Python method gets a
// record, so that the trace knows its frame when it comes. A C slot must be known to be harmless. A
// slot of object itself means that identity or an address matters.
#include "src/call/special.h"

#include "src/attr/attr.h"
#include "src/attr/descr.h"
#include "src/attr/words.h"

#include "src/call/call.h"

// --- names ---

static const struct special_row {
    const char *text;
    unsigned protocols;
} special_rows[SPECIAL_COUNT] = {
#define SPECIAL(name, protocols, slot) [SPECIAL_##name] = {"__" #name "__", protocols},
#include "src/call/special.def"
#undef SPECIAL
};

PyObject *special_name(special id) {
    static PyObject *names[SPECIAL_COUNT];
    if (UNLIKELY(!names[id]))
        names[id] = PyUnicode_InternFromString(special_rows[id].text);
    return names[id];
}

// --- slots of C types ---

enum { VALUES = P_HASH | P_EQ | P_ORDER | P_TRUTH | P_NUMBER | P_TEXT | P_COPY };

static const slots_row slots_rows[] = {
#define SLOTS(name, protocols, where) {name, protocols, SLOTS_##where},
#include "src/call/slots.def"
#undef SLOTS
    {0},
};
enum { SLOTS_TABLES = 3 };
static const slots_row *slots_tables[SLOTS_TABLES] = {slots_rows};
static map slots_known; // type → its row, or 0. Such types never die.

void special_add_slots(const slots_row *rows) {
    size_t i = 1;
    while (i < SLOTS_TABLES - 1 && slots_tables[i] && slots_tables[i] != rows)
        i++;
    slots_tables[i] = rows;
    map_clear(&slots_known);
}

// A class statement may use any name, so only C types are asked. NULL: nothing is known of it.
static const slots_row *slots_of(PyTypeObject *type) {
    if (raw_is_python_class(type))
        return NULL;
    uint64_t *place = map_get(&slots_known, map_key(type));
    if (place)
        return (const slots_row *)(uintptr_t)*place;
    const slots_row *found = NULL;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(slots_tables); i++)
        for (const slots_row *row = slots_tables[i]; !found && row && row->name; row++)
            found = strcmp(row->name, type->tp_name) == 0 ? row : NULL;
    if (map_put(&slots_known, map_key(type), map_key(found)) != ST_OK)
        PyErr_Clear();
    return found;
}

#define TP(slot) ((void *)type->slot)
#define NB(slot) (type->tp_as_number ? (void *)type->tp_as_number->slot : NULL)
#define SQ(slot) (type->tp_as_sequence ? (void *)type->tp_as_sequence->slot : NULL)
#define MP(slot) (type->tp_as_mapping ? (void *)type->tp_as_mapping->slot : NULL)
#define EITHER(a, b) ((a) ? (a) : (b))
#define LENGTH EITHER(MP(mp_length), SQ(sq_length))
#define ITEM EITHER(MP(mp_subscript), SQ(sq_item))
#define ASSIGN EITHER(MP(mp_ass_subscript), SQ(sq_ass_item))
#define ADD EITHER(NB(nb_add), SQ(sq_concat))
#define IADD EITHER(NB(nb_inplace_add), SQ(sq_inplace_concat))
#define MULTIPLY EITHER(NB(nb_multiply), SQ(sq_repeat))
#define IMULTIPLY EITHER(NB(nb_inplace_multiply), SQ(sq_inplace_repeat))
#define NONE NULL

// What native code would call for this method; NULL if it would look the name up, or do nothing.
static void *slot_of(PyTypeObject *type, special id) {
    switch (id) {
#define SPECIAL(name, protocols, slot)                                                             \
    case SPECIAL_##name:                                                                           \
        return slot;
#include "src/call/special.def"
#undef SPECIAL
    case SPECIAL_COUNT:
        break;
    }
    return NULL;
}

// --- identity ---

static status identity_of(world *w, PyObject *o) {
    record *r = o ? record_of(w, o) : NULL;
    return r ? record_identity(w, r) : ST_OK;
}

// A bound method is compared and hashed by its function and by the identity of its self.
static status identity_of_parts(world *w, PyObject *o) {
    if (PyMethod_Check(o))
        TRY(identity_of(w, PyMethod_GET_FUNCTION(o)));
    return identity_of(w, raw_method_self(o));
}

// A key is found by its hash, and what finds it says no more than which keys are the same object.
// Where the class has an == of its own, a plan could not find out (rebuild_hashing).
static status hash_of(world *w, PyObject *o) {
    record *r = record_of(w, o);
    if (!r || !raw_key_simple(o))
        return identity_of(w, o);
    record_hashed(w, r);
    return ST_OK;
}

// object's own methods: by identity, or by address. Outside objects that are compared by identity
// are told apart by the guard that all of them are distinct.
static status object_special(world *w, PyObject *o, special id) {
    switch (id) {
    case SPECIAL_format: // goes on to str(), and that to repr()
        return special_open(w, o, SPECIAL_str);
    case SPECIAL_str:
        return special_open(w, o, SPECIAL_repr);
    case SPECIAL_hash:
        return hash_of(w, o);
    case SPECIAL_eq:
    case SPECIAL_ne:
        w->facts.identity_mattered = w->facts.identity_mattered || record_of(w, o);
        return ST_OK;
    case SPECIAL_repr:
        return world_break_status(w, REASON_ADDRESS, "repr of a %s object", Py_TYPE(o)->tp_name);
    case SPECIAL_reduce:
    case SPECIAL_reduce_ex:
        return world_break_status(w, REASON_PROTOCOL, "copying a %s object", Py_TYPE(o)->tp_name);
    default:
        return ST_OK;
    }
}

// --- one method ---

static status refuse(world *w, PyObject *o, special id) {
    return world_break_status(w, REASON_PROTOCOL, "%s of a %s object", special_rows[id].text,
                              Py_TYPE(o)->tp_name);
}

// An iterator of a C type: those made inside, and twins, hold inside things only; an outside one may
// not move.
static status open_iterator(world *w, PyObject *o) {
    record *r = record_of(w, o);
    bool twin = r && r->kind == RECORD_ITERATOR;
    if (twin)
        record_write(w, o);
    if (!r || twin)
        return ST_OK;
    return world_break_status(w, REASON_OUTSIDE_ITERATOR, "%s", Py_TYPE(o)->tp_name);
}

static bool is_iterator(PyTypeObject *type) {
    return type->tp_iternext && type->tp_iter == PyObject_SelfIter;
}

static status read_name(world *w, PyObject *class, const char *name) {
    PyObject *text = PyUnicode_InternFromString(name);
    PyObject *value = text ? attr_get(w, class, text) : NULL;
    bool opened = value && door_open(w, value);
    Py_XDECREF(text);
    Py_XDECREF(value);
    return opened ? ST_OK : w->stop.broken ? ST_BREAK : ST_ERROR;
}

// The text of a class is made of its names, of a module's C function of its name.
static status open_repr(world *w, PyObject *o, bool *known) {
    PyObject *self = PyCFunction_CheckExact(o) ? PyCFunction_GET_SELF(o) : o;
    *known = !self || (self != o && PyModule_Check(self));
    if (!PyType_Check(o) || Py_TYPE(o)->tp_repr != PyType_Type.tp_repr || w->facts.class_written)
        return ST_OK;
    *known = true;
    if (!raw_is_python_class((PyTypeObject *)o))
        return ST_OK;
    TRY(read_name(w, o, "__module__"));
    return read_name(w, o, "__qualname__");
}

// Exceptions make text of what they hold, and the lazies among that break by themselves. Other
// types have what they took over from a base that is known.
static const slots_row *row_of(PyTypeObject *type, void *slot, special id) {
    if (PyType_FastSubclass(type, Py_TPFLAGS_BASE_EXC_SUBCLASS) && !raw_is_python_class(type))
        return slots_of((PyTypeObject *)PyExc_BaseException);
    const slots_row *row = slots_of(type);
    for (PyTypeObject *base = type->tp_base; !row && base; base = base->tp_base)
        row = slot_of(base, id) == slot ? slots_of(base) : NULL;
    return row;
}

// Whether others than the frames of the trace hold an outside object: it was found in something that
// the trace has not changed.
static bool is_held_outside(const world *w, PyObject *o) {
    const record *r = record_of(w, o);
    const source *root = r ? r->source : NULL;
    while (root && root->parent)
        root = root->parent;
    return root && root != r->source && root->kind != SOURCE_LOCAL && !world_wrote(w);
}

bool special_lives(world *w, PyObject *o) {
    bool class = PyType_Check(o) && !type_is_made(w, (PyTypeObject *)o);
    return class || is_held_outside(w, o) || world_holds(w, o);
}

// A weak reference is hashed and compared by its object, if that lives in plain Python, too.
static bool refers_to_the_dead(world *w, PyObject *o) {
    PyObject *of = PyWeakref_CheckRefExact(o) ? raw_weakref_get(o) : o;
    return !of || (of != o && !special_lives(w, of));
}

// The object of a weak reference from outside is found by the reference, and prepared in its place.
static status open_reference(world *w, PyObject *o, special id) {
    record *r = record_of(w, o);
    PyObject *of = raw_weakref_get(o);
    source *s = of && r ? guard_source(w->guards, SOURCE_WEAKREF, r->source, NULL, 0) : NULL;
    if (!s || of == Py_None || !raw_is_python_class(Py_TYPE(of)))
        return PyErr_Occurred() ? ST_ERROR : refuse(w, o, id);
    PyObject *inside = door_bring(w, s, of);
    if (inside && inside != of)
        return refuse(w, o, id);
    return inside ? special_open(w, of, id) : w->stop.broken ? ST_BREAK : ST_ERROR;
}

// The method as the C type `type` (o's own, or a base of its class) defines it.
static status c_special(world *w, PyObject *o, PyTypeObject *type, special id) {
    unsigned protocols = special_rows[id].protocols;
    if (type == &PyBaseObject_Type)
        return object_special(w, o, id);
    void *slot = slot_of(type, id);
    if (!slot && !(protocols & P_COPY))
        return ST_OK;
    if (slot && slot == slot_of(&PyBaseObject_Type, id))
        return object_special(w, o, id);
    if (slot && (protocols & P_ITER) && is_iterator(type))
        return open_iterator(w, o);
    bool known = false;
    if (id == SPECIAL_repr)
        TRY(open_repr(w, o, &known));
    if (known)
        return ST_OK;
    const slots_row *row = row_of(type, slot, id);
    if (!row || !(row->protocols & protocols))
        return refuse(w, o, id);
    bool outside = record_of(w, o) != NULL;
    if (outside && PyWeakref_CheckRefExact(o) && protocols & (P_HASH | P_EQ))
        return open_reference(w, o, id);
    bool twin = outside || map_get(&w->made.objects, map_key(o)); // made of what passed the door
    if ((row->where == SLOTS_INSIDE && outside) || (row->where == SLOTS_TWIN && !twin) ||
        refers_to_the_dead(w, o))
        return refuse(w, o, id);
    if (PyWeakref_CheckRefExact(o) && !PyType_Check(raw_weakref_get(o)))
        return special_open(w, raw_weakref_get(o), id);
    return protocols & (P_HASH | P_EQ) ? identity_of_parts(w, o) : ST_OK;
}

// Python code, directly or in a staticmethod or classmethod: its frame comes back through the hook,
// which breaks if the function did not pass the door.
static bool is_python_code(PyObject *raw) {
    if (Py_IS_TYPE(raw, &PyStaticMethod_Type) || Py_IS_TYPE(raw, &PyClassMethod_Type)) {
        PyObject *function = PyObject_GetAttrString(raw, "__func__");
        bool python = function && PyFunction_Check(function);
        PyErr_Clear();
        Py_XDECREF(function);
        return python;
    }
    return PyFunction_Check(raw);
}

// The function in it is known when native code calls it.
static status open_wrapped(world *w, PyObject *raw) {
    record *r = PyFunction_Check(raw) ? NULL : record_itself(w, raw);
    if (!r)
        return ST_OK;
    PyObject *function = load_field(w, r, SOURCE_WRAPPED, NULL, 0);
    bool opened = function && door_open(w, function);
    Py_XDECREF(function);
    return opened ? ST_OK : failed(w);
}

// What a class made by Python code has under the name; *raw is NULL if nothing.
static status look_up(world *w, PyTypeObject *type, special id, PyObject **raw) {
    PyObject *name = special_name(id);
    if (!name)
        return ST_ERROR;
    *raw = NULL;
    PyObject *found = type_lookup(w, type, name, raw);
    if (w->stop.broken)
        return ST_BREAK;
    if (!found && PyErr_Occurred())
        return ST_ERROR;
    return ST_OK;
}

// Members of enumerations that pybind11 made, which never change: their methods look at the number
// behind them.
static bool is_pybind_enum(PyTypeObject *type) {
    PyObject *entries = NULL;
    return attr_is_pybind(Py_TYPE(type)) &&
           raw_dict_get(raw_type_dict(type), word.entries, &entries) == RAW_FOUND;
}

static status python_special(world *w, PyObject *o, special id) {
    PyObject *raw;
    TRY(look_up(w, Py_TYPE(o), id, &raw));
    if (raw && Py_IS_TYPE(raw, &PyInstanceMethod_Type) && is_pybind_enum(Py_TYPE(o)) &&
        special_rows[id].protocols & (P_HASH | P_EQ | P_INDEX))
        return identity_of(w, o);
    // None: native code raises that the operation is not supported.
    if (!raw || raw == Py_None)
        return ST_OK;
    if (is_python_code(raw))
        return open_wrapped(w, raw);
    if (Py_IS_TYPE(raw, &PyWrapperDescr_Type) || Py_IS_TYPE(raw, &PyMethodDescr_Type))
        return c_special(w, o, PyDescr_TYPE(raw), id);
    return refuse(w, o, id);
}

status special_open(world *w, PyObject *o, special id) {
    if (is_scalar(o) || is_standin(o))
        return ST_OK;
    PyTypeObject *type = Py_TYPE(o);
    return raw_is_python_class(type) ? python_special(w, o, id) : c_special(w, o, type, id);
}

status special_open_all(world *w, PyObject *o, unsigned protocols) {
    for (int id = 0; id < SPECIAL_COUNT; id++)
        if (special_rows[id].protocols & protocols)
            TRY(special_open(w, o, (special)id));
    return ST_OK;
}

// --- questions ---

int special_is_python(world *w, PyObject *o, special id) {
    PyObject *raw;
    if (!raw_is_python_class(Py_TYPE(o)))
        return 0;
    if (look_up(w, Py_TYPE(o), id, &raw) != ST_OK)
        return -1;
    return raw && PyFunction_Check(raw);
}

bool special_slot_is_there(PyObject *o, special id) {
    return slot_of(Py_TYPE(o), id) != NULL;
}

PyObject *special_call(world *w, PyObject *o, special id, PyObject *const *args, int count,
                       bool *called) {
    PyObject *raw = NULL, *slots[4] = {o};
    *called = false;
    if (!raw_is_python_class(Py_TYPE(o)) || is_standin(o) ||
        look_up(w, Py_TYPE(o), id, &raw) != ST_OK || !raw || !PyFunction_Check(raw))
        return NULL;
    *called = true;
    assert(count < 4);
    for (int i = 0; i < count; i++)
        slots[i + 1] = args[i];
    return call_with(w, raw, slots, (size_t)count + 1);
}

static int method_is_objects(world *w, PyTypeObject *type, special id) {
    if (!raw_is_python_class(type))
        return slot_of(type, id) == slot_of(&PyBaseObject_Type, id);
    PyObject *raw;
    if (look_up(w, type, id, &raw) != ST_OK)
        return -1;
    return raw && Py_IS_TYPE(raw, &PyWrapperDescr_Type) &&
           slot_of(PyDescr_TYPE(raw), id) == slot_of(&PyBaseObject_Type, id);
}

int special_eq_is_identity(world *w, PyObject *o) {
    int eq = method_is_objects(w, Py_TYPE(o), SPECIAL_eq);
    return eq > 0 ? method_is_objects(w, Py_TYPE(o), SPECIAL_ne) : eq;
}
