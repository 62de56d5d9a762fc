// Takes the contents of a frame at a boundary, and puts them into a fresh frame, which CPython
// makes when the frame's own code is called. Hops and abandoned frames are built on these two.
#include "src/base/upcalls.h"

#include "src/py/evalhook.h"
#include "src/py/functions.h"
#include "src/py/raised.h"

#include "src/interp/image.h"
#include "src/interp/interp.h"

PyObject *image_abandoned_error;

// --- taking ---

static image *image_new(PyCodeObject *code, Py_ssize_t slots) {
    image *i = PyObject_GC_NewVar(image, &image_type, slots);
    if (!i)
        return NULL;
    i->code = (PyCodeObject *)Py_NewRef(code);
    i->function = i->locals = i->handled = i->generator = NULL;
    i->state = 0;
    i->object = NULL;
    i->caller = NULL;
    i->unit = 0;
    i->awaiting = i->spent = i->init = i->by_operator = i->native = false;
    i->raises = i->open = NULL;
    i->outer_handled = -1;
    memset(i->slots, 0, (size_t)slots * sizeof(PyObject *));
    return i;
}

// All that is no reference.
static void copy_plain(image *to, const image *from) {
    to->unit = from->unit;
    to->awaiting = from->awaiting;
    to->init = from->init;
    to->by_operator = from->by_operator;
    to->state = from->state;
    to->outer_handled = from->outer_handled;
}

image *image_template(const image *i) {
    image *t = image_new(i->code, Py_SIZE(i));
    if (!t)
        return NULL;
    copy_plain(t, i);
    t->open = Py_XNewRef(i->open);
    PyObject_GC_Track(t);
    return t;
}

image *image_from_template(image *t, PyObject *function, PyObject *const *slots, PyObject *handled,
                           image *caller) {
    image *i = image_new(t->code, Py_SIZE(t));
    if (!i)
        return NULL;
    copy_plain(i, t);
    i->open = Py_XNewRef(t->open);
    i->function = Py_NewRef(function);
    for (Py_ssize_t n = 0; n < Py_SIZE(t); n++)
        i->slots[n] = Py_XNewRef(slots[n]);
    i->handled = Py_XNewRef(handled);
    i->caller = (image *)Py_XNewRef(caller);
    PyObject_GC_Track(i);
    return i;
}

// The outermost active handler's slot, -1 if there is none.
static int outermost_slot(const flow *fl, const code *c, const insn *pc) {
    int32_t h = fl->handled[pc - c->insns];
    if (h < 0)
        return -1;
    while (fl->handlers[h].outer >= 0)
        h = fl->handlers[h].outer;
    return fl->handlers[h].slot;
}

// The exception that the caller handles lies in the outermost slot of this frame's handlers. It is
// not the image's: it goes back to the thread, and the slot is filled anew when the frame is.
static int take_handled(image *i, _PyErr_StackItem *info, const code *c, const insn *pc) {
    const flow *fl = code_flow((code *)c);
    if (!fl)
        return -1;
    i->outer_handled = outermost_slot(fl, c, pc);
    if (i->outer_handled < 0)
        return 0;
    PyObject **saved = &i->slots[c->py->co_nlocalsplus + i->outer_handled];
    i->handled = info->exc_value;
    info->exc_value = *saved;
    *saved = NULL;
    return 0;
}

static image *take_slots(py_frame *f, PyCodeObject *co, int count) {
    image *i = image_new(co, count);
    if (!i)
        return NULL;
    for (int n = 0; n < count; n++)
        i->slots[n] = py_slot_take(py_frame_slots(f) + n);
    return i;
}

// Someone may hold the frame object and ask for its locals: CPython counts on cells in the slots of
// free variables, and finds an empty one there.
static void leave_cells(py_frame *f, PyObject *cell) {
    PyCodeObject *co = py_frame_code(f);
    for (int n = co->co_nlocalsplus - co->co_nfreevars; n < co->co_nlocalsplus; n++)
        py_slot_put(py_frame_slots(f) + n, Py_NewRef(cell));
}

static void give_back_slots(image *i, py_frame *f) {
    for (Py_ssize_t n = 0; n < Py_SIZE(i); n++)
        py_slot_put(py_frame_slots(f) + n, i->slots[n]);
    memset(i->slots, 0, (size_t)Py_SIZE(i) * sizeof(PyObject *));
}

static image *take(_PyErr_StackItem *info, py_frame *f, const code *c, const insn *pc,
                   bool keep_object) {
    bool seen = py_frame_object(f) && !keep_object;
    PyObject *cell = seen ? PyCell_New(NULL) : NULL;
    if (seen && !cell)
        return NULL;
    image *i = take_slots(f, c->py, (int)(py_frame_stack_pointer(f) - py_frame_slots(f)));
    if (!i) {
        Py_XDECREF(cell);
        return NULL;
    }
    if (take_handled(i, info, c, pc) < 0) {
        give_back_slots(i, f);
        Py_DECREF(i);
        Py_XDECREF(cell);
        return NULL;
    }
    if (seen)
        leave_cells(f, cell);
    Py_XDECREF(cell);
    i->function = Py_NewRef(py_frame_function(f));
    i->locals = Py_XNewRef(py_frame_locals(f));
    i->unit = insn_start(pc);
    if (keep_object) {
        i->object = py_frame_object(f);
        py_frame_put_object(f, NULL);
    }
    py_frame_set_stack_pointer(f, py_frame_stack(f));
    PyObject_GC_Track(i);
    return i;
}

int image_handled(PyThreadState *ts, code *c, const insn *pc, PyObject **handled) {
    const flow *fl = code_flow(c);
    *handled = fl && fl->handled[pc - c->insns] >= 0 ? ts->exc_info->exc_value : NULL;
    return fl ? 0 : -1;
}

py_slot *image_outer_handled(py_frame *f, code *c, const insn *pc) {
    const flow *fl = code_flow(c);
    int slot = fl ? outermost_slot(fl, c, pc) : -1;
    return slot < 0 ? NULL : py_frame_stack(f) + slot;
}

void image_leave_handlers(PyThreadState *ts, py_frame *f, code *c, const insn *pc) {
    py_slot *outer = image_outer_handled(f, c, pc);
    if (!outer)
        return;
    PyObject *ended = ts->exc_info->exc_value;
    ts->exc_info->exc_value = py_slot_get(outer);
    py_slot_put(outer, ended);
}

static int look_at_handled(image *i, code *c, const insn *pc, PyObject **handled) {
    const flow *fl = code_flow(c);
    if (!fl)
        return -1;
    i->outer_handled = outermost_slot(fl, c, pc);
    if (i->outer_handled < 0)
        return 0;
    PyObject **saved = &i->slots[c->py->co_nlocalsplus + i->outer_handled];
    i->handled = Py_XNewRef(*handled);
    *handled = *saved == Py_None ? NULL : *saved;
    Py_CLEAR(*saved); // the frame still has it
    return 0;
}

image *image_look(py_frame *f, code *c, const insn *pc, py_slot *sp, PyObject *extra, bool awaiting,
                  PyObject **handled) {
    Py_ssize_t count = sp - py_frame_slots(f);
    image *i = image_new(c->py, count + (extra != NULL));
    if (!i)
        return NULL;
    for (Py_ssize_t n = 0; n < count; n++)
        i->slots[n] = Py_XNewRef(py_frame_get(f, n));
    if (extra)
        i->slots[count] = Py_NewRef(extra);
    i->function = Py_NewRef(py_frame_function(f));
    i->locals = Py_XNewRef(py_frame_locals(f));
    i->awaiting = awaiting;
    i->init = extra != NULL;
    i->unit = awaiting ? pc->at : insn_start(pc);
    PyObject_GC_Track(i);
    if (look_at_handled(i, c, pc, handled) < 0)
        Py_CLEAR(i);
    return i;
}

// On 3.11 an allocation may start a collection, and so run code in the middle of an unwinding.
image *image_take(PyThreadState *ts, py_frame *f, const code *c, const insn *pc, bool keep_object) {
    int collecting = PyGC_Disable();
    image *i = take(ts->exc_info, f, c, pc, keep_object);
    if (collecting)
        PyGC_Enable();
    return i;
}

// --- putting back ---

// A spent image keeps nothing: what it held is the frame's now.
static void fill_slots(image *i, py_frame *f) {
    py_slot *slots = py_frame_slots(f);
    int locals = py_frame_code(f)->co_nlocalsplus;
    for (int n = 0; n < locals; n++)
        py_slot_set(&slots[n], i->slots[n]);
    for (Py_ssize_t n = locals; n < Py_SIZE(i); n++)
        py_slot_put(&slots[n], i->slots[n]);
    memset(i->slots, 0, (size_t)Py_SIZE(i) * sizeof(PyObject *));
    py_frame_set_stack_pointer(f, slots + Py_SIZE(i));
}

static void fill_handled(image *i, _PyErr_StackItem *info, py_frame *f) {
    if (i->outer_handled < 0)
        return;
    PyObject *outer = info->exc_value ? info->exc_value : Py_NewRef(Py_None);
    py_slot_put(py_frame_stack(f) + i->outer_handled, outer);
    info->exc_value = i->handled;
    i->handled = NULL;
}

static void fill_names(image *i, py_frame *f) {
    py_frame_set_function(f, i->function);
    i->function = NULL;
    if (i->locals) // else a frame that goes on keeps the dict that locals() gave
        py_frame_set_locals(f, i->locals);
    i->locals = NULL;
    if (i->object) {
        i->object->f_frame = f;
        py_frame_put_object(f, i->object);
        i->object = NULL;
    }
}

void image_fill(image *i, _PyErr_StackItem *info, py_frame *f) {
    fill_slots(i, f);
    fill_handled(i, info, f);
    fill_names(i, f);
    py_frame_set_next(f, i->unit);
    i->spent = true;
}

// --- continuing ---

// A filled frame runs in our loop: from where it stands, or by the current exception raised at
// `unit`.
static PyObject *run_filled(PyThreadState *ts, py_frame *f, resume_request *q, long unit) {
    run r = {.ts = ts, .thread = &interp_here, .frame = f, .moved = true};
    if (py_enter(ts, f, &r.entry, false) < 0)
        return interp_end_frame(&r);
    bool throwing = unit >= 0;
    if (throwing)
        py_frame_set_executing(f, py_frame_units(f) + unit);
    long once = 1;
    r.code = code_of(py_frame_code(f));
    r.pc = code_at(r.code, throwing ? unit : py_frame_next(f));
    r.sp = py_frame_stack_pointer(f);
    r.failing = unit;
    r.to_cpython = q->engine == ENGINE_CPYTHON;
    r.countdown = r.to_cpython ? &once : q->countdown;
    return interp_run(&r, throwing);
}

// Code that carries events of tools that are gone would report them: our loop runs it then.
static PyObject *go_on(PyThreadState *ts, py_frame *f, resume_request *q) {
    if (q->engine == ENGINE_CPYTHON) {
        if (!py_tools_stale(ts, py_frame_code(f)))
            return py_eval_default(ts, f, 0, true);
        q->engine = ENGINE_STATOR;
        q->countdown = NULL;
    }
    return run_filled(ts, f, q, -1);
}

// type.__call__'s words.
static int check_init(PyObject *value) {
    if (value == Py_None)
        return 0;
    PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'",
                 Py_TYPE(value)->tp_name);
    return -1;
}

// Takes the operands of an operator off the stack, and puts the value there if the operator has one.
// Takes the reference.
static py_slot *give_operator(const insn *pc, py_slot *sp, PyObject *value) {
    int pops = op_pops(pc->op, pc->arg, pc->extra);
    sp = py_slots_drop(sp - pops, sp);
    if (pops + op_effect(pc->op, pc->arg, pc->extra, false) > 0)
        py_slot_put(sp++, value);
    else
        Py_DECREF(value);
    return sp;
}

int image_give(py_frame *f, uint32_t unit, awaited how, PyObject *value) {
    const insn *pc = code_at(code_of(py_frame_code(f)), unit), *next = pc + 1;
    py_slot *sp = py_frame_stack_pointer(f);
    if (how == AWAITS_INIT) {
        int failed = check_init(value);
        Py_DECREF(value);
        if (failed < 0)
            return -1;
    } else if (how == AWAITS_OPERATOR) {
        sp = give_operator(pc, sp, value);
    } else {
        py_slot_put(sp++, value);
    }
    py_frame_set_stack_pointer(f, sp);
    py_frame_set_next(f, insn_start(next));
    return 0;
}

static PyObject *call_code(resume_request *q);

PyObject *image_above(PyThreadState *ts, py_frame *f, resume_request *q, uint32_t unit) {
    py_entry entry;
    py_slot *sp = py_frame_stack_pointer(f);
    PyObject *value = NULL;
    bool entered = py_enter(ts, f, &entry, false) == 0;
    py_frame_set_executing(f, py_frame_units(f) + unit);
    py_frame_set_running(f);
    if (entered) {
        q->depth++;
        value = call_code(q);
    }
    py_frame_set_stack_pointer(f, sp);
    py_leave_handed_over(ts, f, &entry);
    return value;
}

// The frames above were abandoned again before this one ran a single instruction. If no image can
// be taken of it, it ends with the exception.
static PyObject *abandon_filled(PyThreadState *ts, py_frame *f, uint32_t unit) {
    run r = {.ts = ts, .thread = &interp_here, .frame = f, .moved = true};
    PyObject *result = NULL;
    py_enter(ts, f, &r.entry, false);
    r.code = code_of(py_frame_code(f));
    r.pc = code_at(r.code, unit);
    r.sp = py_frame_stack_pointer(f);
    if (image_abandoned(&r, &result) == STOPPED_RAISE)
        return interp_end_frame(&r);
    return result;
}

static PyObject *continue_awaiting(PyThreadState *ts, py_frame *f, resume_request *q, uint32_t unit,
                                   bool init) {
    PyObject *value;
    if (q->depth < q->count - 1) {
        value = image_above(ts, f, q, unit);
        if (!value && interp_here.abandoning && image_is_abandoning())
            return abandon_filled(ts, f, unit);
    } else {
        value = Py_XNewRef(q->value);
        if (!value)
            py_set_raised(Py_NewRef(q->exception));
    }
    if (!value || image_give(f, unit, init ? AWAITS_INIT : AWAITS_VALUE, value) < 0)
        return run_filled(ts, f, q, unit);
    return go_on(ts, f, q);
}

PyObject *image_arrived(PyThreadState *ts, py_frame *f) {
    resume_request *q = interp_here.put_back;
    interp_here.put_back = NULL;
    image *i = q->chain[q->depth];
    image_place at = image_place_of(i);
    image_fill(i, ts->exc_info, f);
    if (q->collecting)
        PyGC_Enable();
    q->collecting = false;
    if (q->engine == ENGINE_DRIVEN)
        return image_drive(ts, f, q, &at);
    return at.awaiting ? continue_awaiting(ts, f, q, at.unit, at.init) : go_on(ts, f, q);
}

void image_expect(resume_request *q) {
    image *next = q->chain[++q->depth];
    hook_ensure();
    q->collecting = PyGC_Disable(); // a finalizer may be of the same code
    q->code = next->code;
    q->function = next->function;
    interp_here.put_back = q;
}

bool image_came(resume_request *q) {
    if (interp_here.put_back != q)
        return true;
    interp_here.put_back = NULL;
    if (q->collecting)
        PyGC_Enable();
    return false;
}

// Dummies for every parameter that has to be given: the frame's slots are overwritten anyway.
PyObject *image_call_with_dummies(PyObject *function) {
    PyCodeObject *co = (PyCodeObject *)PyFunction_GET_CODE(function);
    Py_ssize_t given = co->co_argcount, named = co->co_kwonlyargcount;
    PyObject **args = PyMem_Malloc((size_t)(given + named + 1) * sizeof(PyObject *));
    PyObject *names = PyTuple_New(named);
    PyObject *result = NULL;
    if (args && names) {
        for (Py_ssize_t n = 0; n < given + named; n++)
            args[n] = Py_None;
        for (Py_ssize_t n = 0; n < named; n++)
            PyTuple_SET_ITEM(names, n,
                             Py_NewRef(PyTuple_GET_ITEM(co->co_localsplusnames, given + n)));
        result = PyObject_Vectorcall(function, args, (size_t)given, names);
    } else if (!args) {
        PyErr_NoMemory();
    }
    Py_XDECREF(names);
    PyMem_Free(args);
    return result;
}

// CPython makes the frame: a function of the same code is called, and the hook sees its frame. The
// image's own function takes its place there (its code may have been replaced meanwhile).
static PyObject *call_code(resume_request *q) {
    interp_thread *t = &interp_here;
    PyFunctionObject *original = (PyFunctionObject *)q->chain[q->depth]->function;
    PyCodeObject *co = q->chain[q->depth]->code;
    hook_ensure();
    PyObject *function = PyFunction_New((PyObject *)co, original->func_globals);
    if (!function)
        return NULL;
    q->code = co;
    q->function = NULL;
    t->put_back = q;
    PyObject *result = image_call_with_dummies(function);
    t->put_back = NULL;
    Py_DECREF(function);
    return result;
}

static int chain_length(image *innermost) {
    int count = 0;
    for (image *i = innermost; i; i = i->caller)
        count++;
    return count;
}

int image_request(resume_request *q, image *innermost) {
    int count = q->count = chain_length(innermost);
    q->chain = PyMem_Malloc((size_t)count * sizeof(image *));
    if (!q->chain) {
        PyErr_NoMemory();
        return -1;
    }
    for (image *i = innermost; i; i = i->caller)
        q->chain[--count] = i;
    return 0;
}

PyObject *image_resume(image *innermost, engine engine, PyObject *value, PyObject *exception,
                       long *countdown) {
    resume_request q = {
        .engine = engine, .countdown = countdown, .value = value, .exception = exception};
    if (image_request(&q, innermost) < 0)
        return NULL;
    resume_request *before = interp_here.put_back;
    q.collecting = PyGC_Disable();
    PyObject *result = call_code(&q);
    if (q.collecting)
        PyGC_Enable();
    interp_here.put_back = before;
    PyMem_Free(q.chain);
    return result;
}

// --- stops ---

// Chains an image behind the one that was taken above it, and marks what its instruction waits for.
static void chain_image(interp_thread *t, image *i, bool awaiting, const insn *pc) {
    i->awaiting = awaiting;
    if (awaiting)
        i->unit = pc->at;
    if (!t->taken)
        t->taken = i;
    else
        t->outermost->caller = i;
    t->outermost = i;
}

// The frame gives all it holds to an image and ends; the error only carries control down.
stopped image_abandon(run *r, bool awaiting, PyObject **result) {
    interp_thread *t = r->thread;
    py_frame_set_stack_pointer(r->frame, r->sp);
    PyErr_Clear();
    image *i = image_take(r->ts, r->frame, r->code, r->pc, r->moved && t->stop == STOP_HOP);
    t->abandoning = i != NULL;
    if (!i) {
        Py_CLEAR(t->taken);
        return STOPPED_RAISE;
    }
    chain_image(t, i, awaiting, r->pc);
    *result = interp_end_frame(r);
    py_set_raised(Py_NewRef(image_abandoned_error));
    return STOPPED_LEFT;
}

stopped image_abandoned(run *r, PyObject **result) {
    return image_abandon(r, true, result);
}

// --- generators ---

static bool is_generator(PyObject *o) {
    return PyGen_CheckExact(o) || PyCoro_CheckExact(o) || PyAsyncGen_CheckExact(o);
}

static bool at_rest(PyGenObject *gen) {
    return gen->gi_frame_state < FRAME_EXECUTING;
}

// Where a generator stands that has not begun: there it delegates to nobody.
static long first_rest(const code *c) {
    const insn *pc = c->insns;
    while (pc->op != OP_RETURN_GENERATOR)
        pc++;
    return (long)pc->at + 1;
}

// A completed generator with an empty frame: its finalizer and its deallocation run no code of its
// own.
image *image_of_generator(PyObject *generator) {
    PyGenObject *gen = (PyGenObject *)generator;
    if (!is_generator(generator) || !at_rest(gen)) {
        PyErr_Format(PyExc_TypeError, "an image can be taken of a suspended generator, not of %R",
                     generator);
        return NULL;
    }
    py_frame *f = (py_frame *)gen->gi_iframe;
    const code *c = code_of(py_frame_code(f));
    if (!c)
        return NULL;
    image *i = take(&gen->gi_exc_state, f, c, code_at(c, py_frame_next(f)), false);
    if (!i)
        return NULL;
    i->state = gen->gi_frame_state;
    i->generator = Py_NewRef(generator);
    py_frame_set_next(f, first_rest(c));
    py_sever(gen, f);
    return i;
}

// The asynchronous parts: whether the hooks were told of it, who finalizes it, whether it was
// closed. A plain generator leaves these fields unset.
static void copy_async_state(PyGenObject *from, PyGenObject *to) {
    if (PyGen_CheckExact(from))
        return;
    to->gi_hooks_inited = from->gi_hooks_inited;
    to->gi_closed = from->gi_closed;
    to->gi_running_async = from->gi_running_async;
    Py_XSETREF(to->gi_origin_or_finalizer, Py_XNewRef(from->gi_origin_or_finalizer));
}

image *image_peek_generator(PyObject *generator) {
    PyGenObject *gen = (PyGenObject *)generator;
    py_frame *f = (py_frame *)gen->gi_iframe;
    code *c = code_of(py_frame_code(f));
    if (!c)
        return NULL;
    PyObject *handled = gen->gi_exc_state.exc_value;
    image *i = image_look(f, c, code_at(c, py_frame_next(f)), py_frame_stack_pointer(f), NULL,
                          false, &handled);
    if (!i)
        return NULL;
    i->state = gen->gi_frame_state;
    if (py_frame_seen(f))
        i->object = (PyFrameObject *)Py_NewRef(py_frame_object(f));
    return i;
}

static PyObject *dummy_closure(PyCodeObject *co) {
    PyObject *cells = PyTuple_New(co->co_nfreevars);
    for (Py_ssize_t n = 0; cells && n < co->co_nfreevars; n++) {
        PyObject *cell = PyCell_New(NULL);
        if (!cell)
            Py_CLEAR(cells);
        else
            PyTuple_SET_ITEM(cells, n, cell);
    }
    return cells;
}

// Its globals are never looked at: a generator gets those of its own function when it is filled.
PyObject *image_generator_maker(PyObject *generator) {
    PyGenObject *gen = (PyGenObject *)generator;
    PyCodeObject *co = py_generator_code(gen);
    PyObject *globals = PyDict_New(), *closure = globals ? dummy_closure(co) : NULL;
    PyFunctionObject *f =
        closure ? (PyFunctionObject *)PyFunction_New((PyObject *)co, globals) : NULL;
    Py_XDECREF(globals);
    if (!f) {
        Py_XDECREF(closure);
        return NULL;
    }
    Py_SETREF(f->func_name, Py_NewRef(gen->gi_name));
    Py_SETREF(f->func_qualname, Py_NewRef(gen->gi_qualname));
    f->func_closure = closure;
    return (PyObject *)f;
}

PyObject *image_make_generator(PyObject *maker) {
    return image_call_with_dummies(maker);
}

void image_fill_generator(image *i, PyObject *generator) {
    PyGenObject *gen = (PyGenObject *)generator;
    image_fill(i, &gen->gi_exc_state, (py_frame *)gen->gi_iframe);
    gen->gi_frame_state = i->state;
}

void image_silence_generator(PyObject *generator) {
    PyGenObject *gen = (PyGenObject *)generator;
    if (at_rest(gen)) // else its frame has been cleared
        gen->gi_frame_state = FRAME_COMPLETED;
}

PyObject *image_to_generator(image *i) {
    if (!i->generator || i->spent) {
        PyErr_SetString(PyExc_ValueError, i->spent ? "the image was put back already"
                                                   : "the image is not of a generator");
        return NULL;
    }
    PyObject *maker = image_generator_maker(i->generator);
    PyObject *made = maker ? image_make_generator(maker) : NULL;
    Py_XDECREF(maker);
    if (!made)
        return NULL;
    copy_async_state((PyGenObject *)i->generator, (PyGenObject *)made);
    image_fill_generator(i, made);
    return made;
}
