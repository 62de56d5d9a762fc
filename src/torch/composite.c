// Composites: tensors whose class has `__torch_dispatch__`, and which hold other tensors
// (`__tensor_flatten__`). One is an input of the graph as it is. All that it holds is guarded when it
// is opened, since the class's own code, which the graph runs, may read any of it.
#include "src/attr/descr.h"

#include "src/torch/overrides.h"

enum { MOST_HELD = 200 }; // objects that one composite may hold

static PyTypeObject *known_class(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    bool other = PyType_IsSubtype(type, facts.tensor) && type != facts.tensor &&
                 !PyType_IsSubtype(type, facts.fake);
    return other ? type : NULL;
}

bool is_composite(PyObject *o) {
    seen s;
    return known_class(o) && facts.keys_at && read_tensor(o, &s) && (s.keys & facts.python_keys);
}

static int ask(const char *question, PyObject *a, PyObject *b) {
    PyObject *args[] = {a, b};
    PyObject *answer = PyObject_Vectorcall(glue_function(question), args, 2, NULL);
    Py_XDECREF(answer);
    return answer ? answer == Py_True : -1;
}

bool is_composite_of_fakes(const torch_trace *t, PyObject *o) {
    if (!t || !t->mode || !is_composite(o))
        return false;
    int made = ask("holds_fakes", t->mode, o);
    PyErr_Clear();
    return made > 0;
}

// --- classes ---

bool is_composite_class(PyObject *o) {
    static PyObject *name;
    if (!facts.tensor || !PyType_Check(o) || !PyType_IsSubtype((PyTypeObject *)o, facts.tensor) ||
        o == (PyObject *)facts.tensor || PyType_IsSubtype((PyTypeObject *)o, facts.fake))
        return false;
    if (!name && !(name = PyUnicode_InternFromString("__tensor_flatten__")))
        return false;
    return _PyType_Lookup((PyTypeObject *)o, name) != NULL;
}

// What the class says of itself is guarded: torch asks for these.
static status know_methods(world *w, PyTypeObject *class) {
    static const char *const methods[] = {"__torch_dispatch__", "__tensor_flatten__",
                                          "__tensor_unflatten__", "__new__", "__init__"};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(methods); i++) {
        PyObject *name = PyUnicode_InternFromString(methods[i]);
        PyObject *found = name ? attr_of_class(w, class, name, NULL) : NULL;
        Py_XDECREF(name);
        if (!found && (PyErr_Occurred() || w->stop.broken))
            return failed(w);
    }
    return ST_OK;
}

// From then on torch's own code asks nobody, and fakes have history.
static status know_class(world *w, PyTypeObject *class) {
    TRY(subclass_check(w, class, true));
    TRY(know_methods(w, class));
    if (!overrides_of(w))
        return failed(w);
    return fakes_settle(w);
}

status composite_check(world *w, PyObject *tensor) {
    PyTypeObject *class = Py_TYPE(tensor);
    PyObject *why = PyObject_CallOneArg(glue_function("composite_refusal"), tensor);
    if (!why && error_stays(w))
        return ST_ERROR;
    PyErr_Clear();
    reason of = class == facts.fake ? REASON_FAKES : REASON_TENSOR_OPERATION;
    status fine = why == Py_None
                      ? ST_OK
                      : world_break_status(w, of, "a tensor of class %s%s%V", class->tp_name,
                                           why ? ", which " : "", why, "");
    Py_XDECREF(why);
    TRY(fine);
    return know_class(w, class);
}

// --- what one holds ---

typedef struct looking {
    world *w;
    int left; // how many more objects may be looked at
} looking;

static status look_at(looking *l, PyObject *value);

static status look_at_items(looking *l, PyObject *const *items, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++)
        TRY(look_at(l, items[i]));
    return ST_OK;
}

// Marks that torch puts on tensors; the tensor's own guard compares them.
static bool is_mark(PyObject *key) {
    const char *text = PyUnicode_CheckExact(key) ? PyUnicode_AsUTF8(key) : NULL;
    return text && strncmp(text, "_dynamo_", strlen("_dynamo_")) == 0;
}

// `but`: a set of names whose values do not matter, or NULL.
static status look_at_names(looking *l, names *n, PyObject *but) {
    PyObject *dict = n ? names_fill(l->w, n) : NULL, *key, *value;
    Py_ssize_t at = 0;
    if (!dict)
        return PyErr_Occurred() || l->w->stop.broken ? failed(l->w) : ST_OK;
    while (PyDict_Next(dict, &at, &key, &value))
        if (!is_mark(key) && (!but || PySet_Contains(but, key) == 0))
            TRY(look_at(l, value));
    return ST_OK;
}

// `__slots__` of its class and of the bases.
static status look_at_slots(looking *l, PyObject *o, PyTypeObject *type) {
    for (PyTypeObject *t = type; t && raw_is_python_class(t); t = t->tp_base) {
        PyObject *key, *raw;
        Py_ssize_t at = 0;
        while (PyDict_Next(raw_type_dict(t), &at, &key, &raw)) {
            if (!Py_IS_TYPE(raw, &PyMemberDescr_Type))
                continue;
            PyObject *value = attr_get(l->w, o, key);
            status done = value ? look_at(l, value) : failed(l->w);
            Py_XDECREF(value);
            TRY(done);
        }
    }
    return ST_OK;
}

// An object all of whose state is in slots and its dict: no C code made its class, or a base. (The
// types of pybind11 are made as Python's are, but for how they end.)
static bool has_plain_state(PyTypeObject *type) {
    for (; type && type != &PyBaseObject_Type; type = type->tp_base)
        if (!raw_is_python_class(type) || type->tp_dealloc != facts.module->tp_dealloc)
            return false;
    return true;
}

// --- objects ---

// What the glue says of an object: None, "same", "equal", or a set of names. New reference.
static PyObject *manner_of(PyObject *o) {
    quiet q;
    quiet_begin(&q);
    PyObject *manner = PyObject_CallOneArg(glue_function("held_manner"), o);
    quiet_end(&q);
    return manner;
}

static bool is_word(PyObject *manner, const char *word) {
    return PyUnicode_Check(manner) && PyUnicode_CompareWithASCIIString(manner, word) == 0;
}

static status look_by(looking *l, PyObject *o, record *r, PyObject *manner) {
    world *w = l->w;
    bool named = PyType_Check(o) || PyModule_Check(o) || PyFunction_Check(o);
    if (is_word(manner, "equal"))
        return check_equal(w, r->source, r->outside);
    if (named || !has_plain_state(Py_TYPE(o)) || is_word(manner, "same"))
        return record_identity(w, r);
    TRY(vec_push(&((torch_trace *)w->torch)->within, r));
    TRY(look_at_slots(l, o, Py_TYPE(o)));
    return look_at_names(l, names_of_object(w, r), PyAnySet_Check(manner) ? manner : NULL);
}

static status look_at_object(looking *l, PyObject *o, record *r) {
    PyObject *manner = manner_of(o);
    status done = manner ? look_by(l, o, r, manner) : ST_ERROR;
    Py_XDECREF(manner);
    return done;
}

static status look_at(looking *l, PyObject *value) {
    world *w = l->w;
    PyObject *o = door_open(w, value);
    if (!o)
        return failed(w);
    record *r = record_of(w, o);
    if (is_tensor_standin(o) || !r || value_immutable(o))
        return ST_OK;
    if (l->left-- == 0)
        return world_break_status(w, REASON_TENSOR_OPERATION,
                                  "a tensor that holds too many objects");
    switch (r->kind) {
    case RECORD_LIST:
    case RECORD_TUPLE:
        TRY(vec_push(&((torch_trace *)w->torch)->within, r));
        return look_at_items(l, PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o));
    case RECORD_DICT:
        TRY(vec_push(&((torch_trace *)w->torch)->within, r));
        return look_at_names(l, names_of_dict(w, r), NULL);
    case RECORD_OBJECT:
        return look_at_object(l, o, r);
    default:
        return world_break_status(w, REASON_TENSOR_OPERATION, "a tensor that holds a %s",
                                  Py_TYPE(o)->tp_name);
    }
}

// Of a jagged tensor: a tuple of the attributes that say what it is; else None. New reference.
// Ragged sizes are equal if they are of one tensor of offsets: which of the inputs are one object
// and which are not is guarded.
static PyObject *ragged_names(world *w, PyObject *tensor) {
    quiet q;
    quiet_begin(&q);
    PyObject *names = PyObject_CallOneArg(glue_function("ragged_names"), tensor);
    quiet_end(&q);
    if (names && names != Py_None)
        w->facts.identity_mattered = true;
    return names;
}

// The other attributes are notes of torch's.
static status look_at_some(looking *l, names *n, PyObject *which) {
    for (Py_ssize_t i = 0; n && i < PyTuple_GET_SIZE(which); i++) {
        PyObject *value = names_get(l->w, n, PyTuple_GET_ITEM(which, i));
        status done = value                                   ? look_at(l, value)
                      : PyErr_Occurred() || l->w->stop.broken ? failed(l->w)
                                                              : ST_OK;
        Py_XDECREF(value);
        TRY(done);
    }
    return n ? ST_OK : failed(l->w);
}

static status look_within(looking *l, record *r, PyObject *which) {
    TRY(look_at_slots(l, r->inside, Py_TYPE(r->outside)));
    names *n = names_of_object(l->w, r);
    return which == Py_None ? look_at_names(l, n, NULL) : look_at_some(l, n, which);
}

status composite_look(world *w, record *r) {
    looking l = {w, MOST_HELD};
    torch_trace *t = w->torch;
    t->composites++;
    PyObject *which = ragged_names(w, r->outside);
    if (!which || vec_push(&t->within, r) != ST_OK) {
        Py_XDECREF(which);
        return ST_ERROR;
    }
    t->holders++;
    status done = look_within(&l, r, which);
    t->holders--;
    Py_DECREF(which);
    return done;
}

// --- operations ---

static status enter_node(node *n, void *data) {
    return is_composite(n->example) ? body_enters_class(data, Py_TYPE(n->example)) : ST_OK;
}

static bool holds_back_within(const world *w, const torch_trace *t) {
    for (uint32_t i = 0; i < t->within.count; i++)
        if (world_holds_back(w, t->within.items[i]->outside, NULL))
            return true;
    return false;
}

status composites_enter(world *w, const operands *given) {
    const torch_trace *t = w->torch;
    if (!t->composites)
        return ST_OK;
    if (world_wrote(w) && holds_back_within(w, t))
        return world_break_status(w, REASON_TENSOR_OPERATION,
                                  "a tensor of which something was set before");
    TRY(node_walk(given->args, enter_node, w));
    return given->kwargs ? node_walk(given->kwargs, enter_node, w) : ST_OK;
}

bool composites_written(const torch_trace *t) {
    int written = t->composites && t->mode ? flag_of(t->mode, "stator_composed") : 0;
    PyErr_Clear();
    return written > 0;
}

// A backend gives no new leaves: autograd would take it for a result of the graph.
static status check_made(world *w, PyObject *made) {
    if (!is_tensor_standin(made) || !is_composite(((standin *)made)->node->example))
        return world_break_status(w, REASON_TENSOR_OPERATION, "a class of tensors that gives a %s",
                                  Py_TYPE(made)->tp_name);
    PyObject *ragged = ragged_names(w, ((standin *)made)->node->example);
    Py_XDECREF(ragged);
    if (!ragged)
        return ST_ERROR;
    int leaf = w->terms.replayed ? 0 : flag_of(((standin *)made)->node->example, "requires_grad");
    if (leaf > 0)
        return world_break_status(w, REASON_TENSOR_OPERATION, "a new %s that requires a gradient",
                                  ((standin *)made)->type->tp_name);
    return leaf < 0 ? ST_ERROR : ST_OK;
}

PyObject *composite_make(world *w, const call *c) {
    torch_trace *t = trace_of(w);
    PyTypeObject *class = (PyTypeObject *)c->callable;
    record *known = t ? record_of(w, c->callable) : NULL;
    if (!t || (known && record_identity(w, known) != ST_OK))
        return NULL;
    if (!known)
        return world_break(w, REASON_TENSOR_OPERATION, "a class of tensors that was made inside");
    if (know_class(w, class) != ST_OK || body_enters_class(w, class) != ST_OK)
        return NULL;
    t->composites++;
    PyObject *made = record_call(w, NODE_CALL_FUNCTION, c->callable, c);
    if (made && check_made(w, made) != ST_OK)
        Py_CLEAR(made);
    return made;
}

// --- attributes ---

// In its instance dict, or by a descriptor of its class; new reference. NULL without an exception if
// it has none.
static PyObject *own_value(PyObject *example, PyObject *name, PyObject *descriptor) {
    if (descriptor) {
        PyObject *type = (PyObject *)Py_TYPE(example);
        return Py_TYPE(descriptor)->tp_descr_get(descriptor, example, type);
    }
    PyObject *value;
    return raw_attr_get(example, name, &value) == RAW_FOUND ? Py_NewRef(value) : NULL;
}

// What the glue has a word for never changes: it is the same in each call.
static PyObject *held_object(world *w, const standin *s, PyObject *name, PyObject *value) {
    PyObject *manner = manner_of(value);
    bool fixed = manner && manner != Py_None;
    Py_XDECREF(manner);
    if (!manner)
        return NULL;
    return fixed ? fixed_object(w, value)
                 : world_break(w, REASON_ATTRIBUTE, "%s.%U", s->type->tp_name, name);
}

PyObject *composite_attribute(world *w, standin *s, PyObject *name, PyObject *descriptor) {
    PyObject *args[] = {(PyObject *)s, name};
    if (!is_composite(s->node->example))
        return NULL;
    PyObject *value = own_value(s->node->example, name, descriptor);
    if (!value)
        return NULL;
    PyObject *result = PyObject_TypeCheck(value, facts.base)
                           ? record_function(w, facts.getattr, args, 2)
                       : is_plain_value(value) ? fixed_value(w, value)
                                               : held_object(w, s, name, value);
    Py_DECREF(value);
    return result;
}

status composite_read(world *w, const standin *s) {
    const torch_trace *t = w->torch;
    if (!t->composites || !s->outside || !is_composite(s->outside) || !composites_written(t))
        return ST_OK;
    return world_break_status(w, REASON_ATTRIBUTE, "an attribute of a %s that was written to",
                              s->type->tp_name);
}

status composite_refuse(world *w, const standin *s, const char *what) {
    if (!is_composite(s->outside ? s->outside : s->node->example))
        return ST_OK;
    return world_break_status(w, REASON_ATTRIBUTE, "%s of a %s, which has __torch_dispatch__", what,
                              s->type->tp_name);
}
