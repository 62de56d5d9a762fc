// From a call to an entry: the cache is asked; on a miss the call is traced, its graph handed to
// the backend, its guards sealed and tried, its plan run.
#include "src/py/evalhook.h"
#include "src/py/raised.h"
#include "src/py/shown.h"

#include "src/interp/image.h"

#include "src/call/marks.h"

#include "src/trace/trace.h"

#include "src/plan/plan.h"

#include "src/cache/cache.h"

#include "src/compile/compiler.h"
#include "src/compile/policy.h"
#include "src/compile/watch.h"

#define REGISTERS_ON_STACK 128
#define MOST_RESTARTS 100
#define OWN_FRAMES 100 // that a trace may need: Python code of torch's, and of the policy
#define MOST_BELOW 32  // frames that wait, which one trace goes on in
#define MOST_DEATHS 8  // times the limit: entries that were made for one place, though few live

__attribute__((tls_model("initial-exec"))) _Thread_local bool compiler_asked;
compiler *all_compilers;

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
    const reason_row *row = &reason_rows[w->stop.reason];
    PyObject *place = place_text(w->stop.stack, co), *chain = chain_text(w->stop.stack),
             *text = NULL;
    if (place != NULL && chain != NULL)
        text = PyUnicode_FromFormat("%U: %s: %V [%s]%s%s%U", place, row->sentence, w->stop.detail,
                                    "", row->id, *row->hint ? "\n  hint: " : "", row->hint, chain);
    Py_XDECREF(place);
    Py_XDECREF(chain);
    return text;
}

// What the text says, in parts.
static PyObject *break_row(const world *w, PyCodeObject *co) {
    const reason_row *row = &reason_rows[w->stop.reason];
    PyObject *made = Py_BuildValue("{s:O, s:s, s:s, s:s, s:O, s:O}", "code", co, "reason", row->id,
                                   "sentence", row->sentence, "hint", row->hint, "detail",
                                   w->stop.detail ? w->stop.detail : Py_None, "stack",
                                   w->stop.stack ? w->stop.stack : Py_None);
    if (made == NULL)
        PyErr_Clear(); // a break of which less is known
    return made;
}

static void note(PyObject *list, PyObject *text) {
    if (text == NULL || (PyList_GET_SIZE(list) < 256 && PyList_Append(list, text) < 0))
        PyErr_Clear();
}

// What never works out is not tried for ever. A tool that came meanwhile may go again.
static void count_drop(const compiler *c, cache *k, reason why) {
    if (why == REASON_WATCHED)
        return;
    if (++k->drops >= c->limit)
        k->given_up = true;
}

// --- one new entry ---

static void break_clear(policy_break *b) {
    Py_CLEAR(b->text);
    Py_CLEAR(b->stack);
    Py_CLEAR(b->row);
}

// What a trace gives: guards and a plan that stand alone.
typedef struct product {
    guard_program *guards;
    plan *plan;
    bool broke;
    bool asked;        // see entry
    bool last;         // the trace had to stop early
    int reach, looked; // see entry
    int calls;         // recorded by the program itself
    int depth;         // see entry
    int made_before;   // entries that had been made for the place when the trace began
    policy_break why;
    PyObject *misfits; // strong, or NULL: why older entries did not fit
} product;

static void product_clear(product *p) {
    guard_program_free(p->guards);
    plan_free(p->plan);
    break_clear(&p->why);
    Py_CLEAR(p->misfits);
    *p = (product){0};
}

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
    if (c->backend == Py_None || g->literal)
        how.replay = replay_new(g);
    else
        how.callable = run_backend(c, p, regs);
    if (how.replay == NULL && how.callable == NULL)
        return -1;
    plan_set_graph(p, how);
    return 0;
}

static outcome after_failure(compiler *c, entry *e, guard_frame *f, graph_failure *failure,
                             PyObject **result, int *reach);

static outcome run_entry(compiler *c, entry *e, guard_frame *f, PyObject *const *regs,
                         PyObject **result, int *reach) {
    *reach = e->reach;
    if (e->empty && !c->keep_empty)
        return OUTCOME_NATIVE;
    graph_failure failure = {0};
    if (e->asked && (hook_here == HOOK_COMPILE || plan_breaks(e->plan)))
        compiler_asked = true;
    cache_hold(e);
    hook_mode before = hook_swap(HOOK_OFF); // torch's own Python code is not the program's
    *result = plan_run(e->plan, regs, &failure);
    hook_swap(before);
    outcome how = *result == NULL        ? OUTCOME_ERROR
                  : plan_breaks(e->plan) ? OUTCOME_BROKE
                                         : OUTCOME_DONE;
    if (failure.failed)
        how = after_failure(c, e, f, &failure, result, reach);
    cache_release(e);
    return how;
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
                 .last = made->last,
                 .depth = made->depth,
                 .reach = made->reach,
                 .looked = made->looked};
    if (cache_add(k, &new, f, added) < 0)
        return -1;
    c->compiled++;
    Py_XINCREF(new.why);
    Py_XINCREF(new.misfits);
    made->guards = NULL;
    made->plan = NULL;
    return 0;
}

static outcome give_up_if_forgiven(compiler *c, cache *k, PyCodeObject *co, const char *where) {
    if (!policy_forgives(c, k, co, where))
        return OUTCOME_ERROR;
    k->given_up = true;
    return OUTCOME_NATIVE;
}

static outcome may_trace(compiler *c, cache *k, PyCodeObject *co, guard_frame *f,
                         PyObject **misfits);

// Whether an entry fits, which is then run. `regs` has room for any entry of the cache.
static inline bool run_fitting(compiler *c, cache *k, guard_frame *f, PyObject **regs,
                               PyObject **result, int *reach, outcome *how) {
    entry *e = cache_find(k, f, regs);
    if (e != NULL) {
        c->hits++;
        *how = run_entry(c, e, f, regs, result, reach);
    }
    Py_CLEAR(f->kept);
    return e != NULL;
}

// Runs an entry that another thread has made meanwhile, or asks once more whether a new one is
// wanted: OUTCOME_DONE with *fits false if so.
static outcome ask_again(compiler *c, cache *k, product *made, guard_frame *f, PyObject **result,
                         int *reach, bool *fits) {
    PyCodeObject *co = (PyCodeObject *)PyFunction_GET_CODE(f->function);
    Py_CLEAR(f->kept);
    Py_CLEAR(made->misfits); // there are others by now
    PyObject **regs = PyMem_Calloc((size_t)k->registers + 1, sizeof(PyObject *));
    outcome how = OUTCOME_ERROR;
    *fits = regs != NULL && run_fitting(c, k, f, regs, result, reach, &how);
    if (regs == NULL)
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

// The sealed guards are tried on the very state that was traced: if they fail, someone else changed
// it meanwhile, and the trace is worth nothing.
static outcome publish(compiler *c, cache *k, product *made, guard_frame *f, PyObject **result,
                       int *reach) {
    PyObject **regs = PyMem_Calloc((size_t)guard_registers(made->guards) + 1, sizeof(PyObject *));
    PyCodeObject *co = (PyCodeObject *)PyFunction_GET_CODE(f->function);
    int failed = -1;
    entry *e = NULL;
    outcome how = OUTCOME_ERROR;
    if (regs == NULL) {
        PyErr_NoMemory();
    } else if (!guard_check(made->guards, f, regs, &failed)) {
        PyObject *text = guard_reason(made->guards, failed, f);
        PyObject *why = PyUnicode_FromFormat("changed while it was traced: %V", text, "?");
        note(c->drops, why);
        count_drop(c, k, REASON_NONE);
        Py_XDECREF(why);
        Py_XDECREF(text);
        how = k->unit > 0 ? OUTCOME_STEP : OUTCOME_NATIVE;
    } else if (give_graph(c, made->plan, regs) < 0) {
        how = give_up_if_forgiven(c, k, co, "backend");
    } else if (!is_outrun(c, k, made, f, result, reach, &how) &&
               add_entry(c, k, made, f, &e) == 0) {
        cache_hold(e); // the policy runs Python code, and another thread may reset the cache
        if (policy_is_there(c))
            policy_made(c, k, co, plan_graph_of(e->plan));
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

static policy_break break_of(world *w, PyCodeObject *co) {
    policy_break b = {.reason = reason_rows[w->stop.reason].id,
                      .text = drop_text(w, co),
                      .row = break_row(w, co),
                      .stack = Py_XNewRef(w->stop.stack),
                      .strict = mark_strict(w)};
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear(); // a break without its text is still a break
    return b;
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

// The frames of a break are a result like any other. A reason not to rebuild them takes the place
// of the one why it broke.
static void forget_break(world *w) {
    w->stop.broken = false;
    w->time.again = 0;
    Py_CLEAR(w->stop.detail);
    Py_CLEAR(w->stop.stack);
}

static trace_end make_product(world *w, PyObject *value, PyCodeObject *co, product *out) {
    PyObject *result = value;
    if (w->stop.broken) {
        result = (PyObject *)w->stop.image;
        out->broke = true;
        out->why = break_of(w, co);
        if (PyErr_Occurred()) { // a signal came while it was put in words
            product_clear(out);
            return TRACE_ERROR;
        }
        forget_break(w);
    }
    out->calls = w->graph->calls; // the end may add some
    out->depth = w->inside.deepest;
    bool fine = world_tensors == NULL || world_tensors->end(w) == ST_OK;
    out->plan = fine ? plan_build(w, result) : NULL;
    if (out->plan != NULL && world_finish(w) == ST_OK)
        out->guards = guard_seal(w->guards);
    if (out->guards != NULL)
        return TRACE_DONE;
    product_clear(out);
    return w->stop.broken ? TRACE_BROKE : TRACE_ERROR;
}

// A break is an error.
static bool is_strict(const compiler *c, world *w) {
    return !w->terms.recovering && (c->fullgraph || mark_strict(w));
}

static trace_end trace_once(compiler *c, world *w, guard_frame *f, int below, product *out) {
    PyCodeObject *co = (PyCodeObject *)PyFunction_GET_CODE(f->function);
    hook_scope before;
    PyObject *value;
    c->traces++;
    hook_enter(&before, HOOK_TRACE);
    trace_end end = trace_function(w, f, below, &value);
    out->reach = w->roots.reached;
    out->looked = w->roots.looked;
    out->asked = w->facts.told;
    if (f->unit == 0 && (long)w->time.now > c->longest)
        c->longest = (long)w->time.now;
    if (end == TRACE_DONE || (end == TRACE_BROKE && w->stop.image != NULL && !is_strict(c, w)))
        end = make_product(w, value, co, out);
    hook_leave(&before);
    if (end == TRACE_ERROR && !w->stop.interrupted && PyErr_ExceptionMatches(PyExc_MemoryError)) {
        w->time.again = 0;
        world_break(w, REASON_RESOURCES, "MemoryError");
        end = TRACE_BROKE; // the program itself may need less
    }
    if (end == TRACE_BROKE)
        PyErr_Clear();
    py_raised aside = py_put_aside();
    if (value != NULL && world_keep(w, value) == NULL) // a generator in it must not end by itself
        PyErr_Clear();
    py_put_on(aside);
    return end;
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

// How many of the frames below a trace may go on in. An offset that many callers reach also gets
// entries that end with its own frame: those fit every caller.
static int frames_below(const compiler *c, const cache *k, const guard_frame *f) {
    int count = 0;
    if (k->reaching >= c->limit)
        return 0;
    for (f = f->below; f != NULL && count < MOST_BELOW && cache_may_go_on(f); f = f->below)
        count++;
    return count;
}

// A trace that cannot go on where it broke is done again, and breaks earlier: each time before an
// instruction that came before the last one's.
static trace_end trace_until(compiler *c, world **w, guard_frame *f, int below, product *out) {
    trace_end end = trace_once(c, *w, f, below, out);
    for (int i = 0; i < MOST_RESTARTS && end == TRACE_BROKE && !is_strict(c, *w); i++) {
        if ((*w)->time.again == 0 || (*w)->time.again >= (*w)->time.stop_at)
            break;
        world *next = world_new();
        if (next == NULL)
            break;
        c->restarts++;
        world_again(next, *w);
        world_free(*w);
        *w = next;
        end = trace_once(c, *w, f, below, out);
        out->last = true;
    }
    return end;
}

static world *new_world(const compiler *c) {
    world *w = world_new();
    if (w == NULL)
        return NULL;
    w->terms.whole = c->fullgraph;
    w->terms.replayed = c->backend == Py_None;
    w->terms.handling = py_is_handling();
    w->terms.told_before = compiler_asked;
    w->terms.showing = py_is_showing();
    return w;
}

static outcome trace_call(compiler *c, cache *k, guard_frame *f, int below, product *out) {
    world *w = new_world(c);
    if (w == NULL)
        return OUTCOME_ERROR;
    w->terms.varying = k->varying;
    w->terms.varying_count = k->varying_count;
    force_break(c, k, w);
    trace_end end = trace_until(c, &w, f, below, out);
    outcome how = OUTCOME_DONE;
    // What was in the way may be in the frames below, or that they are there: it is traced alone.
    if (end == TRACE_BROKE && below > 0 && !is_strict(c, w) &&
        (w->roots.reached > 0 || w->stop.reason == REASON_RESOURCES)) {
        world_free(w);
        k->reaching++;
        return trace_call(c, k, f, 0, out);
    }
    if (end == TRACE_BROKE)
        how = drop(c, k, w, (PyCodeObject *)PyFunction_GET_CODE(f->function));
    else if (end == TRACE_ERROR)
        how = w->stop.interrupted
                  ? OUTCOME_ERROR
                  : give_up_if_forgiven(c, k, (PyCodeObject *)PyFunction_GET_CODE(f->function),
                                        "trace");
    py_raised aside = py_put_aside();
    world_free(w);
    py_put_on(aside);
    return how;
}

// --- a graph that failed ---

// Nothing is left of what the graph did: CPython runs the frame, and its handlers work.
static bool is_repeatable(const graph_failure *failure) {
    return !((failure->done | failure->raised) & EFFECTS_LASTING) &&
           PyErr_ExceptionMatches(PyExc_Exception);
}

// Whether an exception comes from what the machine has left, not from what the operation was given.
static bool is_accident(PyObject *exception) {
    if (!PyExceptionInstance_Check(exception) ||
        PyErr_GivenExceptionMatches(exception, PyExc_MemoryError))
        return true;
    PyObject *mro = Py_TYPE(exception)->tp_mro;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        const char *name = ((PyTypeObject *)PyTuple_GET_ITEM(mro, i))->tp_name;
        size_t length = strlen(name), own = strlen("OutOfMemoryError");
        if (length >= own && strcmp(name + length - own, "OutOfMemoryError") == 0)
            return true;
    }
    return !PyErr_GivenExceptionMatches(exception, PyExc_Exception);
}

// Effects of the calls from one number up to another.
static int effects_between(const graph *g, int from, int to) {
    int effects = 0;
    for (Py_ssize_t i = g->inputs; i < PyList_GET_SIZE(g->nodes); i++) {
        const node *n = (node *)PyList_GET_ITEM(g->nodes, i);
        if (n->number >= from && n->number < to)
            effects |= n->effects;
    }
    return effects;
}

// Whether the instruction that failed may be run once more, so that it raises as it does in plain
// Python: it has done nothing yet but compute. (Native code of one instruction may have made
// several calls.)
static bool may_run_again(const graph *g, const graph_failure *failure, int calls,
                          PyObject *exception) {
    return effects_between(g, calls, failure->number) == 0 && failure->raised == 0 &&
           !is_accident(exception);
}

// The frames as they stood before the instruction whose call failed; what the graph has computed up
// to there is taken. NULL without an exception if that cannot be.
static image *frames_at_failure(entry *e, product *made, guard_frame *f, graph_failure *failure) {
    graph *whole = plan_graph_of(e->plan);
    PyObject **regs = PyMem_Calloc((size_t)guard_registers(made->guards) + 1, sizeof(PyObject *));
    PyObject *result = NULL;
    int failed;
    if (regs != NULL && made->broke && made->calls <= failure->number &&
        graph_begins_like(whole, plan_graph_of(made->plan), made->calls) &&
        guard_check(made->guards, f, regs, &failed)) {
        hook_mode before = hook_swap(HOOK_OFF);
        result = plan_run_taken(made->plan, regs, failure->values);
        hook_swap(before);
    }
    PyMem_Free(regs);
    return (image *)result;
}

// The frame is traced once more, up to the instruction whose call failed. The guards of the entry
// have passed, and what they look at is as it was: so is the trace.
static bool trace_to_failure(compiler *c, const entry *e, guard_frame *f, int number,
                             product *out) {
    world *w = new_world(c);
    if (w == NULL)
        return false;
    w->time.stop_call = number;
    w->terms.recovering = true;
    trace_end end = trace_until(c, &w, f, e->reach, out);
    py_raised aside = py_put_aside();
    world_free(w);
    py_put_on(aside);
    return end == TRACE_DONE;
}

// Whether all that the entry's trace has seen is as it was then: the registers, to be freed, or
// NULL.
static PyObject **pass_again(const entry *e, guard_frame *f) {
    PyObject **regs = PyMem_Calloc((size_t)guard_registers(e->guards) + 1, sizeof(PyObject *));
    int failed;
    Py_CLEAR(f->kept);
    if (regs == NULL || guard_check(e->guards, f, regs, &failed))
        return regs;
    PyMem_Free(regs);
    return NULL;
}

static bool still_passes(const entry *e, guard_frame *f) {
    PyObject **regs = pass_again(e, f);
    bool passes = regs != NULL;
    PyMem_Free(regs);
    Py_CLEAR(f->kept);
    return passes;
}

static bool find_failure(const entry *e, guard_frame *f, bool stop, graph_failure *failure) {
    PyObject **regs = pass_again(e, f);
    hook_mode before = hook_swap(HOOK_OFF);
    bool found = regs != NULL && plan_find_failure(e->plan, regs, stop, failure);
    hook_swap(before);
    PyMem_Free(regs);
    return found;
}

// Each frame goes on in CPython; the innermost instruction raises, or is run for real.
static void mark_frames(image *innermost, PyObject *raises) {
    innermost->raises = Py_XNewRef(raises);
    for (image *i = innermost; i != NULL; i = i->caller)
        i->native = true;
}

// The frames as they stood where the graph failed, or NULL; no exception is set.
static image *frames_of(compiler *c, entry *e, guard_frame *f, graph_failure *failure,
                        product *made) {
    image *frames = NULL;
    if (failure->values != NULL && trace_to_failure(c, e, f, failure->number, made))
        frames = frames_at_failure(e, made, f, failure);
    PyErr_Clear();
    Py_CLEAR(f->kept);
    return frames;
}

// A compiled graph does not say where it failed: that is looked for, and the operation's own
// exception takes the place of the backend's. If the frames cannot be had there, for lack of a
// value that may not be computed twice, they are had where it would have been.
static image *frames_of_compiled(compiler *c, entry *e, guard_frame *f, graph_failure *failure,
                                 product *made, PyObject **exception) {
    image *frames = NULL;
    for (int stop = 0; stop < 2 && frames == NULL; stop++) {
        bool found = find_failure(e, f, stop, failure);
        PyObject *own = py_take_raised();
        product_clear(made);
        frames = found ? frames_of(c, e, f, failure, made) : NULL;
        if (frames != NULL && own != NULL)
            Py_SETREF(*exception, Py_NewRef(own));
        Py_XDECREF(own);
    }
    return frames;
}

// What the graph did up to the failure is done and stays; the program goes on from there.
static outcome recover(compiler *c, entry *e, guard_frame *f, graph_failure *failure,
                       PyObject **result, int *reach) {
    PyObject *exception = py_take_raised();
    product made = {0};
    image *frames = NULL;
    if (failure->number < 0)
        frames = frames_of_compiled(c, e, f, failure, &made, &exception);
    else if (still_passes(e, f))
        frames = frames_of(c, e, f, failure, &made);
    if (frames != NULL) {
        bool again = may_run_again(plan_graph_of(e->plan), failure, made.calls, exception);
        mark_frames(frames, again ? NULL : exception);
        *reach = made.reach;
        Py_CLEAR(exception);
    }
    product_clear(&made);
    py_set_raised(exception);
    *result = (PyObject *)frames;
    return frames != NULL ? OUTCOME_BROKE : OUTCOME_ERROR;
}

static outcome after_failure(compiler *c, entry *e, guard_frame *f, graph_failure *failure,
                             PyObject **result, int *reach) {
    outcome how;
    if (is_repeatable(failure)) {
        PyErr_Clear();
        how = OUTCOME_NATIVE;
        *reach = 0; // once: the frames below may have better luck
    } else {
        how = recover(c, e, f, failure, result, reach);
    }
    py_raised aside = py_put_aside();
    Py_CLEAR(failure->values);
    Py_CLEAR(failure->saved);
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

// What failed in each entry; new reference.
static PyObject *note_recompile(compiler *c, cache *k, guard_frame *f) {
    if (k->count == 0)
        return PyList_New(0);
    hook_mode before = hook_swap(HOOK_OFF);
    PyObject *reasons = cache_reasons(k, f);
    hook_swap(before);
    Py_CLEAR(f->kept);
    if (reasons != NULL && PyList_GET_SIZE(reasons) > 0)
        note(c->recompiles, PyList_GET_ITEM(reasons, 0));
    return reasons;
}

static bool has_graphs(const cache *k) {
    uint32_t at = 0;
    for (const entry *e; (e = cache_next(k, &at)) != NULL;)
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
    // Nothing is lost, and nobody need be told; or each entry dies before it is used again.
    int alone = cache_alone(k);
    if ((alone >= c->limit && !has_graphs(k)) || k->made >= MOST_DEATHS * c->limit) {
        k->given_up = true;
        return OUTCOME_NATIVE;
    }
    if (k->unit > 0 && !c->fullgraph)
        cache_find_varying(k, f);
    PyObject *reasons = note_recompile(c, k, f);
    policy_answer go = reasons == NULL      ? POLICY_ERROR
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

static outcome compile_new(compiler *c, cache *k, guard_frame *f, PyObject **result, int *reach) {
    PyCodeObject *co = (PyCodeObject *)PyFunction_GET_CODE(f->function);
    product made = {0};
    PyObject *misfits = NULL;
    outcome how = may_trace(c, k, co, f, &misfits);
    int made_before = k->made;
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

// --- calls ---

outcome compiler_run(compiler *c, cache *k, guard_frame *f, PyObject **result, int *reach) {
    PyObject *few[REGISTERS_ON_STACK], **regs = few;
    int needed = k->registers;
    *reach = 0;
    if (needed > REGISTERS_ON_STACK)
        regs = PyMem_Malloc((size_t)needed * sizeof(PyObject *));
    if (regs == NULL) {
        PyErr_NoMemory();
        return OUTCOME_ERROR;
    }
    outcome how;
    if (!run_fitting(c, k, f, regs, result, reach, &how)) {
        PyThreadState *ts = PyThreadState_Get();
        bool suspended = watch_suspend(ts, (PyCodeObject *)PyFunction_GET_CODE(f->function));
        how = compile_new(c, k, f, result, reach);
        watch_resume(ts, suspended);
    }
    if (regs != few)
        PyMem_Free(regs);
    return how;
}

static cache *new_cache(compiler *c, uint32_t unit) {
    cache *k = cache_new();
    if (k == NULL)
        return NULL;
    k->unit = unit;
    if (vec_reserve(&c->codes, 1) != ST_OK || vec_reserve(&c->all, 1) != ST_OK) {
        cache_free(k);
        return NULL;
    }
    return k;
}

static void keep_cache(compiler *c, PyCodeObject *co, cache *k) {
    c->codes.items[c->codes.count++] = Py_NewRef((PyObject *)co);
    c->all.items[c->all.count++] = k;
}

// --- code that nobody runs any more ---

static cache *first_cache(const compiler *c, const void *code) {
    uint64_t *found = map_get(&c->caches, map_key(code));
    return found ? (cache *)(uintptr_t)*found : NULL;
}

// References to one code object, or to each.
typedef struct tally {
    PyObject *code;
    Py_ssize_t count;
    map *each; // code object → count; or NULL
} tally;

static void count_code(PyObject *code, void *data) {
    tally *t = data;
    uint64_t *known = t->each ? map_get(t->each, map_key(code)) : NULL;
    if (known != NULL)
        ++*known;
    t->count += t->code == code;
}

// What one compiler has of a code object: one for each cache, and those that its entries keep for
// breaks.
static Py_ssize_t own_refs(const compiler *c, PyObject *code) {
    tally t = {.code = code};
    for (const cache *k = first_cache(c, code); k != NULL; k = k->next) {
        t.count++;
        cache_each_code(k, count_code, &t);
    }
    return t.count;
}

static Py_ssize_t refs_of_others(const compiler *except, PyObject *code) {
    Py_ssize_t count = 0;
    for (const compiler *c = all_compilers; c != NULL; c = c->next)
        count += c == except ? 0 : own_refs(c, code);
    return count;
}

// Freeing runs code: the caches are taken out first.
static void forget_code(compiler *c, PyObject *code) {
    uint32_t kept = 0;
    cache *k = first_cache(c, code), *next;
    Py_ssize_t held = 0;
    *map_get(&c->caches, map_key(code)) = 0; // its address may soon be another's
    for (uint32_t i = 0; i < c->all.count; i++) {
        if (c->codes.items[i] == code) {
            held++;
            continue;
        }
        c->codes.items[kept] = c->codes.items[i];
        c->all.items[kept++] = c->all.items[i];
    }
    c->codes.count = c->all.count = kept;
    for (; k != NULL; k = next) {
        next = k->next;
        cache_free(k);
    }
    for (; held > 0; held--)
        Py_DECREF(code);
}

static compiler *who_has(PyObject *code) {
    compiler *c = all_compilers;
    while (c != NULL && first_cache(c, code) == NULL)
        c = c->next;
    return c;
}

// As long as others have it, somebody may run it.
void compiler_let_go(PyObject *code) {
    py_raised aside = py_put_aside();
    if (refs_of_others(NULL, code) == Py_REFCNT(code)) {
        Py_INCREF(code);
        for (compiler *c; (c = who_has(code)) != NULL;) {
            Py_INCREF(c);
            forget_code(c, code);
            Py_DECREF(c);
        }
        Py_DECREF(code);
    }
    py_put_on(aside);
}

// Those of which all references are compilers'; new list, or NULL.
static PyObject *forgotten_codes(const compiler *c) {
    map each = {0};
    tally t = {.each = &each};
    bool fine = true;
    for (uint32_t i = 0; fine && i < c->all.count; i++) {
        uint64_t *known = map_get(&each, map_key(c->codes.items[i]));
        if (known != NULL)
            ++*known;
        else
            fine = map_put(&each, map_key(c->codes.items[i]), 1) == ST_OK;
    }
    for (uint32_t i = 0; fine && i < c->all.count; i++)
        cache_each_code(c->all.items[i], count_code, &t);
    PyObject *list = fine ? PyList_New(0) : NULL;
    for (uint32_t i = 0; list != NULL && i < c->all.count; i++) {
        PyObject *code = c->codes.items[i];
        uint64_t *count = map_get(&each, map_key(code));
        if (*count == 0 || (uint64_t)Py_REFCNT(code) != *count + (uint64_t)refs_of_others(c, code))
            continue;
        *count = 0; // once, and the list has one more from here on
        if (PyList_Append(list, code) < 0)
            Py_CLEAR(list);
    }
    map_clear(&each);
    return list;
}

// Functions may die after what was compiled of them, and entries of one may keep the code of
// another: all are looked at now and then.
static void sweep(compiler *c) {
    enum { FEW = 64 };
    if (c->all.count < (c->sweep_at ? c->sweep_at : FEW))
        return;
    py_raised aside = py_put_aside();
    PyObject *codes = forgotten_codes(c);
    for (Py_ssize_t i = 0; codes != NULL && i < PyList_GET_SIZE(codes); i++)
        if (first_cache(c, PyList_GET_ITEM(codes, i)) != NULL)
            forget_code(c, PyList_GET_ITEM(codes, i));
    PyErr_Clear();
    Py_XDECREF(codes);
    c->sweep_at = 2 * c->all.count > FEW ? 2 * c->all.count : FEW;
    py_put_on(aside);
}

cache *compiler_cache(compiler *c, PyCodeObject *co, uint32_t unit) {
    for (cache *k = first_cache(c, co); k != NULL; k = k->next)
        if (k->unit == unit)
            return k;
    sweep(c);
    cache *first = first_cache(c, co); // what was let go may have run code
    cache *k = new_cache(c, unit);
    if (k == NULL)
        return NULL;
    if (first == NULL && map_put(&c->caches, map_key(co), map_key(k)) != ST_OK) {
        cache_free(k);
        return NULL;
    }
    if (first != NULL) {
        k->next = first->next;
        first->next = k;
    }
    keep_cache(c, co, k);
    return k;
}

// --- describing ---

// Jumps that the compiler put in have no line: they are of the one before.
static int line_at(PyCodeObject *co, int offset) {
    int line = -1;
    for (; line < 0 && offset > 0; offset -= (int)sizeof(_Py_CODEUNIT))
        line = PyCode_Addr2Line(co, offset);
    return line < 0 ? co->co_firstlineno : line;
}

// Name and line of each caller that it goes on in, nearest first.
static PyObject *describe_callers(const entry *e) {
    PyObject *list = PyList_New(0);
    for (int i = 0; list != NULL && i < e->reach; i++) {
        PyCodeObject *co = (PyCodeObject *)e->below[i].code;
        int line = line_at(co, (int)(e->below[i].unit * sizeof(_Py_CODEUNIT)));
        PyObject *row = Py_BuildValue("Oi", co->co_qualname, line);
        if (row == NULL || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *describe_entry(PyCodeObject *co, uint32_t unit, const entry *e) {
    graph *g = plan_graph_of(e->plan);
    int offset = (int)(unit * sizeof(_Py_CODEUNIT));
    int line = line_at(co, offset);
    return Py_BuildValue(
        "{s:N, s:O, s:O, s:l, s:O, s:O, s:O, s:i, s:i, s:O, s:O, s:N, s:N, s:N, s:l}", "callers",
        describe_callers(e), "why", e->why ? e->why : Py_None, "misfits",
        e->misfits ? e->misfits : Py_None, "number", e->number, "code", co, "name", co->co_qualname,
        "file", co->co_filename, "line", line, "offset", offset, "breaks",
        plan_breaks(e->plan) ? Py_True : Py_False, "graph", g ? (PyObject *)g : Py_None, "guards",
        guard_rows(e->guards), "plan", plan_text(e->plan), "writes", plan_writes(e->plan), "hits",
        e->hits);
}

PyObject *compiler_describe(compiler *c) {
    PyObject *list = PyList_New(0);
    bool collecting = raw_gc_off(); // a finalizer may reset the cache
    for (uint32_t i = 0; list != NULL && i < c->all.count; i++) {
        cache *k = c->all.items[i];
        uint32_t at = 0;
        cache_sort(k);
        for (const entry *e; list != NULL && (e = cache_next(k, &at)) != NULL;) {
            PyObject *row = describe_entry((PyCodeObject *)c->codes.items[i], k->unit, e);
            if (row == NULL || PyList_Append(list, row) < 0)
                Py_CLEAR(list);
            Py_XDECREF(row);
        }
    }
    raw_gc_restore(collecting);
    return list;
}
