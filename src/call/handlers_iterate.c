// Handlers that go through an iterable element by element: sums and extremes, sorting, reduce,
// iterators.
#include "src/world/number.h"

#include "src/attr/attr.h"

#include "src/call/call.h"
#include "src/call/handlers.h"
#include "src/call/native.h"

#include <opcode.h>

// Whether op_next's NULL was not the end.
static bool went_wrong(const world *w) {
    return w->stop.broken || PyErr_Occurred();
}

// Whether it is an int or a bool that is kept open: 1, 0, -1. Of floats, sums and extremes are
// Python's own: how they are rounded, which NaN or zero is found.
static int is_open_int(world *w, PyObject *o) {
    number n;
    int open = door_number(w, o, &n);
    return open > 0 && n.kind == NUMBER_FLOAT ? 0 : open;
}

// --- any, all ---

static PyObject *find_truth(world *w, PyObject *iterable, int wanted) {
    PyObject *iterator = op_iter(w, iterable), *item;
    int truth = !wanted;
    if (!iterator)
        return NULL;
    while (truth == !wanted && (item = op_next(w, iterator))) {
        truth = op_truth(w, item);
        Py_DECREF(item);
    }
    Py_DECREF(iterator);
    return truth < 0 || went_wrong(w) ? NULL : PyBool_FromLong(truth);
}

HANDLER(any) {
    return find_truth(w, c->args[0], 1);
}

HANDLER(all) {
    return find_truth(w, c->args[0], 0);
}

// --- sum ---

static bool is_number(PyObject *o) {
    return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) ||
           PyComplex_CheckExact(o);
}

// A sum in the making: numbers wait to be added natively, which has its own way of adding floats.
typedef struct total {
    PyObject *function; // sum itself
    PyObject *value;    // strong
    PyObject *waiting;  // strong, list
} total;

static int add_waiting(world *w, total *t) {
    if (PyList_GET_SIZE(t->waiting) == 0)
        return 0;
    PyObject *args[] = {t->waiting, t->value};
    PyObject *value = call_native(w, t->function, args, 2, NULL, false);
    if (!value)
        return -1;
    Py_SETREF(t->value, value);
    return PyList_SetSlice(t->waiting, 0, PyList_GET_SIZE(t->waiting), NULL);
}

// A lazy is an int that is kept open: the sum of such is one, too. 1: the item was added; 0; -1.
static int add_open(world *w, total *t, PyObject *item) {
    PyObject *sum = NULL;
    int open = is_open_int(w, item);
    if (open < 0 || (open == 0 && !is_lazy(t->value)))
        return open;
    PyObject *other = open ? item : door_open(w, item);
    if (!other || add_waiting(w, t) < 0)
        return -1;
    bool ints = (open || PyLong_Check(other)) && (is_lazy(t->value) || PyLong_Check(t->value));
    int done = ints ? number_binary(w, NUMBER_ADD, t->value, other, &sum) : 0;
    if (done == 0) // the number is settled, and added as any other
        sum = Py_XNewRef(door_open(w, t->value));
    if (!sum)
        return -1;
    Py_SETREF(t->value, sum);
    return done;
}

static int add_item(world *w, total *t, PyObject *item) {
    int done = add_open(w, t, item);
    if (done)
        return done < 0 ? -1 : 0;
    PyObject *opened = door_open(w, item);
    if (!opened)
        return -1;
    if (is_number(opened) && is_number(t->value))
        return PyList_Append(t->waiting, opened);
    if (add_waiting(w, t) < 0)
        return -1;
    bool number = is_number(t->value);
    PyObject *value = op_binary(w, NB_ADD, t->value, opened);
    if (!value)
        return -1;
    Py_SETREF(t->value, value);
    if (number && PyFloat_CheckExact(value)) {
        // How sum adds floats from here on depends on what it has seen.
        world_break(w, REASON_NATIVE_CALL, "sum() of objects that add up to a float");
        return -1;
    }
    return 0;
}

// Says what sum says about a start that is a string.
static int check_start(world *w, PyObject *function, PyObject **start) {
    int open = is_open_int(w, *start);
    if (open)
        return open < 0 ? -1 : 0;
    PyObject *opened = door_open(w, *start);
    if (!opened)
        return -1;
    *start = opened;
    if (!PyUnicode_Check(opened) && !PyBytes_Check(opened) && !PyByteArray_Check(opened))
        return 0;
    PyObject *none = PyTuple_New(0), *args[] = {none, opened};
    PyObject *result = none ? call_native(w, function, args, 2, NULL, false) : NULL;
    Py_XDECREF(none);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static PyObject *add_all(world *w, total *t, PyObject *iterator) {
    PyObject *item;
    int failed = 0;
    while (!failed && (item = op_next(w, iterator))) {
        failed = add_item(w, t, item);
        Py_DECREF(item);
    }
    if (failed || went_wrong(w) || add_waiting(w, t) < 0)
        return NULL;
    return Py_NewRef(t->value);
}

static PyObject *sum_from(world *w, PyObject *function, PyObject *iterator, PyObject *start) {
    if (check_start(w, function, &start) < 0)
        return NULL;
    total t = {function, Py_NewRef(start), PyList_New(0)};
    PyObject *result = t.waiting ? add_all(w, &t, iterator) : NULL;
    Py_XDECREF(t.value);
    Py_XDECREF(t.waiting);
    return result;
}

// The iterator is asked for before the start is looked at.
HANDLER(sum) {
    PyObject *named = handler_keyword(c, "start"), *result = NULL;
    if (c->keywords && (!named || call_count(c) != 2))
        return handler_misuse(w, c);
    PyObject *zero = PyLong_FromLong(0), *iterator = zero ? op_iter(w, c->args[0]) : NULL;
    if (iterator)
        result = sum_from(w, c->callable, iterator,
                          c->given == 2 ? c->args[1]
                          : named       ? named
                                        : zero);
    Py_XDECREF(zero);
    Py_XDECREF(iterator);
    return result;
}

// --- min, max ---

typedef struct best {
    PyObject *key;          // borrowed: function, or NULL
    int kind;               // Py_LT or Py_GT
    PyObject *item, *value; // strong, or NULL: nothing yet
} best;

// The larger or smaller of two ints of which one is kept open is one, too. As number_binary.
static int extreme_of_ints(world *w, best *b, PyObject *item) {
    PyObject *found = NULL;
    if (b->key || !b->item || door_type(w, item) != &PyLong_Type ||
        door_type(w, b->item) != &PyLong_Type)
        return PyErr_Occurred() ? -1 : 0;
    number_op op = b->kind == Py_LT ? NUMBER_MIN : NUMBER_MAX;
    int done = number_binary(w, op, b->item, item, &found);
    if (done > 0) {
        Py_SETREF(b->item, found);
        Py_SETREF(b->value, Py_NewRef(found));
    }
    return done;
}

static int consider(world *w, best *b, PyObject *item) {
    int done = extreme_of_ints(w, b, item);
    if (done)
        return done < 0 ? -1 : 0;
    PyObject *value = b->key ? call_with(w, b->key, &item, 1) : Py_NewRef(item);
    int better = value ? 1 : -1;
    if (value && b->item) {
        PyObject *result = op_compare(w, value, b->value, b->kind);
        better = result ? op_truth(w, result) : -1;
        Py_XDECREF(result);
    }
    if (better > 0) {
        Py_XSETREF(b->item, Py_NewRef(item));
        Py_XSETREF(b->value, Py_NewRef(value));
    }
    Py_XDECREF(value);
    return better < 0 ? -1 : 0;
}

static int consider_all(world *w, best *b, PyObject *iterable) {
    PyObject *iterator = op_iter(w, iterable), *item;
    int failed = iterator ? 0 : -1;
    while (!failed && (item = op_next(w, iterator))) {
        failed = consider(w, b, item);
        Py_DECREF(item);
    }
    Py_XDECREF(iterator);
    return failed || went_wrong(w) ? -1 : 0;
}

static PyObject *nothing_to_compare(PyObject *callable) {
    PyObject *none = PyTuple_New(0);
    PyObject *result = none ? PyObject_CallOneArg(callable, none) : NULL;
    Py_XDECREF(none);
    return result;
}

static PyObject *extreme(world *w, const call *c, int kind) {
    PyObject *key = handler_keyword(c, "key");
    PyObject *otherwise = handler_keyword(c, "default");
    bool known = call_count(c) == c->given + (key != NULL) + (otherwise != NULL);
    if (!known || (c->given > 1 && otherwise))
        return handler_misuse(w, c);
    int none = key ? door_is(w, key, Py_None) : 1, failed = none < 0 ? -1 : 0;
    best b = {.key = none ? NULL : key, .kind = kind};
    if (!failed && c->given == 1)
        failed = consider_all(w, &b, c->args[0]);
    for (size_t i = 0; !failed && c->given > 1 && i < c->given; i++)
        failed = consider(w, &b, c->args[i]);
    Py_XDECREF(b.value);
    if (!failed && !b.item)
        return otherwise ? Py_NewRef(otherwise) : nothing_to_compare(c->callable);
    if (failed)
        Py_CLEAR(b.item);
    return b.item;
}

HANDLER(min) {
    return extreme(w, c, Py_LT);
}

HANDLER(max) {
    return extreme(w, c, Py_GT);
}

// --- sorting ---

// The keys are computed before, in the order in which list.sort asks for them: this hands them out.
static PyObject *take_next(PyObject *keys, PyObject *item) {
    (void)item;
    return PyIter_Next(keys);
}

static PyMethodDef take_definition = {"key", take_next, METH_O, NULL};

static PyObject *compute_keys(world *w, PyObject *items, PyObject *key) {
    PyObject *keys = PyList_New(0);
    for (Py_ssize_t i = 0; keys && i < PyList_GET_SIZE(items); i++) {
        PyObject *item = PyList_GET_ITEM(items, i), *value = call_with(w, key, &item, 1);
        if (!value || PyList_Append(keys, value) < 0)
            Py_CLEAR(keys);
        Py_XDECREF(value);
    }
    return keys;
}

static PyObject *sort_natively(world *w, PyObject *items, PyObject *key, PyObject *reverse) {
    static PyObject *names;
    if (!names && !(names = Py_BuildValue("(ss)", "key", "reverse")))
        return NULL;
    PyObject *sort = PyObject_GetAttrString((PyObject *)&PyList_Type, "sort");
    PyObject *args[] = {items, key, reverse};
    bool suspicious = handler_meets_standin(items, 3);
    PyObject *done = sort ? call_native(w, sort, args, 1, names, suspicious) : NULL;
    Py_XDECREF(sort);
    return done;
}

static int sort_by(world *w, PyObject *items, PyObject *key, PyObject *reverse) {
    PyObject *keys = compute_keys(w, items, key);
    PyObject *iterator = NULL, *take = NULL, *done = NULL;
    if (keys && protocol_open_elements(w, &keys, P_ORDER) == ST_OK)
        iterator = PyObject_GetIter(keys);
    if (iterator)
        take = PyCFunction_New(&take_definition, iterator);
    if (take)
        done = sort_natively(w, items, take, reverse);
    Py_XDECREF(keys);
    Py_XDECREF(iterator);
    Py_XDECREF(take);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

// Sorts a list that nobody else sees. `key` and `reverse` may be NULL.
static int sort_items(world *w, PyObject *items, PyObject *key, PyObject *reverse) {
    int none = key ? door_is(w, key, Py_None) : 1;
    PyObject *order = reverse ? door_open(w, reverse) : Py_False;
    if (none < 0 || !order)
        return -1;
    if (!value_immutable(order)) {
        world_break(w, REASON_NATIVE_CALL, "sort() with reverse=%s", Py_TYPE(order)->tp_name);
        return -1;
    }
    if (!none)
        return sort_by(w, items, key, order);
    if (protocol_open_elements(w, &items, P_ORDER) != ST_OK)
        return -1;
    PyObject *done = sort_natively(w, items, Py_None, order);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static bool knows_keywords(const call *c, PyObject **key, PyObject **reverse) {
    *key = handler_keyword(c, "key");
    *reverse = handler_keyword(c, "reverse");
    return call_count(c) == c->given + (*key != NULL) + (*reverse != NULL);
}

HANDLER(sorted) {
    PyObject *key, *reverse;
    if (!knows_keywords(c, &key, &reverse))
        return handler_misuse(w, c);
    PyObject *items = handler_gather(w, c->args[0]);
    if (items && sort_items(w, items, key, reverse) < 0)
        Py_CLEAR(items);
    return items;
}

// While list.sort runs, the list is empty to whoever looks.
HANDLER(list_sort) {
    PyObject *key, *reverse, *list = door_open(w, c->args[0]);
    if (!list)
        return NULL;
    if (!PyList_Check(list) || !knows_keywords(c, &key, &reverse))
        return handler_misuse(w, c);
    Py_INCREF(list);
    PyObject *items = PyList_GetSlice(list, 0, PyList_GET_SIZE(list)), *type, *value, *traceback;
    int failed = items ? PyList_SetSlice(list, 0, PyList_GET_SIZE(list), NULL) : -1;
    if (!failed) {
        failed = sort_items(w, items, key, reverse);
        PyErr_Fetch(&type, &value, &traceback);
        bool changed = PyList_GET_SIZE(list) != 0;
        int put_back = PyList_SetSlice(list, 0, PyList_GET_SIZE(list), items);
        PyErr_Restore(type, value, traceback);
        if (changed && !failed)
            world_break(w, REASON_NATIVE_CALL, "a list that is changed while it is sorted");
        failed = failed || put_back || changed ? -1 : 0;
    }
    Py_XDECREF(items);
    Py_DECREF(list);
    return failed ? NULL : Py_NewRef(Py_None);
}

// --- reduce ---

// Any TypeError of iter(), be it the program's own, becomes reduce's.
static PyObject *iterator_to_reduce(world *w, PyObject *iterable) {
    PyObject *iterator = op_iter(w, iterable);
    if (!iterator && !w->stop.broken && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_SetString(PyExc_TypeError, "reduce() arg 2 must support iteration");
    return iterator;
}

HANDLER(reduce) {
    PyObject *iterator = iterator_to_reduce(w, c->args[1]), *item;
    if (!iterator)
        return NULL;
    PyObject *result = c->given == 3 ? Py_NewRef(c->args[2]) : NULL;
    bool failed = false;
    while (!failed && (item = op_next(w, iterator))) {
        PyObject *pair[] = {result, item};
        PyObject *next = result ? call_with(w, c->args[0], pair, 2) : Py_NewRef(item);
        failed = !next;
        Py_XSETREF(result, next);
        Py_DECREF(item);
    }
    Py_DECREF(iterator);
    if (failed || went_wrong(w))
        Py_CLEAR(result);
    else if (!result)
        PyErr_SetString(PyExc_TypeError, "reduce() of empty iterable with no initial value");
    return result;
}

// --- iterators ---

HANDLER(len) {
    return op_len(w, c->args[0]);
}

// iter(function, sentinel): what the function gives is compared with the sentinel.
static PyObject *iterate_calls(world *w, PyObject *iter, PyObject *const *args) {
    PyObject *function = door_open(w, args[0]), *parts[2] = {NULL}, *result = NULL;
    if (!function)
        return NULL;
    if (!PyCallable_Check(function) && !is_standin(function)) { // CPython says so
        PyObject *wrong[] = {function, Py_None};
        return call_native(w, iter, wrong, 2, NULL, false);
    }
    parts[0] = trampoline_for(w, function, P_EQ);
    parts[1] = parts[0] ? native_open(w, args[1], P_EQ) : NULL;
    if (parts[1])
        result = call_native(w, iter, parts, 2, NULL, false);
    Py_XDECREF(parts[0]);
    Py_XDECREF(parts[1]);
    return result;
}

HANDLER(iter) {
    return c->given == 1 ? op_iter(w, c->args[0]) : iterate_calls(w, c->callable, c->args);
}

// The __next__ that a class has from a builtin iterator: that one's own slot, as op_next would use
// it.
static PyObject *next_by_slot(world *w, PyObject *iterator, PyObject *wrapper) {
    if (record_of(w, iterator))
        return world_break(w, REASON_OUTSIDE_ITERATOR, "%s", Py_TYPE(iterator)->tp_name);
    PyObject *item = ((iternextfunc)((PyWrapperDescrObject *)wrapper)->d_wrapped)(iterator);
    if (w->stop.broken)
        Py_CLEAR(item);
    else if (!item && !PyErr_Occurred())
        PyErr_SetNone(PyExc_StopIteration);
    return item;
}

// A class's own __next__: the very exception it raises goes on.
static PyObject *next_by_method(world *w, PyObject *iterator) {
    PyObject *name = PyUnicode_InternFromString("__next__"), *raw = NULL;
    if (name && type_lookup(w, Py_TYPE(iterator), name, &raw) && raw &&
        Py_IS_TYPE(raw, &PyWrapperDescr_Type)) {
        Py_DECREF(name);
        return next_by_slot(w, iterator, raw);
    }
    PyObject *method = name ? attr_special(w, iterator, name) : NULL, *item = NULL;
    if (method)
        item = call_with(w, method, NULL, 0);
    else if (!went_wrong(w))
        PyErr_Format(PyExc_TypeError, "'%.200s' object is not an iterator",
                     Py_TYPE(iterator)->tp_name);
    Py_XDECREF(name);
    Py_XDECREF(method);
    return item;
}

// What a generator yields for `value`; at the end StopIteration is set, with its return value.
static PyObject *send_or_stop(world *w, PyObject *generator, PyObject *value) {
    PyObject *item = NULL;
    w->expected = expect_generator(generator); // the value goes to the program, not to native code
    PySendResult how = op_send(w, generator, value, &item);
    w->expected.of = NULL;
    if (how != PYGEN_RETURN)
        return how == PYGEN_NEXT ? item : NULL;
    if (item == Py_None)
        PyErr_SetNone(PyExc_StopIteration);
    else if (protocol_handed_over(w, &item) == ST_OK)
        _PyGen_SetStopIterationValue(item);
    Py_DECREF(item);
    return NULL;
}

// The next element; at the end StopIteration is set.
static PyObject *next_or_stop(world *w, PyObject *iterator) {
    PyObject *opened = door_open(w, iterator);
    if (!opened)
        return NULL;
    if (raw_is_python_class(Py_TYPE(opened)) && !is_standin(opened))
        return next_by_method(w, opened);
    if (PyGen_CheckExact(opened))
        return send_or_stop(w, opened, Py_None);
    PyObject *item = op_next(w, opened);
    if (!item && !went_wrong(w))
        PyErr_SetNone(PyExc_StopIteration);
    return item;
}

HANDLER(next) {
    PyObject *item = next_or_stop(w, c->args[0]);
    if (item || c->given == 1 || w->stop.broken || !PyErr_ExceptionMatches(PyExc_StopIteration))
        return item;
    PyErr_Clear();
    return Py_NewRef(c->args[1]);
}

HANDLER(iterator_next) {
    return next_or_stop(w, c->args[0]);
}

HANDLER(generator_send) {
    return send_or_stop(w, c->args[0], c->args[1]);
}

// What is thrown gets a traceback, so it must not be an outside object.
HANDLER(generator_throw) {
    PyObject *opened[4];
    for (size_t i = 0; i < c->given; i++) {
        opened[i] = door_open(w, c->args[i]);
        if (!opened[i])
            return NULL;
        if (i > 0 && PyExceptionInstance_Check(opened[i]) && record_of(w, opened[i]))
            return world_break(w, REASON_EXCEPTION_LIVES, "an exception from outside is thrown");
    }
    if (!PyGen_Check(opened[0]) || record_of(w, opened[0]))
        return world_break(w, REASON_GENERATOR, "throw() into a generator from outside");
    return call_native(w, c->callable, opened, c->given, NULL, false);
}

// The program asks for it, so what the generator raises or yields then is the program's, too.
HANDLER(generator_close) {
    PyObject *o = door_open(w, c->args[0]);
    if (!o)
        return NULL;
    if (!PyGen_CheckExact(o) || record_of(w, o))
        return world_break(w, REASON_GENERATOR, "close() of a generator from outside");
    w->expected = expect_generator(o);
    PyObject *result = call_native(w, c->callable, &o, 1, NULL, false);
    w->expected.of = NULL;
    return result;
}

// --- managers that are generators ---

static PyTypeObject *manager_type; // contextlib._GeneratorContextManager

static HANDLER(manager) {
    (void)c;
    return world_break(w, REASON_OUTSIDE_ITERATOR, "generator of a context manager");
}

static bool moves_outside(world *w, const call *c) {
    PyObject *self = c->given > 0 ? door_open(w, c->args[0]) : NULL;
    if (!self || Py_TYPE(self) != manager_type)
        return false;
    PyObject *generator = handler_find(w, self, "gen"); // without one, the function says so
    PyObject *opened = generator ? door_open(w, generator) : NULL;
    bool outside = opened && PyGen_CheckExact(opened) && record_of(w, opened);
    Py_XDECREF(generator);
    return outside;
}

// To move a generator from outside is a break: before the call it is the only one. Within, the
// handler of StopIteration would be another piece.
static const rule manager_row = {.path = "contextlib._GeneratorContextManager",
                                 .kind = RULE_HANDLED,
                                 .handler = handle_manager,
                                 .takes = ANY,
                                 .writes = W_NONE, // it breaks
                                 .applies = moves_outside};

status manager_setup(void) {
    PyObject *type = py_import("contextlib", "_GeneratorContextManager");
    PyObject *enter = type ? PyObject_GetAttrString(type, "__enter__") : NULL;
    PyObject *exit = enter ? PyObject_GetAttrString(type, "__exit__") : NULL;
    status st = exit ? rules_add(enter, &manager_row) : ST_ERROR;
    if (st == ST_OK)
        st = rules_add(exit, &manager_row);
    manager_type = (PyTypeObject *)type; // for good
    Py_XDECREF(enter);
    Py_XDECREF(exit);
    return st;
}

// --- reversed ---

// The C types whose __reversed__ or sequence protocol only looks at what they hold.
static bool reverses_natively(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    return !raw_is_python_class(type) &&
           (PyList_Check(o) || PyTuple_Check(o) || PyUnicode_Check(o) || PyRange_Check(o) ||
            PyDict_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o) || PyDictViewSet_Check(o) ||
            PyDictValues_Check(o) || raw_is_deque(o));
}

// What reversed() of an object goes through: of a mappingproxy, its dict. Takes the reference.
static PyObject *behind_proxy(PyObject *o) {
    PyObject *mapping = Py_IS_TYPE(o, &PyDictProxy_Type) ? raw_view_mapping(o) : NULL;
    if (mapping && PyDict_CheckExact(mapping))
        Py_SETREF(o, Py_NewRef(mapping));
    return o;
}

HANDLER(reversed) {
    PyObject *o = native_open(w, c->args[0], P_NONE), *result = NULL;
    if (!o)
        return NULL;
    o = behind_proxy(o);
    if (reverses_natively(o) || value_immutable(o))
        result = call_native(w, c->callable, &o, 1, NULL, false);
    else if (is_standin(o) || !raw_is_python_class(Py_TYPE(o)))
        world_break(w, REASON_NATIVE_CALL, "reversed() of a %s object", Py_TYPE(o)->tp_name);
    else {
        PyObject *name = PyUnicode_InternFromString("__reversed__");
        PyObject *method = name ? attr_special(w, o, name) : NULL;
        if (method)
            result = call_with(w, method, NULL, 0);
        else if (!went_wrong(w) && protocol_open(w, &o, P_ITEM | P_LEN) == ST_OK)
            result = call_native(w, c->callable, &o, 1, NULL, false);
        Py_XDECREF(name);
        Py_XDECREF(method);
    }
    Py_DECREF(o);
    return result;
}

// --- bisect ---

// bisect and insort of a list: elements are compared, `key` is not supported.
HANDLER(bisect) {
    PyObject *key = handler_keyword(c, "key");
    int none = key ? door_is(w, key, Py_None) : 1;
    Py_ssize_t extra = c->keywords ? PyTuple_GET_SIZE(c->keywords) : 0;
    if (none <= 0)
        return none < 0 ? NULL : world_break(w, REASON_NATIVE_CALL, "bisect with a key function");
    if (c->given < 2 || c->given > 4 || extra > (key != NULL))
        return world_break(w, REASON_NATIVE_CALL, "bisect with keyword arguments");
    PyObject *ready[4] = {NULL};
    status st = ST_OK;
    for (size_t i = 0; i < c->given; i++)
        ready[i] = Py_NewRef(c->args[i]);
    for (size_t i = 0; i < c->given && st == ST_OK; i++)
        st = protocol_open(w, &ready[i], i == 0 ? P_NONE : i == 1 ? P_ORDER : P_ATTR);
    if (st == ST_OK && !PyList_CheckExact(ready[0]))
        st = world_break_status(w, REASON_NATIVE_CALL, "bisect of a %s object",
                                Py_TYPE(ready[0])->tp_name);
    if (st == ST_OK)
        st = protocol_open_elements(w, &ready[0], P_ORDER);
    PyObject *result = st == ST_OK ? handler_native(w, c->callable, ready, c->given) : NULL;
    for (size_t i = 0; i < c->given; i++)
        Py_DECREF(ready[i]);
    return result;
}
