// Turns the arguments of a call into those of its node: stand-ins become nodes, open numbers the nodes
// that compute them. And back into what torch can run: fakes, plain numbers.
#include "src/py/each.h"

#include "src/guard/value.h"

#include "src/call/numpy.h"

#include "src/torch/levels.h"

// Which numbers of numpy's count as Python numbers (world_nesting.bare).
enum { BARE_NONE, BARE_KEYS, BARE_ALL };

// As a node has them: stand-ins become nodes, what holds some is made again. New reference; NULL
// with a break or an exception.
static PyObject *convert(world *w, PyObject *argument);

static PyObject *convert_standin(world *w, PyObject *o) {
    standin *s = (standin *)o;
    if (s->world == w)
        return levels_check(w, s) == ST_OK ? (PyObject *)standin_node(w, s) : NULL;
    PyErr_SetString(PyExc_RuntimeError, "a tensor of another trace was used in this one");
    return NULL;
}

PyObject *operand_convert(world *w, PyObject *argument) {
    return convert(w, argument);
}

typedef PyObject *(*convert_one)(world *w, PyObject *argument);

typedef struct converting {
    world *w;
    convert_one one;
} converting;

static PyObject *convert_item(void *data, PyObject *item) {
    const converting *c = data;
    return c->one(c->w, item);
}

static PyObject *convert_each(world *w, PyObject *const *items, Py_ssize_t count, bool tuple,
                              convert_one one) {
    return py_each(items, count, tuple, convert_item, &(converting){w, one});
}

static PyObject *convert_sequence(world *w, PyObject *const *items, Py_ssize_t count, bool tuple) {
    return convert_each(w, items, count, tuple, convert);
}

static status convert_entry(world *w, PyObject *key, PyObject *value, PyObject *to) {
    if (!value_immutable(key))
        return world_break_status(w, REASON_TENSOR_OPERATION, "dict argument with a key of type %s",
                                  Py_TYPE(key)->tp_name);
    PyObject *item = convert(w, value);
    int failed = item ? PyDict_SetItem(to, key, item) : -1;
    Py_XDECREF(item);
    return failed < 0 ? ST_ERROR : ST_OK;
}

static PyObject *convert_dict(world *w, PyObject *dict) {
    PyObject *to = PyDict_New(), *key, *value;
    Py_ssize_t at = 0;
    while (to && PyDict_Next(dict, &at, &key, &value))
        if (convert_entry(w, key, value, to) != ST_OK)
            Py_CLEAR(to);
    return to;
}

static PyObject *convert_slice(world *w, PySliceObject *slice, convert_one one) {
    return py_each_of_slice(slice, convert_item, &(converting){w, one});
}

static bool is_torch_constant(PyTypeObject *type) {
    return type == facts.dtype || type == facts.device || type == facts.layout ||
           type == facts.memory_format || type == facts.size;
}

bool is_plain_value(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return o == Py_None || o == Py_Ellipsis || t == &PyBool_Type || t == &PyLong_Type ||
           t == &PyFloat_Type || t == &PyComplex_Type || t == &PyUnicode_Type ||
           t == &PyBytes_Type || is_torch_constant(t);
}

static bool is_number_class(PyObject *o) {
    return o == (PyObject *)&PyFloat_Type || o == (PyObject *)&PyLong_Type ||
           o == (PyObject *)&PyBool_Type || o == (PyObject *)&PyComplex_Type;
}

// Whether C code made a number type of its own out of int or float: torch.tensor(numpy.float64(1))
// has that type's dtype.
static bool is_c_number(PyTypeObject *t) {
    while (raw_is_python_class(t) && t->tp_base)
        t = t->tp_base;
    return t != &PyLong_Type && t != &PyFloat_Type;
}

// A number of numpy's: torch's own parser of arguments takes an int or a float of numpy's for the
// Python number. A subscript takes ints.
static PyObject *convert_numpy(world *w, const value_bits *bits, PyObject *o) {
    bool taken = w->inside.bare == BARE_ALL || (w->inside.bare == BARE_KEYS && bits->kind != 'f');
    PyObject *plain = taken ? numpy_plain_number(o) : NULL;
    if (plain || PyErr_Occurred())
        return plain;
    return world_break(w, REASON_TENSOR_OPERATION, "argument of type %s", Py_TYPE(o)->tp_name);
}

// A user's subclass of int, float or str counts as its value, unless torch would ask the class.
static PyObject *convert_subclass(world *w, PyObject *o) {
    const value_bits *bits = value_bits_of(Py_TYPE(o));
    if (bits)
        return convert_numpy(w, bits, o);
    PyObject *name = PyUnicode_InternFromString("__torch_function__");
    if (!name)
        return NULL;
    bool asks = is_c_number(Py_TYPE(o)) || _PyType_Lookup(Py_TYPE(o), name);
    Py_DECREF(name);
    if (!asks && PyLong_Check(o))
        return _PyLong_Copy((PyLongObject *)o);
    if (!asks && PyFloat_Check(o))
        return PyFloat_FromDouble(PyFloat_AS_DOUBLE(o));
    return world_break(w, REASON_TENSOR_OPERATION, "argument of type %s", Py_TYPE(o)->tp_name);
}

// A torch.Size of numbers that are left open is a tuple of them.
static PyObject *convert_size(world *w, PyObject *o) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
        if (is_lazy(PyTuple_GET_ITEM(o, i)))
            return convert_sequence(w, ((PyTupleObject *)o)->ob_item, PyTuple_GET_SIZE(o), true);
    return Py_NewRef(o);
}

// A list in a subscript becomes a tensor, with numpy's dtype.
static PyObject *convert_list(world *w, PyObject *list) {
    int bare = w->inside.bare;
    if (bare == BARE_KEYS)
        w->inside.bare = BARE_NONE;
    PyObject *to = convert_sequence(w, PySequence_Fast_ITEMS(list), PyList_GET_SIZE(list), false);
    w->inside.bare = bare;
    return to;
}

static PyObject *convert(world *w, PyObject *o) {
    number n;
    int open = is_lazy(o) ? door_number(w, o, &n) : 0;
    if (open != 0)
        return open > 0 ? number_argument(w, n) : NULL;
    if (!(o = door_open(w, o)))
        return NULL;
    if (Py_TYPE(o) == facts.size)
        return convert_size(w, o);
    if (is_tensor_standin(o))
        return convert_standin(w, o);
    if (is_plain_value(o))
        return Py_NewRef(o);
    if (PyTuple_CheckExact(o))
        return convert_sequence(w, PySequence_Fast_ITEMS(o), PyTuple_GET_SIZE(o), true);
    if (PyList_CheckExact(o))
        return convert_list(w, o);
    if (PyDict_CheckExact(o))
        return convert_dict(w, o);
    if (PySlice_Check(o))
        return convert_slice(w, (PySliceObject *)o, convert);
    if (PyRange_Check(o) || is_number_class(o))
        return Py_NewRef(o);
    if (PyTuple_Check(o) && !raw_is_python_class(Py_TYPE(o))) // torch.return_types
        return convert_sequence(w, ((PyTupleObject *)o)->ob_item, PyTuple_GET_SIZE(o), true);
    return convert_subclass(w, o);
}

static status note_node(node *n, void *found) {
    (void)n;
    *(bool *)found = true;
    return ST_OK;
}

// Nodes that are numbers replaced by their values, which are settled; new reference.
static PyObject *numbers_settled(world *w, PyObject *o);

static bool has_node(PyObject *argument) {
    bool found = false;
    (void)node_walk(argument, note_node, &found);
    return found;
}

PyObject *plain_value(world *w, PyObject *argument) {
    PyObject *plain = convert(w, argument);
    if (!plain || !has_node(plain))
        return plain;
    PyObject *settled = numbers_settled(w, plain);
    Py_DECREF(plain);
    if (!settled || !has_node(settled))
        return settled;
    Py_DECREF(settled);
    return world_break(w, REASON_TENSOR_OPERATION, "a tensor where a plain value was expected");
}

PyObject *operand_kept(world *w, PyObject *o) {
    if (!(o = door_open(w, o)))
        return NULL;
    if (PyTuple_CheckExact(o))
        return convert_each(w, PySequence_Fast_ITEMS(o), PyTuple_GET_SIZE(o), true, operand_kept);
    record *r = is_plain_value(o) ? NULL : record_of(w, o);
    if (r && r->outside == o)
        return record_identity(w, r) == ST_OK ? Py_NewRef(o) : NULL;
    if (PyType_Check(o) && !type_is_made(w, (PyTypeObject *)o))
        return Py_NewRef(o); // whose object has been asked for its class
    return plain_value(w, o);
}

void operands_clear(operands *r) {
    Py_CLEAR(r->args);
    Py_CLEAR(r->kwargs);
}

static status convert_keywords(world *w, const call *c, PyObject *to) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c->keywords); i++)
        TRY(convert_entry(w, PyTuple_GET_ITEM(c->keywords, i), c->args[c->given + (size_t)i], to));
    return ST_OK;
}

static const char *c_name(PyObject *callable) {
    if (PyCFunction_Check(callable))
        return ((PyCFunctionObject *)callable)->m_ml->ml_name;
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type))
        return ((PyMethodDescrObject *)callable)->d_method->ml_name;
    return NULL;
}

// Python functions ask numbers for their class, and what makes tensors of data looks at the dtype.
static int bare_of(PyObject *callable) {
    static const char *const looking[] = {"tensor",    "as_tensor",  "asarray",       "new_tensor",
                                          "new",       "from_numpy", "frombuffer",    "from_dlpack",
                                          "is_tensor", "is_storage", "_make_subclass"};
    if (callable == facts.getitem || callable == facts.setitem)
        return BARE_KEYS;
    const char *name = c_name(callable);
    if (!name || strncmp(name, "sparse_", strlen("sparse_")) == 0)
        return BARE_NONE;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(looking); i++)
        if (strcmp(name, looking[i]) == 0)
            return BARE_NONE;
    return BARE_ALL;
}

static status operands_fill(world *w, const call *c, operands *r) {
    r->args = convert_sequence(w, c->args, (Py_ssize_t)c->given, true);
    if (r->args && c->keywords) {
        r->kwargs = PyDict_New();
        return r->kwargs ? convert_keywords(w, c, r->kwargs) : ST_ERROR;
    }
    return r->args ? ST_OK : ST_ERROR;
}

status operands_of(world *w, const call *c, operands *r) {
    int before = w->inside.bare;
    w->inside.bare = bare_of(c->callable);
    status st = operands_fill(w, c, r);
    w->inside.bare = before;
    return st;
}

// A dict of what each value becomes.
static PyObject *convert_values(world *w, PyObject *from, convert_one one) {
    PyObject *to = PyDict_New(), *key, *value;
    Py_ssize_t at = 0;
    while (to && PyDict_Next(from, &at, &key, &value)) {
        PyObject *item = one(w, value);
        if (!item || PyDict_SetItem(to, key, item) < 0)
            Py_CLEAR(to);
        Py_XDECREF(item);
    }
    return to;
}

static PyObject *numbers_settled(world *w, PyObject *o) {
    if (is_node(o))
        return ((node *)o)->is_number ? number_value(w, (node *)o) : Py_NewRef(o);
    if (PySlice_Check(o))
        return convert_slice(w, (PySliceObject *)o, numbers_settled);
    if (PyDict_CheckExact(o))
        return convert_values(w, o, numbers_settled);
    if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o))
        return Py_NewRef(o);
    return convert_each(w, PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o), PyTuple_Check(o),
                        numbers_settled);
}

PyObject *fakes_in(world *w, PyObject *o) {
    if (is_node(o) && ((node *)o)->is_number)
        return number_value(w, (node *)o);
    if (is_node(o))
        return Py_XNewRef(fake_of(w, (node *)o));
    if (!PyTuple_Check(o) && !PyList_CheckExact(o) && !PyDict_CheckExact(o) && !PySlice_Check(o))
        return Py_NewRef(o);
    if (PySlice_Check(o))
        return convert_slice(w, (PySliceObject *)o, fakes_in);
    if (Py_TYPE(o) == facts.size) // of numbers
        return Py_NewRef(o);
    if (PyDict_CheckExact(o))
        return convert_values(w, o, fakes_in);
    return convert_each(w, PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o), PyTuple_Check(o),
                        fakes_in);
}

// dtype, device, layout: objects of torch's that never change, which the entry then holds.
PyObject *fixed_value(world *w, PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    if (!is_torch_constant(type) || type == facts.size || record_of(w, value))
        return Py_NewRef(value);
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, value, 0);
    return Py_XNewRef(s ? door_bring(w, s, value) : NULL);
}
