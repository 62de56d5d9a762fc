// The compiled callable and its settings as Python objects, and the vectorcall function of a
// compiled callable.
#include "src/code/code.h"

#include "src/interp/run.h"

#include "src/world/world.h"

#include "src/call/call.h"
#include "src/call/rules.h"

#include "src/torch/torch.h"

#include "src/compile/bind.h"
#include "src/compile/compiled.h"
#include "src/compile/compiler.h"
#include "src/compile/drive.h"
#include "src/compile/watch.h"
#include "src/compile/worth.h"

#define SLOTS_ON_STACK 32

typedef struct compiled {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function; // strong: a Python function
    compiler *compiler; // strong
    cache *cache;       // the compiler's, of `code`
    PyObject *code;     // strong: what `cache` belongs to
    PyObject *dict;     // strong
    PyObject *weakrefs;
} compiled;

static PyObject *chooser; // strong: asked before each compiled call; NULL as a rule

// --- calls ---

// The function whose next frame CPython runs: its call was decided here already. Borrowed.
static __attribute__((tls_model("initial-exec"))) _Thread_local PyObject *native_next;

static PyObject *call_unhooked(compiled *o, PyObject *const *args, size_t given,
                               PyObject *keywords) {
    native_next = o->function;
    PyObject *result = PyObject_Vectorcall(o->function, args, given, keywords);
    native_next = NULL;
    return result;
}

static PyObject *call_natively(compiled *o, PyObject *const *args, size_t given,
                               PyObject *keywords) {
    if (!world_tensors)
        return PyObject_Vectorcall(o->function, args, given, keywords);
    if (drive_compiler == o->compiler)
        return call_unhooked(o, args, given, keywords);
    drive_scope before;
    drive_enter(&before, o->compiler);
    PyObject *result = call_unhooked(o, args, given, keywords);
    drive_leave(&before);
    return result;
}

// A function's code may be replaced at any time.
static int find_cache(compiled *o) {
    PyObject *code = PyFunction_GET_CODE(o->function);
    if (o->code == code)
        return 0;
    cache *k = compiler_cache(o->compiler, (PyCodeObject *)code, 0);
    if (!k)
        return -1;
    o->cache = k;
    Py_XSETREF(o->code, Py_NewRef(code));
    return 0;
}

// Someone else may be called in its place: NULL without an exception if not.
static PyObject *chosen(PyObject *compiled) {
    PyObject *other = PyObject_CallOneArg(chooser, compiled);
    if (other == Py_None)
        Py_CLEAR(other);
    return other;
}

static PyObject *call_off(compiled *o, PyObject *const *args, size_t given, PyObject *keywords) {
    hook_mode before = hook_swap(HOOK_OFF);
    PyObject *result = PyObject_Vectorcall(o->function, args, given, keywords);
    hook_swap(before);
    return result;
}

#define MAKES_GENERATOR (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)

static PyObject *compiled_call(PyObject *self, PyObject *const *args, size_t given,
                               PyObject *keywords) {
    compiled *o = (compiled *)self;
    PyCodeObject *co = (PyCodeObject *)PyFunction_GET_CODE(o->function);
    Py_ssize_t count = bind_count(co);
    py_slot few[SLOTS_ON_STACK], *slots = few;
    PyObject *result = NULL;
    if ((co->co_flags & MAKES_GENERATOR) || world_here)
        return PyObject_Vectorcall(o->function, args, given, keywords);
    if (UNLIKELY(watch_leaves(o->compiler, PyThreadState_Get(), co)))
        return call_off(o, args, given, keywords);
    if (UNLIKELY(chooser)) {
        PyObject *other = chosen(self);
        if (other)
            result = PyObject_Vectorcall(other, args, given, keywords);
        Py_XDECREF(other);
        if (other || PyErr_Occurred())
            return result;
    }
    if (find_cache(o) < 0)
        return NULL;
    if (count > SLOTS_ON_STACK)
        slots = PyMem_Malloc((size_t)count * sizeof(py_slot));
    if (!slots)
        return PyErr_NoMemory();
    outcome how = OUTCOME_NATIVE;
    int bound = bind_call(o->function, args, given, keywords, slots);
    if (bound > 0) {
        guard_frame f = {.function = o->function, .slots = slots, .count = count};
        int reach;
        how = compiler_run(o->compiler, o->cache, &f, &result, &reach);
        bind_drop(slots, count);
    }
    if (slots != few)
        PyMem_Free(slots);
    if (bound < 0)
        return NULL;
    if (how == OUTCOME_BROKE)
        return drive_images(o->compiler, (image *)result);
    if (how == OUTCOME_OFF)
        return call_off(o, args, given, keywords);
    return how == OUTCOME_NATIVE ? call_natively(o, args, given, keywords) : result;
}

// --- frames of callees ---

PyObject *compile_frame(PyThreadState *ts, py_frame *f, drive_whose *whose) {
    compiler *c = drive_compiler;
    PyCodeObject *co = py_frame_code(f);
    PyObject *function = py_frame_function(f);
    Py_ssize_t count = bind_count(co);
    *whose = DRIVE_CPYTHONS;
    if (native_next && native_next == function) {
        native_next = NULL;
        return NULL;
    }
    if (!c || py_frame_in_generator(f) || (co->co_flags & MAKES_GENERATOR) ||
        !(co->co_flags & CO_OPTIMIZED) || !PyFunction_Check(function) ||
        PyFunction_GET_CODE(function) != (PyObject *)co || py_frame_next(f) > 0 ||
        image_expects(&interp_here, f) || !worth_compiling(f) || watch_leaves(c, ts, co))
        return NULL;
    return drive_call(ts, f, count, whose);
}

// --- the compiled object ---

static int compiled_traverse(PyObject *self, visitproc visit, void *arg) {
    compiled *o = (compiled *)self;
    Py_VISIT(o->function);
    Py_VISIT(o->compiler);
    Py_VISIT(o->dict);
    return 0;
}

static int compiled_clear(PyObject *self) {
    compiled *o = (compiled *)self;
    Py_CLEAR(o->dict);
    return 0;
}

static void compiled_dealloc(PyObject *self) {
    compiled *o = (compiled *)self;
    PyObject_GC_UnTrack(self);
    if (o->weakrefs)
        PyObject_ClearWeakRefs(self);
    PyObject *code = o->code; // may have been the last to be called by
    Py_CLEAR(o->dict);
    Py_CLEAR(o->function);
    if (code) {
        Py_DECREF(code); // the compiler has it, too
        compiler_let_go(code);
    }
    Py_CLEAR(o->compiler);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *compiled_get(PyObject *self, PyObject *instance, PyObject *type) {
    (void)type;
    if (!instance || instance == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

static PyObject *compiled_repr(PyObject *self) {
    compiled *o = (compiled *)self;
    return PyUnicode_FromFormat("<compiled function %U>",
                                ((PyFunctionObject *)o->function)->func_qualname);
}

static PyObject *compiled_function(PyObject *self, void *closure) {
    (void)closure;
    return Py_NewRef(((compiled *)self)->function);
}

static PyObject *compiled_compiler(PyObject *self, void *closure) {
    (void)closure;
    return Py_NewRef((PyObject *)((compiled *)self)->compiler);
}

static PyObject *compiled_metrics(PyObject *self, void *closure) {
    (void)closure;
    return PyObject_GetAttrString((PyObject *)((compiled *)self)->compiler, "metrics");
}

// What it does not have itself is the function's: __code__, __defaults__, __globals__ …
static PyObject *compiled_getattr(PyObject *self, PyObject *name) {
    PyObject *value = PyObject_GenericGetAttr(self, name);
    if (value || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    return PyObject_GetAttr(((compiled *)self)->function, name);
}

// isinstance() takes it for the function that it stands for: inspect.isfunction and those who ask
// it.
static PyObject *compiled_class(PyObject *self, void *closure) {
    (void)self, (void)closure;
    return Py_NewRef((PyObject *)&PyFunction_Type);
}

// As functions do: pickled by name, and its own copy.
static PyObject *compiled_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyMethodDef compiled_methods[] = {
    {"__reduce__", compiled_reduce, METH_NOARGS, "Its name."},
    {0},
};

static PyGetSetDef compiled_getset[] = {
    {"__class__", compiled_class, NULL, NULL, NULL},
    {"__wrapped__", compiled_function, NULL, "The function that was compiled.", NULL},
    {"metrics", compiled_metrics, NULL, "Counts and reasons so far.", NULL},
    {"compiler", compiled_compiler, NULL, "Settings, caches and counts.", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {0},
};

static PyTypeObject compiled_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.Compiled",
    .tp_doc = "A function whose calls are looked up among compiled entries.",
    .tp_basicsize = sizeof(compiled),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_vectorcall_offset = offsetof(compiled, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = compiled_traverse,
    .tp_clear = compiled_clear,
    .tp_dealloc = compiled_dealloc,
    .tp_descr_get = compiled_get,
    .tp_repr = compiled_repr,
    .tp_getattro = compiled_getattr,
    .tp_methods = compiled_methods,
    .tp_getset = compiled_getset,
    .tp_dictoffset = offsetof(compiled, dict),
    .tp_weaklistoffset = offsetof(compiled, weakrefs),
};

// --- the compiler object ---

static int compiler_traverse(PyObject *self, visitproc visit, void *arg) {
    compiler *c = (compiler *)self;
    Py_VISIT(c->backend);
    Py_VISIT(c->error);
    Py_VISIT(c->policy);
    Py_VISIT(c->symbolic);
    return 0;
}

static void compiler_forget(compiler *c) {
    for (uint32_t i = 0; i < c->all.count; i++)
        cache_clear(c->all.items[i]);
    c->warned = false;
}

static void compiler_dealloc(PyObject *self) {
    compiler *c = (compiler *)self;
    PyObject_GC_UnTrack(self);
    if (c->previous)
        c->previous->next = c->next;
    else
        all_compilers = c->next;
    if (c->next)
        c->next->previous = c->previous;
    for (uint32_t i = 0; i < c->all.count; i++) {
        cache_free(c->all.items[i]);
        Py_DECREF(c->codes.items[i]);
    }
    vec_free(&c->all);
    vec_free(&c->codes);
    map_clear(&c->caches);
    Py_CLEAR(c->backend);
    Py_CLEAR(c->error);
    Py_CLEAR(c->policy);
    Py_CLEAR(c->symbolic);
    Py_CLEAR(c->drops);
    Py_CLEAR(c->breaks);
    Py_CLEAR(c->recompiles);
    Py_CLEAR(c->dropped);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *compiler_metrics(PyObject *self, void *closure) {
    (void)closure;
    compiler *c = (compiler *)self;
    long entries = 0;
    for (uint32_t i = 0; i < c->all.count; i++)
        entries += c->all.items[i]->count;
    return Py_BuildValue("{s:l, s:l, s:l, s:l, s:l, s:N, s:N, s:N, s:N}", "traces", c->traces,
                         "restarts", c->restarts, "longest", c->longest, "entries", entries, "hits",
                         c->hits, "drops", PySequence_List(c->drops), "breaks",
                         PySequence_List(c->breaks), "recompiles", PySequence_List(c->recompiles),
                         "dropped", PySequence_List(c->dropped));
}

static PyObject *compiler_entries(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return compiler_describe((compiler *)self);
}

static PyObject *compiler_entry(PyObject *self, PyObject *number) {
    long wanted = PyLong_AsLong(number);
    if (wanted == -1 && PyErr_Occurred())
        return NULL;
    return compiler_describe_one((compiler *)self, wanted);
}

static PyObject *compiler_reset(PyObject *self, PyObject *ignored) {
    (void)ignored;
    compiler_forget((compiler *)self);
    Py_RETURN_NONE;
}

static PyMethodDef compiler_methods[] = {
    {"entries", compiler_entries, METH_NOARGS, "One dict for each compiled entry."},
    {"entry", compiler_entry, METH_O, "The dict of the entry with this number, or None."},
    {"reset", compiler_reset, METH_NOARGS, "Forgets all entries."},
    {0},
};

static PyObject *compiler_policy(PyObject *self, void *closure) {
    compiler *c = (compiler *)self;
    (void)closure;
    return Py_NewRef(c->policy ? c->policy : Py_None);
}

static PyGetSetDef compiler_getset[] = {
    {"policy", compiler_policy, NULL, "Who decides whether to compile.", NULL},
    {"metrics", compiler_metrics, NULL, "Counts and reasons so far.", NULL},
    {0},
};

static PyTypeObject compiler_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.Compiler",
    .tp_doc = "The settings of one call of stator.compile, with all that was compiled under them.",
    .tp_basicsize = sizeof(compiler),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = compiler_traverse,
    .tp_dealloc = compiler_dealloc,
    .tp_methods = compiler_methods,
    .tp_getset = compiler_getset,
};

// --- methods ---

static PyObject *new_compiler(PyObject *module, PyObject *args, PyObject *kwargs) {
    (void)module;
    static char *names[] = {"backend",  "error",       "fullgraph",  "keep_empty", "limit",
                            "break_at", "break_every", "break_seed", "policy",     "numbers",
                            "symbolic", "recursion",   NULL};
    PyObject *backend, *error, *policy = Py_None, *symbolic = Py_None;
    int fullgraph, keep_empty, limit, numbers = 0, recursion = 0;
    long break_at = 0, break_every = 0, break_seed = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOppi|lllOiOi", names, &backend, &error,
                                     &fullgraph, &keep_empty, &limit, &break_at, &break_every,
                                     &break_seed, &policy, &numbers, &symbolic, &recursion))
        return NULL;
    if (symbolic != Py_None && !PyDict_CheckExact(symbolic)) {
        PyErr_SetString(PyExc_TypeError, "symbolic is a dict or None");
        return NULL;
    }
    // Here and not at the first call: a user's sys.path may be anything by then.
    if (rules_setup() < 0)
        return NULL;
    compiler *c = PyObject_GC_New(compiler, &compiler_type);
    if (!c)
        return NULL;
    memset((char *)c + sizeof(PyObject), 0, sizeof(compiler) - sizeof(PyObject));
    c->next = all_compilers;
    if (all_compilers)
        all_compilers->previous = c;
    all_compilers = c;
    c->backend = Py_NewRef(backend);
    c->error = Py_NewRef(error);
    c->policy = Py_NewRef(policy);
    c->symbolic = Py_NewRef(symbolic);
    c->fullgraph = fullgraph;
    c->keep_empty = keep_empty;
    c->limit = limit;
    c->numbers = numbers;
    c->recursion = recursion;
    c->break_at = break_at;
    c->break_every = break_every;
    c->random = (uint64_t)break_seed;
    c->drops = PyList_New(0);
    c->breaks = PyList_New(0);
    c->recompiles = PyList_New(0);
    c->dropped = PyList_New(0);
    PyObject_GC_Track(c);
    if (!c->drops || !c->breaks || !c->recompiles || !c->dropped)
        Py_CLEAR(c);
    return (PyObject *)c;
}

static PyObject *new_compiled(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *function, *settings;
    if (!PyArg_ParseTuple(args, "O!O!", &PyFunction_Type, &function, &compiler_type, &settings))
        return NULL;
    compiled *o = PyObject_GC_New(compiled, &compiled_type);
    if (!o)
        return NULL;
    memset((char *)o + sizeof(PyObject), 0, sizeof(compiled) - sizeof(PyObject));
    o->vectorcall = compiled_call;
    o->function = Py_NewRef(function);
    o->compiler = (compiler *)Py_NewRef(settings);
    PyObject_GC_Track(o);
    return (PyObject *)o;
}

static PyObject *reset_all(PyObject *module, PyObject *ignored) {
    (void)module, (void)ignored;
    compiler *c = (compiler *)Py_XNewRef((PyObject *)all_compilers), *next;
    for (; c; c = next) { // what entries held may have been the last to hold a compiler
        compiler_forget(c);
        next = (compiler *)Py_XNewRef((PyObject *)c->next);
        Py_DECREF(c);
    }
    Py_RETURN_NONE;
}

static PyObject *set_chooser(PyObject *module, PyObject *callable) {
    (void)module;
    PyObject *before = chooser ? chooser : Py_NewRef(Py_None);
    chooser = callable == Py_None ? NULL : Py_NewRef(callable);
    return before;
}

static PyObject *within(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyBool_FromLong(hook_here == HOOK_COMPILE || world_here);
}

PyMethodDef compile_methods[] = {
    {"within", within, METH_NOARGS, "Whether this is run by a compiled call, traced or not."},
    {"set_library", worth_set_library, METH_O,
     "Folders (a tuple of str) whose functions are compiled only as a part of what calls them."},
    {"set_chooser", set_chooser, METH_O,
     "Asked with each compiled object that is called: None, or what to call in its place."},
    {"compiler", (PyCFunction)(void (*)(void))new_compiler, METH_VARARGS | METH_KEYWORDS,
     "compiler(backend, error, fullgraph, keep_empty, limit, break_at=0, break_every=0, "
     "break_seed=0, policy=None, numbers=0, symbolic=None, recursion=0)"},
    {"compiled", new_compiled, METH_VARARGS, "compiled(function, compiler)"},
    {"reset", reset_all, METH_NOARGS, "Forgets every compiled entry."},
    {"frame_at_work", make_frame, METH_NOARGS,
     "The function that this thread makes an entry for, and its variables by name; or None."},
    {0},
};

static PyObject *function_of(PyObject *o) {
    return ((compiled *)o)->function;
}

static bool is_strict(PyObject *o) {
    return ((compiled *)o)->compiler->fullgraph;
}

int compile_setup(PyObject *module) {
    call_compiled_type = &compiled_type;
    call_compiled_function = function_of;
    call_compiled_strict = is_strict;
    drive_setup();
    if (PyType_Ready(&compiler_type) < 0 || PyType_Ready(&compiled_type) < 0)
        return -1;
    if (PyModule_AddObjectRef(module, "Compiled", (PyObject *)&compiled_type) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "Compiler", (PyObject *)&compiler_type);
}
