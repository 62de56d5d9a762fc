// Nodes and graphs as Python objects. Nodes get the names that torch.fx would give them, since
// people's tests and logs know those.
#include "src/graph/graph.h"

#include "src/base/vec.h"

#include "src/graph/expr.h"
#include "src/graph/trail.h"

#include <structmember.h>

static PyObject *getitem;  // operator.getitem
static PyObject *reserved; // frozenset: names that would hide a keyword or a builtin

// --- nodes ---

static void node_dealloc(node *n) {
    Py_XDECREF(n->target);
    Py_XDECREF(n->args);
    Py_XDECREF(n->kwargs);
    Py_XDECREF(n->example);
    Py_XDECREF(n->first);
    Py_XDECREF(n->name);
    Py_XDECREF(n->stack);
    Py_XDECREF(n->modules);
    Py_XDECREF(n->custom);
    PyObject_Free(n);
}

static const char *const op_names[] = {
    [NODE_PLACEHOLDER] = "placeholder", [NODE_CALL_FUNCTION] = "call_function",
    [NODE_CALL_METHOD] = "call_method", [NODE_GET_ATTR] = "get_attr",
    [NODE_OUTPUT] = "output",
};

static PyObject *node_get_op(node *n, void *unused) {
    (void)unused;
    return PyUnicode_FromString(op_names[n->op]);
}

static PyObject *node_get_kwargs(node *n, void *unused) {
    (void)unused;
    return n->kwargs ? Py_NewRef(n->kwargs) : PyDict_New();
}

static PyObject *node_get_stack(node *n, void *closure) {
    (void)closure;
    return trail_rows(n->stack);
}

static PyObject *node_repr(node *n) {
    return Py_NewRef(n->name);
}

static PyGetSetDef node_getset[] = {
    {"op", (getter)node_get_op, NULL, NULL, NULL},
    {"kwargs", (getter)node_get_kwargs, NULL, NULL, NULL},
    {"stack", (getter)node_get_stack, NULL, NULL, NULL},
    {0},
};

static PyMemberDef node_members[] = {
    {"index", T_INT, offsetof(node, index), READONLY, NULL},
    {"target", T_OBJECT, offsetof(node, target), READONLY, NULL},
    {"args", T_OBJECT, offsetof(node, args), READONLY, NULL},
    {"example", T_OBJECT, offsetof(node, example), READONLY, NULL},
    {"name", T_OBJECT, offsetof(node, name), READONLY, NULL},
    {"first_name", T_OBJECT, offsetof(node, first), READONLY, NULL},
    {"modules", T_OBJECT, offsetof(node, modules), READONLY, NULL},
    {"custom", T_OBJECT, offsetof(node, custom), READONLY, NULL},
    {0},
};

PyTypeObject node_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.Node",
    .tp_doc = "One operation of a graph, an input, or its output.",
    .tp_basicsize = sizeof(node),
    .tp_dealloc = (destructor)node_dealloc,
    .tp_repr = (reprfunc)node_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_getset = node_getset,
    .tp_members = node_members,
};

static node *new_node(node_op op, PyObject *target, PyObject *args, PyObject *kwargs,
                      PyObject *example, PyObject *stack) {
    node *n = PyObject_New(node, &node_type);
    if (!n)
        return NULL;
    n->op = op;
    n->index = -1;
    n->scope = 0;
    n->target = Py_NewRef(target);
    n->args = Py_NewRef(args);
    n->kwargs = kwargs && PyDict_GET_SIZE(kwargs) > 0 ? Py_NewRef(kwargs) : NULL;
    n->example = Py_NewRef(example ? example : Py_None);
    n->meta.dims = -1;
    n->meta.requires_grad = false;
    n->is_number = false;
    n->name = NULL;
    n->first = NULL;
    n->stack = Py_NewRef(stack ? stack : Py_None);
    n->modules = Py_NewRef(Py_None);
    n->custom = NULL;
    n->renamed = false;
    n->effects = 0;
    n->number = -1;
    n->dies = NODE_LIVES;
    return n;
}

static status walk_items(PyObject **items, Py_ssize_t count, node_visit visit, void *data) {
    for (Py_ssize_t i = 0; i < count; i++)
        TRY(node_walk(items[i], visit, data));
    return ST_OK;
}

static status walk_dict(PyObject *dict, node_visit visit, void *data) {
    Py_ssize_t at = 0;
    PyObject *value;
    while (PyDict_Next(dict, &at, NULL, &value))
        TRY(node_walk(value, visit, data));
    return ST_OK;
}

static status walk_slice(PySliceObject *slice, node_visit visit, void *data) {
    TRY(node_walk(slice->start, visit, data));
    TRY(node_walk(slice->stop, visit, data));
    return node_walk(slice->step, visit, data);
}

status node_walk(PyObject *argument, node_visit visit, void *data) {
    if (is_node(argument))
        return visit((node *)argument, data);
    if (PyTuple_Check(argument) || PyList_Check(argument))
        return walk_items(PySequence_Fast_ITEMS(argument), PySequence_Fast_GET_SIZE(argument),
                          visit, data);
    if (PyDict_Check(argument))
        return walk_dict(argument, visit, data);
    if (PySlice_Check(argument))
        return walk_slice((PySliceObject *)argument, visit, data);
    return ST_OK;
}

// --- names ---

enum { LONGEST_NAME = 512 }; // that is put together without memory of its own

// With "_" for what no identifier of fx may hold. A target's name becomes lower case, with "_"
// where a capital follows a small letter.
static PyObject *as_identifier(PyObject *text, bool target) {
    Py_ssize_t size;
    const char *s = PyUnicode_AsUTF8AndSize(text, &size);
    char few[LONGEST_NAME];
    bool is_short = 2 * size + 16 <= LONGEST_NAME;
    char *buffer = !s ? NULL : is_short ? few : PyMem_Malloc(2 * (size_t)size + 16);
    if (!buffer)
        return s ? PyErr_NoMemory() : NULL;
    Py_ssize_t n = 0;
    if (target && size > 4 && !strncmp(s, "__", 2) && !strncmp(s + size - 2, "__", 2))
        s += 2, size -= 4;
    for (Py_ssize_t i = 0; i < size; i++) {
        char c = s[i];
        if (!Py_ISALNUM(c) && c != '_') {
            if (i == 0 || Py_ISALNUM(s[i - 1]) || s[i - 1] == '_')
                buffer[n++] = '_';
            continue;
        }
        if (target && i > 0 && Py_ISUPPER(c) && Py_ISLOWER(s[i - 1]))
            buffer[n++] = '_';
        if (n == 0 && Py_ISDIGIT(c))
            buffer[n++] = '_';
        buffer[n++] = target ? (char)Py_TOLOWER(c) : c;
    }
    PyObject *result =
        n ? PyUnicode_FromStringAndSize(buffer, n) : PyUnicode_FromString("_unnamed");
    if (!is_short)
        PyMem_Free(buffer);
    return result;
}

// Splits "name_12": the length of "name", and the number, or -1 if there is none.
static Py_ssize_t split_number(const char *s, Py_ssize_t size, long *number) {
    Py_ssize_t digits = size;
    while (digits > 0 && Py_ISDIGIT(s[digits - 1]))
        digits--;
    *number = -1;
    if (digits == size || size - digits > 9 || digits < 2 || s[digits - 1] != '_')
        return size;
    *number = strtol(s + digits, NULL, 10);
    return digits - 1;
}

static long last_number(graph *g, PyObject *base) {
    PyObject *number = PyDict_GetItemWithError(g->counts, base);
    return number ? PyLong_AsLong(number) : 0;
}

// "base_12"
static PyObject *numbered(PyObject *base, long number) {
    Py_ssize_t size;
    const char *s = PyUnicode_AsUTF8AndSize(base, &size);
    char name[LONGEST_NAME];
    if (!s || size > LONGEST_NAME - 32)
        return s ? PyUnicode_FromFormat("%U_%ld", base, number) : NULL;
    memcpy(name, s, (size_t)size);
    return PyUnicode_FromStringAndSize(name, size + snprintf(name + size, 32, "_%ld", number));
}

// The first name of "candidate", "base_1", "base_2", … that is free.
static PyObject *free_name(graph *g, PyObject *candidate, PyObject *base, long *number) {
    PyObject *name = Py_NewRef(candidate);
    int used = PySet_Contains(reserved, name);
    if (used == 0)
        used = PySet_Contains(g->names, name);
    while (used > 0) {
        Py_SETREF(name, numbered(base, ++*number));
        used = name ? PySet_Contains(g->names, name) : -1;
    }
    if (used < 0)
        Py_CLEAR(name);
    return name;
}

static int note_name(graph *g, PyObject *name, PyObject *base, long number) {
    PyObject *value = PyLong_FromLong(number);
    int result = value ? PyDict_SetItem(g->counts, base, value) : -1;
    Py_XDECREF(value);
    return result < 0 ? -1 : PySet_Add(g->names, name);
}

static PyObject *unique_name(graph *g, PyObject *candidate) {
    Py_ssize_t size;
    const char *s = PyUnicode_AsUTF8AndSize(candidate, &size);
    if (!s)
        return NULL;
    long number;
    Py_ssize_t head = split_number(s, size, &number);
    PyObject *base = head == size ? Py_NewRef(candidate) : PyUnicode_FromStringAndSize(s, head);
    if (!base)
        return NULL;
    int used = PySet_Contains(g->names, candidate);
    if (number < 0 || used > 0)
        number = last_number(g, base);
    PyObject *name = used < 0 || PyErr_Occurred() ? NULL : free_name(g, candidate, base, &number);
    if (name && note_name(g, name, base, number) < 0)
        Py_CLEAR(name);
    Py_DECREF(base);
    return name;
}

// What a node is called if nobody says otherwise.
static PyObject *target_text(PyObject *target) {
    if (PyUnicode_Check(target))
        return Py_NewRef(target);
    if (PyCFunction_CheckExact(target))
        return PyUnicode_FromString(((PyCFunctionObject *)target)->m_ml->ml_name);
    PyObject *name = PyObject_GetAttrString(target, "__name__");
    if (name && PyUnicode_Check(name))
        return name;
    if (!name && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return NULL;
    PyErr_Clear();
    Py_XDECREF(name);
    return PyUnicode_FromString(Py_TYPE(target)->tp_name);
}

static status name_node(graph *g, node *n, PyObject *text, bool target) {
    PyObject *candidate = as_identifier(text, target);
    PyObject *name = candidate ? unique_name(g, candidate) : NULL;
    Py_XDECREF(candidate);
    if (!name)
        return ST_ERROR;
    Py_XSETREF(n->name, name);
    return ST_OK;
}

status graph_rename(graph *g, node *n, PyObject *name) {
    n->renamed = true;
    if (!n->first)
        n->first = Py_XNewRef(n->name);
    return PyUnicode_Compare(name, n->name) == 0 ? ST_OK : name_node(g, n, name, false);
}

status graph_retarget(graph *g, node *n, PyObject *target) {
    Py_SETREF(n->target, Py_NewRef(target));
    return name_node(g, n, target, true);
}

// --- graphs ---

static void graph_dealloc(graph *g) {
    Py_XDECREF(g->outer);
    Py_XDECREF(g->custom);
    Py_XDECREF(g->lifted);
    Py_XDECREF(g->stems);
    replay_free(g->program);
    Py_XDECREF(g->meta);
    Py_XDECREF(g->nodes);
    Py_XDECREF(g->sources);
    Py_XDECREF(g->fakes);
    Py_XDECREF(g->names);
    Py_XDECREF(g->targets);
    Py_XDECREF(g->counts);
    Py_XDECREF(g->keeper);
    Py_XDECREF(g->context);
    Py_XDECREF(g->witness);
    PyObject_Free(g);
}

static PyObject *graph_repr(graph *g) {
    return graph_text(g);
}

static PyMemberDef graph_members[] = {
    {"nodes", T_OBJECT, offsetof(graph, nodes), READONLY, NULL},
    {"sources", T_OBJECT, offsetof(graph, sources), READONLY, NULL},
    {"inputs", T_INT, offsetof(graph, inputs), READONLY, NULL},
    {"effects", T_INT, offsetof(graph, effects), READONLY, NULL},
    {"closed", T_BOOL, offsetof(graph, closed), READONLY, NULL},
    {"literal", T_BOOL, offsetof(graph, literal), READONLY, NULL},
    {"lifted", T_OBJECT, offsetof(graph, lifted), READONLY, NULL},
    {"keeper", T_OBJECT, offsetof(graph, keeper), READONLY, NULL},
    {"context", T_OBJECT, offsetof(graph, context), READONLY, NULL},
    {"fakes", T_OBJECT, offsetof(graph, fakes), READONLY, NULL},
    {"meta", T_OBJECT, offsetof(graph, meta), READONLY, NULL},
    {0},
};

static PyObject *graph_get_operations(graph *g, void *unused) {
    (void)unused;
    return PyLong_FromSsize_t(graph_operations(g));
}

static PyObject *graph_get_files(graph *g, void *unused) {
    (void)unused;
    PyObject *files = PySet_New(NULL);
    for (Py_ssize_t i = 0; files && i < PyList_GET_SIZE(g->nodes); i++)
        if (trail_files(((node *)PyList_GET_ITEM(g->nodes, i))->stack, files) < 0)
            Py_CLEAR(files);
    return files;
}

static PyGetSetDef graph_getset[] = {
    {"operations", (getter)graph_get_operations, NULL, NULL, NULL},
    {"files", (getter)graph_get_files, NULL, NULL, NULL},
    {0},
};

static PyObject *graph_tp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)type;
    if (PyTuple_GET_SIZE(args) == 0 && !kwargs)
        return (PyObject *)graph_new();
    PyErr_SetString(PyExc_TypeError, "Graph takes no arguments");
    return NULL;
}

static PyObject *in_form(const graph *g, PyObject *outputs) {
    if (g->form == FORM_ONE)
        return Py_NewRef(PyTuple_GET_ITEM(outputs, 0));
    return g->form == FORM_LIST ? PySequence_List(outputs) : Py_NewRef(outputs);
}

// What a body is called by: the call that it was given to runs it, perhaps more than once.
static PyObject *graph_run(graph *g, PyObject *args, PyObject *kwargs) {
    if (!g->closed || PyTuple_GET_SIZE(args) != g->inputs || (kwargs && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError,
                        "a closed graph takes as many arguments as it has inputs, by position");
        return NULL;
    }
    if (!g->program && !(g->program = replay_new(g)))
        return NULL;
    PyObject *result = replay_run(g->program, ((PyTupleObject *)args)->ob_item, NULL);
    if (result && g->form != FORM_TUPLE)
        Py_SETREF(result, in_form(g, result));
    return result;
}

PyTypeObject graph_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.Graph",
    .tp_doc = "Operations in the order they were traced. str() gives one line a node.",
    .tp_basicsize = sizeof(graph),
    .tp_dealloc = (destructor)graph_dealloc,
    .tp_repr = (reprfunc)graph_repr,
    .tp_call = (ternaryfunc)graph_run,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_members = graph_members,
    .tp_getset = graph_getset,
    .tp_methods = graph_methods,
    .tp_new = graph_tp_new,
};

graph *graph_new(void) {
    graph *g = PyObject_New(graph, &graph_type);
    if (!g)
        return NULL;
    memset((char *)g + sizeof g->ob_base, 0, sizeof *g - sizeof g->ob_base);
    g->nodes = PyList_New(0);
    g->sources = PyList_New(0);
    g->names = PySet_New(NULL);
    g->targets = PySet_New(NULL);
    g->counts = PyDict_New();
    if (!g->nodes || !g->sources || !g->names || !g->targets || !g->counts)
        Py_CLEAR(g);
    return g;
}

static node *node_at(const graph *g, Py_ssize_t i) {
    return (node *)PyList_GET_ITEM(g->nodes, i);
}

static void renumber(graph *g, Py_ssize_t from) {
    for (Py_ssize_t i = from; i < PyList_GET_SIZE(g->nodes); i++)
        node_at(g, i)->index = (int)i;
}

// Every character that no identifier may hold, and all its neighbours of that kind, as one "_".
static PyObject *input_target(PyObject *source) {
    Py_ssize_t size, n = 0;
    const char *s = PyUnicode_AsUTF8AndSize(source, &size);
    char *buffer = s ? PyMem_Malloc((size_t)size + 1) : NULL;
    if (!buffer)
        return s ? PyErr_NoMemory() : NULL;
    for (Py_ssize_t i = 0; i < size; i++) {
        if (Py_ISALNUM(s[i]))
            buffer[n++] = s[i];
        else if (n == 0 || buffer[n - 1] != '_')
            buffer[n++] = '_';
    }
    PyObject *result = PyUnicode_FromStringAndSize(buffer, n);
    PyMem_Free(buffer);
    return result;
}

// As Dynamo's get_unique_name_wrt, since a placeholder's target is a parameter of fx's function:
// "_0" is put behind a name that is taken, then "_1". Takes the reference.
static PyObject *unique_target(graph *g, PyObject *candidate) {
    PyObject *name = Py_XNewRef(candidate);
    int used = name ? PySet_Contains(g->targets, name) : -1;
    for (long number = 0; used > 0; number++) {
        Py_SETREF(name, PyUnicode_FromFormat("%U_%ld", candidate, number));
        used = name ? PySet_Contains(g->targets, name) : -1;
    }
    if (used < 0 || PySet_Add(g->targets, name) < 0)
        Py_CLEAR(name);
    Py_XDECREF(candidate);
    return name;
}

static status insert_input(graph *g, node *n, PyObject *source) {
    if (PyList_Append(g->sources, source) < 0)
        return ST_ERROR;
    if (PyList_Insert(g->nodes, g->inputs, (PyObject *)n) < 0) {
        Py_SET_SIZE(g->sources, g->inputs); // the one just put there
        Py_DECREF(source);
        return ST_ERROR;
    }
    n->scope = g->scope;
    n->custom = Py_XNewRef(g->custom);
    renumber(g, g->inputs++);
    return ST_OK;
}

node *graph_input(graph *g, PyObject *name, PyObject *source, PyObject *example) {
    assert(!g->closed);
    PyObject *target = unique_target(g, name ? Py_NewRef(name) : input_target(source));
    PyObject *empty = PyTuple_New(0);
    node *n =
        target && empty ? new_node(NODE_PLACEHOLDER, target, empty, NULL, example, NULL) : NULL;
    Py_XDECREF(empty);
    if (n && (name_node(g, n, target, true) != ST_OK || insert_input(g, n, source) != ST_OK))
        Py_CLEAR(n);
    Py_XDECREF(target);
    return n;
}

static void swap_items(PyObject *list, int i, int j) {
    PyObject **items = ((PyListObject *)list)->ob_item, *kept = items[i];
    items[i] = items[j];
    items[j] = kept;
}

void graph_sort_inputs(graph *g, int *ranks) {
    for (int i = 1; i < g->inputs; i++) {
        for (int j = i; j > 0 && ranks[j - 1] > ranks[j]; j--) { // few are out of place
            int kept = ranks[j];
            ranks[j] = ranks[j - 1];
            ranks[j - 1] = kept;
            swap_items(g->nodes, j - 1, j);
            swap_items(g->sources, j - 1, j);
        }
    }
    renumber(g, 0);
}

node *graph_call(graph *g, node_op op, PyObject *target, PyObject *args, PyObject *kwargs,
                 PyObject *example, PyObject *stack) {
    assert(!g->closed);
    node *n = new_node(op, target, args, kwargs, example, stack);
    PyObject *text = n ? target_text(target) : NULL;
    if (!text) {
        Py_XDECREF(n);
        return NULL;
    }
    n->index = (int)PyList_GET_SIZE(g->nodes);
    n->scope = g->scope;
    n->number = g->calls++;
    n->custom = Py_XNewRef(g->custom);
    if (name_node(g, n, text, true) != ST_OK || PyList_Append(g->nodes, (PyObject *)n) < 0)
        Py_CLEAR(n);
    Py_DECREF(text);
    return n;
}

// --- the end ---

static status count_use(node *n, void *uses) {
    ((int *)uses)[n->index]++;
    return ST_OK;
}

static status uncount_use(node *n, void *uses) {
    ((int *)uses)[n->index]--;
    return ST_OK;
}

static status walk_node(node *n, node_visit visit, void *data) {
    TRY(node_walk(n->args, visit, data));
    return n->kwargs ? node_walk(n->kwargs, visit, data) : ST_OK;
}

static status count_uses(graph *g, int *uses) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(g->nodes); i++)
        TRY(walk_node(node_at(g, i), count_use, uses));
    return ST_OK;
}

// Numbers, slices, None and `...`, checked when they were recorded.
static bool is_basic(PyObject *index) {
    for (Py_ssize_t i = 0; PyTuple_CheckExact(index) && i < PyTuple_GET_SIZE(index); i++)
        if (PyTuple_CheckExact(PyTuple_GET_ITEM(index, i)) || !is_basic(PyTuple_GET_ITEM(index, i)))
            return false;
    if (PySlice_Check(index)) {
        const PySliceObject *slice = (PySliceObject *)index;
        return !is_node(slice->start) && !is_node(slice->stop) && !is_node(slice->step);
    }
    return PyLong_Check(index) || PyTuple_CheckExact(index) || index == Py_None ||
           index == Py_Ellipsis;
}

// A subscript by a tensor, or by a list of numbers, may fail when the graph runs, and a value of
// its own may be asked for by a failure behind something lasting. What takes an operation's results
// apart does neither. A call that gives a number (`item()`) does nothing else.
static bool is_needless(const graph *g, const node *n) {
    if (n->is_number && (n->op == NODE_CALL_FUNCTION || n->op == NODE_CALL_METHOD))
        return !(g->effects & EFFECTS_LASTING);
    if (n->op != NODE_CALL_FUNCTION || n->target != getitem || PyTuple_GET_SIZE(n->args) != 2)
        return false;
    PyObject *of = PyTuple_GET_ITEM(n->args, 0);
    PyObject *example = is_node(of) ? ((node *)of)->example : Py_None;
    if (PyTuple_Check(example) || PyList_Check(example))
        return true;
    return is_basic(PyTuple_GET_ITEM(n->args, 1)) && !(g->effects & EFFECTS_LASTING);
}

// Marks with -1 what goes: inputs without users, and subscripts, whose going may free others.
static status mark_unused(graph *g, int *uses) {
    for (Py_ssize_t i = PyList_GET_SIZE(g->nodes) - 1; i >= 0; i--) {
        node *n = node_at(g, i);
        bool goes = n->op == NODE_PLACEHOLDER ? !g->lifted : is_needless(g, n);
        if (uses[i] > 0 || !goes)
            continue;
        TRY(walk_node(n, uncount_use, uses));
        uses[i] = -1;
    }
    return ST_OK;
}

// A body's other placeholders stay: whoever calls it gives it that many values.
static status mark_unlifted(graph *g, int *uses) {
    PyObject *lifted = PyDict_New(), *of, *n;
    Py_ssize_t at = 0;
    while (lifted && PyDict_Next(g->lifted, &at, &of, &n)) {
        int *count = &uses[((node *)n)->index];
        if (*count == 0 && !g->united)
            *count = -1;
        else if (PyDict_SetItem(lifted, of, n) < 0)
            Py_CLEAR(lifted);
    }
    if (lifted)
        Py_SETREF(g->lifted, lifted);
    return lifted ? ST_OK : ST_ERROR;
}

static PyObject *kept_of(PyObject *list, const int *uses, Py_ssize_t count) {
    PyObject *kept = PyList_New(0);
    for (Py_ssize_t i = 0; kept && i < count; i++) {
        if (uses[i] >= 0 && PyList_Append(kept, PyList_GET_ITEM(list, i)) < 0)
            Py_CLEAR(kept);
    }
    return kept;
}

static status remove_unused(graph *g, int *uses, bool *used) {
    TRY(count_uses(g, uses));
    TRY(mark_unused(g, uses));
    if (g->lifted)
        TRY(mark_unlifted(g, uses));
    PyObject *nodes = kept_of(g->nodes, uses, PyList_GET_SIZE(g->nodes));
    PyObject *sources = nodes ? kept_of(g->sources, uses, g->inputs) : NULL;
    if (!sources) {
        Py_XDECREF(nodes);
        return ST_ERROR;
    }
    for (int i = 0; used && i < g->inputs; i++)
        used[i] = uses[i] >= 0;
    Py_SETREF(g->nodes, nodes);
    Py_SETREF(g->sources, sources);
    g->inputs = (int)PyList_GET_SIZE(sources);
    renumber(g, 0);
    return ST_OK;
}

static status add_output(graph *g, PyObject *outputs) {
    PyObject *given = in_form(g, outputs), *target = PyUnicode_InternFromString("output");
    PyObject *args = given ? PyTuple_Pack(1, given) : NULL;
    node *n = target && args ? graph_call(g, NODE_OUTPUT, target, args, NULL, NULL, NULL) : NULL;
    Py_XDECREF(given);
    Py_XDECREF(target);
    Py_XDECREF(args);
    Py_XDECREF(n);
    return n ? ST_OK : ST_ERROR;
}

status graph_close(graph *g, PyObject *outputs, bool *used) {
    assert(!g->closed && PyTuple_CheckExact(outputs));
    TRY(add_output(g, outputs));
    renumber(g, 0);
    int *uses = PyMem_Calloc((size_t)PyList_GET_SIZE(g->nodes), sizeof(int));
    if (!uses) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    status result = remove_unused(g, uses, used);
    PyMem_Free(uses);
    g->closed = result == ST_OK;
    if (g->closed)
        Py_CLEAR(g->outer); // which may keep the body from now on
    return result;
}

Py_ssize_t graph_operations(const graph *g) {
    Py_ssize_t count = 0;
    for (Py_ssize_t i = g->inputs; i < PyList_GET_SIZE(g->nodes); i++)
        count += node_at(g, i)->op != NODE_OUTPUT && node_at(g, i)->op != NODE_GET_ATTR;
    return count;
}

// --- setup ---

static PyObject *reserved_names(void) {
    static const char *const others[] = {"inf",    "nan",       "NoneType", "torch",
                                         "device", "fx_pytree", "pytree"};
    PyObject *names = py_import("keyword", "kwlist");
    PyObject *set = names ? PySet_New(names) : NULL;
    Py_XDECREF(names);
    if (set && _PySet_Update(set, PyEval_GetBuiltins()) < 0)
        Py_CLEAR(set);
    for (size_t i = 0; set && i < Py_ARRAY_LENGTH(others); i++) {
        PyObject *name = PyUnicode_FromString(others[i]);
        if (!name || PySet_Add(set, name) < 0)
            Py_CLEAR(set);
        Py_XDECREF(name);
    }
    return set;
}

int graph_setup(PyObject *module) {
    getitem = py_import("operator", "getitem");
    reserved = getitem ? reserved_names() : NULL;
    if (!reserved || PyModule_AddType(module, &node_type) < 0 || expr_setup(module) < 0 ||
        trail_setup() < 0)
        return -1;
    return PyModule_AddType(module, &graph_type);
}
