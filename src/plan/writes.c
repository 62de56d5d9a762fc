// Turns held-back writes into steps: they write only what changed, to the original objects, in an
// order that leaves every container as the program would have left it.
#include "src/py/entries.h"
#include "src/py/iterators.h"
#include "src/py/sets.h"

#include "src/plan/build.h"

static status write_step(builder *b, step s, PyObject *object, Py_ssize_t dropped) {
    b->p->dropped += dropped;
    return build_step(b, &b->writing, s, NULL, object);
}

// --- lists ---

static status list_deaths(builder *b, const record *r, Py_ssize_t low, Py_ssize_t high) {
    while (low < high && death_known(r->initial[low]))
        low++;
    if (low == high)
        return ST_OK;
    return deaths_guard(b, r->source, r->outside, DEATH_LIST, NULL, low, high);
}

// items[low..high) of the original become twin[low..high + grown).
static status list_range(builder *b, operand list, const record *r, Py_ssize_t low, Py_ssize_t high,
                         Py_ssize_t grown) {
    PyObject *twin = r->inside;
    TRY(list_deaths(b, r, low, high));
    step s = step_of(STEP_LIST_SLICE, -1, list, OPERAND_NONE);
    s.index = low;
    s.end = high;
    Py_ssize_t count = high + grown - low;
    if (count > 0)
        TRY(rebuild_tuple(b, ((PyListObject *)twin)->ob_item + low, count, &s.b));
    else
        s.kind = STEP_LIST_DELETE;
    if (low == r->count) // at whatever the end is by then
        s.kind = STEP_LIST_APPEND;
    return write_step(b, s, NULL, high - low);
}

static bool list_same(const record *r, PyObject *twin, Py_ssize_t at, Py_ssize_t grown) {
    return twin_unchanged(PyList_GET_ITEM(twin, at + grown), r->initial[at]);
}

// Runs of changed items among those that are at an index that was there before, then the rest.
static status list_runs(builder *b, const record *r, operand list, Py_ssize_t least) {
    for (Py_ssize_t low = 0; low < least; low++) {
        Py_ssize_t high = low;
        while (high < least && !list_same(r, r->inside, high, 0))
            high++;
        if (high > low)
            TRY(list_range(b, list, r, low, high, 0));
        low = high;
    }
    Py_ssize_t grown = PyList_GET_SIZE(r->inside) - r->count;
    return grown ? list_range(b, list, r, least, r->count, grown) : ST_OK;
}

// Items at the front or at the back that are the same, and items that are the same at their index:
// the way that leaves more of them alone is taken.
static status write_list(builder *b, const record *r) {
    Py_ssize_t size = r->count, now = PyList_GET_SIZE(r->inside), least = size < now ? size : now;
    Py_ssize_t low = 0, tail = 0, same = 0;
    operand list;
    while (low < least && list_same(r, r->inside, low, 0))
        low++;
    if (low == size && low == now)
        return ST_OK;
    for (Py_ssize_t i = 0; i < least; i++)
        same += list_same(r, r->inside, i, 0);
    while (tail < least - low && list_same(r, r->inside, size - 1 - tail, now - size))
        tail++;
    TRY(build_load(b, r->source, &list));
    if (same >= low + tail)
        return list_runs(b, r, list, least);
    return list_range(b, list, r, low, size - tail, now - size);
}

// --- dicts, instance dicts, classes ---

typedef struct target {
    const names *names;
    operand owner;
    step_kind set, remove;
    bool named; // keys are attribute names
} target;

static bool has_data_descriptor(PyTypeObject *meta, PyObject *name) {
    PyObject *d = _PyType_Lookup(meta, name);
    return d && Py_TYPE(d)->tp_descr_set;
}

static status target_of(builder *b, const names *n, target *t) {
    bool is_class = n->instance && PyType_Check(n->owner);
    *t = (target){.names = n, .named = n->instance};
    if (is_class)
        t->set = STEP_CLASS_SET, t->remove = STEP_CLASS_DELETE;
    else if (n->instance)
        t->set = STEP_ATTR_SET, t->remove = STEP_ATTR_DELETE;
    else if (PyODict_Check(n->owner))
        t->set = STEP_ORDERED_SET, t->remove = STEP_ORDERED_DELETE;
    else
        t->set = STEP_DICT_SET, t->remove = STEP_DICT_DELETE;
    return build_load(b, n->source, &t->owner);
}

static status cannot_write(builder *b, const target *t, PyObject *key) {
    return world_break_status(b->w, REASON_WRITE_BACK, "%s under a key of type %s",
                              Py_TYPE(t->names->owner)->tp_name, Py_TYPE(key)->tp_name);
}

// The hash that a key is kept under in the twin, or was in the original.
static bool hash_in(PyObject *dict, PyObject *key, Py_hash_t *hash) {
    Py_ssize_t at = 0;
    PyObject *k, *value;
    while (dict && py_dict_next(dict, &at, &k, &value, hash)) {
        if (k == key)
            return true;
    }
    return false;
}

static status key_of(builder *b, const target *t, PyObject *key, step *s) {
    const names *n = t->names;
    switch (rebuild_hashing(b, key)) {
    case HASH_AGAIN:
        break;
    case HASH_NEVER:
        return cannot_write(b, t, key);
    case HASH_KNOWN:
        if (PyODict_Check(n->owner) ||
            (!hash_in(n->twin, key, &s->index) && !hash_in(n->initial, key, &s->index)))
            return cannot_write(b, t, key);
        s->kind = s->kind == STEP_DICT_SET ? STEP_DICT_SET_HASHED : STEP_DICT_DELETE_HASHED;
    }
    return rebuild(b, key, &s->b);
}

// fresh: the name becomes a key. Of a name from outside that is not interned the next call has
// another str, and shows which one is the key. Texts that the program makes have no identity.
static status check_name(builder *b, const target *t, PyObject *key, bool fresh) {
    bool stays = PyUnicode_CheckExact(key);
    operand place;
    if (stays && fresh && !PyUnicode_CHECK_INTERNED(key))
        TRY(constant_stays(b, key, &stays, &place));
    if (!stays)
        return cannot_write(b, t, key);
    if (t->set == STEP_CLASS_SET && has_data_descriptor(Py_TYPE(t->names->owner), key))
        return world_break_status(b->w, REASON_CLASS_WRITE, "%U", key);
    return ST_OK;
}

// `old` is what was under the key: a lazy, world_absent, or NULL if nobody looked.
static status entry_death(builder *b, const target *t, PyObject *key, PyObject *old) {
    const names *n = t->names;
    if (old == world_absent)
        return ST_OK;
    if (old)
        return deaths_guard_lazy(b, old);
    return deaths_guard(b, n->source, n->owner, t->named ? DEATH_ATTR : DEATH_DICT, key, 0, 0);
}

// value NULL: deletes. fresh: the key is not there, or nobody looked.
static status write_entry(builder *b, const target *t, PyObject *key, PyObject *value, bool fresh) {
    step s = step_of(value ? t->set : t->remove, -1, t->owner, OPERAND_NONE);
    if (t->named) {
        TRY(check_name(b, t, key, fresh));
        if (value)
            TRY(rebuild(b, value, &s.b));
        return write_step(b, s, key, 1);
    }
    TRY(key_of(b, t, key, &s));
    if (value)
        TRY(rebuild(b, value, &s.c));
    return write_step(b, s, NULL, 1);
}

static status write_pending(builder *b, const names *n) {
    Py_ssize_t at = 0;
    PyObject *key, *value;
    target t;
    if (!n->pending || PyDict_GET_SIZE(n->pending) == 0)
        return ST_OK;
    TRY(target_of(b, n, &t));
    while (PyDict_Next(n->pending, &at, &key, &value)) {
        PyObject *old = PyDict_GetItemWithError(n->known, key);
        TRY(entry_death(b, &t, key, old));
        if (old && value != world_absent && twin_unchanged(value, old))
            continue;
        if (value == world_absent)
            TRY(write_entry(b, &t, key, NULL, false));
        else
            TRY(write_entry(b, &t, key, value, !old || old == world_absent));
    }
    return ST_OK;
}

// A filled dict: entries in order, then and now, and their places in its table (0: not known).
typedef struct entry_list {
    PyObject **keys, **values;
    Py_ssize_t *places;
    Py_ssize_t count;
} entry_list;

static status list_entries(builder *b, PyObject *dict, entry_list *e) {
    size_t count = (size_t)PyDict_GET_SIZE(dict);
    e->keys = arena_array(&b->w->arena, PyObject *, count);
    e->values = arena_array(&b->w->arena, PyObject *, count);
    e->places = arena_array(&b->w->arena, Py_ssize_t, count);
    if (!e->keys || !e->values || !e->places)
        return ST_ERROR;
    raw_cursor at = {0};
    e->count = 0;
    while ((size_t)e->count < count &&
           raw_dict_next(dict, &at, &e->keys[e->count], &e->values[e->count]))
        e->places[e->count++] = at.at;
    return ST_OK;
}

// A key that was taken out and put in again stands further back in the table: an iterator that has
// passed its old place would meet it once more.
static bool is_in_place(const entry_list *then, Py_ssize_t i, const entry_list *now,
                        Py_ssize_t at) {
    return at < now->count && now->keys[at] == then->keys[i] && now->places[at] <= then->places[i];
}

// How many of the entries now stand at the front in the order they had then: these stay in place.
// All that follow were put in after them, whether new or taken out before. *stays[i] says it for
// then's i.
static Py_ssize_t count_kept(const entry_list *then, const entry_list *now, bool *stays) {
    Py_ssize_t kept = 0;
    for (Py_ssize_t i = 0; i < then->count; i++) {
        stays[i] = is_in_place(then, i, now, kept);
        kept += stays[i];
    }
    return kept;
}

static status write_difference(builder *b, const target *t, const entry_list *then,
                               const entry_list *now) {
    bool *stays = arena_array(&b->w->arena, bool, (size_t)then->count);
    if (!stays)
        return ST_ERROR;
    Py_ssize_t kept = count_kept(then, now, stays);
    for (Py_ssize_t i = 0; i < then->count; i++) {
        if (stays[i])
            continue;
        TRY(entry_death(b, t, then->keys[i], then->values[i]));
        TRY(write_entry(b, t, then->keys[i], NULL, false));
    }
    for (Py_ssize_t i = 0, at = 0; i < then->count; i++) {
        if (!stays[i])
            continue;
        if (!twin_unchanged(now->values[at], then->values[i])) {
            TRY(entry_death(b, t, then->keys[i], then->values[i]));
            TRY(write_entry(b, t, now->keys[at], now->values[at], false));
        }
        at++;
    }
    for (Py_ssize_t i = kept; i < now->count; i++)
        TRY(write_entry(b, t, now->keys[i], now->values[i], true));
    return ST_OK;
}

static bool is_same(const entry_list *then, const entry_list *now) {
    if (then->count != now->count)
        return false;
    for (Py_ssize_t i = 0; i < now->count; i++) {
        if (!is_in_place(then, i, now, i) || !twin_unchanged(now->values[i], then->values[i]))
            return false;
    }
    return true;
}

// Keys of one hash would be compared by code that only the trace could run; checked where some key
// keeps the hash that the trace found.
static status check_collisions(builder *b, const target *t, const entry_list *entries,
                               PyObject *dict, map *hashes, bool *known) {
    for (Py_ssize_t i = 0; i < entries->count; i++) {
        Py_hash_t hash;
        *known |= rebuild_hashing(b, entries->keys[i]) != HASH_AGAIN;
        if (!hash_in(dict, entries->keys[i], &hash))
            return cannot_write(b, t, entries->keys[i]);
        uint64_t *other = map_get(hashes, (uint64_t)hash);
        if (other && *other != map_key(entries->keys[i]) && *known)
            return cannot_write(b, t, entries->keys[i]);
        TRY(map_put(hashes, (uint64_t)hash, map_key(entries->keys[i])));
    }
    return ST_OK;
}

static bool all_again(builder *b, const entry_list *e) {
    for (Py_ssize_t i = 0; i < e->count; i++) {
        if (rebuild_hashing(b, e->keys[i]) != HASH_AGAIN)
            return false;
    }
    return true;
}

static status check_keys(builder *b, const target *t, const entry_list *then,
                         const entry_list *now) {
    if (t->named || (all_again(b, then) && all_again(b, now)))
        return ST_OK;
    map hashes = {0};
    bool known = true;
    status done = check_collisions(b, t, then, t->names->initial, &hashes, &known);
    if (done == ST_OK)
        done = check_collisions(b, t, now, t->names->twin, &hashes, &known);
    map_clear(&hashes);
    return done;
}

// Whether keys of an OrderedDict came, went or moved, though they are what they were: it was filled
// key by key.
static bool was_moved(const names *n, const entry_list *then, const entry_list *now) {
    if (!PyODict_Check(n->twin) || then->count == 0 || then->count != now->count ||
        py_ordered_state(n->twin) == (size_t)then->count)
        return false;
    return memcmp(then->keys, now->keys, (size_t)now->count * sizeof(PyObject *)) == 0;
}

// The last key goes and comes, so that iterators notice.
static status touch_ordered(builder *b, const target *t, const entry_list *now) {
    Py_ssize_t last = now->count - 1;
    TRY(write_entry(b, t, now->keys[last], NULL, false));
    return write_entry(b, t, now->keys[last], now->values[last], true);
}

static status write_filled(builder *b, const names *n) {
    entry_list then, now;
    target t;
    TRY(list_entries(b, n->initial, &then));
    TRY(list_entries(b, n->twin, &now));
    bool moved = was_moved(n, &then, &now);
    if (is_same(&then, &now) && !moved)
        return ST_OK;
    TRY(target_of(b, n, &t));
    TRY(check_keys(b, &t, &then, &now));
    TRY(write_difference(b, &t, &then, &now));
    return moved ? touch_ordered(b, &t, &now) : ST_OK;
}

// --- sets ---

static bool layout_check(PyObject *set, void *layout) {
    return set && PyAnySet_Check(set) && py_set_has_layout(set, layout);
}

static PyObject *layout_text(const char *source, void *layout) {
    (void)layout;
    return PyUnicode_FromFormat("the hash table of %s is laid out alike", source);
}

static void layout_drop(void *layout) {
    Py_DECREF((PyObject *)layout);
}

static const guard_custom layout_guard = {
    .name = "set_layout", .check = layout_check, .text = layout_text, .drop = layout_drop};

// A set then and now.
typedef struct set_change {
    const record *record;
    PyObject *layout_then, *layout_now; // strong
    PyObject *now;                      // strong: list of its elements in order
    map before, after;                  // elements then and now
} set_change;

static PyObject *set_items(PyObject *set) {
    PyObject *list = PyList_New(0), *item;
    Py_ssize_t at = 0;
    while (list && raw_set_next(set, &at, &item)) {
        if (PyList_Append(list, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static status change_of(const record *r, set_change *c) {
    c->record = r;
    c->layout_then = Py_NewRef(r->layout);
    c->layout_now = py_set_layout(r->inside);
    c->now = set_items(r->inside);
    if (!c->layout_now || !c->now)
        return ST_ERROR;
    for (Py_ssize_t i = 0; i < r->count; i++)
        TRY(map_put(&c->before, map_key(r->initial[i]), 1));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(c->now); i++)
        TRY(map_put(&c->after, map_key(PyList_GET_ITEM(c->now, i)), 1));
    return ST_OK;
}

// One that was empty and is empty again, and had addresses of inside objects in it (what is being
// visited), has its gaps at another place in each call.
static bool set_unchanged(const builder *b, const set_change *c) {
    const record *r = c->record;
    if (b->w->facts.addressed && r->count == 0 && PyList_GET_SIZE(c->now) == 0)
        return true;
    if (!py_set_has_layout(r->inside, c->layout_then))
        return false;
    for (Py_ssize_t i = 0; i < r->count; i++) {
        if (PyList_GET_ITEM(c->now, i) != r->initial[i])
            return false;
    }
    return true;
}

// Calls `each` for every element that went, then for every one that came.
typedef status (*set_visit)(builder *b, void *data, bool came, PyObject *key);

static status set_differences(builder *b, const set_change *c, set_visit each, void *data) {
    const record *r = c->record;
    for (Py_ssize_t i = 0; i < r->count; i++) {
        if (!map_get(&c->after, map_key(r->initial[i])))
            TRY(each(b, data, false, r->initial[i]));
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(c->now); i++) {
        if (!map_get(&c->before, map_key(PyList_GET_ITEM(c->now, i))))
            TRY(each(b, data, true, PyList_GET_ITEM(c->now, i)));
    }
    return ST_OK;
}

// What is needed to know of an element: whether it hashes alike in every call, and without code.
typedef struct set_facts {
    bool lasting, plain;
} set_facts;

static status look_at(builder *b, void *data, bool came, PyObject *key) {
    set_facts *f = data;
    hashing how = rebuild_hashing(b, key);
    f->plain &= how == HASH_AGAIN;
    if (how == HASH_NEVER)
        return world_break_status(b->w, REASON_WRITE_BACK, "set with a %s", Py_TYPE(key)->tp_name);
    return came ? rebuild_lasting(b, key, &f->lasting) : ST_OK;
}

static status try_on(builder *b, void *set, bool came, PyObject *key) {
    (void)b;
    int done = came ? PySet_Add(set, key) : PySet_Discard(set, key);
    return done < 0 ? ST_ERROR : ST_OK;
}

static status emit(builder *b, void *set, bool came, PyObject *key) {
    step s = step_of(came ? STEP_SET_ADD : STEP_SET_DISCARD, -1, *(operand *)set, OPERAND_NONE);
    TRY(rebuild(b, key, &s.b));
    return write_step(b, s, NULL, 1);
}

// A layout knows elements by their hashes only: hash(-1) == hash(-2).
static bool has_in_order(PyObject *set, PyObject *items) {
    Py_ssize_t at = 0, i = 0;
    for (PyObject *item; raw_set_next(set, &at, &item); i++)
        if (i >= PyList_GET_SIZE(items) || item != PyList_GET_ITEM(items, i))
            return false;
    return i == PyList_GET_SIZE(items);
}

// Whether taking out and putting in one by one leaves the original as the program would have.
static status comes_out_alike(builder *b, const set_change *c, bool *alike) {
    PyObject *copy = PySet_New(NULL);
    status done = copy ? ST_OK : ST_ERROR;
    if (copy && py_set_lay_out(copy, c->layout_then, c->record->initial) < 0)
        done = ST_ERROR;
    if (done == ST_OK)
        done = set_differences(b, c, try_on, copy);
    *alike = done == ST_OK && py_set_has_layout(copy, c->layout_now) && has_in_order(copy, c->now);
    Py_XDECREF(copy);
    return done;
}

// The whole table at once.
static status write_table(builder *b, const set_change *c, operand set) {
    operands items = {0};
    status done =
        rebuild_each(b, ((PyListObject *)c->now)->ob_item, PyList_GET_SIZE(c->now), &items);
    b->p->dropped += c->record->count;
    if (done == ST_OK)
        done = build_step(b, &b->writing, step_of(STEP_SET_LAYOUT, -1, set, OPERAND_NONE), &items,
                          c->layout_now);
    vec_free(&items);
    return done;
}

static status write_change(builder *b, const set_change *c) {
    set_facts facts = {.lasting = true, .plain = true};
    bool alike = false;
    operand set;
    if (set_unchanged(b, c))
        return ST_OK;
    TRY(world_pin_hashed(b->w));
    TRY(set_differences(b, c, look_at, &facts));
    TRY(guard_add_custom(b->w->guards, c->record->source, &layout_guard,
                         Py_NewRef(c->layout_then)));
    TRY(deaths_guard(b, c->record->source, c->record->outside, DEATH_SET, NULL, 0, 0));
    TRY(build_load(b, c->record->source, &set));
    if (facts.lasting && facts.plain)
        TRY(comes_out_alike(b, c, &alike));
    if (facts.lasting && !alike)
        return write_table(b, c, set);
    if (!facts.plain)
        return world_break_status(b->w, REASON_WRITE_BACK, "set of objects hashed by code");
    return set_differences(b, c, emit, &set);
}

static status write_set(builder *b, const record *r) {
    if (PyFrozenSet_Check(r->outside))
        return ST_OK;
    set_change c = {0};
    status done = change_of(r, &c);
    if (done == ST_OK)
        done = write_change(b, &c);
    Py_XDECREF(c.layout_then);
    Py_XDECREF(c.layout_now);
    Py_XDECREF(c.now);
    map_clear(&c.before);
    map_clear(&c.after);
    return done;
}

// --- deques ---

static status deque_entry(builder *b, operand deque, step_kind kind, Py_ssize_t index,
                          PyObject *value) {
    step s = step_of(kind, -1, deque, OPERAND_NONE);
    s.index = index;
    if (value)
        TRY(rebuild(b, value, &s.b));
    return write_step(b, s, NULL, 1);
}

static status deque_repeat(builder *b, operand deque, step_kind kind, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++)
        TRY(deque_entry(b, deque, kind, 0, NULL));
    return ST_OK;
}

static bool deque_same(const record *r, PyObject *const *now, Py_ssize_t at, Py_ssize_t then) {
    return twin_unchanged(now[at], r->initial[then]);
}

static status deque_items(builder *b, const record *r, operand deque, PyObject *const *now) {
    for (Py_ssize_t i = 0; i < r->count; i++) {
        if (!deque_same(r, now, i, i))
            TRY(deque_entry(b, deque, STEP_DEQUE_SET, i, now[i]));
    }
    return ST_OK;
}

// The longest run of items that stand together as they did: it stays, the rest goes and comes at
// the ends.
typedef struct run {
    Py_ssize_t then, now, length;
} run;

static run deque_run(const record *r, PyObject *const *now, Py_ssize_t count) {
    run best = {0};
    for (Py_ssize_t shift = -r->count; shift <= count; shift++) {
        for (Py_ssize_t i = shift < 0 ? -shift : 0; i < r->count && i + shift < count; i++) {
            Py_ssize_t length = 0;
            while (i + length < r->count && i + shift + length < count &&
                   deque_same(r, now, i + shift + length, i + length))
                length++;
            if (length > best.length)
                best = (run){i, i + shift, length};
            i += length;
        }
    }
    return best;
}

static status deque_ends(builder *b, const record *r, operand deque, PyObject *const *now,
                         Py_ssize_t count) {
    enum { LONG = 256 }; // finding the run is quadratic
    run kept = r->count > LONG || count > LONG ? (run){0} : deque_run(r, now, count);
    if (kept.length == 0) {
        b->p->dropped += r->count;
        TRY(deque_entry(b, deque, STEP_DEQUE_CLEAR, 0, NULL));
    } else {
        TRY(deque_repeat(b, deque, STEP_DEQUE_POP_LEFT, kept.then));
        TRY(deque_repeat(b, deque, STEP_DEQUE_POP, r->count - kept.then - kept.length));
    }
    for (Py_ssize_t i = kept.now; i-- > 0;)
        TRY(deque_entry(b, deque, STEP_DEQUE_APPEND_LEFT, 0, now[i]));
    for (Py_ssize_t i = kept.now + kept.length; i < count; i++)
        TRY(deque_entry(b, deque, STEP_DEQUE_APPEND, 0, now[i]));
    return ST_OK;
}

// The last item goes and comes: it is as it was, and another one to its iterators.
static status deque_touch(builder *b, operand deque, PyObject *last) {
    TRY(deque_entry(b, deque, STEP_DEQUE_POP, 0, NULL));
    return deque_entry(b, deque, STEP_DEQUE_APPEND, 0, last);
}

static bool deque_unchanged(const record *r, PyObject *const *now, Py_ssize_t count) {
    for (Py_ssize_t i = 0; count == r->count && i < count; i++) {
        if (!deque_same(r, now, i, i))
            return false;
    }
    return count == r->count;
}

static status write_deque(builder *b, const record *r) {
    Py_ssize_t count = Py_SIZE(r->inside);
    PyObject **now = arena_array(&b->w->arena, PyObject *, (size_t)count);
    operand deque;
    if (!now)
        return ST_ERROR;
    for (Py_ssize_t i = 0; i < count; i++)
        now[i] = raw_deque_item(r->inside, i);
    // It was filled item by item. Where items only moved, iterators must notice all the same.
    bool moved = py_deque_state(r->inside) != (size_t)r->count;
    bool same = deque_unchanged(r, now, count);
    if (same && (!moved || count == 0))
        return ST_OK;
    if (!same)
        TRY(deaths_guard(b, r->source, r->outside, DEATH_DEQUE, NULL, 0, 0));
    TRY(build_load(b, r->source, &deque));
    if (same)
        return deque_touch(b, deque, now[count - 1]);
    return moved ? deque_ends(b, r, deque, now, count) : deque_items(b, r, deque, now);
}

// --- bytearrays ---

static status write_bytearray(builder *b, const record *r) {
    const char *then = PyByteArray_AS_STRING(r->outside), *now = PyByteArray_AS_STRING(r->inside);
    Py_ssize_t size = PyByteArray_GET_SIZE(r->outside), count = PyByteArray_GET_SIZE(r->inside);
    Py_ssize_t least = size < count ? size : count, low = 0, tail = 0;
    while (low < least && then[low] == now[low])
        low++;
    if (low == size && low == count)
        return ST_OK;
    while (tail < least - low && then[size - 1 - tail] == now[count - 1 - tail])
        tail++;
    step s = step_of(STEP_BYTES_SLICE, -1, OPERAND_NONE, OPERAND_NONE);
    s.index = low;
    s.end = size - tail;
    TRY(build_load(b, r->source, &s.a));
    PyObject *middle = PyBytes_FromStringAndSize(now + low, count - tail - low);
    status done = middle ? write_step(b, s, middle, 0) : ST_ERROR;
    Py_XDECREF(middle);
    return done;
}

// --- places ---

// Whether a place holds what it did.
static bool place_same(const place *p) {
    if (!p->pending)
        return true;
    if (p->pending == world_absent)
        return p->looked && p->empty;
    return p->looked && !p->empty && twin_unchanged(p->pending, p->initial);
}

static status write_place(builder *b, const record *r, const place *p, step_kind set,
                          step_kind remove, Py_ssize_t index, PyObject *name) {
    if (place_same(p))
        return ST_OK;
    if (!death_known(p->initial) && r->kind != RECORD_CONTEXT_VAR)
        TRY(deaths_guard(b, r->source, r->outside, set == STEP_CELL_SET ? DEATH_CELL : DEATH_SLOT,
                         NULL, index, 0));
    bool absent = p->pending == world_absent;
    step s = step_of(absent ? remove : set, -1, OPERAND_NONE, OPERAND_NONE);
    s.index = index;
    TRY(build_load(b, r->source, &s.a));
    if (!absent)
        TRY(rebuild(b, p->pending, &s.b));
    return write_step(b, s, name, 1);
}

static status write_slot(builder *b, const record *r, const slot_place *slot) {
    PyMemberDescrObject *d = (PyMemberDescrObject *)slot->descriptor;
    if (!place_same(&slot->place) && d->d_member->type != T_OBJECT_EX)
        return world_break_status(b->w, REASON_WRITE_BACK, "%s.%U", Py_TYPE(r->outside)->tp_name,
                                  PyDescr_NAME(d));
    return write_place(b, r, &slot->place, STEP_SLOT_SET, STEP_SLOT_DELETE, d->d_member->offset,
                       PyDescr_NAME(d));
}

static status write_context(builder *b, const record *r) {
    if (!place_same(&r->content) && r->content.pending == world_absent)
        return world_break_status(b->w, REASON_WRITE_BACK, "ContextVar that is unset");
    return write_place(b, r, &r->content, STEP_CONTEXT_SET, STEP_CONTEXT_SET, 0, NULL);
}

// The gradient that is replaced may die of it. A tensor that is no leaf warns when its gradient
// is read, so there is none to look at.
static status gradient_dies(builder *b, const record *r) {
    PyObject *name = PyUnicode_InternFromString("grad"), *kept = NULL;
    source *s = name ? guard_source(b->w->guards, SOURCE_TENSOR_GRAD, r->source, name, 0) : NULL;
    PyObject *old = s ? source_read(SOURCE_TENSOR_GRAD, r->outside, name, 0, &kept) : NULL;
    status done = ST_ERROR;
    if (old)
        done = deaths_guard(b, s, old, DEATH_ITSELF, NULL, 0, 0);
    else if (s)
        done = world_break_status(b->w, REASON_WRITE_BACK, "gradient of a tensor that is no leaf");
    Py_XDECREF(name);
    Py_XDECREF(kept);
    return done;
}

static status write_gradient(builder *b, const record *r) {
    if (!r->content.pending)
        return ST_OK;
    TRY(gradient_dies(b, r));
    step set = step_of(STEP_GRAD_SET, -1, OPERAND_NONE, OPERAND_NONE);
    TRY(build_load(b, r->source, &set.a));
    TRY(rebuild(b, r->content.pending, &set.b));
    return write_step(b, set, NULL, 1);
}

// --- calls ---

static status write_call(builder *b, const held_call *c) {
    step_kind kind = c->made ? STEP_CALL_MAKES : STEP_CALL_HELD;
    step s = step_of(kind, -1, OPERAND_NONE, OPERAND_NONE);
    TRY(rebuild(b, c->self, &s.a));
    if (c->argument)
        TRY(rebuild(b, c->argument, &s.b));
    if (c->made)
        TRY(rebuild(b, c->made, &s.c));
    return write_step(b, s, c->function, 0);
}

static status write_later(builder *b, const held_call *c) {
    step s = step_of(STEP_CALL_LATER, -1, OPERAND_NONE, OPERAND_NONE);
    TRY(rebuild(b, c->function, &s.a));
    TRY(rebuild(b, c->self, &s.b));
    return build_step(b, &b->later, s, NULL, c->names);
}

// --- caches ---

static status write_hit(builder *b, const cache_hit *hit) {
    step s = step_of(STEP_CACHE_HIT, -1, OPERAND_NONE, OPERAND_NONE);
    TRY(build_load(b, hit->cache, &s.a));
    if (hit->link)
        TRY(build_load(b, hit->link, &s.b));
    return write_step(b, s, NULL, 0);
}

// --- the whole ---

// Those that can fail for other reasons than memory, or allocate much, come before all others.
static status write_first(builder *b, const record *r) {
    if (r->kind == RECORD_BYTEARRAY && r->inside)
        return write_bytearray(b, r);
    if (r->kind == RECORD_TENSOR)
        return write_gradient(b, r);
    return r->kind == RECORD_CONTEXT_VAR ? write_context(b, r) : ST_OK;
}

// --- iterators ---

// Those that have ended let go what they went through.
static status field_deaths(builder *b, const record *r, const py_iterator_form *form) {
    for (int i = 0; i < r->count; i++) {
        PyObject *now = py_iterator_field(form, r->inside, i);
        PyObject *old = py_iterator_field(form, r->outside, i);
        source *s = r->initial[i] && now != r->initial[i] && old
                        ? guard_source(b->w->guards, SOURCE_ITERATOR_FIELD, r->source, NULL, i)
                        : NULL;
        if (s)
            TRY(deaths_guard(b, s, old, DEATH_ITSELF, NULL, 0, 0));
    }
    return PyErr_Occurred() ? ST_ERROR : ST_OK;
}

static status write_iterator(builder *b, const record *r) {
    const py_iterator_form *form = py_iterator_form_of(r->inside);
    operands fields = {0};
    step s = step_of(STEP_ITERATOR_SET, -1, OPERAND_NONE, OPERAND_NONE);
    if (!twin_written(r))
        return ST_OK;
    PyObject *numbers = py_iterator_numbers(form, r->inside);
    status done = numbers ? field_deaths(b, r, form) : ST_ERROR;
    for (int i = 0; done == ST_OK && i < r->count; i++)
        done = rebuild_field(b, py_iterator_field(form, r->inside, i), &fields);
    if (done == ST_OK)
        done = build_load(b, r->source, &s.a);
    b->p->dropped += r->count;
    if (done == ST_OK)
        done = build_step(b, &b->writing, s, &fields, numbers);
    vec_free(&fields);
    Py_XDECREF(numbers);
    return done;
}

// --- the whole of a record ---

static status write_record(builder *b, const record *r) {
    for (uint32_t i = 0; i < r->slots.count; i++)
        TRY(write_slot(b, r, &r->slots.items[i]));
    if (r->kind == RECORD_CELL)
        return write_place(b, r, &r->content, STEP_CELL_SET, STEP_CELL_DELETE, 0, NULL);
    if (!r->inside || r->inside == r->outside)
        return ST_OK;
    switch (r->kind) {
    case RECORD_LIST:
        return write_list(b, r);
    case RECORD_SET:
        return write_set(b, r);
    case RECORD_DEQUE:
        return write_deque(b, r);
    case RECORD_ITERATOR:
        return write_iterator(b, r);
    default:
        return ST_OK;
    }
}

status writes_build(builder *b) {
    world *w = b->w;
    for (uint32_t i = 0; i < w->held.calls.count; i++) {
        const held_call *c = &w->held.calls.items[i];
        TRY(c->later ? write_later(b, c) : write_call(b, c));
    }
    for (uint32_t i = 0; i < w->in.all.count; i++)
        TRY(write_first(b, w->in.all.items[i]));
    for (uint32_t i = 0; i < w->in.names.count; i++) {
        const names *n = w->in.names.items[i];
        TRY(n->twin ? write_filled(b, n) : write_pending(b, n));
    }
    for (uint32_t i = 0; i < w->in.all.count; i++)
        TRY(write_record(b, w->in.all.items[i]));
    for (uint32_t i = 0; i < w->in.hits.count; i++)
        TRY(write_hit(b, &w->in.hits.items[i]));
    return rebuild_rest(b);
}
