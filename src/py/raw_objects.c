// Reads classes, sets, methods, functions and other C objects field by field, where CPython has no
// function that does so without running code or making an object.
#include "src/py/raw.h"
#include "src/py/frame.h"

#include <internal/pycore_context.h>

// --- classes ---

PyObject *raw_type_dict(PyTypeObject *type) {
#if PY_VERSION_HEX >= 0x030c0000
    PyObject *dict = PyType_GetDict(type); // builtin types keep theirs in the interpreter
    Py_XDECREF(dict);
    return dict;
#else
    return type->tp_dict;
#endif
}

raw raw_type_get(PyTypeObject *type, PyObject *name, PyObject **value) {
    PyObject *mro = type->tp_mro;
    *value = NULL;
    if (!mro)
        return RAW_UNSURE;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *dict = raw_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        raw there = dict ? raw_dict_get(dict, name, value) : RAW_ABSENT;
        if (there != RAW_ABSENT)
            return there;
    }
    return RAW_ABSENT;
}

unsigned raw_type_version_make(PyTypeObject *type, PyObject *name) {
    unsigned version = raw_type_version(type);
    if (version != 0)
        return version;
#if PY_VERSION_HEX >= 0x030c0000
    (void)name;
    PyUnstable_Type_AssignVersionTag(type);
#else
    _PyType_Lookup(type, name); // gives one as it fills CPython's own cache
#endif
    return raw_type_version(type);
}

static bool is_object_member(const PyMemberDef *m) {
    return m->type == T_OBJECT || m->type == T_OBJECT_EX;
}

static const PyMemberDef *member_at(PyTypeObject *type, Py_ssize_t offset) {
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        const PyMemberDef *m = ((PyTypeObject *)PyTuple_GET_ITEM(mro, i))->tp_members;
        for (; m && m->name; m++)
            if (m->offset == offset && is_object_member(m))
                return m;
    }
    return NULL;
}

static raw member_get(PyObject *o, const PyMemberDef *m, PyObject **value) {
    *value = *(PyObject **)((char *)o + m->offset);
    if (!*value && m->type == T_OBJECT)
        *value = Py_None;
    return *value ? RAW_FOUND : RAW_ABSENT;
}

raw raw_slot_get(PyObject *o, Py_ssize_t offset, PyObject **value) {
    const PyMemberDef *m = member_at(Py_TYPE(o), offset);
    *value = NULL;
    return m ? member_get(o, m, value) : RAW_UNSURE;
}

// --- fields ---

static PyTypeObject *deque_type, *method_wrapper_type; // borrowed: kept alive for good
static PyTypeObject *local_type;                       // threading.local; strong

static struct field {
    PyTypeObject *type;
    const char *name;
    const PyMemberDef *member;
} fields[RAW_FIELDS] = {
    [RAW_CLASSMETHOD_FUNC] = {&PyClassMethod_Type, "__func__", NULL},
    [RAW_STATICMETHOD_FUNC] = {&PyStaticMethod_Type, "__func__", NULL},
    [RAW_PROPERTY_GET] = {&PyProperty_Type, "fget", NULL},
    [RAW_PROPERTY_SET] = {&PyProperty_Type, "fset", NULL},
    [RAW_PROPERTY_DEL] = {&PyProperty_Type, "fdel", NULL},
    [RAW_PARTIAL_FUNC] = {NULL, "func", NULL},
    [RAW_PARTIAL_ARGS] = {NULL, "args", NULL},
    [RAW_PARTIAL_KEYWORDS] = {NULL, "keywords", NULL},
    [RAW_SUPER_TYPE] = {&PySuper_Type, "__thisclass__", NULL},
    [RAW_SUPER_SELF] = {&PySuper_Type, "__self__", NULL},
    [RAW_DEFAULT_FACTORY] = {NULL, "default_factory", NULL},
    [RAW_RANGE_START] = {&PyRange_Type, "start", NULL},
    [RAW_RANGE_STOP] = {&PyRange_Type, "stop", NULL},
    [RAW_RANGE_STEP] = {&PyRange_Type, "step", NULL},
};

static const PyMemberDef *member_named(PyTypeObject *type, const char *name) {
    const PyMemberDef *m = type->tp_members;
    for (; m && m->name; m++)
        if (strcmp(m->name, name) == 0 && is_object_member(m))
            return m;
    return NULL;
}

// The last field of the struct, in all versions.
bool raw_property_has_getters_doc(PyObject *o) {
    Py_ssize_t at = PyProperty_Type.tp_basicsize - (Py_ssize_t)sizeof(void *);
    return *(int *)(void *)((char *)o + at) != 0;
}

PyObject *raw_field_get(raw_field field, PyObject *o) {
    const struct field *f = &fields[field];
    PyObject *value;
    if (!f->member || !PyObject_TypeCheck(o, f->type))
        return NULL;
    return member_get(o, f->member, &value) == RAW_FOUND ? value : NULL;
}

// --- functools.lru_cache ---

// As in Modules/_functoolsmodule.c, the same in all versions; learn_cached looks whether it is.
typedef struct cached_link {
    PyObject_HEAD
    struct cached_link *before, *after;
    Py_hash_t hash;
    PyObject *key, *result;
} cached_link;

typedef struct cached {
    cached_link root;
    void *wrapper;
    int typed;
    PyObject *results;
    Py_ssize_t hits;
    PyObject *function;
    Py_ssize_t limit, misses; // limit: -1 none, 0 nothing is kept
    PyObject *mark;
    PyTypeObject *link_type;
    PyObject *info, *dict, *weak;
} cached;

static PyTypeObject *cached_type, *cached_link_type; // NULL: laid out in another way

// One with known parts tells whether they lie where they are looked for.
static int learn_cached(PyTypeObject *type) {
    if (type->tp_basicsize != sizeof(cached))
        return 0;
    PyObject *function = (PyObject *)&PyLong_Type, *info = (PyObject *)&PyTuple_Type;
    PyObject *made = PyObject_CallFunction((PyObject *)type, "OiOO", function, 7, Py_True, info);
    cached *c = (cached *)made;
    if (made && c->function == function && c->limit == 7 && c->typed == 1 && c->info == info &&
        c->results && PyDict_CheckExact(c->results) && c->mark && PyType_Check(c->link_type) &&
        c->link_type->tp_basicsize == sizeof(cached_link)) {
        cached_type = type;
        cached_link_type = (PyTypeObject *)Py_NewRef(c->link_type);
    }
    Py_XDECREF(made);
    return made ? 0 : -1;
}

bool raw_cached_parts(PyObject *o, raw_cached *parts) {
    const cached *c = (cached *)o;
    if (!cached_type || !Py_IS_TYPE(o, cached_type) || !c->function || !c->results || !c->mark)
        return false;
    *parts = (raw_cached){.function = c->function,
                          .results = c->results,
                          .mark = c->mark,
                          .typed = c->typed,
                          .keeps = c->limit != 0,
                          .bounded = c->limit > 0,
                          .room = c->limit < 0 || PyDict_GET_SIZE(c->results) < c->limit};
    return true;
}

PyObject *raw_cached_result(PyObject *link) {
    bool known = cached_link_type && Py_IS_TYPE(link, cached_link_type);
    return known ? ((cached_link *)link)->result : NULL;
}

void raw_cached_expect(PyObject *o) {
    ((cached *)o)->hits--;
}

// lru_cache_extract_link and lru_cache_append_link. One that was thrown out meanwhile points to
// whatever was beside it.
void raw_cached_hit(PyObject *o, PyObject *link) {
    cached *c = (cached *)o;
    cached_link *l = (cached_link *)link, *root = &c->root, *last = root->before;
    PyObject *there;
    c->hits++;
    if (!l || l == last || raw_dict_get(c->results, l->key, &there) != RAW_FOUND || there != link)
        return;
    l->before->after = l->after;
    l->after->before = l->before;
    last->after = root->before = l;
    l->before = last;
    l->after = root;
}

// --- setting up ---

// A type from a module, for good.
static PyTypeObject *take_type(const char *module, const char *name) {
    PyObject *type = py_import(module, name);
    if (type && !PyType_Check(type)) {
        PyErr_Format(PyExc_SystemError, "%s.%s is not a type", module, name);
        Py_CLEAR(type);
    }
    return (PyTypeObject *)type;
}

static int take_types(void) {
    PyTypeObject *partial = take_type("_functools", "partial");
    PyTypeObject *defaultdict = partial ? take_type("_collections", "defaultdict") : NULL;
    PyTypeObject *deque = defaultdict ? take_type("_collections", "deque") : NULL;
    PyTypeObject *lru = deque ? take_type("_functools", "_lru_cache_wrapper") : NULL;
    local_type = lru ? take_type("_thread", "_local") : NULL;
    if (!local_type || learn_cached(lru) < 0) {
        Py_XDECREF(partial);
        Py_XDECREF(defaultdict);
        Py_XDECREF(deque);
        Py_XDECREF(lru);
        Py_CLEAR(local_type);
        return -1;
    }
    fields[RAW_PARTIAL_FUNC].type = fields[RAW_PARTIAL_ARGS].type = partial;
    fields[RAW_PARTIAL_KEYWORDS].type = partial;
    fields[RAW_DEFAULT_FACTORY].type = defaultdict;
    deque_type = deque;
    return 0;
}

// The type of a bound slot has no name that every version exports.
static int take_method_wrapper(void) {
    PyObject *bound = PyObject_GetAttrString(Py_None, "__repr__");
    if (!bound)
        return -1;
    method_wrapper_type = (PyTypeObject *)Py_NewRef(Py_TYPE(bound));
    Py_DECREF(bound);
    return 0;
}

int raw_setup(void) {
    if (deque_type)
        return 0;
    if (take_method_wrapper() < 0 || take_types() < 0)
        return -1;
    for (int i = 0; i < RAW_FIELDS; i++)
        fields[i].member = member_named(fields[i].type, fields[i].name);
    return 0;
}

// --- containers ---

static Py_ssize_t range_length(PyObject *o) {
    Py_ssize_t length = PyObject_Size(o);
    if (length < 0)
        PyErr_Clear(); // too large for the machine
    return length;
}

static Py_ssize_t text_length(PyObject *o) {
    Py_ssize_t length = PyUnicode_GetLength(o);
    if (length < 0)
        PyErr_Clear();
    return length;
}

bool raw_is_deque(PyObject *o) {
    return deque_type && PyObject_TypeCheck(o, deque_type);
}

Py_ssize_t raw_length(PyObject *o) {
    if (PyList_Check(o) || PyTuple_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o))
        return Py_SIZE(o);
    if (PyDict_Check(o))
        return PyDict_GET_SIZE(o);
    if (PyAnySet_Check(o))
        return PySet_GET_SIZE(o);
    if (PyUnicode_Check(o))
        return text_length(o);
    if (raw_is_deque(o))
        return Py_SIZE(o);
    if (PyRange_Check(o))
        return range_length(o);
    PyObject *behind = raw_view_mapping(o);
    return behind && PyDict_Check(behind) ? PyDict_GET_SIZE(behind) : -1;
}

bool raw_set_next(PyObject *set, Py_ssize_t *at, PyObject **item) {
    Py_hash_t hash;
    return _PySet_NextEntry(set, at, item, &hash);
}

PyObject *raw_deque_item(PyObject *deque, Py_ssize_t index) {
    if (!raw_is_deque(deque) || index < 0 || index >= Py_SIZE(deque))
        return NULL;
    PyObject *item = deque_type->tp_as_sequence->sq_item(deque, index);
    if (!item)
        PyErr_Clear();
    Py_XDECREF(item); // the deque has it
    return item;
}

// --- what stands for something else ---

// As in Objects/descrobject.c, the same in all versions.
typedef struct mapping_proxy {
    PyObject_HEAD
    PyObject *mapping;
} mapping_proxy;

typedef struct method_wrapper {
    PyObject_HEAD
    PyObject *descriptor, *self;
} method_wrapper;

PyObject *raw_view_mapping(PyObject *o) {
    if (PyDictKeys_Check(o) || PyDictValues_Check(o) || PyDictItems_Check(o))
        return (PyObject *)((_PyDictViewObject *)o)->dv_dict;
    return Py_IS_TYPE(o, &PyDictProxy_Type) ? ((mapping_proxy *)o)->mapping : NULL;
}

PyObject *raw_wrapper_descriptor(PyObject *o) {
    return Py_IS_TYPE(o, method_wrapper_type) ? ((method_wrapper *)o)->descriptor : NULL;
}

PyObject *raw_method_self(PyObject *o) {
    if (PyMethod_Check(o))
        return PyMethod_GET_SELF(o);
    if (PyCFunction_Check(o))
        return PyCFunction_GET_SELF(o);
    return Py_IS_TYPE(o, method_wrapper_type) ? ((method_wrapper *)o)->self : NULL;
}

PyObject *raw_method_wrapped(PyObject *o) {
    return Py_IS_TYPE(o, method_wrapper_type) ? ((method_wrapper *)o)->descriptor : NULL;
}

// paramspecattr_dealloc (3.12 and on) does not clear them: they point to freed memory.
bool raw_can_be_weak(PyObject *o) {
    const char *name = Py_TYPE(o)->tp_name;
    return Py_TYPE(o)->tp_weaklistoffset != 0 && strcmp(name, "typing.ParamSpecArgs") != 0 &&
           strcmp(name, "typing.ParamSpecKwargs") != 0;
}

static PyObject *referent(PyObject *o) {
    PyObject *there = ((PyWeakReference *)o)->wr_object;
    return !there || Py_REFCNT(there) <= 0 ? Py_None : there;
}

PyObject *raw_weakref_get(PyObject *o) {
    return PyWeakref_CheckRef(o) ? referent(o) : NULL;
}

bool raw_is_thread_local(PyTypeObject *type) {
    return local_type && PyType_IsSubtype(type, local_type);
}

// As Modules/_threadmodule.c names it in the thread's own dict; since 3.13 it is not there.
static bool has_thread_dict(PyObject *o) {
    PyObject *all = PyThreadState_GetDict(), *key = PyUnicode_FromFormat("thread.local.%p", o);
    bool there = all && key && PyDict_GetItemWithError(all, key);
    Py_XDECREF(key);
    return there;
}

// An object of a subclass is initialized again in each thread.
PyObject *raw_thread_dict(PyObject *o) {
    if (!raw_is_thread_local(Py_TYPE(o)) || (Py_TYPE(o) != local_type && !has_thread_dict(o)))
        return NULL;
    PyObject *name = PyUnicode_InternFromString("__dict__");
    PyObject *dict = name ? local_type->tp_getattro(o, name) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(dict); // the thread has it
    return dict;
}

PyObject *raw_proxy_get(PyObject *o) {
    return PyWeakref_CheckProxy(o) ? referent(o) : NULL;
}

PyObject *raw_locals_dict(struct _PyInterpreterFrame *f) {
#if PY_VERSION_HEX < 0x030d0000
    if (!f->f_locals)
        f->f_locals = PyDict_New();
    return Py_XNewRef(f->f_locals);
#else
    (void)f;
    return PyDict_New();
#endif
}

// --- functions ---

static const struct {
    const char *name;
    size_t offset;
    bool or_none; // empty reads as None
} function_fields[] = {
    {"__name__", offsetof(PyFunctionObject, func_name), false},
    {"__qualname__", offsetof(PyFunctionObject, func_qualname), false},
    {"__code__", offsetof(PyFunctionObject, func_code), false},
    {"__globals__", offsetof(PyFunctionObject, func_globals), false},
    {"__builtins__", offsetof(PyFunctionObject, func_builtins), false},
    {"__doc__", offsetof(PyFunctionObject, func_doc), true},
    {"__module__", offsetof(PyFunctionObject, func_module), true},
    {"__closure__", offsetof(PyFunctionObject, func_closure), true},
    {"__defaults__", offsetof(PyFunctionObject, func_defaults), true},
    {"__kwdefaults__", offsetof(PyFunctionObject, func_kwdefaults), true},
    {"__annotations__", offsetof(PyFunctionObject, func_annotations), false},
    {"__dict__", offsetof(PyFunctionObject, func_dict), false},
#if PY_VERSION_HEX >= 0x030c0000
    {"__type_params__", offsetof(PyFunctionObject, func_typeparams), false},
#endif
};

PyObject *raw_function_field(PyObject *function, PyObject *name) {
    if (!PyFunction_Check(function) || !PyUnicode_Check(name))
        return NULL;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(function_fields); i++) {
        if (PyUnicode_CompareWithASCIIString(name, function_fields[i].name) != 0)
            continue;
        PyObject *value = *(PyObject **)((char *)function + function_fields[i].offset);
        if (value && PyTuple_Check(value) &&
            function_fields[i].offset == offsetof(PyFunctionObject, func_annotations))
            return NULL; // a dict is made of it when it is first read
        return value || !function_fields[i].or_none ? value : Py_None;
    }
    return NULL;
}

PyCodeObject *raw_place(int *offset) {
    py_frame *f = py_current_frame(PyThreadState_Get());
    while (f && py_frame_incomplete(f))
        f = f->previous;
    if (!f)
        return NULL;
    *offset = (int)(py_frame_lasti(f) * (long)sizeof(_Py_CODEUNIT));
    return py_frame_code(f);
}

PyObject *raw_context_default(PyObject *variable) {
    return ((PyContextVar *)variable)->var_default;
}
