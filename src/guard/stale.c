// Keeps what loads gave, weakly where that is possible: a mutant must not be found by what it keeps
// alive.
#include "src/guard/stale.h"

#ifdef STATOR_FAULT

static PyObject *alive(PyObject *kept) {
    if (!kept || !PyWeakref_CheckRef(kept))
        return kept;
    PyObject *o = PyWeakref_GET_OBJECT(kept);
    return o == Py_None ? NULL : o;
}

static PyObject *keep(PyObject *o) {
    bool weakly = PyType_SUPPORTS_WEAKREFS(Py_TYPE(o)) && !PyWeakref_CheckRef(o);
    PyObject *reference = weakly ? PyWeakref_NewRef(o, NULL) : NULL;
    PyErr_Clear();
    return reference ? reference : Py_NewRef(o);
}

PyObject *stale_load(guard_program *p, const step *s, PyObject *now) {
    if (!p->stale && !(p->stale = PyMem_Calloc((size_t)p->registers, sizeof(PyObject *))))
        return now;
    PyObject **kept = &p->stale[s->b], *then = alive(*kept);
    if (then)
        return then;
    if (now)
        Py_XSETREF(*kept, keep(now));
    return now;
}

void stale_free(guard_program *p) {
    for (int32_t i = 0; p->stale && i < p->registers; i++)
        Py_XDECREF(p->stale[i]);
    PyMem_Free(p->stale);
}

#endif
