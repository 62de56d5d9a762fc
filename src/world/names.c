// Dicts read by key. Each outside dict has one `names`, whether the program meets it as an object,
// as the namespace of a module or function, or as the instance dict of an object. Keys are guarded
// one by one, and writes are held back. Code that needs the whole dict gets a real dict, which is
// filled once.
#include "src/guard/value.h"

#include "src/world/inner.h"
#include "src/world/world.h"

// --- making ---

static names *names_new(world *w, PyObject *owner, source *s, bool instance) {
    names *n = arena_new(&w->arena, names);
    PyObject *known = n ? world_keep(w, PyDict_New()) : NULL;
    if (!known || !world_keep(w, Py_NewRef(owner)))
        return NULL;
    *n = (names){.owner = owner, .source = s, .instance = instance, .known = known};
    return vec_push(&w->in.names, n) == ST_OK ? n : NULL;
}

// The dict as an object leads to these names, too.
static status names_join(world *w, names *n, PyObject *dict) {
    if (!world_keep(w, Py_NewRef(dict)))
        return ST_ERROR;
    return map_put(&w->in.dicts, map_key(dict), map_key(n));
}

names *names_of_dict(world *w, record *r) {
    if (!r->names) {
        names *n = names_new(w, r->outside, r->source, false);
        if (!n || names_join(w, n, r->outside) != ST_OK)
            return NULL;
        r->names = n;
    }
    return r->names;
}

static source *source_of_instance_dict(world *w, source *owner) {
    return guard_source(w->guards, SOURCE_DICT, owner, NULL, 0);
}

// The object's dict was met before, elsewhere: that it is the same one is guarded.
static names *names_shared(world *w, record *r, PyObject *dict) {
    record *met = record_of(w, dict);
    uint64_t *joined = met ? NULL : map_get(&w->in.dicts, map_key(dict));
    names *n = met ? names_of_dict(w, met) : joined ? (names *)(uintptr_t)*joined : NULL;
    if (!n)
        return NULL;
    source *here = source_of_instance_dict(w, r->source);
    source *there = met           ? met->source
                    : n->instance ? source_of_instance_dict(w, n->source)
                                  : n->source;
    if (!here || !there)
        return NULL;
    if (here != there && guard_add(w->guards, GUARD_SAME, here, there, NULL, 0) != ST_OK)
        return NULL;
    return n;
}

static names *names_of_instance(world *w, record *r) {
    PyObject *dict = raw_dict(r->outside);
    names *n = dict ? names_shared(w, r, dict) : NULL;
    if (n || PyErr_Occurred())
        return n;
    n = names_new(w, r->outside, r->source, true);
    if (!n || (dict && names_join(w, n, dict) != ST_OK))
        return NULL;
    return n;
}

// The dict of a threading.local in this thread: an entry finds that of the thread which calls it.
static names *names_of_thread(world *w, record *r) {
    source *s = guard_source(w->guards, SOURCE_THREAD_DICT, r->source, NULL, 0);
    PyObject *dict = s ? raw_thread_dict(r->outside) : NULL;
    record *own = dict ? record_of(w, dict) : NULL;
    if (!dict) {
        if (!PyErr_Occurred())
            world_break(w, REASON_ATTRIBUTE, "%s, new in this thread",
                        Py_TYPE(r->outside)->tp_name);
        return NULL;
    }
    if (own ? door_again(w, own, s, false) != ST_OK
            : !(own = record_new(w, RECORD_DICT, s, dict, NULL)))
        return NULL;
    return names_of_dict(w, own);
}

names *names_of_object(world *w, record *r) {
    names **place = r->kind == RECORD_DICT ? &r->attributes : &r->names;
    if (!*place && raw_is_thread_local(Py_TYPE(r->outside)))
        *place = names_of_thread(w, r);
    else if (!*place && raw_has_dict(Py_TYPE(r->outside)))
        *place = names_of_instance(w, r);
    return *place;
}

names *names_of_globals(world *w, source *s, PyObject *globals) {
    bool is_dict = source_what(s->kind) == GIVES_DICT;
    source *at = is_dict ? s : guard_source(w->guards, SOURCE_GLOBALS, s, NULL, 0);
    if (!at)
        return NULL;
    record *r = record_of(w, globals);
    if (!r) {
        if (!PyDict_CheckExact(globals) && door_guard_type(w, at, globals) != ST_OK)
            return NULL;
        r = record_new(w, RECORD_DICT, at, globals, NULL);
        if (r)
            r->pinned = door_pinned(w, at);
    } else if (door_again(w, r, at, door_pinned(w, at)) != ST_OK) {
        return NULL;
    }
    return r ? names_of_dict(w, r) : NULL;
}

// --- reading by key ---

static PyObject *absent_or(PyObject *found) {
    return found == world_absent ? NULL : Py_XNewRef(found);
}

static status known_put(names *n, PyObject *key, PyObject *value) {
    return PyDict_SetItem(n->known, key, value) < 0 ? ST_ERROR : ST_OK;
}

// A key compared by identity is only found again if it is the same object: guarded. One that was
// made inside lies in no outside dict.
static status pin_key(world *w, PyObject *key, bool *made_inside) {
    if (value_immutable(key))
        return ST_OK;
    if (PyTuple_CheckExact(key)) {
        TRY(door_keep(w, key));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
            TRY(pin_key(w, PyTuple_GET_ITEM(key, i), made_inside));
        return ST_OK;
    }
    record *r = record_of(w, key);
    if (r)
        return record_identity(w, r);
    *made_inside |= !value_could_be_outside(w, key);
    return ST_OK;
}

static source *source_of_key(world *w, names *n, PyObject *key) {
    return guard_source(w->guards, n->instance ? SOURCE_ATTR : SOURCE_ITEM, n->source, key, 0);
}

// The lazy of an entry; new reference. That the key is there is guarded by loading it.
static PyObject *load_entry(world *w, names *n, PyObject *key, PyObject *value) {
    source *s = source_of_key(w, n, key);
    int reg;
    if (!s || guard_need(w->guards, s, &reg) != ST_OK)
        return NULL;
    return door_load(w, s, value);
}

static PyObject *read_present(world *w, names *n, PyObject *key, PyObject *value) {
    PyObject *loaded = load_entry(w, n, key, value);
    if (loaded && known_put(n, key, loaded) != ST_OK)
        Py_CLEAR(loaded);
    return loaded;
}

static PyObject *read_absent(world *w, names *n, PyObject *key) {
    guard_kind kind = n->instance ? GUARD_NO_ATTR : GUARD_ABSENT;
    if (guard_add(w->guards, kind, n->source, NULL, key, 0) == ST_OK)
        known_put(n, key, world_absent);
    return NULL;
}

static PyObject *read_twin(names *n, PyObject *key) {
    return Py_XNewRef(PyDict_GetItemWithError(n->twin, key));
}

static PyObject *read_outside(world *w, names *n, PyObject *key) {
    PyObject *value;
    bool made_inside = false;
    if (pin_key(w, key, &made_inside) != ST_OK || made_inside)
        return NULL;
    switch (n->instance ? raw_attr_get(n->owner, key, &value)
                        : raw_dict_get(n->owner, key, &value)) {
    case RAW_FOUND:
        return read_present(w, n, key, value);
    case RAW_ABSENT:
        return read_absent(w, n, key);
    default:
        return names_fill(w, n) ? read_twin(n, key) : NULL;
    }
}

// Whether a key can be looked for outside without running code, and means the same in each call.
// What has a twin is another object there, and a NaN is found by identity.
static bool key_is_simple(const world *w, PyObject *key) {
    if (!raw_key_simple(key) || PyMethod_Check(key))
        return false;
    if (value_immutable(key))
        return !value_has_nan(key);
    for (Py_ssize_t i = 0; PyTuple_CheckExact(key) && i < PyTuple_GET_SIZE(key); i++)
        if (!key_is_simple(w, PyTuple_GET_ITEM(key, i)))
            return false;
    record *r = record_of(w, key);
    if (r)
        return r->outside == key;
    return PyCFunction_Check(key) ? !raw_method_self(key) : !PyAnySet_Check(key);
}

static bool is_simple(const world *w, const names *n, PyObject *key) {
    return PyUnicode_CheckExact(key) || (!n->instance && key_is_simple(w, key));
}

bool names_have_tensor(const world *w, const record *dict, PyObject *key) {
    const record *tensor = is_standin(key) ? record_of(w, key) : NULL;
    raw_hint at = -1;
    PyObject *value;
    return tensor &&
           raw_dict_get_identical(dict->outside, tensor->outside, &at, &value) == RAW_FOUND;
}

// Tensors are hashed by their addresses, and equal themselves at once: a dict has one under itself.
static PyObject *read_by_tensor(world *w, names *n, record *tensor) {
    raw_hint at = -1;
    int reg;
    PyObject *value;
    if (raw_dict_get_identical(n->owner, tensor->outside, &at, &value) != RAW_FOUND)
        return names_fill(w, n) ? read_twin(n, tensor->inside) : NULL;
    source *s =
        guard_source(w->guards, SOURCE_TENSOR_ITEM, n->source, tensor->outside, raw_hint_get(&at));
    if (!s || record_identity(w, tensor) != ST_OK || guard_need(w->guards, s, &reg) != ST_OK)
        return NULL;
    return door_load(w, s, value);
}

// Inside, a stand-in is in a tensor's place, and hashed by another address.
static bool is_tensor_key(PyObject *key) {
    return !PyTuple_Check(key) && world_has_tensor(key);
}

// Whether a key is a tensor; or, with `deep`, a tuple that has a tensor in it.
static bool has_tensor_key(PyObject *dict, bool deep) {
    raw_cursor at = {0};
    PyObject *key, *value;
    while (raw_dict_next(dict, &at, &key, &value))
        if (deep ? PyTuple_Check(key) && world_has_tensor(key) : is_tensor_key(key))
            return true;
    return false;
}

enum { FEW_KEYS = 64 };

// What a frame that goes on holds was made in this call, most likely, and so was the key: which key
// it is the same as holds for the next call, too, but not that it is this very one.
static bool is_better_whole(const world *w, const names *n, PyObject *key) {
    const record *r = record_of(w, key);
    return n->source->kind == SOURCE_LOCAL && w->roots.start && w->roots.start->unit > 0 &&
           !n->instance && r && !r->identity && !r->pinned && key_is_any(key) &&
           PyDict_GET_SIZE(n->owner) <= FEW_KEYS && !has_tensor_key(n->owner, false);
}

static PyObject *get(world *w, names *n, PyObject *key) {
    if (n->twin)
        return read_twin(n, key);
    record *tensor = !n->instance && is_standin(key) ? record_of(w, key) : NULL;
    if (tensor)
        return read_by_tensor(w, n, tensor);
    if (!is_simple(w, n, key) || is_better_whole(w, n, key))
        return names_fill(w, n) ? read_twin(n, key) : NULL;
    PyObject *found = n->pending ? PyDict_GetItemWithError(n->pending, key) : NULL;
    if (!found)
        found = PyDict_GetItemWithError(n->known, key);
    return found ? absent_or(found) : read_outside(w, n, key);
}

static PyObject *get_or_ask(world *w, names *n, PyObject *key) {
    PyObject *answer;
    handles_read(w, n, key);
    if (handles_ask(w, n, key, &answer) != ST_OK)
        return NULL;
    return answer ? absent_or(answer) : get(w, n, key);
}

PyObject *names_get(world *w, names *n, PyObject *key) {
    key = door_open(w, key);
    PyObject *value = key ? get_or_ask(w, n, key) : NULL;
    if (n->written)
        w->facts.met = true;
    else
        world_meet(w, value);
    return value;
}

// --- writing ---

static status write_twin(names *n, PyObject *key, PyObject *value) {
    return twin_dict_set(n->twin, key, value) < 0 ? ST_ERROR : ST_OK;
}

static status hold_back(names *n, PyObject *key, PyObject *value) {
    return PyDict_SetItem(n->pending, key, value) < 0 ? ST_ERROR : ST_OK;
}

// A key that was not there before and is written, then deleted, has left no trace.
static status hold_back_delete(names *n, PyObject *key) {
    if (PyDict_GetItemWithError(n->known, key) != world_absent)
        return hold_back(n, key, world_absent);
    return PyDict_DelItem(n->pending, key) < 0 ? ST_ERROR : ST_OK;
}

static status fill_status(world *w, names *n) {
    return names_fill(w, n) ? ST_OK : w->stop.broken ? ST_BREAK : ST_ERROR;
}

status names_set(world *w, names *n, PyObject *key, PyObject *value) {
    world_touch(w);
    w->held.writes++;
    n->written = true;
    key = door_open(w, key);
    if (!key)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    if (n->instance && PyType_Check(n->owner)) {
        if (n->twin) // lookups read what is pending, and a whole namespace has nothing pending
            return world_break_status(w, REASON_CLASS_WRITE, "a namespace that was read whole");
        w->facts.class_written = true;
    }
    if (!n->twin && (!is_simple(w, n, key) || is_better_whole(w, n, key)))
        TRY(fill_status(w, n));
    if (!n->pending && !n->twin) {
        n->pending = world_keep(w, PyDict_New());
        if (!n->pending)
            return ST_ERROR;
    }
    // Deleted and set again, a key moves to the end: only the twin knows about order.
    if (!n->twin && value && PyDict_GetItemWithError(n->pending, key) == world_absent)
        TRY(fill_status(w, n));
    if (n->twin)
        return write_twin(n, key, value);
    bool made_inside = false; // or what the write displaces is not known
    TRY(pin_key(w, key, &made_inside));
    return value ? hold_back(n, key, value) : hold_back_delete(n, key);
}

// --- the whole ---

static status know_methods(world *w, PyObject *key) {
    static const char *const methods[] = {"__hash__", "__eq__"};
    if (!raw_is_python_class(Py_TYPE(key)))
        return ST_OK;
    for (int i = 0; i < 2; i++) {
        PyObject *name = PyUnicode_InternFromString(methods[i]);
        PyObject *found = name ? type_lookup(w, Py_TYPE(key), name, NULL) : NULL;
        Py_XDECREF(name);
        if (!found)
            return w->stop.broken ? ST_BREAK : PyErr_Occurred() ? ST_ERROR : ST_OK;
    }
    return ST_OK;
}

// What stands for a key of a dict or an element of a set inside: immutables (guarded already) are
// themselves, others pass the door, and Python code behind their hash and comparison is known when
// native code runs it. Borrowed.
static PyObject *open_key(world *w, source *s, PyObject *key) {
    if (value_immutable(key))
        return value_note_key(w, s, key) == ST_OK ? key : NULL;
    PyObject *inside = door_bring(w, s, key);
    return inside && know_methods(w, inside) == ST_OK ? inside : NULL;
}

bool key_hashed_otherwise(PyObject *key) {
    if (PyTuple_CheckExact(key)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
            if (key_hashed_otherwise(PyTuple_GET_ITEM(key, i)))
                return true;
        return false;
    }
    record_kind kind;
    PyObject *self = raw_method_self(key);
    return Py_IS_TYPE(key, type_partial) ||
           (self && (world_has_tensor(self) || twin_wanted(self, &kind)));
}

bool key_is_any(PyObject *key) {
    return is_tensor_key(key) || (raw_key_by_identity(key) && !value_immutable(key) &&
                                  !PyType_Check(key) && !key_hashed_otherwise(key));
}

PyObject *open_any_key(world *w, source *s, PyObject *key) {
    PyObject *inside = open_key(w, s, key);
    record *r = inside ? record_of(w, inside) : NULL;
    if (r && key_is_any(key))
        record_hashed(w, r);
    return inside;
}

static PyObject *open_key_at(world *w, names *n, PyObject *key, Py_ssize_t index) {
    if (value_key_is_fixed(key))
        return key;
    source *dict = n->instance ? source_of_instance_dict(w, n->source) : n->source;
    source *s = dict ? guard_source(w->guards, SOURCE_DICT_KEY, dict, NULL, index) : NULL;
    return s ? open_any_key(w, s, key) : NULL;
}

// Names of an instance are guarded by themselves.
static bool is_any(const names *n, PyObject *key) {
    return n->handles || (!n->instance && key_is_any(key));
}

// The value of a key that may be another object in the next call: by its place.
static PyObject *load_value(world *w, names *n, PyObject *value, Py_ssize_t index) {
    source *s = guard_source(w->guards, SOURCE_DICT_VALUE, n->source, NULL, index);
    return s ? door_load(w, s, value) : NULL;
}

static PyObject *known_or_load(world *w, names *n, PyObject *key, PyObject *value,
                               Py_ssize_t index) {
    PyObject *known = raw_key_simple(key) ? PyDict_GetItemWithError(n->known, key) : NULL;
    if (known && known != world_absent)
        return Py_NewRef(known);
    return is_any(n, key) ? load_value(w, n, value, index) : load_entry(w, n, key, value);
}

// The hash is the one that the dict has: a key's own __hash__ is not asked. (An OrderedDict asks.)
// C code hashes a partial or a method, and what stands for it, by addresses.
static status fill_entry(world *w, names *n, PyObject *twin, PyObject *key, PyObject *value,
                         Py_ssize_t index, Py_hash_t hash) {
    PyObject *inside = open_key_at(w, n, key, index);
    PyObject *loaded = inside ? known_or_load(w, n, key, value, index) : NULL;
    if (!loaded)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    if (inside != key &&
        (is_tensor_key(key) || (!PyTuple_CheckExact(key) && key_hashed_otherwise(key))))
        hash = PyObject_Hash(inside);
    int done = PyODict_Check(twin) ? PyODict_SetItem(twin, inside, loaded)
                                   : _PyDict_SetItem_KnownHash(twin, inside, loaded, hash);
    if (done == 0)
        done = _PyDict_SetItem_KnownHash(n->initial, inside, loaded, hash);
    Py_DECREF(loaded);
    return w->stop.broken ? ST_BREAK : done == 0 ? ST_OK : ST_ERROR;
}

// Whether putting a key next to others asks its own methods: where two hashes are the same, or, in
// an OrderedDict, for the hash.
static status key_asks(map *hashes, PyObject *dict, PyObject *key, Py_hash_t hash, bool *asks) {
    const uint64_t *other = map_get(hashes, (uint64_t)hash); // -1 is no hash
    bool plain = value_immutable(key);
    bool own =
        raw_is_python_class(Py_TYPE(key)) && Py_TYPE(key)->tp_hash != PyBaseObject_Type.tp_hash;
    *asks = !plain && PyODict_Check(dict) && (own || PyTuple_Check(key));
    *asks |= other && (!plain || *other == 0);
    *asks |= !plain && PyTuple_CheckExact(key) && key_hashed_otherwise(key);
    return map_put(hashes, (uint64_t)hash, plain);
}

// In plain Python nobody would ask them for that.
static status check_keys(world *w, PyObject *dict) {
    raw_cursor at = {0};
    PyObject *key, *value;
    map hashes = {0};
    status done = ST_OK;
    bool asks = false;
    while (done == ST_OK && !asks && raw_dict_next(dict, &at, &key, &value))
        done = key_asks(&hashes, dict, key, raw_dict_hash(dict, &at, key), &asks);
    map_clear(&hashes);
    return asks ? world_break_status(w, REASON_KEYS, "%s", Py_TYPE(key)->tp_name) : done;
}

static bool has_own_keys(PyObject *dict) {
    raw_cursor at = {0};
    PyObject *key, *value;
    while (raw_dict_next(dict, &at, &key, &value))
        if (!value_immutable(key))
            return true;
    return false;
}

static status fill_from_dict(world *w, names *n, PyObject *twin, PyObject *dict) {
    raw_cursor at = {0};
    if (has_own_keys(dict))
        TRY(check_keys(w, dict));
    PyObject *key, *value;
    for (Py_ssize_t i = 0; raw_dict_next(dict, &at, &key, &value); i++)
        TRY(fill_entry(w, n, twin, key, value, i, raw_dict_hash(dict, &at, key)));
    return ST_OK;
}

// Inline values: there is no dict yet, and none is made.
static status fill_from_inline(world *w, names *n, PyObject *twin, PyObject *keys) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); i++) {
        PyObject *key = PyTuple_GET_ITEM(keys, i), *value;
        if (raw_attr_get(n->owner, key, &value) != RAW_FOUND)
            return world_break_status(w, REASON_ATTRIBUTE, "an instance dict that changes");
        TRY(fill_entry(w, n, twin, key, value, i, PyObject_Hash(key)));
    }
    return ST_OK;
}

// dict's own methods change an OrderedDict behind its back: its order then names keys that are not
// there, or leaves some out.
static bool is_whole(PyObject *dict) {
    raw_cursor at = {0};
    PyObject *key, *value;
    Py_ssize_t count = 0;
    while (PyODict_Check(dict) && raw_dict_next(dict, &at, &key, &value)) {
        if (!value)
            return false;
        count++;
    }
    return !PyODict_Check(dict) || count == PyDict_GET_SIZE(dict);
}

static PyObject *keys_of_dict(const names *n, PyObject *dict) {
    PyObject *keys = PyTuple_New(PyDict_GET_SIZE(dict)), *key, *value;
    raw_cursor at = {0};
    for (Py_ssize_t i = 0; keys && raw_dict_next(dict, &at, &key, &value); i++)
        PyTuple_SET_ITEM(keys, i, Py_NewRef(is_any(n, key) ? guard_any : key));
    return keys;
}

static PyObject *keys_of_instance(PyObject *o) {
    PyObject *names = raw_attr_names(o);
    PyObject *keys = names ? PyList_AsTuple(names) : NULL;
    Py_XDECREF(names);
    return keys;
}

static status guard_keys(world *w, names *n, PyObject *keys) {
    guard_kind kind = n->instance ? GUARD_ATTR_NAMES : GUARD_KEYS;
    TRY(door_keep_items(w, keys));
    return guard_add(w->guards, kind, n->source, NULL, keys, 0);
}

static status apply_pending(names *n, PyObject *twin) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (n->pending && PyDict_Next(n->pending, &at, &key, &value)) {
        bool gone = value == world_absent;
        int there = gone ? PyDict_Contains(twin, key) : 1; // it may never have been outside
        if (there < 0 || (there && twin_dict_set(twin, key, gone ? NULL : value) < 0))
            return ST_ERROR;
    }
    return ST_OK;
}

static status fill(world *w, names *n, PyObject *dict) {
    if (dict && !is_whole(dict))
        return world_break_status(w, REASON_PROTOCOL, "an OrderedDict changed by dict's methods");
    if (dict && has_tensor_key(dict, true))
        return world_break_status(w, REASON_PROTOCOL, "a dict with tensors in tuples as keys");
    w->in.handles |= n->handles = handles_only(w, n);
    handles_show(w, n);
    PyObject *keys = world_keep(w, dict ? keys_of_dict(n, dict) : keys_of_instance(n->owner));
    if (!keys)
        return ST_ERROR;
    TRY(guard_keys(w, n, keys));
    record *r = record_of(w, dict ? dict : n->owner);
    PyObject *twin = world_keep(w, twin_empty_dict(w, n->instance ? NULL : r, dict));
    n->initial = twin ? world_keep(w, PyDict_New()) : NULL;
    if (!n->initial)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    TRY(dict ? fill_from_dict(w, n, twin, dict) : fill_from_inline(w, n, twin, keys));
    TRY(apply_pending(n, twin));
    n->pending = NULL;
    n->twin = twin;
    return ST_OK;
}

PyObject *names_fill(world *w, names *n) {
    if (!n->twin) {
        PyObject *dict = n->instance ? raw_dict(n->owner) : n->owner;
        if (n->pending && n->instance && PyType_Check(n->owner)) // lookups read what is pending
            return world_break(w, REASON_ATTRIBUTE, "the whole namespace of a class that changed");
        if (fill(w, n, dict) != ST_OK)
            return NULL;
    }
    return n->twin;
}

PyObject *names_as_object(world *w, names *n) {
    if (!n->instance)
        return door_load(w, n->source, n->owner);
    PyObject *dict = raw_dict_make(n->owner);
    source *s = dict ? source_of_instance_dict(w, n->source) : NULL;
    PyObject *loaded = s && names_join(w, n, dict) == ST_OK ? door_load(w, s, dict) : NULL;
    Py_XDECREF(dict);
    return loaded;
}
