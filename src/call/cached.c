// Calls of functions that functools.lru_cache wraps. A call gives the result that the cache keeps.
// If the cache has none, and the trace finds that the function only computes, the real function is
// called, which adds the result, and the trace is done again. Else the trace breaks, so that the
// program's call adds it. Where the trace may not break, it calls the function itself and adds nothing
// to the cache, since a trace may be thrown away, and stand-ins do not outlive it. And
// functools.cached_property, without the lock that it takes in some Pythons.
#include "src/call/cached.h"

#include "src/interp/run.h"

#include "src/attr/attr.h"
#include "src/attr/words.h"

#include "src/call/call.h"
#include "src/call/handlers.h"
#include "src/call/native.h"

// A call: its key as the cache makes it, and what is known of it.
typedef struct cached_call {
    raw_cached parts;
    PyObject *key;  // strong
    bool unseen;    // some argument cannot be looked for: of a tensor there is only a stand-in
    bool fresh;     // some argument was made in this trace: no earlier call can have had it
    PyObject *self; // borrowed: the wrapper
} cached_call;

static PyObject *refuse(world *w, const cached_call *c) {
    PyObject *function = c->parts.function;
    PyObject *name = function && PyFunction_Check(function)
                         ? ((PyFunctionObject *)function)->func_qualname
                         : NULL;
    return world_break(w, REASON_NATIVE_CALL, "%V, whose results functools.lru_cache keeps", name,
                       "a function");
}

// --- keys ---

// Hashed by identity, and made inside: what came in from outside has a record.
static bool is_fresh(world *w, PyObject *o) {
    if (value_immutable(o) || record_of(w, o) || PyType_Check(o) || PyCFunction_Check(o))
        return false;
    return is_standin(o) || raw_is_python_class(Py_TYPE(o));
}

// torch.Size: hashed and compared as the tuple of its items.
static bool is_tuple_of_c(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return PyTuple_Check(o) && !PyTuple_CheckExact(o) && !raw_is_python_class(t) &&
           t->tp_hash == PyTuple_Type.tp_hash && t->tp_richcompare == PyTuple_Type.tp_richcompare;
}

// An argument as it lies in a key; new reference. NULL with an exception or a break.
static PyObject *key_part(world *w, cached_call *c, PyObject *arg) {
    PyObject *o = native_open(w, arg, P_NONE);
    if (!o)
        return NULL;
    c->fresh |= is_fresh(w, o);
    if (is_standin(o) || world_manner(Py_TYPE(o)) == TYPE_BY_VALUE) {
        c->unseen = true;
        return o;
    }
    Py_DECREF(o);
    o = native_open(w, arg, P_HASH);
    if (o && is_tuple_of_c(o))
        Py_SETREF(o, PySequence_Tuple(o));
    if (!o || raw_key_simple(o))
        return o;
    Py_DECREF(o);
    return refuse(w, c);
}

static status key_put(world *w, cached_call *c, PyObject *list, PyObject *arg) {
    PyObject *part = key_part(w, c, arg);
    int failed = part ? PyList_Append(list, part) : -1;
    Py_XDECREF(part);
    return failed < 0 ? (w->stop.broken ? ST_BREAK : ST_ERROR) : ST_OK;
}

// The mark is the cache's own for good.
static status key_put_mark(world *w, cached_call *c, PyObject *list) {
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, c->parts.mark, 0);
    PyObject *mark = s ? door_bring(w, s, c->parts.mark) : NULL;
    return mark && PyList_Append(list, mark) == 0 ? ST_OK : ST_ERROR;
}

static status key_put_types(world *w, PyObject *list, PyObject *const *args, size_t count) {
    for (size_t i = 0; i < count; i++) {
        PyTypeObject *type = door_type(w, args[i]);
        if (!type || PyList_Append(list, (PyObject *)type) < 0)
            return w->stop.broken ? ST_BREAK : ST_ERROR;
    }
    return ST_OK;
}

// lru_cache_make_key's order: arguments, the mark and keywords, types of both.
static status key_fill(world *w, cached_call *c, PyObject *list, const call *by) {
    size_t named = call_count(by) - by->given;
    for (size_t i = 0; i < by->given; i++)
        TRY(key_put(w, c, list, by->args[i]));
    if (named)
        TRY(key_put_mark(w, c, list));
    for (size_t i = 0; i < named; i++) {
        if (PyList_Append(list, PyTuple_GET_ITEM(by->keywords, i)) < 0)
            return ST_ERROR;
        TRY(key_put(w, c, list, by->args[by->given + i]));
    }
    return c->parts.typed ? key_put_types(w, list, by->args, call_count(by)) : ST_OK;
}

static status key_make(world *w, cached_call *c, const call *by) {
    PyObject *list = PyList_New(0);
    status st = list ? key_fill(w, c, list, by) : ST_ERROR;
    PyObject *only = st == ST_OK && PyList_GET_SIZE(list) == 1 ? PyList_GET_ITEM(list, 0) : NULL;
    if (only && (PyUnicode_CheckExact(only) || PyLong_CheckExact(only)))
        c->key = Py_NewRef(only);
    else if (st == ST_OK && !(c->key = PyList_AsTuple(list)))
        st = ST_ERROR;
    Py_XDECREF(list);
    return st;
}

// --- calls before, in this trace ---

// Whether two parts of keys are one: 1, 0; -1: it cannot be said.
static int same_part(PyObject *a, PyObject *b) {
    if (a == b)
        return 1;
    if (!value_immutable(a) || !value_immutable(b))
        return 0;
    int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    return equal > 0 && Py_TYPE(a) != Py_TYPE(b) ? -1 : equal;
}

static int same_key(PyObject *a, PyObject *b) {
    if (!PyTuple_CheckExact(a) || !PyTuple_CheckExact(b))
        return same_part(a, b);
    Py_ssize_t n = PyTuple_GET_SIZE(a);
    int same = n == PyTuple_GET_SIZE(b);
    for (Py_ssize_t i = 0; i < n && same != 0; i++) {
        int part = same_part(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
        same = part == 1 ? same : part;
    }
    return same;
}

// A second call would find what the first one left in the cache; borrowed. NULL without an
// exception: there was none.
static PyObject *result_before(world *w, const cached_call *c) {
    for (Py_ssize_t i = 0; w->held.cached && i < PyList_GET_SIZE(w->held.cached); i++) {
        PyObject *call = PyList_GET_ITEM(w->held.cached, i);
        if (PyTuple_GET_ITEM(call, 0) != c->self)
            continue;
        int same = same_key(PyTuple_GET_ITEM(call, 1), c->key);
        if (same < 0 && !PyErr_Occurred())
            refuse(w, c);
        if (same != 0)
            return same > 0 ? PyTuple_GET_ITEM(call, 2) : NULL;
    }
    return NULL;
}

static status note_result(world *w, const cached_call *c, PyObject *result) {
    if (!w->held.cached && !(w->held.cached = world_keep(w, PyList_New(0))))
        return ST_ERROR;
    PyObject *call = PyTuple_Pack(3, c->self, c->key, result);
    int failed = call ? PyList_Append(w->held.cached, call) : -1;
    Py_XDECREF(call);
    return failed < 0 ? ST_ERROR : ST_OK;
}

// --- the cache ---

static PyObject *fixed(world *w, PyObject *o) {
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, o, 0);
    return s ? door_load(w, s, o) : NULL;
}

// The call that an entry spares is counted by it.
static status note_hit(world *w, const cached_call *c, source *link) {
    const record *r = record_of(w, c->self);
    source *s = r ? r->source : guard_source(w->guards, SOURCE_FIXED, NULL, c->self, 0);
    return s ? vec_push(&w->in.hits, ((cache_hit){s, link})) : ST_ERROR;
}

// What the cache has under the key, guarded either way; NULL without an exception: nothing.
static PyObject *result_kept(world *w, const cached_call *c) {
    PyObject *dict = fixed(w, c->parts.results);
    record *r = dict ? door_dict(w, dict) : NULL;
    names *n = r ? names_of_dict(w, r) : NULL;
    w->inside.caches++;
    PyObject *kept = n ? names_get(w, n, c->key) : NULL;
    w->inside.caches--;
    Py_XDECREF(dict);
    if (kept && !c->parts.bounded && note_hit(w, c, NULL) != ST_OK)
        Py_CLEAR(kept);
    if (!kept || !c->parts.bounded)
        return kept;
    lazy *link = (lazy *)kept;
    PyObject *result = is_lazy(kept) ? raw_cached_result(link->outside) : NULL;
    source *s = result ? guard_source(w->guards, SOURCE_CACHED, link->source, NULL, 0) : NULL;
    PyObject *loaded = s ? door_load(w, s, result) : NULL;
    if (!result)
        refuse(w, c);
    if (loaded && note_hit(w, c, link->source) != ST_OK)
        Py_CLEAR(loaded);
    Py_DECREF(kept);
    return loaded;
}

// --- the function ---

static PyObject *call_behind(world *w, const cached_call *c, const call *by) {
    PyObject *function = fixed(w, c->parts.function);
    call behind = call_again(by, function);
    PyObject *result = function ? call_any(w, &behind) : NULL;
    Py_XDECREF(function);
    return result;
}

// What may come out of a later call's cache, too, without anybody telling the difference: values,
// what lies outside, tensors.
static bool can_be_kept(world *w, PyObject *o) {
    if (is_lazy(o) || is_standin(o) || value_immutable(o) || record_of(w, o))
        return true;
    if (PyType_Check(o) || PyCFunction_Check(o))
        return true;
    bool all = PyTuple_CheckExact(o);
    for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(o); i++)
        all = can_be_kept(w, PyTuple_GET_ITEM(o, i));
    return all;
}

// In a later call the cache would have the result: then nothing must happen but what can happen
// again, or the real cache is asked. (A function that breaks is asked there, too: the call is
// native.)
static PyObject *note_unless_writes(world *w, const cached_call *c, PyObject *result,
                                    uint64_t writes) {
    if (!result)
        return NULL;
    if (w->held.writes != writes || !can_be_kept(w, result)) {
        Py_DECREF(result);
        world_touch(w);
        return refuse(w, c);
    }
    if (note_result(w, c, result) != ST_OK)
        Py_CLEAR(result);
    return result;
}

static PyObject *call_and_note(world *w, const cached_call *c, const call *by) {
    uint64_t writes = w->held.writes;
    return note_unless_writes(w, c, call_behind(w, c, by), writes);
}

// --- typing's own ---

// Optional[int] and its like depend on their arguments alone, and typing keeps them for good.
static bool is_typings(PyObject *function) {
    PyObject *module =
        PyFunction_Check(function) ? ((PyFunctionObject *)function)->func_module : NULL;
    return module && PyUnicode_Check(module) &&
           PyUnicode_CompareWithASCIIString(module, "typing") == 0;
}

// What a part of a key is outside; new reference. NULL without an exception: it is not sure that
// only typing's code would run for it.
static PyObject *part_outside(world *w, PyObject *part) {
    if (PyTuple_CheckExact(part)) {
        PyObject *real = PyTuple_New(PyTuple_GET_SIZE(part));
        for (Py_ssize_t i = 0; real && i < PyTuple_GET_SIZE(part); i++) {
            PyObject *item = part_outside(w, PyTuple_GET_ITEM(part, i));
            if (item)
                PyTuple_SET_ITEM(real, i, item);
            else
                Py_CLEAR(real);
        }
        return real;
    }
    bool class = PyType_Check(part) && !type_is_made(w, (PyTypeObject *)part) &&
                 Py_TYPE(part)->tp_hash == PyBaseObject_Type.tp_hash;
    if (class || value_immutable(part))
        return Py_NewRef(part);
    record *r = record_of(w, part);
    PyObject *home = NULL;
    bool known = r && raw_is_python_class(Py_TYPE(part)) &&
                 raw_dict_get(raw_type_dict(Py_TYPE(part)), word.module, &home) == RAW_FOUND &&
                 PyUnicode_Check(home) && PyUnicode_CompareWithASCIIString(home, "typing") == 0;
    return known ? Py_NewRef(r->outside) : NULL;
}

// Calls the real function, as an import is done for real: the cache has the result from then on.
static status fill_for_real(world *w, const cached_call *c, const call *by) {
    PyObject *parts = PyTuple_CheckExact(c->key) ? Py_NewRef(c->key) : PyTuple_Pack(1, c->key);
    PyObject *real = parts ? part_outside(w, parts) : NULL, *result = NULL;
    if (real && !by->keywords && PyTuple_GET_SIZE(real) >= (Py_ssize_t)by->given) {
        w->inside.quiet++;
        result = PyObject_Vectorcall(c->self, ((PyTupleObject *)real)->ob_item, by->given, NULL);
        w->inside.quiet--;
        PyErr_Clear(); // the traced function raises it again
    }
    Py_XDECREF(parts);
    Py_XDECREF(real);
    Py_XDECREF(result);
    return PyErr_Occurred() ? ST_ERROR : ST_OK;
}

// --- a function that only computes ---

// An argument as the real function gets it; new reference. NULL without an exception: there is none.
static PyObject *argument_outside(world *w, PyObject *arg) {
    PyObject *o = door_open(w, arg);
    if (!o)
        return NULL;
    const record *r = record_of(w, o);
    bool itself = r && r->outside == o && Py_TYPE(o)->tp_hash == PyBaseObject_Type.tp_hash;
    bool tuple = PyTuple_Check(o) && !raw_is_python_class(Py_TYPE(o));
    for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(o); i++)
        tuple = value_immutable(PyTuple_GET_ITEM(o, i));
    bool class = PyType_Check(o) && !type_is_made(w, (PyTypeObject *)o);
    return value_immutable(o) || itself || tuple || class ? Py_NewRef(o) : NULL;
}

// An exception that is the user's (Ctrl-C), not the function's.
static bool is_interrupted(world *w) {
    if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_Exception))
        return false;
    w->stop.interrupted = true;
    return true;
}

// Calls the real function, which fills the cache: 1. 0: it cannot be called, or raises. -1: an
// exception that must leave the trace, or a break.
static int fill_now(world *w, const cached_call *c, const call *by) {
    Py_ssize_t count = (Py_ssize_t)call_count(by), made = 0;
    PyObject *args = PyTuple_New(count), *result = NULL;
    for (; args && made < count; made++) {
        PyObject *arg = argument_outside(w, by->args[made]);
        if (!arg)
            break;
        PyTuple_SET_ITEM(args, made, arg);
    }
    if (args && made == count) {
        w->inside.quiet++;
        result =
            PyObject_Vectorcall(c->self, ((PyTupleObject *)args)->ob_item, by->given, by->keywords);
        w->inside.quiet--;
    }
    Py_XDECREF(args);
    Py_XDECREF(result);
    if (w->stop.broken || is_interrupted(w))
        return -1;
    PyErr_Clear();
    return result != NULL;
}

// The function is traced on trial: a break in it becomes one before the call.
static PyObject *call_on_trial(world *w, const cached_call *c, const call *by, bool *reads) {
    bool met = w->facts.met;
    uint64_t outer = w->time.trial;
    w->facts.met = false;
    w->time.trial = outer ? outer : w->run->started;
    w->inside.trials++;
    PyObject *result = call_behind(w, c, by);
    w->inside.trials--;
    if (!w->stop.broken)
        w->time.trial = outer;
    *reads = w->facts.met || w->facts.class_written;
    w->facts.met |= met;
    return result;
}

// Whether the function that was traced only computes, of its arguments and of what nobody has changed
// so far. Behind an assertion that the graph is to make, plain Python may never call the function.
static bool only_computed(const world *w, const graph *before, bool stale) {
    return w->graph->calls == before->calls && !stale && !w->facts.assumed &&
           !(before->effects & (EFFECT_RANDOM | EFFECT_UNKNOWN));
}

// Traces the function to see what it does, and calls it for real if it only computes. NULL with a
// break: the trace is done again, or the program's own call fills the cache.
static PyObject *fill_and_begin_anew(world *w, const cached_call *c, const call *by) {
    uint64_t writes = w->held.writes;
    graph before = *w->graph;
    bool wrote = world_wrote(w), reads;
    PyObject *result = call_on_trial(w, c, by, &reads);
    bool raised = !result && !w->stop.broken && !is_interrupted(w);
    if (!result && !raised)
        return NULL;
    if (raised && w->terms.whole) // as where the function is only traced
        return NULL;
    PyErr_Clear();
    bool computes = result && w->held.writes == writes && only_computed(w, &before, reads && wrote);
    int filled = computes ? fill_now(w, c, by) : 0;
    if (filled == 0 && w->terms.whole)
        return note_unless_writes(w, c, result, writes);
    Py_XDECREF(result);
    if (filled < 0)
        return NULL;
    world_touch(w);
    if (filled) {
        raw_cached_expect(c->self); // the program's own call is the one that missed
        w->stop.outdated = true;
    }
    return refuse(w, c);
}

static PyObject *call_by_key(world *w, const cached_call *c, const call *by) {
    PyObject *before = result_before(w, c);
    if (before || w->stop.broken || PyErr_Occurred())
        return Py_XNewRef(before);
    bool seen = !c->unseen && !c->fresh;
    if (seen && w->terms.whole && is_typings(c->parts.function) && fill_for_real(w, c, by) != ST_OK)
        return NULL;
    PyObject *kept = seen ? result_kept(w, c) : NULL;
    if (kept || w->stop.broken || PyErr_Occurred())
        return kept;
    bool own = !w->time.trial || w->inside.trials > 0;
    if (seen && c->parts.room && w->run && w->scope == w->graph && own)
        return fill_and_begin_anew(w, c, by);
    if (!w->terms.whole) // the real one is called, and keeps the result: the next trace finds it
        return refuse(w, c);
    return call_and_note(w, c, by);
}

PyObject *call_cached(world *w, const call *by) {
    cached_call c = {.self = by->callable};
    if (!raw_cached_parts(by->callable, &c.parts))
        return refuse(w, &c);
    if (!c.parts.keeps)
        return call_behind(w, &c, by);
    PyObject *result = NULL;
    if (key_make(w, &c, by) == ST_OK)
        result = call_by_key(w, &c, by);
    Py_XDECREF(c.key);
    return result;
}

// --- cached_property ---

static PyObject *fill_property(world *w, PyObject *self, PyObject *o, PyObject *dict,
                               PyObject *name) {
    PyObject *function = handler_attr(w, self, "func");
    PyObject *value = function ? call_with(w, function, &o, 1) : NULL;
    if (value && op_setitem(w, dict, name, value) < 0)
        Py_CLEAR(value);
    Py_XDECREF(function);
    return value;
}

// cached_property.__get__(self, o, class), but that no other thread is waited for: a trace holds no
// lock, and what it writes is written when it has run.
static HANDLER(cached_property_get) {
    int whole = c->given == 3 && !c->keywords ? door_is(w, c->args[1], Py_None) : 1;
    PyObject *name = whole == 0 ? handler_attr(w, c->args[0], "attrname") : NULL;
    int known = name ? !door_is(w, name, Py_None) : 0;
    if (whole < 0 || w->stop.broken || PyErr_Occurred()) {
        Py_XDECREF(name);
        return NULL;
    }
    if (!known) { // the class itself, or an error in the library's own words
        Py_XDECREF(name);
        return handler_interpret(w, c);
    }
    PyObject *dict = attr_get(w, c->args[1], word.dict), *value = NULL;
    int there = dict ? op_contains(w, dict, name) : -1;
    if (there >= 0)
        value = there ? op_getitem(w, dict, name)
                      : fill_property(w, c->args[0], c->args[1], dict, name);
    Py_XDECREF(dict);
    Py_DECREF(name);
    return value;
}

static bool takes_lock(PyObject *function) {
    PyObject *names = PyFunction_Check(function)
                          ? ((PyCodeObject *)PyFunction_GET_CODE(function))->co_names
                          : NULL;
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "lock") == 0)
            return true;
    return false;
}

status cached_setup(void) {
    static const rule row = {.path = "functools.cached_property.__get__",
                             .kind = RULE_HANDLED,
                             .handler = handle_cached_property_get,
                             .takes = ANY,
                             .writes = W_NONE};
    PyObject *class = py_import("functools", "cached_property");
    PyObject *get = class ? PyObject_GetAttrString(class, "__get__") : NULL;
    status st = get ? ST_OK : ST_ERROR;
    if (get && takes_lock(get))
        st = rules_add(get, &row);
    Py_XDECREF(get);
    Py_XDECREF(class);
    return st;
}
