// Prints a decoded code object for people: one line per instruction with its source line, offset,
// stack depth, argument in words and live variables, then the exception regions.
#include "src/base/vec.h"

#include "src/code/code.h"

#include <stdarg.h>

typedef VEC(char) text; // UTF-8

typedef struct printer {
    code *c;
    const flow *f;
    text out;
    size_t line_start;
    uint8_t *marks;      // per instruction: is the target of what
    PyObject *lines;     // iterator over co_lines()
    int range_end, line; // the current of these; line -1 for none
    int printed_line;
} printer;

enum { MARK_JUMP = 1, MARK_HANDLER = 2 };
enum { COLUMN_MARK = 7, COLUMN_AT = 10, COLUMN_DEPTH = 18, COLUMN_OP = 29 };
enum { COLUMN_ARG = 53, COLUMN_LIVE = 82 };
enum { LONGEST_REPR = 40 };

// ---- text

static status add_bytes(text *t, const char *bytes, size_t size) {
    TRY(vec_reserve(t, size));
    memcpy(t->items + t->count, bytes, size);
    t->count += (uint32_t)size;
    return ST_OK;
}

static status add(text *t, const char *s) {
    return add_bytes(t, s, strlen(s));
}

// For numbers and names out of opcodes.def; what users wrote goes through add_str.
__attribute__((format(printf, 2, 3))) static status add_format(text *t, const char *format, ...) {
    char line[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    return add(t, line);
}

static status add_str(text *t, PyObject *s) {
    PyObject *bytes = PyUnicode_AsEncodedString(s, "utf-8", "backslashreplace");
    if (!bytes)
        return ST_ERROR;
    status done = add_bytes(t, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return done;
}

// Characters on the current line so far.
static size_t column(const printer *p) {
    size_t characters = 0;
    for (size_t i = p->line_start; i < p->out.count; i++)
        characters += ((unsigned char)p->out.items[i] & 0xc0) != 0x80;
    return characters;
}

static status pad_to(printer *p, size_t wanted) {
    size_t now = column(p);
    TRY(add(&p->out, now < wanted || now == 0 ? "" : " "));
    for (; now < wanted; now++)
        TRY(add(&p->out, " "));
    return ST_OK;
}

static status end_line(printer *p) {
    while (p->out.count > p->line_start && p->out.items[p->out.count - 1] == ' ')
        p->out.count--;
    TRY(add(&p->out, "\n"));
    p->line_start = p->out.count;
    return ST_OK;
}

// ---- constants

// A set's own order changes from run to run.
static PyObject *repr_of_set(PyObject *set) {
    PyObject *reprs = PyList_New(0), *item = NULL, *iterator = PyObject_GetIter(set);
    PyObject *comma = PyUnicode_FromString(", "), *joined = NULL, *result = NULL;
    while (reprs && iterator && (item = PyIter_Next(iterator))) {
        PyObject *repr = PyObject_Repr(item);
        Py_DECREF(item);
        if (!repr || PyList_Append(reprs, repr) < 0)
            Py_CLEAR(reprs);
        Py_XDECREF(repr);
    }
    if (comma && !PyErr_Occurred() && PyList_Sort(reprs) == 0)
        joined = PyUnicode_Join(comma, reprs);
    if (joined)
        result = PyUnicode_FromFormat("frozenset({%U})", joined);
    Py_XDECREF(reprs);
    Py_XDECREF(iterator);
    Py_XDECREF(comma);
    Py_XDECREF(joined);
    return result;
}

// One that is the same in every run.
static PyObject *repr_of(PyObject *constant) {
    if (PyCode_Check(constant))
        return PyUnicode_FromFormat("<code %U>", ((PyCodeObject *)constant)->co_qualname);
    if (PyFrozenSet_CheckExact(constant))
        return repr_of_set(constant);
    PyObject *repr = PyObject_Repr(constant);
    if (repr || !PyErr_ExceptionMatches(PyExc_ValueError))
        return repr;
    PyErr_Clear(); // an int with more digits than sys.set_int_max_str_digits allows
    return PyUnicode_FromFormat("<%s>", Py_TYPE(constant)->tp_name);
}

static status add_constant(text *t, PyObject *constant) {
    PyObject *repr = repr_of(constant);
    if (!repr)
        return ST_ERROR;
    bool fits = PyUnicode_GET_LENGTH(repr) <= LONGEST_REPR;
    if (!fits)
        Py_SETREF(repr, PyUnicode_Substring(repr, 0, LONGEST_REPR - 3));
    status done = repr ? add_str(t, repr) : ST_ERROR;
    Py_XDECREF(repr);
    return done == ST_OK && !fits ? add(t, "...") : done;
}

// ---- arguments

static PyObject *local_name(const code *c, Py_ssize_t local) {
    return PyTuple_GET_ITEM(c->py->co_localsplusnames, local);
}

static status add_binary(text *t, int32_t arg) {
    static const char *const operators[] = {"+", "&",  "//", "<<", "@", "*", "%",
                                            "|", "**", ">>", "-",  "/", "^"};
    int32_t plain = (int32_t)Py_ARRAY_LENGTH(operators); // then the same in place
    TRY(add(t, operators[arg % plain]));
    return add(t, arg < plain ? "" : "=");
}

static status add_compare(text *t, const insn *i) {
    static const char *const operators[] = {"<", "<=", "==", "!=", ">", ">="};
    TRY(add(t, operators[i->arg]));
    return add(t, i->extra ? " as bool" : "");
}

static status add_convert(text *t, const insn *i) {
    static const char *const conversions[] = {"", "str", "repr", "ascii"};
    TRY(add(t, conversions[i->arg]));
    return add(t, i->op == OP_FORMAT_VALUE && i->extra ? i->arg ? ", spec" : "spec" : "");
}

static status add_flags(text *t, const insn *i) {
    static const char *const parts[] = {"defaults", "kwdefaults", "annotations", "closure"};
    bool first = true;
    for (int bit = 0; bit < 4; bit++) {
        if (!(i->arg & 1 << bit))
            continue;
        TRY(add(t, first ? "" : ", "));
        TRY(add(t, parts[bit]));
        first = false;
    }
    return ST_OK;
}

static status add_jump(text *t, const code *c, const insn *i) {
    TRY(add_format(t, "to %u", 2 * insn_start(&c->insns[i->target])));
    return add(t, i->flags & INSN_POLLS ? ", polls" : "");
}

static status add_name(text *t, const code *c, const insn *i) {
    TRY(add_str(t, PyTuple_GET_ITEM(c->py->co_names, i->arg)));
    switch (i->op) {
    case OP_LOAD_GLOBAL:
        return add(t, i->extra ? " + NULL" : "");
    case OP_LOAD_SUPER_ATTR:
        TRY(add(t, i->extra & 1 ? " as method" : ""));
        return add(t, i->extra & 2 ? ", two arguments" : "");
    default:
        return ST_OK;
    }
}

static status add_count(text *t, const code *c, const insn *i) {
    TRY(add_format(t, "%d", i->arg));
    if (i->op == OP_UNPACK_EX)
        return add_format(t, ", rest, %d", i->extra);
    if (i->op != OP_CALL || i->extra < 0)
        return ST_OK;
    TRY(add(t, ", names "));
    return add_constant(t, PyTuple_GET_ITEM(c->py->co_consts, i->extra));
}

static status add_extra(text *t, const insn *i) {
    if (i->op == OP_CALL_FUNCTION_EX)
        return add(t, i->extra ? "with keywords" : "");
    return i->extra && i->op != OP_IMPORT_STAR && i->op != OP_PRINT_EXPR
               ? add_format(t, "%d", i->extra)
               : ST_OK;
}

static status add_invert(text *t, const insn *i) {
    if (i->op == OP_IS_OP)
        return add(t, i->arg ? "is not" : "is");
    return add(t, i->arg ? "not in" : "in");
}

static status add_argument(text *t, const code *c, const insn *i) {
    switch (op_argument(i->op)) {
    case ARG_NONE:
        return add_extra(t, i);
    case ARG_RAW:
    case ARG_DEPTH:
        return add_format(t, "%d", i->arg);
    case ARG_COUNT:
        return add_count(t, c, i);
    case ARG_CONST:
        return add_constant(t, PyTuple_GET_ITEM(c->py->co_consts, i->arg));
    case ARG_NAME:
        return add_name(t, c, i);
    case ARG_LOCAL:
        return add_str(t, local_name(c, i->arg));
    case ARG_BINARY:
        return add_binary(t, i->arg);
    case ARG_COMPARE:
        return add_compare(t, i);
    case ARG_INVERT:
        return add_invert(t, i);
    case ARG_CONVERT:
        return add_convert(t, i);
    case ARG_FLAGS:
        return add_flags(t, i);
    case ARG_JUMP:
        return add_jump(t, c, i);
    }
    Py_UNREACHABLE();
}

// ---- the columns of a line

// Moves on to the source line of a code unit.
static status find_line(printer *p, uint32_t unit) {
    while ((int64_t)p->range_end <= 2 * (int64_t)unit) {
        PyObject *range = PyIter_Next(p->lines), *line;
        int start;
        if (!range && PyErr_Occurred())
            return ST_ERROR;
        p->line = -1;
        p->range_end = INT_MAX; // of the unit behind the table's last
        if (!range)
            return ST_OK;
        bool read = PyArg_ParseTuple(range, "iiO", &start, &p->range_end, &line);
        if (read && line != Py_None)
            p->line = (int)PyLong_AsLong(line);
        Py_DECREF(range);
        if (PyErr_Occurred())
            return ST_ERROR;
    }
    return ST_OK;
}

static status print_place(printer *p, const insn *i) {
    uint8_t mark = p->marks[i - p->c->insns];
    TRY(find_line(p, i->at));
    if (p->line != p->printed_line && p->line >= 0)
        TRY(add_format(&p->out, "%6d", p->line));
    else if (p->line != p->printed_line)
        TRY(add(&p->out, "     -"));
    p->printed_line = p->line;
    TRY(pad_to(p, COLUMN_MARK));
    TRY(add(&p->out, mark & MARK_HANDLER ? "!!" : mark & MARK_JUMP ? ">>" : "  "));
    TRY(pad_to(p, COLUMN_AT));
    return i->flags & INSN_BOUNDARY ? add_format(&p->out, "%6u", 2 * insn_start(i)) : ST_OK;
}

// The depth, and behind a `!` the slots of the exceptions that were handled before, innermost last.
static status print_depth(printer *p, uint32_t index) {
    TRY(pad_to(p, COLUMN_DEPTH));
    if (p->f->depth[index] < 0)
        return add(&p->out, "   -");
    TRY(add_format(&p->out, "%4d", p->f->depth[index]));
    int32_t outer[8], count = 0;
    for (int32_t h = p->f->handled[index]; h >= 0 && count < 8; h = p->f->handlers[h].outer)
        outer[count++] = p->f->handlers[h].slot;
    TRY(add(&p->out, count ? " !" : ""));
    for (int32_t at = count; at-- > 0;)
        TRY(add_format(&p->out, "%d%s", outer[at], at ? "," : ""));
    return ST_OK;
}

static status print_live(printer *p, uint32_t index) {
    const uint64_t *row = p->f->live + (size_t)index * p->f->live_words;
    TRY(pad_to(p, COLUMN_LIVE));
    for (int32_t local = 0; local < p->c->py->co_nlocalsplus; local++) {
        if (!(row[local / 64] >> local % 64 & 1))
            continue;
        TRY(add_str(&p->out, local_name(p->c, local)));
        TRY(add(&p->out, " "));
    }
    return ST_OK;
}

static status print_insn(printer *p, uint32_t index) {
    const insn *i = &p->c->insns[index];
    TRY(print_place(p, i));
    TRY(print_depth(p, index));
    TRY(pad_to(p, COLUMN_OP));
    TRY(add(&p->out, op_name(i->op)));
    TRY(pad_to(p, COLUMN_ARG));
    TRY(add_argument(&p->out, p->c, i));
    TRY(print_live(p, index));
    return end_line(p);
}

// ---- the whole

static status print_head(printer *p) {
    PyCodeObject *py = p->c->py;
    TRY(add_str(&p->out, py->co_qualname));
    TRY(add_format(&p->out, ", line %d, stack %d", py->co_firstlineno, py->co_stacksize));
    for (int32_t local = 0; local < py->co_nlocalsplus; local++) {
        int kind = PyBytes_AS_STRING(py->co_localspluskinds)[local];
        TRY(add(&p->out, local ? ", " : "; "));
        TRY(add(&p->out, kind & CO_FAST_FREE ? "free " : kind & CO_FAST_CELL ? "cell " : ""));
        TRY(add_str(&p->out, local_name(p->c, local)));
    }
    TRY(end_line(p));
    TRY(add(&p->out, "  line        at depth"));
    TRY(pad_to(p, COLUMN_OP));
    TRY(add(&p->out, "instruction"));
    TRY(pad_to(p, COLUMN_ARG));
    TRY(add(&p->out, "argument"));
    TRY(pad_to(p, COLUMN_LIVE));
    TRY(add(&p->out, "live"));
    return end_line(p);
}

static status print_regions(printer *p) {
    for (uint32_t index = 0; index < p->c->region_count; index++) {
        const region *r = &p->c->regions[index];
        TRY(add_format(&p->out, "region %10u to %u, handler %u, depth %d%s", 2 * r->start,
                       2 * r->end, 2 * insn_start(&p->c->insns[r->target]), r->depth,
                       r->lasti ? ", lasti" : ""));
        TRY(end_line(p));
    }
    return ST_OK;
}

static void set_marks(printer *p) {
    for (uint32_t index = 0; index < p->c->count; index++) {
        const insn *i = &p->c->insns[index];
        if (op_flags(i->op) & OPF_JUMP)
            p->marks[i->target] |= MARK_JUMP;
    }
    for (uint32_t index = 0; index < p->c->region_count; index++)
        p->marks[p->c->regions[index].target] |= MARK_HANDLER;
}

static status print_code(printer *p) {
    TRY(print_head(p));
    for (uint32_t index = 0; index < p->c->count; index++)
        TRY(print_insn(p, index));
    return print_regions(p);
}

static status print_one(text *out, PyCodeObject *py) {
    code *c = code_of(py);
    const flow *f = c ? code_flow(c) : NULL;
    if (!f)
        return ST_ERROR;
    printer p = {.c = c, .f = f, .out = *out, .line_start = out->count, .printed_line = INT_MIN};
    p.marks = PyMem_Calloc(c->count, 1);
    p.lines = PyObject_CallMethod((PyObject *)py, "co_lines", NULL);
    if (!p.marks)
        PyErr_NoMemory();
    else
        set_marks(&p);
    status done = p.marks && p.lines ? print_code(&p) : ST_ERROR;
    *out = p.out;
    PyMem_Free(p.marks);
    Py_XDECREF(p.lines);
    return done;
}

// The code objects among the constants, depth first, as they were written.
static status print_all(text *out, PyCodeObject *py, bool nested) {
    TRY(print_one(out, py));
    if (!nested)
        return ST_OK;
    if (Py_EnterRecursiveCall(" while printing nested code objects"))
        return ST_ERROR;
    status done = ST_OK;
    for (Py_ssize_t i = 0; done == ST_OK && i < PyTuple_GET_SIZE(py->co_consts); i++) {
        PyObject *constant = PyTuple_GET_ITEM(py->co_consts, i);
        if (!PyCode_Check(constant))
            continue;
        done = add(out, "\n");
        if (done == ST_OK)
            done = print_all(out, (PyCodeObject *)constant, nested);
    }
    Py_LeaveRecursiveCall();
    return done;
}

PyObject *code_print(PyCodeObject *py, bool nested) {
    text out = {0};
    PyObject *result = NULL;
    if (print_all(&out, py, nested) == ST_OK)
        result = PyUnicode_DecodeUTF8(out.items, (Py_ssize_t)out.count, NULL);
    vec_free(&out);
    return result;
}
