// CPython's own frames: their fields by name, and the protocol by which an eval function takes a
// frame, runs it and leaves it. Every difference between versions ends here.
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

// Takes the reference, or NULL; what was there is not let go.
static inline void py_frame_put_object(py_frame *f, PyFrameObject *object) {
    f->frame_obj = object;
}

// The caller's, which may be one that Python code does not see.
static inline py_frame *py_frame_caller(const py_frame *f) {
    return f->previous;
}

static inline bool py_frame_in_generator(const py_frame *f) {
    return f->owner == FRAME_OWNED_BY_GENERATOR;
}

// Tracebacks, f_lineno and "has this frame begun" read the pointer: it stands on the unit that
// executes.
static inline void py_frame_set_executing(py_frame *f, _Py_CODEUNIT *unit) {
#if PY_VERSION_HEX >= 0x030d0000
    f->instr_ptr = unit;
#else
    f->prev_instr = unit;
#endif
}

// A frame at rest: the unit that runs next.
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

// The offset that handlers with `lasti` get pushed, and RERAISE puts back.
static inline long py_frame_lasti(const py_frame *f) {
#if PY_VERSION_HEX >= 0x030d0000
    return f->instr_ptr - py_frame_units(f);
#else
    return f->prev_instr - py_frame_units(f);
#endif
}

// Whether a local is kept in a cell, its own or one of an enclosing function.
static inline bool py_is_cell_slot(PyCodeObject *co, int index) {
    return _PyLocals_GetKind(co->co_localspluskinds, index) & (CO_FAST_CELL | CO_FAST_FREE);
}

// Someone has the frame object, and will see its lines and variables.
static inline bool py_frame_seen(const py_frame *f) {
    return f->frame_obj != NULL && Py_REFCNT(f->frame_obj) > 1;
}

static inline bool py_frame_incomplete(py_frame *f) {
    return _PyFrame_IsIncomplete(f);
}

// The depth is only kept in a frame at rest; -1 keeps the collector out of a running one.
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

// Also of one that has ended. Borrowed.
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

// Links the frame on top and charges the recursion limit; with `native` also the limit on evals
// that C code starts. -1 with RecursionError: the frame was linked all the same, and must be left
// by py_leave_ended.
int py_enter(PyThreadState *ts, py_frame *f, py_entry *e, bool native);

// The frame has returned or an exception leaves it: its stack is empty up to sp. Cleared and popped
// where the version's eval function has to do that.
void py_leave_ended(PyThreadState *ts, py_frame *f, py_entry *e, py_slot *sp);

// The generator's frame yields; `how` is the version's argument of YIELD_VALUE.
void py_leave_suspended(PyThreadState *ts, py_frame *f, py_entry *e, py_slot *sp, int how);

// Unlinks a frame at rest without touching what it holds, so that another eval function may enter
// it.
void py_leave_handed_over(PyThreadState *ts, py_frame *f, py_entry *e);

// A frame that was handed over and then emptied: cleared and popped where that is the eval's to do.
void py_discard(PyThreadState *ts, py_frame *f);

// A generator at rest whose slots are empty: it has ended, and no code of its own runs any more.
void py_sever(PyGenObject *gen, py_frame *f);

// Runs a frame in CPython's own eval, from wherever it stands. With `inner` the call is one that
// CPython would not have started a second eval for, had there been no hook: not charged as C
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

// Raises what is left of the thread's recursion limit, or lowers it.
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

// Signals, pending calls, collection, other threads' turn, exceptions sent by other threads.
int py_poll(PyThreadState *ts);

// --- tools (sys.settrace, sys.setprofile, sys.monitoring) ---

// Whether some tool wants events of this code now. Such frames are CPython's to run.
bool py_tools_on(PyThreadState *ts, PyCodeObject *code);

// Whether some tool watches this thread, or this code, so that a call of it may make events. Asked
// before each compiled call.
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

// After py_tools_changed turned out not to concern the frame.
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

// A frame is entered with an exception: tools that came before have not heard of it.
static inline void py_tools_unseen(py_entry *e) {
    e->tools = ~e->tools;
}

// Whether the code still carries events of tools that are gone; only its RESUME cleans that up.
bool py_tools_stale(PyThreadState *ts, PyCodeObject *code);

// A tool came with an exception out of a call: this frame has not been handed over yet, and the two
// events that CPython would have reported of it are reported here (sys.settrace, sys.setprofile).
void py_tools_raised(PyThreadState *ts);
void py_tools_unwound(PyThreadState *ts);

// --- the C stack ---

extern __attribute__((tls_model("initial-exec"))) _Thread_local char *py_stack_floor;
void py_stack_find(void);

// Whether so much of the thread's C stack is used that a frame must not be started on it. What is
// kept free is for native code below, which counts its depth but does not look at the stack.
static inline bool py_stack_short(void) {
    char *here = __builtin_frame_address(0);
    if (__builtin_expect(py_stack_floor == NULL, 0))
        py_stack_find();
    return here < py_stack_floor;
}

// Evaluates a frame on a fresh C stack. CPython itself runs calls between Python functions without
// using any; an eval hook cannot, so deep recursion goes on in new pieces of stack.
PyObject *py_stack_extend(_PyFrameEvalFunction eval, PyThreadState *ts, py_frame *f, int throwing);
