// Turns a class statement, and type(name, bases, namespace), into a class of this trace. The body and
// the metaclass's methods in Python are interpreted, and type.__new__ makes the class. Such a class
// does not outlive the trace: if it would, the trace breaks before the statement.
#include "src/attr/attr.h"
#include "src/attr/descr.h"
#include "src/attr/words.h"

#include "src/call/call.h"
#include "src/call/handlers.h"
#include "src/call/native.h"
#include "src/call/special.h"

static status refuse(world *w, const char *what, PyObject *o) {
    return world_break_status(w, REASON_CLASS_STATEMENT, "%s %s", what,
                              PyType_Check(o) ? ((PyTypeObject *)o)->tp_name : Py_TYPE(o)->tp_name);
}

// --- bases ---

// C code makes the class by the real bases, so that guards keep their MROs. A metaclass in C may do
// anything.
static status check_base(world *w, PyObject *base) {
    PyTypeObject *type = (PyTypeObject *)base, *meta = Py_TYPE(base);
    if (!PyType_Check(base))
        return refuse(w, "a base of type", (PyObject *)meta);
    if (world_tensors && raw_is_python_class(type) && !type_is_made(w, type) &&
        world_manner(type->tp_base) != TYPE_UNKNOWN)
        return refuse(w, "a subclass of", base);
    if (!class_value(w, type) || !class_value(w, meta))
        return failed(w);
    return type_guard_mro(w, type);
}

static status check_bases(world *w, PyObject *bases) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); i++)
        TRY(check_base(w, PyTuple_GET_ITEM(bases, i)));
    return ST_OK;
}

// The most derived metaclass; where there is none, `meta`: type.__new__ says so.
static PyTypeObject *winner_of(PyTypeObject *meta, PyObject *bases) {
    PyTypeObject *winner = meta;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); i++) {
        PyTypeObject *other = Py_TYPE(PyTuple_GET_ITEM(bases, i));
        if (PyType_IsSubtype(other, winner))
            winner = other;
        else if (!PyType_IsSubtype(winner, other))
            return meta;
    }
    return winner;
}

// type.__new__ asks the metaclass for the MRO.
static status check_mro(world *w, PyTypeObject *meta) {
    PyObject *raw = NULL;
    if (!type_lookup(w, meta, word.mro, &raw))
        return failed(w);
    return raw == _PyType_Lookup(&PyType_Type, word.mro)
               ? ST_OK
               : refuse(w, "an MRO of its own by", (PyObject *)meta);
}

// --- the namespace ---

static PyTypeObject mark_type;

// type.__new__ tells each value its name. The method is looked up here, so that its frame is known
// when native code calls it. A property only keeps the name (3.13).
static status check_set_name(world *w, PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    descr d;
    if (is_scalar(value) || is_standin(value))
        return ST_OK;
    if (!raw_is_python_class(type)) {
        bool harmless = type == &mark_type || (type == &PyProperty_Type && !record_of(w, value));
        return _PyType_Lookup(type, word.set_name) && !harmless
                   ? refuse(w, "an attribute that is told its name: a", value)
                   : ST_OK;
    }
    TRY(descr_find(w, type, word.set_name, &d));
    return !d.found || PyFunction_Check(d.raw) ? ST_OK : refuse(w, "the __set_name__ of a", value);
}

// type.__new__ reads the names themselves.
static status open_slots(world *w, PyObject **value) {
    if (!PyUnicode_CheckExact(*value) && !PyTuple_CheckExact(*value) &&
        !PyList_CheckExact(*value) && !PyDict_CheckExact(*value))
        return refuse(w, "__slots__ that are a", *value);
    return protocol_open_elements(w, value, P_HASH);
}

static status open_entry(world *w, PyObject *namespace, PyObject *name) {
    PyObject *value = native_open(w, PyDict_GetItemWithError(namespace, name), P_NONE);
    if (!value)
        return failed(w);
    bool slots = PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__slots__") == 0;
    status done = slots ? open_slots(w, &value) : check_set_name(w, value);
    if (done == ST_OK && PyDict_SetItem(namespace, name, value) < 0)
        done = ST_ERROR;
    Py_DECREF(value);
    return done;
}

static status open_namespace(world *w, PyObject *namespace) {
    PyObject *names = PyDict_Keys(namespace);
    status done = names ? ST_OK : ST_ERROR;
    for (Py_ssize_t i = 0; done == ST_OK && i < PyList_GET_SIZE(names); i++)
        done = open_entry(w, namespace, PyList_GET_ITEM(names, i));
    Py_XDECREF(names);
    return done;
}

// --- the mark ---

// The first entry of a namespace while type.__new__ makes the class of it. type.__new__ tells the
// mark its name before it runs any Python code, so that the trace knows the class by then.

static PyObject *mark_told(PyObject *self, PyObject *const *args, Py_ssize_t count);

static PyMethodDef mark_methods[] = {
    {"__set_name__", (PyCFunction)(void (*)(void))mark_told, METH_FASTCALL, NULL}, {0}};

static PyTypeObject mark_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.class_mark",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_methods = mark_methods,
};

// super().__init_subclass__() comes after all names: looked up for the same reason.
static status look_at_init_subclass(world *w, PyTypeObject *class) {
    descr d;
    PyObject *mro = class->tp_mro, *plain = _PyType_Lookup(&PyBaseObject_Type, word.init_subclass);
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        int own = type_has_own(w, base, word.init_subclass);
        if (own == 0)
            continue;
        if (own < 0 || descr_find(w, base, word.init_subclass, &d) != ST_OK)
            return failed(w);
        if (d.raw == plain)
            return ST_OK;
        if (!Py_IS_TYPE(d.raw, &PyClassMethod_Type))
            return refuse(w, "the __init_subclass__ of", (PyObject *)base);
        PyObject *bound = descr_get(w, &d, NULL, class);
        Py_XDECREF(bound);
        return bound ? ST_OK : failed(w);
    }
    return ST_OK;
}

static PyObject *mark_told(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    world *w = world_here;
    if (!w || count != 2 || !world_keep(w, Py_NewRef(args[0])) ||
        map_put(&w->made.objects, map_key(args[0]), MADE_CLASS) != ST_OK ||
        world_born(w, args[0]) != ST_OK || PyType_Type.tp_setattro(args[0], args[1], NULL) < 0 ||
        look_at_init_subclass(w, (PyTypeObject *)args[0]) != ST_OK)
        return NULL;
    Py_RETURN_NONE;
}

// A copy of the namespace with the mark in front.
static PyObject *marked(world *w, PyObject *namespace) {
    if (!(mark_type.tp_flags & Py_TPFLAGS_READY) && PyType_Ready(&mark_type) < 0)
        return NULL;
    PyObject *mark = PyObject_New(PyObject, &mark_type), *copy = PyDict_New();
    if (!mark || !copy || PyDict_SetItemString(copy, "the mark of a class", mark) < 0 ||
        op_dict_update(w, copy, namespace, false) < 0 || open_namespace(w, copy) != ST_OK)
        Py_CLEAR(copy);
    Py_XDECREF(mark);
    return copy;
}

// --- type.__new__ ---

static PyObject *keywords_opened(world *w, const call *c) {
    PyObject *dict = PyDict_New();
    size_t named = call_count(c) - c->given;
    for (size_t i = 0; dict && i < named; i++) {
        PyObject *value = native_open(w, c->args[c->given + i], P_NONE);
        if (!value || PyDict_SetItem(dict, PyTuple_GET_ITEM(c->keywords, i), value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *make_class(world *w, PyTypeObject *meta, PyObject *name, PyObject *bases,
                            PyObject *namespace, const call *c) {
    PyObject *copy = marked(w, namespace), *class = NULL;
    PyObject *args = copy ? PyTuple_Pack(3, name, bases, copy) : NULL;
    PyObject *keywords = args ? keywords_opened(w, c) : NULL;
    if (keywords)
        class = native_result(w, PyType_Type.tp_new(meta, args, keywords), false);
    Py_XDECREF(copy);
    Py_XDECREF(args);
    Py_XDECREF(keywords);
    return class;
}

// Another metaclass than the one that was called may have a __new__ of its own: 1 and *result.
static int new_of_winner(world *w, PyTypeObject *winner, const call *c, PyObject **result) {
    descr d;
    if (!class_value(w, winner) || descr_find(w, winner, word.new_, &d) != ST_OK)
        return -1;
    if (d.raw == _PyType_Lookup(&PyType_Type, word.new_))
        return 0;
    call rest = call_again(c, descr_get(w, &d, NULL, winner));
    rest.args++;
    rest.given--;
    *result = rest.callable ? call_with_first(w, &rest, (PyObject *)winner) : NULL;
    Py_XDECREF(rest.callable);
    return *result ? 1 : -1;
}

// Of opened (name, bases, namespace), which are what they have to be.
static PyObject *new_class(world *w, PyTypeObject *meta, PyObject *const *items, const call *c) {
    PyTypeObject *winner;
    PyObject *class = NULL;
    if (check_bases(w, items[1]) != ST_OK)
        return NULL;
    winner = winner_of(meta, items[1]);
    int other = winner == meta ? 0 : new_of_winner(w, winner, c, &class);
    if (other != 0)
        return class;
    if (!class_value(w, winner) || check_mro(w, winner) != ST_OK)
        return NULL;
    return make_class(w, winner, items[0], items[1], items[2], c);
}

static bool is_namespace(PyObject *o) {
    return PyDict_Check(o) && Py_TYPE(o)->tp_iter == PyDict_Type.tp_iter;
}

HANDLER(type_new) {
    PyObject *items[4] = {NULL}, *class = NULL;
    if (c->given != 4)
        return handler_misuse(w, c);
    status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < 4; i++) {
        items[i] = Py_NewRef(c->args[i]);
        st = i == 2 ? protocol_open_elements(w, &items[i], P_NONE)
                    : protocol_open(w, &items[i], P_NONE);
    }
    if (st == ST_OK) {
        bool fits =
            PyType_Check(items[0]) && PyType_IsSubtype((PyTypeObject *)items[0], &PyType_Type) &&
            PyUnicode_Check(items[1]) && PyTuple_CheckExact(items[2]) && is_namespace(items[3]);
        class = fits ? new_class(w, (PyTypeObject *)items[0], items + 1, c) : handler_misuse(w, c);
    }
    for (size_t i = 0; i < 4; i++)
        Py_XDECREF(items[i]);
    return class;
}

// --- class statements ---

// What __build_class__ takes for the metaclass: does what the real one would do, by the
// interpreter's own calls.
typedef struct maker {
    PyObject_HEAD
    PyObject *meta;  // borrowed from the statement, as all below
    PyObject *bases; // as they were given, if some of them stood for others; else NULL
    const call *statement;
} maker;

// callable(name, bases[, namespace], **keywords), with the keywords of the statement.
static PyObject *call_by_maker(world *w, const maker *m, PyObject *callable, PyObject *const *args,
                               size_t given) {
    const call *s = m->statement;
    size_t named = call_count(s) - s->given;
    PyObject *dict = PyDict_New(), *tuple = PyTuple_New((Py_ssize_t)given), *result = NULL;
    for (size_t i = 0; dict && i < named; i++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(s->keywords, i), s->args[s->given + i]) < 0)
            Py_CLEAR(dict);
    if (dict && handler_keyword(s, "metaclass") && PyDict_DelItemString(dict, "metaclass") < 0)
        Py_CLEAR(dict);
    for (size_t i = 0; tuple && i < given; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    if (dict && tuple)
        result = call_star(w, callable, tuple, dict, RUN_NATIVE);
    Py_XDECREF(dict);
    Py_XDECREF(tuple);
    return result;
}

static PyObject *handed_over(world *w, PyObject *result) {
    if (result && protocol_handed_over(w, &result) != ST_OK)
        Py_CLEAR(result);
    return result;
}

static PyObject *maker_prepare(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    world *w = world_here;
    const maker *m = (maker *)self;
    PyObject *prepare = handler_find(w, m->meta, "__prepare__");
    if (!prepare)
        return w->stop.broken || PyErr_Occurred() ? NULL : PyDict_New();
    PyObject *made = handed_over(w, call_by_maker(w, m, prepare, args, (size_t)count));
    Py_DECREF(prepare);
    if (made && (!PyDict_Check(made) || record_of(w, made))) {
        refuse(w, "a namespace that is a", made);
        Py_CLEAR(made);
    }
    return made;
}

static PyObject *maker_call(PyObject *self, PyObject *args, PyObject *keywords) {
    world *w = world_here;
    const maker *m = (maker *)self;
    (void)keywords;
    PyObject *namespace = PyTuple_GET_ITEM(args, 2);
    if (m->bases && op_setitem(w, namespace, word.orig_bases, m->bases) < 0)
        return NULL;
    return handed_over(w, call_by_maker(w, m, m->meta, ((PyTupleObject *)args)->ob_item, 3));
}

static PyMethodDef maker_methods[] = {
    {"__prepare__", (PyCFunction)(void (*)(void))maker_prepare, METH_FASTCALL, NULL}, {0}};

static PyTypeObject maker_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.class_maker",
    .tp_basicsize = sizeof(maker),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_methods = maker_methods,
    .tp_call = maker_call,
};

// What a base that is no class stands for: adds to the list, which has the bases before it.
static status add_entries(world *w, PyObject *list, PyObject *base, PyObject *bases) {
    PyObject *entries = PyType_Check(base) ? NULL : handler_find(w, base, "__mro_entries__");
    if (!entries)
        return w->stop.broken || PyErr_Occurred() || PyList_Append(list, base) < 0 ? failed(w)
                                                                                   : ST_OK;
    PyObject *given = handed_over(w, call_with(w, entries, &bases, 1));
    Py_DECREF(entries);
    status st = given ? ST_OK : failed(w);
    if (given && !PyTuple_CheckExact(given))
        st = refuse(w, "bases that are a", given);
    if (st == ST_OK && op_list_extend(w, list, given) < 0)
        st = failed(w);
    Py_XDECREF(given);
    return st;
}

static PyObject *real_bases(world *w, PyObject *bases) {
    PyObject *list = PyList_New(0), *real = NULL;
    for (Py_ssize_t i = 0; list && i < PyTuple_GET_SIZE(bases); i++)
        if (add_entries(w, list, PyTuple_GET_ITEM(bases, i), bases) != ST_OK)
            Py_CLEAR(list);
    if (list && (real = PyList_AsTuple(list)) && protocol_open_elements(w, &real, P_NONE) != ST_OK)
        Py_CLEAR(real);
    Py_XDECREF(list);
    return real;
}

// The metaclass that was given or that the bases have; borrowed.
static PyObject *metaclass_of(world *w, maker *m, PyObject *bases) {
    PyObject *given = handler_keyword(m->statement, "metaclass");
    PyObject *meta = given ? door_open(w, given) : (PyObject *)&PyType_Type;
    if (!meta || check_bases(w, bases) != ST_OK)
        return NULL;
    return PyType_Check(meta) ? class_value(w, winner_of((PyTypeObject *)meta, bases)) : meta;
}

// The function that is the body, the name, the bases; then the maker.
static PyObject *build(world *w, PyObject *callable, maker *m, PyObject *const *items,
                       PyObject *bases) {
    static PyObject *keywords;
    if (!keywords && !(keywords = Py_BuildValue("(s)", "metaclass")))
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(bases);
    PyObject **all = PyMem_New(PyObject *, (size_t)count + 3), *class = NULL;
    if (!all)
        return PyErr_NoMemory();
    memcpy(all, items, 2 * sizeof(PyObject *));
    memcpy(all + 2, ((PyTupleObject *)bases)->ob_item, (size_t)count * sizeof(PyObject *));
    all[count + 2] = (PyObject *)m;
    if ((m->meta = metaclass_of(w, m, bases)))
        class = call_native(w, callable, all, (size_t)count + 2, keywords, false);
    PyMem_Free(all);
    return class;
}

static PyObject *state(world *w, const call *c, PyObject *const *items, PyObject *bases) {
    if (!(maker_type.tp_flags & Py_TPFLAGS_READY) && PyType_Ready(&maker_type) < 0)
        return NULL;
    PyObject *real = real_bases(w, bases), *class = NULL;
    maker *m = real ? PyObject_New(maker, &maker_type) : NULL;
    if (m) {
        bool same = PyTuple_GET_SIZE(real) == PyTuple_GET_SIZE(bases);
        for (Py_ssize_t i = 0; same && i < PyTuple_GET_SIZE(real); i++)
            same = PyTuple_GET_ITEM(real, i) == PyTuple_GET_ITEM(bases, i);
        m->bases = same ? NULL : bases;
        m->statement = c;
        class = build(w, c->callable, m, items, real);
        Py_DECREF(m);
    }
    Py_XDECREF(real);
    return class;
}

HANDLER(build_class) {
    PyObject *items[2], *bases = NULL, *class = NULL;
    for (size_t i = 0; i < 2; i++)
        if (!(items[i] = door_open(w, c->args[i])))
            return NULL;
    if (!PyFunction_Check(items[0]) || !map_get(&w->made.objects, map_key(items[0])))
        return world_break(w, REASON_CLASS_STATEMENT, "a body that was not made here");
    bases = PyTuple_New((Py_ssize_t)c->given - 2);
    for (size_t i = 2; bases && i < c->given; i++) {
        PyObject *base = door_open(w, c->args[i]);
        if (base)
            PyTuple_SET_ITEM(bases, i - 2, Py_NewRef(base));
        else
            Py_CLEAR(bases);
    }
    if (bases)
        class = state(w, c, items, bases);
    Py_XDECREF(bases);
    return class;
}

// --- what bodies wrap functions in ---

// C code copies these attributes of what it wraps; of an outside function they are guarded.
static status look_at_function(world *w, PyObject *function) {
    PyObject *const copied[] = {word.module, word.name, word.qualname, word.doc};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(copied); i++) {
        PyObject *value = attr_get(w, function, copied[i]);
        PyObject *opened = value ? door_open(w, value) : NULL;
        Py_XDECREF(value);
        if (!opened)
            return failed(w);
    }
    return ST_OK;
}

// Whether C code may read the attributes of what it wraps, so far as it does: a function of this
// trace, or an object of these C types, has none that did not pass the door.
static bool is_open_part(world *w, PyObject *o) {
    if (o == Py_None || PyUnicode_CheckExact(o))
        return true;
    if (PyFunction_Check(o))
        return map_get(&w->made.objects, map_key(o)) || record_of(w, o);
    if (PyCFunction_Check(o))
        return !PyCFunction_GET_SELF(o) || PyModule_Check(PyCFunction_GET_SELF(o));
    bool wrapper = Py_IS_TYPE(o, &PyProperty_Type) || Py_IS_TYPE(o, &PyStaticMethod_Type) ||
                   Py_IS_TYPE(o, &PyClassMethod_Type);
    return wrapper && !record_of(w, o);
}

// The annotations of an outside function are its own dict, which has to pass the door.
static status mend_annotations(world *w, PyObject *wrapper, PyObject *function) {
    PyObject *dict = PyObject_GenericGetDict(wrapper, NULL), *value = NULL;
    status st = dict ? ST_OK : ST_ERROR;
    if (dict && PyDict_Contains(dict, word.annotations) == 1) {
        value = attr_get(w, function, word.annotations);
        st = value && PyDict_SetItem(dict, word.annotations, value) == 0 ? ST_OK : failed(w);
    }
    Py_XDECREF(dict);
    Py_XDECREF(value);
    return st;
}

static PyObject *wrap(world *w, const call *c) {
    PyObject *items[4] = {NULL}, *outside = NULL;
    for (size_t i = 0; i < c->given; i++) {
        if (!(items[i] = door_open(w, c->args[i])))
            return NULL;
        bool self = i == 0 && !PyType_Check(c->callable);
        if (!self && !is_open_part(w, items[i]))
            return world_break(w, REASON_NATIVE_CALL, "%s of a %s object", c->rule->path,
                               Py_TYPE(items[i])->tp_name);
        bool function = !self && PyFunction_Check(items[i]) && record_of(w, items[i]);
        if (function && look_at_function(w, outside = items[i]) != ST_OK)
            return NULL;
    }
    PyObject *made = call_native(w, c->callable, items, c->given, NULL, false);
    if (made && outside && !Py_IS_TYPE(made, &PyProperty_Type) &&
        mend_annotations(w, made, outside) != ST_OK)
        Py_CLEAR(made);
    return made;
}

// staticmethod(f), property(f, g).
HANDLER(wrap_function) {
    return c->given > 0 && !c->keywords ? wrap(w, c)
                                        : world_break(w, REASON_NATIVE_CALL, "%s", c->rule->path);
}

// @name.setter
HANDLER(property_copy) {
    PyObject *self = door_open(w, c->args[0]);
    if (!self)
        return NULL;
    if (!Py_IS_TYPE(self, &PyProperty_Type) || record_of(w, self))
        return world_break(w, REASON_NATIVE_CALL, "%s of an outside property", c->rule->path);
    return wrap(w, c);
}
