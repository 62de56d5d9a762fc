// A lazy stands for a value from outside until the program looks at it. The interpreter opens
// lazies itself; the slots here are for native code that finds a lazy in an iterator or a
// container. They open the value and call its own slot. Where native code would look at the lazy
// itself, the trace breaks.
#include "src/world/inner.h"
#include "src/world/number.h"
#include "src/world/world.h"

static void lazy_dealloc(lazy *l) {
    Py_XDECREF(l->inside);
    Py_XDECREF(l->outside);
    PyObject_Free(l);
}

// The world of a lazy that is used natively; NULL with an exception once the trace has ended.
static world *world_of(PyObject *o) {
    world *w = is_lazy(o) ? ((lazy *)o)->world : world_here;
    if (!w || w != world_here) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a value of a compiled function was kept beyond its trace, and used");
        return NULL;
    }
    if (w->stop.broken) {
        PyErr_SetObject(world_break_error, w->stop.detail);
        return NULL;
    }
    return w;
}

// --- what native code may do to the opened value ---

// Types whose slots run no code other than that of elements, which are lazies, opened values, or
// objects whose methods the hook knows or refuses.
static bool is_harmless(PyTypeObject *t) {
    return t == &PyLong_Type || t == &PyUnicode_Type || t == &PyFloat_Type || t == &PyBool_Type ||
           t == Py_TYPE(Py_None) || t == &PyTuple_Type || t == &PyList_Type || t == &PyDict_Type ||
           t == &PySet_Type || t == &PyFrozenSet_Type || t == &PyBytes_Type ||
           t == &PyComplex_Type || t == &PyByteArray_Type || t == &PyRange_Type ||
           t == &PySlice_Type || t == Py_TYPE(Py_Ellipsis) || t == Py_TYPE(Py_NotImplemented) ||
           t == &PyODict_Type || t == &PyDictKeys_Type || t == &PyDictItems_Type ||
           t == &PyDictValues_Type || t == type_deque || t == type_defaultdict || t == &PyCode_Type;
}

static bool by_identity(PyTypeObject *t) {
    return t->tp_hash == PyBaseObject_Type.tp_hash &&
           t->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

// object.__hash__ and object.__eq__ look at the address: an outside object must then be the same
// one.
static status use_identity(world *w, PyObject *o) {
    record *r = record_of(w, o);
    return r ? record_identity(w, r) : ST_OK;
}

static status find_method(world *w, PyObject *o, const char *name) {
    PyObject *key = PyUnicode_InternFromString(name), *raw = NULL;
    if (!key)
        return ST_ERROR;
    PyObject *found = type_lookup(w, Py_TYPE(o), key, &raw);
    Py_DECREF(key);
    if (!found)
        return w->stop.broken ? ST_BREAK : PyErr_Occurred() ? ST_ERROR : ST_OK;
    if (raw == Py_None || PyFunction_Check(raw))
        return ST_OK;
    bool slot = Py_IS_TYPE(raw, &PyWrapperDescr_Type) || Py_IS_TYPE(raw, &PyMethodDescr_Type);
    PyTypeObject *owner = slot ? PyDescr_TYPE(raw) : NULL;
    if (owner == &PyBaseObject_Type)
        return use_identity(w, o);
    if (owner && is_harmless(owner))
        return ST_OK;
    return world_break_status(w, REASON_PROTOCOL, "%s.%s", Py_TYPE(o)->tp_name, name);
}

// Makes the methods known that native code will call on an opened value. `names` ends in NULL.
static status prepare(world *w, PyObject *o, const char *const *names) {
    PyTypeObject *t = Py_TYPE(o);
    if (is_harmless(t) || is_standin(o))
        return ST_OK;
    if (by_identity(t) && !raw_is_python_class(t))
        return use_identity(w, o);
    if (!raw_is_python_class(t))
        return world_break_status(w, REASON_PROTOCOL, "%s", t->tp_name);
    for (; *names; names++)
        TRY(find_method(w, o, *names));
    return ST_OK;
}

// An operand of a native operation, opened; borrowed. NULL with an exception.
static PyObject *operand(world *w, PyObject *o, const char *const *names) {
    PyObject *opened = door_open(w, o);
    if (!opened || prepare(w, opened, names) != ST_OK)
        return NULL;
    return opened;
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

// --- refusals ---

static PyObject *refuse(PyObject *o, reason why, const char *what) {
    world *w = world_of(o);
    if (!w)
        return NULL;
    PyObject *outside = ((lazy *)o)->outside;
    return world_break(w, why, "%s of a %s that is not known yet", what, Py_TYPE(outside)->tp_name);
}

static PyObject *lazy_text(PyObject *o) {
    return refuse(o, REASON_PROTOCOL, "text");
}

static PyObject *lazy_call(PyObject *o, PyObject *args, PyObject *keywords) {
    (void)args, (void)keywords;
    return refuse(o, REASON_NATIVE_CALL, "native call");
}

static PyObject *lazy_getattr(PyObject *o, PyObject *name) {
    world *w = world_of(o);
    return w ? world_break(w, REASON_ATTRIBUTE, "%U, natively", name) : NULL;
}

static int lazy_setattr(PyObject *o, PyObject *name, PyObject *new) {
    (void)new;
    lazy_getattr(o, name);
    return -1;
}

static PyObject *lazy_next(PyObject *o) {
    return refuse(o, REASON_OUTSIDE_ITERATOR, "next element");
}

static PyObject *lazy_await(PyObject *o) {
    return refuse(o, REASON_GENERATOR, "await");
}

static int lazy_buffer(PyObject *o, Py_buffer *view, int flags) {
    (void)flags;
    view->obj = NULL;
    refuse(o, REASON_PROTOCOL, "buffer");
    return -1;
}

static int lazy_set_item(PyObject *o, PyObject *key, PyObject *new) {
    (void)key, (void)new;
    refuse(o, REASON_PROTOCOL, "native change");
    return -1;
}

// --- questions ---

static Py_hash_t lazy_hash(PyObject *o) {
    world *w = world_of(o);
    PyObject *opened = w ? operand(w, o, NAMES("__hash__", "__eq__")) : NULL;
    return opened ? PyObject_Hash(opened) : -1;
}

// Native code compares by identity before it asks: it saw the lazy and not the object, so where an
// object may be unequal to itself the outcome is not known.
static bool equals_itself(PyObject *o) {
    if (PyFloat_CheckExact(o))
        return PyFloat_AS_DOUBLE(o) == PyFloat_AS_DOUBLE(o);
    return value_immutable(o) || PyList_CheckExact(o) || PyDict_CheckExact(o) ||
           PyTuple_CheckExact(o) || PyAnySet_CheckExact(o) || by_identity(Py_TYPE(o));
}

static bool is_float(PyObject *o) {
    return PyFloat_Check(is_lazy(o) ? ((lazy *)o)->outside : o);
}

// Native code asks for the truth at once, so that it is decided here. Of floats it may have asked
// for identity before. As number_binary.
static int compare_numbers(world *w, PyObject *a, PyObject *b, int kind, PyObject **result) {
    if (is_float(a) || is_float(b))
        return 0;
    static const number_op ops[] = {[Py_LT] = NUMBER_LT, [Py_LE] = NUMBER_LE, [Py_EQ] = NUMBER_EQ,
                                    [Py_NE] = NUMBER_NE, [Py_GT] = NUMBER_GT, [Py_GE] = NUMBER_GE};
    int done = number_binary(w, ops[kind], a, b, result);
    if (done <= 0)
        return done;
    int truth = door_truth(w, *result);
    Py_SETREF(*result, truth < 0 ? NULL : Py_NewRef(truth ? Py_True : Py_False));
    return truth < 0 ? -1 : 1;
}

static PyObject *lazy_compare(PyObject *a, PyObject *b, int kind) {
    static const char *const order[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
    static const int swapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
    world *w = world_of(is_lazy(a) ? a : b);
    const char *const *names = NAMES(order[kind], order[swapped[kind]], "__eq__");
    PyObject *result = NULL;
    if (w && compare_numbers(w, a, b, kind, &result))
        return result;
    PyObject *left = w ? operand(w, a, names) : NULL;
    PyObject *right = left ? operand(w, b, names) : NULL;
    if (!right)
        return NULL;
    if (left == right && a != b && !equals_itself(left))
        return world_break(w, REASON_PROTOCOL, "comparison of a %s with itself",
                           Py_TYPE(left)->tp_name);
    return PyObject_RichCompare(left, right, kind);
}

static int lazy_bool(PyObject *o) {
    world *w = world_of(o);
    int known = w ? door_truth(w, o) : -1;
    if (known != -2)
        return known;
    PyObject *opened = operand(w, o, NAMES("__bool__", "__len__"));
    return opened ? PyObject_IsTrue(opened) : -1;
}

static PyObject *lazy_iter(PyObject *o) {
    world *w = world_of(o);
    PyObject *opened = w ? operand(w, o, NAMES("__iter__", "__getitem__")) : NULL;
    if (!opened)
        return NULL;
    record *r = record_of(w, opened);
    if (r && r->kind == RECORD_SET && !r->ordered)
        return world_break(w, REASON_SET_ORDER, "%s", Py_TYPE(opened)->tp_name);
    return PyObject_GetIter(opened);
}

static Py_ssize_t lazy_length(PyObject *o) {
    world *w = world_of(o);
    PyObject *opened = w ? operand(w, o, NAMES("__len__")) : NULL;
    return opened ? PyObject_Size(opened) : -1;
}

static int lazy_contains(PyObject *o, PyObject *item) {
    world *w = world_of(o);
    PyObject *opened = w ? operand(w, o, NAMES("__contains__", "__iter__", "__getitem__")) : NULL;
    PyObject *inside = opened ? operand(w, item, NAMES("__eq__", "__hash__")) : NULL;
    return inside ? PySequence_Contains(opened, inside) : -1;
}

static PyObject *lazy_get_item(PyObject *o, PyObject *key) {
    world *w = world_of(o);
    PyObject *opened = w ? operand(w, o, NAMES("__getitem__", "__missing__")) : NULL;
    PyObject *inside = opened ? operand(w, key, NAMES("__index__", "__eq__", "__hash__")) : NULL;
    return inside ? PyObject_GetItem(opened, inside) : NULL;
}

// --- numbers ---

enum { NO_OP = -1 }; // open numbers are opened

// What native code is given may be checked for its type: it gets no open number from where it wants
// a real one (NO_OP).
static PyObject *unary(PyObject *o, unaryfunc function, int op, const char *const *names) {
    world *w = world_of(o);
    PyObject *result = NULL;
    if (w && op != NO_OP && number_unary(w, (number_op)op, o, &result))
        return result;
    PyObject *opened = w ? operand(w, o, names) : NULL;
    return opened ? function(opened) : NULL;
}

static PyObject *binary(PyObject *a, PyObject *b, binaryfunc function, int op,
                        const char *const *names) {
    world *w = world_of(is_lazy(a) ? a : b);
    PyObject *result = NULL;
    if (w && op != NO_OP && number_binary(w, (number_op)op, a, b, &result))
        return result;
    PyObject *left = w ? operand(w, a, names) : NULL;
    PyObject *right = left ? operand(w, b, names) : NULL;
    return right ? function(left, right) : NULL;
}

#define UNARY(slot, function, op, ...)                                                             \
    static PyObject *lazy_##slot(PyObject *o) {                                                    \
        return unary(o, function, op, NAMES(__VA_ARGS__));                                         \
    }
#define BINARY(slot, function, name, op)                                                           \
    static PyObject *lazy_##slot(PyObject *a, PyObject *b) {                                       \
        return binary(a, b, function, op, NAMES("__" name "__", "__r" name "__"));                 \
    }
#define INPLACE(slot, function, name, op)                                                          \
    static PyObject *lazy_i##slot(PyObject *a, PyObject *b) {                                      \
        return binary(a, b, function, op,                                                          \
                      NAMES("__i" name "__", "__" name "__", "__r" name "__"));                    \
    }

UNARY(index, PyNumber_Index, NO_OP, "__index__")
UNARY(int, PyNumber_Long, NO_OP, "__int__", "__index__", "__trunc__")
UNARY(float, PyNumber_Float, NO_OP, "__float__", "__index__")
UNARY(negative, PyNumber_Negative, NUMBER_NEG, "__neg__")
UNARY(positive, PyNumber_Positive, NO_OP, "__pos__")
UNARY(absolute, PyNumber_Absolute, NUMBER_ABS, "__abs__")
UNARY(invert, PyNumber_Invert, NUMBER_INVERT, "__invert__")
BINARY(add, PyNumber_Add, "add", NUMBER_ADD)
BINARY(subtract, PyNumber_Subtract, "sub", NUMBER_SUB)
BINARY(multiply, PyNumber_Multiply, "mul", NUMBER_MUL)
BINARY(remainder, PyNumber_Remainder, "mod", NUMBER_MOD)
BINARY(divmod, PyNumber_Divmod, "divmod", NO_OP)
BINARY(lshift, PyNumber_Lshift, "lshift", NUMBER_LSHIFT)
BINARY(rshift, PyNumber_Rshift, "rshift", NUMBER_RSHIFT)
BINARY(and, PyNumber_And, "and", NUMBER_AND)
BINARY(xor, PyNumber_Xor, "xor", NUMBER_XOR)
BINARY(or, PyNumber_Or, "or", NUMBER_OR)
BINARY(floor_divide, PyNumber_FloorDivide, "floordiv", NUMBER_FLOORDIV)
BINARY(true_divide, PyNumber_TrueDivide, "truediv", NUMBER_TRUEDIV)
BINARY(matrix_multiply, PyNumber_MatrixMultiply, "matmul", NO_OP)
INPLACE(add, PyNumber_InPlaceAdd, "add", NUMBER_ADD)
INPLACE(subtract, PyNumber_InPlaceSubtract, "sub", NUMBER_SUB)
INPLACE(multiply, PyNumber_InPlaceMultiply, "mul", NUMBER_MUL)
INPLACE(remainder, PyNumber_InPlaceRemainder, "mod", NUMBER_MOD)
INPLACE(lshift, PyNumber_InPlaceLshift, "lshift", NUMBER_LSHIFT)
INPLACE(rshift, PyNumber_InPlaceRshift, "rshift", NUMBER_RSHIFT)
INPLACE(and, PyNumber_InPlaceAnd, "and", NUMBER_AND)
INPLACE(xor, PyNumber_InPlaceXor, "xor", NUMBER_XOR)
INPLACE(or, PyNumber_InPlaceOr, "or", NUMBER_OR)
INPLACE(floor_divide, PyNumber_InPlaceFloorDivide, "floordiv", NUMBER_FLOORDIV)
INPLACE(true_divide, PyNumber_InPlaceTrueDivide, "truediv", NUMBER_TRUEDIV)
INPLACE(matrix_multiply, PyNumber_InPlaceMatrixMultiply, "matmul", NO_OP)

static PyObject *power(PyObject *a, PyObject *b, PyObject *c, ternaryfunc function) {
    const char *const *names = NAMES("__ipow__", "__pow__", "__rpow__");
    world *w = world_of(is_lazy(a) ? a : is_lazy(b) ? b : c);
    PyObject *base = w ? operand(w, a, names) : NULL;
    PyObject *exponent = base ? operand(w, b, names) : NULL;
    PyObject *modulus = exponent ? operand(w, c, names) : NULL;
    return modulus ? function(base, exponent, modulus) : NULL;
}

static PyObject *lazy_power(PyObject *a, PyObject *b, PyObject *c) {
    world *w = c == Py_None ? world_of(is_lazy(a) ? a : b) : NULL;
    PyObject *result = NULL;
    if (w && number_binary(w, NUMBER_POW, a, b, &result))
        return result;
    if (PyErr_Occurred())
        return NULL;
    return power(a, b, c, PyNumber_Power);
}

static PyObject *lazy_ipower(PyObject *a, PyObject *b, PyObject *c) {
    return power(a, b, c ? c : Py_None, PyNumber_InPlacePower);
}

// --- the type ---

static PyNumberMethods lazy_number = {
    .nb_add = lazy_add,
    .nb_subtract = lazy_subtract,
    .nb_multiply = lazy_multiply,
    .nb_remainder = lazy_remainder,
    .nb_divmod = lazy_divmod,
    .nb_power = lazy_power,
    .nb_negative = lazy_negative,
    .nb_positive = lazy_positive,
    .nb_absolute = lazy_absolute,
    .nb_bool = lazy_bool,
    .nb_invert = lazy_invert,
    .nb_lshift = lazy_lshift,
    .nb_rshift = lazy_rshift,
    .nb_and = lazy_and,
    .nb_xor = lazy_xor,
    .nb_or = lazy_or,
    .nb_int = lazy_int,
    .nb_float = lazy_float,
    .nb_inplace_add = lazy_iadd,
    .nb_inplace_subtract = lazy_isubtract,
    .nb_inplace_multiply = lazy_imultiply,
    .nb_inplace_remainder = lazy_iremainder,
    .nb_inplace_power = lazy_ipower,
    .nb_inplace_lshift = lazy_ilshift,
    .nb_inplace_rshift = lazy_irshift,
    .nb_inplace_and = lazy_iand,
    .nb_inplace_xor = lazy_ixor,
    .nb_inplace_or = lazy_ior,
    .nb_floor_divide = lazy_floor_divide,
    .nb_true_divide = lazy_true_divide,
    .nb_inplace_floor_divide = lazy_ifloor_divide,
    .nb_inplace_true_divide = lazy_itrue_divide,
    .nb_index = lazy_index,
    .nb_matrix_multiply = lazy_matrix_multiply,
    .nb_inplace_matrix_multiply = lazy_imatrix_multiply,
};

static PySequenceMethods lazy_sequence = {.sq_length = lazy_length, .sq_contains = lazy_contains};

static PyMappingMethods lazy_mapping = {
    .mp_length = lazy_length,
    .mp_subscript = lazy_get_item,
    .mp_ass_subscript = lazy_set_item,
};

static PyAsyncMethods lazy_async = {
    .am_await = lazy_await, .am_aiter = lazy_await, .am_anext = lazy_await};

static PyBufferProcs lazy_buffers = {.bf_getbuffer = lazy_buffer};

// Not collected: the arena holds all of them, and the trace's end empties them. No descriptor
// slots: what a class holds as plain data may come as a lazy.
PyTypeObject lazy_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.lazy",
    .tp_basicsize = sizeof(lazy),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)lazy_dealloc,
    .tp_repr = lazy_text,
    .tp_str = lazy_text,
    .tp_hash = lazy_hash,
    .tp_call = lazy_call,
    .tp_getattro = lazy_getattr,
    .tp_setattro = lazy_setattr,
    .tp_richcompare = lazy_compare,
    .tp_iter = lazy_iter,
    .tp_iternext = lazy_next,
    .tp_as_number = &lazy_number,
    .tp_as_sequence = &lazy_sequence,
    .tp_as_mapping = &lazy_mapping,
    .tp_as_async = &lazy_async,
    .tp_as_buffer = &lazy_buffers,
};
