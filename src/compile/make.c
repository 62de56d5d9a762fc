// Makes an entry for a call or a frame at rest that no entry fits: asks the policy, traces the
// frame, hands the graph to the backend, tries the guards, runs the entry.
#include "src/py/evalhook.h"
#include "src/py/raised.h"

#include "src/compile/drive.h"
#include "src/compile/room.h"

#define OWN_FRAMES 100 // that a trace may need: Python code of torch's, and of the policy
#define MOST_BELOW 32  // frames that wait, which one trace goes on in
#define MOST_DEATHS 8  // times the limit: entries that were made for one place, though few live

static void note(PyObject *list, PyObject *text) {
    if (!text || (PyList_GET_SIZE(list) < 256 && PyList_Append(list, text) < 0))
        PyErr_Clear();
}

// --- whether to trace ---

static int warn_limit(compiler *c, cache *k, PyCodeObject *co) {
    k->given_up = true;
    if (c->warned)
        return 0;
    c->warned = true;
    PyObject *separator = PyUnicode_FromString("\n  ");
    PyObject *list = separator ? PyUnicode_Join(separator, c->recompiles) : NULL;
    int failed = -1;
    if (list)
        failed = PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                                  "stator: %U was compiled %d times (the limit) and now runs "
                                  "uncompiled where no entry fits. The reasons were:\n  %U",
                                  co->co_qualname, c->limit, list);
    Py_XDECREF(separator);
    Py_XDECREF(list);
    return failed;
}

// What failed in each entry; new reference.
static PyObject *note_recompile(compiler *c, cache *k, guard_frame *f) {
    if (k->count == 0)
        return PyList_New(0);
    hook_mode before = hook_swap(HOOK_OFF);
    PyObject *reasons = cache_reasons(k, f);
    hook_swap(before);
    Py_CLEAR(f->kept);
    if (reasons && numbers_learn(c, k, f, reasons) < 0)
        Py_CLEAR(reasons);
    if (reasons && PyList_GET_SIZE(reasons) > 0)
        note(c->recompiles, PyList_GET_ITEM(reasons, 0));
    return reasons;
}

static bool has_graphs(const cache *k) {
    uint32_t at = 0;
    for (const entry *e; (e = cache_next(k, &at));)
        if (graph_operations(plan_graph_of(e->plan)) > 0)
            return true;
    return false;
}

// Whether a new trace is in order; OUTCOME_DONE if so. `misfits`, strong or NULL: why there is one.
static outcome may_trace(compiler *c, cache *k, PyCodeObject *co, guard_frame *f,
                         PyObject **misfits) {
    if (k->given_up)
        return k->off ? OUTCOME_OFF : OUTCOME_NATIVE;
    if (py_recursion_left(PyThreadState_Get()) < OWN_FRAMES)
        return OUTCOME_NATIVE; // this time
    if (world_tensors && world_tensors->is_taken())
        return OUTCOME_NATIVE; // this time
    // Nothing is lost, and nobody need be told; or each entry dies before it is used again.
    int alone = cache_alone(k);
    if ((alone >= c->limit && !has_graphs(k)) || k->made >= MOST_DEATHS * c->limit) {
        k->given_up = true;
        return OUTCOME_NATIVE;
    }
    if (k->unit > 0 && !c->fullgraph)
        cache_find_varying(k, f);
    PyObject *reasons = note_recompile(c, k, f);
    policy_answer go = !reasons             ? POLICY_ERROR
                       : policy_is_there(c) ? policy_miss(c, k, co, alone, reasons)
                                            : POLICY_TRACE;
    *misfits = reasons;
    if (go == POLICY_NEVER)
        k->given_up = k->off = true;
    if (go != POLICY_TRACE)
        return go == POLICY_ERROR ? OUTCOME_ERROR : OUTCOME_OFF;
    if (policy_is_there(c) || alone < c->limit)
        return OUTCOME_DONE;
    return warn_limit(c, k, co) < 0 ? OUTCOME_ERROR : OUTCOME_NATIVE;
}

// How many of the frames below a trace may go on in. An offset that many callers reach also gets
// entries that end with its own frame: those fit every caller.
static int frames_below(const compiler *c, const cache *k, const guard_frame *f) {
    int count = 0;
    if (k->reaching >= c->limit)
        return 0;
    for (f = f->below; f && count < MOST_BELOW && cache_may_go_on(f); f = f->below)
        count++;
    return count;
}

// --- the trace ---

// What never works out is not tried for ever. A tool that came meanwhile may go again.
static void count_drop(const compiler *c, cache *k, reason why) {
    if (why == REASON_WATCHED)
        return;
    if (++k->drops >= c->limit)
        k->given_up = true;
}

static outcome give_up_if_forgiven(compiler *c, cache *k, PyCodeObject *co, const char *where) {
    if (!policy_forgives(c, k, co, where))
        return OUTCOME_ERROR;
    k->given_up = true;
    return OUTCOME_NATIVE;
}

static outcome drop(compiler *c, cache *k, world *w, PyCodeObject *co) {
    policy_break b = break_of(w, co);
    if (PyErr_Occurred()) { // a signal came while it was put in words
        break_clear(&b);
        return OUTCOME_ERROR;
    }
    note(c->drops, b.text);
    note(c->dropped, b.row);
    count_drop(c, k, w->stop.reason);
    // What it calls must not be told that it is compiled either.
    bool off = w->stop.reason == REASON_IS_COMPILING;
    k->off |= off && k->given_up;
    outcome how = off ? OUTCOME_OFF : OUTCOME_NATIVE;
    if (policy_is_there(c)) {
        if (policy_broke(c, k, co, &b) < 0)
            how = OUTCOME_ERROR;
    } else if (c->fullgraph || b.strict) {
        PyErr_SetObject(c->error, b.text ? b.text : Py_None);
        how = OUTCOME_ERROR;
    }
    break_clear(&b);
    return how;
}

static void force_break(compiler *c, const cache *k, world *w) {
    if (c->break_at > 0 || c->break_every > 0)
        w->time.stop_reason = REASON_NONE;
    if (c->break_at > 0 && k->unit == 0)
        w->time.stop_at = (uint64_t)c->break_at;
    if (c->break_every <= 0)
        return;
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    w->time.stop_at = 1 + (c->random >> 33) % (2 * (uint64_t)c->break_every);
}

static outcome trace_call(compiler *c, cache *k, guard_frame *f, int below, product *out);

// The trace is done, and showed numbers that are to be left open: it is done again before anybody
// sees it.
static outcome trace_grown(compiler *c, cache *k, guard_frame *f, int below, world *w,
                           product *out) {
    product_clear(out);
    world_free(w);
    return trace_call(c, k, f, below, out);
}

static outcome trace_call(compiler *c, cache *k, guard_frame *f, int below, product *out) {
    if (pieces_inherit(k, f) < 0 || numbers_terms(c, k, out) < 0)
        return OUTCOME_ERROR;
    world *w = product_world(c, &out->asked);
    if (!w)
        return OUTCOME_ERROR;
    w->terms.varying = k->varying;
    w->terms.varying_count = k->varying_count;
    force_break(c, k, w);
    trace_end end = product_trace(c, &w, f, below, out);
    outcome how = OUTCOME_DONE;
    // What was in the way may be in the frames below, or that they are there: it is traced alone.
    if (end == TRACE_BROKE && below > 0 && !product_is_strict(c, w) &&
        (w->roots.reached > 0 || w->stop.reason == REASON_RESOURCES)) {
        world_free(w);
        k->reaching++;
        return trace_call(c, k, f, 0, out);
    }
    int grown = end == TRACE_DONE ? numbers_grow(c, k, w) : 0;
    if (grown > 0)
        return trace_grown(c, k, f, below, w, out);
    if (grown < 0) {
        product_clear(out);
        end = TRACE_ERROR;
    }
    if (end == TRACE_BROKE)
        how = drop(c, k, w, frame_code(f));
    else if (end == TRACE_ERROR)
        how =
            w->stop.interrupted ? OUTCOME_ERROR : give_up_if_forgiven(c, k, frame_code(f), "trace");
    if (end == TRACE_DONE && out->open_end) {
        out->trace = w;
        return how;
    }
    py_raised aside = py_put_aside();
    world_free(w);
    py_put_on(aside);
    return how;
}

// --- the entry ---

PyObject *backend_callable(PyObject *returned) {
    if (!returned || PyCallable_Check(returned))
        return returned;
    PyErr_Format(PyExc_TypeError, "the backend returned %s, which cannot be called",
                 Py_TYPE(returned)->tp_name);
    Py_DECREF(returned);
    return NULL;
}

static PyObject *run_backend(compiler *c, plan *p, PyObject *const *regs) {
    PyObject *examples = plan_examples(p, regs);
    if (!examples)
        return NULL;
    hook_mode before = hook_swap(HOOK_OFF);
    PyObject *callable =
        PyObject_CallFunctionObjArgs(c->backend, (PyObject *)plan_graph_of(p), examples, NULL);
    hook_swap(before);
    Py_DECREF(examples);
    return backend_callable(callable);
}

static int give_graph(compiler *c, product *made, PyObject *const *regs) {
    plan *p = made->plan;
    graph *g = plan_graph_of(p);
    if (!g || graph_operations(g) == 0)
        return 0;
    plan_graph how = {0};
    if (c->backend == Py_None || g->literal)
        how.replay = replay_new(g);
    else
        how.callable = made->open_end ? hand_over_numbers(c, made, regs) : run_backend(c, p, regs);
    if (!how.replay && !how.callable)
        return -1;
    plan_set_graph(p, how);
    return 0;
}

// Letting go may run code that resets the cache: it comes before there is an entry.
static int add_entry(compiler *c, cache *k, product *made, guard_frame *f, entry **added) {
    Py_CLEAR(f->kept);
    entry new = {.guards = made->guards,
                 .plan = made->plan,
                 .number = c->compiled,
                 .why = made->why.row,
                 .misfits = made->misfits,
                 .asked = made->asked,
                 .dynamic = made->dynamic,
                 .told = made->told,
                 .last = made->last,
                 .depth = made->depth,
                 .reach = made->reach,
                 .looked = made->looked};
    if (numbers_keep(k, made) < 0 || cache_add(k, &new, f, added) < 0)
        return -1;
    c->compiled++;
    Py_XINCREF(new.why);
    Py_XINCREF(new.misfits);
    entry_numbers_copy(&new.asked);
    made->guards = NULL;
    made->plan = NULL;
    return 0;
}

// Runs an entry that another thread has made meanwhile, or asks once more whether a new one is
// wanted: OUTCOME_DONE with *fits false if so.
static outcome ask_again(compiler *c, cache *k, product *made, guard_frame *f, PyObject **result,
                         int *reach, bool *fits) {
    PyCodeObject *co = frame_code(f);
    Py_CLEAR(f->kept);
    Py_CLEAR(made->misfits); // there are others by now
    PyObject **regs = registers_new(k->registers);
    outcome how = OUTCOME_ERROR;
    *fits = regs && run_fitting(c, k, f, regs, result, reach, &how);
    if (!regs)
        PyErr_NoMemory();
    else if (!*fits)
        how = may_trace(c, k, co, f, &made->misfits);
    PyMem_Free(regs);
    return how;
}

// Whether the new entry is not wanted any more, because of those that other threads made while this
// one traced or ran the backend: one fits, or the limit is reached. *how is the outcome then.
static bool is_outrun(compiler *c, cache *k, product *made, guard_frame *f, PyObject **result,
                      int *reach, outcome *how) {
    while (k->made != made->made_before) {
        bool fits;
        made->made_before = k->made;
        outcome other = ask_again(c, k, made, f, result, reach, &fits);
        if (fits || other != OUTCOME_DONE) {
            *how = other;
            return true;
        }
    }
    return false;
}

// Guards may have been added since: room for their registers. What was there is lost.
static int registers_grow(PyObject ***regs, int count) {
    PyObject **more = registers_new(count);
    if (!more) {
        PyErr_NoMemory();
        return -1;
    }
    PyMem_Free(*regs);
    *regs = more;
    return 0;
}

// The sealed guards are tried on the very state that was traced: if they fail, someone else changed
// it meanwhile, and the trace is worth nothing.
static outcome publish(compiler *c, cache *k, product *made, guard_frame *f, PyObject **result,
                       int *reach) {
    PyObject **regs = registers_new(guard_registers(made->guards));
    PyCodeObject *co = frame_code(f);
    int failed = -1;
    entry *e = NULL;
    outcome how = OUTCOME_ERROR;
    if (!regs) {
        PyErr_NoMemory();
    } else if (!guard_check(made->guards, f, regs, &failed)) {
        PyObject *text = guard_reason(made->guards, failed, f);
        PyObject *why = PyUnicode_FromFormat("changed while it was traced: %V", text, "?");
        note(c->drops, why);
        count_drop(c, k, REASON_NONE);
        Py_XDECREF(why);
        Py_XDECREF(text);
        how = k->unit > 0 ? OUTCOME_INSTRUCTION : OUTCOME_NATIVE;
    } else if (give_graph(c, made, regs) < 0) {
        how = give_up_if_forgiven(c, k, co, "backend");
    } else if (registers_grow(&regs, guard_registers(made->guards)) < 0) {
        how = OUTCOME_ERROR;
    } else if (!is_outrun(c, k, made, f, result, reach, &how) &&
               add_entry(c, k, made, f, &e) == 0) {
        cache_hold(e); // the policy runs Python code, and another thread may reset the cache
        if (policy_is_there(c))
            policy_made(c, k, co, e);
        // What the registers borrowed may be gone, too.
        how = cache_is_place(e, f) && guard_check(e->guards, f, regs, &failed)
                  ? run_entry(c, e, f, regs, result, reach)
                  : OUTCOME_NATIVE;
        cache_release(e);
    }
    product_clear(made);
    PyMem_Free(regs);
    Py_CLEAR(f->kept);
    return how;
}

static outcome make(compiler *c, cache *k, guard_frame *f, PyObject **result, int *reach) {
    PyCodeObject *co = frame_code(f);
    product made = {0};
    PyObject *misfits = NULL;
    int made_before = k->made; // may_trace asks the policy, and meanwhile other threads run
    outcome how = may_trace(c, k, co, f, &misfits);
    if (how == OUTCOME_DONE)
        how = trace_call(c, k, f, frames_below(c, k, f), &made);
    if (how != OUTCOME_DONE) {
        Py_XDECREF(misfits);
        return how;
    }
    made.misfits = misfits;
    made.made_before = made_before;
    if (made.broke)
        note(c->breaks, made.why.text);
    if (made.broke && policy_is_there(c) && policy_broke(c, k, co, &made.why) < 0) {
        product_clear(&made);
        return OUTCOME_ERROR;
    }
    return publish(c, k, &made, f, result, reach);
}

// --- what policies may ask ---

static _Thread_local const guard_frame *at_work; // that an entry is made for; NULL: none

outcome make_entry(compiler *c, cache *k, guard_frame *f, PyObject **result, int *reach) {
    const guard_frame *outer = at_work;
    at_work = f;
    outcome how = make(c, k, f, result, reach);
    at_work = outer;
    return how;
}

PyObject *make_frame(PyObject *module, PyObject *none) {
    const guard_frame *f = at_work;
    (void)module, (void)none;
    if (!f)
        Py_RETURN_NONE;
    PyObject *names = frame_code(f)->co_localsplusnames, *values = PyDict_New();
    for (Py_ssize_t i = 0; values && i < f->count && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *value = py_slot_get(&f->slots[i]);
        if (value && PyDict_SetItem(values, PyTuple_GET_ITEM(names, i), value) < 0)
            Py_CLEAR(values);
    }
    return values ? Py_BuildValue("(ON)", f->function, values) : NULL;
}
