// Results that show the same elements in another shape, and those that would if they could.
#include "src/graph/meta_inner.h"

// A view of `m`, which has its shape to begin with.
static meta *view_of(meta_call *c, const meta *m) {
    meta *to = meta_result(c, m);
    *to = *m;
    meta_set_grad(c, to, m->requires_grad);
    return to;
}

static void remove_dim(meta *m, int dim) {
    m->dims--;
    for (int i = dim; i < m->dims; i++) {
        m->sizes[i] = m->sizes[i + 1];
        m->strides[i] = m->strides[i + 1];
    }
}

static bool insert_dim(meta *m, int dim, int64_t size, int64_t stride) {
    if (m->dims == META_MOST_DIMS)
        return false;
    for (int i = m->dims++; i > dim; i--) {
        m->sizes[i] = m->sizes[i - 1];
        m->strides[i] = m->strides[i - 1];
    }
    m->sizes[dim] = size;
    m->strides[dim] = stride;
    return true;
}

meta_answer meta_contiguous(meta_call *c) {
    const meta *m = usual_of(viewed_at(c, 0));
    if (!m)
        return META_UNKNOWN;
    if (meta_is_contiguous(m))
        return META_SAME;
    meta_lay_out(view_of(c, m));
    return META_TENSOR;
}

meta_answer meta_detach(meta_call *c) {
    const meta *m = viewed_at(c, 0);
    if (!m)
        return META_UNKNOWN;
    view_of(c, m)->requires_grad = false;
    return META_TENSOR;
}

// --- order of dimensions ---

static void swap_dims(meta *m, int64_t a, int64_t b) {
    int64_t size = m->sizes[a], stride = m->strides[a];
    m->sizes[a] = m->sizes[b];
    m->strides[a] = m->strides[b];
    m->sizes[b] = size;
    m->strides[b] = stride;
}

meta_answer meta_transpose(meta_call *c) {
    const meta *m = viewed_at(c, 0);
    int64_t a = 0, b = 0;
    if (!m || !c->args[1] || !c->args[2] || !int_at(c, 1, &a) || !int_at(c, 2, &b) ||
        m->dims == 0 || !wrap_dim(&a, m->dims) || !wrap_dim(&b, m->dims))
        return META_UNKNOWN;
    swap_dims(view_of(c, m), a, b);
    return META_TENSOR;
}

meta_answer meta_t(meta_call *c) {
    const meta *m = viewed_at(c, 0);
    if (!m || m->dims != 2)
        return META_UNKNOWN;
    swap_dims(view_of(c, m), 0, 1);
    return META_TENSOR;
}

meta_answer meta_permute(meta_call *c) {
    const meta *m = viewed_at(c, 0);
    int64_t dims[META_MOST_DIMS];
    int count = 0;
    uint32_t seen = 0;
    if (!m || !ints_at(c, 1, dims, &count) || count != m->dims)
        return META_UNKNOWN;
    meta *to = view_of(c, m);
    for (int i = 0; i < count; i++) {
        if (!wrap_dim(&dims[i], m->dims) || (seen & 1U << dims[i]))
            return META_UNKNOWN;
        seen |= 1U << dims[i];
        to->sizes[i] = m->sizes[dims[i]];
        to->strides[i] = m->strides[dims[i]];
    }
    return META_TENSOR;
}

// --- dimensions of size one ---

meta_answer meta_unsqueeze(meta_call *c) {
    const meta *m = viewed_at(c, 0);
    int64_t dim = 0;
    if (!m || !c->args[1] || !int_at(c, 1, &dim) || !wrap_dim(&dim, m->dims + 1))
        return META_UNKNOWN;
    int64_t stride = dim < m->dims ? m->sizes[dim] * m->strides[dim] : 1;
    return insert_dim(view_of(c, m), (int)dim, 1, stride) ? META_TENSOR : META_UNKNOWN;
}

meta_answer meta_squeeze(meta_call *c) {
    const meta *m = viewed_at(c, 0);
    uint32_t bits = 0;
    bool some = c->args[1] && c->args[1] != Py_None;
    if (!m || m->dims == 0 || (c->args[1] && !some) || !dims_at(c, 1, m->dims, &bits) ||
        (some && !PyLong_CheckExact(c->args[1])))
        return META_UNKNOWN;
    meta *to = view_of(c, m);
    for (int i = m->dims - 1; i >= 0; i--)
        if (bits & 1U << i && m->sizes[i] == 1)
            remove_dim(to, i);
    return META_TENSOR;
}

meta_answer meta_expand(meta_call *c) {
    const meta *m = viewed_at(c, 0);
    int64_t sizes[META_MOST_DIMS];
    int count = 0;
    if (!m || !ints_at(c, 1, sizes, &count) || count < m->dims)
        return META_UNKNOWN;
    meta *to = view_of(c, m);
    to->dims = count;
    for (int i = count - 1; i >= 0; i--) {
        int own = i - (count - m->dims);
        int64_t size = own < 0 ? 1 : m->sizes[own];
        // as at::inferExpandGeometry: a new dimension of size one has the stride of a contiguous
        // one
        int64_t stride = own >= 0      ? m->strides[own]
                         : m->dims > 0 ? to->sizes[i + 1] * to->strides[i + 1]
                                       : 0;
        int64_t wanted = sizes[i] == -1 && own >= 0 ? size : sizes[i];
        if (wanted <= 0 || (size != 1 && wanted != size))
            return META_UNKNOWN;
        to->sizes[i] = wanted;
        to->strides[i] = size == wanted ? stride : 0;
    }
    return META_TENSOR;
}

// --- other shapes ---

// A -1 becomes what is left; false if the elements do not fit.
static bool complete(const meta *m, int64_t *sizes, int count) {
    int64_t product = 1, numel = meta_numel(m);
    int open = -1;
    for (int i = 0; i < count; i++) {
        if (sizes[i] == -1 && open < 0)
            open = i;
        else if (sizes[i] <= 0)
            return false;
        else if (__builtin_mul_overflow(product, sizes[i], &product))
            return false;
    }
    if (open >= 0 && numel % product == 0)
        sizes[open] = numel / product;
    return open >= 0 ? numel % product == 0 : product == numel;
}

// Dimensions that lie one within the other in memory, as one.
typedef struct stretch {
    int64_t count, stride;
} stretch;

// Innermost first. A dimension of one element belongs to whatever is further in.
static int stretches_of(const meta *m, stretch *found) {
    int last = 0;
    found[0] = (stretch){m->sizes[m->dims - 1], m->strides[m->dims - 1]};
    for (int d = m->dims - 2; d >= 0; d--) {
        stretch *s = &found[last];
        if (m->sizes[d] == 1 || m->strides[d] == s->count * s->stride)
            s->count *= m->sizes[d];
        else
            found[++last] = (stretch){m->sizes[d], m->strides[d]};
    }
    return last + 1;
}

// Strides that show `m` in the shape `to` has, if there are any: each stretch is divided anew.
static bool restride(const meta *m, meta *to) {
    stretch found[META_MOST_DIMS];
    int at = to->dims - 1, count = stretches_of(m, found);
    for (int i = 0; i < count; i++) {
        int64_t done = 1;
        for (; at >= 0 && (done < found[i].count || to->sizes[at] == 1); at--) {
            to->strides[at] = done * found[i].stride;
            done *= to->sizes[at];
        }
        if (done != found[i].count)
            return false;
    }
    return at < 0;
}

// Whether it is a view; else a copy.
static bool reshape(const meta *m, const int64_t *sizes, int count, meta *to) {
    to->dims = count;
    memcpy(to->sizes, sizes, (size_t)count * sizeof(int64_t));
    if (m->dims == 0) {
        meta_lay_out(to);
        return true;
    }
    bool view = restride(m, to);
    if (!view)
        meta_lay_out(to);
    return view;
}

static meta_answer shaped(meta_call *c, const meta *m, int64_t *sizes, int count, bool copies) {
    if (!complete(m, sizes, count))
        return META_UNKNOWN;
    meta *to = view_of(c, m);
    return reshape(m, sizes, count, to) || copies ? META_TENSOR : META_UNKNOWN;
}

meta_answer meta_view(meta_call *c) {
    const meta *m = usual_of(viewed_at(c, 0));
    int64_t sizes[META_MOST_DIMS];
    int count = 0;
    if (!m || !ints_at(c, 1, sizes, &count))
        return META_UNKNOWN;
    return shaped(c, m, sizes, count, c->data);
}

meta_answer meta_flatten(meta_call *c) {
    const meta *m = usual_of(viewed_at(c, 0));
    int64_t start = 0, end = -1, sizes[META_MOST_DIMS], product = 1;
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
        product *= m->sizes[i];
        if (i == end)
            sizes[count++] = product;
    }
    return shaped(c, m, sizes, count, true);
}

// --- subscripts ---

static bool bound(PyObject *o, int64_t size, int64_t standard, int64_t *value) {
    *value = standard;
    if (o == Py_None)
        return true;
    if (!PyLong_CheckExact(o))
        return false;
    int overflow;
    *value = PyLong_AsLongLongAndOverflow(o, &overflow);
    *value += *value < 0 ? size : 0;
    *value = *value < 0 ? 0 : *value > size ? size : *value;
    return overflow == 0;
}

static bool take_slice(meta *m, int dim, PySliceObject *slice) {
    int64_t start, stop, step = 1, size = m->sizes[dim];
    int overflow = 0;
    if (slice->step != Py_None)
        step = PyLong_CheckExact(slice->step) ? PyLong_AsLongLongAndOverflow(slice->step, &overflow)
                                              : 0;
    if (overflow || step <= 0 || !bound(slice->start, size, 0, &start) ||
        !bound(slice->stop, size, size, &stop) || start >= stop)
        return false;
    m->sizes[dim] = (stop - start + step - 1) / step;
    m->strides[dim] *= step;
    return true;
}

static bool take_index(meta *m, int dim, PyObject *index) {
    int overflow;
    int64_t at = PyLong_AsLongLongAndOverflow(index, &overflow);
    if (overflow || at < -m->sizes[dim] || at >= m->sizes[dim])
        return false;
    remove_dim(m, dim);
    return true;
}

// How many dimensions the subscripts take.
static int taken(PyObject *const *keys, Py_ssize_t count) {
    int dims = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        dims += keys[i] != Py_None && keys[i] != Py_Ellipsis;
    return dims;
}

static bool subscribe(meta *m, PyObject *const *keys, Py_ssize_t count) {
    int dim = 0, open = m->dims - taken(keys, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *key = keys[i];
        if (key == Py_Ellipsis) {
            dim += open;
            open = 0;
        } else if (key == Py_None) {
            // as unsqueeze
            int64_t stride = dim < m->dims ? m->sizes[dim] * m->strides[dim] : 1;
            if (!insert_dim(m, dim++, 1, stride))
                return false;
        } else if (dim >= m->dims) {
            return false;
        } else if (PySlice_Check(key)) {
            if (!take_slice(m, dim++, (PySliceObject *)key))
                return false;
        } else if (!PyLong_CheckExact(key) || !take_index(m, dim, key)) {
            return false;
        }
    }
    return true;
}

meta_answer meta_getitem(meta_call *c) {
    const meta *m = viewed_at(c, 0);
    PyObject *key = c->args[1];
    if (!m || !key || m->dims == 0)
        return META_UNKNOWN;
    bool many = PyTuple_CheckExact(key);
    Py_ssize_t count = many ? PyTuple_GET_SIZE(key) : 1;
    PyObject *const *keys = many ? ((PyTupleObject *)key)->ob_item : &key;
    int ellipses = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        ellipses += keys[i] == Py_Ellipsis;
    if (count == 0 || ellipses > 1 || taken(keys, count) > m->dims)
        return META_UNKNOWN;
    return subscribe(view_of(c, m), keys, count) ? META_TENSOR : META_UNKNOWN;
}

// --- pieces ---

meta_answer meta_unbind(meta_call *c) {
    const meta *m = viewed_at(c, 0);
    int64_t dim = 0;
    if (!m || m->dims == 0 || !int_at(c, 1, &dim) || !wrap_dim(&dim, m->dims) ||
        m->sizes[dim] > META_MOST_RESULTS)
        return META_UNKNOWN;
    for (int64_t i = 0; i < m->sizes[dim]; i++)
        remove_dim(view_of(c, m), (int)dim);
    return META_TENSORS;
}

static meta_answer pieces(meta_call *c, const meta *m, int64_t size, int64_t dim) {
    int64_t left = m->sizes[dim];
    if (size <= 0 || (left + size - 1) / size > META_MOST_RESULTS)
        return META_UNKNOWN;
    for (; left > 0; left -= size)
        view_of(c, m)->sizes[dim] = left < size ? left : size;
    return META_TENSORS;
}

static meta_answer pieces_of(meta_call *c, const meta *m, const int64_t *sizes, int count,
                             int64_t dim) {
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        if (sizes[i] <= 0)
            return META_UNKNOWN;
        view_of(c, m)->sizes[dim] = sizes[i];
        sum += sizes[i];
    }
    return count > 0 && sum == m->sizes[dim] ? META_TENSORS : META_UNKNOWN;
}

// split(x, 2), split(x, (1, 3)), split_with_sizes.
meta_answer meta_split(meta_call *c) {
    const meta *m = viewed_at(c, 0);
    int64_t dim = 0, sizes[META_MOST_DIMS];
    int count = 0;
    if (!m || m->dims == 0 || !c->args[1] || !int_at(c, 2, &dim) || !wrap_dim(&dim, m->dims) ||
        !ints_at(c, 1, sizes, &count))
        return META_UNKNOWN;
    if (PyLong_Check(c->args[1]))
        return pieces(c, m, sizes[0], dim);
    return pieces_of(c, m, sizes, count, dim);
}

meta_answer meta_chunk(meta_call *c) {
    const meta *m = viewed_at(c, 0);
    int64_t dim = 0, chunks = 0;
    if (!m || m->dims == 0 || !c->args[1] || !int_at(c, 1, &chunks) || chunks <= 0 ||
        !int_at(c, 2, &dim) || !wrap_dim(&dim, m->dims))
        return META_UNKNOWN;
    return pieces(c, m, (m->sizes[dim] + chunks - 1) / chunks, dim);
}

// --- what is asked ---

// size(), size(dim), stride(), stride(dim); data: which of them.
meta_answer meta_size(meta_call *c) {
    const meta *m = tensor_at(c, 0);
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
    const meta *m = tensor_at(c, 0);
    c->number = m ? m->dims : 0;
    return m ? META_NUMBER : META_UNKNOWN;
}

meta_answer meta_count(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    c->number = m ? meta_numel(m) : 0;
    return m ? META_NUMBER : META_UNKNOWN;
}

meta_answer meta_is_laid_out(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    c->number = m && meta_is_contiguous(m);
    return m ? META_TRUTH : META_UNKNOWN;
}

meta_answer meta_is_of(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    c->number = m && (c->data == OF_FLOATS ? dtype_is_float(m->dtype) : dtype_is_complex(m->dtype));
    return m ? META_TRUTH : META_UNKNOWN;
}
