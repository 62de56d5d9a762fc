// Handlers of functions that make code of text or run code: compile, eval, exec. The code that they
// run is interpreted, in a namespace of this trace or in one that passed the door.
#include "src/py/frame.h"

#include "src/attr/attr.h"
#include "src/attr/descr.h"
#include "src/attr/words.h"

#include "src/call/call.h"
#include "src/call/handlers.h"
#include "src/call/native.h"

static PyObject *refuse(world *w, const char *what) {
    return world_break(w, REASON_NATIVE_CALL, "%s", what);
}

// --- compile ---

// A file of this name would be read for the message of an error.
static bool is_no_file(PyObject *name) {
    return PyUnicode_CheckExact(name) && PyUnicode_GET_LENGTH(name) > 1 &&
           PyUnicode_READ_CHAR(name, 0) == '<';
}

// compile(source, filename, mode, flags=0, dont_inherit=False, optimize=-1)
static const char *const compile_names[] = {"source", "filename",     "mode",
                                            "flags",  "dont_inherit", "optimize"};

// An argument by its place or its name, of an exact builtin type; new reference. NULL: it is not
// given; or NULL with an exception or a break.
static PyObject *compile_argument(world *w, const call *c, size_t i) {
    PyObject *given = i < c->given ? c->args[i] : handler_keyword(c, compile_names[i]);
    PyObject *o = Py_XNewRef(given);
    if (o && rule_open_exact(w, c->rule, &o) != ST_OK)
        Py_CLEAR(o);
    return o;
}

static bool is_plain_source(PyObject *o) {
    return PyUnicode_CheckExact(o) || PyBytes_CheckExact(o);
}

// With flags it gives trees, or code that waits.
static bool has_flags(PyObject *flags) {
    return flags && !(PyLong_CheckExact(flags) && PyLong_AsLong(flags) == 0);
}

static PyObject *compile_opened(world *w, const call *c, PyObject *const *parts) {
    if (!parts[0] || !parts[1] || !parts[2])
        return handler_misuse(w, c);
    if (!is_plain_source(parts[0]) || !is_no_file(parts[1]) || has_flags(parts[3]))
        return refuse(w, "compile() of more than a text, or for a file");
    PyObject *args[6] = {parts[0],
                         parts[1],
                         parts[2],
                         parts[3] ? parts[3] : PyLong_FromLong(0),
                         parts[4] ? parts[4] : Py_False,
                         parts[5] ? parts[5] : PyLong_FromLong(-1)};
    PyObject *code =
        call_native(w, c->callable, args, 6, NULL, false); // (small ints live for ever)
    if (code && !PyCode_Check(code))
        Py_SETREF(code, refuse(w, "compile() of what is no code"));
    return code;
}

HANDLER(compile) {
    PyObject *parts[6] = {NULL}, *code = NULL;
    size_t named = call_count(c) - c->given, found = 0;
    if (c->given > 6)
        return handler_misuse(w, c);
    for (size_t i = 0; i < 6 && !w->stop.broken && !PyErr_Occurred(); i++) {
        parts[i] = compile_argument(w, c, i);
        found += parts[i] && i >= c->given;
    }
    if (!w->stop.broken && !PyErr_Occurred())
        code = found == named ? compile_opened(w, c, parts) : handler_misuse(w, c);
    for (size_t i = 0; i < 6; i++)
        Py_XDECREF(parts[i]);
    return code;
}

// --- namespaces ---

typedef struct namespaces {
    PyObject *globals, *locals; // strong: what the frame gets
} namespaces;

static bool is_none(world *w, PyObject *o) {
    return !o || door_is(w, o, Py_None) == 1;
}

// The builtins of the running frame are known once the code looks for one.
static status know_builtins(world *w, py_frame *frame) {
    PyObject *dict = py_frame_builtins(frame);
    record *function = record_of(w, py_frame_function(frame));
    if (record_of(w, dict) || namespace_is_made(w, dict))
        return ST_OK;
    source *s =
        function ? guard_source(w->guards, SOURCE_BUILTINS, function->source, NULL, 0) : NULL;
    if (!s)
        return PyErr_Occurred() ? ST_ERROR
                                : world_break_status(w, REASON_FRAME, "builtins of a frame");
    return names_of_globals(w, s, dict) ? ST_OK : failed(w);
}

// Whether neither the code nor any code in it looks for a name.
static bool names_nothing(PyObject *code) {
    const PyCodeObject *co = (PyCodeObject *)code;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(co->co_consts); i++) {
        PyObject *constant = PyTuple_GET_ITEM(co->co_consts, i);
        if (PyCode_Check(constant) && !names_nothing(constant))
            return false;
    }
    return PyTuple_GET_SIZE(co->co_names) == 0;
}

// The running frame's own. Which local names there are matters only to code that looks for one.
static status use_frame(world *w, py_frame *frame, PyObject *code, namespaces *n) {
    PyObject *known = handle_globals(w, &(call){0});
    Py_XDECREF(known);
    if (!known)
        return failed(w);
    n->globals = Py_NewRef(py_frame_globals(frame));
    n->locals = names_nothing(code) ? PyDict_New() : handle_locals(w, &(call){0});
    return n->locals ? ST_OK : failed(w);
}

// The builtins of the running frame, as a dict that native code can have: as a whole.
static PyObject *builtins_of_frame(world *w, py_frame *frame) {
    PyObject *dict = py_frame_builtins(frame);
    if (namespace_is_made(w, dict))
        return Py_NewRef(dict);
    record *r = record_of(w, dict);
    names *n = r ? names_of_dict(w, r) : NULL;
    PyObject *loaded = n ? names_as_object(w, n) : NULL;
    PyObject *opened = loaded ? door_open(w, loaded) : NULL;
    Py_XINCREF(opened);
    Py_XDECREF(loaded);
    return opened;
}

// A dict of this trace becomes a namespace: its entries are looked up where they lie. If it has no
// builtins, it gets those of the frame that calls, as CPython does it.
static status use_own(world *w, py_frame *frame, PyObject *dict, namespaces *n) {
    PyObject *name = PyUnicode_InternFromString("__builtins__");
    PyObject *there = name ? PyDict_GetItemWithError(dict, name) : NULL, *builtins;
    builtins = there ? Py_XNewRef(door_open(w, there)) : builtins_of_frame(w, frame);
    status st = builtins && name ? ST_OK : failed(w);
    if (st == ST_OK && !PyDict_CheckExact(builtins))
        st = world_break_status(w, REASON_NATIVE_CALL, "builtins that are a %s",
                                Py_TYPE(builtins)->tp_name);
    if (st == ST_OK && !record_of(w, builtins))
        st = namespace_make(w, builtins);
    if (st == ST_OK && PyDict_SetItem(dict, name, builtins) < 0)
        st = ST_ERROR;
    Py_XDECREF(name);
    Py_XDECREF(builtins);
    TRY(st);
    n->globals = Py_NewRef(dict);
    return namespace_make(w, dict);
}

// A dict from outside, as a module has one. Its builtins have to be those of the running frame.
static status use_outside(world *w, py_frame *frame, record *r, namespaces *n) {
    names *known =
        r->kind == RECORD_DICT && PyDict_CheckExact(r->outside) ? names_of_dict(w, r) : NULL;
    PyObject *name = known ? PyUnicode_InternFromString("__builtins__") : NULL;
    PyObject *value = name ? names_get(w, known, name) : NULL;
    PyObject *opened = value ? door_open(w, value) : NULL, *raw = NULL;
    if (opened && raw_dict_get(r->outside, name, &raw) == RAW_FOUND && PyModule_Check(raw))
        raw = PyModule_GetDict(raw);
    Py_XDECREF(name);
    Py_XDECREF(value);
    if (w->stop.broken || PyErr_Occurred())
        return failed(w);
    if (!raw || raw != py_frame_builtins(frame))
        return world_break_status(w, REASON_NATIVE_CALL, "a namespace with builtins of its own");
    n->globals = Py_NewRef(r->outside);
    return ST_OK;
}

static status use_globals(world *w, py_frame *frame, PyObject *given, namespaces *n) {
    record *r = door_dict(w, given);
    if (w->stop.broken || PyErr_Occurred())
        return failed(w);
    if (r)
        return use_outside(w, frame, r, n);
    PyObject *dict = door_open(w, given);
    if (!dict)
        return failed(w);
    if (!PyDict_CheckExact(dict) || record_of(w, dict))
        return world_break_status(w, REASON_NATIVE_CALL, "a namespace that is a %s",
                                  Py_TYPE(dict)->tp_name);
    return use_own(w, frame, dict, n);
}

// Names are stored in the locals: only a dict of this trace can take them.
static status use_locals(world *w, PyObject *given, namespaces *n) {
    PyObject *dict = is_none(w, given) ? n->globals : door_open(w, given);
    if (!dict)
        return failed(w);
    if (!PyDict_CheckExact(dict) || record_of(w, dict))
        return world_break_status(w, REASON_NATIVE_CALL, "local names in a %s from outside",
                                  Py_TYPE(dict)->tp_name);
    n->locals = Py_NewRef(dict);
    return ST_OK;
}

// --- eval, exec ---

static PyObject *without_space(PyObject *text) {
    Py_ssize_t at = 0, end = PyUnicode_GET_LENGTH(text);
    while (at < end &&
           (PyUnicode_READ_CHAR(text, at) == ' ' || PyUnicode_READ_CHAR(text, at) == '\t'))
        at++;
    return PyUnicode_Substring(text, at, end);
}

// The code of a text; new reference. Errors name "<string>".
static PyObject *code_of_text(world *w, PyObject *text, bool value) {
    static PyObject *compile;
    if (!compile && !(compile = py_import("builtins", "compile")))
        return NULL;
    PyObject *source = value ? without_space(text) : Py_NewRef(text);
    PyObject *name = PyUnicode_FromString("<string>");
    PyObject *mode = PyUnicode_FromString(value ? "eval" : "exec"), *code = NULL;
    PyObject *args[] = {source, name, mode};
    if (source && name && mode)
        code = call_native(w, compile, args, 3, NULL, false);
    Py_XDECREF(source);
    Py_XDECREF(name);
    Py_XDECREF(mode);
    return code;
}

static PyObject *code_given(world *w, PyObject *given, bool value) {
    PyObject *o = door_open(w, given);
    if (!o)
        return NULL;
    PyObject *code = PyUnicode_CheckExact(o) ? code_of_text(w, o, value)
                     : PyCode_Check(o)       ? Py_NewRef(o)
                                             : refuse(w, "eval() of what is no text or code");
    const PyCodeObject *co = (PyCodeObject *)code;
    if (co && (co->co_nfreevars > 0 ||
               (co->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_OPTIMIZED))))
        Py_SETREF(code, refuse(w, "eval() of the code of a function"));
    return code;
}

static PyObject *run_code(world *w, PyObject *code, const namespaces *n) {
    world_touch(w);
    w->inside.text = (PyCodeObject *)code;
    PyObject *result = PyEval_EvalCode(code, n->globals, n->locals);
    w->inside.text = NULL;
    return native_result(w, result, false);
}

static PyObject *run_text(world *w, const call *c, bool value) {
    PyObject *globals = c->given > 1 ? c->args[1] : NULL, *result = NULL;
    PyObject *locals = c->given > 2 ? c->args[2] : NULL;
    py_frame *frame = py_current_frame(PyThreadState_Get());
    namespaces n = {0};
    bool own = is_none(w, globals) && is_none(w, locals);
    if (!own && is_none(w, globals))
        return refuse(w, "eval() with local names alone");
    status st = know_builtins(w, frame);
    PyObject *code = st == ST_OK && own ? code_given(w, c->args[0], value) : NULL;
    if (st == ST_OK && own)
        st = code ? use_frame(w, frame, code, &n) : failed(w);
    else if (st == ST_OK && (st = use_globals(w, frame, globals, &n)) == ST_OK)
        st = use_locals(w, locals, &n);
    if (st == ST_OK && !own)
        code = code_given(w, c->args[0], value);
    if (st == ST_OK && code)
        result = run_code(w, code, &n);
    Py_XDECREF(code);
    Py_XDECREF(n.globals);
    Py_XDECREF(n.locals);
    return result;
}

HANDLER(eval) {
    return run_text(w, c, true);
}

HANDLER(exec) {
    PyObject *result = run_text(w, c, false);
    Py_XDECREF(result);
    return result ? Py_NewRef(Py_None) : NULL;
}
