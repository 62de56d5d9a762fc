// Tensors of other classes: which can be traced, and how the program makes them. A tensor made
// inside is a plain one in the graph; the plan puts the class on.
#include "src/call/handlers.h"

#include "src/torch/overrides.h"

// The class has torch's own method of this name.
static status check_method(world *w, PyTypeObject *class, const char *text) {
    PyObject *name = PyUnicode_InternFromString(text), *raw = NULL;
    PyObject *found = name ? attr_of_class(w, class, name, &raw) : NULL;
    bool same = name && raw == _PyType_Lookup(facts.tensor, name);
    Py_XDECREF(name);
    if (!found && (PyErr_Occurred() || w->stop.broken))
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    if (same || !found)
        return ST_OK;
    return world_break_status(w, REASON_TENSOR_OPERATION,
                              "a tensor of class %s, which has its own %s", class->tp_name, text);
}

status subclass_check(world *w, PyTypeObject *class, bool slots) {
    static const char *const methods[] = {"__getattribute__", "__getattr__", "__setattr__",
                                          "__delattr__",      "__hash__",    "__del__"};
    bool larger = class->tp_basicsize != facts.tensor->tp_basicsize;
    const char *why = Py_TYPE(class) != Py_TYPE(facts.tensor) ? "a metaclass"
                      : larger && !slots                      ? "slots"
                                                              : NULL;
    if (why)
        return world_break_status(w, REASON_TENSOR_OPERATION, "a tensor of class %s, which has %s",
                                  class->tp_name, why);
    for (size_t i = 0; i < Py_ARRAY_LENGTH(methods); i++)
        TRY(check_method(w, class, methods[i]));
    return ST_OK;
}

// The class that a tensor gets; borrowed.
static PyTypeObject *open_class(world *w, PyObject *o) {
    PyObject *class = door_open(w, o);
    if (!class)
        return NULL;
    const char *why = NULL;
    if (!PyType_Check(class) || !PyType_IsSubtype((PyTypeObject *)class, facts.tensor))
        why = "no class of tensors";
    else if (class == (PyObject *)facts.parameter || class == (PyObject *)facts.buffer)
        why = "a class of parameters";
    else if (PyObject_HasAttrString(class, "__tensor_flatten__"))
        why = "a class with __torch_dispatch__";
    if (!why)
        return subclass_check(w, (PyTypeObject *)class, false) == ST_OK ? (PyTypeObject *)class
                                                                        : NULL;
    world_break(w, REASON_TENSOR_OPERATION, "a subclass of tensors, by %s", why);
    return NULL;
}

// Takes the reference to a stand-in that was just made.
static PyObject *dress(world *w, PyObject *o, PyTypeObject *class) {
    standin *s = (standin *)o;
    if (!o || class == facts.tensor)
        return o;
    if (!overrides_of(w)) {
        Py_DECREF(o);
        return NULL;
    }
    Py_SETREF(s->type, (PyTypeObject *)Py_NewRef(class));
    s->dressed = true;
    return o;
}

static standin *open_tensor(world *w, PyObject *o) {
    PyObject *self = door_open(w, o);
    if (self && is_tensor_standin(self))
        return (standin *)self;
    if (self)
        world_break(w, REASON_TENSOR_OPERATION, "a subclass of what is no tensor");
    return NULL;
}

PyObject *subclass_as(world *w, const call *c) {
    standin *self = open_tensor(w, c->args[0]);
    PyTypeObject *class = self ? open_class(w, c->args[1]) : NULL;
    PyObject *arg = (PyObject *)self;
    return class ? dress(w, record_function(w, facts.alias, &arg, 1), class) : NULL;
}

// A parameter is a new leaf. Where each operation runs by itself, a node can make one; a backend that
// compiles the graph as a whole cannot.
static PyObject *make_parameter(world *w, const call *c) {
    if (!w->terms.replayed || w->scope != w->graph || c->given != 3)
        return world_break(w, REASON_TENSOR_OPERATION, "torch.nn.Parameter() in a compiled graph");
    standin *self = open_tensor(w, c->args[1]);
    if (!self || fakes_settle(w) != ST_OK)
        return NULL;
    PyObject *args[] = {(PyObject *)self, c->args[2]};
    PyObject *made = record_function(w, glue_function("make_parameter"), args, 2);
    if (made)
        Py_SETREF(((standin *)made)->type, (PyTypeObject *)Py_NewRef(facts.parameter));
    return made;
}

// What requires a gradient is a new leaf, which a graph cannot make.
PyObject *subclass_make(world *w, const call *c) {
    PyObject *wanted = door_open(w, c->args[0]);
    if (!wanted || wanted == (PyObject *)facts.parameter)
        return wanted ? make_parameter(w, c) : NULL;
    PyTypeObject *class = open_class(w, c->args[0]);
    standin *self = class ? open_tensor(w, c->args[1]) : NULL;
    PyObject *flag = c->given > 2 ? c->args[2] : handler_keyword(c, "require_grad");
    PyObject *leaf = flag ? plain_value(w, flag) : Py_NewRef(Py_False);
    bool plain = leaf == Py_False && (!c->keywords || (flag && c->given == 2));
    Py_XDECREF(leaf);
    if (!self || !leaf)
        return NULL;
    if (!plain)
        return world_break(w, REASON_TENSOR_OPERATION, "Tensor._make_subclass of a leaf");
    call detach = {.callable = facts.detach, .args = (PyObject **)&self, .given = 1};
    PyObject *name = PyUnicode_InternFromString("detach");
    PyObject *result = name ? record_call(w, NODE_CALL_METHOD, name, &detach) : NULL;
    Py_XDECREF(name);
    return dress(w, result, class);
}
