// Members and getsets of C types. Reading a field of an outside object gives a lazy of that place.
// Reading a field of an inside object calls CPython's own getter, if it is known to run no Python
// code; else it breaks. Only fields of objects made inside can be written.
#include "src/py/classes.h"

#include "src/attr/descr.h"
#include "src/attr/later.h"
#include "src/attr/words.h"

// --- what is known to be harmless ---

// Types all of whose fields are plain reads, but for those that field_get singles out.
static PyTypeObject *const plain_types[] = {
    &PyType_Type,      &PyFunction_Type,     &PyMethod_Type,      &PyCFunction_Type,
    &PyProperty_Type,  &PyStaticMethod_Type, &PyClassMethod_Type, &PyMethodDescr_Type,
    &PyLong_Type,      &PyFloat_Type,        &PyComplex_Type,     &PyRange_Type,
    &PySlice_Type,     &PyCode_Type,         &PySuper_Type,       &PyWrapperDescr_Type,
    &PyModule_Type,    &PyGetSetDescr_Type,  &PyMemberDescr_Type, &PyClassMethodDescr_Type,
    &PyDictKeys_Type,  &PyDictValues_Type,   &PyDictItems_Type,   &PyGen_Type,
    &PyTraceBack_Type,
};

// The same for types that no symbol names.
static const char *const plain_names[] = {
    "functools.partial",  "collections.deque",     "collections.defaultdict", "re.Pattern",
    "re.Match",           "datetime.date",         "datetime.datetime",       "datetime.time",
    "datetime.timedelta", "types.SimpleNamespace", "_contextvars.ContextVar", "ContextVar",
    "decimal.Decimal",    "array.array",           "stator._engine.frame",
};

static bool is_plain(PyTypeObject *owner) {
    for (size_t i = 0; i < Py_ARRAY_LENGTH(plain_types); i++)
        if (owner == plain_types[i])
            return true;
    if (raw_is_python_class(owner))
        return false;
    if (owner == word.method_wrapper || owner == call_compiled_type || owner == word.cached ||
        owner == word.tuple_getter)
        return true;
    if (PyType_FastSubclass(owner, Py_TPFLAGS_BASE_EXC_SUBCLASS))
        return true;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(plain_names); i++)
        if (strcmp(owner->tp_name, plain_names[i]) == 0)
            return true;
    return PyType_FastSubclass(owner, Py_TPFLAGS_TUPLE_SUBCLASS); // struct sequences
}

// Fields of such types that are not: they ask the wrapped object or the class of self, or show
// frames.
static bool is_hidden(PyTypeObject *owner, PyObject *name, PyObject *o) {
    if (name == word.isabstract || name == word.weakref || name == word.generator_frame ||
        name == word.traceback_frame)
        return true;
    if (owner == &PyCFunction_Type && name == word.qualname) {
        PyObject *self = PyCFunction_GET_SELF(o);
        return self &&
               raw_is_python_class(PyType_Check(self) ? (PyTypeObject *)self : Py_TYPE(self));
    }
    if (owner == call_compiled_type)
        return name != word.wrapped && name != word.class_;
    return owner == &PyModule_Type && name == word.annotations;
}

// --- places that have a source of their own kind ---

typedef struct field_place {
    PyTypeObject *owner;
    PyObject **name;
    source_kind kind;
} field_place;

static const field_place places[] = {
    {&PyFunction_Type, &word.globals, SOURCE_GLOBALS},
    {&PyFunction_Type, &word.builtins, SOURCE_BUILTINS},
    {&PyFunction_Type, &word.defaults, SOURCE_DEFAULTS},
    {&PyFunction_Type, &word.kwdefaults, SOURCE_KWDEFAULTS},
    {&PyMethod_Type, &word.func, SOURCE_METHOD_FUNC},
    {&PyMethod_Type, &word.self, SOURCE_METHOD_SELF},
    {&PyCFunction_Type, &word.self, SOURCE_METHOD_SELF},
    {&PyProperty_Type, &word.fget, SOURCE_PROPERTY_GET},
    {&PyProperty_Type, &word.fset, SOURCE_PROPERTY_SET},
    {&PyProperty_Type, &word.fdel, SOURCE_PROPERTY_DEL},
    {&PyStaticMethod_Type, &word.func, SOURCE_WRAPPED},
    {&PyClassMethod_Type, &word.func, SOURCE_WRAPPED},
    {&PySuper_Type, &word.thisclass, SOURCE_SUPER_TYPE},
    {&PySuper_Type, &word.self, SOURCE_SUPER_SELF},
};

static bool find_place(PyTypeObject *owner, PyObject *name, source_kind *kind) {
    for (size_t i = 0; i < Py_ARRAY_LENGTH(places); i++)
        if (owner == places[i].owner && name == *places[i].name) {
            *kind = places[i].kind;
            return true;
        }
    if (owner != word.partial)
        return false;
    *kind = name == word.args ? SOURCE_PARTIAL_ARGS : SOURCE_PARTIAL_KEYWORDS;
    if (name == word.partial_func)
        *kind = SOURCE_PARTIAL_FUNC;
    return name == word.args || name == word.keywords || name == word.partial_func;
}

// --- reading ---

static PyObject *refuse(world *w, PyTypeObject *owner, PyObject *name) {
    return world_break(w, REASON_ATTRIBUTE, "%s.%U", owner->tp_name, name);
}

static PyObject *read_native(const descr *d, PyObject *o) {
    return Py_TYPE(d->raw)->tp_descr_get(d->raw, o, (PyObject *)Py_TYPE(o));
}

// A row that a later room gave to the descriptor itself.
static PyObject *read_by_rule(world *w, const descr *d, PyObject *o) {
    bool known;
    PyObject *value = rule_read_getset(w, d->raw, o, &known);
    return known ? value : refuse(w, PyDescr_TYPE(d->raw), PyDescr_NAME(d->raw));
}

// Reading these makes what is not there yet, so only what is there may be read. (A function makes a
// dict of its annotations that nobody can tell from one that was there.)
static bool makes_missing(PyTypeObject *owner, PyObject *name, PyObject *o) {
    PyObject *own;
    return name == word.annotations && owner == &PyType_Type &&
           raw_dict_get(raw_type_dict((PyTypeObject *)o), name, &own) != RAW_FOUND;
}

// type.__doc__ binds what the class has there.
static bool runs_code(PyTypeObject *owner, PyObject *name, PyObject *o) {
    PyObject *own;
    if (owner != &PyType_Type || name != word.doc || !raw_is_python_class((PyTypeObject *)o))
        return false;
    return raw_dict_get(raw_type_dict((PyTypeObject *)o), name, &own) == RAW_FOUND &&
           own != Py_None && !PyUnicode_CheckExact(own);
}

static PyObject *read_outside(world *w, const descr *d, record *r) {
    PyTypeObject *owner = PyDescr_TYPE(d->raw);
    PyObject *name = PyDescr_NAME(d->raw), *value = read_native(d, r->outside);
    if (!value) // a read that runs no code says what is missing in CPython's own words
        return NULL;
    source_kind kind = SOURCE_FIELD;
    bool known = value != Py_None && find_place(owner, name, &kind);
    source *s = guard_source(w->guards, kind, r->source, known ? NULL : d->raw, 0);
    // Some getters make a new object each time; the first one stands for all of them.
    uint64_t *before = s ? map_get(&w->in.lazies, map_key(s)) : NULL;
    PyObject *loaded = NULL;
    if (before)
        loaded = Py_NewRef((PyObject *)(uintptr_t)*before);
    else if (s)
        loaded = door_load(w, s, value);
    Py_DECREF(value);
    return loaded;
}

// The globals of a function made inside are outside all the same.
static PyObject *read_namespace(world *w, PyObject *dict) {
    record *r = record_of(w, dict);
    names *n = r ? names_of_dict(w, r) : NULL;
    if (n)
        return names_as_object(w, n);
    if (PyErr_Occurred())
        return NULL;
    return world_break(w, REASON_ATTRIBUTE, "the globals of a function that was made inside");
}

// Code is guarded to be this very object, and so is what it has. Takes the reference.
static PyObject *give_fixed(world *w, PyObject *value) {
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, value, 0);
    PyObject *loaded = s ? door_load(w, s, value) : NULL;
    Py_DECREF(value);
    return loaded;
}

static PyObject *read_inside(world *w, const descr *d, PyObject *o) {
    PyTypeObject *owner = PyDescr_TYPE(d->raw);
    PyObject *name = PyDescr_NAME(d->raw);
    if (owner == &PyFunction_Type && name == word.globals)
        return read_namespace(w, ((PyFunctionObject *)o)->func_globals);
    if (owner == &PyFunction_Type && name == word.builtins)
        return read_namespace(w, ((PyFunctionObject *)o)->func_builtins);
    PyObject *value = read_native(d, o);
    if (owner == &PyCode_Type && value)
        return give_fixed(w, value);
    if (value == Py_None && name == word.context && raised_nothing_outside(w) != ST_OK)
        Py_CLEAR(value);
    if (value && is_trampoline(value))
        Py_SETREF(value, Py_NewRef(trampoline_callable(value)));
    return value;
}

// --- __dict__, __class__, slots ---

// The namespace of a class made inside, or of a builtin one, as a mappingproxy: it has nothing that
// would have to pass the door.
static PyObject *read_namespace_of(world *w, const descr *d, PyObject *class) {
    if (!type_is_made(w, (PyTypeObject *)class) &&
        type_fix_namespace(w, (PyTypeObject *)class) != ST_OK)
        return NULL;
    PyObject *proxy = read_native(d, class);
    if (proxy &&
        (!world_keep(w, Py_NewRef(proxy)) || map_put(&w->made.objects, map_key(proxy), 1) != ST_OK))
        Py_CLEAR(proxy);
    return proxy;
}

static PyObject *read_dict(world *w, const descr *d, PyObject *o) {
    if (PyType_Check(o) && !class_value(w, (PyTypeObject *)o))
        return NULL;
    record *r = record_of(w, o);
    if (!r && PyType_Check(o))
        return read_namespace_of(w, d, o);
    if (!r)
        return read_native(d, o);
    if (PyType_Check(o))
        return read_outside(w, d, r);
    names *n = names_of_object(w, r);
    if (n)
        return names_as_object(w, n);
    return PyErr_Occurred() ? NULL : refuse(w, Py_TYPE(o), word.dict);
}

// What __slots__ made: a place of its own in each object.
static PyObject *read_slot(world *w, const descr *d, PyObject *o) {
    record *r = record_of(w, o);
    if (!r)
        return read_native(d, o);
    PyObject *value = slot_get(w, r, d->raw);
    if (!value && !PyErr_Occurred())
        py_slot_missing(o, ((PyMemberDescrObject *)d->raw)->d_member->name);
    return value;
}

// Nobody refers weakly to an object of the trace, as a rule. (The reference that is there may be
// one that the engine made.)
static PyObject *read_weakref(world *w, const descr *d, PyObject *o) {
    PyObject *value = record_of(w, o) ? NULL : read_native(d, o);
    if (value == Py_None)
        return value;
    Py_XDECREF(value);
    return PyErr_Occurred() ? NULL : refuse(w, PyDescr_TYPE(d->raw), PyDescr_NAME(d->raw));
}

static bool is_slot(PyObject *raw) {
    return Py_IS_TYPE(raw, &PyMemberDescr_Type) && raw_is_python_class(PyDescr_TYPE(raw)) &&
           ((PyMemberDescrObject *)raw)->d_member->type == T_OBJECT_EX;
}

static bool is_dict_field(PyTypeObject *owner, PyObject *name) {
    return name == word.dict &&
           (raw_is_python_class(owner) || is_plain(owner) || owner == &PyODict_Type);
}

static PyObject *read_cell(world *w, const descr *d, PyObject *o) {
    PyObject *value = cell_get(w, o);
    // Empty: CPython's own words come from a cell that is really empty.
    if (!value && !PyErr_Occurred())
        return PyCell_GET(o) ? refuse(w, &PyCell_Type, PyDescr_NAME(d->raw)) : read_native(d, o);
    return value;
}

PyObject *field_get(world *w, const descr *d, PyObject *o, PyTypeObject *type) {
    PyTypeObject *owner = PyDescr_TYPE(d->raw);
    PyObject *name = PyDescr_NAME(d->raw);
    if (owner == &PyBaseObject_Type && name == word.class_)
        return Py_XNewRef(class_value(w, type));
    if (!(o = door_open(w, o)))
        return NULL;
    if (!PyObject_TypeCheck(o, owner))
        return read_native(d, o); // descr_check's TypeError
    if (is_slot(d->raw))
        return read_slot(w, d, o);
    if (is_dict_field(owner, name))
        return read_dict(w, d, o);
    if (owner == &PyCell_Type)
        return read_cell(w, d, o);
    if (name == word.weakref && raw_is_python_class(owner))
        return read_weakref(w, d, o);
    if (!is_plain(owner))
        return read_by_rule(w, d, o);
    if (is_hidden(owner, name, o) || runs_code(owner, name, o))
        return refuse(w, owner, name);
    if (PyType_Check(o) && !class_value(w, (PyTypeObject *)o))
        return NULL;
    record *r = record_itself(w, o);
    if (!r)
        return read_inside(w, d, o);
    if (name == word.traceback || makes_missing(owner, name, o))
        return refuse(w, owner, name);
    return read_outside(w, d, r);
}

// --- writing ---

static int refuse_write(world *w, PyTypeObject *owner, PyObject *name) {
    reason why =
        name == word.class_ || owner == &PyType_Type ? REASON_CLASS_WRITE : REASON_ATTRIBUTE;
    world_break(w, why, "writes %s.%U", owner->tp_name, name);
    return -1;
}

static int write_native(world *w, const descr *d, PyObject *o, PyObject *value) {
    if (value && !(value = door_open(w, value)))
        return -1;
    return Py_TYPE(d->raw)->tp_descr_set(d->raw, o, value);
}

static int write_slot(world *w, const descr *d, PyObject *o, PyObject *value) {
    record *r = record_of(w, o);
    if (!r)
        return Py_TYPE(d->raw)->tp_descr_set(d->raw, o, value);
    PyObject *old = value ? NULL : slot_get(w, r, d->raw);
    if (!value && !old) {
        if (!PyErr_Occurred()) // PyMember_SetOne says no more than this
            PyErr_SetString(PyExc_AttributeError, ((PyMemberDescrObject *)d->raw)->d_member->name);
        return -1;
    }
    Py_XDECREF(old);
    return slot_set(w, r, d->raw, value) == ST_OK ? 0 : -1;
}

// Whether a value is the very dict that an object has: `o.__dict__ |= x` stores it again.
static bool is_own_dict(world *w, PyObject *o, PyObject *value) {
    record *owner = record_of(w, o),
           *dict = is_lazy(value) ? ((lazy *)value)->record : record_of(w, value);
    names *own = owner ? names_of_object(w, owner) : NULL;
    return own && ((dict && dict->names == own) || own->twin == value);
}

// The dict that an object made inside gets must be inside, too.
static int write_dict(world *w, const descr *d, PyObject *o, PyObject *value) {
    if (value && is_own_dict(w, o, value))
        return 0;
    if (w->stop.broken || PyErr_Occurred())
        return -1;
    if (record_of(w, o) || PyType_Check(o) || !value)
        return refuse_write(w, PyDescr_TYPE(d->raw), word.dict);
    if (!(value = door_open(w, value)))
        return -1;
    if (PyDict_Check(value) && record_of(w, value))
        return refuse_write(w, PyDescr_TYPE(d->raw), word.dict);
    return Py_TYPE(d->raw)->tp_descr_set(d->raw, o, value);
}

static int write_cell(world *w, PyObject *o, PyObject *value) {
    return cell_set(w, o, value) == ST_OK ? 0 : -1;
}

// A write that can only fail: to a read-only field, or by the wrong object.
static bool is_read_only(PyObject *raw) {
    if (Py_IS_TYPE(raw, &PyMemberDescr_Type))
        return ((PyMemberDescrObject *)raw)->d_member->flags & READONLY;
    return !((PyGetSetDescrObject *)raw)->d_getset->set;
}

// Of a class made inside; its bases may not change.
static int write_made(world *w, const descr *d, PyObject *class, PyObject *value) {
    if (PyUnicode_CompareWithASCIIString(PyDescr_NAME(d->raw), "__bases__") == 0)
        return refuse_write(w, &PyType_Type, PyDescr_NAME(d->raw));
    world_touch(w);
    return write_native(w, d, class, value);
}

// Whether an outside function has this name already, as those have that functools.total_ordering
// names: then nothing is written. 1, 0, -1.
static int has_name_already(world *w, PyObject *o, PyObject *name, PyObject *value) {
    if (!PyFunction_Check(o) || !value || (name != word.name && name != word.qualname))
        return 0;
    PyObject *now = attr_get(w, o, name), *old = now ? door_open(w, now) : NULL;
    PyObject *new = old ? door_open(w, value) : NULL;
    int same = !new ? -1
               : PyUnicode_CheckExact(old) && PyUnicode_CheckExact(new)
                   ? PyUnicode_Compare(old, new) == 0
                   : 0;
    Py_XDECREF(now);
    return same;
}

int field_set(world *w, const descr *d, PyObject *o, PyObject *value) {
    PyTypeObject *owner = PyDescr_TYPE(d->raw);
    PyObject *name = PyDescr_NAME(d->raw);
    if (!(o = door_open(w, o)))
        return -1;
    if (!PyObject_TypeCheck(o, owner) || is_read_only(d->raw))
        return Py_TYPE(d->raw)->tp_descr_set(d->raw, o, value);
    if (owner == &PyBaseObject_Type)
        return refuse_write(w, owner, name);
    if (is_slot(d->raw))
        return write_slot(w, d, o, value);
    if (is_dict_field(owner, name))
        return write_dict(w, d, o, value);
    if (owner == &PyCell_Type)
        return write_cell(w, o, value);
    if (owner == &PyType_Type && type_is_made(w, (PyTypeObject *)o))
        return write_made(w, d, o, value);
    int same = record_of(w, o) ? has_name_already(w, o, name, value) : 0;
    if (same)
        return same < 0 ? -1 : 0;
    if (!is_plain(owner) || PyType_Check(o) || record_of(w, o))
        return refuse_write(w, owner, name);
    return write_native(w, d, o, value);
}
