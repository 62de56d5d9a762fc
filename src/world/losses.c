// Counts dropped references and finds the objects that die. An object that only a cycle keeps alive
// does not die here: in plain Python, too, the collector frees it some time later.
#include "src/world/losses.h"

enum { DEEP = 100, MANY = 10000 };

// --- one object ---

static bool is_tensor(PyObject *o) {
    return world_tensors && world_tensors->is_tensor(o);
}

bool losses_watched(PyObject *o) {
    Py_ssize_t offset = Py_TYPE(o)->tp_weaklistoffset;
    if (offset == 0 || PyType_Check(o)) // those of types lie elsewhere
        return false;
    bool tensor = is_tensor(o);
    PyWeakReference *w = *(PyWeakReference **)((char *)o + offset);
    for (; w; w = w->wr_next)
        if (!guard_owns_weakref((PyObject *)w) && (!tensor || PyWeakref_CheckRefExact(w)))
            return true;
    return false;
}

static bool begins_with(const char *name, const char *start) {
    return strncmp(name, start, strlen(start)) == 0;
}

// C code may do anything where its objects die: a memoryview lets go of a buffer, which can be
// resized then; a guard object switches something back. These do nothing.
static bool type_is_quiet(PyTypeObject *t) {
    static const char *const modules[] = {"collections.", "functools.", "itertools.",
                                          "operator.",    "datetime.",  "decimal.",
                                          "re.",          "types.",     "weakref."};
    destructor python = ((PyTypeObject *)world_break_error)->tp_dealloc;
    while (t->tp_dealloc == python && t->tp_base)
        t = t->tp_base;
    bool heap = t->tp_flags & Py_TPFLAGS_HEAPTYPE;
    if (!strchr(t->tp_name, '.')) // the interpreter's own
        return !heap && t != &PyMemoryView_Type && t != &PyCapsule_Type;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(modules); i++)
        if (begins_with(t->tp_name, modules[i]))
            return true;
    return !heap && (world_manner(t) != TYPE_UNKNOWN || begins_with(t->tp_name, "numpy."));
}

// A weak reference that dies before what it refers to does not call back.
static bool calls_back(PyObject *o) {
    return PyWeakref_Check(o) && ((PyWeakReference *)o)->wr_callback;
}

static bool dies_quietly(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    if (t->tp_finalize || t->tp_del)
        return PyGen_CheckExact(o) && ((PyGenObject *)o)->gi_frame_state >= FRAME_COMPLETED;
    if (losses_watched(o))
        return false;
    return is_tensor(o) || (type_is_quiet(t) && !calls_back(o));
}

// Classes are parts of cycles, modules of sys.modules; the others have no parts.
static bool is_never_noticed(PyObject *o) {
    return o == Py_None || PyLong_CheckExact(o) || PyUnicode_CheckExact(o) || PyBool_Check(o) ||
           PyFloat_CheckExact(o) || PyBytes_CheckExact(o) || PyType_Check(o) || PyModule_Check(o);
}

// --- counting ---

static int visit(PyObject *o, void *data) {
    return !losses_add(data, o);
}

static bool lose_parts(losses *l, PyObject *o) {
    traverseproc traverse = Py_TYPE(o)->tp_traverse;
    if (!PyObject_IS_GC(o) || !traverse || is_tensor(o))
        return true;
    l->depth++;
    bool quiet = traverse(o, visit, l) == 0;
    l->depth--;
    return quiet;
}

static bool note(map *m, PyObject *o, uint64_t value) {
    if (map_put(m, map_key(o), value) == ST_OK)
        return true;
    PyErr_Clear(); // it is only not known
    return false;
}

bool losses_last(losses *l, PyObject *o) {
    if (is_never_noticed(o))
        return true;
    bool quiet = ++l->dead < MANY && l->depth < DEEP && (l->before || dies_quietly(o));
    if (!l->found)
        return quiet && lose_parts(l, o);
    if (!note(l->found, o, quiet ? (uint64_t)Py_REFCNT(o) : 0))
        return false;
    return !quiet || lose_parts(l, o); // who counts by it comes no further
}

bool losses_add(losses *l, PyObject *o) {
    uint64_t references = (uint64_t)Py_REFCNT(o), lost = 1;
    if (is_never_noticed(o) || map_get(&l->kept, map_key(o)))
        return true;
    if (l->before) {
        const uint64_t *known = map_get(l->before, map_key(o));
        if (!known || *known == 0)
            return !known;
        references = *known;
    }
    if (references > 1) {
        const uint64_t *others = map_get(&l->lost, map_key(o));
        lost = others ? *others + 1 : 1;
        if (!note(&l->lost, o, lost))
            return false;
    }
    return lost != references || losses_last(l, o);
}

bool losses_keep(losses *l, PyObject *o) {
    return note(&l->kept, o, 1);
}

void losses_clear(losses *l) {
    map_clear(&l->lost);
    map_clear(&l->kept);
    l->depth = 0;
    l->dead = 0;
}
