// Torch's callables: which of them become nodes, which are answered at once, which stop the trace.
// The rows come from the Python glue, by object; methods of tensors are found by their descriptors.
#include "src/call/handlers.h"
#include "src/call/marks.h"
#include "src/call/rules.h"

#include "src/torch/room.h"

static const char *const kind_names[] = {
#define KIND(id, name) [KIND_##id] = name,
#include "src/torch/kinds.def"
#undef KIND
};

static PyTypeObject *wrapper_type; // of bound slots, like None.__repr__: not declared everywhere

static int kind_by_name(PyObject *name) {
    for (int i = 0; i < KIND_COUNT; i++)
        if (PyUnicode_Check(name) && !PyUnicode_CompareWithASCIIString(name, kind_names[i]))
            return i;
    PyErr_Format(PyExc_ValueError, "no such kind of torch callable: %R", name);
    return -1;
}

// One row of the glue's: callable → (kind, extra). Rows live as long as the process.
static int add_row(PyObject *callable, PyObject *value) {
    PyObject *name, *extra;
    if (!PyArg_ParseTuple(value, "OO", &name, &extra))
        return -1;
    int kind = kind_by_name(name);
    row *r = kind < 0 ? NULL : PyMem_Calloc(1, sizeof(row));
    if (!r)
        return kind < 0 ? -1 : (PyErr_NoMemory(), -1);
    *r = (row){(enum kind)kind, Py_NewRef(callable), Py_NewRef(extra)};
    // Every lookup of a C class method makes another bound object; its C function stays.
    if (Py_IS_TYPE(callable, &PyClassMethodDescr_Type) &&
        map_put(&facts.rows, map_key(((PyMethodDescrObject *)callable)->d_method), map_key(r)))
        return -1;
    return map_put(&facts.rows, map_key(callable), map_key(r)) == ST_OK ? 0 : -1;
}

int table_fill(PyObject *rows) {
    if (!PyList_Check(rows)) {
        PyErr_SetString(PyExc_TypeError, "the table of torch's callables is a list");
        return -1;
    }
    PyObject *wrapper = PyObject_GetAttrString(Py_None, "__repr__");
    if (!wrapper)
        return -1;
    wrapper_type = (PyTypeObject *)Py_NewRef(Py_TYPE(wrapper));
    Py_DECREF(wrapper);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        PyObject *callable, *value;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(rows, i), "OO", &callable, &value) ||
            add_row(callable, value) < 0)
            return -1;
    }
    return 0;
}

// Fields of torch's own immutable types (dtype, device, finfo …) are read natively.
int table_add_fields(PyObject *descriptors) {
    static const rule plain = {
        .path = "a field of a torch type", .kind = RULE_PURE, .writes = W_NONE};
    PyObject *items = PySequence_Fast(descriptors, "fields are a sequence");
    int result = items ? 0 : -1;
    for (Py_ssize_t i = 0; result == 0 && i < PySequence_Fast_GET_SIZE(items); i++)
        result = rules_add(PySequence_Fast_GET_ITEM(items, i), &plain) == ST_OK ? 0 : -1;
    Py_XDECREF(items);
    return result;
}

static const row *row_of(PyObject *callable) {
    uint64_t *found = map_get(&facts.rows, map_key(callable));
    return found ? (const row *)(uintptr_t)*found : NULL;
}

// --- the kinds ---

// The method's node has its name for a target, and `self` first.
static PyObject *call_method(world *w, const row *r, const call *c) {
    return record_call(w, NODE_CALL_METHOD, r->extra, r->callable, c);
}

// Called for real on plain values; nothing of the trace can leak into it.
static PyObject *call_plainly(world *w, PyObject *callable, const call *c) {
    size_t count = call_count(c), made = 0;
    PyObject **values = PyMem_New(PyObject *, count + 1), *result = NULL;
    if (!values)
        return PyErr_NoMemory();
    while (made < count && (values[made + 1] = plain_value(w, c->args[made])))
        made++;
    if (made == count) {
        quiet q;
        quiet_begin(&q);
        result = PyObject_Vectorcall(callable, values + 1,
                                     c->given | PY_VECTORCALL_ARGUMENTS_OFFSET, c->keywords);
        quiet_end(&q);
    }
    while (made > 0)
        Py_DECREF(values[made--]);
    PyMem_Free(values);
    PyObject *fixed = result ? fixed_value(w, result) : NULL;
    Py_XDECREF(result);
    return fixed;
}

static PyObject *call_question(world *w, const row *r, const call *c) {
    return trace_of(w) ? call_plainly(w, r->callable, c) : NULL;
}

// Whether torch would ask the object's class for __torch_function__; -1: a break or an exception.
static int overrides(world *w, PyObject *o, int depth) {
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("__torch_function__")))
        return -1;
    if (!(o = door_open(w, o)))
        return -1;
    if (is_tensor_standin(o))
        return 0;
    if (depth > 0 && (PyTuple_Check(o) || PyList_Check(o))) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
            int found = overrides(w, PySequence_Fast_GET_ITEM(o, i), depth - 1);
            if (found != 0)
                return found;
        }
        return 0;
    }
    if (!raw_is_python_class(Py_TYPE(o)))
        return 0;
    return type_lookup(w, Py_TYPE(o), name, NULL) ? 1 : PyErr_Occurred() || w->stop.broken ? -1 : 0;
}

// Where a default device is on, torch calls the function by way of its mode, and without it within.
static PyObject *call_overrides(world *w, const row *r, const call *c) {
    torch_trace *t = trace_of(w);
    if (!t || t->device)
        return t ? world_break(w, REASON_TORCH_STATE, "a default device is on") : NULL;
    for (size_t i = 0; i < c->given; i++) {
        int found = overrides(w, c->args[i], 1);
        if (found < 0)
            return NULL;
        if (found)
            return world_break(w, REASON_TENSOR_OPERATION, "an argument has __torch_function__");
    }
    (void)r;
    return Py_NewRef(Py_False);
}

static PyObject *call_offset(world *w, const row *r, const call *c) {
    PyObject *result = call_method(w, r, c);
    if (result)
        inputs_guard_offsets(w);
    return result;
}

// Whether all dimensions, or the one at `at`, have more than one element; -1: an exception.
static int has_fixed_strides(PyObject *sizes, PyObject *at) {
    Py_ssize_t dims = PyTuple_GET_SIZE(sizes), only = at ? PyNumber_AsSsize_t(at, NULL) : 0;
    if (at && only == -1 && PyErr_Occurred())
        return -1;
    only = only < 0 ? only + dims : only;
    bool fixed = true, empty = false;
    for (Py_ssize_t i = 0; i < dims; i++) {
        long size = PyLong_AsLong(PyTuple_GET_ITEM(sizes, i));
        empty |= size == 0;
        fixed &= size > 1 || (at && i != only);
    }
    return fixed && !empty;
}

// By torch.zeros, x.new_empty and their like: no kernel chose the strides.
static bool is_made_of_sizes(const node *n) {
    if (n->op == NODE_CALL_METHOD)
        return strncmp(PyUnicode_AsUTF8(n->target), "new_", strlen("new_")) == 0;
    return n->op == NODE_CALL_FUNCTION &&
           PySet_Contains(glue_function("constructors"), n->target) == 1;
}

// A kernel may give a dimension of one element any stride, and torch's fakes and our rules do not
// always say which. The tensor itself is asked, behind a break.
static PyObject *call_stride(world *w, const row *r, const call *c) {
    PyObject *self = c->given > 0 ? door_open(w, c->args[0]) : NULL;
    if (!self || !is_tensor_standin(self) || is_as_it_came((standin *)self) ||
        is_made_of_sizes(((standin *)self)->node))
        return self ? call_method(w, r, c) : NULL;
    PyObject *dim = c->given > 1 ? c->args[1] : handler_keyword(c, "dim");
    PyObject *at = dim ? plain_value(w, dim) : NULL;
    PyObject *name = at || !dim ? PyUnicode_InternFromString("shape") : NULL;
    PyObject *sizes = name ? attr_of_standin(w, self, name) : NULL;
    int fixed = sizes ? has_fixed_strides(sizes, at == Py_None ? NULL : at) : -1;
    Py_XDECREF(at);
    Py_XDECREF(name);
    Py_XDECREF(sizes);
    if (fixed < 0)
        return NULL;
    return fixed ? call_method(w, r, c)
                 : world_break(w, REASON_TENSOR_VALUE, "the stride of a dimension of one element");
}

static PyObject *call_iterate(world *w, const call *c) {
    PyObject *self = c->given == 1 ? door_open(w, c->args[0]) : NULL;
    if (self && is_tensor_standin(self))
        return operator_iterate(w, self);
    return PyErr_Occurred() ? NULL
                            : world_break(w, REASON_TENSOR_OPERATION, "Tensor.__iter__ of another");
}

// As in Dynamo a parameter counts as looked at from here on, which decides the order of inputs.
static PyObject *call_module_get(world *w, const row *r, const call *c) {
    if (!record_of(w, r->callable))
        return world_break(w, REASON_UNKNOWN_FUNCTION, "Module.__getattr__");
    call interpreted = call_again(c, r->callable);
    PyObject *result = call_function(w, &interpreted);
    if (result && is_lazy(result) && torch_ops.is_tensor(((lazy *)result)->outside) &&
        input_looked(w, ((lazy *)result)->source) != ST_OK)
        Py_CLEAR(result);
    return result;
}

static bool stands_for_tensor(PyObject *o) {
    return is_lazy(o) ? torch_ops.is_tensor(((lazy *)o)->outside) : is_tensor_standin(o);
}

// Its value becomes the instruction's as that of the callable would have.
static PyObject *call_instead(world *w, PyObject *function, const call *c) {
    if (!w->run) // nobody to interpret it
        return world_break(w, REASON_TENSOR_OPERATION, "%S", function);
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, function, 0);
    call instead = *c;
    instead.callable = s ? door_bring(w, s, function) : NULL;
    return instead.callable ? call_any(w, &instead) : NULL;
}

// Where each operation is run by itself, the backward is autograd's, as in plain Python.
static PyObject *call_looking(world *w, const row *r, const call *c) {
    if (function_look(w) != ST_OK)
        return NULL;
    return call_instead(w, PyTuple_GET_ITEM(r->extra, !w->terms.replayed), c);
}

static PyObject *call_scaled(world *w, const row *r, const call *c) {
    PyObject *name = PyTuple_GET_ITEM(r->extra, 0);
    PyObject *value = handler_keyword(c, "value");
    if (value && stands_for_tensor(value))
        return call_instead(w, PyTuple_GET_ITEM(r->extra, 1), c);
    if (name == Py_None)
        return record_call(w, NODE_CALL_FUNCTION, r->callable, r->callable, c);
    return record_call(w, NODE_CALL_METHOD, name, r->callable, c);
}

// What to say is a text, or (reason, text) where the kind's usual reason says too little.
static PyObject *refuse(world *w, const row *r, reason usual) {
    if (!PyTuple_Check(r->extra))
        return world_break(w, usual, "%S", r->extra);
    const char *id = PyUnicode_AsUTF8(PyTuple_GET_ITEM(r->extra, 0));
    reason why = id ? reason_by_id(id) : REASON_COUNT;
    return world_break(w, why < REASON_COUNT ? why : usual, "%S", PyTuple_GET_ITEM(r->extra, 1));
}

static PyObject *call_row(world *w, const row *r, const call *c) {
    switch (r->kind) {
    case KIND_OPERATION:
        if (r->extra != Py_None && state_matters(w, r->extra) != ST_OK)
            return NULL;
        return device_call(w, r, c);
    case KIND_METHOD:
        return call_method(w, r, c);
    case KIND_CONSTANT:
        return Py_NewRef(r->extra);
    case KIND_COMPILING:
        w->facts.told = true;
        return trace_of(w) ? Py_NewRef(r->extra) : NULL;
    case KIND_WHILE_TRACED:
        return trace_of(w) ? Py_NewRef(r->extra) : NULL;
    case KIND_QUESTION:
        return call_question(w, r, c);
    case KIND_ASKED:
        return state_asked(w, r, c);
    case KIND_PLAIN:
        return call_plainly(w, r->callable, c);
    case KIND_SETTER:
        return state_set(w, r, c);
    case KIND_SETTING:
        return settings_set(w, r, c);
    case KIND_OVERRIDES:
        return call_overrides(w, r, c);
    case KIND_AUTOCAST_DTYPE:
        return autocast_dtype(w, r, c);
    case KIND_ENTER_AUTOCAST:
        return autocast_enter(w, r, c);
    case KIND_EXIT_AUTOCAST:
        return autocast_exit(w, r, c);
    case KIND_ENTER_INFERENCE:
        return inference_enter(w, r, c);
    case KIND_EXIT_INFERENCE:
        return inference_exit(w, r, c);
    case KIND_MODULE_GET:
        return call_module_get(w, r, c);
    case KIND_INSTEAD:
        return call_instead(w, r->extra, c);
    case KIND_SCALED:
        return call_scaled(w, r, c);
    case KIND_ITERATE:
        return call_iterate(w, c);
    case KIND_STRIDE:
        return call_stride(w, r, c);
    case KIND_OFFSET:
        return call_offset(w, r, c);
    case KIND_HOOK:
        return hook_call(w, r, c);
    case KIND_UNHOOK:
        return hook_remove(w, r, c);
    case KIND_FUNCTION:
        return call_looking(w, r, c);
    case KIND_APPLY:
        return function_apply(w, r, c);
    case KIND_DETACH:
        return hook_detach(w, r, c);
    case KIND_DERIVED:
        return hook_derive(w, c) == ST_OK ? refuse(w, r, REASON_BACKWARD) : NULL;
    case KIND_VALUE:
        return refuse(w, r, REASON_TENSOR_VALUE);
    case KIND_REFUSED:
        return refuse(w, r, REASON_TENSOR_OPERATION);
    case KIND_STATE:
        return refuse(w, r, REASON_TORCH_STATE);
    case KIND_COUNT:
        break;
    }
    Py_UNREACHABLE();
}

// --- finding the row ---

static PyObject *call_with_self(world *w, const row *r, PyObject *self, const call *c) {
    size_t count = call_count(c);
    PyObject **args = PyMem_New(PyObject *, count + 1);
    if (!args)
        return PyErr_NoMemory();
    args[0] = self;
    if (count)
        memcpy(args + 1, c->args, count * sizeof(PyObject *));
    call joined = *c;
    joined.args = args;
    joined.given++;
    PyObject *result = call_row(w, r, &joined);
    PyMem_Free(args);
    return result;
}

// A C method bound to a stand-in, or to a constant of torch's: its descriptor's row, with self
// first.
static PyObject *call_bound(world *w, PyObject *method, const call *c, bool *handled) {
    PyObject *self = PyCFunction_GET_SELF(method);
    bool standin = is_tensor_standin(self);
    const char *name = ((PyCFunctionObject *)method)->m_ml->ml_name;
    PyObject *key = PyUnicode_InternFromString(name);
    PyObject *descriptor = key ? _PyType_Lookup(standin ? facts.base : Py_TYPE(self), key) : NULL;
    const row *r = descriptor ? row_of(descriptor) : NULL;
    Py_XDECREF(key);
    *handled = standin || r;
    if (r)
        return call_with_self(w, r, self, c);
    return standin ? world_break(w, REASON_TENSOR_OPERATION, "Tensor.%s", name) : NULL;
}

// The row of a C class method that is bound to a class.
static const row *row_of_class_method(PyObject *callable) {
    PyCFunctionObject *f = (PyCFunctionObject *)callable;
    bool bound = PyCFunction_Check(callable) && f->m_ml->ml_flags & METH_CLASS && f->m_self &&
                 PyType_Check(f->m_self);
    uint64_t *found = bound ? map_get(&facts.rows, map_key(f->m_ml)) : NULL;
    return found ? (const row *)(uintptr_t)*found : NULL;
}

// What torch's C++ gives to __torch_function__ for x.shape: the getset's own __get__.
static PyObject *call_getter(world *w, PyObject *wrapper, const call *c, bool *handled) {
    PyObject *self = PyObject_GetAttrString(wrapper, "__self__");
    if (!self) {
        PyErr_Clear();
        return NULL;
    }
    *handled =
        Py_TYPE(self) == &PyGetSetDescr_Type && c->given >= 1 && is_tensor_standin(c->args[0]);
    PyObject *result = *handled ? attr_of_standin(w, c->args[0], PyDescr_NAME(self)) : NULL;
    Py_DECREF(self);
    return result;
}

// 1, 0, -1.
static int is_torchs_own(PyObject *operation) {
    PyObject *known = PyObject_CallOneArg(glue_function("is_known"), operation);
    Py_XDECREF(known);
    return known ? known == Py_True : -1;
}

// An operation of torch.ops, an instance of a Python class; or what a user wants in the graph.
static PyObject *call_overload(world *w, PyObject *callable, bool overload, const call *c) {
    torch_trace *t = trace_of(w);
    quiet q;
    quiet_begin(&q);
    int known = t && overload ? is_torchs_own(callable) : 0;
    quiet_end(&q);
    if (!t || known < 0)
        return NULL;
    t->pending = known ? 0 : EFFECT_UNKNOWN;
    return record_call(w, NODE_CALL_FUNCTION, callable, callable, c);
}

// Rows are by object: a function must be the very same, not just have the same code; and pybind11's
// builtins, all of one C function, look like methods of something.
static status guard_callable(world *w, PyObject *callable) {
    record *r = record_of(w, callable);
    return r ? record_identity(w, r) : ST_OK;
}

// The row of a callable that may be inside as another object than outside.
static const row *row_inside(world *w, PyObject *callable) {
    const row *r = row_of(callable);
    record *known = r || !PyCFunction_Check(callable) ? NULL : record_of(w, callable);
    return known && known->outside ? row_of(known->outside) : r;
}

static bool is_bound_to_ours(PyObject *callable) {
    PyObject *self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : NULL;
    if (!self || PyModule_Check(self))
        return false;
    PyTypeObject *type = Py_TYPE(self);
    return is_tensor_standin(self) || type == facts.size || type == facts.dtype ||
           type == facts.device;
}

// int(x), float(x), …: the method of that name, which knows the values of constants.
static const char *number_method(PyObject *callable, const call *c) {
    if (c->given != 1 || c->keywords || !stands_for_tensor(c->args[0]))
        return NULL;
    return callable == (PyObject *)&PyLong_Type      ? "__int__"
           : callable == (PyObject *)&PyFloat_Type   ? "__float__"
           : callable == (PyObject *)&PyBool_Type    ? "__bool__"
           : callable == (PyObject *)&PyComplex_Type ? "__complex__"
                                                     : NULL;
}

static PyObject *call_number(world *w, const char *name, const call *c) {
    PyObject *method = PyObject_GetAttrString((PyObject *)facts.base, name);
    PyObject *text = method ? PyUnicode_InternFromString(name) : NULL;
    PyObject *result = text ? record_call(w, NODE_CALL_METHOD, text, method, c) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(text);
    return result;
}

PyObject *table_call(world *w, const call *c, bool *handled) {
    PyObject *callable = c->callable;
    const row *r = row_inside(w, callable);
    bool overload = Py_TYPE(callable) == facts.overload || Py_TYPE(callable) == facts.packet;
    bool allowed = !r && mark_allowed(w, callable);
    *handled = r != NULL || overload || allowed;
    if (*handled && guard_callable(w, callable) != ST_OK)
        return NULL;
    if (r)
        return call_row(w, r, c);
    if (overload || allowed)
        return call_overload(w, callable, overload, c);
    const char *number = PyType_Check(callable) ? number_method(callable, c) : NULL;
    if (number) {
        *handled = true;
        return call_number(w, number, c);
    }
    if ((r = row_of_class_method(callable))) {
        *handled = true;
        return call_with_self(w, r, PyCFunction_GET_SELF(callable), c);
    }
    if (is_bound_to_ours(callable))
        return call_bound(w, callable, c, handled);
    if (Py_TYPE(callable) == wrapper_type)
        return call_getter(w, callable, c, handled);
    return NULL;
}
