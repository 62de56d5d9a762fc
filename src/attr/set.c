// Writes attributes, in PyObject_GenericSetAttr's order. A write to an outside object is held back;
// a write to an inside object is done natively, once the type is known to have nothing of its own
// to say about it.
#include "src/py/classes.h"
#include "src/py/raised.h"

#include "src/attr/descr.h"
#include "src/attr/later.h"
#include "src/attr/words.h"

static int refuse(world *w, reason why, PyObject *o, PyObject *name) {
    world_break(w, why, "writes %s.%U", Py_TYPE(o)->tp_name, name);
    return -1;
}

// Deleting what is not there: the native deletion fails in CPython's own words, and finds nothing
// to delete. If a held-back deletion is why it is not there, it would.
static int delete_missing(world *w, PyObject *o, PyObject *name) {
    record *r = record_of(w, o);
    PyObject *value;
    bool local = raw_is_thread_local(Py_TYPE(o)); // which has words of its own
    if (r && (local || raw_attr_get(r->outside, name, &value) != RAW_ABSENT))
        return refuse(w, REASON_ATTRIBUTE, o, name);
    return PyObject_GenericSetAttr(r ? r->outside : o, name, NULL);
}

static int set_outside(world *w, PyObject *o, record *r, PyObject *name, PyObject *value) {
    names *n = names_of_object(w, r);
    if (!n) // no dict: nothing can be written, and CPython says so
        return PyErr_Occurred() ? -1 : PyObject_GenericSetAttr(o, name, value);
    if (!value) {
        PyObject *old = names_get(w, n, name);
        if (!old)
            return PyErr_Occurred() ? -1 : delete_missing(w, o, name);
        Py_DECREF(old);
    }
    return names_set(w, n, name, value) == ST_OK ? 0 : -1;
}

static int set_generic(world *w, PyObject *o, PyObject *name, PyObject *value) {
    PyTypeObject *type = Py_TYPE(o);
    descr d;
    if (descr_find(w, type, name, &d) != ST_OK)
        return -1;
    if (d.data)
        return descr_set(w, &d, o, value);
    record *r = record_of(w, o);
    if (world_sealed(w, o))
        return refuse(w, REASON_ATTRIBUTE, o, name);
    if (!r)
        return PyObject_GenericSetAttr(o, name, value);
    if (PyMethod_Check(o))
        return refuse(w, REASON_ATTRIBUTE, o, name);
    return set_outside(w, o, r, name, value);
}

// --- classes ---

static bool is_dunder(PyObject *name) {
    Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    return length > 4 && PyUnicode_READ_CHAR(name, 0) == '_' &&
           PyUnicode_READ_CHAR(name, 1) == '_' && PyUnicode_READ_CHAR(name, length - 1) == '_' &&
           PyUnicode_READ_CHAR(name, length - 2) == '_';
}

// Whether a value is plain data: a class that holds it behaves as before. 1, 0, -1.
static int is_data(world *w, PyObject *value) {
    PyTypeObject *type = door_type(w, value);
    if (!type)
        return -1;
    if (is_standin(value) ||
        (world_tensors && is_lazy(value) && world_tensors->is_tensor(((lazy *)value)->outside)))
        return 1;
    PyObject *const names[] = {word.get, word.set, word.delete_, word.call};
    if (!raw_is_python_class(type))
        return !type->tp_descr_get && !type->tp_descr_set && !type->tp_call;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++) {
        if (type_lookup(w, type, names[i], NULL))
            return 0;
        if (w->stop.broken || PyErr_Occurred())
            return -1;
    }
    return 1;
}

// Of a class that was made inside. Native code may look at what it holds.
static int set_made(world *w, PyObject *class, PyObject *name, PyObject *value) {
    if (value && !(value = door_open(w, value)))
        return -1;
    world_touch(w);
    return PyType_Type.tp_setattro(class, name, value);
}

// Data of an outside class is held back like an instance's; whatever else would change what the
// class does.
int attr_set_class(world *w, PyObject *class, PyObject *name, PyObject *value) {
    descr of_meta, now;
    if (descr_find(w, Py_TYPE(class), name, &of_meta) != ST_OK)
        return -1;
    if (of_meta.data)
        return descr_set(w, &of_meta, class, value);
    if (!raw_is_python_class((PyTypeObject *)class)) // cannot be changed, and CPython says so
        return PyType_Type.tp_setattro(class, name, value);
    if (type_is_made(w, (PyTypeObject *)class))
        return set_made(w, class, name, value);
    if (is_dunder(name) || descr_find(w, (PyTypeObject *)class, name, &now) != ST_OK || now.gets ||
        now.data)
        return w->stop.broken ? -1 : refuse(w, REASON_CLASS_WRITE, class, name);
    int data = value ? is_data(w, value) : 1;
    record *r = data > 0 && class_value(w, (PyTypeObject *)class) ? record_of(w, class) : NULL;
    names *own = r ? names_of_object(w, r) : NULL;
    // A namespace that was met as a dict of its own no longer tells the class about changes.
    if (!own || !own->instance)
        return w->stop.broken || PyErr_Occurred() ? -1 : refuse(w, REASON_CLASS_WRITE, class, name);
    PyObject *old = value ? NULL : names_get(w, own, name);
    if (!value && !old)
        return w->stop.broken || PyErr_Occurred() ? -1 : refuse(w, REASON_CLASS_WRITE, class, name);
    Py_XDECREF(old);
    return names_set(w, own, name, value) == ST_OK ? 0 : -1;
}

// --- who answers ---

static int set_by_native(world *w, PyObject *o, PyObject *name, PyObject *value,
                         setattrofunc native) {
    if (native == PyObject_GenericSetAttr)
        return set_generic(w, o, name, value);
    if (native == PyType_Type.tp_setattro)
        return attr_set_class(w, o, name, value);
    if (raw_is_thread_local(Py_TYPE(o)) && record_of(w, o))
        return set_generic(w, o, name, value);
    if (!native) // nothing can be written: CPython says so
        return PyObject_SetAttr(o, name, value);
    return refuse(w, REASON_ATTRIBUTE, o, name);
}

static int set_hooked(world *w, PyObject *o, PyObject *name, PyObject *value) {
    way set;
    if (way_find(w, Py_TYPE(o), value ? word.setattr : word.delattr, NULL, &set) != ST_OK)
        return -1;
    if (!set.found)
        return set_by_native(w, o, name, value, (setattrofunc)set.native);
    PyObject *args[] = {o, name, value};
    PyObject *result = way_call(w, &set, args, value ? 3 : 2);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static int set_proxied(world *w, PyObject *proxy, PyObject *name, PyObject *value) {
    PyObject *o = attr_behind_proxy(w, proxy);
    int failed = o ? attr_set(w, o, name, value) : -1;
    Py_XDECREF(o);
    return failed;
}

int attr_set(world *w, PyObject *o, PyObject *name, PyObject *value) {
    if (!(o = door_open(w, o)))
        return -1;
    if (is_own_proxy(w, o))
        return set_proxied(w, o, name, value);
    const standin_kind *kind = standin_kind_of(o);
    if (kind)
        return kind->set(w, o, name, value);
    if (is_trampoline(o))
        return refuse(w, REASON_ATTRIBUTE, trampoline_callable(o), name);
    int failed = raw_is_python_class(Py_TYPE(o))
                     ? set_hooked(w, o, name, value)
                     : set_by_native(w, o, name, value, Py_TYPE(o)->tp_setattro);
    return w->stop.broken ? -1 : failed;
}

int attr_set_generic(world *w, PyObject *o, PyObject *name, PyObject *value) {
    if (!(o = door_open(w, o)))
        return -1;
    const standin_kind *kind = standin_kind_of(o);
    if (kind)
        return kind->set(w, o, name, value);
    if (PyType_Check(o)) // hackcheck's TypeError, or a change of a class
        return refuse(w, REASON_CLASS_WRITE, o, name);
    if (raw_is_thread_local(Py_TYPE(o))) // the same TypeError
        return refuse(w, REASON_ATTRIBUTE, o, name);
    return set_generic(w, o, name, value);
}
