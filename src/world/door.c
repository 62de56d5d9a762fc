// The door turns a place outside and the object found there into a lazy, and a lazy into the object
// that stands for it inside. It guards only what the program looked at.
#include "src/world/inner.h"
#include "src/world/losses.h"
#include "src/world/number.h"
#include "src/world/world.h"

// --- records ---

record *record_of(const world *w, PyObject *o) {
    uint64_t *found = map_get(&w->in.records, map_key(o));
    return found ? (record *)(uintptr_t)*found : NULL;
}

status record_register(world *w, record *r, PyObject *inside) {
    if (!world_keep(w, Py_NewRef(inside)))
        return ST_ERROR;
    TRY(map_put(&w->in.records, map_key(inside), map_key(r)));
    r->inside = inside;
    return ST_OK;
}

// A dict that was met before as some object's instance dict keeps its one `names`.
static status join_names(world *w, record *r) {
    uint64_t *met = map_get(&w->in.dicts, map_key(r->outside));
    if (r->kind != RECORD_DICT || !met)
        return ST_OK;
    r->names = (names *)(uintptr_t)*met;
    source *owner = guard_source(w->guards, SOURCE_DICT, r->names->source, NULL, 0);
    if (!owner)
        return ST_ERROR;
    if (!r->names->instance || owner == r->source)
        return ST_OK;
    return guard_add(w->guards, GUARD_SAME, owner, r->source, NULL, 0);
}

record *record_new(world *w, record_kind kind, source *s, PyObject *outside, PyObject *inside) {
    record *r = arena_new(&w->arena, record);
    if (!r || !world_keep(w, Py_NewRef(outside)))
        return NULL;
    *r = (record){.kind = kind, .source = s, .outside = outside};
    if (map_put(&w->in.records, map_key(outside), map_key(r)) != ST_OK ||
        vec_push(&w->in.all, r) != ST_OK || join_names(w, r) != ST_OK)
        return NULL;
    if (inside && inside != outside && record_register(w, r, inside) != ST_OK)
        return NULL;
    r->inside = inside;
    return r;
}

static bool is_enum_member(PyObject *o) {
    return PyType_IsSubtype(Py_TYPE(Py_TYPE(o)), type_enum);
}

// Parts of cycles: nobody knows when they go. And typing's words, which are kept by modules and by
// typing's own caches.
static bool lives_long(PyObject *o) {
    return PyType_Check(o) || PyModule_Check(o) || PyFunction_Check(o) || is_enum_member(o) ||
           PyObject_TypeCheck(o, type_typing);
}

// Its parts may have others that hold them now, and be kept by it alone later.
static bool is_kept_quietly(PyObject *o, bool part) {
    bool watched = raw_can_be_weak(o);
    if (value_immutable(o) || (part ? lives_long(o) : watched))
        return true;
    for (Py_ssize_t i = 0; PyTuple_CheckExact(o) && i < PyTuple_GET_SIZE(o); i++)
        if (!is_kept_quietly(PyTuple_GET_ITEM(o, i), true))
            return false;
    losses l = {0};
    bool quiet = !watched && losses_last(&l, o);
    losses_clear(&l);
    return quiet;
}

// Where the trace may not break, it lives on: better than no answer.
status door_keep(world *w, PyObject *o) {
    if (w->terms.whole || w->inside.caches > 0 || is_kept_quietly(o, false))
        return ST_OK;
    return world_break_status(w, REASON_FINALIZER, "a guard keeps a %s", Py_TYPE(o)->tp_name);
}

status door_keep_items(world *w, PyObject *tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        TRY(door_keep(w, PyTuple_GET_ITEM(tuple, i)));
    return ST_OK;
}

status record_identity(world *w, record *r) {
    if (r->identity)
        return ST_OK;
    if (!r->pinned)
        TRY(door_keep(w, r->outside));
    r->identity = true;
    return r->pinned ? ST_OK : guard_add(w->guards, GUARD_IS, r->source, NULL, r->outside, 0);
}

void record_hashed(world *w, record *r) {
    r->hashed = true;
    w->facts.identity_mattered = true;
}

status world_pin_hashed(world *w) {
    for (uint32_t i = 0; i < w->in.all.count; i++)
        if (w->in.all.items[i]->hashed)
            TRY(record_identity(w, w->in.all.items[i]));
    return ST_OK;
}

status door_again(world *w, record *r, source *s, bool pinned) {
    if (s == r->source || (pinned && r->pinned))
        return ST_OK;
    w->facts.handles_seen |= r->names && r->names->handles;
    TRY(guard_add(w->guards, GUARD_SAME, r->source, s, NULL, 0));
    r->pinned |= pinned; // the same as what is pinned
    return ST_OK;
}

bool door_pinned(const world *w, const source *s) {
    if (s->kind == SOURCE_FIXED)
        return true;
    // What a function sees around it never changes.
    if (s->kind != SOURCE_GLOBALS && s->kind != SOURCE_BUILTINS)
        return false;
    uint64_t *function = map_get(&w->in.lazies, map_key(s->parent));
    record *r = function ? ((lazy *)(uintptr_t)*function)->record : NULL;
    return r && r->source == s->parent && r->pinned;
}

status door_guard_type(world *w, source *s, PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    TRY(guard_add(w->guards, GUARD_TYPE, s, NULL, (PyObject *)type, 0));
    return type_met(w, s, type);
}

// --- one function a kind of object; each gives the inside object, borrowed ---

// One entry for each number that comes would be made in vain.
static bool is_varying(const world *w, const source *s, PyObject *o) {
    if (s->kind != SOURCE_LOCAL || !(PyFloat_CheckExact(o) || PyLong_CheckExact(o)))
        return false;
    for (int i = 0; i < w->terms.varying_count; i++)
        if (w->terms.varying[i] == s->index)
            return true;
    return false;
}

static status open_value(world *w, source *s, PyObject *o) {
    if (is_varying(w, s, o))
        return world_break_status(w, REASON_VARYING, "%U", s->key);
    TRY(guard_add(w->guards, GUARD_VALUE, s, NULL, o, 0));
    return value_note(w, s, o);
}

static PyObject *inside_of(record *r) {
    return r ? r->inside : NULL;
}

// Only this very object passes: C objects that never change, classes, C functions.
static PyObject *open_by_identity(world *w, source *s, PyObject *o, bool pinned) {
    // What a module or an object has may well live on; what a variable holds is often done with.
    if (s->kind == SOURCE_LOCAL && door_keep(w, o) != ST_OK)
        return NULL;
    if (!pinned && guard_add(w->guards, GUARD_IS, s, NULL, o, 0) != ST_OK)
        return NULL;
    record *r = record_new(w, RECORD_OBJECT, s, o, o);
    if (r)
        r->pinned = true;
    return inside_of(r);
}

// Itself; whatever of it is read later is guarded then.
static PyObject *open_by_type(world *w, source *s, PyObject *o, bool pinned, record_kind kind) {
    if (door_guard_type(w, s, o) != ST_OK)
        return NULL;
    record *r = record_new(w, kind, s, o, o);
    if (r)
        r->pinned = pinned;
    return inside_of(r);
}

static status open_cells(world *w, record *function) {
    PyObject *closure = PyFunction_GET_CLOSURE(function->outside);
    for (Py_ssize_t i = 0; closure && i < PyTuple_GET_SIZE(closure); i++) {
        PyObject *cell = PyTuple_GET_ITEM(closure, i);
        source *s = guard_source(w->guards, SOURCE_CLOSURE, function->source, NULL, i);
        if (!s)
            return ST_ERROR;
        record *known = record_of(w, cell);
        if (known)
            TRY(door_again(w, known, s, function->pinned));
        else if (!(known = record_new(w, RECORD_CELL, s, cell, cell)))
            return ST_ERROR;
        known->pinned |= function->pinned;
    }
    return ST_OK;
}

// A function of a module, found by its name there.
static bool is_of_module(const world *w, const source *s) {
    if (s->kind == SOURCE_ITEM)
        return s->parent->kind == SOURCE_GLOBALS;
    uint64_t *parent = s->kind == SOURCE_ATTR ? map_get(&w->in.lazies, map_key(s->parent)) : NULL;
    return parent && PyModule_Check(((lazy *)(uintptr_t)*parent)->outside);
}

static PyObject *open_function(world *w, source *s, PyObject *o, bool pinned) {
    if (!pinned && is_of_module(w, s)) {
        if (guard_add(w->guards, GUARD_IS, s, NULL, o, 0) != ST_OK)
            return NULL;
        pinned = true;
    }
    if (guard_add(w->guards, GUARD_CODE, s, NULL, PyFunction_GET_CODE(o), 0) != ST_OK)
        return NULL;
    record *r = record_new(w, RECORD_OBJECT, s, o, o);
    if (!r)
        return NULL;
    r->pinned = pinned;
    return open_cells(w, r) == ST_OK ? o : NULL;
}

static PyObject *bring_part(world *w, source_kind kind, source *s, PyObject *o) {
    source *at = guard_source(w->guards, kind, s, NULL, 0);
    return at ? door_bring(w, at, o) : NULL;
}

// Takes the reference to `inside`, what stands for `o`.
static PyObject *record_made(world *w, source *s, PyObject *o, PyObject *inside) {
    record *r = inside ? record_new(w, RECORD_OBJECT, s, o, inside) : NULL;
    Py_XDECREF(inside);
    return inside_of(r);
}

static PyObject *open_method(world *w, source *s, PyObject *o) {
    if (guard_add(w->guards, GUARD_TYPE, s, NULL, (PyObject *)Py_TYPE(o), 0) != ST_OK)
        return NULL;
    PyObject *function = bring_part(w, SOURCE_METHOD_FUNC, s, PyMethod_GET_FUNCTION(o));
    PyObject *self = function ? bring_part(w, SOURCE_METHOD_SELF, s, PyMethod_GET_SELF(o)) : NULL;
    return self ? record_made(w, s, o, PyMethod_New(function, self)) : NULL;
}

// Whether a C function is a method of the object or class it holds. Others hold a module, a class,
// or whatever C code likes to keep there (pybind11: a record of the function).
static bool is_bound_c_method(PyObject *o) {
    PyCFunctionObject *f = (PyCFunctionObject *)o;
    PyObject *self = PyCFunction_GET_SELF(o);
    if (!self || PyModule_Check(self))
        return false;
    bool class = PyType_Check(self) && (f->m_ml->ml_flags & METH_CLASS);
    PyTypeObject *kind = class ? &PyClassMethodDescr_Type : &PyMethodDescr_Type;
    PyObject *mro = (class ? (PyTypeObject *)self : Py_TYPE(self))->tp_mro, *found;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        found = PyDict_GetItemString(raw_type_dict(base), f->m_ml->ml_name);
        if (found && Py_IS_TYPE(found, kind) && ((PyMethodDescrObject *)found)->d_method == f->m_ml)
            return true;
    }
    return false;
}

// A bound one is bound to what stands for the object inside; any other is that very function.
static PyObject *open_c_function(world *w, source *s, PyObject *o, bool pinned) {
    PyCFunctionObject *f = (PyCFunctionObject *)o;
    if (!is_bound_c_method(o))
        return open_by_identity(w, s, o, pinned);
    if (check_c_method(w, s, o) != ST_OK)
        return NULL;
    PyObject *inside = bring_part(w, SOURCE_METHOD_SELF, s, PyCFunction_GET_SELF(o));
    if (!inside)
        return NULL;
    PyTypeObject *class = PyCFunction_GET_CLASS(o);
    return record_made(w, s, o, PyCMethod_New(f->m_ml, inside, f->m_module, class));
}

static PyObject *open_wrapper(world *w, source *s, PyObject *o) {
    PyObject *descriptor = raw_wrapper_descriptor(o);
    if (check_wrapper(w, s, o) != ST_OK)
        return NULL;
    PyObject *self = bring_part(w, SOURCE_METHOD_SELF, s, raw_method_self(o));
    if (!self)
        return NULL;
    if (!PyObject_TypeCheck(self, PyDescr_TYPE(descriptor)))
        return world_break(w, REASON_PROTOCOL, "a slot of a %s object", Py_TYPE(self)->tp_name);
    return record_made(w, s, o, PyWrapper_New(descriptor, self));
}

// A real partial of the parts as they are inside. Its own constructor would copy the keywords, and
// they are one object with their twin.
static PyObject *partial_of(PyObject *function, PyObject *args, PyObject *keywords) {
    PyObject *made = PyObject_CallOneArg((PyObject *)type_partial, function);
    PyObject *done = made ? PyObject_CallMethod(made, "__setstate__", "((OOOO))", function, args,
                                                keywords, Py_None)
                          : NULL;
    if (!done)
        Py_CLEAR(made);
    Py_XDECREF(done);
    return made;
}

static PyObject *open_partial(world *w, source *s, PyObject *o) {
    if (guard_add(w->guards, GUARD_TYPE, s, NULL, (PyObject *)Py_TYPE(o), 0) != ST_OK)
        return NULL;
    PyObject *raw = raw_field_get(RAW_PARTIAL_FUNC, o);
    PyObject *function = raw ? bring_part(w, SOURCE_PARTIAL_FUNC, s, raw) : NULL;
    raw = raw_field_get(RAW_PARTIAL_ARGS, o);
    PyObject *args = function && raw ? bring_part(w, SOURCE_PARTIAL_ARGS, s, raw) : NULL;
    raw = raw_field_get(RAW_PARTIAL_KEYWORDS, o);
    PyObject *keywords = args && raw ? bring_part(w, SOURCE_PARTIAL_KEYWORDS, s, raw) : NULL;
    if (!keywords)
        return w->stop.broken || PyErr_Occurred() ? NULL
                                                  : world_break(w, REASON_PROTOCOL, "a partial");
    return record_made(w, s, o, partial_of(function, args, keywords));
}

// Whether the terms want a number open that lies in a value: 1, 0, -1.
static int holds_wanted(world *w, source *s, PyObject *o) {
    guard_parts parts = guard_parts_of(o);
    for (Py_ssize_t i = 0; w->terms.symbolic && i < parts.count; i++) {
        source *at = guard_source(w->guards, parts.kind, s, NULL, i);
        if (!at || world_symbolic(w, at))
            return at ? 1 : -1;
        int inside = holds_wanted(w, at, parts.items[i]);
        if (inside)
            return inside;
    }
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *open_slice(world *w, source *s, PyObject *o) {
    PySliceObject *slice = (PySliceObject *)o;
    PyObject *const outside[] = {slice->start, slice->stop, slice->step};
    PyObject *inside[3];
    if (guard_add(w->guards, GUARD_TYPE, s, NULL, (PyObject *)&PySlice_Type, 0) != ST_OK)
        return NULL;
    for (int i = 0; i < 3; i++) {
        source *at = guard_source(w->guards, SOURCE_SLICE_FIELD, s, NULL, i);
        inside[i] = at ? door_bring_number(w, at, outside[i]) : NULL;
        if (!inside[i])
            return NULL;
    }
    return record_made(w, s, o, PySlice_New(inside[0], inside[1], inside[2]));
}

// class Step(int): itself, since C code reads the int in it; the int is guarded. A NaN is hashed by
// its address.
static PyObject *open_value_subclass(world *w, source *s, PyObject *o, bool pinned) {
    PyObject *inside = open_by_type(w, s, o, pinned, RECORD_OBJECT);
    if (!inside || (!pinned && check_base_value(w, s, o) != ST_OK))
        return NULL;
    return value_has_nan(o) && record_identity(w, record_of(w, o)) != ST_OK ? NULL : inside;
}

static PyObject *open_tensor(world *w, source *s, PyObject *o) {
    PyObject *inside = world_tensors->open(w, s, o);
    if (!inside)
        return NULL;
    record *r = record_of(w, o);
    if (!r)
        r = record_new(w, RECORD_TENSOR, s, o, inside);
    Py_DECREF(inside);
    return inside_of(r);
}

static PyObject *open_container(world *w, source *s, PyObject *o, record_kind kind) {
    record *r = record_new(w, kind, s, o, NULL);
    return r && twin_open(w, r) == ST_OK ? r->inside : NULL;
}

// --- which of them ---

static bool is_value_subclass(PyObject *o) {
    return PyLong_Check(o) || PyUnicode_Check(o) || PyFloat_Check(o) || PyBytes_Check(o) ||
           PyComplex_Check(o);
}

// C types without a name here, whose objects a program makes for one use.
static const char *const stateful[] = {
    "_thread.lock", "_thread.RLock", "types.SimpleNamespace", "_queue.SimpleQueue", "_hashlib.HASH",
    "re.Match",     "array.array",   "_contextvars.Context",  "_asyncio.Future",    "_asyncio.Task",
};

// Whether a C type is neither Python's own nor known to the extension: there are no rules for it.
static bool is_foreign(PyTypeObject *t) {
    const char *dot = strchr(t->tp_name, '.');
    if (!dot || world_manner(t) != TYPE_UNKNOWN)
        return false;
    PyObject *known = PySys_GetObject("stdlib_module_names"); // borrowed
    PyObject *package = PyUnicode_FromStringAndSize(t->tp_name, dot - t->tp_name);
    int own = known && PyFrozenSet_Check(known) && package ? PySet_Contains(known, package) : 1;
    Py_XDECREF(package);
    if (PyErr_Occurred())
        PyErr_Clear();
    return own == 0;
}

// C objects whose state changes as they are used: which one it is does not matter to the trace,
// since using it breaks, and what can be read of it is guarded field by field.
static bool is_stateful(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    if (PyIter_Check(o) || t == &PyCoro_Type || t == &PyAsyncGen_Type || t == &PyFrame_Type ||
        t == &PyTraceBack_Type || t == &PySuper_Type || t == &_PyWeakref_RefType)
        return true;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(stateful); i++)
        if (strcmp(t->tp_name, stateful[i]) == 0)
            return true;
    return world_manner(t) == TYPE_STATEFUL || is_foreign(t);
}

// Objects of classes that Python code made, and of C types that may change or be changed.
static PyObject *open_object(world *w, source *s, PyObject *o, bool pinned) {
    PyTypeObject *t = Py_TYPE(o);
    if (t == &PyCell_Type)
        return open_by_type(w, s, o, pinned, RECORD_CELL);
    if (PyContextVar_CheckExact(o))
        return open_by_type(w, s, o, pinned, RECORD_CONTEXT_VAR);
    if (is_enum_member(o))
        return open_by_identity(w, s, o, pinned) && door_guard_type(w, s, o) == ST_OK ? o : NULL;
    if (is_value_subclass(o))
        return open_value_subclass(w, s, o, pinned);
    if (raw_wrapper_descriptor(o))
        return open_wrapper(w, s, o);
    if (value_is_fixed(o))
        return open_by_identity(w, s, o, pinned);
    if (world_manner(t) == TYPE_BY_VALUE)
        return check_equal(w, s, o) == ST_OK ? inside_of(record_new(w, RECORD_OBJECT, s, o, o))
                                             : NULL;
    if (raw_is_python_class(t) || PyModule_Check(o) || PyExceptionInstance_Check(o) ||
        is_stateful(o))
        return open_by_type(w, s, o, pinned, RECORD_OBJECT);
    return open_by_identity(w, s, o, pinned);
}

// No graph can hold some arrays (of texts, of objects, with steps back): any use of one breaks.
static PyObject *open_array(world *w, source *s, PyObject *o, bool pinned) {
    PyObject *inside = world_tensors->open_array(w, s, o);
    if (!inside && (PyErr_Occurred() || w->stop.broken))
        return NULL;
    if (!inside)
        return open_object(w, s, o, pinned);
    record *r = record_new(w, RECORD_TENSOR, s, o, inside);
    Py_DECREF(inside);
    return inside_of(r);
}

static PyObject *open_callable(world *w, source *s, PyObject *o, bool pinned, bool *other) {
    PyTypeObject *t = Py_TYPE(o);
    if (t == &PyFunction_Type)
        return open_function(w, s, o, pinned);
    if (t == &PyMethod_Type)
        return open_method(w, s, o);
    if (PyCFunction_Check(o))
        return open_c_function(w, s, o, pinned);
    if (t == type_partial)
        return open_partial(w, s, o);
    if (PyType_Check(o))
        return open_by_identity(w, s, o, pinned);
    *other = true;
    return NULL;
}

static PyObject *open_fresh(world *w, source *s, PyObject *o, bool pinned) {
    record_kind kind;
    bool other = false;
    int parts = value_immutable(o) ? holds_wanted(w, s, o) : 0;
    if (parts < 0)
        return NULL;
    if (!parts && value_immutable(o))
        return open_value(w, s, o) == ST_OK ? o : NULL;
    if (world_tensors && world_tensors->is_tensor(o))
        return open_tensor(w, s, o);
    if (world_tensors && world_tensors->is_array(o))
        return open_array(w, s, o, pinned);
    PyObject *callable = open_callable(w, s, o, pinned, &other);
    if (!other)
        return callable;
    if (PySlice_Check(o))
        return open_slice(w, s, o);
    if (twin_wanted(o, &kind))
        return open_container(w, s, o, kind);
    if (twin_of_iterator_wanted(w, o))
        return open_container(w, s, o, RECORD_ITERATOR);
    return open_object(w, s, o, pinned);
}

// --- lazies ---

PyObject *door_load(world *w, source *s, PyObject *object) {
    uint64_t *known = map_get(&w->in.lazies, map_key(s));
    if (known) {
        lazy *l = (lazy *)(uintptr_t)*known;
        if (l->outside != object)
            return world_break(w, REASON_ATTRIBUTE, "a value that changed while it was traced");
        return Py_NewRef(l);
    }
    lazy *l = PyObject_New(lazy, &lazy_type);
    if (!l)
        return NULL;
    memset((char *)l + sizeof(PyObject), 0, sizeof(lazy) - sizeof(PyObject));
    l->world = w;
    l->source = s;
    l->outside = Py_NewRef(object);
    if (!world_keep(w, (PyObject *)l))
        return NULL;
    if (map_put(&w->in.lazies, map_key(s), map_key(l)) != ST_OK) {
        l->world = NULL; // what is not in the map is not severed
        return NULL;
    }
    return Py_NewRef(l);
}

// The whole of a recorded object; borrowed.
static PyObject *whole_of(world *w, record *r) {
    if (r->inside)
        return r->inside;
    if (r->kind == RECORD_DICT) {
        names *n = names_of_dict(w, r);
        PyObject *twin = n ? names_fill(w, n) : NULL;
        return twin && record_register(w, r, twin) == ST_OK ? twin : NULL;
    }
    return twin_open(w, r) == ST_OK ? r->inside : NULL;
}

static PyObject *open_at(world *w, source *s, PyObject *o, record **found, bool pinned) {
    record *r = *found ? *found : record_of(w, o);
    if (!r) {
        if (Py_EnterRecursiveCall(" while a value was traced")) // a method of a method of a …
            return NULL;
        PyObject *inside = open_fresh(w, s, o, pinned);
        Py_LeaveRecursiveCall();
        *found = inside ? record_of(w, o) : NULL;
        return inside;
    }
    if (!*found && door_again(w, r, s, pinned) != ST_OK)
        return NULL;
    *found = r;
    return whole_of(w, r);
}

static PyObject *open_lazy(world *w, lazy *l, bool pinned) {
    pinned |= door_pinned(w, l->source);
    PyObject *inside = open_at(w, l->source, l->outside, &l->record, pinned);
    if (!inside)
        return NULL;
    l->type_known = true;
    if (!l->inside)
        l->inside = Py_NewRef(inside);
    return inside;
}

PyObject *door_open_lazy(world *w, lazy *l) {
    if (l->inside)
        return l->inside;
    bool number = l->is_number || l->source->kind == SOURCE_TEXT;
    if (number && number_settled(w, l) != ST_OK)
        return NULL;
    return l->inside ? l->inside : open_lazy(w, l, false);
}

static PyObject *bring(world *w, source *s, PyObject *object, bool pinned) {
    PyObject *l = door_load(w, s, object);
    if (!l)
        return NULL;
    Py_DECREF(l); // the arena has it
    lazy *loaded = (lazy *)l;
    return loaded->inside ? loaded->inside : open_lazy(w, loaded, pinned);
}

PyObject *door_bring(world *w, source *s, PyObject *object) {
    return bring(w, s, object, false);
}

PyObject *door_bring_number(world *w, source *s, PyObject *object) {
    number n;
    PyObject *l = door_load(w, s, object);
    int open = l ? door_number(w, l, &n) : -1;
    Py_XDECREF(l); // the arena has it
    return open < 0 ? NULL : open > 0 ? l : door_open(w, l);
}

PyObject *door_bring_pinned(world *w, source *s, PyObject *object) {
    return bring(w, s, object, true);
}

// --- stages ---

PyTypeObject *door_type(world *w, PyObject *o) {
    if (!is_lazy(o)) {
        const standin_kind *kind = standin_kind_of(o);
        return kind ? kind->type_of(o) : is_address(o) ? &PyLong_Type : Py_TYPE(o);
    }
    lazy *l = (lazy *)o;
    if (!l->type_known && door_guard_type(w, l->source, l->outside) != ST_OK)
        return NULL;
    l->type_known = true;
    return Py_TYPE(l->outside);
}

Py_ssize_t door_items(world *w, PyObject *o) {
    lazy *l = (lazy *)o;
    if (!is_lazy(o) || l->inside || !PyTuple_CheckExact(l->outside) ||
        PyTuple_GET_SIZE(l->outside) == 0 || !value_immutable(l->outside))
        return -1;
    Py_ssize_t length = PyTuple_GET_SIZE(l->outside);
    if (!door_type(w, o) ||
        guard_add(w->guards, GUARD_LENGTH, l->source, NULL, NULL, length) != ST_OK)
        return -1;
    return length;
}

PyObject *door_item(world *w, PyObject *o, Py_ssize_t index) {
    lazy *l = (lazy *)o;
    source *s = guard_source(w->guards, SOURCE_TUPLE_ITEM, l->source, NULL, index);
    return s ? door_load(w, s, PyTuple_GET_ITEM(l->outside, index)) : NULL;
}

static bool is_keyed(PyTypeObject *t) {
    return t == &PyDict_Type || t == &PyODict_Type || t == type_defaultdict;
}

// The lazy's record, made without opening if the object is a dict of a kind that is read by key.
static status door_look(world *w, lazy *l) {
    if (l->record)
        return ST_OK;
    record *r = record_of(w, l->outside);
    if (r) {
        TRY(door_again(w, r, l->source, door_pinned(w, l->source)));
    } else if (is_keyed(Py_TYPE(l->outside))) {
        TRY(door_guard_type(w, l->source, l->outside));
        r = record_new(w, RECORD_DICT, l->source, l->outside, NULL);
        if (!r)
            return w->stop.broken ? ST_BREAK : ST_ERROR;
    }
    l->record = r;
    l->type_known |= r != NULL;
    return ST_OK;
}

record *door_dict(world *w, PyObject *o) {
    if (!is_lazy(o)) {
        record *r = is_keyed(Py_TYPE(o)) ? record_of(w, o) : NULL;
        return r && r->kind == RECORD_DICT ? r : NULL;
    }
    lazy *l = (lazy *)o;
    if (!is_keyed(Py_TYPE(l->outside)) || door_look(w, l) != ST_OK)
        return NULL;
    return l->record && l->record->kind == RECORD_DICT ? l->record : NULL;
}

names *door_namespace(world *w, PyObject *o) {
    lazy *l = (lazy *)o;
    if (!is_lazy(o) || l->inside || !Py_IS_TYPE(l->outside, &PyDictProxy_Type) ||
        l->source->kind != SOURCE_FIELD)
        return NULL;
    for (uint32_t i = 0; i < w->in.all.count; i++) {
        record *r = w->in.all.items[i];
        if (r->source == l->source->parent && PyType_Check(r->outside))
            return names_of_object(w, r);
    }
    return NULL;
}

// --- truth ---

// Builtin containers whose truth is that they are not empty.
static bool is_sized(PyTypeObject *t) {
    return t == &PyList_Type || t == &PyTuple_Type || t == &PyDict_Type || t == &PySet_Type ||
           t == &PyFrozenSet_Type || t == &PyUnicode_Type || t == &PyBytes_Type ||
           t == &PyByteArray_Type || t == &PyRange_Type || is_keyed(t) || t == type_deque;
}

static bool is_number(PyObject *o) {
    return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) || o == Py_None ||
           PyComplex_CheckExact(o) || o == Py_Ellipsis;
}

// A lazy whose object nothing inside stands for yet: emptiness is all that is looked at.
static int truth_unopened(world *w, lazy *l) {
    bool empty = raw_length(l->outside) == 0;
    if (!door_type(w, (PyObject *)l) ||
        guard_add(w->guards, GUARD_EMPTY, l->source, NULL, NULL, empty) != ST_OK)
        return -1;
    return !empty;
}

static int truth_of_lazy(world *w, lazy *l) {
    number n;
    int open = door_number(w, (PyObject *)l, &n);
    if (open != 0)
        return open < 0 ? -1 : number_truth(w, n);
    record *r = l->record ? l->record : record_of(w, l->outside);
    if (!is_sized(Py_TYPE(l->outside)))
        return is_number(l->outside)
                   ? (door_open(w, (PyObject *)l) ? PyObject_IsTrue(l->inside) : -1)
                   : -2;
    bool untouched = !r || (!r->inside && (!r->names || (!r->names->pending && !r->names->twin)));
    if (untouched && (!r || door_look(w, l) == ST_OK))
        return truth_unopened(w, l);
    PyObject *inside = door_open(w, (PyObject *)l);
    return inside ? PyObject_IsTrue(inside) : -1;
}

int door_truth(world *w, PyObject *o) {
    if (is_lazy(o) && !((lazy *)o)->inside)
        return truth_of_lazy(w, (lazy *)o);
    PyObject *inside = is_lazy(o) ? ((lazy *)o)->inside : o;
    return is_sized(Py_TYPE(inside)) || is_number(inside) ? PyObject_IsTrue(inside) : -2;
}
