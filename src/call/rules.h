// The rule of each C callable: what it may do during a trace. Rows are in rules.def and found by
// the underlying C function; slot wrappers, __new__ functions and pybind11's builtins by the
// object, types by the type itself, other callable C objects by their type's __call__.
//
// A STRUCT row speaks of the arguments behind self (or behind the class, of a __new__):
//   first     protocols that native code applies to the first of them, and R_ flags
//   args      to the others
//   elements  to the elements of self and of each argument with P_ITER; or, where a function is
//             given (P_CALL), to the function's results. Elements that cannot be made ready
//             beforehand, because the argument is an iterator, come from a feed (feed.h) if the
//             row says R_FEED; else the call breaks
// Where P_NONE stands, the argument is only moved: it may stay a lazy, and is not looked at. Others
// are opened and made ready (protocol_open), which breaks for outside objects of C types that are
// not known to be harmless. Self is opened always, and must be inside, immutable or a twin: an
// outside object of a C type (RECORD_OBJECT) breaks, unless the row says R_FROZEN. Of keyword
// arguments `key` and `func` are called; others must be immutable builtins, or are only moved with
// R_KEYWORDS. What comes out is fresh, an argument, or an element of an argument.
#pragma once

#include "src/graph/expr.h"

#include "src/attr/later.h"

#include "src/call/protocol.h"

typedef enum rule_kind {
    RULE_PURE,    // runs natively on immutable values
    RULE_STRUCT,  // runs natively on inside containers and twins, prepared by the row's protocols
    RULE_HANDLED, // has a C handler
    RULE_OPAQUE,  // breaks; the row says why
} rule_kind;

enum {
    R_ITEMS = 1 << 17,    // self is of the row's type, or of a subclass without items of its own
    R_TEXT = 1 << 18,     // with R_PLAIN: or a text, be it of a subclass of str
    R_SHOWN = 1 << 19,    // of the first argument: what the function says if it fails shows it
    R_FROZEN = 1 << 20,   // self may be an outside C object: nothing about it ever changes
    R_FEED = 1 << 21,     // keeps no iterator: elements are made ready one by one, as it takes them
    R_KEYWORDS = 1 << 22, // keyword arguments are only moved
    R_OPEN = 1 << 23,     // the argument is opened, and nothing more
    R_PLAIN = 1 << 24,    // the argument is of a C type, and inside, immutable or a twin
    R_SELF = 1 << 25,     // self is of the row's type itself (a class: is that type)
    R_SPREAD = 1 << 26,   // elements are the arguments of what is called, not what it gives
    R_ORDERED = 1 << 27,  // the order of self, a set, matters
    R_FEW = 1 << 28,      // that of all sets matters, but only if more than one element comes out
    R_MOVED = 1 << 29,    // of the first argument: its elements are only moved
    R_FLAGS = R_FROZEN | R_FEED | R_KEYWORDS | R_OPEN | R_PLAIN | R_SELF | R_SPREAD | R_ORDERED |
        R_FEW | R_MOVED | R_SHOWN | R_TEXT | R_ITEMS,
};

// What is known of the elements that an __iter__ goes through.
typedef enum rule_gives {
    G_ANYTHING,
    G_HELD,   // self holds them and they can be made ready there: iterating runs no Python code
    G_TUPLES, // self is an iterator, and makes a tuple for each
} rule_gives;

// How many arguments a handler takes, self among them. For other numbers the handler is not called:
// the native function says what is wrong. (0 is no answer.)
typedef struct rule_takes {
    unsigned least, most; // by position
    enum { TAKES_UNSAID, TAKES_PLACES, TAKES_NAMES } how;
} rule_takes;

#define MANY UINT_MAX
#define ARGS(least, most) {least, most, TAKES_PLACES} // and no keywords
#define NAMED(least, most) {least, most, TAKES_NAMES} // and keywords, which the handler looks at
#define ANY NAMED(0, MANY)

// What the C function changes by itself: an outside object that was written to is guarded to be no
// other than it was, even where a later write restores it. A row says it (0 is no answer).
typedef enum rule_writes {
    W_UNSAID, // only in a row that forgot to say it
    W_NONE,
    W_SELF,    // self of a method
    W_FIRST,   // the first argument of a function
    W_INSIDE,  // self of a method, which was made in the trace: on an outside one the row breaks
    W_HANDLER, // self or the first argument; the handler's own operations note the write
} rule_writes;

// What it reads of the process, a set (states.def).
enum {
#define STATE(name, text, reader) STATE_##name,
#include "src/call/states.def"
#undef STATE
    STATE_COUNT,
};
enum {
    S_NONE = 0,
#define STATE(name, text, reader) S_##name = 1 << STATE_##name,
#include "src/call/states.def"
#undef STATE
};

// The arguments are as the C function sees them: self comes first, whether the method was bound or
// not, or is an object called through its type's C __call__. The callable is then the unbound one.
typedef PyObject *(*rule_handler)(world *w, const call *c);

// What a callable does to numbers that are kept open: a row of numbers.def.
typedef struct rule_numbers {
    const char *path;
    size_t takes;
    number_op op, second; // NUMBER_OPS: there is no second one
} rule_numbers;

typedef struct rule {
    const char *path; // "list.append", "math.sqrt", "itertools.chain"
    rule_kind kind;
    unsigned first, args, elements; // STRUCT
    rule_gives gives;               // ITER
    rule_writes writes;
    unsigned state;       // S_…: what is read of the process
    rule_handler handler; // HANDLED
    rule_takes takes;     // HANDLED
    // Whether this call goes by the row (not where there is a break or an exception); NULL: all do
    bool (*applies)(world *w, const call *c);
    const struct rule *otherwise; // what counts where `applies` says no; NULL: nothing
    PyObject *extra; // strong: what the handler must know of this very callable; or NULL
    // Of torch's callables: marks that users put on one count more; and a call of the very object
    // guards that it is this object.
    bool weak;
    const char *why; // OPAQUE
    reason reason;   // OPAQUE: REASON_NONE stands for NATIVE_CALL
    // Filled in by rules_setup:
    const struct rule_numbers *numbers; // numbers.def; NULL: open numbers are opened, or as it says
    int number;          // in the table, from 1; 0: of a later room, or another row stands for it
    int line;            // in rules.def
    PyObject *object;    // strong: what the path led to
    PyTypeObject *owner; // methods: the type self must be of; NULL for functions and types
    bool makes;          // a __new__: argument 0 is a class
} rule;

// The table is made by the first stator.compile, not at import: it names modules that few programs
// need.
int rules_setup(void);
// All rows, in the table's order, and how many.
const rule *const *rules_all(size_t *count);
// What a bound C method or slot wrapper is bound to (of a function: its module); borrowed, or NULL.
PyObject *rule_bound_to(PyObject *callable);
// The descriptor to be called with self first in place of a bound method; others are themselves.
PyObject *rule_unbound(const rule *row, PyObject *callable);
// NULL if the callable has no row.
const rule *rule_of(PyObject *callable);
// The same, without asking how the objects of a type are called.
const rule *rule_of_itself(PyObject *callable);
// What is known of what iterating an object of the type gives, by the row of its __iter__.
rule_gives rule_of_iterating(PyTypeObject *type);
// W_NONE, W_SELF, … and the names of a set of states, as rules.def has them without the prefix.
const char *rule_writes_name(rule_writes writes);
PyObject *rule_state_names(unsigned state); // a new tuple of str
// Rows that are not in rules.def: by object, by the name of an object in a module, by the definition
// of a C function, and of all objects of a type. All are kept as long as the process lives.
status rules_add(PyObject *callable, const rule *row);
status rules_add_named(const char *module, const char *name, const rule *row);
status rules_add_definition(PyMethodDef *method, const rule *row);
status rules_add_instances(PyTypeObject *type, const rule *row);
// The row that this call goes by: `row`, or what stands behind it; NULL: none, or with an exception
// or a break.
const rule *rule_applying(world *w, const rule *row, const call *c);

// Calls the callable by its row, whatever its kind: bound C methods are taken apart (their self
// goes through the door), arguments made ready, the call watched. New reference; NULL with an
// exception or a break.
PyObject *rule_call(world *w, const rule *row, const call *c);

// Containers whose elements can be made ready where they are (G_HELD).
bool rule_is_container(PyObject *o);

// Opens a value that must be an exact builtin immutable all the way down; *o is a strong reference.
status rule_open_exact(world *w, const rule *row, PyObject **o);
// Opens the self of an R_FROZEN row.
status rule_open_frozen(world *w, const rule *row, PyObject **o);

// The trampoline through which native code calls `callable` by the interpreter's own call. New
// reference.
PyObject *trampoline_new(world *w, PyObject *callable);
// One whose results are made ready for what native code does to them.
PyObject *trampoline_for(world *w, PyObject *callable, unsigned protocols);
