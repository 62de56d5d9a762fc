// Fakes are made late: while rules know the results of operations, nobody needs them. A fake that
// is made for one operation alone has the right sizes and no history. If history matters (writes,
// records of gradients, shared memory), all operations so far run once on torch's own fakes, and
// from then on every operation does.
#include "src/py/raised.h"

#include "src/graph/given.h"

#include "src/torch/room.h"

// The first mode of a process checks torch's fakes: if that fails, the error is the user's.
status fakes_mode(world *w, torch_trace *t) {
    if (!t->mode) {
        quiet q;
        quiet_begin(&q);
        t->mode = PyObject_CallOneArg(glue_function("make_mode"), t->late ? Py_True : Py_False);
        quiet_end(&q);
    }
    if (!t->mode)
        w->stop.interrupted = true;
    return t->mode ? ST_OK : ST_ERROR;
}

// --- what a tensor is like ---

static bool has_odd_keys(const seen *s) {
    return (s->keys & facts.odd_keys) != 0;
}

// Outside of inference mode, what was made in it is not like other tensors.
static bool has_usual_keys(const seen *s) {
    return s->keys & facts.usual_keys || facts.inference();
}

static bool take_seen(const seen *s, meta *to) {
    if (s->dims < 0 || s->dims > META_MOST_DIMS || has_odd_keys(s))
        return false;
    to->dims = (int)s->dims;
    to->dtype = s->dtype;
    to->device_type = s->device_type;
    to->device_index = s->device_index;
    to->requires_grad = s->requires_grad;
    for (int i = 0; i < to->dims; i++) {
        to->sizes[i] = size_of(s->sizes[i]);
        to->strides[i] = size_of(s->strides[i]);
    }
    return true;
}

static uint64_t device_key(const meta *m) {
    return (uint64_t)(uint32_t)m->device_type << 32 | (uint32_t)m->device_index;
}

// The device object, so that attributes and fakes can be made of `m` alone.
static bool note_device(const meta *m, PyObject *device) {
    if (map_get(&facts.devices, device_key(m)))
        return true;
    return map_put(&facts.devices, device_key(m), map_key(Py_NewRef(device))) == ST_OK;
}

static bool take_device(PyObject *owner, const char *name, meta *m) {
    PyObject *device = PyObject_GetAttrString(owner, name);
    bool fine =
        device && rule_device(device, &m->device_type, &m->device_index) && note_device(m, device);
    Py_XDECREF(device);
    PyErr_Clear();
    return fine;
}

void meta_of_tensor(PyObject *tensor, meta *m) {
    seen s;
    bool fine = facts.rules_on && read_tensor(tensor, &s) && has_usual_keys(&s) && take_seen(&s, m);
    if (!fine || (!map_get(&facts.devices, device_key(m)) && !take_device(tensor, "device", m)))
        m->dims = -1;
}

// A fake's memory says that it is on the device `meta`.
void meta_of_fake(PyObject *fake, meta *m) {
    seen s;
    bool fine = facts.rules_on && PyObject_TypeCheck(fake, facts.fake) && read_tensor(fake, &s) &&
                has_usual_keys(&s) && take_seen(&s, m) && take_device(fake, "fake_device", m);
    if (!fine)
        m->dims = -1;
}

const meta *meta_known(const world *w, const node *n) {
    const torch_trace *t = w->torch;
    return t->late && n->meta.dims >= 0 ? &n->meta : NULL;
}

PyObject *dtype_object(int32_t dtype) {
    bool known = dtype >= 0 && dtype < (int32_t)Py_ARRAY_LENGTH(facts.dtypes);
    return known ? facts.dtypes[dtype] : NULL;
}

PyObject *device_object(const meta *m) {
    uint64_t *found = map_get(&facts.devices, device_key(m));
    return found ? (PyObject *)(uintptr_t)*found : NULL;
}

PyObject *size_tuple(sizes *known, const size *items, int count) {
    int64_t numbers[META_MOST_DIMS];
    for (int i = 0; i < count; i++)
        numbers[i] = size_settle(known, items[i]);
    return int_tuple(numbers, count);
}

static PyObject *fill_numbers(world *w, PyObject *tuple, const size *items, int count) {
    for (int i = 0; tuple && i < count; i++) {
        PyObject *item = number_object(w, number_of_size(items[i]));
        if (item)
            PyTuple_SET_ITEM(tuple, i, item);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *strides_object(world *w, const size *items, int count) {
    return fill_numbers(w, PyTuple_New(count), items, count);
}

// Its constructor takes no stand-ins.
PyObject *sizes_object(world *w, const size *items, int count) {
    return fill_numbers(w, facts.size->tp_alloc(facts.size, count), items, count);
}

// --- making ---

// Whose stand-in it is, so that a result that is one of the arguments is known again.
static status know(torch_trace *t, node *n, PyObject *fake) {
    if (n->example != fake)
        standin_forget_fake(t, n);
    Py_SETREF(n->example, Py_NewRef(fake));
    uint64_t *owner = map_get(&t->owners, map_key(n));
    return owner ? map_put(&t->standins, map_key(fake), *owner) : ST_OK;
}

// maker: which function of the glue makes it.
static PyObject *fake_of_tensor(world *w, torch_trace *t, PyObject *tensor, const char *maker) {
    PyObject *args[] = {NULL, tensor};
    if (fakes_mode(w, t) != ST_OK)
        return NULL;
    args[0] = t->mode;
    PyObject *fake = PyObject_Vectorcall(glue_function(maker), args, 2, NULL);
    if (fake || error_stays(w))
        return fake;
    PyErr_Clear();
    return world_break(w, REASON_TENSOR_OPERATION, "a tensor of which no fake can be made");
}

// Where the sizes are settled of which a fake is made; NULL: nobody relies on them.
static sizes *settled_in(const world *w) {
    return ((const torch_trace *)w->torch)->checking ? NULL : w->graph->sizes;
}

void meta_settle(sizes *known, const meta *m) {
    for (int i = 0; i < m->dims; i++) {
        size_settle(known, m->sizes[i]);
        size_settle(known, m->strides[i]);
    }
}

// An input's: of the tensor itself.
static PyObject *fake_of_input(world *w, torch_trace *t, node *n, const char *maker) {
    uint64_t *owner = map_get(&t->owners, map_key(n));
    return owner ? fake_of_tensor(w, t, ((standin *)(uintptr_t)*owner)->outside, maker) : NULL;
}

static PyObject *fake_like(world *w, torch_trace *t, sizes *known, const meta *m) {
    if (fakes_mode(w, t) != ST_OK)
        return NULL;
    PyObject *sizes = size_tuple(known, m->sizes, m->dims);
    PyObject *strides = size_tuple(known, m->strides, m->dims);
    PyObject *args[] = {t->mode,          sizes,
                        strides,          dtype_object(m->dtype),
                        device_object(m), m->requires_grad ? Py_True : Py_False};
    PyObject *fake = NULL;
    if (sizes && strides)
        fake = PyObject_Vectorcall(glue_function("fake_like"), args, 6, NULL);
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return fake;
}

static PyObject *fake_made_by(world *w, node *n, const char *maker) {
    torch_trace *t = w->torch;
    meta_settle(settled_in(w), &n->meta);
    numbers_excuse(w);
    if (n->example != Py_None)
        return n->example;
    bool input = n->op == NODE_PLACEHOLDER && n->scope == 0;
    if (!input && n->meta.dims < 0)
        return Py_None; // an operation that gives nothing
    PyObject *fake = input ? fake_of_input(w, t, n, maker) : fake_like(w, t, NULL, &n->meta);
    if (fake && know(t, n, fake) != ST_OK)
        Py_CLEAR(fake);
    Py_XDECREF(fake); // the node's
    return fake;
}

PyObject *fake_of(world *w, node *n) {
    return fake_made_by(w, n, "fake_of");
}

// --- all at once ---

status fakes_note(world *w, node *n, PyObject *callable, bool by_rule) {
    torch_trace *t = w->torch;
    if (!t->late)
        return ST_OK;
    late_call call = {n, Py_NewRef(callable), facts.grad_enabled(), n->meta.requires_grad, by_rule};
    if (vec_push(&t->calls, call) == ST_OK)
        return ST_OK;
    Py_DECREF(callable);
    return ST_ERROR;
}

static status make_inputs(world *w, const char *maker) {
    for (int i = 0; i < w->graph->inputs; i++) {
        node *n = (node *)PyList_GET_ITEM(w->graph->nodes, i);
        if (n->is_number)
            continue;
        PyObject *fake = fake_made_by(w, n, maker);
        if (!fake)
            return w->stop.broken ? ST_BREAK : ST_ERROR;
        TRY(know(w->torch, n, fake));
    }
    return ST_OK;
}

// Of a dimension of one element fakes give another stride than kernels at times. Rules go by the
// kernels. Of tensors without elements fakes with symbols and without give
// different strides, and nobody is told of them (call_stride).
static bool same_strides(const meta *a, const meta *b, bool symbolic) {
    for (int i = 0; symbolic && i < a->dims; i++)
        if (a->sizes[i].hint == 0)
            return true;
    for (int i = 0; i < a->dims; i++)
        if (a->sizes[i].hint != 1 && a->strides[i].hint != b->strides[i].hint)
            return false;
    return true;
}

// In inference mode neither rules nor fakes tell whether a view requires a gradient, see attrs.c.
static bool same_meta(const meta *a, const meta *b, bool symbolic) {
    return a->dims == b->dims && a->dtype == b->dtype && a->device_type == b->device_type &&
           a->device_index == b->device_index &&
           (a->requires_grad == b->requires_grad || facts.inference()) &&
           sizes_are(NULL, a->sizes, b->sizes, a->dims) && same_strides(a, b, symbolic);
}

static PyObject *meta_text(const meta *m) {
    PyObject *sizes = size_tuple(NULL, m->sizes, m->dims < 0 ? 0 : m->dims);
    PyObject *strides = size_tuple(NULL, m->strides, m->dims < 0 ? 0 : m->dims);
    PyObject *text = NULL;
    if (sizes && strides)
        text = PyUnicode_FromFormat("dtype %d on %d:%d, sizes %R, strides %R%s", m->dtype,
                                    m->device_type, m->device_index, sizes, strides,
                                    m->requires_grad ? ", requires_grad" : "");
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return text;
}

static bool same_small_strides(const meta *a, const meta *b) {
    for (int i = 0; i < a->dims; i++)
        if (a->sizes[i].hint == 1 && a->strides[i].hint != b->strides[i].hint)
            return false;
    return true;
}

// A rule that says something else than torch is an error of ours; but of a dimension of one element
// the rule goes by the kernels. From here on fakes answer, which do not know how kernels then lay
// out what is computed of such a tensor.
static status check_rule(world *w, const late_call *call) {
    meta real, ours = call->n->meta;
    ours.requires_grad = call->needs_grad;
    if (!call->by_rule || ours.dims < 0)
        return ST_OK;
    meta_of_fake(call->n->example, &real);
    if (same_meta(&real, &ours, w->graph->sizes != NULL)) {
        ((torch_trace *)w->torch)->odd_strides |= !same_small_strides(&real, &ours);
        return ST_OK;
    }
    PyObject *rule = meta_text(&ours), *torch = meta_text(&real);
    PyErr_Format(PyExc_RuntimeError, "the rule of %R is wrong: %V; torch: %V", call->n->target,
                 rule, "?", torch, "?");
    Py_XDECREF(rule);
    Py_XDECREF(torch);
    return ST_ERROR;
}

static status run_again(world *w, torch_trace *t, const late_call *call) {
    TRY(state_set_grad(call->grad));
    PyObject *args = fakes_in(w, call->n->args);
    PyObject *kwargs = args && call->n->kwargs ? fakes_in(w, call->n->kwargs) : NULL;
    PyObject *result = NULL;
    if (args && (kwargs || !call->n->kwargs))
        result = run_fakes(w, t, call->callable, args, kwargs);
    if (args && !result && !w->stop.broken)
        fake_failed(w, call->n->target);
    status done = result ? know(t, call->n, result) : w->stop.broken ? ST_BREAK : ST_ERROR;
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    Py_XDECREF(result);
    return done == ST_OK ? check_rule(w, call) : done;
}

static status run_all_again(world *w, torch_trace *t) {
    bool grad = facts.grad_enabled();
    status done = ST_OK;
    for (uint32_t i = 0; done == ST_OK && i < t->calls.count; i++)
        done = run_again(w, t, &t->calls.items[i]);
    py_raised aside = py_put_aside();
    status put_back = state_set_grad(grad);
    py_put_on(aside);
    return done == ST_OK ? put_back : done;
}

static void forget_calls(torch_trace *t) {
    while (t->calls.count > 0)
        Py_DECREF(t->calls.items[--t->calls.count].callable);
}

// Each operation that was run again has said before what it does.
static status forget_effects(torch_trace *t) {
    PyObject *none = PyLong_FromLong(0);
    int failed = none ? PyObject_SetAttrString(t->mode, "stator_effects", none) : -1;
    Py_XDECREF(none);
    return failed < 0 ? ST_ERROR : ST_OK;
}

// The fakes without history die here: nothing may take one that comes to lie in the same place for
// them.
static status settle(world *w, torch_trace *t) {
    map_clear(&t->standins);
    for (uint32_t i = 0; i < t->calls.count; i++)
        Py_SETREF(t->calls.items[i].n->example, Py_NewRef(Py_None));
    TRY(fakes_mode(w, t));
    if (PyObject_SetAttrString(t->mode, "stator_late", Py_False) < 0)
        return ST_ERROR;
    TRY(make_inputs(w, "fake_of"));
    TRY(run_all_again(w, t));
    return forget_effects(t);
}

status fakes_settle(world *w) {
    torch_trace *t = w->torch;
    if (!t || !t->late)
        return ST_OK;
    if (sizes_has_unbacked(w->graph->sizes) && !t->checking)
        return world_break_status(w, REASON_UNBACKED,
                                  "an operation behind it is not known for all its values");
    if (t->switched || t->bodied) {
        w->stop.wants_history = true;
        return world_break_status(w, t->switched ? REASON_TORCH_STATE : REASON_HIGHER_ORDER,
                                  t->switched ? "it was changed"
                                              : "of which fakes have no history");
    }
    t->late = false;
    quiet q;
    quiet_begin(&q);
    status done = settle(w, t);
    quiet_end(&q);
    forget_calls(t);
    return done;
}

// --- strides that fakes do not know ---

static status note_order(node *n, void *data) {
    meta m = n->meta;
    if (m.dims < 0 && n->example != Py_None && PyObject_TypeCheck(n->example, facts.fake))
        meta_of_fake(n->example, &m);
    *(bool *)data |= meta_is_perhaps_last(&m);
    return ST_OK;
}

// Behind a call for images that was run on fakes. Kernels choose an order by the strides of
// dimensions of one element, and fakes often choose another one.
status fakes_note_order(world *w, const operands *given) {
    bool open = false;
    TRY(node_walk(given->args, note_order, &open));
    if (given->kwargs)
        TRY(node_walk(given->kwargs, note_order, &open));
    ((torch_trace *)w->torch)->odd_strides |= open;
    return ST_OK;
}

typedef struct asked_strides {
    sizes *sizes;
    bool odd; // an operand does not lie plainly
} asked_strides;

static status note_odd(node *n, void *data) {
    asked_strides *a = data;
    a->odd = a->odd || !meta_lies_plainly(a->sizes, &n->meta);
    return ST_OK;
}

// Some kernels lay their result out otherwise than torch's fakes say, if an operand does not lie
// plainly. What is computed of the result may follow it.
status fakes_note_strides(world *w, PyObject *callable, const operands *given) {
    torch_trace *t = w->torch;
    PyObject *kwargs = given->kwargs, *keyword = NULL;
    if (!t->odd_strides)
        keyword = PyDict_GetItemWithError(glue_function("unlike_fakes"), callable);
    if (!keyword)
        return PyErr_Occurred() ? ST_ERROR : ST_OK;
    if (keyword != Py_None && !(kwargs && PyDict_Contains(kwargs, keyword) == 1))
        return ST_OK;
    asked_strides a = {w->graph->sizes, false};
    TRY(node_walk(given->args, note_odd, &a));
    if (kwargs)
        TRY(node_walk(kwargs, note_odd, &a));
    t->odd_strides = a.odd;
    return ST_OK;
}

// --- for backends ---

// A tuple of the results whose nodes come next.
static status complete_tuple(torch_trace *t, uint32_t at) {
    PyObject *items = PyList_New(0);
    for (uint32_t i = at + 1; items && i < t->calls.count; i++) {
        node *n = t->calls.items[i].n;
        if (n->target != facts.getitem ||
            PyTuple_GET_ITEM(n->args, 0) != (PyObject *)t->calls.items[at].n)
            break;
        if (PyList_Append(items, n->example) < 0)
            Py_CLEAR(items);
    }
    PyObject *tuple = items ? PyList_AsTuple(items) : NULL;
    Py_XDECREF(items);
    if (!tuple)
        return ST_ERROR;
    Py_SETREF(t->calls.items[at].n->example, tuple);
    return ST_OK;
}

// Whether examples of results can be made of their metas when somebody asks for them: all are as
// they were when they were made. (Whoever undoes effects that last looks at the examples at once.)
static bool can_wait(const graph *g) {
    if (g->effects & EFFECTS_LASTING || facts.inference())
        return false;
    for (Py_ssize_t i = g->inputs; i < PyList_GET_SIZE(g->nodes); i++) {
        const node *n = (node *)PyList_GET_ITEM(g->nodes, i);
        if (n->effects & EFFECT_WRITES && memory_is_reshaped(n->target))
            return false;
    }
    return true;
}

// The items of a result that is a tuple are gone from the graph if nobody uses them.
static bool is_item(const node *n) {
    return n->target == facts.getitem;
}

static status complete(world *w, torch_trace *t, bool waits) {
    TRY(make_inputs(w, "example_of")); // no operation will run on these
    TRY(fakes_mode(w, t));
    if (waits)
        Py_XSETREF(w->graph->fakes, Py_NewRef(t->mode));
    for (uint32_t i = t->calls.count; i-- > 0;) {
        const late_call *call = &t->calls.items[i];
        if (waits && call->n->meta.dims >= 0 && !is_item(call->n))
            continue;
        if (!fake_of(w, call->n))
            return w->stop.broken ? ST_BREAK : ST_ERROR;
        if (call->n->example == Py_None && call->by_rule)
            TRY(complete_tuple(t, i));
    }
    return ST_OK;
}

// layout(node): what fake_like takes behind the mode, or None.
PyObject *fakes_layout(PyObject *module, PyObject *o) {
    (void)module;
    const meta *m = is_node(o) ? &((node *)o)->meta : NULL;
    if (!m || m->dims < 0)
        Py_RETURN_NONE;
    PyObject *sizes = size_tuple(NULL, m->sizes, m->dims);
    PyObject *strides = size_tuple(NULL, m->strides, m->dims), *result = NULL;
    if (sizes && strides)
        result = Py_BuildValue("OOOOO", sizes, strides, dtype_object(m->dtype), device_object(m),
                               m->requires_grad ? Py_True : Py_False);
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return result;
}

status fakes_complete(world *w) {
    torch_trace *t = w->torch;
    if (!t->late)
        return ST_OK;
    bool unbacked = sizes_has_unbacked(w->graph->sizes); // torch's fakes cannot run its operations
    if (facts.check_rules && !unbacked && !t->switched && !t->bodied) {
        t->checking = true;
        return fakes_settle(w);
    }
    if (w->terms.replayed || given_is_open(w->graph))
        return ST_OK; // fakes of symbolic sizes are made when the graph is handed over
    bool waits = can_wait(w->graph);
    if ((t->wrote && !waits) || t->bodied)
        return fakes_settle(w);
    quiet q;
    quiet_begin(&q);
    status done = complete(w, t, waits);
    quiet_end(&q);
    return done;
}

void fakes_drop(torch_trace *t) {
    forget_calls(t);
    vec_free(&t->calls);
    map_clear(&t->owners);
}
