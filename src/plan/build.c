// Turns a finished trace into its plan. The result and the writes decide the outputs of the graph,
// the sources to load, and the steps.
#include "src/interp/image.h"

#include "src/plan/build.h"

plan_types plan_type;

static int deque_method(PyObject **to, const char *name) {
    *to = PyObject_GetAttrString((PyObject *)plan_type.deque, name);
    return *to ? 0 : -1;
}

static int plan_setup_types(void) {
    plan_types *t = &plan_type;
    if (t->maxlen)
        return 0;
    if (!(t->deque = (PyTypeObject *)py_import("_collections", "deque")) ||
        !(t->defaultdict = (PyTypeObject *)py_import("_collections", "defaultdict")) ||
        !(t->partial = (PyTypeObject *)py_import("_functools", "partial")) ||
        !(t->namespace = (PyTypeObject *)py_import("types", "SimpleNamespace")))
        return -1;
    return deque_method(&t->append, "append") || deque_method(&t->appendleft, "appendleft") ||
                   deque_method(&t->pop, "pop") || deque_method(&t->popleft, "popleft") ||
                   deque_method(&t->clear, "clear") || deque_method(&t->maxlen, "maxlen")
               ? -1
               : 0;
}

// --- registers, loads, constants, steps ---

int build_register(builder *b) {
    return b->p->registers++;
}

status build_load(builder *b, source *s, operand *out) {
    uint64_t *known = map_get(&b->sources, map_key(s));
    if (known) {
        *out = (operand)*known;
        return ST_OK;
    }
    load l = {.to = build_register(b)};
    TRY(guard_give(b->w->guards, s, &l.from));
    TRY(vec_push(&b->loaded, s));
    TRY(vec_push(&b->p->loads, l));
    *out = l.to;
    return map_put(&b->sources, map_key(s), (uint64_t)l.to);
}

// Texts outlive the sources, which are the trace's.
static status name_loads(builder *b) {
    for (uint32_t i = 0; i < b->p->loads.count; i++) {
        load *l = &b->p->loads.items[i];
        if (!l->text && !(l->text = source_text(b->loaded.items[i])))
            return ST_ERROR;
    }
    return ST_OK;
}

static status keep(builder *b, PyObject *o) {
    if (vec_push(&b->p->constants, o) != ST_OK)
        return ST_ERROR;
    Py_INCREF(o);
    return ST_OK;
}

status build_constant(builder *b, PyObject *o, operand *out) {
    TRY(keep(b, o));
    *out = ~(operand)(b->p->constants.count - 1);
    return ST_OK;
}

status build_step(builder *b, step_list *to, step s, const operands *more, PyObject *object) {
    s.object = object;
    s.first = b->p->operands.count;
    s.count = more ? more->count : 0;
    if (object)
        TRY(keep(b, object));
    for (uint32_t i = 0; i < s.count; i++)
        TRY(vec_push(&b->p->operands, more->items[i]));
    return vec_push(to, s);
}

// --- the graph ---

// The graph inputs' sources: those of the tensors that came in.
static status input_sources(builder *b, map *sources) {
    for (uint32_t i = 0; i < b->w->in.all.count; i++) {
        record *r = b->w->in.all.items[i];
        const standin_kind *kind = r->inside ? standin_kind_of(r->inside) : NULL;
        node *n = kind ? kind->node_of(r->inside) : NULL;
        if (n && n->op == NODE_PLACEHOLDER && !map_get(sources, map_key(n)))
            TRY(map_put(sources, map_key(n), map_key(r->source)));
    }
    return ST_OK;
}

static status input_load(builder *b, const map *sources, node *n, operand *out) {
    if (n->is_number)
        return build_load(b, expr_place(n->value.e), out);
    uint64_t *s = map_get(sources, map_key(n));
    if (s)
        return build_load(b, (source *)(uintptr_t)*s, out);
    PyErr_Format(PyExc_SystemError, "graph input %S has no source", n->name);
    return ST_ERROR;
}

status build_output(builder *b, node *n, operand *out) {
    uint64_t *known = map_get(&b->nodes, map_key(n));
    if (known) {
        *out = (operand)*known;
        return ST_OK;
    }
    if (n->op == NODE_PLACEHOLDER) {
        map sources = {0};
        status done = input_sources(b, &sources);
        if (done == ST_OK)
            done = input_load(b, &sources, n, out);
        map_clear(&sources);
        return done;
    }
    *out = build_register(b);
    TRY(vec_push(&b->outputs, n));
    TRY(vec_push(&b->p->outputs, *out));
    return map_put(&b->nodes, map_key(n), (uint64_t)*out);
}

static PyObject *output_tuple(const builder *b) {
    PyObject *outputs = PyTuple_New(b->outputs.count);
    for (uint32_t i = 0; outputs && i < b->outputs.count; i++)
        PyTuple_SET_ITEM(outputs, i, Py_NewRef(b->outputs.items[i]));
    return outputs;
}

// The graph has the text of an input's source already.
static void name_input(builder *b, uint32_t loads_before) {
    PyObject *texts = b->w->graph->sources;
    plan *p = b->p;
    Py_ssize_t at = p->inputs.count - 1;
    if (p->loads.count > loads_before && at < PyList_GET_SIZE(texts) &&
        PyUnicode_Check(PyList_GET_ITEM(texts, at)))
        p->loads.items[p->loads.count - 1].text = Py_NewRef(PyList_GET_ITEM(texts, at));
}

static status add_input(builder *b, const map *sources, node *n) {
    uint32_t loads = b->p->loads.count;
    operand in;
    TRY(input_load(b, sources, n, &in));
    TRY(vec_push(&b->p->inputs, in));
    name_input(b, loads);
    return ST_OK;
}

static status load_inputs(builder *b, node *const *inputs, int count, const bool *used) {
    map sources = {0};
    status done = input_sources(b, &sources);
    for (int i = 0; done == ST_OK && i < count; i++) {
        if (used[i])
            done = add_input(b, &sources, inputs[i]);
    }
    map_clear(&sources);
    return done;
}

// Placeholders that nobody uses leave the graph when it is closed: they are noted before.
static status close_graph(builder *b) {
    graph *g = b->w->graph;
    int count = g->inputs;
    node **inputs = arena_array(&b->w->arena, node *, (size_t)count);
    bool *used = arena_array(&b->w->arena, bool, (size_t)count);
    if (!inputs || !used)
        return ST_ERROR;
    for (int i = 0; i < count; i++) {
        inputs[i] = (node *)PyList_GET_ITEM(g->nodes, i);
        TRY(arena_own(&b->w->arena, Py_NewRef(inputs[i])));
    }
    if (world_tensors)
        TRY(world_tensors->outputs(b->w, b->outputs.items, b->outputs.count));
    PyObject *outputs = output_tuple(b);
    status done = outputs ? graph_close(g, outputs, used) : ST_ERROR;
    Py_XDECREF(outputs);
    TRY(done);
    b->p->has_graph = graph_operations(g) > 0;
    return b->p->has_graph ? load_inputs(b, inputs, count, used) : ST_OK;
}

// --- the whole ---

static void mark_use(bool *used, operand o) {
    if (o >= 0)
        used[o] = true;
}

// Registers that steps or the result use.
static void mark_uses(const plan *p, bool *used) {
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const step *s = &p->steps.items[i];
        mark_use(used, s->a);
        mark_use(used, s->b);
        mark_use(used, s->c);
    }
    for (uint32_t i = 0; i < p->operands.count; i++)
        mark_use(used, p->operands.items[i]);
    mark_use(used, p->result);
}

static status find_early(plan *p) {
    bool *used = PyMem_Calloc((size_t)p->registers + 1, sizeof(bool));
    if (!used) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    mark_uses(p, used);
    status done = ST_OK;
    for (uint32_t i = 0; done == ST_OK && i < p->inputs.count; i++) {
        if (!used[p->inputs.items[i]])
            done = vec_push(&p->early, p->inputs.items[i]);
    }
    PyMem_Free(used);
    return done;
}

static status append_steps(plan *p, const step_list *steps) {
    TRY(vec_reserve(&p->steps, steps->count));
    for (uint32_t i = 0; i < steps->count; i++)
        p->steps.items[p->steps.count++] = steps->items[i];
    return ST_OK;
}

// First of the writes: if it cannot be done, nothing is.
static status build_state(builder *b) {
    if (!b->w->held.switches)
        return ST_OK;
    step s = step_of(STEP_STATE, -1, OPERAND_NONE, OPERAND_NONE);
    return build_step(b, &b->writing, s, NULL, b->w->held.switches);
}

static status build(builder *b, PyObject *result) {
    plan *p = b->p;
    TRY(rebuild(b, result, &p->result));
    TRY(rebuild_rest(b));
    TRY(build_state(b));
    TRY(deaths_of_roots(b)); // before the writes: what is written to does not live on by that
    TRY(writes_build(b));
    TRY(deaths_of_generators(b));
    TRY(close_graph(b));
    TRY(name_loads(b));
    TRY(append_steps(p, &b->making));
    p->writes = p->steps.count;
    TRY(append_steps(p, &b->writing));
    TRY(append_steps(p, &b->late));
    p->later = p->steps.count;
    TRY(append_steps(p, &b->later));
    return find_early(p);
}

static void builder_clear(builder *b) {
    map_clear(&b->objects);
    map_clear(&b->sources);
    map_clear(&b->nodes);
    map_clear(&b->constants);
    map_clear(&b->memories);
    vec_free(&b->outputs);
    vec_free(&b->loaded);
    vec_free(&b->making);
    vec_free(&b->writing);
    vec_free(&b->late);
    vec_free(&b->later);
    vec_free(&b->queue);
}

plan *plan_build(world *w, PyObject *result) {
    if (plan_setup_types() < 0)
        return NULL;
    plan *p = PyMem_Calloc(1, sizeof(plan));
    if (!p) {
        PyErr_NoMemory();
        return NULL;
    }
    p->graph = (graph *)Py_NewRef(w->graph);
    p->breaks = Py_IS_TYPE(result, &image_type);
    builder b = {.w = w, .p = p};
    status done = build(&b, result);
    builder_clear(&b);
    if (done == ST_OK)
        return p;
    plan_free(p);
    return NULL;
}

void plan_set_graph(plan *p, plan_graph how) {
    p->how = how;
}

graph *plan_graph_of(plan *p) {
    return p->graph;
}

bool plan_breaks(const plan *p) {
    return p->breaks;
}

// By register: where in the guard pass's registers a load finds it.
static int load_from(const plan *p, int reg) {
    for (uint32_t i = 0; i < p->loads.count; i++) {
        if (p->loads.items[i].to == reg)
            return p->loads.items[i].from;
    }
    Py_UNREACHABLE();
}

PyObject *plan_examples(const plan *p, PyObject *const *regs) {
    PyObject *examples = PyList_New(p->inputs.count);
    for (uint32_t i = 0; examples && i < p->inputs.count; i++)
        PyList_SET_ITEM(examples, i, Py_NewRef(regs[load_from(p, p->inputs.items[i])]));
    return examples;
}

static void release(plan *p) {
    for (uint32_t i = 0; i < p->loads.count; i++)
        Py_XDECREF(p->loads.items[i].text);
    for (uint32_t i = 0; i < p->constants.count; i++)
        Py_DECREF(p->constants.items[i]);
    Py_XDECREF(p->how.callable);
    if (p->how.replay)
        replay_free(p->how.replay);
    Py_DECREF(p->graph);
    vec_free(&p->loads);
    vec_free(&p->inputs);
    vec_free(&p->outputs);
    vec_free(&p->early);
    vec_free(&p->steps);
    vec_free(&p->operands);
    vec_free(&p->constants);
    PyMem_Free(p);
}

// A plan may be thrown away by code that its own run has called.
void plan_free(plan *p) {
    if (!p)
        return;
    p->dead = true;
    if (p->active == 0)
        release(p);
}
