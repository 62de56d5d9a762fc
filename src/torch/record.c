// Turns a call of torch into a node. The result becomes stand-ins: by a rule, or by running the call
// on fakes.
#include "src/py/raised.h"
#include "src/py/signals.h"

#include "src/interp/run.h"
#include "src/call/handlers.h"

#include "src/torch/levels.h"
#include "src/torch/overrides.h"

void quiet_begin(quiet *q) {
    q->held = py_hold_signals();
    q->world = world_here;
    if (q->world)
        q->world->inside.quiet++;
    settings_on();
}

void quiet_end(quiet *q) {
    settings_off();
    if (q->world)
        q->world->inside.quiet--;
    py_let_signals_go(q->held);
}

// A call on its way into the graph.
typedef struct entering {
    node_op op;
    PyObject *target, *callable; // borrowed
    operands given;
} entering;

// --- running on fakes ---

static PyObject *callable_name(PyObject *callable) {
    if (PyUnicode_Check(callable))
        return PyUnicode_FromFormat("Tensor.%U", callable);
    PyObject *name = graph_target_word(callable, "__name__");
    return name || PyErr_Occurred() ? name : callable_text(callable);
}

// What an exception was made with, if that is one str: __str__ may be the user's. New reference, or
// NULL.
static PyObject *message_of(PyObject *exception) {
    PyObject *args = ((PyBaseExceptionObject *)exception)->args;
    bool one = args && PyTuple_GET_SIZE(args) == 1;
    PyObject *text = one ? PyTuple_GET_ITEM(args, 0) : NULL;
    return text && PyUnicode_CheckExact(text) ? Py_NewRef(text) : NULL;
}

// The first line of an exception's text, or what stands for it.
static PyObject *first_line(PyObject *exception) {
    PyObject *text = message_of(exception);
    PyObject *lines = text ? PyUnicode_Splitlines(text, 0) : NULL;
    PyObject *first = lines && PyList_GET_SIZE(lines) > 0 ? PyList_GET_ITEM(lines, 0) : NULL;
    PyObject *result =
        PyUnicode_FromFormat("%s%s%V", Py_TYPE(exception)->tp_name, first ? ": " : "", first, "");
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(lines);
    return result;
}

bool error_stays(world *w) {
    if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) &&
        !PyErr_ExceptionMatches(PyExc_MemoryError) && !PyErr_ExceptionMatches(PyExc_SystemExit))
        return false;
    w->stop.interrupted = true;
    return true;
}

// What an operation that depends on values wants with them: those of no shape give a number.
static reason value_reason(PyObject *target) {
    static const char *const numbers[] = {"item",      "__int__",     "__float__",
                                          "__index__", "__complex__", "_local_scalar_dense"};
    if (!PyErr_ExceptionMatches(PyTuple_GET_ITEM(facts.data_dependent, 0)))
        return REASON_DATA_SHAPE;
    for (size_t i = 0; PyUnicode_Check(target) && i < Py_ARRAY_LENGTH(numbers); i++)
        if (PyUnicode_CompareWithASCIIString(target, numbers[i]) == 0)
            return REASON_ITEM;
    bool truth = PyUnicode_Check(target) && !PyUnicode_CompareWithASCIIString(target, "__bool__");
    return truth ? REASON_TENSOR_TRUTH : REASON_TENSOR_VALUE;
}

// Of errors that fakes alone make, eager knows nothing.
static reason fake_reason(void) {
    const char *name = ((PyTypeObject *)PyErr_Occurred())->tp_name;
    bool fakes = strncmp(name, "Unsupported", strlen("Unsupported")) == 0;
    return fakes || PyErr_ExceptionMatches(PyExc_TypeError) ||
                   PyErr_ExceptionMatches(PyExc_NotImplementedError)
               ? REASON_TENSOR_OPERATION
               : REASON_TENSOR_ERROR;
}

int flag_of(PyObject *o, const char *name) {
    PyObject *flag = PyObject_GetAttrString(o, name);
    Py_XDECREF(flag);
    return flag ? flag == Py_True : -1;
}

// Torch's complaint about a call on fakes: eager would complain as well, or it cannot be known
// here. Or the glue's, that a hook belongs to what the tensor was before.
void fake_failed(world *w, PyObject *target) {
    if (error_stays(w))
        return;
    reason why =
        PyErr_ExceptionMatches(facts.data_dependent) ? value_reason(target) : fake_reason();
    w->stop.refused = PyErr_ExceptionMatches(PyExc_TypeError);
    PyObject *exception = py_take_raised();
    PyObject *name = callable_name(target), *line = first_line(exception);
    PyErr_Clear();
    const torch_trace *t = w->torch;
    if (t->mode && flag_of(t->mode, "stator_overwrites") > 0)
        why = REASON_HOOK;
    PyErr_Clear();
    world_break(w, why, "%V: %V", name, "?", line, "?");
    Py_XDECREF(name);
    Py_XDECREF(line);
    Py_DECREF(exception);
}

PyObject *run_fakes(world *w, torch_trace *t, PyObject *callable, PyObject *args,
                    PyObject *kwargs) {
    if (fakes_mode(w, t) != ST_OK)
        return NULL;
    PyObject *all[] = {t->mode, callable, args, kwargs ? kwargs : Py_None};
    return PyObject_Vectorcall(glue_function("run"), all, 4, NULL);
}

static PyObject *run_operands(world *w, torch_trace *t, PyObject *callable, const operands *r) {
    PyObject *args = fakes_in(w, r->args), *result = NULL;
    PyObject *kwargs = args && r->kwargs ? fakes_in(w, r->kwargs) : NULL;
    if (args && (kwargs || !r->kwargs))
        result = run_fakes(w, t, callable, args, kwargs);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return result;
}

// --- results ---

typedef enum shape {
    SHAPE_PLAIN,   // numbers, sizes, dtypes: no node
    SHAPE_TENSORS, // a tensor somewhere
    SHAPE_UNKNOWN,
} shape;

static bool is_fake(PyObject *o) {
    const torch_trace *t = world_here ? world_here->torch : NULL;
    return PyObject_TypeCheck(o, facts.fake) || is_wrapper(o) || is_composite_of_fakes(t, o);
}

static shape shape_of(PyObject *result) {
    if (is_fake(result))
        return SHAPE_TENSORS;
    if (is_plain_value(result) && !PyUnicode_Check(result))
        return SHAPE_PLAIN;
    if (!PyTuple_Check(result) && !PyList_CheckExact(result))
        return SHAPE_UNKNOWN;
    shape whole = SHAPE_PLAIN;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); i++) {
        shape s = shape_of(PySequence_Fast_GET_ITEM(result, i));
        whole = s > whole ? s : whole;
    }
    return whole;
}

static PyObject *wrap(world *w, PyObject *value, node *n);

node *record_item(world *w, node *whole, Py_ssize_t i, PyObject *example) {
    PyObject *index = PyLong_FromSsize_t(i);
    PyObject *args = index ? PyTuple_Pack(2, whole, index) : NULL;
    node *get = args ? graph_call(w->scope, NODE_CALL_FUNCTION, facts.getitem, args, NULL, example,
                                  whole->stack)
                     : NULL;
    if (get)
        Py_SETREF(get->modules, Py_NewRef(whole->modules));
    if (get && fakes_note(w, get, facts.getitem, false) != ST_OK)
        Py_CLEAR(get);
    Py_XDECREF(index);
    Py_XDECREF(args);
    return get;
}

static PyObject *wrap_item(world *w, PyObject *sequence, Py_ssize_t i, node *n) {
    PyObject *item = PySequence_Fast_GET_ITEM(sequence, i);
    if (shape_of(item) == SHAPE_PLAIN)
        return Py_NewRef(item);
    node *get = record_item(w, n, i, item);
    PyObject *result = get ? wrap(w, item, get) : NULL;
    Py_XDECREF(get);
    return result;
}

static PyObject *wrap_sequence(world *w, PyObject *sequence, node *n) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
    PyObject *items = PyTuple_New(count), *result = NULL;
    for (Py_ssize_t i = 0; items && i < count; i++) {
        PyObject *item = wrap_item(w, sequence, i, n);
        if (item)
            PyTuple_SET_ITEM(items, i, item);
        else
            Py_CLEAR(items);
    }
    if (items && PyTuple_CheckExact(sequence))
        return items;
    if (items && PyList_CheckExact(sequence))
        result = PySequence_List(items);
    else if (items) // torch.return_types
        result = PyObject_CallOneArg((PyObject *)Py_TYPE(sequence), items);
    Py_XDECREF(items);
    return result;
}

static PyObject *wrap(world *w, PyObject *value, node *n) {
    if (is_fake(value)) {
        if (((torch_trace *)w->torch)->late) // nobody asks later
            meta_of_fake(value, &n->meta);
        return standin_for(w, value, n);
    }
    if (is_plain_value(value))
        return Py_NewRef(value);
    return wrap_sequence(w, value, n);
}

// Where native code is on its way, a break would have to be before it: by then something may have
// lived that is gone.
static bool is_within_native(const world *w) {
    for (const run *r = w->run; r && r->below; r = r->below)
        if (r->result <= RUN_OPERATOR)
            return true;
    return false;
}

// Whether it is time to look what the program still has: before each call, unless it has so much
// that looking would take longer than tracing.
static bool is_time_to_sweep(const torch_trace *t, int calls) {
    enum { QUICK = 64 };
    return calls % (1 + (int)(t->living.count / QUICK)) == 0;
}

// A compiled graph would lose the gradient of such a tensor: see leaves.c.
static status note_leaf(world *w, PyObject *kwargs) {
    if (w->terms.replayed || !kwargs || !leaf_is_made(kwargs))
        return ST_OK;
    if (w->scope != w->graph || !w->run)
        return world_break_status(w, REASON_TENSOR_OPERATION,
                                  "a body makes a tensor that requires a gradient");
    leaf_note(w);
    return ST_OK;
}

// `stack` NULL: the node has none.
static node *add_at(world *w, node_op op, PyObject *target, PyObject *args, PyObject *kwargs,
                    PyObject *example, PyObject *stack) {
    torch_trace *t = w->torch;
    if (effects_stop(w) || note_leaf(w, kwargs) != ST_OK)
        return NULL;
    if (is_time_to_sweep(t, w->scope->calls) && !is_within_native(w))
        standins_sweep(t, w->graph->calls);
    world_touch(w);
    node *n = graph_call(w->scope, op, target, args, kwargs, example, stack);
    if (n) {
        n->effects = t->pending;
        w->scope->effects |= t->pending;
        t->lasting = t->pending & EFFECTS_LASTING ? w->time.now : t->lasting;
        t->inference_effects |= w->scope == t->inference_scope ? t->pending : 0;
        t->levels.effects |= t->pending;
    }
    t->pending = 0;
    if (n && record_modules(w, n) != ST_OK)
        Py_CLEAR(n);
    return n;
}

static node *add_call(world *w, node_op op, PyObject *target, PyObject *args, PyObject *kwargs,
                      PyObject *example) {
    PyObject *stack = world_trail(w);
    node *n = stack ? add_at(w, op, target, args, kwargs, example, stack) : NULL;
    Py_XDECREF(stack);
    return n;
}

static node *new_call(world *w, node_op op, PyObject *target, PyObject *args, PyObject *kwargs,
                      PyObject *example) {
    return effects_forbid_failure(w) ? NULL : add_call(w, op, target, args, kwargs, example);
}

static PyObject *finish(world *w, const entering *c, PyObject *result) {
    shape s = shape_of(result);
    if (s == SHAPE_UNKNOWN) {
        PyObject *name = callable_name(c->target);
        world_break(w, REASON_TENSOR_OPERATION, "%V gives a %s", name, "?",
                    Py_TYPE(result)->tp_name);
        Py_XDECREF(name);
        return NULL;
    }
    if (s == SHAPE_PLAIN && result != Py_None)
        return fixed_value(w, result);
    node *n = new_call(w, c->op, c->target, c->given.args, c->given.kwargs, result);
    if (n && fakes_note(w, n, c->callable, false) != ST_OK)
        Py_CLEAR(n);
    PyObject *wrapped = n ? wrap(w, result, n) : NULL;
    Py_XDECREF(n);
    return wrapped;
}

static const char *name_of(PyObject *callable) {
    if (PyCFunction_Check(callable))
        return ((PyCFunctionObject *)callable)->m_ml->ml_name;
    if (Py_TYPE(callable) == &PyMethodDescr_Type)
        return ((PyMethodDescrObject *)callable)->d_method->ml_name;
    return "";
}

// A view of other sizes depends on sizes and strides alone; one of another dtype on more.
static bool is_reshaping(PyObject *args, PyObject *kwargs) {
    return !kwargs && PyTuple_GET_SIZE(args) > 1 &&
           Py_TYPE(PyTuple_GET_ITEM(args, 1)) != facts.dtype;
}

// Whether it shows how a tensor lies in its storage, of which a view's fake knows nothing.
static bool asks_for_memory(const entering *c) {
    const char *name = name_of(c->callable);
    if (strcmp(name, "view") == 0)
        return !is_reshaping(c->given.args, c->given.kwargs);
    return strcmp(name, "view_as_complex") == 0 ||
           strncmp(name, "as_strided", strlen("as_strided")) == 0;
}

// --- by rule ---

int32_t default_dtype(void) {
    PyObject *dtype = PyObject_CallNoArgs(facts.get_default_dtype);
    int32_t found = dtype ? rule_dtype(dtype) : -1;
    Py_XDECREF(dtype);
    PyErr_Clear();
    return found;
}

static bool fused_attention(void) {
    PyObject *enabled = PyObject_CallNoArgs(facts.get_flash_enabled);
    bool answer = enabled == Py_True;
    Py_XDECREF(enabled);
    PyErr_Clear();
    return answer;
}

static node *add_by_rule(world *w, const entering *c, const meta *m) {
    node *n = new_call(w, c->op, c->target, c->given.args, c->given.kwargs, NULL);
    if (n && m)
        n->meta = *m;
    if (n && fakes_note(w, n, c->callable, true) != ST_OK)
        Py_CLEAR(n);
    return n;
}

static PyObject *new_by_rule(world *w, const entering *c, const meta *m) {
    node *n = add_by_rule(w, c, m);
    PyObject *result = n ? standin_new(w, n, facts.tensor) : NULL;
    if (result)
        memory_own((standin *)result);
    Py_XDECREF(n);
    return result;
}

// The argument itself comes back.
static PyObject *same_by_rule(world *w, const entering *c, node *argument) {
    node *n = add_by_rule(w, c, &argument->meta);
    PyObject *result = n ? standin_again(w, argument, n) : NULL;
    Py_XDECREF(n);
    return result;
}

// An item of a call's results: a new tensor, or the `argument` itself if there is one.
static PyObject *item_by_rule(world *w, node *whole, Py_ssize_t i, const meta *m, node *argument) {
    PyObject *index = PyLong_FromSsize_t(i), *args = index ? PyTuple_Pack(2, whole, index) : NULL;
    entering c = {NODE_CALL_FUNCTION, facts.getitem, facts.getitem, {args, NULL}};
    PyObject *result = NULL;
    if (args)
        result = argument ? same_by_rule(w, &c, argument) : new_by_rule(w, &c, m);
    Py_XDECREF(index);
    Py_XDECREF(args);
    return result;
}

static PyObject *none_by_rule(world *w, const entering *c) {
    node *n = add_by_rule(w, c, NULL);
    Py_XDECREF(n);
    return n ? Py_NewRef(Py_None) : NULL;
}

static PyObject *tuple_by_rule(world *w, const entering *c, const meta_call *m) {
    node *whole = add_by_rule(w, c, NULL);
    PyObject *items = whole ? PyTuple_New(m->count) : NULL;
    for (int i = 0; items && i < m->count; i++) {
        const meta *one = &m->results[i];
        PyObject *item = one->dims < 0 ? Py_NewRef(Py_None) : item_by_rule(w, whole, i, one, NULL);
        if (item)
            PyTuple_SET_ITEM(items, i, item);
        else
            Py_CLEAR(items);
    }
    Py_XDECREF(whole);
    return items;
}

// Notes whose memory the results lie in.
static void note_memory(world *w, const meta_call *m, PyObject *result) {
    bool tuple = result && PyTuple_Check(result);
    if (!result || m->memory == META_OWN)
        return;
    for (Py_ssize_t i = 0; i < (tuple ? PyTuple_GET_SIZE(result) : 1); i++)
        memory_share(w->torch, (standin *)(tuple ? PyTuple_GET_ITEM(result, i) : result),
                     (node *)m->args[0], m->memory == META_VIEW);
}

static meta_way way_of(const entering *c) {
    if (c->op == NODE_CALL_METHOD)
        return META_METHOD;
    bool operators = PyCFunction_Check(c->callable) &&
                     PyCFunction_GET_SELF(c->callable) == PyCFunction_GET_SELF(facts.getitem);
    return operators ? META_OPERATOR : META_FUNCTION;
}

// Where no result is a view, a new tensor requires a gradient only if it is made as a leaf.
static void need_no_grad(meta_call *m, PyObject *kwargs) {
    for (int i = 0; i < m->count && !(kwargs && leaf_is_made(kwargs)); i++)
        m->results[i].requires_grad = false;
}

// What the rule of a callable says of its result; unknown if there is no rule.
static meta_answer infer(sizes *known, const entering *c, meta_call *m) {
    uint64_t *rule = map_get(&facts.rules, map_key(c->callable));
    const meta_rule *r = rule ? (const meta_rule *)(uintptr_t)*rule : NULL;
    if (!r || !(state_has_rules() || meta_is_without_casts(r)))
        return META_UNKNOWN;
    meta_context context = {way_of(c),     state_records_gradients(),
                            default_dtype, rule_dtype,
                            rule_device,   fused_attention};
    meta_answer answer = meta_infer(r, &context, known, c->given.args, c->given.kwargs, m);
    if ((answer == META_TENSOR || answer == META_TENSORS) && !state_has_views())
        need_no_grad(m, c->given.kwargs);
    for (int i = 0; i < m->count; i++)
        if (!device_object(&m->results[i])) // of which no tensor was seen yet
            return META_UNKNOWN;
    return answer;
}

meta_answer record_ask(sizes *known, PyObject *callable, PyObject *args, PyObject *kwargs,
                       meta_call *m) {
    bool method = Py_TYPE(callable) == &PyMethodDescr_Type;
    entering c = {
        method ? NODE_CALL_METHOD : NODE_CALL_FUNCTION, callable, callable, {args, kwargs}};
    return infer(known, &c, m);
}

// --- writes by rule ---

// Whether an argument that a rule says is written to requires a gradient afterwards.
static bool needs_grad_after(const meta_call *m, int i) {
    bool result = i == 0 && m->count == 1 && m->written & 1;
    return (result ? &m->results[0] : &((node *)m->args[i])->meta)->requires_grad;
}

// A write may change no history that views would see (docs/torch.md, Writes).
static bool may_write(const torch_trace *t, const meta_call *m, int i) {
    const node *n = (node *)m->args[i];
    memory_kind least = n->meta.requires_grad ? MEMORY_FAMILY : MEMORY_ALONE;
    return !state_records_gradients() || !needs_grad_after(m, i) || memory_of(t, n) >= least;
}

static bool may_write_all(const torch_trace *t, const meta_call *m) {
    for (int i = 0; i < META_MOST_ARGS; i++)
        if (m->written & 1U << i && !may_write(t, m, i))
            return false;
    return true;
}

static int write_all(torch_trace *t, const meta_call *m) {
    int effects = 0;
    for (int i = 0; i < META_MOST_ARGS; i++) {
        if (!(m->written & 1U << i))
            continue;
        effects |= memory_write(t, (node *)m->args[i]);
        if (needs_grad_after(m, i))
            memory_needs_grad(t, (node *)m->args[i]);
    }
    return effects;
}

// What a rule says of a call, if the call may be recorded without torch's word.
static meta_answer answer_of(const world *w, const entering *c, meta_call *m) {
    sizes *known = w->graph->sizes;
    sizes_mark mark = known ? sizes_now(known) : (sizes_mark){0};
    meta_answer answer = infer(known, c, m);
    if (answer == META_UNKNOWN || may_write_all(w->torch, m))
        return answer;
    if (known)
        sizes_rollback(known, mark);
    return META_UNKNOWN;
}

// Whether a rule knows the answer, which then is in *result; NULL in it is an exception or a break.
static bool by_rule(world *w, const entering *c, PyObject **result) {
    meta_call m;
    sizes *known = w->graph->sizes;
    meta_answer answer = answer_of(w, c, &m);
    *result = NULL;
    if (known && sizes_failed(known))
        return true;
    if (answer != META_UNKNOWN && m.written)
        effects_add(w, write_all(w->torch, &m));
    switch (answer) {
    case META_UNKNOWN:
        return false;
    case META_TENSOR:
        effects_add(w, m.effects);
        *result = new_by_rule(w, c, &m.results[0]);
        note_memory(w, &m, *result);
        return true;
    case META_SAME:
        *result = same_by_rule(w, c, (node *)m.args[0]);
        return true;
    case META_TENSORS:
        *result = tuple_by_rule(w, c, &m);
        note_memory(w, &m, *result);
        return true;
    case META_NOTHING:
        *result = none_by_rule(w, c);
        return true;
    case META_SIZES:
        *result = sizes_object(w, m.results[0].sizes, m.results[0].dims);
        return true;
    case META_STRIDES:
        *result = strides_object(w, m.results[0].strides, m.results[0].dims);
        return true;
    case META_NUMBER:
        *result = number_object(w, number_of_size(m.number));
        return true;
    case META_TRUTH:
        *result = PyBool_FromLong(m.truth);
        return true;
    }
    Py_UNREACHABLE();
}

// --- by torch, for any sizes ---

// Items as what torch gives them in: a tuple, a list, one of torch.return_types.
static PyObject *items_in(PyObject *items, PyObject *whole) {
    if (!items || whole == (PyObject *)&PyTuple_Type)
        return items;
    PyObject *result = PyObject_CallOneArg(whole, items);
    Py_DECREF(items);
    return result;
}

static node *first_node(PyObject *args) {
    PyObject *first = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
    return first && Py_IS_TYPE(first, &node_type) ? (node *)first : NULL;
}

// Uses of the tensor refer to this node from now on: the one before has other sizes.
static bool by_reshaping(world *w, const entering *c, PyObject **result) {
    node *n = first_node(c->given.args);
    meta m;
    if (!n || !reshape_ask(w, c->target, &c->given, n, &m))
        return false;
    effects_add(w, memory_write(w->torch, n));
    node *made = add_by_rule(w, c, &m);
    *result = made ? standin_again(w, n, made) : NULL;
    if (*result)
        Py_CLEAR(((standin *)*result)->earlier);
    Py_XDECREF(made);
    return true;
}

// Whether the first argument was made of an input: its values are not known here. (Those of a tensor
// that was made of numbers may be.)
static bool is_of_input(PyObject *args) {
    const node *n = first_node(args);
    while (n && n->op != NODE_PLACEHOLDER)
        n = first_node(n->args);
    return n != NULL;
}

// Torch needs values. Known to be in vain, asking with plain sizes would only settle sizes.
static bool is_refused(world *w, const entering *c) {
    bool refused = PyErr_ExceptionMatches(facts.data_dependent) && is_of_input(c->given.args);
    if (refused)
        fake_failed(w, c->target);
    else if (PyErr_ExceptionMatches(facts.data_dependent))
        PyErr_Clear();
    return refused;
}

// Whose memory a new tensor lies in. Gives back the tensor, or NULL.
static PyObject *note_shared(world *w, const symbolic_result *r, PyObject *result) {
    standin *s = (standin *)result;
    if (s && !r->own)
        s->memory = NULL;
    if (s && r->base)
        memory_share(w->torch, s, r->base, r->plainly);
    return result;
}

static PyObject *item_by_symbols(world *w, node *whole, const symbolic *s, Py_ssize_t i) {
    symbolic_result r;
    if (!symbolic_take(w->torch, s, i, &r))
        return NULL;
    if (r.none)
        return Py_NewRef(Py_None);
    PyObject *item = item_by_rule(w, whole, i, &r.meta, r.same);
    return r.same ? item : note_shared(w, &r, item);
}

static PyObject *tuple_by_symbols(world *w, const entering *c, const symbolic *s) {
    Py_ssize_t count = PyList_GET_SIZE(s->results);
    node *whole = add_by_rule(w, c, NULL);
    PyObject *items = whole ? PyTuple_New(count) : NULL;
    for (Py_ssize_t i = 0; items && i < count; i++) {
        PyObject *item = item_by_symbols(w, whole, s, i);
        if (item)
            PyTuple_SET_ITEM(items, i, item);
        else
            Py_CLEAR(items);
    }
    Py_XDECREF(whole);
    return items_in(items, s->whole);
}

static PyObject *one_by_symbols(world *w, const entering *c, const symbolic *s) {
    symbolic_result r;
    if (!symbolic_take(w->torch, s, 0, &r))
        return NULL;
    if (r.same)
        return same_by_rule(w, c, r.same);
    return note_shared(w, &r, new_by_rule(w, c, &r.meta));
}

// What the call does to its arguments.
static void note_writes(world *w, const symbolic *s) {
    int effects = s->effects;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(s->written); i++) {
        PyObject *one = PyList_GET_ITEM(s->written, i);
        node *n = (node *)PyTuple_GET_ITEM(one, 0);
        effects |= memory_write(w->torch, n);
        if (PyTuple_GET_ITEM(one, 1) == Py_True)
            memory_needs_grad(w->torch, n);
    }
    effects_add(w, effects);
}

// Python's own underscore keeps clear of keywords.
static bool is_in_place(const char *name) {
    size_t length = strlen(name);
    return length > 1 && name[length - 1] == '_' && name[length - 2] != '_' &&
           strcmp(name, "and_") != 0 && strcmp(name, "or_") != 0 && strcmp(name, "not_") != 0;
}

static bool changes_argument(PyObject *callable, const operands *r) {
    return callable == facts.setitem || is_in_place(name_of(callable)) ||
           (r->kwargs && PyDict_GetItemString(r->kwargs, "out"));
}

static bool is_of_tensor_alone(const entering *c) {
    return first_node(c->given.args) && PyTuple_GET_SIZE(c->given.args) == 1 &&
           !(c->given.kwargs && PyDict_GET_SIZE(c->given.kwargs) > 0);
}

static status keep_value(torch_trace *t, const entering *c, number n) {
    known_value v = {c->callable, first_node(c->given.args), t->effects, n};
    return is_of_tensor_alone(c) ? vec_push(&t->values, v) : ST_OK;
}

// A number that the call gives: its node is the symbol's.
static PyObject *number_by_symbols(world *w, const entering *c, const symbolic *s) {
    node *n = add_by_rule(w, c, NULL);
    bool fine = n && number_of_node(w, n, s->fresh[0].symbol) == ST_OK &&
                keep_value(w->torch, c, s->number) == ST_OK;
    Py_XDECREF(n); // the graph's
    return fine ? number_object(w, s->number) : NULL;
}

// The same call of the same tensor gave a number before, and nothing was written since.
static bool by_value(world *w, const entering *c, PyObject **result) {
    const torch_trace *t = w->torch;
    for (uint32_t i = 0; is_of_tensor_alone(c) && i < t->values.count; i++) {
        const known_value *v = &t->values.items[i];
        if (v->callable != c->callable || v->of != first_node(c->given.args) ||
            v->effects != t->effects)
            continue;
        *result = number_again(w, v->value);
        return true;
    }
    return false;
}

// Notes where the sizes are found that only the graph knows.
static status note_fresh(torch_trace *t, const symbolic *s, PyObject *result) {
    for (int i = 0; i < s->fresh_count; i++) {
        bool whole = s->whole != Py_None;
        PyObject *of = whole ? PySequence_Fast_GET_ITEM(result, s->fresh[i].of) : result;
        unbacked_size u = {expr_place(s->fresh[i].symbol.e), ((standin *)of)->node,
                           s->fresh[i].dim};
        TRY(vec_push(&t->unbacked, u));
    }
    return ST_OK;
}

static PyObject *tensors_by_symbols(world *w, const entering *c, const symbolic *s) {
    PyObject *result = s->whole != Py_None                ? tuple_by_symbols(w, c, s)
                       : PyList_GET_SIZE(s->results) == 1 ? one_by_symbols(w, c, s)
                                                          : none_by_rule(w, c);
    if (result && note_fresh(w->torch, s, result) != ST_OK)
        Py_CLEAR(result);
    return result;
}

// Checks about the results come behind the call.
static PyObject *add_by_symbols(world *w, const entering *c, const symbolic *s) {
    note_writes(w, s);
    PyObject *result = s->is_number ? number_by_symbols(w, c, s) : tensors_by_symbols(w, c, s);
    for (uint32_t i = 0; result && i < s->checks.count; i++)
        if (record_check(w, s->checks.items[i]) != ST_OK)
            Py_CLEAR(result);
    return result;
}

// The same by torch's word for all sizes, where no rule knows the call.
static bool by_symbols(world *w, const entering *c, symbolic_why why, PyObject **result) {
    symbolic s;
    *result = NULL;
    if (asks_for_memory(c))
        return false;
    if (!symbolic_infer(w, c->callable, c->given.args, c->given.kwargs, why, &s))
        return w->stop.broken || (PyErr_Occurred() && (is_refused(w, c) || PyErr_Occurred()));
    if (!sizes_failed(w->graph->sizes))
        *result = add_by_symbols(w, c, &s);
    symbolic_clear(&s);
    return true;
}

// --- by torch ---

// Whether the tensor is a view, as autograd knows it; -1 if there is no such tensor.
static int is_known_view(world *w, node *n) {
    quiet q;
    quiet_begin(&q);
    PyObject *fake = fake_of(w, n);
    PyObject *flag = fake ? PyObject_CallMethod(fake, "_is_view", NULL) : NULL;
    quiet_end(&q);
    PyErr_Clear();
    Py_XDECREF(flag);
    return flag ? flag == Py_True : -1;
}

// The stand-in of the first view in a row of views that ends in this tensor; NULL if it is none, or
// one of an input that came as a view.
static standin *first_view(world *w, node *n) {
    const torch_trace *t = w->torch;
    standin *found = NULL;
    for (; n && n->op != NODE_PLACEHOLDER; n = first_node(n->args)) {
        uint64_t *owner = map_get(&t->owners, map_key(n));
        if (owner && is_known_view(w, n) <= 0)
            break;
        found = owner ? (standin *)(uintptr_t)*owner : found;
    }
    return found;
}

// Autograd refuses some writes because of how a view was made. A backend's results do not tell how
// they were made: so the trace breaks before the instruction that makes the view.
static void run_failed(world *w, const entering *c) {
    PyObject *exception = py_take_raised();
    node *n = w->terms.replayed ? NULL : first_node(c->given.args);
    standin *view = n ? first_view(w, n) : NULL;
    py_set_raised(exception);
    fake_failed(w, c->target);
    if (view && w->stop.broken && w->stop.reason == REASON_TENSOR_ERROR)
        world_break_earlier(w, view->since);
}

static PyObject *settle_and_run(world *w, torch_trace *t, const entering *c) {
    if (fakes_settle(w) != ST_OK)
        return NULL;
    PyObject *result = run_operands(w, t, c->callable, &c->given);
    if (!result && !w->stop.broken && PyErr_Occurred())
        run_failed(w, c);
    return result;
}

// What is neither a tensor nor nothing may be about a history that the fakes do not have yet.
static bool is_answer(PyObject *result) {
    return result != Py_None && shape_of(result) == SHAPE_PLAIN;
}

static status note_scalar(node *n, void *data) {
    *(bool *)data |= !n->is_number && n->meta.dims == 0;
    return ST_OK;
}

// Whether a tensor of one number is among the arguments behind the first: it may stand in the place
// of a number (`alpha=`).
static bool has_scalar(const entering *c) {
    bool found = false;
    status done = ST_OK;
    for (Py_ssize_t i = 1; done == ST_OK && i < PyTuple_GET_SIZE(c->given.args); i++)
        done = node_walk(PyTuple_GET_ITEM(c->given.args, i), note_scalar, &found);
    if (done == ST_OK && c->given.kwargs)
        done = node_walk(c->given.kwargs, note_scalar, &found);
    if (done != ST_OK)
        PyErr_Clear();
    return found;
}

// Without history, and then with it. Where torch wants the values of tensors, and the graph may have
// what depends on them, *by_values is the result. *writes: the call failed because it would write to
// a fake without history. NULL then, too.
static PyObject *run_late(world *w, torch_trace *t, const entering *c, bool *writes,
                          PyObject **by_values) {
    PyObject *result = run_operands(w, t, c->callable, &c->given);
    if (!result && (w->stop.broken || !PyErr_Occurred() || error_stays(w)))
        return NULL;
    if (!result && PyErr_ExceptionMatches(facts.data_dependent) &&
        (w->terms.captures || has_scalar(c))) {
        PyErr_Clear();
        if (by_symbols(w, c, SYMBOLIC_VALUES, by_values))
            return NULL;
    }
    if (!result && given_is_open(w->graph) && is_refused(w, c))
        return NULL;
    if (result && !is_answer(result))
        return result;
    *writes = !result && PyErr_ExceptionMatches(glue_function("Settle"));
    Py_XDECREF(result);
    PyErr_Clear();
    return *writes ? NULL : settle_and_run(w, t, c);
}

// Backends that compile a graph as a whole cannot give an input another number of elements, nor
// other sizes by `out=`.
static bool may_resize(world *w, const entering *c) {
    bool wrote = ((const torch_trace *)w->torch)->pending & EFFECT_OUTSIDE;
    bool out = c->given.kwargs && PyDict_GetItemString(c->given.kwargs, "out");
    if (w->terms.replayed || !wrote || !(out ? inputs_changed(w) : inputs_resized(w)))
        return true;
    PyObject *name = callable_name(c->target);
    world_break(w, REASON_TENSOR_OPERATION, "%V gives an input other sizes", name, "?");
    Py_XDECREF(name);
    return false;
}

// Whether its kernels may choose an order for the results by that of the operands.
static bool takes_images(const entering *c) {
    static const char *const parts[] = {"conv", "pool", "norm",    "upsample",
                                        "cat",  "pad",  "shuffle", "sampler"};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(parts); i++)
        if (strstr(name_of(c->callable), parts[i]))
            return true;
    return false;
}

static PyObject *by_torch(world *w, torch_trace *t, const entering *c) {
    bool writes = changes_argument(c->callable, &c->given);
    bool late = t->late && !writes && !asks_for_memory(c);
    PyObject *result = NULL;
    PyObject *fake = late ? run_late(w, t, c, &writes, &result) : NULL;
    if (!late || (writes && !by_symbols(w, c, SYMBOLIC_WRITES, &result)))
        fake = settle_and_run(w, t, c);
    if (fake && effects_note(w) == ST_OK && may_resize(w, c))
        result = finish(w, c, fake);
    if (result && takes_images(c) && fakes_note_order(w, &c->given) != ST_OK)
        Py_CLEAR(result);
    if (fake && result && t->late) {
        memory_may_share(t, c->given.args, c->given.kwargs);
        if (alike_note(w, fake, &c->given) != ST_OK)
            Py_CLEAR(result);
    }
    Py_XDECREF(fake);
    return result;
}

// Torch's word for a call like this one. Fakes do not tell for certain whose memory a result is in.
static bool by_likeness(world *w, const entering *c, PyObject **result) {
    const meta *known = alike_find(w, c->callable, &c->given);
    if (!known)
        return false;
    meta m = *known;
    *result = note_shared(w, &(symbolic_result){.own = false}, new_by_rule(w, c, &m));
    memory_may_share(w->torch, c->given.args, c->given.kwargs);
    return true;
}

// Whether fakes without history are still like their tensors. Of which tensors were made in inference
// mode, and of unusual state, only the others know.
static bool is_late_still(const torch_trace *t) {
    return !t->left_inference && state_is_usual();
}

// Functions that write to the tensors of a list (`_foreach_add_`) give that list itself.
static PyObject *same_list(const call *a, PyObject *result) {
    const char *name = name_of(a->callable);
    PyObject *given = a->given > 0 ? a->args[0] : handler_keyword(a, "self");
    if (strncmp(name, "_foreach_", strlen("_foreach_")) != 0 || !is_in_place(name) || !given ||
        !(PyList_Check(result) || PyTuple_Check(result)))
        return result;
    Py_DECREF(result);
    return Py_NewRef(given);
}

// AOTAutograd fails if a backward needs an input as it was before its sizes changed.
static status check_reshaping(world *w, const entering *c) {
    const node *n = first_node(c->given.args);
    if (w->terms.replayed || !n || !memory_is_reshaped(c->target) || !memory_has_grad(w->graph) ||
        memory_of(w->torch, n) != MEMORY_SHARED)
        return ST_OK;
    return world_break_status(w, REASON_TENSOR_OPERATION, "%V on an input that backward may need",
                              c->target, "?");
}

// Quiet to the end: fakes that die run weak references' callbacks, which are Python code.
PyObject *record_call(world *w, node_op op, PyObject *target, const call *a) {
    torch_trace *t = trace_of(w);
    entering c = {op, target, a->callable, {0}};
    PyObject *result = NULL;
    quiet q;
    quiet_begin(&q);
    bool fine = t && overrides_asked(w) == ST_OK &&
                (is_late_still(t) || fakes_settle(w) == ST_OK) &&
                operands_of(w, a, &c.given) == ST_OK && composites_enter(w, &c.given) == ST_OK &&
                check_reshaping(w, &c) == ST_OK;
    if (t)
        t->pending &= EFFECT_UNKNOWN; // the caller's word
    bool writes = fine && t->late && changes_argument(a->callable, &c.given);
    symbolic_why why = !writes ? SYMBOLIC_OPEN : has_scalar(&c) ? SYMBOLIC_VALUES : SYMBOLIC_WRITES;
    if (fine && !(t->late && (by_value(w, &c, &result) || by_reshaping(w, &c, &result) ||
                              by_rule(w, &c, &result) || by_likeness(w, &c, &result) ||
                              by_symbols(w, &c, why, &result))))
        result = by_torch(w, t, &c);
    if (result &&
        (fakes_note_strides(w, c.callable, &c.given) != ST_OK || numbers_guard(w) != ST_OK))
        Py_CLEAR(result);
    if (t)
        t->pending = 0;
    operands_clear(&c.given);
    quiet_end(&q);
    return result ? same_list(a, result) : NULL;
}

PyObject *record_operands(world *w, PyObject *target, PyObject *callable, const operands *given) {
    torch_trace *t = w->torch;
    entering c = {NODE_CALL_FUNCTION, target, callable, *given};
    quiet q;
    quiet_begin(&q);
    t->pending = 0;
    PyObject *result = by_torch(w, t, &c);
    if (result && numbers_guard(w) != ST_OK)
        Py_CLEAR(result);
    t->pending = 0;
    quiet_end(&q);
    return result;
}

PyObject *record_function(world *w, PyObject *function, PyObject *const *args, size_t given) {
    return record_call(w, NODE_CALL_FUNCTION, function,
                       &(call){.callable = function, .args = args, .given = given});
}

node *record_fallible(world *w, PyObject *function, PyObject *args) {
    return new_call(w, NODE_CALL_FUNCTION, function, args, NULL, NULL);
}

node *record_method(world *w, PyObject *name, PyObject *args) {
    return new_call(w, NODE_CALL_METHOD, name, args, NULL, NULL);
}

node *record_known(world *w, PyObject *function, PyObject *args, PyObject *kwargs,
                   PyObject *example) {
    return new_call(w, NODE_CALL_FUNCTION, function, args, kwargs, example);
}

// Torch's own switches do not fail.
node *record_switch(world *w, PyObject *function, PyObject *args, PyObject *kwargs) {
    return add_at(w, NODE_CALL_FUNCTION, function, args, kwargs, NULL, NULL);
}

node *record_setter(world *w, PyObject *function, PyObject *args) {
    return add_call(w, NODE_CALL_FUNCTION, function, args, NULL, NULL);
}
