// Reads attributes: finds the function that does so for a value (its type's __getattribute__, or
// which C function), and does PyObject_GenericGetAttr's lookups through the door.
#include "src/py/classes.h"
#include "src/py/raised.h"

#include "src/attr/attr.h"
#include "src/attr/descr.h"
#include "src/attr/later.h"
#include "src/attr/words.h"

// --- what is missing ---

// PyObject_GetAttr tells an AttributeError what was asked for, whoever raised it.
static void note_asked(world *w, PyObject *o, PyObject *name) {
    if (w->stop.broken || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return;
    PyObject *raised = py_take_raised();
    PyAttributeErrorObject *error = (PyAttributeErrorObject *)raised;
    if (PyErr_GivenExceptionMatches(raised, PyExc_AttributeError) && !error->name && !error->obj &&
        !record_of(w, raised)) {
        error->name = Py_NewRef(name);
        error->obj = Py_NewRef(o);
    }
    py_set_raised(raised);
}

// That it is absent is known by now, so the native read runs no code and fails in CPython's own
// words; only where a deletion is held back does it find something.
PyObject *attr_missing(world *w, PyObject *o, PyObject *name, getattrofunc native) {
    PyObject *there = native(o, name);
    if (!there)
        return NULL;
    Py_DECREF(there);
    if (native != PyObject_GenericGetAttr || strlen(Py_TYPE(o)->tp_name) > PY_ATTRIBUTE_ERROR_NAME)
        return world_break(w, REASON_ATTRIBUTE, "%U, which was deleted before", name);
    PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", Py_TYPE(o)->tp_name,
                 name);
    return NULL;
}

// --- the generic order ---

// The instance dict's half; new reference, NULL without an exception if it has no such name.
static PyObject *instance_get(world *w, PyObject *o, PyObject *name) {
    record *r = is_lazy(o) ? ((lazy *)o)->record : record_of(w, o);
    if (r) {
        names *n = names_of_object(w, r);
        return n ? names_get(w, n, name) : NULL;
    }
    PyObject *value;
    if (!raw_has_dict(Py_TYPE(o)))
        return NULL;
    switch (raw_attr_get(o, name, &value)) {
    case RAW_FOUND:
        return Py_NewRef(value);
    case RAW_ABSENT:
        return NULL;
    default:
        return world_break(w, REASON_ATTRIBUTE, "%U, beside names that are no strings", name);
    }
}

// `method`, if not NULL, is set when the result is to be called with `o` first. *missing says that
// nothing was found: NULL without an exception.
static PyObject *get_in_order(world *w, PyObject *o, PyTypeObject *type, PyObject *name,
                              bool *method, bool *missing) {
    descr d;
    if (descr_find(w, type, name, &d) != ST_OK)
        return NULL;
    if (world_sealed(w, o) && (d.data || !d.found))
        return world_break(w, REASON_ATTRIBUTE, "%s.%U, before there is one", type->tp_name, name);
    if (d.data && d.gets)
        return descr_get(w, &d, o, type);
    PyObject *value = instance_get(w, o, name);
    if (value || PyErr_Occurred())
        return value;
    if (!d.found) {
        *missing = true;
        return NULL;
    }
    if (method && d.gets && PyType_HasFeature(Py_TYPE(d.raw), Py_TPFLAGS_METHOD_DESCRIPTOR)) {
        *method = true;
        return Py_NewRef(d.found);
    }
    return descr_get(w, &d, o, type);
}

static PyObject *get_generic(world *w, PyObject *o, PyTypeObject *type, PyObject *name,
                             bool *method) {
    bool missing = false;
    PyObject *value = get_in_order(w, o, type, name, method, &missing);
    if (!missing)
        return value;
    o = door_open(w, o);
    return o ? attr_missing(w, o, name, PyObject_GenericGetAttr) : NULL;
}

// --- C types with an order of their own ---

// The error about a missing attribute of a module asks the module's spec whether it has a place
// (3.13): importlib's own code, whose answer shows in the text alone.
static PyObject *module_missing(world *w, PyObject *o, PyObject *name) {
    PyObject *spec = NULL;
    bool plain = raw_attr_get(o, word.spec, &spec) == RAW_FOUND &&
                 strcmp(Py_TYPE(spec)->tp_name, "ModuleSpec") == 0;
    w->inside.quiet += plain;
    PyObject *value = attr_missing(w, o, name, PyModule_Type.tp_getattro);
    w->inside.quiet -= plain;
    return value;
}

// module.__getattribute__: as any object, then the module's own __getattr__.
static PyObject *get_module(world *w, PyObject *o, PyObject *name) {
    bool missing = false;
    PyObject *value = get_in_order(w, o, Py_TYPE(o), name, NULL, &missing);
    if (!missing)
        return value;
    PyObject *hook = instance_get(w, o, word.getattr);
    if (!hook)
        return PyErr_Occurred() ? NULL : module_missing(w, o, name);
    value = call_with(w, hook, &name, 1);
    Py_DECREF(hook);
    return value;
}

// threading.local: as any object, with the dict of this thread. One made inside has none yet. The
// dict of an object of the class itself comes before the class.
static PyObject *get_thread_local(world *w, PyObject *o, PyObject *name, getattrofunc native) {
    bool missing = false;
    descr d;
    if (descr_find(w, Py_TYPE(o), name, &d) != ST_OK)
        return NULL;
    bool first = d.data && !raw_is_python_class(Py_TYPE(o));
    if (!record_of(w, o) || first || PyUnicode_CompareWithASCIIString(name, "__dict__") == 0)
        return world_break(w, REASON_ATTRIBUTE, "%s.%U", Py_TYPE(o)->tp_name, name);
    PyObject *value = get_in_order(w, o, Py_TYPE(o), name, NULL, &missing);
    return missing ? attr_missing(w, o, name, native) : value;
}

// A field of a method or super object, as it is inside: opened, borrowed from the world.
static PyObject *open_part(world *w, PyObject *o, source_kind kind, PyObject *name) {
    record *r = record_itself(w, o);
    PyObject *part = r ? load_field(w, r, kind, NULL, 0) : PyObject_GenericGetAttr(o, name);
    PyObject *opened = part ? door_open(w, part) : NULL;
    if (!opened) {
        Py_XDECREF(part);
        return NULL;
    }
    Py_INCREF(opened);
    Py_DECREF(part);
    return world_keep(w, opened);
}

// method.__getattribute__: the method's own fields, then the function's attributes.
static PyObject *get_bound(world *w, PyObject *o, PyObject *name) {
    descr d;
    if (descr_find(w, Py_TYPE(o), name, &d) != ST_OK)
        return NULL;
    if (d.found && name != word.doc)
        return descr_get(w, &d, o, Py_TYPE(o));
    PyObject *function = open_part(w, o, SOURCE_METHOD_FUNC, word.func);
    return function ? attr_get(w, function, name) : NULL;
}

static PyObject *get_super(world *w, PyObject *o, PyObject *name) {
    PyObject *type = open_part(w, o, SOURCE_SUPER_TYPE, word.thisclass);
    PyObject *self = type ? open_part(w, o, SOURCE_SUPER_SELF, word.self) : NULL;
    if (!self)
        return NULL;
    if (self == Py_None || Py_TYPE(o) != &PySuper_Type)
        return world_break(w, REASON_ATTRIBUTE, "a super object that is not bound");
    return attr_super(w, (PyTypeObject *)type, self, name);
}

static getattrofunc pybind_class;

void attr_know_pybind(const PyTypeObject *metaclass) {
    pybind_class = metaclass->tp_getattro;
}

bool attr_is_pybind(const PyTypeObject *metaclass) {
    return pybind_class && metaclass->tp_getattro == pybind_class;
}

static PyObject *get_pybind_class(world *w, PyObject *class, PyObject *name) {
    descr d;
    if (descr_find(w, (PyTypeObject *)class, name, &d) != ST_OK)
        return NULL;
    if (d.found && Py_IS_TYPE(d.raw, &PyInstanceMethod_Type))
        return world_break(w, REASON_ATTRIBUTE, "%s.%U", ((PyTypeObject *)class)->tp_name, name);
    return attr_get_class(w, class, name);
}

// --- who answers ---

static PyObject *get_by_native(world *w, PyObject *o, PyTypeObject *type, PyObject *name,
                               getattrofunc native, bool *method) {
    if (native == PyObject_GenericGetAttr)
        return get_generic(w, o, type, name, method);
    if (native == PyType_Type.tp_getattro)
        return attr_get_class(w, o, name);
    if (native == PyModule_Type.tp_getattro)
        return get_module(w, o, name);
    if (native == PyMethod_Type.tp_getattro)
        return get_bound(w, o, name);
    if (native == PySuper_Type.tp_getattro)
        return get_super(w, o, name);
    if (native == pybind_class)
        return get_pybind_class(w, o, name);
    if (raw_is_thread_local(type))
        return get_thread_local(w, o, name, native);
    return world_break(w, REASON_ATTRIBUTE, "%s.%U", type->tp_name, name);
}

// slot_tp_getattr_hook: __getattribute__, and where that says AttributeError, __getattr__.
static PyObject *get_hooked(world *w, PyObject *o, PyTypeObject *type, PyObject *name,
                            bool *method) {
    way get, hook;
    if (way_find(w, type, word.getattribute, NULL, &get) != ST_OK ||
        way_find(w, type, word.getattr, NULL, &hook) != ST_OK)
        return NULL;
    if (world_tensors && world_tensors->prepare(o, name) != ST_OK)
        return NULL;
    PyObject *args[] = {o, name};
    bool missing = false;
    PyObject *value;
    if (get.native == (void *)PyObject_GenericGetAttr && hook.found)
        value = get_in_order(w, o, type, name, method, &missing);
    else if (get.native)
        value = get_by_native(w, o, type, name, (getattrofunc)get.native, method);
    else
        value = way_call(w, &get, args, 2);
    if (missing) // no error is made only to be dropped
        return way_call(w, &hook, args, 2);
    if (value || !hook.found || w->stop.broken || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    return way_call(w, &hook, args, 2);
}

// A dict, or a class's namespace, that is only asked for its methods need not be opened: the lazy can
// stand for it.
static PyObject *open_for_attributes(world *w, PyObject *o, PyTypeObject **type) {
    *type = Py_TYPE(o);
    if (!is_lazy(o))
        return o;
    if (!((lazy *)o)->inside && PyDict_Check(((lazy *)o)->outside)) {
        record *r = door_dict(w, o);
        if (r && !r->inside) {
            *type = Py_TYPE(r->outside);
            return o;
        }
        if (!r && PyErr_Occurred())
            return NULL;
    }
    if (door_namespace(w, o)) {
        *type = &PyDictProxy_Type;
        return o;
    }
    o = PyErr_Occurred() ? NULL : door_open(w, o);
    if (o)
        *type = Py_TYPE(o);
    return o;
}

// Opens *o, or sets it to NULL with an exception or a break. True: there is nothing more to do,
// since *o cannot be opened, or is a stand-in whose kind has given *value.
static bool is_answered(world *w, PyObject **o, PyTypeObject **type, PyObject *name,
                        PyObject **value) {
    *o = open_for_attributes(w, *o, type);
    const standin_kind *kind = *o ? standin_kind_of(*o) : NULL;
    *value = kind ? kind->get(w, *o, name) : NULL;
    return !*o || kind;
}

PyObject *attr_behind_proxy(world *w, PyObject *proxy) {
    PyObject *there = raw_proxy_get(proxy);
    if (there != Py_None && world_holds(w, there))
        return Py_NewRef(there);
    return world_break(w, REASON_NATIVE_CALL, "a weak proxy of an object that may be dead");
}

static PyObject *get(world *w, PyObject *o, PyObject *name, bool *method);

static PyObject *get_proxied(world *w, PyObject *proxy, PyObject *name) {
    PyObject *o = attr_behind_proxy(w, proxy), *value = o ? get(w, o, name, NULL) : NULL;
    Py_XDECREF(o);
    return value;
}

static PyObject *get(world *w, PyObject *o, PyObject *name, bool *method) {
    PyTypeObject *type;
    PyObject *value;
    if (is_answered(w, &o, &type, name, &value))
        return value;
    if (is_trampoline(o))
        return get(w, trampoline_callable(o), name, method);
    if (is_own_proxy(w, o))
        return get_proxied(w, o, name);
    value = raw_is_python_class(type) ? get_hooked(w, o, type, name, method)
                                      : get_by_native(w, o, type, name, type->tp_getattro, method);
    if (w->stop.broken)
        Py_CLEAR(value);
    else if (!value && (o = door_open(w, o)))
        note_asked(w, o, name);
    return value;
}

// --- attr.h ---

PyObject *attr_get(world *w, PyObject *o, PyObject *name) {
    return get(w, o, name, NULL);
}

int attr_get_method(world *w, PyObject *o, PyObject *name, PyObject **value) {
    bool method = false;
    *value = get(w, o, name, &method);
    return method && *value;
}

PyObject *attr_get_generic(world *w, PyObject *o, PyObject *name) {
    PyTypeObject *type;
    PyObject *value;
    if (is_answered(w, &o, &type, name, &value))
        return value;
    if (raw_is_thread_local(type)) // object's own order knows nothing of threads
        return world_break(w, REASON_ATTRIBUTE, "%s.%U", type->tp_name, name);
    return get_generic(w, o, type, name, NULL);
}

PyObject *attr_special(world *w, PyObject *o, PyObject *name) {
    PyTypeObject *type;
    PyObject *value;
    descr d;
    if (is_answered(w, &o, &type, name, &value)) {
        if (o && !value && !w->stop.broken && PyErr_ExceptionMatches(PyExc_AttributeError))
            PyErr_Clear();
        return value;
    }
    if (descr_find(w, type, name, &d) != ST_OK || !d.found)
        return NULL;
    return descr_get(w, &d, o, type);
}
