// Limits of the interpreter, and warnings that C code gives.
#include "src/py/process.h"

int py_most_digits(void) {
    PyInterpreterState *interpreter = PyInterpreterState_Get();
#if PY_VERSION_HEX >= 0x030c0000
    return interpreter->long_state.max_str_digits;
#else
    return interpreter->int_max_str_digits;
#endif
}

PyObject *py_repr(PyObject *o) {
    PyObject *text = PyObject_Repr(o);
    if (text || !PyErr_ExceptionMatches(PyExc_ValueError))
        return text;
    PyErr_Clear();
    return PyUnicode_FromFormat("<%s of many digits>", Py_TYPE(o)->tp_name);
}

// --- warnings ---

static int (*warning_made)(void);

static PyObject *alloc_warning(PyTypeObject *type, Py_ssize_t count) {
    return warning_made() < 0 ? NULL : PyType_GenericAlloc(type, count);
}

// Classes that Python code derives from these have an alloc of their own.
void py_watch_warnings(int (*made)(void)) {
    PyObject *categories[] = {
        PyExc_Warning,       PyExc_UserWarning,    PyExc_DeprecationWarning,
        PyExc_SyntaxWarning, PyExc_RuntimeWarning, PyExc_PendingDeprecationWarning,
        PyExc_FutureWarning, PyExc_ImportWarning,  PyExc_UnicodeWarning,
        PyExc_BytesWarning,  PyExc_EncodingWarning};
    warning_made = made;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(categories); i++)
        ((PyTypeObject *)categories[i])->tp_alloc = alloc_warning;
}

void py_watch_category(PyTypeObject *category) {
    assert(warning_made);
    if (category->tp_alloc == PyType_GenericAlloc)
        category->tp_alloc = alloc_warning;
}
