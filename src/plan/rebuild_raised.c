// Rebuilds exceptions that were made inside and never raised. A raised exception would need a
// traceback of frames that do not exist: it is raised again for real instead.
#include "src/plan/build.h"

// C types whose instances are BaseException's fields and nothing more.
static PyTypeObject *plain_base(PyObject *o) {
    PyTypeObject *base = rebuild_base(Py_TYPE(o));
    if (!base || base->tp_basicsize != sizeof(PyBaseExceptionObject) ||
        base->tp_new != ((PyTypeObject *)PyExc_BaseException)->tp_new)
        return NULL;
    return base;
}

static status fill_exception(builder *b, PyBaseExceptionObject *e, operand to) {
    PyObject *parts[] = {e->args, e->cause, e->context};
    operands items = {0};
    status done = ST_OK;
    for (size_t i = 0; done == ST_OK && i < Py_ARRAY_LENGTH(parts); i++)
        done = rebuild_field(b, parts[i], &items);
    step s = step_of(STEP_EXCEPTION_FILL, -1, to, OPERAND_NONE);
    s.index = e->suppress_context;
    if (done == ST_OK)
        done = build_step(b, &b->making, s, &items, NULL);
    vec_free(&items);
    return done == ST_OK ? rebuild_instance_dict(b, (PyObject *)e, to) : done;
}

status rebuild_exception(builder *b, PyObject *o, operand *out) {
    PyBaseExceptionObject *e = (PyBaseExceptionObject *)o;
    PyTypeObject *base = plain_base(o);
    if (!base || e->traceback || !PyTuple_CheckExact(e->args))
        return rebuild_refuse_for(b, o, REASON_EXCEPTION_LIVES);
    step s = step_of(STEP_INSTANCE, -1, OPERAND_NONE, OPERAND_NONE);
    TRY(rebuild(b, (PyObject *)Py_TYPE(o), &s.a));
    TRY(rebuild_make(b, o, s, NULL, (PyObject *)base, out));
    return fill_exception(b, e, *out);
}
