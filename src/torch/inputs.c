// Turns a tensor from outside into a guard and a graph input. The guard reads torch's memory, and
// runs no Python code.
#include "src/py/raw.h"
#include "src/py/words.h"

#include "src/torch/dims.h"
#include "src/torch/overrides.h"

PyObject *int_tuple(const int64_t *items, int64_t count) {
    PyObject *result = PyTuple_New(count);
    for (int64_t i = 0; result && i < count; i++) {
        PyObject *item = PyLong_FromLongLong(items[i]);
        if (item)
            PyTuple_SET_ITEM(result, i, item);
        else
            Py_CLEAR(result);
    }
    return result;
}

// --- the guard ---

// The numbers of a tensor that its guard does not compare.
typedef struct open_dims {
    uint32_t sizes, strides; // bit d: the size, the stride of dimension d is not compared
    uint32_t unhinted;       // of sizes: those that may be 0 or 1, too
    // For an open stride: the dimension whose size times stride it must be; -1: any stride fits.
    int8_t within[META_MOST_DIMS];
} open_dims;

// Sizes 0 and 1 are never left open, since torch treats them specially.
enum { LEAST_OPEN_SIZE = 2 };

typedef struct tensor_guard {
    PyTypeObject *type; // strong
    alias_group *group; // one reference
    int index;          // in the group
    seen expected;      // its arrays are `numbers`
    int64_t offset;
    uintptr_t address; // of its memory, where the user asked for a guard
    bool offset_matters, leaf_matters, leaf;
    bool hooks_matter; // it has none
    bool closed;       // a parameter: other sizes mean another module, and nothing is left open
    open_dims open;
    dim_marks marks;
    int64_t numbers[];
} tensor_guard;

// By torch's getters, which run no Python code for these classes.
static bool has_hooks(PyObject *tensor) {
    static const char *const names[] = {"_backward_hooks", "_post_accumulate_grad_hooks"};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++) {
        PyObject *hooks = PyObject_GetAttrString(tensor, names[i]);
        bool some = !hooks || (hooks != Py_None && PyObject_Size(hooks) != 0);
        Py_XDECREF(hooks);
        PyErr_Clear();
        if (some)
            return true;
    }
    return false;
}

static void guard_drop(void *data) {
    tensor_guard *g = data;
    Py_XDECREF(g->type);
    alias_group_drop(g->group);
    PyMem_Free(g);
}

// There are few, so a loop is faster than a call.
static inline bool same_numbers(const int64_t *a, const int64_t *b, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static bool same_kind(const seen *a, const seen *b) {
    return a->keys == b->keys && a->dims == b->dims && a->dtype == b->dtype &&
           a->device_type == b->device_type && a->device_index == b->device_index &&
           a->requires_grad == b->requires_grad;
}

// Whether a stride is the size times the stride of another dimension. Torch counts a size of 0 as 1.
static bool is_around(const seen *s, int64_t dim, int64_t inner) {
    int64_t product, size = s->sizes[inner] > 0 ? s->sizes[inner] : 1;
    return !__builtin_mul_overflow(size, s->strides[inner], &product) && product == s->strides[dim];
}

static bool size_fits(const tensor_guard *g, const seen *now, int64_t d) {
    if (!(g->open.sizes & 1U << d))
        return now->sizes[d] == g->expected.sizes[d];
    return g->open.unhinted & 1U << d || now->sizes[d] >= LEAST_OPEN_SIZE;
}

static bool stride_fits(const tensor_guard *g, const seen *now, int64_t d) {
    if (!(g->open.strides & 1U << d))
        return now->strides[d] == g->expected.strides[d];
    return g->open.within[d] < 0 || is_around(now, d, g->open.within[d]);
}

static bool same_but_open(const tensor_guard *g, const seen *now) {
    for (int64_t d = 0; d < now->dims; d++)
        if (!size_fits(g, now, d) || !stride_fits(g, now, d))
            return false;
    return true;
}

static bool seen_fits(const tensor_guard *g, const seen *now) {
    const seen *expected = &g->expected;
    if (!same_kind(now, expected))
        return false;
    if (g->open.sizes | g->open.strides)
        return same_but_open(g, now);
    return same_numbers(now->sizes, expected->sizes, now->dims) &&
           same_numbers(now->strides, expected->strides, now->dims);
}

static bool is_changed(const seen *fake, const seen *real) {
    return fake->requires_grad != real->requires_grad || fake->dims != real->dims ||
           !same_numbers(fake->sizes, real->sizes, real->dims) ||
           !same_numbers(fake->strides, real->strides, real->dims);
}

static int64_t count_elements(const seen *s) {
    int64_t count = 1;
    for (int64_t i = 0; i < s->dims; i++)
        count *= s->sizes[i];
    return count;
}

static bool is_resized(const seen *fake, const seen *real) {
    return count_elements(fake) != count_elements(real);
}

// Whether the fake of some input has become another than the input, in this way.
static bool any_input(const world *w, bool (*differs)(const seen *fake, const seen *real)) {
    const torch_trace *t = w->torch;
    for (int i = 0; i < w->graph->inputs; i++) {
        const node *n = (node *)PyList_GET_ITEM(w->graph->nodes, i);
        uint64_t *owner = map_get(&t->owners, map_key(n));
        seen fake, real;
        if (owner && n->example != Py_None && read_tensor(n->example, &fake) &&
            read_tensor(((standin *)(uintptr_t)*owner)->outside, &real) && differs(&fake, &real))
            return true;
    }
    return false;
}

bool inputs_changed(const world *w) {
    return any_input(w, is_changed);
}

bool inputs_resized(const world *w) {
    return any_input(w, is_resized);
}

static bool is_at_address(const tensor_guard *g, PyObject *o) {
    return !g->marks.address || (read_extent(o).begin == g->address && read_offset(o) == g->offset);
}

// Most tensors have no attributes, and so no marks, which fits any guard.
static bool marks_fit(const tensor_guard *g, PyObject *o) {
    if (!raw_has_attrs(o))
        return true;
    dim_marks marks = dim_marks_read(o);
    return dim_marks_fit(&g->marks, &marks);
}

static bool guard_check_tensor(PyObject *o, void *data) {
    tensor_guard *g = data;
    seen now;
    if (Py_TYPE(o) != g->type || !read_tensor(o, &now) || !seen_fits(g, &now))
        return false;
    bool sharing = g->group->matters;
    if (!marks_fit(g, o) || !is_at_address(g, o) ||
        (sharing && !alias_group_check(g->group, g->index, o)))
        return false;
    bool offset = g->offset_matters || (sharing && g->group->each.items[g->index].shared);
    if (offset && read_offset(o) != g->offset)
        return false;
    return (!g->leaf_matters || read_leaf(o) == g->leaf) && !(g->hooks_matter && has_hooks(o));
}

// Attributes that are no marks, in a dict that stays as it is.
static bool marks_words(words *w, PyObject *o) {
    dim_marks marks = dim_marks_read(o);
    return !marks.any && !marks.odd && !marks.address && words_attr_names(w, o, false);
}

// Words stand for a guard that reads nothing but this tensor. Of one with open sizes they would
// change too often.
static bool guard_words_tensor(words *w, PyObject *o, void *data) {
    const tensor_guard *g = data;
    if (g->open.sizes | g->open.strides || g->marks.address || g->group->matters ||
        g->leaf_matters || !marks_words(w, o) || !tensor_words(w, o))
        return false;
    if (g->offset_matters)
        offset_words(w, o);
    return true;
}

// Whether a stride follows from the sizes, in the trace and now: open sizes leave it open.
static bool follows_sizes(const seen *then, const seen *now, int64_t dim) {
    for (int64_t inner = 0; inner < now->dims; inner++)
        if (inner != dim && is_around(then, dim, inner) && is_around(now, dim, inner))
            return true;
    return false;
}

// Whether two tensors have their dimensions in the same order in memory: no dimension has another
// place, is the innermost in only one of them, or is repeated (stride 0) in only one.
static bool same_order(const seen *then, const seen *now) {
    for (int64_t i = 0; i < now->dims; i++) {
        bool small = then->strides[i] <= 1 || now->strides[i] <= 1;
        if (small && then->strides[i] != now->strides[i])
            return false;
        for (int64_t j = 0; j < i; j++)
            if ((then->strides[i] < then->strides[j]) != (now->strides[i] < now->strides[j]))
                return false;
    }
    return true;
}

static unsigned misfit_sizes(const tensor_guard *g, const seen *now) {
    unsigned bits = 0;
    for (int64_t d = 0; d < now->dims; d++)
        if (!size_fits(g, now, d))
            bits |= 1U << (SYMBOLIC_SIZES + d);
    return bits;
}

// Which sizes and strides do not fit: bits of number.h. Of another layout, which needs an entry of
// its own, only the sizes; 0: it has the same ones.
static unsigned misfit_dims(const tensor_guard *g, const seen *now) {
    unsigned sizes = misfit_sizes(g, now), strides = 0;
    for (int64_t d = 0; d < now->dims; d++) {
        if (stride_fits(g, now, d) || follows_sizes(&g->expected, now, d))
            continue;
        if (!same_order(&g->expected, now))
            return sizes;
        strides |= 1U << (SYMBOLIC_STRIDES + d);
    }
    return sizes | strides;
}

// Compares all but the sharing of memory, for which a guard pass keeps notes.
static bool guard_misfit_tensor(PyObject *o, void *data, unsigned *open) {
    const tensor_guard *g = data;
    seen now;
    *open = 0;
    if (Py_TYPE(o) != g->type || !read_tensor(o, &now) || !same_kind(&now, &g->expected) ||
        (g->offset_matters && read_offset(o) != g->offset) ||
        (g->leaf_matters && read_leaf(o) != g->leaf) || (g->hooks_matter && has_hooks(o)) ||
        !is_at_address(g, o))
        return true;
    dim_marks marks = dim_marks_read(o);
    if (!dim_marks_fit(&g->marks, &marks))
        return true;
    if (seen_fits(g, &now))
        return false;
    if (now.dims <= META_MOST_DIMS && !g->closed)
        *open = misfit_dims(g, &now);
    if (*open >> SYMBOLIC_SIZES & dim_marks_with(&marks, DIM_FIXED))
        *open = 0; // the user wants an entry for each of these
    return true;
}

// Classes whose objects behave as plain tensors.
static bool is_known_class(PyTypeObject *type) {
    return type == facts.tensor || type == facts.parameter || type == facts.buffer;
}

static PyObject *dtype_text(int32_t dtype) {
    PyObject *known = dtype_object(dtype);
    return known ? PyObject_Str(known) : PyUnicode_FromFormat("dtype %d", dtype);
}

static PyObject *device_text(const seen *s) {
    bool known = s->device_type >= 0 && s->device_type < (int)Py_ARRAY_LENGTH(facts.device_names);
    PyObject *name = known ? facts.device_names[s->device_type] : NULL;
    PyObject *type = name ? Py_NewRef(name) : PyUnicode_FromFormat("device %d", s->device_type);
    if (!type || s->device_index < 0)
        return type;
    PyObject *text = PyUnicode_FromFormat("%U:%d", type, s->device_index);
    Py_DECREF(type);
    return text;
}

// "(3, 4)"; an open number is "any". New str.
static PyObject *numbers_text(const int64_t *items, int64_t count, uint32_t open) {
    PyObject *numbers = int_tuple(items, count), *text = NULL;
    for (int64_t i = 0; numbers && open && i < count; i++) {
        PyObject *any = open & 1U << i ? PyUnicode_FromString("any") : NULL;
        if (any && PyTuple_SetItem(numbers, i, any) < 0)
            Py_CLEAR(numbers);
    }
    PyObject *quoted = numbers ? PyObject_Repr(numbers) : NULL;
    PyObject *quote = PyUnicode_FromString("'"), *none = PyUnicode_FromString("");
    if (quoted && quote && none)
        text = PyUnicode_Replace(quoted, quote, none, -1);
    Py_XDECREF(numbers);
    Py_XDECREF(quoted);
    Py_XDECREF(quote);
    Py_XDECREF(none);
    return text;
}

// ", size (3, 4), stride (4, 1)"; only a dense tensor has these in its memory.
static PyObject *sizes_text(const seen *s, const open_dims *open) {
    if (!(s->keys & facts.dense_keys))
        return PyUnicode_FromString("");
    PyObject *sizes = numbers_text(s->sizes, s->dims, open->sizes);
    PyObject *strides = numbers_text(s->strides, s->dims, open->strides);
    PyObject *text =
        sizes && strides ? PyUnicode_FromFormat(", size %U, stride %U", sizes, strides) : NULL;
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return text;
}

// ", requires_grad, conj": the other properties that the guard compares.
static PyObject *flags_text(const seen *s) {
    PyObject *text = PyUnicode_FromString(s->requires_grad ? ", requires_grad" : "");
    Py_ssize_t count = facts.key_words ? PyList_GET_SIZE(facts.key_words) : 0;
    for (Py_ssize_t i = 0; text && i < count; i++) {
        PyObject *row = PyList_GET_ITEM(facts.key_words, i);
        uint64_t bits = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(row, 0));
        if (s->keys & bits)
            Py_SETREF(text, PyUnicode_FromFormat("%U, %U", text, PyTuple_GET_ITEM(row, 1)));
    }
    if (text && facts.usual_keys && !(s->keys & facts.usual_keys))
        Py_SETREF(text, PyUnicode_FromFormat("%U, inference", text));
    return text;
}

// "a Tensor of torch.float32 on cpu, size (3, 4), stride (4, 1)", from raw reads: torch's getters
// call a subclass's __torch_function__ and modes, which are the user's code. The text of a subclass
// is only its name, since it may keep its sizes anywhere. `s` NULL: the tensor cannot be read.
static PyObject *describe(PyTypeObject *type, const seen *s, const open_dims *open) {
    const char *path = type->tp_name, *dot = strrchr(path, '.');
    const char *name = dot ? dot + 1 : path;
    if (!is_known_class(type) || !s)
        return PyUnicode_FromFormat("a %s", name);
    PyObject *dtype = dtype_text(s->dtype), *device = device_text(s);
    PyObject *sizes = sizes_text(s, open), *flags = flags_text(s), *text = NULL;
    if (dtype && device && sizes && flags)
        text = PyUnicode_FromFormat("a %s of %U on %U%U%U", name, dtype, device, sizes, flags);
    Py_XDECREF(dtype);
    Py_XDECREF(device);
    Py_XDECREF(sizes);
    Py_XDECREF(flags);
    return text;
}

static PyObject *expected_text(const tensor_guard *g) {
    return describe(g->type, &g->expected, &g->open);
}

static PyObject *guard_text_tensor(const char *source, void *data) {
    PyObject *expected = expected_text(data);
    PyObject *text = expected ? PyUnicode_FromFormat("%s is %U", source, expected) : NULL;
    Py_XDECREF(expected);
    return text;
}

// Torch's name of a place in its own messages: x for L['x'].
static PyObject *short_name(const char *source) {
    const char *end = strncmp(source, "L['", 3) == 0 ? strstr(source, "']") : NULL;
    PyObject *name = end ? PyUnicode_FromStringAndSize(source + 3, end - source - 3) : NULL;
    if (!end || !name)
        return end ? NULL : PyUnicode_FromString(source);
    PyObject *text = PyUnicode_FromFormat("%U%s", name, end + 2);
    Py_DECREF(name);
    return text;
}

// "expected 3, actual 5": torch's words, which people look for.
static PyObject *mismatch_text(const char *source, const char *what, int64_t dim, bool open,
                               int64_t then, int64_t now) {
    PyObject *name = short_name(source), *text = NULL;
    if (name && open)
        text = PyUnicode_FromFormat("tensor '%U' %s mismatch at index %lld. expected any of %d or "
                                    "more, actual %lld",
                                    name, what, (long long)dim, LEAST_OPEN_SIZE, (long long)now);
    else if (name)
        text = PyUnicode_FromFormat("tensor '%U' %s mismatch at index %lld. expected %lld, actual "
                                    "%lld",
                                    name, what, (long long)dim, (long long)then, (long long)now);
    Py_XDECREF(name);
    return text;
}

// The first size or stride that is not as expected, if nothing else is; NULL without an exception:
// something else is.
static PyObject *number_reason(const char *source, const tensor_guard *g, const seen *now) {
    if (!same_kind(now, &g->expected))
        return NULL;
    for (int64_t d = 0; d < now->dims; d++)
        if (!size_fits(g, now, d))
            return mismatch_text(source, "size", d, g->open.sizes & 1U << d, g->expected.sizes[d],
                                 now->sizes[d]);
    for (int64_t d = 0; d < now->dims; d++)
        if (!stride_fits(g, now, d))
            return mismatch_text(source, "stride", d, false, g->expected.strides[d],
                                 now->strides[d]);
    return NULL;
}

static PyObject *marks_reason(const char *source, const tensor_guard *g, const dim_marks *now) {
    PyObject *mine = dim_marks_text(now), *theirs = dim_marks_text(&g->marks), *text = NULL;
    if (mine && theirs)
        text = PyUnicode_FromFormat("%s has marks on its sizes: %U; expected: %U", source, mine,
                                    theirs);
    Py_XDECREF(mine);
    Py_XDECREF(theirs);
    return text;
}

// What people can do about sizes of parameters.
static PyObject *with_hint(PyObject *reason, const tensor_guard *g, PyObject *o) {
    if (!reason || g->type != facts.parameter || Py_TYPE(o) != facts.parameter)
        return reason;
    PyObject *text =
        PyUnicode_FromFormat("%U (sizes of parameters are left open only with "
                             "torch._dynamo.config.force_parameter_static_shapes = False)",
                             reason);
    Py_DECREF(reason);
    return text;
}

static PyObject *other_reason(const char *source, const tensor_guard *g, PyObject *now) {
    PyObject *expected = expected_text(g), *text = NULL;
    if (now && expected)
        text = PyUnicode_FromFormat("%s is now %U; expected: %U", source, now, expected);
    Py_XDECREF(expected);
    Py_XDECREF(now);
    return text;
}

static PyObject *guard_reason_tensor(const char *source, PyObject *o, void *data) {
    tensor_guard *g = data;
    if (!PyObject_TypeCheck(o, facts.base))
        return other_reason(source, g, PyUnicode_FromFormat("a %s", Py_TYPE(o)->tp_name));
    seen s;
    bool readable = read_tensor(o, &s), same_type = Py_TYPE(o) == g->type && readable;
    PyObject *number = same_type ? number_reason(source, g, &s) : NULL;
    if (number || PyErr_Occurred())
        return with_hint(number, g, o);
    dim_marks marks = dim_marks_read(o);
    if (!dim_marks_fit(&g->marks, &marks))
        return marks_reason(source, g, &marks);
    if (!is_at_address(g, o))
        return PyUnicode_FromFormat("the memory of %s has moved, and its address is guarded "
                                    "(torch._dynamo.mark_static_address)",
                                    source);
    PyObject *now = describe(Py_TYPE(o), readable ? &s : NULL, &(open_dims){0});
    if (!now || !same_type || !seen_fits(g, &s))
        return with_hint(other_reason(source, g, now), g, o);
    PyObject *result = PyUnicode_FromFormat(
        "%s shares memory, is a leaf, or dispatches otherwise than before: %U", source, now);
    Py_DECREF(now);
    return with_hint(result, g, o);
}

static const guard_custom tensor_custom = {
    .name = "TENSOR",
    .check = guard_check_tensor,
    .text = guard_text_tensor,
    .reason = guard_reason_tensor,
    .drop = guard_drop,
    .misfit = guard_misfit_tensor,
    .words = guard_words_tensor,
};

static void fill_guard(tensor_guard *g, PyObject *tensor, const seen *s) {
    g->type = (PyTypeObject *)Py_NewRef(Py_TYPE(tensor));
    g->expected = *s;
    size_t bytes = (size_t)s->dims * sizeof(int64_t);
    memcpy(g->numbers, s->sizes, bytes);
    memcpy(g->numbers + s->dims, s->strides, bytes);
    g->expected.sizes = g->numbers;
    g->expected.strides = g->numbers + s->dims;
    g->offset = read_offset(tensor);
    g->marks = dim_marks_read(tensor);
    g->address = read_extent(tensor).begin;
}

static tensor_guard *guard_of(torch_trace *t, PyObject *tensor, const open_dims *open) {
    seen s;
    alias_group *group = alias_group_of(t);
    if (!group || !read_tensor(tensor, &s))
        return NULL;
    tensor_guard *g = PyMem_Calloc(1, sizeof(tensor_guard) + 2 * (size_t)s.dims * sizeof(int64_t));
    if (!g)
        return (tensor_guard *)PyErr_NoMemory();
    fill_guard(g, tensor, &s);
    g->open = *open;
    g->index = (int)group->each.count;
    g->group = group;
    group->references++;
    if (alias_group_add(group, read_extent(tensor)) == ST_OK)
        return g;
    guard_drop(g);
    return NULL;
}

// --- order: inputs stand in the order of first looks (`x is None` is one), as in Dynamo ---

// A register of a place that was read by key only says that the key was there.
bool register_tells(const source *s) {
    return s->reg >= 0 &&
           (s->kind == SOURCE_LOCAL || s->kind == SOURCE_LIST_ITEM || s->kind == SOURCE_TUPLE_ITEM);
}

// The rank of a place that is opened now.
static int rank_of(world *w, torch_trace *t, const source *s) {
    uint64_t *known = map_get(&t->looked, map_key(s));
    if (known)
        return (int)*known;
    return 2 * (register_tells(s) ? s->reg : guard_needed(w->guards));
}

status input_looked(world *w, source *s) {
    torch_trace *t = trace_of(w);
    if (!t)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    if (map_get(&t->looked, map_key(s)))
        return ST_OK;
    return map_put(&t->looked, map_key(s), (uint64_t)(2 * guard_needed(w->guards) - 1));
}

status inputs_sort(world *w) {
    torch_trace *t = w->torch;
    graph *g = w->graph;
    int *ranks = arena_array(&w->arena, int, (size_t)g->inputs);
    if (!ranks)
        return ST_ERROR;
    for (uint32_t i = 0; i < t->all.count; i++) {
        standin *s = (standin *)t->all.items[i];
        if (s->input)
            ranks[s->input->index] = 2 * s->rank;
    }
    for (int i = 0; i < g->inputs; i++) {
        const node *n = (node *)PyList_GET_ITEM(g->nodes, i);
        if (n->is_number)
            ranks[i] = number_rank(w, n);
    }
    graph_sort_inputs(g, ranks);
    return ST_OK;
}

// --- opening ---

// Why this tensor cannot be an input: new str, None if it can, NULL with an exception.
static PyObject *refusal(PyObject *tensor) {
    return PyObject_CallOneArg(glue_function("refusal"), tensor);
}

// A tensor of another class. Torch's own code, run for it from now on, asks nobody.
static status check_class(world *w, PyObject *tensor) {
    seen s;
    if (!read_tensor(tensor, &s))
        return world_break_status(w, REASON_TENSOR_OPERATION, "a tensor of class %s",
                                  Py_TYPE(tensor)->tp_name);
    if (s.keys & facts.python_keys)
        return composite_check(w, tensor);
    TRY(subclass_check(w, Py_TYPE(tensor), false));
    return overrides_of(w) ? ST_OK : w->stop.broken ? ST_BREAK : ST_ERROR;
}

static status check_input(world *w, PyObject *tensor) {
    if (!is_known_class(Py_TYPE(tensor)))
        TRY(check_class(w, tensor));
    PyObject *why = refusal(tensor);
    if (!why)
        return ST_ERROR;
    status result = why == Py_None
                        ? ST_OK
                        : world_break_status(w, REASON_TENSOR_OPERATION, "a tensor that %S", why);
    Py_DECREF(why);
    return result;
}

// The name of a free variable of the traced function; borrowed, or NULL.
static PyObject *free_name(world *w, Py_ssize_t index) {
    for (uint32_t i = 0; i < w->in.all.count; i++) {
        record *r = w->in.all.items[i];
        if (r->source != w->in.function || !PyFunction_Check(r->outside))
            continue;
        PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(r->outside);
        Py_ssize_t at = code->co_nlocalsplus - code->co_nfreevars + index;
        return at < code->co_nlocalsplus ? PyTuple_GET_ITEM(code->co_localsplusnames, at) : NULL;
    }
    return NULL;
}

// The text with `length` characters of its head replaced.
static PyObject *with_head(PyObject *text, Py_ssize_t length, PyObject *head) {
    PyObject *tail = PyUnicode_Substring(text, length, PY_SSIZE_T_MAX);
    PyObject *result = head && tail ? PyUnicode_Concat(head, tail) : NULL;
    Py_XDECREF(tail);
    return result;
}

// Dynamo's name of a place: globals of the traced function are G, its free variables are locals.
static PyObject *head_of(world *w, const source *root, const source *below) {
    if (root->kind == SOURCE_GLOBALS)
        return PyUnicode_FromString("G");
    PyObject *name = root->kind == SOURCE_CLOSURE && below && below->kind == SOURCE_CELL
                         ? free_name(w, root->index)
                         : NULL;
    return name ? PyUnicode_FromFormat("L[%R]", name) : NULL;
}

PyObject *input_name(world *w, source *s) {
    if (s->kind == SOURCE_ARRAY) // the array is the program's, not the tensor
        s = s->parent;
    PyObject *text = Py_XNewRef(guard_source_text(w->guards, s));
    source *root = s, *below = NULL;
    for (; text && root->parent && root->parent != w->in.function; root = root->parent)
        below = root;
    PyObject *head = text && root->parent ? head_of(w, root, below) : NULL;
    if (!head)
        return PyErr_Occurred() ? NULL : text;
    PyObject *old = guard_source_text(w->guards, root->kind == SOURCE_CLOSURE ? below : root);
    Py_SETREF(text, old ? with_head(text, PyUnicode_GET_LENGTH(old), head) : NULL);
    Py_DECREF(head);
    return text;
}

static PyObject *make_input(world *w, source *s, PyObject *tensor) {
    PyObject *name = input_name(w, s);
    node *n = name ? graph_input(w->graph, NULL, name, NULL) : NULL;
    if (n && record_modules(w, n) != ST_OK)
        Py_CLEAR(n);
    if (n && is_composite(tensor))
        n->meta.dims = -1; // its class may say anything of its results
    else if (n)
        meta_of_tensor(tensor, &n->meta);
    PyObject *result = n ? standin_new(w, n, Py_TYPE(tensor)) : NULL;
    if (result)
        ((standin *)result)->outside = tensor;
    Py_XDECREF(name);
    Py_XDECREF(n);
    return result;
}

// A tensor that rules do not know gets its fake at once.
static bool needs_fake(const torch_trace *t, const standin *s) {
    return !t->late || s->node->meta.dims < 0;
}

static status add_guard(world *w, torch_trace *t, source *s, PyObject *tensor, PyObject *o,
                        const open_dims *open) {
    tensor_guard *g = guard_of(t, tensor, open);
    if (!g)
        return PyErr_Occurred()
                   ? ST_ERROR
                   : world_break_status(w, REASON_TENSOR_OPERATION, "a tensor that cannot be read");
    g->closed = g->type == facts.parameter && !w->terms.parameters;
    status result = guard_add_custom(w->guards, s, &tensor_custom, g);
    if (result == ST_OK)
        ((standin *)o)->guard = g;
    return result;
}

// --- open numbers ---

// Whether the way to a place has this name as a key.
static bool leads_by(const source *s, const char *name) {
    for (; s; s = s->parent)
        if (s->key && PyUnicode_Check(s->key) &&
            PyUnicode_CompareWithASCIIString(s->key, name) == 0)
            return true;
    return false;
}

static bool is_parameter(const source *s, PyObject *tensor) {
    return Py_TYPE(tensor) == facts.parameter || leads_by(s, "_parameters");
}

// What is wanted without a word of the user's about this tensor. Parameters have the sizes that
// their module was made with; of buffers the same holds until they are seen to change.
static unsigned wanted_of_kind(const world *w, const source *s, PyObject *tensor) {
    if (!w->terms.parameters && is_parameter(s, tensor))
        return 0;
    unsigned all = (1U << META_MOST_DIMS) - 1;
    bool from_start = w->terms.symbolic_all && (w->terms.modules || !leads_by(s, "_buffers"));
    return world_symbolic(w, s) | (from_start ? all & ~world_settled(w, s) : 0);
}

// What the user's settings want of it by its name.
static unsigned wanted_by_name(world *w, const source *s, PyObject *tensor, const seen *now) {
    if (!w->terms.named)
        return 0;
    PyObject *sizes = int_tuple(now->sizes, now->dims);
    unsigned bits = sizes ? world_named(w, s, sizes) : 0;
    Py_XDECREF(sizes);
    bool fixed = !w->terms.parameters && is_parameter(s, tensor);
    return fixed && !(bits & SYMBOLIC_FIRST) ? 0 : bits;
}

// Bits of number.h; *unhinted: the sizes among them that nobody may rely on.
static unsigned wanted_open(world *w, const source *s, PyObject *tensor, const dim_marks *marks,
                            uint32_t *unhinted) {
    const uint32_t dims = (1U << META_MOST_DIMS) - 1;
    seen now;
    unsigned open = wanted_of_kind(w, s, tensor);
    if (w->terms.unhinted)
        *unhinted |= open >> SYMBOLIC_SIZES & dims;
    unsigned named = read_tensor(tensor, &now) ? wanted_by_name(w, s, tensor, &now) : 0;
    *unhinted |= named >> SYMBOLIC_UNHINTED & dims;
    open |= named & ~(dims << SYMBOLIC_UNHINTED);
    open &= ~(dim_marks_with(marks, DIM_FIXED) << SYMBOLIC_SIZES);
    if (w->terms.parameters || !is_parameter(s, tensor)) {
        uint32_t marked = dim_marks_with(marks, DIM_UNHINTED);
        *unhinted |= marked;
        open |= (dim_marks_with(marks, DIM_OPEN) | dim_marks_with(marks, DIM_PROMISED) | marked)
                << SYMBOLIC_SIZES;
    }
    return open;
}

// The ranges that marks promise: new dict of a dimension → (least, greatest). It also says what is
// not honoured.
static PyObject *ranges_of(world *w, source *s, PyObject *tensor, bool can) {
    PyObject *name = input_name(w, s), *ranges = NULL;
    if (name)
        ranges = PyObject_CallFunctionObjArgs(glue_function("marked"), tensor, name,
                                              can ? Py_True : Py_False, NULL);
    Py_XDECREF(name);
    return ranges;
}

static status open_number(world *w, source *s, source_kind kind, int dim, int64_t least,
                          size *number_there) {
    source *place = guard_source(w->guards, kind, s, NULL, dim);
    number n;
    if (!place)
        return ST_ERROR;
    TRY(number_symbol(w, place, number_int(number_there->hint), least, INT64_MAX, &n));
    *number_there = size_of_number(n);
    return ST_OK;
}

// Sizes and strides of an input in this call; those in its meta may have no hint.
typedef struct layout {
    int64_t sizes[META_MOST_DIMS], strides[META_MOST_DIMS];
} layout;

static layout layout_of(const meta *m) {
    layout there = {0};
    for (int i = 0; i < m->dims; i++) {
        there.sizes[i] = m->sizes[i].hint;
        there.strides[i] = m->strides[i].hint;
    }
    return there;
}

// The dimension whose size times stride is the stride of `dim`; of several, the one nearest in
// memory. -1: there is none.
static int dim_within(const layout *l, int dims, uint32_t unhinted, int dim) {
    int found = -1;
    for (int i = 0; i < dims; i++) {
        int64_t around, size = l->sizes[i] > 0 ? l->sizes[i] : 1;
        bool fits = i != dim && (l->sizes[i] > 1 || unhinted & 1U << i) &&
                    !__builtin_mul_overflow(size, l->strides[i], &around) &&
                    around == l->strides[dim];
        if (fits && (found < 0 || l->strides[i] > l->strides[found]))
            found = i;
    }
    return found;
}

// The stride around a dimension. Torch counts a size of 0 as 1.
static size stride_around(const meta *m, const open_dims *open, int dim) {
    size count = m->sizes[dim];
    if (open->unhinted & 1U << dim)
        count = size_apply(NUMBER_MAX, count, size_of(1));
    return size_mul(count, m->strides[dim]);
}

// Opens the strides that follow from open sizes, innermost first.
static status open_strides(world *w, source *s, unsigned bits, const layout *l, meta *m,
                           open_dims *open) {
    uint32_t done = 0;
    for (int left = m->dims; left > 0; left--) {
        int dim = -1;
        for (int i = 0; i < m->dims; i++)
            if (!(done & 1U << i) && (dim < 0 || l->strides[i] < l->strides[dim]))
                dim = i;
        done |= 1U << dim;
        int within = dim_within(l, m->dims, open->unhinted & done, dim);
        size product = within < 0 ? size_of(0) : stride_around(m, open, within);
        if (product.e) {
            m->strides[dim] = product;
        } else if (bits >> SYMBOLIC_STRIDES & 1U << dim && m->strides[dim].hint > 1) {
            TRY(open_number(w, s, SOURCE_STRIDE, dim, 0, &m->strides[dim]));
            within = -1;
        } else {
            continue;
        }
        open->strides |= 1U << dim;
        open->within[dim] = (int8_t)within;
    }
    return ST_OK;
}

// A size that the trace knows nothing of. The graph finds it in the input.
static status open_unhinted(world *w, torch_trace *t, source *s, node *input, int dim) {
    source *place = guard_source(w->guards, SOURCE_SIZE, s, NULL, dim);
    sizes *known = place ? world_sizes(w) : NULL;
    size *there = &input->meta.sizes[dim];
    number n;
    if (!known || !sizes_unhinted(known, place, there->hint, 0, INT64_MAX, &n))
        return ST_ERROR;
    *there = size_of_number(n);
    TRY(vec_push(&w->numbers.symbols,
                 ((symbol){.place = place, .number = n, .since = guard_needed(w->guards)})));
    return vec_push(&t->unbacked, ((unbacked_size){place, input, dim}));
}

static status promise(world *w, PyObject *ranges, int dim) {
    PyObject *key = PyLong_FromLong(dim);
    PyObject *range = key && ranges ? PyDict_GetItemWithError(ranges, key) : NULL;
    Py_XDECREF(key);
    if (PyErr_Occurred())
        return ST_ERROR;
    return dim_promise(w, range ? range : Py_None);
}

// What becomes of the sizes of an input: bits by dimension.
typedef struct wishes {
    unsigned open;     // bits of number.h
    uint32_t promised; // it is an error if they are settled
    uint32_t unhinted; // nobody may rely on their values
} wishes;

static status open_sizes(world *w, torch_trace *t, source *s, wishes wanted, PyObject *ranges,
                         node *input, open_dims *open) {
    meta *m = &input->meta;
    for (int d = 0; d < m->dims; d++) {
        bool unhinted = wanted.unhinted & 1U << d;
        if (!(wanted.open >> SYMBOLIC_SIZES & 1U << d) ||
            (!unhinted && m->sizes[d].hint < LEAST_OPEN_SIZE))
            continue;
        open->sizes |= 1U << d;
        if (unhinted) {
            TRY(open_unhinted(w, t, s, input, d));
            open->unhinted |= 1U << d;
        } else {
            TRY(open_number(w, s, SOURCE_SIZE, d, LEAST_OPEN_SIZE, &m->sizes[d]));
        }
        if (wanted.promised & 1U << d)
            TRY(promise(w, unhinted ? NULL : ranges, d));
    }
    return ST_OK;
}

static status open_numbers(world *w, torch_trace *t, source *s, PyObject *tensor, node *input,
                           open_dims *open) {
    meta *m = &input->meta;
    dim_marks marks = dim_marks_read(tensor);
    bool any = w->terms.symbolic || w->terms.symbolic_all || w->terms.named || marks.any;
    if (!any || m->dims == 0)
        return ST_OK;
    bool can = t->late && m->dims > 0 && (w->terms.parameters || !is_parameter(s, tensor));
    // What a composite holds has the marks that its class put on.
    bool told = marks.any && t->holders == 0;
    PyObject *ranges = told ? ranges_of(w, s, tensor, can) : NULL;
    wishes wanted = {0};
    if (!PyErr_Occurred() && t->late && m->dims > 0)
        wanted.open = wanted_open(w, s, tensor, &marks, &wanted.unhinted);
    if (!w->terms.lenient)
        wanted.promised = dim_marks_with(&marks, DIM_PROMISED) | marks.at[DIM_STRICT_MARK];
    layout there = layout_of(m);
    status done = PyErr_Occurred() ? ST_ERROR : ST_OK;
    if (done == ST_OK && wanted.open)
        done = open_sizes(w, t, s, wanted, ranges, input, open);
    Py_XDECREF(ranges);
    return done == ST_OK && wanted.open ? open_strides(w, s, wanted.open, &there, m, open) : done;
}

static PyObject *open_input(world *w, torch_trace *t, source *s, PyObject *tensor) {
    if (check_input(w, tensor) != ST_OK)
        return NULL;
    int rank = rank_of(w, t, s);
    PyObject *result = make_input(w, s, tensor);
    if (result)
        ((standin *)result)->rank = rank;
    if (result && needs_fake(t, (standin *)result) && !fake_of(w, ((standin *)result)->node))
        Py_CLEAR(result);
    open_dims open = {0};
    if (result && open_numbers(w, t, s, tensor, ((standin *)result)->node, &open) != ST_OK)
        Py_CLEAR(result);
    if (result && add_guard(w, t, s, tensor, result, &open) != ST_OK)
        Py_CLEAR(result);
    return result;
}

PyObject *input_open(world *w, source *s, PyObject *tensor) {
    torch_trace *t = trace_of(w);
    quiet q;
    quiet_begin(&q);
    PyObject *result = t ? open_input(w, t, s, tensor) : NULL;
    quiet_end(&q);
    if (!result || !is_composite(tensor))
        return result;
    record *r = record_new(w, RECORD_TENSOR, s, tensor, result);
    if (!r || composite_look(w, r) != ST_OK)
        Py_CLEAR(result);
    return result;
}

// --- attributes that are places ---

// x.grad is a place only if x is a leaf: else torch's getter warns, which runs Python code.
PyObject *input_attribute(PyObject *tensor, PyObject *name) {
    if (!is_known_class(Py_TYPE(tensor)) || !read_leaf(tensor))
        return NULL;
    PyObject *known = PyDict_GetItemWithError(facts.attributes, name);
    PyObject *descriptor = known ? PyTuple_GET_ITEM(known, 0) : NULL;
    if (!descriptor || Py_TYPE(descriptor) != &PyGetSetDescr_Type)
        return NULL;
    return Py_TYPE(descriptor)->tp_descr_get(descriptor, tensor, (PyObject *)Py_TYPE(tensor));
}

bool input_sizes(PyObject *tensor, int64_t *dims, const int64_t **sizes, const int64_t **strides) {
    seen s;
    if (!torch_ops.is_tensor(tensor) || !read_tensor(tensor, &s) || (s.keys & facts.python_keys))
        return false;
    *dims = s.dims;
    *sizes = s.sizes;
    *strides = s.strides;
    return true;
}

// --- facts that are guarded later ---

void inputs_guard_offsets(world *w) {
    torch_trace *t = w->torch;
    for (uint32_t i = 0; i < t->all.count; i++) {
        tensor_guard *g = ((standin *)t->all.items[i])->guard;
        if (g)
            g->offset_matters = true;
    }
}

status input_guard_leaf(world *w, standin *s) {
    record *r = record_of(w, (PyObject *)s);
    if (!s->guard || !r)
        return world_break_status(w, REASON_ATTRIBUTE, "is_leaf");
    s->guard->leaf_matters = true;
    s->guard->leaf = read_leaf(r->outside);
    return ST_OK;
}

status input_guard_hooks(world *w, standin *s) {
    const record *r = record_of(w, (PyObject *)s);
    if (!s->guard || !r || !is_known_class(Py_TYPE(r->outside)) || has_hooks(r->outside))
        return world_break_status(w, REASON_BACKWARD, "of a tensor with hooks");
    s->guard->hooks_matter = true;
    return ST_OK;
}

bool input_is_shared(const torch_trace *t, const standin *s) {
    return t->group && t->group->matters && s->guard &&
           t->group->each.items[s->guard->index].shared;
}

void inputs_settle_shared(world *w, const torch_trace *t) {
    for (uint32_t i = 0; i < t->all.count; i++) {
        const standin *s = (standin *)t->all.items[i];
        if (input_is_shared(t, s))
            meta_settle(w->graph->sizes, &s->input->meta);
    }
}
