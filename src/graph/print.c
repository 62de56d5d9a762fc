// A graph as text, one line a node, as one would write it in Python:
//     y = relu(l_x_)            # model.py:3 in forward
#include "src/py/raw.h"

#include "src/graph/graph.h"
#include "src/graph/trail.h"

static PyObject *argument_text(PyObject *argument);

// "a, b". Steals `parts`, which may be NULL.
static PyObject *joined(PyObject *parts) {
    PyObject *comma = parts ? PyUnicode_FromString(", ") : NULL;
    PyObject *result = comma ? PyUnicode_Join(comma, parts) : NULL;
    Py_XDECREF(parts);
    Py_XDECREF(comma);
    return result;
}

// "a, b" of a sequence's items.
static PyObject *items_text(PyObject *sequence, Py_ssize_t from) {
    PyObject *parts = PyList_New(0);
    for (Py_ssize_t i = from; parts && i < PySequence_Fast_GET_SIZE(sequence); i++) {
        PyObject *part = argument_text(PySequence_Fast_GET_ITEM(sequence, i));
        if (!part || PyList_Append(parts, part) < 0)
            Py_CLEAR(parts);
        Py_XDECREF(part);
    }
    return joined(parts);
}

static PyObject *wrapped(const char *format, PyObject *inner) {
    PyObject *result = inner ? PyUnicode_FromFormat(format, inner) : NULL;
    Py_XDECREF(inner);
    return result;
}

static PyObject *slice_text(PySliceObject *s) {
    PyObject *parts = PyTuple_Pack(3, s->start, s->stop, s->step);
    PyObject *result = parts ? wrapped("slice(%U)", items_text(parts, 0)) : NULL;
    Py_XDECREF(parts);
    return result;
}

// "k=v, …" of keywords; "'k': v, …" of a dict.
static PyObject *pairs_text(PyObject *dict, const char *format) {
    PyObject *parts = PyList_New(0), *key, *value;
    Py_ssize_t at = 0;
    while (parts && PyDict_Next(dict, &at, &key, &value)) {
        PyObject *text = argument_text(value);
        PyObject *part = text ? PyUnicode_FromFormat(format, key, text) : NULL;
        Py_XDECREF(text);
        if (!part || PyList_Append(parts, part) < 0)
            Py_CLEAR(parts);
        Py_XDECREF(part);
    }
    return joined(parts);
}

// A __repr__ of the user's is not called.
static PyObject *plain_repr(PyObject *o) {
    if (raw_is_python_class(Py_TYPE(o)))
        return PyUnicode_FromFormat("<%s object>", Py_TYPE(o)->tp_name);
    return PyObject_Repr(o);
}

static PyObject *argument_text(PyObject *argument) {
    if (is_node(argument))
        return Py_NewRef(((node *)argument)->name);
    if (PyTuple_CheckExact(argument))
        return wrapped(PyTuple_GET_SIZE(argument) == 1 ? "(%U,)" : "(%U)", items_text(argument, 0));
    if (PyList_CheckExact(argument))
        return wrapped("[%U]", items_text(argument, 0));
    if (PyDict_CheckExact(argument))
        return wrapped("{%U}", pairs_text(argument, "%R: %U"));
    if (PySlice_Check(argument))
        return slice_text((PySliceObject *)argument);
    return plain_repr(argument);
}

// As an instance or its class has it, whatever __getattr__ or a descriptor would say. Borrowed.
static PyObject *raw_attribute(PyObject *o, PyObject *name) {
    PyObject *value;
    if (raw_attr_get(o, name, &value) == RAW_FOUND ||
        raw_type_get(Py_TYPE(o), name, &value) == RAW_FOUND)
        return value;
    return NULL;
}

PyObject *graph_target_word(PyObject *target, const char *name) {
    PyObject *key = PyUnicode_FromString(name), *text = NULL;
    if (!key)
        return NULL;
    if (raw_is_python_class(Py_TYPE(target)))
        text = Py_XNewRef(raw_attribute(target, key));
    else if (!(text = PyObject_GetAttr(target, key)) &&
             PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    Py_DECREF(key);
    if (text && !PyUnicode_CheckExact(text))
        Py_CLEAR(text);
    return text;
}

static bool is_home(PyObject *module, const char *name) {
    return PyUnicode_CompareWithASCIIString(module, name) == 0;
}

// "operator.add", "torch.relu", "max".
static PyObject *target_name(PyObject *target) {
    PyObject *name = graph_target_word(target, "__name__");
    PyObject *module = name ? graph_target_word(target, "__module__") : NULL;
    if (!name)
        return PyErr_Occurred() ? NULL : plain_repr(target);
    if (module && is_home(module, "_operator"))
        Py_SETREF(name, PyUnicode_FromFormat("operator.%U", name));
    else if (module && !is_home(module, "builtins") && !is_home(module, ""))
        Py_SETREF(name, PyUnicode_FromFormat("%U.%U", module, name));
    else if (PyErr_Occurred())
        Py_CLEAR(name);
    Py_XDECREF(module);
    return name;
}

// What stands between the parentheses of a call, from the given positional argument on.
static PyObject *call_arguments(const node *n, Py_ssize_t from) {
    PyObject *args = items_text(n->args, from);
    if (!args || !n->kwargs)
        return args;
    PyObject *kwargs = pairs_text(n->kwargs, "%U=%U");
    bool both = PyTuple_GET_SIZE(n->args) > from;
    PyObject *result = kwargs ? PyUnicode_FromFormat(both ? "%U, %U" : "%U%U", args, kwargs) : NULL;
    Py_DECREF(args);
    Py_XDECREF(kwargs);
    return result;
}

static PyObject *function_text(const node *n) {
    PyObject *target = target_name(n->target), *args = call_arguments(n, 0);
    PyObject *result =
        target && args ? PyUnicode_FromFormat("%U = %U(%U)", n->name, target, args) : NULL;
    Py_XDECREF(target);
    Py_XDECREF(args);
    return result;
}

static PyObject *method_text(const node *n) {
    PyObject *self = argument_text(PyTuple_GET_ITEM(n->args, 0)), *args = call_arguments(n, 1);
    PyObject *result = self && args
                           ? PyUnicode_FromFormat("%U = %U.%U(%U)", n->name, self, n->target, args)
                           : NULL;
    Py_XDECREF(self);
    Py_XDECREF(args);
    return result;
}

static PyObject *input_text(const graph *g, const node *n) {
    if (n->index >= PyList_GET_SIZE(g->sources))
        return PyUnicode_FromFormat("%U = input", n->name);
    return PyUnicode_FromFormat("%U = input  # %U", n->name, PyList_GET_ITEM(g->sources, n->index));
}

// A body is shown where it is read, further in.
static PyObject *attribute_text(const node *n) {
    if (!Py_IS_TYPE(n->example, &graph_type))
        return wrapped("%U = attribute", Py_NewRef(n->name));
    PyObject *body = graph_text((graph *)n->example), *result = NULL;
    PyObject *end = PyUnicode_FromString("\n"), *further = PyUnicode_FromString("\n    ");
    PyObject *lines = body && end && further ? PyUnicode_Replace(body, end, further, -1) : NULL;
    if (lines)
        result = PyUnicode_FromFormat("%U = body:\n    %U", n->name, lines);
    Py_XDECREF(body);
    Py_XDECREF(end);
    Py_XDECREF(further);
    Py_XDECREF(lines);
    return result;
}

static PyObject *operation_text(const graph *g, const node *n) {
    switch (n->op) {
    case NODE_PLACEHOLDER:
        return input_text(g, n);
    case NODE_CALL_FUNCTION:
        return function_text(n);
    case NODE_CALL_METHOD:
        return method_text(n);
    case NODE_GET_ATTR:
        return attribute_text(n);
    case NODE_OUTPUT:
        return wrapped("return %U", argument_text(PyTuple_GET_ITEM(n->args, 0)));
    }
    Py_UNREACHABLE();
}

// The innermost line of the user's that made the node, or the text as it is.
static PyObject *with_line(const node *n, PyObject *text) {
    PyObject *rows = text ? trail_rows(n->stack) : NULL;
    Py_ssize_t count = rows && PyTuple_Check(rows) ? PyTuple_GET_SIZE(rows) : 0;
    PyObject *frame = count > 0 ? PyTuple_GET_ITEM(rows, count - 1) : NULL;
    if (frame && PyTuple_Check(frame) && PyTuple_GET_SIZE(frame) == 3)
        Py_SETREF(text,
                  PyUnicode_FromFormat("%U  # %S:%S in %S", text, PyTuple_GET_ITEM(frame, 0),
                                       PyTuple_GET_ITEM(frame, 1), PyTuple_GET_ITEM(frame, 2)));
    else if (!rows)
        Py_CLEAR(text);
    Py_XDECREF(rows);
    return text;
}

PyObject *graph_text(const graph *g) {
    PyObject *lines = PyList_New(0), *end = PyUnicode_FromString("\n");
    for (Py_ssize_t i = 0; lines && i < PyList_GET_SIZE(g->nodes); i++) {
        const node *n = (node *)PyList_GET_ITEM(g->nodes, i);
        PyObject *line = with_line(n, operation_text(g, n));
        if (!line || PyList_Append(lines, line) < 0)
            Py_CLEAR(lines);
        Py_XDECREF(line);
    }
    PyObject *result = lines && end ? PyUnicode_Join(end, lines) : NULL;
    Py_XDECREF(lines);
    Py_XDECREF(end);
    return result;
}
