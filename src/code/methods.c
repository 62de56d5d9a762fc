// The functions that Python sees: `dis`, and decode and flow, which tests call alone.
#include "src/code/methods.h"

#include "src/code/code.h"

// The code of a function, method, generator or coroutine, or a code object itself; borrowed from
// what `o` keeps alive. NULL with TypeError.
static PyCodeObject *code_in(PyObject *o) {
    if (PyMethod_Check(o))
        o = PyMethod_GET_FUNCTION(o);
    if (PyFunction_Check(o))
        o = PyFunction_GET_CODE(o);
    if (PyCode_Check(o))
        return (PyCodeObject *)o;
    PyErr_Format(PyExc_TypeError, "%R has no Python code", o);
    return NULL;
}

static PyObject *method_dis_text(PyObject *module, PyObject *args) {
    PyObject *o;
    int nested = 1;
    (void)module;
    if (!PyArg_ParseTuple(args, "O|p:dis_text", &o, &nested))
        return NULL;
    PyCodeObject *py = code_in(o);
    return py ? code_print(py, nested) : NULL;
}

static PyObject *print_to(PyObject *text, PyObject *file) {
    if (file == Py_None)
        file = PySys_GetObject("stdout");
    if (file && file != Py_None && PyFile_WriteObject(text, file, Py_PRINT_RAW) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *method_dis(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"", "file", NULL};
    PyObject *o, *file = Py_None;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:dis", names, &o, &file))
        return NULL;
    PyCodeObject *py = code_in(o);
    PyObject *text = py ? code_print(py, true) : NULL;
    PyObject *result = text ? print_to(text, file) : NULL;
    Py_XDECREF(text);
    return result;
}

// (name, argument, extra or offset of the target, start, at, flags, depth or None)
static PyObject *tuple_of(const code *c, const flow *f, uint32_t index) {
    const insn *i = &c->insns[index];
    int32_t extra = i->extra;
    if (op_flags(i->op) & OPF_JUMP)
        extra = (int32_t)(2 * insn_start(&c->insns[i->target]));
    PyObject *depth = f ? PyLong_FromLong(f->depth[index]) : Py_NewRef(Py_None);
    return Py_BuildValue("(siiIIiN)", op_name(i->op), i->arg, extra, 2 * insn_start(i), 2 * i->at,
                         i->flags, depth);
}

static PyObject *method_decode(PyObject *module, PyObject *args) {
    PyCodeObject *py;
    int with_flow = 1;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!|p:decode", &PyCode_Type, &py, &with_flow))
        return NULL;
    code *c = code_of(py);
    const flow *f = c && with_flow ? code_flow(c) : NULL;
    PyObject *list = c && (f || !with_flow) ? PyList_New(0) : NULL;
    for (uint32_t index = 0; list && index < c->count; index++) {
        PyObject *item = tuple_of(c, f, index);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *bits_of(const uint64_t *row, int32_t count) {
    PyObject *list = PyList_New(0);
    for (int32_t bit = 0; list && bit < count; bit++) {
        if (!(row[bit / 64] >> bit % 64 & 1))
            continue;
        PyObject *number = PyLong_FromLong(bit);
        if (!number || PyList_Append(list, number) < 0)
            Py_CLEAR(list);
        Py_XDECREF(number);
    }
    return list;
}

static PyObject *handled_of(const flow *f, uint32_t index) {
    PyObject *list = PyList_New(0);
    for (int32_t h = f->handled[index]; list && h >= 0; h = f->handlers[h].outer) {
        PyObject *slot = PyLong_FromLong(f->handlers[h].slot);
        if (!slot || PyList_Append(list, slot) < 0)
            Py_CLEAR(list);
        Py_XDECREF(slot);
    }
    return list;
}

// A list of (depth, slots of handled exceptions from the innermost out, live variables).
static PyObject *method_flow(PyObject *module, PyObject *arg) {
    (void)module;
    if (!PyCode_Check(arg))
        return PyErr_Format(PyExc_TypeError, "flow() needs a code object, not %R", arg);
    code *c = code_of((PyCodeObject *)arg);
    const flow *f = c ? code_flow(c) : NULL;
    PyObject *list = f ? PyList_New(0) : NULL;
    for (uint32_t index = 0; list && index < c->count; index++) {
        const uint64_t *row = f->live + (size_t)index * f->live_words;
        PyObject *handled = handled_of(f, index), *live = bits_of(row, c->py->co_nlocalsplus);
        PyObject *item =
            handled && live ? Py_BuildValue("(iOO)", f->depth[index], handled, live) : NULL;
        Py_XDECREF(handled);
        Py_XDECREF(live);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

// A list of (start, end, handler, depth, lasti), by offsets.
static PyObject *method_regions(PyObject *module, PyObject *arg) {
    (void)module;
    if (!PyCode_Check(arg))
        return PyErr_Format(PyExc_TypeError, "regions() needs a code object, not %R", arg);
    code *c = code_of((PyCodeObject *)arg);
    PyObject *list = c ? PyList_New(0) : NULL;
    for (uint32_t index = 0; list && index < c->region_count; index++) {
        const region *r = &c->regions[index];
        PyObject *item =
            Py_BuildValue("(IIIiO)", 2 * r->start, 2 * r->end, 2 * insn_start(&c->insns[r->target]),
                          r->depth, r->lasti ? Py_True : Py_False);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

// Only decodes; the result is where, which shows that a second time finds the first one's.
static PyObject *method_decoded_at(PyObject *module, PyObject *arg) {
    (void)module;
    if (!PyCode_Check(arg))
        return PyErr_Format(PyExc_TypeError, "decoded_at() needs a code object, not %R", arg);
    code *c = code_of((PyCodeObject *)arg);
    return c ? PyLong_FromVoidPtr(c) : NULL;
}

PyMethodDef code_methods[] = {
    {"dis", (PyCFunction)(void (*)(void))method_dis, METH_VARARGS | METH_KEYWORDS,
     "dis(fn, /, file=None)\n--\n\nPrint the canonical instructions of a function or code object "
     "and of those nested in it."},
    {"dis_text", method_dis_text, METH_VARARGS, "What dis prints; dis_text(code, nested=True)."},
    {"decode", method_decode, METH_VARARGS, "Instructions as tuples; decode(code, flow=True)."},
    {"flow", method_flow, METH_O, "Depth, handled exceptions and live variables."},
    {"regions", method_regions, METH_O, "The exception regions as tuples."},
    {"decoded_at", method_decoded_at, METH_O, "Decode, and tell the address of the result."},
    {NULL, NULL, 0, NULL},
};
