// Tells whether a graph must run operation by operation, although there is a backend: AOTAutograd
// would do something else than the operations do.
#include "src/graph/meta.h"

#include "src/torch/room.h"

// --- tensors that are conjugates, negatives or zeros without a computation ---

static bool is_odd(const seen *s) {
    return (s->keys & facts.odd_keys) != 0;
}

static bool is_odd_or_complex(const seen *s) {
    return is_odd(s) || meta_dtype_is_complex(s->dtype);
}

static bool any_node(const graph *g, bool (*test)(const seen *));

// A tensor whose meta is known has no such bit.
static bool test_node(const node *n, bool (*test)(const seen *)) {
    seen s = {.dtype = n->meta.dtype};
    if (n->meta.dims >= 0)
        return test(&s);
    if (!n->example)
        return false;
    if (Py_IS_TYPE(n->example, &graph_type))
        return any_node((graph *)n->example, test);
    return PyObject_TypeCheck(n->example, facts.tensor) && read_tensor(n->example, &s) && test(&s);
}

static bool any_node(const graph *g, bool (*test)(const seen *)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(g->nodes); i++)
        if (test_node((node *)PyList_GET_ITEM(g->nodes, i), test))
            return true;
    return false;
}

// A kernel that torch calls below all else (under a dispatch mode) takes conjugates as they lie in
// memory. AOTAutograd conjugates. Operations make conjugates of complex tensors without a node of
// their own (linalg.vecdot).
static bool kernel_is_complex(const graph *g) {
    return state_ignores(facts.odd_keys) && any_node(g, is_odd_or_complex);
}

// AOTAutograd gives a tensor that was written to through its conjugate the bit of the conjugate.
static bool conjugate_is_written(const graph *g) {
    return g->effects & EFFECT_WRITES && any_node(g, is_odd);
}

bool graph_is_literal(const torch_trace *t, const graph *g) {
    return inputs_overlap(t, g) || memory_reshaped_is_written(g) || kernel_is_complex(g) ||
           conjugate_is_written(g) || (t->counted && g->effects & EFFECT_WRITES);
}
