// From a frame at rest to its end: at each boundary the cache is asked for an entry of (code,
// offset); an entry ends the frame, or leaves it at a later boundary, where one instruction is run
// for real. One frame is one loop, so that a loop with a break in it runs in flat depth.
#include "src/py/raised.h"

#include "src/interp/interp.h"

#include "src/hook/drive.h"

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
    py_raised aside = py_put_aside();
    Py_DECREF(ended);
    py_put_on(aside);
}

// --- one frame ---

// A frame being driven.
typedef struct drive {
    PyThreadState *ts;
    py_frame *frame;
    code *code;
    bool steps;       // its next instruction is run for real
    long failing;     // the unit at which the current exception is to be raised, or -1
    PyObject *result; // strong, once it has ended; NULL with an exception
} drive;

typedef enum progress { GOES_ON, ENDED } progress;

// The frame stands still, with nothing in it that counts: it ends.
static progress end_with(drive *d, PyObject *result) {
    py_entry entry;
    if (py_enter(d->ts, d->frame, &entry, false) < 0)
        Py_CLEAR(result);
    PyObject **base = py_frame_stack(d->frame), **sp = py_frame_stack_pointer(d->frame);
    py_raised aside = py_put_aside();
    while (sp > base)
        Py_XDECREF(*--sp);
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

// One instruction, or the way of an exception to its handler.
static progress step(drive *d) {
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
    d->steps = false;
    d->failing = -1;
    if (py_enter(d->ts, d->frame, &r.entry, false) < 0) {
        d->result = interp_end_frame(&r);
        return ENDED;
    }
    switch (interp_loop(&r, throwing)) {
    case RUN_STOP:
        py_leave_handed_over(d->ts, d->frame, &r.entry);
        return GOES_ON;
    case RUN_HAND_OVER:
        d->result = interp_hand_over(&r);
        return ENDED;
    default:
        py_leave_ended(d->ts, d->frame, &r.entry, r.sp);
        d->result = r.value;
        return ENDED;
    }
}

// Where a handler is put on or taken off, CPython cannot fail, and the exception table counts on
// it.
static bool cannot_fail(const insn *pc) {
    return pc->op == OP_PUSH_EXC_INFO || pc->op == OP_POP_EXCEPT ||
           (pc->op == OP_COPY && pc[1].op == OP_POP_EXCEPT);
}

// The current exception is raised at d->failing.
static progress throw_there(drive *d) {
    const insn *pc = code_at(d->code, d->failing);
    while (cannot_fail(pc)) {
        py_raised aside = py_put_aside();
        d->failing = -1;
        if (step(d) == ENDED) { // CPython has taken over, or the stack is used up
            py_raised other = py_put_aside();
            py_put_on(aside);
            PyErr_Clear();
            py_put_on(other);
            return ENDED;
        }
        py_put_on(aside);
        pc = code_at(d->code, py_frame_next(d->frame));
    }
    d->failing = pc->at;
    return step(d);
}

static progress raise_here(drive *d, const insn *pc) {
    d->failing = pc->at;
    return GOES_ON;
}

// --- entries ---

static void drop_image(image *i) {
    py_raised aside = py_put_aside();
    Py_DECREF(i);
    py_put_on(aside);
}

// The closure of a function that is being made lies on the stack: cells are no values.
static bool must_step(const drive *d, const insn *pc) {
    PyObject **sp = py_frame_stack_pointer(d->frame);
    for (PyObject **slot = py_frame_stack(d->frame); slot < sp; slot++)
        if (*slot &&
            (PyCell_Check(*slot) || (PyTuple_CheckExact(*slot) && PyTuple_GET_SIZE(*slot) &&
                                     PyCell_Check(PyTuple_GET_ITEM(*slot, 0)))))
            return true;
    return pc->op == OP_MAKE_CELL || pc->op == OP_COPY_FREE_VARS || pc->op == OP_RETURN_GENERATOR ||
           pc->op == OP_SET_FUNCTION_ATTRIBUTE;
}

static void put_back(drive *d, image *innermost, image *before) {
    image_back how = image_continue(d->ts, d->frame, innermost, before, &d->failing);
    d->steps = how == IMAGE_STEPS;
    if (how != IMAGE_RAISED)
        d->failing = -1;
}

// What the frame held goes when the frame has what it is to hold.
static progress put_back_instead(drive *d, const insn *pc, image *innermost) {
    image *old = image_take(d->ts, d->frame, d->code, pc, true);
    if (old == NULL)
        return raise_here(d, pc);
    d->frame->frame_obj = old->object; // whoever has the frame object goes on to see this frame
    old->object = NULL;
    put_back(d, innermost, old);
    return GOES_ON;
}

// Someone has the frame object, and will see its lines and variables; of a frame that handles an
// exception, that is the traceback.
static bool is_looked_at(const drive *d, const insn *pc) {
    PyFrameObject *object = d->frame->frame_obj;
    const flow *fl = code_flow(d->code);
    return object != NULL && Py_REFCNT(object) > 1 && fl != NULL &&
           fl->handled[pc - d->code->insns] < 0 && pc->op != OP_PUSH_EXC_INFO;
}

// Guards look at the frame's own slots, where it stands; a trace runs on what they hold.
static progress enter_cache(drive *d, cache *k, const insn *pc) {
    PyObject *result = NULL;
    guard_frame f = {.function = py_frame_function(d->frame),
                     .slots = py_frame_slots(d->frame),
                     .count = py_frame_stack_pointer(d->frame) - py_frame_slots(d->frame)};
    if (image_handled(d->ts, d->code, pc, &f.handled) < 0)
        return raise_here(d, pc);
    outcome how = compiler_run(drive_compiler, k, &f, &result);
    if (how == OUTCOME_NATIVE)
        return hand_over(d);
    if (how == OUTCOME_OFF)
        return hand_over_off(d);
    if (how == OUTCOME_ERROR)
        return raise_here(d, pc);
    if (how == OUTCOME_STEP) {
        d->steps = true;
        return GOES_ON;
    }
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
    PyObject *function = py_frame_function(d->frame);
    if (py_poll_wanted(d->ts) && py_poll(d->ts) < 0)
        return raise_here(d, pc);
    if (PyFunction_GET_CODE(function) != (PyObject *)d->code->py ||
        py_tools_on(d->ts, d->code->py) || is_looked_at(d, pc))
        return hand_over(d);
    if (must_step(d, pc)) {
        d->steps = true;
        return GOES_ON;
    }
    cache *k = compiler_cache(drive_compiler, d->code->py, insn_start(pc));
    if (k == NULL)
        return raise_here(d, pc);
    return k->given_up && k->count == 0 ? hand_over(d) : enter_cache(d, k, pc);
}

static PyObject *drive_on(drive *d) {
    progress p = GOES_ON;
    while (p == GOES_ON)
        p = d->failing >= 0 ? throw_there(d) : d->steps ? step(d) : go_on(d);
    return d->result;
}

static PyObject *drive_frame(PyThreadState *ts, py_frame *f, bool steps, long failing) {
    drive d = {.ts = ts, .frame = f, .steps = steps, .failing = failing};
    d.code = code_of(py_frame_code(f)); // an image of it was made: it is decoded
    return drive_on(&d);
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

PyObject *drive_call(PyThreadState *ts, py_frame *f, Py_ssize_t count, bool *mine) {
    drive d = {.ts = ts, .frame = f, .failing = -1};
    PyObject *result = NULL;
    *mine = false;
    cache *k = compiler_cache(drive_compiler, py_frame_code(f), 0);
    guard_frame bound = {
        .function = py_frame_function(f), .slots = py_frame_slots(f), .count = count};
    outcome how = k ? compiler_run(drive_compiler, k, &bound, &result) : OUTCOME_ERROR;
    if (how == OUTCOME_NATIVE || how == OUTCOME_OFF)
        return NULL;
    *mine = true;
    if (how != OUTCOME_BROKE) {
        end_with(&d, result);
        return d.result;
    }
    d.code = code_of(py_frame_code(f));
    put_back(&d, (image *)result, NULL);
    drop_image((image *)result);
    return drive_on(&d);
}

void drive_setup(void) {
    image_drive = drive_frame;
}
