// Results of operations along dimensions: sums, norms, softmax. If the tensor is contiguous, they
// are contiguous, too.
#include "src/graph/meta_inner.h"

static void reduce(const meta *m, uint32_t bits, bool keep, meta *to) {
    to->dims = 0;
    for (int i = 0; i < m->dims; i++) {
        if (!(bits & 1U << i))
            to->sizes[to->dims++] = m->sizes[i];
        else if (keep)
            to->sizes[to->dims++] = size_of(1);
    }
    meta_lay_out(to);
}

static int32_t reduced_dtype(const meta_call *c, const meta *m) {
    if (c->data & GIVES_BOOL)
        return DTYPE_BOOL;
    if (c->data & GIVES_INDEX)
        return DTYPE_INT64;
    bool whole = dtype_is_integer(m->dtype) || m->dtype == DTYPE_BOOL;
    return whole && c->data & SUMS ? DTYPE_INT64 : m->dtype;
}

// Autograd refuses a sum of floats in integers.
static bool keeps_grad(const meta *m, int32_t dtype) {
    return !m->requires_grad || dtype_is_float(dtype) || dtype_is_complex(dtype);
}

// sum(input, dim, keepdim, dtype) and its kin.
meta_answer meta_reduction(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    uint32_t bits;
    bool keep = false;
    if (!m || !dims_at(c, 1, m->dims, &bits) || !flag_at(c, 2, &keep) ||
        !meta_is_contiguous(c, m) || (c->data & OF_FLOATS && !dtype_is_float(m->dtype)) ||
        dtype_is_complex(m->dtype) || (c->data & GIVES_BOOL && m->dtype == DTYPE_UINT8) ||
        (c->data & NO_BOOL && m->dtype == DTYPE_BOOL))
        return META_UNKNOWN;
    if (is_given(c, 1) && c->data & ONE_DIM && !number_is_of(c->args[1], NUMBER_INT))
        return META_UNKNOWN;
    if (c->args[2] && !is_given(c, 1)) // each has its own way with that
        return META_UNKNOWN;
    meta *to = meta_result(c, m);
    to->dtype = reduced_dtype(c, m);
    if (!dtype_at(c, 3, &to->dtype) || (c->data & OF_FLOATS && !dtype_is_float(to->dtype)) ||
        (c->data & SUMS && !keeps_grad(m, to->dtype)))
        return META_UNKNOWN;
    reduce(m, bits, keep, to);
    meta_set_grad(c, to, m->requires_grad);
    return META_TENSOR;
}

static meta_answer like(meta_call *c, const meta *m, int32_t dtype, bool grad) {
    meta *to = meta_result(c, m);
    *to = *m;
    to->dtype = dtype;
    meta_lay_out(to);
    meta_set_grad(c, to, grad);
    return META_TENSOR;
}

static meta_answer softmax(meta_call *c, int dtype_index) {
    const meta *m = tensor_at(c, 0);
    int64_t dim = 0;
    int32_t dtype = m ? m->dtype : DTYPE_NONE;
    if (!m || !c->args[1] || !int_at(c, 1, &dim) || !wrap_dim(&dim, m->dims) ||
        !meta_is_contiguous(c, m) || !dtype_is_float(m->dtype) ||
        !dtype_at(c, dtype_index, &dtype) || !dtype_is_float(dtype))
        return META_UNKNOWN;
    return like(c, m, dtype, m->requires_grad);
}

meta_answer meta_softmax(meta_call *c) {
    return softmax(c, 2);
}

meta_answer meta_softmax_function(meta_call *c) {
    return softmax(c, 3);
}

// cumsum(input, dim, dtype)
meta_answer meta_cumulative(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    int64_t dim = 0;
    if (!m || !c->args[1] || !int_at(c, 1, &dim) || !wrap_dim(&dim, m->dims) ||
        !meta_is_contiguous(c, m) || dtype_is_complex(m->dtype))
        return META_UNKNOWN;
    int32_t dtype = dtype_is_float(m->dtype) ? m->dtype : DTYPE_INT64;
    if (!dtype_at(c, 2, &dtype) || dtype == DTYPE_BOOL || !keeps_grad(m, dtype))
        return META_UNKNOWN;
    return like(c, m, dtype, m->requires_grad);
}

// Whether a parameter that may be left out has the tensor's dtype and device, and these sizes.
static bool fits(const meta_call *c, int i, const meta *m, const size *sizes, int count,
                 bool *grad) {
    if (!is_given(c, i))
        return true;
    const meta *p = tensor_at(c, i);
    if (!p || p->dtype != m->dtype || !meta_same_device(p, m) || p->dims != count ||
        !sizes_are(c->sizes, p->sizes, sizes, count))
        return false;
    *grad = *grad || p->requires_grad;
    return true;
}

// layer_norm(input, normalized_shape, weight, bias, …), rms_norm(input, normalized_shape, weight,
// …)
meta_answer meta_norm(meta_call *c) {
    const meta *m = c->data == 1 ? strict_of(c, tensor_at(c, 0)) : tensor_at(c, 0);
    size shape[META_MOST_DIMS];
    int count = 0;
    bool grad = m && m->requires_grad, ignored;
    PyObject *eps = c->args[2 + c->data];
    bool eps_fits = !eps || number_is_of(eps, NUMBER_FLOAT) || (eps == Py_None && c->data == 1);
    if (!m || !c->args[1] || PyLong_Check(c->args[1]) || !sizes_at(c, 1, shape, &count) ||
        count == 0 || count > m->dims || !eps_fits || !flag_at(c, 5, &ignored) ||
        (c->data == 1 && !meta_is_contiguous(c, m)) || !dtype_is_float(m->dtype) ||
        !sizes_are(c->sizes, m->sizes + (m->dims - count), shape, count))
        return META_UNKNOWN;
    for (int i = 2; i < 2 + c->data; i++)
        if (!fits(c, i, m, shape, count, &grad))
            return META_UNKNOWN;
    return like(c, m, m->dtype, grad);
}

// dropout(input, p, train, …): out of training it gives back its argument. Data: whether all must be given.
meta_answer meta_dropout(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    bool train = true, in_place = false;
    double p = 0.5;
    if (c->args[1] && PyFloat_CheckExact(c->args[1]))
        p = PyFloat_AS_DOUBLE(c->args[1]);
    else if (c->args[1])
        return META_UNKNOWN;
    if (!m || (c->data && !(c->args[1] && c->args[2])) || !flag_at(c, 2, &train) ||
        !flag_at(c, 3, &in_place) || !(p >= 0 && p <= 1))
        return META_UNKNOWN;
    if (!train || in_place)
        return in_place ? META_UNKNOWN : META_SAME;
    if (p == 0)
        return META_SAME;
    bool plain = meta_is_contiguous(c, m);
    if (!(p > 0 && p < 1) || !dtype_is_float(m->dtype) || !(plain || meta_is_dense(c, m)))
        return META_UNKNOWN;
    c->effects = EFFECT_RANDOM;
    (void)like(c, m, m->dtype, m->requires_grad);
    if (!plain)
        memcpy(c->results[0].strides, m->strides, sizeof(m->strides));
    return META_TENSOR;
}
