// Turns a plan into text: one step a line, sources as Python.
#include "src/py/process.h"

#include "src/plan/steps.h"

static const char *const step_texts[STEP_COUNT] = {
#define STEP(name, text) [STEP_##name] = text,
#include "src/plan/steps.def"
#undef STEP
};

// Text under way. NULL once something failed, with an exception set.
typedef struct text {
    const plan *p;
    PyObject *done;
    int nested; // expressions in place of registers, down to this depth
} text;

static void put_step(text *t, const step *s);

static void put(text *t, PyObject *more) {
    if (t->done && more)
        PyUnicode_Append(&t->done, more);
    else
        Py_CLEAR(t->done);
    Py_XDECREF(more);
}

static void put_text(text *t, const char *more) {
    put(t, PyUnicode_FromString(more));
}

static void put_short(text *t, PyObject *o) {
    enum { LONG = 60 };
    PyObject *whole = py_repr(o);
    if (whole && PyUnicode_GET_LENGTH(whole) > LONG) {
        PyObject *start = PyUnicode_Substring(whole, 0, LONG);
        Py_SETREF(whole, start ? PyUnicode_FromFormat("%U%s", start, "…") : NULL);
        Py_XDECREF(start);
    }
    put(t, whole);
}

// A constant: its value, or the name of what has no value to show.
static void put_constant(text *t, PyObject *o) {
    if (PyType_Check(o))
        put_text(t, ((PyTypeObject *)o)->tp_name);
    else if (PyCode_Check(o))
        put(t, PyUnicode_FromFormat("<code %U>", ((PyCodeObject *)o)->co_qualname));
    else if (value_immutable(o) || PyBytes_Check(o))
        put_short(t, o);
    else if (PyFunction_Check(o))
        put(t, Py_NewRef(((PyFunctionObject *)o)->func_qualname));
    else if (PyCFunction_Check(o))
        put_text(t, ((PyCFunctionObject *)o)->m_ml->ml_name);
    else if (Py_TYPE(o) == &PyMethodDescr_Type)
        put(t, PyUnicode_FromFormat("%s.%U", PyDescr_TYPE(o)->tp_name, PyDescr_NAME(o)));
    else
        put(t, PyUnicode_FromFormat("<%s>", Py_TYPE(o)->tp_name));
}

static const step *maker_of(const plan *p, int reg) {
    for (uint32_t i = 0; i < p->writes; i++) {
        if (p->steps.items[i].out == reg)
            return &p->steps.items[i];
    }
    return NULL;
}

static PyObject *origin_of(const plan *p, int reg) {
    for (uint32_t i = 0; i < p->loads.count; i++) {
        if (p->loads.items[i].to == reg)
            return Py_NewRef(p->loads.items[i].text);
    }
    for (uint32_t i = 0; i < p->outputs.count; i++) {
        if (p->outputs.items[i] == reg)
            return PyUnicode_FromFormat("graph[%u]", i);
    }
    return PyUnicode_FromString("…");
}

// What a register holds, as an expression.
static void put_expression(text *t, int reg) {
    const step *s = t->nested > 1 ? maker_of(t->p, reg) : NULL;
    t->nested--;
    if (s)
        put_step(t, s);
    else
        put(t, origin_of(t->p, reg));
    t->nested++;
}

static void put_operand(text *t, operand o) {
    if (o == OPERAND_NONE)
        put_text(t, "NULL");
    else if (o < 0)
        put_constant(t, t->p->constants.items[~o]);
    else if (t->nested > 0)
        put_expression(t, o);
    else
        put(t, PyUnicode_FromFormat("r%d", o));
}

// As %*, with `between` after every other operand as well: pairs.
static void put_operands(text *t, const step *s, const char *between) {
    for (uint32_t i = 0; i < s->count; i++) {
        if (i > 0)
            put_text(t, i % 2 ? between : ", ");
        put_operand(t, t->p->operands.items[s->first + i]);
    }
}

static void put_named(text *t, const step *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        put(t, PyUnicode_FromFormat(i ? ", %U=" : "%U=", PyTuple_GET_ITEM(s->object, i)));
        put_operand(t, t->p->operands.items[s->first + i]);
    }
}

// Rows of a function and its arguments, and what undoes it.
static void put_calls(text *t, PyObject *rows) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); i++) {
        PyObject *args = PyTuple_GET_ITEM(PyTuple_GET_ITEM(rows, i), 1);
        put_text(t, i ? "; " : "");
        put_constant(t, PyTuple_GET_ITEM(PyTuple_GET_ITEM(rows, i), 0));
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args); k++) {
            put_text(t, k ? ", " : "(");
            put_short(t, PyTuple_GET_ITEM(args, k));
        }
        put_text(t, PyTuple_GET_SIZE(args) ? ")" : "()");
    }
}

static void put_part(text *t, const step *s, char part) {
    switch (part) {
    case 'a':
        put_operand(t, s->a);
        break;
    case 'b':
        put_operand(t, s->b);
        break;
    case 'c':
        put_operand(t, s->c);
        break;
    case '*':
        put_operands(t, s, ", ");
        break;
    case ':':
        put_operands(t, s, ": ");
        break;
    case '=':
        put_named(t, s);
        break;
    case 'k':
        put_constant(t, s->object);
        break;
    case '!':
        put_calls(t, s->object);
        break;
    case 'n':
        put(t, Py_NewRef(s->object));
        break;
    default:
        put(t, PyUnicode_FromFormat("%zd", part == 'i' ? s->index : s->end));
    }
}

static void put_step(text *t, const step *s) {
    if (s->out >= 0 && t->nested == 0)
        put(t, PyUnicode_FromFormat("r%d = ", s->out));
    const char *from = step_texts[s->kind];
    for (const char *at = strchr(from, '%'); at; from = at + 2, at = strchr(from, '%')) {
        put(t, PyUnicode_FromStringAndSize(from, at - from));
        put_part(t, s, at[1]);
    }
    put_text(t, from);
}

static void put_registers(text *t, const int *registers, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        put(t, PyUnicode_FromFormat(i ? ", r%d" : "r%d", registers[i]));
}

static void put_graph(text *t) {
    const plan *p = t->p;
    if (!p->has_graph)
        return;
    put_registers(t, p->outputs.items, p->outputs.count);
    put_text(t, p->outputs.count > 1 ? " = graph(" : p->outputs.count ? ", = graph(" : "graph(");
    put_registers(t, p->inputs.items, p->inputs.count);
    put_text(t, ")\n");
}

PyObject *plan_text(const plan *p) {
    text t = {.p = p, .done = PyUnicode_FromString("")};
    for (uint32_t i = 0; i < p->loads.count; i++)
        put(&t, PyUnicode_FromFormat("r%d = %U\n", p->loads.items[i].to, p->loads.items[i].text));
    put_graph(&t);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        put_step(&t, &p->steps.items[i]);
        put_text(&t, "\n");
    }
    put_text(&t, "return ");
    put_operand(&t, p->result);
    put_text(&t, "\n");
    return t.done;
}

PyObject *plan_writes(const plan *p) {
    enum { NESTED = 4 };
    PyObject *list = PyList_New(0);
    for (uint32_t i = p->writes; list && i < p->steps.count; i++) {
        if (p->steps.items[i].kind == STEP_ITERATOR_PLACE)
            continue;
        text t = {.p = p, .done = PyUnicode_FromString(""), .nested = NESTED};
        put_step(&t, &p->steps.items[i]);
        if (!t.done || PyList_Append(list, t.done) < 0)
            Py_CLEAR(list);
        Py_XDECREF(t.done);
    }
    return list;
}
