// Does a call by its row: takes the callable apart, prepares the arguments as the row says, and
// runs the handler or the native function.
#include "src/world/number.h"

#include "src/attr/descr.h"

#include "src/call/call.h"
#include "src/call/feed.h"
#include "src/call/handlers.h"
#include "src/call/native.h"
#include "src/call/special.h"
#include "src/call/states.h"

// A call being made ready: self first, then arguments, then the values of keywords.
typedef struct ready {
    world *w;
    const rule *row;
    call call; // of the unbound callable, with the arguments in `room`
    arg_room room;
    bool feeds;     // some iterable is given as a feed
    bool calls;     // a function is given, which gets the elements
    bool unordered; // in what order elements are taken is not known (R_FEW)
} ready;

// What a bound C method is bound to; new reference. NULL, without an exception, for what is not
// bound.
static PyObject *bound_self(world *w, const rule *row, PyObject *callable, PyObject *target) {
    if (target == callable || !row->owner)
        return NULL;
    PyObject *self = rule_bound_to(callable);
    if (!self) // an object is called through its type's __call__
        return Py_NewRef(callable);
    record *r = record_of(w, callable);
    if (!r || r->inside != callable || r->outside != callable)
        return Py_NewRef(self);
    source *s = guard_source(w->guards, SOURCE_METHOD_SELF, r->source, NULL, 0);
    return s ? door_load(w, s, self) : NULL;
}

// `self` is taken over; NULL: none comes before the arguments.
static status collect(ready *c, PyObject *target, PyObject *self, const call *by) {
    if (!room_open(&c->room, self, by))
        return ST_ERROR;
    c->call = *by;
    c->call.callable = target;
    c->call.rule = c->row;
    c->call.args = c->room.items;
    c->call.given = (self != NULL) + by->given;
    return ST_OK;
}

// --- arguments ---

static status refuse(ready *c, PyObject *o) {
    return world_break_status(c->w, REASON_NATIVE_CALL, "%s on a %s object", c->row->path,
                              Py_TYPE(o)->tp_name);
}

status rule_open_exact(world *w, const rule *row, PyObject **o) {
    TRY(protocol_open(w, o, P_NONE));
    if (PyTuple_Check(*o))
        TRY(protocol_open_elements(w, o, P_ATTR | P_DEEP));
    if (value_immutable(*o) || PyByteArray_CheckExact(*o)) // a twin's bytes are guarded
        return ST_OK;
    return world_break_status(w, REASON_NATIVE_CALL, "%s on a %s object", row->path,
                              Py_TYPE(*o)->tp_name);
}

// (A deque is opened by its items, which a class of the program's may have its own way of.)
bool rule_is_container(PyObject *o) {
    bool own_items = raw_is_deque(o) && raw_is_python_class(Py_TYPE(o));
    return rule_of_iterating(Py_TYPE(o)) == G_HELD && !own_items;
}

// A class of the program's may have a __next__ of its own.
static bool gives_tuples(PyObject *o) {
    return rule_of_iterating(Py_TYPE(o)) == G_TUPLES && !raw_is_python_class(Py_TYPE(o));
}

// Elements are made ready one by one, as native code takes them.
static status feed(ready *c, PyObject **o) {
    PyObject *made = feed_new(c->w, *o, c->row->elements);
    if (!made)
        return c->w->stop.broken ? ST_BREAK : ST_ERROR;
    Py_SETREF(*o, made);
    c->feeds = true;
    return ST_OK;
}

static status open_elements(ready *c, PyObject **o, unsigned mask) {
    unsigned elements = c->row->elements;
    if (rule_is_container(*o))
        return protocol_open_elements(c->w, o, elements);
    if (!Py_TYPE(*o)->tp_iter && !PySequence_Check(*o))
        return ST_OK; // not iterable: the native function says so
    if (elements == P_ITER && gives_tuples(*o))
        return ST_OK;
    if (PyAnySet_Check(*o)) // some native code asks it for an iterator, some looks into it
        return refuse(c, *o);
    return mask & R_FEED ? feed(c, o) : refuse(c, *o);
}

// What a function gives to native code is made ready as elements are.
static status watch_results(ready *c, PyObject **o) {
    PyObject *watched = trampoline_for(c->w, *o, c->row->elements);
    if (!watched)
        return c->w->stop.broken ? ST_BREAK : ST_ERROR;
    Py_SETREF(*o, watched);
    return ST_OK;
}

// Of a C type, and nothing that lies outside and could change.
static bool is_plain(world *w, PyObject *o) {
    if (raw_is_python_class(Py_TYPE(o)) || is_standin(o))
        return false;
    return !record_itself(w, o) || PyType_Check(o) || PyCFunction_Check(o);
}

static status open_argument(ready *c, PyObject **o, unsigned mask) {
    unsigned protocols = mask & ~(unsigned)R_FLAGS;
    if (!protocols && !(mask & (R_OPEN | R_PLAIN)))
        return ST_OK;
    int open = mask & (R_OPEN | R_PLAIN) ? 0 : protocol_keeps_open(c->w, *o, protocols);
    if (open)
        return open > 0 ? ST_OK : c->w->stop.broken ? ST_BREAK : ST_ERROR;
    TRY(protocol_open(c->w, o, P_NONE));
    if (*o == Py_None)
        return ST_OK;
    if (mask & R_TEXT && PyUnicode_Check(*o)) // that of a subclass was guarded when it came in
        return ST_OK;
    if ((mask & R_PLAIN) && !is_plain(c->w, *o))
        return refuse(c, *o);
    if ((protocols & P_ITER) && c->row->elements && !c->calls && !(mask & R_MOVED))
        TRY(open_elements(c, o, mask));
    if (is_feed(*o))
        return ST_OK;
    TRY(protocol_open(c->w, o, protocols));
    return protocols & P_CALL && c->calls ? watch_results(c, o) : ST_OK;
}

static bool is_function_name(PyObject *name) {
    return PyUnicode_CompareWithASCIIString(name, "key") == 0 ||
           PyUnicode_CompareWithASCIIString(name, "func") == 0;
}

static status open_keyword(ready *c, PyObject *name, PyObject **o) {
    if (c->row->first & R_KEYWORDS)
        return ST_OK;
    return open_argument(c, o, is_function_name(name) ? P_CALL : P_ATTR | R_PLAIN);
}

// --- self ---

// Instances of subclasses of immutable builtins: their builtin part was guarded when they came in.
static bool holds_value(PyObject *o) {
    return PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) ||
           PyComplex_Check(o);
}

status rule_open_frozen(world *w, const rule *row, PyObject **o) {
    TRY(protocol_open(w, o, P_NONE));
    if (PyObject_TypeCheck(*o, row->owner))
        return state_read(w, row, &(call){.args = o, .given = 1});
    return world_break_status(w, REASON_NATIVE_CALL, "%s on a %s object", row->path,
                              Py_TYPE(*o)->tp_name);
}

// Whether native code that goes by a class's way of items meets another one than the row's type has.
static status check_items(ready *c, PyObject *self) {
    static const special ids[] = {SPECIAL_getitem, SPECIAL_setitem, SPECIAL_delitem,
                                  SPECIAL_contains, SPECIAL_missing};
    int own = !PyObject_TypeCheck(self, c->row->owner);
    for (size_t i = 0; i < Py_ARRAY_LENGTH(ids) && own == 0; i++)
        own = special_is_python(c->w, self, ids[i]);
    if (own < 0)
        return c->w->stop.broken ? ST_BREAK : ST_ERROR;
    return own ? refuse(c, self) : ST_OK;
}

static status check_self(ready *c, PyObject *self) {
    const rule *row = c->row;
    if (is_standin(self))
        return refuse(c, self);
    if (PyType_Check(self) && Py_IS_TYPE(row->object, &PyClassMethodDescr_Type))
        return row->first & R_SELF && self != (PyObject *)row->owner ? refuse(c, self) : ST_OK;
    if (row->first & R_SELF && !Py_IS_TYPE(self, row->owner))
        return refuse(c, self);
    if (row->first & R_ITEMS && !Py_IS_TYPE(self, row->owner))
        TRY(check_items(c, self));
    // An OrderedDict keeps its order beside dict's, and dict's own methods do not see to it: they
    // must not write, and see an order that only one made inside shares with the original.
    if (row->owner == &PyDict_Type && PyODict_Check(self) &&
        (row->writes == W_SELF || record_of(c->w, self)))
        return refuse(c, self);
    if (row->first & R_FROZEN)
        return ST_OK;
    return !holds_value(self) && record_itself(c->w, self) ? refuse(c, self) : ST_OK;
}

// What the row says is changed: self and the first argument of a function both come first. A
// handler may have opened it only now.
static void note_write(world *w, const rule *row, const call *c) {
    rule_writes writes = row->writes;
    if (writes == W_NONE || writes == W_HANDLER || c->given == 0)
        return;
    PyObject *first = c->args[0];
    PyObject *opened = is_lazy(first) ? ((lazy *)first)->inside : first;
    if (!opened)
        return;
    assert(writes != W_INSIDE || w->stop.broken || PyErr_Occurred() || !record_of(w, opened));
    if (writes != W_INSIDE)
        record_write(w, opened);
}

static status open_self(ready *c) {
    PyObject **self = &c->room.items[0];
    TRY(protocol_open(c->w, self, P_NONE));
    TRY(check_self(c, *self));
    if (c->row->first & R_ORDERED)
        TRY(protocol_open(c->w, self, P_ITER));
    return c->row->elements ? protocol_open_elements(c->w, self, c->row->elements) : ST_OK;
}

// The class that a __new__ makes an instance of.
static status open_class(ready *c) {
    PyObject **type = &c->room.items[0], *name = NULL;
    TRY(protocol_open(c->w, type, P_NONE));
    if (!PyType_Check(*type))
        return ST_OK; // the native function says so
    if (!(name = PyUnicode_InternFromString("__del__")))
        return ST_ERROR;
    PyObject *finalizer = type_lookup(c->w, (PyTypeObject *)*type, name, NULL);
    Py_DECREF(name);
    if (finalizer)
        return world_break_status(c->w, REASON_FINALIZER, "%s", ((PyTypeObject *)*type)->tp_name);
    return c->w->stop.broken ? ST_BREAK : PyErr_Occurred() ? ST_ERROR : ST_OK;
}

// --- the order of sets ---

// A set of elements that are compared without running code.
static bool is_quiet_set(PyObject *o) {
    Py_ssize_t at = 0;
    PyObject *element;
    Py_hash_t hash;
    while (PyAnySet_Check(o) && _PySet_NextEntry(o, &at, &element, &hash))
        if (!is_scalar(element))
            return false;
    return PyAnySet_Check(o);
}

static status check_orders(ready *c) {
    for (size_t i = 0; i < c->call.given; i++)
        TRY(protocol_open(c->w, &c->room.items[i],
                          PyAnySet_Check(c->room.items[i]) ? P_ITER : P_NONE));
    return ST_OK;
}

// Elements one by one into an empty set: of one element at most the outcome has no order. (What is
// much larger than the other is copied whole instead, see set_difference.)
static status leave_unordered(ready *c) {
    c->unordered = c->call.given == 2 && is_quiet_set(c->room.items[0]) &&
                   is_quiet_set(c->room.items[1]) &&
                   PySet_GET_SIZE(c->room.items[0]) >> 2 <= PySet_GET_SIZE(c->room.items[1]);
    return c->unordered ? ST_OK : check_orders(c);
}

static PyObject *check_few(ready *c, PyObject *result) {
    bool few = !PyAnySet_Check(result) || PySet_GET_SIZE(result) < 2;
    if (!few && check_orders(c) != ST_OK)
        Py_CLEAR(result);
    return result;
}

// --- the kinds ---

static status open_pure(ready *c) {
    size_t i = 0;
    if (c->row->owner && c->call.given) {
        TRY(open_self(c));
        PyObject *self = c->room.items[i++];
        if (!PyType_Check(self) && !holds_value(self))
            TRY(rule_open_exact(c->w, c->row, &c->room.items[0]));
    }
    if (c->row->makes && c->call.given) {
        TRY(open_class(c));
        i = 1;
    }
    for (; i < c->room.count; i++)
        TRY(rule_open_exact(c->w, c->row, &c->room.items[i]));
    return ST_OK;
}

// Whether a function is given where the row says that one is called.
static status find_function(ready *c, size_t first) {
    for (size_t i = first; i < c->room.count; i++) {
        unsigned mask = i == first ? c->row->first : c->row->args;
        bool called = mask & P_CALL;
        if (i >= c->call.given)
            called = is_function_name(PyTuple_GET_ITEM(c->call.keywords, i - c->call.given));
        int none = called ? door_is(c->w, c->room.items[i], Py_None) : 1;
        if (none < 0)
            return c->w->stop.broken ? ST_BREAK : ST_ERROR;
        c->calls |= !none;
    }
    return ST_OK;
}

static status open_struct(ready *c) {
    const rule *row = c->row;
    size_t first = 0;
    if ((row->owner || row->makes) && c->call.given) {
        TRY(row->makes ? open_class(c) : open_self(c));
        first = 1;
    }
    if (row->elements && !(row->first & (R_SPREAD | R_KEYWORDS)))
        TRY(find_function(c, first));
    for (size_t i = first; i < c->call.given; i++)
        TRY(open_argument(c, &c->room.items[i], i == first ? row->first : row->args));
    for (size_t i = c->call.given; i < c->room.count; i++)
        TRY(open_keyword(c, PyTuple_GET_ITEM(c->call.keywords, i - c->call.given),
                         &c->room.items[i]));
    return row->first & R_FEW ? leave_unordered(c) : ST_OK;
}

// Whether native code may have met something that is not what it stands for.
static bool is_suspicious(const ready *c) {
    size_t first = c->row->owner || c->row->makes ? 1 : 0;
    if (first && c->call.given && c->row->elements && handler_meets_standin(c->room.items[0], 3))
        return true;
    for (size_t i = first; i < c->call.given; i++) {
        unsigned mask = i == first ? c->row->first : c->row->args;
        if ((mask & ~(unsigned)R_FLAGS) && handler_meets_standin(c->room.items[i], 3))
            return true;
    }
    return false;
}

// Whether a stand-in was among the elements is known only afterwards.
static PyObject *call_feeding(ready *c, bool suspicious) {
    PyObject *result =
        PyObject_Vectorcall(c->call.callable, c->room.items, c->call.given, c->call.keywords);
    return native_result(c->w, result, suspicious || c->w->torch);
}

// The text of an object is not among what was made ready: it may be an address.
static void doubt_text(ready *c) {
    size_t shown = c->row->owner ? 1 : 0;
    if (c->w->stop.broken || shown >= c->call.given || value_immutable(c->room.items[shown]))
        return;
    PyErr_Clear();
    world_break(c->w, REASON_NATIVE_ERROR, "%s, which shows a %s object", c->row->path,
                Py_TYPE(c->room.items[shown])->tp_name);
}

static bool takes(const rule_takes *t, const call *c) {
    return c->given >= t->least && c->given <= t->most && (t->how == TAKES_NAMES || !c->keywords);
}

// As CPython's own calls of C functions, it counts: handlers may lead to one another for ever.
static PyObject *handle(world *w, const call *c) {
    const rule *row = c->rule;
    if (!takes(&row->takes, c))
        return handler_misuse(w, c);
    if (Py_EnterRecursiveCall(" while calling a Python object"))
        return NULL;
    PyObject *result = row->handler(w, c);
    Py_LeaveRecursiveCall();
    note_write(w, row, c);
    return result;
}

static PyObject *run_ready(ready *c) {
    const rule *row = c->row;
    if (row->kind == RULE_HANDLED)
        return handle(c->w, &c->call);
    status st = row->kind == RULE_PURE ? open_pure(c) : open_struct(c);
    if (st == ST_OK)
        st = state_read(c->w, row, &c->call);
    if (st != ST_OK)
        return NULL;
    note_write(c->w, row, &c->call);
    bool suspicious = row->kind == RULE_STRUCT && is_suspicious(c);
    bool warning = state_makes_warning(&c->call);
    c->w->inside.warning += warning;
    PyObject *result = c->feeds ? call_feeding(c, suspicious)
                                : call_native(c->w, c->call.callable, c->room.items, c->call.given,
                                              c->call.keywords, suspicious);
    c->w->inside.warning -= warning;
    if (!result && row->first & R_SHOWN)
        doubt_text(c);
    return result && c->unordered ? check_few(c, result) : result;
}

// A row of torch's is that of the very object: another one may have the same code or C function.
static status guard_callable(world *w, PyObject *callable) {
    record *r = record_of(w, callable);
    return r ? record_identity(w, r) : ST_OK;
}

// --- numbers that are kept open ---

static int apply(world *w, number_op op, const call *c, PyObject **result) {
    return number_is_unary(op) ? number_unary(w, op, c->args[0], result)
                               : number_binary(w, op, c->args[0], c->args[1], result);
}

// As number_binary.
static int call_on_numbers(world *w, const rule_numbers *row, const call *c, PyObject **result) {
    PyObject *second = NULL;
    if (!row || c->keywords || c->given != row->takes)
        return 0;
    int done = apply(w, row->op, c, result);
    if (done <= 0 || row->second == NUMBER_OPS)
        return done;
    done = apply(w, row->second, c, &second);
    Py_SETREF(*result, done > 0 ? PyTuple_Pack(2, *result, second) : NULL);
    Py_XDECREF(second);
    return done > 0 && !*result ? -1 : done;
}

PyObject *rule_call(world *w, const rule *row, const call *c) {
    PyObject *number = NULL;
    if (call_on_numbers(w, row->numbers, c, &number))
        return number;
    if (row->kind == RULE_OPAQUE)
        return world_break(w, row->reason ? row->reason : REASON_NATIVE_CALL, "%s, which %s",
                           row->path, row->why);
    PyObject *target = rule_unbound(row, c->callable);
    PyObject *self = bound_self(w, row, c->callable, target);
    if (!self && (PyErr_Occurred() || w->stop.broken))
        return NULL;
    if (!self && row->weak && guard_callable(w, c->callable) != ST_OK)
        return NULL;
    if (!self && row->kind == RULE_HANDLED) { // the arguments are the caller's, and stay
        call unbound = *c;
        unbound.callable = target;
        unbound.rule = row;
        return handle(w, &unbound);
    }
    ready r = {.w = w, .row = row};
    if (collect(&r, target, self, c) != ST_OK)
        return NULL;
    PyObject *result = run_ready(&r);
    room_close(&r.room);
    return result;
}

PyObject *rule_read_getset(world *w, PyObject *getset, PyObject *o, bool *known) {
    const rule *row = rule_of(getset);
    *known = row != NULL;
    if (!row)
        return NULL;
    if (row->kind != RULE_HANDLED)
        return Py_TYPE(getset)->tp_descr_get(getset, o, (PyObject *)Py_TYPE(o));
    return row->handler(w, &(call){.callable = getset, .args = &o, .given = 1});
}
