// Turns the contents of a frame before the trace into lazies, in the frame that the trace runs.
// Guards check which slots are empty.
#include "src/trace/roots.h"

#include "src/py/frame.h"
#include "src/py/raised.h"

#include "src/interp/image.h"

#include "src/world/losses.h"

// --- slots ---

// What the interpreter itself looks at is opened: cells, and exceptions on the stack.
static bool is_looked_at(PyCodeObject *co, Py_ssize_t i, PyObject *o) {
    if (i >= co->co_nlocalsplus)
        return PyExceptionInstance_Check(o);
    return PyCell_Check(o) && py_is_cell_slot(co, (int)i);
}

// What code has as a constant is read as it is by some instructions.
static bool is_constant(PyCodeObject *co, PyObject *o) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(co->co_consts); i++)
        if (PyTuple_GET_ITEM(co->co_consts, i) == o)
            return true;
    return false;
}

// Two sources never look the same.
PyObject *root_slot_name(PyCodeObject *co, int level, Py_ssize_t i) {
    PyObject *name = i < co->co_nlocalsplus
                         ? Py_NewRef(PyTuple_GET_ITEM(co->co_localsplusnames, i))
                         : PyUnicode_FromFormat("___stack%zd", i - co->co_nlocalsplus);
    if (name && level > 0)
        Py_SETREF(name, PyUnicode_FromFormat("callers[%d].%U", level - 1, name));
    return name;
}

static source *slot_source(world *w, PyCodeObject *co, int level, Py_ssize_t i) {
    PyObject *name = root_slot_name(co, level, i);
    source *s =
        name ? guard_source(w->guards, SOURCE_LOCAL, NULL, name, guard_slot(level, i)) : NULL;
    Py_XDECREF(name);
    return s;
}

static status add_root(world *w, source *s, PyObject *outside, PyObject *inside) {
    root r = {.source = s, .outside = outside, .inside = inside};
    return vec_push(&w->roots.slots, r);
}

// New reference.
static PyObject *load_slot(world *w, PyCodeObject *co, const guard_frame *g, int level,
                           Py_ssize_t i) {
    PyObject *outside = py_slot_get(&g->slots[i]);
    source *s = slot_source(w, co, level, i);
    if (!s)
        return NULL;
    if (g->unit == 0)
        return door_load(w, s, outside);
    if (is_looked_at(co, i, outside))
        return add_root(w, s, outside, NULL) == ST_OK ? Py_XNewRef(door_bring(w, s, outside))
                                                      : NULL;
    PyObject *loaded = door_load(w, s, outside);
    if (loaded && add_root(w, s, outside, loaded) != ST_OK)
        Py_CLEAR(loaded);
    if (loaded && i >= co->co_nlocalsplus && is_constant(co, outside))
        Py_SETREF(loaded, Py_XNewRef(door_open(w, loaded)));
    return loaded;
}

// The frame's arguments are dummies.
static status load_slots(world *w, py_frame *f, const guard_frame *g, int level) {
    py_slot *slots = py_frame_slots(f);
    PyCodeObject *co = py_frame_code(f);
    for (Py_ssize_t i = 0; i < g->count; i++) {
        bool bound = py_slot_get(&g->slots[i]) != NULL;
        PyObject *loaded = bound ? load_slot(w, co, g, level, i) : NULL;
        if (!loaded && bound)
            return w->stop.broken ? ST_BREAK : ST_ERROR;
        if (i < co->co_nlocalsplus) {
            py_slot_set(&slots[i], loaded);
            continue;
        }
        py_slot_put(&slots[i], loaded);
        py_frame_set_stack_pointer(f, slots + i + 1);
    }
    return ST_OK;
}

static status guard_bound(world *w, const guard_frame *g, int level) {
    PyObject *bound = PyBytes_FromStringAndSize(NULL, g->count);
    for (Py_ssize_t i = 0; bound && i < g->count; i++)
        PyBytes_AS_STRING(bound)[i] = py_slot_get(&g->slots[i]) != NULL;
    status done = bound ? guard_add(w->guards, GUARD_BOUND, NULL, NULL, bound, level) : ST_ERROR;
    Py_XDECREF(bound);
    return done;
}

// --- handlers ---

// Exceptions that handlers of this frame have put aside, innermost first. The last is the caller's,
// which is nobody's here.
static status load_put_aside(world *w, py_frame *f, code *c, uint32_t unit) {
    const flow *fl = code_flow(c);
    if (!fl)
        return ST_ERROR;
    for (int32_t h = fl->handled[code_at(c, unit) - c->insns]; h >= 0; h = fl->handlers[h].outer) {
        py_slot *slot = py_frame_stack(f) + fl->handlers[h].slot;
        PyObject *held = py_slot_get(slot), *opened = held ? door_open(w, held) : Py_None;
        if (!opened)
            return ST_ERROR;
        py_slot_set(slot, Py_NewRef(opened));
    }
    return ST_OK;
}

static status load_handled(world *w, PyThreadState *ts, PyObject *handled) {
    source *s = guard_source(w->guards, SOURCE_HANDLED, NULL, NULL, 0);
    PyObject *exception = s ? door_bring(w, s, handled) : NULL;
    if (!exception || add_root(w, s, handled, NULL) != ST_OK)
        return ST_ERROR;
    Py_XSETREF(ts->exc_info->exc_value, Py_NewRef(exception));
    return ST_OK;
}

bool root_ends_for_real(code *c, uint32_t unit) {
    const flow *fl = code_flow(c);
    const insn *pc = code_at(c, unit);
    return fl && (fl->handled[pc - c->insns] >= 0 || pc->op == OP_PUSH_EXC_INFO);
}

// --- all of them ---

// If all of them went: what dies then is all that can die of this trace.
status roots_look(world *w, int below) {
    losses all = {.found = &w->roots.dying};
    bool known = true;
    for (int i = 0; i <= below; i++) {
        const guard_frame *g = guard_frame_at(w->roots.start, i);
        known &= losses_add(&all, g->function);
        for (Py_ssize_t n = 0; n < g->count; n++) {
            PyObject *o = py_slot_get(&g->slots[n]);
            known &= !o || losses_add(&all, o);
        }
    }
    losses_clear(&all);
    if (!known)
        PyErr_NoMemory();
    return known ? ST_OK : ST_ERROR;
}

PyObject *root_call(world *w, int level, run_result result) {
    PyObject *function = guard_frame_at(w->roots.start, level)->function;
    w->expected = (expectation){.of = function, .result = result, .level = level};
    PyObject *value = image_call_with_dummies(function);
    w->expected.of = NULL;
    return value;
}

// --- the first frame ---

status root_begin(world *w, PyThreadState *ts, py_frame *f) {
    const guard_frame *g = w->roots.start;
    TRY(load_slots(w, f, g, 0));
    if (g->unit == 0)
        return ST_OK;
    code *c = code_of(py_frame_code(f));
    if (!c)
        return ST_ERROR;
    py_frame_set_stack_pointer(f, py_frame_slots(f) + g->count);
    py_frame_set_next(f, g->unit);
    TRY(guard_bound(w, g, 0));
    TRY(add_root(w, w->in.function, g->function, NULL));
    TRY(load_put_aside(w, f, c, g->unit));
    return g->handled ? load_handled(w, ts, g->handled) : ST_OK;
}

// --- those below ---

status root_resume(world *w, run *r) {
    const guard_frame *g = guard_frame_at(w->roots.start, r->level);
    w->roots.reached = r->level;
    w->roots.looked = w->roots.looked > r->level ? w->roots.looked : r->level;
    source *s = guard_source(w->guards, SOURCE_CALLER, NULL, NULL, r->level - 1);
    if (!s || !door_bring(w, s, g->function))
        return w->stop.broken ? ST_BREAK : ST_ERROR;
    TRY(guard_bound(w, g, r->level));
    TRY(add_root(w, s, g->function, NULL));
    py_frame_set_stack_pointer(r->frame, py_frame_stack(r->frame));
    status done = load_slots(w, r->frame, g, r->level);
    r->sp = py_frame_stack_pointer(r->frame);
    return done;
}

// --- the end ---

static bool is_local(const run *r, const root *held) {
    return held->source->kind == SOURCE_LOCAL &&
           guard_slot_level(held->source->index) == r->level &&
           guard_slot_number(held->source->index) < r->code->py->co_nlocalsplus;
}

static bool is_function(const run *r, const root *held) {
    return r->level == 0
               ? held->source->kind == SOURCE_FUNCTION
               : held->source->kind == SOURCE_CALLER && held->source->index == r->level - 1;
}

static bool is_here(const run *r, const root *held) {
    PyObject *inside = held->inside ? held->inside : held->outside;
    return is_function(r, held) ||
           (is_local(r, held) &&
            py_frame_get(r->frame, guard_slot_number(held->source->index)) == inside);
}

// The outermost frame lets go of it after the plan, as it would; of the others, the program goes on
// after that.
void root_leave(run *r) {
    world *w = r->world;
    py_raised aside = py_put_aside();
    for (uint32_t i = 0; i < w->roots.slots.count; i++) {
        root *held = &w->roots.slots.items[i];
        if (!is_here(r, held))
            continue;
        if (r == w->root)
            held->stays = true;
        else if (world_born(w, held->inside ? held->inside : held->outside) != ST_OK)
            PyErr_Clear(); // without memory it is only not known
    }
    py_put_on(aside);
}
