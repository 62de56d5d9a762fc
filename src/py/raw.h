// Functions that read CPython's objects without running any Python code and without changing
// anything, not even how an object keeps its attributes. Results are borrowed and no exception is
// set, unless the comment says otherwise.
#pragma once

#include "src/py/py.h"

#include <stdatomic.h>

typedef enum raw {
    RAW_FOUND,
    RAW_ABSENT,
    RAW_UNSURE, // only Python code could tell: a key with its own __eq__ has the same hash
} raw;

// Where something was found last time. A hint may be wrong, so readers check it. Threads may read
// and write one at the same time.
typedef _Atomic(Py_ssize_t) raw_hint;

static inline Py_ssize_t raw_hint_get(const raw_hint *h) {
    return atomic_load_explicit(h, memory_order_relaxed);
}

static inline void raw_hint_set(raw_hint *h, Py_ssize_t hint) {
    atomic_store_explicit(h, hint, memory_order_relaxed);
}

// Finds types that CPython does not declare. 0, or -1 with an exception. Only deques and partials
// need it.
int raw_setup(void);

// --- dicts ---

// The value of a key in a dict (of a subclass: in its plain entries). Only keys that can be hashed
// without running code are looked up: exact builtin immutables, tuples of them, and objects hashed
// by identity. Others give RAW_UNSURE.
raw raw_dict_get(PyObject *dict, PyObject *key, PyObject **value);
// The same, with a hint where the key was last time.
raw raw_dict_get_near(PyObject *dict, PyObject *key, raw_hint *hint, PyObject **value);
// The value of the entry whose key is this very object; the key is not hashed.
raw raw_dict_get_identical(PyObject *dict, PyObject *key, raw_hint *hint, PyObject **value);

// Whether a key can be hashed and compared without running code.
bool raw_key_simple(PyObject *key);
// Whether a key is hashed by its address, and equals only itself.
bool raw_key_by_identity(PyObject *key);
// Adds a C type whose objects can be hashed and compared without running code.
void raw_key_type(PyTypeObject *type);

// Goes through the entries in the order of iteration; an OrderedDict has its own order. A cursor of
// zeros is the start.
typedef struct raw_cursor {
    Py_ssize_t at;
    void *node;
} raw_cursor;
bool raw_dict_next(PyObject *dict, raw_cursor *c, PyObject **key, PyObject **value);
// The hash that the dict keeps for the key which raw_dict_next returned last.
Py_hash_t raw_dict_hash(PyObject *dict, const raw_cursor *c, PyObject *key);
// The index-th key and its value; NULL if there are fewer.
PyObject *raw_dict_key(PyObject *dict, Py_ssize_t index);
PyObject *raw_dict_value(PyObject *dict, Py_ssize_t index);
// A number that no other state of any dict ever has, or 0 if this dict has no number that can be
// trusted. While the number stays, keys and values have not changed; an OrderedDict's order may
// have.
uint64_t raw_dict_version(PyObject *dict);

// --- attributes ---

// Looks an attribute up in the instance dict only. Inline values stay inline.
raw raw_attr_get(PyObject *o, PyObject *name, PyObject **value);
raw raw_attr_get_near(PyObject *o, PyObject *name, raw_hint *hint, PyObject **value);
// Whether instances of this type have a dict at all.
bool raw_has_dict(PyTypeObject *type);
// Whether the instance dict has any entry.
bool raw_has_attrs(PyObject *o);
// The instance dict, or NULL if it does not exist as an object yet.
PyObject *raw_dict(PyObject *o);
// The names in the instance dict, in order: a new list. NULL with an exception.
PyObject *raw_attr_names(PyObject *o);
// Whether the names in the instance dict are these (a tuple), in order. `same` compares two names
// that are not identical.
bool raw_attr_names_are(PyObject *o, PyObject *names, bool (*same)(PyObject *, PyObject *));
// The instance dict as an object. If there is none yet, it is made, which changes how the instance
// keeps its attributes. New reference, NULL with an exception.
PyObject *raw_dict_make(PyObject *o);
// Stores an attribute in the instance dict (value NULL: deletes it) without calling a descriptor or
// __setattr__. 0, or -1 with an exception.
int raw_attr_set(PyObject *o, PyObject *name, PyObject *value);
// The member at a byte offset, if the object's class or a base declares a member of object type
// there (a slot, or a field of a C type); else RAW_UNSURE.
raw raw_slot_get(PyObject *o, Py_ssize_t offset, PyObject **value);

// --- classes ---

// The namespace of one class.
PyObject *raw_type_dict(PyTypeObject *type);
// Looks a name up along the MRO.
raw raw_type_get(PyTypeObject *type, PyObject *name, PyObject **value);
// A number that no other class and no other state of this class ever has, or 0 if it has none now.
static inline unsigned raw_type_version(PyTypeObject *type) {
#if PY_VERSION_HEX < 0x030d0000
    return type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG ? type->tp_version_tag : 0;
#else
    return type->tp_version_tag;
#endif
}
// The same; a class that has no number gets one if possible. raw_type_get must just have looked
// `name` up, and must not have been unsure.
unsigned raw_type_version_make(PyTypeObject *type, PyObject *name);

// --- other objects ---

// The length of a builtin container, text or range, or of an instance of a subclass of one, as the
// builtin class counts it; -1 for others.
Py_ssize_t raw_length(PyObject *o);
// Elements of a set or frozenset in the order of iteration; *at starts at 0.
bool raw_set_next(PyObject *set, Py_ssize_t *at, PyObject **item);
bool raw_is_deque(PyObject *o); // or of a subclass
PyObject *raw_deque_item(PyObject *deque, Py_ssize_t index);

// A field of a C object. The object's type is checked: NULL if it is another type, or if the field
// is empty so that reading it in Python would be an error.
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
// Whether the text of a property (not of a subclass) is its getter's: a copy with another getter has
// that one's.
bool raw_property_has_getters_doc(PyObject *o);
// The parts of an object that functools.lru_cache made: the function it calls, the dict of kept
// results, and how it makes a key of a call's arguments. All are borrowed, and never change.
typedef struct raw_cached {
    PyObject *function, *results;
    PyObject *mark; // lies between positional arguments and keywords in a key
    bool typed;     // the types of arguments are part of a key
    bool keeps;     // it keeps results at all
    bool bounded;   // each result lies in a link of a list
    bool room;      // another result pushes none out
} raw_cached;
bool raw_cached_parts(PyObject *o, raw_cached *parts); // false for others
PyObject *raw_cached_result(PyObject *link);           // NULL for others
// Does what a call that finds its result does: counts the hit, and makes the link (NULL if there
// are no links) the most recent one.
void raw_cached_hit(PyObject *o, PyObject *link);
// Takes one hit away, which is yet to come.
void raw_cached_expect(PyObject *o);
// The dict behind a dict view, the mapping behind a mappingproxy; NULL for others.
PyObject *raw_view_mapping(PyObject *o);
// The descriptor of a bound slot wrapper; NULL for others.
PyObject *raw_wrapper_descriptor(PyObject *o);
// The object that a bound method or bound C method is bound to; NULL for others.
PyObject *raw_method_self(PyObject *o);
// The descriptor that a method-wrapper (a bound slot) came from; NULL for others.
PyObject *raw_method_wrapped(PyObject *o);
// A field of a function by its Python name; NULL for other names, and for fields that CPython would
// have to make first.
PyObject *raw_function_field(PyObject *function, PyObject *name);
// Whether the instances keep their attributes in a dict of each thread (threading.local).
bool raw_is_thread_local(PyTypeObject *type);
// That dict for the current thread, borrowed. NULL, without an exception or with one, if there is
// none yet and to make it would run code.
PyObject *raw_thread_dict(PyObject *o);
// Whether an object can have weak references that learn of its death.
bool raw_can_be_weak(PyObject *o);
// The object behind a weak reference, or None if the object has died; NULL for other types.
PyObject *raw_weakref_get(PyObject *o);
// The same for a weak proxy.
PyObject *raw_proxy_get(PyObject *o);
// The dict that locals() returns in a function's frame. Before 3.13 each frame keeps one dict;
// since 3.13 locals() makes a fresh one each time. New reference.
enum { RAW_KEEPS_LOCALS = PY_VERSION_HEX < 0x030d0000 };
PyObject *raw_locals_dict(struct _PyInterpreterFrame *f);

// Whether a class statement (or type()) made a type, so that its slots may be Python code.
static inline bool raw_is_python_class(PyTypeObject *type) {
    return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && !(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE);
}

// --- the collector ---

// Turns the collector off where no code may run: in 3.11 an allocation can start it, and it runs
// finalizers. Returns whether it was on.
static inline bool raw_gc_off(void) {
    return PyGC_Disable();
}
static inline void raw_gc_restore(bool on) {
    if (on)
        PyGC_Enable();
}

// The code (borrowed) of the Python frame that runs now, and the byte offset of its instruction.
// NULL if there is no frame.
PyCodeObject *raw_place(int *offset);

// The default of a context variable, or NULL. Borrowed; it never changes.
PyObject *raw_context_default(PyObject *variable);
