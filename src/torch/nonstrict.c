// A function that `nonstrict_trace` has marked: a call is one node, whose code nobody looks into.
// What it is given and gives are trees of objects. `_nonstrict.py` is interpreted in the place of
// the call: it takes the trees apart, so that the node has tensors and plain values alone.
#include "src/interp/run.h"
#include "src/call/call.h"

#include "src/torch/higher.h"
#include "src/torch/levels.h"

// The marked function's own place is taken by `begin` of the glue's, which gets it as an argument.
PyObject *nonstrict_begin(world *w, const call *c) {
    call marked = *c;
    marked.callable = glue_function("nonstrict");
    return call_with_first(w, &marked, c->callable);
}

// --- arguments that are taken apart ---

static bool is_apart(PyObject *o) {
    static PyObject *name;
    if (!name)
        name = PyUnicode_InternFromString("__dataclass_params__");
    if (!name || !raw_is_python_class(Py_TYPE(o)) || is_tensor_standin(o))
        return false;
    return PyTuple_Check(o) || _PyType_Lookup(Py_TYPE(o), name);
}

int nonstrict_takes(world *w, const call *c) {
    for (size_t i = 0; i < call_count(c); i++) {
        PyObject *o = opened_or_number(w, c->args[i]);
        if (!o)
            return -1;
        if (!is_lazy(o) && is_apart(o))
            return 1;
    }
    return 0;
}

// --- the program's words about classes ---

static PyObject *ask(const char *question, PyObject *a, PyObject *b) {
    quiet q;
    quiet_begin(&q);
    PyObject *answer = PyObject_CallFunctionObjArgs(glue_function(question), a, b, NULL);
    quiet_end(&q);
    return answer;
}

// `manner(object)`: what the program has said of the object's class, a text or None.
PyObject *nonstrict_manner(world *w, const call *c) {
    PyObject *o = door_open(w, c->args[0]);
    return o ? ask("constant_manner", (PyObject *)Py_TYPE(o), NULL) : NULL;
}

// `is_outside(object)`.
PyObject *nonstrict_outside(world *w, const call *c) {
    PyObject *o = door_open(w, c->args[0]);
    const record *r = o ? record_of(w, o) : NULL;
    return o ? PyBool_FromLong(r && r->outside == o) : NULL;
}

// `refuse(text, class or function)`.
PyObject *nonstrict_refuse(world *w, const call *c) {
    PyObject *text = door_open(w, c->args[0]), *what = text ? door_open(w, c->args[1]) : NULL;
    if (!what)
        return NULL;
    const char *name = PyType_Check(what) ? ((PyTypeObject *)what)->tp_name : NULL;
    PyObject *word = name ? PyUnicode_FromString(name) : callable_text(what);
    world_break(w, REASON_TENSOR_OPERATION, "%V: %V", text, "?", word, "?");
    Py_XDECREF(word);
    return NULL;
}

// --- the node ---

static PyObject *function_of(world *w, PyObject *argument) {
    PyObject *function = door_open(w, argument);
    record *r = function ? record_of(w, function) : NULL;
    if (r && r->outside == function)
        return record_identity(w, r) == ST_OK ? function : NULL;
    if (!function)
        return NULL;
    PyObject *name = graph_target_word(function, "__name__");
    if (!name)
        PyErr_Clear();
    world_break(w, REASON_TENSOR_OPERATION,
                "Applying `nonstrict_trace` to function <%V>; however, `nonstrict_trace` currently "
                "requires the function to be defined outside `torch.compile` region.",
                name, "?");
    Py_XDECREF(name);
    return NULL;
}

// What the node gives, and how that is put together again: the same in each call.
static PyObject *with_spec(world *w, PyObject *target, PyObject *given) {
    PyObject *spec = ask("nonstrict_spec", target, NULL);
    source *s = spec ? guard_source(w->guards, SOURCE_FIXED, NULL, spec, 0) : NULL;
    PyObject *brought = s ? door_bring(w, s, spec) : NULL;
    Py_XDECREF(spec);
    return brought ? PyTuple_Pack(2, given, brought) : NULL;
}

// `apply(function, how its arguments are put together, *tensors and values)`.
PyObject *nonstrict_apply(world *w, const call *c) {
    PyObject *function = function_of(w, c->args[0]);
    PyObject *plan = function ? operand_kept(w, c->args[1]) : NULL;
    PyObject *target = plan ? ask("nonstrict_target", function, plan) : NULL;
    PyObject *given = NULL, *result = NULL;
    if (target && random_is_drawn(w))
        world_break(w, REASON_RANDOM_STATE, "and calls Python code behind an operation");
    else if (target && levels_forbid(w, "Python code behind an operation") == ST_OK &&
             body_enters(w, function, true) == ST_OK) {
        ((torch_trace *)w->torch)->pending = EFFECT_UNKNOWN;
        given = record_function(w, target, c->args + 2, c->given - 2);
    }
    if (given)
        result = with_spec(w, target, given);
    Py_XDECREF(plan);
    Py_XDECREF(target);
    Py_XDECREF(given);
    return result;
}
