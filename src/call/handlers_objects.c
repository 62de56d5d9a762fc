// Handlers about objects and classes: attributes, types, super, and object's own methods.
#include "src/py/frame.h"
#include "src/py/raised.h"

#include "src/interp/run.h"

#include "src/attr/attr.h"
#include "src/attr/descr.h"
#include "src/attr/words.h"

#include "src/call/call.h"
#include "src/call/handlers.h"
#include "src/call/native.h"
#include "src/call/special.h"

// --- attributes ---

static bool is_missing(const world *w) {
    return !w->stop.broken && PyErr_ExceptionMatches(PyExc_AttributeError);
}

HANDLER(getattr) {
    PyObject *name = handler_name(w, c->args[1]);
    PyObject *value = name ? attr_get(w, c->args[0], name) : NULL;
    if (value || !name || c->given == 2 || !is_missing(w))
        return value;
    PyErr_Clear();
    return Py_NewRef(c->args[2]);
}

HANDLER(hasattr) {
    PyObject *name = handler_name(w, c->args[1]);
    PyObject *value = name ? attr_get(w, c->args[0], name) : NULL;
    if (!value && (!name || !is_missing(w)))
        return NULL;
    PyErr_Clear();
    Py_XDECREF(value);
    return PyBool_FromLong(value != NULL);
}

typedef int (*writer)(world *w, PyObject *o, PyObject *name, PyObject *value);

static PyObject *set_attribute(world *w, PyObject *const *args, PyObject *value, writer set) {
    PyObject *name = handler_name(w, args[1]);
    return name && set(w, args[0], name, value) == 0 ? Py_NewRef(Py_None) : NULL;
}

// PyObject_SetAttr interns the name: the str that becomes a key is the same in each call. Where this
// call's own str is that one, another call's need not be.
static int set_interned(world *w, PyObject *o, PyObject *name, PyObject *value) {
    PyObject *interned = Py_NewRef(name);
    source *place;
    if (PyUnicode_CheckExact(name))
        PyUnicode_InternInPlace(&interned);
    bool own = interned == name;
    int done = own && value_give_out(w, name, true, &place) != ST_OK ? -1 : 0;
    done = done == 0 ? attr_set(w, o, interned, value) : done;
    Py_DECREF(interned);
    return done;
}

HANDLER(setattr) {
    return set_attribute(w, c->args, c->args[2], set_interned);
}

HANDLER(delattr) {
    return set_attribute(w, c->args, NULL, set_interned);
}

HANDLER(generic_setattr) {
    return set_attribute(w, c->args, c->args[2], attr_set_generic);
}

HANDLER(generic_delattr) {
    return set_attribute(w, c->args, NULL, attr_set_generic);
}

// T.__getattribute__(o, name) of a C type T. Where the type of o does the same, attr_get knows what
// that is; from below a Python __getattribute__ only object's own is known.
HANDLER(getattribute) {
    PyObject *name = handler_name(w, c->args[1]);
    PyTypeObject *type = name ? door_type(w, c->args[0]) : NULL;
    if (!type)
        return NULL;
    void *wrapped = ((PyWrapperDescrObject *)c->callable)->d_wrapped;
    bool python = raw_is_python_class(type) || is_standin(c->args[0]);
    if (!python && wrapped == (void *)type->tp_getattro)
        return attr_get(w, c->args[0], name);
    if (python && wrapped == (void *)PyObject_GenericGetAttr)
        return attr_get_generic(w, c->args[0], name);
    return world_break(w, REASON_ATTRIBUTE, "%s.__getattribute__ of a %s object",
                       PyDescr_TYPE(c->callable)->tp_name, type->tp_name);
}

HANDLER(type_getattribute) {
    PyObject *name = handler_name(w, c->args[1]), *class = name ? door_open(w, c->args[0]) : NULL;
    if (!class)
        return NULL;
    return PyType_Check(class) ? attr_get_class(w, class, name) : handler_misuse(w, c);
}

static PyObject *set_on_class(world *w, PyObject *callable, PyObject *const *args,
                              PyObject *value) {
    PyObject *class = door_open(w, args[0]);
    if (!class)
        return NULL;
    if (Py_IS_TYPE(class, &PyType_Type))
        return set_attribute(w, args, value, attr_set);
    return world_break(w, REASON_CLASS_WRITE, "%s of a %s object", PyDescr_NAME(callable),
                       Py_TYPE(class)->tp_name);
}

HANDLER(type_setattr) {
    return set_on_class(w, c->callable, c->args, c->args[2]);
}

HANDLER(type_delattr) {
    return set_on_class(w, c->callable, c->args, NULL);
}

// One variable of a function's frame; new reference, NULL without an exception if it is unbound.
static PyObject *frame_local(world *w, PyObject *slot, int kind) {
    if (slot && (kind & (CO_FAST_CELL | CO_FAST_FREE)) && PyCell_Check(slot))
        return cell_get(w, slot);
    return Py_XNewRef(slot);
}

static int store_local(world *w, PyObject *dict, PyObject *name, PyObject *slot, int kind) {
    PyObject *value = frame_local(w, slot, kind);
    if (!value && (w->stop.broken || PyErr_Occurred()))
        return -1;
    int failed = 0;
    if (value)
        failed = PyDict_SetItem(dict, name, value);
    else if (PyDict_Contains(dict, name))
        failed = PyDict_DelItem(dict, name);
    Py_XDECREF(value);
    return failed;
}

static bool has_hidden(PyCodeObject *code) {
    const int known = CO_FAST_LOCAL | CO_FAST_CELL | CO_FAST_FREE;
    for (int i = 0; i < code->co_nlocalsplus; i++)
        if (_PyLocals_GetKind(code->co_localspluskinds, i) & ~known)
            return true;
    return false;
}

// A dict that the frame keeps is lost at a break, and one from before a break is not known. Where
// the frame began in this trace and returns next, neither shows.
static bool may_keep(const world *w, const py_frame *frame) {
    const run *r = w->run;
    if (!r || r == w->root || r->frame != frame)
        return false;
    const insn *pc = code_at(r->code, py_frame_lasti(frame));
    return pc && pc + 1 < r->code->insns + r->code->count && pc[1].op == OP_RETURN_VALUE;
}

// locals() in a function. (In a class it is the namespace itself; variables of comprehensions that
// are compiled in place have rules of their own.)
static PyObject *frame_locals(world *w) {
    py_frame *frame = py_current_frame(PyThreadState_Get());
    PyCodeObject *code = py_frame_code(frame);
    if (!(code->co_flags & CO_OPTIMIZED) || has_hidden(code) ||
        (RAW_KEEPS_LOCALS && !may_keep(w, frame)))
        return world_break(w, REASON_FRAME, "locals()");
    PyObject *dict = raw_locals_dict(frame);
    for (int i = 0; dict && i < code->co_nlocalsplus; i++)
        if (store_local(w, dict, PyTuple_GET_ITEM(code->co_localsplusnames, i),
                        py_frame_get(frame, i), _PyLocals_GetKind(code->co_localspluskinds, i)) < 0)
            Py_CLEAR(dict);
    return dict;
}

HANDLER(locals) {
    (void)c;
    return frame_locals(w);
}

HANDLER(vars) {
    if (c->given == 0)
        return frame_locals(w);
    PyObject *value = attr_get(w, c->args[0], word.dict);
    if (!value && is_missing(w))
        PyErr_SetString(PyExc_TypeError, "vars() argument must have __dict__ attribute");
    return value;
}

HANDLER(globals) {
    (void)c;
    py_frame *frame = py_current_frame(PyThreadState_Get());
    PyObject *dict = py_frame_globals(frame);
    record *known = record_of(w, dict);
    if (known)
        return names_as_object(w, names_of_dict(w, known));
    record *function = record_of(w, py_frame_function(frame));
    source *s =
        function ? guard_source(w->guards, SOURCE_GLOBALS, function->source, NULL, 0) : NULL;
    if (!s || !PyDict_CheckExact(dict))
        return PyErr_Occurred() ? NULL : world_break(w, REASON_FRAME, "globals()");
    names *n = names_of_globals(w, s, dict);
    return n ? names_as_object(w, n) : NULL;
}

// --- the thread ---

static bool thread_is(PyObject *object, void *data) {
    (void)object;
    return PyThread_get_thread_ident() == (unsigned long)(uintptr_t)data;
}

static PyObject *thread_text(const char *source, void *data) {
    (void)source;
    return PyUnicode_FromFormat("threading.get_ident() == %zu", (size_t)(uintptr_t)data);
}

HANDLER(thread_ident) {
    (void)c;
    static const guard_custom guard = {.name = "thread", .check = thread_is, .text = thread_text};
    unsigned long ident = PyThread_get_thread_ident();
    if (guard_add_custom(w->guards, NULL, &guard, (void *)(uintptr_t)ident) != ST_OK)
        return NULL;
    return PyLong_FromUnsignedLong(ident);
}

// --- what always breaks ---

HANDLER(address) {
    return world_break(w, REASON_ADDRESS, "%s", c->rule->path);
}

// Whether a guard that asks for this very object is worth it: tensors come as new ones in each
// call.
static bool is_lasting(const record *r) {
    return r->kind != RECORD_TENSOR || r->source->kind != SOURCE_LOCAL;
}

// The number itself where a guard makes it the same in every call; what was made inside is only
// told apart from others. A value may be one object or another, and nobody guards which.
HANDLER(id) {
    PyObject *o = door_open(w, c->args[0]);
    if (!o)
        return NULL;
    record *r = record_of(w, o);
    if (r && is_lasting(r))
        return record_identity(w, r) == ST_OK ? PyLong_FromVoidPtr(r->outside) : NULL;
    bool only = o == Py_None || PyBool_Check(o) || o == Py_Ellipsis || o == Py_NotImplemented;
    if (only || (PyType_Check(o) && !raw_is_python_class((PyTypeObject *)o)))
        return PyLong_FromVoidPtr(o);
    if (r || value_could_be_outside(w, o) || PyMethod_Check(o) || is_trampoline(o))
        return world_break(w, REASON_ADDRESS, "id of a %s object", Py_TYPE(o)->tp_name);
    return address_new(w, o);
}

HANDLER(class_statement) {
    return world_break(w, REASON_CLASS_STATEMENT, "%s", c->rule->path);
}

// --- object's own methods ---

// What object.__init__ asks of the type if there are arguments: whether __new__ and __init__ are
// object's own.
static status guard_makers(world *w, PyTypeObject *type) {
    static const char *const names[] = {"__new__", "__init__"};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++) {
        PyObject *name = PyUnicode_InternFromString(names[i]);
        if (name == NULL)
            return ST_ERROR;
        PyObject *found = type_lookup(w, type, name, NULL);
        Py_DECREF(name);
        if (found == NULL && (w->stop.broken || PyErr_Occurred()))
            return w->stop.broken ? ST_BREAK : ST_ERROR;
    }
    return ST_OK;
}

// object.__init__ looks at how many arguments there are, and at the type's __new__ and __init__.
HANDLER(object_init) {
    PyObject *self = door_open(w, c->args[0]);
    if (!self)
        return NULL;
    if (is_standin(self))
        return world_break(w, REASON_NATIVE_CALL, "object.__init__ of a tensor");
    if (c->given == 1 && !c->keywords)
        return Py_NewRef(Py_None);
    if (guard_makers(w, Py_TYPE(self)) != ST_OK)
        return NULL;
    PyObject **all = PyMem_New(PyObject *, call_count(c));
    if (!all)
        return PyErr_NoMemory();
    all[0] = self;
    memcpy(all + 1, c->args + 1, (call_count(c) - 1) * sizeof(PyObject *));
    PyObject *result = call_native(w, c->callable, all, c->given, c->keywords, false);
    PyMem_Free(all);
    return result;
}

HANDLER(object_eq) {
    int same = door_is(w, c->args[0], c->args[1]);
    return same < 0 ? NULL : Py_NewRef(same ? Py_True : Py_NotImplemented);
}

// The inverse of what the type's own == says.
HANDLER(object_ne) {
    PyObject *name = PyUnicode_InternFromString("__eq__");
    PyObject *method = name ? attr_special(w, c->args[0], name) : NULL;
    PyObject *equal = method ? call_with(w, method, &c->args[1], 1) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(method);
    int not = equal ? door_is(w, equal, Py_NotImplemented) : -1;
    PyObject *result = NULL;
    if (not > 0)
        result = Py_NewRef(Py_NotImplemented);
    int truth = not == 0 ? op_truth(w, equal) : -1;
    if (truth >= 0)
        result = PyBool_FromLong(!truth);
    Py_XDECREF(equal);
    return result;
}

static PyObject *call_special(world *w, PyObject *o, const char *special) {
    PyObject *name = PyUnicode_InternFromString(special);
    PyObject *method = name ? attr_special(w, o, name) : NULL;
    PyObject *result = method ? call_with(w, method, NULL, 0) : NULL;
    if (!method && !w->stop.broken && !PyErr_Occurred())
        world_break(w, REASON_PROTOCOL, "%s of a %s object", special, Py_TYPE(o)->tp_name);
    Py_XDECREF(name);
    Py_XDECREF(method);
    return result;
}

HANDLER(object_str) {
    return call_special(w, c->args[0], "__repr__");
}

HANDLER(object_format) {
    PyObject *spec = door_open(w, c->args[1]), *self = spec ? door_open(w, c->args[0]) : NULL;
    if (!self)
        return NULL;
    if (!PyUnicode_CheckExact(spec) || is_standin(self))
        return world_break(w, REASON_NATIVE_CALL, "object.__format__");
    if (PyUnicode_GET_LENGTH(spec) == 0)
        return call_special(w, self, "__str__");
    PyErr_Format(PyExc_TypeError, "unsupported format string passed to %.200s.__format__",
                 Py_TYPE(self)->tp_name);
    return NULL;
}

// What hash() makes of the number that __hash__ gave (slot_tp_hash).
static PyObject *as_hash(world *w, PyObject *function, PyObject *number) {
    Py_ssize_t hash = PyLong_AsSsize_t(number);
    if (hash == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return call_native(w, function, &number, 1, NULL, false);
    }
    return PyLong_FromSsize_t(hash == -1 ? -2 : hash);
}

// hash() of an object of a Python class, by its own __hash__; that there is none is guarded as
// well.
static PyObject *hash_by_method(world *w, PyObject *function, PyObject *o) {
    PyObject *name = PyUnicode_InternFromString("__hash__"), *result = NULL;
    way own;
    status st = name ? way_find(w, Py_TYPE(o), name, NULL, &own) : ST_ERROR;
    Py_XDECREF(name);
    if (st != ST_OK)
        return NULL;
    if (Py_TYPE(o)->tp_hash == PyObject_HashNotImplemented)
        return call_native(w, function, &o, 1, NULL, false);
    PyObject *value = call_special(w, o, "__hash__");
    PyObject *opened = value ? door_open(w, value) : NULL;
    if (opened && PyLong_Check(opened))
        result = as_hash(w, function, opened);
    else if (opened)
        PyErr_SetString(PyExc_TypeError, "__hash__ method should return an integer");
    Py_XDECREF(value);
    return result;
}

// How many objects are looked at: sets of sets of sets are large.
enum { LOOKED_AT = 1000 };

static bool hash_lasts(world *w, PyObject *o, int *left);

// Of all that a tuple, a frozenset or a slice holds.
static bool hashes_last(world *w, PyObject *o, int *left) {
    PyObject *item;
    bool all = true;
    for (Py_ssize_t i = 0; all && PyTuple_Check(o) && i < PyTuple_GET_SIZE(o); i++)
        all = hash_lasts(w, PyTuple_GET_ITEM(o, i), left);
    for (Py_ssize_t at = 0; all && PyFrozenSet_Check(o) && raw_set_next(o, &at, &item);)
        all = hash_lasts(w, item, left);
    if (!PySlice_Check(o))
        return all;
    PySliceObject *s = (PySliceObject *)o;
    return hash_lasts(w, s->start, left) && hash_lasts(w, s->stop, left) &&
           hash_lasts(w, s->step, left);
}

// Whether a hash is the same in every call: of values (but a NaN is hashed by its address), of an
// object whose __hash__ is Python code (which is interpreted), of one that a guard lets pass by its
// identity.
static bool hash_lasts(world *w, PyObject *o, int *left) {
    if (--*left < 0 || is_standin(o) || is_address(o))
        return false;
    if (PyTuple_CheckExact(o) || PyFrozenSet_CheckExact(o))
        return hashes_last(w, o, left);
    if (value_has_nan(o))
        return false;
    if (value_immutable(o) || special_is_python(w, o, SPECIAL_hash) == 1)
        return true;
    record *r = record_of(w, o);
    bool known = r && (r->identity || r->pinned);
    bool class = PyType_Check(o) && !type_is_made(w, (PyTypeObject *)o);
    return (known || class) && Py_TYPE(o)->tp_hash == PyBaseObject_Type.tp_hash;
}

// The number, by C code alone. `lasts` says whether it is the same in every call.
static PyObject *hash_natively(world *w, PyObject *function, PyObject *o,
                               bool (*lasts)(world *, PyObject *, int *)) {
    int left = LOOKED_AT;
    bool never = Py_TYPE(o)->tp_hash == PyObject_HashNotImplemented;
    if (!never && world_pin_hashed(w) != ST_OK)
        return NULL;
    if (never || lasts(w, o, &left))
        return call_native(w, function, &o, 1, NULL, false);
    return world_break(w, REASON_ADDRESS, "hash() of a %s object", Py_TYPE(o)->tp_name);
}

HANDLER(hash) {
    PyObject *o = native_open(w, c->args[0], P_NONE), *result = NULL;
    if (!o)
        return NULL;
    bool value = value_immutable(o), holds = PyTuple_Check(o) || PyFrozenSet_Check(o);
    status st = holds && !value ? protocol_open_elements(w, &o, P_HASH) : ST_OK;
    if (st == ST_OK && raw_is_python_class(Py_TYPE(o)) && !is_standin(o))
        result = hash_by_method(w, c->callable, o);
    else if (st == ST_OK)
        result = hash_natively(w, c->callable, o, hash_lasts);
    Py_DECREF(o);
    return result;
}

// tuple.__hash__ and its like.
HANDLER(hash_of_parts) {
    PyObject *o = native_open(w, c->args[0], P_NONE), *result = NULL;
    if (o && protocol_open_elements(w, &o, P_HASH) == ST_OK)
        result = hash_natively(w, c->callable, o, hashes_last);
    Py_XDECREF(o);
    return result;
}

HANDLER(callable) {
    PyTypeObject *type = door_type(w, c->args[0]);
    if (!type)
        return NULL;
    way call;
    if (raw_is_python_class(type) && way_find(w, type, word.call, NULL, &call) != ST_OK)
        return NULL;
    return PyBool_FromLong(type->tp_call != NULL);
}

// --- types ---

HANDLER(type) {
    if (c->given != 1 || c->keywords)
        return world_break(w, REASON_CLASS_STATEMENT, "type(name, bases, namespace)");
    PyTypeObject *type = door_type(w, c->args[0]);
    return type ? Py_XNewRef(class_value(w, type)) : NULL;
}

HANDLER(type_call) {
    PyObject *class = door_open(w, c->args[0]);
    if (!class)
        return NULL;
    if (!PyType_Check(class))
        return handler_misuse(w, c);
    call rest = *c;
    rest.callable = class;
    rest.args++;
    rest.given--;
    return call_type_call(w, &rest);
}

// "<class 'module.name'>", from names that are read through the door.
HANDLER(type_repr) {
    PyObject *module = attr_get(w, c->args[0], word.module);
    PyObject *name = module ? attr_get(w, c->args[0], word.qualname) : NULL;
    PyObject *m = name ? door_open(w, module) : NULL, *n = m ? door_open(w, name) : NULL;
    PyObject *text = NULL;
    if (n && PyUnicode_CheckExact(n)) {
        bool bare = !PyUnicode_Check(m) || PyUnicode_CompareWithASCIIString(m, "builtins") == 0;
        text = bare ? PyUnicode_FromFormat("<class '%U'>", n)
                    : PyUnicode_FromFormat("<class '%U.%U'>", m, n);
    } else if (n)
        world_break(w, REASON_ATTRIBUTE, "a class whose name is a %s object", Py_TYPE(n)->tp_name);
    Py_XDECREF(module);
    Py_XDECREF(name);
    return text;
}

// --- super ---

// The cell of `__class__` in the running frame, and its first argument; new references.
static int find_super(world *w, py_frame *frame, PyObject **type, PyObject **self) {
    PyCodeObject *code = py_frame_code(frame);
    PyObject *first = code->co_argcount ? py_frame_get(frame, 0) : NULL;
    if (first && PyCell_Check(first) &&
        (_PyLocals_GetKind(code->co_localspluskinds, 0) & CO_FAST_CELL))
        *self = cell_get(w, first);
    else
        *self = Py_XNewRef(first);
    for (int i = code->co_nlocalsplus - code->co_nfreevars; i < code->co_nlocalsplus; i++) {
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0 && py_frame_get(frame, i))
            *type = cell_get(w, py_frame_get(frame, i));
    }
    if (*type && *self)
        return 0;
    if (!w->stop.broken && !PyErr_Occurred())
        world_break(w, REASON_FRAME, "super() without a class or an argument");
    return -1;
}

static PyObject *make_super(world *w, PyObject *type, PyObject *self) {
    PyObject *class = door_open(w, type), *object = class ? door_open(w, self) : NULL;
    if (!object)
        return NULL;
    if (is_standin(object) || !PyType_Check(class))
        return world_break(w, REASON_ATTRIBUTE, "super() of a %s object", Py_TYPE(object)->tp_name);
    PyTypeObject *start = PyType_Check(object) ? (PyTypeObject *)object : Py_TYPE(object);
    if (!PyType_IsSubtype(start, (PyTypeObject *)class) &&
        !PyObject_TypeCheck(object, (PyTypeObject *)class))
        return world_break(w, REASON_ATTRIBUTE, "super() of an object that is no instance");
    PyObject *parts[] = {class, object};
    return call_native(w, (PyObject *)&PySuper_Type, parts, 2, NULL, false);
}

HANDLER(super) {
    PyObject *type = NULL, *self = NULL, *result = NULL;
    if (c->given == 1)
        return world_break(w, REASON_NATIVE_CALL, "super(type)");
    if (c->given == 2)
        return make_super(w, c->args[0], c->args[1]);
    if (find_super(w, py_current_frame(PyThreadState_Get()), &type, &self) == 0)
        result = make_super(w, type, self);
    Py_XDECREF(type);
    Py_XDECREF(self);
    return result;
}

// --- property ---

static PyObject *call_accessor(world *w, PyObject *property, const char *which,
                               PyObject *const *args, size_t count, const char *missing) {
    PyObject *function = handler_attr(w, property, which), *result = NULL;
    int none = function ? door_is(w, function, Py_None) : -1;
    if (none == 0)
        result = call_with(w, function, args, count);
    else if (none > 0)
        world_break(w, REASON_ATTRIBUTE, "a property without %s", missing);
    Py_XDECREF(function);
    return result;
}

HANDLER(property_get) {
    int none = door_is(w, c->args[1], Py_None);
    if (none)
        return none < 0 ? NULL : Py_NewRef(c->args[0]);
    return call_accessor(w, c->args[0], "fget", c->args + 1, 1, "a getter");
}

HANDLER(property_set) {
    PyObject *result = call_accessor(w, c->args[0], "fset", c->args + 1, 2, "a setter");
    if (result)
        Py_SETREF(result, Py_NewRef(Py_None));
    return result;
}

HANDLER(property_delete) {
    PyObject *result = call_accessor(w, c->args[0], "fdel", c->args + 1, 1, "a deleter");
    if (result)
        Py_SETREF(result, Py_NewRef(Py_None));
    return result;
}

// --- other descriptors ---

// torch.Tensor.shape.__get__(x): as x.shape, if that is what it is.
static PyObject *get_of_standin(world *w, const standin_kind *kind, PyObject *raw, PyObject *o) {
    bool named = PyObject_TypeCheck(raw, &PyGetSetDescr_Type) ||
                 PyObject_TypeCheck(raw, &PyMethodDescr_Type);
    if (named && _PyType_Lookup(kind->type_of(o), PyDescr_NAME(raw)) == raw)
        return kind->get(w, o, PyDescr_NAME(raw));
    return world_break(w, REASON_NATIVE_CALL, "a descriptor's __get__ of a tensor");
}

// What is found on a type does this by itself; here the program asks for it.
HANDLER(descriptor_get) {
    PyObject *raw = door_open(w, c->args[0]);
    int none = raw ? door_is(w, c->args[1], Py_None) : -1;
    PyObject *o = none == 0 ? door_open(w, c->args[1]) : NULL;
    if (none < 0 || (none == 0 && !o))
        return NULL;
    const standin_kind *kind = o ? standin_kind_of(o) : NULL;
    if (kind)
        return get_of_standin(w, kind, raw, o);
    PyObject *type = c->given == 3 ? door_open(w, c->args[2]) : Py_None;
    if (type == Py_None && o)
        type = (PyObject *)Py_TYPE(o);
    if (!type || !PyType_Check(type))
        return !type ? NULL : world_break(w, REASON_NATIVE_CALL, "a descriptor's __get__");
    descr d;
    if (descr_of(w, raw, raw, &d) != ST_OK)
        return NULL;
    return descr_get(w, &d, o, (PyTypeObject *)type);
}

// --- partial, weak references, context variables ---

// A partial of a partial takes the inner one apart natively.
HANDLER(partial) {
    size_t at = PyType_Check(c->callable) ? 0 : 1, all = call_count(c);
    PyObject **opened = PyMem_New(PyObject *, all), *result = NULL;
    if (!opened)
        return PyErr_NoMemory();
    memcpy(opened, c->args, all * sizeof(PyObject *));
    bool ready = true;
    for (size_t i = 0; i <= at && ready; i++)
        ready = (opened[i] = door_open(w, c->args[i])) != NULL;
    if (ready && PyObject_TypeCheck(opened[at], word.partial) && record_itself(w, opened[at]))
        world_break(w, REASON_NATIVE_CALL, "a partial of a partial from outside");
    else if (ready)
        result = call_native(w, c->callable, opened, c->given, c->keywords, is_standin(opened[at]));
    PyMem_Free(opened);
    return result;
}

HANDLER(weakref_call) {
    PyObject *self = door_open(w, c->args[0]);
    record *r = self ? record_of(w, self) : NULL;
    PyObject *object = r ? raw_weakref_get(self) : NULL;
    if (!object)
        return !self || PyErr_Occurred() ? NULL
                                         : world_break(w, REASON_NATIVE_CALL, "a weak reference");
    source *s = guard_source(w->guards, SOURCE_WEAKREF, r->source, NULL, 0);
    return s ? door_load(w, s, object) : NULL;
}

// A proxy of something made inside; its attributes are those of what it stands for (attr.c).
HANDLER(weakref_proxy) {
    PyObject *o = c->given == 1 ? door_open(w, c->args[0]) : NULL;
    if (w->stop.broken || PyErr_Occurred())
        return NULL;
    if (!o || record_of(w, o) || is_standin(o) || !raw_is_python_class(Py_TYPE(o)) ||
        PyType_Check(o) || PyCallable_Check(o))
        return world_break(w, REASON_NATIVE_CALL, "weakref.proxy of a %s object",
                           Py_TYPE(o ? o : c->args[0])->tp_name);
    PyObject *proxy = call_native(w, c->callable, &o, 1, NULL, false);
    if (proxy && (world_born(w, proxy) != ST_OK || world_born(w, o) != ST_OK))
        Py_CLEAR(proxy);
    return proxy;
}

// The variable itself is guarded, and its default is its own for good.
static PyObject *context_default(world *w, PyObject *variable) {
    PyObject *value = raw_context_default(variable);
    if (value == NULL) {
        PyErr_SetObject(PyExc_LookupError, variable);
        return NULL;
    }
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, value, 0);
    return s ? door_load(w, s, value) : NULL;
}

HANDLER(context_get) {
    PyObject *variable = door_open(w, c->args[0]);
    PyObject *value = variable ? context_get(w, variable) : NULL;
    if (value || w->stop.broken || PyErr_Occurred())
        return value;
    return c->given == 2 ? Py_NewRef(c->args[1]) : context_default(w, variable);
}

// A token of ours is a real one, of a variable that nobody else knows: its old value is (the
// program's variable, what that held before, or nothing). It cannot be rebuilt, so a trace that
// ends while it is needed breaks before `set`.
static PyObject *token_variable(void) {
    static PyObject *variable;
    if (!variable)
        variable = PyContextVar_New("stator's", NULL);
    return variable;
}

// The variable is unset again for the context: what copies that must not see it.
static PyObject *token_new(PyObject *variable, PyObject *old) {
    PyObject *ours = token_variable();
    PyObject *data = !ours ? NULL
                     : old ? PyTuple_Pack(2, variable, old)
                           : PyTuple_Pack(1, variable);
    PyObject *first = data ? PyContextVar_Set(ours, data) : NULL;
    PyObject *token = first ? PyContextVar_Set(ours, Py_None) : NULL;
    if (first && PyContextVar_Reset(ours, first) < 0)
        Py_CLEAR(token);
    Py_XDECREF(data);
    Py_XDECREF(first);
    return token;
}

// Marks it as used; NULL with an exception if it was already. New reference to its data.
static PyObject *token_use(PyObject *token) {
    PyObject *ours = token_variable();
    PyObject *data = PyObject_GetAttrString(token, "old_value");
    PyObject *unset = data ? PyContextVar_Set(ours, Py_None) : NULL;
    int used = unset ? PyContextVar_Reset(ours, token) : -1;
    py_raised aside = py_put_aside();
    if (unset && PyContextVar_Reset(ours, unset) < 0)
        PyErr_WriteUnraisable(ours);
    py_put_on(aside);
    Py_XDECREF(unset);
    if (used < 0)
        Py_CLEAR(data);
    return data;
}

static bool is_our_token(PyObject *token) {
    if (!PyContextToken_CheckExact(token))
        return false;
    PyObject *of = PyObject_GetAttrString(token, "var");
    Py_XDECREF(of); // the token has it
    return of && of == token_variable();
}

HANDLER(context_set) {
    PyObject *variable = door_open(w, c->args[0]);
    PyObject *old = variable ? context_get(w, variable) : NULL;
    if (!old && (!variable || w->stop.broken || PyErr_Occurred()))
        return NULL;
    PyObject *token = token_new(variable, old);
    Py_XDECREF(old);
    if (token && context_set(w, variable, c->args[1]) != ST_OK)
        Py_CLEAR(token);
    return token;
}

// Of another token, or of another variable: CPython decides.
HANDLER(context_reset) {
    PyObject *variable = door_open(w, c->args[0]),
             *token = variable ? door_open(w, c->args[1]) : NULL;
    if (!token)
        return NULL;
    if (!is_our_token(token))
        return PyErr_Occurred() ? NULL : world_break(w, REASON_NATIVE_CALL, "a token made outside");
    PyObject *data = token_use(token);
    if (!data) {
        PyErr_Clear();
        return world_break(w, REASON_NATIVE_CALL, "a token that was used before");
    }
    bool fits = PyTuple_GET_ITEM(data, 0) == variable;
    PyObject *old = PyTuple_GET_SIZE(data) > 1 ? PyTuple_GET_ITEM(data, 1) : NULL;
    status done = fits ? context_set(w, variable, old) : ST_BREAK;
    Py_DECREF(data);
    if (!fits)
        return world_break(w, REASON_NATIVE_CALL, "a token of another variable");
    return done == ST_OK ? Py_NewRef(Py_None) : NULL;
}

// --- exceptions ---

// What the text of an exception shows of its arguments is opened first.
HANDLER(exception_text) {
    PyObject *self = door_open(w, c->args[0]);
    if (!self)
        return NULL;
    if (!PyExceptionInstance_Check(self) || record_of(w, self))
        return world_break(w, REASON_NATIVE_CALL, "the text of an exception from outside");
    PyObject *owned = Py_NewRef(self);
    status st = protocol_open_elements(w, &owned, P_STR | P_REPR);
    PyObject *text = st == ST_OK ? call_native(w, c->callable, &owned, 1, NULL, false) : NULL;
    Py_DECREF(owned);
    return text;
}
