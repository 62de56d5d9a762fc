// A call of torch as a node: its arguments twice, as fakes to run on and as the node's own; its
// result as stand-ins.
#include "src/py/raised.h"
#include "src/py/signals.h"

#include "src/interp/run.h"

#include "src/torch/room.h"

void (*torch_quiet_enter)(void **state);
void (*torch_quiet_leave)(void **state);

void quiet_begin(quiet *q) {
    q->held = py_hold_signals();
    q->state = NULL;
    if (torch_quiet_enter)
        torch_quiet_enter(&q->state);
    settings_on();
}

void quiet_end(quiet *q) {
    settings_off();
    if (torch_quiet_leave)
        torch_quiet_leave(&q->state);
    py_let_signals_go(q->held);
}

// --- arguments ---

// One argument in its two forms; strong references.
typedef struct pair {
    PyObject *fake, *plain;
} pair;

static status convert(world *w, PyObject *argument, pair *to);

static status same(PyObject *o, pair *to) {
    to->fake = Py_NewRef(o);
    to->plain = Py_NewRef(o);
    return ST_OK;
}

static void drop_pair(pair *p) {
    Py_CLEAR(p->fake);
    Py_CLEAR(p->plain);
}

static status convert_standin(world *w, PyObject *o, pair *to) {
    standin *s = (standin *)o;
    if (s->world != w) {
        PyErr_SetString(PyExc_RuntimeError, "a tensor of another trace was used in this one");
        return ST_ERROR;
    }
    to->fake = Py_NewRef(s->fake);
    to->plain = Py_NewRef(s->node);
    return ST_OK;
}

static status convert_items(world *w, PyObject *const *items, Py_ssize_t count, pair lists) {
    for (Py_ssize_t i = 0; i < count; i++) {
        pair p = {0};
        TRY(convert(w, items[i], &p));
        if (PyTuple_Check(lists.fake)) {
            PyTuple_SET_ITEM(lists.fake, i, p.fake);
            PyTuple_SET_ITEM(lists.plain, i, p.plain);
        } else {
            PyList_SET_ITEM(lists.fake, i, p.fake);
            PyList_SET_ITEM(lists.plain, i, p.plain);
        }
    }
    return ST_OK;
}

static status convert_sequence(world *w, PyObject *const *items, Py_ssize_t count, bool tuple,
                               pair *to) {
    to->fake = tuple ? PyTuple_New(count) : PyList_New(count);
    to->plain = tuple ? PyTuple_New(count) : PyList_New(count);
    status result = to->fake && to->plain ? convert_items(w, items, count, *to) : ST_ERROR;
    if (result != ST_OK)
        drop_pair(to);
    return result;
}

static status put_pair(pair dicts, PyObject *key, pair p) {
    if (PyDict_SetItem(dicts.fake, key, p.fake) < 0)
        return ST_ERROR;
    return PyDict_SetItem(dicts.plain, key, p.plain) < 0 ? ST_ERROR : ST_OK;
}

static status convert_entry(world *w, PyObject *key, PyObject *value, pair dicts) {
    pair p = {0};
    if (!value_immutable(key))
        return world_break_status(w, REASON_TENSOR_OPERATION, "dict argument with a key of type %s",
                                  Py_TYPE(key)->tp_name);
    TRY(convert(w, value, &p));
    status result = put_pair(dicts, key, p);
    drop_pair(&p);
    return result;
}

static status convert_dict(world *w, PyObject *dict, pair *to) {
    to->fake = PyDict_New();
    to->plain = PyDict_New();
    status result = to->fake && to->plain ? ST_OK : ST_ERROR;
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (result == ST_OK && PyDict_Next(dict, &at, &key, &value))
        result = convert_entry(w, key, value, *to);
    if (result != ST_OK)
        drop_pair(to);
    return result;
}

static status convert_slice(world *w, PySliceObject *slice, pair *to) {
    PyObject *parts[] = {slice->start, slice->stop, slice->step};
    pair tuples;
    TRY(convert_sequence(w, parts, 3, true, &tuples));
    PyObject **f = ((PyTupleObject *)tuples.fake)->ob_item;
    PyObject **p = ((PyTupleObject *)tuples.plain)->ob_item;
    to->fake = PySlice_New(f[0], f[1], f[2]);
    to->plain = PySlice_New(p[0], p[1], p[2]);
    drop_pair(&tuples);
    if (to->fake && to->plain)
        return ST_OK;
    drop_pair(to);
    return ST_ERROR;
}

static bool is_torch_constant(PyTypeObject *type) {
    return type == facts.dtype || type == facts.device || type == facts.layout ||
           type == facts.memory_format || type == facts.size;
}

static bool is_plain(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return o == Py_None || o == Py_Ellipsis || t == &PyBool_Type || t == &PyLong_Type ||
           t == &PyFloat_Type || t == &PyComplex_Type || t == &PyUnicode_Type ||
           t == &PyBytes_Type || is_torch_constant(t);
}

static bool is_number_class(PyObject *o) {
    return o == (PyObject *)&PyFloat_Type || o == (PyObject *)&PyLong_Type ||
           o == (PyObject *)&PyBool_Type || o == (PyObject *)&PyComplex_Type;
}

// Whether C code made a number type of its own out of int or float: torch.tensor(numpy.float64(1))
// has that type's dtype.
static bool is_c_number(PyTypeObject *t) {
    while (raw_is_python_class(t) && t->tp_base != NULL)
        t = t->tp_base;
    return t != &PyLong_Type && t != &PyFloat_Type;
}

// A user's subclass of int, float or str counts as its value, unless torch would ask the class.
static status convert_subclass(world *w, PyObject *o, pair *to) {
    PyObject *name = PyUnicode_InternFromString("__torch_function__");
    if (!name)
        return ST_ERROR;
    bool asks = is_c_number(Py_TYPE(o)) || _PyType_Lookup(Py_TYPE(o), name) != NULL;
    Py_DECREF(name);
    PyObject *value = NULL;
    if (!asks && PyLong_Check(o))
        value = _PyLong_Copy((PyLongObject *)o);
    else if (!asks && PyFloat_Check(o))
        value = PyFloat_FromDouble(PyFloat_AS_DOUBLE(o));
    if (value) {
        to->fake = value;
        to->plain = Py_NewRef(value);
        return ST_OK;
    }
    if (PyErr_Occurred())
        return ST_ERROR;
    return world_break_status(w, REASON_TENSOR_OPERATION, "argument of type %s",
                              Py_TYPE(o)->tp_name);
}

static status convert(world *w, PyObject *o, pair *to) {
    if (!(o = door_open(w, o)))
        return w->broken ? ST_BREAK : ST_ERROR;
    if (is_tensor_standin(o))
        return convert_standin(w, o, to);
    if (is_plain(o))
        return same(o, to);
    if (PyTuple_CheckExact(o) || PyList_CheckExact(o))
        return convert_sequence(w, PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o),
                                PyTuple_CheckExact(o), to);
    if (PyDict_CheckExact(o))
        return convert_dict(w, o, to);
    if (PySlice_Check(o))
        return convert_slice(w, (PySliceObject *)o, to);
    if (PyRange_Check(o) || is_number_class(o))
        return same(o, to);
    if (PyTuple_Check(o) && !raw_is_python_class(Py_TYPE(o))) // torch.return_types
        return convert_sequence(w, ((PyTupleObject *)o)->ob_item, PyTuple_GET_SIZE(o), true, to);
    return convert_subclass(w, o, to);
}

static status note_node(node *n, void *found) {
    (void)n;
    *(bool *)found = true;
    return ST_OK;
}

PyObject *plain_value(world *w, PyObject *argument) {
    pair p = {0};
    if (convert(w, argument, &p) != ST_OK)
        return NULL;
    bool found = false;
    (void)node_walk(p.plain, note_node, &found);
    Py_DECREF(p.plain);
    if (!found)
        return p.fake;
    Py_DECREF(p.fake);
    return world_break(w, REASON_TENSOR_OPERATION, "a tensor where a plain value was expected");
}

// --- running on fakes ---

typedef struct recording {
    pair args, kwargs; // tuples; dicts, or NULL
} recording;

static void recording_clear(recording *r) {
    drop_pair(&r->args);
    drop_pair(&r->kwargs);
}

static status convert_keywords(world *w, call_args a, pair *to) {
    to->fake = PyDict_New();
    to->plain = PyDict_New();
    status result = to->fake && to->plain ? ST_OK : ST_ERROR;
    for (Py_ssize_t i = 0; result == ST_OK && i < PyTuple_GET_SIZE(a.keywords); i++)
        result =
            convert_entry(w, PyTuple_GET_ITEM(a.keywords, i), a.args[a.given + (size_t)i], *to);
    return result;
}

static status convert_call(world *w, call_args a, recording *r) {
    TRY(convert_sequence(w, a.args, (Py_ssize_t)a.given, true, &r->args));
    if (a.keywords && PyTuple_GET_SIZE(a.keywords) > 0)
        return convert_keywords(w, a, &r->kwargs);
    return ST_OK;
}

static PyObject *callable_name(PyObject *callable) {
    if (PyUnicode_Check(callable))
        return PyUnicode_FromFormat("Tensor.%U", callable);
    PyObject *name = PyObject_GetAttrString(callable, "__name__");
    if (name)
        return name;
    PyErr_Clear();
    return PyObject_Repr(callable);
}

// The first line of an exception's text, or what stands for it.
static PyObject *first_line(PyObject *exception) {
    PyObject *text = PyObject_Str(exception);
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
    w->interrupted = true;
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

static int flag_of(PyObject *mode, const char *name) {
    PyObject *flag = PyObject_GetAttrString(mode, name);
    Py_XDECREF(flag);
    return flag ? flag == Py_True : -1;
}

// Torch's complaint about a call on fakes: eager would complain as well, or it cannot be known
// here. Or the glue's, that a hook belongs to what the tensor was before.
static void fake_failed(world *w, torch_trace *t, PyObject *target) {
    if (error_stays(w))
        return;
    reason why =
        PyErr_ExceptionMatches(facts.data_dependent) ? value_reason(target) : fake_reason();
    PyObject *exception = py_take_raised();
    PyObject *name = callable_name(target), *line = first_line(exception);
    PyErr_Clear();
    if (flag_of(t->mode, "stator_overwrites") > 0)
        why = REASON_HOOK;
    PyErr_Clear();
    world_break(w, why, "%V: %V", name, "?", line, "?");
    Py_XDECREF(name);
    Py_XDECREF(line);
    Py_DECREF(exception);
}

static status make_mode(torch_trace *t) {
    if (!t->mode)
        t->mode = PyObject_CallNoArgs(glue_function("make_mode"));
    return t->mode ? ST_OK : ST_ERROR;
}

static PyObject *run_fakes(world *w, torch_trace *t, PyObject *target, PyObject *callable,
                           const recording *r) {
    if (make_mode(t) != ST_OK)
        return NULL;
    PyObject *args[] = {t->mode, callable, r->args.fake, r->kwargs.fake ? r->kwargs.fake : Py_None};
    PyObject *result = PyObject_Vectorcall(glue_function("run"), args, 4, NULL);
    if (!result)
        fake_failed(w, t, target);
    return result;
}

// --- results ---

typedef enum shape {
    SHAPE_PLAIN,   // numbers, sizes, dtypes: no node
    SHAPE_TENSORS, // a tensor somewhere
    SHAPE_UNKNOWN,
} shape;

static bool is_fake(PyObject *o) {
    return PyObject_TypeCheck(o, facts.fake);
}

static shape shape_of(PyObject *result) {
    if (is_fake(result))
        return SHAPE_TENSORS;
    if (is_plain(result) && !PyUnicode_Check(result))
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

static PyObject *wrap_item(world *w, PyObject *sequence, Py_ssize_t i, node *n) {
    PyObject *item = PySequence_Fast_GET_ITEM(sequence, i);
    if (shape_of(item) == SHAPE_PLAIN)
        return Py_NewRef(item);
    PyObject *index = PyLong_FromSsize_t(i);
    PyObject *args = index ? PyTuple_Pack(2, n, index) : NULL;
    node *get =
        args ? graph_call(w->graph, NODE_CALL_FUNCTION, facts.getitem, args, NULL, item, n->stack)
             : NULL;
    if (get)
        Py_SETREF(get->modules, Py_NewRef(n->modules));
    PyObject *result = get ? wrap(w, item, get) : NULL;
    Py_XDECREF(index);
    Py_XDECREF(args);
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
    if (is_fake(value))
        return standin_for(w, value, n);
    if (is_plain(value))
        return Py_NewRef(value);
    return wrap_sequence(w, value, n);
}

// dtype, device, layout: objects of torch's that never change, which the entry then holds.
PyObject *fixed_value(world *w, PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    if (!is_torch_constant(type) || type == facts.size || record_of(w, value))
        return Py_NewRef(value);
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, value, 0);
    return Py_XNewRef(s ? door_bring(w, s, value) : NULL);
}

// --- whose operation it is ---

// Where the module is found whose call this frame is; NULL if it was made inside.
static source *module_place(world *w, const run *r, PyObject **module) {
    PyObject *self = py_frame_slots(r->frame)[0];
    if (self && PyCell_Check(self)) // a function within the frame's uses it
        self = PyCell_GET(self);
    if (self && is_lazy(self)) {
        *module = ((lazy *)self)->outside;
        return ((lazy *)self)->source;
    }
    record *known = self ? record_of(w, self) : NULL;
    *module = known ? known->outside : NULL;
    return known ? known->source : NULL;
}

static status add_module(PyObject *list, world *w, const run *r) {
    PyObject *module;
    source *place = module_place(w, r, &module);
    if (!place)
        return ST_OK;
    PyObject *text = input_name(w, place);
    PyObject *item =
        text ? Py_BuildValue("NNO", PyLong_FromVoidPtr(module), text, Py_TYPE(module)) : NULL;
    int failed = item ? PyList_Insert(list, 0, item) : -1;
    Py_XDECREF(item);
    return failed < 0 ? ST_ERROR : ST_OK;
}

status record_modules(world *w, node *n) {
    PyObject *list = NULL;
    for (const run *r = w->run; r; r = r->below) {
        if ((PyObject *)r->code->py != facts.module_call)
            continue;
        if ((!list && !(list = PyList_New(0))) || add_module(list, w, r) != ST_OK) {
            Py_XDECREF(list);
            return ST_ERROR;
        }
    }
    PyObject *modules = list ? PyList_AsTuple(list) : NULL;
    if (modules)
        Py_SETREF(n->modules, modules);
    Py_XDECREF(list);
    return list && !modules ? ST_ERROR : ST_OK;
}

static node *new_call(world *w, node_op op, PyObject *target, PyObject *args, PyObject *kwargs,
                      PyObject *meta) {
    PyObject *stack = world_stack(w);
    world_touch(w);
    node *n = stack ? graph_call(w->graph, op, target, args, kwargs, meta, stack) : NULL;
    Py_XDECREF(stack);
    if (n && record_modules(w, n) != ST_OK)
        Py_CLEAR(n);
    return n;
}

static node *add_node(world *w, node_op op, PyObject *target, const recording *r, PyObject *meta) {
    return new_call(w, op, target, r->args.plain, r->kwargs.plain, meta);
}

static PyObject *finish(world *w, node_op op, PyObject *target, const recording *r,
                        PyObject *result) {
    shape s = shape_of(result);
    if (s == SHAPE_UNKNOWN) {
        PyObject *name = callable_name(target);
        world_break(w, REASON_TENSOR_OPERATION, "%V gives a %s", name, "?",
                    Py_TYPE(result)->tp_name);
        Py_XDECREF(name);
        return NULL;
    }
    if (s == SHAPE_PLAIN && result != Py_None)
        return fixed_value(w, result);
    node *n = add_node(w, op, target, r, result);
    PyObject *wrapped = n ? wrap(w, result, n) : NULL;
    Py_XDECREF(n);
    return wrapped;
}

// What the run did, beside its result: the glue notes it in the mode.
static status note_effects(world *w, torch_trace *t) {
    int wrote = flag_of(t->mode, "stator_wrote"), random = flag_of(t->mode, "stator_random");
    if (wrote < 0 || random < 0)
        return ST_ERROR;
    if (wrote && !w->mutated_tensor)
        inputs_guard_sharing(w);
    if (wrote && PyObject_SetAttrString(t->mode, "stator_wrote", Py_False) < 0)
        return ST_ERROR;
    if (wrote)
        t->written = w->clock;
    w->writes += wrote || random;
    t->effects += wrote || random;
    w->mutated_tensor = w->mutated_tensor || wrote;
    w->random = w->random || random;
    return ST_OK;
}

// Quiet to the end: fakes that die run weak references' callbacks, which are Python code.
PyObject *record_call(world *w, node_op op, PyObject *target, PyObject *callable, call_args a) {
    torch_trace *t = trace_of(w);
    recording r = {0};
    PyObject *result = NULL, *fake = NULL;
    quiet q;
    quiet_begin(&q);
    if (t && convert_call(w, a, &r) == ST_OK)
        fake = run_fakes(w, t, target, callable, &r);
    if (fake && note_effects(w, t) == ST_OK)
        result = finish(w, op, target, &r, fake);
    Py_XDECREF(fake);
    recording_clear(&r);
    quiet_end(&q);
    return result;
}

PyObject *record_function(world *w, PyObject *function, PyObject *const *args, size_t given) {
    return record_call(w, NODE_CALL_FUNCTION, function, function, (call_args){args, given, NULL});
}

node *record_setter(world *w, PyObject *function, PyObject *args) {
    return new_call(w, NODE_CALL_FUNCTION, function, args, NULL, NULL);
}
