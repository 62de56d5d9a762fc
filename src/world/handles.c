// Dicts whose keys are handles: numbers that a library counts on, as torch does for hooks of modules.
// The library's own code asks of a handle only whether another dict has it. As long as no other code
// of the trace sees such a dict, guards check the number of its values and these answers, and a later
// call may have other handles.
#include "src/py/frame.h"

#include "src/world/inner.h"
#include "src/world/world.h"

static PyObject *owners; // set of the names of attributes that such dicts have
static PyObject *codes;  // set of the library's code that looks at them

void handles_know(PyObject *names, PyObject *code) {
    Py_XSETREF(owners, Py_XNewRef(names));
    Py_XSETREF(codes, Py_XNewRef(code));
}

static bool is_in(PyObject *set, PyObject *o) {
    return set && PySet_Contains(set, o) > 0;
}

// All their names are long, and begin alike.
static bool is_owner(PyObject *name) {
    return PyUnicode_CheckExact(name) && PyUnicode_GET_LENGTH(name) > 12 &&
           PyUnicode_READ_CHAR(name, 0) == '_' && is_in(owners, name);
}

static bool is_library(void) {
    py_frame *frame = py_current_frame(PyThreadState_Get());
    return frame && is_in(codes, (PyObject *)py_frame_code(frame));
}

// --- who looks ---

void handles_read(world *w, const names *n, PyObject *name) {
    if (n->instance && is_owner(name) && !is_library())
        w->facts.handles_seen = true;
}

void handles_show(world *w, const names *n) {
    PyObject *name;
    Py_ssize_t at = 0;
    Py_hash_t hash;
    while (n->instance && owners && _PySet_NextEntry(owners, &at, &name, &hash)) {
        PyObject *value;
        w->facts.handles_seen |= raw_attr_get(n->owner, name, &value) != RAW_ABSENT;
    }
}

// --- the keys of a dict ---

static bool has_numbers(PyObject *dict, bool all) {
    raw_cursor at = {0};
    PyObject *key, *value;
    while (raw_dict_next(dict, &at, &key, &value))
        if (!value || PyLong_CheckExact(key) != all)
            return !all;
    return all;
}

// A dict of another kind that the library reads by numbers may have given it a handle.
bool handles_only(world *w, const names *n) {
    if (n->instance || !codes || !is_library())
        return false;
    bool fresh = n->source->kind == SOURCE_ATTR && is_owner(n->source->key) && !n->pending &&
                 !n->written && PyDict_GET_SIZE(n->known) == 0;
    bool only = fresh && has_numbers(n->owner, true);
    w->facts.handles_seen |= !only && PyDict_GET_SIZE(n->owner) > 0 && has_numbers(n->owner, false);
    return only;
}

// --- questions about a handle ---

static Py_ssize_t place_of(const names *n, PyObject *key) {
    raw_cursor at = {0};
    PyObject *other, *value;
    for (Py_ssize_t i = 0; raw_dict_next(n->owner, &at, &other, &value); i++)
        if (PyObject_RichCompareBool(other, key, Py_EQ) > 0)
            return i;
    return -1;
}

static status guard_answer(world *w, const names *from, Py_ssize_t place, const names *n,
                           bool has) {
    return guard_add(w->guards, has ? GUARD_HAS_KEY : GUARD_LACKS_KEY, from->source, n->source,
                     NULL, place);
}

// The key may be a handle of each dict that has it: which one the library's code took it from is not
// known.
status handles_ask(world *w, const names *n, PyObject *key, PyObject **answer) {
    *answer = NULL;
    if (!w->in.handles || n->instance || n->twin || n->written || !PyLong_CheckExact(key) ||
        !is_library())
        return ST_OK;
    PyObject *value = NULL;
    raw there = raw_dict_get(n->owner, key, &value);
    if (there == RAW_UNSURE || (there == RAW_FOUND && value != Py_True))
        return ST_OK;
    for (uint32_t i = 0; i < w->in.names.count; i++) {
        const names *from = w->in.names.items[i];
        Py_ssize_t place = from->handles ? place_of(from, key) : -1;
        if (place < 0)
            continue;
        TRY(guard_answer(w, from, place, n, there == RAW_FOUND));
        *answer = there == RAW_FOUND ? Py_True : world_absent;
    }
    return ST_OK;
}

// --- the end ---

static status guard_handles(world *w, const names *n) {
    PyObject *keys = world_keep(w, PyTuple_New(PyDict_GET_SIZE(n->owner))), *key, *value;
    raw_cursor at = {0};
    for (Py_ssize_t i = 0; keys && raw_dict_next(n->owner, &at, &key, &value); i++)
        PyTuple_SET_ITEM(keys, i, Py_NewRef(key));
    return keys ? guard_add(w->guards, GUARD_KEYS, n->source, NULL, keys, 0) : ST_ERROR;
}

// Frames that go on have handles in their variables.
status handles_end(world *w) {
    bool matter = w->in.handles && (w->facts.handles_seen || w->stop.image);
    for (uint32_t i = 0; matter && i < w->in.names.count; i++)
        if (w->in.names.items[i]->handles)
            TRY(guard_handles(w, w->in.names.items[i]));
    return ST_OK;
}
