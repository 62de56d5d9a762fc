// Calls: turns a callable of any kind into a call of a Python function (whose frame comes back
// through the hook), of a class, or of a C function by its rule.
#include "src/py/raised.h"

#include "src/interp/call.h"
#include "src/interp/errors.h"
#include "src/interp/run.h"

#include "src/call/cached.h"
#include "src/call/call.h"
#include "src/call/descr.h"
#include "src/call/homes.h"
#include "src/call/marks.h"
#include "src/call/native.h"
#include "src/call/rules.h"
#include "src/call/words.h"

PyTypeObject *call_compiled_type;
PyObject *(*call_compiled_function)(PyObject *compiled);
bool (*call_compiled_strict)(PyObject *compiled);
PyObject *(*call_function)(world *w, PyObject *function, PyObject *const *args, size_t given,
                           PyObject *keywords);

int call_setup(void) {
    return words_setup();
}

// --- arguments ---

enum { FEW = 10 };

// Room for arguments; on the C stack if they are few.
typedef struct arguments {
    PyObject *few[FEW];
    PyObject **items;
} arguments;

static bool arguments_make(arguments *a, size_t count) {
    a->items = count <= FEW ? a->few : PyMem_Malloc(count * sizeof(PyObject *));
    if (a->items == NULL)
        PyErr_NoMemory();
    return a->items != NULL;
}

static void arguments_free(arguments *a) {
    if (a->items != a->few)
        PyMem_Free(a->items);
}

static size_t count_of(size_t given, PyObject *keywords) {
    size_t positional = (size_t)PyVectorcall_NARGS(given);
    return positional + (keywords ? (size_t)PyTuple_GET_SIZE(keywords) : 0);
}

static PyObject *call_joined(world *w, PyObject *callable, PyObject *first, PyObject *const *args,
                             size_t given, PyObject *keywords, int thin) {
    size_t count = count_of(given, keywords);
    arguments a;
    if (!arguments_make(&a, count + 1))
        return NULL;
    a.items[0] = first;
    if (count > 0)
        memcpy(a.items + 1, args, count * sizeof(PyObject *));
    size_t positional = (size_t)PyVectorcall_NARGS(given) + 1;
    w->thin = thin;
    PyObject *result = call_any(w, callable, a.items, positional, keywords);
    arguments_free(&a);
    return result;
}

PyObject *call_with_first(world *w, PyObject *callable, PyObject *first, PyObject *const *args,
                          size_t given, PyObject *keywords) {
    return call_joined(w, callable, first, args, given, keywords, RUN_NATIVE);
}

PyObject *call_init(world *w, PyObject *function, PyObject *object, PyObject *const *args,
                    size_t given, PyObject *keywords, int thin) {
    w->made_object = object;
    return call_joined(w, function, object, args, given, keywords,
                       thin == RUN_THIN ? RUN_INIT : RUN_NATIVE);
}

// --- native calls ---

PyObject *call_native(world *w, PyObject *callable, PyObject *const *args, size_t given,
                      PyObject *keywords, bool suspicious) {
    suspicious = suspicious || native_has_lazy(args, given, keywords);
    return native_result(w, PyObject_Vectorcall(callable, args, given, keywords), suspicious);
}

// --- Python functions ---

static bool is_known(const world *w, PyObject *function) {
    return map_get(&w->made.objects, map_key(function)) != NULL || record_of(w, function) != NULL;
}

static PyObject *call_python(world *w, PyObject *function, PyObject *const *args, size_t given,
                             PyObject *keywords) {
    const rule *row = rule_of(function); // a few of the library's have one
    int thin = w->tail;
    if (row != NULL && (row->applies == NULL || row->applies(w, args, PyVectorcall_NARGS(given))))
        return rule_call(w, row, function, args, given, keywords);
    if (w->stop.broken || PyErr_Occurred())
        return NULL;
    w->tail = thin; // looking may have run code
    if (!is_known(w, function))
        return world_break(w, REASON_UNKNOWN_FUNCTION, "%U",
                           ((PyFunctionObject *)function)->func_qualname);
    w->thin = w->tail;
    PyObject *result = call_function(w, function, args, given, keywords);
    w->thin = w->tail = RUN_NATIVE;
    return result;
}

// --- bound methods, partials, static methods ---

// A part of a callable, as it is inside: a new reference.
static PyObject *part_of(world *w, PyObject *o, source_kind kind, PyObject *name) {
    record *r = record_itself(w, o);
    PyObject *part = r ? load_field(w, r, kind, NULL, 0) : PyObject_GenericGetAttr(o, name);
    PyObject *opened = part ? Py_XNewRef(door_open(w, part)) : NULL;
    Py_XDECREF(part);
    return opened;
}

static PyObject *call_bound(world *w, PyObject *method, PyObject *const *args, size_t given,
                            PyObject *keywords) {
    int thin = w->tail;
    PyObject *function = part_of(w, method, SOURCE_METHOD_FUNC, word.func);
    PyObject *self = function ? part_of(w, method, SOURCE_METHOD_SELF, word.self) : NULL;
    PyObject *result = self ? call_joined(w, function, self, args, given, keywords, thin) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(self);
    return result;
}

static PyObject *joined_args(PyObject *first, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t before = PyTuple_GET_SIZE(first);
    PyObject *all = PyTuple_New(before + count);
    for (Py_ssize_t i = 0; all != NULL && i < before + count; i++)
        PyTuple_SET_ITEM(all, i,
                         Py_NewRef(i < before ? PyTuple_GET_ITEM(first, i) : args[i - before]));
    return all;
}

// Keywords of the call count more than those a partial holds, but keep the place of the latter.
static PyObject *joined_keywords(PyObject *held, PyObject *const *values, PyObject *names) {
    PyObject *all = PyDict_Copy(held);
    for (Py_ssize_t i = 0; all && names && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(all, PyTuple_GET_ITEM(names, i), values[i]) < 0)
            Py_CLEAR(all);
    return all;
}

static PyObject *call_flat(world *w, PyObject *callable, PyObject *args, PyObject *keywords,
                           int thin) {
    flat_args flat = call_flatten(args, keywords);
    if (flat.items == NULL)
        return NULL;
    PyObject *names = PyTuple_GET_SIZE(flat.names) > 0 ? flat.names : NULL;
    w->thin = thin;
    PyObject *result = call_any(w, callable, flat.items, flat.given, names);
    call_drop_flat(&flat);
    return result;
}

static PyObject *call_partial(world *w, PyObject *partial, PyObject *const *args, size_t given,
                              PyObject *keywords) {
    Py_ssize_t count = PyVectorcall_NARGS(given);
    int thin = w->tail;
    PyObject *function = part_of(w, partial, SOURCE_PARTIAL_FUNC, word.partial_func);
    PyObject *first = function ? part_of(w, partial, SOURCE_PARTIAL_ARGS, word.args) : NULL;
    PyObject *held = first ? part_of(w, partial, SOURCE_PARTIAL_KEYWORDS, word.keywords) : NULL;
    PyObject *all = held ? joined_args(first, args, count) : NULL;
    PyObject *named = all ? joined_keywords(held, args + count, keywords) : NULL;
    PyObject *result = named ? call_flat(w, function, all, named, thin) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(first);
    Py_XDECREF(held);
    Py_XDECREF(all);
    Py_XDECREF(named);
    return result;
}

static PyObject *call_static(world *w, PyObject *o, PyObject *const *args, size_t given,
                             PyObject *keywords) {
    descr d = {.found = o, .raw = o};
    int thin = w->tail;
    PyObject *callable = descr_held(w, &d, SOURCE_WRAPPED, word.func);
    if (callable == NULL)
        return PyErr_Occurred() ? NULL : world_break(w, REASON_NATIVE_CALL, "staticmethod(None)");
    w->thin = thin;
    PyObject *result = call_any(w, callable, args, given, keywords);
    Py_DECREF(callable);
    return result;
}

// --- C callables ---

static PyObject *call_by_rule(world *w, PyObject *callable, PyObject *const *args, size_t given,
                              PyObject *keywords) {
    const rule *row = rule_of(callable);
    if (row != NULL)
        return rule_call(w, row, callable, args, given, keywords);
    return world_break_at(w, home_reason(callable), callable, "");
}

static bool is_native(PyObject *callable) {
    return PyCFunction_Check(callable) || Py_IS_TYPE(callable, &PyMethodDescr_Type) ||
           Py_IS_TYPE(callable, &PyWrapperDescr_Type) ||
           Py_IS_TYPE(callable, word.method_wrapper) ||
           Py_IS_TYPE(callable, &PyClassMethodDescr_Type);
}

// --- objects with __call__ ---

static PyObject *call_way(world *w, const way *s, PyObject *self, PyObject *const *args,
                          size_t given, PyObject *keywords, int thin) {
    if (PyFunction_Check(s->raw))
        return call_joined(w, s->found, self, args, given, keywords, thin);
    descr d;
    if (descr_of(w, s->found, s->raw, &d) != ST_OK)
        return NULL;
    PyObject *bound = descr_get(w, &d, self, Py_TYPE(self));
    PyObject *result = bound ? call_any(w, bound, args, given, keywords) : NULL;
    Py_XDECREF(bound);
    return result;
}

// object_vacall's words for what cannot be called.
static PyObject *not_callable(PyObject *o) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not callable", Py_TYPE(o)->tp_name);
    return NULL;
}

// The object is guarded by identity, and its function never changes.
static PyObject *call_compiled(world *w, PyObject *o, PyObject *const *args, size_t given,
                               PyObject *keywords) {
    PyObject *function = call_compiled_function(o);
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, function, 0);
    PyObject *opened = s ? door_bring(w, s, function) : NULL;
    bool strict = call_compiled_strict(o);
    w->inside.strict += strict;
    PyObject *result = opened ? call_python(w, opened, args, given, keywords) : NULL;
    w->inside.strict -= strict;
    return result;
}

static PyObject *call_object_once(world *w, PyObject *o, PyObject *const *args, size_t given,
                                  PyObject *keywords) {
    PyTypeObject *type = Py_TYPE(o);
    int thin = w->tail;
    if (type == call_compiled_type)
        return call_compiled(w, o, args, given, keywords);
    way call;
    if (way_find(w, type, word.call, (void *)type->tp_call, &call) != ST_OK)
        return NULL;
    w->tail = thin; // looking may have run code
    if (call.found != NULL)
        return call_way(w, &call, o, args, given, keywords, thin);
    if (call.native == NULL)
        return not_callable(o);
    if (call.native == (void *)word.partial->tp_call)
        return call_partial(w, o, args, given, keywords);
    if (call.native == (void *)word.cached->tp_call)
        return call_cached(w, o, args, given, keywords);
    if (call.native == (void *)PyStaticMethod_Type.tp_call)
        return call_static(w, o, args, given, keywords);
    return call_by_rule(w, o, args, given, keywords);
}

// Counted as _PyObject_MakeTpCall does: an object may lead to itself.
static PyObject *call_object(world *w, PyObject *o, PyObject *const *args, size_t given,
                             PyObject *keywords) {
    if (Py_EnterRecursiveCall(" while calling a Python object"))
        return NULL;
    PyObject *result = call_object_once(w, o, args, given, keywords);
    Py_LeaveRecursiveCall();
    return result;
}

PyObject *call_class(world *w, PyObject *class, PyObject *const *args, size_t given,
                     PyObject *keywords) {
    PyTypeObject *meta = Py_TYPE(class);
    int thin = w->tail;
    way call;
    if (way_find(w, meta, word.call, (void *)meta->tp_call, &call) != ST_OK)
        return NULL;
    if (call.found != NULL)
        return call_way(w, &call, class, args, given, keywords, thin);
    w->tail = thin;
    if (call.native == (void *)PyType_Type.tp_call)
        return call_type_call(w, class, args, given, keywords);
    return world_break(w, REASON_NATIVE_CALL, "%s, by its metaclass",
                       ((PyTypeObject *)class)->tp_name);
}

// --- any ---

static PyObject *call_by_kind(world *w, PyObject *callable, PyObject *const *args, size_t given,
                              PyObject *keywords) {
    if (PyFunction_Check(callable))
        return call_python(w, callable, args, given, keywords);
    if (is_native(callable))
        return call_by_rule(w, callable, args, given, keywords);
    if (PyType_Check(callable))
        return call_class(w, callable, args, given, keywords);
    return call_object(w, callable, args, given, keywords);
}

PyObject *call_any(world *w, PyObject *callable, PyObject *const *args, size_t given,
                   PyObject *keywords) {
    int thin = w->thin;
    w->thin = RUN_NATIVE;
    callable = door_open(w, callable);
    if (callable == NULL)
        return NULL;
    w->tail = thin;
    given = (size_t)PyVectorcall_NARGS(given); // nobody below borrows the slot before the arguments
    if (keywords != NULL && PyTuple_GET_SIZE(keywords) == 0)
        keywords = NULL;
    if (Py_IS_TYPE(callable, &PyMethod_Type))
        return call_bound(w, callable, args, given, keywords);
    if (is_trampoline(callable)) {
        w->thin = thin;
        return call_any(w, trampoline_callable(callable), args, given, keywords);
    }
    bool handled = false;
    PyObject *result = mark_call(w, callable, args, given, keywords, &handled);
    if (!handled && world_tensors != NULL)
        result = world_tensors->call(w, callable, args, given, keywords, &handled);
    w->tail = thin; // torch may have run code
    if (!handled && !PyErr_Occurred())
        result = call_by_kind(w, callable, args, given, keywords);
    if (w->stop.broken)
        Py_CLEAR(result);
    else if (result != NULL && !PyFunction_Check(callable))
        native_made(w, result);
    return result;
}

// --- f(*args, **keywords) ---

static PyObject *star_args(world *w, PyObject *callable, PyObject *args) {
    PyObject *opened = door_open(w, args);
    if (opened == NULL)
        return NULL;
    if (PyTuple_CheckExact(opened))
        return Py_NewRef(opened);
    if (error_check_star_args(callable, opened) < 0)
        return NULL;
    PyObject *list = PyList_New(0), *tuple = NULL;
    if (list != NULL && op_list_extend(w, list, opened) == 0)
        tuple = PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

static PyObject *star_keywords(world *w, PyObject *callable, PyObject *keywords) {
    PyObject *opened = door_open(w, keywords);
    if (opened == NULL)
        return NULL;
    if (PyDict_CheckExact(opened))
        return Py_NewRef(opened);
    PyObject *dict = PyDict_New();
    if (dict == NULL || op_dict_update(w, dict, opened, true) == 0)
        return dict;
    Py_DECREF(dict);
    if (!w->stop.broken)
        error_dict_merge(callable, opened);
    return NULL;
}

PyObject *call_star(world *w, PyObject *callable, PyObject *args, PyObject *keywords) {
    int thin = w->thin;
    w->thin = RUN_NATIVE;
    callable = door_open(w, callable);
    PyObject *named = NULL, *result = NULL;
    if (callable == NULL || (keywords && !(named = star_keywords(w, callable, keywords))))
        return NULL;
    PyObject *tuple = star_args(w, callable, args);
    if (tuple != NULL && named != NULL && PyDict_GET_SIZE(named) > 0)
        result = call_flat(w, callable, tuple, named, thin);
    else if (tuple != NULL) {
        w->thin = thin;
        result = call_any(w, callable, ((PyTupleObject *)tuple)->ob_item,
                          (size_t)PyTuple_GET_SIZE(tuple), NULL);
    }
    Py_XDECREF(tuple);
    Py_XDECREF(named);
    return result;
}
