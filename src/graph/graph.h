// The graph: torch operations in the order they were traced, as Python objects that glue and tests
// can read. A node's arguments hold nodes, constants, and containers (tuple, list, dict, slice) of
// them.
#pragma once

#include "src/base/status.h"

#include "src/py/py.h"

#include "src/graph/size.h"

typedef enum node_op {
    NODE_PLACEHOLDER,   // target: its name (str)
    NODE_CALL_FUNCTION, // target: the callable
    NODE_CALL_METHOD,   // target: the method's name (str); args[0] is self
    NODE_GET_ATTR,      // target: the attribute's name (str); `example` is its value: a body …
    NODE_OUTPUT,        // args[0]: tuple of nodes
} node_op;

// What a call leaves behind, beside its result: why it may not be run twice.
typedef enum node_effects {
    EFFECT_WRITES = 1,  // to memory that something else knows, be it made in the same graph
    EFFECT_OUTSIDE = 2, // to the memory of an input
    EFFECT_RANDOM = 4,  // draws random numbers
    EFFECT_UNKNOWN = 8, // the program's own code, which may do anything
    // What is still there when the graph is given up.
    EFFECTS_LASTING = EFFECT_OUTSIDE | EFFECT_RANDOM | EFFECT_UNKNOWN,
} node_effects;

enum { NODE_LIVES = INT_MAX };

enum { META_MOST_DIMS = 8 };

// A strided tensor without its values.
typedef struct meta {
    int32_t dtype; // torch's ScalarType
    int32_t device_type, device_index;
    bool requires_grad;
    int dims; // -1: nothing is known
    size sizes[META_MOST_DIMS], strides[META_MOST_DIMS];
} meta;

typedef struct node {
    PyObject_HEAD
    node_op op;
    int index;         // in the graph
    int scope;         // the number of the graph, see there
    PyObject *target;  // strong
    PyObject *args;    // strong, tuple
    PyObject *kwargs;  // strong, dict; NULL for none
    PyObject *example; // strong: a value like its own (FakeTensor, tuple of them …), or None
    meta meta;         // of a tensor
    bool is_number;    // its value is an int, float or bool: `value`
    number value;
    PyObject *name;  // strong, str; unique in its graph
    PyObject *stack; // strong: tuple of (filename, line, function name), outermost first, or None
    // strong: tuple of (id, place, class) of the modules whose calls it is part of, outermost
    // first, or None
    PyObject *modules;
    bool renamed; // by graph_rename
    int effects;  // of node_effects
    int number;   // of a call: how many were recorded before it, with those that are gone
    // The program lets the value go before it makes the call of this number; NODE_LIVES: never.
    int dies;
} node;

typedef struct replay replay;

typedef struct graph {
    PyObject_HEAD
    // A body is a graph inside another one, see scope.c.
    struct graph *outer; // strong, of a body that is not closed: the graph that it is inside of
    int scope;           // 0, or which body this is of the outermost graph: 1, 2, …
    int bodies;          // of the outermost graph: how many were opened
    PyObject *lifted;    // strong, of a body: dict of a node of `outer` → its placeholder
    PyObject *stems;   // strong, of the outermost graph: dict of an attribute's stem → last number
    replay *program;   // owned: of a body that was called
    PyObject *nodes;   // strong, list; ends in an output node once closed
    PyObject *sources; // strong, list: for each placeholder the text of its source
    PyObject *names;   // strong, set of names in use
    PyObject *targets; // strong, set: those of placeholders
    PyObject *counts;  // strong, dict: the last number that was put behind a name
    int inputs;        // placeholders, all at the front
    int calls;         // recorded so far, with those that are gone
    int effects;       // of all of them
    bool closed;
    sizes *sizes; // borrowed from the trace
    // Inputs share memory in a way that backends do not look for, and it is written to: the
    // operations are to be run as they are, whatever the backend.
    bool literal;
    // strong, or NULL: (save, restore). The operations change state that an error would leave
    // changed: restore(save()) puts it back.
    PyObject *keeper;
    // strong, or NULL: (before, undo, copies), of a compiled graph that leaves something behind,
    // each called with the inputs it writes to (which have EFFECT_OUTSIDE). undo(before()) puts
    // back what was there, and says whether that is all.
    PyObject *witness;
} graph;

extern PyTypeObject node_type, graph_type;
extern PyMethodDef graph_methods[]; // of graph_type
int graph_setup(PyObject *module);

graph *graph_new(void);
// New references, NULL with an exception. `name` NULL: made from the target, as torch.fx does.
node *graph_input(graph *g, PyObject *name, PyObject *source, PyObject *example);
node *graph_call(graph *g, node_op op, PyObject *target, PyObject *args, PyObject *kwargs,
                 PyObject *example, PyObject *stack);
// --- bodies (scope.c) ---

// A graph inside `outer`. It takes nodes of `outer`, and of graphs around that, by graph_lift,
// until it is closed. New reference.
graph *graph_open_body(graph *outer);
// The graph that a node belongs to: `g` or one around it; NULL: a body that has ended.
graph *graph_of(graph *g, const node *n);
// What stands for a node in `g`: the node itself, or a placeholder. Each body between the node's
// graph and `g` gets one placeholder for it. Borrowed; NULL with an exception.
node *graph_lift(graph *g, node *n);
// The same if it was lifted already; else NULL.
node *graph_lifted(graph *g, node *n);
// A node that reads an attribute of the module which the graph becomes: its name is the stem with a
// number behind it. A value that is a graph is a closed body. New reference.
node *graph_attribute(graph *g, PyObject *stem, PyObject *value);

// Puts placeholders in order: ranks[i] is the i-th one's. Those of one rank stay as they are.
void graph_sort_inputs(graph *g, int *ranks);
// The node is called like this from now on, or like this with a number.
status graph_rename(graph *g, node *n, PyObject *name);
// What comes out is given out; `outputs` is a tuple of nodes. Placeholders that nothing uses are
// taken out: `used[i]` (may be NULL) says whether the i-th input stayed. So are subscripts nobody
// uses, unless they may fail or a failure may ask for them. Of a body only lifted placeholders are
// taken out.
status graph_close(graph *g, PyObject *outputs, bool *used);
// Number of nodes that compute something.
Py_ssize_t graph_operations(const graph *g);
PyObject *graph_text(const graph *g); // new str: one line a node
// An attribute of a target (`__name__`), found without running code of the user's: new str, or
// NULL, without an exception if it has none that is a str.
PyObject *graph_target_word(PyObject *target, const char *name);

// Calls `visit` for every node in an argument, however deep. Stops at the first bad status.
typedef status (*node_visit)(node *n, void *data);
status node_walk(PyObject *argument, node_visit visit, void *data);

static inline bool is_node(PyObject *o) {
    return Py_TYPE(o) == &node_type;
}

// Whether a trace that stopped early has recorded the same calls as one that went on: its first
// `calls`. What one of them lacks (subscripts that nobody used are taken out) has no effects.
bool graph_begins_like(const graph *whole, const graph *start, int calls);

// How far a graph came that failed.
typedef struct graph_failure {
    bool failed;
    int number;       // of the call that raised; -1: not known
    int done;         // effects of the calls before it
    int raised;       // its own
    PyObject *values; // strong: dict of call number → value, what lived; NULL if not known
    PyObject *saved;  // strong, or NULL: what the graph's witness has kept
} graph_failure;

// Replay in C: a flat program made once from a closed graph, for the `eager` backend.
replay *replay_new(const graph *g);
void replay_free(replay *r);
// Runs the operations. A value dies at its last use; once a call has left something behind, the
// program's own values also live as long as they do in plain Python. New tuple of outputs, or NULL
// with an exception, of which `failure` (may be NULL) tells.
PyObject *replay_run(const replay *r, PyObject *const *inputs, graph_failure *failure);
// Looks for the call that fails, of a graph that has failed otherwise; all values are kept. What
// may do anything (EFFECT_UNKNOWN) is not run, nor what needs its value: so the first of these
// calls may be the one. With `stop`, or if it writes, that is taken for granted. False, without an
// exception: none fails. Else its exception is set, or none if it was not run.
bool replay_probe(const replay *r, PyObject *const *inputs, bool stop, graph_failure *failure);
