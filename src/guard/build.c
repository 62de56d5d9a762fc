// Turns the notes of a trace into a guard program. Each source is made once; a load is added,
// behind its parent's, when a check or the plan first needs it; a check comes behind the loads that
// it uses.
#include "src/py/raw.h"

#include "src/guard/guard.h"
#include "src/guard/death.h"
#include "src/guard/expression.h"
#include "src/guard/log.h"
#include "src/guard/program.h"
#include "src/guard/stale.h"
#include "src/guard/value.h"

typedef struct source_node {
    source source;
    struct source_node *next; // with the same hash
} source_node;

struct guards {
    arena arena;
    map sources; // hash → source_node *
    map said;    // hash → newest step with it, from where `older` leads on
    map distinct_known;
    VEC(step) steps;
    VEC(origin) origins; // these two go with the steps
    VEC(int32_t) older;
    VEC(PyCodeObject *) codes; // the arena's
    VEC(source *) distinct;
    VEC(int32_t) given; // registers
    int32_t registers;
    bool sealed;      // the program has what CUSTOM checks own
    bool is_distinct; // there is a step for what must be distinct
};

guards *guards_new(void) {
    if (guard_setup() < 0)
        return NULL;
    guards *g = PyMem_Calloc(1, sizeof(guards));
    if (!g)
        PyErr_NoMemory();
    return g;
}

static void drop_customs(const step *steps, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (steps[i].op == STEP_CHECK + GUARD_CUSTOM && steps[i].custom->drop)
            steps[i].custom->drop(steps[i].data);
}

void guards_free(guards *g) {
    if (!g)
        return;
    if (!g->sealed)
        drop_customs(g->steps.items, g->steps.count);
    map_clear(&g->sources);
    map_clear(&g->said);
    map_clear(&g->distinct_known);
    vec_free(&g->steps);
    vec_free(&g->origins);
    vec_free(&g->older);
    vec_free(&g->codes);
    vec_free(&g->distinct);
    vec_free(&g->given);
    arena_clear(&g->arena);
    PyMem_Free(g);
}

static uint64_t mix(uint64_t hash, uint64_t more) {
    hash = (hash ^ more) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

static uint64_t usable(uint64_t hash) {
    return hash == MAP_NO_KEY ? 0 : hash;
}

// --- sources ---

static bool same_object(PyObject *a, PyObject *b) {
    return a == b || (a && b && value_same(a, b));
}

static source *known_source(source_node *n, source_kind kind, source *parent, PyObject *key,
                            Py_ssize_t index) {
    for (; n; n = n->next) {
        source *s = &n->source;
        bool same = s->key == key || (!step_by_identity((int32_t)kind) && same_object(s->key, key));
        if (s->kind == kind && s->parent == parent && s->index == index && same)
            return s;
    }
    return NULL;
}

source *guard_source(guards *g, source_kind kind, source *parent, PyObject *key, Py_ssize_t index) {
    uint64_t hash = mix(mix((uint64_t)kind, (uintptr_t)parent), (uint64_t)index);
    hash = usable(key ? mix(hash, value_hash(key)) : hash);
    uint64_t *head = map_get(&g->sources, hash);
    source_node *first = head ? (source_node *)(uintptr_t)*head : NULL;
    source *known = known_source(first, kind, parent, key, index);
    if (known)
        return known;
    source_node *n = arena_new(&g->arena, source_node);
    if (!n || (key && arena_own(&g->arena, Py_NewRef(key)) != ST_OK))
        return NULL;
    *n = (source_node){{kind, -1, parent, key, index, NULL}, first};
    return map_put(&g->sources, hash, map_key(n)) == ST_OK ? &n->source : NULL;
}

PyObject *guard_source_text(guards *g, source *s) {
    if (s->text)
        return s->text;
    PyObject *parent = s->parent ? guard_source_text(g, s->parent) : NULL;
    if (s->parent && !parent)
        return NULL;
    PyObject *text =
        s->kind == SOURCE_EXPR ? source_text(s) : source_text_of(s->kind, parent, s->key, s->index);
    if (text && arena_own(&g->arena, text) == ST_OK)
        s->text = text;
    return s->text;
}

// --- steps ---

static status push_code(guards *g, PyCodeObject *code) {
    TRY(arena_own(&g->arena, Py_NewRef(code)));
    return vec_push(&g->codes, code);
}

// The user's place now.
static status origin_now(guards *g, origin *o) {
    int offset;
    PyCodeObject *code = raw_place(&offset);
    *o = (origin){-1, 0};
    if (!code)
        return ST_OK;
    uint32_t i = g->codes.count; // the last ones are the likely ones
    while (i > 0 && g->codes.items[i - 1] != code)
        i--;
    if (i == 0) {
        TRY(push_code(g, code));
        i = g->codes.count;
    }
    *o = (origin){(int32_t)i - 1, offset};
    return ST_OK;
}

static status push_step(guards *g, step s, origin o, int32_t older) {
    TRY(vec_reserve(&g->steps, 1));
    TRY(vec_reserve(&g->origins, 1));
    TRY(vec_reserve(&g->older, 1));
    g->steps.items[g->steps.count++] = s;
    g->origins.items[g->origins.count++] = o;
    g->older.items[g->older.count++] = older;
    return ST_OK;
}

static status push_load(guards *g, source *s) {
    int32_t parent = s->parent ? s->parent->reg : -1;
    step load = {.op = (int32_t)s->kind, .a = parent, .b = g->registers, .index = s->index};
    load.object = s->key;
    TRY(push_step(g, load, (origin){-1, 0}, -1));
    s->reg = g->registers++;
    return ST_OK;
}

static status want(guards *g, source *s);

// The sources that an expression reads.
static status want_places(guards *g, PyObject *expression) {
    source *s;
    for (int i = 0; (s = expression_place(expression, i)); i++)
        TRY(want(g, s));
    expression_resolve(expression);
    return ST_OK;
}

// Gives a source its register, after those it hangs from.
static status want(guards *g, source *s) {
    while (s->reg < 0) {
        source *top = s;
        while (top->parent && top->parent->reg < 0)
            top = top->parent;
        if (top->kind == SOURCE_EXPR)
            TRY(want_places(g, top->key));
        TRY(push_load(g, top));
    }
    return ST_OK;
}

status guard_give(guards *g, source *s, int *reg) {
    TRY(guard_need(g, s, reg));
    return vec_push(&g->given, *reg);
}

int guard_needed(const guards *g) {
    return g->registers;
}

status guard_need(guards *g, source *s, int *reg) {
    TRY(want(g, s));
    *reg = s->reg;
    return ST_OK;
}

// What a check is about; pointers alone, so that two can be compared.
static uint64_t said_hash(const step *s, bool by_value) {
    uint64_t hash =
        mix(mix((uint64_t)s->op, (uint64_t)s->a), mix((uint64_t)s->b, (uint64_t)s->index));
    hash = mix(hash, by_value && s->object ? value_hash(s->object) : (uintptr_t)s->object);
    return usable(mix(hash, (uintptr_t)s->second));
}

static bool said_before(const guards *g, const step *s, bool by_value, int32_t at) {
    for (; at >= 0; at = g->older.items[at]) {
        const step *t = &g->steps.items[at];
        bool same = t->op == s->op && t->a == s->a && t->b == s->b && t->index == s->index;
        if (same && t->second == s->second &&
            (by_value ? same_object(t->object, s->object) : t->object == s->object))
            return true;
    }
    return false;
}

static status add(guards *g, step s) {
    bool by_value = !step_by_identity(s.op);
    uint64_t hash = said_hash(&s, by_value);
    uint64_t *newest = map_get(&g->said, hash);
    int32_t older = newest ? (int32_t)*newest : -1;
    if (said_before(g, &s, by_value, older))
        return ST_OK;
    origin o;
    TRY(origin_now(g, &o));
    TRY(push_step(g, s, o, older));
    return map_put(&g->said, hash, g->steps.count - 1);
}

static status own(guards *g, PyObject *o) {
    return o ? arena_own(&g->arena, Py_NewRef(o)) : ST_OK;
}

// The pointer a slot must hold, taken out of its PyLong once.
static status slot_of(const step *s, void **slot) {
    *slot = PyLong_AsVoidPtr(s->object);
    return !*slot && PyErr_Occurred() ? ST_ERROR : ST_OK;
}

status guard_add(guards *g, guard_kind kind, source *a, source *b, PyObject *object,
                 Py_ssize_t index) {
    if (a)
        TRY(want(g, a));
    if (b)
        TRY(want(g, b));
    step s = {.op = STEP_CHECK + (int32_t)kind,
              .a = a ? a->reg : -1,
              .b = b ? b->reg : -1,
              .index = index};
    s.object = object;
    if (kind == GUARD_EXPR)
        TRY(want_places(g, object));
    if (kind == GUARD_TYPE_FLAGS)
        TRY(slot_of(&s, &s.slot));
    TRY(own(g, object));
    return add(g, s);
}

status guard_add_lookup(guards *g, source *type, PyObject *name, PyObject *found) {
    TRY(want(g, type));
    step s = {.op = STEP_CHECK + GUARD_TYPE_LOOKUP, .a = type->reg, .b = -1};
    s.object = name;
    s.second = found;
    TRY(own(g, name));
    TRY(own(g, found));
    return add(g, s);
}

static status add_custom(guards *g, source *a, const guard_custom *custom, void *data) {
    origin o;
    assert(custom_row(custom) >= 0);
    if (a)
        TRY(want(g, a));
    step s = {.op = STEP_CHECK + GUARD_CUSTOM, .a = a ? a->reg : -1, .b = -1};
    s.custom = custom;
    s.data = data;
    TRY(origin_now(g, &o));
    return push_step(g, s, o, -1);
}

status guard_add_custom(guards *g, source *a, const guard_custom *custom, void *data) {
    status result = add_custom(g, a, custom, data);
    if (result != ST_OK && custom->drop)
        custom->drop(data);
    return result;
}

status guard_distinct(guards *g, source *s) {
    if (map_get(&g->distinct_known, map_key(s)))
        return ST_OK;
    TRY(want(g, s));
    TRY(map_put(&g->distinct_known, map_key(s), 1));
    return vec_push(&g->distinct, s);
}

// --- sealing ---

static status keep_strongly(guard_program *p, PyObject *o) {
    return o ? arena_own(&p->arena, Py_NewRef(o)) : ST_OK;
}

// Types that are not made by code live for good: nothing to watch.
static bool can_die(PyObject *o) {
    if (PyType_Check(o) && !(((PyTypeObject *)o)->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return false;
    return raw_can_be_weak(o);
}

static status keep_weakly(guard_program *p, map *known, PyObject *o) {
    if (!o || !can_die(o))
        return keep_strongly(p, o);
    if (map_get(known, map_key(o)))
        return ST_OK;
    TRY(vec_reserve(&p->holds, 1));
    PyObject *reference = PyWeakref_NewRef(o, p->death);
    if (!reference && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        return keep_strongly(p, o);
    }
    if (!reference)
        return ST_ERROR;
    p->holds.items[p->holds.count++] = (hold){reference, o};
    return map_put(known, map_key(o), 1);
}

// A descriptor may have no weak references. It is of a class that is held weakly, and goes with it.
static status keep_found(guard_program *p, map *known, PyObject *o) {
    if (!o || raw_can_be_weak(o))
        return keep_weakly(p, known, o);
    TRY(vec_push(&p->found, o));
    Py_INCREF(o);
    return ST_OK;
}

// Each of a tuple's items by itself: the tuple would keep classes alive, and keys that are compared
// by identity. Keys that are values cannot be held weakly, and are not.
static status keep_items(guard_program *p, map *known, step *s) {
    PyObject *tuple = s->object;
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    PyObject **items = arena_array(&p->arena, PyObject *, (size_t)count + 1);
    if (!items)
        return ST_ERROR;
    for (Py_ssize_t n = 0; n < count; n++) {
        items[n] = PyTuple_GET_ITEM(tuple, n);
        TRY(keep_weakly(p, known, items[n]));
    }
    s->items = items;
    s->index = count;
    return ST_OK;
}

static status keep_objects(guard_program *p, map *known, step *s) {
    switch (step_rows[s->op].holds) {
    case HOLD_NONE:
        return ST_OK;
    case HOLD_STRONG:
    case HOLD_FIXED:
        return keep_strongly(p, s->object);
    case HOLD_VALUE:
        if (!PyCode_Check(s->object))
            return keep_strongly(p, s->object);
        // fall through
    case HOLD_KEY:
    case HOLD_VERY:
    case HOLD_OTHER:
        return keep_weakly(p, known, s->object);
    case HOLD_ITEMS:
        return keep_items(p, known, s);
    case HOLD_FOUND:
        TRY(keep_found(p, known, s->second));
        return keep_strongly(p, s->object);
    }
    Py_UNREACHABLE();
}

static status keep_all(guard_program *p) {
    map known = {0};
    status result = ST_OK;
    for (int32_t i = 0; result == ST_OK && i < p->count; i++)
        result = keep_objects(p, &known, &p->steps[i]);
    map_clear(&known);
    return result;
}

static status copy_codes(guard_program *p, const guards *g) {
    TRY(vec_reserve(&p->codes, g->codes.count));
    for (uint32_t i = 0; i < g->codes.count; i++) {
        PyObject *reference = PyWeakref_NewRef((PyObject *)g->codes.items[i], NULL);
        if (!reference)
            return ST_ERROR;
        PyObject *filename = Py_NewRef(g->codes.items[i]->co_filename);
        p->codes.items[p->codes.count++] = (program_code){reference, filename};
    }
    return ST_OK;
}

enum { FEW = 8 }; // so many are compared each with each

static status copy_distinct(guard_program *p, const guards *g) {
    uint32_t count = g->distinct.count;
    p->distinct = arena_array(&p->arena, int32_t, count);
    if (!p->distinct)
        return ST_ERROR;
    for (uint32_t i = 0; i < count; i++)
        p->distinct[i] = g->distinct.items[i]->reg;
    p->distinct_count = (int32_t)count;
    while (count > FEW && (UINT64_C(1) << p->distinct_bits) < 2 * (uint64_t)count)
        p->distinct_bits++;
    return ST_OK;
}

static status copy_steps(guard_program *p, const guards *g) {
    p->count = (int32_t)g->steps.count;
    p->registers = g->registers;
    p->steps = arena_array(&p->arena, step, g->steps.count);
    p->origins = p->steps ? arena_array(&p->arena, origin, g->steps.count) : NULL;
    p->loads = p->origins ? arena_array(&p->arena, int32_t, (size_t)g->registers) : NULL;
    p->wanted = p->loads ? arena_array(&p->arena, bool, (size_t)g->registers + 1) : NULL;
    if (!p->wanted)
        return ST_ERROR;
    memset(p->wanted, 0, (size_t)g->registers + 1);
    for (uint32_t i = 0; i < g->given.count; i++)
        p->wanted[g->given.items[i]] = true;
    for (int32_t i = 0; i < p->count; i++) {
        p->steps[i] = g->steps.items[i];
        p->origins[i] = g->origins.items[i];
        if (step_is_load(&p->steps[i]))
            p->loads[p->steps[i].b] = i;
    }
    return ST_OK;
}

static status fill(guard_program *p, guards *g) {
    step all_distinct = {.op = STEP_CHECK + GUARD_DISTINCT, .a = -1, .b = -1};
    p->death = death_new(p);
    if (!p->death)
        return ST_ERROR;
    if (g->distinct.count > 1 && !g->is_distinct)
        TRY(push_step(g, all_distinct, (origin){-1, 0}, -1));
    g->is_distinct = g->distinct.count > 1;
    TRY(copy_steps(p, g));
    TRY(copy_distinct(p, g));
    TRY(copy_codes(p, g));
#ifdef STATOR_FAULT
    TRY(stale_new(p));
#endif
    return keep_all(p);
}

// All but what CUSTOM checks own.
static void program_clear(guard_program *p) {
    log_free(p->log);
    if (p->death)
        death_forget(p->death);
    for (uint32_t i = 0; i < p->holds.count; i++)
        Py_DECREF(p->holds.items[i].reference);
    for (uint32_t i = 0; i < p->codes.count; i++) {
        Py_DECREF(p->codes.items[i].reference);
        Py_DECREF(p->codes.items[i].filename);
    }
    Py_XDECREF(p->death);
#ifdef STATOR_FAULT
    stale_free(p);
#endif
    for (uint32_t i = 0; i < p->found.count; i++)
        Py_DECREF(p->found.items[i]);
    vec_free(&p->holds);
    vec_free(&p->found);
    vec_free(&p->codes);
    arena_clear(&p->arena);
    PyMem_Free(p);
}

guard_program *guard_trial(guards *g) {
    guard_program *p = PyMem_Calloc(1, sizeof(guard_program));
    if (!p) {
        PyErr_NoMemory();
        return NULL;
    }
    if (fill(p, g) != ST_OK) {
        program_clear(p);
        return NULL;
    }
    return p;
}

guard_program *guard_seal(guards *g) {
    guard_program *p = guard_trial(g);
    g->sealed = p != NULL;
    return p;
}

void guard_trial_free(guard_program *p) {
    if (p)
        program_clear(p);
}

void guard_program_free(guard_program *p) {
    if (!p)
        return;
    drop_customs(p->steps, (uint32_t)p->count);
    program_clear(p);
}
