// Reads of CPython's objects that run nobody's code and change nothing, not even how an object
// keeps its attributes. Results are borrowed and no exception is ever set, unless said otherwise.
#pragma once

#include "src/py/py.h"

#include <stdatomic.h>

typedef enum raw {
    RAW_FOUND,
    RAW_ABSENT,
    RAW_UNSURE, // only running code could tell: a key with its own __eq__ has the same hash
} raw;

// Where something was found last time, or anything else: whoever reads it checks it. Threads may
// read and write it at the same time.
typedef _Atomic(Py_ssize_t) raw_hint;

static inline Py_ssize_t raw_hint_get(const raw_hint *h) {
    return atomic_load_explicit(h, memory_order_relaxed);
}

static inline void raw_hint_set(raw_hint *h, Py_ssize_t hint) {
    atomic_store_explicit(h, hint, memory_order_relaxed);
}

// Types that CPython does not declare. 0, or -1 with an exception; needed only for deques and
// partials.
int raw_setup(void);

// --- dicts ---

// The entry of a dict (any subclass, its plain entries). The key is hashed without running code:
// exact builtin immutables, tuples of them, and objects hashed by identity; else RAW_UNSURE.
raw raw_dict_get(PyObject *dict, PyObject *key, PyObject **value);
// The same; *hint is where the key was last time.
raw raw_dict_get_near(PyObject *dict, PyObject *key, raw_hint *hint, PyObject **value);
// The entry whose key is this very object, however it hashes.
raw raw_dict_get_identical(PyObject *dict, PyObject *key, raw_hint *hint, PyObject **value);

// Whether a key can be hashed and compared without running code.
bool raw_key_simple(PyObject *key);
// Whether it is hashed by its address, and equal to itself alone.
bool raw_key_by_identity(PyObject *key);
// One more C type whose objects can be hashed and compared without running code.
void raw_key_type(PyTypeObject *type);

// Entries in the order of iteration, an OrderedDict's own order included. All zero is the start.
typedef struct raw_cursor {
    Py_ssize_t at;
    void *node;
} raw_cursor;
bool raw_dict_next(PyObject *dict, raw_cursor *c, PyObject **key, PyObject **value);
// The hash that the dict keeps for the key which raw_dict_next gave out last.
Py_hash_t raw_dict_hash(PyObject *dict, const raw_cursor *c, PyObject *key);
// The index-th key and its value; NULL if there are fewer.
PyObject *raw_dict_key(PyObject *dict, Py_ssize_t index);
PyObject *raw_dict_value(PyObject *dict, Py_ssize_t index);
// A number that no other state of any dict ever has, or 0 if this dict has none that can be
// trusted. It stands for keys and values, not for an OrderedDict's order.
uint64_t raw_dict_version(PyObject *dict);

// --- attributes ---

// The instance dict's half of an attribute lookup; inline values stay inline.
raw raw_attr_get(PyObject *o, PyObject *name, PyObject **value);
raw raw_attr_get_near(PyObject *o, PyObject *name, raw_hint *hint, PyObject **value);
// Whether instances of this type have a dict at all.
bool raw_has_dict(PyTypeObject *type);
// The instance dict, if it exists as an object already; else NULL.
PyObject *raw_dict(PyObject *o);
// Names in order, a new list; NULL with an exception.
PyObject *raw_attr_names(PyObject *o);
// Whether the names in order are these (a tuple); `same` compares two that are not identical.
bool raw_attr_names_are(PyObject *o, PyObject *names, bool (*same)(PyObject *, PyObject *));
// The instance dict as an object, made if it has to be (this changes how the object keeps its
// attributes). New reference, NULL with an exception.
PyObject *raw_dict_make(PyObject *o);
// Stores (value NULL: deletes) without any descriptor or __setattr__. 0, or -1 with an exception.
int raw_attr_set(PyObject *o, PyObject *name, PyObject *value);
// What lies at a byte offset where the object's class or a base declares a member of object type (a
// slot, or a field of a C type). RAW_UNSURE if there is none at that offset.
raw raw_slot_get(PyObject *o, Py_ssize_t offset, PyObject **value);

// --- classes ---

// The namespace of one class.
PyObject *raw_type_dict(PyTypeObject *type);
// What the MRO has under that name.
raw raw_type_get(PyTypeObject *type, PyObject *name, PyObject **value);
// A number that no other class and no other state of this class ever has, or 0 if it has none now.
static inline unsigned raw_type_version(PyTypeObject *type) {
#if PY_VERSION_HEX < 0x030d0000
    return type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG ? type->tp_version_tag : 0;
#else
    return type->tp_version_tag;
#endif
}
// Gives it one if it can have one. `name` must just have been looked up by raw_type_get without
// doubt.
unsigned raw_type_version_make(PyTypeObject *type, PyObject *name);

// --- other objects ---

// The length of a builtin container, text or range, or of the builtin half of a subclass; -1 for
// others.
Py_ssize_t raw_length(PyObject *o);
// Elements of a set or frozenset in the order of iteration; *at starts at 0.
bool raw_set_next(PyObject *set, Py_ssize_t *at, PyObject **item);
PyObject *raw_deque_item(PyObject *deque, Py_ssize_t index);

// Fields of C objects by the name of the member. The type is checked; NULL if it is another, or if
// the field is empty and reading it would be an error.
typedef enum raw_field {
    RAW_CLASSMETHOD_FUNC,
    RAW_STATICMETHOD_FUNC,
    RAW_PROPERTY_GET,
    RAW_PROPERTY_SET,
    RAW_PROPERTY_DEL,
    RAW_PARTIAL_FUNC,
    RAW_PARTIAL_ARGS,
    RAW_PARTIAL_KEYWORDS,
    RAW_SUPER_TYPE,
    RAW_SUPER_SELF,
    RAW_DEFAULT_FACTORY,
    RAW_RANGE_START,
    RAW_RANGE_STOP,
    RAW_RANGE_STEP,
    RAW_FIELDS,
} raw_field;
PyObject *raw_field_get(raw_field field, PyObject *o);
// What functools.lru_cache made: the function it calls, the dict of the results it keeps, and how a
// key is made from a call's arguments. All borrowed, and the same as long as it lives.
typedef struct raw_cached {
    PyObject *function, *results;
    PyObject *mark; // stands between positional arguments and keywords in a key
    bool typed;     // types of arguments count
    bool keeps;     // anything at all
    bool bounded;   // results lie in links
} raw_cached;
bool raw_cached_parts(PyObject *o, raw_cached *parts); // false for others
PyObject *raw_cached_result(PyObject *link);           // NULL for others
// As a call that finds its result does: it is counted, and the link (NULL: results lie in none) is
// the most recent one.
void raw_cached_hit(PyObject *o, PyObject *link);
// The dict behind a dict view, the mapping behind a mappingproxy; NULL for others.
PyObject *raw_view_mapping(PyObject *o);
// The descriptor of a bound slot wrapper; NULL for others.
PyObject *raw_wrapper_descriptor(PyObject *o);
// What a bound method or a bound C method is bound to; NULL for others.
PyObject *raw_method_self(PyObject *o);
// The descriptor that a method-wrapper (a bound slot) came from; NULL for others.
PyObject *raw_method_wrapped(PyObject *o);
// One of a function's fields by its Python name; NULL for others, and for what would have to be
// made.
PyObject *raw_function_field(PyObject *function, PyObject *name);
// Whether weak references to an object are told of its death.
bool raw_can_be_weak(PyObject *o);
// The object behind a weak reference, None if it has died; NULL for others.
PyObject *raw_weakref_get(PyObject *o);
// The same for a weak proxy.
PyObject *raw_proxy_get(PyObject *o);
// The dict in which locals() gives out the variables of a function's frame: before 3.13 each frame
// keeps one, since then it is a fresh one each time. New reference.
enum { RAW_KEEPS_LOCALS = PY_VERSION_HEX < 0x030d0000 };
PyObject *raw_locals_dict(struct _PyInterpreterFrame *f);

// Whether a type is defined by a class statement (or type()), so that its slots may be Python code.
static inline bool raw_is_python_class(PyTypeObject *type) {
    return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && !(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE);
}

// --- the collector ---

// Allocating runs it on 3.11, and it runs finalizers: kept off where no code may run. Gives back
// whether it was on.
static inline bool raw_gc_off(void) {
    return PyGC_Disable();
}
static inline void raw_gc_restore(bool on) {
    if (on)
        PyGC_Enable();
}

// The Python frame that runs now: its code (borrowed) and the byte offset of its instruction. NULL
// if there is none.
PyCodeObject *raw_place(int *offset);

// What a context variable gives where it is not set, or NULL. Borrowed; it never changes.
PyObject *raw_context_default(PyObject *variable);
