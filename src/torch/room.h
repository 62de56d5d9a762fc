// What the files of this room share, and nobody else uses.
#pragma once

#include "src/call/call.h"

#include "src/torch/torch.h"

typedef enum kind {
#define KIND(id, name) KIND_##id,
#include "src/torch/kinds.def"
#undef KIND
    KIND_COUNT,
} kind;

typedef struct row {
    kind kind;
    PyObject *callable; // strong
    PyObject *extra;    // strong
} row;

// --- facts about this torch, found when it is attached (attach.c) ---

typedef struct torch_facts {
    // objects, all strong
    PyTypeObject *base, *tensor, *parameter, *buffer, *fake; // TensorBase, Tensor, …, FakeTensor
    PyTypeObject *size, *dtype, *device, *layout, *memory_format;
    PyTypeObject *overload, *packet;       // of torch.ops
    PyObject *glue;                        // dict: the functions of stator._torch by name
    PyObject *data_dependent;              // tuple of exception classes
    PyObject *attributes;                  // dict: name of a tensor's getset → what becomes of it
    PyObject *getitem, *setitem, *getattr; // of operator and builtins
    PyObject *binary[32];                  // by the argument of BINARY_OP: functions of operator
    PyObject *compare[6];
    PyObject *strided;     // torch.strided
    PyObject *set_grad;    // torch._C._set_grad_enabled
    PyObject *state_guard; // class
    map rows;              // callable → row *
    // where things lie in memory
    int impl_at;     // of a tensor object: pointer to its TensorImpl
    int keys_at;     // of a TensorImpl: dispatch keys; 0: raw reads are not to be trusted
    int shift;       // what is to be added to the offsets of sizes, dtype and device
    void *undefined; // c10::UndefinedTensorImpl::_singleton
    // functions of libc10 and libtorch_cpu; those that are missing are NULL
    bool (*requires_grad)(const void *impl);
    bool (*inference)(void);
    int64_t (*mode_count)(void);
    int (*functions_disabled)(void);
    int32_t (*get_dim)(void *, int64_t *);
    int32_t (*get_sizes)(void *, int64_t **);
    int32_t (*get_strides)(void *, int64_t **);
    int32_t (*get_dtype)(void *, int32_t *);
    int32_t (*get_device_type)(void *, int32_t *);
    int32_t (*get_device_index)(void *, int32_t *);
    int32_t (*get_layout)(void *, int32_t *);
    int32_t (*get_offset)(void *, int64_t *);
    void *local_keys; // address of the thread-local dispatch key set's accessor, see state.c
} torch_facts;
extern torch_facts facts;
extern const tensor_ops torch_ops;

PyObject *attach(PyObject *module, PyObject *settings);
// A function of the glue, by name; borrowed.
PyObject *glue_function(const char *name);

// torch_record(function, tensors), see stage.c.
PyObject *stage_record(PyObject *module, PyObject *args);

// --- the trace's own part ---

typedef struct input input;

typedef struct torch_trace {
    PyObject *mode;            // strong: FakeTensorMode, or NULL until the first fake
    PyObject *before;          // strong: thread state as it was, once a setter ran
    map standins;              // fake → standin
    VEC(PyObject *) all;       // strong: every stand-in of this trace
    struct alias_group *group; // of all inputs
    void *state;               // borrowed from the guards: what the state guard compares with
    PyObject *asked;    // strong: dict of what was asked, (function, *args) → answer, or NULL
    PyObject *contexts; // strong: list of autocast contexts that are entered, or NULL
} torch_trace;

// The world's, made at first need together with the guard of torch's state. NULL with an exception
// or a break.
torch_trace *trace_of(world *w);

typedef struct quiet {
    void *state;
} quiet;
void quiet_begin(quiet *q);
void quiet_end(quiet *q);
// Whether the exception is none of the trace's (Ctrl-C, no memory) and has to get out.
bool error_stays(world *w);

// --- stand-ins (standin.c) ---

typedef struct standin {
    PyObject_HEAD
    void *base[4];              // as in a tensor object: the undefined tensor, no hooks
    world *world;               // NULL once the trace has ended
    node *node;                 // strong
    PyObject *fake;             // strong
    PyTypeObject *type;         // strong: what type() says
    struct tensor_guard *guard; // of an input: borrowed from the guards, dead once the trace is
} standin;

extern PyTypeObject standin_type;
int standin_setup(void);
static inline bool is_tensor_standin(PyObject *o) {
    return Py_TYPE(o) == &standin_type;
}
// The stand-in of a fake: the one it has, or a new one for this node. New reference.
PyObject *standin_for(world *w, PyObject *fake, node *n);
PyObject *standin_new(world *w, PyObject *fake, node *n, PyTypeObject *type);
// NULL and an exception if its trace has ended.
world *standin_world(PyObject *o);
void standins_sever(torch_trace *t);

// --- inputs (inputs.c) ---

PyObject *input_open(world *w, source *s, PyObject *tensor);
// What a tensor's getset gives, for sources; new reference, or NULL.
PyObject *input_attribute(PyObject *tensor, PyObject *name);
// Storage offsets, or leafness, of all inputs so far matter from now on.
void inputs_guard_offsets(world *w);
status input_guard_leaf(world *w, standin *s);
// Some input is written to: which inputs share memory matters from now on.
void inputs_guard_sharing(world *w);
void alias_group_drop(struct alias_group *group);
// Nothing but raw reads and shims: a tuple of what the guard sees, for tests. New reference.
PyObject *input_facts(PyObject *tensor);

// --- recording (record.c) ---

typedef struct call_args {
    PyObject *const *args;
    size_t given;
    PyObject *keywords; // tuple of names, or NULL
} call_args;

// Runs `callable` on fakes and records a node whose target is `target`. New reference.
PyObject *record_call(world *w, node_op op, PyObject *target, PyObject *callable, call_args a);
// The same for a fixed number of positional arguments.
PyObject *record_function(world *w, PyObject *function, PyObject *const *args, size_t given);
// A node of a setter: no fakes, plain arguments, no value.
node *record_setter(world *w, PyObject *function, PyObject *args);
// Arguments as plain values, all opened; breaks if a stand-in is among them. New references.
PyObject *plain_value(world *w, PyObject *argument);
// A plain value that torch gave, made known to the world where that is needed. New reference.
PyObject *fixed_value(world *w, PyObject *value);

// --- callables and attributes (table.c, attrs.c) ---

int table_fill(PyObject *rows);
int table_add_fields(PyObject *descriptors);
PyObject *table_call(world *w, PyObject *callable, PyObject *const *args, size_t given,
                     PyObject *keywords, bool *handled);
PyObject *attr_of_standin(world *w, PyObject *o, PyObject *name);
int attr_set_standin(world *w, PyObject *o, PyObject *name, PyObject *value);

// --- operators (operators.c) ---

PyObject *operator_binary(world *w, int kind, PyObject *left, PyObject *right);
PyObject *operator_unary(world *w, PyObject *function, PyObject *o);
PyObject *operator_compare(world *w, PyObject *left, PyObject *right, int kind);
PyObject *operator_getitem(world *w, PyObject *o, PyObject *key);
int operator_setitem(world *w, PyObject *o, PyObject *key, PyObject *value);
PyObject *operator_iterate(world *w, PyObject *o);
Py_ssize_t operator_length(world *w, PyObject *o);

// --- torch's state (state.c) ---

status state_guard_add(world *w, torch_trace *t);
PyObject *state_set(world *w, const row *r, call_args a);
PyObject *state_asked(world *w, const row *r, call_args a);
PyObject *autocast_enter(world *w, const row *r, call_args a);
PyObject *autocast_exit(world *w, const row *r, call_args a);
// Whether torch's state is as it was when the trace began.
bool state_unchanged(torch_trace *t);
void state_restore(torch_trace *t);
// Takes switches of grad mode out of the graph that the next one undoes.
status state_tidy(world *w, torch_trace *t);
