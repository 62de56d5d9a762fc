// What operators give to bodies, and what bodies give: tensors that only the operator has, and
// bodies that give one tensor.
#include "src/torch/higher.h"

// An argument with fakes in the place of tensors, which the open body does not use: nothing is lifted
// into it. New reference.
static PyObject *faked(world *w, PyObject *argument) {
    PyObject *o = door_open(w, argument);
    if (o && is_tensor_standin(o))
        return Py_XNewRef(fake_of(w, ((standin *)o)->node));
    return o ? plain_value(w, o) : NULL;
}

static PyObject *faked_keywords(world *w, const call *c) {
    PyObject *kwargs = PyDict_New();
    for (Py_ssize_t i = 0; kwargs && c->keywords && i < PyTuple_GET_SIZE(c->keywords); i++) {
        PyObject *value = faked(w, c->args[c->given + (size_t)i]);
        if (!value || PyDict_SetItem(kwargs, PyTuple_GET_ITEM(c->keywords, i), value) < 0)
            Py_CLEAR(kwargs);
        Py_XDECREF(value);
    }
    return kwargs;
}

// The function, called with fakes for the arguments from `from` on. New reference.
static PyObject *made_on_fakes(world *w, torch_trace *t, PyObject *function, const call *c,
                               size_t from) {
    PyObject *args = PyTuple_New((Py_ssize_t)(c->given - from)), *result = NULL;
    for (size_t i = from; args && i < c->given; i++) {
        PyObject *item = faked(w, c->args[i]);
        if (item)
            PyTuple_SET_ITEM(args, (Py_ssize_t)(i - from), item);
        else
            Py_CLEAR(args);
    }
    PyObject *kwargs = args ? faked_keywords(w, c) : NULL;
    if (kwargs)
        result = run_fakes(w, t, function, args, kwargs);
    if (kwargs && !result && !w->stop.broken)
        fake_failed(w, function);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return result;
}

static PyObject *add_input(world *w, PyObject *name, PyObject *fake) {
    node *n = graph_input(w->scope, name, name, fake);
    if (!n)
        return NULL;
    meta_of_fake(fake, &n->meta);
    PyObject *made = standin_for(w, fake, n);
    Py_DECREF(n);
    return made;
}

// (name, function, argument, …): the stand-in.
PyObject *higher_input(world *w, const call *c) {
    torch_trace *t = w->torch;
    PyObject *name = door_open(w, c->args[0]);
    PyObject *function = name ? door_open(w, c->args[1]) : NULL, *made = NULL;
    if (!function)
        return NULL;
    quiet q;
    quiet_begin(&q);
    PyObject *fake = made_on_fakes(w, t, function, c, 2);
    if (fake)
        made = add_input(w, name, fake);
    Py_XDECREF(fake);
    quiet_end(&q);
    return made;
}

PyObject *higher_bare(world *w, const call *c) {
    const applied *r = higher_now(w->torch);
    (void)c;
    if (PyList_GET_SIZE(r->outputs.items[r->outputs.count - 1]) != 1)
        return world_break(w, REASON_HIGHER_ORDER, "a body that does not compute what it gives");
    r->bodies.items[r->bodies.count - 1]->form = FORM_ONE;
    return Py_NewRef(Py_None);
}
