// Turns entries into dicts that people and tests read.
#include "src/py/raw.h"

#include "src/compile/compiler.h"

// Jumps that the compiler put in have no line: they are of the one before.
static int line_at(PyCodeObject *co, int offset) {
    int line = -1;
    for (; line < 0 && offset > 0; offset -= (int)sizeof(_Py_CODEUNIT))
        line = PyCode_Addr2Line(co, offset);
    return line < 0 ? co->co_firstlineno : line;
}

// Name and line of each caller that it goes on in, nearest first.
static PyObject *describe_callers(const entry *e) {
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < e->reach; i++) {
        PyCodeObject *co = (PyCodeObject *)e->below[i].code;
        int line = line_at(co, (int)(e->below[i].unit * sizeof(_Py_CODEUNIT)));
        PyObject *row = Py_BuildValue("Oi", co->co_qualname, line);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *describe_entry(PyCodeObject *co, uint32_t unit, const entry *e) {
    graph *g = plan_graph_of(e->plan);
    int offset = (int)(unit * sizeof(_Py_CODEUNIT));
    int line = line_at(co, offset);
    return Py_BuildValue(
        "{s:N, s:O, s:O, s:l, s:O, s:O, s:O, s:i, s:i, s:O, s:O, s:N, s:N, s:N, s:l}", "callers",
        describe_callers(e), "why", e->why ? e->why : Py_None, "misfits",
        e->misfits ? e->misfits : Py_None, "number", e->number, "code", co, "name", co->co_qualname,
        "file", co->co_filename, "line", line, "offset", offset, "breaks",
        plan_breaks(e->plan) ? Py_True : Py_False, "graph", g ? (PyObject *)g : Py_None, "guards",
        guard_rows(e->guards), "plan", plan_text(e->plan), "writes", plan_writes(e->plan), "hits",
        e->hits);
}

PyObject *compiler_describe_one(compiler *c, long number) {
    bool collecting = raw_gc_off();
    PyObject *row = NULL;
    for (uint32_t i = 0; !row && !PyErr_Occurred() && i < c->all.count; i++) {
        cache *k = c->all.items[i];
        uint32_t at = 0;
        for (const entry *e; !row && (e = cache_next(k, &at));)
            if (e->number == number)
                row = describe_entry((PyCodeObject *)c->codes.items[i], k->unit, e);
    }
    raw_gc_restore(collecting);
    if (!row && !PyErr_Occurred())
        return Py_NewRef(Py_None);
    return row;
}

PyObject *compiler_describe(compiler *c) {
    PyObject *list = PyList_New(0);
    bool collecting = raw_gc_off(); // a finalizer may reset the cache
    for (uint32_t i = 0; list && i < c->all.count; i++) {
        cache *k = c->all.items[i];
        uint32_t at = 0;
        cache_sort(k);
        for (const entry *e; list && (e = cache_next(k, &at));) {
            PyObject *row = describe_entry((PyCodeObject *)c->codes.items[i], k->unit, e);
            if (!row || PyList_Append(list, row) < 0)
                Py_CLEAR(list);
            Py_XDECREF(row);
        }
    }
    raw_gc_restore(collecting);
    return list;
}
