// A foreign eval hook (PEP 523), as a debugger or another compiler would install one: it counts the
// frames that it sees and passes them on to what was there before.
#include <Python.h>

typedef PyObject *(*eval)(PyThreadState *, struct _PyInterpreterFrame *, int);

static eval previous;
static long seen;

static PyObject *count_frame(PyThreadState *ts, struct _PyInterpreterFrame *frame, int throwing) {
    seen++;
    return previous(ts, frame, throwing);
}

static PyObject *install(PyObject *self, PyObject *none) {
    (void)self;
    (void)none;
    PyInterpreterState *interp = PyInterpreterState_Get();
    previous = (eval)_PyInterpreterState_GetEvalFrameFunc(interp);
    _PyInterpreterState_SetEvalFrameFunc(interp, count_frame);
    Py_RETURN_NONE;
}

static PyObject *restore(PyObject *self, PyObject *none) {
    (void)self;
    (void)none;
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), previous);
    Py_RETURN_NONE;
}

static PyObject *is_current(PyObject *self, PyObject *none) {
    (void)self;
    (void)none;
    PyInterpreterState *interp = PyInterpreterState_Get();
    return PyBool_FromLong((eval)_PyInterpreterState_GetEvalFrameFunc(interp) == count_frame);
}

static PyObject *count(PyObject *self, PyObject *none) {
    (void)self;
    (void)none;
    return PyLong_FromLong(seen);
}

static PyMethodDef methods[] = {
    {"install", install, METH_NOARGS, "Put the hook on top of what is there."},
    {"restore", restore, METH_NOARGS, "Put back what was there."},
    {"is_current", is_current, METH_NOARGS, "Whether it is the one that CPython calls."},
    {"count", count, METH_NOARGS, "Frames seen so far."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "other_hook", .m_methods = methods};

PyMODINIT_FUNC PyInit_other_hook(void) {
    return PyModule_Create(&module);
}
