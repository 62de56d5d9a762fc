// Images. An image holds the contents of a frame at an instruction boundary: they are taken out of
// the frame, and put into a fresh real frame later. A chain of images (`caller` leads from inner to
// outer) is put back outermost first, so that the frames lie on each other as before.
#pragma once

#include "src/py/frame.h"

#include "src/code/code.h"

#include "src/interp/run.h"

struct image {
    PyObject_VAR_HEAD      // size: number of slots
    PyCodeObject *code;    // strong; a function's code may be replaced while it runs
    PyObject *function;    // strong; NULL once the image is spent
    PyObject *locals;      // strong; the namespace of a class body or module, else NULL
    PyObject *handled;     // strong; the exception that the innermost active handler handles, else
                           // NULL
    PyFrameObject *object; // strong; the frame object, which moves along when a frame hops; else
                           // NULL
    PyObject *generator;   // strong; the severed generator from which the image was taken, else
                           // NULL
    struct image *caller;  // strong; image of the frame that called this one, else NULL
    uint32_t unit;         // awaiting: unit of the call; else where the next instruction starts
    bool awaiting;         // the instruction's operands are gone, and it waits for its value
    bool init;             // it waits for an __init__'s None; the instruction's value lies on the
                           // stack
    bool by_operator;      // it stands before an operator, which calls the frame that it waits for
    bool spent;            // its contents were put back
    bool native;           // CPython runs it from the next instruction on
    PyObject *raises;      // strong: the next instruction raises this exception instead of running;
                           // or NULL
    PyObject *open;        // strong: the numbers of the frame that the trace left open, a dict (see
                           // guard_misfits); or NULL
    int8_t state;          // of a generator: created, or how it is suspended
    int outer_handled;     // stack slot that gets the exception which the new caller handles, or -1
    PyObject *slots[1]; // strong; locals, cells and free variables, then the stack. NULL: unbound
};

// Who runs a frame that was put back: our loop, CPython's own eval, or the driver (image_drive).
typedef enum engine { ENGINE_STATOR, ENGINE_CPYTHON, ENGINE_DRIVEN } engine;

// How a chain of images is to go on. The caller of image_resume fills it in.
typedef struct resume_request {
    image **chain; // outermost first
    int depth;     // index of the frame to be put back next
    int count;
    engine engine;
    long *countdown;     // for the innermost frame if our loop runs it, or NULL
    PyObject *value;     // borrowed; the value that the innermost image awaits
    PyObject *exception; // borrowed; raised there instead of giving a value
    PyCodeObject *code;  // code of the frame that comes next
    PyObject *function;  // borrowed: function of that frame, if an operator calls it; or NULL
    bool collecting;     // the collector is off until the frame is filled
    void *waiting;       // the driver's struct about the frame below the next one; NULL for the
                         // first frame
} resume_request;

// Where a frame was put back.
typedef struct image_place {
    uint32_t unit;
    bool awaiting, init, by_operator, native; // see image
    PyObject *raises, *open;                  // borrowed from the image
} image_place;
static inline image_place image_place_of(const image *i) {
    return (image_place){i->unit,   i->awaiting, i->init, i->by_operator,
                         i->native, i->raises,   i->open};
}

extern PyTypeObject image_type;
extern PyObject *image_abandoned_error; // the exception that unwinds abandoned frames; Python code
                                        // never sees it
int image_setup(PyObject *module);

// Whether the current exception is the one that unwinds abandoned frames. A finalizer that runs
// meanwhile may raise others.
static inline bool image_is_abandoning(void) {
    return PyErr_Occurred() == (PyObject *)Py_TYPE(image_abandoned_error);
}

// Moves the contents of a frame at rest into an image. The frame's slots are empty afterwards, and
// the thread handles the caller's exception again. With `keep_object` the frame object moves into
// the image, too. On NULL (with an exception) the frame is unchanged.
image *image_take(PyThreadState *ts, py_frame *f, const code *c, const insn *pc, bool keep_object);

// Continues a chain in fresh frames. New reference to the value that the outermost frame returns,
// or NULL with its exception. The images are spent. The hook must be installed, and must call
// image_arrived.
PyObject *image_resume(image *innermost, engine engine, PyObject *value, PyObject *exception,
                       long *countdown);

// For the hook: image_expects says whether a fresh frame is the one to be filled; image_arrived
// fills and runs it.
static inline bool image_expects(const interp_thread *t, py_frame *f);
PyObject *image_arrived(PyThreadState *ts, py_frame *f);

// Makes an image again from its parts. The template has the code and everything that is no
// reference. New references, NULL with an exception. `slots` has as many items as the template has
// slots, each borrowed or NULL.
image *image_template(const image *i);
image *image_from_template(image *t, PyObject *function, PyObject *const *slots, PyObject *handled,
                           image *caller);

// An image of a frame at `pc` with its stack up to `sp`, and `extra` (borrowed, may be NULL) on
// top. The frame keeps its contents. *handled is the exception that the innermost handler handles,
// borrowed; afterwards it is the one that the frame below handles. If `awaiting`, `pc` is the
// instruction that runs now. NULL with an exception.
image *image_look(py_frame *f, code *c, const insn *pc, py_slot *sp, PyObject *extra, bool awaiting,
                  PyObject **handled);

// The slot in which a frame's outermost active handler keeps the exception that the caller handles;
// NULL if no handler is active.
py_slot *image_outer_handled(py_frame *f, code *c, const insn *pc);
// The exception that the innermost handler of a frame at rest handles, borrowed; NULL if no handler
// is active. -1 with an exception.
int image_handled(PyThreadState *ts, code *c, const insn *pc, PyObject **handled);
// Ends the handlers of a frame at rest that ends.
void image_leave_handlers(PyThreadState *ts, py_frame *f, code *c, const insn *pc);

// The parts of putting a chain back, for the driver. Fills in `chain` (to be freed) and `count`; -1
// with an exception.
int image_request(resume_request *q, image *innermost);
// Runs the frame above `f` and returns its value, for which `f` waits. `f` stays on the thread's
// frames, standing on its call.
PyObject *image_above(PyThreadState *ts, py_frame *f, resume_request *q, uint32_t unit);
// Says that an operator of the frame that stands before it will call the next frame; and whether
// that frame came.
void image_expect(resume_request *q);
bool image_came(resume_request *q);
// Pushes the value that a frame waits for (the object of an __init__ lies there already), and moves
// the frame to the next instruction. Takes the reference. -1 with an exception that is to be raised
// at `unit`.
int image_give(py_frame *f, uint32_t unit, awaited how, PyObject *value);

// Puts the contents of an image into a frame of its code. The image is spent. The frame's handlers
// keep the exception that they handle in `info`.
void image_fill(image *i, _PyErr_StackItem *info, py_frame *f);

// Calls a function with None for every parameter that has no default.
PyObject *image_call_with_dummies(PyObject *function);

// Takes the image of a generator that is suspended or not begun, and clears the generator without
// running its code. And the way back: makes a new generator, suspended at the same place.
image *image_of_generator(PyObject *generator);
PyObject *image_to_generator(image *i);

// The parts of this, for copying generators. An image of a generator that is suspended or not
// begun; the generator keeps its contents. NULL with an exception.
image *image_peek_generator(PyObject *generator);
// A function that makes generators with this generator's code and names; and an empty generator
// that such a function made, to be filled before anyone else gets it.
PyObject *image_generator_maker(PyObject *generator);
PyObject *image_make_generator(PyObject *maker);
void image_fill_generator(image *i, PyObject *generator);
// Makes a generator that nobody else holds die without running its code.
void image_silence_generator(PyObject *generator);

// What happens to a frame whose countdown has ended, or that called a frame that was abandoned.
typedef enum stopped {
    STOPPED_LEFT,  // the frame is left, and its eval returns *result
    STOPPED_ON,    // it goes on in place: a generator that hops keeps its own frame
    STOPPED_RAISE, // no image could be taken: the exception is raised at the frame's instruction
} stopped;

stopped image_stopped(run *r, PyObject **result);
stopped image_abandoned(run *r, PyObject **result);
// Moves the frame's contents into an image, appends it to the chain of the frames above, and ends
// the frame.
stopped image_abandon(run *r, bool awaiting, PyObject **result);

// STOP_HOP: the number of boundaries until the next hop.
long image_next_hop(interp_thread *t);

static inline bool image_expects(const interp_thread *t, py_frame *f) {
    const resume_request *q = t->put_back;
    return q && q->code == py_frame_code(f) && py_frame_next(f) <= 0 && !py_frame_in_generator(f) &&
           (!q->function || q->function == py_frame_function(f));
}
