// Turns a frame at rest into the steps that make it again: images, and generators that are
// suspended, not begun, or ended.
#include "src/interp/image.h"

#include "src/plan/build.h"

// --- what the two have in common ---

// Function, slots, the handled exception, the namespace.
static status frame_parts(builder *b, const image *i, operands *to) {
    TRY(rebuild_field(b, i->function, to));
    for (Py_ssize_t n = 0; n < Py_SIZE(i); n++)
        TRY(rebuild_field(b, i->slots[n], to));
    TRY(rebuild_field(b, i->handled, to));
    return rebuild_field(b, i->locals, to);
}

// A step with the image's template and parts: it makes `o`, or fills what is in `to`.
static status frame_step(builder *b, const image *i, operands *parts, PyObject *o, operand to,
                         operand *out) {
    PyObject *template = (PyObject *)image_template(i);
    step fill = step_of(STEP_GENERATOR_FILL, -1, to, OPERAND_NONE);
    step make = step_of(STEP_IMAGE, -1, OPERAND_NONE, OPERAND_NONE);
    status done = ST_ERROR;
    if (template)
        done = out ? rebuild_make(b, o, make, parts, template, out)
                   : build_step(b, &b->making, fill, parts, template);
    Py_XDECREF(template);
    return done;
}

// --- images ---

// Frames of a trace have no objects, and are not taken of generators.
status rebuild_image(builder *b, PyObject *o, operand *out) {
    const image *i = (image *)o;
    if (!i->function || i->object || i->generator || i->spent)
        return rebuild_refuse(b, o);
    operands parts = {0};
    status done = rebuild_field(b, (PyObject *)i->caller, &parts);
    if (done == ST_OK)
        done = frame_parts(b, i, &parts);
    if (done == ST_OK)
        done = frame_step(b, i, &parts, o, OPERAND_NONE, out);
    vec_free(&parts);
    return done;
}

// --- generators ---

static bool is_running(PyObject *o) {
    return ((PyGenObject *)o)->gi_frame_state == FRAME_EXECUTING;
}

static bool has_ended(PyObject *o) {
    return ((PyGenObject *)o)->gi_frame_state > FRAME_EXECUTING;
}

// The world has a weak reference to each; whoever made another one has it alone or shares that.
bool rebuild_weakly_known(PyObject *generator) {
    PyWeakReference *first = (PyWeakReference *)((PyGenObject *)generator)->gi_weakreflist;
    return first && (first->wr_next || Py_REFCNT(first) > 1);
}

// The inside one lives until the trace ends, which empties it: dying before, it would run its code.
status rebuild_empty_generator(builder *b, PyObject *o, operand *out) {
    step s = step_of(STEP_GENERATOR, -1, OPERAND_NONE, OPERAND_NONE);
    if (is_running(o))
        return rebuild_refuse(b, o);
    TRY(arena_own(&b->w->arena, Py_NewRef(o)));
    PyObject *maker = image_generator_maker(o);
    s.index = has_ended(o);
    status done = maker ? rebuild_make(b, o, s, NULL, maker, out) : ST_ERROR;
    Py_XDECREF(maker);
    return done;
}

static status fill_frame(builder *b, PyObject *o, const image *i, operand to) {
    if (i->object) // someone has its frame
        return rebuild_refuse(b, o);
    operands parts = {0};
    status done = frame_parts(b, i, &parts);
    if (done == ST_OK)
        done = frame_step(b, i, &parts, o, to, NULL);
    vec_free(&parts);
    return done;
}

status rebuild_fill_generator(builder *b, PyObject *o, operand to) {
    if (has_ended(o))
        return ST_OK;
    image *i = image_peek_generator(o);
    status done = i ? fill_frame(b, o, i, to) : ST_ERROR;
    Py_XDECREF(i);
    return done;
}
