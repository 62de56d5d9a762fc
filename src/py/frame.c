// How an eval function takes a frame and leaves it, in each version: the part of
// _PyEval_EvalFrameDefault's beginning and end that its callers and the rest of CPython can see.
#include "src/py/frame.h"

#include "src/py/raised.h"

// --- entering ---

#if PY_VERSION_HEX < 0x030c0000

int py_enter(PyThreadState *ts, py_frame *f, py_entry *e, bool native) {
    (void)native; // one limit counts both here
    _PyCFrame *previous = ts->cframe;
    e->cframe.use_tracing = previous->use_tracing;
    e->cframe.previous = previous;
    e->cframe.current_frame = f;
    e->tools = 0;
    f->is_entry = true;
    f->previous = previous->current_frame;
    ts->cframe = &e->cframe;
    if (_Py_EnterRecursiveCallTstate(ts, "")) {
        // A refused entry is not charged, but leaving gives one back.
        ts->recursion_remaining--;
        return -1;
    }
    return 0;
}

void py_leave_handed_over(PyThreadState *ts, py_frame *f, py_entry *e) {
    (void)f;
    ts->recursion_remaining++;
    ts->cframe = e->cframe.previous;
    ts->cframe->use_tracing = e->cframe.use_tracing;
}

// The caller of the eval function clears the frame, and for a generator sees to its exception
// state.
void py_leave_ended(PyThreadState *ts, py_frame *f, py_entry *e, py_slot *sp) {
    py_frame_set_stack_pointer(f, sp);
    py_leave_handed_over(ts, f, e);
}

void py_leave_suspended(PyThreadState *ts, py_frame *f, py_entry *e, py_slot *sp, int how) {
    (void)how;
    py_frame_generator(f)->gi_frame_state = FRAME_SUSPENDED;
    py_leave_ended(ts, f, e, sp);
}

// The frame goes into its object, if someone holds that (take_ownership in Python/frame.c), or is
// let go.
void py_sever(PyGenObject *gen, py_frame *f) {
    PyFrameObject *object = f->frame_obj;
    gen->gi_frame_state = FRAME_CLEARED;
    f->previous = NULL;
    f->frame_obj = NULL;
    if (object && Py_REFCNT(object) > 1) {
        memcpy(object->_f_frame_data, f, (size_t)((char *)&f->localsplus[f->stacktop] - (char *)f));
        object->f_frame = (py_frame *)object->_f_frame_data;
        object->f_frame->owner = FRAME_OWNED_BY_FRAME_OBJECT;
        if (!PyObject_GC_IsTracked((PyObject *)object))
            PyObject_GC_Track(object);
        Py_DECREF(object);
        return;
    }
    Py_XDECREF(object);
    for (int i = 0; i < f->stacktop; i++)
        Py_XDECREF(f->localsplus[i]);
    Py_XDECREF(f->f_locals);
    Py_DECREF(f->f_func);
    Py_DECREF(f->f_code);
}

#else // 3.12 on

// What one eval takes from c_recursion_remaining: PY_EVAL_C_STACK_UNITS in Python/ceval.c.
#define EVAL_UNITS 2

// Calls between Python functions are not C recursion, though here they start an eval each: the C
// stack is watched by py_stack_short.
static int charge_native(PyThreadState *ts, py_entry *e) {
    e->charged = EVAL_UNITS;
    ts->c_recursion_remaining -= EVAL_UNITS;
    if (ts->c_recursion_remaining >= 0)
        return 0;
    return _Py_CheckRecursiveCall(ts, "") < 0 ? (ts->c_recursion_remaining--, -1) : 0;
}

static int charge_recursion(PyThreadState *ts) {
    if (ts->py_recursion_remaining-- > 0)
        return 0;
    if (ts->recursion_headroom) {
        if (ts->py_recursion_remaining < -50)
            Py_FatalError("Cannot recover from Python stack overflow.");
        return 0;
    }
    ts->recursion_headroom++;
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
    ts->recursion_headroom--;
    return -1;
}

static void link_frame(PyThreadState *ts, py_frame *f, py_entry *e) {
#if PY_VERSION_HEX < 0x030d0000
    e->cframe.previous = ts->cframe;
    f->previous = ts->cframe->current_frame;
    e->cframe.current_frame = f;
    ts->cframe = &e->cframe;
#else
    (void)e;
    f->previous = ts->current_frame;
    ts->current_frame = f;
#endif
}

// The frame stays readable: clearing it must not happen while the stack still shows it.
static void unlink_frame(PyThreadState *ts, py_frame *f, py_entry *e) {
    ts->py_recursion_remaining++;
    ts->c_recursion_remaining += e->charged;
#if PY_VERSION_HEX < 0x030d0000
    (void)f;
    ts->cframe = e->cframe.previous;
#else
    (void)e;
    ts->current_frame = f->previous;
#endif
}

int py_enter(PyThreadState *ts, py_frame *f, py_entry *e, bool native) {
    link_frame(ts, f, e);
    py_tools_seen(ts, e);
    e->charged = 0;
    if (native && charge_native(ts, e) < 0) {
        ts->py_recursion_remaining--;
        return -1;
    }
    return charge_recursion(ts);
}

void py_leave_handed_over(PyThreadState *ts, py_frame *f, py_entry *e) {
    unlink_frame(ts, f, e);
    f->previous = NULL;
}

void py_leave_suspended(PyThreadState *ts, py_frame *f, py_entry *e, py_slot *sp, int how) {
    PyGenObject *gen = py_frame_generator(f);
    py_frame_set_stack_pointer(f, sp);
#if PY_VERSION_HEX >= 0x030d0000
    gen->gi_frame_state = (int8_t)(FRAME_SUSPENDED + how);
    f->instr_ptr++;
#else
    (void)how;
    gen->gi_frame_state = FRAME_SUSPENDED;
#endif
    ts->exc_info = gen->gi_exc_state.previous_item;
    gen->gi_exc_state.previous_item = NULL;
    unlink_frame(ts, f, e);
    f->previous = NULL;
}

#if PY_VERSION_HEX >= 0x030d0000

static void clear_and_pop(PyThreadState *ts, py_frame *f) {
    _PyEval_FrameClearAndPop(ts, f);
}

#else // 3.12 keeps all of this to itself

// A frame object that outlives its frame gets a copy of it, and a link to the caller's frame
// object. CPython: take_ownership in Python/frame.c.
static void move_into_object(PyThreadState *ts, py_frame *f) {
    PyFrameObject *object = f->frame_obj;
    f->frame_obj = NULL;
    size_t size = (size_t)((char *)&f->localsplus[f->stacktop] - (char *)f);
    Py_INCREF(f->f_code);
    memcpy(object->_f_frame_data, f, size);
    py_frame *copy = (py_frame *)object->_f_frame_data;
    object->f_frame = copy;
    copy->owner = FRAME_OWNED_BY_FRAME_OBJECT;
    if (_PyFrame_IsIncomplete(copy))
        copy->prev_instr = _PyCode_CODE(copy->f_code) + copy->f_code->_co_firsttraceable;
    copy->previous = NULL;
    PyObject *raised = PyErr_GetRaisedException();
    object->f_back = PyThreadState_GetFrame(ts);
    PyErr_Clear();
    PyErr_SetRaisedException(raised);
    if (!PyObject_GC_IsTracked((PyObject *)object))
        PyObject_GC_Track(object);
    Py_DECREF(object);
}

static void clear_frame(PyThreadState *ts, py_frame *f) {
    if (f->frame_obj && Py_REFCNT(f->frame_obj) > 1) {
        move_into_object(ts, f);
        return;
    }
    Py_CLEAR(f->frame_obj);
    for (int i = 0; i < f->stacktop; i++)
        Py_XDECREF(f->localsplus[i]);
    Py_XDECREF(f->f_locals);
    Py_DECREF(f->f_funcobj);
}

static void free_chunk(_PyStackChunk *chunk) {
    PyObjectArenaAllocator arenas;
    PyObject_GetArenaAllocator(&arenas);
    arenas.free(arenas.ctx, chunk, chunk->size);
}

static void pop_frame(PyThreadState *ts, py_frame *f) {
    PyObject **base = (PyObject **)f;
    _PyStackChunk *chunk = ts->datastack_chunk;
    if (base != &chunk->data[0]) {
        ts->datastack_top = base;
        return;
    }
    _PyStackChunk *previous = chunk->previous;
    ts->datastack_top = &previous->data[previous->top];
    ts->datastack_chunk = previous;
    ts->datastack_limit = (PyObject **)((char *)previous + previous->size);
    free_chunk(chunk);
}

// c_recursion_remaining is lowered while user code (finalizers) may run, as CPython does.
static void clear_and_pop(PyThreadState *ts, py_frame *f) {
    if (f->owner == FRAME_OWNED_BY_THREAD) {
        ts->c_recursion_remaining--;
        clear_frame(ts, f);
        Py_DECREF(f->f_code);
        ts->c_recursion_remaining++;
        pop_frame(ts, f);
        return;
    }
    PyGenObject *gen = py_frame_generator(f);
    gen->gi_frame_state = FRAME_CLEARED;
    ts->exc_info = gen->gi_exc_state.previous_item;
    gen->gi_exc_state.previous_item = NULL;
    ts->c_recursion_remaining--;
    clear_frame(ts, f);
    ts->c_recursion_remaining++;
    f->previous = NULL;
}

#endif

void py_leave_ended(PyThreadState *ts, py_frame *f, py_entry *e, py_slot *sp) {
    py_frame_set_stack_pointer(f, sp);
    unlink_frame(ts, f, e);
    clear_and_pop(ts, f);
}

// A frame whose object someone holds stays, as close() leaves one that has not begun.
void py_sever(PyGenObject *gen, py_frame *f) {
    if (f->frame_obj) {
        gen->gi_frame_state = FRAME_COMPLETED;
        return;
    }
    gen->gi_frame_state = FRAME_CLEARED;
    Py_DECREF(f->f_funcobj);
}

#endif // 3.12 on

void py_discard(PyThreadState *ts, py_frame *f) {
#if PY_VERSION_HEX >= 0x030c0000
    clear_and_pop(ts, f);
#else
    (void)ts;
    (void)f;
#endif
}

PyObject *py_eval_default(PyThreadState *ts, py_frame *f, int throwing, bool inner) {
#if PY_VERSION_HEX >= 0x030c0000
    int units = inner ? EVAL_UNITS : 0;
    ts->c_recursion_remaining += units;
    PyObject *result = _PyEval_EvalFrameDefault(ts, f, throwing);
    ts->c_recursion_remaining -= units;
    return result;
#else
    (void)inner;
    return _PyEval_EvalFrameDefault(ts, f, throwing);
#endif
}

// --- a function for CPython alone ---

static PyObject *helper; // strong; does nothing, but its RESUME polls

int py_setup_helper(PyObject *file) {
    PyObject *code = Py_CompileStringObject("def helper(): pass", file, Py_file_input, NULL, -1);
    PyObject *names = PyDict_New();
    PyObject *done = code && names ? PyEval_EvalCode(code, names, names) : NULL;
    if (done)
        helper = Py_XNewRef(PyDict_GetItemString(names, "helper"));
    Py_XDECREF(done);
    Py_XDECREF(names);
    Py_XDECREF(code);
    return helper ? 0 : -1;
}

// The frame it takes is not the program's: the recursion limit does not count it.
int py_call_helper(void) {
    PyThreadState *ts = PyThreadState_Get();
    py_give_recursion(ts, 1);
    PyObject *none = PyObject_CallNoArgs(helper);
    py_give_recursion(ts, -1);
    Py_XDECREF(none);
    return none ? 0 : -1;
}

// --- the eval breaker ---

#if PY_VERSION_HEX >= 0x030d0000

int py_poll(PyThreadState *ts) {
    return _Py_HandlePending(ts);
}

#else

// What CPython found to raise must not show the helper's frame, which is the traceback's first
// entry.
static void trim_traceback(void) {
    PyObject *raised = py_take_raised();
    PyTracebackObject *first = (PyTracebackObject *)PyException_GetTraceback(raised);
    if (first)
        PyException_SetTraceback(raised, first->tb_next ? (PyObject *)first->tb_next : Py_None);
    Py_XDECREF(first);
    py_set_raised(raised);
}

// _Py_HandlePending is not exported. Signals (and on 3.12 collection) and pending calls have public
// functions. What is left (the other threads' turn, an exception that one of them sent, lowering
// the breaker) CPython does by itself at the RESUME of a small function that it evaluates.
int py_poll(PyThreadState *ts) {
    if (PyErr_CheckSignals() < 0)
        return -1;
    if (_Py_atomic_load_relaxed(&ts->interp->ceval.pending.calls_to_do) &&
        Py_MakePendingCalls() < 0)
        return -1;
    if (!py_poll_wanted(ts))
        return 0;
    if (py_call_helper() < 0) {
        trim_traceback();
        return -1;
    }
    return 0;
}

#endif
