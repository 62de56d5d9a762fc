// Attributes of stand-ins, in the order of PyObject_GenericGetAttr. Reading one of torch's getsets
// asks the fake, becomes a node, or breaks; a tensor's own attributes go through its record.
#include "src/attr/descr.h"

#include "src/torch/overrides.h"

static bool is_text(PyObject *name, const char *text) {
    return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

// --- getsets ---

// Of the fake: a plain value that its guards or its node's meta decide. Few have to do with sizes.
static PyObject *from_fake(world *w, standin *s, PyObject *name) {
    torch_trace *t = w->torch;
    quiet q;
    quiet_begin(&q);
    t->checking = !is_text(name, "shape") && !is_text(name, "nbytes");
    PyObject *fake = fake_of(w, s->node);
    t->checking = false;
    PyObject *value = fake ? PyObject_GetAttr(fake, name) : NULL;
    quiet_end(&q);
    PyObject *result = value ? fixed_value(w, value) : NULL;
    Py_XDECREF(value);
    if (result && numbers_guard(w) != ST_OK)
        Py_CLEAR(result);
    return result;
}

// What rules know; NULL without an exception if they do not.
static PyObject *from_meta(world *w, const meta *m, PyObject *name) {
    if (is_text(name, "shape"))
        return sizes_object(w, m->sizes, m->dims);
    if (is_text(name, "dtype"))
        return dtype_object(m->dtype) ? fixed_value(w, dtype_object(m->dtype)) : NULL;
    if (is_text(name, "device"))
        return fixed_value(w, device_object(m));
    if (is_text(name, "ndim"))
        return PyLong_FromLong(m->dims);
    if (is_text(name, "requires_grad"))
        return PyBool_FromLong(m->requires_grad);
    size bytes = size_of(meta_element_bytes(m));
    if (bytes.hint && is_text(name, "itemsize"))
        return PyLong_FromLongLong(bytes.hint);
    if (bytes.hint && is_text(name, "nbytes"))
        return number_object(w, number_of_size(size_mul(bytes, meta_numel(m))));
    return NULL;
}

static PyObject *fold(world *w, standin *s, PyObject *name) {
    const meta *m = meta_known(w, s->node);
    PyObject *value = m ? from_meta(w, m, name) : NULL;
    return value || PyErr_Occurred() || w->stop.broken ? value : from_fake(w, s, name);
}

static PyObject *from_history(world *w, standin *s, PyObject *name) {
    return fakes_settle(w) == ST_OK ? from_fake(w, s, name) : NULL;
}

// In inference mode torch's fakes take some operations apart, and lose that a view requires a
// gradient: a False is believed of tensors from outside only.
static PyObject *needs_gradient(world *w, standin *s, PyObject *name) {
    torch_trace *t = w->torch;
    t->gradient_asked++;
    bool usual = is_as_it_came(s) || !(facts.inference() || t->inference);
    PyObject *value = usual ? fold(w, s, name) : from_history(w, s, name);
    if (usual || value != Py_False)
        return value;
    Py_DECREF(value);
    return world_break(w, REASON_TENSOR_VALUE, "requires_grad in inference mode");
}

static PyObject *from_node(world *w, standin *s, PyObject *name) {
    PyObject *args[] = {(PyObject *)s, name};
    return record_function(w, facts.getattr, args, 2);
}

static PyObject *leafness(world *w, standin *s, PyObject *name) {
    ((torch_trace *)w->torch)->gradient_asked++;
    if (s->input && input_guard_leaf(w, s) != ST_OK)
        return NULL;
    return from_history(w, s, name);
}

// A leaf has none: neither history, which for others is an object of C++'s, nor, if it was made
// inside, a gradient, for which others warn.
static PyObject *none_of_leaf(world *w, standin *s, PyObject *name) {
    static PyObject *leaf;
    if (!leaf && !(leaf = PyUnicode_InternFromString("is_leaf")))
        return NULL;
    PyObject *known = leafness(w, s, leaf);
    if (!known || known == Py_False) {
        Py_XDECREF(known);
        if (!known || hook_place(w, s) != ST_OK)
            return NULL;
        return world_break(w, REASON_ATTRIBUTE, "Tensor.%U", name);
    }
    Py_DECREF(known);
    return Py_NewRef(Py_None);
}

// The gradient that a tensor from outside has: from outside as well.
static PyObject *gradient(world *w, standin *s, PyObject *name) {
    record *r = record_of(w, (PyObject *)s);
    if (!r || !s->type)
        return none_of_leaf(w, s, name);
    if (grad_pending(r)) {
        w->facts.met = true;
        return Py_NewRef(grad_pending(r));
    }
    source *from = guard_source(w->guards, SOURCE_TENSOR_GRAD, r->source, name, 0);
    PyObject *kept = NULL;
    PyObject *value = from ? source_read(SOURCE_TENSOR_GRAD, r->outside, name, 0, &kept) : NULL;
    PyObject *result = value ? door_load(w, from, value) : NULL;
    if (!result && from && !value && !PyErr_Occurred())
        world_break(w, REASON_ATTRIBUTE, "%U", name);
    Py_XDECREF(kept);
    return result;
}

// The tensor itself tells, behind a break. One that a backend has made counts no writes.
static PyObject *tell_behind_break(world *w, PyObject *name) {
    ((torch_trace *)w->torch)->counted = true;
    return world_break(w, REASON_TENSOR_VALUE, "Tensor.%U", name);
}

// What becomes of one of torch's own getsets; the glue's table says by name.
static PyObject *get_known(world *w, standin *s, PyObject *name, PyObject *how) {
    if (is_text(how, "fold"))
        return fold(w, s, name);
    if (is_text(how, "needs gradient"))
        return needs_gradient(w, s, name);
    if (is_text(how, "node"))
        return from_node(w, s, name);
    if (is_text(how, "leaf"))
        return leafness(w, s, name);
    if (is_text(how, "no history"))
        return none_of_leaf(w, s, name);
    if (is_text(how, "no record") && !s->input && w->held.calls.count == 0)
        return from_history(w, s, name);
    if (is_text(how, "grad"))
        return gradient(w, s, name);
    if (is_text(how, "value"))
        return tell_behind_break(w, name);
    return world_break(w, REASON_ATTRIBUTE, "Tensor.%U", name);
}

// A callable in the table's place: x.data is torch._C._autograd._get_data_attr(x).
static PyObject *get_getset(world *w, standin *s, PyObject *name, PyObject *descriptor) {
    PyObject *known = PyDict_GetItemWithError(facts.attributes, name);
    if (!known || PyTuple_GET_ITEM(known, 0) != descriptor)
        return PyErr_Occurred() ? NULL : world_break(w, REASON_ATTRIBUTE, "Tensor.%U", name);
    PyObject *how = PyTuple_GET_ITEM(known, 1), *self = (PyObject *)s;
    if (PyUnicode_Check(how))
        return get_known(w, s, name, how);
    return record_function(w, how, &self, 1);
}

// --- the instance's own ---

// New reference; NULL without an exception if there is none.
static PyObject *get_own(world *w, standin *s, PyObject *name) {
    record *r = record_of(w, (PyObject *)s);
    if (!r && s->attrs)
        return Py_XNewRef(PyDict_GetItemWithError(s->attrs, name));
    if (!r)
        return composite_attribute(w, s, name, NULL);
    names *n = composite_read(w, s) == ST_OK ? names_of_object(w, r) : NULL;
    return n ? names_get(w, n, name) : NULL;
}

static PyObject *get_dict(world *w, standin *s) {
    if (composite_refuse(w, s, "__dict__") != ST_OK)
        return NULL;
    record *r = record_of(w, (PyObject *)s);
    names *n = r ? names_of_object(w, r) : NULL;
    if (n)
        return names_as_object(w, n);
    return PyErr_Occurred() || w->stop.broken
               ? NULL
               : world_break(w, REASON_ATTRIBUTE, "__dict__ of a tensor made in the trace");
}

static bool is_data_descriptor(PyObject *o) {
    return Py_TYPE(o)->tp_descr_set != NULL;
}

// By a descriptor of Python's: a property, a class method, …
static PyObject *get_described(world *w, standin *s, PyObject *name, PyObject *found,
                               PyObject *raw) {
    descr d;
    if (!raw_is_python_class(s->type) || s->type == facts.tensor)
        return world_break(w, REASON_ATTRIBUTE, "Tensor.%U", name);
    return descr_of(w, found, raw, &d) == ST_OK ? descr_get(w, &d, (PyObject *)s, s->type) : NULL;
}

// A slot of a class of Python's.
static PyObject *get_slot(world *w, standin *s, PyObject *name, PyObject *raw) {
    record *r = record_of(w, (PyObject *)s);
    PyObject *value = NULL;
    if (!r)
        value = composite_attribute(w, s, name, raw);
    else if (composite_read(w, s) == ST_OK)
        value = slot_get(w, r, raw);
    if (value || PyErr_Occurred() || w->stop.broken)
        return value;
    return world_break(w, REASON_ATTRIBUTE, "%s.%U", s->type->tp_name, name);
}

// Methods: of C as CPython binds them, of Python as bound methods.
static PyObject *bind(world *w, standin *s, PyObject *name, PyObject *found, PyObject *raw) {
    if (Py_TYPE(raw) == &PyMethodDescr_Type)
        return Py_TYPE(raw)->tp_descr_get(raw, (PyObject *)s, (PyObject *)s->type);
    if (PyFunction_Check(raw) || Py_TYPE(raw) == &PyWrapperDescr_Type)
        return PyMethod_New(found, (PyObject *)s);
    if (!Py_TYPE(raw)->tp_descr_get)
        return Py_NewRef(found);
    return get_described(w, s, name, found, raw);
}

static PyObject *no_attribute(standin *s, PyObject *name) {
    PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", s->type->tp_name,
                 name);
    return NULL;
}

// What the class has under a name. The class of a result is torch.Tensor, which no place led to.
PyObject *attr_of_class(world *w, PyTypeObject *type, PyObject *name, PyObject **raw) {
    if (!record_of(w, (PyObject *)type)) {
        source *s = guard_source(w->guards, SOURCE_FIXED, NULL, (PyObject *)type, 0);
        if (!s || !door_bring(w, s, (PyObject *)type))
            return NULL;
    }
    return type_lookup(w, type, name, raw);
}

// torch's getters ask the class.
static PyObject *get_asking(world *w, standin *s, PyObject *name, PyObject *raw) {
    PyObject *args[] = {(PyObject *)s, name}, *answer;
    const torch_trace *t = w->torch;
    if (t && t->overrides && overrides_answer_of(w, facts.getattr, args, 2, &answer))
        return answer;
    return get_getset(w, s, name, raw);
}

PyObject *attr_of_standin(world *w, PyObject *o, PyObject *name) {
    standin *s = (standin *)o;
    PyObject *raw = NULL;
    if (is_text(name, "__class__"))
        return Py_NewRef(s->type);
    if (is_text(name, "__dict__"))
        return get_dict(w, s);
    PyObject *found = attr_of_class(w, s->type, name, &raw);
    if (!found && (PyErr_Occurred() || w->stop.broken))
        return NULL;
    if (found && Py_TYPE(raw) == &PyGetSetDescr_Type)
        return get_asking(w, s, name, raw);
    if (found && Py_IS_TYPE(raw, &PyMemberDescr_Type) && raw_is_python_class(PyDescr_TYPE(raw)))
        return get_slot(w, s, name, raw);
    if (found && is_data_descriptor(raw))
        return Py_IS_TYPE(raw, &PyProperty_Type) ? get_described(w, s, name, found, raw)
                                                 : get_getset(w, s, name, raw);
    PyObject *own = get_own(w, s, name);
    if (own || PyErr_Occurred() || w->stop.broken)
        return own;
    return found ? bind(w, s, name, found, raw) : no_attribute(s, name);
}

// Whether torch takes a tensor of this kind for a gradient: the setter must not fail when it is too
// late. 1, 0, or -1 with an exception.
static int fits(world *w, standin *s, standin *gradient) {
    quiet q;
    quiet_begin(&q);
    PyObject *args[] = {fake_of(w, s->node), fake_of(w, gradient->node)}, *answer = NULL;
    if (args[0] && args[1])
        answer = PyObject_Vectorcall(glue_function("takes_gradient"), args, 2, NULL);
    quiet_end(&q);
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth;
}

// 0 if it is held back, 1 if it is to be done for real, -1.
static int set_gradient(world *w, standin *s, record *r, PyObject *value) {
    PyObject *gradient = value ? door_open(w, value) : NULL;
    if (value && !gradient)
        return -1;
    bool tensor = gradient && is_tensor_standin(gradient) && gradient != (PyObject *)s;
    int taken = gradient == Py_None ? 1 : tensor ? fits(w, s, (standin *)gradient) : 0;
    if (taken <= 0)
        return taken < 0 ? -1 : 1;
    return grad_set(w, r, gradient) == ST_OK ? 0 : -1;
}

// As the method does, which takes other things than bools, too.
static int set_requires_grad(world *w, standin *s, PyObject *value) {
    PyObject *flag = door_open(w, value);
    PyObject *name = flag ? PyUnicode_InternFromString("requires_grad_") : NULL;
    PyObject *method = name ? attr_of_standin(w, (PyObject *)s, name) : NULL, *done = NULL;
    if (method && PyBool_Check(flag))
        done = call_with(w, method, &flag, 1);
    else if (method)
        world_break(w, REASON_ATTRIBUTE, "Tensor.requires_grad is set");
    Py_XDECREF(name);
    Py_XDECREF(method);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

// On a tensor made inside: the plan sets it on what comes out of the graph.
static int set_inside(world *w, standin *s, PyObject *name, PyObject *value) {
    if (!s->attrs && !(s->attrs = PyDict_New()))
        return -1;
    world_touch(w);
    if (value)
        return PyDict_SetItem(s->attrs, name, value);
    int found = PyDict_Contains(s->attrs, name);
    if (found == 0)
        no_attribute(s, name);
    return found > 0 ? PyDict_DelItem(s->attrs, name) : -1;
}

int attr_set_standin(world *w, PyObject *o, PyObject *name, PyObject *value) {
    standin *s = (standin *)o;
    PyObject *raw = NULL;
    PyObject *found = attr_of_class(w, s->type, name, &raw);
    record *r = record_of(w, o);
    if ((!found && (PyErr_Occurred() || w->stop.broken)) ||
        composite_refuse(w, s, "an attribute") != ST_OK)
        return -1;
    int asked = found && is_data_descriptor(raw) ? overrides_of_tensor(w, s) : 0;
    if (asked < 0)
        return -1;
    if (found && r && !asked && is_text(name, "grad") && Py_TYPE(raw) == &PyGetSetDescr_Type) {
        int done = set_gradient(w, s, r, value);
        if (done <= 0)
            return done;
    }
    if (found && !asked && is_text(name, "requires_grad") && value &&
        Py_TYPE(raw) == &PyGetSetDescr_Type)
        return set_requires_grad(w, s, value);
    if ((found && is_data_descriptor(raw)) || !PyUnicode_CheckExact(name)) {
        world_break(w, REASON_ATTRIBUTE, "Tensor.%U is set", name);
        return -1;
    }
    if (!r)
        return set_inside(w, s, name, value);
    names *n = names_of_object(w, r);
    if (!n)
        return PyErr_Occurred() || w->stop.broken ? -1 : (no_attribute(s, name), -1);
    if (!value) {
        PyObject *old = names_get(w, n, name);
        if (!old)
            return PyErr_Occurred() || w->stop.broken ? -1 : (no_attribute(s, name), -1);
        Py_DECREF(old);
    }
    return names_set(w, n, name, value) == ST_OK ? 0 : -1;
}
