// The rule of each C callable: what the callable may do during a trace. Rows are in rules.def. A
// row is found by the underlying C function; the row of a slot wrapper, a __new__ function, a type
// or a builtin of pybind11 by the object; the row of another callable C object by its type's
// __call__.
//
// A STRUCT row speaks of the arguments behind self (or behind the class, of a __new__):
//   first     protocols that native code applies to the first of them, and R_ flags
//   args      to the others
//   elements  to the elements of self and of each argument with P_ITER; or, where a function is
//             given (P_CALL), to the function's results. Elements that cannot be made ready
//             beforehand, because the argument is an iterator, come from a feed (feed.h) if the
//             row says R_FEED; else the call breaks
// P_NONE: native code only moves the argument. The argument may stay a lazy. All other arguments
// are opened and made ready (protocol_open), which breaks for outside objects of C types that are
// not known to be harmless. Self is always opened, and must be inside, immutable or a twin: an
// outside object of a C type (RECORD_OBJECT) breaks, unless the row says R_FROZEN. The keyword
// arguments `key` and `func` are called; other keyword arguments must be immutable builtins, or,
// with R_KEYWORDS, are only moved. The result is a new object, an argument, or an element of an
// argument.
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
    R_ITEMS = 1 << 17,  // self is of the row's type, or of a subclass without items of its own
    R_TEXT = 1 << 18,   // with R_PLAIN: the argument may also be of a subclass of str
    R_SHOWN = 1 << 19,  // the function's error message shows the first argument
    R_FROZEN = 1 << 20, // self may be an outside C object: nothing about it ever changes
    R_FEED = 1 << 21,   // keeps no iterator: each element is made ready when the function takes it
    R_KEYWORDS = 1 << 22, // keyword arguments are only moved
    R_OPEN = 1 << 23,     // the argument is opened, and nothing more
    R_PLAIN = 1 << 24,    // the argument is of a C type, and inside, immutable or a twin
    R_SELF = 1 << 25,     // self is of the row's type itself (a class: is that type)
    R_SPREAD = 1 << 26,   // elements are the arguments of the called function, not its results
    R_ORDERED = 1 << 27,  // the order of self, a set, matters
    R_FEW = 1 << 28,      // the order of all sets matters if more than one element comes out
    R_MOVED = 1 << 29,    // the elements of the first argument are only moved
    R_FLAGS = R_FROZEN | R_FEED | R_KEYWORDS | R_OPEN | R_PLAIN | R_SELF | R_SPREAD | R_ORDERED |
        R_FEW | R_MOVED | R_SHOWN | R_TEXT | R_ITEMS,
};

// What a row says about the elements that an __iter__ gives.
typedef enum rule_gives {
    G_ANYTHING,
    G_HELD, // self holds the elements, which can be made ready there: iterating runs no Python code
    G_TUPLES, // self is an iterator that makes a new tuple for each step
} rule_gives;

// How many arguments a handler takes, self included. A call with another number of arguments does
// not reach the handler (handler_misuse). TAKES_UNSAID: the row forgot to say it.
typedef struct rule_takes {
    unsigned least, most; // by position
    enum { TAKES_UNSAID, TAKES_PLACES, TAKES_NAMES } how;
} rule_takes;

#define MANY UINT_MAX
#define ARGS(least, most) {least, most, TAKES_PLACES} // and no keywords
#define NAMED(least, most) {least, most, TAKES_NAMES} // and keywords, which the handler looks at
#define ANY NAMED(0, MANY)

// The object that the C function itself changes. A guard keeps the identity of an outside object
// that was written to, even where a later write restores it.
typedef enum rule_writes {
    W_UNSAID, // only in a row that forgot to say it
    W_NONE,
    W_SELF,    // self of a method
    W_FIRST,   // the first argument of a function
    W_INSIDE,  // self of a method, which the trace made: the row breaks on an outside object
    W_HANDLER, // self or the first argument; the handler's own operations note the write
} rule_writes;

// The state of the process that the C function reads: a set (states.def).
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

// The arguments are those that the C function gets. For a bound method, and for an object that is
// called through its type's C __call__, self comes first and the callable is the unbound one.
typedef PyObject *(*rule_handler)(world *w, const call *c);

// The operation that a callable does on open numbers: a row of numbers.def.
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
    unsigned state;       // S_…: the state of the process that the callable reads
    rule_handler handler; // HANDLED
    rule_handler behind;  // of a row of torch's: what `handler` leads to where nobody overrides it
    rule_takes takes;     // HANDLED
    // Whether the row is for this call (false also on a break or an exception); NULL: for all calls
    bool (*applies)(world *w, const call *c);
    const struct rule *otherwise; // the row of calls that `applies` declines; NULL: none
    PyObject *extra;              // strong: data of this callable for the handler; or NULL
    // A row of torch's: a mark that a user put on the callable goes before the row, and each call
    // guards the identity of the callable.
    bool weak;
    const char *why; // OPAQUE
    reason reason;   // OPAQUE: REASON_NONE stands for NATIVE_CALL
    // Filled in by rules_setup:
    const struct rule_numbers *numbers; // numbers.def; NULL: open numbers are opened
    int number;          // in the table, from 1; 0: a row of a later room, or a repeated one
    int line;            // in rules.def
    PyObject *object;    // strong: the object at the path
    PyTypeObject *owner; // methods: the type self must be of; NULL for functions and types
    bool makes;          // a __new__: argument 0 is a class
} rule;

// Makes the table. The first stator.compile calls this, not the import, since the table imports
// modules that few programs need.
int rules_setup(void);
// All rows in the order of the table; *count is their number.
const rule *const *rules_all(size_t *count);
// The object that a C method or slot wrapper is bound to (a function: its module). Borrowed, or
// NULL.
PyObject *rule_bound_to(PyObject *callable);
// The descriptor of a bound method, to be called with self first; any other callable itself.
PyObject *rule_unbound(const rule *row, PyObject *callable);
// NULL if the callable has no row.
const rule *rule_of(PyObject *callable);
// The same, but not the row of the type's __call__.
const rule *rule_of_itself(PyObject *callable);
// What the row of the type's __iter__ says about elements.
rule_gives rule_of_iterating(PyTypeObject *type);
// W_NONE, W_SELF, … and the names of a set of states, as rules.def has them without the prefix.
const char *rule_writes_name(rule_writes writes);
PyObject *rule_state_names(unsigned state); // a new tuple of str
// Rows that are not in rules.def: by object, by the name of an object in a module, by the
// definition of a C function, and of all objects of a type. All are kept as long as the process
// lives.
status rules_add(PyObject *callable, const rule *row);
status rules_add_named(const char *module, const char *name, const rule *row);
status rules_add_definition(PyMethodDef *method, const rule *row);
status rules_add_instances(PyTypeObject *type, const rule *row);
// The row for this call: `row`, or the one behind it (`otherwise`). NULL: there is none; or NULL
// with an exception or a break.
const rule *rule_applying(world *w, const rule *row, const call *c);

// Does the call as the row says, for rows of all kinds: takes a bound C method apart (its self goes
// through the door), makes the arguments ready, and checks the native call. New reference; NULL
// with an exception or a break.
PyObject *rule_call(world *w, const rule *row, const call *c);

// Containers whose elements can be made ready where they are (G_HELD).
bool rule_is_container(PyObject *o);

// Opens a value that, with all that it holds, must be of exact builtin immutable types; *o is a
// strong reference.
status rule_open_exact(world *w, const rule *row, PyObject **o);
// Opens the self of an R_FROZEN row.
status rule_open_frozen(world *w, const rule *row, PyObject **o);

// The trampoline through which native code calls `callable` by the interpreter's own call. New
// reference.
PyObject *trampoline_new(world *w, PyObject *callable);
// One whose results are made ready for these protocols of native code.
PyObject *trampoline_for(world *w, PyObject *callable, unsigned protocols);
