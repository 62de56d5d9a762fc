// Guards that only this room needs. Each is a check with its data, which src/guard runs as a custom
// guard. None of them runs Python code.
#include "src/py/iterators.h"

#include "src/guard/value.h"

#include "src/world/inner.h"
#include "src/world/world.h"

static void drop_object(void *data) {
    Py_DECREF((PyObject *)data);
}

// --- subclasses of immutable builtins ---

static bool same_items(PyObject *a, PyObject *b) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++)
        if (!value_same(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i)))
            return false;
    return true;
}

static bool same_bytes(PyObject *a, PyObject *b) {
    Py_ssize_t size = PyBytes_GET_SIZE(a);
    return size == PyBytes_GET_SIZE(b) &&
           memcmp(PyBytes_AS_STRING(a), PyBytes_AS_STRING(b), (size_t)size) == 0;
}

static bool same_double(double a, double b) {
    return memcmp(&a, &b, sizeof(double)) == 0;
}

static bool same_complex(PyObject *a, PyObject *b) {
    return memcmp(&((PyComplexObject *)a)->cval, &((PyComplexObject *)b)->cval,
                  sizeof(Py_complex)) == 0;
}

static bool same_text(PyObject *a, PyObject *b) {
    return PyUnicode_Compare(a, b) == 0;
}

static bool same_int(PyObject *a, PyObject *b) {
    PyObject *equal = PyLong_Type.tp_richcompare(a, b, Py_EQ);
    Py_XDECREF(equal);
    return equal == Py_True;
}

// An object against a copy of the builtin part of another.
static bool base_value_check(PyObject *o, void *data) {
    PyObject *copy = data;
    PyTypeObject *base = Py_TYPE(copy);
    if (!o || !PyObject_TypeCheck(o, base))
        return false;
    if (base == &PyLong_Type)
        return same_int(o, copy);
    if (base == &PyUnicode_Type)
        return same_text(o, copy);
    if (base == &PyFloat_Type)
        return same_double(PyFloat_AS_DOUBLE(o), PyFloat_AS_DOUBLE(copy));
    if (base == &PyBytes_Type)
        return same_bytes(o, copy);
    if (base == &PyTuple_Type)
        return same_items(o, copy);
    return base == &PyComplex_Type && same_complex(o, copy);
}

// An exact builtin; the object itself would keep its class alive.
static PyObject *base_part(PyObject *o) {
    if (PyLong_Check(o))
        return PyLong_Type.tp_as_number->nb_positive(o);
    if (PyUnicode_Check(o))
        return PyUnicode_FromObject(o);
    if (PyFloat_Check(o))
        return PyFloat_FromDouble(PyFloat_AS_DOUBLE(o));
    if (PyBytes_Check(o))
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(o), PyBytes_GET_SIZE(o));
    if (PyTuple_Check(o))
        return PyTuple_GetSlice(o, 0, PyTuple_GET_SIZE(o));
    return PyComplex_FromCComplex(((PyComplexObject *)o)->cval);
}

static PyObject *base_value_text(const char *s, void *data) {
    PyObject *copy = data, *shown = object_text(copy); // a tuple may hold anything
    PyObject *text =
        shown ? PyUnicode_FromFormat("%s(%s) == %U", Py_TYPE(copy)->tp_name, s, shown) : NULL;
    Py_XDECREF(shown);
    return text;
}

status check_base_value(world *w, source *s, PyObject *o) {
    static const guard_custom custom = {.name = "base_value",
                                        .check = base_value_check,
                                        .text = base_value_text,
                                        .drop = drop_object};
    PyObject *copy = base_part(o);
    return copy ? guard_add_custom(w->guards, s, &custom, copy) : ST_ERROR;
}

// --- immutable C objects with an == of their own ---

static bool equal_check(PyObject *o, void *data) {
    if (o == data)
        return true;
    if (!o || Py_TYPE(o) != Py_TYPE((PyObject *)data))
        return false;
    PyObject *equal = Py_TYPE(o)->tp_richcompare(o, data, Py_EQ);
    if (!equal)
        PyErr_Clear();
    Py_XDECREF(equal);
    return equal == Py_True;
}

static PyObject *equal_text(const char *s, void *data) {
    return PyUnicode_FromFormat("%s == %R", s, data);
}

status check_equal(world *w, source *s, PyObject *o) {
    static const guard_custom custom = {
        .name = "equal", .check = equal_check, .text = equal_text, .drop = drop_object};
    return guard_add_custom(w->guards, s, &custom, Py_NewRef(o));
}

// --- bound C methods ---

static bool c_method_check(PyObject *o, void *data) {
    return o && PyCFunction_Check(o) && ((PyCFunctionObject *)o)->m_ml == data;
}

static PyObject *c_method_text(const char *s, void *data) {
    return PyUnicode_FromFormat("%s.__name__ == '%s'", s, ((PyMethodDef *)data)->ml_name);
}

status check_c_method(world *w, source *s, PyObject *method) {
    static const guard_custom custom = {
        .name = "c_method", .check = c_method_check, .text = c_method_text};
    return guard_add_custom(w->guards, s, &custom, ((PyCFunctionObject *)method)->m_ml);
}

static bool wrapper_check(PyObject *o, void *data) {
    return o && raw_wrapper_descriptor(o) == data;
}

static PyObject *wrapper_text(const char *s, void *data) {
    return PyUnicode_FromFormat("%s.__name__ == %R", s, PyDescr_NAME(data));
}

status check_wrapper(world *w, source *s, PyObject *method) {
    static const guard_custom custom = {
        .name = "wrapper", .check = wrapper_check, .text = wrapper_text, .drop = drop_object};
    return guard_add_custom(w->guards, s, &custom, Py_NewRef(raw_wrapper_descriptor(method)));
}

// --- bytearrays ---

static bool not_exported_check(PyObject *o, void *data) {
    (void)data;
    return o && PyByteArray_Check(o) && ((PyByteArrayObject *)o)->ob_exports == 0;
}

static PyObject *not_exported_text(const char *s, void *data) {
    (void)data;
    return PyUnicode_FromFormat("nobody has the buffer of %s", s);
}

status check_not_exported(world *w, source *s) {
    static const guard_custom custom = {
        .name = "not_exported", .check = not_exported_check, .text = not_exported_text};
    return guard_add_custom(w->guards, s, &custom, NULL);
}

// --- iterators ---

// Which fields are empty, and how far it has come: (int, bytes).
static PyObject *state_of_iterator(const py_iterator_form *form, PyObject *o) {
    unsigned long empty = 0;
    for (int i = 0; i < py_iterator_fields(form); i++)
        empty |= (unsigned long)!py_iterator_field(form, o, i) << i;
    return Py_BuildValue("(kN)", empty, py_iterator_numbers(form, o));
}

static bool iterator_check(PyObject *o, void *data) {
    const py_iterator_form *form = o ? py_iterator_form_of(o) : NULL;
    PyObject *state = form ? state_of_iterator(form, o) : NULL;
    bool same = state && PyObject_RichCompareBool(state, (PyObject *)data, Py_EQ) == 1;
    Py_XDECREF(state);
    PyErr_Clear(); // without memory nothing is known
    return same;
}

static PyObject *iterator_text(const char *s, void *data) {
    (void)data;
    return PyUnicode_FromFormat("%s has come as far as it had", s);
}

static void iterator_drop(void *data) {
    Py_DECREF((PyObject *)data);
}

status check_iterator(world *w, source *s, PyObject *iterator) {
    static const guard_custom custom = {
        .name = "iterator", .check = iterator_check, .text = iterator_text, .drop = iterator_drop};
    PyObject *state = state_of_iterator(py_iterator_form_of(iterator), iterator);
    return state ? guard_add_custom(w->guards, s, &custom, state) : ST_ERROR;
}

// --- places that are empty ---

static bool cell_empty_check(PyObject *o, void *data) {
    (void)data;
    return o && PyCell_Check(o) && !PyCell_GET(o);
}

static PyObject *cell_empty_text(const char *s, void *data) {
    (void)data;
    return PyUnicode_FromFormat("%s is empty", s);
}

status check_cell_empty(world *w, source *s) {
    static const guard_custom custom = {
        .name = "cell_empty", .check = cell_empty_check, .text = cell_empty_text};
    return guard_add_custom(w->guards, s, &custom, NULL);
}

static bool slot_empty_check(PyObject *o, void *data) {
    PyObject *value;
    return o && raw_slot_get(o, (Py_ssize_t)(intptr_t)data, &value) == RAW_ABSENT;
}

static PyObject *slot_empty_text(const char *s, void *data) {
    return PyUnicode_FromFormat("the slot of %s at %zd is empty", s, (Py_ssize_t)(intptr_t)data);
}

status check_slot_empty(world *w, source *s, Py_ssize_t offset) {
    static const guard_custom custom = {
        .name = "slot_empty", .check = slot_empty_check, .text = slot_empty_text};
    return guard_add_custom(w->guards, s, &custom, (void *)(intptr_t)offset);
}

// --- context variables ---

static bool context_check(PyObject *o, void *data) {
    PyObject *value;
    if (!o || !PyContextVar_CheckExact(o) || PyContextVar_Get(o, world_absent, &value) < 0) {
        PyErr_Clear();
        return false;
    }
    bool set = value != world_absent;
    Py_DECREF(value);
    return set == (data != NULL);
}

static PyObject *context_text(const char *s, void *data) {
    return PyUnicode_FromFormat("%s is %sset", s, data ? "" : "not ");
}

status check_context_set(world *w, source *s, bool set) {
    static const guard_custom custom = {
        .name = "context_set", .check = context_check, .text = context_text};
    return guard_add_custom(w->guards, s, &custom, set ? (void *)1 : NULL);
}

// --- deques ---

static PyObject *maxlen_descriptor; // deque.maxlen: a getset in C, read whatever a subclass says

static bool maxlen_check(PyObject *o, void *data) {
    if (!o || !PyObject_TypeCheck(o, type_deque))
        return false;
    PyObject *maxlen = Py_TYPE(maxlen_descriptor)->tp_descr_get(maxlen_descriptor, o, NULL);
    bool same = maxlen && value_same(maxlen, data);
    if (!maxlen)
        PyErr_Clear();
    Py_XDECREF(maxlen);
    return same;
}

static PyObject *maxlen_text(const char *s, void *data) {
    return PyUnicode_FromFormat("%s.maxlen == %R", s, data);
}

PyObject *deque_maxlen(PyObject *deque) {
    return Py_TYPE(maxlen_descriptor)->tp_descr_get(maxlen_descriptor, deque, NULL);
}

status check_maxlen(world *w, source *s, PyObject *deque) {
    static const guard_custom custom = {
        .name = "maxlen", .check = maxlen_check, .text = maxlen_text, .drop = drop_object};
    PyObject *maxlen = deque_maxlen(deque);
    return maxlen ? guard_add_custom(w->guards, s, &custom, maxlen) : ST_ERROR;
}

int checks_setup(void) {
    if (types_setup() < 0)
        return -1;
    if (!maxlen_descriptor)
        maxlen_descriptor = PyObject_GetAttrString((PyObject *)type_deque, "maxlen");
    return maxlen_descriptor ? 0 : -1;
}
