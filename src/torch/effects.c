// What operations do beside their results, and whether an operation may still fail behind them.
#include "src/interp/run.h"

#include "src/torch/levels.h"
#include "src/torch/overrides.h"

// --- what was done ---

// The bits that the glue has noted in the mode since the last time; -1 with an exception.
static int take_effects(PyObject *mode) {
    static PyObject *name, *none;
    if (!name && !(name = PyUnicode_InternFromString("stator_effects")))
        return -1;
    if (!none && !(none = PyLong_FromLong(0)))
        return -1;
    PyObject *bits = PyObject_GetAttr(mode, name);
    long effects = bits ? PyLong_AsLong(bits) : -1;
    Py_XDECREF(bits);
    if (effects > 0 && PyObject_SetAttr(mode, name, none) < 0)
        return -1;
    return (int)effects;
}

// What the call that comes next does, beside its result.
void effects_add(world *w, int effects) {
    torch_trace *t = w->torch;
    t->pending |= effects;
    bool wrote = effects & EFFECT_OUTSIDE, random = effects & EFFECT_RANDOM;
    if (wrote && !w->facts.mutated_tensor)
        inputs_guard_sharing(w);
    if (wrote) {
        t->written = w->time.now;
        t->unlike = t->unlike || inputs_changed(w);
    }
    w->held.writes += wrote || random;
    t->effects += wrote || random;
    w->facts.mutated_tensor = w->facts.mutated_tensor || wrote;
    w->facts.random = w->facts.random || random;
}

// What the run on fakes did: the glue notes it in the mode.
status effects_note(world *w) {
    torch_trace *t = w->torch;
    int effects = t->mode ? take_effects(t->mode) : 0;
    if (effects > 0)
        effects_add(w, effects);
    return effects < 0 ? ST_ERROR : ST_OK;
}

// --- what may fail ---

// An operation of this graph has failed, and the program is to go on from here. (A body belongs to
// the call that comes next in the graph.)
bool effects_stop(world *w) {
    if (w->time.stop_call != w->graph->calls)
        return false;
    w->time.stop_call = -1; // what ends the graph may still be recorded
    world_break(w, REASON_TENSOR_ERROR, "it failed when the graph was run");
    return true;
}

// Frames that handle an exception of the trace's own cannot be put back. Where a failure could not
// be undone, the exception is to be one from outside by then.
static bool is_handling_own(const world *w) {
    PyObject *handled = PyThreadState_Get()->exc_info->exc_value;
    return handled && handled != Py_None && !record_of(w, handled);
}

// Of the calls since inference mode was entered: the program cannot go on in the middle of it.
static int effects_in_inference(const world *w) {
    const torch_trace *t = w->torch;
    if (!t->inference_scope)
        return 0;
    int effects = t->inference_effects;
    for (const graph *g = w->scope; g && g != t->inference_scope; g = g->outer)
        effects |= g->effects; // a body that was begun since then
    return effects;
}

// Whether the last call with effects was made within an instruction that runs native code, a
// generator's step included: the program cannot go on in the middle of it.
static bool has_effects_in_native(const world *w) {
    const torch_trace *t = w->torch;
    for (const run *r = w->run; r && r->below; r = r->below)
        if (r->result <= RUN_OPERATOR && r->below->started <= t->lasting)
            return true;
    return false;
}

static int effects_so_far(const world *w) {
    int effects = 0;
    for (const graph *g = w->scope; g; g = g->outer)
        effects |= g->effects;
    return effects;
}

bool effects_forbid_failure(world *w) {
    if (!w->terms.replayed || w->terms.whole || w->inside.strict > 0 || w->terms.recovering ||
        !(effects_so_far(w) & EFFECTS_LASTING))
        return false;
    if (is_handling_own(w))
        world_break(w, REASON_EXCEPTION_LIVES, "an operation may fail while it is handled");
    else if (effects_in_inference(w) & EFFECTS_LASTING)
        world_break(w, REASON_TORCH_STATE, "an operation may fail in inference mode");
    else if (levels_have_effects(w->torch))
        world_break(w, REASON_TORCH_STATE, "an operation may fail in a function transform");
    else if (has_effects_in_native(w))
        world_break(w, REASON_TENSOR_OPERATION,
                    "an operation may fail behind one with effects, within a native call or a "
                    "generator's step");
    else if (((const torch_trace *)w->torch)->unlike)
        world_break(
            w, REASON_TENSOR_OPERATION,
            "an operation may fail behind one that gave an input other sizes or a gradient");
    else
        return false;
    return true;
}
