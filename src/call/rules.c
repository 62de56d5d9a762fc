// The table of rules: rules.def's rows, resolved against the running Python into maps from C
// functions, slot wrappers and types to rows.
#include "src/call/rules.h"

#include "src/base/mutant.h"

#include "src/attr/words.h"

#include "src/call/cached.h"
#include "src/call/handlers.h"
#include "src/call/states.h"

// Shorthands of the table: protocols that native code carries on into elements of elements.
enum {
    EQ = P_EQ | P_DEEP,
    HASH = P_HASH | P_DEEP,
    ORDER = P_ORDER | P_DEEP,
    TEXT = P_TEXT | P_DEEP,
    EXACT = P_ATTR | P_DEEP, // immutable builtins only
};

// A line of the table: every name of every owner gets this row.
typedef struct line {
    const char *owners, *names; // separated by spaces
    rule row;
} line;

static const line lines[] = {
#define PURE(owners, names, state_)                                                                \
    {owners, names, {.kind = RULE_PURE, .writes = W_NONE, .state = (state_)}},
#define STRUCT(owners, names, first_, args_, elements_, writes_, state_)                           \
    {owners,                                                                                       \
     names,                                                                                        \
     {.kind = RULE_STRUCT,                                                                         \
      .first = (first_),                                                                           \
      .args = (args_),                                                                             \
      .elements = (elements_),                                                                     \
      .writes = (writes_),                                                                         \
      .state = (state_)}},
#define ITER(owners, first_, gives_)                                                               \
    {owners,                                                                                       \
     "__iter__",                                                                                   \
     {.kind = RULE_STRUCT, .first = (first_), .gives = (gives_), .writes = W_NONE}},
#define HANDLED(owners, names, function, takes_, writes_, state_)                                  \
    {owners,                                                                                       \
     names,                                                                                        \
     {.kind = RULE_HANDLED,                                                                        \
      .handler = handle_##function,                                                                \
      .takes = takes_,                                                                             \
      .writes = (writes_),                                                                         \
      .state = (state_)}},
#define OPAQUE(owners, names, why_)                                                                \
    {owners, names, {.kind = RULE_OPAQUE, .why = (why_), .writes = W_NONE}},
#define REFUSED(owners, names, id, why_)                                                           \
    {owners, names, {.kind = RULE_OPAQUE, .why = (why_), .reason = REASON_##id, .writes = W_NONE}},
#include "src/call/rules.def"
};

static const rule_numbers numbers_rows[] = {
#define NUMBERS(path, takes, op, second) {path, takes, NUMBER_##op, NUMBER_##second},
#include "src/call/numbers.def"
};

static const rule_numbers *numbers_of(const char *path) {
    for (size_t i = 0; i < Py_ARRAY_LENGTH(numbers_rows); i++)
        if (strcmp(numbers_rows[i].path, path) == 0)
            return &numbers_rows[i];
    return NULL;
}

// The process's one table. It only grows; what its keys point to is held strongly by the rows.
static struct table {
    VEC(const rule *) all;
    map functions;         // PyMethodDef * → const rule *
    map objects;           // PyObject * → const rule *
    map instances;         // PyTypeObject * → const rule *
    PyMethodDef *makes;    // of every __new__ that C code defines
    PyTypeObject *wrapper; // of bound slot wrappers
    bool ready;
} table;

// A bound slot wrapper; CPython has no header for it (wrapperobject in descrobject.c).
typedef struct bound_wrapper {
    PyObject_HEAD
    PyWrapperDescrObject *descr;
    PyObject *self;
} bound_wrapper;

static PyMethodDef *definition(PyObject *callable) {
    if (PyCFunction_Check(callable))
        return ((PyCFunctionObject *)callable)->m_ml;
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type) || Py_IS_TYPE(callable, &PyClassMethodDescr_Type))
        return ((PyMethodDescrObject *)callable)->d_method;
    return NULL;
}

static const rule *found(const map *m, const void *key) {
    const uint64_t *value = map_get(m, map_key(key));
    const rule *row = value ? (const rule *)(uintptr_t)*value : NULL;
    if (row && row->number > 0)
        mutant_of(MUTANT_RULE, (size_t)row->number - 1);
    return row;
}

// The row of a slot wrapper. A C type that repeats the slot of object, in a wrapper of its own, goes
// by object's row.
static const rule *found_wrapper(PyObject *wrapper) {
    const rule *row = found(&table.objects, wrapper);
    PyObject *plain = row ? NULL : _PyType_Lookup(&PyBaseObject_Type, PyDescr_NAME(wrapper));
    bool same =
        plain && Py_IS_TYPE(plain, &PyWrapperDescr_Type) &&
        ((PyWrapperDescrObject *)plain)->d_wrapped == ((PyWrapperDescrObject *)wrapper)->d_wrapped;
    return same ? found(&table.objects, plain) : row;
}

// The row of a C slot that a type has.
static const rule *rule_of_slot(PyTypeObject *type, PyObject *name) {
    PyObject *slot = _PyType_Lookup(type, name);
    return slot && Py_IS_TYPE(slot, &PyWrapperDescr_Type) ? found(&table.objects, slot) : NULL;
}

rule_gives rule_of_iterating(PyTypeObject *type) {
    const rule *row = rule_of_slot(type, word.iter);
    return row ? row->gives : G_ANYTHING;
}

static bool is_one_of_many(PyObject *callable) {
    return !PyType_Check(callable) && !PyFunction_Check(callable) && !PyMethod_Check(callable) &&
           !Py_IS_TYPE(callable, &PyWrapperDescr_Type);
}

const rule *rule_of_itself(PyObject *callable) {
    if (Py_IS_TYPE(callable, &PyWrapperDescr_Type))
        return found_wrapper(callable);
    const rule *row = found(&table.objects, callable);
    if (row || !is_one_of_many(callable))
        return row;
    PyMethodDef *method = definition(callable);
    if (method)
        return method == table.makes ? NULL : found(&table.functions, method);
    if (Py_IS_TYPE(callable, table.wrapper))
        return found_wrapper((PyObject *)((bound_wrapper *)callable)->descr);
    return found(&table.instances, Py_TYPE(callable));
}

const rule *rule_of(PyObject *callable) {
    const rule *row = rule_of_itself(callable);
    bool asks = !row && is_one_of_many(callable) && !definition(callable) &&
                !Py_IS_TYPE(callable, table.wrapper);
    return asks ? rule_of_slot(Py_TYPE(callable), word.call) : row;
}

const rule *rule_applying(world *w, const rule *row, const call *c) {
    while (row && row->applies && !row->applies(w, c))
        row = w->stop.broken || PyErr_Occurred() ? NULL : row->otherwise;
    return row;
}

PyObject *rule_bound_to(PyObject *callable) {
    if (Py_IS_TYPE(callable, table.wrapper))
        return ((bound_wrapper *)callable)->self;
    return PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : NULL;
}

PyObject *rule_unbound(const rule *row, PyObject *callable) {
    if (!row->owner)
        return row->weak && row->object ? row->object : callable;
    if (Py_IS_TYPE(callable, Py_TYPE(row->object)))
        return callable;
    if (Py_IS_TYPE(callable, table.wrapper))
        return (PyObject *)((bound_wrapper *)callable)->descr;
    if (!PyCFunction_Check(callable) || Py_IS_TYPE(row->object, &PyClassMethodDescr_Type))
        return row->object;
    PyMethodDef *method = definition(callable);
    PyObject *self = PyCFunction_GET_SELF(callable);
    PyObject *own = definition(row->object) == method && PyObject_TypeCheck(self, row->owner)
                        ? row->object
                        : NULL;
    for (size_t i = 0; !own && i < table.all.count; i++) {
        const rule *other = table.all.items[i];
        if (other->owner && definition(other->object) == method &&
            PyObject_TypeCheck(self, other->owner))
            own = other->object;
    }
    return own ? own : row->object;
}

// Two names of one C function, or two types that share one, must agree.
static bool agree(const rule *a, const rule *b) {
    return a->kind == b->kind && a->first == b->first && a->args == b->args &&
           a->elements == b->elements && a->gives == b->gives && a->handler == b->handler &&
           a->takes.least == b->takes.least && a->takes.most == b->takes.most &&
           a->takes.how == b->takes.how && a->writes == b->writes && a->state == b->state;
}

static status put(map *m, const void *key, const rule *row) {
    const rule *before = found(m, key);
    if (!before)
        return map_put(m, map_key(key), map_key(row));
    if (agree(before, row))
        return ST_OK;
    PyErr_Format(PyExc_SystemError, "%s and %s have different rules", before->path, row->path);
    return ST_ERROR;
}

// Rows that are not in the table say as much as those that are.
static status check_said(const rule *row) {
    bool counted = row->kind != RULE_HANDLED || row->takes.how != TAKES_UNSAID;
    if (counted && row->writes != W_UNSAID)
        return ST_OK;
    PyErr_Format(PyExc_SystemError, "the row of %s does not say what it %s", row->path,
                 counted ? "writes" : "takes");
    return ST_ERROR;
}

status rules_add(PyObject *callable, const rule *row) {
    TRY(check_said(row));
    TRY(map_put(&table.objects, map_key(callable), map_key(row)));
    Py_INCREF(callable); // for as long as the process lives
    return ST_OK;
}

status rules_add_named(const char *module, const char *name, const rule *row) {
    PyObject *callable = py_import(module, name);
    status st = callable ? rules_add(callable, row) : ST_ERROR;
    Py_XDECREF(callable);
    return st;
}

status rules_add_definition(PyMethodDef *method, const rule *row) {
    TRY(check_said(row));
    return map_put(&table.functions, map_key(method), map_key(row));
}

status rules_add_instances(PyTypeObject *type, const rule *row) {
    TRY(check_said(row));
    TRY(map_put(&table.instances, map_key(type), map_key(row)));
    Py_INCREF(type); // for as long as the process lives
    return ST_OK;
}

const char *rule_writes_name(rule_writes writes) {
    static const char *const names[] = {[W_UNSAID] = "unsaid", [W_NONE] = "none",
                                        [W_SELF] = "self",     [W_FIRST] = "first",
                                        [W_INSIDE] = "inside", [W_HANDLER] = "handler"};
    return names[writes];
}

PyObject *rule_state_names(unsigned state) {
    static const char *const names[] = {
#define STATE(name, text, reader) #name,
#include "src/call/states.def"
#undef STATE
    };
    PyObject *list = PyList_New(0), *all = NULL;
    for (int i = 0; list && i < STATE_COUNT; i++) {
        PyObject *name = state & (1u << i) ? PyUnicode_FromString(names[i]) : NULL;
        if (state & (1u << i) && (!name || PyList_Append(list, name) < 0))
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    all = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return all;
}

const rule *const *rules_all(size_t *count) {
    *count = table.all.count;
    return table.all.items;
}

// --- finding what a path means ---

// C types by tp_name, which is where they say they are: a dict, str → type.
static int note_types(PyObject *by_name, PyTypeObject *type, PyObject *subclasses_of) {
    if (!raw_is_python_class(type)) {
        PyObject *known = PyDict_GetItemString(by_name, type->tp_name);
        if (!known && PyDict_SetItemString(by_name, type->tp_name, (PyObject *)type) < 0)
            return -1;
    }
    PyObject *list = PyObject_CallOneArg(subclasses_of, (PyObject *)type);
    int bad = !list;
    for (Py_ssize_t i = 0; !bad && i < PyList_GET_SIZE(list); i++) {
        PyTypeObject *sub = (PyTypeObject *)PyList_GET_ITEM(list, i);
        // Below a Python class there are only Python classes, and of those there may be thousands.
        if (!raw_is_python_class(sub))
            bad = note_types(by_name, sub, subclasses_of) < 0;
    }
    Py_XDECREF(list);
    return bad ? -1 : 0;
}

// The C modules of the table. Importing them makes their types known.
static status import_modules(void) {
    static const char *const names[] = {
        "_abc",    "_bisect",   "_collections", "_contextvars", "_functools", "_heapq",
        "_json",   "_datetime", "_io",          "_operator",    "_random",    "_sre",
        "_string", "_struct",   "_thread",      "_typing",      "_warnings",  "_weakref",
        "cmath",   "itertools", "math"};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++) {
        PyObject *module = PyImport_ImportModule(names[i]);
        if (!module)
            return ST_ERROR;
        Py_DECREF(module);
    }
    return ST_OK;
}

static PyObject *types_by_name(void) {
    PyObject *by_name = PyDict_New();
    PyObject *f =
        by_name ? PyObject_GetAttrString((PyObject *)&PyType_Type, "__subclasses__") : NULL;
    if (!f || note_types(by_name, &PyBaseObject_Type, f) < 0)
        Py_CLEAR(by_name);
    Py_XDECREF(f);
    return by_name;
}

// What an owner's name stands for: a C type or a module; new reference. NULL without an exception
// if this Python has none. Nothing is imported: looking for what is not there takes long.
static PyObject *find_owner(PyObject *by_name, const char *name) {
    PyObject *type = PyDict_GetItemString(by_name, name);
    if (type)
        return Py_NewRef(type);
    const char *dot = strrchr(name, '.');
    PyObject *text =
        dot ? PyUnicode_FromStringAndSize(name, dot - name) : PyUnicode_FromString(name);
    PyObject *module = text ? PyImport_GetModule(text) : NULL;
    Py_XDECREF(text);
    if (!module || !dot)
        return module;
    // C types that Python code can change are no builtin ones; a C module has no others.
    PyObject *member =
        *name == '_' ? PyDict_GetItemString(PyModule_GetDict(module), dot + 1) : NULL;
    Py_DECREF(module);
    return member && PyType_Check(member) ? Py_NewRef(member) : NULL;
}

// The entry of a type or a module itself, not of what it inherits; new reference. NULL without an
// exception if there is none.
static PyObject *find_member(PyObject *owner, PyObject *name) {
    if (PyUnicode_CompareWithASCIIString(name, "()") == 0)
        return Py_NewRef(owner);
    PyObject *dict =
        PyType_Check(owner) ? raw_type_dict((PyTypeObject *)owner) : PyModule_GetDict(owner);
    PyObject *member = Py_XNewRef(PyDict_GetItemWithError(dict, name));
    if (member == Py_None) // __hash__ of what cannot be hashed
        Py_CLEAR(member);
    if (member && Py_IS_TYPE(member, &PyStaticMethod_Type))
        Py_SETREF(member, PyObject_GetAttrString(member, "__func__"));
    return member;
}

// --- setting up ---

static bool is_maker(PyObject *o) {
    return PyCFunction_Check(o) && ((PyCFunctionObject *)o)->m_ml == table.makes;
}

// What the C function behind a row takes for its first argument.
static void describe(rule *row, PyObject *owner, PyObject *member) {
    row->object = Py_NewRef(member);
    row->makes = is_maker(member);
    if (Py_IS_TYPE(member, &PyMethodDescr_Type) || Py_IS_TYPE(member, &PyWrapperDescr_Type) ||
        Py_IS_TYPE(member, &PyClassMethodDescr_Type))
        row->owner = (PyTypeObject *)owner;
}

// W_SELF and W_INSIDE are said of methods, W_FIRST of functions, W_HANDLER of rows with a handler.
static status check_writes(const rule *row) {
    bool method = row->owner && !Py_IS_TYPE(row->object, &PyClassMethodDescr_Type);
    bool self = row->writes == W_SELF || row->writes == W_INSIDE;
    if (row->writes == W_NONE || (self && method) ||
        (row->writes == W_FIRST && !method && !PyType_Check(row->object)) ||
        (row->writes == W_HANDLER && row->kind == RULE_HANDLED))
        return ST_OK;
    PyErr_Format(PyExc_SystemError, "%s cannot write what its row says", row->path);
    return ST_ERROR;
}

static status check_state(const rule *row) {
    if (states_allowed(row))
        return ST_OK;
    PyErr_Format(PyExc_SystemError, "nobody guards the state that %s reads", row->path);
    return ST_ERROR;
}

static char *join_path(const char *owner, const char *name) {
    bool bare = strcmp(owner, "builtins") == 0, call = strcmp(name, "()") == 0;
    size_t size = strlen(owner) + strlen(name) + 2;
    char *path = PyMem_Malloc(size);
    if (!path)
        PyErr_NoMemory();
    else if (bare || call)
        strcpy(path, bare ? name : owner);
    else
        PyOS_snprintf(path, size, "%s.%s", owner, name);
    return path;
}

static rule *new_row(const line *l, PyObject *owner, const char *owner_name, PyObject *name,
                     PyObject *member) {
    rule *row = PyMem_Malloc(sizeof(rule));
    if (!row) {
        PyErr_NoMemory();
        return NULL;
    }
    *row = l->row;
    row->line = (int)(l - lines);
    row->path = join_path(owner_name, PyUnicode_AsUTF8(name));
    if (row->path) {
        row->numbers = numbers_of(row->path);
        describe(row, owner, member);
        return row;
    }
    PyMem_Free(row);
    return NULL;
}

// A row that is there from an attempt that ran out of memory stays.
static status keep_row(map *m, const void *key, rule *row) {
    const rule *before = found(m, key);
    if (before && strcmp(before->path, row->path) == 0) {
        Py_DECREF(row->object);
        PyMem_Free((char *)row->path);
        PyMem_Free(row);
        return ST_OK;
    }
    TRY(vec_reserve(&table.all, 1));
    TRY(put(m, key, row));
    if (found(m, key) == row) // and not another name of the same function
        row->number = (int)table.all.count + 1;
    return vec_push(&table.all, row);
}

static status add_row(const line *l, PyObject *owner, const char *owner_name, PyObject *name) {
    PyObject *member = find_member(owner, name);
    if (!member)
        return PyErr_Occurred() ? ST_ERROR : ST_OK;
    rule *row = new_row(l, owner, owner_name, name, member);
    status end = ST_ERROR;
    if (row) {
        PyMethodDef *method = row->makes ? NULL : definition(member);
        end = check_writes(row);
        if (end == ST_OK)
            end = check_state(row);
        if (end == ST_OK)
            end = keep_row(method ? &table.functions : &table.objects,
                           method ? (const void *)method : (const void *)member, row);
    }
    Py_DECREF(member);
    return end;
}

static status add_names(const line *l, PyObject *owner, PyObject *owner_name, PyObject *names) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); i++)
        TRY(add_row(l, owner, PyUnicode_AsUTF8(owner_name), PyList_GET_ITEM(names, i)));
    return ST_OK;
}

static PyObject *split(const char *text) {
    PyObject *all = PyUnicode_FromString(text);
    PyObject *list = all ? PyUnicode_Split(all, NULL, -1) : NULL;
    Py_XDECREF(all);
    return list;
}

static status add_line(const line *l, PyObject *by_name) {
    PyObject *owners = split(l->owners), *names = split(l->names);
    status end = owners && names ? ST_OK : ST_ERROR;
    for (Py_ssize_t i = 0; end == ST_OK && i < PyList_GET_SIZE(owners); i++) {
        PyObject *name = PyList_GET_ITEM(owners, i);
        PyObject *owner = find_owner(by_name, PyUnicode_AsUTF8(name));
        if (owner)
            end = add_names(l, owner, name, names);
        else if (PyErr_Occurred())
            end = ST_ERROR;
        Py_XDECREF(owner);
    }
    Py_XDECREF(owners);
    Py_XDECREF(names);
    return end;
}

// What tells kinds of callables apart: the definition all __new__ functions share, and the type of
// bound slot wrappers.
static status learn_kinds(void) {
    PyObject *maker = PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__new__");
    PyObject *bound = PyObject_GetAttrString(Py_None, "__repr__");
    if (maker && bound) {
        table.makes = ((PyCFunctionObject *)maker)->m_ml;
        table.wrapper = Py_TYPE(bound);
    }
    bool known = maker && bound;
    Py_XDECREF(maker);
    Py_XDECREF(bound);
    return known ? ST_OK : ST_ERROR;
}

int rules_setup(void) {
    static status (*const more[])(void) = {frame_setup, raised_setup, classes_setup, manager_setup,
                                           copy_setup,  cached_setup, text_setup};
    if (table.ready)
        return 0;
    bool ready = learn_kinds() == ST_OK && import_modules() == ST_OK;
    PyObject *by_name = ready ? types_by_name() : NULL;
    status end = by_name ? ST_OK : ST_ERROR;
    for (size_t i = 0; end == ST_OK && i < Py_ARRAY_LENGTH(lines); i++)
        end = add_line(&lines[i], by_name);
    Py_XDECREF(by_name);
    for (size_t i = 0; end == ST_OK && i < Py_ARRAY_LENGTH(more); i++)
        end = more[i]();
    if (end == ST_OK)
        states_setup();
    table.ready = end == ST_OK;
    return end == ST_OK ? 0 : -1;
}
