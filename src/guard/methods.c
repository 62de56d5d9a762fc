// Functions for tests of this room alone: they make a guard program of rows of names and objects,
// check it against any function and slots, and do the raw reads.
#include "src/py/raw.h"

#include "src/guard/expression.h"
#include "src/guard/guard.h"
#include "src/guard/log.h"
#include "src/guard/methods.h"
#include "src/guard/program.h"

// --- from names to kinds ---

static int find_name(const step_row *rows, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return i;
    PyErr_Format(PyExc_ValueError, "no such kind: %s", name);
    return -1;
}

static int find_source(const char *name) {
    return find_name(step_rows, SOURCE_COUNT, name);
}

static PyObject *or_null(PyObject *o) {
    return o == Py_None ? NULL : o;
}

static PyObject *expression_of(guards *g, PyObject *tree);

static source *source_below(guards *g, source_kind kind, source *parent, PyObject *key,
                            Py_ssize_t index) {
    if (kind != SOURCE_EXPR)
        return guard_source(g, kind, parent, key, index);
    PyObject *e = expression_of(g, key);
    source *s = e ? guard_source(g, kind, parent, e, index) : NULL;
    Py_XDECREF(e);
    return s;
}

// ((kind, key, index), …) from the root on.
static source *source_of(guards *g, PyObject *path) {
    source *s = NULL;
    if (!PyTuple_Check(path)) {
        PyErr_SetString(PyExc_TypeError, "a path is a tuple");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(path); i++) {
        const char *name;
        PyObject *key;
        Py_ssize_t index;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(path, i), "sOn", &name, &key, &index))
            return NULL;
        int kind = find_source(name);
        s = kind < 0 ? NULL : source_below(g, (source_kind)kind, s, key, index);
        if (!s)
            return NULL;
    }
    return s;
}

typedef struct naming {
    guards *g;
    sizes *s;
} naming;

static bool plain_number(PyObject *o, number *n) {
    if (!number_from_object(o, n))
        PyErr_SetString(PyExc_TypeError, "a symbol has an int of 64 bits, a float or a bool");
    return !PyErr_Occurred();
}

// A symbol is (path, its value in the trace).
static bool symbol_named(void *data, PyObject *name, number *symbol) {
    naming *to = data;
    PyObject *path, *value;
    number hint;
    if (!PyArg_ParseTuple(name, "OO", &path, &value) || !plain_number(value, &hint))
        return false;
    source *place = source_of(to->g, path);
    return place && sizes_symbol(to->s, place, hint, INT64_MIN, INT64_MAX, symbol);
}

// From what expr_from_object takes. New reference.
static PyObject *expression_of(guards *g, PyObject *tree) {
    naming to = {g, sizes_new()};
    number n;
    PyObject *e =
        to.s && expr_from_object(to.s, tree, symbol_named, &to, &n) ? expression_new(n) : NULL;
    if (!e && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "there is no such expression");
    sizes_free(to.s);
    return e;
}

static status add_expression(guards *g, PyObject *tree) {
    PyObject *e = expression_of(g, tree);
    status result = e ? guard_add(g, GUARD_EXPR, NULL, NULL, e, 0) : ST_ERROR;
    Py_XDECREF(e);
    return result;
}

// A check of the test's own: the object is the one given.
static bool custom_check(PyObject *object, void *data) {
    return object == data;
}

static PyObject *custom_text(const char *source, void *data) {
    return PyUnicode_FromFormat("custom(%s, %s)", source, Py_TYPE((PyObject *)data)->tp_name);
}

static void custom_drop(void *data) {
    Py_DECREF((PyObject *)data);
}

static const guard_custom custom = {
    .name = "custom", .check = custom_check, .text = custom_text, .drop = custom_drop};

static status add_lookup(guards *g, source *a, PyObject *object) {
    PyObject *name, *found = NULL;
    if (!PyArg_ParseTuple(object, "O|O", &name, &found))
        return ST_ERROR;
    return guard_add_lookup(g, a, name, found);
}

static status add_named(guards *g, const char *name, source *a, source *b, PyObject *object,
                        Py_ssize_t index) {
    int reg, kind;
    if (strcmp(name, "NEED") == 0)
        return guard_need(g, a, &reg);
    if ((kind = find_name(step_rows + STEP_CHECK, GUARD_COUNT, name)) < 0)
        return ST_ERROR;
    switch (kind) {
    case GUARD_DISTINCT:
        return guard_distinct(g, a);
    case GUARD_TYPE_LOOKUP:
        return add_lookup(g, a, object);
    case GUARD_EXPR:
        return add_expression(g, object);
    case GUARD_CUSTOM:
        return guard_add_custom(g, a, &custom, Py_NewRef(object));
    default:
        return guard_add(g, (guard_kind)kind, a, b, object, index);
    }
}

// Tests look at all registers.
static status give_all(guards *g, source *s) {
    int reg;
    for (; s; s = s->parent)
        TRY(guard_give(g, s, &reg));
    return ST_OK;
}

// (guard, path, object, index, second path)
static status add_row(guards *g, PyObject *row) {
    const char *name;
    PyObject *path, *object = Py_None, *second = NULL;
    Py_ssize_t index = 0;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "a row is a tuple");
        return ST_ERROR;
    }
    if (!PyArg_ParseTuple(row, "sO|OnO", &name, &path, &object, &index, &second))
        return ST_ERROR;
    source *a = path == Py_None ? NULL : source_of(g, path);
    source *b = second && or_null(second) ? source_of(g, second) : NULL;
    if ((path != Py_None && !a) || (second && or_null(second) && !b))
        return ST_ERROR;
    TRY(add_named(g, name, a, b, object, index));
    TRY(give_all(g, a));
    return give_all(g, b);
}

// --- a program as an object ---

typedef struct program_object {
    PyObject_HEAD
    guard_program *program;
} program_object;

static void program_dealloc(PyObject *self) {
    guard_program_free(((program_object *)self)->program);
    PyObject_Free(self);
}

static PyTypeObject program_type;

// The type of programs stands for an unbound slot.
static int frame_of(PyObject *args, guard_frame *f, py_slot *slots, Py_ssize_t room) {
    PyObject *function, *list;
    if (!PyArg_ParseTuple(args, "OO!", &function, &PyList_Type, &list))
        return -1;
    f->function = function;
    f->slots = slots;
    f->count = PyList_GET_SIZE(list) < room ? PyList_GET_SIZE(list) : room;
    f->kept = NULL;
    for (Py_ssize_t i = 0; i < f->count; i++) {
        PyObject *o = PyList_GET_ITEM(list, i);
        py_slot_put(&slots[i], o == (PyObject *)&program_type ? NULL : o);
    }
    return 0;
}

static PyObject *registers_list(PyObject **regs, int count) {
    PyObject *list = PyList_New(count);
    for (int i = 0; list && i < count; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(regs[i]));
    return list;
}

enum { SLOTS = 16 };

// The list of registers, or the number of the step that fails.
static PyObject *program_check(PyObject *self, PyObject *args) {
    guard_program *p = ((program_object *)self)->program;
    py_slot slots[SLOTS];
    PyObject **regs, *result;
    guard_frame f = {0};
    int failed;
    if (frame_of(args, &f, slots, SLOTS) < 0)
        return NULL;
    regs = PyMem_Calloc((size_t)guard_registers(p) + 1, sizeof(PyObject *));
    if (!regs)
        return PyErr_NoMemory();
    if (guard_check(p, &f, regs, &failed))
        result = registers_list(regs, guard_registers(p));
    else
        result = PyErr_Occurred() ? NULL : PyLong_FromLong(failed);
    PyMem_Free(regs);
    Py_XDECREF(f.kept);
    return result;
}

// The list of registers, or None, as a warm call finds it.
static PyObject *program_fast(PyObject *self, PyObject *args) {
    guard_program *p = ((program_object *)self)->program;
    py_slot slots[SLOTS];
    guard_frame f = {0};
    if (frame_of(args, &f, slots, SLOTS) < 0)
        return NULL;
    PyObject **regs = PyMem_Calloc((size_t)guard_registers(p) + 1, sizeof(PyObject *));
    if (!regs)
        return PyErr_NoMemory();
    PyObject *result =
        guard_pass(p, &f, regs) ? registers_list(regs, guard_registers(p)) : Py_NewRef(Py_None);
    PyMem_Free(regs);
    Py_XDECREF(f.kept);
    return result;
}

// (hits since the log was made, words, steps that are still done); None if there is no log.
static PyObject *program_log(PyObject *self, PyObject *ignored) {
    (void)ignored;
    const guard_log *l = ((program_object *)self)->program->log;
    if (!l || !l->made)
        Py_RETURN_NONE;
    return Py_BuildValue("(lII)", l->hits, l->words.all.count, l->items.count);
}

// Why it fails; None if it passes.
static PyObject *program_reason(PyObject *self, PyObject *args) {
    guard_program *p = ((program_object *)self)->program;
    py_slot slots[SLOTS];
    PyObject **regs, *result = Py_None;
    guard_frame f = {0};
    int failed;
    if (frame_of(args, &f, slots, SLOTS) < 0)
        return NULL;
    regs = PyMem_Calloc((size_t)guard_registers(p) + 1, sizeof(PyObject *));
    if (!regs)
        return PyErr_NoMemory();
    if (guard_check(p, &f, regs, &failed))
        Py_INCREF(result);
    else
        result = guard_reason(p, failed, &f);
    PyMem_Free(regs);
    Py_XDECREF(f.kept);
    return result;
}

// (how many steps fail, whether all compare numbers, {place: bits}).
static PyObject *program_misfits(PyObject *self, PyObject *args) {
    guard_program *p = ((program_object *)self)->program;
    py_slot slots[SLOTS];
    guard_frame f = {0};
    guard_misfits found;
    if (frame_of(args, &f, slots, SLOTS) < 0)
        return NULL;
    PyObject **regs = PyMem_Calloc((size_t)guard_registers(p) + 1, sizeof(PyObject *));
    if (!regs)
        return PyErr_NoMemory();
    status done = guard_find_misfits(p, &f, regs, &found);
    PyMem_Free(regs);
    Py_XDECREF(f.kept);
    return done == ST_OK
               ? Py_BuildValue("(iNN)", found.count, PyBool_FromLong(found.numbers), found.places)
               : NULL;
}

// Nanoseconds are the caller's to measure: so many passes.
static PyObject *program_repeat(PyObject *self, PyObject *args) {
    guard_program *p = ((program_object *)self)->program;
    py_slot slots[SLOTS];
    PyObject *regs[256], *frame;
    guard_frame f = {0};
    int failed, passed = 0;
    long times;
    if (!PyArg_ParseTuple(args, "O!l", &PyTuple_Type, &frame, &times) ||
        frame_of(frame, &f, slots, SLOTS) < 0)
        return NULL;
    if (guard_registers(p) > 256) {
        PyErr_SetString(PyExc_ValueError, "too many registers");
        return NULL;
    }
    for (long i = 0; i < times; i++)
        passed += guard_check(p, &f, regs, &failed);
    Py_XDECREF(f.kept);
    return PyLong_FromLong(passed);
}

static PyObject *program_rows(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return guard_rows(((program_object *)self)->program);
}

static PyObject *program_dead(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return PyBool_FromLong(guard_dead(((program_object *)self)->program));
}

static PyMethodDef program_methods[] = {
    {"check", program_check, METH_VARARGS,
     "check(function, slots): registers, or the failing step."},
    {"fast", program_fast, METH_VARARGS,
     "fast(function, slots): the registers, or None, as a warm call finds them."},
    {"log", program_log, METH_NOARGS, "(hits, words, steps) of the log, or None."},
    {"reason", program_reason, METH_VARARGS, "reason(function, slots): text, or None."},
    {"misfits", program_misfits, METH_VARARGS,
     "misfits(function, slots): how many steps fail, whether all of these compare numbers of a "
     "place, {place: bits}."},
    {"repeat", program_repeat, METH_VARARGS, "repeat((function, slots), times): passes."},
    {"rows", program_rows, METH_NOARGS, "The guards as (text, filename, line)."},
    {"dead", program_dead, METH_NOARGS, "Whether it can never pass again."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject program_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.guard_program",
    .tp_basicsize = sizeof(program_object),
    .tp_dealloc = program_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_methods = program_methods,
};

static PyObject *program_wrap(guards *g) {
    if (PyType_Ready(&program_type) < 0)
        return NULL;
    program_object *o = PyObject_New(program_object, &program_type);
    if (!o)
        return NULL;
    o->program = guard_seal(g);
    if (o->program)
        return (PyObject *)o;
    Py_DECREF(o);
    return NULL;
}

// --- functions ---

static PyObject *method_program(PyObject *module, PyObject *rows) {
    (void)module;
    if (!PyList_Check(rows)) {
        PyErr_SetString(PyExc_TypeError, "guard_program() needs a list of rows");
        return NULL;
    }
    guards *g = guards_new();
    if (!g)
        return NULL;
    status s = ST_OK;
    for (Py_ssize_t i = 0; s == ST_OK && i < PyList_GET_SIZE(rows); i++)
        s = add_row(g, PyList_GET_ITEM(rows, i));
    PyObject *result = s == ST_OK ? program_wrap(g) : NULL;
    guards_free(g);
    return result;
}

// For each path its text, and a number that is the same for the same source.
static PyObject *method_sources(PyObject *module, PyObject *paths) {
    (void)module;
    if (!PyList_Check(paths)) {
        PyErr_SetString(PyExc_TypeError, "guard_sources() needs a list of paths");
        return NULL;
    }
    guards *g = guards_new();
    PyObject *list = g ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(paths); i++) {
        source *s = source_of(g, PyList_GET_ITEM(paths, i));
        PyObject *text = s ? source_text(s) : NULL;
        PyObject *item = text ? Py_BuildValue("(NN)", text, PyLong_FromVoidPtr(s)) : NULL;
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    guards_free(g);
    return list;
}

static PyObject *method_read(PyObject *module, PyObject *args) {
    const char *name;
    PyObject *parent, *key = Py_None, *kept = NULL;
    Py_ssize_t index = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO|On:source_read", &name, &parent, &key, &index))
        return NULL;
    int kind = guard_setup() == 0 ? find_source(name) : -1;
    if (kind < 0)
        return NULL;
    PyObject *o = source_read((source_kind)kind, parent, key, index, &kept);
    PyObject *result = o ? PyTuple_Pack(1, o) : PyErr_Occurred() ? NULL : PyTuple_New(0);
    Py_XDECREF(kept);
    return result;
}

static PyObject *method_logs(PyObject *module, PyObject *when) {
    (void)module;
    long before = log_use, now = PyLong_AsLong(when);
    if (now < 0 || now >= LOG_WHENS) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "0: never, 1: where worth it, 2: always");
        return NULL;
    }
    log_use = (log_when)now;
    return PyLong_FromLong(before);
}

static PyObject *names_tuple(const step_row *rows, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *name = PyUnicode_FromString(rows[i].name);
        if (name)
            PyTuple_SET_ITEM(tuple, i, name);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *method_kinds(PyObject *module, PyObject *ignored) {
    PyObject *sources = names_tuple(step_rows, SOURCE_COUNT);
    PyObject *guards = sources ? names_tuple(step_rows + STEP_CHECK, GUARD_COUNT) : NULL;
    (void)module, (void)ignored;
    if (guards)
        return Py_BuildValue("(NN)", sources, guards);
    Py_XDECREF(sources);
    return NULL;
}

static PyObject *raw_result(raw there, PyObject *value) {
    return there == RAW_FOUND ? PyTuple_Pack(1, value)
                              : PyUnicode_FromString(there == RAW_ABSENT ? "absent" : "unsure");
}

static PyObject *method_raw_item(PyObject *module, PyObject *args) {
    PyObject *dict, *key, *value = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:raw_item", &dict, &key))
        return NULL;
    raw there = raw_dict_get(dict, key, &value);
    return raw_result(there, value);
}

static PyObject *method_raw_attr(PyObject *module, PyObject *args) {
    PyObject *o, *name, *value = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:raw_attr", &o, &name))
        return NULL;
    raw there = raw_attr_get(o, name, &value);
    return raw_result(there, value);
}

static PyObject *method_raw_lookup(PyObject *module, PyObject *args) {
    PyObject *type, *name, *value = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O:raw_lookup", &PyType_Type, &type, &name))
        return NULL;
    raw there = raw_type_get((PyTypeObject *)type, name, &value);
    return raw_result(there, value);
}

static PyObject *method_raw_names(PyObject *module, PyObject *o) {
    (void)module;
    return raw_attr_names(o);
}

static PyObject *method_raw_keys(PyObject *module, PyObject *o) {
    PyObject *list = PyList_New(0), *key, *value;
    (void)module;
    if (list && !PyDict_Check(o)) {
        PyErr_SetString(PyExc_TypeError, "raw_keys() needs a dict");
        Py_CLEAR(list);
    }
    for (raw_cursor c = {0}; list && raw_dict_next(o, &c, &key, &value);)
        if (PyList_Append(list, key) < 0)
            Py_CLEAR(list);
    return list;
}

// The instance dict if it exists already, else None.
static PyObject *method_raw_dict(PyObject *module, PyObject *o) {
    PyObject *dict = raw_dict(o);
    (void)module;
    return Py_NewRef(dict ? dict : Py_None);
}

static PyObject *method_raw_set(PyObject *module, PyObject *args) {
    PyObject *o, *name, *value = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO|O:raw_set", &o, &name, &value) ||
        raw_attr_set(o, name, value) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyMethodDef guard_methods[] = {
    {"guard_program", method_program, METH_O, "A guard program from rows, for tests."},
    {"guard_sources", method_sources, METH_O, "Texts and numbers of sources, for tests."},
    {"guard_kinds", method_kinds, METH_NOARGS, "The names of all sources and all guards."},
    {"guard_logs", method_logs, METH_O,
     "When words stand for guards: 0 never, 1 where worth it, 2 always. Returns the mode before."},
    {"source_read", method_read, METH_VARARGS, "(object,) or (), for tests."},
    {"raw_item", method_raw_item, METH_VARARGS, "A dict's entry: (value,), 'absent' or 'unsure'."},
    {"raw_attr", method_raw_attr, METH_VARARGS, "An instance dict's entry, as raw_item."},
    {"raw_lookup", method_raw_lookup, METH_VARARGS, "What the MRO has, as raw_item."},
    {"raw_names", method_raw_names, METH_O, "An instance dict's names."},
    {"raw_keys", method_raw_keys, METH_O, "A dict's keys in order."},
    {"raw_dict", method_raw_dict, METH_O, "The instance dict if it exists as an object, or None."},
    {"raw_set", method_raw_set, METH_VARARGS, "Stores or deletes in the instance dict."},
    {NULL, NULL, 0, NULL},
};
