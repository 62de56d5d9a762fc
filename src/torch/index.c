// torch's TransformGetItemToIndex: the function mode under which a subscript by a tensor of no
// dimensions reads no value. It does nothing else, so the trace does not ask it like other modes.
#include "src/torch/overrides.h"

// --- subscripts ---

// Whether a subscript has the mode's form: tensors and ints. 1, 0; -1 with a break or an exception.
static int is_index(world *w, PyObject *key) {
    number n;
    int open = is_lazy(key) ? door_number(w, key, &n) : 0;
    if (open != 0)
        return open;
    key = door_open(w, key);
    if (!key)
        return -1;
    return is_tensor_standin(key) || PyLong_Check(key);
}

static int are_indices(world *w, PyObject *key) {
    if (!PyTuple_CheckExact(key))
        return is_index(w, key);
    int all = PyTuple_GET_SIZE(key) > 0;
    for (Py_ssize_t i = 0; all > 0 && i < PyTuple_GET_SIZE(key); i++)
        all = is_index(w, PyTuple_GET_ITEM(key, i));
    return all;
}

// The mode looks into lists, too, which are indices of other kinds without it.
static status check_lists(world *w, PyObject *key) {
    bool list = PyList_Check(key);
    for (Py_ssize_t i = 0; PyTuple_CheckExact(key) && i < PyTuple_GET_SIZE(key); i++) {
        PyObject *item = door_open(w, PyTuple_GET_ITEM(key, i));
        if (!item)
            return ST_ERROR;
        list = list || PyList_Check(item) || PyTuple_Check(item);
    }
    return list ? world_break_status(w, REASON_TENSOR_OPERATION,
                                     "a subscript by a list under TransformGetItemToIndex")
                : ST_OK;
}

bool index_get(world *w, PyObject *o, PyObject *key, PyObject **result) {
    const torch_trace *t = w->torch;
    bool body = t && higher_indexes(t);
    *result = NULL;
    if (!t || !(body || t->index_mode) || !is_tensor_standin(o))
        return false;
    PyObject *opened = is_lazy(key) ? opened_or_number(w, key) : key;
    int indices = opened ? are_indices(w, opened) : -1;
    if (indices == 0)
        return check_lists(w, opened) != ST_OK;
    if (indices < 0)
        return true;
    PyObject *args[] = {o, opened};
    call c = {.callable = glue_function(body ? "index_as_mode" : "index"),
              .args = args,
              .given = 2,
              .result = RUN_NATIVE};
    *result = body ? record_call(w, NODE_CALL_FUNCTION, facts.getitem, &c)
                   : call_other(w, c.callable, &c);
    return true;
}

// --- the mode ---

bool index_enter(world *w, PyObject *given) {
    torch_trace *t = trace_of(w);
    PyObject *mode = t ? door_open(w, given) : NULL;
    if (!mode || t->overrides || t->index_mode || modes_now() != 0 ||
        Py_TYPE(mode) != (PyTypeObject *)glue_function("IndexMode"))
        return false;
    t->index_mode = Py_NewRef(mode);
    t->index_since = w->time.now;
    world_touch(w);
    return true;
}

PyObject *index_leave(torch_trace *t) {
    PyObject *mode = t->index_mode;
    t->index_mode = NULL;
    return mode;
}

status index_begin(world *w, torch_trace *t) {
    if (w->graph->context || t->index_mode || modes_now() != 0)
        return world_break_status(w, REASON_HIGHER_ORDER, "an operator that needs a function mode");
    t->indexes = true;
    return ST_OK;
}

status index_allows(world *w, const torch_trace *t) {
    if (!t->index_mode && !t->indexes)
        return ST_OK;
    return world_break_status(w, REASON_TORCH_STATE,
                              "function modes beside TransformGetItemToIndex");
}

status index_end(world *w, const torch_trace *t) {
    if (!t->index_mode)
        return ST_OK;
    world_break(w, REASON_TORCH_STATE, "a mode is entered, and not left in the same piece");
    w->time.again = t->index_since;
    return ST_BREAK;
}
