// Keeps the objects that loads gave, weakly where possible: tests must not notice a mutant just
// because it keeps an object alive.
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

status stale_new(guard_program *p) {
    p->stale = arena_array(&p->arena, PyObject *, (size_t)p->registers + 1);
    if (!p->stale)
        return ST_ERROR;
    memset(p->stale, 0, ((size_t)p->registers + 1) * sizeof(PyObject *));
    return ST_OK;
}

PyObject *stale_load(const guard_program *p, const step *s, PyObject *now) {
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
}

#endif
