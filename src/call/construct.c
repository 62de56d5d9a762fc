// Calls classes: does type.__call__ piece by piece, so that __new__ and __init__ in Python are
// interpreted, and those in C run by their rules.
#include "src/attr/descr.h"
#include "src/attr/words.h"

#include "src/call/call.h"
#include "src/call/rules.h"

// --- __new__ ---

// slot_tp_new asks the class for its __new__, by the metaclass's own way of reading attributes.
static status check_metaclass(world *w, PyTypeObject *meta) {
    way get;
    if (meta == &PyType_Type)
        return ST_OK;
    TRY(way_find(w, meta, word.getattribute, (void *)meta->tp_getattro, &get));
    if (!get.found && get.native == (void *)PyType_Type.tp_getattro)
        return ST_OK;
    return world_break_status(w, REASON_ATTRIBUTE, "%s.__getattribute__", meta->tp_name);
}

// A C type's __new__ that a class only names is not what makes its instances: those are made as its
// bases' are (update_one_slot).
static bool is_ignored(const descr *d, PyTypeObject *type) {
    PyObject *self = PyCFunction_Check(d->raw) ? PyCFunction_GET_SELF(d->raw) : NULL;
    return self && PyType_Check(self) && ((PyTypeObject *)self)->tp_new != type->tp_new;
}

static PyObject *make(world *w, const call *c) {
    PyTypeObject *type = (PyTypeObject *)c->callable;
    descr d;
    if (check_metaclass(w, Py_TYPE(type)) != ST_OK)
        return NULL;
    if (descr_find(w, type, word.new_, &d) != ST_OK)
        return NULL;
    if (!d.found)
        return world_break(w, REASON_NATIVE_CALL, "%s has no __new__", type->tp_name);
    if (is_ignored(&d, type))
        return world_break(w, REASON_NATIVE_CALL, "%s with another type's __new__", type->tp_name);
    call new = call_again(c, descr_get(w, &d, NULL, type));
    PyObject *object = new.callable ? call_with_first(w, &new, c->callable) : NULL;
    Py_XDECREF(new.callable);
    return object;
}

// --- __init__ ---

static status check_none(world *w, PyObject *result) {
    if (!result)
        return failed(w);
    int none = door_is(w, result, Py_None);
    if (none == 0) {
        PyTypeObject *type = door_type(w, result);
        if (type)
            PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'",
                         type->tp_name);
    }
    Py_DECREF(result);
    return none == 1 ? ST_OK : failed(w);
}

// An __init__ that the class's call ends with: its object is the instruction's value then.
static status init(world *w, const call *c, PyObject *object, bool last) {
    PyTypeObject *type = Py_TYPE(object);
    descr d;
    TRY(descr_find(w, type, word.init, &d));
    if (!d.found)
        return ST_OK;
    if (PyFunction_Check(d.raw) || Py_IS_TYPE(d.raw, &PyWrapperDescr_Type)) {
        call init = call_again(c, d.found);
        init.result = last && c->result == RUN_THIN ? RUN_INIT : RUN_NATIVE;
        init.made = object;
        return check_none(w, call_with_first(w, &init, object));
    }
    call init = call_again(c, descr_get(w, &d, object, type));
    if (!init.callable)
        return failed(w);
    PyObject *result = call_any(w, &init);
    Py_DECREF(init.callable);
    return check_none(w, result);
}

// --- classes ---

// Where nothing but the trace keeps an object, its end would be the trace's.
static status refuse_finalizer(world *w, PyTypeObject *type) {
    if (type_lookup(w, type, word.del, NULL))
        return world_break_status(w, REASON_FINALIZER, "%s.__del__", type->tp_name);
    return PyErr_Occurred() ? failed(w) : ST_OK;
}

// Whether a class is abstract is asked natively, so that it is guarded here.
static status look_at_abstract(world *w, PyTypeObject *type) {
    if (!type_lookup(w, type, word.abstractmethods, NULL) && PyErr_Occurred())
        return failed(w);
    return ST_OK;
}

// How many fields a struct sequence has (torch.return_types, time.struct_time); -1: it is none, or
// has some beside its items.
static Py_ssize_t fields_of(PyTypeObject *type) {
    if (!PyType_IsSubtype(type, &PyTuple_Type))
        return -1;
    PyObject *shown = PyDict_GetItemString(raw_type_dict(type), "n_sequence_fields");
    PyObject *all = PyDict_GetItemString(raw_type_dict(type), "n_fields");
    Py_ssize_t count = shown && all ? PyLong_AsSsize_t(shown) : -1;
    bool same = count >= 0 && PyLong_AsSsize_t(all) == count;
    PyErr_Clear();
    return same ? count : -1;
}

// The items are only moved.
static PyObject *make_fields(world *w, PyObject *class, PyObject *items, Py_ssize_t count) {
    PyObject *opened = door_open(w, items);
    if (!opened)
        return NULL;
    bool plain = PyTuple_CheckExact(opened) || PyList_CheckExact(opened);
    if (!plain || PySequence_Fast_GET_SIZE(opened) != count)
        return world_break(w, REASON_NATIVE_CALL, "%s of a %s object",
                           ((PyTypeObject *)class)->tp_name, Py_TYPE(opened)->tp_name);
    return call_native(w, class, &opened, 1, NULL, false);
}

static PyObject *call_builtin_class(world *w, const call *c) {
    const rule *row = rule_applying(w, rule_of(c->callable), c);
    if (row || w->stop.broken || PyErr_Occurred())
        return row ? rule_call(w, row, c) : NULL;
    Py_ssize_t fields = fields_of((PyTypeObject *)c->callable);
    if (fields >= 0 && c->given == 1 && !c->keywords)
        return make_fields(w, c->callable, c->args[0], fields);
    return world_break(w, REASON_NATIVE_CALL, "%s", ((PyTypeObject *)c->callable)->tp_name);
}

PyObject *call_type_call(world *w, const call *c) {
    PyTypeObject *type = (PyTypeObject *)c->callable;
    if (!raw_is_python_class(type))
        return call_builtin_class(w, c);
    if (refuse_finalizer(w, type) != ST_OK || look_at_abstract(w, type) != ST_OK)
        return NULL;
    return call_make(w, c);
}

PyObject *call_make(world *w, const call *c) {
    PyTypeObject *type = (PyTypeObject *)c->callable;
    PyObject *made = make(w, c);
    PyObject *object = made ? door_open(w, made) : NULL;
    if (!object) {
        Py_XDECREF(made);
        return NULL;
    }
    if (is_standin(object) || !PyObject_TypeCheck(object, type))
        return made;
    if (init(w, c, object, made == object) != ST_OK)
        Py_CLEAR(made);
    return made;
}
