// What is known of a tensor without its values, and rules that work it out for the result of a
// call. A rule answers as torch would, or says that it does not know.
#pragma once

#include "src/graph/graph.h"

typedef enum meta_answer {
    META_UNKNOWN, // torch is to be asked
    META_TENSOR,  // a new tensor: results[0]
    META_SAME,    // the first argument itself
    META_TENSORS, // a tuple of new tensors; one with -1 dimensions is None
    META_SIZES,   // the sizes of results[0]
    META_STRIDES,
    META_NUMBER,  // an int: `number`
    META_TRUTH,   // a bool: `truth`
    META_NOTHING, // None: the call writes
} meta_answer;

// Whose memory the results of a rule lie in, if they are new tensors.
typedef enum meta_memory {
    META_OWN,   // their own
    META_VIEW,  // perhaps the first argument's, as a view of it
    META_ALIAS, // the same, but several at once, or without the argument's history
    META_NONE,  // the rule gives no tensors
} meta_memory;

enum { META_MOST_ARGS = 25, META_MOST_RESULTS = 16 };

// How a call is written decides what arguments it takes.
typedef enum meta_way { META_FUNCTION, META_METHOD, META_OPERATOR } meta_way;

// How the call is written, and what the caller, who knows torch, can tell rules about torch.
typedef struct meta_context {
    meta_way way;
    bool grad;                                                     // whether grad mode is on
    int32_t (*default_dtype)(void);                                // of floating point
    int32_t (*dtype_of)(PyObject *o);                              // -1: o is no dtype
    bool (*device_of)(PyObject *o, int32_t *type, int32_t *index); // false: o is no device
    bool (*fused_attention)(void); // whether attention may use the CPU's kernel for it
} meta_context;

// A call as a rule sees it.
typedef struct meta_call {
    const meta_context *context;
    sizes *sizes;                   // what is known of sizes
    PyObject *args[META_MOST_ARGS]; // borrowed, by parameter; NULL: not given. Tensors are nodes
    Py_ssize_t given;               // how many of them by position
    PyObject *const *rest;          // borrowed: positional arguments of the starred parameter
    Py_ssize_t rest_count;
    bool spread; // the starred parameter takes numbers one by one
    int data;    // the row's
    int last;    // the row's last parameter
    meta results[META_MOST_RESULTS];
    int count; // of the results, for META_TENSORS
    size number;
    bool truth;
    int effects; // of node_effects: what the call leaves behind
    // Bits of the parameters whose tensors the call writes to. Where the first one is among them and
    // comes back, or nothing does, results[0] is that tensor afterwards.
    uint32_t written;
    meta_memory memory;
} meta_call;

typedef struct meta_rule meta_rule;

// The rule of this name; NULL if there is none. Names are those of torch's functions and methods.
const meta_rule *meta_find(const char *name);
PyObject *meta_names(void); // new tuple of str
// Whether a rule also holds where torch casts the arguments of operations (autocast): it gives
// elements as they are, or is about what a tensor is like.
bool meta_is_without_casts(const meta_rule *r);
// `args` and `kwargs` as a node has them; kwargs may be NULL. Fails only as arithmetic on sizes
// does: sizes_failed(known) says so then.
meta_answer meta_infer(const meta_rule *r, const meta_context *context, sizes *known,
                       PyObject *args, PyObject *kwargs, meta_call *c);
// How large an element of a tensor is, in bytes; 0 if its dtype is not known here.
int64_t meta_element_bytes(const meta *m);
bool meta_dtype_is_complex(int32_t dtype);
// How many elements a tensor has.
size meta_numel(const meta *m);
// Whether a tensor is known to lie in memory row by row, without gaps.
// Images with their channels last, as far as dimensions of more than one element tell.
bool meta_is_perhaps_last(const meta *m);
bool meta_lies_plainly(sizes *known, const meta *m);

// The dtype of a tensor that is made of one of Python's numbers; `floats`: the default dtype.
int32_t meta_number_dtype(number_kind kind, int32_t floats);
