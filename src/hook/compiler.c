// From a call to an entry: the cache is asked; on a miss the call is traced, its graph handed to
// the backend, its guards sealed and tried, its plan run.
#include "src/py/raised.h"

#include "src/trace/trace.h"

#include "src/plan/plan.h"

#include "src/cache/cache.h"

#include "src/hook/compiler.h"
#include "src/hook/hook.h"

#define REGISTERS_ON_STACK 128

// --- texts ---

static PyObject *place_text(PyObject *stack, PyCodeObject *co) {
    Py_ssize_t count = stack ? PyTuple_GET_SIZE(stack) : 0;
    if (count == 0)
        return PyUnicode_FromFormat("%U:%d in %U", co->co_filename, co->co_firstlineno,
                                    co->co_qualname);
    PyObject *row = PyTuple_GET_ITEM(stack, count - 1);
    return PyUnicode_FromFormat("%U:%S in %U", PyTuple_GET_ITEM(row, 0), PyTuple_GET_ITEM(row, 1),
                                PyTuple_GET_ITEM(row, 2));
}

// The calls that led there, outermost first, one line each.
static PyObject *chain_text(PyObject *stack) {
    PyObject *text = PyUnicode_FromString("");
    Py_ssize_t count = stack ? PyTuple_GET_SIZE(stack) : 0;
    for (Py_ssize_t i = 0; text != NULL && count > 1 && i < count; i++) {
        PyObject *row = PyTuple_GET_ITEM(stack, i);
        Py_SETREF(text, PyUnicode_FromFormat("%U\n  %s %U:%S in %U", text, i ? "calls" : "from",
                                             PyTuple_GET_ITEM(row, 0), PyTuple_GET_ITEM(row, 1),
                                             PyTuple_GET_ITEM(row, 2)));
    }
    return text;
}

static PyObject *drop_text(const world *w, PyCodeObject *co) {
    const reason_row *row = &reason_rows[w->reason];
    PyObject *place = place_text(w->stack, co), *chain = chain_text(w->stack), *text = NULL;
    if (place != NULL && chain != NULL)
        text = PyUnicode_FromFormat("%U: %s: %V [%s]%s%s%U", place, row->sentence, w->detail, "",
                                    row->id, *row->hint ? "\n  hint: " : "", row->hint, chain);
    Py_XDECREF(place);
    Py_XDECREF(chain);
    return text;
}

static void note(PyObject *list, PyObject *text) {
    if (text == NULL || (PyList_GET_SIZE(list) < 256 && PyList_Append(list, text) < 0))
        PyErr_Clear();
}

// What never works out is not tried for ever.
static void count_drop(const compiler *c, cache *k) {
    if (++k->drops >= c->limit)
        k->given_up = true;
}

// --- one new entry ---

static PyObject *run_backend(compiler *c, plan *p, PyObject *const *regs) {
    PyObject *examples = plan_examples(p, regs);
    if (examples == NULL)
        return NULL;
    hook_mode before = hook_swap(HOOK_OFF);
    PyObject *callable =
        PyObject_CallFunctionObjArgs(c->backend, (PyObject *)plan_graph_of(p), examples, NULL);
    hook_swap(before);
    Py_DECREF(examples);
    if (callable != NULL && !PyCallable_Check(callable)) {
        PyErr_Format(PyExc_TypeError, "the backend returned %s, which cannot be called",
                     Py_TYPE(callable)->tp_name);
        Py_CLEAR(callable);
    }
    return callable;
}

static int give_graph(compiler *c, plan *p, PyObject *const *regs) {
    graph *g = plan_graph_of(p);
    if (g == NULL || graph_operations(g) == 0)
        return 0;
    plan_graph how = {0};
    if (c->backend == Py_None)
        how.replay = replay_new(g);
    else
        how.callable = run_backend(c, p, regs);
    if (how.replay == NULL && how.callable == NULL)
        return -1;
    plan_set_graph(p, how);
    return 0;
}

static outcome after_run(entry *e, PyObject *result, bool graph_failed, PyObject **out) {
    if (result == NULL && graph_failed && plan_rerunnable(e->plan) &&
        PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear(); // nothing was done yet: CPython runs the frame, and its handlers work
        return OUTCOME_NATIVE;
    }
    *out = result;
    return result ? OUTCOME_DONE : OUTCOME_ERROR;
}

static outcome run_entry(compiler *c, entry *e, PyObject *const *regs, PyObject **result) {
    if (e->empty && !c->keep_empty)
        return OUTCOME_NATIVE;
    bool graph_failed = false;
    cache_hold(e);
    hook_mode before = hook_swap(HOOK_OFF); // torch's own Python code is not the program's
    PyObject *value = plan_run(e->plan, regs, &graph_failed);
    hook_swap(before);
    outcome how = after_run(e, value, graph_failed, result);
    cache_release(e);
    return how;
}

// Letting go may run code that resets the cache: it comes before there is an entry.
static int add_entry(cache *k, guard_program *guards, plan *p, guard_frame *f, entry **added) {
    Py_CLEAR(f->kept);
    return cache_add(k, guards, p, added);
}

// The sealed guards are tried on the very state that was traced: if they fail, someone else changed
// it meanwhile, and the trace is worth nothing.
static outcome publish(compiler *c, cache *k, guard_program *guards, plan *p, guard_frame *f,
                       PyObject **result) {
    PyObject **regs = PyMem_Calloc((size_t)guard_registers(guards) + 1, sizeof(PyObject *));
    int failed = -1;
    entry *e = NULL;
    outcome how = OUTCOME_ERROR;
    if (regs == NULL) {
        PyErr_NoMemory();
    } else if (!guard_check(guards, f, regs, &failed)) {
        PyObject *text = guard_reason(guards, failed, f);
        PyObject *why = PyUnicode_FromFormat("changed while it was traced: %V", text, "?");
        note(c->drops, why);
        count_drop(c, k);
        Py_XDECREF(why);
        Py_XDECREF(text);
        how = OUTCOME_NATIVE;
    } else if (give_graph(c, p, regs) == 0 && add_entry(k, guards, p, f, &e) == 0) {
        guards = NULL;
        p = NULL;
        c->compiled++;
        // The backend ran Python code: what the registers borrowed may be gone.
        how = guard_check(e->guards, f, regs, &failed) ? run_entry(c, e, regs, result)
                                                       : OUTCOME_NATIVE;
    }
    guard_program_free(guards);
    plan_free(p);
    PyMem_Free(regs);
    Py_CLEAR(f->kept);
    return how;
}

static outcome drop(compiler *c, cache *k, const world *w, PyCodeObject *co) {
    PyObject *text = drop_text(w, co);
    note(c->drops, text);
    count_drop(c, k);
    outcome how = OUTCOME_NATIVE;
    if (c->fullgraph) {
        PyErr_SetObject(c->error, text ? text : Py_None);
        how = OUTCOME_ERROR;
    }
    Py_XDECREF(text);
    return how;
}

// Trace and plan; the world is over when this returns, and guards and plan stand alone.
static outcome trace_call(compiler *c, cache *k, PyObject *function, const guard_frame *f,
                          guard_program **guards, plan **p) {
    PyCodeObject *co = (PyCodeObject *)PyFunction_GET_CODE(function);
    world *w = world_new();
    if (w == NULL)
        return OUTCOME_ERROR;
    c->traces++;
    hook_scope before;
    hook_enter(&before, HOOK_TRACE);
    PyObject *value;
    trace_end end = trace_function(w, function, f->slots, f->count, &value);
    if (end == TRACE_DONE) {
        // A function that leaves torch's state changed has no plan.
        bool fine = world_tensors == NULL || world_tensors->end(w) == ST_OK;
        *p = fine ? plan_build(w, value) : NULL;
        if (*p != NULL && world_finish(w) == ST_OK)
            *guards = guard_seal(w->guards);
        if (*guards == NULL)
            end = w->broken ? TRACE_BROKE : TRACE_ERROR;
    }
    hook_leave(&before);
    if (end == TRACE_ERROR && !w->interrupted && PyErr_ExceptionMatches(PyExc_MemoryError)) {
        world_break(w, REASON_RESOURCES, "MemoryError");
        end = TRACE_BROKE; // the program itself may need less
    }
    if (end == TRACE_BROKE)
        PyErr_Clear();
    outcome how = OUTCOME_DONE;
    if (end == TRACE_BROKE)
        how = drop(c, k, w, co);
    else if (end == TRACE_ERROR)
        how = OUTCOME_ERROR;
    if (end != TRACE_DONE) {
        plan_free(*p);
        *p = NULL;
    }
    py_raised aside = py_put_aside();
    Py_XDECREF(value);
    world_free(w);
    py_put_on(aside);
    return how;
}

static int warn_limit(compiler *c, cache *k, PyCodeObject *co) {
    k->given_up = true;
    if (c->warned)
        return 0;
    c->warned = true;
    PyObject *separator = PyUnicode_FromString("\n  ");
    PyObject *list = separator ? PyUnicode_Join(separator, c->recompiles) : NULL;
    int failed = -1;
    if (list != NULL)
        failed = PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                                  "stator: %U was compiled %d times (the limit) and now runs "
                                  "uncompiled where no entry fits. The reasons were:\n  %U",
                                  co->co_qualname, c->limit, list);
    Py_XDECREF(separator);
    Py_XDECREF(list);
    return failed;
}

static int note_recompile(compiler *c, cache *k, guard_frame *f) {
    if (k->count == 0)
        return 0;
    hook_mode before = hook_swap(HOOK_OFF);
    PyObject *reasons = cache_reasons(k, f);
    hook_swap(before);
    Py_CLEAR(f->kept);
    if (reasons == NULL)
        return -1;
    if (PyList_GET_SIZE(reasons) > 0)
        note(c->recompiles, PyList_GET_ITEM(reasons, 0));
    Py_DECREF(reasons);
    return 0;
}

static outcome compile_new(compiler *c, cache *k, PyObject *function, guard_frame *f,
                           PyObject **result) {
    PyCodeObject *co = (PyCodeObject *)PyFunction_GET_CODE(function);
    if (k->given_up)
        return OUTCOME_NATIVE;
    if (note_recompile(c, k, f) < 0)
        return OUTCOME_ERROR;
    if (k->count >= c->limit)
        return warn_limit(c, k, co) < 0 ? OUTCOME_ERROR : OUTCOME_NATIVE;
    guard_program *guards = NULL;
    plan *p = NULL;
    outcome how = trace_call(c, k, function, f, &guards, &p);
    return how == OUTCOME_DONE ? publish(c, k, guards, p, f, result) : how;
}

// --- calls ---

outcome compiler_run(compiler *c, cache *k, PyObject *function, PyObject *const *slots,
                     Py_ssize_t count, PyObject **result) {
    PyObject *few[REGISTERS_ON_STACK], **regs = few;
    int needed = cache_registers(k);
    if (needed > REGISTERS_ON_STACK)
        regs = PyMem_Malloc((size_t)needed * sizeof(PyObject *));
    if (regs == NULL) {
        PyErr_NoMemory();
        return OUTCOME_ERROR;
    }
    guard_frame f = {.function = function, .slots = slots, .count = count};
    entry *e = cache_find(k, &f, regs);
    outcome how;
    if (e != NULL) {
        c->hits++;
        how = run_entry(c, e, regs, result);
        Py_CLEAR(f.kept);
    } else {
        Py_CLEAR(f.kept);
        how = compile_new(c, k, function, &f, result);
    }
    if (regs != few)
        PyMem_Free(regs);
    return how;
}

cache *compiler_cache(compiler *c, PyCodeObject *co) {
    uint64_t *found = map_get(&c->caches, map_key(co));
    if (found != NULL)
        return (cache *)(uintptr_t)*found;
    cache *k = cache_new();
    if (k == NULL)
        return NULL;
    if (vec_reserve(&c->codes, 1) == ST_OK && vec_reserve(&c->all, 1) == ST_OK &&
        map_put(&c->caches, map_key(co), map_key(k)) == ST_OK) {
        c->codes.items[c->codes.count++] = Py_NewRef((PyObject *)co);
        c->all.items[c->all.count++] = k;
        return k;
    }
    cache_free(k);
    return NULL;
}

// --- describing ---

static PyObject *describe_entry(PyCodeObject *co, const entry *e) {
    graph *g = plan_graph_of(e->plan);
    return Py_BuildValue("{s:O, s:O, s:i, s:O, s:N, s:N, s:N, s:l}", "name", co->co_qualname,
                         "file", co->co_filename, "line", co->co_firstlineno, "graph",
                         g ? (PyObject *)g : Py_None, "guards", guard_rows(e->guards), "plan",
                         plan_text(e->plan), "writes", plan_writes(e->plan), "hits", e->hits);
}

PyObject *compiler_describe(compiler *c) {
    PyObject *list = PyList_New(0);
    bool collecting = raw_gc_off(); // a finalizer may reset the cache
    for (uint32_t i = 0; list != NULL && i < c->all.count; i++) {
        for (const entry *e = c->all.items[i]->entries; list != NULL && e != NULL; e = e->next) {
            PyObject *row = describe_entry((PyCodeObject *)c->codes.items[i], e);
            if (row == NULL || PyList_Append(list, row) < 0)
                Py_CLEAR(list);
            Py_XDECREF(row);
        }
    }
    raw_gc_restore(collecting);
    return list;
}
