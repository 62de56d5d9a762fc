// Turns a call of any callable into a call of a Python function (whose frame comes back through the
// hook), of a class, or of a C function by its rule.
#include "src/py/raised.h"

#include "src/interp/call.h"
#include "src/interp/errors.h"
#include "src/interp/run.h"

#include "src/attr/descr.h"
#include "src/attr/words.h"

#include "src/call/cached.h"
#include "src/call/call.h"
#include "src/call/homes.h"
#include "src/call/native.h"
#include "src/call/rules.h"

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
    if (!a->items)
        PyErr_NoMemory();
    return a->items != NULL;
}

static void arguments_free(arguments *a) {
    if (a->items != a->few)
        PyMem_Free(a->items);
}

PyObject *call_with_first(world *w, const call *c, PyObject *first) {
    size_t count = call_count(c);
    arguments a;
    if (!arguments_make(&a, count + 1))
        return NULL;
    a.items[0] = first;
    if (count > 0)
        memcpy(a.items + 1, c->args, count * sizeof(PyObject *));
    call joined = *c;
    joined.args = a.items;
    joined.given++;
    PyObject *result = call_any(w, &joined);
    arguments_free(&a);
    return result;
}

// --- native calls ---

PyObject *call_native(world *w, PyObject *callable, PyObject *const *args, size_t given,
                      PyObject *keywords, bool suspicious) {
    suspicious =
        suspicious || native_has_lazy(&(call){.args = args, .given = given, .keywords = keywords});
    return native_result(w, PyObject_Vectorcall(callable, args, given, keywords), suspicious);
}

// --- Python functions ---

static bool is_known(const world *w, PyObject *function) {
    return map_get(&w->made.objects, map_key(function)) || record_of(w, function);
}

static PyObject *call_python(world *w, const call *c) {
    if (!is_known(w, c->callable))
        return world_break(w, REASON_UNKNOWN_FUNCTION, "%U",
                           ((PyFunctionObject *)c->callable)->func_qualname);
    return call_function(w, c);
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

static PyObject *call_bound(world *w, const call *c) {
    PyObject *function = part_of(w, c->callable, SOURCE_METHOD_FUNC, word.func);
    PyObject *self = function ? part_of(w, c->callable, SOURCE_METHOD_SELF, word.self) : NULL;
    call unbound = *c;
    unbound.callable = function;
    PyObject *result = self ? call_with_first(w, &unbound, self) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(self);
    return result;
}

static PyObject *joined_args(PyObject *first, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t before = PyTuple_GET_SIZE(first);
    PyObject *all = PyTuple_New(before + count);
    for (Py_ssize_t i = 0; all && i < before + count; i++)
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

// `c` with other arguments.
static PyObject *call_flat(world *w, const call *c, PyObject *args, PyObject *keywords) {
    flat_args flat = call_flatten(args, keywords);
    if (!flat.items)
        return NULL;
    call all = *c;
    all.args = py_slots_objects(flat.items);
    all.given = flat.given;
    all.keywords = flat.names;
    PyObject *result = call_any(w, &all);
    call_drop_flat(&flat);
    return result;
}

static PyObject *call_partial(world *w, const call *c) {
    PyObject *partial = c->callable;
    PyObject *function = part_of(w, partial, SOURCE_PARTIAL_FUNC, word.partial_func);
    PyObject *first = function ? part_of(w, partial, SOURCE_PARTIAL_ARGS, word.args) : NULL;
    PyObject *held = first ? part_of(w, partial, SOURCE_PARTIAL_KEYWORDS, word.keywords) : NULL;
    PyObject *all = held ? joined_args(first, c->args, (Py_ssize_t)c->given) : NULL;
    PyObject *named = all ? joined_keywords(held, c->args + c->given, c->keywords) : NULL;
    call behind = *c;
    behind.callable = function;
    PyObject *result = named ? call_flat(w, &behind, all, named) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(first);
    Py_XDECREF(held);
    Py_XDECREF(all);
    Py_XDECREF(named);
    return result;
}

static PyObject *call_static(world *w, const call *c) {
    descr d = {.found = c->callable, .raw = c->callable};
    call behind = *c;
    behind.callable = descr_held(w, &d, SOURCE_WRAPPED, word.func);
    if (!behind.callable)
        return PyErr_Occurred() ? NULL : world_break(w, REASON_NATIVE_CALL, "staticmethod(None)");
    PyObject *result = call_any(w, &behind);
    Py_DECREF(behind.callable);
    return result;
}

// --- C callables ---

static PyObject *refuse_native(world *w, const call *c) {
    return world_break_at(w, home_reason(c->callable), c->callable, "");
}

static bool is_native(PyObject *callable) {
    return PyCFunction_Check(callable) || Py_IS_TYPE(callable, &PyMethodDescr_Type) ||
           Py_IS_TYPE(callable, &PyWrapperDescr_Type) ||
           Py_IS_TYPE(callable, word.method_wrapper) ||
           Py_IS_TYPE(callable, &PyClassMethodDescr_Type);
}

// --- objects with __call__ ---

static PyObject *call_way(world *w, const way *s, const call *c) {
    PyObject *self = c->callable;
    if (PyFunction_Check(s->raw)) {
        call unbound = *c;
        unbound.callable = s->found;
        return call_with_first(w, &unbound, self);
    }
    descr d;
    if (descr_of(w, s->found, s->raw, &d) != ST_OK)
        return NULL;
    PyObject *bound = descr_get(w, &d, self, Py_TYPE(self));
    call again = call_again(c, bound);
    PyObject *result = bound ? call_any(w, &again) : NULL;
    Py_XDECREF(bound);
    return result;
}

// object_vacall's words for what cannot be called.
static PyObject *not_callable(PyObject *o) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not callable", Py_TYPE(o)->tp_name);
    return NULL;
}

// The object is guarded by identity, and its function never changes.
static PyObject *call_compiled(world *w, const call *c) {
    PyObject *function = call_compiled_function(c->callable);
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, function, 0);
    bool strict = call_compiled_strict(c->callable);
    call behind = *c;
    behind.callable = s ? door_bring(w, s, function) : NULL;
    w->inside.strict += strict;
    PyObject *result = behind.callable ? call_any(w, &behind) : NULL;
    w->inside.strict -= strict;
    return result;
}

static PyObject *call_object_once(world *w, const call *c) {
    PyTypeObject *type = Py_TYPE(c->callable);
    if (type == call_compiled_type)
        return call_compiled(w, c);
    way found;
    if (way_find(w, type, word.call, (void *)type->tp_call, &found) != ST_OK)
        return NULL;
    if (found.found)
        return call_way(w, &found, c);
    if (!found.native)
        return not_callable(c->callable);
    if (found.native == (void *)word.partial->tp_call)
        return call_partial(w, c);
    if (found.native == (void *)word.cached->tp_call)
        return call_cached(w, c);
    if (found.native == (void *)PyStaticMethod_Type.tp_call)
        return call_static(w, c);
    const rule *row = rule_of(c->callable);
    return row ? rule_call(w, row, c) : refuse_native(w, c);
}

// Counted as _PyObject_MakeTpCall does: an object may lead to itself.
static PyObject *call_object(world *w, const call *c) {
    if (Py_EnterRecursiveCall(" while calling a Python object"))
        return NULL;
    PyObject *result = call_object_once(w, c);
    Py_LeaveRecursiveCall();
    return result;
}

// By the metaclass's __call__.
static PyObject *call_class(world *w, const call *c) {
    PyTypeObject *meta = Py_TYPE(c->callable);
    way found;
    if (way_find(w, meta, word.call, (void *)meta->tp_call, &found) != ST_OK)
        return NULL;
    if (found.found)
        return call_way(w, &found, c);
    if (found.native == (void *)PyType_Type.tp_call)
        return call_type_call(w, c);
    return world_break(w, REASON_NATIVE_CALL, "%s, by its metaclass",
                       ((PyTypeObject *)c->callable)->tp_name);
}

// --- any ---

static PyObject *call_by_kind(world *w, const call *c) {
    if (PyFunction_Check(c->callable))
        return call_python(w, c);
    if (is_native(c->callable))
        return refuse_native(w, c);
    if (PyType_Check(c->callable))
        return call_class(w, c);
    return call_object(w, c);
}

// A bound C method is another object inside than outside, where it may have a row of its own.
static const rule *rule_inside(const world *w, PyObject *callable) {
    const rule *row = rule_of_itself(callable);
    record *r = row || !PyCFunction_Check(callable) ? NULL : record_of(w, callable);
    return r && r->outside ? rule_of_itself(r->outside) : row;
}

// A method of what a stand-in stands for, which only torch knows. What C code would do to the
// stand-in itself is nothing of the program's.
static bool is_of_standin(PyObject *callable) {
    PyObject *self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : NULL;
    return self && is_standin(self);
}

// The row that says what becomes of the call; NULL: none, or with an exception or a break. Marks
// are put on and taken off callables while the process runs, so they are asked for each time, in
// place of being in the table.
static const rule *find_row(world *w, const call *c) {
    const rule *row = rule_inside(w, c->callable);
    const rule *marked = call_mark_rule(w, c, row);
    if (marked || PyErr_Occurred())
        return marked;
    if (is_of_standin(c->callable) && !(row && row->weak)) {
        world_break(w, REASON_TENSOR_OPERATION, "Tensor.%s",
                    ((PyCFunctionObject *)c->callable)->m_ml->ml_name);
        return NULL;
    }
    return rule_applying(w, row, c);
}

static PyObject *call_opened(world *w, const call *c) {
    if (Py_IS_TYPE(c->callable, &PyMethod_Type))
        return call_bound(w, c);
    if (is_trampoline(c->callable)) {
        call behind = *c;
        behind.callable = trampoline_callable(c->callable);
        return call_any(w, &behind);
    }
    const rule *row = find_row(w, c);
    PyObject *result = NULL;
    if (row)
        result = rule_call(w, row, c);
    else if (!w->stop.broken && !PyErr_Occurred())
        result = call_by_kind(w, c);
    if (w->stop.broken)
        Py_CLEAR(result);
    else if (result && !PyFunction_Check(c->callable))
        native_made(w, result);
    return result;
}

PyObject *call_any(world *w, const call *c) {
    call opened = *c;
    opened.callable = door_open(w, c->callable);
    opened.rule = NULL;
    opened.given = (size_t)PyVectorcall_NARGS(c->given); // nobody below borrows the slot before
    if (c->keywords && PyTuple_GET_SIZE(c->keywords) == 0)
        opened.keywords = NULL;
    return opened.callable ? call_opened(w, &opened) : NULL;
}

// --- f(*args, **keywords) ---

PyObject *call_star_args(world *w, PyObject *callable, PyObject *args) {
    PyObject *opened = door_open(w, args);
    if (!opened)
        return NULL;
    if (PyTuple_CheckExact(opened))
        return Py_NewRef(opened);
    if (!is_standin(opened) && error_check_star_args(callable, opened) < 0)
        return NULL;
    PyObject *list = PyList_New(0), *tuple = NULL;
    if (list && op_list_extend(w, list, opened) == 0)
        tuple = PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

PyObject *call_star_keywords(world *w, PyObject *callable, PyObject *keywords) {
    PyObject *opened = door_open(w, keywords);
    if (!opened)
        return NULL;
    if (PyDict_CheckExact(opened))
        return Py_NewRef(opened);
    PyObject *dict = PyDict_New();
    if (!dict || op_dict_update(w, dict, opened, true) == 0)
        return dict;
    Py_DECREF(dict);
    if (!w->stop.broken)
        error_dict_merge(callable, opened);
    return NULL;
}

PyObject *call_star(world *w, PyObject *callable, PyObject *args, PyObject *keywords,
                    run_result result) {
    call c = {.callable = door_open(w, callable), .result = result};
    PyObject *named = NULL, *value = NULL;
    if (!c.callable || (keywords && !(named = call_star_keywords(w, c.callable, keywords))))
        return NULL;
    PyObject *tuple = call_star_args(w, c.callable, args);
    if (tuple && named && PyDict_GET_SIZE(named) > 0)
        value = call_flat(w, &c, tuple, named);
    else if (tuple) {
        c.args = ((PyTupleObject *)tuple)->ob_item;
        c.given = (size_t)PyTuple_GET_SIZE(tuple);
        value = call_any(w, &c);
    }
    Py_XDECREF(tuple);
    Py_XDECREF(named);
    return value;
}
