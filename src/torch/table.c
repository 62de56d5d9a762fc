// Torch's callables: which become nodes, which give their value at once, which break. The rows come
// from the Python glue, by object; methods of tensors are found by their descriptors.
#include "src/interp/run.h"

#include "src/call/handlers.h"
#include "src/call/rules.h"

#include "src/torch/higher.h"
#include "src/torch/levels.h"
#include "src/torch/marks.h"
#include "src/torch/overrides.h"

static const struct kind {
    const char *name;
    rule_handler handler;
    rule_takes takes;
    bool asks;
} kinds[] = {
#define SILENT false
#define ASKED true
#define KIND(name, handler, takes, asks) {#name, handler, takes, asks},
#include "src/torch/kinds.def"
#undef KIND
#undef SILENT
#undef ASKED
};

static const struct kind *kind_by_name(PyObject *name) {
    for (size_t i = 0; i < Py_ARRAY_LENGTH(kinds); i++)
        if (PyUnicode_Check(name) && !PyUnicode_CompareWithASCIIString(name, kinds[i].name))
            return &kinds[i];
    PyErr_Format(PyExc_ValueError, "no such kind of torch callable: %R", name);
    return NULL;
}

// C methods of tensors, and of what torch makes constants of, are also found bound to one. Every
// lookup of a C class method makes another bound object; its definition stays.
static PyMethodDef *definition_of(PyObject *callable) {
    bool class = Py_IS_TYPE(callable, &PyClassMethodDescr_Type);
    if (!class && !Py_IS_TYPE(callable, &PyMethodDescr_Type))
        return NULL;
    PyTypeObject *type = PyDescr_TYPE(callable);
    bool ours = type == facts.base || type == facts.size || type == facts.dtype ||
                type == facts.device || type == facts.no_subclasses || type == facts.no_functions;
    return class || ours ? ((PyMethodDescrObject *)callable)->d_method : NULL;
}

// One row of the glue's: callable → (kind, extra). The path is kept as long as the process lives.
static int add_row(PyObject *callable, const char *path, PyObject *value) {
    PyObject *name, *extra;
    const struct kind *kind =
        PyArg_ParseTuple(value, "OO", &name, &extra) ? kind_by_name(name) : NULL;
    rule *r = kind ? PyMem_Calloc(1, sizeof(rule)) : NULL;
    if (!r)
        return kind ? (PyErr_NoMemory(), -1) : -1;
    PyMethodDef *method = definition_of(callable);
    *r = (rule){.path = path,
                .kind = RULE_HANDLED,
                .handler = kind->asks ? overrides_first : kind->handler,
                .behind = kind->handler,
                .takes = kind->takes,
                .writes = W_HANDLER,
                .weak = true,
                .object = Py_NewRef(callable),
                .owner = method || Py_IS_TYPE(callable, &PyWrapperDescr_Type)
                             ? PyDescr_TYPE(callable)
                             : NULL,
                .extra = Py_NewRef(extra)};
    if (method && rules_add_definition(method, r) != ST_OK)
        return -1;
    return rules_add(callable, r) == ST_OK ? 0 : -1;
}

static int add_others(void);

int table_fill(PyObject *rows) {
    // The engine's own rows come first, and may be stood in front of.
    return rules_setup() < 0 || table_add(rows) < 0 ? -1 : add_others();
}

int table_add(PyObject *rows) {
    if (!PyList_Check(rows)) {
        PyErr_SetString(PyExc_TypeError, "the table of torch's callables is a list");
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        PyObject *callable, *path, *value;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(rows, i), "OUO", &callable, &path, &value) ||
            !PyUnicode_AsUTF8(path) ||
            add_row(callable, PyUnicode_AsUTF8(Py_NewRef(path)), value) < 0)
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

// --- the kinds ---

// The method's node has its name for a target, and `self` first.
PyObject *call_method(world *w, const call *c) {
    return record_call(w, NODE_CALL_METHOD, c->rule->extra, c);
}

// Called for real on plain values; nothing of the trace can leak into it.
PyObject *call_plain(world *w, const call *c) {
    size_t count = call_count(c), made = 0;
    PyObject **values = PyMem_New(PyObject *, count + 1), *result = NULL;
    if (!values)
        return PyErr_NoMemory();
    while (made < count && (values[made + 1] = plain_value(w, c->args[made])))
        made++;
    if (made == count) {
        quiet q;
        quiet_begin(&q);
        result = PyObject_Vectorcall(c->callable, values + 1,
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

PyObject *call_question(world *w, const call *c) {
    torch_trace *t = trace_of(w);
    if (t)
        t->gradient_asked += c->rule->object == glue_function("is_grad_enabled");
    return t ? call_plain(w, c) : NULL;
}

PyObject *call_constant(world *w, const call *c) {
    (void)w;
    return Py_NewRef(c->rule->extra);
}

PyObject *call_while_traced(world *w, const call *c) {
    return trace_of(w) ? call_constant(w, c) : NULL;
}

// Torch's code of function transforms asks so as to leave out what Dynamo does not trace: names of
// functions, which the program may look at.
static bool is_asked_by_transform(const world *w) {
    PyObject *home = glue_function("transforms_home");
    return w->run &&
           PyUnicode_Tailmatch(w->run->code->py->co_filename, home, 0, PY_SSIZE_T_MAX, -1) == 1;
}

PyObject *call_compiling(world *w, const call *c) {
    if (c->rule->extra == Py_True && is_asked_by_transform(w))
        return Py_NewRef(Py_False);
    w->facts.told = true;
    return call_while_traced(w, c);
}

PyObject *call_operation(world *w, const call *c) {
    PyObject *questions = c->rule->extra;
    if (questions != Py_None && state_matters(w, questions) != ST_OK)
        return NULL;
    return device_call(w, c);
}

// An input tells its offset itself. (Others need fakes with history, which settle sizes.)
static PyObject *offset_of(world *w, const call *c) {
    PyObject *self = c->given == 1 ? door_open(w, c->args[0]) : NULL;
    if (PyErr_Occurred())
        return NULL;
    if (!self || !is_tensor_standin(self) || !is_as_it_came((standin *)self) ||
        ((standin *)self)->type != facts.tensor)
        return call_method(w, c);
    return PyLong_FromLongLong(read_offset(((standin *)self)->outside));
}

PyObject *call_offset(world *w, const call *c) {
    PyObject *result = offset_of(w, c);
    if (result)
        inputs_guard_offsets(w);
    return result;
}

// 0, 1, or 2 for all larger sizes; -1: an exception. An open size stays open.
static int how_many(world *w, PyObject *size) {
    number n, larger;
    int open = door_number(w, size, &n);
    if (open < 0)
        return -1;
    if (open > 0 &&
        number_apply(world_sizes(w), NUMBER_GT, n, number_of_size(size_of(1)), &larger) &&
        number_decide(world_sizes(w), larger))
        return sizes_failed(world_sizes(w)) ? -1 : 2;
    PyObject *plain = door_open(w, size);
    long value = plain ? PyLong_AsLong(plain) : -1;
    return PyErr_Occurred() ? -1 : value > 1 ? 2 : (int)value;
}

// Whether all dimensions, or the one at `at`, have more than one element; -1: an exception.
static int has_fixed_strides(world *w, PyObject *sizes, PyObject *at) {
    Py_ssize_t dims = PyTuple_GET_SIZE(sizes), only = at ? PyNumber_AsSsize_t(at, NULL) : 0;
    if (at && only == -1 && PyErr_Occurred())
        return -1;
    only = only < 0 ? only + dims : only;
    bool fixed = true, empty = false;
    for (Py_ssize_t i = 0; i < dims; i++) {
        int size = how_many(w, PyTuple_GET_ITEM(sizes, i));
        if (size < 0)
            return -1;
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

static bool has_odd_strides(const world *w, PyObject *self) {
    const torch_trace *t = w->torch;
    return t && (t->odd_strides || w->scope->gradient) && is_tensor_standin(self) &&
           !is_as_it_came((standin *)self) && !is_made_of_sizes(((standin *)self)->node);
}

static PyObject *ask_itself(world *w, const call *c) {
    return world_break(w, REASON_TENSOR_VALUE, "%U of a tensor that a kernel laid out",
                       c->rule->extra);
}

// Where fakes do not know the strides, the tensor itself is asked, behind a break.
PyObject *call_laid_out(world *w, const call *c) {
    PyObject *self = door_open(w, c->args[0]);
    if (!self)
        return NULL;
    return has_odd_strides(w, self) ? ask_itself(w, c) : call_method(w, c);
}

// As a node `contiguous` is right in any case; what it gives is said to be another object.
PyObject *call_contiguous(world *w, const call *c) {
    return w->terms.whole || w->scope->gradient ? call_method(w, c) : call_laid_out(w, c);
}

static bool is_part(PyObject *key) {
    return PyLong_CheckExact(key) || PySlice_Check(key) || key == Py_None || key == Py_Ellipsis;
}

// Whether x[key] shows a part of x in place: tensors and lists in a key take elements out.
static bool is_place(PyObject *key) {
    if (!PyTuple_CheckExact(key))
        return is_part(key);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
        if (!is_part(PyTuple_GET_ITEM(key, i)))
            return false;
    return true;
}

// The tensor of which `n` shows another shape; NULL if `n` is something else than such a view.
static const node *viewed_by(const node *n) {
    bool calls = n->op == NODE_CALL_METHOD || n->op == NODE_CALL_FUNCTION;
    if (!calls || PySet_Contains(glue_function("views"), n->target) != 1)
        return NULL;
    if (n->target == glue_function("getitem") && !is_place(PyTuple_GET_ITEM(n->args, 1)))
        return NULL;
    PyObject *of = PyTuple_GET_SIZE(n->args) ? PyTuple_GET_ITEM(n->args, 0) : NULL;
    return of && is_node(of) ? (const node *)of : NULL;
}

// Views are made by arithmetic on sizes and strides, of which no kernel is asked.
static bool is_seen_otherwise(const standin *s) {
    const node *n = s->node, *of;
    while ((of = viewed_by(n)))
        n = of;
    bool input = n->op == NODE_PLACEHOLDER && n->scope == 0; // not one of a body's
    return n != s->node && (input || is_made_of_sizes(n));
}

// A kernel may give a dimension of one element any stride, and torch's fakes and our rules do not
// always say which. The tensor itself is asked, behind a break.
PyObject *call_stride(world *w, const call *c) {
    PyObject *self = door_open(w, c->args[0]);
    if (!self || !is_tensor_standin(self) || is_as_it_came((standin *)self) ||
        is_made_of_sizes(((standin *)self)->node) || is_seen_otherwise((standin *)self))
        return self ? call_method(w, c) : NULL;
    if (has_odd_strides(w, self))
        return ask_itself(w, c);
    PyObject *dim = c->given > 1 ? c->args[1] : handler_keyword(c, "dim");
    PyObject *at = dim ? plain_value(w, dim) : NULL;
    PyObject *name = at || !dim ? PyUnicode_InternFromString("shape") : NULL;
    PyObject *sizes = name ? attr_of_standin(w, self, name) : NULL;
    int fixed = sizes ? has_fixed_strides(w, sizes, at == Py_None ? NULL : at) : -1;
    Py_XDECREF(at);
    Py_XDECREF(name);
    Py_XDECREF(sizes);
    if (fixed < 0)
        return NULL;
    return fixed ? call_method(w, c)
                 : world_break(w, REASON_TENSOR_VALUE, "the stride of a dimension of one element");
}

PyObject *call_iterate(world *w, const call *c) {
    PyObject *self = door_open(w, c->args[0]);
    if (self && is_tensor_standin(self))
        return operator_iterate(w, self);
    return PyErr_Occurred() ? NULL
                            : world_break(w, REASON_TENSOR_OPERATION, "Tensor.__iter__ of another");
}

// As in Dynamo a parameter counts as looked at from here on, which decides the order of inputs.
PyObject *call_module_get(world *w, const call *c) {
    if (!record_of(w, c->callable))
        return world_break(w, REASON_UNKNOWN_FUNCTION, "Module.__getattr__");
    call interpreted = call_again(c, c->callable);
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
PyObject *call_other(world *w, PyObject *function, const call *c) {
    if (!w->run) // nobody to interpret it
        return world_break(w, REASON_TENSOR_OPERATION, "%S", function);
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, function, 0);
    call instead = *c;
    instead.callable = s ? door_bring(w, s, function) : NULL;
    return instead.callable ? call_any(w, &instead) : NULL;
}

PyObject *call_instead(world *w, const call *c) {
    return call_other(w, c->rule->extra, c);
}

// Where each operation is run by itself, the backward is autograd's, as in plain Python.
PyObject *call_looking(world *w, const call *c) {
    PyObject *ways = c->rule->extra, *class = c->given ? door_open(w, c->args[0]) : NULL;
    if (class && mark_allows(w, class))
        return trace_of(w) ? function_allowed(w, c) : NULL;
    if (w->stop.broken || !trace_of(w) || levels_forbid(w, "an autograd.Function") != ST_OK)
        return NULL;
    if (!w->terms.replayed && PyTuple_GET_SIZE(ways) > 2)
        return higher_apply(w, c, PyTuple_GET_ITEM(ways, 2));
    if (function_look(w) != ST_OK)
        return NULL;
    return call_other(w, PyTuple_GET_ITEM(ways, !w->terms.replayed), c);
}

PyObject *call_scaled(world *w, const call *c) {
    PyObject *name = PyTuple_GET_ITEM(c->rule->extra, 0);
    PyObject *value = handler_keyword(c, "value");
    if (value && stands_for_tensor(value))
        return call_other(w, PyTuple_GET_ITEM(c->rule->extra, 1), c);
    if (name == Py_None)
        return record_call(w, NODE_CALL_FUNCTION, c->callable, c);
    return record_call(w, NODE_CALL_METHOD, name, c);
}

PyObject *call_scaled_lists(world *w, const call *c) {
    PyObject *scalars = c->given > 3 ? c->args[3] : handler_keyword(c, "scalars");
    if (scalars && stands_for_tensor(scalars))
        return call_other(w, c->rule->extra, c);
    return record_call(w, NODE_CALL_FUNCTION, c->callable, c);
}

// What to say is a text, or (reason, text) where the kind's usual reason says too little.
static PyObject *refuse(world *w, const call *c, reason usual) {
    PyObject *said = c->rule->extra;
    if (!PyTuple_Check(said))
        return world_break(w, usual, "%S", said);
    const char *id = PyUnicode_AsUTF8(PyTuple_GET_ITEM(said, 0));
    reason why = id ? reason_by_id(id) : REASON_COUNT;
    return world_break(w, why < REASON_COUNT ? why : usual, "%S", PyTuple_GET_ITEM(said, 1));
}

// The callable gets the row that its schema says, for good.
PyObject *call_by_schema(world *w, const call *c) {
    PyObject *callable = c->rule->object;
    quiet q;
    quiet_begin(&q);
    PyObject *said =
        PyObject_CallFunctionObjArgs(glue_function("by_schema"), callable, c->rule->extra, NULL);
    quiet_end(&q);
    int failed = said ? add_row(callable, c->rule->path, said) : -1;
    Py_XDECREF(said);
    if (failed < 0)
        return NULL;
    call again = *c;
    again.rule = rule_of(callable);
    return again.rule->behind(w, &again);
}

PyObject *call_derived(world *w, const call *c) {
    if (w->terms.gradients)
        return gradients_begin(w, c);
    return hook_derive(w, c) == ST_OK ? refuse(w, c, REASON_BACKWARD) : NULL;
}

PyObject *call_backward(world *w, const call *c) {
    return w->terms.gradients ? gradients_begin(w, c) : refuse(w, c, REASON_BACKWARD);
}

PyObject *call_value(world *w, const call *c) {
    return refuse(w, c, REASON_TENSOR_VALUE);
}

PyObject *call_refused(world *w, const call *c) {
    return refuse(w, c, REASON_TENSOR_OPERATION);
}

PyObject *call_state(world *w, const call *c) {
    return refuse(w, c, REASON_TORCH_STATE);
}

// --- lazy modules ---

// Whether the module may be initialised before all that the trace has recorded: nobody notices, unless
// that draws random numbers, writes to the module, or asserts something.
static bool may_initialise(const world *w, PyObject *module) {
    const record *r = record_of(w, module);
    return r && r->outside == module && !world_holds_back(w, module, NULL) && !w->time.trial &&
           !w->facts.assumed && w->scope == w->graph &&
           !(w->graph->effects & (EFFECT_RANDOM | EFFECT_UNKNOWN)) &&
           !((torch_trace *)w->torch)->levels.all.count;
}

static PyObject *call_on_fakes(world *w, const call *c) {
    operands given = {0};
    PyObject *result = NULL;
    call rest = {.callable = c->callable, .args = c->args + 2, .given = c->given - 2};
    if (operands_of(w, &rest, &given) != ST_OK)
        return NULL;
    quiet q;
    quiet_begin(&q);
    PyObject *fakes = fakes_in(w, given.args);
    PyObject *module = PyTuple_Pack(2, door_open(w, c->args[0]), door_open(w, c->args[1]));
    PyObject *args = fakes && module ? PySequence_Concat(module, fakes) : NULL;
    if (args)
        result = PyObject_CallFunctionObjArgs(glue_function("initialise"), c->callable, args,
                                              w->terms.whole ? Py_True : Py_False, NULL);
    quiet_end(&q);
    operands_clear(&given);
    Py_XDECREF(fakes);
    Py_XDECREF(module);
    Py_XDECREF(args);
    return result;
}

// A module of torch's own needs no more of its arguments than their sizes; others are tried under
// `fullgraph`. It is initialised now, once and for all, as plain Python does in this call.
PyObject *call_initialise(world *w, const call *c) {
    PyObject *self = door_open(w, c->args[0]), *module = self ? door_open(w, c->args[1]) : NULL;
    if (!module || !trace_of(w))
        return NULL;
    if (!may_initialise(w, module))
        return refuse(w, c, REASON_TORCH_STATE);
    PyObject *done = call_on_fakes(w, c);
    bool initialised = done == Py_True;
    Py_XDECREF(done);
    if (!done && (w->stop.broken || !PyErr_Occurred() || error_stays(w)))
        return NULL;
    PyErr_Clear();
    if (!initialised)
        return refuse(w, c, REASON_TORCH_STATE);
    w->stop.outdated = true;
    return world_break(w, REASON_TORCH_STATE, "a lazy module, which is initialised now");
}

// --- rows that the glue does not give ---

// What a function of the glue says of an operation: 1, 0, -1.
static int ask_of(PyObject *operation, const char *function) {
    quiet q;
    quiet_begin(&q);
    PyObject *answer = PyObject_CallOneArg(glue_function(function), operation);
    quiet_end(&q);
    Py_XDECREF(answer);
    return answer ? answer == Py_True : -1;
}

static PyObject *call_unseen(world *w, const call *c, bool known, bool faked) {
    if (!known && levels_forbid(w, "Python code behind an operation") != ST_OK)
        return NULL;
    if (!known && random_is_drawn(w)) // the code may draw, too, and would do so before
        return world_break(w, REASON_RANDOM_STATE, "and calls Python code behind an operation");
    if (!known && body_enters(w, c->callable, faked) != ST_OK)
        return NULL;
    ((torch_trace *)w->torch)->pending = known ? 0 : EFFECT_UNKNOWN;
    return record_call(w, NODE_CALL_FUNCTION, c->callable, c);
}

// An operation of torch.ops, an instance of a Python class.
static PyObject *call_overload(world *w, const call *c) {
    PyObject *answer;
    if (overrides_answer(w, c, &answer))
        return answer;
    int known = trace_of(w) ? ask_of(c->callable, "is_known") : -1;
    int refused = known == 0 ? ask_of(c->callable, "is_refused") : 0;
    if (refused > 0)
        return world_break(w, REASON_DISALLOWED, "%S, which has no tag pt2_compliant_tag",
                           c->callable);
    return known < 0 || refused < 0 ? NULL : call_unseen(w, c, known, false);
}

// What a user wants in the graph.
static PyObject *call_allowed(world *w, const call *c) {
    int apart = trace_of(w) ? nonstrict_takes(w, c) : -1;
    if (apart != 0)
        return apart > 0 ? nonstrict_begin(w, c) : NULL;
    return call_unseen(w, c, false, true);
}

// int(x), float(x), …: the method of that name, which knows the values of constants.
static bool is_of_tensor(world *w, const call *c) {
    (void)w;
    return c->given == 1 && !c->keywords && stands_for_tensor(c->args[0]);
}

// The number that the graph knows, as the type makes it.
static PyObject *number_of_value(world *w, const call *c) {
    PyObject *tensor = door_open(w, c->args[0]);
    PyObject *value = tensor ? value_of_tensor(w, tensor) : NULL, *result = NULL;
    int done = value ? number_unary(w, c->rule->numbers->op, value, &result) : -1;
    if (done == 0) // of a constant tensor
        result = is_lazy(value) ? NULL : PyObject_CallOneArg(c->callable, value);
    if (done == 0 && !result && !PyErr_Occurred())
        world_break(w, REASON_ITEM, "%s() of a tensor", c->rule->path);
    Py_XDECREF(value);
    return result;
}

static PyObject *call_number(world *w, const call *c) {
    PyObject *answer;
    if (overrides_answer(w, c, &answer))
        return answer;
    if (w->terms.captures & CAPTURE_SCALARS && c->rule->numbers)
        return number_of_value(w, c);
    call method = *c;
    method.callable = PyObject_GetAttr((PyObject *)facts.base, c->rule->extra);
    PyObject *result =
        method.callable ? record_call(w, NODE_CALL_METHOD, c->rule->extra, &method) : NULL;
    Py_XDECREF(method.callable);
    return result;
}

static status add_number(rule *row, PyTypeObject *type, const char *method) {
    *row = (rule){.path = type->tp_name,
                  .kind = RULE_HANDLED,
                  .handler = call_number,
                  .takes = ARGS(1, 1),
                  .writes = W_NONE,
                  .applies = is_of_tensor,
                  .otherwise = rule_of((PyObject *)type),
                  .extra = PyUnicode_InternFromString(method)};
    row->numbers = row->otherwise ? row->otherwise->numbers : NULL;
    return row->extra ? rules_add((PyObject *)type, row) : ST_ERROR;
}

static int add_others(void) {
    static rule numbers[4];
    static const rule overload = {.path = "torch.ops",
                                  .kind = RULE_HANDLED,
                                  .handler = call_overload,
                                  .takes = ANY,
                                  .writes = W_HANDLER,
                                  .weak = true};
    static const rule allowed = {.path = "allow_in_graph",
                                 .kind = RULE_HANDLED,
                                 .handler = call_allowed,
                                 .takes = ANY,
                                 .writes = W_HANDLER,
                                 .weak = true};
    static const rule made = {.path = "a class of tensors",
                              .kind = RULE_HANDLED,
                              .handler = composite_make,
                              .takes = ANY,
                              .writes = W_HANDLER};
    static const rule nonstrict = {.path = "nonstrict_trace",
                                   .kind = RULE_HANDLED,
                                   .handler = nonstrict_begin,
                                   .takes = ANY,
                                   .writes = W_HANDLER,
                                   .weak = true};
    mark_allow_by(&allowed, &nonstrict);
    mark_make_by(&made, is_composite_class);
    bool added = rules_add_instances(facts.overload, &overload) == ST_OK &&
                 rules_add_instances(facts.packet, &overload) == ST_OK &&
                 add_number(&numbers[0], &PyLong_Type, "__int__") == ST_OK &&
                 add_number(&numbers[1], &PyFloat_Type, "__float__") == ST_OK &&
                 add_number(&numbers[2], &PyBool_Type, "__bool__") == ST_OK &&
                 add_number(&numbers[3], &PyComplex_Type, "__complex__") == ST_OK;
    return added ? 0 : -1;
}
