// Places that hold one reference: cells, slots, context variables. Their contents come through the
// door once; writes to them are held back.
#include "src/world/inner.h"
#include "src/world/world.h"

// --- one place ---

// What is there now, by `raw` (NULL: empty) and its source; new reference, NULL without an
// exception if empty. Emptiness is guarded by the caller before.
static PyObject *place_read(world *w, place *p, source *s, PyObject *raw) {
    if (p->pending) {
        w->facts.met = true;
        return p->pending == world_absent ? NULL : Py_NewRef(p->pending);
    }
    if (!p->looked) {
        int reg;
        p->looked = true;
        p->empty = !raw;
        if (raw) {
            if (guard_need(w->guards, s, &reg) != ST_OK)
                return NULL;
            p->initial = door_load(w, s, raw);
            Py_XDECREF(p->initial); // the arena has it
        }
    }
    world_meet(w, p->initial);
    return Py_XNewRef(p->initial);
}

static status place_write(world *w, place *p, PyObject *value) {
    PyObject *kept = value ? world_keep(w, Py_NewRef(value)) : world_absent;
    if (!kept)
        return ST_ERROR;
    p->pending = kept;
    w->held.writes++;
    return ST_OK;
}

static bool must_look(const place *p) {
    return !p->pending && !p->looked;
}

// --- cells ---

PyObject *cell_get(world *w, PyObject *cell) {
    record *r = record_of(w, cell);
    if (!r)
        return Py_XNewRef(PyCell_GET(cell));
    PyObject *raw = PyCell_GET(cell);
    source *s = guard_source(w->guards, SOURCE_CELL, r->source, NULL, 0);
    if (!s)
        return NULL;
    if (!raw && must_look(&r->content) && check_cell_empty(w, r->source) != ST_OK)
        return NULL;
    return place_read(w, &r->content, s, raw);
}

status cell_set(world *w, PyObject *cell, PyObject *value) {
    world_touch(w);
    record *r = record_of(w, cell);
    if (r)
        return place_write(w, &r->content, value);
    PyObject *old = PyCell_GET(cell);
    PyCell_SET(cell, Py_XNewRef(value));
    Py_XDECREF(old);
    return ST_OK;
}

// --- slots ---

static place *slot_place_of(world *w, record *r, PyObject *descriptor) {
    for (uint32_t i = 0; i < r->slots.count; i++)
        if (r->slots.items[i].descriptor == descriptor)
            return &r->slots.items[i].place;
    if (!world_keep(w, Py_NewRef(descriptor)) ||
        vec_push(&r->slots, ((slot_place){.descriptor = descriptor})) != ST_OK)
        return NULL;
    return &r->slots.items[r->slots.count - 1].place;
}

static Py_ssize_t slot_offset(PyObject *descriptor) {
    return ((PyMemberDescrObject *)descriptor)->d_member->offset;
}

PyObject *slot_get(world *w, record *r, PyObject *descriptor) {
    place *p = slot_place_of(w, r, descriptor);
    PyObject *raw = NULL;
    Py_ssize_t offset = slot_offset(descriptor);
    source *s =
        p ? guard_source(w->guards, SOURCE_SLOT, r->source, PyDescr_NAME(descriptor), offset)
          : NULL;
    if (!s)
        return NULL;
    switch (raw_slot_get(r->outside, offset, &raw)) {
    case RAW_UNSURE:
        return world_break(w, REASON_ATTRIBUTE, "%U, a member of a C type",
                           PyDescr_NAME(descriptor));
    case RAW_ABSENT:
        raw = NULL;
        if (must_look(p) && check_slot_empty(w, r->source, offset) != ST_OK)
            return NULL;
        break;
    case RAW_FOUND:
        break;
    }
    return place_read(w, p, s, raw);
}

status slot_set(world *w, record *r, PyObject *descriptor, PyObject *value) {
    world_touch(w);
    place *p = slot_place_of(w, r, descriptor);
    return p ? place_write(w, p, value) : ST_ERROR;
}

// --- gradients ---

PyObject *grad_pending(const record *tensor) {
    return tensor->content.pending;
}

status grad_set(world *w, record *tensor, PyObject *value) {
    world_touch(w);
    return place_write(w, &tensor->content, value);
}

// --- context variables ---

static record *context_record(world *w, PyObject *variable) {
    record *r = record_of(w, variable);
    if (!r)
        world_break(w, REASON_PROTOCOL, "a context variable made inside");
    return r;
}

PyObject *context_get(world *w, PyObject *variable) {
    record *r = context_record(w, variable);
    source *s = r ? guard_source(w->guards, SOURCE_CONTEXT_VAR, r->source, NULL, 0) : NULL;
    PyObject *raw;
    if (!s || PyContextVar_Get(variable, world_absent, &raw) < 0)
        return NULL;
    Py_DECREF(raw); // the context has it
    bool set = raw != world_absent;
    if (must_look(&r->content) && check_context_set(w, r->source, set) != ST_OK)
        return NULL;
    return place_read(w, &r->content, s, set ? raw : NULL);
}

status context_set(world *w, PyObject *variable, PyObject *value) {
    world_touch(w);
    record *r = context_record(w, variable);
    return r ? place_write(w, &r->content, value) : ST_BREAK;
}
