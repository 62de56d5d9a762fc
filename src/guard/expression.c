// Expressions over places: built by a trace, evaluated by guard programs without making objects.
#include "src/guard/expression.h"

#include "src/base/upcalls.h"
#include "src/base/vec.h"

// Where the value of a leaf is read.
typedef struct leaf {
    number_kind kind;
    int reg;          // the register of the tensor or of the number; -1 until it is resolved
    source *place;    // the source of the tensor or of the number; dies with the trace
    source_kind what; // SIZE and STRIDE are read from the tensor's memory, without making an int
    Py_ssize_t dim;
} leaf;

typedef struct expression {
    PyObject_HEAD
    expr_program program; // its last step gives the value
    leaf *leaves;         // one for each leaf of the program
} expression;

static void expression_dealloc(expression *e) {
    expr_program_free(&e->program);
    PyMem_Free(e->leaves);
    PyObject_Free(e);
}

static PyTypeObject expression_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.expression",
    .tp_basicsize = sizeof(expression),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)expression_dealloc,
};

int expression_setup(void) {
    return PyType_Ready(&expression_type);
}

// --- making ---

static leaf leaf_of(const expr_leaf *from) {
    source *s = from->place;
    bool dimension = s->kind == SOURCE_SIZE || s->kind == SOURCE_STRIDE;
    return (leaf){from->kind, -1, dimension ? s->parent : s, s->kind, s->index};
}

static bool fill(expression *e, number n) {
    int step;
    if (!expr_flatten(&e->program, n, &step))
        return false;
    assert(step == (int)e->program.code.count - 1);
    uint32_t count = e->program.leaves.count;
    e->leaves = PyMem_New(leaf, count + 1);
    for (uint32_t i = 0; e->leaves && i < count; i++)
        e->leaves[i] = leaf_of(&e->program.leaves.items[i]);
    if (!e->leaves)
        PyErr_NoMemory();
    return e->leaves != NULL;
}

PyObject *expression_new(number n) {
    expression *e = PyObject_New(expression, &expression_type);
    if (!e)
        return NULL;
    memset((char *)e + sizeof(PyObject), 0, sizeof(expression) - sizeof(PyObject));
    if (!fill(e, n))
        Py_CLEAR(e);
    return (PyObject *)e;
}

source *expression_place(PyObject *o, int index) {
    expression *e = (expression *)o;
    return index < (int)e->program.leaves.count ? e->leaves[index].place : NULL;
}

void expression_resolve(PyObject *o) {
    expression *e = (expression *)o;
    for (uint32_t i = 0; i < e->program.leaves.count; i++)
        e->leaves[i].reg = e->leaves[i].place->reg;
}

int expression_register(PyObject *o, int index) {
    expression *e = (expression *)o;
    return index < (int)e->program.leaves.count ? e->leaves[index].reg : -1;
}

// --- evaluating ---

bool dimension_read(source_kind kind, PyObject *tensor, Py_ssize_t dim, number *value) {
    const int64_t *sizes, *strides;
    int64_t dims;
    if (!source_read_sizes || !source_read_sizes(tensor, &dims, &sizes, &strides) || dim < 0 ||
        dim >= dims)
        return false;
    *value = number_int((kind == SOURCE_SIZE ? sizes : strides)[dim]);
    return true;
}

static bool read_object(const leaf *l, PyObject *o, number *value) {
    return number_from_object(o, value) && value->kind == l->kind;
}

static bool read_leaf(const leaf *l, PyObject *const *regs, number *value) {
    PyObject *o = regs[l->reg];
    if (!o)
        return false;
    bool dimension = l->what == SOURCE_SIZE || l->what == SOURCE_STRIDE;
    return dimension ? dimension_read(l->what, o, l->dim, value) : read_object(l, o, value);
}

enum { NUMBERS_ON_STACK = 64 };

// The values of leaves and steps, one array after the other. NULL without an exception.
static number *numbers_new(const expression *e, number *here) {
    uint32_t count = e->program.leaves.count + e->program.code.count;
    return count <= NUMBERS_ON_STACK ? here : PyMem_New(number, count);
}

static void numbers_free(number *numbers, const number *here) {
    if (numbers != here)
        PyMem_Free(numbers);
}

// Computes all values. False: one cannot be computed.
static bool compute(const expression *e, PyObject *const *regs, number *numbers) {
    const expr_program *p = &e->program;
    for (uint32_t i = 0; i < p->leaves.count; i++)
        if (!read_leaf(&e->leaves[i], regs, &numbers[i]))
            return false;
    return number_evaluate(p->code.items, 0, (int)p->code.count, numbers,
                           numbers + p->leaves.count);
}

bool expression_value(PyObject *o, PyObject *const *regs, number *value) {
    const expression *e = (expression *)o;
    number here[NUMBERS_ON_STACK], *numbers = numbers_new(e, here);
    bool done = numbers && compute(e, regs, numbers);
    if (done)
        *value = numbers[e->program.leaves.count + e->program.code.count - 1];
    if (numbers)
        numbers_free(numbers, here);
    return done;
}

// --- text ---

// How an operation is written, and whether it needs no parentheses as an operand.
typedef struct op_text {
    const char *pattern; // %a and %b are its operands
    bool closed;
} op_text;

static const op_text op_texts[NUMBER_OPS] = {
    [NUMBER_ADD] = {"%a + %b", false},         [NUMBER_SUB] = {"%a - %b", false},
    [NUMBER_MUL] = {"%a * %b", false},         [NUMBER_FLOORDIV] = {"%a // %b", false},
    [NUMBER_MOD] = {"%a % %b", false},         [NUMBER_TRUEDIV] = {"%a / %b", false},
    [NUMBER_POW] = {"%a ** %b", false},        [NUMBER_LSHIFT] = {"%a << %b", false},
    [NUMBER_RSHIFT] = {"%a >> %b", false},     [NUMBER_AND] = {"%a & %b", false},
    [NUMBER_OR] = {"%a | %b", false},          [NUMBER_XOR] = {"%a ^ %b", false},
    [NUMBER_MIN] = {"min(%a, %b)", true},      [NUMBER_MAX] = {"max(%a, %b)", true},
    [NUMBER_EQ] = {"%a == %b", false},         [NUMBER_NE] = {"%a != %b", false},
    [NUMBER_LT] = {"%a < %b", false},          [NUMBER_LE] = {"%a <= %b", false},
    [NUMBER_GT] = {"%a > %b", false},          [NUMBER_GE] = {"%a >= %b", false},
    [NUMBER_SAME] = {"%a == %b", false},       [NUMBER_NEG] = {"-%a", false},
    [NUMBER_ABS] = {"abs(%a)", true},          [NUMBER_INVERT] = {"~%a", false},
    [NUMBER_NOT] = {"not %a", false},          [NUMBER_TO_INT] = {"int(%a)", true},
    [NUMBER_TO_FLOAT] = {"float(%a)", true},   [NUMBER_TO_BOOL] = {"bool(%a)", true},
    [NUMBER_FLOOR] = {"math.floor(%a)", true}, [NUMBER_CEIL] = {"math.ceil(%a)", true},
    [NUMBER_ROUND] = {"round(%a)", true},      [NUMBER_SQRT] = {"math.sqrt(%a)", true},
    [NUMBER_ACOS] = {"math.acos(%a)", true},   [NUMBER_ASIN] = {"math.asin(%a)", true},
    [NUMBER_ATAN] = {"math.atan(%a)", true},   [NUMBER_COS] = {"math.cos(%a)", true},
    [NUMBER_COSH] = {"math.cosh(%a)", true},   [NUMBER_EXP] = {"math.exp(%a)", true},
    [NUMBER_EXPM1] = {"math.expm1(%a)", true}, [NUMBER_LOG] = {"math.log(%a)", true},
    [NUMBER_LOG10] = {"math.log10(%a)", true}, [NUMBER_LOG1P] = {"math.log1p(%a)", true},
    [NUMBER_LOG2] = {"math.log2(%a)", true},   [NUMBER_SIN] = {"math.sin(%a)", true},
    [NUMBER_SINH] = {"math.sinh(%a)", true},   [NUMBER_TAN] = {"math.tan(%a)", true},
    [NUMBER_TANH] = {"math.tanh(%a)", true},
};

static bool is_comparison(number_op op) {
    return op >= NUMBER_EQ && op <= NUMBER_SAME;
}

// A part that occurs twice is written twice, so the length of the text has a limit.
enum { MOST_WORDS = 200 };

typedef struct writer {
    const expression *e;
    leaf_text texts;
    void *data;
    int words;
} writer;

static PyObject *step_text(writer *w, int index);

static const expr_code *code_at(const expression *e, int index) {
    return &e->program.code.items[index];
}

static PyObject *operand_text(writer *w, int index, bool bare) {
    const expr_code *c = code_at(w->e, index);
    PyObject *text = step_text(w, index);
    if (!text || bare || c->op >= NUMBER_OPS || op_texts[c->op].closed)
        return text;
    PyObject *closed = PyUnicode_FromFormat("(%U)", text);
    Py_DECREF(text);
    return closed;
}

static bool append(PyObject **text, PyObject *piece) {
    if (piece)
        PyUnicode_Append(text, piece);
    else
        Py_CLEAR(*text);
    Py_XDECREF(piece);
    return *text != NULL;
}

static PyObject *apply_text(writer *w, const expr_code *c) {
    const op_text *row = &op_texts[c->op];
    bool bare = row->closed || is_comparison(c->op);
    PyObject *text = PyUnicode_FromString("");
    for (const char *at = row->pattern; text && *at; at++) {
        bool operand = at[0] == '%' && (at[1] == 'a' || at[1] == 'b');
        if (!operand) {
            append(&text, PyUnicode_FromFormat("%c", *at));
            continue;
        }
        at++;
        append(&text, operand_text(w, *at == 'a' ? c->a : c->b, bare));
    }
    return text;
}

static PyObject *leaf_words(writer *w, const leaf *l) {
    PyObject *text = w->texts(w->data, l->place, l->reg);
    if (!text || (l->what != SOURCE_SIZE && l->what != SOURCE_STRIDE))
        return text;
    const char *what = l->what == SOURCE_SIZE ? "size" : "stride";
    PyObject *whole = PyUnicode_FromFormat("%U.%s()[%zd]", text, what, l->dim);
    Py_DECREF(text);
    return whole;
}

static PyObject *number_text(number n) {
    PyObject *o = number_as_object(n);
    PyObject *text = o ? object_text(o) : NULL;
    Py_XDECREF(o);
    return text;
}

static PyObject *step_text(writer *w, int index) {
    const expr_code *c = code_at(w->e, index);
    if (w->words++ > MOST_WORDS)
        return PyUnicode_FromString("...");
    if (c->op == CODE_CONSTANT)
        return number_text(c->constant);
    if (c->op == CODE_LEAF)
        return leaf_words(w, &w->e->leaves[c->a]);
    if (Py_EnterRecursiveCall(" while a guard was put in words"))
        return NULL;
    PyObject *text = apply_text(w, c);
    Py_LeaveRecursiveCall();
    return text;
}

PyObject *expression_text(PyObject *o, leaf_text texts, void *data) {
    writer w = {(expression *)o, texts, data, 0};
    return step_text(&w, (int)w.e->program.code.count - 1);
}

// --- current values ---

static PyObject *join(PyObject *text, const char *between, PyObject *more) {
    PyObject *both = text && more ? PyUnicode_FromFormat("%U%s%U", text, between, more) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(more);
    return both;
}

// Both sides of a comparison, but for a constant, which the guard's own text shows.
static PyObject *sides_now(const expression *e, const expr_code *root, const number *values) {
    PyObject *text = NULL;
    const int sides[] = {root->a, root->b};
    for (int i = 0; i < 2; i++) {
        if (code_at(e, sides[i])->op == CODE_CONSTANT)
            continue;
        PyObject *side = number_text(values[sides[i]]);
        text = text ? join(text, " and ", side) : side;
        if (!text)
            return NULL;
    }
    return text ? text : PyUnicode_FromString("false");
}

static PyObject *leaf_now(writer *w, const leaf *l, PyObject *const *regs) {
    number value;
    PyObject *name = leaf_words(w, l), *now = NULL;
    if (name && read_leaf(l, regs, &value))
        now = number_text(value);
    else if (name)
        now = regs[l->reg] ? object_text(regs[l->reg]) : PyUnicode_FromString("not there");
    return join(name, " = ", now);
}

static PyObject *leaves_now(writer *w, PyObject *const *regs) {
    PyObject *text = NULL;
    for (uint32_t i = 0; i < w->e->program.leaves.count; i++) {
        PyObject *one = leaf_now(w, &w->e->leaves[i], regs);
        text = text ? join(text, ", ", one) : one;
        if (!text)
            return NULL;
    }
    return text ? text : PyUnicode_FromString("false");
}

PyObject *expression_now(PyObject *o, PyObject *const *regs, leaf_text texts, void *data) {
    writer w = {(expression *)o, texts, data, 0};
    uint32_t count = w.e->program.code.count;
    const expr_code *root = code_at(w.e, (int)count - 1);
    number here[NUMBERS_ON_STACK], *numbers = numbers_new(w.e, here);
    if (!numbers)
        return PyErr_NoMemory();
    bool sides = root->op < NUMBER_OPS && is_comparison(root->op) && compute(w.e, regs, numbers);
    PyObject *text =
        sides ? sides_now(w.e, root, numbers + w.e->program.leaves.count) : leaves_now(&w, regs);
    numbers_free(numbers, here);
    return text;
}
