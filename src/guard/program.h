// The data of a guard program, for the files of this room only.
#pragma once

#include "src/py/raw.h"

#include "src/graph/expr.h"

#include "src/guard/guard.h"

// What a step remembers of earlier passes, so that the next pass is faster. A memo never replaces
// the guard. Each word is atomic, so that threads could check a program at the same time.
typedef struct memo {
    _Atomic(PyObject *) found; // TYPE_ATTR: see memo_get
    raw_hint hint; // where the object was last time, or the version in which the check passed; 0:
                   // nothing is known
} memo;

// The object that a class gave in a version; the object and the version belong together. The upper
// half of the hint is the version. The lower half counts the writes, and is odd during a write, so
// that a reader can tell whether object and version belong together. NULL if that version is not
// known.
static inline PyObject *memo_get(memo *m, unsigned version) {
    Py_ssize_t before = atomic_load_explicit(&m->hint, memory_order_acquire);
    if ((size_t)before >> 32 != version)
        return NULL;
    PyObject *found = atomic_load_explicit(&m->found, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return raw_hint_get(&m->hint) == before ? found : NULL;
}

static inline void memo_put(memo *m, unsigned version, PyObject *found) {
    Py_ssize_t before = raw_hint_get(&m->hint), count = before & 0xffffffff;
    if ((count & 1) || !atomic_compare_exchange_strong(&m->hint, &before, count | 1))
        return; // another thread is at it
    atomic_store_explicit(&m->found, found, memory_order_release);
    count = (count + 2) & 0xffffffff;
    atomic_store_explicit(&m->hint, (Py_ssize_t)((size_t)version << 32) | count,
                          memory_order_release);
}

// A load or a check. Pointers are borrowed: the program keeps the objects alive, or clears the
// pointers when objects that it holds weakly die. Only the memo changes while a program is checked.
typedef struct step {
    int32_t op; // a source kind, or STEP_CHECK + a guard kind
    int32_t a;  // register: the parent of a load, the object of a check; -1 for none
    int32_t b;  // register: the result of a load, the second object of a check; -1 for none
    int32_t spare;
    Py_ssize_t index;
    union {
        PyObject *object; // a load's key, a check's object
        PyObject **items; // MRO, KEYS, SET_ITEMS: `index` of them
        const guard_custom *custom;
    };
    union {
        memo memo;        // steps with one of these use only its second word:
        PyObject *second; // TYPE_LOOKUP: the object that the lookup must find
        void *slot;       // TYPE_FLAGS: the contents of the slot
        void *data;       // CUSTOM
    };
} step;
static_assert(sizeof(step) == 48, "a step is six words");
static_assert(offsetof(memo, hint) == sizeof(void *), "the hint lies behind `second`");

static inline memo *step_memo(const step *s) {
    return (memo *)&s->memo;
}

enum { STEP_CHECK = SOURCE_COUNT };

static inline bool step_is_load(const step *s) {
    return s->op < STEP_CHECK;
}

// The row of a step's kind in the tables, by its op.
typedef struct step_row {
    const char *name, *text;
    step_holds holds;
} step_row;
extern const step_row step_rows[SOURCE_COUNT + GUARD_COUNT];
// The row of a check in customs.def; -1 if it has none.
int custom_row(const guard_custom *custom);

// Whether a step compares objects by identity.
static inline bool step_by_identity(int32_t op) {
    step_holds holds = step_rows[op].holds;
    return holds == HOLD_FIXED || holds == HOLD_VERY || holds == HOLD_OTHER;
}

// Where the user's program was when a step was added.
typedef struct origin {
    int32_t code;   // index into the codes, -1 for none
    int32_t offset; // of the instruction, in bytes
} origin;

// An object held weakly.
typedef struct hold {
    PyObject *reference; // strong: a weak reference that calls the program's `death`
    PyObject *object;    // borrowed; NULL once it has died
} hold;

// Strong: objects that lookups find and that cannot have weak references.
typedef VEC(PyObject *) found_list;

typedef struct program_code {
    PyObject *reference; // strong: weak reference to the code object
    PyObject *filename;  // strong
} program_code;

enum { MOST_SUSPECTS = 8 };

struct guard_program {
    step *steps;
    origin *origins; // one a step
    int32_t count, registers;
    _Atomic(int32_t) dead; // 0, or one more than the step that can never pass again
    int32_t *loads;        // the step that fills a register
    int32_t *distinct;     // registers
    int32_t distinct_count;
    int distinct_bits; // number of bits of the hash table's index, if there are many; 0 if there
                       // are few
    bool *wanted;      // by register: guard_give gave it
    int32_t suspects[MOST_SUSPECTS]; // the step that failed last, behind the loads that it needs
    int32_t suspect_count;
    struct guard_log *log; // or NULL, see log.h
    VEC(hold) holds;
    found_list found;
    VEC(program_code) codes;
    arena arena;     // memory, and the objects that the program holds strongly
    PyObject *death; // strong
#ifdef STATOR_FAULT
    PyObject **stale; // strong, by register; see stale.h
#endif
};

// The most frequent reads.
static inline PyObject *read_tuple_item(PyObject *o, Py_ssize_t i) {
    return PyTuple_Check(o) && i >= 0 && i < PyTuple_GET_SIZE(o) ? PyTuple_GET_ITEM(o, i) : NULL;
}

static inline PyObject *read_list_item(PyObject *o, Py_ssize_t i) {
    return PyList_Check(o) && i >= 0 && i < PyList_GET_SIZE(o) ? PyList_GET_ITEM(o, i) : NULL;
}

// Reads a place, and may remember something for the next time.
PyObject *source_read_near(source_kind kind, PyObject *parent, PyObject *key, Py_ssize_t index,
                           PyObject **kept, memo *m);
// A number that a read has computed, as an object in `kept`. NULL without an exception if there is
// no memory.
PyObject *source_keep_number(number n, PyObject **kept);
// Does one load. NULL without an exception if there is no such place.
PyObject *step_load(const step *s, guard_frame *f, PyObject *const *regs);

// Does one load or check. False if there is no such place, or if the check fails.
bool step_passes(const guard_program *p, const step *s, guard_frame *f, PyObject **regs);

// The text of the place that a register is loaded from. New str.
PyObject *register_text(const guard_program *p, int32_t reg);

// Replaces %a %b %o %i %p %k %n in a pattern by texts (each may be NULL). New str.
typedef struct pattern_texts {
    PyObject *first, *second, *object, *name;
    Py_ssize_t index;
} pattern_texts;
PyObject *pattern_fill(const char *pattern, const pattern_texts *t);
