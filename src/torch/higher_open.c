// What operators with bodies ask about tensors whose sizes are left open. There are no fakes with a
// history then: the answers come from metas, and from what is known about memory (memory.c). Where
// too little is known, the trace is done again with fakes (fakes_settle).
#include "src/graph/meta_inner.h"

#include "src/torch/higher.h"

bool higher_is_open(const world *w) {
    return ((const torch_trace *)w->torch)->late;
}

// --- memory ---

static standin *owner_of(const torch_trace *t, const node *n) {
    uint64_t *owner = map_get(&t->owners, map_key(n));
    return owner ? (standin *)(uintptr_t)*owner : NULL;
}

// Whose memory a tensor lies in; NULL with a break, if that is not known.
static standin *root_of(world *w, standin *s) {
    standin *root = s && s->memory ? s->memory : s && s->input ? s : NULL;
    if (!root)
        (void)fakes_settle(w);
    return root;
}

static bool is_one(const standin *a, const standin *b) {
    if (a == b)
        return true;
    if (!a->input || !b->input)
        return false;
    const void *storage = read_extent(a->outside).storage;
    return storage && storage == read_extent(b->outside).storage;
}

static bool is_among(standin *const *roots, int count, const standin *root) {
    for (int i = 0; i < count; i++)
        if (is_one(roots[i], root))
            return true;
    return false;
}

enum { MOST_TENSORS = 64 };

// Whether memory is that of a tensor that the body is given, or finds outside of it.
static bool is_operands(const graph *body, const standin *root) {
    return root->input || root->node->scope != body->scope || root->node->op == NODE_PLACEHOLDER;
}

int higher_open_shares(world *w, const call *c) {
    const graph *body = higher_last(higher_now(w->torch));
    standin *roots[MOST_TENSORS];
    for (size_t i = 0; i < call_count(c); i++) {
        PyObject *o = is_lazy(c->args[i]) ? ((lazy *)c->args[i])->inside : c->args[i];
        standin *s = o && is_tensor_standin(o) ? (standin *)o : NULL;
        if (!s || s->node->scope != body->scope || s->node->op == NODE_PLACEHOLDER ||
            i == MOST_TENSORS)
            return 1;
        if (!(roots[i] = root_of(w, s)))
            return -1;
        if (is_operands(body, roots[i]) || is_among(roots, (int)i, roots[i]))
            return 1;
    }
    return 0;
}

int higher_open_overlaps(world *w, const call *c) {
    const graph *body = higher_last(higher_now(w->torch));
    standin *roots[MOST_TENSORS], *root;
    int count = 0;
    PyObject *n;
    Py_ssize_t at = 0;
    for (size_t i = 0; i < call_count(c); i++) {
        PyObject *o = door_open(w, c->args[i]);
        if (!o || count == MOST_TENSORS || !is_tensor_standin(o))
            return o ? 1 : -1;
        if (!(roots[count++] = root_of(w, (standin *)o)))
            return -1;
    }
    while (PyDict_Next(body->lifted, &at, &n, NULL)) {
        if (((node *)n)->is_number)
            continue;
        if (!(root = root_of(w, owner_of(w->torch, (node *)n))))
            return -1;
        if (count == MOST_TENSORS || is_among(roots, count, root))
            return 1;
        roots[count++] = root;
    }
    return 0;
}

// --- metas ---

int higher_open_alike(world *w, const standin *a, const standin *b) {
    const meta *m = &a->node->meta, *n = &b->node->meta;
    sizes *known = w->graph->sizes;
    bool same = m->dtype == n->dtype && m->device_type == n->device_type &&
                m->device_index == n->device_index && m->dims == n->dims &&
                sizes_are(known, m->sizes, n->sizes, m->dims) &&
                sizes_are(known, m->strides, n->strides, m->dims);
    return numbers_guard(w) == ST_OK ? same : -1;
}

bool higher_open_needs(const graph *body) {
    for (int i = 0; i < body->inputs; i++) {
        const node *n = (node *)PyList_GET_ITEM(body->nodes, i);
        if (!n->is_number && n->meta.requires_grad)
            return true;
    }
    return false;
}

meta higher_open_slice(const meta *m) {
    meta one = *m;
    one.dims--;
    for (int i = 0; i < one.dims; i++) {
        one.sizes[i] = m->sizes[i + 1];
        one.strides[i] = m->strides[i + 1];
    }
    return one;
}

// That many of them, one behind the other.
static void stack(meta *m, size count) {
    for (int i = m->dims; i > 0; i--)
        m->sizes[i] = m->sizes[i - 1];
    m->sizes[0] = count;
    m->dims++;
    meta_lay_out(m);
}

// `count`: None, or how many of them. False with a break or an exception.
static bool result_like(world *w, const standin *s, PyObject *count, bool needs, meta *m) {
    number n;
    *m = s->node->meta;
    m->requires_grad =
        needs && PySet_Contains(glue_function("differentiable"), dtype_object(m->dtype)) == 1;
    if (count == Py_None)
        return true;
    int open = is_lazy(count) ? door_number(w, count, &n) : 0;
    PyObject *plain = open == 0 ? door_open(w, count) : NULL;
    if (open < 0 || (open == 0 && (!plain || !number_from_object(plain, &n))))
        return false;
    if (m->dims == META_MOST_DIMS)
        return fakes_settle(w) == ST_OK;
    stack(m, size_of_number(n));
    return true;
}

// New tuple of stand-ins for the items of what the node gives. `like`: pairs (tensors, count).
PyObject *higher_open_results(world *w, node *whole, PyObject *like, bool needs) {
    PyObject *items = PyList_New(0), *result = NULL;
    for (Py_ssize_t g = 0; items && g < PyTuple_GET_SIZE(like); g++) {
        PyObject *group = PyTuple_GET_ITEM(like, g), *tensors = PyTuple_GET_ITEM(group, 0);
        for (Py_ssize_t i = 0; items && i < PyTuple_GET_SIZE(tensors); i++) {
            const standin *s = (standin *)door_open(w, PyTuple_GET_ITEM(tensors, i));
            meta m;
            bool fine = s && result_like(w, s, PyTuple_GET_ITEM(group, 1), needs, &m);
            node *n = fine ? record_item(w, whole, PyList_GET_SIZE(items), NULL) : NULL;
            if (n)
                n->meta = m;
            PyObject *made = n ? standin_new(w, n, facts.tensor) : NULL;
            if (made)
                memory_own((standin *)made);
            if (!made || PyList_Append(items, made) < 0)
                Py_CLEAR(items);
            Py_XDECREF(n);
            Py_XDECREF(made);
        }
    }
    if (items)
        result = PyList_AsTuple(items);
    Py_XDECREF(items);
    return result;
}
