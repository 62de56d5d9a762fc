// Arrays of numpy's as tensors of the graph. A stand-in for an array, or for a number that numpy
// computed of arrays, holds the stand-in of a tensor over the same memory. What the program does to it
// becomes a call of a function of stator._array_rows, which gives numpy's answer or refuses; then the
// trace breaks, and numpy runs.
#include "src/py/each.h"
#include "src/py/operators.h"

#include "src/guard/value.h"

#include "src/call/numpy.h"

#include "src/torch/room.h"

#include <opcode.h>

typedef struct array {
    PyObject_HEAD
    standin *tensor;    // strong
    PyTypeObject *type; // strong: numpy.ndarray, or a class of numpy's numbers
} array;

static PyTypeObject array_type;

bool is_array_standin(PyObject *o) {
    return Py_TYPE(o) == &array_type;
}

bool arrays_are(PyObject *o) {
    return Py_IS_TYPE(o, numpy_array_type());
}

// --- what the glue knows of numpy ---

// How numpy lays out an array object (PyArrayObject); tried out on samples.
typedef struct raw_array {
    PyObject_HEAD
    char *data;
    int dims;
    intptr_t *sizes, *strides; // strides in bytes
    PyObject *base, *dtype;
    int flags;
} raw_array;

enum { FLAG_ALIGNED = 0x100, FLAG_WRITEABLE = 0x400 };

static PyObject *known; // strong: the dict that stator._array_rows.table() gives; NULL: none yet

static PyObject *entry(const char *name) { // borrowed
    return PyDict_GetItemString(known, name);
}

static bool fits_samples(PyObject *samples) {
    PyObject *plain, *fixed;
    Py_ssize_t at, fixed_at;
    if (!PyArg_ParseTuple(samples, "OnOn", &plain, &at, &fixed, &fixed_at))
        return false;
    const raw_array *a = (raw_array *)plain, *b = (raw_array *)fixed;
    return a->data == (char *)at && a->dims == 2 && a->sizes[0] == 2 && a->sizes[1] == 3 &&
           a->strides[0] == 12 && a->strides[1] == 4 && a->flags & FLAG_WRITEABLE &&
           a->flags & FLAG_ALIGNED && b->data == (char *)fixed_at && b->dims == 1 &&
           b->strides[0] == 8 && !(b->flags & FLAG_WRITEABLE) &&
           PyDict_GetItemWithError(entry("to_torch"), a->dtype);
}

// Whether arrays can be traced. Asked once; a numpy that differs from what is expected is not traced.
static bool is_known(void) {
    static bool tried;
    if (tried)
        return known != NULL;
    tried = true;
    quiet q;
    quiet_begin(&q);
    known = PyObject_CallNoArgs(glue_function("arrays"));
    if (known && (!PyDict_Check(known) || !fits_samples(entry("samples"))))
        Py_CLEAR(known);
    quiet_end(&q);
    PyErr_Clear();
    return known != NULL;
}

// --- stand-ins ---

static PyObject *array_new(standin *tensor, PyTypeObject *type) {
    array *a = PyObject_New(array, &array_type);
    if (!a)
        return NULL;
    a->tensor = (standin *)Py_NewRef(tensor);
    a->type = (PyTypeObject *)Py_NewRef(type);
    return (PyObject *)a;
}

static void dealloc(array *a) {
    Py_DECREF(a->tensor);
    Py_DECREF(a->type);
    PyObject_Free(a);
}

static bool is_number(const array *a) {
    return a->type != numpy_array_type();
}

static PyObject *refuse(world *w, const char *what, PyObject *name) {
    return world_break(w, REASON_ARRAY, "%s%U", what, name);
}

// An attribute of the tensor; new reference.
static PyObject *ask_tensor(world *w, standin *s, const char *name) {
    PyObject *word = PyUnicode_InternFromString(name);
    PyObject *value = word ? attr_of_standin(w, (PyObject *)s, word) : NULL;
    Py_XDECREF(word);
    return value;
}

// --- arrays from outside ---

static bool has_fit_strides(const raw_array *a, Py_ssize_t itemsize) {
    for (int i = 0; i < a->dims; i++)
        if (a->strides[i] < 0 || a->strides[i] % itemsize)
            return false;
    return true;
}

// torch.from_numpy takes it, and says nothing. (It warns of arrays that are not to be written to.)
static bool is_fit(PyObject *o) {
    const raw_array *a = (raw_array *)o;
    const int flags = FLAG_ALIGNED | FLAG_WRITEABLE;
    if (!arrays_are(o) || (a->flags & flags) != flags || a->dims > META_MOST_DIMS)
        return false;
    PyObject *size = PyDict_GetItemWithError(entry("itemsizes"), a->dtype);
    return size && has_fit_strides(a, PyLong_AsSsize_t(size));
}

static bool check_array(PyObject *o, void *unused) {
    (void)unused;
    bool fit = is_fit(o);
    PyErr_Clear();
    return fit;
}

static PyObject *array_text(const char *source, void *unused) {
    (void)unused;
    return PyUnicode_FromFormat(
        "%s is an array that can be written to, of a dtype and with strides "
        "that torch takes",
        source);
}

static const guard_custom array_custom = {
    .name = "ARRAY", .check = check_array, .text = array_text};

PyObject *arrays_tensor(PyObject *o) {
    bool fit = known && is_fit(o);
    PyObject *tensor = fit ? PyObject_CallOneArg(entry("from_numpy"), o) : NULL;
    PyErr_Clear();
    return tensor;
}

// Numpy raises, or calls the program, for floating-point errors only if the program says so.
static bool is_harmless(PyObject *errors) {
    static const char *const harmless[] = {"ignore", "warn"};
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(errors, &at, &key, &value)) {
        bool fine = value == Py_None; // `call`: there is no function
        for (size_t i = 0; PyUnicode_Check(value) && i < Py_ARRAY_LENGTH(harmless); i++)
            fine |= PyUnicode_CompareWithASCIIString(value, harmless[i]) == 0;
        if (!fine && PyUnicode_CompareWithASCIIString(key, "bufsize") != 0)
            return false;
    }
    return true;
}

// Guards what numpy does about floating-point errors; a graph does nothing about them.
static status guard_errors(world *w) {
    PyObject *asked = state_asked_so_far(w), *getter = entry("errors");
    PyObject *call = asked ? PyTuple_Pack(1, getter) : NULL;
    if (!call || PyDict_Contains(asked, call)) {
        Py_XDECREF(call);
        return call ? ST_OK : ST_ERROR;
    }
    PyObject *errors = PyObject_CallNoArgs(getter);
    status done = errors && PyDict_Check(errors) ? ST_OK : ST_ERROR;
    if (done == ST_OK && !is_harmless(errors))
        done = world_break_status(w, REASON_ARRAY, "floating-point errors that are to be noticed");
    if (done == ST_OK && PyDict_SetItem(asked, call, errors) < 0)
        done = ST_ERROR;
    if (done == ST_OK)
        done = state_guard_answer(w, call, errors);
    Py_XDECREF(errors);
    Py_DECREF(call);
    return done;
}

static PyObject *open_fit(world *w, source *s, PyObject *o) {
    PyObject *class = (PyObject *)Py_TYPE(o);
    if (guard_add(w->guards, GUARD_TYPE, s, NULL, class, 0) != ST_OK ||
        guard_add_custom(w->guards, s, &array_custom, NULL) != ST_OK || guard_errors(w) != ST_OK)
        return NULL;
    source *at = guard_source(w->guards, SOURCE_ARRAY, s, NULL, 0);
    PyObject *tensor = at ? arrays_tensor(o) : NULL;
    PyObject *inside = tensor ? door_bring(w, at, tensor) : NULL;
    Py_XDECREF(tensor);
    if (!inside)
        return PyErr_Occurred() || w->stop.broken ? NULL
                                                  : world_break(w, REASON_ARRAY, "from_numpy");
    return array_new((standin *)inside, numpy_array_type());
}

PyObject *arrays_open(world *w, source *s, PyObject *o) {
    return is_known() && is_fit(o) ? open_fit(w, s, o) : NULL;
}

// --- arguments ---

// A call on its way to a function of stator._array_rows.
typedef struct passing {
    world *w;
    int deeper;        // how many more lists and tuples may lie around an argument
    bool tensors;      // numpy takes the array over a tensor's memory for the tensor
    VEC(array *) seen; // borrowed: the arrays among its arguments
} passing;

static PyObject *pass_dtype(passing *p, PyObject *o) {
    PyObject *own = PyDict_GetItemWithError(entry("to_torch"), o);
    if (own)
        return fixed_value(p->w, own);
    return PyErr_Occurred() ? NULL : world_break(p->w, REASON_ARRAY, "dtype %R", o);
}

// A number or an array that numpy has computed in the trace, which nothing changes any more.
static PyObject *pass_constant(passing *p, PyObject *o) {
    quiet q;
    quiet_begin(&q);
    PyObject *parts = PyObject_CallOneArg(entry("parts"), o); // (values, dtype, shape)
    quiet_end(&q);
    if (!parts) {
        PyErr_Clear();
        return world_break(p->w, REASON_ARRAY, "a %s, as a constant", Py_TYPE(o)->tp_name);
    }
    PyObject *function = PyTuple_GET_ITEM(entry("constant"), 0);
    PyObject *result = record_function(p->w, function, ((PyTupleObject *)parts)->ob_item, 3);
    Py_DECREF(parts);
    return result;
}

static PyObject *pass_array(passing *p, PyObject *o) {
    array *a = (array *)o;
    return vec_push(&p->seen, a) == ST_OK ? Py_NewRef(a->tensor) : NULL;
}

static PyObject *array_over(world *w, PyObject *tensor);

// The tensor whose memory an array shares that numpy makes of a tensor.
static PyObject *pass_tensor(passing *p, PyObject *o) {
    PyObject *made = p->tensors && is_tensor_standin(o) ? array_over(p->w, o) : NULL;
    if (!made)
        return PyErr_Occurred() || p->w->stop.broken
                   ? NULL
                   : world_break(p->w, REASON_ARRAY, "%s", Py_TYPE(o)->tp_name);
    PyObject *tensor = Py_NewRef(((array *)made)->tensor);
    Py_DECREF(made);
    return tensor;
}

// What the function gets for an argument: tensors for arrays, torch's dtypes for numpy's. New
// reference.
static PyObject *pass(void *data, PyObject *o) {
    passing *p = data;
    number n;
    int open = is_lazy(o) ? door_number(p->w, o, &n) : 0;
    if (open != 0)
        return open > 0 ? Py_NewRef(o) : NULL;
    if (!(o = door_open(p->w, o)))
        return NULL;
    if (is_array_standin(o))
        return pass_array(p, o);
    if (is_standin(o))
        return pass_tensor(p, o);
    if (value_bits_of(Py_TYPE(o)) || (arrays_are(o) && !record_of(p->w, o)))
        return pass_constant(p, o);
    if (numpy_is_dtype(o))
        return pass_dtype(p, o);
    if ((PyTuple_CheckExact(o) || PyList_CheckExact(o)) && p->deeper > 0) {
        p->deeper--;
        PyObject *all = py_each(PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o),
                                PyTuple_CheckExact(o), pass, p);
        p->deeper++;
        return all;
    }
    if (PySlice_Check(o))
        return py_each_of_slice((PySliceObject *)o, pass, p);
    if (is_plain_value(o))
        return Py_NewRef(o);
    return world_break(p->w, REASON_ARRAY, "an array and a %s", Py_TYPE(o)->tp_name);
}

// --- results ---

// The class of a 0-d result that is a number; borrowed. NULL with an exception or a break.
static PyTypeObject *number_class(world *w, standin *s) {
    PyObject *dtype = ask_tensor(w, s, "dtype");
    PyObject *class = dtype ? PyDict_GetItemWithError(entry("classes"), dtype) : NULL;
    if (dtype && !class && !PyErr_Occurred())
        world_break(w, REASON_ARRAY, "a result of dtype %R", dtype);
    Py_XDECREF(dtype);
    return (PyTypeObject *)class;
}

static PyTypeObject *class_of(world *w, standin *s, bool number) {
    PyObject *dims = number ? ask_tensor(w, s, "ndim") : Py_NewRef(Py_None);
    bool scalar = dims && PyLong_Check(dims) && PyLong_AsLong(dims) == 0;
    Py_XDECREF(dims);
    if (!dims)
        return NULL;
    return scalar ? number_class(w, s) : numpy_array_type();
}

// Takes the reference to a stand-in of a tensor. A function that gives its argument gives the same
// array.
static PyObject *array_of(passing *p, PyObject *tensor, bool number) {
    for (uint32_t i = 0; i < p->seen.count; i++)
        if ((PyObject *)p->seen.items[i]->tensor == tensor) {
            Py_DECREF(tensor);
            return Py_NewRef(p->seen.items[i]);
        }
    PyTypeObject *type = class_of(p->w, (standin *)tensor, number);
    PyObject *result = type ? array_new((standin *)tensor, type) : NULL;
    Py_DECREF(tensor);
    return result;
}

static PyObject *come_out(passing *p, PyObject *result, bool number);

typedef struct coming_out {
    passing *p;
    bool number;
} coming_out;

static PyObject *one_comes_out(void *data, PyObject *result) {
    const coming_out *c = data;
    return come_out(c->p, Py_NewRef(result), c->number);
}

// Takes the reference to a tuple; numpy gives a tuple of arrays, too.
static PyObject *each_comes_out(passing *p, PyObject *results, bool number) {
    coming_out c = {p, number};
    PyObject *made =
        py_each(PySequence_Fast_ITEMS(results), PyTuple_GET_SIZE(results), true, one_comes_out, &c);
    Py_DECREF(results);
    return made;
}

static PyObject *come_out(passing *p, PyObject *result, bool number) {
    if (!result || result == Py_None)
        return result;
    if (is_tensor_standin(result))
        return array_of(p, result, number);
    if (PyTuple_CheckExact(result))
        return each_comes_out(p, result, number);
    world_break(p->w, REASON_ARRAY, "a function that gives a %s", Py_TYPE(result)->tp_name);
    Py_DECREF(result);
    return NULL;
}

// --- calls ---

enum { DEPTH = 8 };

// `row` is (function, whether a 0-d result is a number).
static PyObject *call_row(world *w, PyObject *row, const call *c) {
    passing p = {.w = w, .deeper = DEPTH};
    p.tensors = c->callable && PySet_Contains(entry("of_tensors"), c->callable) == 1;
    PyErr_Clear(); // what cannot be hashed is not among them
    PyObject *function = PyTuple_GET_ITEM(row, 0), *result = NULL;
    PyObject *all = py_each(c->args, (Py_ssize_t)call_count(c), true, pass, &p);
    call behind = {.callable = function, .given = c->given, .keywords = c->keywords};
    if (all) {
        behind.args = ((PyTupleObject *)all)->ob_item;
        result = record_call(w, NODE_CALL_FUNCTION, function, &behind);
        result = come_out(&p, result, PyTuple_GET_ITEM(row, 1) == Py_True);
    }
    Py_XDECREF(all);
    vec_free(&p.seen);
    return result;
}

static PyObject *call_row_on(world *w, PyObject *row, PyObject *const *args, size_t given) {
    return call_row(w, row, &(call){.args = args, .given = given});
}

PyObject *arrays_call(world *w, const call *c) {
    PyObject *row = is_known() ? PyDict_GetItemWithError(entry("rows"), c->callable) : NULL;
    if (row)
        return call_row(w, row, c);
    return PyErr_Occurred() ? NULL : world_break(w, REASON_ARRAY, "%s", c->rule->path);
}

// --- operators ---

static bool is_plain_number(PyObject *o) {
    return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) ||
           PyComplex_CheckExact(o);
}

// What an operator of an array may meet: a list would become an array, None or a text another dtype.
static status check_operand(world *w, PyObject *o) {
    number n;
    int open = is_lazy(o) ? door_number(w, o, &n) : 0;
    if (open > 0)
        return ST_OK;
    if (open < 0 || !(o = door_open(w, o)))
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    if (is_array_standin(o) || is_plain_number(o) || numpy_is_operand(o))
        return ST_OK;
    return world_break_status(w, REASON_ARRAY, "an operator of an array and a %s",
                              Py_TYPE(o)->tp_name);
}

static PyObject *apply(world *w, PyObject *row, PyObject *left, PyObject *right) {
    PyObject *args[] = {left, right};
    if (check_operand(w, left) != ST_OK || check_operand(w, right) != ST_OK)
        return NULL;
    return call_row_on(w, row, args, 2);
}

static PyObject *binary(world *w, int kind, PyObject *left, PyObject *right) {
    bool in_place = kind >= NB_INPLACE_ADD;
    int operator = in_place ? kind - NB_INPLACE_ADD : kind;
    if (arrays_are(left) && in_place)
        return world_break(w, REASON_ARRAY, "an operator that writes to an array");
    bool writes = in_place && is_array_standin(left) && !is_number((array *)left);
    PyObject *rows = entry(writes ? "in_place" : "binary");
    return apply(w, PyList_GET_ITEM(rows, operator), left, right);
}

static PyObject *compare(world *w, PyObject *left, PyObject *right, int kind) {
    return apply(w, PyList_GET_ITEM(entry("compare"), kind), left, right);
}

static PyObject *getitem(world *w, PyObject *o, PyObject *key) {
    if (is_number((array *)o))
        return world_break(w, REASON_ARRAY, "an item of a number");
    PyObject *args[] = {o, key};
    return call_row_on(w, entry("getitem"), args, 2);
}

static int setitem(world *w, PyObject *o, PyObject *key, PyObject *value) {
    PyObject *args[] = {o, key, value};
    if (!value || is_number((array *)o)) {
        world_break(w, REASON_ARRAY, "an item that is set");
        return -1;
    }
    PyObject *done = call_row_on(w, entry("setitem"), args, 3);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *length(world *w, PyObject *o) {
    PyObject *dims = ask_tensor(w, ((array *)o)->tensor, "ndim");
    bool none = dims && PyLong_AsLong(dims) == 0;
    Py_XDECREF(dims);
    if (!dims)
        return NULL;
    return none ? world_break(w, REASON_ARRAY, "len() of a 0-d array")
                : operator_len(w, (PyObject *)((array *)o)->tensor);
}

// --- attributes ---

static bool is_text(PyObject *name, const char *text) {
    return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

static PyObject *shape_of(world *w, standin *s) {
    const meta *m = meta_known(w, s->node);
    if (m)
        return strides_object(w, m->sizes, m->dims);
    PyObject *shape = ask_tensor(w, s, "shape");
    PyObject *tuple = shape ? PySequence_Tuple(shape) : NULL;
    Py_XDECREF(shape);
    return tuple;
}

static PyObject *count_of(world *w, standin *s) {
    const meta *m = meta_known(w, s->node);
    return m ? number_object(w, number_of_size(meta_numel(m)))
             : world_break(w, REASON_ARRAY, "ndarray.size");
}

static PyObject *dtype_of(world *w, standin *s) {
    PyObject *own = ask_tensor(w, s, "dtype");
    PyObject *dtype = own ? PyDict_GetItemWithError(entry("dtypes"), own) : NULL;
    PyObject *result = dtype ? fixed_object(w, dtype) : NULL;
    if (own && !dtype && !PyErr_Occurred())
        world_break(w, REASON_ARRAY, "ndarray.dtype");
    Py_XDECREF(own);
    return result;
}

// In bytes; those of a changing size are not asked for.
static PyObject *strides_of(world *w, standin *s) {
    const meta *m = meta_known(w, s->node);
    PyObject *word = ask_tensor(w, s, "itemsize");
    Py_ssize_t bytes = word ? PyLong_AsSsize_t(word) : -1;
    Py_XDECREF(word);
    if (bytes < 0)
        return NULL;
    PyObject *made = m ? PyTuple_New(m->dims) : NULL;
    for (int i = 0; made && i < m->dims; i++) {
        if (!size_is_plain(m->strides[i])) {
            Py_DECREF(made);
            return world_break(w, REASON_ARRAY, "ndarray.strides, where sizes change");
        }
        PyTuple_SET_ITEM(made, i, PyLong_FromSsize_t((Py_ssize_t)m->strides[i].hint * bytes));
    }
    return made || PyErr_Occurred() ? made : world_break(w, REASON_ARRAY, "ndarray.strides");
}

static PyObject *field(world *w, array *a, PyObject *name) {
    if (is_text(name, "shape"))
        return shape_of(w, a->tensor);
    if (is_text(name, "ndim") || is_text(name, "itemsize") || is_text(name, "nbytes"))
        return attr_of_standin(w, (PyObject *)a->tensor, name);
    if (is_text(name, "size"))
        return count_of(w, a->tensor);
    if (is_text(name, "dtype"))
        return dtype_of(w, a->tensor);
    PyObject *self = (PyObject *)a;
    if (is_text(name, "T") && !is_number(a))
        return call_row_on(w, entry("transpose"), &self, 1);
    if (is_text(name, "strides") && !is_number(a))
        return strides_of(w, a->tensor);
    if ((is_text(name, "real") || is_text(name, "imag")) && !is_number(a))
        return call_row_on(w, PyDict_GetItem(known, name), &self, 1);
    return refuse(w, "ndarray.", name);
}

// a.__iadd__(1): the function of `operator` of the same name does the same.
static PyObject *operator_method(world *w, PyObject *o, PyObject *name) {
    PyObject *function = PyDict_GetItemWithError(entry("operators"), name);
    PyObject *fixed = function ? fixed_object(w, function) : NULL;
    PyObject *method = fixed ? PyMethod_New(fixed, o) : NULL;
    Py_XDECREF(fixed);
    return method || PyErr_Occurred() || w->stop.broken ? method : refuse(w, "ndarray.", name);
}

static PyObject *get(world *w, PyObject *o, PyObject *name) {
    array *a = (array *)o;
    PyObject *raw = _PyType_Lookup(a->type, name);
    if (!raw)
        return PyErr_Format(PyExc_AttributeError, "'%.50s' object has no attribute '%U'",
                            a->type->tp_name, name);
    if (is_text(name, "__class__"))
        return fixed_object(w, (PyObject *)a->type);
    if (Py_IS_TYPE(raw, &PyGetSetDescr_Type))
        return field(w, a, name);
    if (Py_IS_TYPE(raw, &PyWrapperDescr_Type))
        return operator_method(w, o, name);
    bool row = PyDict_Contains(entry("rows"), raw) == 1;
    PyObject *fixed = row ? fixed_object(w, raw) : NULL;
    PyObject *method = fixed ? PyMethod_New(fixed, o) : NULL;
    Py_XDECREF(fixed);
    return row ? method : refuse(w, "ndarray.", name);
}

static int set(world *w, PyObject *o, PyObject *name, PyObject *value) {
    (void)o, (void)value;
    refuse(w, "to set ndarray.", name);
    return -1;
}

// --- the kind ---

static PyTypeObject *type_of(PyObject *o) {
    return ((array *)o)->type;
}

static int check(world *w, PyObject *o, PyObject *message) {
    (void)w, (void)o, (void)message;
    return 0;
}

static node *node_of(PyObject *o) {
    return tensor_kind.node_of((PyObject *)((array *)o)->tensor);
}

static PyObject *attrs_of(PyObject *o) {
    (void)o;
    return NULL;
}

// array_of(tensor, class): what leaves the graph as a tensor, as numpy would have given it.
static PyObject *make_array(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != 2 || !known)
        return PyErr_Format(PyExc_TypeError, "array_of takes a tensor and a class");
    PyObject *made = PyObject_CallOneArg(entry("numpy"), args[0]);
    if (!made || args[1] == (PyObject *)numpy_array_type())
        return made;
    PyObject *none = PyTuple_New(0), *number = none ? PyObject_GetItem(made, none) : NULL;
    Py_XDECREF(none);
    Py_DECREF(made);
    return number;
}

static PyObject *dresser_of(PyObject *o, PyTypeObject **class) {
    static PyMethodDef definition = {"array_of", (PyCFunction)(void (*)(void))make_array,
                                     METH_FASTCALL, NULL};
    static PyObject *function;
    if (!function && !(function = PyCFunction_New(&definition, NULL)))
        PyErr_Clear(); // without memory the plan fails, too
    *class = ((array *)o)->type;
    return function;
}

static void named(world *w, PyObject *o, PyObject *name) {
    tensor_kind.named(w, (PyObject *)((array *)o)->tensor, name);
}

const standin_kind array_kind = {
    .type = &array_type,
    .rank = 2, // above tensors: an operator of both breaks
    .type_of = type_of,
    .get = get,
    .set = set,
    .binary = binary,
    .compare = compare,
    .getitem = getitem,
    .setitem = setitem,
    .length = length,
    .check = check,
    .node_of = node_of,
    .attrs_of = attrs_of,
    .dresser_of = dresser_of,
    .named = named,
};

// --- what native code does to a stand-in ---

static world *world_of(PyObject *o) {
    world *w = is_array_standin(o) ? ((array *)o)->tensor->world : NULL;
    return w ? w : world_here;
}

static PyObject *ended(void) {
    return PyErr_Format(PyExc_RuntimeError, "an array of a trace that has ended was used");
}

#define BINARY(name, kind)                                                                         \
    static PyObject *name(PyObject *left, PyObject *right) {                                       \
        world *w = world_of(is_array_standin(left) ? left : right);                                \
        return w ? binary(w, kind, left, right) : ended();                                         \
    }
BINARY(slot_add, NB_ADD)
BINARY(slot_subtract, NB_SUBTRACT)
BINARY(slot_multiply, NB_MULTIPLY)
BINARY(slot_remainder, NB_REMAINDER)
BINARY(slot_and, NB_AND)
BINARY(slot_or, NB_OR)
BINARY(slot_xor, NB_XOR)
BINARY(slot_lshift, NB_LSHIFT)
BINARY(slot_rshift, NB_RSHIFT)
BINARY(slot_floor_divide, NB_FLOOR_DIVIDE)
BINARY(slot_true_divide, NB_TRUE_DIVIDE)
BINARY(slot_matrix_multiply, NB_MATRIX_MULTIPLY)
BINARY(slot_inplace_add, NB_INPLACE_ADD)
BINARY(slot_inplace_subtract, NB_INPLACE_SUBTRACT)
BINARY(slot_inplace_multiply, NB_INPLACE_MULTIPLY)
BINARY(slot_inplace_true_divide, NB_INPLACE_TRUE_DIVIDE)
#undef BINARY

static PyObject *slot_power(PyObject *left, PyObject *right, PyObject *modulus) {
    world *w = world_of(is_array_standin(left) ? left : right);
    if (!w)
        return ended();
    return modulus == Py_None ? binary(w, NB_POWER, left, right)
                              : world_break(w, REASON_ARRAY, "pow() of three with an array");
}

static PyObject *unary(PyObject *o, const char *name) {
    world *w = world_of(o);
    return w ? call_row_on(w, PyDict_GetItemString(entry("unary"), name), &o, 1) : ended();
}

static PyObject *slot_negative(PyObject *o) {
    return unary(o, "neg");
}

static PyObject *slot_positive(PyObject *o) {
    return unary(o, "pos");
}

static PyObject *slot_absolute(PyObject *o) {
    return unary(o, "abs");
}

static PyObject *slot_invert(PyObject *o) {
    return unary(o, "invert");
}

static PyObject *value_by(PyObject *o, reason why, const char *what) {
    world *w = world_of(o);
    return w ? world_break(w, why, "%s of an array", what) : ended();
}

static int slot_truth(PyObject *o) {
    (void)value_by(o, REASON_TENSOR_TRUTH, "bool()");
    return -1;
}

static PyObject *slot_int(PyObject *o) {
    return value_by(o, REASON_ITEM, "int()");
}

static PyObject *slot_float(PyObject *o) {
    return value_by(o, REASON_ITEM, "float()");
}

static PyNumberMethods number_methods = {
    .nb_add = slot_add,
    .nb_subtract = slot_subtract,
    .nb_multiply = slot_multiply,
    .nb_remainder = slot_remainder,
    .nb_power = slot_power,
    .nb_negative = slot_negative,
    .nb_positive = slot_positive,
    .nb_absolute = slot_absolute,
    .nb_bool = slot_truth,
    .nb_invert = slot_invert,
    .nb_lshift = slot_lshift,
    .nb_rshift = slot_rshift,
    .nb_and = slot_and,
    .nb_xor = slot_xor,
    .nb_or = slot_or,
    .nb_int = slot_int,
    .nb_float = slot_float,
    .nb_index = slot_int,
    .nb_inplace_add = slot_inplace_add,
    .nb_inplace_subtract = slot_inplace_subtract,
    .nb_inplace_multiply = slot_inplace_multiply,
    .nb_inplace_true_divide = slot_inplace_true_divide,
    .nb_floor_divide = slot_floor_divide,
    .nb_true_divide = slot_true_divide,
    .nb_matrix_multiply = slot_matrix_multiply,
};

static Py_ssize_t slot_length(PyObject *o) {
    world *w = world_of(o);
    return w ? operator_length(w, (PyObject *)((array *)o)->tensor) : (ended(), -1);
}

static PyObject *slot_getitem(PyObject *o, PyObject *key) {
    world *w = world_of(o);
    return w ? getitem(w, o, key) : ended();
}

static int slot_setitem(PyObject *o, PyObject *key, PyObject *value) {
    world *w = world_of(o);
    return w ? setitem(w, o, key, value) : (ended(), -1);
}

static int slot_contains(PyObject *o, PyObject *value) {
    (void)value;
    (void)value_by(o, REASON_TENSOR_TRUTH, "in");
    return -1;
}

static PyMappingMethods mapping_methods = {
    .mp_length = slot_length,
    .mp_subscript = slot_getitem,
    .mp_ass_subscript = slot_setitem,
};

static PySequenceMethods sequence_methods = {.sq_length = slot_length,
                                             .sq_contains = slot_contains};

static PyObject *slot_compare(PyObject *left, PyObject *right, int kind) {
    world *w = world_of(is_array_standin(left) ? left : right);
    return w ? compare(w, left, right, kind) : ended();
}

static Py_hash_t slot_hash(PyObject *o) {
    (void)value_by(o, REASON_ARRAY, "hash()");
    return -1;
}

static PyObject *slot_text(PyObject *o) {
    if (is_array_standin(o) && !((array *)o)->tensor->world)
        return PyUnicode_FromString("<stands for an array in a trace that has ended>");
    return value_by(o, REASON_TENSOR_VALUE, "text");
}

// One subscript for each row.
static PyObject *slot_iterate(PyObject *o) {
    world *w = world_of(o);
    PyObject *dims = w ? ask_tensor(w, ((array *)o)->tensor, "ndim") : ended();
    bool none = dims && PyLong_AsLong(dims) == 0;
    Py_XDECREF(dims);
    if (!dims || none)
        return dims ? value_by(o, REASON_ARRAY, "iteration over a number") : NULL;
    Py_ssize_t count = slot_length(o);
    PyObject *rows = count < 0 ? NULL : PyTuple_New(count), *result = NULL;
    for (Py_ssize_t i = 0; rows && i < count; i++) {
        PyObject *key = PyLong_FromSsize_t(i), *row = key ? getitem(w, o, key) : NULL;
        Py_XDECREF(key);
        if (row)
            PyTuple_SET_ITEM(rows, i, row);
        else
            Py_CLEAR(rows);
    }
    result = rows ? PyObject_GetIter(rows) : NULL;
    Py_XDECREF(rows);
    return result;
}

static PyObject *slot_getattr(PyObject *o, PyObject *name) {
    world *w = world_of(o);
    return w ? get(w, o, name) : ended();
}

static int slot_setattr(PyObject *o, PyObject *name, PyObject *value) {
    world *w = world_of(o);
    return w ? set(w, o, name, value) : (ended(), -1);
}

static PyTypeObject array_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.Array",
    .tp_basicsize = sizeof(array),
    .tp_dealloc = (destructor)dealloc,
    .tp_free = PyObject_Free,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_as_number = &number_methods,
    .tp_as_mapping = &mapping_methods,
    .tp_as_sequence = &sequence_methods,
    .tp_hash = slot_hash,
    .tp_repr = slot_text,
    .tp_str = slot_text,
    .tp_richcompare = slot_compare,
    .tp_iter = slot_iterate,
    .tp_getattro = slot_getattr,
    .tp_setattro = slot_setattr,
};

int arrays_setup(void) {
    return PyType_Ready(&array_type);
}

// --- from tensors to arrays, and back ---

static PyObject *alias_of(world *w, standin *s) {
    PyObject *arg = (PyObject *)s;
    return record_function(w, facts.alias, &arg, 1);
}

// Whether an attribute of the tensor is that object; -1: an exception or a break.
static int is_attribute(world *w, standin *s, const char *name, PyObject *wanted) {
    PyObject *value = ask_tensor(w, s, name);
    Py_XDECREF(value);
    return value ? value == wanted : -1;
}

// A tensor whose memory numpy takes: an ordinary one, on the CPU, without a gradient.
static int gives_memory(world *w, standin *s) {
    const meta *m = meta_known(w, s->node);
    if (!m || s->type != facts.tensor || s->level || m->device_type != 0)
        return 0;
    int fits = is_attribute(w, s, "requires_grad", Py_False);
    PyObject *dtype = fits > 0 ? dtype_object(m->dtype) : NULL;
    return fits <= 0 ? fits : dtype && PyDict_GetItem(entry("real_dtypes"), dtype) != NULL;
}

// The array over the memory of a tensor; NULL without an exception or a break if there is none.
static PyObject *array_over(world *w, PyObject *o) {
    int gives = numpy_array_type() && is_known() ? gives_memory(w, (standin *)o) : 0;
    if (gives <= 0)
        return NULL;
    PyObject *tensor = guard_errors(w) == ST_OK ? alias_of(w, (standin *)o) : NULL;
    PyObject *result = tensor ? array_new((standin *)tensor, numpy_array_type()) : NULL;
    Py_XDECREF(tensor);
    return result;
}

PyObject *arrays_of_tensor(world *w, const call *c) {
    PyObject *self = door_open(w, c->args[0]);
    if (!self)
        return NULL;
    bool plain = c->given == 1 && !c->keywords && is_tensor_standin(self);
    PyObject *result = plain ? array_over(w, self) : NULL;
    return result || PyErr_Occurred() || w->stop.broken ? result : call_value(w, c);
}

// torch.from_numpy and as_tensor share the array's memory, torch.tensor does not.
PyObject *arrays_to_tensor(world *w, const call *c) {
    number n; // an open one stays open
    int open = c->given && is_lazy(c->args[0]) ? door_number(w, c->args[0], &n) : 0;
    PyObject *first = c->given && open == 0 ? door_open(w, c->args[0]) : Py_None;
    if (open < 0 || !first)
        return NULL;
    if (!is_array_standin(first))
        return PyTuple_Check(c->rule->extra) ? call_refused(w, c) : data_call(w, c, first);
    if (c->given != 1 || c->keywords)
        return world_break(w, REASON_NUMPY, "%s of an array, with other arguments", c->rule->path);
    standin *tensor = ((array *)first)->tensor;
    PyObject *arg = (PyObject *)tensor;
    if (is_number((array *)first) || c->rule->extra == Py_True)
        return record_function(w, entry("clone"), &arg, 1);
    return alias_of(w, tensor);
}
