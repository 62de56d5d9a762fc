// CPython's own frames: their fields by name, and how an eval function takes a frame, runs it and
// leaves it. This header hides all differences between versions.
#pragma once

#include "src/py/py.h"
#include "src/py/slot.h"

typedef _PyInterpreterFrame py_frame;

// What an eval function keeps on the C stack while it runs one frame.
typedef struct py_entry {
#if PY_VERSION_HEX < 0x030d0000
    _PyCFrame cframe;
#endif
    uint64_t tools; // version of the tools that were on when the frame was entered
    int charged;    // what was taken from the budget for evals started by C code (3.12 on)
} py_entry;

// --- fields ---

static inline PyCodeObject *py_frame_code(const py_frame *f) {
#if PY_VERSION_HEX >= 0x030d0000
    return (PyCodeObject *)f->f_executable;
#else
    return f->f_code;
#endif
}

// The function that was called. Borrowed from the frame.
static inline PyObject *py_frame_function(const py_frame *f) {
#if PY_VERSION_HEX >= 0x030c0000
    return f->f_funcobj;
#else
    return (PyObject *)f->f_func;
#endif
}

// Takes the reference to `function`; the frame's globals and builtins are that function's.
static inline void py_frame_set_function(py_frame *f, PyObject *function) {
    PyObject *old = py_frame_function(f);
#if PY_VERSION_HEX >= 0x030c0000
    f->f_funcobj = function;
#else
    f->f_func = (PyFunctionObject *)function;
#endif
    f->f_globals = ((PyFunctionObject *)function)->func_globals;
    f->f_builtins = ((PyFunctionObject *)function)->func_builtins;
    Py_DECREF(old);
}

static inline _Py_CODEUNIT *py_frame_units(const py_frame *f) {
    return _PyCode_CODE(py_frame_code(f));
}

// The slots: locals, cells and free variables first, then the value stack.
static inline py_slot *py_frame_slots(py_frame *f) {
    return (py_slot *)f->localsplus;
}

static inline py_slot *py_frame_stack(py_frame *f) {
    return py_frame_slots(f) + py_frame_code(f)->co_nlocalsplus;
}

// What a slot holds, by its number. Borrowed, or NULL.
static inline PyObject *py_frame_get(py_frame *f, Py_ssize_t slot) {
    return py_slot_get(&py_frame_slots(f)[slot]);
}

static inline PyObject *py_frame_globals(const py_frame *f) {
    return f->f_globals;
}

static inline PyObject *py_frame_builtins(const py_frame *f) {
    return f->f_builtins;
}

// NULL for a frame whose variables are all slots.
static inline PyObject *py_frame_locals(const py_frame *f) {
    return f->f_locals;
}

// Takes the reference.
static inline void py_frame_set_locals(py_frame *f, PyObject *locals) {
    Py_XSETREF(f->f_locals, locals);
}

// The frame object, if somebody has asked for it. Borrowed, or NULL.
static inline PyFrameObject *py_frame_object(const py_frame *f) {
    return f->frame_obj;
}

// Takes the reference, or NULL. The old reference is not dropped.
static inline void py_frame_put_object(py_frame *f, PyFrameObject *object) {
    f->frame_obj = object;
}

// The frame of the caller. Python code may be unable to see it.
static inline py_frame *py_frame_caller(const py_frame *f) {
    return f->previous;
}

static inline bool py_frame_in_generator(const py_frame *f) {
    return f->owner == FRAME_OWNED_BY_GENERATOR;
}

// Sets the pointer that tracebacks, f_lineno and "has this frame begun" read: to the unit that
// executes.
static inline void py_frame_set_executing(py_frame *f, _Py_CODEUNIT *unit) {
#if PY_VERSION_HEX >= 0x030d0000
    f->instr_ptr = unit;
#else
    f->prev_instr = unit;
#endif
}

// Sets the unit that a frame at rest runs next.
static inline void py_frame_set_next(py_frame *f, long unit) {
    py_frame_set_executing(f, py_frame_units(f) + unit - (PY_VERSION_HEX >= 0x030d0000 ? 0 : 1));
}

static inline long py_frame_next(const py_frame *f) {
#if PY_VERSION_HEX >= 0x030d0000
    return f->instr_ptr - py_frame_units(f);
#else
    return f->prev_instr + 1 - py_frame_units(f);
#endif
}

// The unit at which an exception thrown into a frame at rest is looked up: the one that ran last.
static inline long py_frame_last(const py_frame *f) {
    return py_frame_next(f) - 1;
}

// The offset that CPython pushes for handlers with `lasti`, and that RERAISE puts back.
static inline long py_frame_lasti(const py_frame *f) {
#if PY_VERSION_HEX >= 0x030d0000
    return f->instr_ptr - py_frame_units(f);
#else
    return f->prev_instr - py_frame_units(f);
#endif
}

// Whether a local variable lies in a cell, its own or one of an enclosing function.
static inline bool py_is_cell_slot(PyCodeObject *co, int index) {
    return _PyLocals_GetKind(co->co_localspluskinds, index) & (CO_FAST_CELL | CO_FAST_FREE);
}

// Whether somebody holds the frame object, and so can see the frame's lines and variables.
static inline bool py_frame_seen(const py_frame *f) {
    return f->frame_obj && Py_REFCNT(f->frame_obj) > 1;
}

static inline bool py_frame_incomplete(py_frame *f) {
    return _PyFrame_IsIncomplete(f);
}

// Only a frame at rest has a depth. A running frame has -1, which keeps the collector out.
static inline py_slot *py_frame_stack_pointer(py_frame *f) {
    return py_frame_slots(f) + f->stacktop;
}

static inline void py_frame_set_stack_pointer(py_frame *f, py_slot *sp) {
    f->stacktop = (int)(sp - py_frame_slots(f));
}

static inline void py_frame_set_running(py_frame *f) {
    f->stacktop = -1;
}

static inline PyGenObject *py_frame_generator(py_frame *f) {
    return _PyFrame_GetGenerator(f);
}

// The code of a generator, even if the generator has ended. Borrowed.
static inline PyCodeObject *py_generator_code(PyGenObject *gen) {
#if PY_VERSION_HEX >= 0x030c0000
    return py_frame_code((py_frame *)gen->gi_iframe);
#else
    return gen->gi_code;
#endif
}

// --- running a frame ---

static inline py_frame *py_current_frame(PyThreadState *ts) {
#if PY_VERSION_HEX >= 0x030d0000
    return ts->current_frame;
#else
    return ts->cframe->current_frame;
#endif
}

static inline void py_set_current_frame(PyThreadState *ts, py_frame *f) {
#if PY_VERSION_HEX >= 0x030d0000
    ts->current_frame = f;
#else
    ts->cframe->current_frame = f;
#endif
}

// Puts the frame on top of the thread's frames and counts it for the recursion limit; with `native`
// also for the limit on evals that C code starts. -1 with RecursionError: the frame is on top all
// the same, and the caller must leave it by py_leave_ended.
int py_enter(PyThreadState *ts, py_frame *f, py_entry *e, bool native);

// Leaves a frame that has returned or that an exception leaves. Its stack is empty up to sp. Clears
// and pops the frame in versions whose eval function has to do that.
void py_leave_ended(PyThreadState *ts, py_frame *f, py_entry *e, py_slot *sp);

// Leaves the frame of a generator that yields. `how` is the version's argument of YIELD_VALUE.
void py_leave_suspended(PyThreadState *ts, py_frame *f, py_entry *e, py_slot *sp, int how);

// Takes a frame at rest from the top of the thread's frames, and leaves its contents alone, so that
// another eval function can enter the frame.
void py_leave_handed_over(PyThreadState *ts, py_frame *f, py_entry *e);

// Discards a frame that was handed over and then emptied. Clears and pops it in versions whose eval
// function has to do that.
void py_discard(PyThreadState *ts, py_frame *f);

// Ends a generator at rest whose slots are empty: no code of the generator runs any more.
void py_sever(PyGenObject *gen, py_frame *f);

// Runs a frame in CPython's own eval, from the instruction at which it stands. `inner`: without a
// hook CPython would not have started a second eval for this call, so it does not count as C
// recursion.
PyObject *py_eval_default(PyThreadState *ts, py_frame *f, int throwing, bool inner);

// How many more frames the thread's recursion limit allows.
static inline int py_recursion_left(const PyThreadState *ts) {
#if PY_VERSION_HEX >= 0x030c0000
    return ts->py_recursion_remaining;
#else
    return ts->recursion_remaining;
#endif
}

// Lets the thread make more frames before it reaches the recursion limit, or fewer.
static inline void py_give_recursion(PyThreadState *ts, int frames) {
#if PY_VERSION_HEX >= 0x030c0000
    ts->py_recursion_remaining += frames;
#else
    ts->recursion_remaining += frames;
#endif
}

// A Python function that does nothing and that only CPython runs; `file` is the file name by which
// hooks know such code. 0, or -1 with an exception.
int py_setup_helper(PyObject *file);
int py_call_helper(void);

// --- the eval breaker ---

static inline bool py_poll_wanted(PyThreadState *ts) {
#if PY_VERSION_HEX >= 0x030d0000
    return (_Py_atomic_load_uintptr_relaxed(&ts->eval_breaker) & _PY_EVAL_EVENTS_MASK) != 0;
#else
    return _Py_atomic_load_relaxed(&ts->interp->ceval.eval_breaker) != 0;
#endif
}

// Does what CPython does at the eval breaker: signals, pending calls, collection, other threads'
// turns, exceptions that other threads sent.
int py_poll(PyThreadState *ts);

// --- tools (sys.settrace, sys.setprofile, sys.monitoring) ---

// Whether some tool wants events of this code now. CPython runs such frames.
bool py_tools_on(PyThreadState *ts, PyCodeObject *code);

// Whether some tool watches this thread, or this code, so that a call of the code may make events.
// To be checked before each compiled call.
#if PY_VERSION_HEX >= 0x030c0000
bool py_thread_watched(PyThreadState *ts, PyCodeObject *code);
#else
static inline bool py_thread_watched(PyThreadState *ts, PyCodeObject *code) {
    (void)code;
    return ts->cframe->use_tracing != 0;
}
#endif

// Whether tools may have come or gone since the frame was entered.
static inline bool py_tools_changed(PyThreadState *ts, const py_entry *e) {
#if PY_VERSION_HEX >= 0x030d0000
    return ts->interp->ceval.instrumentation_version != e->tools;
#elif PY_VERSION_HEX >= 0x030c0000
    return ts->interp->monitoring_version != e->tools;
#else
    (void)ts;
    return e->cframe.use_tracing != 0;
#endif
}

// To be called after py_tools_changed, if the change does not concern the frame.
static inline void py_tools_seen(PyThreadState *ts, py_entry *e) {
#if PY_VERSION_HEX >= 0x030d0000
    e->tools = ts->interp->ceval.instrumentation_version;
#elif PY_VERSION_HEX >= 0x030c0000
    e->tools = ts->interp->monitoring_version;
#else
    (void)ts;
    e->tools = 0;
#endif
}

// To be called if a frame is entered with an exception that the tools have not heard of.
static inline void py_tools_unseen(py_entry *e) {
    e->tools = ~e->tools;
}

// Whether the code still has events of tools that are gone. Only the code's RESUME removes them.
bool py_tools_stale(PyThreadState *ts, PyCodeObject *code);

// A call raised, and a tool has been set meanwhile, before this frame was handed over to CPython.
// These report the two events that CPython would have reported for the frame (sys.settrace,
// sys.setprofile).
void py_tools_raised(PyThreadState *ts);
void py_tools_unwound(PyThreadState *ts);

// --- the C stack ---

extern __attribute__((tls_model("initial-exec"))) _Thread_local char *py_stack_floor;
void py_stack_find(void);

// Whether the thread's C stack is too full to start a frame on it. The rest is kept free for native
// code, which counts its depth but does not look at the stack.
static inline bool py_stack_short(void) {
    char *here = __builtin_frame_address(0);
    if (__builtin_expect(!py_stack_floor, 0))
        py_stack_find();
    return here < py_stack_floor;
}

// Evaluates a frame on a fresh C stack. CPython itself needs no C stack for calls between Python
// functions. An eval hook does, so deep recursion continues on new pieces of stack.
PyObject *py_stack_extend(_PyFrameEvalFunction eval, PyThreadState *ts, py_frame *f, int throwing);
