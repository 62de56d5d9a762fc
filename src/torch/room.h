// What the files of this room share, and nobody else uses.
#pragma once

#include "src/graph/given.h"
#include "src/graph/meta.h"

#include "src/world/number.h"

#include "src/call/call.h"
#include "src/call/rules.h"
#include "src/call/special.h"

#include "src/torch/torch.h"

// The handlers of its rows.
#define KIND(name, handler, takes) PyObject *handler(world *w, const call *c);
#include "src/torch/kinds.def"
#undef KIND

// --- facts about this torch, found when it is attached (attach.c, version.c) ---

typedef struct torch_facts {
    // objects, all strong
    PyTypeObject *base, *tensor, *parameter, *buffer, *fake; // TensorBase, Tensor, …, FakeTensor
    PyTypeObject *size, *dtype, *device, *layout, *memory_format;
    PyTypeObject *overload, *packet;       // of torch.ops
    PyTypeObject *handle;                  // RemovableHandle
    PyObject *glue;                        // dict: the functions of stator._torch by name
    PyObject *data_dependent;              // tuple of exception classes
    PyObject *attributes;                  // dict: name of a tensor's getset → what becomes of it
    PyObject *getitem, *setitem, *getattr; // of operator and builtins
    PyObject *binary[32];                  // by the argument of BINARY_OP: functions of operator
    PyObject *compare[6];
    PyObject *set_grad;                            // torch._C._set_grad_enabled
    PyObject *increment, *decrement, *clear_cache; // of autocast: how deep, and its cache
    PyObject *module_call;                         // code of nn.Module._call_impl
    PyObject *state_guard;                         // class
    PyObject
        *copying; // frozenset: what gives back its argument, and a copy where AOTAutograd traces
    PyObject *get_default_dtype;   // of torch
    PyObject *get_flash_enabled;   // torch._C._get_flash_sdp_enabled
    PyObject *dtypes[64];          // by ScalarType, or NULL
    PyObject *device_names[32];    // by DeviceType: str, or NULL
    PyObject *key_words;           // list of (dispatch keys, word) for texts, or NULL
    map rules;                     // callable → const meta_rule *
    map devices;                   // type and index → device, strong
    uint64_t odd_keys, usual_keys; // dispatch keys of tensors that rules do not know; of all others
    uint64_t dense_keys;           // of those that have sizes and strides
    bool rules_on;                 // what they rely on was found
    bool check_rules;              // each is compared with what torch says; for tests
    // where things lie in memory
    int impl_at;     // of a tensor object: pointer to its TensorImpl
    int keys_at;     // of a TensorImpl: dispatch keys; 0: raw reads are not to be trusted
    int shift;       // what is to be added to the offsets of sizes, dtype and device
    void *undefined; // c10::UndefinedTensorImpl::_singleton
    // functions of libc10 and libtorch_cpu; those that are missing are NULL
    bool (*requires_grad)(const void *impl);
    bool (*is_leaf)(const void *tensor); // a C++ at::TensorBase
    bool (*inference)(void);
    bool (*grad_enabled)(void);
    int64_t (*mode_count)(void);
    bool (*no_node_hooks)(void);
    int32_t (*get_dim)(void *, int64_t *);
    int32_t (*get_sizes)(void *, int64_t **);
    int32_t (*get_strides)(void *, int64_t **);
    int32_t (*get_dtype)(void *, int32_t *);
    int32_t (*get_device_type)(void *, int32_t *);
    int32_t (*get_device_index)(void *, int32_t *);
    int32_t (*get_offset)(void *, int64_t *);
    void *local_keys; // the library that has the thread-local dispatch keys, see version.c
} torch_facts;
extern torch_facts facts;
extern const tensor_ops torch_ops;
extern const standin_kind tensor_kind;

// --- torch's C types (types.c) ---

extern const slots_row types_slots[]; // ends in an empty row
type_manner type_manner_of(PyTypeObject *t);

PyObject *attach(PyObject *module, PyObject *settings);
// A function of the glue, by name; borrowed.
PyObject *glue_function(const char *name);

// --- what knows how torch is made (version.c) ---

// Finds C++ functions and the layout of tensors. -1 with an exception that says what is missing.
int version_find(PyObject *c10, PyObject *cpu, PyObject *samples);
PyObject *version_state(void);
// This thread's included and excluded dispatch keys, as their difference to what is usual.
const uint64_t *local_keys(void);
// Whether torch.autograd.graph.node_creation_hook is on: it would see nodes of fakes.
bool node_hooks(void);

// What a guard looks at. The arrays are borrowed from the tensor.
typedef struct seen {
    uint64_t keys;
    int64_t dims;
    const int64_t *sizes, *strides;
    int32_t dtype, device_type, device_index;
    bool requires_grad;
} seen;
bool read_tensor(PyObject *tensor, seen *s);
bool read_leaf(PyObject *tensor);
int64_t read_offset(PyObject *tensor);

// Whose memory, and where it lies: empty for tensors without any.
typedef struct extent {
    const void *storage;
    uintptr_t begin, end;
} extent;
extent read_extent(PyObject *tensor);
// Nothing but raw reads and shims: a tuple of what the guard sees. New reference.
PyObject *input_facts(PyObject *tensor);
int32_t rule_dtype(PyObject *o); // for rules: -1, it is none
bool rule_device(PyObject *o, int32_t *type, int32_t *index);

// torch_record(function, tensors), see stage.c.
PyObject *stage_record(PyObject *module, PyObject *args);
// torch_ask_rule(callable, args, kwargs), likewise.
PyObject *stage_ask_rule(PyObject *module, PyObject *args);

// --- the trace's own part ---

typedef struct input input;

// An autograd.Function is being looked at, see functions.c.
typedef struct look {
    uint64_t since;      // when the instruction began that calls it
    uint64_t writes;     // to what is outside, before it
    Py_ssize_t contexts; // of autocast
    uint32_t moved;      // how many stand-ins were moved before
    bool stateless;      // no state was set before
} look;

// A stand-in that an operation has given back, and the node it stood for before.
typedef struct moved {
    struct standin *standin; // borrowed from the trace
    node *was;               // strong
} moved;

// An operation that torch has not run, or not with all its history.
typedef struct late_call {
    node *n;            // borrowed from the graph
    PyObject *callable; // strong
    bool grad;          // whether grad mode was on
    bool by_rule;       // what it gives is a rule's word
} late_call;

typedef struct torch_trace {
    PyObject *mode;            // strong: FakeTensorMode, or NULL until the first fake
    PyObject *before;          // strong: thread state as it was, once a setter ran
    bool late;                 // fakes are made where they are needed, see fakes.c
    VEC(late_call) calls;      // as long as that is so
    map owners;                // node → standin
    map standins;              // fake → standin
    map looked;                // source → rank of the input that it may become
    VEC(PyObject *) all;       // strong: every stand-in of this trace
    VEC(PyObject *) living;    // borrowed: those of calls that the program has not let go yet
    map numbers;               // expression → node of the graph that computes it
    given given;               // the symbols that torch was told of, see symbolic.c
    PyObject *runner;          // strong: what runs operations on symbolic sizes, or NULL
    bool checking;             // fakes are made to check rules: no number is settled for them
    int pending;               // effects of the call that is about to be recorded
    bool unlike;               // see inputs_changed
    bool odd_strides;          // strides of what was computed may not be those that fakes say
    struct alias_group *group; // of all inputs
    uint64_t keys[2];          // the thread's dispatch keys when it began
    void *state;               // borrowed from the guards: what the state guard compares with
    PyObject *asked;     // strong: dict of what was asked, (function, *args) → answer, or NULL
    VEC(look) looks;     // innermost last
    VEC(moved) moved;    // while there are looks
    uint64_t shared;     // since when the first one was that gave back its argument's memory; or 0
    uint64_t effects;    // how many of the world's writes were to tensors, or set torch's state
    uint64_t lasting;    // when the last call was recorded that leaves something behind; 0: never
    uint64_t written;    // when an input was last written to; 0: never
    uint64_t asserted;   // when the first assertion became a node, see operators.c; 0: never
    PyObject *contexts;  // strong: list of autocast contexts entered or left, see state.c; or NULL
    PyObject *inference; // strong: list of inference modes entered and not left, or NULL
    const graph *inference_scope; // where the outermost of them was entered, or NULL
    int inference_effects;        // of the calls in that scope since then
    PyObject *device;             // strong: the default device that is on, or NULL
    struct settings *settings;    // what the program has set for all threads, or NULL
} torch_trace;

// The world's, made at first need together with the guard of torch's state. NULL with an exception
// or a break.
torch_trace *trace_of(world *w);

// Python code of torch's runs: its frames are no part of the trace, and signals wait, since it
// leaves modes on when it is interrupted.
typedef struct quiet {
    world *world; // the trace that goes on afterwards, or NULL
    unsigned long held;
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
    node *node;                 // strong: what uses refer to
    node *earlier;              // strong: what they referred to before the last operation, or NULL
    node *input;                // strong: the placeholder, or NULL
    PyObject *outside;          // of an input: the tensor, which the world keeps
    PyTypeObject *type;         // strong: what type() says
    PyObject *attrs;            // strong: dict of what was set on one made inside, or NULL
    int rank;                   // of an input: among the inputs
    int dies;                   // see node
    uint64_t born;              // when it was made, by the trace's clock
    struct tensor_guard *guard; // of an input: borrowed from the guards, dead once the trace is
} standin;

extern PyTypeObject standin_type;
int standin_setup(void);
static inline bool is_tensor_standin(PyObject *o) {
    return Py_TYPE(o) == &standin_type;
}
// The stand-in of a fake: the one it has, or a new one for this node. New reference.
PyObject *standin_for(world *w, PyObject *fake, node *n);
PyObject *standin_new(world *w, node *n, PyTypeObject *type);
// The stand-in of the node that an argument is, which an operation gave back. New reference.
PyObject *standin_again(world *w, node *argument, node *n);
// What uses of a stand-in refer to where calls are recorded now. New reference.
node *standin_node(world *w, standin *s);
// What an operation gave back, and was one of its arguments, was dropped at once.
void standin_dropped(world *w, standin *s);
void standins_sever(torch_trace *t);
// Of a tensor from outside that no operation has given back since.
static inline bool is_as_it_came(const standin *s) {
    return s->input && s->node == s->input;
}
// One as traces leave them behind. New reference.
PyObject *standin_ended(void);
// Notes which of them the program has let go before it makes the call of this number.
void standins_sweep(torch_trace *t, int number);
// The trace is over: each call's value lives as long as what stands for it did.
void standins_date(const torch_trace *t, const graph *g);

// --- inputs (inputs.c) ---

PyObject *int_tuple(const int64_t *items, int64_t count); // new

PyObject *input_open(world *w, source *s, PyObject *tensor);
// The text of a place, as Dynamo has it: globals are G, free variables are locals. New str.
PyObject *input_name(world *w, const source *s);
// What a tensor's getset gives, for sources; new reference, or NULL.
PyObject *input_attribute(PyObject *tensor, PyObject *name);
bool input_sizes(PyObject *tensor, int64_t *dims, const int64_t **sizes, const int64_t **strides);
// Storage offsets, or leafness, of all inputs so far matter from now on.
void inputs_guard_offsets(world *w);
status input_guard_leaf(world *w, standin *s);
// Some input is written to: which inputs share memory matters from now on.
void inputs_guard_sharing(world *w);
// Some input is written to, and two have one memory but not one storage.
bool inputs_overlap(const torch_trace *t);
// Whether the operations so far give some input other sizes, strides or requires_grad: its guard
// does not pass once they have run.
bool inputs_changed(const world *w);
// A tensor counts as looked at from now on, though it is not opened yet.
status input_looked(world *w, source *s);
// The graph's placeholders get their final order.
status inputs_sort(world *w);
void alias_group_drop(struct alias_group *group);

// --- what tensors are like, and their fakes (fakes.c) ---

// dims is -1 if there is no telling.
void meta_of_tensor(PyObject *tensor, meta *m);
void meta_of_fake(PyObject *fake, meta *m);
// What is known of a node's tensor as it is now; NULL if its fake is to be asked.
const meta *meta_known(const world *w, const node *n);
PyObject *dtype_object(int32_t dtype);  // borrowed
PyObject *device_object(const meta *m); // borrowed
// New: of plain numbers, so the sizes are settled.
PyObject *size_tuple(sizes *known, const size *items, int count);
// What the program sees of sizes: new tuple, new torch.Size. Open numbers stay open in it.
PyObject *strides_object(world *w, const size *items, int count);
PyObject *sizes_object(world *w, const size *items, int count);
status fakes_mode(torch_trace *t); // there is one
// The fake of a node, made now if there is none yet; borrowed. NULL with a break or an exception.
PyObject *fake_of(world *w, node *n);
// A node was added: it may have to be run once more.
status fakes_note(world *w, node *n, PyObject *callable, bool by_rule);
// History matters from here on: all operations so far are run on torch's own fakes.
status fakes_settle(world *w);
// The trace ends: backends find an example at each node.
status fakes_complete(world *w);
// symbolic.c: what torch says of a call for all sizes that arguments may have: a tensor or a tuple of
// several in a *whole, a type: a new reference. `args` and `kwargs` as a node has them. Unknown, perhaps with an exception: the sizes of this call have to do.
meta_answer symbolic_infer(world *w, PyObject *callable, PyObject *args, PyObject *kwargs,
                           meta_call *m, PyObject **whole);
void fakes_drop(torch_trace *t);

// --- numbers that are left open (numbers.c) ---

// An open number as an argument of a call: the node that gives it, made where it is first used, or
// a plain number. New reference.
PyObject *number_argument(world *w, number n);
// The value of a node that is a number, which is settled. New reference.
PyObject *number_value(world *w, const node *n);
// The placeholder that a size of an input became stands before the tensor; ranks are as in
// inputs_sort.
int number_rank(world *w, const node *n);
// Opened, but for a number that is left open; borrowed. NULL with a break or an exception.
PyObject *opened_or_number(world *w, PyObject *o);

// --- recording (record.c) ---

// Whether an attribute is True; -1 with an exception.
int flag_of(PyObject *o, const char *name);
// Nodes within arguments replaced by their fakes; new reference.
PyObject *fakes_in(world *w, PyObject *argument);
// An operation on fakes raised: a break, or what has to get out.
void fake_failed(world *w, PyObject *target);
PyObject *run_fakes(torch_trace *t, PyObject *callable, PyObject *args, PyObject *kwargs);

// Runs the callable on fakes and records a node whose target is `target`. New reference.
PyObject *record_call(world *w, node_op op, PyObject *target, const call *c);
// The same for a fixed number of positional arguments.
PyObject *record_function(world *w, PyObject *function, PyObject *const *args, size_t given);
// What the rule of a callable says of a call whose tensors are nodes; for tests of rules alone.
meta_answer record_ask(sizes *known, PyObject *callable, PyObject *args, PyObject *kwargs,
                       meta_call *m);
// A node of a setter: no fakes, plain arguments, no value.
node *record_setter(world *w, PyObject *function, PyObject *args);
// Notes whose modules' calls the node is part of.
status record_modules(world *w, node *n);
// Arguments as plain values, all opened; breaks if a stand-in is among them. New references.
PyObject *plain_value(world *w, PyObject *argument);
// A plain value that torch gave, made known to the world where that is needed. New reference.
PyObject *fixed_value(world *w, PyObject *value);

// --- callables and attributes (table.c, attrs.c) ---

int table_fill(PyObject *rows);
int table_add_fields(PyObject *descriptors);
PyObject *attr_of_standin(world *w, PyObject *o, PyObject *name);
int attr_set_standin(world *w, PyObject *o, PyObject *name, PyObject *value);

// --- operators (operators.c) ---

PyObject *operator_binary(world *w, int kind, PyObject *left, PyObject *right);
PyObject *operator_unary(world *w, const char *name, PyObject *o); // a function of `operator`
PyObject *operator_compare(world *w, PyObject *left, PyObject *right, int kind);
PyObject *operator_getitem(world *w, PyObject *o, PyObject *key);
int operator_setitem(world *w, PyObject *o, PyObject *key, PyObject *value);
PyObject *operator_iterate(world *w, PyObject *o);
Py_ssize_t operator_length(world *w, PyObject *o); // settled, for native code
PyObject *operator_len(world *w, PyObject *o);     // as len() gives it; new reference
int operator_check(world *w, PyObject *o, PyObject *message);
// An assertion's graph can be run twice, or the trace is done again and breaks before it.
status operator_checked(world *w, const torch_trace *t);

// --- places in autograd's graph (hooks.c) ---

// The tensors that torch.autograd.grad is asked for must be outside.
status hook_derive(world *w, const call *c);
// A tensor is asked for as a place that gradients come through. ST_BREAK if a graph that is
// compiled as a whole would hide it.
status hook_place(world *w, standin *s);
// Nobody has looked at what the held-back hooks will change.
status hooks_end(world *w);

// --- autograd.Function (functions.c) ---

// What is traced from now on is thrown away by function_apply, or the trace breaks before the
// instruction that calls it.
status function_look(world *w);
// No Function is still looked at when the trace has come to its end: one raised, and the exception
// was caught. Then the trace is done again, and breaks before it.
status function_end(world *w);
// None of the graph's outputs is what a Function gave back of its arguments' memory, if the graph
// is compiled as a whole.
status function_outputs(world *w, node *const *nodes, uint32_t count);

// --- torch's state (state.c) ---

status state_guard_add(world *w, torch_trace *t);
bool state_is_plain(void); // no autocast, no inference mode: rules hold
status state_set_grad(bool on);
// What the question is answered by now; the first answer is guarded. Borrowed from the trace.
PyObject *state_answer(world *w, PyObject *question);
// The trace itself has changed it.
status state_answers(world *w, PyObject *question, PyObject *answer);
// Each of a tuple of questions, since the answers matter to an operation.
status state_matters(world *w, PyObject *questions);
// The state is about to be set: it is put back at the end.
status state_save(torch_trace *t);
// Whether torch's state is as it was when the trace began.
bool state_unchanged(torch_trace *t);
// The end of a trace that has set the state: the graph gets nodes that put it back, and the world
// what sets it for whoever comes after.
status state_leave(world *w, torch_trace *t);
// As autocast.__exit__ begins: one context less, and the cache goes with the last. New None.
PyObject *state_leave_nesting(void);
// How many autocast contexts are entered. New int.
PyObject *state_depth(void);
// The state as the glue's save_state gave it. New None.
PyObject *state_put_back(PyObject *state);
void state_restore(torch_trace *t);
// Takes off what an interrupt has left on. After state_restore.
void state_mend(torch_trace *t);
// Takes switches of grad mode out of the graph that the next one undoes.
status state_tidy(world *w, torch_trace *t);

// --- what all threads share (settings.c) ---

// Around torch's own code: what the program has set holds in it.
void settings_on(void);
void settings_off(void);
// The graph leaves them as it found them; the list gets what sets them behind it.
status settings_leave(world *w, torch_trace *t, PyObject *switches);
// New tuple of (setter, getter).
PyObject *settings_pairs(const torch_trace *t);
void settings_free(torch_trace *t);

// --- the default device (device.c) ---

// The default device, if one is on and no mode of torch functions of another kind. New reference,
// or NULL without an exception.
PyObject *device_now(void);
// Whether that is what is on; NULL: nothing is.
bool device_is(PyObject *expected);
// A node, on the default device where the caller names none.
PyObject *device_call(world *w, const call *c);
