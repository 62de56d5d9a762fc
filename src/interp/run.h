// One frame being run by the interpreter, and what each thread that interprets keeps.
#pragma once

#include "src/base/status.h"

#include "src/py/frame.h"
#include "src/py/py.h"

#include "src/code/code.h"

#include "src/interp/result.h"

// How a run of the loop ended.
typedef enum run_end {
    RUN_RETURN,    // `value` is returned; the stack is empty
    RUN_YIELD,     // `value` is yielded; the stack is what stays in the generator
    RUN_ERROR,     // an exception leaves the frame; the stack is empty
    RUN_STOP,      // the countdown reached zero; the frame is at rest at a boundary
    RUN_HAND_OVER, // CPython must go on from here; the frame is at rest at a boundary
    RUN_ABANDON,   // a frame above was abandoned; stack and pointer are as at the call
} run_end;

typedef struct image image;

// The slots of a caller whose references the callee's frame takes over once it exists, so that an
// argument dies when the callee drops it. CPython's own calls between Python functions do the same.
typedef struct lent_slots {
    PyObject *callee; // function whose frame is expected; borrowed from the slots; NULL for none
    py_slot *slots;
    Py_ssize_t count;
    bool counted; // the caller's boundaries are counted, so the callee's may be, too
} lent_slots;

// What happens when a countdown of boundaries is used up.
typedef enum stop_mode {
    STOP_NEVER, // nothing counts
    STOP_TAKE,  // images of the frame and its callers are taken, and the frames abandoned
    STOP_HOP,   // the frame goes on in a fresh one, in either engine
} stop_mode;

// The state of the interpreter in one thread.
typedef struct interp_thread {
    lent_slots lent;
    stop_mode stop;
    bool abandoning;  // frames unwind without running code, down to who asked for that
    long left;        // STOP_TAKE, and hopping once: boundaries left, in all frames
    long every;       // STOP_HOP: boundaries between hops, on average; 0: once, by `left`
    uint64_t random;  // STOP_HOP: state of the generator
    image *taken;     // strong; the innermost image of an abandoned chain
    image *outermost; // borrowed from that chain; its last one
    struct resume_request
        *put_back; // the next fresh frame of this request's code is filled from it
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
    long *countdown;     // boundaries left before RUN_STOP, or NULL: not counted
    long failing;        // where a thrown exception is looked up
    bool moved;          // the frame was filled from an image: who did that takes the next one, too
    bool to_cpython;     // a stop hands the frame to CPython
    struct world *world; // the trace it belongs to; NULL in the plain build
    struct names *globals, *builtins; // a trace's view of the frame's namespaces; NULL until needed
    struct run *below;                // the frame of the same trace that this one was called from
    uint64_t started;                 // when its instruction began, by the trace's clock
    run_result result;
    PyObject *made_object; // RUN_INIT: borrowed from the caller's C stack
    int level;             // of a frame that was there before the trace: how far below; else -1
    image *ready; // strong: where it goes on if the trace breaks in what RUN_OPERATOR calls
    PyObject *ready_outer; // borrowed: and what the frame below handles
    bool waits;            // it stands on its call, and the trace has not come back to it
    bool real_end;         // the trace breaks before it returns
    py_entry entry;
} run;

// The callee's frame exists: what its caller's slots hold is let go. True if this is the frame that
// the caller's instruction asked for, with nothing of anybody's in between.
static inline bool run_take_lent(interp_thread *t, py_frame *f) {
    if (t->lent.callee == NULL)
        return false;
    bool expected = t->lent.callee == py_frame_function(f);
    t->lent.callee = NULL;
    if (!expected)
        return false;
    for (Py_ssize_t i = 0; i < t->lent.count; i++)
        py_slot_set(&t->lent.slots[i], NULL);
    return true;
}
