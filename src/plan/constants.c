// Finds the objects that a plan may keep and give out in every call: those that C code keeps for
// ever, those whose identity does not matter, and constants of code.
#include "src/world/inner.h"

#include "src/plan/build.h"

static bool is_fixed_class(PyObject *o) {
    return PyType_Check(o) && !raw_is_python_class((PyTypeObject *)o);
}

// Methods are C code's own, also where their type could be changed (_random.Random). A class
// statement makes getsets and members, which must not keep the class alive.
static bool is_fixed_descriptor(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    if (t == &PyMethodDescr_Type || t == &PyWrapperDescr_Type || t == &PyClassMethodDescr_Type)
        return true;
    return (t == &PyGetSetDescr_Type || t == &PyMemberDescr_Type) &&
           !raw_is_python_class(((PyDescrObject *)o)->d_type);
}

// What C code made a method of, and is found on a C type (a function of Cython's): that never
// changes.
static bool is_fixed_method(PyObject *o) {
    return PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_METHOD_DESCRIPTOR) && !PyFunction_Check(o) &&
           !raw_is_python_class(Py_TYPE(o));
}

static bool is_fixed_function(PyObject *o) {
    if (!PyCFunction_CheckExact(o))
        return false;
    PyObject *self = PyCFunction_GET_SELF(o);
    return !self || PyModule_Check(self) || is_fixed_class(self);
}

// A tuple of some C type: torch.Size.
static bool is_fixed_tuple(PyObject *o) {
    if (!PyTuple_Check(o) || PyTuple_CheckExact(o) || raw_is_python_class(Py_TYPE(o)) ||
        Py_TYPE(o)->tp_dictoffset != 0)
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++) {
        if (!value_immutable(PyTuple_GET_ITEM(o, i)))
            return false;
    }
    return true;
}

bool constant_is(PyObject *o) {
    return value_immutable(o) || PyCode_Check(o) || is_fixed_class(o) || is_fixed_descriptor(o) ||
           is_fixed_method(o) || is_fixed_function(o) || is_fixed_tuple(o);
}

// --- identity ---

// One object for one value, wherever it comes from.
static bool is_singleton(PyObject *o) {
    int overflow = 0;
    long n = PyLong_CheckExact(o) ? PyLong_AsLongAndOverflow(o, &overflow) : 1000;
    return o == Py_None || PyBool_Check(o) || o == Py_Ellipsis || o == Py_NotImplemented ||
           (!overflow && n >= -5 && n <= 256);
}

// Numbers and texts that the program makes have no identity to rely on. Of these kinds a fresh one
// is made where the program makes one.
static bool has_identity(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return (t == &PyTuple_Type && PyTuple_GET_SIZE(o) > 0) || t == &PyFrozenSet_Type ||
           t == &PyRange_Type || t == &PySlice_Type;
}

static status note_constant(builder *b, PyObject *o) {
    if (PyCode_Check(o))
        o = ((PyCodeObject *)o)->co_consts;
    if (map_get(&b->constants, map_key(o)))
        return ST_OK;
    TRY(map_put(&b->constants, map_key(o), 1));
    for (Py_ssize_t i = 0; PyTuple_CheckExact(o) && i < PyTuple_GET_SIZE(o); i++)
        TRY(note_constant(b, PyTuple_GET_ITEM(o, i)));
    return ST_OK;
}

// Whatever ran is code of an outside function, or nested in such.
static status is_of_code(builder *b, PyObject *o, bool *yes) {
    for (uint32_t i = 0; !b->constants_known && i < b->w->in.all.count; i++) {
        PyObject *f = b->w->in.all.items[i]->outside;
        if (PyFunction_Check(f))
            TRY(note_constant(b, PyFunction_GET_CODE(f)));
    }
    b->constants_known = true;
    *yes = map_get(&b->constants, map_key(o)) != NULL;
    return ST_OK;
}

status constant_stays(builder *b, PyObject *o, bool *stays, operand *out) {
    *out = OPERAND_NONE;
    *stays = constant_is(o);
    if (!*stays || is_singleton(o))
        return ST_OK;
    bool of_code;
    source *place;
    TRY(is_of_code(b, o, &of_code));
    TRY(value_give_out(b->w, o, of_code, &place));
    *stays = of_code || (!place && !has_identity(o));
    return place && !of_code ? build_load(b, place, out) : ST_OK; // this call's own object
}
