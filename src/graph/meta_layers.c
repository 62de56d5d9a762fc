// Results of layers: attention, convolutions, pooling, normalization by running statistics. Where a
// kernel may be chosen that lays its result out in another way, no rule answers.
#include "src/graph/meta_inner.h"

enum { DEVICE_CPU = 0 }; // c10::DeviceType

static bool are_floats_alike(const meta *a, const meta *b) {
    return a->dtype == b->dtype && dtype_is_float(a->dtype) && meta_same_device(a, b);
}

// One that lies row by row, dimensions of one element too.
static const meta *plain_at(const meta_call *c, int i) {
    const meta *m = strict_of(c, tensor_at(c, i));
    return m && meta_is_contiguous(c, m) ? m : NULL;
}

static meta_answer give(meta_call *c, const meta *like, const size *sizes, bool grad) {
    meta *to = meta_result(c, like);
    to->dims = like->dims;
    memcpy(to->sizes, sizes, (size_t)to->dims * sizeof(size));
    meta_lay_out(to);
    meta_set_grad(c, to, grad);
    return META_TENSOR;
}

// --- attention ---

// Whether a mask's dimension is the scores' or one element.
static bool masks(const meta_call *c, size of_mask, size of_scores) {
    return size_is(c->sizes, of_mask, of_scores) || size_is_one(c->sizes, of_mask);
}

// What the fused kernel takes: a mask of two or four dimensions that has no gradient.
static bool mask_fits(const meta_call *c, const meta *q, const meta *k) {
    const meta *m = usual_at(c, 3);
    if (!is_given(c, 3))
        return true;
    if (!m || (m->dims != 2 && m->dims != 4) || m->requires_grad || !meta_same_device(m, q) ||
        (m->dtype != DTYPE_BOOL && m->dtype != q->dtype))
        return false;
    size scores[] = {q->sizes[0], q->sizes[1], q->sizes[2], k->sizes[2]};
    for (int i = 0; i < m->dims; i++)
        if (!masks(c, m->sizes[i], scores[4 - m->dims + i]))
            return false;
    return true;
}

static bool heads_fit(const meta_call *c, const meta *q, const meta *k) {
    bool groups = false;
    if (!flag_at(c, 7, &groups))
        return false;
    return groups ? size_is_multiple(c->sizes, q->sizes[1], k->sizes[1])
                  : size_is(c->sizes, q->sizes[1], k->sizes[1]);
}

static bool has_rows(const meta_call *c, const meta *m) {
    return m && m->dims == 4 && size_is_one(c->sizes, m->strides[3]);
}

// scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale,
// enable_gqa), as far as the CPU's fused kernel takes it (sdp::use_flash_attention_cpp): the result
// is laid out as the query.
meta_answer meta_attention(meta_call *c) {
    const meta *q = usual_at(c, 0), *k = usual_at(c, 1), *v = usual_at(c, 2);
    bool causal = false;
    number_kind kind;
    bool drops =
        c->args[4] && !(PyFloat_CheckExact(c->args[4]) && PyFloat_AS_DOUBLE(c->args[4]) == 0.0);
    if (!has_rows(c, q) || !has_rows(c, k) || !has_rows(c, v) || !are_floats_alike(q, k) ||
        !are_floats_alike(q, v) || q->device_type != DEVICE_CPU || drops ||
        !flag_at(c, 5, &causal) || (causal && is_given(c, 3)) ||
        (is_given(c, 6) && !number_is(c->args[6], &kind)) || !c->context->fused_attention())
        return META_UNKNOWN;
    if (!size_is(c->sizes, q->sizes[0], k->sizes[0]) || !heads_fit(c, q, k) ||
        !size_is(c->sizes, q->sizes[3], k->sizes[3]) || !meta_same_sizes(c, k, v) ||
        !mask_fits(c, q, k))
        return META_UNKNOWN;
    meta *to = meta_result(c, q);
    *to = *q;
    meta_lay_out_like(c, q, to);
    meta_set_grad(c, to, q->requires_grad || k->requires_grad || v->requires_grad);
    return META_TENSOR;
}

// --- windows ---

// One number for each dimension of the window, or one for all. Not given: `usual`.
static bool window_at(const meta_call *c, int i, int dims, size usual, int64_t least,
                      size *values) {
    int count = 1;
    values[0] = usual;
    if (c->args[i] && !size_of_int(c->args[i], &values[0]) &&
        (number_is_of(c->args[i], NUMBER_BOOL) || !sizes_at(c, i, values, &count)))
        return false;
    if (count != 1 && count != dims)
        return false;
    for (int d = 0; d < dims; d++) {
        values[d] = count == 1 ? values[0] : values[d];
        if (size_is_less(c->sizes, values[d], size_of(least)))
            return false;
    }
    return true;
}

typedef struct window {
    size kernel, stride, padding, dilation;
} window;

// How many places a window has along a dimension; false: none.
static bool slide(const meta_call *c, size along, window w, size *places) {
    size reach = size_mul(w.dilation, size_sub(w.kernel, size_of(1)));
    size room =
        size_sub(size_add(along, size_add(w.padding, w.padding)), size_add(reach, size_of(1)));
    if (size_is_less(c->sizes, room, size_of(0)))
        return false;
    *places = size_add(size_floordiv(room, w.stride), size_of(1));
    return true;
}

// conv2d(input, weight, bias, stride, padding, dilation, groups); data: dimensions of the window.
meta_answer meta_convolution(meta_call *c) {
    const meta *m = plain_at(c, 0), *weight = plain_at(c, 1), *bias = NULL;
    int dims = c->data;
    size stride[META_MOST_DIMS], padding[META_MOST_DIMS], dilation[META_MOST_DIMS];
    size sizes[META_MOST_DIMS], groups = size_of(1);
    if (!m || !weight || m->dims != dims + 2 || weight->dims != m->dims ||
        !are_floats_alike(m, weight) || !window_at(c, 3, dims, size_of(1), 1, stride) ||
        !window_at(c, 4, dims, size_of(0), 0, padding) ||
        !window_at(c, 5, dims, size_of(1), 1, dilation) ||
        (c->args[6] && !size_of_int(c->args[6], &groups)) ||
        size_is_less(c->sizes, groups, size_of(1)))
        return META_UNKNOWN;
    if (is_given(c, 2)) {
        bias = plain_at(c, 2);
        if (!bias || bias->dims != 1 || !are_floats_alike(m, bias) ||
            !size_is(c->sizes, bias->sizes[0], weight->sizes[0]))
            return META_UNKNOWN;
    }
    if (!size_is(c->sizes, m->sizes[1], size_mul(weight->sizes[1], groups)) ||
        !size_is_multiple(c->sizes, weight->sizes[0], groups))
        return META_UNKNOWN;
    sizes[0] = m->sizes[0];
    sizes[1] = weight->sizes[0];
    for (int d = 0; d < dims; d++) {
        window w = {weight->sizes[2 + d], stride[d], padding[d], dilation[d]};
        if (!slide(c, m->sizes[2 + d], w, &sizes[2 + d]))
            return META_UNKNOWN;
    }
    return give(c, m, sizes,
                m->requires_grad || weight->requires_grad || (bias && bias->requires_grad));
}

// Pools over windows of two dimensions; `dilated`: the place of an argument, or 0.
static meta_answer pool(meta_call *c, int dilated, int rounds_up) {
    const meta *m = plain_at(c, 0);
    size kernel[META_MOST_DIMS], stride[META_MOST_DIMS], padding[META_MOST_DIMS];
    size dilation[META_MOST_DIMS] = {size_of(1), size_of(1)}, sizes[META_MOST_DIMS];
    bool up = false;
    if (!m || m->dims != 4 || !dtype_is_float(m->dtype) || !c->args[1] ||
        !window_at(c, 1, 2, size_of(1), 1, kernel) || !flag_at(c, rounds_up, &up) || up ||
        !window_at(c, 3, 2, size_of(0), 0, padding) ||
        (dilated && !window_at(c, dilated, 2, size_of(1), 1, dilation)))
        return META_UNKNOWN;
    if (!is_given(c, 2))
        memcpy(stride, kernel, 2 * sizeof(size));
    else if (!window_at(c, 2, 2, size_of(1), 1, stride))
        return META_UNKNOWN;
    memcpy(sizes, m->sizes, 2 * sizeof(size));
    for (int d = 0; d < 2; d++) {
        window w = {kernel[d], stride[d], padding[d], dilation[d]};
        if (size_is_less(c->sizes, kernel[d], size_add(padding[d], padding[d])) ||
            !slide(c, m->sizes[2 + d], w, &sizes[2 + d]))
            return META_UNKNOWN;
    }
    return give(c, m, sizes, m->requires_grad);
}

// max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
meta_answer meta_max_pool(meta_call *c) {
    bool indices = false;
    return flag_at(c, 6, &indices) && !indices ? pool(c, 4, 5) : META_UNKNOWN;
}

// avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
meta_answer meta_mean_pool(meta_call *c) {
    bool ignored;
    return flag_at(c, 5, &ignored) && !is_given(c, 6) ? pool(c, 0, 4) : META_UNKNOWN;
}

// adaptive_avg_pool2d(input, output_size): so many windows, whatever the input's size.
meta_answer meta_adaptive_pool(meta_call *c) {
    const meta *m = plain_at(c, 0);
    size sizes[META_MOST_DIMS];
    PyObject *o = c->args[1];
    bool one = o && (PyTuple_Check(o) || PyList_Check(o)) && PySequence_Fast_GET_SIZE(o) == 1;
    if (!m || m->dims != 4 || !dtype_is_float(m->dtype) || !o || one ||
        !window_at(c, 1, 2, size_of(1), 1, sizes + 2))
        return META_UNKNOWN;
    memcpy(sizes, m->sizes, 2 * sizeof(size));
    return give(c, m, sizes, m->requires_grad);
}

// --- normalization ---

// batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps). In training
// it writes to the statistics.
meta_answer meta_batch_norm(meta_call *c) {
    const meta *m = plain_at(c, 0);
    bool training = false, grad = m && m->requires_grad;
    if (!m || m->dims < 2 || !flag_at(c, 5, &training) || training || !is_given(c, 1) ||
        !is_given(c, 2) || (c->args[6] && !number_is_of(c->args[6], NUMBER_FLOAT)) ||
        (c->args[7] && !number_is_of(c->args[7], NUMBER_FLOAT)) || !dtype_is_float(m->dtype))
        return META_UNKNOWN;
    for (int i = 1; i <= 4; i++) {
        const meta *of_channels = is_given(c, i) ? plain_at(c, i) : NULL;
        if (!is_given(c, i))
            continue;
        if (!of_channels || of_channels->dims != 1 || !are_floats_alike(m, of_channels) ||
            !size_is(c->sizes, of_channels->sizes[0], m->sizes[1]) ||
            (i <= 2 && of_channels->requires_grad))
            return META_UNKNOWN;
        grad = grad || of_channels->requires_grad;
    }
    return give(c, m, m->sizes, grad);
}
