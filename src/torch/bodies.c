// Python code of the program's behind a node: that of a custom operation, or of a function that
// allow_in_graph has marked. It runs when the graph does: after all that the trace has read, and
// before all that the trace holds back. The glue says which places the code may touch (_bodies.py).
// If the program itself touches one of them, the trace breaks before the call, and CPython makes it.
#include "src/interp/run.h"

#include "src/torch/room.h"

// A place is (owner, written) or (owner, written, key).
static PyObject *owner_of(PyObject *place) {
    return PyTuple_GET_ITEM(place, 0);
}

static bool is_written(PyObject *place) {
    return PyTuple_GET_ITEM(place, 1) == Py_True;
}

static PyObject *key_of(PyObject *place) {
    return PyTuple_GET_SIZE(place) > 2 ? PyTuple_GET_ITEM(place, 2) : NULL;
}

static status refuse(world *w, PyObject *name, const char *why) {
    return world_break_status(w, REASON_BODY, "%U, which %s", name, why);
}

// What the glue says of the callable: (name, what cannot be looked through or
// None, places, whether code that writes runs on fakes), or None.
static PyObject *ask(world *w, const char *question, PyObject *callable) {
    quiet q;
    quiet_begin(&q);
    PyObject *said = PyObject_CallOneArg(glue_function(question), callable);
    quiet_end(&q);
    return world_keep(w, said);
}

static bool writes_any(PyObject *places) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); i++)
        if (is_written(PyTuple_GET_ITEM(places, i)))
            return true;
    return false;
}

static bool sees_held_back(const world *w, PyObject *places) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); i++) {
        PyObject *place = PyTuple_GET_ITEM(places, i);
        if (world_holds_back(w, owner_of(place), key_of(place)))
            return true;
    }
    return false;
}

// Code that writes somewhere must run as often as the program calls it, and on tensors only: a
// backend that compiles the graph as a whole may drop a call, or make one of two. Who asks for one
// whole graph has said that this does not matter.
static bool must_be_called(const world *w, bool faked) {
    return !w->terms.whole && (faked || !w->terms.replayed);
}

uint64_t instruction_began(const world *w) {
    return w->time.trial ? w->time.trial : w->run ? w->run->started : 0;
}

// `said` is the glue's answer, or NULL with an exception.
static status judge(world *w, PyObject *said, bool faked) {
    torch_trace *t = w->torch;
    if (!said || said == Py_None)
        return said ? ST_OK : ST_ERROR;
    PyObject *name = PyTuple_GET_ITEM(said, 0), *unknown = PyTuple_GET_ITEM(said, 1);
    PyObject *places = PyTuple_GET_ITEM(said, 2);
    if (unknown != Py_None)
        return w->terms.whole ? ST_OK : refuse(w, name, PyUnicode_AsUTF8(unknown));
    if (sees_held_back(w, places))
        return refuse(w, name, "may see what was written before");
    if (!writes_any(places))
        return ST_OK;
    if (must_be_called(w, faked || PyTuple_GET_ITEM(said, 3) == Py_True))
        return refuse(w, name, "writes to what is outside of it");
    body b = {.name = name, .places = places, .since = instruction_began(w)};
    return vec_push(&t->bodies, b);
}

status body_enters(world *w, PyObject *callable, bool faked) {
    return judge(w, ask(w, "body_of", callable), faked);
}

// The value that a class or a dict of globals has under a name; guarded.
static status guard_plain(world *w, PyObject *owner, PyObject *name) {
    if (PyType_Check(owner)) {
        PyObject *found = attr_of_class(w, (PyTypeObject *)owner, name, NULL);
        return found && door_open(w, found) ? ST_OK : w->stop.broken ? ST_BREAK : ST_ERROR;
    }
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, owner, 0);
    if (s && !record_of(w, owner) && !door_bring(w, s, owner))
        s = NULL;
    record *r = s ? record_of(w, owner) : NULL;
    names *n = r && r->kind == RECORD_DICT ? names_of_dict(w, r) : NULL;
    PyObject *value = n ? names_get(w, n, name) : NULL;
    PyObject *opened = value ? door_open(w, value) : NULL;
    Py_XDECREF(value);
    return opened ? ST_OK : w->stop.broken ? ST_BREAK : PyErr_Occurred() ? ST_ERROR : ST_OK;
}

// A backend puts what the code reads into what it compiles.
static status guard_all(world *w, PyObject *said) {
    PyObject *plain = said != Py_None && !w->terms.replayed ? PyTuple_GET_ITEM(said, 4) : NULL;
    for (Py_ssize_t i = 0; plain && i < PyTuple_GET_SIZE(plain); i++) {
        PyObject *one = PyTuple_GET_ITEM(plain, i);
        TRY(guard_plain(w, PyTuple_GET_ITEM(one, 0), PyTuple_GET_ITEM(one, 1)));
    }
    return ST_OK;
}

// Of a class the glue is asked once in a trace: its operations are many.
status body_enters_class(world *w, PyTypeObject *class) {
    torch_trace *t = w->torch;
    uint64_t *known = map_get(&t->classes, map_key(class));
    PyObject *said =
        known ? (PyObject *)(uintptr_t)*known : ask(w, "dispatch_of", (PyObject *)class);
    if (!said)
        return ST_ERROR;
    if (!known) {
        TRY(map_put(&t->classes, map_key(class), map_key(said)));
        TRY(guard_all(w, said));
    }
    return judge(w, said, true);
}

static bool conflicts(const world *w, const body *b) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(b->places); i++) {
        PyObject *place = PyTuple_GET_ITEM(b->places, i);
        if (is_written(place) && world_touched(w, owner_of(place), key_of(place)))
            return true;
    }
    return false;
}

status bodies_end(world *w) {
    const torch_trace *t = w->torch;
    for (uint32_t i = 0; i < t->bodies.count; i++) {
        const body *b = &t->bodies.items[i];
        if (!conflicts(w, b))
            continue;
        refuse(w, b->name, "writes to what the program reads or writes");
        world_break_earlier(w, b->since);
        return ST_BREAK;
    }
    return ST_OK;
}
