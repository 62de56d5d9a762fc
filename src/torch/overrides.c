// Turns a call of torch whose arguments have `__torch_function__` into interpreted calls of these
// methods.
#include "src/py/each.h"

#include "src/attr/descr.h"

#include "src/torch/overrides.h"

// --- torch's own code asks nobody while the trace runs ---

static PyObject *method_name(void) {
    static PyObject *name;
    return name ? name : (name = PyUnicode_InternFromString("__torch_function__"));
}

static int state_now(void) {
    quiet q;
    quiet_begin(&q);
    PyObject *now = PyObject_CallNoArgs(glue_function("function_state"));
    quiet_end(&q);
    int state = now ? (int)PyLong_AsLong(now) : -1;
    Py_XDECREF(now);
    return state;
}

PyObject *fixed_object(world *w, PyObject *o) {
    source *s = record_of(w, o) ? NULL : guard_source(w->guards, SOURCE_FIXED, NULL, o, 0);
    return record_of(w, o) ? Py_NewRef(o) : Py_XNewRef(s ? door_bring(w, s, o) : NULL);
}

overrides *overrides_of(world *w) {
    torch_trace *t = trace_of(w);
    if (!t || t->overrides)
        return t ? t->overrides : NULL;
    if (index_allows(w, t) != ST_OK)
        return NULL;
    int state = state_now();
    overrides *o = state < 0 ? NULL : PyMem_Calloc(1, sizeof(overrides));
    if (!o)
        return state < 0 ? NULL : (overrides *)PyErr_NoMemory();
    o->before = o->state = (function_state)state;
    o->guard = py_enter_context((PyObject *)facts.no_functions);
    t->overrides = o;
    if (!o->guard)
        return NULL;
    Py_XSETREF(w->graph->context, Py_NewRef(facts.no_functions));
    PyObject *class = fixed_object(w, (PyObject *)facts.tensor); // results are of it
    Py_XDECREF(class);
    return class && modes_begin(w, o) == ST_OK ? o : NULL;
}

static void wake(overrides *o) {
    PyObject *guard = o->guard;
    o->guard = NULL;
    if (guard)
        py_leave_context(guard);
}

void overrides_free(torch_trace *t) {
    overrides *o = t->overrides;
    t->overrides = NULL;
    if (!o)
        return;
    wake(o);
    vec_free(&o->entered);
    vec_free(&o->outer);
    vec_free(&o->pushed);
    Py_XDECREF(o->modes);
    map_clear(&o->classes);
    PyMem_Free(o);
}

void overrides_wake(torch_trace *t) {
    if (t->overrides)
        wake(t->overrides);
}

status overrides_end(world *w, torch_trace *t) {
    overrides *o = t->overrides;
    TRY(index_end(w, t));
    if (!o)
        return ST_OK;
    TRY(modes_end(w, o));
    if (o->entered.count == 0)
        return ST_OK;
    const uint64_t *born = map_get(&w->time.born, map_key(o->entered.items[0]));
    world_break(w, REASON_TORCH_STATE,
                "torch functions are disabled, and not enabled in the same piece");
    w->time.again = born ? *born : 0;
    return ST_BREAK;
}

// --- contexts that the program enters ---

static PyObject *answer_state(world *w, function_state which) {
    overrides *o = overrides_of(w);
    return o ? PyBool_FromLong(o->state == which) : NULL;
}

PyObject *overrides_on(world *w, const call *c) {
    (void)c;
    return answer_state(w, FUNCTIONS_ON);
}

PyObject *overrides_off(world *w, const call *c) {
    (void)c;
    return answer_state(w, FUNCTIONS_OFF);
}

// The real context, which the trace never enters. A trace that ends within it is done again.
PyObject *overrides_make(world *w, const call *c) {
    PyObject *made = overrides_of(w) ? PyObject_CallNoArgs(c->callable) : NULL;
    if (made && (!world_keep(w, Py_NewRef(made)) || world_born(w, made) != ST_OK))
        Py_CLEAR(made);
    return made;
}

PyObject *overrides_enter(world *w, const call *c) {
    overrides *o = overrides_of(w);
    PyObject *self = o ? door_open(w, c->args[0]) : NULL;
    if (self && !map_get(&w->time.born, map_key(self)))
        return world_break(w, REASON_TORCH_STATE, "a context that disables torch functions");
    function_state within = (function_state)PyLong_AsLong(c->rule->extra);
    if (!self || vec_push(&o->entered, self) != ST_OK || vec_push(&o->outer, o->state) != ST_OK)
        return NULL;
    world_touch(w);
    o->state = within > o->state ? within : o->state;
    return Py_NewRef(Py_None);
}

PyObject *overrides_exit(world *w, const call *c) {
    overrides *o = overrides_of(w);
    PyObject *self = o ? door_open(w, c->args[0]) : NULL;
    if (!self)
        return NULL;
    if (o->entered.count == 0 || o->entered.items[o->entered.count - 1] != self)
        return world_break(w, REASON_TORCH_STATE, "a context that enables torch functions");
    world_touch(w);
    o->entered.count--;
    o->state = o->outer.items[--o->outer.count];
    return Py_NewRef(Py_None);
}

// --- who has the method ---

static bool is_plain_class(PyTypeObject *class) {
    return class == facts.tensor || class == facts.parameter || class == facts.buffer;
}

// 1, 0, -1.
static int class_asks(world *w, PyTypeObject *class, bool tensor) {
    if (is_plain_class(class))
        return 0;
    overrides *o = overrides_of(w);
    uint64_t *known = o ? map_get(&o->classes, map_key(class)) : NULL;
    if (!o || known)
        return o ? (int)*known : -1;
    PyObject *raw = NULL, *name = method_name();
    PyObject *found = !name    ? NULL
                      : tensor ? attr_of_class(w, class, name, &raw)
                               : type_lookup(w, class, name, &raw);
    if (!found && (PyErr_Occurred() || w->stop.broken))
        return -1;
    int asks = found && raw != facts.disabled;
    return map_put(&o->classes, map_key(class), (uint64_t)asks) == ST_OK ? asks : -1;
}

// Whether torch could ask the object: it is no builtin, and its class is one of Python's.
static bool may_ask(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    return torch_ops.is_tensor(o) ? !is_plain_class(type)
                                  : raw_is_python_class(type) && !PyType_Check(o);
}

static bool is_sequence(PyObject *o) {
    return PyTuple_Check(o) || PyList_Check(o);
}

// Whether torch would ask for an argument; 1, 0, -1. What needs no answer is not opened.
static int asks(world *w, PyObject *o, int depth) {
    PyObject *outside = is_lazy(o) ? ((lazy *)o)->outside : o;
    if (is_lazy(o) && !may_ask(outside) && !is_sequence(outside))
        return 0;
    if (!(o = door_open(w, o)))
        return -1;
    if (is_tensor_standin(o))
        return class_asks(w, ((standin *)o)->type, true);
    int found = 0;
    for (Py_ssize_t i = 0; depth > 0 && is_sequence(o) && found == 0; i++) {
        if (i >= PySequence_Fast_GET_SIZE(o))
            return 0;
        found = asks(w, PySequence_Fast_GET_ITEM(o, i), depth - 1);
    }
    return found || is_sequence(o) || !may_ask(o) || is_standin(o)
               ? found
               : class_asks(w, Py_TYPE(o), false);
}

// Whether the next call of torch that would ask is to ask nobody, which is said once.
static bool must_skip(const world *w) {
    const torch_trace *t = w->torch;
    return t && t->overrides && t->overrides->skip;
}

static bool skips(const world *w) {
    bool skip = must_skip(w);
    if (skip)
        ((torch_trace *)w->torch)->overrides->skip = false;
    return skip;
}

// As long as no tensor of another class was seen, objects of Python's classes are the only ones.
static int asks_any(world *w, const call *c) {
    const torch_trace *t = w->torch;
    if (skips(w))
        return 0;
    if (t && t->overrides && t->overrides->state != FUNCTIONS_ON)
        return modes_are_on(t->overrides);
    int found = t && modes_are_on(t->overrides);
    for (size_t i = 0; i < call_count(c) && found == 0; i++)
        found = asks(w, c->args[i], 2);
    if (found > 0 && ((torch_trace *)w->torch)->overrides->state != FUNCTIONS_ON)
        return modes_are_on(((torch_trace *)w->torch)->overrides);
    return found;
}

// --- probes ---

typedef struct probing {
    world *w;
    PyObject *kept; // strong: list of what was made
    map originals;  // probe or copy → what it stands for, borrowed from the call's arguments
} probing;

static PyObject *probe(probing *p, PyObject *o);

// Takes the reference.
static PyObject *note_probe(probing *p, PyObject *made, PyObject *original) {
    bool fine = made && PyList_Append(p->kept, made) == 0 &&
                map_put(&p->originals, map_key(made), map_key(original)) == ST_OK;
    if (!fine)
        Py_CLEAR(made);
    return made;
}

static PyObject *probe_of_tensor(probing *p, standin *s) {
    const meta *m = meta_known(p->w, s->node);
    PyObject *dims = PyLong_FromLong(m ? m->dims : 1);
    PyObject *dtype = m ? dtype_object(m->dtype) : NULL;
    PyObject *grad = m && m->requires_grad ? Py_True : Py_False;
    PyObject *args[] = {(PyObject *)s->type, dims, dtype ? dtype : Py_None, grad};
    PyObject *made =
        dims ? PyObject_Vectorcall(glue_function("probe_tensor"), args, 4, NULL) : NULL;
    Py_XDECREF(dims);
    return note_probe(p, made, (PyObject *)s);
}

static PyObject *probe_items(probing *p, PyObject *o) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(o);
    PyObject *copy = PyList_New(count);
    for (Py_ssize_t i = 0; copy && i < count; i++) {
        PyObject *item = probe(p, PySequence_Fast_GET_ITEM(o, i));
        if (item)
            PyList_SET_ITEM(copy, i, item);
        else
            Py_CLEAR(copy);
    }
    if (copy && PyTuple_Check(o))
        Py_SETREF(copy, PyList_AsTuple(copy));
    return note_probe(p, copy, o);
}

static PyObject *probe_dict(probing *p, PyObject *o) {
    PyObject *copy = PyDict_New(), *key, *value;
    Py_ssize_t at = 0;
    while (copy && PyDict_Next(o, &at, &key, &value)) {
        PyObject *item = value_immutable(key) ? probe(p, value) : NULL;
        if (!item || PyDict_SetItem(copy, key, item) < 0)
            Py_CLEAR(copy);
        Py_XDECREF(item);
    }
    if (!copy && !PyErr_Occurred() && !p->w->stop.broken)
        return world_break(p->w, REASON_TENSOR_OPERATION, "a dict with keys of other types");
    return note_probe(p, copy, o);
}

static PyObject *probe_slice(probing *p, PySliceObject *o) {
    PyObject *start = probe(p, o->start), *stop = start ? probe(p, o->stop) : NULL;
    PyObject *step = stop ? probe(p, o->step) : NULL;
    PyObject *copy = step ? PySlice_New(start, stop, step) : NULL;
    Py_XDECREF(start);
    Py_XDECREF(stop);
    Py_XDECREF(step);
    return note_probe(p, copy, (PyObject *)o);
}

static PyObject *probe_of_object(probing *p, PyObject *o) {
    int asks = class_asks(p->w, Py_TYPE(o), false);
    if (asks <= 0)
        return asks < 0 ? NULL : plain_value(p->w, o);
    PyObject *made = PyObject_CallOneArg(glue_function("probe_object"), (PyObject *)Py_TYPE(o));
    return note_probe(p, made, o);
}

// What torch's parsers get in the place of an argument; new reference.
static PyObject *probe(probing *p, PyObject *o) {
    if (!(o = door_open(p->w, o)))
        return NULL;
    if (is_tensor_standin(o))
        return probe_of_tensor(p, (standin *)o);
    if (PyTuple_CheckExact(o) || PyList_CheckExact(o))
        return probe_items(p, o);
    if (PyDict_CheckExact(o))
        return probe_dict(p, o);
    if (PySlice_Check(o))
        return probe_slice(p, (PySliceObject *)o);
    if (PyFunction_Check(o) && record_of(p->w, o)) // the public function of handle_torch_function
        return Py_NewRef(o);
    return may_ask(o) && !is_standin(o) ? probe_of_object(p, o) : plain_value(p->w, o);
}

// --- what torch says back ---

static PyObject *original(probing *p, PyObject *o);

static PyObject *original_items(probing *p, PyObject *o) {
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < PySequence_Fast_GET_SIZE(o); i++) {
        PyObject *item = original(p, PySequence_Fast_GET_ITEM(o, i));
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    if (list && PyTuple_Check(o))
        Py_SETREF(list, PyList_AsTuple(list));
    return list;
}

static PyObject *original_dict(probing *p, PyObject *o) {
    PyObject *dict = PyDict_New(), *key, *value;
    Py_ssize_t at = 0;
    while (dict && PyDict_Next(o, &at, &key, &value)) {
        PyObject *item = original(p, value);
        if (!item || PyDict_SetItem(dict, key, item) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(item);
    }
    return dict;
}

// What a probe or a copy stands for; what torch has made of these; a plain value. New reference.
static PyObject *original(probing *p, PyObject *o) {
    uint64_t *known = map_get(&p->originals, map_key(o));
    if (known)
        return Py_NewRef((PyObject *)(uintptr_t)*known);
    if (PyTuple_CheckExact(o) || PyList_CheckExact(o))
        return original_items(p, o);
    if (PyDict_CheckExact(o))
        return original_dict(p, o);
    return value_immutable(o) ? Py_NewRef(o) : fixed_object(p->w, o);
}

static PyObject *original_types(world *w, PyObject *types) {
    PyObject *result = PyTuple_New(PyTuple_GET_SIZE(types));
    for (Py_ssize_t i = 0; result && i < PyTuple_GET_SIZE(types); i++) {
        PyObject *known = class_value(w, (PyTypeObject *)PyTuple_GET_ITEM(types, i));
        if (known)
            PyTuple_SET_ITEM(result, i, Py_NewRef(known));
        else
            Py_CLEAR(result);
    }
    return result;
}

// --- asking ---

// The first argument, in the order of the call, whose class has this probe class.
static PyObject *asked_by(probing *p, PyObject *class) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(p->kept); i++) {
        PyObject *made = PyList_GET_ITEM(p->kept, i);
        if ((PyObject *)Py_TYPE(made) == class)
            return (PyObject *)(uintptr_t)*map_get(&p->originals, map_key(made));
    }
    return NULL;
}

// Torch warns of a plain method, which the trace does not.
static PyObject *method_of(world *w, PyObject *who) {
    descr d;
    PyObject *raw = NULL;
    bool tensor = is_tensor_standin(who);
    PyTypeObject *class = tensor ? ((standin *)who)->type : Py_TYPE(who);
    PyObject *found = tensor ? attr_of_class(w, class, method_name(), &raw)
                             : type_lookup(w, class, method_name(), &raw);
    if (!found)
        return NULL;
    if (PyFunction_Check(raw))
        return world_break(w, REASON_TENSOR_OPERATION, "%s.__torch_function__ is a plain method",
                           class->tp_name);
    return descr_of(w, found, raw, &d) == ST_OK ? descr_get(w, &d, who, class) : NULL;
}

// A method, or the innermost mode. Native code lies between: a break within is one before the instruction, and what the method did
// to the state of torch functions until then is undone.
static PyObject *call_quietly(world *w, PyObject *method, PyObject *const *args, size_t given) {
    overrides *o = ((torch_trace *)w->torch)->overrides;
    uint32_t entered = o->entered.count;
    function_state state = o->state;
    call c = {.callable = method, .args = args, .given = given, .result = RUN_NATIVE};
    PyObject *result = method ? call_any(w, &c) : mode_ask(w, o, args, given);
    if (!result) {
        o->entered.count = o->outer.count = entered;
        o->state = state;
    }
    return result;
}

// One question: (class of the probe, (function, types, args[, kwargs])). New reference; it may be
// NotImplemented.
static PyObject *ask(probing *p, PyObject *question) {
    world *w = p->w;
    PyObject *given = PyTuple_GET_ITEM(question, 1), *all[4] = {0};
    PyObject *who = asked_by(p, PyTuple_GET_ITEM(question, 0));
    size_t count = (size_t)PyTuple_GET_SIZE(given);
    bool mode = PyTuple_GET_ITEM(question, 0) == Py_None;
    if ((!who && !mode) || count < 3 || count > 4)
        return world_break(w, REASON_TENSOR_OPERATION, "__torch_function__ with odd arguments");
    PyObject *method = mode ? NULL : method_of(w, who), *result = NULL;
    bool fine = (method || mode) && (all[0] = fixed_object(w, PyTuple_GET_ITEM(given, 0))) &&
                (all[1] = original_types(w, PyTuple_GET_ITEM(given, 1)));
    for (size_t i = 2; fine && i < count; i++)
        fine = (all[i] = original(p, PyTuple_GET_ITEM(given, (Py_ssize_t)i))) != NULL;
    if (fine)
        result = call_quietly(w, method, all, count);
    for (size_t i = 0; i < count; i++)
        Py_XDECREF(all[i]);
    Py_XDECREF(method);
    return result;
}

static PyObject *ask_all(probing *p, const call *c, PyObject *questions) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(questions); i++) {
        PyObject *answer = ask(p, PyList_GET_ITEM(questions, i));
        PyObject *opened = answer ? door_open(p->w, answer) : NULL;
        if (opened != Py_NotImplemented) {
            if (!opened)
                Py_CLEAR(answer);
            return answer;
        }
        Py_DECREF(answer);
    }
    return world_break_at(p->w, REASON_TENSOR_OPERATION, c->callable,
                          ": no __torch_function__ answers");
}

static PyObject *probe_keywords(probing *p, const call *c) {
    PyObject *kwargs = PyDict_New();
    for (Py_ssize_t i = 0; kwargs && c->keywords && i < PyTuple_GET_SIZE(c->keywords); i++) {
        PyObject *value = probe(p, c->args[c->given + (size_t)i]);
        if (!value || PyDict_SetItem(kwargs, PyTuple_GET_ITEM(c->keywords, i), value) < 0)
            Py_CLEAR(kwargs);
        Py_XDECREF(value);
    }
    return kwargs;
}

// Whom torch would ask: new list.
static PyObject *listen(probing *p, const call *c) {
    PyObject *args = PyTuple_New((Py_ssize_t)c->given), *questions = NULL;
    quiet q;
    quiet_begin(&q);
    for (size_t i = 0; args && i < c->given; i++) {
        PyObject *item = probe(p, c->args[i]);
        if (item)
            PyTuple_SET_ITEM(args, (Py_ssize_t)i, item);
        else
            Py_CLEAR(args);
    }
    PyObject *kwargs = args ? probe_keywords(p, c) : NULL;
    const torch_trace *t = p->w->torch;
    PyObject *all[] = {c->callable, args, kwargs, modes_are_on(t->overrides) ? Py_True : Py_False,
                       t->overrides->state == FUNCTIONS_ON ? Py_True : Py_False};
    if (kwargs)
        questions = PyObject_Vectorcall(glue_function("listen"), all, 5, NULL);
    quiet_end(&q);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return questions;
}

// A Python function of torch's that leaves the question to those that it calls is interpreted.
static bool is_composed(const call *c, PyObject *questions) {
    PyObject *first = PyTuple_GET_ITEM(PyList_GET_ITEM(questions, 0), 1);
    return PyFunction_Check(c->callable) && PyTuple_GET_ITEM(first, 0) != c->callable &&
           c->callable != glue_function("handle_torch_function");
}

static PyObject *call_composed(world *w, const call *c) {
    if (!record_of(w, c->callable))
        return world_break_at(w, REASON_TENSOR_OPERATION, c->callable, ", which asks others");
    call interpreted = call_again(c, c->callable);
    return call_function(w, &interpreted);
}

bool overrides_answer(world *w, const call *c, PyObject **result) {
    *result = NULL;
    if (!w->torch && facts.mode_count() > 0 && !trace_of(w))
        return true;
    // Of torch's Python functions the first question is skipped, and those that it calls ask.
    if (must_skip(w) && PyFunction_Check(c->callable)) {
        *result = call_composed(w, c);
        return true;
    }
    int found = asks_any(w, c);
    if (found <= 0)
        return found < 0;
    probing p = {.w = w, .kept = PyList_New(0)};
    PyObject *questions = p.kept ? listen(&p, c) : NULL;
    bool asked = !questions || PyList_GET_SIZE(questions) > 0;
    if (questions && asked)
        *result = is_composed(c, questions) ? call_composed(w, c) : ask_all(&p, c, questions);
    Py_XDECREF(questions);
    Py_XDECREF(p.kept);
    map_clear(&p.originals);
    return asked;
}

bool overrides_answer_of(world *w, PyObject *function, PyObject *const *args, size_t given,
                         PyObject **result) {
    return overrides_answer(w, &(call){.callable = function, .args = args, .given = given}, result);
}

PyObject *overrides_first(world *w, const call *c) {
    PyObject *answer;
    return overrides_answer(w, c, &answer) ? answer : c->rule->behind(w, c);
}

// torch._C._has_torch_function and its kin. Where a default device is on, torch calls the function
// by way of its mode, and without it within.
PyObject *call_overrides(world *w, const call *c) {
    torch_trace *t = trace_of(w);
    if (!t || t->device)
        return t ? world_break(w, REASON_TORCH_STATE, "a default device is on") : NULL;
    int found = asks_any(w, c);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

status overrides_asked(world *w) {
    if (!must_skip(w))
        return ST_OK;
    return world_break_status(w, REASON_TENSOR_OPERATION, "an operation in redispatch_function");
}

// torch._C._skip_one_hop_torch_function: calls a function whose first question has the answer that
// nobody is to be asked. Torch refuses a function that asks nothing.
PyObject *overrides_skip(world *w, const call *c) {
    overrides *o = overrides_of(w);
    PyObject *kwargs = o ? door_open(w, c->args[3]) : NULL;
    if (!kwargs)
        return NULL;
    o->skip = true;
    PyObject *result =
        call_star(w, c->args[0], c->args[2], kwargs == Py_None ? NULL : kwargs, RUN_NATIVE);
    if (result && o->skip) {
        Py_CLEAR(result);
        world_break(w, REASON_TENSOR_OPERATION, "redispatch_function of one that asks nobody");
    }
    o->skip = false;
    return result;
}

// --- classes with operators of their own ---

static status check_method(world *w, PyTypeObject *class, special id) {
    PyObject *name = special_name(id), *raw = NULL;
    PyObject *found = name ? attr_of_class(w, class, name, &raw) : NULL;
    if (!found && (PyErr_Occurred() || w->stop.broken))
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    if (!found || raw == _PyType_Lookup(facts.tensor, name))
        return ST_OK;
    return world_break_status(w, REASON_TENSOR_OPERATION, "%s.%U", class->tp_name, name);
}

status overrides_check(world *w, PyObject *const *operands, int count, special first, int methods) {
    const torch_trace *t = w->torch;
    for (int i = 0; t && t->overrides && i < count; i++) {
        if (!is_tensor_standin(operands[i]) || is_plain_class(((standin *)operands[i])->type))
            continue;
        for (int m = 0; m < methods; m++)
            TRY(check_method(w, ((standin *)operands[i])->type, (special)(first + m)));
    }
    return ST_OK;
}

int overrides_of_tensor(world *w, const standin *s) {
    const torch_trace *t = w->torch;
    if (skips(w))
        return 0;
    if (!t->overrides || t->overrides->state != FUNCTIONS_ON || modes_are_on(t->overrides))
        return modes_are_on(t->overrides);
    return class_asks(w, s->type, true);
}
