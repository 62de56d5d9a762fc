// Images: what a frame holds at an instruction boundary, taken out of it and put into a fresh real
// frame later. A chain of images (inner to outer, by `caller`) is put back outermost first, so that
// the frames are linked as they were.
#pragma once

#include "src/py/frame.h"

#include "src/code/code.h"

#include "src/interp/run.h"

struct image {
    PyObject_VAR_HEAD      // size: number of slots
    PyCodeObject *code;    // strong; a function's code may be replaced while it runs
    PyObject *function;    // strong; NULL once it is spent
    PyObject *locals;      // strong; the namespace of a class body or module, else NULL
    PyObject *handled;     // strong; exception of the innermost active handler, else NULL
    PyFrameObject *object; // strong; the frame object moves along when a frame hops, else NULL
    PyObject *generator;   // strong; the severed generator that the image was taken of, else NULL
    struct image *caller;  // strong; image of the frame that called this one, else NULL
    uint32_t unit;         // awaiting: unit of the call; else where the next instruction starts
    bool awaiting;         // the instruction's operands are gone, its value is to come
    bool init;             // what it awaits is an __init__'s None; its value lies on the stack
    bool by_operator;      // it stands before an operator, which calls the frame that it awaits
    bool spent;            // what it held was put back
    bool native;           // CPython runs it from the next instruction on
    PyObject *raises;      // strong: the instruction raises this instead of being run; or NULL
    int8_t state;          // of the generator: created, or how it is suspended
    int outer_handled;     // stack slot that gets the exception the new caller handles, or -1
    PyObject *slots[1]; // strong; locals, cells and free variables, then the stack. NULL: unbound
};

// Who runs a frame that was put back: our loop, CPython's own eval, or whoever has set image_drive.
typedef enum engine { ENGINE_STATOR, ENGINE_CPYTHON, ENGINE_DRIVEN } engine;

// How a chain is to go on. Filled in by image_resume's caller.
typedef struct resume_request {
    image **chain; // outermost first
    int depth;     // frame to be put back next
    int count;
    engine engine;
    long *countdown;     // for the innermost frame run by ours, or NULL
    PyObject *value;     // borrowed; for an innermost image that awaits one
    PyObject *exception; // borrowed; thrown there instead
    PyCodeObject *code;  // of the frame expected now
    PyObject *function;  // borrowed: of that, if it is called by someone else; or NULL
    bool collecting;     // collection is off until the frame is filled
    void *waiting;       // the driver's own, about the frame below the next one; NULL for the first
} resume_request;

// Where a frame was put back.
typedef struct image_place {
    uint32_t unit;
    bool awaiting, init, by_operator, native; // see image
    PyObject *raises;                         // borrowed from the image
} image_place;
static inline image_place image_place_of(const image *i) {
    return (image_place){i->unit, i->awaiting, i->init, i->by_operator, i->native, i->raises};
}

extern PyTypeObject image_type;
extern PyObject *image_abandoned_error; // what unwinds abandoned frames; never seen by Python code
int image_setup(PyObject *module);

// Whether the current exception is the one that unwinds abandoned frames: a finalizer that runs
// meanwhile has exceptions of its own.
static inline bool image_is_abandoning(void) {
    return PyErr_Occurred() == (PyObject *)Py_TYPE(image_abandoned_error);
}

// Takes what a frame at rest holds; its slots are empty afterwards, and the handled exception is
// the caller's again. With `keep_object` a frame object moves into the image, too. NULL with an
// exception and the frame untouched.
image *image_take(PyThreadState *ts, py_frame *f, const code *c, const insn *pc, bool keep_object);

// Continues a chain in fresh frames. New reference to what the outermost frame returns, or NULL
// with its exception. The images are spent. The hook must be installed and call image_arrived.
PyObject *image_resume(image *innermost, engine engine, PyObject *value, PyObject *exception,
                       long *countdown);

// The hook's part: whether a fresh frame is the one to be filled, and filling and running it.
static inline bool image_expects(const interp_thread *t, py_frame *f);
PyObject *image_arrived(PyThreadState *ts, py_frame *f);

// An image can be made again from its parts: the template has its code and whatever is no
// reference. New references, NULL with an exception; `slots` are as many as the template's, each
// borrowed or NULL.
image *image_template(const image *i);
image *image_from_template(image *t, PyObject *function, PyObject *const *slots, PyObject *handled,
                           image *caller);

// What a frame holds at `pc`, its stack up to `sp` and `extra` (borrowed, may be NULL) on top; the
// frame keeps all of it. *handled is the exception of the innermost handler, borrowed; that of the
// frame below afterwards. Awaiting, `pc` is the instruction that is being executed. NULL with an
// exception.
image *image_look(py_frame *f, code *c, const insn *pc, py_slot *sp, PyObject *extra, bool awaiting,
                  PyObject **handled);

// Where a frame's outermost active handler has put aside what the caller handles; NULL if none is
// active.
py_slot *image_outer_handled(py_frame *f, code *c, const insn *pc);
// The exception that the innermost handler of a frame at rest handles, borrowed; NULL if none is
// active. -1 with an exception.
int image_handled(PyThreadState *ts, code *c, const insn *pc, PyObject **handled);
// A frame at rest ends: what its handlers handle is handled no more.
void image_leave_handlers(PyThreadState *ts, py_frame *f, code *c, const insn *pc);

// The parts of putting a chain back, for who drives it. Fills in `chain` (to be freed) and `count`;
// -1 with an exception.
int image_request(resume_request *q, image *innermost);
// The value of the frame above one that awaits it, which is linked and stands on its call
// meanwhile.
PyObject *image_above(PyThreadState *ts, py_frame *f, resume_request *q, uint32_t unit);
// The next frame will be called by an operator of one that stands before it. Whether it came.
void image_expect(resume_request *q);
bool image_came(resume_request *q);
// The value is pushed (an __init__'s object lies there already; takes the reference), and the frame
// stands at the next instruction. -1 with an exception that is to be raised at `unit`.
int image_give(py_frame *f, uint32_t unit, bool init, PyObject *value);

// Puts what an image holds into a frame of its code; the image is spent. `info` is where the
// frame's handlers keep the exception they handle.
void image_fill(image *i, _PyErr_StackItem *info, py_frame *f);

// Calls a function with None for every parameter that has to be given.
PyObject *image_call_with_dummies(PyObject *function);

// A generator that is suspended or not begun: its image, and the generator cleared without running
// its code. And the way back: a new generator, suspended at the same place.
image *image_of_generator(PyObject *generator);
PyObject *image_to_generator(image *i);

// The parts of this, for generators that are copied. The image of one that is suspended or not
// begun, and keeps all it has; NULL with an exception.
image *image_peek_generator(PyObject *generator);
// A function that makes generators of this one's code and names, and one that it made: without
// content, to be filled before it is given to anyone.
PyObject *image_generator_maker(PyObject *generator);
PyObject *image_make_generator(PyObject *maker);
void image_fill_generator(image *i, PyObject *generator);
// One that nobody else has: it dies without running its code.
void image_silence_generator(PyObject *generator);

// What becomes of a frame whose countdown is used up, or that called one that was abandoned.
typedef enum stopped {
    STOPPED_LEFT,  // the frame is left, and *result is what its eval returns
    STOPPED_ON,    // it goes on where it is: a generator that hops keeps its own frame
    STOPPED_RAISE, // no image could be taken: the exception is raised where the frame stands
} stopped;

stopped image_stopped(run *r, PyObject **result);
stopped image_abandoned(run *r, PyObject **result);
// The frame gives all it holds to an image, chained behind those taken above it, and ends.
stopped image_abandon(run *r, bool awaiting, PyObject **result);

// STOP_HOP: how many boundaries until the next hop.
long image_next_hop(interp_thread *t);

static inline bool image_expects(const interp_thread *t, py_frame *f) {
    const resume_request *q = t->put_back;
    return q != NULL && q->code == py_frame_code(f) && py_frame_next(f) <= 0 &&
           !py_frame_in_generator(f) &&
           (q->function == NULL || q->function == py_frame_function(f));
}
