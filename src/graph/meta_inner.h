// What the files of meta rules share, and nobody else uses.
#pragma once

#include "src/graph/meta.h"

// torch's ScalarType, as far as rules know it.
enum dtype {
    DTYPE_UINT8 = 0,
    DTYPE_INT8 = 1,
    DTYPE_INT16 = 2,
    DTYPE_INT32 = 3,
    DTYPE_INT64 = 4,
    DTYPE_HALF = 5,
    DTYPE_FLOAT = 6,
    DTYPE_DOUBLE = 7,
    DTYPE_COMPLEX_HALF = 8, // which no rule knows
    DTYPE_COMPLEX_FLOAT = 9,
    DTYPE_COMPLEX_DOUBLE = 10,
    DTYPE_BOOL = 11,
    DTYPE_BFLOAT16 = 15,
    DTYPE_NONE = -1,
};

static inline bool dtype_is_float(int32_t d) {
    return (d >= DTYPE_HALF && d <= DTYPE_DOUBLE) || d == DTYPE_BFLOAT16;
}
static inline bool dtype_is_complex(int32_t d) {
    return d == DTYPE_COMPLEX_FLOAT || d == DTYPE_COMPLEX_DOUBLE;
}
static inline bool dtype_is_integer(int32_t d) { // booleans are none
    return d >= DTYPE_UINT8 && d <= DTYPE_INT64;
}
static inline bool dtype_is_known(int32_t d) {
    return dtype_is_integer(d) || dtype_is_float(d) || dtype_is_complex(d) || d == DTYPE_BOOL;
}

// What the rows of rules say.
enum meta_data {
    OF_FLOATS = 1 << 0, // which dtypes there is a rule for
    OF_INTEGERS = 1 << 1,
    OF_COMPLEX = 1 << 2,
    GIVES_FLOAT = 1 << 3, // of integers and booleans
    GIVES_BOOL = 1 << 4,
    GIVES_INDEX = 1 << 5,
    NO_BOOL = 1 << 6, // refuses booleans, be it one of two operands
    BITWISE = 1 << 7,
    POWER = 1 << 8,
    INTEGERS_ONLY = 1 << 9,
    SUMS = 1 << 10,    // integers become int64
    ONE_DIM = 1 << 11, // takes one dimension, or all of them
    NO_COMPLEX = 1 << 12,
    TENSORS_ONLY = 1 << 13, // both operands
    IN_PLACE = 1 << 14,     // has a parameter `inplace`, for which any truth will do
    CONTIGUOUS = 1 << 15,   // lays out other tensors in its own way
    STRICT = 1 << 16,       // likewise where a dimension has one element
    WRITES = 1 << 17,       // to the first argument, which comes back
    SCALED = 1 << 18,       // has a parameter `alpha`
    OF_BOOL = 1 << 19,
    TO_FLOAT = OF_FLOATS | GIVES_FLOAT,
    REAL = OF_FLOATS | OF_INTEGERS,
};

// --- arguments ---

static inline bool is_given(const meta_call *c, int i) {
    return c->args[i] && c->args[i] != Py_None;
}
// NULL if it is no tensor of which all is known.
const meta *meta_at(const meta_call *c, PyObject *o);
static inline const meta *tensor_at(const meta_call *c, int i) {
    return c->args[i] ? meta_at(c, c->args[i]) : NULL;
}
// The same, but for tensors with a dimension of one element whose stride tells where it once was:
// torch's kernels and its fakes do not always make the same of it. A rule asks for this if it does
// not know what kernels make of it.
const meta *strict_of(const meta_call *c, const meta *m);
// A number that is exactly int, float or bool; false if it is something else. Where nothing was
// given the value stays as it is.
bool int_at(const meta_call *c, int i, int64_t *value);
bool flag_at(const meta_call *c, int i, bool *value);
bool dtype_at(const meta_call *c, int i, int32_t *dtype);
// Sizes, or any ints: a sequence of them, or those of a method's starred parameter. False:
// something else, or too many.
bool sizes_at(const meta_call *c, int i, size *values, int *count);
bool size_of_int(PyObject *o, size *value); // of one argument
// Whether it is exactly an int, float or bool, or a node whose value is one: of which kind.
bool number_is(PyObject *o, number_kind *kind);
static inline bool number_is_of(PyObject *o, number_kind kind) {
    number_kind found;
    return number_is(o, &found) && found == kind;
}
// A dimension counted from the front; false if there is no such one.
bool wrap_dim(int64_t *dim, int dims);
// One or several, each once, as bits. Not given: all of them.
bool dims_at(const meta_call *c, int i, int dims, uint32_t *bits);

// --- sizes and strides ---

bool meta_is_contiguous(const meta_call *c, const meta *m);
// Whether torch takes four dimensions for channels last (suggest_memory_format).
bool meta_is_channels_last(const meta_call *c, const meta *m);
// Whether a dimension has this stride, or one element, of which the stride does not matter. *stride
// becomes that of the next dimension further out.
bool meta_lies_within(const meta_call *c, const meta *m, int dim, size *stride);
void meta_lay_out(meta *m);      // strides of a contiguous tensor with elements
void meta_lay_out_last(meta *m); // the same of four dimensions, channels last
// Strides of a result of the same sizes as `m`, as an operation on each element of `m` gives them.
void meta_lay_out_like(const meta_call *c, const meta *m, meta *to);
// Strides of a result that has its sizes, as at::TensorIterator gives them for these inputs, of which
// some are stretched or have no stride where an index stands.
void meta_lay_out_over(const meta_call *c, const meta *const *inputs, int count, meta *to);
bool meta_is_dense(const meta_call *c, const meta *m); // no element twice, none left out
bool meta_same_sizes(const meta_call *c, const meta *a, const meta *b);
// The stride that a dimension of one element put before `dim` would have in a contiguous tensor.
size meta_stride_before(const meta *m, int dim);
void meta_swap_dims(meta *m, int64_t a, int64_t b);
// Whether an element stands for many.
bool meta_is_stretched(const meta_call *c, const meta *m);
// Whether a tensor can be stretched to the sizes of another.
bool meta_fits_into(const meta_call *c, const meta *m, const meta *into);
// The tensor stretched to these sizes (-1: its own); false: it does not fit. `to` is another meta.
bool meta_stretch(const meta_call *c, const meta *m, const size *sizes, int count, meta *to);
// Strides that show `m`, which has a dimension, in the sizes of `to`; false: there are none.
bool meta_restride(const meta_call *c, const meta *m, meta *to);
// What the second argument, a key of numbers and slices, takes of a tensor; false: another key.
bool meta_subscribe(meta_call *c, const meta *m, meta *part);
// How many dimensions the subscripts take, and what one that is no ellipsis makes of a tensor. *dim
// becomes the next dimension.
int meta_taken(PyObject *const *keys, Py_ssize_t count);
bool meta_take(sizes *known, meta *m, PyObject *key, int *dim);
// The answer of a subscript by tensors.
meta_answer meta_pick(meta_call *c, PyObject *const *keys, Py_ssize_t count);
bool meta_same_device(const meta *a, const meta *b);

// --- results ---

// A new tensor of the same dtype and device as `like`, of no dimension yet.
meta *meta_result(meta_call *c, const meta *like);
// Whether a result has a gradient, of arguments that have one.
void meta_set_grad(meta_call *c, meta *m, bool any);
// A new tensor as the answer: a tensor's dtype, these sizes, row by row. `grad`: as for
// meta_set_grad.
meta_answer meta_give(meta_call *c, const meta *like, const size *sizes, int dims, bool grad);

// The first argument, written to, as the answer; unknown where torch refuses to write to it. `grad`:
// whether what is written has a gradient.
meta_answer meta_write(meta_call *c, bool grad);

int32_t dtype_promote(int32_t a, int32_t b);
bool dtype_can_cast(int32_t from, int32_t to);

typedef meta_answer (*meta_function)(meta_call *c);
// The rules' functions; one may be in several rows.
#define META(name, function, parameters, data) meta_answer function(meta_call *c);
#define VIEW META
#define ALIAS META
#define ASK META
#include "src/graph/meta_rules.def"
#undef META
#undef VIEW
#undef ALIAS
#undef ASK
