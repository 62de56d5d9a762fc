// One frame that the interpreter runs, and the interpreter's state in each thread.
#pragma once

#include "src/base/status.h"

#include "src/py/frame.h"
#include "src/py/py.h"

#include "src/code/code.h"

#include "src/interp/result.h"

// How a run of the loop ended.
typedef enum run_end {
    RUN_RETURN,    // `value` is returned; the stack is empty
    RUN_YIELD,     // `value` is yielded; the stack stays in the generator
    RUN_ERROR,     // an exception leaves the frame; the stack is empty
    RUN_STOP,      // the countdown reached zero; the frame is at rest at a boundary
    RUN_HAND_OVER, // CPython must go on; the frame is at rest at a boundary
    RUN_ABANDON,   // a frame above was abandoned; stack and pointer are those of the call
} run_end;

typedef struct image image;

// Slots of a caller. Once the callee's frame exists, it takes over the references in them, so that
// an argument dies when the callee drops it. CPython's own calls between Python functions do the
// same.
typedef struct lent_slots {
    PyObject *callee; // function whose frame is expected; borrowed from the slots; NULL for none
    py_slot *slots;
    Py_ssize_t count;
    bool counted; // the caller's boundaries are counted, so the callee's may be counted, too
} lent_slots;

// What happens when a countdown of boundaries ends.
typedef enum stop_mode {
    STOP_NEVER, // boundaries are not counted
    STOP_TAKE,  // images of the frame and its callers are taken, and the frames are abandoned
    STOP_HOP,   // the frame goes on as a fresh frame, in our interpreter or in CPython
} stop_mode;

// The state of the interpreter in one thread.
typedef struct interp_thread {
    lent_slots lent;
    stop_mode stop;
    bool abandoning;  // frames unwind without running code, down to the C function that abandoned
                      // them
    long left;        // STOP_TAKE, or hopping once: the boundaries left, in all frames together
    long every;       // STOP_HOP: boundaries between hops, on average; 0: once, by `left`
    uint64_t random;  // STOP_HOP: state of the generator
    image *taken;     // strong; the innermost image of an abandoned chain
    image *outermost; // borrowed from that chain; its last image
    struct resume_request
        *put_back; // the next fresh frame of this request's code is filled from the request
} interp_thread;

extern __attribute__((tls_model("initial-exec"))) _Thread_local interp_thread interp_here;

typedef struct run {
    PyThreadState *ts;
    interp_thread *thread;
    py_frame *frame;
    const code *code;
    py_slot *sp;
    const insn *pc;
    PyObject *value;     // strong, set by RUN_RETURN and RUN_YIELD
    int how;             // argument of YIELD_VALUE
    long *countdown;     // boundaries left before RUN_STOP; NULL: they are not counted
    long failing;        // the unit at which a handler for a thrown exception is looked up
    bool moved;          // the frame was filled from an image; the function that filled it also
                         // takes the next image
    bool to_cpython;     // a stop hands the frame to CPython
    struct world *world; // the trace that runs it; NULL in the plain build
    struct names *globals, *builtins; // a trace's view of the frame's namespaces; NULL until needed
    struct run *below;                // the frame of the same trace that called this one
    uint64_t started;                 // when its current instruction began, by the trace's clock
    run_result result;
    PyObject *made_object; // RUN_INIT: borrowed from the caller's C stack
    int level;             // of a frame that existed before the trace: how far below the first one;
                           // else -1
    image *ready; // strong: where it goes on if the trace breaks in a frame called by RUN_OPERATOR
    PyObject *ready_outer; // borrowed: the exception that the frame below handles then
    bool waits;            // it stands on its call; the trace has not returned to it yet
    bool real_end;         // the trace breaks before this frame returns
    py_entry entry;
} run;

// Drops the references in the caller's slots, now that the callee's frame exists. True if this is
// the frame that the caller's instruction called, with no other code between them.
static inline bool run_take_lent(interp_thread *t, py_frame *f) {
    if (!t->lent.callee)
        return false;
    bool expected = t->lent.callee == py_frame_function(f);
    t->lent.callee = NULL;
    if (!expected)
        return false;
    for (Py_ssize_t i = 0; i < t->lent.count; i++)
        py_slot_set(&t->lent.slots[i], NULL);
    return true;
}
