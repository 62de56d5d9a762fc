// Types and functions that only the files of this room share.
#pragma once

#include "src/graph/given.h"
#include "src/graph/meta.h"

#include "src/world/number.h"

#include "src/call/call.h"
#include "src/call/rules.h"
#include "src/call/special.h"

#include "src/torch/torch.h"

// The handlers of the room's rows.
#define KIND(name, handler, takes, asks) PyObject *handler(world *w, const call *c);
#include "src/torch/kinds.def"
#undef KIND

// --- facts about this torch, found when it is attached (attach.c, version.c) ---

typedef struct torch_facts {
    // objects, all strong
    PyTypeObject *base, *tensor, *parameter, *buffer, *fake; // TensorBase, Tensor, …, FakeTensor
    PyTypeObject *size, *dtype, *device, *layout, *memory_format;
    PyTypeObject *overload, *packet; // of torch.ops
    PyObject *operator_homes;        // tuple: the classes of torch.ops and of its namespaces
    PyTypeObject *handle;            // RemovableHandle
    PyTypeObject *no_subclasses,
        *no_functions;                     // DisableTorchFunctionSubclass, DisableTorchFunction
    PyObject *disabled;                    // torch._C._disabled_torch_function_impl
    PyObject *alias;                       // torch.ops.aten.alias.default
    PyObject *as_subclass, *detach;        // methods of TensorBase
    PyTypeObject *module;                  // torch.nn.Module
    PyObject *glue;                        // dict: the functions of stator._torch by name
    PyObject *data_dependent;              // tuple of exception classes
    PyObject *attributes;                  // dict: name of a tensor's getset → what becomes of it
    PyObject *getitem, *setitem, *getattr; // of operator and builtins
    PyObject *unbind;                      // torch.unbind
    PyObject *select;                      // torch.select
    PyObject *binary[32];                  // by the argument of BINARY_OP: functions of operator
    PyObject *compare[6];
    PyObject *set_grad;                            // torch._C._set_grad_enabled
    PyObject *increment, *decrement, *clear_cache; // of autocast: how deep, and its cache
    PyObject *skips_one_hop;     // whether nobody is asked of the next call that would ask; or None
    PyObject *module_call;       // code of nn.Module._call_impl
    PyObject *region_call;       // code of what is interpreted for a nested_compile_region
    PyObject *state_guard;       // class
    PyObject *copying;           // frozenset: functions that return their argument, to which later
                                 // uses refer (some return a copy when AOTAutograd traces them)
    PyObject *get_default_dtype; // of torch
    PyObject *get_flash_enabled; // torch._C._get_flash_sdp_enabled
    PyObject *dtypes[64];        // by ScalarType, or NULL
    PyObject *device_names[32];  // by DeviceType: str, or NULL
    PyObject *key_words;         // list of (dispatch keys, word) for texts, or NULL
    map rules;                   // callable → const meta_rule *
    map devices;                 // type and index → device, strong
    uint64_t odd_keys, usual_keys; // dispatch keys of tensors that rules do not know; of all others
    uint64_t dense_keys;           // of those that have sizes and strides
    uint64_t autocast_keys;        // of the thread, that autocast takes away or puts there
    uint64_t wrapping_keys;        // of the thread, that have no say in sizes, strides and dtypes
    uint64_t inference_keys[2];    // the thread's in inference mode, as local_keys has them
    uint64_t python_keys;          // of those whose class has __torch_dispatch__
    uint64_t level_keys;           // of those that are wrapped for a level, see levels.h
    bool rules_on;                 // all facts that rules need were found
    bool check_rules;              // each rule's answer is compared with torch's; for tests
    // where things lie in memory
    int impl_at;     // of a tensor object: pointer to its TensorImpl
    int keys_at;     // of a TensorImpl: dispatch keys; 0: raw reads of tensors do not work
    int shift;       // is added to the offsets of sizes, dtype and device
    int requires_at; // of an AutogradMeta: whether gradients are wanted; 0: it is not known where
    void *undefined; // c10::UndefinedTensorImpl::_singleton
    // functions of libc10 and libtorch_cpu; those that are missing are NULL
    bool (*requires_grad)(const void *impl);
    bool (*is_leaf)(const void *tensor); // a C++ at::TensorBase
    bool (*inference)(void);
    bool (*grad_enabled)(void);
    int64_t (*mode_count)(void);
    void *const *(*tracing_state)(void); // a std::shared_ptr: empty if torch.jit does not trace
    // Or NULL; used if `quick` is true: what they tell was compared with torch's own answers.
    void (*dual_level)(void *result, uint64_t level);
    void *const *(*saved_hooks)(void);
    bool quick;
    bool (*skip_next)(void);
    bool flags; // flags_read() tells all that torch's guard of its state compares
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
extern const standin_kind array_kind;

// --- torch's C types (types.c) ---

extern const slots_row types_slots[]; // ends in an empty row
type_manner type_manner_of(PyTypeObject *t);

PyObject *attach(PyObject *module, PyObject *settings);
// Reads whether forward-mode differentiation is on, and whether hooks see saved tensors, from
// torch's memory. False: there is no telling.
bool quick_state(bool *dual, bool *saved);
// The state that torch's guard compares, but for the dispatch keys of the thread. Padding is 0.
typedef struct torch_flags {
    int32_t threads, precision;
    uint16_t dtype;
    int8_t autocast[10]; // dtype by device, while autocast is on; else 0
    uint8_t disabled, half, bfloat16;
    bool caches, grad, deterministic, warns;
} torch_flags;
// By calls of torch's getters. False: they are not there.
bool flags_read(torch_flags *now);
// The same by the names that torch's guard has for them, to be compared with what that tells; None
// if the getters are not there. New reference.
PyObject *flags_dict(void);
// A function of the glue, by name; borrowed.
PyObject *glue_function(const char *name);

// --- torch's C++ functions and memory layout (version.c) ---

// Finds C++ functions and the layout of tensors. -1 with an exception that says what is missing.
int version_find(PyObject *c10, PyObject *cpu, PyObject *samples);
PyObject *version_state(void);
// This thread's included and excluded dispatch keys, as the difference to the usual ones.
const uint64_t *local_keys(void);
// Whether torch.autograd.graph.node_creation_hook is on: it would see nodes of fakes.
bool node_hooks(void);

// The properties of a tensor that a guard compares. The arrays are borrowed from the tensor.
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

// The storage of a tensor, and the addresses of its elements; empty for a tensor without memory.
typedef struct extent {
    const void *storage;
    uintptr_t begin, end;
} extent;
extent read_extent(PyObject *tensor);
// Adds the words that decide what read_tensor gives, for a tensor whose type is proved; false if
// there are none. The same of read_offset, after that.
bool tensor_words(struct words *w, PyObject *tensor);
void offset_words(struct words *w, PyObject *tensor);
// A tuple of the properties that a guard compares, by raw reads and shims only. New reference.
PyObject *input_facts(PyObject *tensor);
int32_t rule_dtype(PyObject *o); // for rules; -1: `o` is no dtype
bool rule_device(PyObject *o, int32_t *type, int32_t *index);

// torch_record(function, tensors), see stage.c.
PyObject *stage_record(PyObject *module, PyObject *args);
// torch_ask_rule(callable, args, kwargs), likewise.
PyObject *stage_ask_rule(PyObject *module, PyObject *args);

// --- the trace's own part ---

typedef struct input input;

// An autograd.Function is being looked at, see functions.c.
typedef struct look {
    uint64_t since;      // when the instruction that calls the Function began
    uint64_t writes;     // how many writes to outside objects came before it
    Py_ssize_t contexts; // how many autocast contexts were entered or left before it
    uint32_t moved;      // how many stand-ins were moved before it
    bool stateless;      // no state was set before it
} look;

// A stand-in that an operation returned (it was an argument), and the node that it stood for
// before.
typedef struct moved {
    struct standin *standin; // borrowed from the trace
    node *was;               // strong
} moved;

// A call of an operator with bodies that is being traced, see higher.c.
typedef struct applied {
    const struct higher *row;
    uint64_t since;      // when the instruction began that calls the operator
    VEC(graph *) bodies; // strong
    VEC(PyObject *)
    outputs; // strong: for each body the list of the stand-ins that it gives, or the
             // tuple of nodes that its output node has
    // of the body that is open:
    bool open;
    moment *before;        // owned
    PyObject *state;       // strong: torch's state, or NULL if the trace had set none
    bool grad;             // whether grad mode was on
    Py_ssize_t contexts;   // how many autocast contexts were entered or left before it
    uint32_t moved;        // how many stand-ins were moved before it
    uint64_t asked_before; // `gradient_asked`
} applied;

// A body that has ended: stand-ins that live on stand for nothing that is ever computed.
typedef struct ended_body {
    int scope;
    uint64_t since;
} ended_body;

// Python code behind a node, see bodies.c.
typedef struct body {
    PyObject *name;   // borrowed from the arena
    PyObject *places; // borrowed from the arena: tuple of what it may touch
    uint64_t since;   // when the instruction began that calls it
} body;

// When the instruction began that runs now, or the call that is only tried.
uint64_t instruction_began(const world *w);

// An operation that was not run on fakes, or on fakes without history.
typedef struct late_call {
    node *n;            // borrowed from the graph
    PyObject *callable; // strong
    bool grad;          // whether grad mode was on
    bool needs_grad;    // whether its result required a gradient, before later writes to it
    bool by_rule;       // a rule gave its result
} late_call;

// What torch's fakes gave for a call that did nothing else: one new tensor, see alike.c.
typedef struct answered {
    PyObject *callable; // borrowed from the trace's calls
    const node *n;      // borrowed from the graph
    meta result;
    uint64_t print; // of what the operands were like
    bool grad;      // whether grad mode was on
} answered;

// A number that a call has given which depends on nothing but a tensor's elements (`item()`).
typedef struct known_value {
    PyObject *callable; // borrowed from the rules
    const node *of;     // borrowed from the graph
    uint64_t effects;   // of the trace, at that time
    number value;
} known_value;

// A symbol that is the size of what an operation has given.
typedef struct unbacked_size {
    const source *place;
    node *of; // borrowed from the graph
    int dim;
} unbacked_size;

// A level of a function transform that the trace has entered, see levels.h.
typedef struct level {
    PyObject *kind; // borrowed from its row: str
    long number;    // torch's
    uint32_t outer; // the level around it: its place among all, from 1; 0: none
    int scope;      // of the graph in which it was entered
    uint64_t since; // when the instruction began that calls the outermost transform
    bool on, wraps; // not left yet; tensors are wrapped for it
    bool batches;   // vmap's
} level;

typedef struct levels {
    VEC(level) all;   // of the trace, in the order of entering
    uint32_t top;     // the innermost one that is on: its place, from 1; 0: none
    uint64_t since;   // of the outermost one that is on, or of a setting that was changed
    uint64_t trial;   // the trace's before the outermost level was entered
    int effects;      // of the calls since then
    PyObject *before; // strong: what was on when the first level was entered, or NULL
} levels;

// A call of a module that is under way.
typedef struct module_run {
    const struct run *run;
    uint64_t started; // when, since the next call may be at the same address
    PyObject *all;    // strong: what nodes say of it and of the calls around it
} module_run;

// Where the memory of an input lies.
typedef struct member {
    extent now;  // its memory in the current pass
    int first;   // the first input that had the same storage
    bool shared; // other inputs had the same storage
} member;

// A guard pass notes here where the memory of each input lies; the guard of an input compares it
// with those of earlier inputs. Written only while the GIL is held and a pass runs.
typedef struct alias_group {
    int references;
    bool matters;     // an input is written to: inputs must share memory as when they were traced
    bool overlaps;    // two inputs share memory, but not a storage
    bool passed;      // the last pass reached the last input
    bool moved;       // an input has other memory than in the last pass
    VEC(member) each; // by input
} alias_group;

typedef struct torch_trace {
    PyObject *mode;              // strong: FakeTensorMode, or NULL until the first fake
    PyObject *before;            // strong: the thread's state before the first setter, or NULL
    bool late;                   // fakes are made only where they are needed, see fakes.c
    VEC(late_call) calls;        // operations so far, while `late`
    bool switched;               // torch's state has changed since, other than grad mode
    int outer_numbers;           // nodes of numbers are being made, all in the outermost graph
    bool bodied;                 // a body was recorded while `late`: what is in it has no fakes
    bool left_inference;         // the program was in inference mode, and is not any more
    VEC(module_run) modules;     // of the last node, outermost first
    map owners;                  // node → standin
    map standins;                // fake → standin
    map looked;                  // source → rank of the input that it may become
    VEC(PyObject *) all;         // strong: every stand-in of this trace
    VEC(PyObject *) living;      // borrowed: results of calls that the program still holds
    map numbers;                 // expression → node of the graph that computes it
    given given;                 // the symbols that torch knows, see symbolic.c
    PyObject *runner;            // strong: runs operations on symbolic sizes; or NULL
    VEC(unbacked_size) unbacked; // sizes of results that only the graph knows
    VEC(known_value) values;     // numbers that only the graph knows
    VEC(answered) answered;      // by fakes
    bool checking;               // fakes are made only to check rules: they settle no number
    int pending;                 // effects of the call that is about to be recorded
    bool unlike;                 // see inputs_changed
    bool odd_strides;            // computed tensors may have other strides than their fakes
    bool wrote;                  // a write was recorded while fakes are late
    bool wrote_anywhere;         // one of these may have been to any input
    bool counted;                // the program asks how often a tensor was written to
    alias_group *group;          // of all inputs
    uint64_t keys[2];            // the thread's dispatch keys when the trace began
    void *state;                 // borrowed from the guards: the data of the state guard
    PyObject *asked;             // strong: dict of questions, (function, *args) → answer, or NULL
    VEC(look) looks;             // innermost last
    VEC(applied) applied;        // calls of operators with bodies, likewise
    VEC(ended_body) ended;
    VEC(moved) moved;        // while a body is open
    uint64_t shared;         // when a Function first returned memory of its argument; 0: never
    uint64_t effects;        // how many of the world's writes were to tensors, or set torch's state
    uint64_t lasting;        // when the last call with a lasting effect was recorded; 0: never
    uint64_t gradient_asked; // how often the program asked whether gradients are recorded
    uint64_t written;        // when an input was last written to; 0: never
    uint64_t leaf;           // when a tensor was first made that requires a gradient; 0: never
    bool derived;            // a backward pass is in the graph
    uint64_t asserted;       // when the first assertion became a node, see operators.c; 0: never
    PyObject
        *contexts; // strong: list of autocast contexts entered or left, see contexts.c; or NULL
    PyObject *inference;          // strong: list of inference modes entered and not left, or NULL
    const graph *inference_scope; // the graph in which the outermost of them was entered, or NULL
    int inference_effects;        // effects of the calls in that graph since then
    PyObject *device;             // strong: the default device that is on, or NULL
    struct settings *settings;    // what the program has set for all threads, or NULL
    VEC(body) bodies;             // that write to something outside
    struct overrides *overrides;  // see overrides.h; NULL: nobody has __torch_function__ so far
    levels levels;                // of function transforms
    int composites;               // how many inputs are composites, see composite.c
    int holders;                  // composites that are being looked into
    VEC(record *) within;         // they, and what they hold
    map classes;                  // class of composites → what the glue says of its code
    PyObject *index_mode;         // strong: the TransformGetItemToIndex that is on, or NULL
    uint64_t index_since;         // when it was entered
    bool indexes;                 // a node of the graph turns it on by itself
} torch_trace;

// The torch part of a trace. The first call makes it, and the guard of torch's state. NULL with an
// exception or a break.
torch_trace *trace_of(world *w);

// Python code of torch's runs between quiet_begin and quiet_end: its frames are no part of the
// trace, and signals wait, since torch leaves modes on when a signal interrupts it.
typedef struct quiet {
    world *world; // the trace that goes on afterwards, or NULL
    unsigned long held;
} quiet;
void quiet_begin(quiet *q);
void quiet_end(quiet *q);
// Whether the exception (Ctrl-C, no memory) must leave the trace.
bool error_stays(world *w);

// --- stand-ins (standin.c) ---

typedef struct standin {
    PyObject_HEAD
    void *base[4];              // as in a tensor object: the undefined tensor, no hooks
    world *world;               // NULL once the trace has ended
    node *node;                 // strong: the node that uses of the tensor refer to
    node *earlier;              // strong: the node before the last operation returned it, or NULL
    node *input;                // strong: the placeholder, or NULL
    PyObject *outside;          // of an input: the tensor, which the world keeps
    PyTypeObject *type;         // strong: the result of type()
    PyObject *attrs;            // strong: dict of attributes set on a tensor made inside, or NULL
    int rank;                   // of an input: its place among the inputs
    uint32_t level;             // the level that it is wrapped for: its place, from 1; 0: none
    int dies;                   // see node
    uint64_t born;              // when it was made, by the trace's clock
    uint64_t since;             // when the instruction began that made it
    struct tensor_guard *guard; // of an input: borrowed from the guards, dead once the trace is
    // Borrowed from the trace: the tensor whose memory this one lies in, perhaps itself. NULL: not
    // known. The other three are of such a tensor.
    struct standin *memory;
    bool dressed; // made inside, and `type` is put on where it leaves the trace
    bool viewed;  // another tensor may lie in it
    bool mixed;   // one of these does not share its history, or may not be written to
    bool written; // while fakes are late
} standin;

extern PyTypeObject standin_type;
int standin_setup(void);
static inline bool is_tensor_standin(PyObject *o) {
    return Py_TYPE(o) == &standin_type;
}
// The stand-in of a fake, or, if the fake has none, a new one for this node. New reference.
PyObject *standin_for(world *w, PyObject *fake, node *n);
// A node loses its fake. Another fake may get the same address, and stands for something else.
void standin_forget_fake(torch_trace *t, node *n);
PyObject *standin_new(world *w, node *n, PyTypeObject *type);
// The stand-in of `argument`, which the operation `n` returned. New reference.
PyObject *standin_again(world *w, node *argument, node *n);
// The node of a stand-in in the graph or body that is being recorded. New reference.
node *standin_node(world *w, standin *s);
// The program dropped the result of an operation at once; the result was one of its arguments.
void standin_dropped(world *w, standin *s);
void standins_sever(torch_trace *t);
// Whether it stands for a tensor from outside that no operation has returned since.
static inline bool is_as_it_came(const standin *s) {
    return s->input && s->node == s->input;
}
// A stand-in of a trace that has ended. New reference.
PyObject *standin_ended(void);
// Notes which stand-ins the program has let go before the call with this number.
void standins_sweep(torch_trace *t, int number);
// At the end of the trace: the value of each call lives as long as its stand-in did.
void standins_date(const torch_trace *t, const graph *g);

// --- inputs (inputs.c) ---

PyObject *int_tuple(const int64_t *items, int64_t count); // new

PyObject *input_open(world *w, source *s, PyObject *tensor);
// The text of a place, as Dynamo has it: globals are G, free variables are locals. New str.
PyObject *input_name(world *w, source *s);
// The value of a tensor's getset, for sources; new reference, or NULL.
PyObject *input_attribute(PyObject *tensor, PyObject *name);
bool input_sizes(PyObject *tensor, int64_t *dims, const int64_t **sizes, const int64_t **strides);
// From now on guards compare the storage offsets of all inputs so far; the leafness of one.
void inputs_guard_offsets(world *w);
status input_guard_leaf(world *w, standin *s);
// Breaks if a tensor from outside has hooks; from now on guards check that it has none.
status input_guard_hooks(world *w, standin *s);
// An input is written to: from now on guards compare which inputs share memory.
void inputs_guard_sharing(world *w);
// Whether an input is written to, and two inputs share memory but not a storage.
bool inputs_overlap(const torch_trace *t, const graph *g);
// The sizes of inputs that share memory which is written to are settled: AOTAutograd makes such
// inputs from one tensor, whose sizes are no symbols of the graph's.
void inputs_settle_shared(world *w, const torch_trace *t);
// Whether an input shares its storage with another one, and one of the inputs is written to.
bool input_is_shared(const torch_trace *t, const standin *s);
// Whether the operations so far change sizes, strides or requires_grad of an input: its guard does
// not pass once they have run.
bool inputs_changed(const world *w);
bool inputs_resized(const world *w); // one has another number of elements now
// A tensor counts as looked at from now on, though it is not opened yet.
status input_looked(world *w, source *s);
// Whether the register of a place says when the program first looked at it.
bool register_tells(const source *s);
// Puts the graph's placeholders into their final order.
status inputs_sort(world *w);

// --- which inputs share memory (sharing.c) ---

alias_group *alias_group_of(torch_trace *t); // of the trace's inputs; NULL with an exception
void alias_group_drop(alias_group *g);
status alias_group_add(alias_group *g, extent e);
// Whether input `i` shares memory with earlier inputs as when it was traced; asked if it matters.
bool alias_group_check(alias_group *g, int i, PyObject *tensor);

// --- whose memory tensors lie in (memory.c) ---

// What of a tensor's memory may be written to where a gradient is recorded.
typedef enum memory_kind {
    MEMORY_SHARED, // an input's, or not known
    MEMORY_FAMILY, // made inside; all tensors that lie in it are views of each other
    MEMORY_ALONE,  // made inside, and no other tensor lies in it
} memory_kind;
memory_kind memory_of(const torch_trace *t, const node *n);
// A new tensor has memory of its own; it may lie in that of `of`. `plainly`: it is a view of it that
// autograd knows as such.
void memory_own(standin *s);
void memory_share(const torch_trace *t, standin *s, const node *of, bool plainly);
// What is made of these arguments may share their memory.
void memory_may_share(torch_trace *t, PyObject *args, PyObject *kwargs);
// A call writes to an argument: its effects, of node_effects.
int memory_write(torch_trace *t, const node *n);
// The write has made it require a gradient.
void memory_needs_grad(torch_trace *t, const node *n);
// Whether an input's memory was written to while fakes are late.
bool memory_is_written(const torch_trace *t, const standin *input);
// Whether one of the inputs that are marked as written to has several elements in one place.
bool memory_spread_is_written(const torch_trace *t);
// Whether inputs share memory in a way that AOTAutograd does not know.
bool memory_is_shared_oddly(const torch_trace *t, const graph *g);
// Whether a call of this target gives a tensor other sizes or strides in place.
bool memory_is_reshaped(PyObject *target);
// Whether an input of the graph requires a gradient, and it is recorded.
bool memory_has_grad(const graph *g);
// Whether the graph does so to an input, and writes to inputs or records a gradient, too.
bool memory_reshaped_is_written(const graph *g);

// --- graphs that no backend gets (literal.c) ---

bool graph_is_literal(const torch_trace *t, const graph *g);
// Whether one of the outputs lies in the memory of an input for which input_is_shared. -1 with an
// exception.
int memory_escapes(world *w, node *const *outputs, uint32_t count);

// --- metas of tensors, and fakes (fakes.c) ---

// dims is -1 if the tensor's properties cannot be read.
void meta_of_tensor(PyObject *tensor, meta *m);
void meta_of_fake(PyObject *fake, meta *m);
// The current meta of a node's tensor; NULL if only its fake can tell.
const meta *meta_known(const world *w, const node *n);
void meta_settle(sizes *known, const meta *m);
PyObject *dtype_object(int32_t dtype);  // borrowed
PyObject *device_object(const meta *m); // borrowed
// A new tuple of plain numbers; settles the sizes.
PyObject *size_tuple(sizes *known, const size *items, int count);
// Strides as the program sees them (new tuple), sizes (new torch.Size). Open numbers stay open.
PyObject *strides_object(world *w, const size *items, int count);
PyObject *sizes_object(world *w, const size *items, int count);
status fakes_mode(world *w, torch_trace *t); // makes the FakeTensorMode, if there is none yet
// The fake of a node, made now if there is none yet; borrowed. NULL with a break or an exception.
PyObject *fake_of(world *w, node *n);
// To be called for each new node: fakes_settle may have to run it again.
status fakes_note(world *w, node *n, PyObject *callable, bool by_rule);
// Runs all operations so far on torch's own fakes, because history matters from now on. Breaks, and
// the trace is done again with history from its start, if torch's state has changed meanwhile.
status fakes_settle(world *w);
// At the end of the trace: gives each node an example, for backends, or lets graph.fakes make it
// when somebody asks.
status fakes_complete(world *w);
// Of a node, for Python: what such an example is made of.
PyObject *fakes_layout(PyObject *module, PyObject *o);
void fakes_drop(torch_trace *t);

// --- by torch, for all sizes (symbolic.c) ---

// What torch says of a call for all sizes that its arguments may have.
typedef struct symbolic {
    PyObject *answer;  // strong: what the others are borrowed from
    PyObject *whole;   // type of what holds the results; None: there is one result, or none
    PyObject *results; // list
    PyObject *written; // list of (node, whether it requires a gradient now)
    int effects;       // other than writes
    bool is_number;    // the call gives `number`, and no tensors
    number number;
    struct {
        number symbol; // that only the graph knows
        int of, dim;   // the result whose size it is; -1: it is the call's number
    } fresh[META_MOST_RESULTS];
    int fresh_count;
    VEC(number) checks; // what the graph has to check
} symbolic;

// When torch is asked.
typedef enum symbolic_why {
    SYMBOLIC_OPEN,   // if a number is open
    SYMBOLIC_WRITES, // the call writes: else the whole trace would have to run on fakes
    SYMBOLIC_VALUES, // the call wants values of tensors that only the graph will know
} symbolic_why;

// One result.
typedef struct symbolic_result {
    meta meta;
    bool none;    // no tensor: None
    node *same;   // borrowed: the argument that comes back; NULL: a new tensor
    node *base;   // borrowed: the argument whose memory a new tensor shares, or NULL
    bool own;     // a new tensor has memory of its own, which may be written to
    bool plainly; // see memory_share
} symbolic_result;

// `args` and `kwargs` are as a node has them. False, perhaps with an exception: the caller uses this
// call's sizes, and `s` holds nothing.
bool symbolic_infer(world *w, PyObject *callable, PyObject *args, PyObject *kwargs,
                    symbolic_why why, symbolic *s);
void symbolic_clear(symbolic *s);
bool symbolic_take(torch_trace *t, const symbolic *s, Py_ssize_t i, symbolic_result *r);

// --- what the graph checks (asserts.c) ---

// The graph checks a bool, which then holds; it is unbacked, or known.
status record_check(world *w, number truth);

// --- open numbers (numbers.c) ---

// A number as an argument of a call: the node of an open number, which its first use makes, or a
// plain number. New reference.
PyObject *number_argument(world *w, number n);
// Settles a node that is a number, and gives its value. New reference.
PyObject *number_value(world *w, const node *n);
// A node's value is the unbacked symbol.
status number_of_node(world *w, node *n, number symbol);
// Where a symbol is found that is the size of a result; NULL: it is none.
const unbacked_size *unbacked_size_of(const torch_trace *t, number symbol);
// The function that computes the operation in a graph of torch's own Dynamo. Borrowed; NULL: none.
PyObject *number_function(number_op op, number a, number b);
// The node that computes an unbacked number; borrowed. NULL with a break or an exception.
node *number_node(world *w, number n);
// item() of a stand-in; new reference.
PyObject *value_of_tensor(world *w, PyObject *o);
// The rank (inputs_sort) of a placeholder that is a number: the size of an input stands before the
// input.
int number_rank(world *w, const node *n);
// Opens `o`, unless it is an open number; borrowed. NULL with a break or an exception.
PyObject *opened_or_number(world *w, PyObject *o);

// --- arguments of nodes (operands.c) ---

// A call's arguments, as its node has them.
typedef struct operands {
    PyObject *args, *kwargs; // strong: tuple; dict, or NULL
} operands;

status operands_of(world *w, const call *c, operands *to);
void operands_clear(operands *of);
// An argument as a node has it; new reference.
PyObject *operand_convert(world *w, PyObject *argument);
// Whether the value stands in a node's arguments as it is, and needs no look inside.
bool is_plain_value(PyObject *value);
// The argument with fakes in the place of nodes; new reference.
PyObject *fakes_in(world *w, PyObject *argument);
// An argument, opened, as a plain value; breaks if it holds a stand-in. New reference.
PyObject *plain_value(world *w, PyObject *argument);
// An object of torch's that stays as it is, noted in the world as one from outside. New reference.
PyObject *fixed_object(world *w, PyObject *o);
// A plain value of torch's, noted in the world where needed. New reference.
PyObject *fixed_value(world *w, PyObject *value);

// Behind a call: whether a kernel may have laid its result out otherwise than fakes say (fakes.c).
status fakes_note_strides(world *w, PyObject *callable, const operands *given);
status fakes_note_order(world *w, const operands *given);

// --- the same again (alike.c) ---

// Behind a call that was run on fakes without history: keeps what it gave.
status alike_note(world *w, PyObject *fake, const operands *given);
// What torch said of a call with operands like these; NULL: nothing.
const meta *alike_find(const world *w, PyObject *callable, const operands *given);

// --- recording (record.c) ---

// Whether an attribute is True; -1 with an exception.
int flag_of(PyObject *o, const char *name);
// An operation on fakes raised: makes the exception a break, or leaves one that must leave the
// trace.
void fake_failed(world *w, PyObject *target);
PyObject *run_fakes(world *w, torch_trace *t, PyObject *callable, PyObject *args, PyObject *kwargs);

// Runs the callable on fakes and records a node whose target is `target`. New reference.
PyObject *record_call(world *w, node_op op, PyObject *target, const call *c);
// The same for arguments that are a node's already.
PyObject *record_operands(world *w, PyObject *target, PyObject *callable, const operands *given);
// The same for a fixed number of positional arguments.
PyObject *record_function(world *w, PyObject *function, PyObject *const *args, size_t given);
// A node of a call that gives nothing and may fail; new reference.
node *record_fallible(world *w, PyObject *function, PyObject *args);
// The same of a method; `name` is interned.
node *record_method(world *w, PyObject *name, PyObject *args);
// A node of a call whose arguments are a node's already, and whose value is known; new reference.
node *record_known(world *w, PyObject *function, PyObject *args, PyObject *kwargs,
                   PyObject *example);
// A node that takes an item out of what a call gives; new reference.
node *record_item(world *w, node *whole, Py_ssize_t i, PyObject *example);
// The answer of a callable's rule to a call whose tensors are nodes; only for tests of rules.
meta_answer record_ask(sizes *known, PyObject *callable, PyObject *args, PyObject *kwargs,
                       meta_call *m);
// Adds the node of a setter: it has plain arguments and no value, and is not run on fakes.
node *record_setter(world *w, PyObject *function, PyObject *args);
// The same with keywords (dict, or NULL). As in Dynamo's graphs, the node says of no line that it
// comes from there.
node *record_switch(world *w, PyObject *function, PyObject *args, PyObject *kwargs);

// --- whose operation it is (module_calls.c) ---

// Notes the modules whose calls the node is part of.
status record_modules(world *w, node *n);
void modules_cut(torch_trace *t, uint32_t count); // forgets all modules but the outermost `count`

// --- what operations do beside their results (effects.c) ---

void effects_add(world *w, int effects); // of the call that comes next
status effects_note(world *w);           // those of a run on fakes, which the glue has noted
// Whether the call that comes next has failed when the graph was run: then the trace ends here.
bool effects_stop(world *w);
// Whether no operation may fail here, because what was done so far could not be undone: then the
// trace ends here.
bool effects_forbid_failure(world *w);

// --- callables and attributes (table.c, attrs.c) ---

int table_fill(PyObject *rows);
int table_add(PyObject *rows); // to a table that was filled
// Calls another function with the same arguments: Python, which is interpreted.
PyObject *call_other(world *w, PyObject *function, const call *c);
int table_add_fields(PyObject *descriptors);
PyObject *attr_of_standin(world *w, PyObject *o, PyObject *name);
// What the class of a stand-in has under a name; as type_lookup.
PyObject *attr_of_class(world *w, PyTypeObject *type, PyObject *name, PyObject **raw);
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
// Checks that a graph with an assertion can be run twice; else the trace is done again, and breaks
// before the assertion.
status operator_checked(world *w, const torch_trace *t);

// --- backward passes in the graph (gradients.c) ---

// A call of torch.autograd.grad or Tensor.backward. New reference.
PyObject *gradients_begin(world *w, const call *c);
// Checks that no output of a graph that is compiled as a whole needs what a backward pass has used.
status gradients_outputs(world *w, node *const *nodes, uint32_t count);

// --- places in autograd's graph (hooks.c) ---

// Checks that the tensors that torch.autograd.grad derives by are from outside; else ST_BREAK.
status hook_derive(world *w, const call *c);
// To be called where the program needs a tensor's place in autograd's graph. ST_BREAK if a graph
// that is compiled as a whole would hide the place.
status hook_place(world *w, standin *s);
// Checks that the program did not look at the dicts that held-back hooks will change; else
// ST_BREAK.
status hooks_end(world *w);
// The trace is done: nothing may have written to a tensor that is logged behind the writes.
status logging_end(world *w);

// --- Python code behind nodes (bodies.c) ---

// A callable with Python code that will run when the graph does is about to become a node. Breaks
// if that code may see or undo what is held back. `faked`: it runs on fakes, too.
status body_enters(world *w, PyObject *callable, bool faked);
// What a node holds for good, which is guarded: a plain value by value; a class, a function or
// another object from outside by identity; tuples of such. New reference.
PyObject *operand_kept(world *w, PyObject *o);
// Whether an argument is a dataclass or a namedtuple: the node gets what is in it. 1, 0, -1.
int nonstrict_takes(world *w, const call *c);
// A call of a function that nonstrict_trace has marked. New reference.
PyObject *nonstrict_begin(world *w, const call *c);
// The same for the code of a class with __torch_dispatch__, which runs in each operation on its
// instances.
status body_enters_class(world *w, PyTypeObject *class);
// The trace has not read or written what such code writes; else the trace is done again, and breaks
// before it.
status bodies_end(world *w);

// --- arrays of numpy's (arrays.c) ---

int arrays_setup(void);
bool is_array_standin(PyObject *o);
bool arrays_are(PyObject *o); // an array that is no stand-in
PyObject *arrays_open(world *w, source *s, PyObject *array);
PyObject *arrays_call(world *w, const call *c);
// A tensor over the memory of an array; new reference, or NULL without an exception.
PyObject *arrays_tensor(PyObject *array);

// --- tensors whose class has __torch_dispatch__ (composite.c) ---

// Whether a tensor, real or an example, is of such a class; fakes are not.
bool is_composite(PyObject *o);
// Whether it is a class of such tensors, which says what they hold.
bool is_composite_class(PyObject *o);
// Calls such a class: a node.
PyObject *composite_make(world *w, const call *c);
// Whether an operation on fakes has given it: all tensors that it holds are fakes of the trace.
bool is_composite_of_fakes(const torch_trace *t, PyObject *o);
// Checks that such a tensor from outside can be traced; else ST_BREAK. From then on fakes have
// history.
status composite_check(world *w, PyObject *tensor);
// Guards all that it holds.
status composite_look(world *w, record *r);
// An operation is about to be recorded, and runs the code of its operands' classes. ST_BREAK if that
// code may see or undo what is held back.
status composites_enter(world *w, const operands *given);
// Whether the graph writes to such an input, or to what one holds.
bool composites_written(const torch_trace *t);
// An attribute of an instance that the trace has made; `descriptor`: of its class, or NULL. New
// reference; NULL without an exception if there is none.
PyObject *composite_attribute(world *w, standin *s, PyObject *name, PyObject *descriptor);
// An attribute of such a tensor from outside is read: ST_BREAK if an operation may have changed it.
status composite_read(world *w, const standin *s);
// ST_BREAK if it is such a tensor, of which this cannot be traced.
status composite_refuse(world *w, const standin *s, const char *what);

// --- autograd.Function (functions.c) ---

// A call of `apply` of a class that allow_in_graph has marked: one node, and nobody looks into it.
PyObject *function_allowed(world *w, const call *c);
// Begins a look at an autograd.Function. function_apply throws away the nodes that follow, or the
// trace breaks before the instruction that calls it.
status function_look(world *w);
// Checks that no look is still on at the end of the trace. (A Function raised, and the program
// caught the exception.) Else the trace is done again, and breaks before the Function.
status function_end(world *w);
// Checks that, in a graph that is compiled as a whole, no output has memory that a Function got as
// an argument and returned.
status function_outputs(world *w, node *const *nodes, uint32_t count);

// --- tensors of a graph that require gradients of their own (leaves.c) ---

// Whether a call with these keywords makes one.
bool leaf_is_made(PyObject *kwargs);
void leaf_note(world *w); // the instruction that runs makes one
// Checks that, in a graph that is compiled as a whole, no output has the history of such a tensor.
status leaf_outputs(world *w, node *const *nodes, uint32_t count);

// --- operators with bodies (higher.c) ---

// To be called for a stand-in of a body that has ended. Always a break, which is before the
// operator.
void higher_escaped(world *w, const node *n);
// Whether a body is open in which subscripts are as in TransformGetItemToIndex.
bool higher_indexes(const torch_trace *t);
// Checks that no body is still open at the end of the trace.
status higher_end(world *w);
void higher_free(torch_trace *t);

// --- subscripts by tensors of no dimensions (index.c) ---

// A subscript where TransformGetItemToIndex is on, or in a body that will run under it. False: it is
// an ordinary one. True: *result, or NULL with an exception or a break.
bool index_get(world *w, PyObject *o, PyObject *key, PyObject **result);
// Takes the mode, if it is that one and no other is on. False: not taken, perhaps with a break.
bool index_enter(world *w, PyObject *mode);
// The mode that is on and is left by this; new reference. NULL: none is.
PyObject *index_leave(torch_trace *t);
// An operator is called that turns the mode on when the graph runs. ST_BREAK if the graph runs while
// torch asks no modes.
status index_begin(world *w, torch_trace *t);
// ST_BREAK if torch's modes cannot be kept from being asked, because of one of these.
status index_allows(world *w, const torch_trace *t);
// At the end of the trace: ST_BREAK if the mode is not left.
status index_end(world *w, const torch_trace *t);

// Whether torch asks nobody of the next call of this thread that would ask.
bool state_skips_hop(void);
// --- methods that give a tensor other sizes (reshape.c) ---

// Whether what a call of such a method makes of `n`, its first argument, is known for all sizes.
bool reshape_ask(world *w, PyObject *target, const operands *given, const node *n, meta *m);

// --- torch's state (state.c) ---

status state_guard_add(world *w, torch_trace *t);
bool state_is_usual(void);  // but for autocast, inference mode, grad mode, and a kernel's
bool state_has_rules(void); // the same, and no autocast: rules hold
// Whether operations on tensors that require gradients give such tensors.
bool state_records_gradients(void);
// Whether a view of a tensor that requires a gradient requires one, without grad mode, too.
bool state_has_views(void);
bool state_ignores(uint64_t keys); // whether some of these dispatch keys are excluded
status state_set_grad(bool on);
// The current answer to a question; the first answer is guarded. Borrowed from the trace.
PyObject *state_answer(world *w, PyObject *question);
// The trace itself has changed the answer.
status state_answers(world *w, PyObject *question, PyObject *answer);
// Asks each of a tuple of questions, since an operation depends on the answers.
status state_matters(world *w, PyObject *questions);
// Guards the answer to a call (function, *args).
status state_guard_answer(world *w, PyObject *call, PyObject *answer);
// The trace's dict of questions, (function, *args) → answer; borrowed, or NULL.
PyObject *state_asked_so_far(world *w);
// What the glue's save_state gives; new reference.
PyObject *state_set_now(void);
// Saves the state before a setter runs; the end of the trace puts it back.
status state_save(torch_trace *t);
// Whether torch's state is as it was when the trace began.
bool state_unchanged(torch_trace *t);
// At the end of a trace that has set the state: gives the graph nodes that put the state back, and
// the world the switches that set the state for the code behind the trace.
status state_leave(world *w, torch_trace *t);
// The first steps of autocast.__exit__: one context fewer; the last one clears the cache. New None.
PyObject *state_leave_nesting(void);
// How many autocast contexts are entered. New int.
PyObject *state_depth(void);
// Puts the state back that the glue's save_state gave. New None.
PyObject *state_put_back(PyObject *state);
void state_restore(torch_trace *t);
// Takes off modes that an interrupt has left on. To be called after state_restore.
void state_mend(torch_trace *t);
// Removes a switch of grad mode from the graph if the next switch undoes it.
status state_tidy(world *w, torch_trace *t);

// --- autocast and inference mode (contexts.c) ---

// At the end of a trace: ST_BREAK if inference mode is on, and the trace is done again and breaks
// before the mode is entered.
status inference_left(world *w, torch_trace *t);
// Adds nodes that leave, or return to, the autocast contexts that the trace entered or left.
status autocast_leave_all(world *w, torch_trace *t);

// --- what all threads share (settings.c) ---

// To be called around torch's own code, in which the settings of the program hold.
void settings_on(void);
void settings_off(void);
// Adds nodes that put the settings back; the list gets the calls that set them behind the graph.
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

int32_t default_dtype(void);

// --- data of tensors (data.c) ---

// torch.tensor and its kin: the same, with numbers in the place of tensors of one number in lists
// (`torch.tensor([n, t])`), if the graph may have such numbers.
PyObject *data_call(world *w, const call *c, PyObject *data);
