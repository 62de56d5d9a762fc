// Results of matrix products, of look-ups in tables, and of joining tensors.
#include "src/graph/meta_inner.h"

static bool are_alike(const meta *a, const meta *b) {
    return a->dtype == b->dtype && meta_same_device(a, b) && !dtype_is_complex(a->dtype) &&
           a->dtype != DTYPE_BOOL;
}

// linear(input, weight, bias)
meta_answer meta_linear(meta_call *c) {
    const meta *m = tensor_at(c, 0), *weight = tensor_at(c, 1), *bias = NULL;
    size sizes[META_MOST_DIMS];
    if (!m || !weight || weight->dims != 2 || m->dims == 0 || !are_alike(m, weight) ||
        !dtype_is_float(m->dtype) || !size_is(c->sizes, m->sizes[m->dims - 1], weight->sizes[1]))
        return META_UNKNOWN;
    if (is_given(c, 2)) {
        bias = tensor_at(c, 2);
        if (!bias || !are_alike(m, bias) || bias->dims != 1 ||
            !size_is(c->sizes, bias->sizes[0], weight->sizes[0]))
            return META_UNKNOWN;
    }
    memcpy(sizes, m->sizes, sizeof(sizes));
    sizes[m->dims - 1] = weight->sizes[0];
    return meta_give(c, m, sizes, m->dims,
                     m->requires_grad || weight->requires_grad || (bias && bias->requires_grad));
}

// Two matrices, a batch of them and one, or two equal batches; others are laid out otherwise.
meta_answer meta_matmul(meta_call *c) {
    const meta *a = tensor_at(c, 0), *b = tensor_at(c, 1);
    size sizes[META_MOST_DIMS];
    if (!a || !b || !are_alike(a, b) || !dtype_is_float(a->dtype) || a->dims < 2 || b->dims < 2 ||
        a->dims < b->dims || (b->dims > 2 && a->dims != b->dims) ||
        (c->data > 0 && (a->dims != c->data || b->dims != c->data)) ||
        !size_is(c->sizes, a->sizes[a->dims - 1], b->sizes[b->dims - 2]))
        return META_UNKNOWN;
    if (b->dims > 2 && !sizes_are(c->sizes, a->sizes, b->sizes, b->dims - 2))
        return META_UNKNOWN;
    memcpy(sizes, a->sizes, sizeof(sizes));
    sizes[a->dims - 1] = b->sizes[b->dims - 1];
    return meta_give(c, a, sizes, a->dims, a->requires_grad || b->requires_grad);
}

// addmm(input, mat1, mat2)
meta_answer meta_addmm(meta_call *c) {
    const meta *m = tensor_at(c, 0), *a = tensor_at(c, 1), *b = tensor_at(c, 2);
    if (!m || !a || !b || !are_alike(a, b) || !are_alike(m, a) || !dtype_is_float(a->dtype) ||
        a->dims != 2 || b->dims != 2 || !size_is(c->sizes, a->sizes[1], b->sizes[0]))
        return META_UNKNOWN;
    size sizes[] = {a->sizes[0], b->sizes[1]};
    bool row = m->dims == 1 && size_is(c->sizes, m->sizes[0], sizes[1]);
    if (!row && (m->dims != 2 || !sizes_are(c->sizes, m->sizes, sizes, 2)))
        return META_UNKNOWN;
    return meta_give(c, a, sizes, 2, m->requires_grad || a->requires_grad || b->requires_grad);
}

// `flags`: the first of two arguments that are flags.
static meta_answer look_up(meta_call *c, const meta *weight, const meta *indices, int flags) {
    size sizes[META_MOST_DIMS], padding;
    bool ignored;
    if (is_given(c, 2) && (!size_of_int(c->args[2], &padding) || !weight || weight->dims == 0 ||
                           !size_is_index(c->sizes, padding, weight->sizes[0])))
        return META_UNKNOWN;
    if (!flag_at(c, flags, &ignored) || !flag_at(c, flags + 1, &ignored))
        return META_UNKNOWN;
    if (!weight || !indices || weight->dims != 2 || indices->dims == META_MOST_DIMS ||
        (indices->dtype != DTYPE_INT64 && indices->dtype != DTYPE_INT32) ||
        !meta_same_device(weight, indices))
        return META_UNKNOWN;
    memcpy(sizes, indices->sizes, (size_t)indices->dims * sizeof(size));
    sizes[indices->dims] = weight->sizes[1];
    return meta_give(c, weight, sizes, indices->dims + 1, weight->requires_grad);
}

// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
meta_answer meta_embedding(meta_call *c) {
    return c->args[2] == Py_None ? META_UNKNOWN : look_up(c, tensor_at(c, 0), tensor_at(c, 1), 3);
}

// torch.nn.functional.embedding; `max_norm` changes the weight.
meta_answer meta_look_up(meta_call *c) {
    return is_given(c, 3) ? META_UNKNOWN : look_up(c, tensor_at(c, 1), tensor_at(c, 0), 5);
}

// --- joining ---

// Whether what torch joins is laid out as contiguous tensors are: it is, unless all tensors have
// their channels last (cat_compute_output_memory_format).
static bool joins_contiguous(const meta_call *c, const meta *m, bool stacked) {
    if (m->dims + stacked < 4 || m->dims + stacked > 5)
        return true;
    return (strict_of(c, m) && meta_is_contiguous(c, m)) ||
           (!stacked && m->dims == 4 && !meta_is_channels_last(c, m));
}

// The tensors of the first argument, all alike; NULL if they are not. `stacked`: torch gives each a
// dimension more before it joins them.
static PyObject *const *joined(const meta_call *c, bool stacked, Py_ssize_t *count) {
    PyObject *list = c->args[0];
    if (!list || (!PyTuple_CheckExact(list) && !PyList_CheckExact(list)))
        return NULL;
    PyObject **items = PySequence_Fast_ITEMS(list);
    *count = PySequence_Fast_GET_SIZE(list);
    const meta *first = *count > 0 ? meta_at(c, items[0]) : NULL;
    for (Py_ssize_t i = 0; first && i < *count; i++) {
        const meta *m = meta_at(c, items[i]);
        if (!m || m->dims != first->dims || m->dtype != first->dtype || !meta_same_device(m, first))
            return NULL;
    }
    for (Py_ssize_t i = 0; first && i < *count; i++)
        if (joins_contiguous(c, meta_at(c, items[i]), stacked))
            return items;
    return NULL;
}

// cat(tensors, dim)
meta_answer meta_cat(meta_call *c) {
    Py_ssize_t count;
    PyObject *const *items = joined(c, false, &count);
    const meta *first = items ? meta_at(c, items[0]) : NULL;
    int64_t dim = 0;
    size sizes[META_MOST_DIMS];
    if (!first || first->dims == 0 || !int_at(c, 1, &dim) || !wrap_dim(&dim, first->dims))
        return META_UNKNOWN;
    memcpy(sizes, first->sizes, sizeof(sizes));
    bool grad = first->requires_grad;
    for (Py_ssize_t i = 1; i < count; i++) {
        const meta *m = meta_at(c, items[i]);
        for (int d = 0; d < first->dims; d++)
            if (d != dim && !size_is(c->sizes, m->sizes[d], sizes[d]))
                return META_UNKNOWN;
        sizes[dim] = size_add(sizes[dim], m->sizes[dim]);
        grad = grad || m->requires_grad;
    }
    return meta_give(c, first, sizes, first->dims, grad);
}

// stack(tensors, dim)
meta_answer meta_stack(meta_call *c) {
    Py_ssize_t count;
    PyObject *const *items = joined(c, true, &count);
    const meta *first = items ? meta_at(c, items[0]) : NULL;
    int64_t dim = 0;
    size sizes[META_MOST_DIMS];
    if (!first || first->dims == META_MOST_DIMS || !int_at(c, 1, &dim) ||
        !wrap_dim(&dim, first->dims + 1))
        return META_UNKNOWN;
    bool grad = false;
    for (Py_ssize_t i = 0; i < count; i++) {
        const meta *m = meta_at(c, items[i]);
        if (!meta_same_sizes(c, m, first))
            return META_UNKNOWN;
        grad = grad || m->requires_grad;
    }
    for (int from = 0, to = 0; to <= first->dims; to++)
        sizes[to] = to == dim ? size_of(count) : first->sizes[from++];
    return meta_give(c, first, sizes, first->dims + 1, grad);
}
