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

// One that lies channel by channel, and not row by row.
static bool has_channels_last(const meta_call *c, const meta *m) {
    meta usual = *m;
    if (m->dims != 4 || meta_is_contiguous(c, m))
        return false;
    meta_lay_out_last(&usual);
    return sizes_are(c->sizes, m->strides, usual.strides, 4) && meta_is_channels_last(c, m);
}

// One of both.
static const meta *image_at(const meta_call *c, int i) {
    const meta *m = tensor_at(c, i);
    return m && has_channels_last(c, m) ? m : plain_at(c, i);
}

// Laid out as `like`.
static meta_answer give(meta_call *c, const meta *like, const size *sizes, bool grad) {
    meta *to = meta_result(c, like);
    to->dims = like->dims;
    memcpy(to->sizes, sizes, (size_t)to->dims * sizeof(size));
    if (has_channels_last(c, like))
        meta_lay_out_last(to);
    else
        meta_lay_out(to);
    meta_set_grad(c, to, grad);
    return META_TENSOR;
}

// --- attention ---

// Whether a mask's dimension is the scores' or one element.
static bool masks(const meta_call *c, size of_mask, size of_scores) {
    return size_is(c->sizes, of_mask, of_scores) || size_is_one(c->sizes, of_mask);
}

// A mask of two or four dimensions, as the fused kernel takes it. *grad: whether it has a gradient.
static bool mask_fits(const meta_call *c, const meta *q, const meta *k, bool *grad) {
    const meta *m = tensor_at(c, 3);
    *grad = m && m->requires_grad;
    if (!is_given(c, 3))
        return true;
    if (!m || (m->dims != 2 && m->dims != 4) || !meta_same_device(m, q) ||
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

// Whether a probability is given for what is dropped; false: something else is.
static bool drop_at(const meta_call *c, int i, bool *drops) {
    PyObject *p = c->args[i];
    *drops = p && PyFloat_CheckExact(p) && PyFloat_AS_DOUBLE(p) != 0;
    return !p || (PyFloat_CheckExact(p) && PyFloat_AS_DOUBLE(p) >= 0 && PyFloat_AS_DOUBLE(p) < 1);
}

// scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale,
// enable_gqa), as far as the CPU's fused kernel takes it (sdp::use_flash_attention_cpp): the result
// is laid out as the query. With dropout, or a mask that has a gradient, it is computed of matrix
// products, and lies row by row.
meta_answer meta_attention(meta_call *c) {
    const meta *q = tensor_at(c, 0), *k = tensor_at(c, 1), *v = tensor_at(c, 2);
    bool causal = false, drops, masked;
    number_kind kind;
    if (!has_rows(c, q) || !has_rows(c, k) || !has_rows(c, v) || !are_floats_alike(q, k) ||
        !are_floats_alike(q, v) || q->device_type != DEVICE_CPU || !drop_at(c, 4, &drops) ||
        !flag_at(c, 5, &causal) || (causal && is_given(c, 3)) ||
        (is_given(c, 6) && !number_is(c->args[6], &kind)) || !c->context->fused_attention())
        return META_UNKNOWN;
    if (!size_is(c->sizes, q->sizes[0], k->sizes[0]) || !heads_fit(c, q, k) ||
        !size_is(c->sizes, q->sizes[3], k->sizes[3]) || !meta_same_sizes(c, k, v) ||
        !mask_fits(c, q, k, &masked))
        return META_UNKNOWN;
    meta *to = meta_result(c, q);
    *to = *q;
    if (drops || masked)
        meta_lay_out(to);
    else if (!meta_is_dense(c, q))
        meta_lay_out_like(c, q, to);
    c->effects = drops ? EFFECT_RANDOM : 0;
    meta_set_grad(c, to, q->requires_grad || k->requires_grad || v->requires_grad || masked);
    return META_TENSOR;
}

// --- attention with its projections ---

// A parameter of a layer: contiguous, of these sizes, of the tensor's dtype. *grad gains its.
static bool has_parameter(const meta_call *c, int i, const meta *m, size rows, size columns,
                          bool *grad) {
    const meta *p = plain_at(c, i);
    bool row = columns.hint < 0; // of one dimension
    if (!p || p->dims != (row ? 1 : 2) || !are_floats_alike(m, p) ||
        !size_is(c->sizes, p->sizes[0], rows) || (!row && !size_is(c->sizes, p->sizes[1], columns)))
        return false;
    *grad = *grad || p->requires_grad;
    return true;
}

enum { NO_COLUMNS = -1 };

static bool has_row(const meta_call *c, int i, const meta *m, size count, bool *grad) {
    return !is_given(c, i) || has_parameter(c, i, m, count, size_of(NO_COLUMNS), grad);
}

// A mask that may be left out: booleans, or numbers of the tensor's dtype, without a gradient.
static bool has_mask(const meta_call *c, int i, const meta *m, const size *sizes, int dims) {
    const meta *mask = is_given(c, i) ? plain_at(c, i) : NULL;
    return !is_given(c, i) ||
           (mask && mask->dims == dims && !mask->requires_grad && meta_same_device(mask, m) &&
            (mask->dtype == DTYPE_BOOL || mask->dtype == m->dtype) &&
            sizes_are(c->sizes, mask->sizes, sizes, dims));
}

static bool is_absent(const meta_call *c, int from, int to) {
    for (int i = from; i <= to; i++)
        if (is_given(c, i))
            return false;
    return true;
}

// A number of heads that divides the width.
static bool heads_at(const meta_call *c, int i, size width, size *heads) {
    return c->args[i] && size_of_int(c->args[i], heads) &&
           !size_is_less(c->sizes, *heads, size_of(1)) && size_is_multiple(c->sizes, width, *heads);
}

// The parameters of multi_head_attention_forward that are looked at.
enum {
    AT_WIDTH = 3,
    AT_HEADS,
    AT_IN_WEIGHT,
    AT_IN_BIAS,
    AT_BIAS_K,
    AT_BIAS_V,
    AT_ADD_ZEROS,
    AT_DROPOUT,
    AT_OUT_WEIGHT,
    AT_OUT_BIAS,
    AT_TRAINING,
    AT_PADDING,
    AT_NEED_WEIGHTS,
    AT_MASK,
    AT_SEPARATE,
    AT_Q_WEIGHT,
    AT_STATIC_V = 22,
    AT_AVERAGE,
    AT_CAUSAL,
};

// Query, key and value of three dimensions, one matrix for all projections.
static bool projects(const meta_call *c, const meta *q, const meta *k, const meta *v, bool *grad,
                     bool *weights_grad) {
    size width = q->sizes[2], given;
    bool separate = false, zeros = false;
    if (!c->args[AT_WIDTH] || !size_of_int(c->args[AT_WIDTH], &given) ||
        !size_is(c->sizes, given, width) || !flag_at(c, AT_SEPARATE, &separate) || separate ||
        !flag_at(c, AT_ADD_ZEROS, &zeros) || zeros || !is_absent(c, AT_BIAS_K, AT_BIAS_V) ||
        !is_absent(c, AT_Q_WEIGHT, AT_STATIC_V))
        return false;
    if (!size_is(c->sizes, k->sizes[1], q->sizes[1]) || !size_is(c->sizes, k->sizes[2], width) ||
        !meta_same_sizes(c, k, v))
        return false;
    *weights_grad = q->requires_grad || k->requires_grad;
    size all = size_mul(width, size_of(3));
    if (!has_parameter(c, AT_IN_WEIGHT, q, all, width, weights_grad) ||
        !has_row(c, AT_IN_BIAS, q, all, weights_grad))
        return false;
    *grad = *weights_grad || v->requires_grad;
    return has_parameter(c, AT_OUT_WEIGHT, q, width, width, grad) &&
           has_row(c, AT_OUT_BIAS, q, width, grad);
}

// multi_head_attention_forward(query, key, value, …): what is attended to, and the weights of that,
// if they are wanted.
meta_answer meta_multi_head(meta_call *c) {
    const meta *q = tensor_at(c, 0), *k = tensor_at(c, 1), *v = tensor_at(c, 2);
    bool training = true, weights = true, average = true, causal = false, drops = false;
    bool grad, weights_grad;
    size heads;
    if (!q || !k || !v || q->dims != 3 || k->dims != 3 || v->dims != 3 || !are_floats_alike(q, k) ||
        !are_floats_alike(q, v) || !flag_at(c, AT_TRAINING, &training) ||
        !flag_at(c, AT_NEED_WEIGHTS, &weights) || !flag_at(c, AT_AVERAGE, &average) ||
        !flag_at(c, AT_CAUSAL, &causal) || causal || !c->args[AT_DROPOUT] ||
        !drop_at(c, AT_DROPOUT, &drops) || !projects(c, q, k, v, &grad, &weights_grad) ||
        !heads_at(c, AT_HEADS, q->sizes[2], &heads))
        return META_UNKNOWN;
    size scores[] = {q->sizes[1], heads, q->sizes[0], k->sizes[0]};
    size padding[] = {scores[0], scores[3]};
    if (!has_mask(c, AT_PADDING, q, padding, 2) || !has_mask(c, AT_MASK, q, scores + 2, 2))
        return META_UNKNOWN;
    (void)give(c, q, q->sizes, grad);
    meta *second = meta_result(c, q);
    second->dims = !weights ? -1 : average ? 3 : 4;
    for (int from = 0, to = 0; weights && from < 4; from++)
        if (from != 1 || !average)
            second->sizes[to++] = scores[from];
    if (weights)
        meta_lay_out(second);
    meta_set_grad(c, second, weights && weights_grad);
    c->effects = drops && training ? EFFECT_RANDOM : 0;
    return META_TENSORS;
}

// _transformer_encoder_layer_fwd(src, embed_dim, num_heads, …) without a mask: the kernel for a
// whole layer, of which there is no gradient.
meta_answer meta_encoder_layer(meta_call *c) {
    const meta *m = plain_at(c, 0);
    size width, heads;
    bool grad = m && m->requires_grad, ignored = false;
    if (!m || m->dims != 3 || !dtype_is_float(m->dtype) || c->last != 19 ||
        !size_of_int(c->args[1] ? c->args[1] : Py_None, &width) ||
        !size_is(c->sizes, width, m->sizes[2]) || !heads_at(c, 2, width, &heads) || !c->args[7] ||
        !flag_at(c, 7, &ignored) || !c->args[8] || !flag_at(c, 8, &ignored) || !c->args[9] ||
        !number_is_of(c->args[9], NUMBER_FLOAT) || !is_absent(c, 18, 19))
        return META_UNKNOWN;
    const meta *inner = plain_at(c, 14);
    size all = size_mul(width, size_of(3)), row = size_of(NO_COLUMNS);
    const struct {
        int at;
        size rows, columns;
    } parameters[] = {
        {3, all, width},
        {4, all, row},
        {5, width, width},
        {6, width, row},
        {10, width, row},
        {11, width, row},
        {12, width, row},
        {13, width, row},
        {14, inner ? inner->sizes[0] : row, width},
        {15, inner ? inner->sizes[0] : row, row},
        {16, width, inner ? inner->sizes[0] : row},
        {17, width, row},
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(parameters); i++)
        if (!inner || !has_parameter(c, parameters[i].at, m, parameters[i].rows,
                                     parameters[i].columns, &grad))
            return META_UNKNOWN;
    return grad && c->context->grad ? META_UNKNOWN : give(c, m, m->sizes, false);
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
    const meta *m = image_at(c, 0), *weight = plain_at(c, 1), *bias = NULL;
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
    const meta *m = image_at(c, 0);
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
    const meta *m = image_at(c, 0);
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

// Whether there is more than one value of each channel.
static bool has_many_values(const meta_call *c, const meta *m) {
    size count = m->sizes[0];
    for (int i = 2; i < m->dims; i++)
        count = size_mul(count, m->sizes[i]);
    return !size_is_one(c->sizes, count);
}

// batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps). In training
// it writes to the statistics.
meta_answer meta_batch_norm(meta_call *c) {
    const meta *m = image_at(c, 0);
    bool training = false, grad = m && m->requires_grad;
    bool both = is_given(c, 1) && is_given(c, 2), none = !is_given(c, 1) && !is_given(c, 2);
    if (!m || m->dims < 2 || !flag_at(c, 5, &training) || !(both || (training && none)) ||
        (training && !has_many_values(c, m)) ||
        (c->args[6] && !number_is_of(c->args[6], NUMBER_FLOAT)) ||
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
    c->written = training && both ? 1U << 1 | 1U << 2 : 0;
    return give(c, m, m->sizes, grad);
}
