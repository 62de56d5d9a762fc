// Results of operations on single elements: at::TensorIterator decides their dtype by promotion,
// their sizes by broadcasting, and their strides by those of the operands.
#include "src/graph/meta_inner.h"

enum { MOST_OPERANDS = META_MOST_DIMS + 1 }; // a tensor and an index for each dimension

typedef struct operands {
    const meta *at[MOST_OPERANDS]; // tensors
    int count;
    bool numbers, grad;
    bool booleans; // one of them is
    int32_t dims_dtype, zero_dtype,
        number_dtype; // of tensors, of those without dimensions, numbers
} operands;

static operands no_operands(void) {
    return (operands){
        .dims_dtype = DTYPE_NONE, .zero_dtype = DTYPE_NONE, .number_dtype = DTYPE_NONE};
}

static bool add_tensor(operands *o, const meta *m) {
    if (o->count == MOST_OPERANDS || (o->count > 0 && !meta_same_device(o->at[0], m)))
        return false;
    o->at[o->count++] = m;
    o->grad = o->grad || m->requires_grad;
    o->booleans = o->booleans || m->dtype == DTYPE_BOOL;
    int32_t *dtype = m->dims > 0 ? &o->dims_dtype : &o->zero_dtype;
    *dtype = dtype_promote(*dtype, m->dtype);
    return true;
}

// The value of a node fits, or the call raises with it.
static bool fits_long(PyObject *number) {
    int overflow = 0;
    if (PyLong_Check(number))
        (void)PyLong_AsLongLongAndOverflow(number, &overflow);
    return overflow == 0;
}

static bool add_number(const meta_call *c, operands *o, PyObject *number) {
    number_kind kind;
    if (!number_is(number, &kind) || !fits_long(number))
        return false;
    int32_t dtype = kind == NUMBER_BOOL  ? DTYPE_BOOL
                    : kind == NUMBER_INT ? DTYPE_INT64
                                         : c->context->default_dtype();
    o->numbers = true;
    o->booleans = o->booleans || dtype == DTYPE_BOOL;
    o->number_dtype = dtype_promote(o->number_dtype, dtype);
    return true;
}

static bool add_operand(const meta_call *c, operands *o, PyObject *argument) {
    const meta *m = argument ? meta_at(c, argument) : NULL;
    if (m)
        return add_tensor(o, m);
    return argument && add_number(c, o, argument);
}

// Of two kinds of operands the higher decides, unless it is of a lower category.
static int32_t combine(int32_t higher, int32_t lower) {
    if (dtype_is_complex(higher))
        return higher;
    if (dtype_is_float(higher)) {
        bool wide = higher == DTYPE_DOUBLE;
        if (!dtype_is_complex(lower))
            return higher;
        return wide                    ? DTYPE_COMPLEX_DOUBLE
               : higher == DTYPE_FLOAT ? DTYPE_COMPLEX_FLOAT
                                       : DTYPE_NONE;
    }
    if (higher == DTYPE_BOOL || dtype_is_float(lower) || dtype_is_complex(lower))
        return dtype_promote(higher, lower);
    return higher != DTYPE_NONE ? higher : lower;
}

static int32_t common_dtype(const operands *o) {
    return combine(o->dims_dtype, combine(o->zero_dtype, o->number_dtype));
}

// --- sizes ---

// The size of both, of a dimension that one of them may stretch; false: they do not fit.
static bool fit_sizes(const meta_call *c, size a, size b, size *both) {
    bool same = size_is_surely(a, b);
    *both = a;
    if (same || size_is_one(c->sizes, b))
        return true;
    if (size_is_one(c->sizes, a) || size_is_plain(b))
        *both = b;
    return size_is_one(c->sizes, a) || size_is(c->sizes, a, b);
}

static bool broadcast(const meta_call *c, const operands *o, meta *to) {
    to->dims = 0;
    for (int i = 0; i < o->count; i++)
        to->dims = o->at[i]->dims > to->dims ? o->at[i]->dims : to->dims;
    for (int d = 0; d < to->dims; d++) {
        bool begun = false;
        for (int i = 0; i < o->count; i++) {
            int own = d - (to->dims - o->at[i]->dims);
            if (own < 0)
                continue;
            size one = o->at[i]->sizes[own];
            if (!begun)
                to->sizes[d] = one;
            else if (!fit_sizes(c, to->sizes[d], one, &to->sizes[d]))
                return false;
            begun = true;
        }
    }
    return true;
}

// --- strides ---

static const int channels_last[] = {1, 3, 2, 0}; // innermost first

static bool is_channels_last(const meta_call *c, const meta *m) {
    size stride = size_of(1);
    for (int i = 0; m->dims == 4 && i < 4; i++)
        if (!meta_lies_within(c, m, channels_last[i], &stride))
            return false;
    return m->dims == 4;
}

static void lay_out_in_order(meta *m, const int *order) {
    size stride = size_of(1);
    for (int i = 0; i < m->dims; i++) {
        m->strides[order[i]] = stride;
        stride = size_mul(stride, m->sizes[order[i]]);
    }
}

void meta_lay_out_last(meta *m) {
    lay_out_in_order(m, channels_last);
}

static bool all_alike(const meta_call *c, const operands *o,
                      bool (*is)(const meta_call *c, const meta *m)) {
    for (int i = 0; i < o->count; i++)
        if (!is(c, o->at[i]))
            return false;
    return true;
}

static bool same_strides(const meta_call *c, const operands *o) {
    const meta *first = o->at[0];
    for (int i = 1; i < o->count; i++)
        if (!sizes_are(c->sizes, first->strides, o->at[i]->strides, first->dims))
            return false;
    return true;
}

static bool same_shape(const meta_call *c, const operands *o, const meta *to) {
    for (int i = 0; i < o->count; i++)
        if (!meta_same_sizes(c, o->at[i], to))
            return false;
    return !o->numbers || to->dims == 0;
}

// Zero where the operand is stretched.
static size stride_in(const meta_call *c, const meta *operand, const meta *to, int dim) {
    int own = dim - (to->dims - operand->dims);
    if (own < 0 ||
        (!size_is_surely(operand->sizes[own], to->sizes[dim]) &&
         size_is_one(c->sizes, operand->sizes[own]) && !size_is_one(c->sizes, to->sizes[dim])))
        return size_of(0);
    return operand->strides[own];
}

// Whether `outer` should be further in than `inner`: 1 yes, -1 no, 0 no operand tells.
static int should_swap(const meta_call *c, const operands *o, const meta *to, int inner,
                       int outer) {
    for (int i = 0; i < o->count; i++) {
        size a = stride_in(c, o->at[i], to, inner), b = stride_in(c, o->at[i], to, outer);
        if (size_is_zero(c->sizes, a) || size_is_zero(c->sizes, b))
            continue;
        if (!size_is(c->sizes, a, b))
            return size_is_less(c->sizes, a, b) ? -1 : 1;
        if (size_is_less(c->sizes, to->sizes[outer], to->sizes[inner]))
            return 1;
    }
    return 0;
}

// From the innermost to the outermost, as the operands' strides have it; the first one that tells
// decides (TensorIteratorBase::reorder_dimensions).
static void order_dimensions(const meta_call *c, const operands *o, const meta *to, int *order) {
    for (int i = 0; i < to->dims; i++)
        order[i] = to->dims - 1 - i;
    for (int i = 1; i < to->dims; i++) {
        int at = i;
        for (int below = i - 1; below >= 0; below--) {
            int swap = should_swap(c, o, to, order[below], order[at]);
            if (swap < 0)
                break;
            if (swap > 0) {
                int kept = order[below];
                order[below] = order[at];
                order[at] = kept;
                at = below;
            }
        }
    }
}

static void lay_out(const meta_call *c, const operands *o, meta *to) {
    int order[META_MOST_DIMS];
    bool same = same_shape(c, o, to);
    if (same && all_alike(c, o, meta_is_contiguous)) {
        meta_lay_out(to);
    } else if (same && all_alike(c, o, is_channels_last)) {
        lay_out_in_order(to, channels_last);
    } else if (same && same_strides(c, o) && all_alike(c, o, meta_is_dense)) {
        memcpy(to->strides, o->at[0]->strides, sizeof(to->strides));
    } else {
        order_dimensions(c, o, to, order);
        lay_out_in_order(to, order);
    }
}

void meta_lay_out_over(const meta_call *c, const meta *const *inputs, int count, meta *to) {
    int order[META_MOST_DIMS];
    operands o = {.count = count};
    assert(count <= MOST_OPERANDS);
    memcpy(o.at, inputs, (size_t)count * sizeof(*inputs));
    order_dimensions(c, &o, to, order);
    lay_out_in_order(to, order);
}

void meta_lay_out_like(const meta_call *c, const meta *m, meta *to) {
    lay_out(c, &(operands){.at = {m}, .count = 1}, to);
}

// The result goes into the first operand, whose sizes and strides stay.
static meta_answer finish_write(meta_call *c, const operands *o, int32_t dtype) {
    const meta *m = tensor_at(c, 0);
    meta to = {0};
    if (!m || m != o->at[0] || !dtype_is_known(dtype) || !dtype_can_cast(dtype, m->dtype) ||
        !broadcast(c, o, &to) || !meta_same_sizes(c, &to, m))
        return META_UNKNOWN;
    return meta_write(c, o->grad);
}

static meta_answer finish(meta_call *c, const operands *o, int32_t dtype) {
    if (c->data & WRITES)
        return finish_write(c, o, dtype);
    for (int i = 0; i < o->count; i++)
        if ((c->data & STRICT && !strict_of(c, o->at[i])) ||
            (o->count > 1 && meta_is_stretched(c, o->at[i])))
            return META_UNKNOWN;
    meta *to = meta_result(c, o->at[0]);
    to->dtype = dtype;
    if (!dtype_is_known(dtype) || !broadcast(c, o, to))
        return META_UNKNOWN;
    lay_out(c, o, to);
    meta_set_grad(c, to, o->grad);
    return META_TENSOR;
}

// --- one operand ---

meta_answer meta_unary(meta_call *c) {
    operands o = no_operands();
    const meta *m = tensor_at(c, 0);
    if (!m || !add_tensor(&o, m))
        return META_UNKNOWN;
    if (c->data & CONTIGUOUS && !meta_is_contiguous(c, m))
        return META_UNKNOWN;
    int32_t d = m->dtype;
    int kind = dtype_is_float(d) ? OF_FLOATS : dtype_is_complex(d) ? OF_COMPLEX : OF_INTEGERS;
    if (d == DTYPE_BOOL && !(c->data & (GIVES_FLOAT | GIVES_BOOL | OF_BOOL)))
        return META_UNKNOWN;
    if (c->data & GIVES_FLOAT && kind == OF_INTEGERS)
        return finish(c, &o, c->context->default_dtype());
    if (c->data & GIVES_BOOL)
        return finish(c, &o, DTYPE_BOOL);
    return c->data & kind ? finish(c, &o, d) : META_UNKNOWN;
}

// Activations with numbers for parameters, the last of which may be `inplace`.
meta_answer meta_activation(meta_call *c) {
    for (int i = 1; i < META_MOST_ARGS; i++) {
        PyObject *o = c->args[i];
        number_kind kind = NUMBER_FLOAT;
        if (o == Py_True && c->data & IN_PLACE && i == c->last)
            c->data |= WRITES;
        else if (o &&
                 (o == Py_True || !number_is(o, &kind) || (is_node(o) && kind == NUMBER_BOOL) ||
                  (c->data & IN_PLACE && kind == NUMBER_INT)))
            return META_UNKNOWN;
    }
    return meta_unary(c);
}

meta_answer meta_gelu(meta_call *c) {
    PyObject *how = c->args[1];
    if (how && (!PyUnicode_Check(how) || (PyUnicode_CompareWithASCIIString(how, "none") != 0 &&
                                          PyUnicode_CompareWithASCIIString(how, "tanh") != 0)))
        return META_UNKNOWN;
    return meta_unary(c);
}

// Bounds that would change the dtype are torch's to look at.
meta_answer meta_clamp(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    bool any = false;
    for (int i = 1; m && i <= 2; i++) {
        if (!is_given(c, i))
            continue;
        any = true;
        bool fits = (number_is_of(c->args[i], NUMBER_INT) && fits_long(c->args[i])) ||
                    (number_is_of(c->args[i], NUMBER_FLOAT) && dtype_is_float(m->dtype));
        if (!fits)
            return META_UNKNOWN;
    }
    return any ? meta_unary(c) : META_UNKNOWN;
}

// --- two operands ---

static int32_t binary_dtype(const meta_call *c, int32_t common) {
    if (c->data & GIVES_BOOL)
        return DTYPE_BOOL;
    if (c->data & GIVES_FLOAT && !dtype_is_float(common) && !dtype_is_complex(common))
        return c->context->default_dtype();
    return common;
}

// What rules leave to torch, which may refuse it.
static bool is_odd(const meta_call *c, const operands *o, int32_t common) {
    bool whole = dtype_is_integer(common) || common == DTYPE_BOOL;
    if (!dtype_is_known(common) || (c->data & TENSORS_ONLY && o->numbers))
        return true;
    if (c->data & BITWISE)
        return !whole;
    if (c->data & INTEGERS_ONLY)
        return !dtype_is_integer(common);
    if (c->data & POWER)
        return !dtype_is_float(common) || !meta_at(c, c->args[0]);
    return (c->data & NO_BOOL && o->booleans) || (c->data & NO_COMPLEX && dtype_is_complex(common));
}

// A factor of the second operand, of a kind that the dtype has. (A bool is for booleans only.)
static bool alpha_fits(const meta_call *c, int i, int32_t common) {
    number_kind kind;
    if (!c->args[i])
        return true;
    return number_is(c->args[i], &kind) && fits_long(c->args[i]) && common != DTYPE_BOOL &&
           (kind == NUMBER_INT ||
            (kind == NUMBER_FLOAT && (dtype_is_float(common) || dtype_is_complex(common))));
}

// The third parameter is `alpha`, or `rounding_mode`.
meta_answer meta_binary(meta_call *c) {
    operands o = no_operands();
    bool numbers_first = c->context->way == META_OPERATOR && !(c->data & WRITES);
    if ((is_given(c, 2) && !(c->data & SCALED)) || (!numbers_first && !tensor_at(c, 0)) ||
        !add_operand(c, &o, c->args[0]) || !add_operand(c, &o, c->args[1]) || o.count == 0)
        return META_UNKNOWN;
    int32_t common = common_dtype(&o);
    bool odd = is_odd(c, &o, common) || (c->data & SCALED && !alpha_fits(c, 2, common));
    return odd ? META_UNKNOWN : finish(c, &o, binary_dtype(c, common));
}

// max(input, other), or the greatest element of all. Along a dimension it gives two tensors.
meta_answer meta_extreme(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    if (c->args[1])
        return tensor_at(c, 1) ? meta_binary(c) : META_UNKNOWN;
    if (!m || dtype_is_complex(m->dtype))
        return META_UNKNOWN;
    meta_set_grad(c, meta_result(c, m), m->requires_grad);
    return META_TENSOR;
}

// --- three ---

// The method has its condition behind the tensor. The condition is the first to say how the result
// is laid out.
meta_answer meta_where(meta_call *c) {
    bool method = c->context->way == META_METHOD;
    const meta *condition = tensor_at(c, method);
    operands o = no_operands(), all = no_operands();
    if (!condition || condition->dtype != DTYPE_BOOL || !add_operand(c, &o, c->args[!method]) ||
        !add_operand(c, &o, c->args[2]))
        return META_UNKNOWN;
    int32_t dtype = common_dtype(&o);
    bool tensor = o.count == 2 ? o.at[0]->dtype == o.at[1]->dtype : o.count == 1;
    if (!tensor || (o.numbers && dtype != o.at[0]->dtype) || !add_tensor(&all, condition))
        return META_UNKNOWN;
    for (int i = 0; i < o.count; i++)
        if (!add_tensor(&all, o.at[i]))
            return META_UNKNOWN;
    all.numbers = o.numbers;
    return finish(c, &all, dtype);
}

// The mask must fit into the tensor.
meta_answer meta_masked_fill(meta_call *c) {
    const meta *m = tensor_at(c, 0), *mask = tensor_at(c, 1);
    operands o = no_operands();
    number_kind kind;
    if (!m || !mask || mask->dtype != DTYPE_BOOL || !c->args[2] || !number_is(c->args[2], &kind) ||
        !fits_long(c->args[2]) || !dtype_is_float(m->dtype) ||
        (!(c->data & WRITES) && !meta_is_contiguous(c, m)) || !add_tensor(&o, m) ||
        !add_tensor(&o, mask))
        return META_UNKNOWN;
    meta_answer answer = finish(c, &o, m->dtype);
    if (answer != META_TENSOR || !meta_same_sizes(c, &c->results[0], m))
        return answer == META_SAME ? answer : META_UNKNOWN;
    meta_lay_out(&c->results[0]);
    meta_set_grad(c, &c->results[0], m->requires_grad);
    return META_TENSOR;
}

// --- writes ---

// A number that a tensor of this dtype takes without complaint.
static bool takes_number(const meta *m, PyObject *o) {
    number_kind kind;
    return o && number_is(o, &kind) && fits_long(o) &&
           (dtype_is_float(m->dtype) || (kind == NUMBER_INT && m->dtype == DTYPE_INT64) ||
            (kind == NUMBER_BOOL && m->dtype == DTYPE_BOOL));
}

// zero_(input), fill_(input, value); data: whether there is a value.
meta_answer meta_fill(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    return m && (!c->data || takes_number(m, c->args[1])) ? meta_write(c, false) : META_UNKNOWN;
}

// copy_(input, src, non_blocking): any dtype, stretched to the tensor's sizes.
meta_answer meta_copy(meta_call *c) {
    const meta *m = tensor_at(c, 0), *from = tensor_at(c, 1);
    bool ignored;
    if (!m || !from || !flag_at(c, 2, &ignored) || !meta_same_device(m, from) ||
        (dtype_is_complex(from->dtype) && !dtype_is_complex(m->dtype)) ||
        !meta_fits_into(c, from, m))
        return META_UNKNOWN;
    return meta_write(c, from->requires_grad);
}

// x[key] = value, by numbers and slices; `value` a number, or a tensor that is stretched.
meta_answer meta_setitem(meta_call *c) {
    const meta *m = tensor_at(c, 0), *value = c->args[2] ? meta_at(c, c->args[2]) : NULL;
    meta part;
    if (!m || meta_is_stretched(c, m) || !meta_subscribe(c, m, &part))
        return META_UNKNOWN;
    if (!value && !takes_number(m, c->args[2]))
        return META_UNKNOWN;
    if (value && (!meta_same_device(m, value) || !meta_fits_into(c, value, &part) ||
                  (dtype_is_complex(value->dtype) && !dtype_is_complex(m->dtype))))
        return META_UNKNOWN;
    return meta_write(c, value && value->requires_grad) == META_SAME ? META_NOTHING : META_UNKNOWN;
}

// --- copies ---

static meta_answer copy(meta_call *c, const meta *m, int32_t dtype) {
    if (!meta_is_dense(c, m))
        return META_UNKNOWN;
    meta *to = meta_result(c, m);
    *to = *m;
    to->dtype = dtype;
    meta_set_grad(c, to, m->requires_grad);
    return META_TENSOR;
}

meta_answer meta_clone(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    return m && !is_given(c, 1) ? copy(c, m, m->dtype) : META_UNKNOWN;
}

static meta_answer cast(meta_call *c, const meta *m, int32_t dtype) {
    if (!dtype_is_known(dtype) || (dtype_is_complex(m->dtype) && !dtype_is_complex(dtype)))
        return META_UNKNOWN;
    return dtype == m->dtype ? META_SAME : copy(c, m, dtype);
}

// x.float(), x.long(), …: the row has the dtype.
meta_answer meta_cast(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    return m ? cast(c, m, c->data) : META_UNKNOWN;
}

meta_answer meta_type_as(meta_call *c) {
    const meta *m = tensor_at(c, 0), *other = tensor_at(c, 1);
    return m && other && meta_same_device(m, other) ? cast(c, m, other->dtype) : META_UNKNOWN;
}

// A dtype, a device, or a tensor that has both; false: something else, or another device.
static bool read_target(const meta_call *c, PyObject *o, const meta *m, int32_t *dtype) {
    const meta *other = meta_at(c, o);
    if (other) {
        *dtype = other->dtype;
        return meta_same_device(m, other);
    }
    int32_t type, index, asked = c->context->dtype_of(o);
    if (asked >= 0) {
        *dtype = asked;
        return true;
    }
    return c->context->device_of(o, &type, &index) && type == m->device_type &&
           index == m->device_index;
}

// By position: a dtype, a device, a tensor; or a device and a dtype.
static bool read_targets(const meta_call *c, const meta *m, int32_t *dtype) {
    if (c->rest_count == 2 && (c->context->dtype_of(c->rest[0]) >= 0 || meta_at(c, c->rest[0]) ||
                               c->context->dtype_of(c->rest[1]) < 0))
        return false;
    for (Py_ssize_t i = 0; i < c->rest_count; i++)
        if (!read_target(c, c->rest[i], m, dtype))
            return false;
    return c->rest_count <= 2;
}

// x.to(dtype), x.to(device), x.to(other), x.to(device, dtype), or keywords `dtype` and `device`.
meta_answer meta_to(meta_call *c) {
    const meta *m = tensor_at(c, 0);
    int32_t type, index, dtype = m ? m->dtype : DTYPE_NONE;
    bool named = c->args[2] || c->args[3];
    if (!m || c->args[1] || (named && c->rest_count > 0) || !read_targets(c, m, &dtype) ||
        !dtype_at(c, 2, &dtype))
        return META_UNKNOWN;
    if (is_given(c, 3) && (!c->context->device_of(c->args[3], &type, &index) ||
                           type != m->device_type || index != m->device_index))
        return META_UNKNOWN;
    return cast(c, m, dtype);
}
