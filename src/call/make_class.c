// Turns a class statement into a class of this trace: interprets the body, and lets type() make the
// class of the body's namespace. Such a class does not outlive the trace: if it would, the trace
// breaks before the statement.
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

// A base that Python code made knows its subclasses, and may be asked for them; its metaclass and
// its __init_subclass__ may do anything.
static status check_base(world *w, PyObject *base) {
    if (!PyType_Check(base) || Py_TYPE(base) != &PyType_Type)
        return refuse(w, "a base of type", (PyObject *)Py_TYPE(base));
    PyTypeObject *type = (PyTypeObject *)base;
    bool plain = _PyType_Lookup(type, word.init_subclass) ==
                 _PyType_Lookup(&PyBaseObject_Type, word.init_subclass);
    if (!plain || (raw_is_python_class(type) && !type_is_made(w, type)))
        return refuse(w, "a subclass of", base);
    return ST_OK;
}

// --- the namespace ---

// type() tells each value its name. A property only keeps it (3.13).
static status check_set_name(world *w, PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    if (is_scalar(value) || is_standin(value))
        return ST_OK;
    bool told = raw_is_python_class(type) ? type_lookup(w, type, word.set_name, NULL) != NULL
                                          : _PyType_Lookup(type, word.set_name) != NULL;
    if (w->stop.broken || PyErr_Occurred())
        return failed(w);
    bool harmless = type == &PyProperty_Type && !record_of(w, value);
    return told && !harmless ? refuse(w, "an attribute that is told its name: a", value) : ST_OK;
}

// type() reads the names themselves.
static status open_slots(world *w, PyObject **value) {
    if (!PyUnicode_CheckExact(*value) && !PyTuple_CheckExact(*value) && !PyList_CheckExact(*value))
        return refuse(w, "__slots__ that are a", *value);
    return protocol_open_elements(w, value, P_HASH);
}

static status open_entry(world *w, PyObject *namespace, PyObject *name) {
    PyObject *value = native_open(w, PyDict_GetItemWithError(namespace, name), P_NONE);
    if (!value)
        return failed(w);
    bool slots = PyUnicode_CompareWithASCIIString(name, "__slots__") == 0;
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

// --- the class ---

// What __build_class__ calls in place of the metaclass: (name, bases, namespace).
static PyObject *make_class(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    world *w = world_here;
    if (!w || count != 3 || !PyDict_CheckExact(args[2]) || open_namespace(w, args[2]) != ST_OK)
        return NULL;
    PyObject *class = PyObject_Vectorcall((PyObject *)&PyType_Type, args, 3, NULL);
    if (class && (!world_keep(w, Py_NewRef(class)) ||
                  map_put(&w->made.objects, map_key(class), MADE_CLASS) != ST_OK))
        Py_CLEAR(class);
    return class;
}

static PyMethodDef maker_method = {"make_class", (PyCFunction)(void (*)(void))make_class,
                                   METH_FASTCALL, NULL};

// The function that is the body, the name, the bases; the last item is the maker.
static PyObject *build(world *w, PyObject *callable, PyObject **items, size_t given) {
    static PyObject *keywords;
    if (!keywords && !(keywords = Py_BuildValue("(s)", "metaclass")))
        return NULL;
    if (!PyFunction_Check(items[0]) || !map_get(&w->made.objects, map_key(items[0])))
        return world_break(w, REASON_CLASS_STATEMENT, "a body that was not made here");
    for (size_t i = 2; i < given; i++)
        if (check_base(w, items[i]) != ST_OK)
            return NULL;
    PyObject *class = call_native(w, callable, items, given, keywords, false);
    if (class && world_born(w, class) != ST_OK)
        Py_CLEAR(class);
    return class;
}

HANDLER(build_class) {
    if (c->keywords && PyTuple_GET_SIZE(c->keywords) > 0)
        return world_break(w, REASON_CLASS_STATEMENT, "%U=", PyTuple_GET_ITEM(c->keywords, 0));
    PyObject **items = PyMem_New(PyObject *, c->given + 1), *class = NULL;
    if (!items)
        return PyErr_NoMemory();
    bool opened = true;
    for (size_t i = 0; opened && i < c->given; i++)
        opened = (items[i] = door_open(w, c->args[i])) != NULL;
    items[c->given] = opened ? PyCFunction_New(&maker_method, NULL) : NULL;
    if (items[c->given]) {
        class = build(w, c->callable, items, c->given);
        Py_DECREF(items[c->given]);
    }
    PyMem_Free(items);
    return class;
}

// --- what bodies wrap functions in ---

// Whether C code may read the attributes of what it wraps: a function of this trace has none that
// did not pass the door.
static bool is_open_part(world *w, PyObject *o) {
    return o == Py_None || PyUnicode_CheckExact(o) ||
           (PyFunction_Check(o) && map_get(&w->made.objects, map_key(o)));
}

static PyObject *wrap(world *w, const call *c) {
    PyObject *items[4];
    for (size_t i = 0; i < c->given; i++) {
        if (!(items[i] = door_open(w, c->args[i])))
            return NULL;
        bool self = i == 0 && !PyType_Check(c->callable);
        if (!self && !is_open_part(w, items[i]))
            return world_break(w, REASON_NATIVE_CALL, "%s of a %s object", c->rule->path,
                               Py_TYPE(items[i])->tp_name);
    }
    return call_native(w, c->callable, items, c->given, NULL, false);
}

// staticmethod(f), property(f, g): of functions that were made here.
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
