// Breaks: why a trace ends, and the contents of its frames there. A break is clean if the current
// instruction of the innermost frame has done nothing yet that cannot be undone, and if each frame
// gives its value straight to the instruction that called it. After a clean break the frames go on
// from there. Otherwise the trace is done again, and breaks before the instruction that was in the
// way.
#include "src/py/frame.h"
#include "src/py/raised.h"

#include "src/interp/image.h"

#include "src/graph/trail.h"

#include "src/world/world.h"

// --- where ---

static PyObject *stack_entry(py_frame *f) {
    PyCodeObject *code = py_frame_code(f);
    int line = PyCode_Addr2Line(code, (int)py_frame_lasti(f) * (int)sizeof(_Py_CODEUNIT));
    return Py_BuildValue("OiO", code->co_filename, line, code->co_qualname);
}

PyObject *world_own_files;

bool world_is_own(const PyCodeObject *code) {
    for (Py_ssize_t i = 0; world_own_files && i < PyTuple_GET_SIZE(world_own_files); i++) {
        PyObject *file = PyTuple_GET_ITEM(world_own_files, i);
        if (file == code->co_filename || PyUnicode_Compare(file, code->co_filename) == 0)
            return true;
    }
    return false;
}

static bool is_own(py_frame *f) {
    return world_is_own(py_frame_code(f));
}

PyObject *world_stack(world *w) {
    PyObject *list = PyList_New(0);
    py_frame *root = w->root ? w->root->frame : NULL; // before and after, no frame is the trace's
    py_frame *f = root ? py_current_frame(PyThreadState_Get()) : NULL;
    for (; list && f; f = py_frame_caller(f)) {
        if (!py_frame_incomplete(f) && !is_own(f)) {
            PyObject *entry = stack_entry(f);
            if (!entry || PyList_Append(list, entry) < 0)
                Py_CLEAR(list);
            Py_XDECREF(entry);
        }
        if (f == root)
            break;
    }
    if (!list || PyList_Reverse(list) < 0) {
        Py_XDECREF(list);
        return NULL;
    }
    PyObject *result = PyList_AsTuple(list);
    Py_DECREF(list);
    return result;
}

// --- the same for nodes: most of it is as it was for the node before ---

#define DEEP 64 // frames, of which a trail is kept

static void cut_trail(world *w, uint32_t depth) {
    while (w->trail.count > depth) {
        trail_frame *last = &w->trail.items[--w->trail.count];
        Py_DECREF(last->code);
        Py_XDECREF(last->trail);
    }
}

void world_trail_free(world *w) {
    cut_trail(w, 0);
    vec_free(&w->trail);
}

static PyObject *trail_behind(py_frame *f, PyObject *parent) {
    if (is_own(f))
        return Py_XNewRef(parent);
    PyObject *row = stack_entry(f);
    PyObject *made = row ? trail_new(parent, row) : NULL;
    Py_XDECREF(row);
    return made;
}

// The frame at this depth, 0 being the outermost.
static status trail_extend(world *w, uint32_t depth, py_frame *f) {
    PyCodeObject *code = py_frame_code(f);
    int at = (int)py_frame_lasti(f);
    const trail_frame *known = depth < w->trail.count ? &w->trail.items[depth] : NULL;
    if (known && known->code == code && known->at == at)
        return ST_OK;
    cut_trail(w, depth);
    PyObject *made = trail_behind(f, depth > 0 ? w->trail.items[depth - 1].trail : NULL);
    if (!made && PyErr_Occurred())
        return ST_ERROR;
    trail_frame new = {(PyCodeObject *)Py_NewRef(code), at, made};
    if (vec_push(&w->trail, new) == ST_OK)
        return ST_OK;
    Py_DECREF(code);
    Py_XDECREF(made);
    return ST_ERROR;
}

PyObject *world_trail(world *w) {
    py_frame *frames[DEEP], *root = w->root ? w->root->frame : NULL;
    py_frame *f = root ? py_current_frame(PyThreadState_Get()) : NULL;
    uint32_t count = 0;
    for (; f; f = f == root ? NULL : py_frame_caller(f)) {
        if (count == DEEP)
            return world_stack(w);
        if (!py_frame_incomplete(f))
            frames[count++] = f;
    }
    for (uint32_t depth = 0; depth < count; depth++)
        if (trail_extend(w, depth, frames[count - 1 - depth]) != ST_OK)
            return NULL;
    PyObject *last = count > 0 ? w->trail.items[count - 1].trail : NULL;
    return last ? Py_NewRef(last) : PyTuple_New(0);
}

// A row of a stack that also says which characters of the source it is about.
static PyTypeObject *place_type;

int breaks_setup(PyObject *module) {
    static PyStructSequence_Field fields[] = {
        {"file", NULL},
        {"line", NULL},
        {"function", NULL},
        {"span", "first line, last line, first column, column behind the last, counted in bytes"},
        {NULL, NULL},
    };
    static PyStructSequence_Desc desc = {.name = "stator._engine.Place",
                                         .doc = "Where a trace stopped.",
                                         .fields = fields,
                                         .n_in_sequence = 3};
    if (!place_type && !(place_type = PyStructSequence_NewType(&desc)))
        return -1;
    return PyModule_AddObjectRef(module, "Place", (PyObject *)place_type);
}

static py_frame *innermost_frame(const world *w) {
    py_frame *f = w->root ? py_current_frame(PyThreadState_Get()) : NULL;
    while (f && (py_frame_incomplete(f) || is_own(f)))
        f = f == w->root->frame ? NULL : py_frame_caller(f);
    return f;
}

// The same, with the span of the innermost frame's instruction; takes `stack` over.
static PyObject *with_span(const world *w, PyObject *stack) {
    py_frame *f = stack && PyTuple_GET_SIZE(stack) > 0 ? innermost_frame(w) : NULL;
    int first, start, last, end;
    if (!f ||
        !PyCode_Addr2Location(py_frame_code(f), (int)py_frame_lasti(f) * (int)sizeof(_Py_CODEUNIT),
                              &first, &start, &last, &end))
        return stack;
    PyObject *place = PyStructSequence_New(place_type);
    PyObject *span = place ? Py_BuildValue("iiii", first, last, start, end) : NULL;
    if (!span) {
        Py_XDECREF(place);
        return stack;
    }
    Py_ssize_t at = PyTuple_GET_SIZE(stack) - 1;
    PyObject *row = PyTuple_GET_ITEM(stack, at);
    for (Py_ssize_t i = 0; i < 3; i++)
        PyStructSequence_SetItem(place, i, Py_NewRef(PyTuple_GET_ITEM(row, i)));
    PyStructSequence_SetItem(place, 3, span);
    PyTuple_SET_ITEM(stack, at, place);
    Py_DECREF(row);
    return stack;
}

// --- whether the frames can go on ---

// What comes up at another place in each call, or concerns the whole trace. A frame that keeps the
// dict of its locals() must not be left for another one.
static bool ends_all(reason why) {
    return why == REASON_RESOURCES || why == REASON_WATCHED || why == REASON_IS_COMPILING ||
           (why == REASON_FRAME && RAW_KEEPS_LOCALS);
}

static const insn *executing(const run *r) {
    return code_at(r->code, py_frame_lasti(r->frame));
}

// What the object is that an instruction reads an attribute of; NULL if it has not been looked at.
static PyObject *owner_read(const run *r, const insn *pc) {
    const flow *fl = code_flow((code *)r->code);
    py_slot *sp = fl ? py_frame_stack(r->frame) + fl->depth[pc - r->code->insns] : NULL;
    PyObject *o = sp ? py_slot_get(sp - 1) : NULL;
    return o && is_lazy(o) ? ((lazy *)o)->inside : o;
}

// Whether the function is the __getattr__ of the object's class, however the function is named.
static bool is_asked_last(PyObject *o, PyObject *function) {
    PyObject *word = PyUnicode_InternFromString("__getattr__"), *found = NULL;
    bool is = !word || (raw_type_get(Py_TYPE(o), word, &found) == RAW_FOUND && found == function);
    Py_XDECREF(word);
    PyErr_Clear(); // without memory it may be
    return is;
}

// Whether an attribute that was missing, so that __getattr__ was asked, may be there by now: read
// once more, the object would not ask again.
static bool is_found_by_now(const world *w, const run *r, PyObject *function) {
    const insn *pc = executing(r);
    if (w->facts.class_written) // a property, perhaps
        return true;
    if (!PyFunction_Check(function) || !(op_asks(pc->op, 0) & ASKS_GET))
        return false;
    PyObject *name = PyTuple_GET_ITEM(r->code->py->co_names, pc->arg), *value;
    PyObject *o = owner_read(r, pc);
    if (o && !is_asked_last(o, function))
        return false;
    if (!o || raw_type_get(Py_TYPE(o), name, &value) != RAW_ABSENT)
        return true;
    const record *known = record_of(w, o);
    if (known)
        return !known->names || known->names->written;
    return raw_attr_get(o, name, &value) != RAW_ABSENT;
}

// The lowest frame whose instruction has native code above it that is not done yet, and cannot be
// begun once more.
static run *lowest_native(world *w) {
    run *found = NULL;
    for (run *r = w->run; r && r->below; r = r->below)
        if (r->result == RUN_NATIVE || (r->result == RUN_OPERATOR &&
                                        is_found_by_now(w, r->below, py_frame_function(r->frame))))
            found = r->below;
    return found;
}

// What the next frame out handles lies on the stack of a frame that is about to go.
static bool keep_handled(world *w) {
    return !w->stop.handled || world_keep(w, Py_NewRef(w->stop.handled));
}

// The innermost frame's operands still lie on its stack: handlers drop them when all is done.
static status look_at_innermost(world *w) {
    run *r = w->run;
    const insn *pc = executing(r);
    const flow *fl = pc ? code_flow((code *)r->code) : NULL;
    int32_t depth = fl ? fl->depth[pc - r->code->insns] : -1;
    if (depth < 0 || !(pc->flags & INSN_BOUNDARY) || py_frame_in_generator(r->frame))
        return ST_ERROR;
    w->stop.handled = r->ts->exc_info->exc_value;
    if (w->stop.handled == Py_None)
        w->stop.handled = NULL;
    w->stop.image = image_look(r->frame, (code *)r->code, pc, py_frame_stack(r->frame) + depth,
                               NULL, false, &w->stop.handled);
    if (w->stop.image && !keep_handled(w))
        Py_CLEAR(w->stop.image);
    w->stop.outermost = w->stop.image;
    w->stop.broke_in = r;
    return w->stop.image ? ST_OK : ST_ERROR;
}

// What a frame handles lies on the stacks of those above it that handle something, too.
static PyObject *handled_below(const world *w, const run *end) {
    PyObject *handled = w->run->ts->exc_info->exc_value;
    for (const run *r = w->run; r != end; r = r->below) {
        const py_slot *outer = image_outer_handled(r->frame, (code *)r->code, executing(r));
        handled = outer ? py_slot_get(outer) : handled;
    }
    return handled == Py_None ? NULL : handled;
}

// The operands of an operator still lie on the stack, and will be gone when the frame is left.
static status look_at_operator(world *w, run *r) {
    const insn *pc = executing(r);
    const flow *fl = code_flow((code *)r->code);
    py_slot *sp = fl ? py_frame_stack(r->frame) + fl->depth[pc - r->code->insns] : NULL;
    r->ready_outer = handled_below(w, r);
    r->ready =
        sp ? image_look(r->frame, (code *)r->code, pc, sp, NULL, false, &r->ready_outer) : NULL;
    if (!r->ready || (r->ready_outer && !world_keep(w, Py_NewRef(r->ready_outer))))
        return ST_ERROR;
    r->ready->awaiting = r->ready->by_operator = true;
    return ST_OK;
}

static status look_at_operators(world *w) {
    for (const run *r = w->run; r->below; r = r->below)
        if (r->result == RUN_OPERATOR && !r->below->waits)
            TRY(look_at_operator(w, r->below));
    return ST_OK;
}

static void look(world *w) {
    if (!w->run || !w->root || ends_all(w->stop.reason))
        return;
    run *native = lowest_native(w);
    if (w->time.trial != 0)
        w->time.again = w->time.trial;
    else if (native)
        w->time.again = native->started;
    else if (w->time.touched >= w->run->started)
        w->time.again = w->run->started;
    else if (look_at_innermost(w) != ST_OK || look_at_operators(w) != ST_OK) {
        Py_CLEAR(w->stop.image);
        PyErr_Clear();
    }
}

// The frame below awaits a value from `r`; of an __init__, it has it already.
static void note_awaited(world *w, const run *r) {
    PyObject *object = r->result == RUN_INIT ? r->made_object : NULL;
    Py_XSETREF(w->stop.awaited, Py_XNewRef(object));
}

static void chain(world *w, image *i) {
    if (!i)
        Py_CLEAR(w->stop.image); // no memory: the frame is CPython's
    else
        w->stop.outermost->caller = i;
    w->stop.outermost = i;
}

static void look_at_awaiting(world *w, run *r) {
    py_raised aside = py_put_aside();
    image *i = image_look(r->frame, (code *)r->code, executing(r), r->sp, w->stop.awaited, true,
                          &w->stop.handled);
    if (i && !keep_handled(w))
        Py_CLEAR(i);
    PyErr_Clear();
    py_put_on(aside);
    chain(w, i);
}

void world_leave_frame(world *w, run *r) {
    image *ready = r->ready;
    r->ready = NULL;
    if (!w->stop.image || r->waits) { // the trace never came to it: it is as it was
        Py_XDECREF(ready);
        return;
    }
    if (r == w->stop.broke_in &&
        w->time.touched >= r->started) { // native code broke, and has been let go on
        w->time.again = r->started;
        Py_CLEAR(w->stop.image);
        Py_XDECREF(ready);
        return;
    }
    if (ready) {
        w->stop.handled = r->ready_outer;
        chain(w, ready);
    } else if (r != w->stop.broke_in) {
        look_at_awaiting(w, r);
    }
    note_awaited(w, r);
}

bool world_nobody_handles(const world *w) {
    for (const run *r = w->run; r; r = r->below)
        if (r->result <= RUN_OPERATOR && r->below)
            return false;
        else if (!executing(r) || code_region(r->code, executing(r)))
            return false;
    return w->run != NULL;
}

void world_break_raised(world *w, PyObject *raised) {
    if (is_lazy(raised))
        raised = ((lazy *)raised)->outside;
    if (PyExceptionClass_Check(raised)) {
        world_break(w, REASON_EXCEPTION_LEAVES, "%s", ((PyTypeObject *)raised)->tp_name);
        return;
    }
    PyObject *args =
        PyExceptionInstance_Check(raised) ? ((PyBaseExceptionObject *)raised)->args : NULL;
    bool one = args && PyTuple_GET_SIZE(args) == 1;
    PyObject *text = one ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (text && PyUnicode_CheckExact(text))
        world_break(w, REASON_EXCEPTION_LEAVES, "%s: %U", Py_TYPE(raised)->tp_name, text);
    else
        world_break(w, REASON_EXCEPTION_LEAVES, "%s", args ? Py_TYPE(raised)->tp_name : "raise");
}

// --- again ---

status world_born(world *w, PyObject *o) {
    return w->run ? map_put(&w->time.born, map_key(o), w->run->started) : ST_OK;
}

// It breaks where the trace before would have.
void world_anew(world *w, const world *before) {
    w->terms = before->terms;
    w->terms.history |= before->stop.wants_history;
    w->time.stop_at = before->time.stop_at;
    w->time.stop_call = before->time.stop_call;
    w->time.stop_reason = before->time.stop_reason;
    w->time.stop_detail = Py_XNewRef(before->time.stop_detail);
    w->time.stop_stack = Py_XNewRef(before->time.stop_stack);
}

void world_again(world *w, world *before) {
    if (before->stop.reason == REASON_EXCEPTION_LEAVES ||
        before->stop.reason == REASON_EXCEPTION_LIVES) {
        guards_free(w->guards);
        w->guards = before->guards;
        w->roots.looked = before->roots.looked;
        before->guards = NULL;
    }
    w->terms = before->terms;
    w->time.stop_at = before->time.again;
    w->time.stop_reason = before->stop.reason;
    w->time.stop_detail = Py_XNewRef(before->stop.detail);
    w->time.stop_stack = Py_XNewRef(before->stop.stack);
}

void world_stop(world *w) {
    if (w->stop.broken)
        return;
    world_break(w, w->time.stop_reason, "%V", w->time.stop_detail, "");
    if (w->time.stop_stack)
        Py_XSETREF(w->stop.stack, Py_NewRef(w->time.stop_stack));
}

void world_break_earlier(world *w, uint64_t clock) {
    Py_CLEAR(w->stop.image);
    w->stop.outermost = NULL;
    w->time.again = clock;
}

// --- breaking ---

// Uncompiled, the program may go another way, and not raise. It can be run so as long as no piece
// of the call has run as a compiled one: half of each way is neither.
static reason reason_if_asked(const world *w, reason why) {
    bool raises = why == REASON_EXCEPTION_LEAVES || why == REASON_TENSOR_ERROR ||
                  why == REASON_NATIVE_ERROR || w->stop.refused || w->time.trial_told;
    return raises && w->facts.told && !w->terms.told_before && !w->terms.whole ? REASON_IS_COMPILING
                                                                               : why;
}

// Where a text is made, CPython may look for signals. What a handler raises is the user's, and goes
// before the break. (SIGINT's usual handler makes no frame, by which a trace would know it.)
static bool is_interrupted(world *w) {
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        w->stop.interrupted = true;
    return w->stop.interrupted && PyErr_Occurred();
}

static void break_with(world *w, reason why, const char *format, va_list arguments) {
    if (w->stop.interrupted && PyErr_Occurred())
        return;
    PyErr_Clear();
    if (!w->stop.broken) {
        PyObject *detail = PyUnicode_FromFormatV(format, arguments);
        if (is_interrupted(w)) {
            Py_XDECREF(detail);
            return;
        }
        w->stop.broken = true;
        w->stop.reason = reason_if_asked(w, why);
        w->stop.in_strict = w->inside.strict > 0;
        w->stop.detail = detail;
        w->stop.stack = with_span(w, world_stack(w));
        PyErr_Clear(); // a break without its text is still a break
        look(w);
    }
    PyErr_SetObject(world_break_error, w->stop.detail);
}

PyObject *world_break(world *w, reason why, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    break_with(w, why, format, arguments);
    va_end(arguments);
    return NULL;
}

PyObject *world_break_at(world *w, reason why, PyObject *callable, const char *behind) {
    PyObject *text = callable_text(callable);
    world_break(w, why, "%V%s", text, "?", behind);
    Py_XDECREF(text);
    return NULL;
}

status world_break_status(world *w, reason why, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    break_with(w, why, format, arguments);
    va_end(arguments);
    return ST_BREAK;
}
