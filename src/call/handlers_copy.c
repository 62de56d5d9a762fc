// Handlers of copying: the parts of an object from which the copy module's own code makes the copy,
// and the values that are their own copies.
#include "src/attr/attr.h"
#include "src/attr/descr.h"
#include "src/attr/words.h"

#include "src/call/call.h"
#include "src/call/handlers.h"

static PyObject *new_object; // copyreg.__newobj__

static PyObject *refuse(world *w, PyObject *o) {
    return world_break(w, REASON_NATIVE_CALL, "object.__reduce_ex__ of a %s object",
                       Py_TYPE(o)->tp_name);
}

// --- what a class says about copying ---

// What the class has under a name, if it is not object's own. 1, 0, -1.
static int overrides(world *w, PyTypeObject *type, const char *name) {
    PyObject *text = PyUnicode_InternFromString(name), *raw = NULL;
    if (!text)
        return -1;
    type_lookup(w, type, text, &raw);
    PyObject *own = _PyType_Lookup(&PyBaseObject_Type, text);
    Py_DECREF(text);
    return w->stop.broken || PyErr_Occurred() ? -1 : raw != own;
}

// Whether a class of the MRO has slots. Absence is guarded; what a class statement wrote there has
// made its layout, and is not changed. (That copyreg would remember the answer in the class is left
// out.)
static int has_slots(world *w, PyTypeObject *type) {
    PyObject *known = PyDict_GetItemString(raw_type_dict(type), "__slotnames__");
    if (known && !(PyList_CheckExact(known) && PyList_GET_SIZE(known) == 0))
        return 1; // somebody says so
    int any = overrides(w, type, "__slots__");
    if (any <= 0)
        return any;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i);
        PyObject *slots = PyDict_GetItemString(raw_type_dict(base), "__slots__");
        if (slots && !(PyTuple_CheckExact(slots) && PyTuple_GET_SIZE(slots) == 0))
            return 1;
    }
    return 0;
}

// --- object.__reduce_ex__ ---

static PyObject *call_method(world *w, PyObject *o, const char *name) {
    PyObject *method = handler_attr(w, o, name);
    PyObject *result = method ? call_with(w, method, NULL, 0) : NULL;
    Py_XDECREF(method);
    return result;
}

// object.__getstate__: the instance dict, or None if there is nothing in it.
static PyObject *state_of(world *w, PyObject *o) {
    int own = overrides(w, Py_TYPE(o), "__getstate__");
    if (own)
        return own < 0 ? NULL : call_method(w, o, "__getstate__");
    int slots = has_slots(w, Py_TYPE(o));
    if (slots)
        return slots < 0 ? NULL : refuse(w, o);
    if (!raw_has_dict(Py_TYPE(o)))
        return Py_NewRef(Py_None);
    PyObject *dict = attr_get_generic(w, o, word.dict);
    int filled = dict ? op_truth(w, dict) : -1;
    if (filled <= 0)
        Py_XSETREF(dict, filled < 0 ? NULL : Py_NewRef(Py_None));
    return dict;
}

// What __new__ gets beside the class: nothing, or what a class says, as those of tuples do.
static PyObject *args_of(world *w, PyObject *o, PyObject *class) {
    int own = overrides(w, Py_TYPE(o), "__getnewargs_ex__");
    if (own)
        return own < 0 ? NULL : refuse(w, o);
    own = overrides(w, Py_TYPE(o), "__getnewargs__");
    PyObject *given = own > 0 ? call_method(w, o, "__getnewargs__") : NULL;
    PyObject *opened = given ? door_open(w, given) : NULL, *args = NULL;
    if (own == 0)
        args = PyTuple_Pack(1, class);
    else if (opened && !PyTuple_CheckExact(opened))
        refuse(w, o);
    else if (opened && (args = PyTuple_New(PyTuple_GET_SIZE(opened) + 1))) {
        PyTuple_SET_ITEM(args, 0, Py_NewRef(class));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(opened); i++)
            PyTuple_SET_ITEM(args, i + 1, Py_NewRef(PyTuple_GET_ITEM(opened, i)));
    }
    Py_XDECREF(given);
    return args;
}

static PyObject *iterator_of(world *w, PyObject *o, bool items) {
    PyObject *all = items ? call_method(w, o, "items") : Py_NewRef(o);
    PyObject *iterator = all ? op_iter(w, all) : NULL;
    Py_XDECREF(all);
    return iterator;
}

// (make, args, state, elements of a list, items of a dict); takes the references to make and args.
static PyObject *parts_of(world *w, PyObject *o, PyObject *make, PyObject *args) {
    PyObject *state = args ? state_of(w, o) : NULL, *parts = NULL;
    PyObject *elements = !state            ? NULL
                         : PyList_Check(o) ? iterator_of(w, o, false)
                                           : Py_NewRef(Py_None);
    PyObject *items = !elements         ? NULL
                      : PyDict_Check(o) ? iterator_of(w, o, true)
                                        : Py_NewRef(Py_None);
    if (items)
        parts = PyTuple_Pack(5, make, args, state, elements, items);
    Py_XDECREF(make);
    Py_XDECREF(args);
    Py_XDECREF(state);
    Py_XDECREF(elements);
    Py_XDECREF(items);
    return parts;
}

// As reduce_newobj makes it: what copyreg.__newobj__ gets is the class, and what its __new__ takes.
static PyObject *reduce_object(world *w, PyObject *o) {
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, new_object, 0);
    PyObject *make = s ? door_bring(w, s, new_object) : NULL;
    PyObject *class = make ? class_value(w, Py_TYPE(o)) : NULL;
    return class ? parts_of(w, o, Py_NewRef(make), args_of(w, o, class)) : NULL;
}

// odict_reduce and defdict_reduce: the class is called with nothing, or with the factory.
static PyObject *reduce_dict(world *w, PyObject *o) {
    PyObject *class = class_value(w, Py_TYPE(o));
    PyObject *factory = raw_field_get(RAW_DEFAULT_FACTORY, o);
    if (!class)
        return NULL;
    if (factory && is_trampoline(factory))
        factory = trampoline_callable(factory);
    if (factory == Py_None)
        factory = NULL;
    return parts_of(w, o, Py_NewRef(class), factory ? PyTuple_Pack(1, factory) : PyTuple_New(0));
}

// The C __reduce__ that a class has in place of object's: 1, 0, -1.
static int reduces_as_dict(world *w, PyObject *o) {
    PyObject *name = PyUnicode_InternFromString("__reduce__"), *raw = NULL;
    if (!name)
        return -1;
    type_lookup(w, Py_TYPE(o), name, &raw);
    Py_DECREF(name);
    if (w->stop.broken || PyErr_Occurred())
        return -1;
    bool c = raw && Py_IS_TYPE(raw, &PyMethodDescr_Type);
    return c && (PyDescr_TYPE(raw) == &PyODict_Type ||
                 strcmp(PyDescr_TYPE(raw)->tp_name, "collections.defaultdict") == 0);
}

// Python classes whose content is the instance dict, what __getnewargs__ gives, elements or items;
// others may have more, of which CPython says that it cannot be taken along.
static bool is_whole(PyTypeObject *type) {
    PyTypeObject *base = type;
    while (raw_is_python_class(base))
        base = base->tp_base;
    return base != type &&
           (base == &PyBaseObject_Type || base == &PyList_Type || base == &PyDict_Type ||
            base == &PyTuple_Type || base == &PyUnicode_Type || base == &PyLong_Type ||
            base == &PyFloat_Type || base == &PyBytes_Type);
}

// copyreg keeps the names of a class's slots there, and a class may put in others: these attributes
// are asked for one by one.
static bool names_slots(PyTypeObject *type) {
    PyObject *names = PyDict_GetItemString(raw_type_dict(type), "__slotnames__");
    return names && !(PyList_CheckExact(names) && PyList_GET_SIZE(names) == 0);
}

static PyObject *reduce_any(world *w, PyObject *o) {
    int dict = reduces_as_dict(w, o);
    if (dict)
        return dict < 0 ? NULL : reduce_dict(w, o);
    int own = overrides(w, Py_TYPE(o), "__reduce__");
    if (own)
        return own < 0 ? NULL : call_method(w, o, "__reduce__");
    bool plain = is_whole(Py_TYPE(o)) && !names_slots(Py_TYPE(o));
    return plain ? reduce_object(w, o) : refuse(w, o);
}

// set.__reduce__: its elements as a list.
static PyObject *reduce_set(world *w, PyObject *o) {
    PyObject *list = PyList_New(0);
    if (list && op_list_extend(w, list, o) < 0)
        Py_CLEAR(list);
    PyObject *parts = list ? Py_BuildValue("O(O)O", Py_TYPE(o), list, Py_None) : NULL;
    Py_XDECREF(list);
    return parts;
}

HANDLER(reduce_ex) {
    PyObject *o = door_open(w, c->args[0]), *protocol = o ? door_open(w, c->args[1]) : NULL;
    if (!protocol)
        return NULL;
    if (is_standin(o) || !PyLong_CheckExact(protocol) || PyLong_AsLong(protocol) < 2)
        return PyErr_Occurred() ? NULL : refuse(w, o);
    if (PyAnySet_CheckExact(o))
        return reduce_set(w, o);
    return reduce_any(w, o);
}

// --- copy.deepcopy ---

// A memo that was made inside has nothing about values: their addresses are not asked for there.
static int is_own_memo(world *w, PyObject *memo) {
    int none = memo ? door_is(w, memo, Py_None) : 1;
    if (none)
        return none;
    return !is_lazy(memo) && PyDict_CheckExact(memo) && !record_of(w, memo);
}

static bool is_atomic(PyTypeObject *t) {
    return t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type || t == &PyComplex_Type ||
           t == &PyUnicode_Type || t == &PyBytes_Type || t == Py_TYPE(Py_None);
}

// Whether deepcopy gives back the value itself, whichever object it is. 1, 0, -1.
static int is_its_copy(world *w, PyObject *o) {
    PyTypeObject *type = door_type(w, o);
    if (!type || is_atomic(type))
        return type ? 1 : -1;
    if (type != &PyTuple_Type)
        return 0;
    PyObject *tuple = door_open(w, o);
    int all = tuple ? 1 : -1;
    for (Py_ssize_t i = 0; all > 0 && i < PyTuple_GET_SIZE(tuple); i++)
        all = is_its_copy(w, PyTuple_GET_ITEM(tuple, i));
    return all;
}

// The library's function asks for the address of everything; of values that breaks.
static HANDLER(deepcopy) {
    PyObject *memo = c->given > 1 ? c->args[1] : handler_keyword(c, "memo");
    int own = c->given > 0 && c->given < 3 ? is_own_memo(w, memo) : 0;
    int same = own > 0 ? is_its_copy(w, c->args[0]) : own;
    if (same)
        return same < 0 ? NULL : Py_NewRef(c->args[0]);
    return handler_interpret(w, c);
}

// --- setting up ---

status copy_setup(void) {
    static const rule row = {.path = "copy.deepcopy",
                             .kind = RULE_HANDLED,
                             .handler = handle_deepcopy,
                             .takes = ANY,
                             .writes = W_NONE};
    if (!new_object && !(new_object = py_import("copyreg", "__newobj__")))
        return ST_ERROR;
    return rules_add_named("copy", "deepcopy", &row);
}
