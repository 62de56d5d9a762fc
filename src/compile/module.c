// A call of a compiled module into a call of its compiled `forward`, where nothing else takes part
// in the call: no hook, no replaced method, no tracer of torch's. Other calls go to the __call__
// that the wrapper's class has in Python, which decides the same questions.
#include "src/py/raw.h"

#include "src/world/world.h"

#include "src/torch/torch.h"

#include "src/compile/module.h"

#define OWN_HOOKS 4
#define MOST_GLOBAL_HOOKS 8
#define MOST_ARGUMENTS 16

// A wrapper or a module, and what was seen of it. As long as both versions stay, no attribute of
// the class or of the instance is another one.
typedef struct seen {
    PyTypeObject *type; // never followed
    unsigned type_version;
    uint64_t version;           // of the instance dict; 0: look again each time
    PyObject *hooks[OWN_HOOKS]; // borrowed from that dict
} seen;

// What stands in a wrapper's dict.
typedef struct shortcut {
    PyObject_HEAD
    PyObject *forward;  // strong: what the wrapper must have as `forward`
    PyObject *module;   // strong, or NULL: `forward` itself is called
    PyObject *compiled; // strong: the class's `forward`, compiled
    PyObject *plain;    // strong: the class's `forward`
    seen wrapper, wrapped;
} shortcut;

// Facts about torch.nn.Module, for all modules; all strong.
static struct {
    PyObject *parent; // of the wrapper's class: torch's wrapper
    PyObject *parent_call;
    PyObject *call, *call_impl; // of nn.Module
    PyObject *getattribute;     // of object
    PyObject *globals;          // of nn.Module's file
    PyObject *own_names[OWN_HOOKS], *global_names[MOST_GLOBAL_HOOKS];
    int global_count;
    uint64_t version;                          // of `globals`
    PyObject *global_hooks[MOST_GLOBAL_HOOKS]; // borrowed from `globals`
} known;

static struct {
    PyObject *call, *call_impl, *compiled_call, *forward, *getattribute, *shortcut;
} name;

// --- looking ---

static bool class_has(PyTypeObject *type, PyObject *attribute, PyObject *expected) {
    PyObject *value;
    return raw_type_get(type, attribute, &value) == RAW_FOUND && value == expected;
}

static bool has_usual_class(PyTypeObject *type) {
    return class_has(type, name.getattribute, known.getattribute) &&
           class_has(type, name.compiled_call, Py_None);
}

static bool look_at_wrapper_class(PyTypeObject *type) {
    return has_usual_class(type) &&
           class_has((PyTypeObject *)known.parent, name.call, known.parent_call);
}

static bool look_at_class(PyTypeObject *type, const shortcut *s) {
    return has_usual_class(type) && class_has(type, name.call, known.call) &&
           class_has(type, name.call_impl, known.call_impl) &&
           class_has(type, name.forward, s->plain);
}

static bool is_absent(PyObject *o, PyObject *attribute) {
    PyObject *value;
    return raw_attr_get(o, attribute, &value) == RAW_ABSENT;
}

static bool is_none(PyObject *o, PyObject *attribute) {
    PyObject *value;
    raw found = raw_attr_get(o, attribute, &value);
    return found == RAW_ABSENT || (found == RAW_FOUND && value == Py_None);
}

static bool find_hooks(PyObject *o, seen *s) {
    for (int i = 0; i < OWN_HOOKS; i++)
        if (raw_attr_get(o, known.own_names[i], &s->hooks[i]) != RAW_FOUND ||
            !PyDict_Check(s->hooks[i]))
            return false;
    return is_none(o, name.compiled_call);
}

// Plain stores of attributes drop the old value before the dict has a new version: a finalizer that
// calls the module would find an old number. Modules have a __setattr__ of their own as a rule.
static void remember(PyObject *o, seen *s) {
    PyObject *dict = raw_dict(o);
    bool plain = Py_TYPE(o)->tp_setattro == PyObject_GenericSetAttr;
    s->version = dict && !plain ? raw_dict_version(dict) : 0;
}

static bool is_class_seen(PyObject *o, const seen *s) {
    unsigned version = raw_type_version(Py_TYPE(o));
    return version != 0 && s->type == Py_TYPE(o) && s->type_version == version;
}

static void remember_class(PyObject *o, seen *s) {
    s->type = Py_TYPE(o);
    s->type_version = raw_type_version(s->type);
    s->version = 0;
}

static bool is_seen(PyObject *o, const seen *s) {
    PyObject *dict = s->version != 0 ? raw_dict(o) : NULL;
    return dict && raw_dict_version(dict) == s->version;
}

static bool are_empty(PyObject *const *hooks, int count) {
    for (int i = 0; i < count; i++)
        if (PyDict_GET_SIZE(hooks[i]) != 0)
            return false;
    return true;
}

// Whether the wrapper does nothing but to call its `forward`, which is the one it was made with.
static bool is_idle_wrapper(PyObject *wrapper, shortcut *s) {
    if (!is_class_seen(wrapper, &s->wrapper)) {
        if (!look_at_wrapper_class(Py_TYPE(wrapper)))
            return false;
        remember_class(wrapper, &s->wrapper);
    }
    if (!is_seen(wrapper, &s->wrapper)) {
        PyObject *forward;
        if (raw_attr_get(wrapper, name.forward, &forward) != RAW_FOUND || forward != s->forward ||
            !find_hooks(wrapper, &s->wrapper))
            return false;
        remember(wrapper, &s->wrapper);
    }
    return are_empty(s->wrapper.hooks, OWN_HOOKS);
}

// Whether a call of the module is a call of its class's `forward`, and nothing else.
static bool is_idle_module(shortcut *s) {
    PyObject *o = s->module;
    if (!is_class_seen(o, &s->wrapped)) {
        if (!look_at_class(Py_TYPE(o), s))
            return false;
        remember_class(o, &s->wrapped);
    }
    if (!is_seen(o, &s->wrapped)) {
        if (!is_absent(o, name.forward) || !is_absent(o, name.call_impl) ||
            !find_hooks(o, &s->wrapped))
            return false;
        remember(o, &s->wrapped);
    }
    return are_empty(s->wrapped.hooks, OWN_HOOKS);
}

static bool have_no_global_hooks(void) {
    if (known.version == 0 || raw_dict_version(known.globals) != known.version) {
        known.version = 0;
        for (int i = 0; i < known.global_count; i++)
            if (raw_dict_get(known.globals, known.global_names[i], &known.global_hooks[i]) !=
                    RAW_FOUND ||
                !PyDict_Check(known.global_hooks[i]))
                return false;
        known.version = raw_dict_version(known.globals);
    }
    return are_empty(known.global_hooks, known.global_count);
}

// --- calling ---

static PyObject *call_in_python(PyObject *self, PyObject *args, PyObject *kwargs) {
    PyObject *method;
    if (raw_type_get(Py_TYPE(self), name.call, &method) != RAW_FOUND)
        return PyErr_Format(PyExc_TypeError, "'%s' object is not callable", Py_TYPE(self)->tp_name);
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    PyObject *all = PyTuple_New(count + 1), *result = NULL;
    if (!all)
        return NULL;
    PyTuple_SET_ITEM(all, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SET_ITEM(all, i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
    Py_INCREF(method);
    result = PyObject_Call(method, all, kwargs);
    Py_DECREF(method);
    Py_DECREF(all);
    return result;
}

static PyObject *call_forward(const shortcut *s, PyObject *args, PyObject *kwargs) {
    PyObject *all[MOST_ARGUMENTS + 1] = {s->module};
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    for (Py_ssize_t i = 0; i < count; i++)
        all[i + 1] = PyTuple_GET_ITEM(args, i);
    return PyObject_VectorcallDict(s->compiled, all, (size_t)count + 1, kwargs);
}

static shortcut *shortcut_of(PyObject *wrapper);

// The tp_call of the wrapper's class. Who sets the class's __call__ gets another slot.
static PyObject *call_wrapper(PyObject *self, PyObject *args, PyObject *kwargs) {
    shortcut *s = world_here ? NULL : shortcut_of(self);
    if (!s || !is_idle_wrapper(self, s) || !have_no_global_hooks() || torch_is_traced() ||
        (s->module && (PyTuple_GET_SIZE(args) > MOST_ARGUMENTS || !is_idle_module(s))))
        return call_in_python(self, args, kwargs);
    Py_INCREF(s);
    PyObject *result =
        s->module ? call_forward(s, args, kwargs) : PyObject_Call(s->forward, args, kwargs);
    Py_DECREF(s);
    return result;
}

// --- the objects ---

static int shortcut_traverse(PyObject *self, visitproc visit, void *arg) {
    shortcut *s = (shortcut *)self;
    Py_VISIT(s->forward);
    Py_VISIT(s->module);
    Py_VISIT(s->compiled);
    Py_VISIT(s->plain);
    return 0;
}

// Calls that are under way hold on to a shortcut, so its parts stay until it dies: cycles go through
// the dict that holds it.
static void shortcut_dealloc(PyObject *self) {
    shortcut *s = (shortcut *)self;
    PyObject_GC_UnTrack(self);
    Py_CLEAR(s->forward);
    Py_CLEAR(s->module);
    Py_CLEAR(s->compiled);
    Py_CLEAR(s->plain);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject shortcut_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.Shortcut",
    .tp_doc = "What a call of a compiled module comes to where no hook is in the way.",
    .tp_basicsize = sizeof(shortcut),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = shortcut_traverse,
    .tp_dealloc = shortcut_dealloc,
};

static shortcut *shortcut_of(PyObject *wrapper) {
    PyObject *found;
    bool there = raw_attr_get(wrapper, name.shortcut, &found) == RAW_FOUND &&
                 Py_IS_TYPE(found, &shortcut_type);
    return there ? (shortcut *)found : NULL;
}

// shortcut(forward, module, compiled, plain): the last three may be None.
static PyObject *new_shortcut(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *forward, *wrapped, *compiled, *plain;
    if (!PyArg_ParseTuple(args, "OOOO", &forward, &wrapped, &compiled, &plain))
        return NULL;
    shortcut *s = PyObject_GC_New(shortcut, &shortcut_type);
    if (!s)
        return NULL;
    s->forward = Py_NewRef(forward);
    s->module = wrapped == Py_None ? NULL : Py_NewRef(wrapped);
    s->compiled = Py_NewRef(compiled);
    s->plain = Py_NewRef(plain);
    s->wrapper = s->wrapped = (seen){0};
    PyObject_GC_Track(s);
    return (PyObject *)s;
}

static int take_names(PyObject *tuple, PyObject **names, int least, int most, int *count) {
    Py_ssize_t given = PyTuple_Check(tuple) ? PyTuple_GET_SIZE(tuple) : -1;
    if (given < least || given > most) {
        PyErr_SetString(PyExc_ValueError, "names of hooks");
        return -1;
    }
    for (Py_ssize_t i = 0; i < given; i++)
        Py_XSETREF(names[i], Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
    *count = (int)given;
    return 0;
}

// call_modules(class, parent, parent_call, call, call_impl, globals, own names, global names)
static PyObject *call_modules(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *class, *parent, *parent_call, *call, *call_impl, *globals, *own, *global;
    int count;
    if (!PyArg_ParseTuple(args, "O!O!OOOO!OO", &PyType_Type, &class, &PyType_Type, &parent,
                          &parent_call, &call, &call_impl, &PyDict_Type, &globals, &own, &global) ||
        take_names(own, known.own_names, OWN_HOOKS, OWN_HOOKS, &count) < 0 ||
        take_names(global, known.global_names, 1, MOST_GLOBAL_HOOKS, &known.global_count) < 0)
        return NULL;
    PyObject *getattribute;
    if (raw_type_get(&PyBaseObject_Type, name.getattribute, &getattribute) != RAW_FOUND)
        Py_RETURN_NONE;
    known.version = 0;
    Py_XSETREF(known.getattribute, Py_NewRef(getattribute));
    Py_XSETREF(known.parent, Py_NewRef(parent));
    Py_XSETREF(known.parent_call, Py_NewRef(parent_call));
    Py_XSETREF(known.call, Py_NewRef(call));
    Py_XSETREF(known.call_impl, Py_NewRef(call_impl));
    Py_XSETREF(known.globals, Py_NewRef(globals));
    ((PyTypeObject *)class)->tp_call = call_wrapper;
    Py_RETURN_NONE;
}

PyMethodDef module_methods[] = {
    {"shortcut", new_shortcut, METH_VARARGS,
     "shortcut(forward, module, compiled, plain): for the dict of a wrapper; what its calls come "
     "to. Without a module they are calls of `forward`."},
    {"call_modules", call_modules, METH_VARARGS,
     "call_modules(class, parent, parent_call, call, call_impl, globals, own, hooks): calls "
     "instances of the class by their shortcuts."},
    {0},
};

int module_setup(PyObject *module) {
    (void)module;
    name.call = PyUnicode_InternFromString("__call__");
    name.call_impl = PyUnicode_InternFromString("_call_impl");
    name.compiled_call = PyUnicode_InternFromString("_compiled_call_impl");
    name.forward = PyUnicode_InternFromString("forward");
    name.getattribute = PyUnicode_InternFromString("__getattribute__");
    name.shortcut = PyUnicode_InternFromString("_stator_shortcut");
    if (!name.call || !name.call_impl || !name.compiled_call || !name.forward ||
        !name.getattribute || !name.shortcut)
        return -1;
    return PyType_Ready(&shortcut_type);
}
