// Turns a call of a marked callable into a break with its own reason, or into the constant that the
// callable gives. Marks are attributes that torch's decorators set, or members of torch's sets of
// ids. They are read when a call is traced, and have no guards.
#include "src/call/call.h"
#include "src/call/handlers.h"

#include "src/torch/marks.h"

#define MARK_WORDS(X)                                                                              \
    X(disable, "_torchdynamo_disable")                                                             \
    X(recursive, "_torchdynamo_disable_recursive")                                                 \
    X(message, "_torchdynamo_disable_msg")                                                         \
    X(original, "_torchdynamo_orig_callable")                                                      \
    X(wrapper, "_torchdynamo_wrapper_id")                                                          \
    X(wrapped, "__wrapped__")                                                                      \
    X(forbidden, "_dynamo_forbidden")                                                              \
    X(constant, "_dynamo_marked_constant")

static struct {
#define WORD(id, text) PyObject *id;
    MARK_WORDS(WORD)
#undef WORD
    PyObject *allowed, *disallowed, *nonstrict; // strong: sets of ids, or NULL
    const rule *allow; // what becomes of those that are allowed; NULL: torch is not there
    const rule *apart; // likewise of those that nonstrict_trace has marked
    const rule *make;  // likewise of classes of tensors that hold others,
    bool (*makes)(PyObject *callable); // which this tells
    PyObject *substituted, *find; // strong: a set of ids, and what gives a function for one of them
    PyObject *disabler;           // strong: code of functions that disable another one; or NULL
    VEC(PyObject *) strict;       // strong: dict and key, in turns
} marks;

// --- reading marks ---

// An entry of the function's own dict; borrowed, or NULL without an exception.
static PyObject *mark_of(PyObject *function, PyObject *name) {
    PyObject *dict = ((PyFunctionObject *)function)->func_dict;
    return dict ? PyDict_GetItem(dict, name) : NULL;
}

// functools.wraps copies a wrapper's marks to what wraps it; the id says whose they are.
static bool is_own(PyObject *function) {
    PyObject *id = mark_of(function, marks.wrapper);
    if (!id || !PyLong_Check(id))
        return true;
    void *owner = PyLong_AsVoidPtr(id);
    if (!owner)
        PyErr_Clear();
    return owner == (void *)function;
}

mark_reach mark_disabled(PyObject *function) {
    if (mark_of(function, marks.disable) != Py_True || !is_own(function))
        return MARK_NOT;
    return mark_of(function, marks.recursive) == Py_True ? MARK_BELOW : MARK_FRAME;
}

// Bound C methods are other objects inside than outside, and people have marked the outside one.
static PyObject *outside_of(const world *w, PyObject *callable) {
    record *r = PyCFunction_Check(callable) ? record_of(w, callable) : NULL;
    return r && r->outside ? r->outside : callable;
}

static bool in_set(const world *w, PyObject *set, PyObject *callable) {
    if (!set || PySet_GET_SIZE(set) == 0)
        return false;
    PyObject *id = PyLong_FromVoidPtr(outside_of(w, callable));
    int found = id ? PySet_Contains(set, id) : -1;
    Py_XDECREF(id);
    if (found < 0)
        PyErr_Clear();
    return found > 0;
}

bool mark_allows(const world *w, PyObject *callable) {
    return in_set(w, marks.allowed, callable);
}

void mark_allow_by(const rule *row, const rule *nonstrict) {
    marks.allow = row;
    marks.apart = nonstrict;
}

void mark_make_by(const rule *row, bool (*makes)(PyObject *callable)) {
    marks.makes = makes;
    marks.make = row;
}

// --- breaks ---

// torch marks some functions of its own at their first call, in a function around them.
static bool is_disabler(PyObject *function) {
    return marks.disabler && PyFunction_GET_CODE(function) == marks.disabler;
}

static HANDLER(disabled) {
    PyObject *function = c->callable;
    PyObject *original = mark_of(function, is_disabler(function) ? marks.wrapped : marks.original);
    PyObject *why = mark_of(function, marks.message);
    if (!original || !PyFunction_Check(original))
        original = function;
    PyCodeObject *co = (PyCodeObject *)PyFunction_GET_CODE(original);
    bool said = why && PyUnicode_Check(why);
    return world_break(w, REASON_DISABLED, "%U (%U:%d)%s%V",
                       ((PyFunctionObject *)original)->func_qualname, co->co_filename,
                       co->co_firstlineno, said ? ": " : "", said ? why : NULL, "");
}

static HANDLER(forbidden) {
    return world_break_at(w, REASON_FORBIDDEN, c->callable, "");
}

static HANDLER(disallowed) {
    return world_break_at(w, REASON_DISALLOWED, c->callable, "");
}

// `graph_break(msg)`: the message is the user's.
static HANDLER(graph_break) {
    PyObject *message = c->given > 0 ? c->args[0] : handler_keyword(c, "msg");
    PyObject *text = message ? door_open(w, message) : NULL;
    if (message && !text)
        return NULL;
    return world_break(w, REASON_GRAPH_BREAK, "%V",
                       text && PyUnicode_CheckExact(text) ? text : NULL, "graph_break()");
}

// `skip_frame(msg)`: nothing of the frame is compiled, from where the trace began. Of a frame that
// was called in the trace only the call itself is CPython's: nobody could tell.
static HANDLER(skip_frame) {
    (void)c;
    world_break(w, REASON_SKIP_FRAME, "skip_frame()");
    if (w->run == w->root) {
        Py_CLEAR(w->stop.image);
        w->time.again = 0;
    }
    return NULL;
}

// `step_unsupported(msg)`: a break; the policy leaves what follows to CPython.
static HANDLER(step) {
    (void)c;
    return world_break(w, REASON_STEP, "step_unsupported()");
}

// --- assume_constant_result ---

// The real object that an argument stands for; new reference.
static PyObject *real_value(world *w, PyObject *argument) {
    PyObject *o = door_open(w, argument);
    if (!o || value_immutable(o))
        return Py_XNewRef(o);
    record *r = is_standin(o) ? NULL : record_of(w, o);
    if (!r || r->outside != o)
        return world_break(w, REASON_UNKNOWN_FUNCTION,
                           "a constant function with an argument of type %s", Py_TYPE(o)->tp_name);
    return record_identity(w, r) == ST_OK ? Py_NewRef(o) : NULL;
}

// What it gave is the same in every call from now on: the user has promised that.
static PyObject *fixed(world *w, PyObject *value) {
    if (value_immutable(value))
        return Py_NewRef(value);
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, value, 0);
    return s ? door_load(w, s, value) : NULL;
}

static HANDLER(constant) {
    size_t all = call_count(c), made = 0;
    PyObject **values = PyMem_New(PyObject *, all + 1), *value = NULL;
    if (!values)
        return PyErr_NoMemory();
    while (made < all && (values[made] = real_value(w, c->args[made])))
        made++;
    if (made == all) {
        w->inside.quiet++;
        value = PyObject_Vectorcall(c->callable, values, c->given, c->keywords);
        w->inside.quiet--;
    }
    while (made > 0)
        Py_DECREF(values[--made]);
    PyMem_Free(values);
    PyObject *result = value ? fixed(w, value) : NULL;
    Py_XDECREF(value);
    return result;
}

// --- substitutes ---

// What the user has given to be traced in a callable's place; new reference, NULL without an
// exception if there is none.
static PyObject *substitute_of(world *w, PyObject *callable) {
    w->inside.quiet++;
    PyObject *found = PyObject_CallOneArg(marks.find, outside_of(w, callable));
    w->inside.quiet--;
    if (found == Py_None)
        Py_CLEAR(found);
    return found;
}

static bool has_substitute(world *w, PyObject *callable) {
    PyObject *found = in_set(w, marks.substituted, callable) ? substitute_of(w, callable) : NULL;
    Py_XDECREF(found); // the user's table has it
    return found != NULL;
}

static HANDLER(substituted) {
    PyObject *function = substitute_of(w, c->callable);
    record *r = function ? record_of(w, c->callable) : NULL;
    if (!function || (r && record_identity(w, r) != ST_OK)) {
        Py_XDECREF(function);
        return NULL;
    }
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, function, 0);
    call instead = *c;
    instead.callable = s ? door_bring(w, s, function) : NULL;
    PyObject *result = instead.callable ? call_any(w, &instead) : NULL;
    Py_DECREF(function);
    return result;
}

// --- rows ---

#define MARKED(name)                                                                               \
    {.path = #name, .kind = RULE_HANDLED, .handler = handle_##name, .takes = ANY, .writes = W_NONE}

static const rule *rule_of_function(PyObject *function, const rule *row) {
    static const rule disabled = MARKED(disabled), forbidden = MARKED(forbidden),
                      constant = MARKED(constant);
    if (mark_disabled(function) || (!row && is_disabler(function)))
        return &disabled;
    if (mark_of(function, marks.forbidden) == Py_True)
        return &forbidden;
    return mark_of(function, marks.constant) == Py_True ? &constant : NULL;
}

// What the engine itself knows of a callable counts more than sets of ids, and what torch's rows
// say more than that it is allowed.
static const rule *mark_rule(world *w, const call *c, const rule *row) {
    PyObject *callable = c->callable;
    const rule *logs = logging_rule(w, c);
    if (logs)
        return logs;
    static const rule substituted = MARKED(substituted), disallowed = MARKED(disallowed);
    bool open = !row || row->weak;
    if (open && has_substitute(w, callable))
        return &substituted;
    if (PyErr_Occurred())
        return NULL;
    if (open && in_set(w, marks.disallowed, callable))
        return &disallowed;
    bool marked = PyFunction_Check(callable) && ((PyFunctionObject *)callable)->func_dict;
    const rule *own = marked ? rule_of_function(callable, row) : NULL;
    bool allowed = marks.allow && !own && !(row && row->weak) && in_set(w, marks.allowed, callable);
    if (!row && !own && !allowed && marks.make && marks.makes(callable))
        return marks.make;
    if (!allowed)
        return own;
    return in_set(w, marks.nonstrict, callable) ? marks.apart : marks.allow;
}

// --- whether breaks are errors ---

// What a dict has under a key as the trace sees it: a held-back write counts. Borrowed, or NULL.
static PyObject *seen(world *w, PyObject *dict, PyObject *key) {
    uint64_t *joined = map_get(&w->in.dicts, map_key(dict));
    const names *n = joined ? (const names *)(uintptr_t)*joined : NULL;
    PyObject *held = n && n->twin      ? PyDict_GetItem(n->twin, key)
                     : n && n->pending ? PyDict_GetItem(n->pending, key)
                                       : NULL;
    if (held && is_lazy(held))
        held = ((lazy *)held)->outside;
    return held ? held : PyDict_GetItem(dict, key);
}

bool mark_strict(world *w) {
    if (w->stop.in_strict)
        return true;
    for (uint32_t i = 0; i < marks.strict.count; i += 2)
        if (seen(w, marks.strict.items[i], marks.strict.items[i + 1]) == Py_True)
            return true;
    return false;
}

// --- functions for Python ---

static PyObject *graph_break(PyObject *module, PyObject *args, PyObject *keywords) {
    static char *names[] = {"msg", NULL};
    PyObject *message;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|U:graph_break", names, &message))
        return NULL;
    Py_RETURN_NONE;
}

static HANDLER(tracing) {
    (void)c;
    w->facts.told = true;
    return Py_NewRef(Py_True);
}

static PyObject *tracing(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyBool_FromLong(world_here != NULL);
}

static PyObject *mark_ids(PyObject *module, PyObject *args) {
    PyObject *allowed, *disallowed, *nonstrict;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PySet_Type, &allowed, &PySet_Type, &disallowed,
                          &PySet_Type, &nonstrict))
        return NULL;
    Py_XSETREF(marks.allowed, Py_NewRef(allowed));
    Py_XSETREF(marks.disallowed, Py_NewRef(disallowed));
    Py_XSETREF(marks.nonstrict, Py_NewRef(nonstrict));
    Py_RETURN_NONE;
}

static PyObject *mark_substitutes(PyObject *module, PyObject *args) {
    PyObject *ids, *find;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O", &PySet_Type, &ids, &find))
        return NULL;
    Py_XSETREF(marks.substituted, Py_NewRef(ids));
    Py_XSETREF(marks.find, Py_NewRef(find));
    Py_RETURN_NONE;
}

static PyObject *mark_strict_at(PyObject *module, PyObject *args) {
    PyObject *dict, *key;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!U", &PyDict_Type, &dict, &key))
        return NULL;
    if (vec_reserve(&marks.strict, 2) != ST_OK)
        return NULL;
    marks.strict.items[marks.strict.count++] = Py_NewRef(dict);
    marks.strict.items[marks.strict.count++] = Py_NewRef(key);
    Py_RETURN_NONE;
}

static PyObject *mark_disabler(PyObject *module, PyObject *code) {
    (void)module;
    if (!PyCode_Check(code))
        return PyErr_Format(PyExc_TypeError, "code expected");
    Py_XSETREF(marks.disabler, Py_NewRef(code));
    Py_RETURN_NONE;
}

// The rows are kept, and their texts with them, as long as the process lives.
static PyObject *refuse(PyObject *module, PyObject *args) {
    PyObject *callable, *path, *why;
    const char *id;
    (void)module;
    if (!PyArg_ParseTuple(args, "OUsU", &callable, &path, &id, &why))
        return NULL;
    reason found = reason_by_id(id);
    if (found == REASON_COUNT)
        return PyErr_Format(PyExc_ValueError, "no reason is called %s", id);
    const char *path_text = PyUnicode_AsUTF8(path), *why_text = PyUnicode_AsUTF8(why);
    rule *row = path_text && why_text ? PyMem_Malloc(sizeof(rule)) : NULL;
    if (!row)
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    *row = (rule){.path = path_text,
                  .kind = RULE_OPAQUE,
                  .why = why_text,
                  .reason = found,
                  .takes = ANY,
                  .writes = W_NONE};
    if (found == REASON_GRAPH_BREAK)
        row->handler = handle_graph_break;
    if (found == REASON_STEP)
        row->handler = handle_step;
    if (found == REASON_SKIP_FRAME)
        row->handler = handle_skip_frame;
    if (row->handler)
        row->kind = RULE_HANDLED;
    if (rules_add(callable, row) != ST_OK) {
        PyMem_Free(row);
        return NULL;
    }
    Py_INCREF(path);
    Py_INCREF(why);
    Py_RETURN_NONE;
}

PyMethodDef marks_methods[] = {
    {"graph_break", (PyCFunction)(void (*)(void))graph_break, METH_VARARGS | METH_KEYWORDS,
     "graph_break(msg='')\n--\n\nBreaks a graph here; does nothing in code that is not compiled."},
    {"tracing", tracing, METH_NOARGS, "Whether this is run by a trace."},
    {"mark_ids", mark_ids, METH_VARARGS,
     "mark_ids(allowed, disallowed, nonstrict): sets of callables' ids."},
    {"mark_substitutes", mark_substitutes, METH_VARARGS,
     "mark_substitutes(ids, find): find(callable) is what is traced in its place, or None."},
    {"mark_strict_at", mark_strict_at, METH_VARARGS,
     "mark_strict_at(dict, key): breaks are errors while dict[key] is True."},
    {"mark_disabler", mark_disabler, METH_O,
     "mark_disabler(code): calls of functions of this code break, as those of disabled ones."},
    {"refuse", refuse, METH_VARARGS, "refuse(callable, path, reason, why): its calls break."},
    {"know_random", random_know, METH_O,
     "know_random(function): random.Random's method that draws below a number."},
    {NULL, NULL, 0, NULL},
};

int marks_setup(void) {
    static const rule asks = MARKED(graph_break), tells = MARKED(tracing);
    call_mark_rule = mark_rule;
#define WORD(id, text)                                                                             \
    if (!marks.id && !(marks.id = PyUnicode_InternFromString(text)))                               \
        return -1;
    MARK_WORDS(WORD)
#undef WORD
    if (rules_add_definition(&marks_methods[0], &asks) != ST_OK)
        return -1;
    return rules_add_definition(&marks_methods[1], &tells) == ST_OK ? 0 : -1;
}
