// Sources and guards. While a trace runs, a `guards` collects where outside objects were found and
// what was seen of them; sealed, it is a guard program: a flat array of loads and checks, run in C
// before an entry. The pass leaves what it loaded in registers, from which the plan takes its
// inputs.
#pragma once

#include "src/base/arena.h"
#include "src/base/map.h"
#include "src/base/status.h"
#include "src/base/vec.h"

#include "src/py/slot.h"

typedef enum source_kind {
#define SOURCE(name, ...) SOURCE_##name,
#include "src/guard/sources.def"
    SOURCE_COUNT,
} source_kind;

typedef enum guard_kind {
#define GUARD(name, ...) GUARD_##name,
#include "src/guard/kinds.def"
    GUARD_COUNT,
} guard_kind;

// What a step keeps of the objects it names: a column of both tables. "Weakly" is where the object
// can be held weakly; its death then ends the program.
typedef enum step_holds {
    HOLD_NONE,   // no object
    HOLD_STRONG, // its object or key strongly, if it has one
    HOLD_FIXED,  // its key strongly; an equal object is another key
    HOLD_VALUE,  // its object strongly, but weakly a code object, which is compared by identity
    HOLD_KEY,    // a key of a dict, weakly
    HOLD_VERY,   // its object weakly; compared by identity
    HOLD_OTHER,  // its object weakly; compared by identity. The program outlives it
    HOLD_ITEMS,  // each item of its tuple weakly, and not the tuple
    HOLD_FOUND,  // its name strongly, what the lookup found weakly
} step_holds;

// What lies in a place: a column of sources.def.
typedef enum source_gives {
    GIVES_PART,  // an object that the parent holds
    GIVES_DICT,  // the same, and it is a dict of names or of keyword defaults
    GIVES_LOOSE, // an object that the parent may not hold: it may die while the parent lives
} source_gives;
source_gives source_what(source_kind kind);

// Hash-consed: one source for one place, so sources are compared by pointer. Lives as long as the
// `guards` that made it.
typedef struct source {
    source_kind kind;
    int reg; // where the guard pass leaves it; -1 until some guard or the plan needs it
    struct source *parent;
    PyObject *key; // strong
    Py_ssize_t index;
} source;

// A check that a later room defines.
typedef struct guard_custom {
    const char *name;
    // Runs no Python code; `object` is NULL if the guard has no source. No exception is left set.
    bool (*check)(PyObject *object, void *data);
    // Readable Python of the guard; of why `object` failed (may be NULL: the text is used). New
    // str.
    PyObject *(*text)(const char *source, void *data);
    PyObject *(*reason)(const char *source, PyObject *object, void *data);
    void (*drop)(void *data);
    // Whether `object` fails. If nothing but numbers of it differ, that could be left open, `open`
    // says which: the caller's bits; else 0. It leaves nothing behind. NULL: ask `check`.
    bool (*misfit)(PyObject *object, void *data, unsigned *open);
} guard_custom;

typedef struct guard_program guard_program;
typedef struct guards guards;

// One-time setup of this room. 0, or -1 with an exception.
int guard_setup(void);

guards *guards_new(void);
void guards_free(guards *g);

// The source of that kind below `parent` (NULL for roots). `key` is borrowed (kept strongly); keys
// are the same if they are identical, or of the same exact immutable type and bit for bit equal.
// NULL with an exception.
source *guard_source(guards *g, source_kind kind, source *parent, PyObject *key, Py_ssize_t index);

// What a place holds now: borrowed from whatever holds it (what a read makes anew is put into
// `kept`, a list that is made when needed). NULL, without an exception, if the place is not there:
// every read checks all it relies on (type, bounds).
PyObject *source_read(source_kind kind, PyObject *parent, PyObject *key, Py_ssize_t index,
                      PyObject **kept);

// As Python: "L['self'].weight". New str.
PyObject *source_text(const source *s);

// Notes a check (BOUND has no source). Said twice, it is kept once. `object` and `second` are
// borrowed, and kept (weakly for IS and TYPE where that is possible). The user's line that caused
// it is taken from the current frame.
status guard_add(guards *g, guard_kind kind, source *a, source *b, PyObject *object,
                 Py_ssize_t index);
// In the tuple of a KEYS or SET_ITEMS guard: whatever lies there. What must be known of it is asked
// of its own place.
extern PyObject *guard_any;
status guard_add_lookup(guards *g, source *type, PyObject *name, PyObject *found);
// Takes `data` over, also when it fails (then it is dropped at once).
status guard_add_custom(guards *g, source *a, const guard_custom *custom, void *data);
// This source is one of those that must all be distinct objects. (A source whose object is the same
// as an earlier one's is not added; SAME was noted for it.)
status guard_distinct(guards *g, source *s);
// The plan will need this source: its register.
status guard_need(guards *g, source *s, int *reg);
// How many sources have a register so far: a clock of what was looked at.
int guard_needed(const guards *g);

// All that was noted, as a program; `g` may be freed then. NULL with an exception.
guard_program *guard_seal(guards *g);
void guard_program_free(guard_program *p);

// The roots of all sources: a frame, and those that await its value.
typedef struct guard_frame {
    PyObject *function;
    const py_slot *slots;
    Py_ssize_t count;
    uint32_t unit;     // 0: it is called. Else where it goes on; of one that waits, its call's
    bool init;         // it waits for an __init__; the call's value lies on its stack
    PyObject *handled; // of a frame that goes on: the exception of its innermost handler, or NULL
    struct guard_frame *below; // the one that awaits its value, and may go on with it; or NULL
    struct _PyInterpreterFrame *frame; // of one that waits
    PyObject *kept; // strong; what loads made anew, or NULL. The caller drops it when all is done.
} guard_frame;

// A slot of the frame, or of one below it: the `index` of LOCAL. 0 is the frame itself.
enum { GUARD_SLOT_BITS = 24 };
static inline Py_ssize_t guard_slot(int level, Py_ssize_t slot) {
    return ((Py_ssize_t)level << GUARD_SLOT_BITS) | slot;
}
static inline int guard_slot_level(Py_ssize_t index) {
    return (int)(index >> GUARD_SLOT_BITS);
}
static inline Py_ssize_t guard_slot_number(Py_ssize_t index) {
    return index & (((Py_ssize_t)1 << GUARD_SLOT_BITS) - 1);
}
// The frame that is `level` frames below; NULL if there are fewer frames.
static inline const guard_frame *guard_frame_at(const guard_frame *f, int level) {
    for (; f != NULL && level > 0; level--)
        f = f->below;
    return f;
}

int guard_registers(const guard_program *p);
// Whether a weak reference is one that a guard program has made for itself.
bool guard_owns_weakref(PyObject *reference);
// Whether something the program holds weakly has died: it can never pass again.
bool guard_dead(const guard_program *p);
// True if all checks pass; `regs` then holds borrowed references. Else *failed is the step. Runs no
// Python code and never gives up the GIL.
bool guard_check(const guard_program *p, guard_frame *f, PyObject **regs, int *failed);

// Why step `failed` fails on this frame: the guard as Python, with the value then and now. New str.
PyObject *guard_reason(const guard_program *p, int failed, guard_frame *f);
// Whether step `failed` compares a number in a slot of the frame with the one it was: *slot is
// LOCAL's index.
bool guard_is_number(const guard_program *p, int failed, Py_ssize_t *slot);
// All that keeps a program from passing.
typedef struct guard_misfits {
    int count;        // steps that fail; of one that compares several numbers, how many differ
    bool numbers;     // no other step fails than those that compare a number of a place
    PyObject *places; // strong: dict of a place's text → bits of its numbers, as a PyLong
} guard_misfits;
enum {
    GUARD_OPEN_VALUE = 1 << 30, // of an int or a float: the value itself
    GUARD_OPEN_FLOAT = 1 << 29, // with it: of a float
};
// Runs all steps. `regs` has room for the program's registers. ST_ERROR with an exception.
status guard_find_misfits(const guard_program *p, guard_frame *f, PyObject **regs,
                          guard_misfits *found);
// A short text of any object that runs no code of the user's. New str.
PyObject *object_text(PyObject *o);
// What str() gives where that is C code which looks at no other object; else object_text. New str.
PyObject *callable_text(PyObject *o);
// One row a guard: list of (text, filename, line) in order. New reference.
PyObject *guard_rows(const guard_program *p);
