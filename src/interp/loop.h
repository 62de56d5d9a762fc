// The interpreter's loop, a template: the including file names the function (LOOP_NAME) and defines
// the operations (DO_…) that handlers use. The loop turns a frame at a boundary into a run_end.
// Each build of the interpreter includes it once; the handlers are in ops_*.h, one family a file.

#define SLOT(index) py_slot_get(&slots[index])
#define SET_SLOT(index, object) py_slot_put(&slots[index], object)
#define CONST(index) (consts[index])
#define NAME(index) (names[index])
#define ARG (pc->arg)
#define EXTRA (pc->extra)

#define PUSH(object) py_slot_put(sp++, object)
#define POP() py_slot_get(--sp)
#define TOP PEEK(1)
#define PEEK(n) py_slot_get(sp - (n))
#define SET_TOP(object) py_slot_put(sp - 1, object)
// Drops operands from the lowest up, as CPython does. Code that runs as they die must not find them
// on the stack.
#define DROP_TO(lowest)                                                                            \
    do {                                                                                           \
        py_slot *dropped_ = (lowest), *end_ = sp;                                                  \
        sp = dropped_;                                                                             \
        while (dropped_ < end_)                                                                    \
            Py_XDECREF(py_slot_get(dropped_++));                                                   \
    } while (0)
#define LOCALS py_frame_locals(frame)
#define GLOBALS py_frame_globals(frame)
#define BUILTINS py_frame_builtins(frame)

#define OP(name) op_##name:
#define DISPATCH()                                                                                 \
    do {                                                                                           \
        py_frame_set_executing(frame, units + pc->at);                                             \
        LOOP_TICK();                                                                               \
        goto *table[pc->op];                                                                       \
    } while (0)
// After an instruction that ran no Python code.
#define NEXT_QUIET()                                                                               \
    do {                                                                                           \
        pc++;                                                                                      \
        DISPATCH();                                                                                \
    } while (0)
#define FAIL() goto error

// After all other instructions, even one that only dropped a reference: a finalizer may have
// switched a debugger or a monitor on.
#define NEXT()                                                                                     \
    do {                                                                                           \
        if (UNLIKELY(py_tools_changed(ts, &r->entry)))                                             \
            goto tools;                                                                            \
        NEXT_QUIET();                                                                              \
    } while (0)

// After a call. This also looks for signals.
#define NEXT_AFTER_CALL()                                                                          \
    do {                                                                                           \
        if (UNLIKELY(py_poll_wanted(ts)))                                                          \
            goto poll;                                                                             \
        NEXT();                                                                                    \
    } while (0)

#define JUMP()                                                                                     \
    do {                                                                                           \
        if (UNLIKELY(pc->flags & INSN_POLLS) && UNLIKELY(py_poll_wanted(ts)))                      \
            goto poll_jump;                                                                        \
        pc = code_insns + pc->target;                                                              \
        DISPATCH();                                                                                \
    } while (0)

static run_end LOOP_NAME(run *r, bool throwing) {
    static const void *const main_table[OP_COUNT] = {
#define OP_ROW(name) [OP_##name] = &&op_##name,
#include "src/interp/op_rows.h"

    };
    static const void *const stop_table[OP_COUNT] = {
#undef OP_ROW
#define OP_ROW(name) [OP_##name] = &&stop,
#include "src/interp/op_rows.h"
#undef OP_ROW
    };
    PyThreadState *const ts = r->ts;
    py_frame *const frame = r->frame;
    const insn *const code_insns = r->code->insns;
    py_slot *const slots = py_frame_slots(frame);
    PyObject **const consts = ((PyTupleObject *)r->code->py->co_consts)->ob_item;
    PyObject **const names = ((PyTupleObject *)r->code->py->co_names)->ob_item;
    _Py_CODEUNIT *const units = py_frame_units(frame);
    const void *const *const table = r->countdown ? stop_table : main_table;
    const insn *pc = r->pc;
    py_slot *sp = r->sp;
    long failing; // unit at which the exception table is searched

    py_frame_set_running(frame);
    if (UNLIKELY(throwing)) {
        failing = r->failing;
        goto error_at;
    }
    DISPATCH();

#include "src/interp/ops_stack.h"

#include "src/interp/ops_names.h"

#include "src/interp/ops_objects.h"

#include "src/interp/ops_build.h"

#include "src/interp/ops_flow.h"

#include "src/interp/ops_call.h"

#include "src/interp/ops_generator.h"

#include "src/interp/ops_except.h"

stop:
    if (!(pc->flags & INSN_BOUNDARY) || --*r->countdown > 0)
        goto *main_table[pc->op];
    LOOP_STOP_LABEL
    r->sp = sp;
    r->pc = pc;
    py_frame_set_stack_pointer(frame, sp);
    py_frame_set_next(frame, insn_start(pc));
    return RUN_STOP;

poll:
    if (DO_POLL() < 0)
        FAIL();
    NEXT();

poll_jump:
    {
        const insn *target = code_insns + pc->target;
        if (DO_POLL() < 0) {
            failing = PY_POLLS_BEFORE_JUMP ? (long)pc->at : (long)insn_start(target) - 1;
            goto error_at;
        }
        pc = target;
        if (UNLIKELY(py_tools_changed(ts, &r->entry)))
            goto tools_here;
        DISPATCH();
    }

tools:
    pc++;
tools_here:
    if (!(pc->flags & INSN_BOUNDARY))
        DISPATCH();
    if (!py_tools_on(ts, r->code->py)) {
        py_tools_seen(ts, &r->entry);
        DISPATCH();
    }
hand_over:
    r->sp = sp;
    r->pc = pc;
    py_frame_set_stack_pointer(frame, sp);
    py_frame_set_next(frame, insn_start(pc));
    return RUN_HAND_OVER;

error:
    failing = pc->at;
error_at:
    if (UNLIKELY(LOOP_ABANDONED(r))) {
        r->sp = sp;
        r->pc = pc;
        return RUN_ABANDON;
    }
    run_note_traceback(r);
    if (UNLIKELY(py_tools_changed(ts, &r->entry)))
        py_tools_raised(ts);
unwind:
    {
        const region *handler = run_find_handler(r->code, failing);
        py_slot *base = py_frame_stack(frame);
        sp = py_slots_drop(handler ? base + handler->depth : base, sp);
        if (!handler) {
            if (UNLIKELY(py_tools_changed(ts, &r->entry)))
                py_tools_unwound(ts);
            r->sp = sp;
            return RUN_ERROR;
        }
        if (handler->lasti) {
            PyObject *lasti = PyLong_FromLong(py_frame_lasti(frame));
            if (!lasti)
                goto unwind;
            PUSH(lasti);
        }
        PUSH(py_take_raised());
        pc = code_insns + handler->target;
        if (UNLIKELY(py_tools_changed(ts, &r->entry)))
            goto tools_here;
        DISPATCH();
    }
}

#undef SLOT
#undef SET_SLOT
#undef CONST
#undef NAME
#undef ARG
#undef EXTRA
#undef PUSH
#undef POP
#undef TOP
#undef SET_TOP
#undef PEEK
#undef DROP_TO
#undef LOCALS
#undef GLOBALS
#undef BUILTINS
#undef OP
#undef DISPATCH
#undef NEXT
#undef FAIL
#undef NEXT_QUIET
#undef NEXT_AFTER_CALL
#undef JUMP
