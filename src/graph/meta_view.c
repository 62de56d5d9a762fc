// Results that show the same elements in another shape, and those that do so if the strides allow
// it.
#include "src/graph/meta_inner.h"

// A view of `m`, which has its shape to begin with. What has a gradient keeps it in views made
// without grad mode, and loses it in copies.
static meta *view_of(meta_call *c, const meta *m) {
    meta *to = meta_result(c, m);
    *to = *m;
    return to;
}

// The same as a copy, row by row.
static void lay_out_copy(meta_call *c, meta *to) {
    meta_lay_out(to);
    meta_set_grad(c, to, to->requires_grad);
}

static void remove_dim(meta *m, int dim) {
    m->dims--;
    for (int i = dim; i < m->dims; i++) {
        m->sizes[i] = m->sizes[i + 1];
        m->strides[i] = m->strides[i + 1];
    }
}

// A dimension of one element, with the stride that unsqueeze gives it.
static bool insert_dim(meta *m, int dim) {
    size stride = meta_stride_before(m, dim);
    if (m->dims == META_MOST_DIMS)
        return false;
    for (int i = m->dims++; i > dim; i--) {
        m->sizes[i] = m->sizes[i - 1];
        m->strides[i] = m->strides[i - 1];
    }
    m->sizes[dim] = size_of(1);
    m->strides[dim] = stride;
    return true;
}

meta_answer meta_contiguous(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    if (!m)
        return META_UNKNOWN;
    if (meta_is_contiguous(c, m))
        return META_SAME;
    lay_out_copy(c, view_of(c, m));
    return META_TENSOR;
}

meta_answer meta_detach(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    if (!m)
        return META_UNKNOWN;
    view_of(c, m)->requires_grad = false;
    return META_TENSOR;
}

// --- order of dimensions ---

void meta_swap_dims(meta *m, int64_t a, int64_t b) {
    size kept = m->sizes[a], stride = m->strides[a];
    m->sizes[a] = m->sizes[b];
    m->strides[a] = m->strides[b];
    m->sizes[b] = kept;
    m->strides[b] = stride;
}

meta_answer meta_transpose(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    int64_t a = 0, b = 0;
    if (!m || !c->args[1] || !c->args[2] || !int_at(c, 1, &a) || !int_at(c, 2, &b) ||
        m->dims == 0 || !wrap_dim(&a, m->dims) || !wrap_dim(&b, m->dims))
        return META_UNKNOWN;
    meta_swap_dims(view_of(c, m), a, b);
    return META_TENSOR;
}

meta_answer meta_t(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    if (!m || m->dims != 2)
        return META_UNKNOWN;
    meta_swap_dims(view_of(c, m), 0, 1);
    return META_TENSOR;
}

meta_answer meta_permute(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    size dims[META_MOST_DIMS];
    int count = 0;
    uint32_t seen = 0;
    if (!m || !sizes_at(c, 1, dims, &count) || count != m->dims)
        return META_UNKNOWN;
    meta *to = view_of(c, m);
    for (int i = 0; i < count; i++) {
        int64_t dim = size_settle(c->sizes, dims[i]);
        if (!wrap_dim(&dim, m->dims) || (seen & 1U << dim))
            return META_UNKNOWN;
        seen |= 1U << dim;
        to->sizes[i] = m->sizes[dim];
        to->strides[i] = m->strides[dim];
    }
    return META_TENSOR;
}

// --- dimensions of size one ---

meta_answer meta_unsqueeze(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    int64_t dim = 0;
    if (!m || !c->args[1] || !int_at(c, 1, &dim) || !wrap_dim(&dim, m->dims + 1))
        return META_UNKNOWN;
    return insert_dim(view_of(c, m), (int)dim) ? META_TENSOR : META_UNKNOWN;
}

meta_answer meta_squeeze(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    uint32_t bits = 0;
    bool some = c->args[1] && c->args[1] != Py_None;
    if (!m || m->dims == 0 || (c->args[1] && !some) || !dims_at(c, 1, m->dims, &bits) ||
        (some && !number_is_of(c->args[1], NUMBER_INT)))
        return META_UNKNOWN;
    meta *to = view_of(c, m);
    for (int i = m->dims - 1; i >= 0; i--)
        if (bits & 1U << i && size_is_one(c->sizes, m->sizes[i]))
            remove_dim(to, i);
    return META_TENSOR;
}

// As at::inferExpandGeometry: a new dimension of size one has the stride of a contiguous one.
bool meta_stretch(const meta_call *c, const meta *m, const size *sizes, int count, meta *to) {
    to->dims = count;
    for (int i = count - 1; i >= 0; i--) {
        int own = i - (count - m->dims);
        size now = own < 0 ? size_of(1) : m->sizes[own];
        size stride = own >= 0      ? m->strides[own]
                      : m->dims > 0 ? meta_stride_before(to, i + 1)
                                    : size_of(0);
        size wanted = own >= 0 && size_is(c->sizes, sizes[i], size_of(-1)) ? now : sizes[i];
        bool same = size_is(c->sizes, wanted, now);
        if (size_is_less(c->sizes, wanted, size_of(1)) || !(same || size_is_one(c->sizes, now)))
            return false;
        to->sizes[i] = wanted;
        to->strides[i] = same ? stride : size_of(0);
    }
    return true;
}

meta_answer meta_expand(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    size sizes[META_MOST_DIMS];
    int count = 0;
    if (!m || !sizes_at(c, 1, sizes, &count) || count < m->dims)
        return META_UNKNOWN;
    return meta_stretch(c, m, sizes, count, view_of(c, m)) ? META_TENSOR : META_UNKNOWN;
}

// How far the elements of a tensor reach in memory, from its first one.
static size reach_of(const meta *m) {
    size reach = size_of(1);
    for (int i = 0; i < m->dims; i++)
        reach = size_add(reach, size_mul(size_sub(m->sizes[i], size_of(1)), m->strides[i]));
    return reach;
}

// as_strided(input, size, stride), which begins where the tensor does, and reaches no further: how
// much memory there is behind the tensor is torch's to know.
meta_answer meta_as_strided(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    int sizes = 0, strides = 0;
    meta part = m ? *m : (meta){0};
    if (!m || !c->args[1] || !c->args[2] || !sizes_at(c, 1, part.sizes, &sizes) ||
        !sizes_at(c, 2, part.strides, &strides) || sizes != strides)
        return META_UNKNOWN;
    part.dims = sizes;
    for (int i = 0; i < sizes; i++)
        if (size_is_less(c->sizes, part.sizes[i], size_of(1)) ||
            size_is_less(c->sizes, part.strides[i], size_of(0)) ||
            part.strides[i].hint > INT32_MAX || part.sizes[i].hint > INT32_MAX)
            return META_UNKNOWN;
    if (size_is_less(c->sizes, reach_of(m), reach_of(&part)))
        return META_UNKNOWN;
    *view_of(c, m) = part;
    return META_TENSOR;
}

// --- other shapes ---

// A -1 becomes what is left; false if the elements do not fit.
static bool complete(const meta_call *c, const meta *m, size *sizes, int count) {
    size product = size_of(1), numel = meta_numel(m);
    int open = -1;
    for (int i = 0; i < count; i++) {
        if (open < 0 && size_is(c->sizes, sizes[i], size_of(-1)))
            open = i;
        else if (size_is_less(c->sizes, sizes[i], size_of(1)) ||
                 !size_mul_fits(product, sizes[i], &product))
            return false;
    }
    if (open < 0)
        return size_is(c->sizes, product, numel);
    if (!size_is_multiple(c->sizes, numel, product))
        return false;
    sizes[open] = size_floordiv(numel, product);
    return true;
}

// Dimensions that lie one within the other in memory, as one.
typedef struct stretch {
    size count, stride;
} stretch;

// Innermost first. A dimension of one element belongs to whatever is further in.
static int stretches_of(const meta_call *c, const meta *m, stretch *found) {
    int last = 0;
    found[0] = (stretch){m->sizes[m->dims - 1], m->strides[m->dims - 1]};
    for (int d = m->dims - 2; d >= 0; d--) {
        stretch *s = &found[last];
        size within = size_mul(s->count, s->stride);
        if (size_is_surely(m->strides[d], within) || size_is_one(c->sizes, m->sizes[d]) ||
            size_is(c->sizes, m->strides[d], within))
            s->count = size_mul(s->count, m->sizes[d]);
        else
            found[++last] = (stretch){m->sizes[d], m->strides[d]};
    }
    return last + 1;
}

// Strides that show `m` in the shape `to` has, if there are any: each stretch is divided anew. One
// that is all of `m` can be divided in any way, since both have as many elements.
bool meta_restride(const meta_call *c, const meta *m, meta *to) {
    stretch found[META_MOST_DIMS];
    int at = to->dims - 1, count = stretches_of(c, m, found);
    if (count == 1) {
        size stride = found[0].stride;
        for (; at >= 0; stride = size_mul(stride, to->sizes[at]), at--)
            to->strides[at] = stride;
        return true;
    }
    for (int i = 0; i < count; i++) {
        size done = size_of(1);
        for (; at >= 0 && (size_is_less(c->sizes, done, found[i].count) ||
                           size_is_one(c->sizes, to->sizes[at]));
             at--) {
            to->strides[at] = size_mul(done, found[i].stride);
            done = size_mul(done, to->sizes[at]);
        }
        if (!size_is(c->sizes, done, found[i].count))
            return false;
    }
    return at < 0;
}

// Whether it is a view; else a copy.
static bool reshape(meta_call *c, const meta *m, const size *sizes, int count, meta *to) {
    to->dims = count;
    memcpy(to->sizes, sizes, (size_t)count * sizeof(size));
    if (m->dims == 0) {
        meta_lay_out(to);
        return true;
    }
    bool view = meta_restride(c, m, to);
    if (!view)
        lay_out_copy(c, to);
    return view;
}

static meta_answer shaped(meta_call *c, const meta *m, size *sizes, int count, bool copies) {
    if (!complete(c, m, sizes, count))
        return META_UNKNOWN;
    meta *to = view_of(c, m);
    return reshape(c, m, sizes, count, to) || copies ? META_TENSOR : META_UNKNOWN;
}

meta_answer meta_view(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    size sizes[META_MOST_DIMS];
    int count = 0;
    if (!m || !sizes_at(c, 1, sizes, &count))
        return META_UNKNOWN;
    return shaped(c, m, sizes, count, c->data);
}

meta_answer meta_flatten(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    int64_t start = 0, end = -1;
    size sizes[META_MOST_DIMS], product = size_of(1);
    if (!m || !int_at(c, 1, &start) || !int_at(c, 2, &end) || m->dims == 0 ||
        !wrap_dim(&start, m->dims) || !wrap_dim(&end, m->dims) || start > end)
        return META_UNKNOWN;
    if (start == end)
        return META_SAME;
    int count = 0;
    for (int i = 0; i < m->dims; i++) {
        if (i < start || i > end) {
            sizes[count++] = m->sizes[i];
            continue;
        }
        product = size_mul(product, m->sizes[i]);
        if (i == end)
            sizes[count++] = product;
    }
    return shaped(c, m, sizes, count, true);
}

// --- subscripts ---

// A slice's end among `count` elements; None leaves the value as it is.
static bool bound(sizes *known, PyObject *o, size count, size *value) {
    if (o == Py_None)
        return true;
    if (!size_of_int(o, value))
        return false;
    if (size_is_less(known, *value, size_of(0)))
        *value = size_add(*value, count);
    if (size_is_less(known, *value, size_of(0)))
        *value = size_of(0);
    else if (size_is_less(known, count, *value))
        *value = count;
    return true;
}

static bool take_slice(sizes *known, meta *m, int dim, PySliceObject *slice) {
    size start = size_of(0), stop = m->sizes[dim], step = size_of(1), last;
    // What is not empty and ends at a positive subscript has one condition less if that is asked
    // first: it tells that the end is not counted from behind, and lies behind a start of 0.
    if (slice->stop != Py_None && size_of_int(slice->stop, &last) && last.hint > 0)
        (void)size_is_less(known, size_of(0), last);
    if ((slice->step != Py_None && !size_of_int(slice->step, &step)) ||
        size_is_less(known, step, size_of(1)) ||
        !bound(known, slice->start, m->sizes[dim], &start) ||
        !bound(known, slice->stop, m->sizes[dim], &stop) || !size_is_less(known, start, stop))
        return false;
    m->sizes[dim] = size_div_up(size_sub(stop, start), step);
    m->strides[dim] = size_mul(m->strides[dim], step);
    return true;
}

static bool take_index(sizes *known, meta *m, int dim, PyObject *index) {
    size at;
    if (!size_of_int(index, &at) || !size_is_index(known, at, m->sizes[dim]))
        return false;
    remove_dim(m, dim);
    return true;
}

int meta_taken(PyObject *const *keys, Py_ssize_t count) {
    int dims = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        dims += keys[i] != Py_None && keys[i] != Py_Ellipsis;
    return dims;
}

bool meta_take(sizes *known, meta *m, PyObject *key, int *dim) {
    if (key == Py_None)
        return insert_dim(m, (*dim)++);
    if (*dim >= m->dims)
        return false;
    return PySlice_Check(key) ? take_slice(known, m, (*dim)++, (PySliceObject *)key)
                              : take_index(known, m, *dim, key);
}

static bool subscribe(sizes *known, meta *m, PyObject *const *keys, Py_ssize_t count) {
    int dim = 0, open = m->dims - meta_taken(keys, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (keys[i] == Py_Ellipsis)
            dim += open;
        else if (!meta_take(known, m, keys[i], &dim))
            return false;
    }
    return true;
}

// The subscripts of a key, and how many; none if there are two ellipses.
static PyObject *const *keys_of(const meta_call *c, Py_ssize_t *count) {
    PyObject *key = c->args[1];
    bool many = key && PyTuple_CheckExact(key);
    PyObject *const *keys = many ? ((PyTupleObject *)key)->ob_item : &c->args[1];
    int ellipses = 0;
    *count = many ? PyTuple_GET_SIZE(key) : key != NULL;
    for (Py_ssize_t i = 0; i < *count; i++)
        ellipses += keys[i] == Py_Ellipsis;
    *count = ellipses > 1 ? 0 : *count;
    return keys;
}

bool meta_subscribe(meta_call *c, const meta *m, meta *part) {
    Py_ssize_t count;
    PyObject *const *keys = keys_of(c, &count);
    *part = *m;
    return m->dims > 0 && count > 0 && meta_taken(keys, count) <= m->dims &&
           subscribe(c->sizes, part, keys, count);
}

static bool has_tensor(PyObject *const *keys, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (is_node(keys[i]) && !((node *)keys[i])->is_number)
            return true;
    return false;
}

meta_answer meta_getitem(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    Py_ssize_t count;
    PyObject *const *keys = keys_of(c, &count);
    meta part;
    if (m && has_tensor(keys, count))
        return meta_pick(c, keys, count);
    if (!m || !meta_subscribe(c, m, &part))
        return META_UNKNOWN;
    *view_of(c, m) = part;
    return META_TENSOR;
}

meta_answer meta_select(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    int64_t dim = 0;
    bool fine = m && m->dims > 0 && c->args[1] && c->args[2] && int_at(c, 1, &dim) &&
                wrap_dim(&dim, m->dims);
    return fine && take_index(c->sizes, view_of(c, m), (int)dim, c->args[2]) ? META_TENSOR
                                                                             : META_UNKNOWN;
}

// --- pieces ---

meta_answer meta_unbind(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    int64_t dim = 0;
    if (!m || m->dims == 0 || !int_at(c, 1, &dim) || !wrap_dim(&dim, m->dims))
        return META_UNKNOWN;
    int64_t count = size_settle(c->sizes, m->sizes[dim]);
    if (count > META_MOST_RESULTS)
        return META_UNKNOWN;
    for (int64_t i = 0; i < count; i++)
        remove_dim(view_of(c, m), (int)dim);
    return META_TENSORS;
}

// All of one size, but for the last one.
static meta_answer pieces(meta_call *c, const meta *m, size each, int64_t dim) {
    if (size_is_less(c->sizes, each, size_of(1)))
        return META_UNKNOWN;
    int64_t count = size_settle(c->sizes, size_div_up(m->sizes[dim], each));
    if (count > META_MOST_RESULTS)
        return META_UNKNOWN;
    for (int64_t i = 1; i < count; i++)
        view_of(c, m)->sizes[dim] = each;
    size others = size_mul(each, size_of(count - 1));
    view_of(c, m)->sizes[dim] = size_sub(m->sizes[dim], others);
    return META_TENSORS;
}

static meta_answer pieces_of(meta_call *c, const meta *m, const size *sizes, int count,
                             int64_t dim) {
    size sum = size_of(0);
    for (int i = 0; i < count; i++) {
        if (size_is_less(c->sizes, sizes[i], size_of(1)))
            return META_UNKNOWN;
        view_of(c, m)->sizes[dim] = sizes[i];
        sum = size_add(sum, sizes[i]);
    }
    return count > 0 && size_is(c->sizes, sum, m->sizes[dim]) ? META_TENSORS : META_UNKNOWN;
}

// split(x, 2), split(x, (1, 3)), split_with_sizes; data: whether one size will do.
meta_answer meta_split(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    int64_t dim = 0;
    size one, sizes[META_MOST_DIMS];
    int count = 0;
    if (!m || m->dims == 0 || !c->args[1] || !int_at(c, 2, &dim) || !wrap_dim(&dim, m->dims))
        return META_UNKNOWN;
    if (c->data && size_of_int(c->args[1], &one))
        return pieces(c, m, one, dim);
    return sizes_at(c, 1, sizes, &count) ? pieces_of(c, m, sizes, count, dim) : META_UNKNOWN;
}

meta_answer meta_chunk(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    int64_t dim = 0;
    size chunks;
    if (!m || m->dims == 0 || !c->args[1] || !size_of_int(c->args[1], &chunks) ||
        size_is_less(c->sizes, chunks, size_of(1)) || !int_at(c, 2, &dim) ||
        !wrap_dim(&dim, m->dims))
        return META_UNKNOWN;
    return pieces(c, m, size_div_up(m->sizes[dim], chunks), dim);
}

// --- what is asked ---

// size(), size(dim), stride(), stride(dim); data: which of them.
// Of what sizes and dtype tell, whether there are elements or not.
static const meta *sized_at(const meta_call *c, int at) {
    const PyObject *o = c->args[at];
    const meta *m = o && is_node((PyObject *)o) ? &((const node *)o)->meta : NULL;
    return m && m->dims >= 0 && dtype_is_known(m->dtype) ? m : NULL;
}

meta_answer meta_size(meta_call *c) {
    const meta *m = c->data == META_SIZES ? sized_at(c, 0) : tensor_at(c, 0);
    int64_t dim = 0;
    if (!m || !int_at(c, 1, &dim))
        return META_UNKNOWN;
    if (!c->args[1]) {
        *meta_result(c, m) = *m;
        return (meta_answer)c->data;
    }
    if (m->dims == 0 || !wrap_dim(&dim, m->dims))
        return META_UNKNOWN;
    c->number = c->data == META_SIZES ? m->sizes[dim] : m->strides[dim];
    return META_NUMBER;
}

meta_answer meta_dim(meta_call *c) {
    const meta *m = sized_at(c, 0);
    c->number = size_of(m ? m->dims : 0);
    return m ? META_NUMBER : META_UNKNOWN;
}

meta_answer meta_count(meta_call *c) {
    const meta *m = sized_at(c, 0);
    if (!m)
        return META_UNKNOWN;
    c->number = meta_numel(m);
    return META_NUMBER;
}

meta_answer meta_element_size(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    c->number = size_of(m ? meta_element_bytes(m) : 0);
    return m ? META_NUMBER : META_UNKNOWN;
}

meta_answer meta_is_laid_out(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    c->truth = m && meta_is_contiguous(c, m);
    return m ? META_TRUTH : META_UNKNOWN;
}

meta_answer meta_is_of(meta_call *c) {
    const meta *m = sized_at(c, 0);
    c->truth = m && (c->data == OF_FLOATS ? dtype_is_float(m->dtype) : dtype_is_complex(m->dtype));
    return m ? META_TRUTH : META_UNKNOWN;
}
