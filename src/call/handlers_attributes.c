// Handlers of attributes: getattr and its like, the slots of object and type for them, descriptors.
#include "src/world/number.h"

#include "src/attr/attr.h"
#include "src/attr/descr.h"

#include "src/call/call.h"
#include "src/call/handlers.h"

// --- by name ---

HANDLER(getattr) {
    PyObject *name = handler_name(w, c->args[1]);
    PyObject *value = name ? attr_get(w, c->args[0], name) : NULL;
    if (value || !name || c->given == 2 || !handler_missed(w))
        return value;
    PyErr_Clear();
    return Py_NewRef(c->args[2]);
}

// The class of an open number tells which attributes the number has: the value stays open. 1, 0; -1:
// error or break; 2: no open number.
static int number_has(world *w, PyObject *o, PyObject *name) {
    static PyTypeObject *const types[] = {
        [NUMBER_INT] = &PyLong_Type, [NUMBER_FLOAT] = &PyFloat_Type, [NUMBER_BOOL] = &PyBool_Type};
    number n;
    int open = door_number(w, o, &n);
    return open <= 0 ? (open < 0 ? -1 : 2) : _PyType_Lookup(types[n.kind], name) != NULL;
}

HANDLER(hasattr) {
    PyObject *name = handler_name(w, c->args[1]);
    int number = name ? number_has(w, c->args[0], name) : -1;
    if (number != 2)
        return number < 0 ? NULL : PyBool_FromLong(number);
    PyObject *value = name ? attr_get(w, c->args[0], name) : NULL;
    if (!value && (!name || !handler_missed(w)))
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

static PyObject *set_on_class(world *w, const call *c, PyObject *value) {
    PyObject *both[] = {door_open(w, c->args[0]), c->args[1]};
    if (!both[0])
        return NULL;
    return PyType_Check(both[0]) ? set_attribute(w, both, value, attr_set_class)
                                 : handler_misuse(w, c);
}

HANDLER(type_setattr) {
    return set_on_class(w, c, c->args[2]);
}

HANDLER(type_delattr) {
    return set_on_class(w, c, NULL);
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
    int classless = none <= 0 ? 0 : c->given < 3 ? 1 : door_is(w, c->args[2], Py_None);
    if (none < 0 || classless < 0)
        return NULL;
    if (classless)
        return handler_misuse(w, c);
    if (none)
        return Py_NewRef(c->args[0]);
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
