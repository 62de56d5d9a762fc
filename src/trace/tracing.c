// The tracing build of the interpreter: the same loop, with operations that go through the door,
// hold writes back and record nodes. It turns a frame that comes in during a trace into its result,
// or breaks the trace.
#include "src/py/frame.h"
#include "src/py/natives.h"
#include "src/py/operators.h"
#include "src/py/raised.h"

#include "src/interp/build.h"
#include "src/interp/call.h"
#include "src/interp/errors.h"
#include "src/interp/image.h"
#include "src/interp/interp.h"
#include "src/interp/raise.h"
#include "src/interp/run.h"
#include "src/interp/unwind.h"

#include "src/attr/attr.h"

#include "src/call/call.h"
#include "src/call/protocol.h"

#include "src/trace/operator.h"
#include "src/trace/roots.h"
#include "src/trace/instructions.h"
#include "src/trace/trace.h"

// --- operations ---

#define W (r->world)
// A container that is being put together: of a frame that goes on, it is one from outside.
#define OPENED(o) (LIKELY(!is_lazy(o)) ? (o) : door_open(W, o))
// Code that only modules and coroutines have, or that shows itself to others.
#define REFUSE(what) world_break(W, REASON_CODE, what)
#define REFUSE_INT(what) (world_break(W, REASON_CODE, what), -1)

// Calls whose value is the instruction's own.
#define DO_CALL(callable, args, given, keywords)                                                   \
    call_any(W, &(call){callable, args, given, keywords, RUN_THIN, NULL, NULL})
#define DO_CALL_STAR(callable, args, keywords) call_star(W, callable, args, keywords, RUN_THIN)
#define DO_GETATTR(o, name) attr_get(W, o, name)
#define DO_GETMETHOD(o, name, value) attr_get_method(W, o, name, value)
#define DO_SETATTR(o, name, value) attr_set(W, o, name, value)
#define DO_SUPER_ATTR(super, type, self, name, two, method)                                        \
    do_super_attr(W, super, type, self, name, two, method)
#define DO_UNARY(function, o) op_unary(W, function, o)
#define DO_BINARY(kind, left, right) op_binary(W, kind, left, right)
#define DO_COMPARE(left, right, kind) op_compare(W, left, right, kind)
#define DO_COMPARE_TRUTH(left, right, kind) compare_for_truth(W, left, right, kind)
#define DO_TRUTH(o) op_condition(W, o)
#define DO_IS(left, right) door_is(W, left, right)
#define DO_CONTAINS(container, value) op_contains(W, container, value)
#define DO_GETITEM(container, key) op_getitem(W, container, key)
#define DO_SETITEM(container, key, value) op_setitem(W, container, key, value)
#define DO_LIST_TO_TUPLE(list) to_tuple(W, list)
#define DO_LIST_APPEND(list, value) append(W, list, value)
#define DO_SETITEM_DICT(dict, key, value) op_dict_set(W, OPENED(dict), key, value)
#define DO_DELITEM(container, key) op_setitem(W, container, key, NULL)
#define DO_SET_ADD(set, value) op_set_add(W, OPENED(set), value)
#define DO_SET_UPDATE(set, iterable) op_set_update(W, OPENED(set), iterable)
#define DO_LIST_EXTEND(list, iterable) op_list_extend(W, OPENED(list), iterable)
#define DO_DICT_UPDATE(dict, update) op_dict_update(W, OPENED(dict), update, false)
#define DO_DICT_MERGE(dict, update) op_dict_update(W, OPENED(dict), update, true)
#define DO_UNPACK(sequence, before, after, top) op_unpack(W, sequence, before, after, top)
#define DO_FORMAT(value, conversion, spec) op_format(W, value, conversion, spec)
#define DO_ITER(o) op_iter(W, o)
#define DO_ITERNEXT(iterator) do_next(W, iterator)
#define DO_SEND(receiver, sent, result) do_send(W, receiver, sent, result)
#define DO_LOAD_GLOBAL(globals, builtins, name) do_load_global(r, name)
#define DO_STORE_GLOBAL(globals, name, value) do_store_global(r, name, value)
#define DO_DELETE_GLOBAL(globals, name) do_store_global(r, name, NULL)
#define DO_LOAD_NAME(locals, globals, builtins, name) do_load_name(r, locals, name)
#define DO_STORE_NAME(locals, name, value) do_store_name(W, locals, name, value)
#define DO_DELETE_NAME(locals, name) do_store_name(W, locals, name, NULL)
#define DO_LOAD_DICT_OR_CELL(dict, cell, code, index) do_load_cell_name(r, dict, cell, index)
#define DO_LOAD_DICT_OR_GLOBAL(dict, globals, builtins, name) do_load_name(r, dict, name)
#define DO_LOAD_LOCALS(locals) do_load_locals(W, locals)
#define DO_SETUP_ANNOTATIONS(locals) do_setup_annotations(W, locals)
#define DO_EXCEPT_MATCH(exception, type) op_except_match(W, exception, type)
#define DO_EXCEPT_STAR_MATCH(exception, type, match, rest)                                         \
    do_except_star_match(W, exception, type, match, rest)
#define DO_PREP_RERAISE_STAR(original, raised) do_prep_reraise_star(W, original, raised)
#define DO_RAISE(exception, cause) do_raise(W, ts, exception, cause)
#define DO_WITH_LOOKUP(manager, async, enter, leave) do_with_lookup(W, manager, async, enter, leave)
#define DO_WITH_EXIT(leave, exception) do_with_exit(W, leave, exception)
#define DO_CELL_GET(cell) cell_get(W, cell)
#define DO_CELL_SET(cell, value) do_set_cell(W, cell, value)
#define DO_STORED(index, value) note_stored(r, index, value)
#define DO_DROPPED(value) note_dropped(W, value)
#define DO_BUILD_SET(items, count) op_build_set(W, items, count)
#define DO_BUILD_MAP(keys, key_step, values, value_step, count)                                    \
    op_build_map(W, keys, key_step, values, value_step, count)
#define DO_BUILD_SLICE(parts, count) do_build_slice(W, parts, count)
#define DO_BUILD_STRING(parts, count) op_build_string(W, parts, count)
#define DO_CONVERT(value, conversion) op_convert(W, value, conversion)
#define DO_LENGTH(o) op_len(W, o)
#define DO_TYPE(o) door_type(W, o)
#define DO_MATCH_KEYS(subject, keys) do_match_keys(W, subject, keys)
#define DO_MATCH_CLASS(subject, type, positional, names)                                           \
    do_match_class(W, subject, type, positional, names)
#define DO_PREPARE_STAR(callable, args, keywords) do_prepare_star(W, callable, args, keywords)
#define DO_SET_FUNCTION_ATTRIBUTE(sp) do_set_function_attribute(W, sp)
#define DO_MAKE_FUNCTION(globals, sp, flags) do_make_function(r, sp, flags)
#define DO_BUILD_CLASS(builtins) do_build_class(r)
#define DO_PRINT_EXPR(value) REFUSE("an expression statement of an interactive session")
#define DO_INTRINSIC_1(number, value) REFUSE("a type parameter or alias")
#define DO_INTRINSIC_2(number, first, second) REFUSE("a type parameter or alias")
#define DO_IMPORT_NAME(globals, builtins, locals, name, fromlist, level)                           \
    do_import_name(r, name, fromlist, level)
#define DO_IMPORT_FROM(module, name) do_import_from(W, module, name)
#define DO_IMPORT_STAR(module, locals) REFUSE_INT("import *")
#define DO_YIELD_FROM_ITER(o, flags) do_yield_from_iter(W, o)
#define DO_AWAITABLE(o, how) REFUSE("await")
#define DO_AITER(o) REFUSE("async for")
#define DO_ANEXT(o) REFUSE("async for")
#define DO_POLL() poll_signals(r)
#define DO_RETURN() may_return(r)
#define DO_CAUGHT(exception) note_caught(W, exception)
#define DO_RERAISE(exception, lasti) reraise(W, exception, lasti)
#define LOOP_ABANDONED(r) is_abandoned((r)->world, !throwing && pc->op != OP_RAISE_VARARGS)

// Long native operations look for signals, too, and SIGINT's handler makes no frame.
static bool is_interrupt(PyObject *raised) {
    if (!PyErr_GivenExceptionMatches(raised, PyExc_KeyboardInterrupt))
        return false;
    py_raised aside = py_put_aside();
    bool born_here = !py_raised_traceback(&aside);
    py_put_on(aside);
    return born_here;
}

static int append(world *w, PyObject *list, PyObject *value) {
    PyObject *opened = door_open(w, list);
    return opened ? PyList_Append(opened, value) : -1;
}

static PyObject *to_tuple(world *w, PyObject *list) {
    PyObject *opened = door_open(w, list);
    return opened ? PyList_AsTuple(opened) : NULL;
}

// Where a tensor is compared for its truth at once, the comparison is no part of the graph.
static PyObject *compare_for_truth(world *w, PyObject *left, PyObject *right, int kind) {
    PyObject *number = NULL;
    if (op_compare_numbers(w, left, right, kind, &number))
        return number;
    PyObject *a = door_open(w, left), *b = a ? door_open(w, right) : NULL;
    if (!b)
        return NULL;
    if ((is_standin(a) || is_standin(b)) && !op_asserts(w))
        return world_break(w, REASON_TENSOR_TRUTH, "a comparison decides where to go on");
    return op_compare(w, a, b, kind);
}

// Raising writes to the exception: one from outside is raised for real.
static int reraise(world *w, PyObject *exception, py_slot *lasti) {
    if (lasti) {
        PyObject *opened = door_open(w, py_slot_get(lasti));
        if (!opened)
            return -1;
        py_slot_set(lasti, Py_NewRef(opened));
    }
    if (!record_of(w, exception))
        return 0;
    world_break(w, REASON_EXCEPTION_LIVES, "an exception from outside is raised again");
    return -1;
}

static bool holds_exception(const run *r) {
    for (int i = 0; i < r->code->py->co_nlocalsplus; i++) {
        PyObject *o = py_frame_get(r->frame, i);
        if (o && PyExceptionInstance_Check(o) && ((PyBaseExceptionObject *)o)->traceback)
            return true;
    }
    return false;
}

// A frame that handles an exception is known by the exception's traceback, and may outlive its end:
// it has to end for real, with its variables as they are then.
static int may_return(run *r) {
    world *w = r->world;
    if (r->level < 0 || w->roots.start->unit == 0 || (!r->real_end && !holds_exception(r)))
        return 0;
    world_break(w, REASON_EXCEPTION_LIVES, "the frame may be kept by a traceback");
    return -1;
}

// The first frame that an exception passes is where it was raised; it may become an object only
// when it is caught.
static void note_raised(world *w) {
    py_raised aside = py_put_aside();
    if (!py_raised_traceback(&aside) && w->run)
        w->time.raised_at = w->run->started;
    py_put_on(aside);
}

static void note_caught(world *w, PyObject *exception) {
    if (!map_get(&w->time.born, map_key(exception)) &&
        map_put(&w->time.born, map_key(exception), w->time.raised_at) != ST_OK)
        PyErr_Clear(); // without memory it is only not known
}

// Signals come, and memory and the stack run out, at another place in each call: what a handler
// makes of them must not become part of an entry. `natively`: the instruction does not raise by
// itself.
static bool is_abandoned(world *w, bool natively) {
    PyObject *raised = PyErr_Occurred();
    if (w->stop.broken || w->stop.interrupted)
        return true;
    if (raised && natively && is_interrupt(raised))
        return w->stop.interrupted = true;
    // SystemError, or nothing at all: an exception that could not even be made.
    if (raised && !PyErr_GivenExceptionMatches(raised, PyExc_MemoryError) &&
        !PyErr_GivenExceptionMatches(raised, PyExc_RecursionError) &&
        !PyErr_GivenExceptionMatches(raised, PyExc_SystemError)) {
        note_raised(w);
        return false;
    }
    world_break(w, REASON_RESOURCES, "%s", raised ? ((PyTypeObject *)raised)->tp_name : "?");
    return true;
}

// --- names of nodes: as Dynamo gives them, since logs and people's tests know those ---

static bool root_has_cell(const world *w, PyObject *cell) {
    int count = w->root->code->py->co_nlocalsplus;
    while (count > 0 && py_frame_get(w->root->frame, count - 1) != cell)
        count--;
    return count > 0;
}

// Into a local, or a cell. Cells count where they are the root's, whoever stores into them.
static void note_stored(run *r, int index, PyObject *value) {
    world *w = r->world;
    PyCodeObject *co = r->code->py;
    const standin_kind *kind = value ? standin_kind_of(value) : NULL;
    if (!kind || !w->root) // a comprehension puts back nothing
        return;
    if (!py_is_cell_slot(co, index) || root_has_cell(w, py_frame_get(r->frame, index)))
        kind->named(w, value, PyTuple_GET_ITEM(co->co_localsplusnames, index));
}

static void note_dropped(world *w, PyObject *value) {
    if (w->roots.start->unit > 0 && value && is_lazy(value) &&
        ((lazy *)value)->source->kind == SOURCE_LOCAL && world_born(w, value) != ST_OK)
        PyErr_Clear(); // without memory it is only not known
    const standin_kind *kind = value ? standin_kind_of(value) : NULL;
    if (kind)
        kind->named(w, value, NULL);
}

// Arguments are the callee's once its frame runs, so that a generator among them dies when the
// callee drops it.
#define LEND(function, first, number)                                                              \
    do {                                                                                           \
        if (PyFunction_Check(function)) {                                                          \
            r->thread->lent.callee = (function);                                                   \
            r->thread->lent.slots = (first);                                                       \
            r->thread->lent.count = (number);                                                      \
        }                                                                                          \
    } while (0)
#define UNLEND() (r->thread->lent.callee = NULL)

#define LOOP_LENDS 0
#define LOOP_TICK()                                                                                \
    do {                                                                                           \
        r->started = ++W->time.now;                                                                \
        if (UNLIKELY(r->started >= W->time.stop_at) && (pc->flags & INSN_BOUNDARY))                \
            goto stopped;                                                                          \
    } while (0)
#define LOOP_STOP_LABEL                                                                            \
    stopped:
#define LOOP_NAME tracing_loop
#include "src/interp/loop.h"

// --- frames ---

// Who passes what a default is, too, does not use the default: another function of this code may
// have another one. Of calls by native code it is not known; then both must be the same.
typedef enum use { USE_NOT, USE_UNSURE, USE_SURE } use;

static use default_use(const call *by, PyCodeObject *co, Py_ssize_t index) {
    if (!by)
        return USE_UNSURE;
    if (index < (Py_ssize_t)by->given && index < co->co_argcount)
        return USE_NOT;
    Py_ssize_t count =
        by->keywords && index >= co->co_posonlyargcount ? PyTuple_GET_SIZE(by->keywords) : 0;
    PyObject *name = PyTuple_GET_ITEM(co->co_localsplusnames, index);
    while (count > 0 && PyUnicode_Compare(PyTuple_GET_ITEM(by->keywords, count - 1), name) != 0)
        count--;
    return count > 0 ? USE_NOT : USE_SURE;
}

// Raw defaults that CPython put into a fresh frame are replaced by what the door gives for them.
static status load_default(world *w, py_slot *slot, source *function, source_kind kind,
                           PyObject *key, Py_ssize_t index, use how) {
    source *s = guard_source(w->guards, kind, function, key, index);
    PyObject *value = py_slot_get(slot), *loaded = s ? door_load(w, s, value) : NULL;
    if (!loaded)
        return ST_ERROR;
    bool passed = how == USE_UNSURE && (value_immutable(value) || record_of(w, value));
    py_slot_set(slot, loaded);
    return !passed || door_open(w, loaded) ? ST_OK : ST_ERROR;
}

static status guard_default_count(world *w, source *function, Py_ssize_t count) {
    source *s = guard_source(w->guards, SOURCE_DEFAULTS, function, NULL, 0);
    return s ? guard_add(w->guards, GUARD_LENGTH, s, NULL, NULL, count) : ST_ERROR;
}

static status load_defaults(world *w, py_frame *f, const record *function, const call *by) {
    PyFunctionObject *fn = (PyFunctionObject *)function->outside;
    PyCodeObject *co = py_frame_code(f);
    py_slot *slots = py_frame_slots(f);
    PyObject *value;
    Py_ssize_t count = fn->func_defaults ? PyTuple_GET_SIZE(fn->func_defaults) : 0;
    bool used = false;
    for (Py_ssize_t i = 0; i < count && i < co->co_argcount; i++) {
        Py_ssize_t at = co->co_argcount - count + i;
        use how = default_use(by, co, at);
        if (py_slot_get(&slots[at]) != PyTuple_GET_ITEM(fn->func_defaults, i) || how == USE_NOT)
            continue;
        TRY(load_default(w, &slots[at], function->source, SOURCE_DEFAULT, NULL, i, how));
        used = true;
    }
    if (used) // which parameter a default belongs to depends on how many there are
        TRY(guard_default_count(w, function->source, count));
    for (int i = 0; fn->func_kwdefaults && i < co->co_kwonlyargcount; i++) {
        Py_ssize_t at = co->co_argcount + i;
        PyObject *name = PyTuple_GET_ITEM(co->co_localsplusnames, at);
        use how = default_use(by, co, at);
        if (how != USE_NOT && raw_dict_get(fn->func_kwdefaults, name, &value) == RAW_FOUND &&
            py_slot_get(&slots[at]) == value)
            TRY(load_default(w, &slots[at], function->source, SOURCE_KWDEFAULT, name, 0, how));
    }
    return ST_OK;
}

// The frame of code that eval() runs. Its function is one that CPython makes for it.
static status fill_text(world *w, PyObject *function) {
    w->inside.text = NULL;
    TRY(arena_own(&w->arena, Py_NewRef(function)));
    return map_put(&w->made.objects, map_key(function), 1);
}

static status fill_fresh(world *w, py_frame *f, const call *by) {
    PyObject *function = py_frame_function(f);
    if (w->inside.text && py_frame_code(f) == w->inside.text)
        return fill_text(w, function);
    if (map_get(&w->made.objects, map_key(function)))
        return ST_OK;
    const record *known = record_of(w, function);
    if (!known)
        return world_break_status(w, REASON_UNKNOWN_FUNCTION, "%U", py_frame_code(f)->co_qualname);
    return load_defaults(w, f, known, by);
}

// `level` is that of a frame which was there before; `by` the call that asked for the frame, or
// NULL.
static status check_frame(world *w, PyThreadState *ts, py_frame *f, int level, const call *by) {
    PyCodeObject *co = py_frame_code(f);
    if (co->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR))
        return world_break_status(w, REASON_GENERATOR, "coroutine %U", co->co_qualname);
    if (py_tools_on(ts, co))
        return world_break_status(w, REASON_WATCHED, "%U", co->co_qualname);
    const code *c = code_of(co);
    if (!c)
        return ST_ERROR;
    if (c->skip)
        return world_break_status(w, REASON_DISABLED, "%U", co->co_qualname);
    if (level >= 0) // those that wait come in later
        return level == 0 ? root_begin(w, ts, f) : ST_OK;
    if (!py_frame_in_generator(f))
        return fill_fresh(w, f, by);
    if (!map_get(&w->made.objects, map_key(py_frame_generator(f))))
        return world_break_status(w, REASON_OUTSIDE_ITERATOR, "%U", co->co_qualname);
    return ST_OK;
}

// CPython makes the generator; it is remembered, so that it can be ended without running its code.
static PyObject *make_generator(world *w, PyThreadState *ts, py_frame *f) {
    PyObject *generator = py_eval_default(ts, f, 0, true);
    if (!generator)
        return NULL;
    PyObject *weak = PyWeakref_NewRef(generator, NULL);
    bool kept = weak && vec_push(&w->made.generators, weak) == ST_OK;
    if (!kept)
        Py_XDECREF(weak);
    if (!kept || map_put(&w->made.objects, map_key(generator), 1) != ST_OK ||
        world_born(w, generator) != ST_OK) {
        world_break(w, REASON_RESOURCES, "MemoryError"); // now it can be closed without a word
        py_raised aside = py_put_aside();
        Py_CLEAR(generator);
        py_put_on(aside);
    }
    return generator;
}

// What native code gets must be what it looks like.
static PyObject *give(world *w, PyObject *value, bool wanted) {
    if (!wanted && protocol_handed_over(w, &value) != ST_OK)
        Py_CLEAR(value);
    return value;
}

// Nothing stays in the frame: a traceback may keep its frame object, and with it what must not
// outlive the trace.
static PyObject *leave_unbegun(run *r) {
    py_slot *base = py_frame_stack(r->frame), *slots = py_frame_slots(r->frame);
    py_raised aside = py_put_aside();
    r->sp = py_slots_drop(base, r->sp);
    for (base--; base >= slots; base--)
        py_slot_set(base, NULL);
    py_put_on(aside);
    py_leave_ended(r->ts, r->frame, &r->entry, r->sp);
    return NULL;
}

// The trace is over: the frame gives what it holds to an image, if it can go on from there.
static PyObject *leave_abandoned(run *r) {
    if (r->world->stop.broken)
        world_leave_frame(r->world, r);
    if (!PyErr_Occurred()) // native code has swallowed the break: a generator that died
        PyErr_SetNone(world_break_error);
    return leave_unbegun(r);
}

// A generator that is being closed yields, or raises something else. If it is closed because it
// dies, CPython tells sys.unraisablehook, and that cannot be taken back.
static PyObject *refuse_close(run *r, run_end how) {
    if (how == RUN_YIELD)
        Py_CLEAR(r->value);
    if (how == RUN_STOP)
        world_stop(r->world);
    world_break(r->world, REASON_GENERATOR, "%U does not end when it is closed",
                r->code->py->co_qualname);
    PyErr_SetNone(PyExc_GeneratorExit);
    return leave_abandoned(r);
}

static bool closes_badly(const run *r, run_end how, bool closing) {
    return closing &&
           (how == RUN_YIELD || how == RUN_ABANDON || how == RUN_STOP ||
            (how == RUN_ERROR && !PyErr_ExceptionMatches(PyExc_GeneratorExit) &&
             !PyErr_ExceptionMatches(PyExc_StopIteration))) &&
           !r->world->stop.interrupted;
}

static PyObject *run_frame(run *r, bool throwing, bool wanted) {
    bool closing = throwing && !wanted && PyErr_ExceptionMatches(PyExc_GeneratorExit);
    run_end how = tracing_loop(r, throwing);
    if (UNLIKELY(closes_badly(r, how, closing)))
        return refuse_close(r, how);
    switch (how) {
    case RUN_YIELD:
        py_leave_suspended(r->ts, r->frame, &r->entry, r->sp, r->how);
        return give(r->world, r->value, wanted);
    case RUN_RETURN:
        if (r->level >= 0)
            root_leave(r);
        py_leave_ended(r->ts, r->frame, &r->entry, r->sp);
        return give(r->world, r->value, wanted);
    case RUN_ERROR:
        if (r->level >= 0)
            root_leave(r);
        py_leave_ended(r->ts, r->frame, &r->entry, r->sp);
        return NULL;
    case RUN_STOP:
        py_frame_set_executing(r->frame, py_frame_units(r->frame) + r->pc->at);
        world_stop(r->world);
        return leave_abandoned(r);
    case RUN_HAND_OVER:
        world_break(r->world, REASON_WATCHED, "%U", r->code->py->co_qualname);
        return leave_abandoned(r);
    case RUN_ABANDON:
        break;
    }
    return leave_abandoned(r);
}

// --- frames that were there before ---

// A frame that waits stands on its call, while those above it run.
static PyObject *value_from_above(run *r, const guard_frame *g) {
    world *w = r->world;
    r->waits = true;
    r->pc = code_at(r->code, g->unit);
    r->sp = py_frame_stack(r->frame);
    py_frame_set_executing(r->frame, py_frame_units(r->frame) + g->unit);
    py_frame_set_running(r->frame);
    PyObject *value = root_call(w, r->level - 1, RUN_THIN);
    if (w->stop.broken)
        Py_CLEAR(value);
    return value;
}

// The value has come: the frame's variables do, too. If they cannot, the trace breaks before the
// instruction that returned it.
static status resume(run *r, PyObject *value) {
    world *w = r->world;
    py_raised thrown = {0};
    if (!value)
        thrown = py_put_aside();
    r->started = w->time.now;
    world_touch(w);
    status done = root_resume(w, r);
    if (done != ST_OK) {
        py_forget(thrown);
        return done;
    }
    r->waits = false;
    if (!value)
        py_put_on(thrown);
    return ST_OK;
}

static PyObject *run_waiting(run *r) {
    world *w = r->world;
    const guard_frame *g = guard_frame_at(w->roots.start, r->level);
    PyObject *value = value_from_above(r, g);
    if ((!value && is_abandoned(w, true)) || resume(r, value) != ST_OK) {
        Py_XDECREF(value);
        if (!w->stop.broken && !w->stop.interrupted)
            world_break(w, REASON_RESOURCES, "MemoryError");
        return leave_abandoned(r);
    }
    if (value && g->how == AWAITS_INIT) // whether it is None is looked at
        Py_SETREF(value, Py_XNewRef(door_open(w, value)));
    if (!value && is_abandoned(w, true))
        return leave_abandoned(r);
    bool throwing = !value || image_give(r->frame, g->unit, g->how, value) < 0;
    r->failing = g->unit;
    if (!throwing) {
        r->pc = code_at(r->code, py_frame_next(r->frame));
        r->sp = py_frame_stack_pointer(r->frame);
    }
    return run_frame(r, throwing, true);
}

// Signal handlers, audit hooks (which CPython calls as it calls tools): no part of the program.
static bool comes_from_outside(const world *w, PyThreadState *ts, py_frame *f) {
    return is_signal_handler(w, f) || ts->tracing > w->terms.watching;
}

// What it raises is the user's.
static PyObject *run_handler(world *w, PyThreadState *ts, py_frame *f) {
    w->inside.quiet++;
    PyObject *result = py_eval_default(ts, f, 0, true);
    w->inside.quiet--;
    if (!result)
        w->stop.interrupted = true;
    return result;
}

// An entry is run only where the recursion limit would let the program's own frames be made.
static void note_depth(world *w, const PyThreadState *ts) {
    int depth = w->inside.left - py_recursion_left(ts);
    if (depth > w->inside.deepest)
        w->inside.deepest = depth;
}

// What the caller expects of a frame of `what`, which is a function or a generator. A level of -1:
// nothing, since another frame came first.
static expectation take_expected(world *w, const py_frame *f, PyObject *what, bool *wanted) {
    expectation expected = w->expected;
    w->expected.of = NULL;
    *wanted = expected.of == what;
    if (!*wanted)
        expected = (expectation){.level = -1};
    if (expected.result == RUN_NATIVE && !py_frame_in_generator(f) && operator_calls(w, what))
        expected.result = RUN_OPERATOR;
    return expected;
}

// The frame may not be traced: it ends before its first instruction. `thrown` was on its way in.
static PyObject *refuse_frame(run *r, bool throwing, py_raised thrown) {
    if (throwing && !PyErr_Occurred()) // closing a generator of a trace that is over
        py_put_on(thrown);
    else if (!PyErr_Occurred())
        PyErr_SetNone(world_break_error);
    // What it delegates to could not be closed. It may be dying: CPython would tell the world.
    if (throwing && PyErr_ExceptionMatches(world_break_error))
        PyErr_SetNone(PyExc_GeneratorExit);
    r->sp = py_frame_stack_pointer(r->frame);
    return leave_unbegun(r);
}

// Finds the instruction at which the frame stands. False with an exception.
static bool find_place(run *r, bool throwing) {
    const world *w = r->world;
    r->code = code_of(py_frame_code(r->frame));
    r->real_end = r->level == 0 && w->roots.start->unit > 0 &&
                  root_ends_for_real((code *)r->code, w->roots.start->unit);
    r->failing = py_frame_last(r->frame);
    r->pc = code_at(r->code, throwing ? r->failing : py_frame_next(r->frame));
    r->sp = py_frame_stack_pointer(r->frame);
    if (!r->pc && throwing)
        r->pc = r->code->insns;
    if (!r->pc)
        PyErr_Format(PyExc_SystemError, "%U: frame stands between instructions",
                     r->code->py->co_name);
    return r->pc != NULL;
}

static PyObject *run_from_place(run *r, bool throwing, bool wanted) {
    world *w = r->world;
    bool root = r->level >= 0 && !w->root;
    if (root)
        w->root = r;
    w->run = r;
    PyObject *result = r->level > 0 ? run_waiting(r) : run_frame(r, throwing, wanted);
    w->run = r->below;
    if (root)
        w->root = NULL;
    return result;
}

PyObject *trace_eval(PyThreadState *ts, py_frame *f, int throwing) {
    world *w = world_here;
    if (UNLIKELY(!throwing && comes_from_outside(w, ts, f)))
        return run_handler(w, ts, f);
    PyObject *what =
        py_frame_in_generator(f) ? (PyObject *)py_frame_generator(f) : py_frame_function(f);
    bool wanted;
    expectation expected = take_expected(w, f, what, &wanted);
    lent_slots lent = interp_here.lent; // what comes first, in the call itself, is not the callee
    interp_here.lent.callee = NULL;
    py_raised thrown = {0}; // on its way into a generator
    if (throwing)
        thrown = py_put_aside();
    status checked =
        w->stop.broken ? ST_BREAK : check_frame(w, ts, f, expected.level, expected.call);
    if (checked == ST_OK && (py_frame_code(f)->co_flags & CO_GENERATOR) &&
        !py_frame_in_generator(f))
        return make_generator(w, ts, f);
    run r = {.ts = ts,
             .thread = &interp_here,
             .frame = f,
             .world = w,
             .below = w->run,
             .result = expected.result,
             .level = expected.level,
             .made_object = expected.call ? expected.call->made : NULL};
    if (py_enter(ts, f, &r.entry, !wanted && !py_frame_in_generator(f)) < 0)
        return interp_end_frame(&r);
    note_depth(w, ts);
    if (checked != ST_OK)
        return refuse_frame(&r, throwing, thrown);
    if (throwing)
        py_put_on(thrown);
    world_touch(w);
    if (r.result > RUN_OPERATOR && lent.callee == what)
        for (Py_ssize_t i = 0; i < lent.count; i++)
            py_slot_set(&lent.slots[i], NULL);
    return find_place(&r, throwing) ? run_from_place(&r, throwing, wanted) : interp_end_frame(&r);
}
