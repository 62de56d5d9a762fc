// Results of recurrent layers: what each step gives, and the last state of each layer.
#include "src/graph/meta_inner.h"

enum { DEVICE_CPU = 0 }; // c10::DeviceType

// The parameters of lstm, gru, rnn_tanh and rnn_relu.
enum {
    AT_INPUT,
    AT_STATE,
    AT_WEIGHTS,
    AT_BIASES,
    AT_LAYERS,
    AT_DROPOUT,
    AT_TRAIN,
    AT_BOTH,
    AT_BATCH
};

typedef struct recurrence {
    const meta *input;
    size steps, batch, width; // width: elements of a state
    int64_t layers;
    int directions;
    bool biases, batch_first, drops, grad;
} recurrence;

static bool is_alike(const recurrence *r, const meta *m, int dims) {
    return m && m->dims == dims && m->dtype == r->input->dtype && meta_same_device(m, r->input);
}

// A probability, as an argument that torch takes: 0 may be an int.
static bool drop_at(const meta_call *c, int i, bool *drops) {
    PyObject *p = c->args[i];
    size zero;
    *drops = false;
    if (p && size_of_int(p, &zero))
        return size_is_zero(c->sizes, zero);
    *drops = p && PyFloat_CheckExact(p) && PyFloat_AS_DOUBLE(p) > 0;
    return p && PyFloat_CheckExact(p) && PyFloat_AS_DOUBLE(p) >= 0 && PyFloat_AS_DOUBLE(p) < 1;
}

static bool read_input(const meta_call *c, recurrence *r) {
    const meta *m = tensor_at(c, AT_INPUT);
    bool both = false, train = false;
    r->input = m;
    for (int i = AT_WEIGHTS; i <= AT_BATCH; i++)
        if (!c->args[i])
            return false;
    if (!m || m->dims != 3 || (m->dtype != DTYPE_FLOAT && m->dtype != DTYPE_DOUBLE) ||
        m->device_type != DEVICE_CPU || !flag_at(c, AT_BIASES, &r->biases) ||
        !int_at(c, AT_LAYERS, &r->layers) || r->layers < 1 || !drop_at(c, AT_DROPOUT, &r->drops) ||
        !flag_at(c, AT_TRAIN, &train) || !flag_at(c, AT_BOTH, &both) ||
        !flag_at(c, AT_BATCH, &r->batch_first))
        return false;
    r->directions = both ? 2 : 1;
    r->drops = r->drops && train && r->layers > 1; // between layers
    r->steps = m->sizes[r->batch_first];
    r->batch = m->sizes[!r->batch_first];
    r->grad = m->requires_grad;
    return true;
}

// A state: one row for each layer, direction and batch element.
static bool read_state(const meta_call *c, recurrence *r, PyObject *o) {
    const meta *m = meta_at(c, o);
    if (!is_alike(r, m, 3))
        return false;
    r->width = m->sizes[2];
    r->grad = r->grad || m->requires_grad;
    return size_is(c->sizes, m->sizes[0], size_of(r->layers * r->directions)) &&
           size_is(c->sizes, m->sizes[1], r->batch);
}

// The state of gru and rnn is a tensor, that of lstm a pair of them.
static bool read_states(const meta_call *c, recurrence *r, bool pair) {
    PyObject *o = c->args[AT_STATE];
    if (!pair || !o)
        return o && read_state(c, r, o);
    if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o))
        return false;
    if (PySequence_Fast_GET_SIZE(o) != 2 || !read_state(c, r, PySequence_Fast_GET_ITEM(o, 1)))
        return false;
    size width = r->width;
    return read_state(c, r, PySequence_Fast_GET_ITEM(o, 0)) && size_is(c->sizes, r->width, width);
}

// A matrix of these columns, or a row; for every gate as many rows as a state has elements.
static bool read_weight(const meta_call *c, recurrence *r, PyObject *o, size rows,
                        const size *columns) {
    const meta *m = meta_at(c, o);
    if (!is_alike(r, m, columns ? 2 : 1))
        return false;
    r->grad = r->grad || m->requires_grad;
    return size_is(c->sizes, m->sizes[0], rows) &&
           (!columns || size_is(c->sizes, m->sizes[1], *columns));
}

// For each layer and direction: the input's weights, the state's, and the biases of both.
static bool read_weights(const meta_call *c, recurrence *r, int gates) {
    PyObject *list = c->args[AT_WEIGHTS];
    int64_t each = r->biases ? 4 : 2, count = r->layers * r->directions;
    if ((!PyTuple_CheckExact(list) && !PyList_CheckExact(list)) ||
        PySequence_Fast_GET_SIZE(list) != each * count)
        return false;
    PyObject *const *at = PySequence_Fast_ITEMS(list);
    size rows = size_mul(r->width, size_of(gates));
    size below = size_mul(r->width, size_of(r->directions)); // what the layer below gives
    for (int64_t i = 0; i < count; i++, at += each) {
        const size *from = i < r->directions ? &r->input->sizes[2] : &below;
        if (!read_weight(c, r, at[0], rows, from) || !read_weight(c, r, at[1], rows, &r->width))
            return false;
        for (int bias = 2; bias < each; bias++)
            if (!read_weight(c, r, at[bias], rows, NULL))
                return false;
    }
    return true;
}

// lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), gru,
// rnn_tanh, rnn_relu; data: gates, of which lstm alone has four. What the steps give lies step by
// step, also if the batch is the first dimension.
meta_answer meta_recurrent(meta_call *c) {
    recurrence r = {0};
    bool pair = c->data == 4;
    if (!read_input(c, &r) || !read_states(c, &r, pair) || !read_weights(c, &r, c->data))
        return META_UNKNOWN;
    size steps[] = {r.steps, r.batch, size_mul(r.width, size_of(r.directions))};
    size state[] = {size_of(r.layers * r.directions), r.batch, r.width};
    (void)meta_give(c, r.input, steps, 3, r.grad);
    if (r.batch_first)
        meta_swap_dims(&c->results[0], 0, 1);
    for (int i = 0; i <= pair; i++)
        (void)meta_give(c, r.input, state, 3, r.grad);
    c->effects = r.drops ? EFFECT_RANDOM : 0;
    return META_TENSORS;
}
