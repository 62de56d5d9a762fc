// Stops CPython in the middle of a frame, for tests. See trap.h.
#include "src/py/trap.h"

#include "src/py/frame.h"
#include "src/py/raised.h"

#include <opcode.h>

static PyObject *patched_bytes(PyCodeObject *code, uint32_t unit) {
    PyObject *bytes = PyCode_GetCode(code);
    if (!bytes)
        return NULL;
    PyObject *copy = PyBytes_FromStringAndSize(PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    if (!copy)
        return NULL;
    char *raw = PyBytes_AS_STRING(copy);
    raw[0] = RETURN_GENERATOR;
    raw[1] = 0;
    raw[unit * sizeof(_Py_CODEUNIT)] = (char)YIELD_VALUE;
    raw[unit * sizeof(_Py_CODEUNIT) + 1] = 0;
    return copy;
}

PyCodeObject *py_trap_code(PyCodeObject *code, uint32_t unit) {
    PyObject *bytes = patched_bytes(code, unit);
    PyObject *replace = bytes ? PyObject_GetAttrString((PyObject *)code, "replace") : NULL;
    PyObject *none = replace ? PyTuple_New(0) : NULL;
    PyObject *parts = none ? Py_BuildValue("{s:O,s:i}", "co_code", bytes, "co_flags",
                                           code->co_flags | CO_GENERATOR)
                           : NULL;
    PyObject *copy = parts ? PyObject_Call(replace, none, parts) : NULL;
    Py_XDECREF(parts);
    Py_XDECREF(none);
    Py_XDECREF(replace);
    Py_XDECREF(bytes);
    // With its RESUME overwritten the copy would never count as begun.
    if (copy)
        ((PyCodeObject *)copy)->_co_firsttraceable = code->_co_firsttraceable;
    return (PyCodeObject *)copy;
}

// On 3.11 a generator's frame object forgets its caller when the generator goes; a function's does
// not.
static void keep_back(PyThreadState *ts, py_frame *f) {
#if PY_VERSION_HEX < 0x030c0000
    py_raised aside = py_put_aside();
    if (f->frame_obj && Py_REFCNT(f->frame_obj) > 1 && !f->frame_obj->f_back)
        f->frame_obj->f_back = PyThreadState_GetFrame(ts);
    py_put_on(aside);
#else
    (void)ts;
    (void)f;
#endif
}

// The frame is a plain function's: it handles exceptions where its caller does, so the generator's
// own state is never put on. CPython takes it off all the same, back to what is noted here.
PyObject *py_trap_run(PyThreadState *ts, PyGenObject *generator, int depth, bool *trapped) {
    py_frame *f = (py_frame *)generator->gi_iframe;
    generator->gi_exc_state.previous_item = ts->exc_info;
    generator->gi_frame_state = FRAME_EXECUTING;
    PyObject *result = py_eval_default(ts, f, 0, true);
    generator->gi_exc_state.previous_item = NULL;
    *trapped = generator->gi_frame_state < FRAME_EXECUTING;
    if (!*trapped) {
        keep_back(ts, f);
        py_trap_sever(generator);
        return result;
    }
    // The yield took the top of the stack, or with an empty one the slot below it. The slot still
    // has its pointer, so the reference is back where it was.
    py_frame_set_stack_pointer(f, py_frame_stack(f) + depth);
    return NULL;
}

void py_trap_sever(PyGenObject *generator) {
    if (generator->gi_frame_state < FRAME_COMPLETED)
        generator->gi_frame_state = FRAME_COMPLETED;
}
