// Handlers of functions that look at the frame which calls them: locals, vars, globals, super.
#include "src/py/frame.h"

#include "src/interp/run.h"

#include "src/attr/attr.h"
#include "src/attr/descr.h"
#include "src/attr/words.h"

#include "src/call/call.h"
#include "src/call/handlers.h"

// --- variables ---

// One variable of a function's frame; new reference, NULL without an exception if it is unbound.
static PyObject *frame_local(world *w, PyObject *slot, int kind) {
    if (slot && (kind & (CO_FAST_CELL | CO_FAST_FREE)) && PyCell_Check(slot))
        return cell_get(w, slot);
    return Py_XNewRef(slot);
}

static int store_local(world *w, PyObject *dict, PyObject *name, PyObject *slot, int kind) {
    PyObject *value = frame_local(w, slot, kind);
    if (!value && (w->stop.broken || PyErr_Occurred()))
        return -1;
    int failed = 0;
    if (value)
        failed = PyDict_SetItem(dict, name, value);
    else if (PyDict_Contains(dict, name))
        failed = PyDict_DelItem(dict, name);
    Py_XDECREF(value);
    return failed;
}

static bool has_hidden(PyCodeObject *code) {
    const int known = CO_FAST_LOCAL | CO_FAST_CELL | CO_FAST_FREE;
    for (int i = 0; i < code->co_nlocalsplus; i++)
        if (_PyLocals_GetKind(code->co_localspluskinds, i) & ~known)
            return true;
    return false;
}

// A dict that the frame keeps is lost at a break, and one from before a break is not known. Where
// the frame began in this trace and returns next, neither shows.
static bool may_keep(const world *w, const py_frame *frame) {
    const run *r = w->run;
    if (!r || r == w->root || r->frame != frame)
        return false;
    const insn *pc = code_at(r->code, py_frame_lasti(frame));
    return pc && pc + 1 < r->code->insns + r->code->count && pc[1].op == OP_RETURN_VALUE;
}

// locals() in a function. (In a class it is the namespace itself; variables of comprehensions that
// are compiled in place have rules of their own.)
static PyObject *frame_locals(world *w) {
    py_frame *frame = py_current_frame(PyThreadState_Get());
    PyCodeObject *code = py_frame_code(frame);
    if (!(code->co_flags & CO_OPTIMIZED) || has_hidden(code) ||
        (RAW_KEEPS_LOCALS && !may_keep(w, frame)))
        return world_break(w, REASON_FRAME, "locals()");
    PyObject *dict = raw_locals_dict(frame);
    w->facts.handles_seen = true;
    for (int i = 0; dict && i < code->co_nlocalsplus; i++)
        if (store_local(w, dict, PyTuple_GET_ITEM(code->co_localsplusnames, i),
                        py_frame_get(frame, i), _PyLocals_GetKind(code->co_localspluskinds, i)) < 0)
            Py_CLEAR(dict);
    return dict;
}

HANDLER(locals) {
    (void)c;
    return frame_locals(w);
}

HANDLER(vars) {
    if (c->given == 0)
        return frame_locals(w);
    PyObject *value = attr_get(w, c->args[0], word.dict);
    if (!value && handler_missed(w))
        PyErr_SetString(PyExc_TypeError, "vars() argument must have __dict__ attribute");
    return value;
}

static PyObject *globals_of(world *w, PyObject *function) {
    PyObject *dict = PyFunction_GET_GLOBALS(function);
    if (namespace_is_made(w, dict))
        return Py_NewRef(dict);
    record *known = record_of(w, dict);
    if (known)
        return names_as_object(w, names_of_dict(w, known));
    record *from = record_of(w, function);
    source *s = from ? guard_source(w->guards, SOURCE_GLOBALS, from->source, NULL, 0) : NULL;
    if (!s || !PyDict_CheckExact(dict))
        return PyErr_Occurred() ? NULL : world_break(w, REASON_FRAME, "globals()");
    names *n = names_of_globals(w, s, dict);
    return n ? names_as_object(w, n) : NULL;
}

HANDLER(globals) {
    (void)c;
    return globals_of(w, py_frame_function(py_current_frame(PyThreadState_Get())));
}

// --- frames below ---

// The function of the frame that a call of sys asks for; NULL if it is not known in this trace.
static PyObject *function_below(world *w, const call *c, reason why) {
    PyObject *given = c->given ? door_open(w, c->args[0]) : NULL;
    if (c->given && !given)
        return NULL;
    long depth = given ? (PyLong_CheckExact(given) ? PyLong_AsLong(given) : -1) : 0;
    const run *r = w->run;
    while (r && depth-- > 0)
        r = r->below;
    PyErr_Clear();
    PyObject *function = r && depth == -1 ? py_frame_function(r->frame) : NULL;
    if (function && (record_of(w, function) || map_get(&w->made.objects, map_key(function))))
        return function;
    return w->stop.broken ? NULL : world_break(w, why, "%s", c->rule->path);
}

// sys._getframemodulename(depth): the module of the function of a frame of this trace.
HANDLER(frame_module) {
    PyObject *function = function_below(w, c, REASON_FRAME);
    return function ? attr_get(w, function, word.module) : NULL;
}

// Stands for a frame between sys._getframe() and the instruction behind it, which reads its
// globals. So the program never gets hold of this object.
typedef struct frame_view {
    PyObject_HEAD
    PyObject *function; // strong
} frame_view;

static PyObject *view_globals(PyObject *o, void *unused) {
    (void)unused;
    if (world_here)
        return globals_of(world_here, ((frame_view *)o)->function);
    PyErr_SetString(PyExc_RuntimeError, "this frame belongs to a trace that has ended");
    return NULL;
}

static void view_dealloc(PyObject *o) {
    Py_DECREF(((frame_view *)o)->function);
    PyObject_Free(o);
}

static PyGetSetDef view_fields[] = {{"f_globals", view_globals, NULL, NULL, NULL}, {0}};

static PyTypeObject view_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.frame",
    .tp_basicsize = sizeof(frame_view),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = view_dealloc,
    .tp_getset = view_fields,
};

static bool reads_globals_next(const world *w) {
    const run *r = w->run;
    const insn *pc = r ? code_at(r->code, py_frame_lasti(r->frame)) : NULL;
    if (!pc || pc + 1 >= r->code->insns + r->code->count || pc[1].op != OP_LOAD_ATTR)
        return false;
    PyObject *name = PyTuple_GET_ITEM(r->code->py->co_names, pc[1].arg);
    return PyUnicode_CompareWithASCIIString(name, "f_globals") == 0;
}

// sys._getframe(depth).f_globals: whoever makes a class asks so for the module's name. Elsewhere it
// is a call like any other that only CPython can do.
HANDLER(frame) {
    if (!reads_globals_next(w))
        return world_break(w, REASON_NATIVE_CALL, "%s", c->rule->path);
    PyObject *function = function_below(w, c, REASON_NATIVE_CALL);
    frame_view *made = function ? PyObject_New(frame_view, &view_type) : NULL;
    if (!made)
        return NULL;
    made->function = Py_NewRef(function);
    if (world_born(w, (PyObject *)made) == ST_OK)
        return (PyObject *)made;
    Py_DECREF(made);
    return NULL;
}

status frame_setup(void) {
    return PyType_Ready(&view_type) < 0 ? ST_ERROR : ST_OK;
}

// --- super ---

// The cell of `__class__` in the running frame, and its first argument; new references.
static int find_super(world *w, py_frame *frame, PyObject **type, PyObject **self) {
    PyCodeObject *code = py_frame_code(frame);
    PyObject *first = code->co_argcount ? py_frame_get(frame, 0) : NULL;
    if (first && PyCell_Check(first) &&
        (_PyLocals_GetKind(code->co_localspluskinds, 0) & CO_FAST_CELL))
        *self = cell_get(w, first);
    else
        *self = Py_XNewRef(first);
    for (int i = code->co_nlocalsplus - code->co_nfreevars; i < code->co_nlocalsplus; i++) {
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0 && py_frame_get(frame, i))
            *type = cell_get(w, py_frame_get(frame, i));
    }
    if (*type && *self)
        return 0;
    if (!w->stop.broken && !PyErr_Occurred())
        world_break(w, REASON_FRAME, "super() without a class or an argument");
    return -1;
}

static PyObject *make_super(world *w, PyObject *type, PyObject *self) {
    PyObject *class = door_open(w, type), *object = class ? door_open(w, self) : NULL;
    if (!object)
        return NULL;
    if (is_standin(object) || !PyType_Check(class))
        return world_break(w, REASON_ATTRIBUTE, "super() of a %s object", Py_TYPE(object)->tp_name);
    PyTypeObject *start = PyType_Check(object) ? (PyTypeObject *)object : Py_TYPE(object);
    if (!PyType_IsSubtype(start, (PyTypeObject *)class) &&
        !PyObject_TypeCheck(object, (PyTypeObject *)class))
        return world_break(w, REASON_ATTRIBUTE, "super() of an object that is no instance");
    PyObject *parts[] = {class, object};
    return call_native(w, (PyObject *)&PySuper_Type, parts, 2, NULL, false);
}

HANDLER(super) {
    PyObject *type = NULL, *self = NULL, *result = NULL;
    if (c->given == 1)
        return world_break(w, REASON_NATIVE_CALL, "super(type)");
    if (c->given == 2)
        return make_super(w, c->args[0], c->args[1]);
    if (find_super(w, py_current_frame(PyThreadState_Get()), &type, &self) == 0)
        result = make_super(w, type, self);
    Py_XDECREF(type);
    Py_XDECREF(self);
    return result;
}
