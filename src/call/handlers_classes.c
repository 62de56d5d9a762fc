// Handlers of classes: isinstance and issubclass by the MRO, by an __instancecheck__ in Python and by
// the registry of abstract classes; type(), list[int], functions that make classes.
#include "src/attr/attr.h"
#include "src/attr/descr.h"
#include "src/attr/words.h"

#include "src/call/call.h"
#include "src/call/handlers.h"
#include "src/call/native.h"
#include "src/call/special.h"

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

// --- subclasses ---

// A class, and weak references to its subclasses when it was asked for them. A guard that held these
// would keep classes in the list that plain Python lets go.
typedef struct subclasses_fact {
    PyObject *class, *list; // strong
} subclasses_fact;

static PyObject *subclasses_now(PyObject *class) {
    static PyObject *method;
    if (!method)
        method = PyObject_GetAttrString((PyObject *)&PyType_Type, "__subclasses__");
    return method ? PyObject_CallOneArg(method, class) : NULL;
}

static bool check_subclasses(PyObject *object, void *data) {
    const subclasses_fact *f = data;
    (void)object;
    PyObject *now = subclasses_now(f->class);
    bool same = now && PyList_GET_SIZE(now) == PyList_GET_SIZE(f->list);
    for (Py_ssize_t i = 0; same && i < PyList_GET_SIZE(now); i++)
        same = raw_weakref_get(PyList_GET_ITEM(f->list, i)) == PyList_GET_ITEM(now, i);
    Py_XDECREF(now);
    PyErr_Clear();
    return same;
}

static PyObject *subclasses_text(const char *source, void *data) {
    const subclasses_fact *f = data;
    (void)source;
    return PyUnicode_FromFormat("%s.__subclasses__() is unchanged",
                                ((PyTypeObject *)f->class)->tp_name);
}

static void drop_subclasses(void *data) {
    subclasses_fact *f = data;
    Py_XDECREF(f->class);
    Py_XDECREF(f->list);
    PyMem_Free(f);
}

static const guard_custom subclasses_guard = {.name = "subclasses",
                                              .check = check_subclasses,
                                              .text = subclasses_text,
                                              .drop = drop_subclasses};

static status guard_subclasses(world *w, PyObject *class, PyObject *list) {
    subclasses_fact *f = PyMem_Calloc(1, sizeof(subclasses_fact));
    if (!f) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    *f = (subclasses_fact){Py_NewRef(class), Py_NewRef(list)};
    return guard_add_custom(w->guards, NULL, &subclasses_guard, f);
}

static PyObject *weak_references(PyObject *list) {
    PyObject *result = PyList_New(0);
    for (Py_ssize_t i = 0; result && i < PyList_GET_SIZE(list); i++) {
        PyObject *weak = PyWeakref_NewRef(PyList_GET_ITEM(list, i), NULL);
        if (!weak || PyList_Append(result, weak) < 0)
            Py_CLEAR(result);
        Py_XDECREF(weak);
    }
    return result;
}

// A new list of the classes, each noted as one from outside, which its weak reference leads to.
static PyObject *list_brought(world *w, PyObject *list, PyObject *weak) {
    PyObject *result = PyList_New(0);
    for (Py_ssize_t i = 0; result && i < PyList_GET_SIZE(list); i++) {
        source *s = guard_source(w->guards, SOURCE_FIXED, NULL, PyList_GET_ITEM(weak, i), 0);
        s = s ? guard_source(w->guards, SOURCE_WEAKREF, s, NULL, 0) : NULL;
        PyObject *inside = s ? door_bring(w, s, PyList_GET_ITEM(list, i)) : NULL;
        if (!inside || PyList_Append(result, inside) < 0)
            Py_CLEAR(result);
    }
    return result;
}

// Classes that the trace made, and their bases, have subclasses that no later call has.
HANDLER(subclasses) {
    PyObject *class = door_open(w, c->args[0]);
    if (!class)
        return NULL;
    PyObject *list = PyType_Check(class) ? subclasses_now(class) : NULL;
    bool made = list && type_is_made(w, (PyTypeObject *)class);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++)
        made |= type_is_made(w, (PyTypeObject *)PyList_GET_ITEM(list, i));
    PyErr_Clear();
    if (!list || made) {
        Py_XDECREF(list);
        return world_break(w, REASON_NATIVE_CALL, "type.__subclasses__ of a class made here");
    }
    PyObject *weak = weak_references(list), *result = NULL;
    if (weak && guard_subclasses(w, class, weak) == ST_OK)
        result = list_brought(w, list, weak);
    Py_XDECREF(weak);
    Py_DECREF(list);
    return result;
}

// --- abstract classes ---

// What the answer of the registry of abstract classes depends on: the registry, and both classes.
typedef struct abstract_fact {
    PyObject *classes[2]; // strong: weak references
    unsigned versions[2];
    PyObject *token; // strong: a new one whenever some class is registered; NULL: the classes alone
                     // matter
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
    if (!f->token)
        return true;
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
    PyObject *text = NULL;
    if (PyErr_Occurred())
        ;
    else if (!f->token)
        text = PyUnicode_FromFormat("%V has the same attributes", texts[0], "a class that died");
    else
        text = PyUnicode_FromFormat("issubclass(%V, %V) is as before", texts[1],
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

static status guard_pair(world *w, PyTypeObject *of, PyTypeObject *type, bool registry) {
    abstract_fact *f = PyMem_Calloc(1, sizeof(abstract_fact));
    if (!f) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    f->token = registry ? registry_token() : NULL;
    if ((f->token || !registry) && note_version(f, 0, of) && note_version(f, 1, type))
        return guard_add_custom(w->guards, NULL, &abstract_guard, f);
    drop_abstract(f);
    return PyErr_Occurred()
               ? ST_ERROR
               : world_break_status(w, REASON_NATIVE_CALL, "a class without a version");
}

// Of a class that was made inside only the bases from outside can change.
static status guard_abstract(world *w, PyTypeObject *of, PyTypeObject *type) {
    PyTypeObject *made = type_is_made(w, of) ? of : type_is_made(w, type) ? type : NULL;
    PyObject *bases = made ? made->tp_bases : NULL;
    if (!made)
        return guard_pair(w, of, type, true);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(bases, i);
        TRY(guard_abstract(w, made == of ? base : of, made == of ? type : base));
    }
    return ST_OK;
}

static PyObject *hook_of(PyTypeObject *of) {
    return _PyType_Lookup(of, word.subclasshook);
}

// Whether a function of this trace decides, which is interpreted when native code calls it.
static bool hook_is_made(world *w, PyTypeObject *of) {
    PyObject *raw = hook_of(of);
    PyObject *function = raw && Py_IS_TYPE(raw, &PyClassMethod_Type)
                             ? raw_field_get(RAW_CLASSMETHOD_FUNC, raw)
                             : NULL;
    return function && map_get(&w->made.objects, map_key(function));
}

// The registry asks the subclasses of a class, too: those that were made inside must leave the
// answer to the library.
static status check_made_subclasses(world *w, PyTypeObject *of) {
    const map *made = &w->made.objects;
    for (uint32_t i = 0; i < made->room; i++) {
        if (made->slots[i].key == MAP_NO_KEY || made->slots[i].value != MADE_CLASS)
            continue;
        PyTypeObject *class = (PyTypeObject *)(uintptr_t)made->slots[i].key;
        if (class != of && PyType_IsSubtype(class, of) &&
            (hook_is_made(w, class) || type_is_made(w, Py_TYPE(class))))
            return world_break_status(w, REASON_NATIVE_CALL, "%s.__subclasshook__", class->tp_name);
    }
    return ST_OK;
}

// Whether what decides is the library's own code, which looks at the MRO's namespaces only.
static int hook_is_known(world *w, PyTypeObject *of) {
    static const char *const modules[] = {"collections.abc", "_collections_abc",
                                          "contextlib",      "abc",
                                          "numbers",         "os",
                                          "importlib.abc",   "io"};
    PyObject *raw = hook_of(of);
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
    bool made = hook_is_made(w, (PyTypeObject *)of);
    if (!made && (hook_is_known(w, (PyTypeObject *)of) < 0 ||
                  check_made_subclasses(w, (PyTypeObject *)of) != ST_OK))
        return NULL;
    if (!function)
        function = py_import("_abc", "_abc_subclasscheck");
    PyObject *both[] = {of, type}, *result = NULL;
    if (function) {
        w->inside.quiet += !made;
        result = native_result(w, PyObject_Vectorcall(function, both, 2, NULL), false);
        w->inside.quiet -= !made;
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

// Whether a value of a class's namespace is abstract is asked natively: it is looked at here, so that
// it is guarded.
static status look_at_abstract(world *w, PyObject *value);

// A property and its kin are abstract if what they wrap is.
static status look_at_wrapped(world *w, PyObject *value) {
    static const char *const of_property[] = {"fget", "fset", "fdel"}, *const of_method[] = {
                                                                           "__func__"};
    bool property = Py_IS_TYPE(value, &PyProperty_Type);
    status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < (property ? 3 : 1); i++) {
        PyObject *part = handler_attr(w, value, property ? of_property[i] : of_method[i]);
        st = part ? look_at_abstract(w, part) : failed(w);
        Py_XDECREF(part);
    }
    return st;
}

static status look_at_abstract(world *w, PyObject *value) {
    if (is_scalar(value) || is_standin(value))
        return ST_OK;
    if (Py_IS_TYPE(value, &PyProperty_Type) || Py_IS_TYPE(value, &PyStaticMethod_Type) ||
        Py_IS_TYPE(value, &PyClassMethod_Type))
        return look_at_wrapped(w, value);
    PyObject *answer = handler_find(w, value, "__isabstractmethod__");
    bool failed_here = !answer && (w->stop.broken || PyErr_Occurred());
    int truth = answer ? op_truth(w, answer) : 0;
    Py_XDECREF(answer);
    return failed_here || truth < 0 ? failed(w) : ST_OK;
}

// What bases leave abstract, and what the class has in its place.
static status look_at_base(world *w, PyTypeObject *class, PyTypeObject *base) {
    PyObject *raw = NULL;
    if (!type_lookup(w, base, word.abstractmethods, &raw))
        return w->stop.broken || PyErr_Occurred() ? failed(w) : ST_OK;
    PyObject *names = PySequence_List(raw);
    status st = names ? ST_OK : ST_ERROR;
    for (Py_ssize_t i = 0; st == ST_OK && i < PyList_GET_SIZE(names); i++) {
        PyObject *found = type_lookup(w, class, PyList_GET_ITEM(names, i), NULL);
        st = found ? look_at_abstract(w, found) : PyErr_Occurred() ? failed(w) : ST_OK;
    }
    Py_XDECREF(names);
    return st;
}

static status look_at_class(world *w, PyTypeObject *class) {
    PyObject *values = PyDict_Values(raw_type_dict(class)), *bases = class->tp_bases;
    status st = values ? ST_OK : ST_ERROR;
    for (Py_ssize_t i = 0; st == ST_OK && i < PyList_GET_SIZE(values); i++)
        st = look_at_abstract(w, PyList_GET_ITEM(values, i));
    for (Py_ssize_t i = 0; st == ST_OK && i < PyTuple_GET_SIZE(bases); i++)
        st = look_at_base(w, class, (PyTypeObject *)PyTuple_GET_ITEM(bases, i));
    Py_XDECREF(values);
    return st;
}

// A class of this trace, as the first argument; borrowed. Whatever else is written to for real.
static PyObject *own_abstract(world *w, const call *c) {
    PyObject *class = door_open(w, c->args[0]);
    if (class && PyType_Check(class) && type_is_made(w, (PyTypeObject *)class))
        return class;
    return class ? world_break(w, REASON_CLASS_WRITE, "%s of an outside class", c->rule->path)
                 : NULL;
}

HANDLER(abc_init) {
    PyObject *class = own_abstract(w, c);
    return class && look_at_class(w, (PyTypeObject *)class) == ST_OK
               ? call_native(w, c->callable, &class, 1, NULL, false)
               : NULL;
}

// Both classes are asked whether one is the other's subclass already.
HANDLER(abc_register) {
    PyObject *both[] = {own_abstract(w, c), NULL};
    if (!both[0] || !(both[1] = door_open(w, c->args[1])))
        return NULL;
    for (int i = 0; i < 2; i++) {
        descr d;
        if (PyType_Check(both[i]) &&
            descr_find(w, Py_TYPE(both[i]), word.subclasscheck, &d) != ST_OK)
            return NULL;
    }
    return call_native(w, c->callable, both, 2, NULL, false);
}

// --- list[int] ---

// Nothing is done to what it is made of: it is only kept, so no lazy may be in there.
HANDLER(generic_alias) {
    PyObject *ready[4] = {NULL}, *result = NULL;
    status st = ST_OK;
    if (c->keywords || c->given > Py_ARRAY_LENGTH(ready))
        return handler_misuse(w, c);
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

// --- names ---

// Guards that none of the classes in an MRO gets or loses a name.
static status guard_names(world *w, PyTypeObject *type) {
    if (w->facts.class_written)
        return world_break_status(w, REASON_NATIVE_CALL, "dir() after a class was written to");
    TRY(type_guard_mro(w, type));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i);
        if (raw_is_python_class(base) && !type_is_made(w, base))
            TRY(guard_pair(w, base, base, false));
    }
    return ST_OK;
}

// merge_class_dict in typeobject.c: the order shows in object.__dir__().
static status add_class_names(PyObject *names, PyTypeObject *type) {
    if (PyDict_Update(names, raw_type_dict(type)) < 0)
        return ST_ERROR;
    for (Py_ssize_t i = 0; type->tp_bases && i < PyTuple_GET_SIZE(type->tp_bases); i++)
        TRY(add_class_names(names, (PyTypeObject *)PyTuple_GET_ITEM(type->tp_bases, i)));
    return ST_OK;
}

// Those of an object's own dict, if it has one.
static status add_own_names(world *w, PyObject *names, PyObject *o) {
    PyObject *own = handler_find(w, o, "__dict__"), *dict = own ? door_open(w, own) : NULL;
    status st = !dict && (w->stop.broken || PyErr_Occurred()) ? failed(w) : ST_OK;
    if (dict && !PyDict_CheckExact(dict))
        st = world_break_status(w, REASON_NATIVE_CALL, "dir() of a %s object", Py_TYPE(o)->tp_name);
    else if (dict && PyDict_Update(names, dict) < 0)
        st = ST_ERROR;
    Py_XDECREF(own);
    return st;
}

static PyObject *sorted_names(world *w, PyObject *names) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); i++)
        if (!PyUnicode_CheckExact(PyList_GET_ITEM(names, i)))
            return world_break(w, REASON_NATIVE_CALL, "dir() with names that are no str");
    return PyList_Sort(names) == 0 ? Py_NewRef(names) : NULL;
}

// object.__dir__ and type.__dir__: the names of the object's dict and of its class's MRO, or those of
// the class's own MRO.
static PyObject *all_names(world *w, PyObject *o) {
    PyTypeObject *type = PyType_Check(o) ? (PyTypeObject *)o : Py_TYPE(o);
    PyObject *names = PyDict_New(), *list = NULL;
    status st = names ? guard_names(w, type) : ST_ERROR;
    if (st == ST_OK && !PyType_Check(o))
        st = add_own_names(w, names, o);
    if (st == ST_OK && add_class_names(names, type) == ST_OK)
        list = PyDict_Keys(names);
    Py_XDECREF(names);
    return list;
}

// What a __dir__ in Python gives.
static PyObject *given_names(world *w, const descr *d, PyObject *o) {
    PyObject *method = descr_get(w, d, o, Py_TYPE(o));
    PyObject *given = method ? call_with(w, method, NULL, 0) : NULL;
    PyObject *list = given ? handler_gather(w, given) : NULL;
    if (list && protocol_open_elements(w, &list, P_NONE) != ST_OK)
        Py_CLEAR(list);
    Py_XDECREF(method);
    Py_XDECREF(given);
    return list;
}

static PyObject *refuse_dir(world *w, PyObject *o) {
    bool wrong_already = w->stop.broken || PyErr_Occurred();
    return wrong_already
               ? NULL
               : world_break(w, REASON_NATIVE_CALL, "dir() of a %s object", Py_TYPE(o)->tp_name);
}

// Whether all_names says what this __dir__ says.
static bool lists_all(world *w, PyObject *o, PyObject *raw) {
    if (PyType_Check(o))
        return raw == _PyType_Lookup(&PyType_Type, word.dir);
    return raw == _PyType_Lookup(&PyBaseObject_Type, word.dir) &&
           has_plain_class(w, Py_TYPE(o)) == 1;
}

HANDLER(dir) {
    PyObject *o = c->given ? door_open(w, c->args[0]) : NULL;
    descr d = {0};
    if (!o)
        return c->given ? NULL : world_break(w, REASON_FRAME, "dir()");
    if (is_standin(o) || descr_find(w, Py_TYPE(o), word.dir, &d) != ST_OK)
        return refuse_dir(w, o);
    bool all = lists_all(w, o, d.raw);
    if (w->stop.broken || PyErr_Occurred() || (!all && !(d.raw && PyFunction_Check(d.raw))))
        return refuse_dir(w, o);
    PyObject *names = all ? all_names(w, o) : given_names(w, &d, o);
    PyObject *sorted = names ? sorted_names(w, names) : NULL;
    Py_XDECREF(names);
    return sorted;
}

// object.__dir__(o), type.__dir__(class)
HANDLER(plain_dir) {
    PyObject *o = door_open(w, c->args[0]), *list = NULL;
    if (!o)
        return NULL;
    bool of_type = strcmp(c->rule->path, "type.__dir__") == 0;
    if (!is_standin(o) && of_type == (bool)PyType_Check(o) &&
        (of_type || has_plain_class(w, Py_TYPE(o)) == 1))
        list = all_names(w, o);
    return list ? list : refuse_dir(w, o);
}

// --- types ---

HANDLER(type) {
    if (c->given != 1 || c->keywords)
        return c->given == 3 ? call_make(w, c) : handler_misuse(w, c);
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

static HANDLER(class_statement) {
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

#define MAKER(path, ...)                                                                           \
    {path,         RULE_HANDLED,     .handler = handle_class_statement,                            \
     .takes = ANY, .writes = W_NONE, __VA_ARGS__}

// A trace that may break ends before the call: it would do so once for each function that the call
// makes, if the class leaves the trace.
static bool breaks_at_tuples(world *w, const call *c) {
    (void)c;
    return !w->terms.whole;
}

// They write to functions and classes from outside: one break in place of one for each.
status classes_setup(void) {
    static const rule tuples = MAKER("collections.namedtuple", .applies = breaks_at_tuples),
                      typed = MAKER("typing.NamedTuple", .applies = breaks_at_tuples);
    TRY(add_maker("collections", "namedtuple", &tuples));
    TRY(add_maker("typing", "NamedTuple", &typed));
    static const rule data = MAKER("dataclasses.dataclass", .applies = NULL);
    return add_maker("dataclasses", "_process_class", &data);
}
