// Handlers of formatting and of patterns, and of methods of lists and sets that depend on several
// arguments or on an order.
#include "src/call/call.h"
#include "src/call/handlers.h"
#include "src/call/native.h"
#include "src/call/states.h"

// --- list ---

// A slice takes any iterable, an index takes anything.
HANDLER(list_setitem) {
    PyObject *ready[] = {Py_NewRef(c->args[0]), Py_NewRef(c->args[1]), Py_NewRef(c->args[2])},
             *result = NULL;
    status st = protocol_open(w, &ready[0], P_NONE);
    if (st == ST_OK)
        st = protocol_open(w, &ready[1], P_INDEX);
    if (st == ST_OK && PySlice_Check(ready[1]))
        st = protocol_open(w, &ready[2], P_ITER);
    if (st == ST_OK)
        result = call_native(w, c->callable, ready, 3, NULL, is_standin(ready[1]));
    for (int i = 0; i < 3; i++)
        Py_DECREF(ready[i]);
    return result;
}

// --- sets, where their order shows ---

static PyObject *on_set(world *w, PyObject *callable, PyObject *const *args, unsigned protocols,
                        bool from_outside) {
    PyObject *set = native_open(w, args[0], protocols), *result = NULL;
    if (!set)
        return NULL;
    if (PyAnySet_Check(set) && PySet_GET_SIZE(set) > 1 && !from_outside && record_of(w, set))
        world_break(w, REASON_SET_ORDER, "pop() from a set of %zd", PySet_GET_SIZE(set));
    else
        result = call_native(w, callable, &set, 1, NULL, false);
    Py_DECREF(set);
    return result;
}

HANDLER(set_repr) {
    return on_set(w, c->callable, c->args, P_REPR, true);
}

// Which one comes first depends on how the table was filled, which no guard sees.
HANDLER(set_pop) {
    return on_set(w, c->callable, c->args, P_ITER, false);
}

// --- formatting ---

HANDLER(format) {
    PyObject *spec = c->given == 2 ? door_open(w, c->args[1]) : NULL;
    if (c->given == 2 && !spec)
        return NULL;
    if (spec && !PyUnicode_CheckExact(spec))
        return world_break(w, REASON_NATIVE_CALL, "format() by a %s object",
                           Py_TYPE(spec)->tp_name);
    return op_format(w, c->args[0], 0, spec);
}

HANDLER(number_format) {
    PyObject *both[] = {Py_NewRef(c->args[0]), Py_NewRef(c->args[1])}, *text = NULL;
    status st = protocol_open(w, &both[0], P_NONE);
    if (st == ST_OK)
        st = protocol_open(w, &both[1], P_ATTR);
    if (st == ST_OK)
        st = state_read_spec(w, both[0], both[1]);
    if (st == ST_OK)
        st = state_read_text(w, both[0]);
    if (st == ST_OK)
        text = call_native(w, c->callable, both, 2, NULL, is_standin(both[0]));
    Py_DECREF(both[0]);
    Py_DECREF(both[1]);
    return text;
}

// What the fields of a format string ask for: which texts of arguments, their attributes or items,
// specs made of other fields, the locale.
typedef struct fields {
    unsigned texts;
    bool reach_into, specs, nested, locale;
} fields;

static fields fields_of(PyObject *text) {
    fields f = {.texts = P_FORMAT};
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    bool field = false, spec = false;
    for (Py_ssize_t i = 0; i < length; i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(text, i);
        Py_UCS4 before = i ? PyUnicode_READ_CHAR(text, i - 1) : 0;
        if (c == '{') {
            f.nested |= spec;
            field = true;
            spec = false;
        } else if (c == '}') {
            f.locale |= (spec || f.nested) && before == 'n';
            field = spec = false;
        } else if (field && before == '!')
            f.texts |= c == 's' ? P_STR : P_REPR;
        else if (field && c == ':')
            f.specs = spec = true;
        else if (field && !spec && (c == '.' || c == '['))
            f.reach_into = true;
    }
    return f;
}

static status open_for_format(world *w, PyObject **o, const fields *f) {
    TRY(protocol_open(w, o, f->texts));
    if (f->specs && state_is_dated(*o))
        return world_break_status(w, REASON_NATIVE_CALL, "str.format() by the locale");
    // A spec that is a number says nothing of the locale, and Python code may say anything.
    if (f->nested && !PyLong_CheckExact(*o) && !PyFloat_CheckExact(*o)) {
        if (!PyUnicode_CheckExact(*o))
            return world_break_status(w, REASON_NATIVE_CALL,
                                      "str.format() by the spec of a %s object",
                                      Py_TYPE(*o)->tp_name);
        TRY(state_read_spec(w, Py_None, *o));
    }
    if (!f->reach_into || value_immutable(*o))
        return ST_OK;
    return world_break_status(w, REASON_NATIVE_CALL, "str.format() that reaches into a %s object",
                              Py_TYPE(*o)->tp_name);
}

HANDLER(str_format) {
    PyObject *text = door_open(w, c->args[0]);
    if (!text)
        return NULL;
    fields f = PyUnicode_Check(text)
                   ? fields_of(text)
                   : (fields){.texts = P_TEXT, .reach_into = true, .locale = true};
    if (f.locale)
        return world_break(w, REASON_NATIVE_CALL, "str.format() by the locale");
    arg_room room;
    PyObject **items = room_open(&room, NULL, c), *result = NULL;
    if (!items)
        return NULL;
    Py_SETREF(items[0], Py_NewRef(text));
    status st = ST_OK;
    for (size_t i = 1; i < room.count && st == ST_OK; i++)
        st = open_for_format(w, &items[i], &f);
    if (st == ST_OK)
        result = call_native(w, c->callable, items, c->given, c->keywords, false);
    room_close(&room);
    return result;
}

// --- re ---

// What a match is replaced by: a text, or a function of the match.
static status open_replacement(world *w, const rule *row, PyObject **o) {
    TRY(protocol_open(w, o, P_NONE));
    if (!PyCallable_Check(*o) || is_standin(*o))
        return rule_open_exact(w, row, o);
    PyObject *watched = trampoline_for(w, *o, P_ATTR);
    if (!watched)
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    Py_SETREF(*o, watched);
    return ST_OK;
}

// Only a template makes the pattern run Python code by itself: the library's own, which looks at
// nothing but the text.
static PyObject *substitute(world *w, const call *c, PyObject **items) {
    bool template = c->given > 1 && PyUnicode_Check(items[1]);
    w->inside.quiet += template;
    PyObject *result = call_native(w, c->callable, items, c->given, c->keywords, false);
    w->inside.quiet -= template;
    return result;
}

HANDLER(pattern_sub) {
    const rule *row = c->rule;
    arg_room room;
    if (c->given < 3)
        return world_break(w, REASON_NATIVE_CALL, "%s with keyword arguments", row->path);
    PyObject **items = room_open(&room, NULL, c);
    if (!items)
        return NULL;
    status st = rule_open_frozen(w, row, &items[0]);
    if (st == ST_OK)
        st = open_replacement(w, row, &items[1]);
    for (size_t i = 2; i < room.count && st == ST_OK; i++)
        st = rule_open_exact(w, row, &items[i]);
    PyObject *result = st == ST_OK ? substitute(w, c, items) : NULL;
    room_close(&room);
    return result;
}

// --- re._compile ---

// What a pattern is compiled to depends on nothing but the text and the flags, and re keeps it: it
// is compiled for real, and given out by every call. Not where that prints, warns or asks the
// locale.
static bool compiles_quietly(PyObject *text, PyObject *flags) {
    enum { TEMPLATE = 1, LOCALE = 4, DEBUG = 128 };
    if ((!PyUnicode_CheckExact(text) && !PyBytes_CheckExact(text)) || !PyLong_Check(flags))
        return false;
    long bits = PyLong_AsLong(flags);
    PyErr_Clear();
    return bits >= 0 && !(bits & (TEMPLATE | LOCALE | DEBUG));
}

static HANDLER(re_compile) {
    PyObject *text = c->given == 2 && !c->keywords ? door_open(w, c->args[0]) : NULL;
    PyObject *flags = text ? door_open(w, c->args[1]) : NULL, *pattern = NULL;
    if (w->stop.broken || PyErr_Occurred())
        return NULL;
    if (flags && compiles_quietly(text, flags)) {
        PyObject *both[] = {text, flags};
        w->inside.quiet++;
        pattern = PyObject_Vectorcall(c->callable, both, 2, NULL);
        w->inside.quiet--;
        PyErr_Clear(); // what it refuses is refused in the trace again
    }
    if (!pattern)
        return handler_interpret(w, c);
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, pattern, 0);
    PyObject *loaded = s ? door_load(w, s, pattern) : NULL;
    Py_DECREF(pattern);
    return loaded;
}

status text_setup(void) {
    static const rule row = {.path = "re._compile",
                             .kind = RULE_HANDLED,
                             .handler = handle_re_compile,
                             .takes = ANY,
                             .writes = W_NONE};
    return rules_add_named("re", "_compile", &row);
}
