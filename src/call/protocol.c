// Prepares values for native code: opens lazies in place, looks special methods up through the
// door, turns C callables into trampolines. Breaks if native code might do something that the trace
// cannot see.
#include "src/py/shown.h"

#include "src/world/number.h"

#include "src/call/protocol.h"
#include "src/call/rules.h"
#include "src/call/special.h"
#include "src/call/states.h"

#define COMPARES (P_HASH | P_EQ | P_ORDER)

// What the lazy's own slots do to an int that is kept open without opening it. Floats are opened:
// containers ask whether two NaNs are one object before they compare them, and sum() has its own
// way of adding.
enum { OPEN_NUMBERS = P_EQ | P_ORDER | P_TRUTH | P_NUMBER | P_CONTAINS | P_DEEP };

int protocol_keeps_open(world *w, PyObject *o, unsigned protocols) {
    number n;
    bool may = protocols != P_NONE && (protocols & ~(unsigned)OPEN_NUMBERS) == 0;
    int open = may && is_lazy(o) ? door_number(w, o, &n) : 0;
    return open > 0 && n.kind == NUMBER_FLOAT ? 0 : open;
}

// One walk over values and what they hold. Containers may hold themselves.
typedef struct walk {
    world *w;
    map seen; // container → protocols it was walked for
    int depth;
} walk;

enum { DEPTH_LIMIT = 200 }; // containers in containers; deeper ones would end the C stack

static status open_value(walk *k, PyObject **o, unsigned protocols);
static status open_elements(walk *k, PyObject *o, unsigned protocols);

// --- what holds what ---

// Views and proxies of a dict.
static bool is_view(PyObject *o) {
    PyObject *mapping = raw_view_mapping(o);
    return mapping && PyDict_Check(mapping);
}

static bool is_sequence(PyObject *o) {
    return PyTuple_Check(o) || PyList_Check(o) || raw_is_deque(o);
}

static bool is_exception(PyObject *o) {
    return PyExceptionInstance_Check(o);
}

// What native code that applies these protocols to a container applies to its elements by itself.
static unsigned inner_protocols(PyObject *o, unsigned p) {
    unsigned text = p & P_TEXT ? P_REPR : 0;
    unsigned equal = p & (P_EQ | P_ORDER) ? P_EQ : 0;
    if (is_sequence(o))
        return text | equal | (p & (P_HASH | P_ORDER)) | (p & P_CONTAINS ? P_EQ : 0);
    if (PyDict_Check(o) || PyDictKeys_Check(o))
        return text | equal;
    if (is_view(o))
        return text | equal | (p & P_CONTAINS ? P_EQ : 0);
    if (PyAnySet_Check(o))
        return text | (p & (P_EQ | P_ORDER | P_NUMBER) ? P_HASH : 0);
    if (PySlice_Check(o))
        return text | (p & (COMPARES | P_INDEX));
    if (is_exception(o))
        return text | (p & P_STR);
    return 0;
}

// --- elements, opened where they lie ---

// Opens the reference at *place, which a container of ours owns.
static status open_place(walk *k, PyObject **place, unsigned protocols) {
    PyObject *o = Py_NewRef(*place);
    status st = open_value(k, &o, protocols);
    if (st == ST_OK && o != *place)
        Py_SETREF(*place, Py_NewRef(o));
    Py_DECREF(o);
    return st;
}

static status open_tuple(walk *k, PyObject *tuple, unsigned protocols) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        TRY(open_place(k, &((PyTupleObject *)tuple)->ob_item[i], protocols));
    return ST_OK;
}

static status open_list(walk *k, PyObject *list, unsigned protocols) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *o = Py_NewRef(PyList_GET_ITEM(list, i));
        status st = open_value(k, &o, protocols);
        if (st == ST_OK && i < PyList_GET_SIZE(list) && o != PyList_GET_ITEM(list, i))
            PyList_SetItem(list, i, Py_NewRef(o));
        Py_DECREF(o);
        TRY(st);
    }
    return ST_OK;
}

static status open_deque_item(walk *k, PyObject *deque, Py_ssize_t i, unsigned protocols) {
    PyObject *before = PySequence_GetItem(deque, i);
    if (!before)
        return ST_ERROR;
    PyObject *o = Py_NewRef(before);
    status st = open_value(k, &o, protocols);
    if (st == ST_OK && o != before && PySequence_SetItem(deque, i, o) < 0)
        st = ST_ERROR;
    Py_DECREF(before);
    Py_DECREF(o);
    return st;
}

static status open_deque(walk *k, PyObject *deque, unsigned protocols) {
    for (Py_ssize_t i = 0; i < PySequence_Size(deque); i++)
        TRY(open_deque_item(k, deque, i, protocols));
    return ST_OK;
}

// The hash that a dict keeps for the key which PyDict_Next gave out; `next` is where it goes on.
static Py_hash_t stored_hash(PyObject *dict, PyObject *key, Py_ssize_t next) {
    PyDictKeysObject *keys = ((PyDictObject *)dict)->ma_keys;
    return DK_IS_UNICODE(keys) ? ((PyASCIIObject *)key)->hash : DK_ENTRIES(keys)[next - 1].me_hash;
}

// An opened value goes back without hashing the key again, which may be Python code.
static status open_entry(walk *k, PyObject *dict, PyObject *key, PyObject *value, Py_hash_t hash,
                         unsigned protocols) {
    PyObject *o = Py_NewRef(value);
    status st = open_value(k, &o, protocols);
    if (st == ST_OK && o != value && _PyDict_SetItem_KnownHash(dict, key, o, hash) < 0)
        st = ST_ERROR;
    Py_DECREF(o);
    return st;
}

static status open_key(walk *k, PyObject *key, unsigned protocols) {
    PyObject *same = Py_NewRef(key);
    status st = protocols ? open_value(k, &same, protocols) : ST_OK;
    Py_DECREF(same);
    return st;
}

// Keys were opened and prepared for hashing when they came in; storing a value for a key that is
// there moves nothing, so PyDict_Next goes on.
static status open_dict(walk *k, PyObject *dict, unsigned keys, unsigned values) {
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &at, &key, &value)) {
        Py_INCREF(key);
        Py_INCREF(value);
        status st = open_key(k, key, keys);
        if (st == ST_OK && values)
            st = open_entry(k, dict, key, value, stored_hash(dict, key, at), values);
        Py_DECREF(key);
        Py_DECREF(value);
        TRY(st);
    }
    return ST_OK;
}

static status open_set(walk *k, PyObject *set, unsigned protocols) {
    Py_ssize_t at = 0;
    PyObject *element;
    Py_hash_t hash;
    while (_PySet_NextEntry(set, &at, &element, &hash)) {
        PyObject *o = Py_NewRef(element);
        status st = open_value(k, &o, protocols);
        Py_DECREF(o);
        TRY(st);
    }
    return ST_OK;
}

static status open_slice(walk *k, PyObject *o, unsigned protocols) {
    PySliceObject *slice = (PySliceObject *)o;
    TRY(open_place(k, &slice->start, protocols));
    TRY(open_place(k, &slice->stop, protocols));
    return open_place(k, &slice->step, protocols);
}

static status open_view(walk *k, PyObject *o, unsigned protocols) {
    PyObject *dict = raw_view_mapping(o);
    if (PyDictKeys_Check(o))
        return open_dict(k, dict, protocols, 0);
    return open_dict(k, dict, PyDictValues_Check(o) ? 0 : protocols, protocols);
}

// A defaultdict shows its factory, too.
static status open_factory(walk *k, PyObject *o, unsigned protocols) {
    PyObject *factory = raw_field_get(RAW_DEFAULT_FACTORY, o);
    if (!factory || factory == Py_None)
        return ST_OK;
    PyObject *shown = Py_NewRef(is_trampoline(factory) ? trampoline_callable(factory) : factory);
    status st = open_value(k, &shown, protocols & P_TEXT);
    Py_DECREF(shown);
    return st;
}

static status open_kind(walk *k, PyObject *o, unsigned protocols) {
    if (PyDict_Check(o) && !PyDict_CheckExact(o) && (protocols & P_TEXT))
        TRY(open_factory(k, o, protocols));
    if (PyTuple_Check(o))
        return open_tuple(k, o, protocols);
    if (PyList_Check(o))
        return open_list(k, o, protocols);
    if (PyDict_Check(o))
        return open_dict(k, o, protocols & ~P_CALL, protocols);
    if (PyAnySet_Check(o))
        return open_set(k, o, protocols & ~P_CALL);
    if (PySlice_Check(o))
        return open_slice(k, o, protocols);
    if (is_view(o))
        return open_view(k, o, protocols);
    if (is_exception(o) && ((PyBaseExceptionObject *)o)->args)
        return open_tuple(k, ((PyBaseExceptionObject *)o)->args, protocols);
    return raw_is_deque(o) ? open_deque(k, o, protocols) : ST_OK;
}

// --- text of what is shown already ---

static bool nothing_shown(PyObject *object, void *data) {
    (void)object, (void)data;
    return !py_is_showing();
}

static PyObject *nothing_shown_text(const char *source, void *data) {
    (void)source, (void)data;
    return PyUnicode_FromString("no repr() is running");
}

static const guard_custom nothing_shown_guard = {
    .name = "running repr", .check = nothing_shown, .text = nothing_shown_text};

// A twin has an address of its own: whether the original is being shown, native code cannot see.
static status check_shown(world *w) {
    if (w->terms.showing)
        return world_break_status(w, REASON_PROTOCOL, "repr() while one is running");
    if (w->facts.shows)
        return ST_OK;
    w->facts.shows = true;
    return guard_add_custom(w->guards, NULL, &nothing_shown_guard, NULL);
}

static status open_elements(walk *k, PyObject *o, unsigned protocols) {
    if (is_scalar(o))
        return ST_OK;
    if ((protocols & P_TEXT) && record_of(k->w, o))
        TRY(check_shown(k->w));
    uint64_t *before = map_get(&k->seen, map_key(o)), had = before ? *before : 0;
    if (before && (had & protocols) == protocols)
        return ST_OK;
    if (k->depth == DEPTH_LIMIT)
        return world_break_status(k->w, REASON_PROTOCOL, "containers nested %d deep", DEPTH_LIMIT);
    TRY(map_put(&k->seen, map_key(o), had | protocols));
    k->depth++;
    status st = open_kind(k, o, protocols);
    k->depth--;
    return st;
}

// --- the order of sets ---

static bool is_nan(PyObject *o) {
    return PyFloat_CheckExact(o) && PyFloat_AS_DOUBLE(o) != PyFloat_AS_DOUBLE(o);
}

// Whether the hash is an address that is another one in the next call.
static bool hashed_by_address(world *w, PyObject *o) {
    if (is_address(o))
        return true;
    if (is_scalar(o) && !PyComplex_CheckExact(o))
        return is_nan(o);
    if (PyTuple_Check(o)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
            if (hashed_by_address(w, PyTuple_GET_ITEM(o, i)))
                return true;
        return false;
    }
    if (!is_standin(o) && Py_TYPE(o)->tp_hash != PyBaseObject_Type.tp_hash && !PyMethod_Check(o))
        return false;
    record *r = record_of(w, o);
    return !r || !(r->identity || r->pinned) || is_standin(o);
}

// Whether a twin still has what it was filled with. Once it was changed, where a new element lies
// depends on the history of the original's table.
static bool set_unchanged(const record *r, PyObject *set) {
    Py_ssize_t at = 0, i = 0;
    PyObject *element;
    Py_hash_t hash;
    while (_PySet_NextEntry(set, &at, &element, &hash))
        if (i == r->count || element != r->initial[i++])
            return false;
    return i == r->count;
}

static status check_set_order(world *w, PyObject *set) {
    record *r = record_of(w, set);
    if (PySet_GET_SIZE(set) < 2 || (r && r->ordered && set_unchanged(r, set)))
        return ST_OK;
    if (r)
        return world_break_status(w, REASON_SET_ORDER, "%zd elements", PySet_GET_SIZE(set));
    TRY(world_pin_hashed(w));
    Py_ssize_t at = 0;
    PyObject *element;
    Py_hash_t hash;
    while (_PySet_NextEntry(set, &at, &element, &hash))
        if (hashed_by_address(w, element))
            return world_break_status(w, REASON_SET_ORDER, "hashed by address: a %s object",
                                      Py_TYPE(element)->tp_name);
    return ST_OK;
}

// --- one value ---

// Python functions come back through the hook by themselves, and so do methods of theirs.
static bool needs_trampoline(PyObject *o) {
    if (PyFunction_Check(o) || is_trampoline(o) || !PyCallable_Check(o))
        return false;
    return !PyMethod_Check(o) || !PyFunction_Check(PyMethod_GET_FUNCTION(o));
}

static status open_callable(world *w, PyObject **o) {
    if (!needs_trampoline(*o))
        return ST_OK;
    PyObject *trampoline = trampoline_new(w, *o);
    if (!trampoline)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    Py_SETREF(*o, trampoline);
    return ST_OK;
}

static status open_standin(world *w, PyObject *o, unsigned protocols) {
    if (protocols & (P_TEXT | P_TRUTH | P_INDEX | P_ATTR | P_COPY))
        return world_break_status(w,
                                  protocols & P_TRUTH ? REASON_TENSOR_TRUTH : REASON_TENSOR_VALUE,
                                  "%s of a tensor", protocols & P_TRUTH ? "bool()" : "a use");
    if (protocols & (P_HASH | P_EQ))
        w->facts.identity_mattered = true;
    (void)o;
    return ST_OK;
}

static status check_attributes(world *w, PyObject *o) {
    if (value_immutable(o) || PyList_CheckExact(o) || PyTuple_CheckExact(o) ||
        PyDict_CheckExact(o) || PySet_CheckExact(o) || PyFrozenSet_CheckExact(o))
        return ST_OK;
    return world_break_status(w, REASON_PROTOCOL, "attributes of a %s object", Py_TYPE(o)->tp_name);
}

// Containers ask for identity before they ask for equality, whatever __eq__ would say.
static void note_identity(world *w, PyObject *o) {
    if (!w->facts.identity_mattered && record_of(w, o))
        w->facts.identity_mattered = true;
}

static status open_opened(walk *k, PyObject **place, unsigned protocols) {
    world *w = k->w;
    PyObject *o = *place;
    if (protocols & P_TEXT)
        TRY(state_read_text(w, o));
    if (is_scalar(o))
        return ST_OK;
    if (protocols & P_HASH)
        note_identity(w, o);
    if (is_standin(o))
        return open_standin(w, o, protocols);
    unsigned inner = inner_protocols(o, protocols);
    if (inner)
        TRY(open_elements(k, o, inner));
    if (PyAnySet_Check(o) && (protocols & (P_ITER | P_TEXT)) && !(protocols & P_UNORDERED))
        TRY(check_set_order(w, o));
    if (protocols & P_ATTR)
        TRY(check_attributes(w, o));
    TRY(special_open_all(w, o, protocols));
    return protocols & P_CALL ? open_callable(w, place) : ST_OK;
}

static status open_value(walk *k, PyObject **o, unsigned protocols) {
    int open = protocol_keeps_open(k->w, *o, protocols);
    if (open)
        return open > 0 ? ST_OK : k->w->stop.broken ? ST_BREAK : ST_ERROR;
    PyObject *opened = door_open(k->w, *o);
    if (!opened)
        return k->w->stop.broken ? ST_BREAK : ST_ERROR;
    if (opened != *o)
        Py_SETREF(*o, Py_NewRef(opened));
    if (protocols & COMPARES)
        note_identity(k->w, *o);
    TRY(open_opened(k, o, protocols & ~P_DEEP));
    return protocols & P_DEEP ? open_elements(k, *o, protocols) : ST_OK;
}

status protocol_open(world *w, PyObject **o, unsigned protocols) {
    int open = protocol_keeps_open(w, *o, protocols);
    if (open)
        return open > 0 ? ST_OK : w->stop.broken ? ST_BREAK : ST_ERROR;
    PyObject *opened = door_open(w, *o);
    if (!opened)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    if (opened != *o)
        Py_SETREF(*o, Py_NewRef(opened));
    if (protocols == P_NONE || (is_scalar(opened) && !(protocols & P_TEXT)))
        return ST_OK;
    walk k = {.w = w};
    status st = open_opened(&k, o, protocols & ~P_DEEP);
    map_clear(&k.seen);
    return st;
}

status protocol_open_elements(world *w, PyObject **o, unsigned protocols) {
    TRY(protocol_open(w, o, P_NONE));
    walk k = {.w = w};
    status st = open_elements(&k, *o, protocols);
    map_clear(&k.seen);
    return st;
}

// --- what callbacks give ---

// Keys that are tuples are compared element by element: opened objects among them by identity
// first.
static void note_elements(world *w, PyObject *o) {
    if (!PyTuple_CheckExact(o))
        return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
        if (record_of(w, PyTuple_GET_ITEM(o, i)))
            w->facts.identity_mattered = true;
}

// What native code is most likely to do: advance an iterator, order keys.
static status open_methods(world *w, PyObject *o) {
    static const special likely[] = {SPECIAL_next, SPECIAL_lt, SPECIAL_gt};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(likely); i++)
        TRY(special_open(w, o, likely[i]));
    return ST_OK;
}

enum {
    // What native code may do to a value that a callback gave it, unasked. It hashes only what was
    // prepared for that.
    CALLBACK = P_EQ | P_ORDER | P_ITER | P_TRUTH | P_LEN | P_INDEX | P_NUMBER | P_ITEM | P_CONTAINS,
};

status protocol_handed_over(world *w, PyObject **o) {
    TRY(protocol_open(w, o, P_NONE));
    PyTypeObject *type = Py_TYPE(*o);
    note_elements(w, *o);
    if (raw_is_python_class(type))
        return open_methods(w, *o);
    if (is_scalar(*o) || is_standin(*o) || !record_of(w, *o))
        return ST_OK;
    return record_of(w, *o)->kind == RECORD_OBJECT ? special_open_all(w, *o, CALLBACK) : ST_OK;
}
