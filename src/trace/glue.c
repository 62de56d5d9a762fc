// Which instructions only hand their operands to an object's own method.
#include "src/trace/glue.h"

#include "src/py/raw.h"

// What an operand is inside; NULL if it has not been looked at.
static PyObject *operand_at(const run *r, const flow *fl, const insn *pc, int below_top) {
    PyObject *o = py_frame_stack(r->frame)[fl->depth[pc - r->code->insns] - 1 - below_top];
    return o && is_lazy(o) ? ((lazy *)o)->inside : o;
}

// An iterator of C code has moved on before it calls: it cannot be asked for the same again.
static bool moves_on(PyObject *o) {
    return o == NULL || (Py_TYPE(o)->tp_iternext != NULL && !raw_is_python_class(Py_TYPE(o)));
}

static bool is_next(PyObject *iterator, PyObject *function) {
    PyObject *name = PyUnicode_InternFromString("__next__"), *found = NULL;
    bool same = name && iterator && raw_is_python_class(Py_TYPE(iterator)) &&
                raw_type_get(Py_TYPE(iterator), name, &found) == RAW_FOUND && found == function;
    Py_XDECREF(name);
    PyErr_Clear();
    return same;
}

static bool operator_calls(const run *r, const flow *fl, const insn *pc, PyObject *function) {
    switch (pc->op) {
    case OP_LOAD_ATTR:
    case OP_LOAD_METHOD:
    case OP_STORE_ATTR:
    case OP_DELETE_ATTR:
    case OP_UNARY_POSITIVE:
    case OP_UNARY_NEGATIVE:
    case OP_UNARY_INVERT:
    case OP_UNARY_NOT:
    case OP_TO_BOOL:
    case OP_POP_JUMP_IF_TRUE:
    case OP_POP_JUMP_IF_FALSE:
    case OP_JUMP_IF_TRUE_OR_POP:
    case OP_JUMP_IF_FALSE_OR_POP:
    case OP_BINARY_SUBSCR:
    case OP_STORE_SUBSCR:
    case OP_DELETE_SUBSCR:
    case OP_COMPARE_OP:
    case OP_GET_ITER:
    case OP_FORMAT_VALUE:
    case OP_CONVERT_VALUE:
        return true;
    case OP_BINARY_OP:
        return !moves_on(operand_at(r, fl, pc, 0)) && !moves_on(operand_at(r, fl, pc, 1));
    case OP_CONTAINS_OP:
        return !moves_on(operand_at(r, fl, pc, 0));
    case OP_FOR_ITER:
        return is_next(operand_at(r, fl, pc, 0), function);
    default:
        return false;
    }
}

bool glue_calls(const world *w, PyObject *function) {
    const run *r = w->run;
    if (r == NULL || w->touched >= r->started || py_frame_in_generator(r->frame))
        return false;
    const insn *pc = code_at(r->code, py_frame_lasti(r->frame));
    const flow *fl = pc ? code_flow((code *)r->code) : NULL;
    if (fl == NULL || !(pc->flags & INSN_BOUNDARY) || fl->depth[pc - r->code->insns] < 0)
        return false;
    return operator_calls(r, fl, pc, function);
}
