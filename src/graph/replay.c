// Turns a closed graph into a flat program for the `eager` backend: one step for each operation, on
// an array of values. Arguments are taken apart once; containers are made again only if they hold
// nodes.
#include "src/base/arena.h"
#include "src/base/vec.h"

#include "src/py/raised.h"

#include "src/graph/graph.h"

#include <alloca.h>

typedef enum part_kind {
    PART_VALUE,    // of a node: `index`
    PART_CONSTANT, // `object`
    PART_TUPLE,    // of the next `index` parts; likewise the others
    PART_LIST,
    PART_DICT, // `object`: tuple of keys
    PART_SLICE,
} part_kind;

// Containers come before what they hold.
typedef struct part {
    part_kind kind;
    int index;
    PyObject *object; // the arena's
} part;

typedef struct step {
    vectorcallfunc call; // how the target is called; NULL: a method
    binaryfunc binary;   // or an operator of two
    PyObject *target;    // the arena's
    PyObject *keywords;  // the arena's: names, or NULL
    const part *parts;
    int count;  // arguments, with the keywords' values
    bool flat;  // no argument is a container to build
    int result; // where the value goes
    int *drops; // values that nobody needs from here on
    int drop_count;
    int number, effects; // the node's
} step;

struct replay {
    arena arena; // steps, parts, and all references
    step *steps;
    int count;
    int inputs;
    int values; // inputs and results
    int widest; // arguments of the widest step
    const part *outputs;
    int output_count;
    PyObject *keeper; // the arena's: as the graph's
};

// --- building ---

typedef struct builder {
    replay *r;
    const graph *g;
    VEC(part) parts;
    int *last;   // for each value the step that uses it last; -1: none
    int at;      // the step being built
    int lasting; // the first that leaves something behind
} builder;

static status own(builder *b, PyObject *o) {
    return arena_own(&b->r->arena, Py_NewRef(o));
}

static status add_part(builder *b, part_kind kind, Py_ssize_t index, PyObject *object) {
    if (object)
        TRY(own(b, object));
    return vec_push(&b->parts, ((part){kind, (int)index, object}));
}

static status has_node(node *n, void *data) {
    (void)n;
    *(bool *)data = true;
    return ST_OK;
}

static status add_argument(builder *b, PyObject *argument);

static status add_items(builder *b, part_kind kind, PyObject *sequence) {
    TRY(add_part(b, kind, PySequence_Fast_GET_SIZE(sequence), NULL));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); i++)
        TRY(add_argument(b, PySequence_Fast_GET_ITEM(sequence, i)));
    return ST_OK;
}

static status add_dict(builder *b, PyObject *dict) {
    PyObject *keys = PySequence_Tuple(dict), *value;
    status result = keys ? add_part(b, PART_DICT, PyDict_GET_SIZE(dict), keys) : ST_ERROR;
    Py_XDECREF(keys);
    Py_ssize_t at = 0;
    while (result == ST_OK && PyDict_Next(dict, &at, NULL, &value))
        result = add_argument(b, value);
    return result;
}

static status add_slice(builder *b, PySliceObject *slice) {
    TRY(add_part(b, PART_SLICE, 3, NULL));
    TRY(add_argument(b, slice->start));
    TRY(add_argument(b, slice->stop));
    return add_argument(b, slice->step);
}

// A list or dict without nodes is built anew each time, too: the callee may keep or change it.
static status add_argument(builder *b, PyObject *argument) {
    if (is_node(argument)) {
        int index = ((node *)argument)->index;
        b->last[index] = b->at;
        return add_part(b, PART_VALUE, index, NULL);
    }
    if (PyList_CheckExact(argument))
        return add_items(b, PART_LIST, argument);
    if (PyDict_CheckExact(argument))
        return add_dict(b, argument);
    bool found = false;
    TRY(node_walk(argument, has_node, &found));
    if (found && PyTuple_CheckExact(argument))
        return add_items(b, PART_TUPLE, argument);
    if (found && PySlice_Check(argument))
        return add_slice(b, (PySliceObject *)argument);
    return add_part(b, PART_CONSTANT, 0, argument);
}

// The parts collected so far, moved to the arena.
static const part *take_parts(builder *b) {
    part *parts = arena_array(&b->r->arena, part, b->parts.count);
    if (parts && b->parts.count)
        memcpy(parts, b->parts.items, b->parts.count * sizeof(part));
    b->parts.count = 0;
    return parts;
}

static bool is_flat(const builder *b) {
    for (uint32_t i = 0; i < b->parts.count; i++)
        if (b->parts.items[i].kind > PART_CONSTANT)
            return false;
    return true;
}

static status add_keywords(builder *b, step *s, PyObject *kwargs) {
    s->keywords = PySequence_Tuple(kwargs);
    if (!s->keywords)
        return ST_ERROR;
    TRY(arena_own(&b->r->arena, s->keywords));
    Py_ssize_t at = 0;
    PyObject *value;
    while (PyDict_Next(kwargs, &at, NULL, &value))
        TRY(add_argument(b, value));
    s->count += (int)PyDict_GET_SIZE(kwargs);
    return ST_OK;
}

// Operators of two are called directly: the functions of `operator` only add arguments to unpack.
static const struct {
    const char *name;
    binaryfunc function;
} operators[] = {
    {"add", PyNumber_Add},
    {"sub", PyNumber_Subtract},
    {"mul", PyNumber_Multiply},
    {"truediv", PyNumber_TrueDivide},
    {"floordiv", PyNumber_FloorDivide},
    {"mod", PyNumber_Remainder},
    {"matmul", PyNumber_MatrixMultiply},
    {"and_", PyNumber_And},
    {"or_", PyNumber_Or},
    {"xor", PyNumber_Xor},
    {"lshift", PyNumber_Lshift},
    {"rshift", PyNumber_Rshift},
    {"iadd", PyNumber_InPlaceAdd},
    {"isub", PyNumber_InPlaceSubtract},
    {"imul", PyNumber_InPlaceMultiply},
    {"itruediv", PyNumber_InPlaceTrueDivide},
    {"getitem", PyObject_GetItem},
};

static binaryfunc operator_of(const node *n) {
    if (!PyCFunction_Check(n->target) || n->kwargs || PyTuple_GET_SIZE(n->args) != 2)
        return NULL;
    PyObject *module = ((PyCFunctionObject *)n->target)->m_module;
    if (!module || !PyUnicode_Check(module) ||
        PyUnicode_CompareWithASCIIString(module, "_operator") != 0)
        return NULL;
    const char *name = ((PyCFunctionObject *)n->target)->m_ml->ml_name;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(operators); i++)
        if (!strcmp(name, operators[i].name))
            return operators[i].function;
    return NULL;
}

// The value of an attribute, as a step that calls it.
static PyObject *give_itself(PyObject *value, PyObject *const *args, size_t given,
                             PyObject *names) {
    (void)args, (void)given, (void)names;
    return Py_NewRef(value);
}

static status build_step(builder *b, const node *n) {
    step *s = &b->r->steps[b->at];
    PyObject *target = n->op == NODE_GET_ATTR ? n->example : n->target;
    *s = (step){.target = target, .result = n->index, .number = n->number, .effects = n->effects};
    s->count = (int)PyTuple_GET_SIZE(n->args);
    if (n->op == NODE_CALL_FUNCTION) {
        s->binary = operator_of(n);
        s->call = PyVectorcall_Function(n->target);
        s->call = s->call ? s->call : PyObject_Vectorcall;
    } else if (n->op == NODE_GET_ATTR) {
        s->call = give_itself;
    }
    TRY(own(b, target));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(n->args); i++)
        TRY(add_argument(b, PyTuple_GET_ITEM(n->args, i)));
    if (n->kwargs)
        TRY(add_keywords(b, s, n->kwargs));
    s->flat = is_flat(b);
    s->parts = take_parts(b);
    if (s->count > b->r->widest)
        b->r->widest = s->count;
    return s->parts ? ST_OK : ST_ERROR;
}

static status build_outputs(builder *b, const node *n) {
    PyObject *outputs = b->g->form == FORM_ONE ? n->args : PyTuple_GET_ITEM(n->args, 0);
    b->r->output_count = (int)PySequence_Fast_GET_SIZE(outputs);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(outputs); i++)
        TRY(add_argument(b, PySequence_Fast_GET_ITEM(outputs, i)));
    b->r->outputs = take_parts(b);
    return b->r->outputs ? ST_OK : ST_ERROR;
}

// The first step that leaves something behind; if a later one fails, the program goes on from
// there.
static int first_lasting(const replay *r) {
    int i = 0;
    while (i < r->count && !(r->steps[i].effects & EFFECTS_LASTING))
        i++;
    return i;
}

// The last step before the program lets a value go: from then on no failure can ask for it.
static int let_go_at(const builder *b, int value) {
    const replay *r = b->r;
    int dies = ((node *)PyList_GET_ITEM(b->g->nodes, value))->dies, low = 0, high = r->count;
    while (low < high) { // the first step at or behind the call of that number
        int middle = (low + high) / 2;
        if (r->steps[middle].number < dies)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

// The step at which a value dies: its last use, or where it is made if nobody uses it.
static int death_of(const builder *b, int value) {
    int last = b->last[value] < 0 ? value - b->r->inputs : b->last[value];
    int let_go = let_go_at(b, value);
    return let_go >= b->lasting && let_go > last ? let_go : last;
}

// Which values die at each step; the caller keeps the inputs, the outputs live to the end.
static status build_drops(builder *b) {
    replay *r = b->r;
    int *drops = arena_array(&r->arena, int, (size_t)r->values);
    if (!drops)
        return ST_ERROR;
    for (int v = r->inputs; v < r->values; v++) {
        if (death_of(b, v) < r->count)
            r->steps[death_of(b, v)].drop_count++;
    }
    for (int i = 0; i < r->count; i++) {
        r->steps[i].drops = drops;
        drops += r->steps[i].drop_count;
        r->steps[i].drop_count = 0;
    }
    for (int v = r->inputs; v < r->values; v++) {
        step *s = &r->steps[death_of(b, v)];
        if (death_of(b, v) < r->count)
            s->drops[s->drop_count++] = v;
    }
    return ST_OK;
}

static status build(builder *b, const graph *g) {
    replay *r = b->r;
    Py_ssize_t end = PyList_GET_SIZE(g->nodes) - 1;
    r->inputs = g->inputs;
    r->values = (int)end;
    r->count = (int)end - g->inputs;
    r->steps = arena_array(&r->arena, step, (size_t)r->count);
    b->last = arena_array(&r->arena, int, (size_t)end);
    if (!r->steps || !b->last)
        return ST_ERROR;
    r->keeper = g->keeper;
    if (r->keeper)
        TRY(own(b, r->keeper));
    memset(b->last, 0xff, (size_t)end * sizeof(int));
    for (; b->at < r->count; b->at++)
        TRY(build_step(b, (node *)PyList_GET_ITEM(g->nodes, g->inputs + b->at)));
    TRY(build_outputs(b, (node *)PyList_GET_ITEM(g->nodes, end)));
    b->lasting = first_lasting(r);
    return build_drops(b);
}

replay *replay_new(const graph *g) {
    assert(g->closed);
    replay *r = PyMem_Calloc(1, sizeof(replay));
    if (!r)
        return (replay *)PyErr_NoMemory();
    builder b = {.r = r, .g = g};
    status result = build(&b, g);
    vec_free(&b.parts);
    if (result == ST_OK)
        return r;
    replay_free(r);
    return NULL;
}

void replay_free(replay *r) {
    if (!r)
        return;
    arena_clear(&r->arena);
    PyMem_Free(r);
}

// --- running ---

static PyObject *make(const part **at, PyObject *const *values);

static PyObject *make_tuple(const part **at, PyObject *const *values, int count) {
    PyObject *result = PyTuple_New(count);
    for (int i = 0; result && i < count; i++) {
        PyObject *item = make(at, values);
        if (item)
            PyTuple_SET_ITEM(result, i, item);
        else
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *make_list(const part **at, PyObject *const *values, int count) {
    PyObject *result = PyList_New(count);
    for (int i = 0; result && i < count; i++) {
        PyObject *item = make(at, values);
        if (item)
            PyList_SET_ITEM(result, i, item);
        else
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *make_dict(const part **at, PyObject *const *values, const part *p) {
    PyObject *result = PyDict_New();
    for (int i = 0; result && i < p->index; i++) {
        PyObject *value = make(at, values);
        if (!value || PyDict_SetItem(result, PyTuple_GET_ITEM(p->object, i), value) < 0)
            Py_CLEAR(result);
        Py_XDECREF(value);
    }
    return result;
}

static PyObject *make_slice(const part **at, PyObject *const *values) {
    PyObject *start = make(at, values), *stop = start ? make(at, values) : NULL;
    PyObject *step = stop ? make(at, values) : NULL;
    PyObject *result = step ? PySlice_New(start, stop, step) : NULL;
    Py_XDECREF(start);
    Py_XDECREF(stop);
    Py_XDECREF(step);
    return result;
}

// The argument that starts at *at, which is left behind it. New reference.
static PyObject *make(const part **at, PyObject *const *values) {
    const part *p = (*at)++;
    switch (p->kind) {
    case PART_VALUE:
        return Py_NewRef(values[p->index]);
    case PART_CONSTANT:
        return Py_NewRef(p->object);
    case PART_TUPLE:
        return make_tuple(at, values, p->index);
    case PART_LIST:
        return make_list(at, values, p->index);
    case PART_DICT:
        return make_dict(at, values, p);
    case PART_SLICE:
        return make_slice(at, values);
    }
    Py_UNREACHABLE();
}

static PyObject *call(const step *s, PyObject **args) {
    if (s->binary)
        return s->binary(args[0], args[1]);
    size_t given = (size_t)s->count - (s->keywords ? (size_t)PyTuple_GET_SIZE(s->keywords) : 0);
    if (s->call)
        return s->call(s->target, args, given | PY_VECTORCALL_ARGUMENTS_OFFSET, s->keywords);
    return PyObject_VectorcallMethod(s->target, args, given | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                     s->keywords);
}

static PyObject *run_flat(const step *s, PyObject *const *values, PyObject **args) {
    for (int i = 0; i < s->count; i++)
        args[i] = s->parts[i].kind == PART_VALUE ? values[s->parts[i].index] : s->parts[i].object;
    return call(s, args);
}

static PyObject *run_deep(const step *s, PyObject *const *values, PyObject **args) {
    const part *at = s->parts;
    PyObject *result = NULL;
    int made = 0;
    while (made < s->count && (args[made] = make(&at, values)))
        made++;
    if (made == s->count)
        result = call(s, args);
    while (made > 0)
        Py_DECREF(args[--made]);
    return result;
}

// By the numbers of the calls; NULL if there is no memory for it.
static PyObject *values_so_far(const replay *r, PyObject *const *values, int failed) {
    PyObject *found = PyDict_New();
    for (int i = 0; found && i < failed; i++) {
        PyObject *value = values[r->steps[i].result];
        PyObject *number = value ? PyLong_FromLong(r->steps[i].number) : NULL;
        if (value && (!number || PyDict_SetItem(found, number, value) < 0))
            Py_CLEAR(found);
        Py_XDECREF(number);
    }
    return found;
}

static void tell(const replay *r, PyObject *const *values, int failed, graph_failure *to) {
    py_raised aside = py_put_aside();
    to->failed = true;
    to->number = r->steps[failed].number;
    to->raised = r->steps[failed].effects;
    to->done = 0;
    for (int i = 0; i < failed; i++)
        to->done |= r->steps[i].effects;
    Py_XSETREF(to->values, values_so_far(r, values, failed));
    PyErr_Clear();
    py_put_on(aside);
}

static int run_steps(const replay *r, PyObject **values, PyObject **args, graph_failure *failure) {
    for (int i = 0; i < r->count; i++) {
        const step *s = &r->steps[i];
        PyObject *result = s->flat ? run_flat(s, values, args) : run_deep(s, values, args);
        if (!result) {
            if (failure)
                tell(r, values, i, failure);
            return -1;
        }
        values[s->result] = result;
        for (int d = 0; d < s->drop_count; d++)
            Py_CLEAR(values[s->drops[d]]);
    }
    return 0;
}

static bool has_values(const step *s, PyObject *const *values) {
    const part *p = s->parts;
    for (int left = s->count; left > 0; left--, p++) {
        left += p->kind > PART_CONSTANT ? p->index : 0;
        if (p->kind == PART_VALUE && !values[p->index])
            return false;
    }
    return true;
}

static bool probe_steps(const replay *r, PyObject **values, PyObject **args, bool stop,
                        graph_failure *failure) {
    for (int i = 0; i < r->count; i++) {
        const step *s = &r->steps[i];
        bool runs = !(s->effects & EFFECT_UNKNOWN) && has_values(s, values);
        if (runs)
            values[s->result] = s->flat ? run_flat(s, values, args) : run_deep(s, values, args);
        // Nothing is known of what a call that was not run has written, nor of what reads it.
        bool ends = runs || stop || (s->effects & (EFFECT_WRITES | EFFECT_RANDOM));
        if (!values[s->result] && ends) {
            tell(r, values, i, failure);
            return true;
        }
    }
    return false;
}

// `values` has room for all, and one place before the arguments is the callee's to use.
static PyObject *run(const replay *r, PyObject *const *inputs, PyObject **values,
                     graph_failure *failure) {
    PyObject **args = values + r->values + 1;
    memcpy(values, inputs, (size_t)r->inputs * sizeof(PyObject *));
    memset(values + r->inputs, 0, (size_t)(r->values - r->inputs) * sizeof(PyObject *));
    const part *at = r->outputs;
    PyObject *result =
        run_steps(r, values, args, failure) < 0 ? NULL : make_tuple(&at, values, r->output_count);
    for (int i = r->inputs; i < r->values; i++)
        Py_XDECREF(values[i]);
    return result;
}

static PyObject *run_anywhere(const replay *r, PyObject *const *inputs, graph_failure *failure) {
    size_t count = (size_t)r->values + 1 + (size_t)r->widest;
    if (count <= 256)
        return run(r, inputs, alloca(count * sizeof(PyObject *)), failure);
    PyObject **values = PyMem_New(PyObject *, count);
    if (!values)
        return PyErr_NoMemory();
    PyObject *result = run(r, inputs, values, failure);
    PyMem_Free(values);
    return result;
}

static void restore(PyObject *keeper, PyObject *saved) {
    py_raised aside = py_put_aside();
    PyObject *done = PyObject_CallOneArg(PyTuple_GET_ITEM(keeper, 1), saved);
    if (!done)
        PyErr_WriteUnraisable(keeper);
    Py_XDECREF(done);
    py_put_on(aside);
}

PyObject *replay_run(const replay *r, PyObject *const *inputs, graph_failure *failure) {
    if (!r->keeper)
        return run_anywhere(r, inputs, failure);
    PyObject *saved = PyObject_CallNoArgs(PyTuple_GET_ITEM(r->keeper, 0));
    PyObject *result = saved ? run_anywhere(r, inputs, failure) : NULL;
    if (saved && !result)
        restore(r->keeper, saved);
    Py_XDECREF(saved);
    return result;
}

bool replay_probe(const replay *r, PyObject *const *inputs, bool stop, graph_failure *failure) {
    size_t count = (size_t)r->values + 1 + (size_t)r->widest;
    PyObject **values = PyMem_Calloc(count, sizeof(PyObject *));
    PyObject *saved = r->keeper ? PyObject_CallNoArgs(PyTuple_GET_ITEM(r->keeper, 0)) : NULL;
    bool found = false;
    if (values && (saved || !r->keeper)) {
        memcpy(values, inputs, (size_t)r->inputs * sizeof(PyObject *));
        found = probe_steps(r, values, values + r->values + 1, stop, failure);
        if (saved)
            restore(r->keeper, saved);
    }
    py_raised aside = py_put_aside();
    for (int i = r->inputs; values && i < r->values; i++)
        Py_XDECREF(values[i]);
    PyMem_Free(values);
    Py_XDECREF(saved);
    if (found)
        py_put_on(aside);
    else
        py_forget(aside);
    return found;
}
