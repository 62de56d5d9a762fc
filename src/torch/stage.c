// The room alone, for tests: a function is run by CPython on stand-ins of real tensors, and all
// that reaches the graph came through native code that met them.
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
    if (outputs && !w->broken && torch_ops.end(w) == ST_OK &&
        graph_close(w->graph, outputs, NULL) == ST_OK)
        answer = Py_NewRef(w->graph);
    if (!answer && w->broken) {
        PyErr_Clear();
        answer = PyUnicode_FromFormat("%s: %V", reason_rows[w->reason].id, w->detail, "");
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
    w->replayed = true;
    PyObject *answer = run_in(w, function, tensors);
    world_here = NULL;
    world_free(w);
    return answer;
}
