// The image as a Python object: read-only, with the contents of the frame.
#include "src/interp/image.h"

static int traverse(image *i, visitproc visit, void *arg) {
    Py_VISIT(i->code);
    Py_VISIT(i->function);
    Py_VISIT(i->locals);
    Py_VISIT(i->handled);
    Py_VISIT(i->raises);
    Py_VISIT(i->open);
    Py_VISIT(i->object);
    Py_VISIT(i->generator);
    Py_VISIT(i->caller);
    for (Py_ssize_t n = 0; n < Py_SIZE(i); n++)
        Py_VISIT(i->slots[n]);
    return 0;
}

static int clear(image *i) {
    Py_CLEAR(i->function);
    Py_CLEAR(i->locals);
    Py_CLEAR(i->handled);
    Py_CLEAR(i->raises);
    Py_CLEAR(i->open);
    Py_CLEAR(i->object);
    Py_CLEAR(i->generator);
    Py_CLEAR(i->caller);
    for (Py_ssize_t n = 0; n < Py_SIZE(i); n++)
        Py_CLEAR(i->slots[n]);
    i->spent = true;
    return 0;
}

// Chains may be as long as recursion is deep, so they are let go one by one.
static void drop_callers(image *i) {
    image *caller = i->caller;
    i->caller = NULL;
    while (caller && Py_REFCNT(caller) == 1) {
        image *next = caller->caller;
        caller->caller = NULL;
        Py_DECREF(caller);
        caller = next;
    }
    Py_XDECREF(caller);
}

static void dealloc(image *i) {
    if (PyObject_GC_IsTracked((PyObject *)i))
        PyObject_GC_UnTrack(i);
    drop_callers(i);
    clear(i);
    Py_DECREF(i->code);
    PyObject_GC_Del(i);
}

// --- what is shown ---

static PyObject *null_object; // strong; stands for an empty stack slot

static PyObject *get_code(image *i, void *closure) {
    (void)closure;
    return Py_NewRef(i->code);
}

static PyObject *get_function(image *i, void *closure) {
    (void)closure;
    return Py_NewRef(i->function ? i->function : Py_None);
}

static PyObject *get_offset(image *i, void *closure) {
    (void)closure;
    return PyLong_FromUnsignedLong(i->unit * sizeof(_Py_CODEUNIT));
}

static PyObject *get_handled(image *i, void *closure) {
    (void)closure;
    return Py_NewRef(i->handled ? i->handled : Py_None);
}

static PyObject *get_caller(image *i, void *closure) {
    (void)closure;
    return Py_NewRef(i->caller ? (PyObject *)i->caller : Py_None);
}

static PyObject *get_awaiting(image *i, void *closure) {
    (void)closure;
    return PyBool_FromLong(i->awaiting);
}

static PyObject *get_spent(image *i, void *closure) {
    (void)closure;
    return PyBool_FromLong(i->spent);
}

// Cells are shown as they are: whoever shares one must see the same object.
static PyObject *get_locals(image *i, void *closure) {
    (void)closure;
    PyObject *names = i->code->co_localsplusnames;
    PyObject *locals = PyDict_New();
    for (Py_ssize_t n = 0; locals && n < PyTuple_GET_SIZE(names); n++)
        if (i->slots[n] && PyDict_SetItem(locals, PyTuple_GET_ITEM(names, n), i->slots[n]) < 0)
            Py_CLEAR(locals);
    return locals;
}

static PyObject *get_stack(image *i, void *closure) {
    (void)closure;
    Py_ssize_t first = i->code->co_nlocalsplus;
    PyObject *stack = PyList_New(Py_SIZE(i) - first);
    for (Py_ssize_t n = first; stack && n < Py_SIZE(i); n++)
        PyList_SET_ITEM(stack, n - first, Py_NewRef(i->slots[n] ? i->slots[n] : null_object));
    return stack;
}

static PyObject *show(image *i) {
    return PyUnicode_FromFormat("<image of %U at offset %d%s%s>", i->code->co_qualname,
                                (int)(i->unit * sizeof(_Py_CODEUNIT)),
                                i->awaiting ? ", awaiting a value" : "", i->spent ? ", spent" : "");
}

static PyGetSetDef getters[] = {
    {"code", (getter)get_code, NULL, "The frame's code object.", NULL},
    {"function", (getter)get_function, NULL, "The function that was called.", NULL},
    {"offset", (getter)get_offset, NULL, "Where the frame stands, in bytes as dis counts.", NULL},
    {"locals", (getter)get_locals, NULL, "Bound locals, cells and free variables by name.", NULL},
    {"stack", (getter)get_stack, NULL, "The value stack, bottom first; NULL for an empty slot.",
     NULL},
    {"handled", (getter)get_handled, NULL, "The exception its innermost handler handles.", NULL},
    {"caller", (getter)get_caller, NULL, "The image of the frame below, or None.", NULL},
    {"awaiting", (getter)get_awaiting, NULL, "Whether its instruction waits for a value.", NULL},
    {"spent", (getter)get_spent, NULL, "Whether it was put back.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject image_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.Image",
    .tp_doc = "What a frame held at an instruction boundary.",
    .tp_basicsize = offsetof(image, slots),
    .tp_itemsize = sizeof(PyObject *),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_dealloc = (destructor)dealloc,
    .tp_repr = (reprfunc)show,
    .tp_getset = getters,
};

static PyObject *show_null(PyObject *self) {
    (void)self;
    return PyUnicode_FromString("NULL");
}

static PyTypeObject null_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.Null",
    .tp_doc = "Stands for an empty slot.",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_repr = show_null,
};

int image_setup(PyObject *module) {
    if (PyType_Ready(&image_type) < 0 || PyType_Ready(&null_type) < 0)
        return -1;
    if (!null_object)
        null_object = (PyObject *)PyObject_New(PyObject, &null_type);
    if (!image_abandoned_error) {
        PyObject *type = PyErr_NewException("stator._engine.Abandoned", PyExc_BaseException, NULL);
        image_abandoned_error = type ? PyObject_CallNoArgs(type) : NULL;
        Py_XDECREF(type);
    }
    if (!null_object || !image_abandoned_error)
        return -1;
    if (PyModule_AddObjectRef(module, "NULL", null_object) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "Image", (PyObject *)&image_type);
}
