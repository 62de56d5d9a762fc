// Sources and guards. While a trace runs, a `guards` collects where outside objects were found, and
// facts about them. Sealing turns it into a guard program: a flat array of loads and checks that
// runs in C before an entry. The pass leaves the loaded objects in registers, from which the plan
// takes its inputs.
#pragma once

#include "src/base/arena.h"
#include "src/base/map.h"
#include "src/base/status.h"
#include "src/base/vec.h"

#include "src/py/slot.h"

#include "src/interp/result.h"

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

// How a step holds the objects that it names: a column of both tables. "Weakly" applies to objects
// that can have weak references; the death of such an object ends the program.
typedef enum step_holds {
    HOLD_NONE,   // no object
    HOLD_STRONG, // its object or key, if it has one, strongly
    HOLD_FIXED,  // its key strongly; an equal object is another key
    HOLD_VALUE,  // its object strongly, but weakly a code object, which is compared by identity
    HOLD_KEY,    // a key of a dict, weakly
    HOLD_VERY,   // its object weakly; compared by identity
    HOLD_OTHER,  // its object weakly; compared by identity. Its death does not end the program
    HOLD_ITEMS,  // each item of its tuple weakly, and not the tuple
    HOLD_FOUND,  // its name strongly, the object that the lookup found weakly
} step_holds;

// The kind of object that lies at a place: a column of sources.def.
typedef enum source_gives {
    GIVES_PART,  // an object that the parent holds
    GIVES_DICT,  // the same, a dict of names or of keyword defaults
    GIVES_LOOSE, // an object that the parent may not hold: it may die while the parent lives
} source_gives;
source_gives source_what(source_kind kind);

// Each place has one source, so sources are compared by pointer. A source lives as long as the
// `guards` that made it.
typedef struct source {
    source_kind kind;
    int reg; // the register of its object in a guard pass; -1 until a guard or the plan needs it
    struct source *parent;
    PyObject *key; // strong
    Py_ssize_t index;
    PyObject *text; // strong, or NULL: guard_source_text has made it
} source;

struct words; // of src/py/words.h

// A kind of check that a later room defines.
typedef struct guard_custom {
    const char *name;
    // Runs no Python code; `object` is NULL if the guard has no source. No exception is left set.
    bool (*check)(PyObject *object, void *data);
    // The guard as readable Python; and why `object` fails (may be NULL: the text is used). New
    // str.
    PyObject *(*text)(const char *source, void *data);
    PyObject *(*reason)(const char *source, PyObject *object, void *data);
    void (*drop)(void *data);
    // Whether `object` fails. If nothing but numbers of it differ, that could be left open, `open`
    // says which: the caller's bits; else 0. It leaves nothing behind. NULL: ask `check`.
    bool (*misfit)(PyObject *object, void *data, unsigned *open);
    // Adds the words of memory that decided a check that has just passed. False: there are no such
    // words, and the check must be made each time. NULL: there never are.
    bool (*words)(struct words *w, PyObject *object, void *data);
} guard_custom;

typedef struct guard_program guard_program;
typedef struct guards guards;

// Sets this room up, once. 0, or -1 with an exception.
int guard_setup(void);

guards *guards_new(void);
void guards_free(guards *g);

// The source of that kind below `parent` (NULL for roots). `key` is borrowed (kept strongly); keys
// are the same if they are identical, or of the same exact immutable type and bit for bit equal.
// NULL with an exception.
source *guard_source(guards *g, source_kind kind, source *parent, PyObject *key, Py_ssize_t index);

// The object at a place now: borrowed from the object that holds it. (An object that a read makes
// is put into `kept`, a list that is made when needed.) NULL without an exception if there is no
// such place: every read checks all that it relies on (type, bounds).
PyObject *source_read(source_kind kind, PyObject *parent, PyObject *key, Py_ssize_t index,
                      PyObject **kept);

// As Python: "L['self'].weight". New str.
PyObject *source_text(const source *s);
// The same, made once for each place: borrowed from `g`.
PyObject *guard_source_text(guards *g, source *s);
// The same of a place whose parent has this text (NULL: it has no parent).
PyObject *source_text_of(source_kind kind, PyObject *parent, PyObject *key, Py_ssize_t index);

// Adds a check (BOUND has no source). A check that was added before is not added again. `object` is
// borrowed, and kept (weakly for IS and TYPE where that is possible). The current frame tells the
// user's line that caused the check.
status guard_add(guards *g, guard_kind kind, source *a, source *b, PyObject *object,
                 Py_ssize_t index);
// In the tuple of a KEYS or SET_ITEMS guard: any object. Other guards check it by its own place.
extern PyObject *guard_any;
status guard_add_lookup(guards *g, source *type, PyObject *name, PyObject *found);
// Takes `data` over. If that fails, `data` is dropped at once.
status guard_add_custom(guards *g, source *a, const guard_custom *custom, void *data);
// Adds a source to those that must all hold distinct objects. (A source with the same object as an
// earlier one is not added; it has a SAME guard.)
status guard_distinct(guards *g, source *s);
// Says that a guard pass must find an object at this place, and gives its register.
status guard_need(guards *g, source *s, int *reg);
// The same, for the plan: guard_pass fills the registers of these sources.
status guard_give(guards *g, source *s, int *reg);
// The number of sources that have a register so far. It grows when the trace looks at something
// new.
int guard_needed(const guards *g);

// Turns all checks into a program; `g` may be freed then. NULL with an exception.
guard_program *guard_seal(guards *g);
void guard_program_free(guard_program *p);
// All that was noted so far, as a program that is run while `g` lives. More may be noted and sealed
// afterwards. What CUSTOM checks own stays with `g`.
guard_program *guard_trial(guards *g);
void guard_trial_free(guard_program *p);

// The roots of all sources: a frame, and the frames that wait for its value.
typedef struct guard_frame {
    PyObject *function;
    const py_slot *slots;
    Py_ssize_t count;
    uint32_t unit;     // 0: it is called; else the unit at which it goes on, or the unit of the
                       // call on which it waits
    awaited how;       // of a frame that waits
    PyObject *handled; // of a frame that goes on: the exception that its innermost handler handles,
                       // or NULL
    struct guard_frame *below;         // the frame that waits for its value, or NULL
    struct _PyInterpreterFrame *frame; // of a frame that waits
    PyObject *kept; // strong; objects that loads made, or NULL. The caller drops them at the end.
    // Borrowed, or NULL: the numbers of the frame that the piece before has left open, as in `places`
    // of guard_misfits.
    PyObject *open;
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
    for (; f && level > 0; level--)
        f = f->below;
    return f;
}

int guard_registers(const guard_program *p);
// Whether a guard program has made this weak reference.
bool guard_owns_weakref(PyObject *reference);
// Whether an object that the program holds weakly has died: the program can never pass again.
bool guard_dead(const guard_program *p);
// True if all checks pass; `regs` then has borrowed references. Else *failed is the number of the
// step that failed. Runs no Python code and never gives up the GIL.
bool guard_check(const guard_program *p, guard_frame *f, PyObject **regs, int *failed);
// Whether all checks pass, as guard_check finds it, but faster: what made the program fail last time
// is looked at first, and where no word of memory has changed that the last full pass has read, the
// steps are not done again. Fills the registers that guard_give gave, perhaps others.
bool guard_pass(guard_program *p, guard_frame *f, PyObject **regs);

// Why step `failed` fails on this frame: the guard as Python, with the value then and now. New str.
PyObject *guard_reason(const guard_program *p, int failed, guard_frame *f);
// Whether step `failed` compares a number in a slot of the frame with an earlier number: *slot is
// LOCAL's index.
bool guard_is_number(const guard_program *p, int failed, Py_ssize_t *slot);
// The numbers that keep a program from passing, perhaps among other things.
typedef struct guard_misfits {
    int count;        // numbers that differ, and steps that fail for another reason
    bool numbers;     // no step fails for another reason than a number of a place
    PyObject *places; // strong: dict of a place's text → bits of its numbers, as a PyLong
} guard_misfits;
enum {
    GUARD_OPEN_VALUE = 1 << 30, // of an int or a float: the value itself
    GUARD_OPEN_FLOAT = 1 << 29, // with it: of a float
};
// The values that a value is made of, if each has a place of its own; borrowed. `items` is NULL for
// others.
typedef struct guard_parts {
    source_kind kind; // of those places
    PyObject *const *items;
    Py_ssize_t count;
} guard_parts;
guard_parts guard_parts_of(PyObject *value);
// The bits of a place in such a dict, 0 if it has none or `places` is NULL; setting them: a place
// without bits is not in the dict; and adding some: the dict is made if it is NULL.
unsigned guard_open_bits(PyObject *places, PyObject *place);
status guard_open_set(PyObject *places, PyObject *place, unsigned bits);
status guard_open_add(PyObject **places, PyObject *place, unsigned bits);
// Runs all steps but those that rely on what another one failed for. `regs` has room for the program's registers. ST_ERROR with an exception.
status guard_find_misfits(const guard_program *p, guard_frame *f, PyObject **regs,
                          guard_misfits *found);
// A short text of any object that runs no code of the user's. New str.
PyObject *object_text(PyObject *o);
// The result of str() if that is C code which reads no other object; else object_text. New str.
PyObject *callable_text(PyObject *o);
// A list with one row (text, filename, line) for each guard, in order. New reference.
PyObject *guard_rows(const guard_program *p);
