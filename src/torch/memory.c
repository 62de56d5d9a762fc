// Whose memory a tensor of the trace lies in, as far as that is known without fakes. Operations
// that write can then be recorded without running the whole trace on torch's own fakes.
#include "src/torch/room.h"

static standin *owner_of(const torch_trace *t, const node *n) {
    uint64_t *owner = map_get(&t->owners, map_key(n));
    return owner ? (standin *)(uintptr_t)*owner : NULL;
}

void memory_own(standin *s) {
    s->memory = s;
}

static void note_view(standin *of, bool plainly) {
    standin *root = of->memory ? of->memory : of;
    root->viewed = true;
    root->mixed = root->mixed || !plainly;
}

// Views made without grad mode, or several at once, may not be written to while it is on.
void memory_share(const torch_trace *t, standin *s, const node *of, bool plainly) {
    standin *base = owner_of(t, of);
    if (!base)
        return;
    s->memory = base->memory;
    note_view(base, plainly && state_records_gradients());
}

static status note_unknown(node *n, void *data) {
    standin *s = owner_of(data, n);
    if (s)
        note_view(s, false);
    return ST_OK;
}

void memory_may_share(torch_trace *t, PyObject *args, PyObject *kwargs) {
    (void)node_walk(args, note_unknown, t);
    if (kwargs)
        (void)node_walk(kwargs, note_unknown, t);
}

memory_kind memory_of(const torch_trace *t, const node *n) {
    const standin *s = owner_of(t, n), *root = s ? s->memory : NULL;
    if (!root || root->input || root->mixed)
        return MEMORY_SHARED;
    return root == s && !root->viewed ? MEMORY_ALONE : MEMORY_FAMILY;
}

// --- writes ---

int memory_write(torch_trace *t, const node *n) {
    standin *s = owner_of(t, n), *root = s ? s->memory : NULL;
    t->wrote = true;
    if (!root)
        t->wrote_anywhere = true;
    else
        root->written = true;
    return EFFECT_WRITES | (!root || root->input ? EFFECT_OUTSIDE : 0);
}

// Nodes that uses may refer to, now or after a statement's result was dropped.
void memory_needs_grad(torch_trace *t, const node *n) {
    standin *s = owner_of(t, n);
    node *each[] = {s->node, s->earlier, (node *)n};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(each); i++) {
        if (!each[i] || each[i]->meta.requires_grad)
            continue;
        each[i]->meta.requires_grad = true;
        standin_forget_fake(t, each[i]); // it requires none
    }
}

static bool is_same_storage(const standin *a, const standin *b) {
    const void *storage = read_extent(a->outside).storage;
    return storage && storage == read_extent(b->outside).storage;
}

bool memory_is_written(const torch_trace *t, const standin *input) {
    bool written = t->wrote_anywhere;
    for (uint32_t i = 0; !written && i < t->all.count; i++) {
        const standin *s = (standin *)t->all.items[i];
        written = s->written && s->outside && (s == input || is_same_storage(s, input));
    }
    return written;
}

// The dimension of the least stride above `above` that has more than one element; -1: none is left.
static int64_t next_dim(const seen *s, int64_t above) {
    int64_t found = -1;
    for (int64_t d = 0; d < s->dims; d++)
        if (s->sizes[d] > 1 && s->strides[d] > above &&
            (found < 0 || s->strides[d] < s->strides[found]))
            found = d;
    return found;
}

static int dims_with(const seen *s, int64_t stride) {
    int count = 0;
    for (int64_t d = 0; d < s->dims; d++)
        count += s->sizes[d] > 1 && s->strides[d] == stride;
    return count;
}

// Whether several elements of an input may lie in one place: a step of some dimension stays within
// what the dimensions of smaller strides reach.
static bool is_spread(const seen *s) {
    int64_t reach = 0;
    if (dims_with(s, 0) > 0)
        return true;
    for (int64_t d = next_dim(s, 0); d >= 0; d = next_dim(s, s->strides[d])) {
        if (s->strides[d] <= reach || dims_with(s, s->strides[d]) > 1)
            return true;
        reach += (s->sizes[d] - 1) * s->strides[d];
    }
    return false;
}

// AOTAutograd copies to each input that was written to, which torch refuses for such an input.
bool memory_spread_is_written(const torch_trace *t) {
    for (uint32_t i = 0; i < t->all.count; i++) {
        const standin *s = (standin *)t->all.items[i];
        seen now;
        if (s->input && s->input->effects & EFFECT_OUTSIDE && s->outside &&
            read_tensor(s->outside, &now) && is_spread(&now))
            return true;
    }
    return false;
}

// The tensor that this one is a view of, or NULL; borrowed: the view holds it.
static PyObject *base_of(PyObject *tensor) {
    PyObject *base = PyObject_GetAttrString(tensor, "_base");
    PyErr_Clear();
    Py_XDECREF(base);
    return base == Py_None ? NULL : base;
}

// A view that was given other data (`x.data = …`) still has the tensor that it was a view of, from
// which torch's fakes and AOTAutograd would make it.
static bool has_another_base(PyObject *tensor) {
    PyObject *base = base_of(tensor);
    return base && read_extent(base).storage != read_extent(tensor).storage;
}

static bool have_one_base(PyObject *a, PyObject *b) {
    PyObject *left = base_of(a), *right = base_of(b);
    return (!left && !right) || (left ? left : a) == (right ? right : b);
}

// Of inputs that share a storage AOTAutograd makes one: it fails if they are views of different
// tensors, differ in dtype or in whether they require a gradient, if one is a leaf that does, or if
// one that does is written to without grad mode.
static bool is_odd_pair(const torch_trace *t, const standin *a, const standin *b, bool switches) {
    const extent left = read_extent(a->outside), right = read_extent(b->outside);
    if (!input_is_shared(t, a) || !input_is_shared(t, b) || left.storage != right.storage)
        return false;
    seen one, other;
    if (!read_tensor(a->outside, &one) || !read_tensor(b->outside, &other))
        return true;
    return one.dtype != other.dtype || !have_one_base(a->outside, b->outside) ||
           one.requires_grad != other.requires_grad ||
           (one.requires_grad && (switches || read_leaf(a->outside)));
}

static bool switches_grad_mode(const graph *g) {
    for (Py_ssize_t i = g->inputs; i < PyList_GET_SIZE(g->nodes); i++)
        if (((node *)PyList_GET_ITEM(g->nodes, i))->target == facts.set_grad)
            return true;
    return false;
}

bool memory_is_shared_oddly(const torch_trace *t, const graph *g) {
    bool switches = switches_grad_mode(g);
    for (uint32_t i = 0; i < t->all.count; i++) {
        const standin *s = (standin *)t->all.items[i];
        if (!s->input || !s->outside)
            continue;
        if (has_another_base(s->outside))
            return true;
        for (uint32_t k = 0; input_is_shared(t, s) && k < t->all.count; k++) {
            const standin *other = (standin *)t->all.items[k];
            if (other != s && other->input && other->outside && is_odd_pair(t, s, other, switches))
                return true;
        }
    }
    return false;
}

// Whether a call of this target gives its tensor other sizes or strides, and counts as a write
// whether or not these differ (torch.Tag.inplace_view).
bool memory_is_reshaped(PyObject *target) {
    static const char *const names[] = {"t_",       "transpose_", "swapaxes_",  "swapdims_",
                                        "squeeze_", "unsqueeze_", "as_strided_"};
    PyObject *word =
        PyUnicode_Check(target) ? Py_NewRef(target) : graph_target_word(target, "__name__");
    const char *text = word ? PyUnicode_AsUTF8(word) : "";
    bool found = false;
    for (size_t i = 0; text && i < Py_ARRAY_LENGTH(names); i++) {
        size_t length = strlen(names[i]); // an operator's name goes on behind a dot
        found = found || (strncmp(text, names[i], length) == 0 &&
                          (text[length] == '\0' || text[length] == '.'));
    }
    Py_XDECREF(word);
    PyErr_Clear();
    return found;
}

bool memory_has_grad(const graph *g) {
    for (int i = 0; i < g->inputs; i++)
        if (((node *)PyList_GET_ITEM(g->nodes, i))->meta.requires_grad)
            return state_records_gradients();
    return false;
}

// AOTAutograd gives an input that was written to and has other sizes the strides of what it has
// computed, and then writes to other memory than the program. A backward that needs the input finds
// that it was changed.
bool memory_reshaped_is_written(const graph *g) {
    bool reshaped = false, written = memory_has_grad(g);
    for (Py_ssize_t i = g->inputs; i < PyList_GET_SIZE(g->nodes); i++) {
        const node *n = (node *)PyList_GET_ITEM(g->nodes, i);
        if (!(n->effects & EFFECT_OUTSIDE))
            continue;
        bool reshapes = memory_is_reshaped(n->target);
        reshaped = reshaped || reshapes;
        written = written || !reshapes;
    }
    return reshaped && written;
}

// --- outputs ---

// 1, 0, -1. Of the memory of some results only fakes with history know.
static int lies_in(const torch_trace *t, const node *n, const standin *input) {
    const standin *s = owner_of(t, n), *root = s ? s->memory : NULL;
    if (root || t->late)
        return !root || root == input;
    PyObject *answer = PyObject_CallFunctionObjArgs(glue_function("in_one_storage"), n->example,
                                                    input->input->example, NULL);
    Py_XDECREF(answer);
    return answer ? answer == Py_True : -1;
}

int memory_escapes(world *w, node *const *outputs, uint32_t count) {
    const torch_trace *t = w->torch;
    int found = 0;
    quiet q;
    quiet_begin(&q);
    for (uint32_t i = 0; t && i < t->all.count; i++) {
        const standin *s = (standin *)t->all.items[i];
        for (uint32_t k = 0; found == 0 && input_is_shared(t, s) && k < count; k++)
            found = lies_in(t, outputs[k], s);
    }
    quiet_end(&q);
    return found;
}
