// Functions for tests of this room alone: CPython runs a function on stand-ins of real tensors, so
// that the graph has only operations of native code on stand-ins. Tests can also ask rules alone,
// about calls that no trace makes.
#include "src/torch/room.h"

// Stand-ins for the tensors of a tuple, each as the local of that number. New tuple.
static PyObject *open_tensors(world *w, PyObject *tensors) {
    PyObject *result = PyTuple_New(PyTuple_GET_SIZE(tensors));
    for (Py_ssize_t i = 0; result && i < PyTuple_GET_SIZE(tensors); i++) {
        PyObject *name = PyUnicode_FromFormat("a%zd", i);
        source *s = name ? guard_source(w->guards, SOURCE_LOCAL, NULL, name, i) : NULL;
        PyObject *inside = s ? door_bring(w, s, PyTuple_GET_ITEM(tensors, i)) : NULL;
        Py_XDECREF(name);
        if (inside)
            PyTuple_SET_ITEM(result, i, Py_NewRef(inside));
        else
            Py_CLEAR(result);
    }
    return result;
}

// The nodes of a result that is a stand-in or a tuple of them and plain values.
static PyObject *nodes_of(PyObject *result) {
    PyObject *items = PyTuple_Check(result) ? Py_NewRef(result) : PyTuple_Pack(1, result);
    PyObject *nodes = items ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; nodes && i < PyTuple_GET_SIZE(items); i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        if (is_tensor_standin(item) &&
            PyList_Append(nodes, (PyObject *)((standin *)item)->node) < 0)
            Py_CLEAR(nodes);
    }
    PyObject *tuple = nodes ? PyList_AsTuple(nodes) : NULL;
    Py_XDECREF(items);
    Py_XDECREF(nodes);
    return tuple;
}

// The closed graph, or a str that says why there is none.
static PyObject *run_in(world *w, PyObject *function, PyObject *tensors) {
    PyObject *args = open_tensors(w, tensors);
    PyObject *result = args ? PyObject_CallObject(function, args) : NULL;
    PyObject *outputs = result ? nodes_of(result) : NULL, *answer = NULL;
    if (outputs && !w->stop.broken && torch_ops.end(w) == ST_OK &&
        graph_close(w->graph, outputs, NULL) == ST_OK)
        answer = Py_NewRef(w->graph);
    if (!answer && w->stop.broken) {
        PyErr_Clear();
        answer = PyUnicode_FromFormat("%s: %V", reason_rows[w->stop.reason].id, w->stop.detail, "");
    }
    Py_XDECREF(outputs);
    Py_XDECREF(result);
    Py_XDECREF(args);
    return answer;
}

PyObject *stage_record(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *function, *tensors;
    if (!PyArg_ParseTuple(args, "OO!", &function, &PyTuple_Type, &tensors))
        return NULL;
    if (!world_tensors || world_here) {
        PyErr_SetString(PyExc_RuntimeError, "torch is not attached, or a trace runs");
        return NULL;
    }
    world *w = world_new();
    if (!w)
        return NULL;
    world_here = w;
    w->terms.replayed = true;
    PyObject *answer = run_in(w, function, tensors);
    world_here = NULL;
    world_free(w);
    return answer;
}

// --- rules alone ---

static PyObject *as_nodes(graph *g, PyObject *value);

static PyObject *node_like(graph *g, PyObject *tensor) {
    PyObject *name = PyUnicode_FromString("a");
    node *n = name ? graph_input(g, name, name, NULL) : NULL;
    if (n)
        meta_of_tensor(tensor, &n->meta);
    Py_XDECREF(name);
    return (PyObject *)n;
}

static PyObject *items_as_nodes(graph *g, PyObject *items) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    PyObject *found = PyTuple_New(count), *list = NULL;
    for (Py_ssize_t i = 0; found && i < count; i++) {
        PyObject *item = as_nodes(g, PySequence_Fast_GET_ITEM(items, i));
        if (item)
            PyTuple_SET_ITEM(found, i, item);
        else
            Py_CLEAR(found);
    }
    if (!found || PyTuple_Check(items))
        return found;
    list = PySequence_List(found);
    Py_DECREF(found);
    return list;
}

static PyObject *dict_as_nodes(graph *g, PyObject *dict) {
    Py_ssize_t at = 0;
    PyObject *found = PyDict_New(), *key, *value;
    while (found && PyDict_Next(dict, &at, &key, &value)) {
        PyObject *item = as_nodes(g, value);
        if (!item || PyDict_SetItem(found, key, item) < 0)
            Py_CLEAR(found);
        Py_XDECREF(item);
    }
    return found;
}

// Tensors replaced by nodes that are like them, as in the arguments of a node. New reference.
static PyObject *as_nodes(graph *g, PyObject *value) {
    if (torch_ops.is_tensor(value))
        return node_like(g, value);
    if (PyTuple_CheckExact(value) || PyList_CheckExact(value))
        return items_as_nodes(g, value);
    return PyDict_CheckExact(value) ? dict_as_nodes(g, value) : Py_NewRef(value);
}

static PyObject *facts_of(sizes *known, const meta *m) {
    PyObject *dtype = dtype_object(m->dtype), *device = device_object(m);
    return Py_BuildValue("(ONNNO)", dtype ? dtype : Py_None, size_tuple(known, m->sizes, m->dims),
                         size_tuple(known, m->strides, m->dims), PyBool_FromLong(m->requires_grad),
                         device ? device : Py_None);
}

static PyObject *told(meta_answer answer, const meta_call *m) {
    static const char *const words[] = {
        [META_UNKNOWN] = "unknown", [META_TENSOR] = "tensor", [META_SAME] = "same",
        [META_TENSORS] = "tensors", [META_SIZES] = "sizes",   [META_STRIDES] = "strides",
        [META_NUMBER] = "number",   [META_TRUTH] = "truth",   [META_NOTHING] = "nothing",
    };
    int64_t number = answer == META_NUMBER  ? size_settle(m->sizes, m->number)
                     : answer == META_TRUTH ? m->truth
                                            : 0;
    int count = answer == META_UNKNOWN ? 0 : m->count;
    PyObject *results = PyList_New(count);
    for (int i = 0; results && i < count; i++) {
        bool none = m->results[i].dims < 0;
        PyObject *item = none ? Py_NewRef(Py_None) : facts_of(m->sizes, &m->results[i]);
        if (item)
            PyList_SET_ITEM(results, i, item);
        else
            Py_CLEAR(results);
    }
    return results ? Py_BuildValue("(sNL)", words[answer], results, (long long)number) : NULL;
}

PyObject *stage_ask_rule(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *callable, *given, *kwargs;
    if (!PyArg_ParseTuple(args, "OO!O!", &callable, &PyTuple_Type, &given, &PyDict_Type, &kwargs))
        return NULL;
    if (!world_tensors) {
        PyErr_SetString(PyExc_RuntimeError, "torch is not attached");
        return NULL;
    }
    graph *g = graph_new();
    PyObject *positional = g ? as_nodes(g, given) : NULL;
    PyObject *named = positional ? as_nodes(g, kwargs) : NULL, *answer = NULL;
    meta_call m;
    if (named)
        answer = told(record_ask(g->sizes, callable, positional, named, &m), &m);
    Py_XDECREF(named);
    Py_XDECREF(positional);
    Py_XDECREF(g);
    return answer;
}
