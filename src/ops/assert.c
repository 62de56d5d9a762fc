// `assert tensor`, and `if not tensor: raise ...` where the program is to be one graph: the check
// becomes a node, and the trace goes on as if the assertion held. If it does not hold in a call, the
// graph fails and CPython runs the frame, which raises as in plain Python.
#include "src/interp/run.h"

#include "src/call/call.h"

// The n-th instruction after one, or NULL.
static const insn *after(const code *c, const insn *i, int n) {
    return i + n < c->insns + c->count ? i + n : NULL;
}

static bool is_op(const insn *i, op wanted, int32_t arg) {
    return i && i->op == wanted && i->arg == arg;
}

// The instruction that comes next if the truth of this one's value decides, and it is false; else
// NULL. In a loop, code of 3.13 jumps to a raise; other code jumps around it.
static const insn *next_if_false(const code *c, const insn *i) {
    bool gives_truth = i->op == OP_TO_BOOL || (i->op == OP_COMPARE_OP && i->extra != 0);
    const insn *jump = gives_truth ? after(c, i, 1) : i;
    if (jump && jump->op == OP_POP_JUMP_IF_FALSE)
        return c->insns + jump->target;
    return jump && jump->op == OP_POP_JUMP_IF_TRUE ? after(c, jump, 1) : NULL;
}

// Whether the code from an instruction on goes straight to a raise.
static bool raises_from(const code *c, const insn *i) {
    for (; i; i = after(c, i, 1)) {
        if (i->op == OP_RAISE_VARARGS)
            return true;
        if (op_flags(i->op) & (OPF_JUMP | OPF_END | OPF_HANDLER))
            return false;
    }
    return false;
}

// Borrowed; NULL without an exception if there is no memory.
static PyObject *usual_message(void) {
    static PyObject *text;
    if (!text && !(text = PyUnicode_InternFromString("assertion error")))
        PyErr_Clear();
    return text;
}

// What the frame's current instruction asserts would be reported with this text (borrowed); NULL:
// it asserts nothing, or makes its message when it fails. None: it is no assertion, but raises. `whole`:
// the program is to be one graph.
static PyObject *message_of(const run *r, bool whole) {
    const code *c = r->code;
    const insn *now = code_at(c, py_frame_lasti(r->frame));
    const insn *next = now ? next_if_false(c, now) : NULL;
    if (!is_op(next, OP_LOAD_ASSERTION_ERROR, 0))
        return whole && raises_from(c, next) ? Py_None : NULL;
    if (is_op(after(c, next, 1), OP_RAISE_VARARGS, 1))
        return usual_message();
    const insn *text = after(c, next, 1);
    if (!text || text->op != OP_LOAD_CONST || !is_op(after(c, next, 2), OP_CALL, 0) ||
        !is_op(after(c, next, 3), OP_RAISE_VARARGS, 1))
        return NULL;
    PyObject *message = PyTuple_GET_ITEM(c->py->co_consts, text->arg);
    return PyUnicode_CheckExact(message) ? message : NULL;
}

bool op_asserts(world *w) {
    return w->run && world_tensors && message_of(w->run, w->terms.whole);
}

int op_condition(world *w, PyObject *o) {
    bool tensor = is_lazy(o) ? world_has_tensor(((lazy *)o)->outside) : is_standin(o);
    if (!tensor || !op_asserts(w))
        return op_truth(w, o);
    PyObject *opened = door_open(w, o);
    if (!opened)
        return -1;
    const standin_kind *kind = standin_kind_of(opened);
    int done = kind ? kind->check(w, opened, message_of(w->run, w->terms.whole)) : 0;
    return done == 0 ? op_truth(w, opened) : done;
}
