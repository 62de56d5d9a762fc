// Turns tables of sets into layouts and back. The struct is the same in all supported versions.
#include "src/py/sets.h"

// One used slot; a hole has the hash -1, which no element has.
typedef struct slot {
    Py_ssize_t at;
    Py_hash_t hash;
} slot;

typedef struct layout {
    Py_ssize_t mask, fill, used, finger;
    slot slots[]; // `fill` of them
} layout;

static const layout *layout_of(PyObject *bytes) {
    return (const layout *)PyBytes_AS_STRING(bytes);
}

bool py_set_is_fresh(PyObject *o) {
    const PySetObject *set = (PySetObject *)o;
    return set->mask == PySet_MINSIZE - 1 && set->fill == set->used && set->finger == 0;
}

PyObject *py_set_layout(PyObject *o) {
    const PySetObject *set = (PySetObject *)o;
    Py_ssize_t size = (Py_ssize_t)(sizeof(layout) + (size_t)set->fill * sizeof(slot));
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, size);
    if (!bytes)
        return NULL;
    layout *l = (layout *)PyBytes_AS_STRING(bytes);
    *l = (layout){set->mask, set->fill, set->used, set->finger};
    slot *next = l->slots;
    for (Py_ssize_t i = 0; i <= set->mask; i++) {
        if (set->table[i].key)
            *next++ = (slot){i, set->table[i].hash};
    }
    assert(next == l->slots + set->fill);
    return bytes;
}

bool py_set_has_layout(PyObject *o, PyObject *bytes) {
    const PySetObject *set = (PySetObject *)o;
    const layout *l = layout_of(bytes);
    if (set->mask != l->mask || set->fill != l->fill || set->used != l->used ||
        set->finger != l->finger)
        return false;
    for (Py_ssize_t i = 0; i < l->fill; i++) {
        const setentry *e = &set->table[l->slots[i].at];
        if (!e->key || e->hash != l->slots[i].hash)
            return false;
    }
    return true;
}

// What CPython keeps in a hole: an object of its own that never dies.
static PyObject *hole(void) {
    static PyObject *found;
    PyObject *set = found ? NULL : PySet_New(NULL);
    if (set && PySet_Add(set, Py_None) == 0 && PySet_Discard(set, Py_None) == 1) {
        const PySetObject *s = (PySetObject *)set;
        for (Py_ssize_t i = 0; i <= s->mask; i++)
            found = s->table[i].key ? s->table[i].key : found;
    }
    Py_XDECREF(set);
    return found;
}

static void fill_table(setentry *table, const layout *l, PyObject *const *items, PyObject *gap) {
    memset(table, 0, ((size_t)l->mask + 1) * sizeof(setentry));
    for (Py_ssize_t i = 0; i < l->fill; i++) {
        bool element = l->slots[i].hash != -1;
        table[l->slots[i].at] = (setentry){element ? Py_NewRef(*items) : gap, l->slots[i].hash};
        items += element;
    }
}

int py_set_lay_out(PyObject *o, PyObject *bytes, PyObject *const *items) {
    PySetObject *set = (PySetObject *)o;
    const layout *l = layout_of(bytes);
    PyObject *gap = hole();
    if (!gap)
        return -1;
    bool small = l->mask < PySet_MINSIZE;
    setentry *table = small ? set->smalltable : PyMem_New(setentry, (size_t)l->mask + 1);
    if (!table) {
        PyErr_NoMemory();
        return -1;
    }
    // The old table goes as in set.clear(), but for its elements: those are let go last.
    setentry old_small[PySet_MINSIZE], *old = set->table;
    Py_ssize_t old_mask = set->mask;
    if (old == set->smalltable)
        old = memcpy(old_small, old, sizeof(old_small));
    fill_table(table, l, items, gap);
    set->table = table;
    set->mask = l->mask;
    set->fill = l->fill;
    set->used = l->used;
    set->finger = l->finger;
    set->hash = -1;
    for (Py_ssize_t i = 0; i <= old_mask; i++) {
        if (old[i].key && old[i].key != gap)
            Py_DECREF(old[i].key);
    }
    if (old != old_small)
        PyMem_Free(old);
    return 0;
}
