// Results that are made of sizes and numbers alone, and those that are like another tensor.
#include "src/graph/meta_inner.h"

enum { DEVICE_CPU = 0 }; // c10::DeviceType

// --- made of sizes ---

// The device of a factory; `like` NULL: the default one, which is the CPU as long as nobody says
// another one.
static bool device_at(const meta_call *c, int i, const meta *like, meta *to) {
    to->device_type = like ? like->device_type : DEVICE_CPU;
    to->device_index = like ? like->device_index : -1;
    return !is_given(c, i) ||
           c->context->device_of(c->args[i], &to->device_type, &to->device_index);
}

// Keywords dtype, device and requires_grad at the places from `first` on.
static meta *make(meta_call *c, int first, const meta *like, int32_t dtype) {
    meta to = {.dtype = dtype};
    bool grad = false;
    if (!dtype_at(c, first, &to.dtype) || !dtype_is_known(to.dtype) ||
        !device_at(c, first + 1, like, &to) || !flag_at(c, first + 2, &grad) || grad)
        return NULL;
    meta *result = meta_result(c, &to);
    return result;
}

// A contiguous tensor of these sizes.
static meta_answer give(const meta_call *c, meta *to, const size *sizes, int count) {
    for (int i = 0; to && i < count; i++)
        if (size_is_less(c->sizes, sizes[i], size_of(1)))
            return META_UNKNOWN;
    if (!to)
        return META_UNKNOWN;
    to->dims = count;
    memcpy(to->sizes, sizes, (size_t)count * sizeof(size));
    meta_lay_out(to);
    return META_TENSOR;
}

// zeros(*size, dtype, device, requires_grad); data: effects.
meta_answer meta_zeros(meta_call *c) {
    size sizes[META_MOST_DIMS];
    int count = 0;
    if (!sizes_at(c, 0, sizes, &count))
        return META_UNKNOWN;
    c->effects = c->data;
    int32_t dtype = c->context->default_dtype();
    meta *to = make(c, 1, NULL, dtype);
    // random numbers are floats
    return to && c->data && !dtype_is_float(to->dtype) ? META_UNKNOWN : give(c, to, sizes, count);
}

// The dtype that a number has as a tensor; DTYPE_NONE: no such number.
static int32_t dtype_of_number(const meta_call *c, PyObject *o) {
    size ignored;
    return PyBool_Check(o)            ? DTYPE_BOOL
           : size_of_int(o, &ignored) ? DTYPE_INT64
           : PyFloat_CheckExact(o)    ? c->context->default_dtype()
                                      : DTYPE_NONE;
}

// full(size, fill_value, dtype, device, requires_grad)
meta_answer meta_full(meta_call *c) {
    size sizes[META_MOST_DIMS];
    int count = 0;
    int32_t dtype = c->args[1] ? dtype_of_number(c, c->args[1]) : DTYPE_NONE;
    if (!c->args[0] || dtype == DTYPE_NONE || !sizes_at(c, 0, sizes, &count))
        return META_UNKNOWN;
    return give(c, make(c, 2, NULL, dtype), sizes, count);
}

int32_t meta_number_dtype(number_kind kind, int32_t floats) {
    return kind == NUMBER_BOOL ? DTYPE_BOOL : kind == NUMBER_INT ? DTYPE_INT64 : floats;
}

// Numbers, or lists of them that are equally long at each depth. `dims`: how deep this one lies.
static bool nested_numbers(const meta_call *c, PyObject *o, int dims, meta *to, bool *first) {
    number_kind kind;
    if (number_is(o, &kind)) {
        int32_t floats = c->context->default_dtype();
        to->dtype = dtype_promote(to->dtype, meta_number_dtype(kind, floats));
        size ignored;
        bool fits =
            (kind != NUMBER_INT || size_of_int(o, &ignored)) && (*first || to->dims == dims);
        to->dims = dims;
        *first = false;
        return fits;
    }
    if (!(PyList_CheckExact(o) || PyTuple_CheckExact(o)) || dims == META_MOST_DIMS)
        return false;
    size count = size_of(PySequence_Fast_GET_SIZE(o));
    if (*first)
        to->sizes[dims] = count;
    if (count.hint == 0 || count.hint != to->sizes[dims].hint)
        return false;
    for (Py_ssize_t i = 0; i < count.hint; i++)
        if (!nested_numbers(c, PySequence_Fast_GET_ITEM(o, i), dims + 1, to, first))
            return false;
    return true;
}

// Of numbers. `at`: the argument that has the data. Some dtypes do not take all numbers.
static meta_answer of_data(meta_call *c, int at, const meta *m) {
    meta like = {.dtype = DTYPE_NONE};
    bool first = true;
    if (!c->args[at] || !nested_numbers(c, c->args[at], 0, &like, &first))
        return META_UNKNOWN;
    meta *to = make(c, at + 1, m, m ? m->dtype : like.dtype);
    bool takes =
        to && (to->dtype == like.dtype || to->dtype == DTYPE_FLOAT || to->dtype == DTYPE_DOUBLE);
    return takes ? give(c, to, like.sizes, like.dims) : META_UNKNOWN;
}

// tensor(data, dtype, device, requires_grad)
meta_answer meta_tensor(meta_call *c) {
    return of_data(c, 0, NULL);
}

// new_tensor(input, data, dtype, device, requires_grad)
meta_answer meta_new_tensor(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    return m ? of_data(c, 1, m) : META_UNKNOWN;
}

// new_zeros(input, *size, dtype, device, requires_grad)
meta_answer meta_new(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    size sizes[META_MOST_DIMS];
    int count = 0;
    if (!m || !sizes_at(c, 1, sizes, &count))
        return META_UNKNOWN;
    return give(c, make(c, 2, m, m->dtype), sizes, count);
}

// new_full(input, size, fill_value, dtype, device, requires_grad)
meta_answer meta_new_full(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    size sizes[META_MOST_DIMS];
    int count = 0;
    if (!m || !c->args[1] || !c->args[2] || dtype_of_number(c, c->args[2]) == DTYPE_NONE ||
        !sizes_at(c, 1, sizes, &count))
        return META_UNKNOWN;
    return give(c, make(c, 3, m, m->dtype), sizes, count);
}

// arange(end), arange(start, end), arange(start, end, step), of ints.
meta_answer meta_arange(meta_call *c) {
    size start = size_of(0), end, step = size_of(1);
    bool one = !c->args[1];
    if (!c->args[0] || (one && (c->args[2] || c->given == 0)) ||
        !size_of_int(c->args[0], one ? &end : &start) || (!one && !size_of_int(c->args[1], &end)) ||
        (c->args[2] && !size_of_int(c->args[2], &step)) ||
        size_is_less(c->sizes, step, size_of(1)) || !size_is_less(c->sizes, start, end))
        return META_UNKNOWN;
    size count = size_div_up(size_sub(end, start), step);
    meta *to = make(c, 3, NULL, DTYPE_INT64);
    bool real = to && (dtype_is_integer(to->dtype) || dtype_is_float(to->dtype));
    return real ? give(c, to, &count, 1) : META_UNKNOWN;
}

// --- like another ---

// zeros_like(input, dtype, device, requires_grad); data: effects.
static meta_answer like(meta_call *c, int first) {
    const meta *m = tensor_at(c, 0);
    if (!m || !meta_is_dense(c, m))
        return META_UNKNOWN;
    meta *to = make(c, first, m, m->dtype);
    if (!to || (c->data && !dtype_is_float(to->dtype)))
        return META_UNKNOWN;
    c->effects = c->data;
    to->dims = m->dims;
    memcpy(to->sizes, m->sizes, sizeof(m->sizes));
    memcpy(to->strides, m->strides, sizeof(m->strides));
    return META_TENSOR;
}

meta_answer meta_zeros_like(meta_call *c) {
    return like(c, 1);
}

// full_like(input, fill_value, dtype, device, requires_grad)
meta_answer meta_full_like(meta_call *c) {
    bool number = c->args[1] && dtype_of_number(c, c->args[1]) != DTYPE_NONE;
    return number ? like(c, 2) : META_UNKNOWN;
}

// Whether a dimension of one element has another stride than that of the result. Torch's fakes keep
// such a stride, kernels do not.
static bool has_odd_one(const meta_call *c, const meta *m, const meta *to) {
    for (int i = 0; i < m->dims; i++)
        if (!size_is_surely(m->strides[i], to->strides[i]) && size_is_one(c->sizes, m->sizes[i]))
            return true;
    return false;
}

// triu(input, diagonal)
meta_answer meta_triangle(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    size diagonal;
    if (!m || m->dims < 2 || (c->args[1] && !size_of_int(c->args[1], &diagonal)))
        return META_UNKNOWN;
    meta *to = meta_result(c, m);
    *to = *m;
    meta_lay_out(to);
    meta_set_grad(c, to, m->requires_grad);
    return has_odd_one(c, m, to) ? META_UNKNOWN : META_TENSOR;
}
