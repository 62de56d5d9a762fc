// The frames that a trace leaves at a break into the numbers that the next piece of each frame leaves
// open from its start: those that were open in the trace, by the places where that piece finds them.
#include "src/interp/image.h"

#include "src/world/number.h"

#include "src/trace/roots.h"

#include "src/compile/room.h"

// What is found after this many steps of a walk, or deeper, the next piece learns by itself.
enum { MOST_LOOKS = 2000, MOST_DEPTH = 16 };

typedef struct walk {
    world *w;
    PyObject *open; // strong, or NULL: what was found
    int looks, depth;
} walk;

static status look(walk *k, PyObject *o, PyObject *text);

// --- numbers and tensors ---

static bool is_open(world *w, number n) {
    return n.e && number_current(w->numbers.sizes, n).e;
}

// Of a number that the trace did not look at: what the terms say of it.
static unsigned bits_of_lazy(world *w, const lazy *l) {
    if (l->is_number)
        return is_open(w, l->number) ? SYMBOLIC_VALUE : 0;
    return l->record ? 0 : world_symbolic(w, l->source);
}

static unsigned bits_of_tensor(world *w, const meta *m) {
    unsigned bits = 0;
    for (int d = 0; d < m->dims; d++) {
        if (is_open(w, number_of_size(m->sizes[d])))
            bits |= 1U << (SYMBOLIC_SIZES + d);
        if (is_open(w, number_of_size(m->strides[d])))
            bits |= 1U << (SYMBOLIC_STRIDES + d);
    }
    return bits;
}

static status found(walk *k, PyObject *text, unsigned bits) {
    return bits ? guard_open_add(&k->open, text, bits) : ST_OK;
}

// --- parts ---

static status look_at(walk *k, PyObject *o, source_kind kind, PyObject *parent, PyObject *key,
                      Py_ssize_t index) {
    if (!o || o == world_absent)
        return ST_OK;
    PyObject *text = source_text_of(kind, parent, key, index);
    status done = text ? look(k, o, text) : ST_ERROR;
    Py_XDECREF(text);
    return done;
}

static status look_at_items(walk *k, PyObject *const *items, Py_ssize_t count, source_kind kind,
                            PyObject *text) {
    for (Py_ssize_t i = 0; i < count; i++)
        TRY(look_at(k, items[i], kind, text, NULL, i));
    return ST_OK;
}

// Skips the keys of `but` (may be NULL).
static status look_at_dict(walk *k, PyObject *dict, PyObject *but, source_kind kind,
                           PyObject *text) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (dict && PyDict_Next(dict, &at, &key, &value)) {
        bool known = PyUnicode_CheckExact(key) || (PyLong_CheckExact(key) && !but);
        if (known && !(but && PyDict_Contains(but, key) > 0))
            TRY(look_at(k, value, kind, text, key, 0));
    }
    return ST_OK;
}

static status look_at_names(walk *k, const names *n, PyObject *text) {
    source_kind kind = n->instance ? SOURCE_ATTR : SOURCE_ITEM;
    if (n->twin)
        return look_at_dict(k, n->twin, NULL, kind, text);
    TRY(look_at_dict(k, n->pending, NULL, kind, text));
    return look_at_dict(k, n->known, n->pending, kind, text);
}

static status look_at_attributes(walk *k, PyObject *o, PyObject *text) {
    PyObject *all = raw_attr_names(o), *value;
    status done = all ? ST_OK : ST_ERROR;
    for (Py_ssize_t i = 0; done == ST_OK && i < PyList_GET_SIZE(all); i++) {
        PyObject *name = PyList_GET_ITEM(all, i);
        if (PyUnicode_CheckExact(name) && raw_attr_get(o, name, &value) == RAW_FOUND)
            done = look_at(k, value, SOURCE_ATTR, text, name, 0);
    }
    Py_XDECREF(all);
    return done;
}

static status look_at_cell(walk *k, PyObject *cell, const record *r, PyObject *text) {
    PyObject *now = !r                   ? PyCell_GET(cell)
                    : r->content.pending ? r->content.pending
                                         : r->content.initial;
    return look_at(k, now, SOURCE_CELL, text, NULL, 0);
}

static status look_at_globals(walk *k, PyObject *globals, PyObject *function) {
    const uint64_t *known = map_get(&k->w->in.dicts, map_key(globals));
    PyObject *text = known ? source_text_of(SOURCE_GLOBALS, function, NULL, 0) : NULL;
    status done = text               ? look_at_names(k, (const names *)(uintptr_t)*known, text)
                  : PyErr_Occurred() ? ST_ERROR
                                     : ST_OK;
    Py_XDECREF(text);
    return done;
}

static status look_at_function(walk *k, PyObject *o, PyObject *text) {
    PyObject *cells = PyFunction_GET_CLOSURE(o);
    if (cells)
        TRY(look_at_items(k, &PyTuple_GET_ITEM(cells, 0), PyTuple_GET_SIZE(cells), SOURCE_CLOSURE,
                          text));
    return look_at_globals(k, PyFunction_GET_GLOBALS(o), text);
}

static status look_at_slice(walk *k, PySliceObject *s, PyObject *text) {
    PyObject *parts[] = {s->start, s->stop, s->step};
    return look_at_items(k, parts, 3, SOURCE_SLICE_FIELD, text);
}

static status look_inside(walk *k, PyObject *o, PyObject *text) {
    const record *r = record_of(k->w, o);
    if (PyTuple_Check(o))
        return look_at_items(k, &PyTuple_GET_ITEM(o, 0), PyTuple_GET_SIZE(o), SOURCE_TUPLE_ITEM,
                             text);
    if (PyList_Check(o))
        return look_at_items(k, PySequence_Fast_ITEMS(o), PyList_GET_SIZE(o), SOURCE_LIST_ITEM,
                             text);
    if (PyCell_Check(o))
        return look_at_cell(k, o, r, text);
    if (PyFunction_Check(o))
        return look_at_function(k, o, text);
    if (r)
        return r->names ? look_at_names(k, r->names, text) : ST_OK;
    if (PySlice_Check(o))
        return look_at_slice(k, (PySliceObject *)o, text);
    if (PyDict_Check(o))
        return look_at_dict(k, o, NULL, SOURCE_ITEM, text);
    return raw_has_dict(Py_TYPE(o)) && !PyType_Check(o) ? look_at_attributes(k, o, text) : ST_OK;
}

// Where the text of a place goes on behind that of an object it belongs to; NULL: it does not.
static const char *text_behind(PyObject *place, PyObject *object) {
    const char *text = PyUnicode_AsUTF8(place), *head = PyUnicode_AsUTF8(object);
    size_t length = head ? strlen(head) : 0;
    bool part = text && head && strncmp(text, head, length) == 0 &&
                (text[length] == '.' || text[length] == '[');
    return part ? text + length : NULL;
}

static status found_behind(walk *k, PyObject *text, const char *behind, PyObject *bits) {
    PyObject *place = PyUnicode_FromFormat("%U%s", text, behind);
    status done = place ? found(k, place, (unsigned)PyLong_AsUnsignedLongMask(bits)) : ST_ERROR;
    Py_XDECREF(place);
    return done;
}

// The trace need not have looked at all that its terms name.
static status found_by_terms(walk *k, const lazy *l, PyObject *text) {
    PyObject *place, *bits, *head = source_text(l->source);
    Py_ssize_t at = 0;
    status done = head ? ST_OK : ST_ERROR;
    while (done == ST_OK && k->w->terms.symbolic &&
           PyDict_Next(k->w->terms.symbolic, &at, &place, &bits)) {
        const char *behind = text_behind(place, head);
        done = behind ? found_behind(k, text, behind, bits) : PyErr_Occurred() ? ST_ERROR : ST_OK;
    }
    Py_XDECREF(head);
    return done;
}

// A dict that was only read by key has a record, and nothing that stands for it.
static status look_at_lazy(walk *k, const lazy *l, PyObject *text) {
    if (l->source->kind == SOURCE_LOCAL)
        TRY(found_by_terms(k, l, text));
    if (l->inside)
        return look(k, l->inside, text);
    if (l->record && l->record->names)
        return look_at_names(k, l->record->names, text);
    unsigned bits = bits_of_lazy(k->w, l);
    return PyErr_Occurred() ? ST_ERROR : found(k, text, bits);
}

static status look(walk *k, PyObject *o, PyObject *text) {
    if (k->looks++ > MOST_LOOKS || k->depth > MOST_DEPTH)
        return ST_OK;
    const standin_kind *kind = standin_kind_of(o);
    if (kind)
        return found(k, text, bits_of_tensor(k->w, &kind->node_of(o)->meta));
    k->depth++;
    status done = is_lazy(o) ? look_at_lazy(k, (lazy *)o, text) : look_inside(k, o, text);
    k->depth--;
    return done;
}

// --- frames ---

static status look_at_slots(walk *k, const image *i) {
    for (Py_ssize_t n = 0; n < Py_SIZE(i); n++) {
        PyObject *name = root_slot_name(i->code, 0, n);
        status done = name ? look_at(k, i->slots[n], SOURCE_LOCAL, NULL, name, n) : ST_ERROR;
        Py_XDECREF(name);
        TRY(done);
    }
    return look_at(k, i->function, SOURCE_FUNCTION, NULL, NULL, 0);
}

int pieces_note(world *w, image *innermost) {
    if (!w->numbers.sizes)
        return 0;
    for (image *i = innermost; i; i = i->caller) {
        walk k = {.w = w};
        status done = look_at_slots(&k, i);
        Py_XSETREF(i->open, k.open);
        if (done != ST_OK)
            return -1;
    }
    return 0;
}

// --- the next piece ---

// How a trace that begins `level` frames above calls a place of a frame that waits; new str.
static PyObject *name_from_above(PyObject *place, int level) {
    const char *text = PyUnicode_AsUTF8(place);
    if (!text || level == 0)
        return text ? Py_NewRef(place) : NULL;
    bool local = strncmp(text, "L['", 3) == 0;
    return local ? PyUnicode_FromFormat("L['callers[%d].%s", level - 1, text + 3)
                 : PyUnicode_FromFormat("callers[%d]%s", level - 1, text + strlen("function"));
}

static status inherit_all(cache *c, PyObject *open, int level) {
    PyObject *place, *bits;
    Py_ssize_t at = 0;
    while (open && PyDict_Next(open, &at, &place, &bits)) {
        PyObject *name = name_from_above(place, level);
        status done =
            name ? cache_inherit(c, name, (unsigned)PyLong_AsUnsignedLongMask(bits)) : ST_ERROR;
        Py_XDECREF(name);
        TRY(done);
    }
    return ST_OK;
}

int pieces_inherit(cache *k, const guard_frame *f) {
    for (int level = 0; f; f = f->below, level++)
        if (inherit_all(k, f->open, level) != ST_OK)
            return -1;
    return 0;
}
