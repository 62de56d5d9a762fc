// Handlers of what object's own methods do, and callable().
#include "src/attr/attr.h"
#include "src/attr/descr.h"
#include "src/attr/words.h"

#include "src/call/call.h"
#include "src/call/handlers.h"

// What object.__init__ asks of the type if there are arguments: whether __new__ and __init__ are
// object's own.
static status guard_makers(world *w, PyTypeObject *type) {
    static const char *const names[] = {"__new__", "__init__"};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++) {
        PyObject *name = PyUnicode_InternFromString(names[i]);
        if (!name)
            return ST_ERROR;
        PyObject *found = type_lookup(w, type, name, NULL);
        Py_DECREF(name);
        if (!found && (w->stop.broken || PyErr_Occurred()))
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
    arg_room room;
    if (!room_open(&room, NULL, c))
        return NULL;
    Py_SETREF(room.items[0], Py_NewRef(self));
    PyObject *result = call_native(w, c->callable, room.items, c->given, c->keywords, false);
    room_close(&room);
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

HANDLER(object_str) {
    return handler_special(w, c->args[0], "__repr__");
}

HANDLER(object_format) {
    PyObject *spec = door_open(w, c->args[1]), *self = spec ? door_open(w, c->args[0]) : NULL;
    if (!self)
        return NULL;
    if (!PyUnicode_CheckExact(spec) || is_standin(self))
        return world_break(w, REASON_NATIVE_CALL, "object.__format__");
    if (PyUnicode_GET_LENGTH(spec) == 0)
        return handler_special(w, self, "__str__");
    PyErr_Format(PyExc_TypeError, "unsupported format string passed to %.200s.__format__",
                 Py_TYPE(self)->tp_name);
    return NULL;
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
