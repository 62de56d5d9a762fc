// Methods that give a tensor other sizes in place (`t_`, `squeeze_`), where sizes are open: what the
// methods that give a view (`t`, `squeeze`) say of their results.
#include "src/world/number.h"

#include "src/torch/room.h"

// The method that gives a view where `target` changes the tensor itself. New reference, or NULL.
static PyObject *twin_of(PyObject *target) {
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(target, &length);
    PyObject *name = text ? PyUnicode_FromStringAndSize(text, length - 1) : NULL;
    PyObject *twin = name ? PyObject_GetAttr((PyObject *)facts.tensor, name) : NULL;
    Py_XDECREF(name);
    PyErr_Clear();
    return twin;
}

// A view of an input belongs to the memory of others. Sizes that only the graph knows are read from
// a dimension of a node, which must stay as it is.
static bool may_reshape(world *w, PyObject *target, const node *n) {
    const torch_trace *t = w->torch;
    bool history = n->meta.requires_grad && state_records_gradients();
    memory_kind kind = memory_of(t, n);
    return PyUnicode_Check(target) && memory_is_reshaped(target) && numbers_are_open(w) &&
           w->scope == w->graph && t->unbacked.count == 0 && kind != MEMORY_SHARED &&
           (!history || kind == MEMORY_ALONE);
}

bool reshape_ask(world *w, PyObject *target, const operands *given, const node *n, meta *m) {
    sizes *known = w->graph->sizes;
    if (!known || !may_reshape(w, target, n))
        return false;
    sizes_mark before = sizes_now(known);
    meta_call c;
    PyObject *twin = twin_of(target);
    bool fine = twin && record_ask(known, twin, given->args, given->kwargs, &c) == META_TENSOR;
    Py_XDECREF(twin);
    if (fine) {
        *m = c.results[0];
        m->requires_grad = n->meta.requires_grad; // a view made without grad mode requires none
    } else if (!sizes_failed(known))
        sizes_rollback(known, before);
    return fine;
}
