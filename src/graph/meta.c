// Finds the rule of a callable, and binds a call's arguments to its parameters.
#include "src/base/mutant.h"

#include "src/graph/meta_inner.h"

struct meta_rule {
    const char *name;
    meta_function function;
    // With spaces between. A starred one takes the rest, those with `=` are given by name only. One
    // with `+` takes the rest of a function's, too.
    const char *parameters;
    int data;
    meta_memory memory;
};

static const meta_rule rules[] = {
#define META(name, function, parameters, data) {name, function, parameters, data, META_OWN},
#define VIEW(name, function, parameters, data) {name, function, parameters, data, META_VIEW},
#define ALIAS(name, function, parameters, data) {name, function, parameters, data, META_ALIAS},
#define ASK(name, function, parameters, data) {name, function, parameters, data, META_NONE},
#include "src/graph/meta_rules.def"
#undef META
#undef VIEW
#undef ALIAS
#undef ASK
};

const meta_rule *meta_find(const char *name) {
    for (size_t i = 0; i < Py_ARRAY_LENGTH(rules); i++)
        if (strcmp(rules[i].name, name) == 0)
            return &rules[i];
    return NULL;
}

bool meta_is_without_casts(const meta_rule *r) {
    return r->memory != META_OWN;
}

PyObject *meta_names(void) {
    PyObject *names = PyTuple_New(Py_ARRAY_LENGTH(rules));
    for (size_t i = 0; names && i < Py_ARRAY_LENGTH(rules); i++) {
        PyObject *name = PyUnicode_FromString(rules[i].name);
        if (name)
            PyTuple_SET_ITEM(names, i, name);
        else
            Py_CLEAR(names);
    }
    return names;
}

// --- binding ---

// Whether the parameter that begins here has this name.
static bool is_parameter(const char *parameter, const char *name, size_t length) {
    return strncmp(parameter, name, length) == 0 &&
           (parameter[length] == ' ' || parameter[length] == '\0');
}

static const char *next_parameter(const char *p) {
    const char *space = strchr(p, ' ');
    return space ? space + 1 : NULL;
}

// Whether a parameter takes the arguments that are left.
static bool takes_rest(char mark) {
    return mark == '*' || mark == '+';
}

// Methods have their tensor by position, and as a rule they alone take numbers one by one.
static bool bind_positional(const meta_rule *r, PyObject *args, meta_call *c) {
    Py_ssize_t given = PyTuple_GET_SIZE(args), i = 0;
    const char *p = r->parameters;
    bool method = c->context->way == META_METHOD;
    if (method && given == 0)
        return false;
    for (; p && i < given && !takes_rest(*p) && *p != '='; p = next_parameter(p), i++)
        c->args[i] = PyTuple_GET_ITEM(args, i);
    c->spread = p && takes_rest(*p) && (method || *p == '+');
    if (p && takes_rest(*p) && i < given && (c->spread || given - i == 1)) {
        c->given = i;
        c->rest = ((PyTupleObject *)args)->ob_item + i;
        c->rest_count = given - i;
        return true;
    }
    c->given = i;
    return i == given;
}

static bool bind_keyword(const meta_rule *r, PyObject *key, PyObject *value, meta_call *c) {
    Py_ssize_t length;
    const char *name = PyUnicode_AsUTF8AndSize(key, &length);
    if (!name) {
        PyErr_Clear();
        return false;
    }
    int i = 0;
    for (const char *p = r->parameters; p; p = next_parameter(p), i++) {
        bool star = takes_rest(*p), marked = star || *p == '=';
        if (!is_parameter(p + marked, name, (size_t)length))
            continue;
        if (c->args[i] || (star && c->rest))
            return false;
        c->args[i] = value;
        return true;
    }
    return false;
}

static bool bind_all(const meta_rule *r, PyObject *args, PyObject *kwargs, meta_call *c) {
    if (!bind_positional(r, args, c))
        return false;
    Py_ssize_t at = 0;
    PyObject *key, *value;
    bool named = c->context->way != META_OPERATOR;
    while (kwargs && PyDict_Next(kwargs, &at, &key, &value))
        if (!named || !PyUnicode_Check(key) || !bind_keyword(r, key, value, c))
            return false;
    return true;
}

// Whether the number of elements is one that torch can count to. With other sizes torch raises when
// the call is made, so this needs no condition.
static bool has_count(const meta *m) {
    int64_t count = 1;
    for (int i = 0; i < m->dims; i++)
        if (__builtin_mul_overflow(count, m->sizes[i].hint, &count))
            return false;
    return true;
}

// What a mutant changes about an answer; or CHANGE_DATA and what the row's data become.
enum { CHANGE_SIZES = 1, CHANGE_DTYPE, CHANGE_GRAD, CHANGE_DATA = 16 };

// An argument that should come back becomes a new tensor, which is not like it.
static meta_answer distort(meta_call *c, meta_answer answer, int change) {
    meta *m = &c->results[0];
    size more = size_of(change == CHANGE_SIZES);
    if (answer == META_NUMBER)
        c->number = size_add(c->number, more);
    if (answer == META_TRUTH)
        c->truth = c->truth != (change == CHANGE_SIZES);
    if (answer == META_SAME) {
        const meta *first = tensor_at(c, 0);
        c->count = 0;
        c->written = 0;
        *meta_result(c, first) = *first;
        answer = META_TENSOR;
    }
    if (c->count == 0)
        return answer;
    if (change == CHANGE_SIZES && m->dims > 0) {
        m->sizes[0] = size_add(m->sizes[0], more);
        int last = m->dims - 1;
        if (size_is_one(c->sizes, m->sizes[last]))
            m->strides[last] = size_add(m->strides[last], more);
    } else if (change == CHANGE_SIZES) { // a number becomes a row of one number
        m->dims = 1;
        m->sizes[0] = m->strides[0] = more;
    }
    if (change == CHANGE_DTYPE)
        m->dtype = m->dtype == DTYPE_DOUBLE ? DTYPE_FLOAT : DTYPE_DOUBLE;
    else if (change == CHANGE_GRAD)
        m->requires_grad = !m->requires_grad;
    return answer;
}

meta_answer meta_infer(const meta_rule *r, const meta_context *context, sizes *known,
                       PyObject *args, PyObject *kwargs, meta_call *c) {
    c->context = context;
    c->sizes = known;
    memset(c->args, 0, sizeof(c->args));
    c->rest = NULL;
    c->rest_count = 0;
    c->spread = false;
    c->data = r->data;
    c->last = -1;
    for (const char *p = r->parameters; p; p = next_parameter(p))
        c->last++;
    c->count = 0;
    c->effects = 0;
    c->written = 0;
    c->memory = r->memory;
    int change = mutant_of(MUTANT_META, (size_t)(r - rules));
    if (change >= CHANGE_DATA)
        c->data = change - CHANGE_DATA;
    sizes_mark mark = known ? sizes_now(known) : (sizes_mark){0};
    meta_answer answer = bind_all(r, args, kwargs, c) ? r->function(c) : META_UNKNOWN;
    if (change > 0 && change < CHANGE_DATA)
        answer = distort(c, answer, change);
    for (int i = 0; i < c->count; i++)
        if (!has_count(&c->results[i]))
            answer = META_UNKNOWN;
    number question; // that nobody can answer: torch may know a way without
    if (sizes_asked(known, &question))
        answer = META_UNKNOWN;
    if (answer == META_UNKNOWN && known)
        sizes_rollback(known, mark); // nobody relies on what the rule asked
    return answer;
}

// --- arguments ---

// Of tensors without elements strides and contiguity are each kernel's own affair.
const meta *meta_at(const meta_call *c, PyObject *o) {
    const meta *m = is_node(o) ? &((node *)o)->meta : NULL;
    if (!m || m->dims < 0 || !dtype_is_known(m->dtype))
        return NULL;
    for (int i = 0; i < m->dims; i++)
        if (size_is_zero(c->sizes, m->sizes[i]))
            return NULL;
    return m;
}

const meta *strict_of(const meta_call *c, const meta *m) {
    for (int i = 0; m && i < m->dims; i++) {
        size usual = meta_stride_before(m, i + 1);
        if (!size_is_surely(m->strides[i], usual) && size_is_one(c->sizes, m->sizes[i]) &&
            !size_is(c->sizes, m->strides[i], usual))
            return NULL;
    }
    return m;
}

bool size_of_int(PyObject *o, size *value) {
    int overflow = 0;
    if (number_is_of(o, NUMBER_INT) && is_node(o)) {
        *value = size_of_number(((node *)o)->value);
        return true;
    }
    bool whole = PyLong_CheckExact(o);
    if (whole)
        *value = size_of(PyLong_AsLongLongAndOverflow(o, &overflow));
    return whole && overflow == 0;
}

bool int_at(const meta_call *c, int i, int64_t *value) {
    size found;
    if (!c->args[i])
        return true;
    if (!size_of_int(c->args[i], &found))
        return false;
    *value = size_settle(c->sizes, found);
    return true;
}

bool flag_at(const meta_call *c, int i, bool *value) {
    if (!c->args[i])
        return true;
    *value = c->args[i] == Py_True;
    return PyBool_Check(c->args[i]);
}

bool dtype_at(const meta_call *c, int i, int32_t *dtype) {
    if (!is_given(c, i))
        return true;
    *dtype = c->context->dtype_of(c->args[i]);
    return dtype_is_known(*dtype);
}

bool number_is(PyObject *o, number_kind *kind) {
    const node *n = is_node(o) ? (const node *)o : NULL;
    *kind = n                       ? n->value.kind
            : PyBool_Check(o)       ? NUMBER_BOOL
            : PyFloat_CheckExact(o) ? NUMBER_FLOAT
                                    : NUMBER_INT;
    return n ? n->is_number : *kind != NUMBER_INT || PyLong_CheckExact(o);
}

static bool sizes_of(PyObject *const *items, Py_ssize_t count, size *values, int *found) {
    if (count > META_MOST_DIMS)
        return false;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!size_of_int(items[i], &values[i]))
            return false;
    *found = (int)count;
    return true;
}

bool sizes_at(const meta_call *c, int i, size *values, int *count) {
    PyObject *one = c->args[i];
    if (!one && c->rest_count == 1)
        one = c->rest[0];
    if (!one)
        return c->rest && sizes_of(c->rest, c->rest_count, values, count);
    if (PyTuple_Check(one) || PyList_CheckExact(one))
        return sizes_of(PySequence_Fast_ITEMS(one), PySequence_Fast_GET_SIZE(one), values, count);
    return one != c->args[i] && c->spread && sizes_of(&one, 1, values, count);
}

bool wrap_dim(int64_t *dim, int dims) {
    int most = dims > 0 ? dims : 1; // of a number there is the dimension 0
    if (*dim < -most || *dim >= most)
        return false;
    *dim += *dim < 0 ? most : 0;
    return true;
}

bool dims_at(const meta_call *c, int i, int dims, uint32_t *bits) {
    size values[META_MOST_DIMS];
    int count = 0;
    *bits = 0;
    // no dimensions are all of them to some, and none to others
    bool given = is_given(c, i) && (number_is_of(c->args[i], NUMBER_INT) || PyLong_Check(c->args[i])
                                        ? size_of_int(c->args[i], &values[count++])
                                        : sizes_at(c, i, values, &count));
    if (is_given(c, i) && (!given || count == 0))
        return false;
    for (int j = 0; j < count; j++) {
        int64_t dim = size_settle(c->sizes, values[j]);
        if (!wrap_dim(&dim, dims) || (*bits & 1U << dim))
            return false;
        *bits |= 1U << dim;
    }
    if (count == 0)
        *bits = (1U << dims) - 1;
    return true;
}

// --- sizes and strides ---

size meta_numel(const meta *m) {
    size count = size_of(1);
    for (int i = 0; i < m->dims; i++)
        count = size_mul(count, m->sizes[i]);
    return count;
}

int64_t meta_element_bytes(const meta *m) {
    static const int8_t bytes[] = {
        [DTYPE_UINT8] = 1,           [DTYPE_INT8] = 1,
        [DTYPE_INT16] = 2,           [DTYPE_INT32] = 4,
        [DTYPE_INT64] = 8,           [DTYPE_HALF] = 2,
        [DTYPE_FLOAT] = 4,           [DTYPE_DOUBLE] = 8,
        [DTYPE_COMPLEX_FLOAT] = 8,   [DTYPE_BOOL] = 1,
        [DTYPE_COMPLEX_DOUBLE] = 16, [DTYPE_BFLOAT16] = 2,
    };
    return dtype_is_known(m->dtype) ? bytes[m->dtype] : 0;
}

bool meta_dtype_is_complex(int32_t dtype) {
    return dtype == DTYPE_COMPLEX_HALF || dtype_is_complex(dtype);
}

size meta_stride_before(const meta *m, int dim) {
    return dim < m->dims ? size_mul(m->sizes[dim], m->strides[dim]) : size_of(1);
}

void meta_lay_out(meta *m) {
    for (int i = m->dims - 1; i >= 0; i--)
        m->strides[i] = meta_stride_before(m, i + 1);
}

bool meta_lies_within(const meta_call *c, const meta *m, int dim, size *stride) {
    if (!size_is_surely(m->strides[dim], *stride)) {
        if (size_is_one(c->sizes, m->sizes[dim]))
            return true;
        if (!size_is(c->sizes, m->strides[dim], *stride))
            return false;
    }
    *stride = size_mul(*stride, m->sizes[dim]);
    return true;
}

bool meta_is_contiguous(const meta_call *c, const meta *m) {
    size stride = size_of(1);
    for (int i = m->dims - 1; i >= 0; i--)
        if (!meta_lies_within(c, m, i, &stride))
            return false;
    return true;
}

bool meta_lies_plainly(sizes *known, const meta *m) {
    return m->dims >= 0 && meta_is_contiguous(&(meta_call){.sizes = known}, m);
}

// Channels last, where one of the dimensions has one element: its stride is any.
bool meta_is_perhaps_last(const meta *m) {
    static const int inner_first[][5] = {{1, 3, 2, 0}, {1, 4, 3, 2, 0}};
    int64_t stride = 1;
    bool small = false;
    for (int i = 0; (m->dims == 4 || m->dims == 5) && i < m->dims; i++) {
        int d = inner_first[m->dims - 4][i];
        small |= m->sizes[d].hint == 1;
        if (m->sizes[d].hint != 1 && m->strides[d].hint != stride)
            return false;
        stride *= m->sizes[d].hint;
    }
    return small;
}

// c10::is_channels_last_strides_2d: a dimension of one element counts by its stride alone.
bool meta_is_channels_last(const meta_call *c, const meta *m) {
    static const int order[] = {1, 3, 2, 0};
    size least = size_of(0);
    for (int i = 0; m->dims == 4 && i < 4; i++) {
        int d = order[i];
        if (size_is_less(c->sizes, m->strides[d], least) ||
            (d == 0 && size_is(c->sizes, least, m->strides[1])))
            return false;
        least = m->strides[d];
        if (!size_is_one(c->sizes, m->sizes[d]))
            least = size_mul(least, m->sizes[d]);
    }
    return m->dims == 4 && !size_is_zero(c->sizes, m->strides[1]);
}

// The dimension, of those that are not done, which has this stride; -1: none. `surely`: asks nothing.
static int dim_of_stride(const meta_call *c, const meta *m, uint32_t done, size stride,
                         bool surely) {
    for (int i = m->dims - 1; i >= 0; i--)
        if (!(done & 1U << i) && (surely ? size_is_surely(m->strides[i], stride)
                                         : size_is(c->sizes, m->strides[i], stride)))
            return i;
    return -1;
}

// From the innermost dimension outwards. Those of one element do not matter, but whether they have
// one is asked only of those that do not fit anyway.
bool meta_is_dense(const meta_call *c, const meta *m) {
    uint32_t done = 0, all = (1U << m->dims) - 1;
    size stride = size_of(1);
    for (int surely = 1; surely >= 0; surely--) {
        for (int next; (next = dim_of_stride(c, m, done, stride, surely)) >= 0;) {
            done |= 1U << next;
            stride = size_mul(stride, m->sizes[next]);
        }
        for (int i = 0; surely && i < m->dims; i++)
            if (!(done & 1U << i) && size_is_one(c->sizes, m->sizes[i]))
                done |= 1U << i;
    }
    return done == all;
}

bool meta_same_sizes(const meta_call *c, const meta *a, const meta *b) {
    return a->dims == b->dims && sizes_are(c->sizes, a->sizes, b->sizes, a->dims);
}

bool meta_same_device(const meta *a, const meta *b) {
    return a->device_type == b->device_type && a->device_index == b->device_index;
}

bool meta_is_stretched(const meta_call *c, const meta *m) {
    for (int i = 0; i < m->dims; i++)
        if (size_is_zero(c->sizes, m->strides[i]) && !size_is_one(c->sizes, m->sizes[i]))
            return true;
    return false;
}

bool meta_fits_into(const meta_call *c, const meta *m, const meta *into) {
    for (int i = 0; m->dims <= into->dims && i < m->dims; i++) {
        size own = m->sizes[i], other = into->sizes[into->dims - m->dims + i];
        if (!size_is_surely(own, other) && !size_is_one(c->sizes, own) &&
            !size_is(c->sizes, own, other))
            return false;
    }
    return m->dims <= into->dims;
}

// --- results ---

meta *meta_result(meta_call *c, const meta *like) {
    meta *m = &c->results[c->count++];
    *m = (meta){
        .dtype = like->dtype, .device_type = like->device_type, .device_index = like->device_index};
    return m;
}

void meta_set_grad(meta_call *c, meta *m, bool any) {
    m->requires_grad =
        any && c->context->grad && (dtype_is_float(m->dtype) || dtype_is_complex(m->dtype));
}

// --- new tensors ---

meta_answer meta_give(meta_call *c, const meta *like, const size *sizes, int dims, bool grad) {
    meta *to = meta_result(c, like);
    to->dims = dims;
    memcpy(to->sizes, sizes, (size_t)dims * sizeof(size));
    meta_lay_out(to);
    meta_set_grad(c, to, grad);
    return META_TENSOR;
}

// --- writes ---

meta_answer meta_write(meta_call *c, bool grad) {
    const meta *m = tensor_at(c, 0);
    if (meta_is_stretched(c, m))
        return META_UNKNOWN;
    c->count = 0;
    meta *to = meta_result(c, m);
    *to = *m;
    meta_set_grad(c, to, grad);
    to->requires_grad = to->requires_grad || m->requires_grad;
    c->written = 1;
    return META_SAME;
}

// --- dtypes ---

// c10::canCast.
bool dtype_can_cast(int32_t from, int32_t to) {
    if (dtype_is_complex(from))
        return dtype_is_complex(to);
    if (dtype_is_float(from))
        return dtype_is_float(to) || dtype_is_complex(to);
    return from == DTYPE_BOOL || to != DTYPE_BOOL;
}

static int32_t wider_integer(int32_t a, int32_t b) {
    if (a == DTYPE_UINT8 || b == DTYPE_UINT8) {
        int32_t other = a == DTYPE_UINT8 ? b : a;
        return other == DTYPE_INT8 ? DTYPE_INT16 : other;
    }
    return a > b ? a : b;
}

static int32_t wider_float(int32_t a, int32_t b) {
    bool halves =
        (a == DTYPE_HALF && b == DTYPE_BFLOAT16) || (a == DTYPE_BFLOAT16 && b == DTYPE_HALF);
    if (halves)
        return DTYPE_FLOAT;
    if (a == DTYPE_BFLOAT16)
        return b;
    if (b == DTYPE_BFLOAT16)
        return a;
    return a > b ? a : b;
}

static int32_t wider_complex(int32_t a, int32_t b) {
    bool wide = a == DTYPE_COMPLEX_DOUBLE || b == DTYPE_COMPLEX_DOUBLE || a == DTYPE_DOUBLE ||
                b == DTYPE_DOUBLE;
    return wide ? DTYPE_COMPLEX_DOUBLE : DTYPE_COMPLEX_FLOAT;
}

// c10::promoteTypes.
int32_t dtype_promote(int32_t a, int32_t b) {
    if (a == b || b == DTYPE_NONE || b == DTYPE_BOOL)
        return a == DTYPE_NONE ? b : a;
    if (a == DTYPE_NONE || a == DTYPE_BOOL)
        return b;
    if (dtype_is_complex(a) || dtype_is_complex(b))
        return wider_complex(a, b);
    if (dtype_is_float(a) && dtype_is_float(b))
        return wider_float(a, b);
    if (dtype_is_float(a) || dtype_is_float(b))
        return dtype_is_float(a) ? a : b;
    return wider_integer(a, b);
}
