// Finds out whether an instruction has done nothing but call an operand's own method.
#include "src/trace/operator.h"

#include "src/py/raw.h"

// What an operand is inside; NULL if it has not been looked at.
static PyObject *operand_at(const run *r, const flow *fl, const insn *pc, int below_top) {
    const py_slot *sp = py_frame_stack(r->frame) + fl->depth[pc - r->code->insns];
    PyObject *o = py_slot_get(sp - 1 - below_top);
    return o && is_lazy(o) ? ((lazy *)o)->inside : o;
}

// An iterator of C code has moved on before it calls: it cannot be asked for the same again.
static bool moves_on(PyObject *o) {
    return !o || (Py_TYPE(o)->tp_iternext && !raw_is_python_class(Py_TYPE(o)));
}

// What a type has under a name; borrowed, NULL if nothing is known.
static PyObject *on_type(PyObject *o, PyObject *name) {
    PyObject *found = NULL;
    if (!o || !raw_is_python_class(Py_TYPE(o)) ||
        raw_type_get(Py_TYPE(o), name, &found) != RAW_FOUND)
        return NULL;
    return found;
}

// Whether the function is what an operand's type has under this name, however the function itself
// is named.
static bool is_method(PyObject *o, const char *name, PyObject *function) {
    PyObject *word = o ? PyUnicode_InternFromString(name) : NULL;
    bool is = word && on_type(o, word) == function;
    Py_XDECREF(word);
    PyErr_Clear(); // without memory nothing is known
    return is;
}

// Whether it is an operand's own method, so that nothing but the type leads to it: what the method
// does to the objects around it does not change who is called. (A key's __eq__ is asked for by what
// lies in the dict. __getattr__ is, by what the instance lacks: see breaks.c.)
static bool is_own(PyObject *o, PyObject *function, int asks) {
    return on_type(o, ((PyFunctionObject *)function)->func_name) == function &&
           !is_method(o, "__missing__", function) &&
           !((asks & ASKS_NO_EQ) && is_method(o, "__eq__", function)) &&
           (!(asks & ASKS_NEXT) || is_method(o, "__next__", function));
}

// A property comes before all that the instance has.
static bool is_accessor(PyObject *o, PyObject *name, int asks, PyObject *function) {
    raw_field field = asks & ASKS_GET   ? RAW_PROPERTY_GET
                      : asks & ASKS_SET ? RAW_PROPERTY_SET
                                        : RAW_PROPERTY_DEL;
    PyObject *found = on_type(o, name);
    return found && Py_IS_TYPE(found, &PyProperty_Type) && raw_field_get(field, found) == function;
}

static bool instruction_calls(const run *r, const flow *fl, const insn *pc, PyObject *function) {
    int asks = op_asks(pc->op, pc->extra);
    bool own = false;
    for (int i = 0; i < ASKS_OPERANDS; i++) {
        if ((asks & ASKS_STILL << i) && moves_on(operand_at(r, fl, pc, i)))
            return false;
        own |= (asks & ASKS_TOP << i) && is_own(operand_at(r, fl, pc, i), function, asks);
    }
    if (own || !(asks & (ASKS_GET | ASKS_SET | ASKS_DELETE)))
        return own;
    PyObject *name = PyTuple_GET_ITEM(r->code->py->co_names, pc->arg);
    return is_accessor(operand_at(r, fl, pc, 0), name, asks, function);
}

bool operator_calls(const world *w, PyObject *function) {
    const run *r = w->run;
    if (!r || w->time.touched >= r->started || py_frame_in_generator(r->frame))
        return false;
    const insn *pc = code_at(r->code, py_frame_lasti(r->frame));
    const flow *fl = pc ? code_flow((code *)r->code) : NULL;
    if (!fl || !(pc->flags & INSN_BOUNDARY) || fl->depth[pc - r->code->insns] < 0)
        return false;
    return instruction_calls(r, fl, pc, function);
}
