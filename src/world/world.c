// A world from its making to its end: what a trace keeps, why it stopped, and how the trace's
// objects are cut off from the program at its end.
#include "src/py/classes.h"
#include "src/py/frame.h"
#include "src/py/raised.h"
#include "src/py/signals.h"

#include "src/interp/image.h"

#include "src/world/inner.h"
#include "src/world/number.h"
#include "src/world/world.h"

__attribute__((tls_model("initial-exec"))) _Thread_local world *world_here;
const tensor_ops *world_tensors;
const standin_kind *standin_kinds[STANDIN_MOST_KINDS];

void standin_add_kind(const standin_kind *kind) {
    size_t i = 0;
    while (standin_kinds[i])
        i++;
    assert(i < STANDIN_MOST_KINDS - 1);
    standin_kinds[i] = kind;
}
PyObject *world_absent;
PyObject *world_break_error;

// --- making ---

int world_setup(PyObject *module) {
    if (PyType_Ready(&lazy_type) < 0 || PyType_Ready(&address_type) < 0 || raw_setup() < 0 ||
        checks_setup() < 0 || numbers_setup() < 0)
        return -1;
    if (!world_absent)
        world_absent = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    // Not an Exception: `except Exception` in code that is not interpreted must not stop it.
    if (!world_break_error)
        world_break_error = PyErr_NewExceptionWithDoc(
            "stator._engine.Break",
            "Unwinds native code when a trace ends; never seen by Python code.",
            PyExc_BaseException, NULL);
    if (!world_absent || !world_break_error)
        return -1;
    if (breaks_setup(module) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "Break", world_break_error);
}

world *world_new(void) {
    world *w = PyMem_Calloc(1, sizeof(world));
    if (!w) {
        PyErr_NoMemory();
        return NULL;
    }
    w->time.stop_at = MOST_INSTRUCTIONS;
    w->time.stop_call = -1;
    w->time.stop_reason = REASON_LONG;
    w->guards = guards_new();
    w->graph = w->guards ? graph_new() : NULL;
    if (!w->graph) {
        world_free(w);
        return NULL;
    }
    w->scope = (graph *)Py_NewRef(w->graph);
    return w;
}

PyObject *world_keep(world *w, PyObject *o) {
    return o && arena_own(&w->arena, o) == ST_OK ? o : NULL;
}

status world_hold_call(world *w, held_call c) {
    PyObject *const parts[] = {c.function, c.self, c.argument, c.made, c.names};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(parts); i++)
        if (parts[i] && !world_keep(w, Py_NewRef(parts[i])))
            return ST_ERROR;
    world_touch(w);
    w->held.writes++;
    if (c.made)
        TRY(map_put(&w->held.sealed, map_key(c.made), 1));
    c.since = w->run ? w->run->started : 0;
    return vec_push(&w->held.calls, c);
}

status world_open_body(world *w) {
    graph *body = graph_open_body(w->scope);
    if (!body)
        return ST_ERROR;
    Py_SETREF(w->scope, body);
    return ST_OK;
}

void world_leave_body(world *w) {
    Py_SETREF(w->scope, (graph *)Py_NewRef(w->scope->outer));
}

// C objects without parts are numbers, names and the like.
static bool is_fixed(PyObject *o) {
    for (Py_ssize_t i = 0; PyTuple_CheckExact(o) && i < PyTuple_GET_SIZE(o); i++)
        if (!is_fixed(PyTuple_GET_ITEM(o, i)))
            return false;
    bool simple = !PyObject_IS_GC(o) && !PyByteArray_Check(o) &&
                  !(Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE);
    return simple || PyTuple_CheckExact(o) || PyFunction_Check(o) || PyType_Check(o) ||
           PyModule_Check(o) || PyCFunction_Check(o) || Py_TYPE(o) == &PyMethodDescr_Type ||
           is_standin(o) || world_has_tensor(o) || value_immutable(o);
}

void world_note_met(world *w, PyObject *value) {
    if (!is_fixed(is_lazy(value) ? ((lazy *)value)->outside : value))
        w->facts.met = true;
}

// --- what lives ---

enum { SEARCH_LIMIT = 5000 };

typedef struct search {
    const world *w;
    PyObject *wanted;
    VEC(PyObject *) queue; // borrowed: all of it hangs on the frames
    map seen;
    bool found;
} search;

// What is searched further: things made inside that hold what Python code put there.
static bool leads_on(const world *w, PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    bool kind = t == &PyDict_Type || t == &PyList_Type || t == &PyTuple_Type || t == &PyCell_Type ||
                raw_is_python_class(t);
    return kind && !PyType_Check(o) && t->tp_traverse && !is_standin(o) && !record_of(w, o);
}

// Not 0 ends the search.
static int meet(PyObject *o, void *data) {
    search *s = data;
    s->found = o == s->wanted || (is_lazy(o) && ((lazy *)o)->outside == s->wanted);
    if (s->found || s->queue.count == SEARCH_LIMIT)
        return 1;
    if (!leads_on(s->w, o) || map_get(&s->seen, map_key(o)))
        return 0;
    return map_put(&s->seen, map_key(o), 1) != ST_OK || vec_push(&s->queue, o) != ST_OK;
}

static int meet_locals(search *s, py_frame *f) {
    int end = 0;
    for (int i = 0; !end && i < py_frame_code(f)->co_nlocalsplus; i++) {
        PyObject *o = py_frame_get(f, i);
        end = o && meet(o, s);
    }
    return end;
}

bool world_holds(world *w, PyObject *o) {
    search s = {.w = w, .wanted = o};
    py_frame *root = w->root ? w->root->frame : NULL;
    py_frame *f = root ? py_current_frame(PyThreadState_Get()) : NULL;
    int end = 0;
    for (bool last = false; !end && !last && f; f = py_frame_caller(f)) {
        last = f == root;
        end = !py_frame_incomplete(f) && meet_locals(&s, f);
    }
    for (uint32_t i = 0; !end && i < s.queue.count; i++)
        end = Py_TYPE(s.queue.items[i])->tp_traverse(s.queue.items[i], meet, &s);
    vec_free(&s.queue);
    map_clear(&s.seen);
    PyErr_Clear();
    return s.found;
}

// --- the end ---

// A suspended generator that dies runs its finally blocks; emptied, it has none. One may be held by
// the frame of another alone: nothing that was in a frame is dropped before all are empty. One that
// cannot be emptied, for lack of memory, is never dropped.
static void sever_generators(world *w) {
    VEC(PyObject *) held = {0}; // images; each has its generator
    bool room = vec_reserve(&held, w->made.generators.count) == ST_OK;
    for (uint32_t i = 0; i < w->made.generators.count; i++) {
        PyObject *gen = raw_weakref_get(w->made.generators.items[i]);
        if (!gen || gen == Py_None || ((PyGenObject *)gen)->gi_frame_state >= FRAME_EXECUTING)
            continue;
        PyObject *emptied = room ? (PyObject *)image_of_generator(gen) : NULL;
        if (emptied)
            held.items[held.count++] = emptied;
        else
            Py_INCREF(gen);
    }
    PyErr_Clear();
    while (held.count > 0)
        Py_DECREF(held.items[--held.count]);
    vec_free(&held);
    while (w->made.generators.count > 0)
        Py_DECREF(w->made.generators.items[--w->made.generators.count]);
    vec_free(&w->made.generators);
}

static void sever_lazy(lazy *l) {
    l->world = NULL;
    l->source = NULL;
    l->record = NULL;
    l->is_number = false;
    Py_CLEAR(l->inside);
    Py_CLEAR(l->outside);
}

static void sever_lazies(world *w) {
    for (uint32_t i = 0; i < w->in.lazies.room; i++)
        if (w->in.lazies.slots[i].key != MAP_NO_KEY)
            sever_lazy((lazy *)(uintptr_t)w->in.lazies.slots[i].value);
    for (uint32_t i = 0; i < w->numbers.computed.count; i++)
        sever_lazy(w->numbers.computed.items[i]);
}

static void free_records(world *w) {
    for (uint32_t i = 0; i < w->in.all.count; i++)
        vec_free(&w->in.all.items[i]->slots);
    vec_free(&w->in.all);
    vec_free(&w->in.names);
}

// Bases from outside forget the classes that were made inside, so that nobody meets one who asks a
// base for its subclasses.
status namespace_make(world *w, PyObject *dict) {
    if (namespace_is_made(w, dict))
        return ST_OK;
    return world_keep(w, Py_NewRef(dict)) ? map_put(&w->made.objects, map_key(dict), MADE_NAMESPACE)
                                          : ST_ERROR;
}

static void sever_classes(world *w) {
    for (uint32_t i = 0; i < w->made.objects.room; i++) {
        if (w->made.objects.slots[i].key == MAP_NO_KEY ||
            w->made.objects.slots[i].value != MADE_CLASS)
            continue;
        PyTypeObject *class = (PyTypeObject *)(uintptr_t)w->made.objects.slots[i].key;
        PyObject *bases = class->tp_bases;
        for (Py_ssize_t j = 0; bases && j < PyTuple_GET_SIZE(bases); j++) {
            PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(bases, j);
            if (raw_is_python_class(base) && !type_is_made(w, base))
                py_forget_subclass(base, class);
        }
    }
}

// Torch's weak references to fakes call back into Python code: what a signal's handler raised there
// would be lost.
void world_free(world *w) {
    unsigned long signals = py_hold_signals();
    py_raised aside = py_put_aside();
    sever_generators(w);
    sever_classes(w);
    if (world_tensors && world_tensors->sever)
        world_tensors->sever(w);
    sever_lazies(w);
    free_records(w);
    map_clear(&w->in.records);
    map_clear(&w->in.lazies);
    map_clear(&w->in.dicts);
    map_clear(&w->in.values);
    map_clear(&w->in.lookups);
    map_clear(&w->numbers.sources);
    vec_free(&w->numbers.symbols);
    vec_free(&w->numbers.computed);
    map_clear(&w->made.objects);
    map_clear(&w->in.fixed);
    map_clear(&w->time.born);
    map_clear(&w->held.sealed);
    vec_free(&w->held.calls);
    vec_free(&w->roots.slots);
    vec_free(&w->in.hits);
    world_trail_free(w);
    map_clear(&w->roots.dying);
    Py_CLEAR(w->stop.image);
    if (world_here == w)
        world_here = NULL;
    arena_clear(&w->arena);
    if (w->guards)
        guards_free(w->guards);
    Py_XDECREF(w->scope);
    if (w->graph)
        w->graph->sizes = NULL; // it may outlive the trace
    Py_XDECREF(w->graph);
    sizes_free(w->numbers.sizes);
    Py_XDECREF(w->stop.detail);
    Py_XDECREF(w->stop.stack);
    Py_XDECREF(w->time.stop_detail);
    Py_XDECREF(w->time.stop_stack);
    Py_XDECREF(w->held.switches);
    Py_XDECREF(w->stop.awaited);
    PyMem_Free(w);
    py_put_on(aside);
    py_let_signals_go(signals);
}

// --- distinctness ---

bool names_written(const names *n) {
    if (n->pending && PyDict_GET_SIZE(n->pending) > 0)
        return true;
    if (!n->twin)
        return false;
    if (PyDict_GET_SIZE(n->twin) != PyDict_GET_SIZE(n->initial))
        return true;
    raw_cursor now = {0}, before = {0};
    PyObject *key, *value, *old_key, *old_value;
    while (raw_dict_next(n->twin, &now, &key, &value)) {
        if (!raw_dict_next(n->initial, &before, &old_key, &old_value) || key != old_key ||
            !twin_unchanged(value, old_value))
            return true;
    }
    return false;
}

static bool list_written(const record *r) {
    if (PyList_GET_SIZE(r->inside) != r->count)
        return true;
    for (Py_ssize_t i = 0; i < r->count; i++)
        if (!twin_unchanged(PyList_GET_ITEM(r->inside, i), r->initial[i]))
            return true;
    return false;
}

// A set that does not iterate as the original counts as written: its elements are not asked.
static bool set_written(const record *r) {
    Py_ssize_t at = 0, i = 0;
    PyObject *item;
    while (raw_set_next(r->inside, &at, &item))
        if (i == r->count || item != r->initial[i++])
            return true;
    return i != r->count;
}

static bool deque_written(const record *r) {
    if (raw_length(r->inside) != r->count)
        return true;
    for (Py_ssize_t i = 0; i < r->count; i++)
        if (!twin_unchanged(raw_deque_item(r->inside, i), r->initial[i]))
            return true;
    return false;
}

static bool bytes_written(const record *r) {
    Py_ssize_t size = PyByteArray_GET_SIZE(r->outside);
    return PyByteArray_GET_SIZE(r->inside) != size ||
           memcmp(PyByteArray_AS_STRING(r->inside), PyByteArray_AS_STRING(r->outside),
                  (size_t)size);
}

bool twin_written(const record *r) {
    if (!r->inside)
        return false;
    switch (r->kind) {
    case RECORD_LIST:
        return list_written(r);
    case RECORD_SET:
        return !PyFrozenSet_Check(r->outside) && set_written(r);
    case RECORD_DEQUE:
        return deque_written(r);
    case RECORD_BYTEARRAY:
        return bytes_written(r);
    case RECORD_ITERATOR:
        return twin_of_iterator_written(r);
    default:
        return false;
    }
}

static bool record_written(const record *r) {
    if (!r->inside)
        return false;
    if (r->content.pending)
        return true;
    for (uint32_t i = 0; i < r->slots.count; i++)
        if (r->slots.items[i].place.pending)
            return true;
    return twin_written(r);
}

// An object's type is guarded, so only objects of one type can turn out to be the same. What each
// type has among the records, in bits:
enum { UNPINNED = 1, WRITTEN = 2, ONE = 4 };

static status mark(map *types, PyTypeObject *type, uint64_t bits) {
    uint64_t *known = map_get(types, map_key(type));
    uint64_t now = known ? *known : 0;
    return map_put(types, map_key(type), (bits & ONE ? now + ONE : now) | (bits & ~(uint64_t)ONE));
}

static status mark_all(const world *w, map *types) {
    uint64_t all = w->facts.identity_mattered ? WRITTEN : 0;
    for (uint32_t i = 0; i < w->in.all.count; i++) {
        const record *r = w->in.all.items[i];
        bool written = r->written || record_written(r) ||
                       (r->kind == RECORD_TENSOR && w->facts.mutated_tensor);
        uint64_t bits = ONE | all | (r->pinned ? 0 : UNPINNED) | (written ? WRITTEN : 0);
        TRY(mark(types, Py_TYPE(r->outside), bits));
    }
    for (uint32_t i = 0; i < w->in.names.count; i++) {
        const names *n = w->in.names.items[i];
        if (n->written || names_written(n))
            TRY(mark(types, Py_TYPE(n->owner), WRITTEN));
    }
    return ST_OK;
}

static bool must_differ(const map *types, PyTypeObject *type) {
    uint64_t *bits = map_get(types, map_key(type));
    return bits && *bits >= 2 * ONE && (*bits & UNPINNED) && (*bits & WRITTEN);
}

// The instance dict of an object may turn out to be a dict that is met as an object, or another
// object's instance dict.
static bool dicts_may_meet(const world *w) {
    bool instance = false, written = false;
    for (uint32_t i = 0; i < w->in.names.count; i++) {
        instance |= w->in.names.items[i]->instance;
        written |= w->in.names.items[i]->written || names_written(w->in.names.items[i]);
    }
    return instance && written && w->in.names.count > 1;
}

// An object that was asked for attributes, by itself.
static bool has_own_names(const record *r) {
    return r->kind != RECORD_DICT && r->names && r->names->instance &&
           r->names->owner == r->outside && !PyType_Check(r->outside);
}

// Types of objects that were asked for attributes. One object may be at two places, and have been
// asked at one of them alone: all objects of such a type are compared by their instance dicts.
static status asked_types(const world *w, map *types) {
    for (uint32_t i = 0; i < w->in.all.count; i++) {
        const record *r = w->in.all.items[i];
        if (has_own_names(r))
            TRY(map_put(types, map_key(Py_TYPE(r->outside)), 1));
    }
    return ST_OK;
}

static status guard_record_distinct(world *w, record *r, bool by_dict) {
    if (r->kind == RECORD_DICT) // as an instance dict it is there by its owner
        return by_dict && r->names && r->names->instance ? ST_OK
                                                         : guard_distinct(w->guards, r->source);
    if (!by_dict || PyType_Check(r->outside))
        return guard_distinct(w->guards, r->source);
    source *s = guard_source(w->guards, SOURCE_OWN_DICT, r->source, NULL, 0);
    return s ? guard_distinct(w->guards, s) : ST_ERROR;
}

// By its instance dict, unless that is there by itself, as a module's is for functions.
static bool is_by_dict(const world *w, const record *r, const map *asked) {
    if (r->kind == RECORD_DICT || has_own_names(r))
        return true;
    PyObject *dict = raw_dict(r->outside);
    return map_get(asked, map_key(Py_TYPE(r->outside))) && !(dict && record_of(w, dict));
}

static status guard_all_distinct(world *w, const map *types, const map *asked, bool meet) {
    for (uint32_t i = 0; i < w->in.all.count; i++) {
        record *r = w->in.all.items[i];
        bool keyed = meet && (r->kind == RECORD_DICT || has_own_names(r));
        if (keyed || must_differ(types, Py_TYPE(r->outside)))
            TRY(guard_record_distinct(w, r, meet && is_by_dict(w, r, asked)));
    }
    return ST_OK;
}

static status guard_records_distinct(world *w, const map *types) {
    map asked = {0};
    bool meet = dicts_may_meet(w);
    status done = meet ? asked_types(w, &asked) : ST_OK;
    if (done == ST_OK)
        done = guard_all_distinct(w, types, &asked, meet);
    map_clear(&asked);
    return done;
}

bool world_wrote(const world *w) {
    if (w->held.calls.count > 0)
        return true;
    for (uint32_t i = 0; i < w->in.names.count; i++)
        if (names_written(w->in.names.items[i]))
            return true;
    for (uint32_t i = 0; i < w->in.all.count; i++)
        if (record_written(w->in.all.items[i]))
            return true;
    return false;
}

static const names *names_at(const world *w, PyObject *owner, const record *r) {
    const uint64_t *joined = map_get(&w->in.dicts, map_key(owner));
    return joined ? (const names *)(uintptr_t)*joined : r ? r->names : NULL;
}

static bool has_key(PyObject *dict, PyObject *key) {
    return dict && PyDict_Contains(dict, key) > 0;
}

bool world_holds_back(const world *w, PyObject *owner, PyObject *key) {
    const record *r = record_of(w, owner);
    const names *n = names_at(w, owner, r);
    if (n && key && !n->twin)
        return has_key(n->pending, key);
    return (n && names_written(n)) || (r && record_written(r)) ||
           (r && r->attributes && names_written(r->attributes));
}

bool world_touched(const world *w, PyObject *owner, PyObject *key) {
    const record *r = record_of(w, owner);
    const names *n = names_at(w, owner, r);
    if (r && r->kind == RECORD_CELL)
        return r->content.looked || r->content.pending;
    if (n && key && !n->twin)
        return has_key(n->known, key) || has_key(n->pending, key);
    return n || r;
}

status world_finish(world *w) {
    map types = {0};
    TRY(numbers_guard(w));
    TRY(handles_end(w));
    status result = mark_all(w, &types);
    if (result == ST_OK)
        result = guard_records_distinct(w, &types);
    map_clear(&types);
    return result;
}
