// Brings a frame at rest to its end. At each boundary the cache is searched for an entry of (code,
// offset). An entry ends the frame, or leaves it at a later boundary, where one instruction runs
// for real. The driver is a loop, so a program's loop with a break in it needs no more C stack each
// time round. An entry may also continue in frames below, which wait for this one.
#include "src/base/upcalls.h"

#include "src/py/raised.h"

#include "src/interp/interp.h"

#include "src/trace/roots.h"

#include "src/compile/drive.h"

__attribute__((tls_model("initial-exec"))) _Thread_local compiler *drive_compiler;

void drive_enter(drive_scope *before, compiler *c) {
    before->outer = drive_compiler;
    drive_compiler = (compiler *)Py_NewRef((PyObject *)c);
    hook_enter(&before->hook, HOOK_COMPILE);
}

void drive_leave(const drive_scope *before) {
    hook_leave(&before->hook);
    compiler *ended = drive_compiler;
    drive_compiler = before->outer;
    if (!drive_compiler)
        compiler_told = false;
    py_raised aside = py_put_aside();
    Py_DECREF(ended);
    py_put_on(aside);
}

// --- one frame ---

// A frame that waits for the one above.
typedef struct waiting {
    guard_frame frame;
    struct waiting *below;
    bool open;   // an entry of a frame above may go on in it
    bool native; // one would have, and has no operation: CPython runs it
    bool passed; // one did, and left it: it ends with `result`, or goes on (OUTCOME_BROKE) from
                 // the images in `result`; NULL: it just ends
    outcome how;
    PyObject *result; // strong
} waiting;

// A frame being driven.
typedef struct drive {
    PyThreadState *ts;
    py_frame *frame;
    code *code;
    waiting *below;    // or NULL
    bool next_is_real; // its next instruction is run for real
    bool native;       // and then CPython runs it
    long failing;      // the unit at which the current exception is to be raised, or -1
    PyObject *open;    // strong, or NULL: see guard_frame
    PyObject *result;  // strong, once it has ended; NULL with an exception
} drive;

typedef enum progress { GOES_ON, ENDED } progress;

// The frame stands still, with nothing in it that counts: it ends.
static progress end_with(drive *d, PyObject *result) {
    py_entry entry;
    if (py_enter(d->ts, d->frame, &entry, false) < 0)
        Py_CLEAR(result);
    py_raised aside = py_put_aside();
    py_slot *sp = py_slots_drop(py_frame_stack(d->frame), py_frame_stack_pointer(d->frame));
    py_put_on(aside);
    py_leave_ended(d->ts, d->frame, &entry, sp);
    d->result = result;
    return ENDED;
}

static progress hand_over(drive *d) {
    run r = {.ts = d->ts, .thread = &interp_here, .frame = d->frame, .code = d->code};
    d->result = py_enter(d->ts, d->frame, &r.entry, false) < 0 ? interp_end_frame(&r)
                                                               : interp_hand_over(&r);
    return ENDED;
}

static progress hand_over_off(drive *d) {
    hook_mode before = hook_swap(HOOK_OFF);
    progress p = hand_over(d);
    hook_swap(before);
    return p;
}

// One instruction, or the way of an exception to its handler. `me`: the frame waits in the
// instruction for another one, whose entry may have gone on in it; or NULL.
static progress run_waiting(drive *d, const waiting *me) {
    bool throwing = d->failing >= 0;
    long countdown = throwing ? 1 : 2; // the boundary it stands at counts
    run r = {.ts = d->ts,
             .thread = &interp_here,
             .frame = d->frame,
             .code = d->code,
             .countdown = &countdown,
             .failing = d->failing};
    if (throwing)
        py_frame_set_executing(d->frame, py_frame_units(d->frame) + d->failing);
    r.pc = code_at(d->code, throwing ? d->failing : py_frame_next(d->frame));
    r.sp = py_frame_stack_pointer(d->frame);
    d->next_is_real = false;
    d->failing = -1;
    if (py_enter(d->ts, d->frame, &r.entry, false) < 0) {
        d->result = interp_end_frame(&r);
        return ENDED;
    }
    if (throwing)
        py_tools_unseen(&r.entry);
    switch (interp_loop(&r, throwing)) {
    case RUN_STOP:
        py_leave_handed_over(d->ts, d->frame, &r.entry);
        return GOES_ON;
    case RUN_HAND_OVER:
        if (me && me->passed) { // what CPython would run now has been done
            py_leave_handed_over(d->ts, d->frame, &r.entry);
            return GOES_ON;
        }
        d->result = interp_hand_over(&r);
        return ENDED;
    default:
        py_leave_ended(d->ts, d->frame, &r.entry, r.sp);
        d->result = r.value;
        return ENDED;
    }
}

static progress run_instruction(drive *d) {
    return run_waiting(d, NULL);
}

// Where a handler is put on or taken off, CPython cannot fail, and the exception table counts on
// it.
static bool cannot_fail(const insn *pc) {
    return op_flags((pc->op == OP_COPY ? pc + 1 : pc)->op) & OPF_HANDLER;
}

// The current exception is raised at d->failing.
static progress throw_there(drive *d) {
    const insn *pc = code_at(d->code, d->failing);
    while (cannot_fail(pc)) {
        py_raised aside = py_put_aside();
        d->failing = -1;
        if (run_instruction(d) == ENDED) { // CPython has taken over, or the stack is used up
            py_forget(aside);
            return ENDED;
        }
        py_put_on(aside);
        pc = code_at(d->code, py_frame_next(d->frame));
    }
    d->failing = pc->at;
    return run_instruction(d);
}

static progress raise_here(drive *d, const insn *pc) {
    d->failing = pc->at;
    return GOES_ON;
}

static void drop_image(image *i) {
    py_raised aside = py_put_aside();
    Py_DECREF(i);
    py_put_on(aside);
}

// The closure of a function that is being made lies on the stack: cells are no values.
static bool has_cells(const drive *d) {
    const py_slot *sp = py_frame_stack_pointer(d->frame);
    for (const py_slot *slot = py_frame_stack(d->frame); slot < sp; slot++) {
        PyObject *o = py_slot_get(slot);
        if (o && PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o))
            o = PyTuple_GET_ITEM(o, 0);
        if (o && PyCell_Check(o))
            return true;
    }
    return false;
}

static bool must_be_real(const drive *d, const insn *pc) {
    return (op_flags(pc->op) & OPF_REAL) || has_cells(d);
}

static bool is_replaced(const drive *d) {
    return PyFunction_GET_CODE(py_frame_function(d->frame)) != (PyObject *)d->code->py;
}

// --- frames that wait ---

// Guards look at the frame's own slots, where it stands.
static guard_frame view(const drive *d, uint32_t unit) {
    guard_frame f = {.function = py_frame_function(d->frame),
                     .slots = py_frame_slots(d->frame),
                     .count = py_frame_stack_pointer(d->frame) - py_frame_slots(d->frame),
                     .unit = unit,
                     .frame = d->frame,
                     .open = d->open};
    // What a traceback knows ends for real, and only then do those below go on.
    if (d->below && d->below->open && !root_ends_for_real(d->code, unit))
        f.below = &d->below->frame;
    return f;
}

static progress put_back_instead(drive *d, const insn *pc, image *innermost);

// Whether an entry of a frame above may go on in this one, which waits at `unit`.
static bool may_go_on(const drive *d, uint32_t unit) {
    return !d->code->skip && !has_cells(d) && !root_ends_for_real(d->code, unit) &&
           !py_tools_on(d->ts, d->code->py);
}

static void drop_result(waiting *me) {
    py_raised aside = py_put_aside();
    Py_CLEAR(me->result);
    py_put_on(aside);
}

// An entry of a frame above has gone on in this one, which stands at `pc` now.
static progress pass(drive *d, waiting *me, const insn *pc) {
    PyObject *result = me->result;
    if (!result)
        return end_with(d, Py_NewRef(Py_None));
    if (me->how == OUTCOME_DONE)
        return end_with(d, result);
    progress p = put_back_instead(d, pc, (image *)result);
    drop_image((image *)result);
    return p;
}

// The same, if the frame above has ended. If it could not even end, nor does this one.
static progress pass_call(drive *d, waiting *me, PyObject *value) {
    if (!value) {
        drop_result(me);
        return end_with(d, NULL);
    }
    Py_DECREF(value);
    return pass(d, me, code_at(d->code, me->frame.unit));
}

// Whether the instruction that was run for real ended in an exception.
static bool has_raised(const drive *d, progress p) {
    return p == ENDED ? !d->result
                      : code_at(d->code, py_frame_next(d->frame))->op == OP_PUSH_EXC_INFO;
}

// Whether the class of the object that a subscript is of has the function as its method of that
// name. The subscript then calls the function first, and nothing behind it. (A key's __index__ may
// well be a function that is named __getitem__.)
static bool is_method_of_owner(const drive *d, const char *name, PyObject *function) {
    PyObject *owner = py_slot_get(py_frame_stack_pointer(d->frame) - 2), *found = NULL;
    PyObject *word = raw_is_python_class(Py_TYPE(owner)) ? PyUnicode_InternFromString(name) : NULL;
    bool own = word && raw_type_get(Py_TYPE(owner), word, &found) == RAW_FOUND && found == function;
    Py_XDECREF(word);
    PyErr_Clear(); // without memory nothing is known
    return own;
}

// Whether the value of an operator is the very value that the function returns, and nothing more
// happens behind it.
static bool gives_value(const drive *d, const insn *pc, PyObject *function) {
    switch (pc->op) {
    case OP_STORE_ATTR:
    case OP_DELETE_ATTR:
        return true;
    case OP_BINARY_SUBSCR:
        return is_method_of_owner(d, "__getitem__", function);
    case OP_STORE_SUBSCR:
        return is_method_of_owner(d, "__setitem__", function);
    case OP_DELETE_SUBSCR:
        return is_method_of_owner(d, "__delitem__", function);
    default:
        return false;
    }
}

// An entry that goes on in this frame has done all that is behind the operator. What the operator
// itself leaves in the frame is replaced.
static progress pass_operator(drive *d, waiting *me, progress p) {
    if (p == ENDED || has_raised(d, p)) { // the frame above could not even end
        drop_result(me);
        return p;
    }
    return pass(d, me, code_at(d->code, py_frame_next(d->frame)));
}

// The frame stands before an operator: run for real, it calls the frame above.
static progress run_into_operator(drive *d, resume_request *q, const image_place *at) {
    waiting me = {.frame = view(d, at->unit), .below = d->below};
    me.frame.how = AWAITS_OPERATOR;
    image_expect(q);
    me.open = may_go_on(d, at->unit) && gives_value(d, code_at(d->code, at->unit), q->function);
    q->waiting = &me;
    progress p = run_waiting(d, &me);
    if (me.passed)
        return pass_operator(d, &me, p);
    if (image_came(q) || has_raised(d, p)) // the stack may be used up just now
        return me.native && p == GOES_ON && !has_raised(d, p) ? hand_over(d) : p;
    if (p == ENDED)
        Py_CLEAR(d->result);
    PyErr_SetString(PyExc_SystemError, "an operator did not call what it had called in the trace");
    d->failing = at->unit;
    return p;
}

// The frame stands on a call, of which the frames above are still to be put back.
static progress wait(drive *d, resume_request *q, const image_place *at) {
    if (at->by_operator)
        return run_into_operator(d, q, at);
    waiting me = {.frame = view(d, at->unit), .below = d->below};
    me.frame.how = at->init ? AWAITS_INIT : AWAITS_VALUE;
    me.open = may_go_on(d, at->unit);
    q->waiting = &me;
    PyObject *value = image_above(d->ts, d->frame, q, at->unit);
    if (me.passed)
        return pass_call(d, &me, value);
    if (!value || image_give(d->frame, at->unit, me.frame.how, value) < 0)
        d->failing = at->unit;
    else if (me.native)
        return hand_over(d);
    return GOES_ON;
}

static bool is_context_of(PyObject *context, PyObject *of) {
    for (; of; of = ((PyBaseExceptionObject *)of)->context)
        if (of == context)
            return true;
    return false;
}

// An exception that was raised where these frames did not stand has as its context what was handled
// there. What the frame handles comes in between.
static void give_context(PyObject *exception) {
    PyObject *handled = PyErr_GetHandledException(), *last = exception;
    while (handled && !is_context_of(((PyBaseExceptionObject *)last)->context, handled) &&
           ((PyBaseExceptionObject *)last)->context)
        last = ((PyBaseExceptionObject *)last)->context;
    if (handled && !is_context_of(handled, exception))
        PyException_SetContext(last, Py_NewRef(handled));
    Py_XDECREF(handled);
}

// A frame that was put back: the instruction it stands before is run for real, or raises.
static progress begin(drive *d, resume_request *q, const image_place *at) {
    d->native = at->native;
    Py_XSETREF(d->open, Py_XNewRef(at->open));
    d->next_is_real = !at->awaiting && !at->raises;
    if (at->awaiting)
        return wait(d, q, at);
    if (at->raises) {
        give_context(at->raises);
        d->failing = code_at(d->code, at->unit)->at;
        py_set_raised(Py_NewRef(at->raises));
    }
    return GOES_ON;
}

static progress hand_over_all(drive *d, int reach) {
    for (waiting *w = d->below; reach > 0; reach--, w = w->below)
        w->native = true;
    return hand_over(d);
}

// Ends this frame and those below up to the one that the entry has come to.
static progress reach_down(drive *d, const insn *pc, outcome how, PyObject *result, int reach) {
    waiting *w = d->below;
    for (; reach > 1; reach--, w = w->below)
        w->passed = true;
    w->passed = true;
    w->how = how;
    w->result = result;
    image_leave_handlers(d->ts, d->frame, d->code, pc);
    return end_with(d, Py_NewRef(Py_None));
}

// The outermost image fills this frame, in place of what `before` was taken of (let go then; may be
// NULL); the others run above it.
static progress put_back(drive *d, image *innermost, image *before) {
    resume_request q = {.engine = ENGINE_DRIVEN}, *outer = interp_here.put_back;
    if (image_request(&q, innermost) < 0) {
        if (before)
            image_fill(before, d->ts->exc_info, d->frame);
        Py_XDECREF(before);
        d->failing = py_frame_next(d->frame);
        return GOES_ON;
    }
    image *own = q.chain[0];
    image_place at = image_place_of(own);
    image_fill(own, d->ts->exc_info, d->frame);
    Py_XDECREF(before);
    progress p = begin(d, &q, &at);
    interp_here.put_back = outer;
    PyMem_Free(q.chain);
    return p;
}

// What the frame held goes when the frame has what it is to hold.
static progress put_back_instead(drive *d, const insn *pc, image *innermost) {
    image *old = image_take(d->ts, d->frame, d->code, pc, true);
    if (!old)
        return raise_here(d, pc);
    py_frame_put_object(d->frame,
                        old->object); // whoever has the frame object goes on to see this frame
    old->object = NULL;
    return put_back(d, innermost, old);
}

// --- entries ---

// Of a frame that handles an exception, the one who sees it is the traceback.
static bool is_looked_at(const drive *d, const insn *pc) {
    return py_frame_seen(d->frame) && !root_ends_for_real(d->code, insn_start(pc));
}

// A trace runs on what the slots hold.
static progress enter_cache(drive *d, cache *k, const insn *pc) {
    PyObject *result = NULL;
    int reach = 0;
    guard_frame f = view(d, k->unit);
    if (image_handled(d->ts, d->code, pc, &f.handled) < 0)
        return raise_here(d, pc);
    outcome how = compiler_run(drive_compiler, k, &f, &result, &reach);
    if (how == OUTCOME_NATIVE)
        return hand_over_all(d, reach);
    if (how == OUTCOME_OFF)
        return hand_over_off(d);
    if (how == OUTCOME_ERROR)
        return raise_here(d, pc);
    if (how == OUTCOME_INSTRUCTION) {
        d->next_is_real = true;
        return GOES_ON;
    }
    if (reach > 0)
        return reach_down(d, pc, how, result, reach);
    if (how == OUTCOME_DONE) {
        image_leave_handlers(d->ts, d->frame, d->code, pc);
        return end_with(d, result);
    }
    progress p = put_back_instead(d, pc, (image *)result);
    drop_image((image *)result);
    return p;
}

// Signals are looked for, and threads get their turn, once a round.
static progress go_on(drive *d) {
    const insn *pc = code_at(d->code, py_frame_next(d->frame));
    if (py_poll_wanted(d->ts) && py_poll(d->ts) < 0)
        return raise_here(d, pc);
    if (is_replaced(d) || py_tools_on(d->ts, d->code->py) || is_looked_at(d, pc))
        return hand_over(d);
    if (must_be_real(d, pc)) {
        d->next_is_real = true;
        return GOES_ON;
    }
    cache *k = compiler_cache(drive_compiler, d->code->py, insn_start(pc));
    if (!k)
        return raise_here(d, pc);
    return k->given_up && k->count == 0 ? hand_over(d) : enter_cache(d, k, pc);
}

static PyObject *drive_on(drive *d, progress p) {
    while (p == GOES_ON)
        p = d->failing >= 0   ? throw_there(d)
            : d->next_is_real ? run_instruction(d)
            : d->native       ? hand_over(d)
                              : go_on(d);
    Py_CLEAR(d->open);
    return d->result;
}

static PyObject *drive_frame(PyThreadState *ts, py_frame *f, resume_request *q,
                             const image_place *at) {
    drive d = {.ts = ts, .frame = f, .failing = -1, .below = q->waiting};
    d.code = code_of(py_frame_code(f)); // an image of it was made: it is decoded
    return drive_on(&d, begin(&d, q, at));
}

// --- beginnings ---

PyObject *drive_images(compiler *c, image *innermost) {
    drive_scope before;
    drive_enter(&before, c);
    PyObject *result = image_resume(innermost, ENGINE_DRIVEN, NULL, NULL, NULL);
    drive_leave(&before);
    drop_image(innermost);
    return result;
}

PyObject *drive_call(PyThreadState *ts, py_frame *f, Py_ssize_t count, drive_whose *whose) {
    drive d = {.ts = ts, .frame = f, .failing = -1};
    PyObject *result = NULL;
    cache *k = compiler_cache(drive_compiler, py_frame_code(f), 0);
    guard_frame bound = {
        .function = py_frame_function(f), .slots = py_frame_slots(f), .count = count};
    int reach;
    outcome how = k ? compiler_run(drive_compiler, k, &bound, &result, &reach) : OUTCOME_ERROR;
    *whose = how == OUTCOME_NATIVE ? DRIVE_CPYTHONS : how == OUTCOME_OFF ? DRIVE_OFF : DRIVE_MINE;
    if (*whose != DRIVE_MINE)
        return NULL;
    if (how != OUTCOME_BROKE) {
        end_with(&d, result);
        return d.result;
    }
    d.code = code_of(py_frame_code(f));
    progress p = put_back(&d, (image *)result, NULL);
    drop_image((image *)result);
    return drive_on(&d, p);
}

void drive_setup(void) {
    image_drive = drive_frame;
}
