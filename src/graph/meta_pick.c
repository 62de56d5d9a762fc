// Results of elements that are picked by number, or put in other places: subscripts by tensors,
// gather, rolls, padding, other resolutions. They lie row by row if the tensor does.
#include "src/graph/meta_inner.h"

#include <math.h>

// One that lies row by row, dimensions of one element too.
static const meta *plain_at(const meta_call *c, int i) {
    const meta *m = strict_of(c, tensor_at(c, i));
    return m && meta_is_contiguous(c, m) ? m : NULL;
}

// --- subscripts by tensors ---

// What is left of a tensor by numbers and slices, and the tensors that index its dimensions.
typedef struct picking {
    meta part;                           // what is picked from
    uint32_t by;                         // its dimensions that a tensor indexes
    const meta *indices[META_MOST_DIMS]; // for these dimensions, in their order
    int count;
    meta shape; // the sizes of all indices, stretched to each other
} picking;

static bool stretch_both(const meta_call *c, const meta *m, meta *to) {
    int dims = m->dims > to->dims ? m->dims : to->dims;
    meta both = *to;
    both.dims = dims;
    for (int d = 0; d < dims; d++) {
        int a = d - (dims - to->dims), b = d - (dims - m->dims);
        if (a < 0 || b < 0) {
            both.sizes[d] = a < 0 ? m->sizes[b] : to->sizes[a];
            continue;
        }
        size left = to->sizes[a], right = m->sizes[b];
        bool same = size_is_surely(left, right);
        bool one = !same && size_is_one(c->sizes, left);
        if (!same && !one && !size_is_one(c->sizes, right) && !size_is(c->sizes, left, right))
            return false;
        both.sizes[d] = one ? right : left;
    }
    *to = both;
    return true;
}

// One without dimensions is a number, which torch reads. Of indices that do not lie row by row torch's
// kernels and its fakes make different layouts. Torch copies one of int32 after it was stretched.
static bool is_index(const meta_call *c, const meta *m, const meta *of) {
    bool copied = m->dtype == DTYPE_INT32;
    return m->dims > 0 && (m->dtype == DTYPE_INT64 || copied) && meta_same_device(m, of) &&
           meta_is_contiguous(c, m) && (!copied || strict_of(c, m));
}

// Takes one key; *dim is the next dimension of the part.
static bool pick(meta_call *c, picking *p, PyObject *key, int *dim) {
    const meta *index = meta_at(c, key);
    if (!index)
        return meta_take(c->sizes, &p->part, key, dim);
    if (*dim >= p->part.dims || !is_index(c, index, &p->part))
        return false;
    p->by |= 1U << (*dim)++;
    p->indices[p->count++] = index;
    return stretch_both(c, index, &p->shape);
}

// Where the indices' dimensions stand in the result: where the first indexed dimension was if all of
// them stand side by side, else in front.
static int place_of_indices(uint32_t by) {
    int first = __builtin_ctz(by);
    uint32_t moved = by >> first;
    return (moved & (moved + 1)) == 0 ? first : 0;
}

// The part with the indices' dimensions in the place of the indexed ones. They have no stride there
// (at::native::restride_src).
static bool put_indices(const picking *p, int place, meta *to) {
    int dims = 0, left = p->part.dims - __builtin_popcount(p->by);
    if (left + p->shape.dims > META_MOST_DIMS)
        return false;
    *to = p->part;
    for (int d = 0; d <= p->part.dims; d++) {
        for (int i = 0; d == place && i < p->shape.dims; i++, dims++) {
            to->sizes[dims] = p->shape.sizes[i];
            to->strides[dims] = size_of(0);
        }
        if (d < p->part.dims && !(p->by & 1U << d)) {
            to->sizes[dims] = p->part.sizes[d];
            to->strides[dims++] = p->part.strides[d];
        }
    }
    to->dims = dims;
    return true;
}

// An index, stretched to the others, with a dimension of one element for each that the part keeps
// (reshape_indexer).
static bool align_index(const meta_call *c, const picking *p, const meta *index, const meta *all,
                        int place, meta *to) {
    meta wide = *index;
    if (!meta_stretch(c, index, p->shape.sizes, p->shape.dims, &wide))
        return false;
    if (index->dtype == DTYPE_INT32)
        meta_lay_out(&wide);
    to->dims = all->dims;
    for (int d = 0; d < all->dims; d++) {
        bool own = d >= place && d < place + p->shape.dims;
        to->sizes[d] = own ? wide.sizes[d - place] : size_of(1);
    }
    return meta_restride(c, &wide, to);
}

static meta_answer picked(meta_call *c, const picking *p) {
    meta from, aligned[META_MOST_DIMS];
    const meta *inputs[META_MOST_DIMS + 1] = {&from};
    int place = place_of_indices(p->by);
    if (!put_indices(p, place, &from))
        return META_UNKNOWN;
    for (int i = 0; i < p->count; i++) {
        if (!align_index(c, p, p->indices[i], &from, place, &aligned[i]))
            return META_UNKNOWN;
        inputs[i + 1] = &aligned[i];
    }
    meta_answer answer = meta_give(c, &p->part, from.sizes, from.dims, p->part.requires_grad);
    c->memory = META_OWN;
    meta_lay_out_over(c, inputs, p->count + 1, &c->results[0]);
    return answer;
}

// Whether the strides of a tensor have one order to torch's kernels and its fakes: it lies row by row,
// or has no dimension of one element.
static bool has_order(const meta_call *c, const meta *m) {
    if (strict_of(c, m) && meta_is_contiguous(c, m))
        return true;
    for (int d = 0; d < m->dims; d++)
        if (size_is_one(c->sizes, m->sizes[d]))
            return false;
    return true;
}

// x[index], x[:, index, None], x[a, b]: tensors of numbers among the keys (at::index).
meta_answer meta_pick(meta_call *c, PyObject *const *keys, Py_ssize_t count) {
    const meta *m = tensor_at(c, 0);
    picking p = {.part = m ? *m : (meta){0}};
    int dim = 0, left = m ? m->dims - meta_taken(keys, count) : -1;
    for (Py_ssize_t i = 0; left >= 0 && i < count; i++) {
        if (keys[i] == Py_Ellipsis)
            dim += left;
        else if (!pick(c, &p, keys[i], &dim))
            return META_UNKNOWN;
    }
    return left < 0 || !p.by || !has_order(c, &p.part) ? META_UNKNOWN : picked(c, &p);
}

// gather(input, dim, index, sparse_grad): of the index' sizes, which fit into the tensor's.
meta_answer meta_gather(meta_call *c) {
    const meta *m = tensor_at(c, 0), *index = tensor_at(c, 2);
    int64_t dim = 0;
    bool sparse = false;
    if (!m || !index || !c->args[1] || !int_at(c, 1, &dim) || !wrap_dim(&dim, m->dims) ||
        !flag_at(c, 3, &sparse) || sparse || index->dtype != DTYPE_INT64 ||
        index->dims != m->dims || !meta_same_device(m, index))
        return META_UNKNOWN;
    for (int d = 0; d < m->dims; d++)
        if (d != dim && size_is_less(c->sizes, m->sizes[d], index->sizes[d]))
            return META_UNKNOWN;
    return meta_give(c, m, index->sizes, index->dims, m->requires_grad);
}

// --- other places ---

// repeat(input, *repeats)
meta_answer meta_repeat(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    size times[META_MOST_DIMS], sizes[META_MOST_DIMS];
    int count = 0;
    if (!m || !sizes_at(c, 1, times, &count) || count < m->dims || count == 0)
        return META_UNKNOWN;
    for (int i = 0; i < count; i++) {
        int own = i - (count - m->dims);
        if (size_is_less(c->sizes, times[i], size_of(1)) ||
            !size_mul_fits(times[i], own < 0 ? size_of(1) : m->sizes[own], &sizes[i]))
            return META_UNKNOWN;
    }
    return meta_give(c, m, sizes, count, m->requires_grad);
}

// One number, or several.
static bool numbers_at(const meta_call *c, int i, size *values, int *count) {
    *count = 1;
    return c->args[i] && (size_of_int(c->args[i], &values[0]) || sizes_at(c, i, values, count));
}

// roll(input, shifts, dims): as many shifts as dimensions, or one over all elements.
meta_answer meta_roll(meta_call *c) {
    const meta *m = plain_at(c, 0);
    size shifts[META_MOST_DIMS];
    int count = 0;
    uint32_t bits = 0;
    if (!m || m->dims == 0 || c->rest || !numbers_at(c, 1, shifts, &count) || count == 0)
        return META_UNKNOWN;
    if (is_given(c, 2) ? !dims_at(c, 2, m->dims, &bits) || __builtin_popcount(bits) != count
                       : count != 1)
        return META_UNKNOWN;
    return meta_give(c, m, m->sizes, m->dims, m->requires_grad);
}

// flip(input, *dims)
meta_answer meta_flip(meta_call *c) {
    const meta *m = plain_at(c, 0);
    size dims[META_MOST_DIMS];
    int count = 0;
    uint32_t seen = 0;
    if (!m || m->dims == 0 || !sizes_at(c, 1, dims, &count))
        return META_UNKNOWN;
    for (int i = 0; i < count; i++) {
        int64_t dim = size_settle(c->sizes, dims[i]);
        if (!wrap_dim(&dim, m->dims) || seen & 1U << dim)
            return META_UNKNOWN;
        seen |= 1U << dim;
    }
    return meta_give(c, m, m->sizes, m->dims, m->requires_grad);
}

static bool is_text(PyObject *o, const char *text) {
    return o && PyUnicode_Check(o) && PyUnicode_CompareWithASCIIString(o, text) == 0;
}

// pad(input, pad, mode, value): constants, two numbers for each dimension, the last one first.
meta_answer meta_pad(meta_call *c) {
    const meta *m = plain_at(c, 0);
    size pads[META_MOST_DIMS], sizes[META_MOST_DIMS];
    int count = 0;
    number_kind kind;
    if (!m || !c->args[1] || !sizes_at(c, 1, pads, &count) || count % 2 || count / 2 > m->dims ||
        (c->args[2] && !is_text(c->args[2], "constant")) ||
        (is_given(c, 3) &&
         (!number_is(c->args[3], &kind) || kind == NUMBER_BOOL || !dtype_is_float(m->dtype))))
        return META_UNKNOWN;
    memcpy(sizes, m->sizes, sizeof(sizes));
    for (int i = 0; i < count; i++) {
        size *to = &sizes[m->dims - 1 - i / 2];
        if (size_is_less(c->sizes, pads[i], size_of(0)))
            return META_UNKNOWN;
        *to = size_add(*to, pads[i]);
    }
    return meta_give(c, m, sizes, m->dims, m->requires_grad);
}

// --- neighbours ---

// What stands before or behind the tensor along a dimension; false: it does not fit.
static bool joins(const meta_call *c, int i, const meta *m, int64_t dim, size *count, bool *grad) {
    if (!is_given(c, i))
        return true;
    const meta *more = tensor_at(c, i);
    if (!more || more->dims != m->dims || more->dtype != m->dtype || !meta_same_device(more, m))
        return false;
    for (int d = 0; d < m->dims; d++)
        if (d != dim && !size_is(c->sizes, m->sizes[d], more->sizes[d]))
            return false;
    *count = size_add(*count, more->sizes[dim]);
    *grad = *grad || more->requires_grad;
    return true;
}

// diff(input, n, dim, prepend, append): one step, of fewer than four dimensions. What is joined
// lies row by row.
meta_answer meta_diff(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    int64_t n = 1, dim = -1;
    size sizes[META_MOST_DIMS];
    if (!m || m->dims == 0 || m->dims > 3 || !int_at(c, 1, &n) || n != 1 || !int_at(c, 2, &dim) ||
        !wrap_dim(&dim, m->dims))
        return META_UNKNOWN;
    bool grad = m->requires_grad;
    memcpy(sizes, m->sizes, sizeof(sizes));
    if (!joins(c, 3, m, dim, &sizes[dim], &grad) || !joins(c, 4, m, dim, &sizes[dim], &grad) ||
        (!is_given(c, 3) && !is_given(c, 4) && !plain_at(c, 0)) ||
        !size_is_less(c->sizes, size_of(1), sizes[dim]))
        return META_UNKNOWN;
    sizes[dim] = size_sub(sizes[dim], size_of(1));
    return meta_give(c, m, sizes, m->dims, grad);
}

// --- other resolutions ---

typedef struct scaling {
    const char *mode;
    int dims;     // of the tensor; 0: any
    bool corners; // `align_corners` may be given
} scaling;

static const scaling scalings[] = {
    {"nearest", 0, false}, {"nearest-exact", 0, false}, {"linear", 3, true},
    {"bilinear", 4, true}, {"bicubic", 4, true},        {"trilinear", 5, true},
};

static const scaling *scaling_at(const meta_call *c, int i, int dims) {
    for (size_t k = 0; k < Py_ARRAY_LENGTH(scalings); k++) {
        const scaling *s = &scalings[k];
        if (is_text(c->args[i], s->mode) || (!c->args[i] && k == 0))
            return s->dims == 0 || s->dims == dims ? s : NULL;
    }
    return NULL;
}

// A size times a number that is a small whole number over a power of two, rounded down: torch
// computes with doubles, which are exact then.
static bool scale(PyObject *o, size from, size *to) {
    enum { LEAST = 16, MOST = 1 << 20 };
    number_kind kind;
    double factor = -1;
    if (o && !is_node(o) && number_is(o, &kind) && kind != NUMBER_BOOL)
        factor = kind == NUMBER_FLOAT ? PyFloat_AS_DOUBLE(o) : (double)PyLong_AsLong(o);
    double whole = factor * (1 << LEAST);
    if (!(whole >= 1 && whole < MOST * (double)(1 << LEAST)) || floor(whole) != whole)
        return false;
    *to = size_floordiv(size_mul(from, size_of((int64_t)whole)), size_of(1 << LEAST));
    return true;
}

static bool scaled_sizes(const meta_call *c, const meta *m, size *sizes) {
    PyObject *by = c->args[2];
    bool many = PyTuple_CheckExact(by) || PyList_CheckExact(by);
    if (many && PySequence_Fast_GET_SIZE(by) != m->dims - 2)
        return false;
    for (int d = 2; d < m->dims; d++)
        if (!scale(many ? PySequence_Fast_GET_ITEM(by, d - 2) : by, m->sizes[d], &sizes[d]))
            return false;
    return true;
}

static bool given_sizes(const meta_call *c, const meta *m, size *sizes) {
    size one;
    int count = 0;
    if (!size_of_int(c->args[1], &one))
        return sizes_at(c, 1, sizes + 2, &count) && count == m->dims - 2;
    for (int d = 2; d < m->dims; d++)
        sizes[d] = one;
    return true;
}

// interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
meta_answer meta_interpolate(meta_call *c) {
    const meta *m = plain_at(c, 0);
    size sizes[META_MOST_DIMS];
    bool antialias = false, corners = false;
    const scaling *how = m ? scaling_at(c, 3, m->dims) : NULL;
    if (!how || m->dims < 3 || m->dims > 5 || is_given(c, 1) == is_given(c, 2) ||
        (is_given(c, 4) && (!how->corners || !flag_at(c, 4, &corners))) || is_given(c, 5) ||
        !flag_at(c, 6, &antialias) || antialias ||
        (m->dtype != DTYPE_FLOAT && m->dtype != DTYPE_DOUBLE))
        return META_UNKNOWN;
    memcpy(sizes, m->sizes, 2 * sizeof(size));
    if (!(is_given(c, 1) ? given_sizes(c, m, sizes) : scaled_sizes(c, m, sizes)))
        return META_UNKNOWN;
    for (int d = 2; d < m->dims; d++)
        if (size_is_less(c->sizes, sizes[d], size_of(1)))
            return META_UNKNOWN;
    return meta_give(c, m, sizes, m->dims, m->requires_grad);
}

// --- losses ---

// Sums and means are numbers; *fits: the reduction is one of them.
static meta_answer one_number(meta_call *c, const meta *m, int reduction, bool grad) {
    PyObject *how = c->args[reduction];
    bool sums = !how || is_text(how, "mean") || is_text(how, "sum");
    return sums ? meta_give(c, m, NULL, 0, grad) : META_UNKNOWN;
}

// mse_loss(input, target, size_average, reduce, reduction, weight), l1_loss
meta_answer meta_distance(meta_call *c) {
    const meta *m = tensor_at(c, 0), *target = tensor_at(c, 1);
    if (!m || !target || m->dtype != target->dtype || !dtype_is_float(m->dtype) ||
        !meta_same_device(m, target) || !meta_same_sizes(c, m, target) || is_given(c, 2) ||
        is_given(c, 3) || is_given(c, 5))
        return META_UNKNOWN;
    return one_number(c, m, 4, m->requires_grad || target->requires_grad);
}

// cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction,
// label_smoothing), nll_loss: targets are the numbers of classes.
meta_answer meta_classes(meta_call *c) {
    const meta *m = tensor_at(c, 0), *target = tensor_at(c, 1);
    int64_t ignored = 0;
    if (!m || !target || m->dims < 2 || target->dims != m->dims - 1 ||
        target->dtype != DTYPE_INT64 || !dtype_is_float(m->dtype) || !meta_same_device(m, target) ||
        is_given(c, 2) || is_given(c, 3) || !int_at(c, 4, &ignored) || is_given(c, 5) ||
        (c->args[7] && !number_is_of(c->args[7], NUMBER_FLOAT)))
        return META_UNKNOWN;
    if (!size_is(c->sizes, m->sizes[0], target->sizes[0]) ||
        !sizes_are(c->sizes, m->sizes + 2, target->sizes + 1, m->dims - 2))
        return META_UNKNOWN;
    return one_number(c, m, 6, m->requires_grad);
}
