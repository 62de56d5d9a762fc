// Turns the module of a C callable that has no row into the reason of the break.
#include "src/attr/words.h"

#include "src/call/homes.h"

static const struct home {
    const char *module;
    reason reason;
} homes[] = {
#define HOME(module, id) {module, REASON_##id},
#include "src/call/homes.def"
#undef HOME
};

// What carries the module's name: a function itself, or the class of what it is bound to.
static PyObject *owner_of(PyObject *callable) {
    if (PyCFunction_Check(callable)) {
        PyObject *self = PyCFunction_GET_SELF(callable);
        if (!self || PyModule_Check(self) || ((PyCFunctionObject *)callable)->m_module)
            return callable;
        return PyType_Check(self) ? self : (PyObject *)Py_TYPE(self);
    }
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type) || Py_IS_TYPE(callable, &PyWrapperDescr_Type) ||
        Py_IS_TYPE(callable, &PyClassMethodDescr_Type))
        return (PyObject *)PyDescr_TYPE(callable);
    return PyType_Check(callable) ? callable : (PyObject *)Py_TYPE(callable);
}

// New reference; NULL without an exception if it has none, or asking might run Python code.
static PyObject *module_of(PyObject *callable) {
    PyObject *owner = owner_of(callable);
    if (raw_is_python_class(PyType_Check(owner) ? Py_TYPE(owner) : Py_TYPE(callable)))
        return NULL;
    PyObject *name = PyObject_GetAttr(owner, word.module);
    if (!name)
        PyErr_Clear();
    else if (!PyUnicode_Check(name))
        Py_CLEAR(name);
    return name;
}

static bool lies_in(const char *name, const char *module) {
    size_t length = strlen(module);
    return strncmp(name, module, length) == 0 && (name[length] == '.' || name[length] == '\0');
}

static bool is_standard(const char *name) {
    PyObject *all = PySys_GetObject("stdlib_module_names"); // borrowed
    const char *dot = strchr(name, '.');
    PyObject *top =
        dot ? PyUnicode_FromStringAndSize(name, dot - name) : PyUnicode_FromString(name);
    int found = all && top ? PySequence_Contains(all, top) : 1;
    Py_XDECREF(top);
    if (found < 0)
        PyErr_Clear();
    return found != 0;
}

static reason reason_of_module(const char *name) {
    for (size_t i = 0; i < Py_ARRAY_LENGTH(homes); i++)
        if (lies_in(name, homes[i].module))
            return homes[i].reason;
    if (world_tensors && lies_in(name, world_tensors->package))
        return REASON_TENSOR_OPERATION;
    return is_standard(name) ? REASON_NATIVE_CALL : REASON_EXTENSION;
}

reason home_reason(PyObject *callable) {
    PyObject *module = module_of(callable);
    const char *name = module ? PyUnicode_AsUTF8(module) : NULL;
    reason found = name ? reason_of_module(name) : REASON_NATIVE_CALL;
    if (!name)
        PyErr_Clear();
    Py_XDECREF(module);
    return found;
}
