// The tensor stand-in: a C type on top of torch._C.TensorBase that holds torch's undefined tensor.
// Operations of native code on it become nodes of its trace, or break the trace.
#include "src/py/operators.h"

#include "src/torch/levels.h"

#include <opcode.h>

// NULL and an exception if its trace has ended.
static world *standin_world(PyObject *o) {
    world *w = ((standin *)o)->world;
    if (!w)
        PyErr_SetString(PyExc_RuntimeError,
                        "this stands for a tensor in a trace of Stator that has ended");
    return w;
}

// The world of whichever operand is a stand-in.
static world *world_of(PyObject *left, PyObject *right) {
    return standin_world(is_tensor_standin(left) ? left : right);
}

// --- making and ending ---

static standin *allocate(world *w, node *n, PyTypeObject *type) {
    standin *s = PyObject_New(standin, &standin_type);
    if (!s)
        return NULL;
    memset(s->base, 0, sizeof(s->base));
    memcpy((char *)s + facts.impl_at, &facts.undefined, sizeof(void *));
    s->world = w;
    s->node = (node *)Py_NewRef(n);
    s->earlier = NULL;
    s->input = n->op == NODE_PLACEHOLDER ? (node *)Py_NewRef(n) : NULL;
    s->outside = NULL;
    s->type = (PyTypeObject *)Py_NewRef(type);
    s->attrs = NULL;
    s->guard = NULL;
    s->memory = s->input ? s : NULL;
    s->viewed = s->mixed = s->written = s->dressed = false;
    s->rank = 0;
    s->level = 0;
    s->dies = NODE_LIVES;
    s->born = w->time.now;
    s->since = instruction_began(w);
    return s;
}

PyObject *standin_new(world *w, node *n, PyTypeObject *type) {
    torch_trace *t = w->torch;
    standin *s = allocate(w, n, type);
    if (!s)
        return NULL;
    if (vec_push(&t->all, (PyObject *)s) != ST_OK) {
        Py_DECREF(s);
        return NULL;
    }
    Py_INCREF(s);
    if (!s->input && vec_push(&t->living, (PyObject *)s) != ST_OK) {
        Py_DECREF(s);
        return NULL;
    }
    bool known = map_put(&t->owners, map_key(n), map_key(s)) == ST_OK;
    if (known && n->example != Py_None)
        known = map_put(&t->standins, map_key(n->example), map_key(s)) == ST_OK;
    if (known && levels_note(t, s) == ST_OK)
        return (PyObject *)s;
    Py_DECREF(s);
    return NULL;
}

// The operation is only looked at.
static status note_moved(torch_trace *t, standin *s) {
    TRY(vec_push(&t->moved, ((moved){s, s->node})));
    Py_INCREF(s->node);
    return ST_OK;
}

// An operation that gives back one of its arguments: later uses refer to that node, as in Dynamo,
// where the result replaces the variable that it is stored in.
static PyObject *replace_node(torch_trace *t, standin *s, node *n) {
    if (PySet_Contains(facts.copying, n->target) == 1) // uses go on referring to the argument
        return Py_NewRef(s);
    if (map_put(&t->owners, map_key(n), map_key(s)) != ST_OK)
        return NULL;
    if ((t->looks.count || t->applied.count) && note_moved(t, s) != ST_OK)
        return NULL;
    Py_XSETREF(s->earlier, s->node);
    s->node = (node *)Py_NewRef(n);
    return Py_NewRef(s);
}

PyObject *standin_for(world *w, PyObject *fake, node *n) {
    torch_trace *t = w->torch;
    uint64_t *known = map_get(&t->standins, map_key(fake));
    return known && *known ? replace_node(t, (standin *)(uintptr_t)*known, n)
                           : standin_new(w, n, is_composite(fake) ? Py_TYPE(fake) : facts.tensor);
}

void standin_forget_fake(torch_trace *t, node *n) {
    uint64_t *known = map_get(&t->standins, map_key(n->example));
    if (known)
        *known = 0;
    Py_SETREF(n->example, Py_NewRef(Py_None));
}

PyObject *standin_again(world *w, node *argument, node *n) {
    torch_trace *t = w->torch;
    uint64_t *owner = map_get(&t->owners, map_key(argument));
    assert(owner);
    return replace_node(t, (standin *)(uintptr_t)*owner, n);
}

// One that lives on after its body has ended stands for nothing that is ever computed.
node *standin_node(world *w, standin *s) {
    torch_trace *t = w->torch;
    if (LIKELY(s->node->scope == w->scope->scope))
        return (node *)Py_NewRef(s->node);
    if (!graph_of(w->scope, s->node)) {
        higher_escaped(w, s->node);
        return NULL;
    }
    node *n = graph_lift(w->scope, s->node);
    if (!n || map_put(&t->owners, map_key(n), map_key(s)) != ST_OK)
        return NULL;
    return (node *)Py_NewRef(n);
}

// The operation was a statement: uses go on referring to what they did before.
void standin_dropped(world *w, standin *s) {
    PyObject *nodes = w->scope->nodes;
    Py_ssize_t count = PyList_GET_SIZE(nodes); // 0: nothing was recorded in this body yet
    if (!s->earlier || count == 0 || PyList_GET_ITEM(nodes, count - 1) != (PyObject *)s->node)
        return;
    Py_SETREF(s->node, s->earlier);
    s->earlier = NULL;
}

void standins_sweep(torch_trace *t, int number) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < t->living.count; i++) {
        standin *s = (standin *)t->living.items[i];
        if (Py_REFCNT(s) == 1) // `all` has it
            s->dies = number;
        else
            t->living.items[left++] = (PyObject *)s;
    }
    t->living.count = left;
}

static standin *owner_of(const torch_trace *t, node *n) {
    uint64_t *owner = map_get(&t->owners, map_key(n));
    return owner ? (standin *)(uintptr_t)*owner : NULL;
}

// What holds several values (a tuple) has no stand-in itself: it lives as long as any of them,
// since those that nobody uses are taken out of the graph.
static void date_whole(const torch_trace *t, const node *item) {
    PyObject *of = item->target == facts.getitem ? PyTuple_GET_ITEM(item->args, 0) : NULL;
    node *whole = of && is_node(of) && !owner_of(t, (node *)of) ? (node *)of : NULL;
    if (whole && whole->dies < item->dies)
        whole->dies = item->dies;
}

void standins_date(const torch_trace *t, const graph *g) {
    for (Py_ssize_t i = g->inputs; i < PyList_GET_SIZE(g->nodes); i++) {
        node *n = (node *)PyList_GET_ITEM(g->nodes, i);
        standin *owner = owner_of(t, n);
        n->dies = owner ? owner->dies : 0;
    }
    for (Py_ssize_t i = PyList_GET_SIZE(g->nodes) - 1; i >= g->inputs; i--)
        date_whole(t, (node *)PyList_GET_ITEM(g->nodes, i));
}

void standins_sever(torch_trace *t) {
    vec_free(&t->living);
    while (t->moved.count > 0)
        Py_DECREF(t->moved.items[--t->moved.count].was);
    vec_free(&t->moved);
    vec_free(&t->unbacked);
    vec_free(&t->values);
    vec_free(&t->answered);
    for (uint32_t i = 0; i < t->all.count; i++) {
        standin *s = (standin *)t->all.items[i];
        s->world = NULL;
        s->guard = NULL;
        Py_CLEAR(s->node);
        Py_CLEAR(s->earlier);
        Py_CLEAR(s->input);
        Py_CLEAR(s->attrs);
        s->outside = NULL;
    }
    while (t->all.count > 0)
        Py_DECREF(t->all.items[--t->all.count]);
    vec_free(&t->all);
    map_clear(&t->standins);
}

PyObject *standin_ended(void) {
    standin *s = standin_type.tp_base ? PyObject_New(standin, &standin_type) : NULL;
    if (!s)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_RuntimeError, "torch is not attached");
    memset((char *)s + sizeof(PyObject), 0, sizeof(*s) - sizeof(PyObject));
    memcpy((char *)s + facts.impl_at, &facts.undefined, sizeof(void *));
    s->type = (PyTypeObject *)Py_NewRef(facts.tensor);
    return (PyObject *)s;
}

static void dealloc(standin *s) {
    Py_XDECREF(s->node);
    Py_XDECREF(s->earlier);
    Py_XDECREF(s->input);
    Py_XDECREF(s->type);
    Py_XDECREF(s->attrs);
    PyObject_Free(s);
}

// Defined so that PyType_Ready does not inherit the base's, which would take this for a tensor.
static int traverse(PyObject *o, visitproc visit, void *data) {
    (void)o, (void)visit, (void)data;
    return 0;
}

// --- operators ---

#define BINARY(name, kind)                                                                         \
    static PyObject *name(PyObject *left, PyObject *right) {                                       \
        world *w = world_of(left, right);                                                          \
        return w ? operator_binary(w, kind, left, right) : NULL;                                   \
    }
BINARY(add, NB_ADD)
BINARY(subtract, NB_SUBTRACT)
BINARY(multiply, NB_MULTIPLY)
BINARY(remainder_, NB_REMAINDER)
BINARY(lshift, NB_LSHIFT)
BINARY(rshift, NB_RSHIFT)
BINARY(and_, NB_AND)
BINARY(xor_, NB_XOR)
BINARY(or_, NB_OR)
BINARY(floor_divide, NB_FLOOR_DIVIDE)
BINARY(true_divide, NB_TRUE_DIVIDE)
BINARY(matrix_multiply, NB_MATRIX_MULTIPLY)
BINARY(inplace_add, NB_INPLACE_ADD)
BINARY(inplace_subtract, NB_INPLACE_SUBTRACT)
BINARY(inplace_multiply, NB_INPLACE_MULTIPLY)
BINARY(inplace_remainder, NB_INPLACE_REMAINDER)
BINARY(inplace_lshift, NB_INPLACE_LSHIFT)
BINARY(inplace_rshift, NB_INPLACE_RSHIFT)
BINARY(inplace_and, NB_INPLACE_AND)
BINARY(inplace_xor, NB_INPLACE_XOR)
BINARY(inplace_or, NB_INPLACE_OR)
BINARY(inplace_floor_divide, NB_INPLACE_FLOOR_DIVIDE)
BINARY(inplace_true_divide, NB_INPLACE_TRUE_DIVIDE)
BINARY(inplace_matrix_multiply, NB_INPLACE_MATRIX_MULTIPLY)
#undef BINARY

static PyObject *raise_power(PyObject *left, PyObject *right, PyObject *modulus, int kind) {
    world *w = is_tensor_standin(left) || is_tensor_standin(right) ? world_of(left, right)
                                                                   : standin_world(modulus);
    if (w && modulus != Py_None)
        return world_break(w, REASON_TENSOR_OPERATION, "pow() of three with a tensor");
    return w ? operator_binary(w, kind, left, right) : NULL;
}

static PyObject *power(PyObject *left, PyObject *right, PyObject *modulus) {
    return raise_power(left, right, modulus, NB_POWER);
}

static PyObject *inplace_power(PyObject *left, PyObject *right, PyObject *modulus) {
    return raise_power(left, right, modulus, NB_INPLACE_POWER);
}

static PyObject *unary(PyObject *o, const char *name) {
    world *w = standin_world(o);
    return w ? operator_unary(w, name, o) : NULL;
}

static PyObject *negative(PyObject *o) {
    return unary(o, "neg");
}

static PyObject *positive(PyObject *o) {
    return unary(o, "pos");
}

static PyObject *absolute(PyObject *o) {
    return unary(o, "abs");
}

static PyObject *invert(PyObject *o) {
    return unary(o, "invert");
}

// divmod of tensors is torch's to refuse.
static PyObject *divide_both(PyObject *left, PyObject *right) {
    return world_of(left, right) ? Py_NewRef(Py_NotImplemented) : NULL;
}

// What needs the value, of which a fake knows something only where it is a constant.
static PyObject *value_by(PyObject *o, const char *method) {
    world *w = standin_world(o);
    reason why = strcmp(method, "bool") == 0 ? REASON_TENSOR_TRUTH : REASON_ITEM;
    return w ? world_break(w, why, "%s() of a tensor", method) : NULL;
}

static int truth(PyObject *o) {
    (void)value_by(o, "bool");
    return -1;
}

static PyObject *as_int(PyObject *o) {
    return value_by(o, "int");
}

static PyObject *as_float(PyObject *o) {
    return value_by(o, "float");
}

static PyObject *as_index(PyObject *o) {
    return value_by(o, "operator.index");
}

static PyNumberMethods number_methods = {
    .nb_add = add,
    .nb_subtract = subtract,
    .nb_multiply = multiply,
    .nb_remainder = remainder_,
    .nb_divmod = divide_both,
    .nb_power = power,
    .nb_negative = negative,
    .nb_positive = positive,
    .nb_absolute = absolute,
    .nb_bool = truth,
    .nb_invert = invert,
    .nb_lshift = lshift,
    .nb_rshift = rshift,
    .nb_and = and_,
    .nb_xor = xor_,
    .nb_or = or_,
    .nb_int = as_int,
    .nb_float = as_float,
    .nb_inplace_add = inplace_add,
    .nb_inplace_subtract = inplace_subtract,
    .nb_inplace_multiply = inplace_multiply,
    .nb_inplace_remainder = inplace_remainder,
    .nb_inplace_power = inplace_power,
    .nb_inplace_lshift = inplace_lshift,
    .nb_inplace_rshift = inplace_rshift,
    .nb_inplace_and = inplace_and,
    .nb_inplace_xor = inplace_xor,
    .nb_inplace_or = inplace_or,
    .nb_floor_divide = floor_divide,
    .nb_true_divide = true_divide,
    .nb_inplace_floor_divide = inplace_floor_divide,
    .nb_inplace_true_divide = inplace_true_divide,
    .nb_index = as_index,
    .nb_matrix_multiply = matrix_multiply,
    .nb_inplace_matrix_multiply = inplace_matrix_multiply,
};

// --- subscripts ---

static Py_ssize_t length(PyObject *o) {
    world *w = standin_world(o);
    return w ? operator_length(w, o) : -1;
}

static PyObject *getitem(PyObject *o, PyObject *key) {
    world *w = standin_world(o);
    return w ? operator_getitem(w, o, key) : NULL;
}

static int setitem(PyObject *o, PyObject *key, PyObject *value) {
    world *w = standin_world(o);
    return w ? operator_setitem(w, o, key, value) : -1;
}

static PyObject *item_at(PyObject *o, Py_ssize_t index) {
    PyObject *key = PyLong_FromSsize_t(index);
    PyObject *result = key ? getitem(o, key) : NULL;
    Py_XDECREF(key);
    return result;
}

static int contains(PyObject *o, PyObject *value) {
    (void)value;
    (void)value_by(o, "in");
    return -1;
}

static PyMappingMethods mapping_methods = {
    .mp_length = length,
    .mp_subscript = getitem,
    .mp_ass_subscript = setitem,
};

// Without these, PySequence_Check would inherit nothing and say no, where torch's says yes.
static PySequenceMethods sequence_methods = {
    .sq_length = length,
    .sq_item = item_at,
    .sq_contains = contains,
};

// --- the rest ---

static PyObject *compare(PyObject *left, PyObject *right, int kind) {
    world *w = world_of(left, right);
    return w ? operator_compare(w, left, right, kind) : NULL;
}

// By identity, as a tensor's. Who asks for the number itself is the interpreter's to stop.
static Py_hash_t hash(PyObject *o) {
    return standin_world(o) ? _Py_HashPointer(o) : -1;
}

static PyObject *text(PyObject *o) {
    standin *s = (standin *)o;
    if (!s->world)
        return PyUnicode_FromString("<stands for a tensor in a trace that has ended>");
    return world_break(s->world, REASON_TENSOR_VALUE, "text of a tensor");
}

static PyObject *iterate(PyObject *o) {
    world *w = standin_world(o);
    return w ? operator_iterate(w, o) : NULL;
}

// Torch's C++ finds out by this name whom to ask: it is this type's own.
static PyObject *getattro(PyObject *o, PyObject *name) {
    world *w = standin_world(o);
    if (w && PyUnicode_CompareWithASCIIString(name, "__torch_function__") == 0)
        return PyObject_GenericGetAttr(o, name);
    return w ? attr_of_standin(w, o, name) : NULL;
}

static int setattro(PyObject *o, PyObject *name, PyObject *value) {
    world *w = standin_world(o);
    return w ? attr_set_standin(w, o, name, value) : -1;
}

// __torch_function__(func, types, args=(), kwargs=None): torch's own code met a stand-in.
static PyObject *torch_function(PyObject *type, PyObject *const *args, Py_ssize_t given) {
    (void)type;
    world *w = world_here;
    if (!w) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a tensor of a trace of Stator was used outside of that trace");
        return NULL;
    }
    PyObject *kwargs = given > 3 && args[3] != Py_None ? args[3] : NULL;
    if (given < 3 || !PyTuple_Check(args[2]) || (kwargs && !PyDict_Check(kwargs)))
        return world_break(w, REASON_TENSOR_OPERATION, "__torch_function__ with odd arguments");
    return call_star(w, args[0], args[2], kwargs, RUN_NATIVE);
}

static PyMethodDef methods[] = {
    {"__torch_function__", (PyCFunction)(void (*)(void))torch_function, METH_FASTCALL | METH_CLASS,
     NULL},
    {0},
};

PyTypeObject standin_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.Tensor",
    .tp_basicsize = sizeof(standin),
    .tp_dealloc = (destructor)dealloc,
    .tp_free = PyObject_Free,
    .tp_traverse = traverse,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_as_number = &number_methods,
    .tp_as_mapping = &mapping_methods,
    .tp_as_sequence = &sequence_methods,
    .tp_hash = hash,
    .tp_repr = text,
    .tp_str = text,
    .tp_richcompare = compare,
    .tp_iter = iterate,
    .tp_getattro = getattro,
    .tp_setattro = setattro,
    .tp_methods = methods,
};

int standin_setup(void) {
    if (standin_type.tp_base)
        return 0;
    if (facts.base->tp_basicsize > (Py_ssize_t)offsetof(standin, world)) {
        PyErr_SetString(PyExc_ImportError, "its tensor objects have an unknown layout");
        return -1;
    }
    standin_type.tp_base = facts.base;
    if (PyType_Ready(&standin_type) == 0)
        return 0;
    standin_type.tp_base = NULL;
    return -1;
}
