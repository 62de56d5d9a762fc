// Handlers of classes: isinstance and issubclass by the MRO, by an __instancecheck__ in Python and by
// the registry of abstract classes; type(), list[int], functions that make classes.
#include "src/attr/attr.h"
#include "src/attr/descr.h"
#include "src/attr/words.h"

#include "src/call/call.h"
#include "src/call/handlers.h"

// The question being asked: of an instance, or of a class.
typedef struct question {
    bool of_class;
    const char *special; // "__instancecheck__" or "__subclasscheck__"
    PyObject *asked;     // borrowed; of a class: opened
} question;

static int wrong(world *w, const char *what, PyObject *o) {
    world_break(w, REASON_NATIVE_CALL, "%s a %s object", what, Py_TYPE(o)->tp_name);
    return -1;
}

// What is no class at all: the native check says so.
static int refused(world *w, const question *q, PyObject *of) {
    PyObject *class =
        q->of_class && value_immutable(q->asked) ? q->asked : (PyObject *)&PyBaseObject_Type;
    int found = q->of_class ? PyObject_IsSubclass(class, of) : PyObject_IsInstance(Py_None, of);
    return found < 0 ? -1 : wrong(w, "a check against", of);
}

// --- by the MRO ---

static int is_subclass(world *w, PyTypeObject *type, PyTypeObject *of) {
    if (raw_is_python_class(type) && type_guard_mro(w, type) != ST_OK)
        return -1;
    return PyType_IsSubtype(type, of);
}

// Whether o.__class__ is what object says it is: 1, 0, -1.
static int has_plain_class(world *w, PyTypeObject *type) {
    descr d, plain;
    way get;
    if (type == &_PyWeakref_ProxyType || type == &_PyWeakref_CallableProxyType)
        return 0;
    if (descr_find(w, type, word.class_, &d) != ST_OK ||
        descr_find(w, &PyBaseObject_Type, word.class_, &plain) != ST_OK)
        return -1;
    if (d.raw != plain.raw || !raw_is_python_class(type))
        return d.raw == plain.raw;
    if (way_find(w, type, word.getattribute, NULL, &get) != ST_OK)
        return -1;
    return get.native != NULL; // C code's own ways all find it on the type
}

// What an object that lies about its class says: o.__class__, opened and borrowed from the world.
// NULL, without an exception, if its type leaves that to object, or if it has none.
static PyTypeObject *claimed_class(world *w, PyObject *o, PyTypeObject *type) {
    if (type == &_PyWeakref_ProxyType || type == &_PyWeakref_CallableProxyType) {
        world_break(w, REASON_NATIVE_CALL, "the class of a weak proxy");
        return NULL;
    }
    if (has_plain_class(w, type) != 0)
        return NULL;
    PyObject *value = handler_find(w, o, "__class__");
    PyObject *class = value ? door_open(w, value) : NULL;
    if (class)
        class = world_keep(w, Py_NewRef(class));
    Py_XDECREF(value);
    return class && PyType_Check(class) ? (PyTypeObject *)class : NULL;
}

// type.__instancecheck__ and type.__subclasscheck__ (recursive_isinstance in abstract.c).
static int by_mro(world *w, const question *q, PyTypeObject *of) {
    if (q->of_class)
        return PyType_Check(q->asked) ? is_subclass(w, (PyTypeObject *)q->asked, of)
                                      : refused(w, q, (PyObject *)of);
    PyTypeObject *type = door_type(w, q->asked);
    int found = type ? is_subclass(w, type, of) : -1;
    if (found)
        return found;
    PyTypeObject *claimed = claimed_class(w, q->asked, type);
    if (!claimed)
        return w->stop.broken || PyErr_Occurred() ? -1 : 0;
    return claimed == type ? 0 : is_subclass(w, claimed, of);
}

// --- by what the class says ---

static int ask(world *w, const question *q, PyObject *of);

static int ask_any(world *w, const question *q, PyObject *tuple) {
    int found = 0;
    if (Py_EnterRecursiveCall(" in __instancecheck__"))
        return -1;
    for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(tuple); i++)
        found = ask(w, q, PyTuple_GET_ITEM(tuple, i));
    Py_LeaveRecursiveCall();
    return found;
}

// int | str: the classes lie in the union, which never changes.
static int ask_union(world *w, const question *q, PyObject *of) {
    PyObject *classes = PyObject_GetAttrString(of, "__args__");
    int found = 0;
    for (Py_ssize_t i = 0; classes && !found && i < PyTuple_GET_SIZE(classes); i++) {
        PyObject *class = PyTuple_GET_ITEM(classes, i);
        found =
            PyType_Check(class) && class_value(w, (PyTypeObject *)class) ? ask(w, q, class) : -1;
    }
    if (classes && found < 0 && !w->stop.broken && !PyErr_Occurred())
        wrong(w, "a check against", of);
    Py_XDECREF(classes);
    return classes ? found : -1;
}

static int ask_special(world *w, const question *q, PyObject *of) {
    PyObject *name = PyUnicode_InternFromString(q->special);
    descr d, plain;
    int found = -1;
    if (name && descr_find(w, Py_TYPE(of), name, &d) == ST_OK &&
        descr_find(w, &PyType_Type, name, &plain) == ST_OK) {
        PyObject *method = NULL;
        if (PyType_Check(of) && d.raw == plain.raw)
            found = by_mro(w, q, (PyTypeObject *)of);
        else if (d.found && raw_is_python_class(Py_TYPE(of)))
            method = descr_get(w, &d, of, Py_TYPE(of));
        else
            wrong(w, "a check against", of);
        PyObject *result = method ? call_with(w, method, &q->asked, 1) : NULL;
        if (result)
            found = op_truth(w, result);
        Py_XDECREF(method);
        Py_XDECREF(result);
    }
    Py_XDECREF(name);
    return found;
}

static int ask(world *w, const question *q, PyObject *of) {
    of = door_open(w, of);
    if (!of)
        return -1;
    if (!q->of_class && PyType_Check(of)) {
        // The very class is one, whatever its metaclass says (PyObject_IsInstance).
        PyTypeObject *type = door_type(w, q->asked);
        if (!type || type == (PyTypeObject *)of)
            return type ? 1 : -1;
    }
    if (PyTuple_Check(of))
        return ask_any(w, q, of);
    if (value_immutable(of))
        return refused(w, q, of);
    if (strcmp(Py_TYPE(of)->tp_name, "types.UnionType") == 0)
        return ask_union(w, q, of);
    return ask_special(w, q, of);
}

int op_isinstance(world *w, PyObject *o, PyObject *class) {
    question q = {false, "__instancecheck__", o};
    return ask(w, &q, class);
}

HANDLER(isinstance) {
    return handler_bool(op_isinstance(w, c->args[0], c->args[1]));
}

HANDLER(issubclass) {
    question q = {true, "__subclasscheck__", door_open(w, c->args[0])};
    return q.asked ? handler_bool(ask(w, &q, c->args[1])) : NULL;
}

// type.__instancecheck__(cls, o), as a metaclass calls it through super().
static PyObject *plainly(world *w, PyObject *const *args, bool of_class) {
    PyObject *of = door_open(w, args[0]), *asked = of && of_class ? door_open(w, args[1]) : args[1];
    if (!of || !asked)
        return NULL;
    question q = {of_class, NULL, asked};
    if (!PyType_Check(of))
        return wrong(w, "a check against", of), NULL;
    return handler_bool(by_mro(w, &q, (PyTypeObject *)of));
}

HANDLER(type_instancecheck) {
    return plainly(w, c->args, false);
}

HANDLER(type_subclasscheck) {
    return plainly(w, c->args, true);
}

// --- abstract classes ---

// What the answer of the registry of abstract classes depends on: the registry, and both classes.
typedef struct abstract_fact {
    PyObject *classes[2]; // strong: weak references
    unsigned versions[2];
    PyObject *token; // strong: a new one whenever some class is registered
} abstract_fact;

static PyObject *registry_token(void) {
    static PyObject *function;
    if (!function)
        function = py_import("_abc", "get_cache_token");
    return function ? PyObject_CallNoArgs(function) : NULL;
}

static bool check_abstract(PyObject *object, void *data) {
    abstract_fact *f = data;
    (void)object;
    for (int i = 0; i < 2; i++) {
        PyObject *class = raw_weakref_get(f->classes[i]);
        if (!class || !PyType_Check(class) ||
            raw_type_version((PyTypeObject *)class) != f->versions[i])
            return false;
    }
    PyObject *token = registry_token();
    int same = token ? PyObject_RichCompareBool(token, f->token, Py_EQ) : -1;
    Py_XDECREF(token);
    PyErr_Clear();
    return same == 1;
}

static PyObject *abstract_text(const char *source, void *data) {
    abstract_fact *f = data;
    (void)source;
    PyObject *classes[2], *texts[2];
    for (int i = 0; i < 2; i++) { // a metaclass may have a __repr__
        classes[i] = raw_weakref_get(f->classes[i]);
        texts[i] = classes[i] ? object_text(classes[i]) : NULL;
    }
    PyObject *text = PyErr_Occurred()
                         ? NULL
                         : PyUnicode_FromFormat("issubclass(%V, %V) is as before", texts[1],
                                                "a class that died", texts[0], "one that died");
    Py_XDECREF(texts[0]);
    Py_XDECREF(texts[1]);
    return text;
}

static void drop_abstract(void *data) {
    abstract_fact *f = data;
    Py_XDECREF(f->classes[0]);
    Py_XDECREF(f->classes[1]);
    Py_XDECREF(f->token);
    PyMem_Free(f);
}

static const guard_custom abstract_guard = {.name = "abstract class",
                                            .check = check_abstract,
                                            .text = abstract_text,
                                            .drop = drop_abstract};

// A class that Python code can change has a version as long as it stays as it is; others never
// change.
static bool note_version(abstract_fact *f, int i, PyTypeObject *type) {
    PyObject *value;
    f->classes[i] = PyWeakref_NewRef((PyObject *)type, NULL);
    if (!f->classes[i])
        return false;
    if (raw_type_get(type, word.class_, &value) != RAW_UNSURE)
        f->versions[i] = raw_type_version_make(type, word.class_);
    return f->versions[i] != 0;
}

static status guard_abstract(world *w, PyTypeObject *of, PyTypeObject *type) {
    abstract_fact *f = PyMem_Calloc(1, sizeof(abstract_fact));
    if (!f) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    f->token = registry_token();
    if (f->token && note_version(f, 0, of) && note_version(f, 1, type))
        return guard_add_custom(w->guards, NULL, &abstract_guard, f);
    drop_abstract(f);
    return PyErr_Occurred()
               ? ST_ERROR
               : world_break_status(w, REASON_NATIVE_CALL, "a class without a version");
}

// Whether what decides is the library's own code, which looks at the MRO's namespaces only.
static int hook_is_known(world *w, PyTypeObject *of) {
    static const char *const modules[] = {"collections.abc", "_collections_abc",
                                          "contextlib",      "abc",
                                          "numbers",         "os",
                                          "importlib.abc",   "io"};
    PyObject *name = PyUnicode_InternFromString("__subclasshook__"), *raw = NULL;
    raw = name ? _PyType_Lookup(of, name) : NULL;
    Py_XDECREF(name);
    if (!raw || Py_IS_TYPE(raw, &PyClassMethodDescr_Type))
        return raw ? 1 : -1;
    PyObject *function = raw_field_get(RAW_CLASSMETHOD_FUNC, raw);
    PyObject *module =
        function && PyFunction_Check(function) ? ((PyFunctionObject *)function)->func_module : NULL;
    for (size_t i = 0; module && PyUnicode_Check(module) && i < Py_ARRAY_LENGTH(modules); i++)
        if (PyUnicode_CompareWithASCIIString(module, modules[i]) == 0)
            return 1;
    world_break(w, REASON_NATIVE_CALL, "%s.__subclasshook__", of->tp_name);
    return -1;
}

// _abc's own answer, on the real classes, with what it depends on guarded.
static PyObject *registry_says(world *w, PyObject *of, PyObject *type) {
    static PyObject *function;
    if (!PyType_Check(of) || !PyType_Check(type))
        return wrong(w, "an abstract class's check of", type), NULL;
    if (hook_is_known(w, (PyTypeObject *)of) < 0)
        return NULL;
    if (!function)
        function = py_import("_abc", "_abc_subclasscheck");
    PyObject *both[] = {of, type}, *result = NULL;
    if (function) {
        w->inside.quiet++;
        result = PyObject_Vectorcall(function, both, 2, NULL);
        w->inside.quiet--;
    }
    if (result && guard_abstract(w, (PyTypeObject *)of, (PyTypeObject *)type) != ST_OK)
        Py_CLEAR(result);
    return result;
}

HANDLER(abc_instancecheck) {
    PyObject *of = door_open(w, c->args[0]);
    PyTypeObject *type = of ? door_type(w, c->args[1]) : NULL;
    if (!type)
        return NULL;
    int plain = has_plain_class(w, type);
    if (plain == 0)
        return world_break(w, REASON_NATIVE_CALL, "an object with a __class__ of its own");
    return plain > 0 ? registry_says(w, of, (PyObject *)type) : NULL;
}

HANDLER(abc_subclasscheck) {
    PyObject *of = door_open(w, c->args[0]), *type = of ? door_open(w, c->args[1]) : NULL;
    return type ? registry_says(w, of, type) : NULL;
}

// --- list[int] ---

// Nothing is done to what it is made of: it is only kept, so no lazy may be in there.
HANDLER(generic_alias) {
    PyObject *ready[4] = {NULL}, *result = NULL;
    status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < c->given; i++) {
        ready[i] = Py_NewRef(c->args[i]);
        st = protocol_open(w, &ready[i], P_NONE);
        if (st == ST_OK && PyTuple_CheckExact(ready[i]))
            st = protocol_open_elements(w, &ready[i], P_NONE);
        if (st == ST_OK && handler_meets_standin(ready[i], 2))
            st = world_break_status(w, REASON_NATIVE_CALL, "types.GenericAlias of a tensor");
    }
    if (st == ST_OK)
        result = call_native(w, c->callable, ready, c->given, NULL, false);
    for (size_t i = 0; i < c->given; i++)
        Py_XDECREF(ready[i]);
    return result;
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

// --- functions that make classes ---

HANDLER(class_statement) {
    return world_break(w, REASON_CLASS_STATEMENT, "%s", c->rule->path);
}

// Of a module that is not imported yet it stays without a row.
static status add_maker(const char *module, const char *name, const rule *row) {
    PyObject *text = PyUnicode_InternFromString(module);
    PyObject *from = text ? PyImport_GetModule(text) : NULL;
    PyObject *function = from ? PyObject_GetAttrString(from, name) : NULL;
    status st = function ? rules_add(function, row) : ST_OK;
    Py_XDECREF(text);
    Py_XDECREF(from);
    Py_XDECREF(function);
    return PyErr_Occurred() ? ST_ERROR : st;
}

#define MAKER(path)                                                                                \
    {path, RULE_HANDLED, .handler = handle_class_statement, .takes = ANY, .writes = W_NONE}

// They compile text and write to functions and classes: one break in place of one for each.
status classes_setup(void) {
    static const rule tuples = MAKER("collections.namedtuple"), typed = MAKER("typing.NamedTuple"),
                      data = MAKER("dataclasses.dataclass");
    TRY(add_maker("collections", "namedtuple", &tuples));
    TRY(add_maker("typing", "NamedTuple", &typed));
    return add_maker("dataclasses", "_process_class", &data);
}
