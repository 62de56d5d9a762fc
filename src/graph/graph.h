// The graph: torch operations in the order in which they were traced, as Python objects that the
// Python side and tests can read. A node's arguments hold nodes, constants, and containers (tuple,
// list, dict, slice) of them.
#pragma once

#include "src/base/status.h"

#include "src/py/py.h"

#include "src/graph/size.h"

typedef enum node_op {
    NODE_PLACEHOLDER,   // target: its name (str)
    NODE_CALL_FUNCTION, // target: the callable
    NODE_CALL_METHOD,   // target: the method's name (str); args[0] is self
    NODE_GET_ATTR,      // target: the attribute's name (str); `example` is its value, such as a
                        // body
    NODE_OUTPUT,        // args[0]: tuple of nodes
} node_op;

// The effects of a call beside its result. A call with effects may not run twice.
typedef enum node_effects {
    EFFECT_WRITES = 1,  // writes to memory that another tensor may share, even one made in the same
                        // graph
    EFFECT_OUTSIDE = 2, // writes to the memory of an input
    EFFECT_RANDOM = 4,  // draws random numbers
    EFFECT_UNKNOWN = 8, // the program's own code, which may do anything
    // Effects that last even if the graph is given up.
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
    int scope;         // the number of its graph: graph.scope
    PyObject *target;  // strong
    PyObject *args;    // strong, tuple
    PyObject *kwargs;  // strong, dict; NULL for none
    PyObject *example; // strong: a value of the same kind (FakeTensor, tuple of them, …), or None
    meta meta;         // if its value is a tensor
    bool is_number;    // its value is an int, float or bool: `value`
    number value;
    PyObject *name;  // strong, str; unique in its graph
    PyObject *first; // strong, or NULL: its name before graph_rename named it
    PyObject *stack; // strong: a trail (trail.h), a tuple of its rows, or None
    // strong: tuple of (id, place, class, call) of the modules whose calls contain the node,
    // outermost first, or None. `call` tells the calls of one module apart.
    PyObject *modules;
    PyObject *custom; // strong: what torch.fx.traceback.annotate says of the node; NULL: nothing
    bool renamed;     // graph_rename has named it
    int effects;      // of node_effects
    int number; // of a call: the number of calls recorded before it, including calls that were
                // taken out
    // The program drops the value before the call of this number; NODE_LIVES: never.
    int dies;
} node;

typedef struct replay replay;

// What a body gives that has these outputs.
typedef enum graph_form {
    FORM_TUPLE,
    FORM_LIST,
    FORM_ONE, // its only output
} graph_form;

typedef struct graph {
    PyObject_HEAD
    // A body is a graph inside another one, see scope.c.
    struct graph *outer; // strong, of a body that is not closed: the graph around it
    int scope;           // 0, or the number of this body in the outermost graph: 1, 2, …
    int bodies;          // of the outermost graph: the number of bodies opened so far
    PyObject *custom;    // strong: what is said of nodes made now; NULL: nothing
    PyObject *lifted;    // strong, of a body: dict of a node of `outer` → its placeholder
    PyObject *stems; // strong, of the outermost graph: dict of an attribute's stem → last number
    replay *program; // owned: the replay of a body that was called
    PyObject *meta; // strong, of a body: dict of what the module which it becomes has in `meta`, or
                    // NULL
    PyObject *nodes;   // strong, list; ends in an output node once closed
    PyObject *sources; // strong, list: for each placeholder the text of its source
    // strong, or NULL: the mode of fakes of which examples can be made later, for nodes that have a
    // meta and no example
    PyObject *fakes;
    PyObject *names;   // strong, set of names in use
    PyObject *targets; // strong, set: targets of placeholders
    PyObject *counts;  // strong, dict of name → the last number that was put behind it
    int inputs;        // placeholders, all at the front
    bool united;       // of a body: placeholders that it does not use stay, see graph_unite
    graph_form form;   // of a body: what a call of it gives
    int calls;         // calls recorded so far, including calls that were taken out
    int effects;       // effects of all calls
    bool closed;
    sizes *sizes; // borrowed from the trace
    // The operations must run as they are, without the backend, which would do something else; see
    // src/torch/literal.c.
    bool literal;
    // strong, or NULL: (save, restore). The operations change state that an error would leave
    // changed: restore(save()) restores it.
    bool gradient; // it is given a gradient, of which only the backward pass knows the strides
    PyObject *keeper;
    // strong, or NULL: (before, undo, copies), of a compiled graph with lasting effects. Each is
    // called with the inputs that the graph writes to (which have EFFECT_OUTSIDE). undo(before())
    // undoes the writes, and returns whether it undid everything.
    PyObject *witness;
    // strong, or NULL: a class of contexts, in one of which the operations run.
    PyObject *context;
} graph;

extern PyTypeObject node_type, graph_type;
extern PyMethodDef graph_methods[]; // of graph_type
int graph_setup(PyObject *module);

graph *graph_new(void);
// Add a node. New references, NULL with an exception. `name` NULL: the name is made from the
// target, as torch.fx does.
node *graph_input(graph *g, PyObject *name, PyObject *source, PyObject *example);
node *graph_call(graph *g, node_op op, PyObject *target, PyObject *args, PyObject *kwargs,
                 PyObject *example, PyObject *stack);
// --- bodies (scope.c) ---

// Opens a body: a graph inside `outer`. Until it is closed, it can use nodes of `outer`, and of
// graphs around that, by graph_lift. New reference.
graph *graph_open_body(graph *outer);
// The graph that a node belongs to: `g` or a graph around it; NULL: the node's body has ended.
graph *graph_of(graph *g, const node *n);
// The node that stands for `n` in `g`: `n` itself, or a placeholder. Each body between the node's
// graph and `g` gets one placeholder for it. Borrowed; NULL with an exception.
node *graph_lift(graph *g, node *n);
// The same if `n` was lifted already; else NULL.
node *graph_lifted(graph *g, node *n);
// Gives two bodies of the same graph the same lifted nodes: those that both use, those of the first
// alone, those of the second alone, each sorted by name. The suffixes are put behind the names of
// the latter.
status graph_unite(graph *first, graph *second, PyObject *first_suffix, PyObject *second_suffix);
// Adds a node that reads an attribute of the module which the graph becomes. The attribute's name
// is the stem with a number behind it. A value that is a graph must be a closed body. New
// reference.
node *graph_attribute(graph *g, PyObject *stem, PyObject *value);

// Sorts placeholders: ranks[i] is the rank of the i-th one. Placeholders of the same rank keep
// their order.
void graph_sort_inputs(graph *g, int *ranks);
// Gives a placeholder another target, and the name that a new placeholder of that target would have.
status graph_retarget(graph *g, node *n, PyObject *target);
// Gives the node this name, or this name with a number.
status graph_rename(graph *g, node *n, PyObject *name);
// Ends the graph; `outputs` is a tuple of nodes. Takes unused placeholders out: `used[i]` (may be
// NULL) says whether the i-th input stayed. Takes unused subscripts out, unless they may fail or a
// failure may need their values. In a body only lifted placeholders are taken out.
status graph_close(graph *g, PyObject *outputs, bool *used);
// The number of nodes that compute something.
Py_ssize_t graph_operations(const graph *g);
PyObject *graph_text(const graph *g); // new str: one line a node
// An attribute of a target (`__name__`), found without running the user's code: new str, or NULL,
// without an exception if there is no such attribute that is a str.
PyObject *graph_target_word(PyObject *target, const char *name);

// Calls `visit` for every node in an argument, at any depth. Stops at the first bad status.
typedef status (*node_visit)(node *n, void *data);
status node_walk(PyObject *argument, node_visit visit, void *data);

static inline bool is_node(PyObject *o) {
    return Py_TYPE(o) == &node_type;
}

// Whether a trace that stopped early has recorded the same first `calls` calls as a longer one. A
// call that only one of them has (unused subscripts are taken out) must have no effects.
bool graph_begins_like(const graph *whole, const graph *start, int calls);

// How far a failed graph came.
typedef struct graph_failure {
    bool failed;
    int number;       // number of the call that raised; -1: not known
    int done;         // effects of the calls before it
    int raised;       // effects of that call
    PyObject *values; // strong: dict of call number → value, for values that lived; NULL if not
                      // known
    PyObject *saved;  // strong, or NULL: the result of the witness's `before`
} graph_failure;

// Replay in C: a flat program made once from a closed graph, for the `eager` backend.
replay *replay_new(const graph *g);
void replay_free(replay *r);
// Runs the operations. A value dies at its last use; after a call with lasting effects, the
// program's own values also live as long as in plain Python. New tuple of outputs, or NULL with an
// exception, which `failure` (may be NULL) describes.
PyObject *replay_run(const replay *r, PyObject *const *inputs, graph_failure *failure);
// Finds the call at which a graph has failed that ran in another way; all values are kept. Calls
// that may do anything (EFFECT_UNKNOWN) do not run, nor calls that need their values: so the first
// of these may be the one that failed. With `stop`, or if it writes, it is taken to be that one.
// False without an exception: no call fails. Else the call's exception is set, or none if the call
// did not run.
bool replay_probe(const replay *r, PyObject *const *inputs, bool stop, graph_failure *failure);
