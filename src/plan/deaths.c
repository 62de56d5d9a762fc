// An object that a write displaces may die. In plain Python a finalizer or a weak reference's
// callback runs at that moment, and the rest of the function sees its effects; in a plan the write
// comes last. So guards check that displaced objects run no code when they die.
#include "src/world/losses.h"

#include "src/plan/build.h"

// What frames that go on held, and the trace lets go; borrowed from the world.
typedef VEC(const root *) root_list;

// --- the places of an object that are written ---

// What an entry lets go of is counted together: two references may be all that an object has. Its
// guards are checked one after the other, and nothing runs in between.
typedef struct funeral {
    losses losses;
    int guards;
} funeral;

typedef struct displaced {
    funeral *funeral;
    bool first; // of its guards
    death_place place;
    PyObject *key; // strong, or NULL
    // What is guarded by identity and held weakly must not be kept alive by this: the program ends
    // with it, and asks nothing any more.
    bool borrowed;
    Py_ssize_t low, high;
} displaced;

typedef bool (*loser)(losses *, PyObject *);

static bool lose_items(losses *l, PyObject *list, const displaced *d, loser lose) {
    for (Py_ssize_t i = d->low; i < d->high && i < PyList_GET_SIZE(list); i++)
        if (!lose(l, PyList_GET_ITEM(list, i)))
            return false;
    return true;
}

static bool lose_deque(losses *l, PyObject *deque, loser lose) {
    for (Py_ssize_t i = 0; i < Py_SIZE(deque); i++)
        if (!lose(l, raw_deque_item(deque, i)))
            return false;
    return true;
}

static bool lose_set(losses *l, PyObject *set, loser lose) {
    Py_ssize_t at = 0;
    PyObject *item;
    while (raw_set_next(set, &at, &item))
        if (!lose(l, item))
            return false;
    return true;
}

static bool lose_place(losses *l, PyObject *o, const displaced *d, loser lose) {
    PyObject *old = NULL;
    switch (d->place) {
    case DEATH_ITSELF:
        old = o;
        break;
    case DEATH_LIST:
        return lose_items(l, o, d, lose);
    case DEATH_DEQUE:
        return lose_deque(l, o, lose);
    case DEATH_SET:
        return lose_set(l, o, lose);
    case DEATH_DICT:
        if (raw_dict_get(o, d->key, &old) == RAW_UNSURE)
            return false;
        break;
    case DEATH_ATTR:
        if (raw_attr_get(o, d->key, &old) != RAW_FOUND)
            old = NULL;
        break;
    case DEATH_SLOT:
        old = *(PyObject **)((char *)o + d->low);
        break;
    case DEATH_CELL:
        old = PyCell_GET(o);
        break;
    case DEATH_NONE:
        return losses_keep(l, o);
    }
    return !old || lose(l, old);
}

static bool check(PyObject *o, void *data) {
    displaced *d = data;
    if (d->first)
        losses_clear(&d->funeral->losses);
    return o && lose_place(&d->funeral->losses, o, d, losses_add);
}

static PyObject *text(const char *source, void *data) {
    const displaced *d = data;
    if (d->place == DEATH_NONE)
        return PyUnicode_FromFormat("%s lives on", source);
    if (d->borrowed)
        return PyUnicode_FromFormat("no finalizer is behind an item of %s", source);
    if (d->key) {
        PyObject *key = object_text(d->key);
        PyObject *all =
            key ? PyUnicode_FromFormat("no finalizer is behind %U of %s", key, source) : NULL;
        Py_XDECREF(key);
        return all;
    }
    return PyUnicode_FromFormat("no finalizer is behind what %s loses", source);
}

static void drop(void *data) {
    displaced *d = data;
    if (--d->funeral->guards == 0) {
        losses_clear(&d->funeral->losses);
        PyMem_Free(d->funeral);
    }
    if (!d->borrowed)
        Py_XDECREF(d->key);
    PyMem_Free(d);
}

static const guard_custom quiet_guard = {
    .name = "quiet", .check = check, .text = text, .drop = drop};

static status guard_displaced(builder *b, source *s, displaced what) {
    displaced *d = PyMem_Malloc(sizeof(displaced));
    what.first = !b->funeral;
    if (d && what.first)
        b->funeral = PyMem_Calloc(1, sizeof(funeral));
    if (!d || !b->funeral) {
        PyMem_Free(d);
        PyErr_NoMemory();
        return ST_ERROR;
    }
    what.funeral = b->funeral;
    what.funeral->guards++;
    if (!what.borrowed)
        Py_XINCREF(what.key);
    *d = what;
    return guard_add_custom(b->w->guards, s, &quiet_guard, d);
}

// The trace has references of its own, so that what may be loud is taken to die.
static bool lose_traced(losses *l, PyObject *o) {
    bool loud = Py_TYPE(o)->tp_finalize || Py_TYPE(o)->tp_del;
    return loud ? losses_last(l, o) : losses_add(l, o);
}

// If frames let go of things that live on by other references, this may be such a one.
status deaths_guard(builder *b, source *s, PyObject *o, death_place place, PyObject *key,
                    Py_ssize_t low, Py_ssize_t high) {
    record *r = key ? record_of(b->w, key) : NULL;
    displaced d = {.place = place,
                   .key = key,
                   .low = low,
                   .high = high,
                   .borrowed = r && r->inside == r->outside && (r->identity || r->pinned) &&
                               PyType_SUPPORTS_WEAKREFS(Py_TYPE(key))};
    losses now = {0};
    bool quiet = lose_place(&now, o, &d, b->lets_go ? losses_last : lose_traced);
    losses_clear(&now);
    if (quiet)
        return guard_displaced(b, s, d);
    return world_break_status(b->w, REASON_FINALIZER, "lets go of something in a %s",
                              Py_TYPE(o)->tp_name);
}

bool death_known(PyObject *o) {
    const lazy *l = o && is_lazy(o) ? (lazy *)o : NULL;
    if (!l || l->is_number) // of a number that is open the type is guarded
        return l != NULL;
    return l->inside && (value_immutable(l->inside) || is_standin(l->inside));
}

status deaths_guard_lazy(builder *b, PyObject *o) {
    lazy *l = (lazy *)o;
    if (!is_lazy(o) || death_known(o) || ((lazy *)o)->source->kind == SOURCE_GRAPH)
        return ST_OK;
    return deaths_guard(b, l->source, l->outside, DEATH_ITSELF, NULL, 0, 0);
}

// --- what frames that go on held ---

// Immutable: nobody notices.
static bool root_known(const root *r) {
    return r->inside && death_known(r->inside) &&
           !(world_tensors && world_tensors->is_tensor(r->outside));
}

// It dies for real, in an instruction that is.
static status break_before(world *w, const root *r) {
    const uint64_t *dropped = map_get(&w->time.born, map_key(r->inside ? r->inside : r->outside));
    w->time.again = dropped ? *dropped : 1;
    return world_break_status(w, REASON_FINALIZER, "lets go of a %s", Py_TYPE(r->outside)->tp_name);
}

static status root_goes(builder *b, losses *l, const root *r) {
    if (!losses_add(l, r->outside))
        return break_before(b->w, r);
    b->lets_go |= !map_get(&b->w->roots.dying, map_key(r->outside));
    return guard_displaced(b, r->source, (displaced){.place = DEATH_ITSELF});
}

static status list_roots(builder *b, root_list *going) {
    for (uint32_t i = 0; i < b->w->roots.slots.count; i++) {
        const root *r = &b->w->roots.slots.items[i];
        if (!r->stays && !map_get(&b->sources, map_key(r->source)) && !root_known(r))
            TRY(vec_push(going, r));
    }
    return ST_OK;
}

// A weak reference gives out what may have died meanwhile, and so may what C code makes.
static bool is_held_by_path(const source *s) {
    for (; s; s = s->parent)
        if (source_what(s->kind) == GIVES_LOOSE)
            return false;
    return true;
}

// What was a part of these, and is given out: a manager whose method the stack held is now the
// variable of a frame.
static status keep_loaded(builder *b, losses *l) {
    for (uint32_t i = 0; i < b->loaded.count; i++) {
        source *s = b->loaded.items[i];
        const uint64_t *known = map_get(&b->w->in.lazies, map_key(s));
        PyObject *o = known ? ((lazy *)(uintptr_t)*known)->outside : NULL;
        if (!o || !map_get(&b->w->roots.dying, map_key(o)) || !is_held_by_path(s))
            continue;
        if (!losses_keep(l, o)) {
            PyErr_NoMemory();
            return ST_ERROR;
        }
        TRY(guard_displaced(b, s, (displaced){.place = DEATH_NONE}));
    }
    return ST_OK;
}

status deaths_of_roots(builder *b) {
    root_list going = {0};
    losses l = {.before = &b->w->roots.dying};
    status done = list_roots(b, &going);
    if (done == ST_OK && going.count > 0)
        done = keep_loaded(b, &l);
    for (uint32_t i = 0; done == ST_OK && i < going.count; i++)
        done = root_goes(b, &l, going.items[i]);
    losses_clear(&l);
    vec_free(&going);
    return done;
}

status deaths_of_generators(builder *b) {
    world *w = b->w;
    for (uint32_t i = 0; i < w->made.generators.count; i++) {
        PyObject *gen = raw_weakref_get(w->made.generators.items[i]);
        if (gen && gen != Py_None && ((PyGenObject *)gen)->gi_frame_state < FRAME_EXECUTING &&
            ((PyGenObject *)gen)->gi_frame_state != FRAME_CREATED &&
            !map_get(&b->objects, map_key(gen)))
            return rebuild_refuse(b, gen);
    }
    return ST_OK;
}
