// Turns a guard program into readable Python: its guards with the user's lines, and why one fails
// now.
#include "src/py/raw.h"

#include "src/guard/expression.h"
#include "src/guard/guard.h"
#include "src/guard/program.h"
#include "src/guard/value.h"

static PyObject *text_of_register(void *data, source *place, int reg) {
    (void)place; // died with the trace
    return register_text(data, reg);
}

static PyObject *computed_text(const guard_program *p, const step *s) {
    return expression_text(s->object, text_of_register, (void *)p);
}

PyObject *register_text(const guard_program *p, int32_t reg) {
    const step *s = &p->steps[p->loads[reg]];
    if (s->op == SOURCE_EXPR)
        return computed_text(p, s);
    PyObject *parent = s->a >= 0 ? register_text(p, s->a) : NULL;
    if (s->a >= 0 && !parent)
        return NULL;
    bool died = step_rows[s->op].holds == HOLD_KEY && !s->object;
    PyObject *key = died ? Py_Ellipsis : s->object;
    PyObject *text = source_text_of((source_kind)s->op, parent, key, s->index);
    Py_XDECREF(parent);
    return text;
}

static PyObject *text_or_dead(PyObject *o) {
    return o ? object_text(o) : PyUnicode_FromString("<an object that died>");
}

// A name may hold what UTF-8 cannot.
static const char *utf8_or_mark(PyObject *text) {
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : "";
    if (!utf8)
        PyErr_Clear();
    return utf8 ? utf8 : "?";
}

static PyObject *custom_text(const step *s, PyObject *first) {
    const char *source = utf8_or_mark(first);
    return s->custom->text ? s->custom->text(source, s->data)
                           : PyUnicode_FromString(s->custom->name);
}

// The name of a lookup stands bare; what it must give is in place of a second source.
static PyObject *lookup_text(const step *s, PyObject *first) {
    PyObject *found = s->second ? object_text(s->second) : PyUnicode_FromString("absent");
    pattern_texts texts = {.first = first, .second = found, .object = s->object};
    PyObject *text = found ? pattern_fill(step_rows[s->op].text, &texts) : NULL;
    Py_XDECREF(found);
    return text;
}

static PyObject *empty_text(const step *s, PyObject *first) {
    return PyUnicode_FromFormat("bool(len(%U)) is %s", first, s->index ? "False" : "True");
}

// What was expected, of a guard that has several objects.
static PyObject *items_text(const step *s) {
    PyObject *tuple = PyTuple_New(s->index), *text = NULL;
    for (Py_ssize_t i = 0; tuple && i < s->index; i++) {
        bool any = !s->items[i] || s->items[i] == guard_any;
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(any ? Py_Ellipsis : s->items[i]));
    }
    if (tuple)
        text = object_text(tuple);
    Py_XDECREF(tuple);
    return text;
}

static PyObject *plain_text(const guard_program *p, const step *s, PyObject *first) {
    const step_row *row = &step_rows[s->op];
    PyObject *object = !strstr(row->text, "%o")   ? NULL
                       : row->holds == HOLD_ITEMS ? items_text(s)
                                                  : text_or_dead(s->object);
    PyObject *second = s->b >= 0 ? register_text(p, s->b) : NULL;
    PyObject *text = NULL;
    pattern_texts texts = {first, second, object, NULL, s->index};
    if (!PyErr_Occurred())
        text = pattern_fill(row->text, &texts);
    Py_XDECREF(object);
    Py_XDECREF(second);
    return text;
}

// One step as Python. New str.
static PyObject *step_text(const guard_program *p, const step *s) {
    if (step_is_load(s))
        return register_text(p, s->b);
    PyObject *first = s->a >= 0 ? register_text(p, s->a) : NULL, *text;
    if (s->a >= 0 && !first)
        return NULL;
    switch (s->op - STEP_CHECK) {
    case GUARD_CUSTOM:
        text = custom_text(s, first);
        break;
    case GUARD_TYPE_LOOKUP:
        text = lookup_text(s, first);
        break;
    case GUARD_EMPTY:
        text = empty_text(s, first);
        break;
    case GUARD_EXPR:
        text = computed_text(p, s);
        break;
    default:
        text = plain_text(p, s, first);
    }
    Py_XDECREF(first);
    return text;
}

// --- rows ---

static int origin_line(const program_code *c, int32_t offset) {
    PyObject *code = raw_weakref_get(c->reference);
    return code && PyCode_Check(code) ? PyCode_Addr2Line((PyCodeObject *)code, offset) : 0;
}

static PyObject *row(const guard_program *p, int32_t i) {
    origin o = p->origins[i];
    const program_code *c = o.code >= 0 ? &p->codes.items[o.code] : NULL;
    PyObject *text = step_text(p, &p->steps[i]);
    int line = c ? origin_line(c, o.offset) : 0;
    return text ? Py_BuildValue("(NOi)", text, c ? c->filename : Py_None, line < 0 ? 0 : line)
                : NULL;
}

static PyObject *rows(const guard_program *p) {
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; list && i < p->count; i++) {
        if (step_is_load(&p->steps[i]))
            continue;
        PyObject *item = row(p, i);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

PyObject *guard_rows(const guard_program *p) {
    bool collecting = raw_gc_off(); // texts are made of objects that a collection might kill
    PyObject *list = rows(p);
    raw_gc_restore(collecting);
    return list;
}

// --- reasons ---

static PyObject *value_now(const step *s, PyObject *o) {
    PyObject *text = object_text(o);
    if (!text || Py_TYPE(o) == Py_TYPE(s->object))
        return text;
    PyObject *type = object_text((PyObject *)Py_TYPE(o));
    PyObject *both = type ? PyUnicode_FromFormat("%U, of type %U", text, type) : NULL;
    Py_XDECREF(type);
    Py_DECREF(text);
    return both;
}

static PyObject *length_now(PyObject *o) {
    Py_ssize_t length = raw_length(o);
    return length < 0 ? object_text(o) : PyUnicode_FromFormat("%zd", length);
}

static PyObject *list_now(PyObject *list) {
    PyObject *text = list ? object_text(list) : NULL;
    Py_XDECREF(list);
    return text;
}

static PyObject *keys_now(PyObject *o) {
    PyObject *key, *value, *list;
    if (!PyDict_Check(o))
        return object_text(o);
    list = PyList_New(0);
    for (raw_cursor c = {0}; list && raw_dict_next(o, &c, &key, &value);)
        if (PyList_Append(list, key) < 0)
            Py_CLEAR(list);
    return list_now(list);
}

static PyObject *mro_now(PyObject *o) {
    PyObject *mro = PyType_Check(o) ? ((PyTypeObject *)o)->tp_mro : NULL;
    return object_text(mro ? mro : o);
}

static PyObject *code_now(PyObject *o) {
    return object_text(PyFunction_Check(o) ? ((PyFunctionObject *)o)->func_code : o);
}

static PyObject *found_now(raw there, PyObject *value, PyObject *o) {
    return there == RAW_FOUND    ? object_text(value)
           : there == RAW_ABSENT ? PyUnicode_FromString("absent")
                                 : object_text(o);
}

static PyObject *item_now(const step *s, PyObject *o) {
    PyObject *value = NULL;
    raw there = raw_dict_get(o, s->object, &value);
    return found_now(there, value, o);
}

static PyObject *attr_now(const step *s, PyObject *o) {
    PyObject *value;
    raw there = raw_attr_get(o, s->object, &value);
    return found_now(there, value, o);
}

static PyObject *lookup_now(const step *s, PyObject *o) {
    PyObject *value = NULL;
    raw there = PyType_Check(o) ? raw_type_get((PyTypeObject *)o, s->object, &value) : RAW_UNSURE;
    return found_now(there, value, o);
}

// Which two are one now.
static PyObject *distinct_now(const guard_program *p, PyObject *const *regs) {
    for (int32_t i = 1; i < p->distinct_count; i++) {
        for (int32_t j = 0; j < i; j++) {
            if (regs[p->distinct[i]] != regs[p->distinct[j]])
                continue;
            PyObject *a = register_text(p, p->distinct[j]);
            PyObject *b = a ? register_text(p, p->distinct[i]) : NULL;
            PyObject *text = b ? PyUnicode_FromFormat("%U is %U", a, b) : NULL;
            Py_XDECREF(a);
            Py_XDECREF(b);
            return text;
        }
    }
    return PyUnicode_FromString("changed");
}

static PyObject *step_now(const guard_program *p, const step *s, PyObject *const *regs) {
    PyObject *o = s->a >= 0 ? regs[s->a] : NULL;
    if (s->a >= 0 && !o)
        return PyUnicode_FromString("not there");
    switch (s->op - STEP_CHECK) {
    case GUARD_TYPE:
        return object_text((PyObject *)Py_TYPE(o));
    case GUARD_VALUE:
        return value_now(s, o);
    case GUARD_LENGTH:
    case GUARD_EMPTY:
        return length_now(o);
    case GUARD_KEYS:
        return keys_now(o);
    case GUARD_ATTR_NAMES:
        return list_now(raw_attr_names(o));
    case GUARD_ABSENT:
        return item_now(s, o);
    case GUARD_HAS_KEY:
        return PyUnicode_FromString("absent");
    case GUARD_LACKS_KEY:
        return PyUnicode_FromString("there");
    case GUARD_NO_ATTR:
        return attr_now(s, o);
    case GUARD_TYPE_LOOKUP:
        return lookup_now(s, o);
    case GUARD_MRO:
        return mro_now(o);
    case GUARD_CODE:
        return code_now(o);
    case GUARD_DISTINCT:
        return distinct_now(p, regs);
    case GUARD_SAME:
        return PyUnicode_FromString("another object");
    case GUARD_NOT_SAME:
        return PyUnicode_FromString("the same object");
    case GUARD_BOUND:
        return PyUnicode_FromString("others");
    case GUARD_TYPE_FLAGS:
        return PyUnicode_FromString("changed");
    case GUARD_EXPR:
        return expression_now(s->object, regs, text_of_register, (void *)p);
    default:
        return object_text(o);
    }
}

static PyObject *custom_reason(const guard_program *p, const step *s, PyObject *o) {
    PyObject *first = s->a >= 0 ? register_text(p, s->a) : NULL;
    if (s->a >= 0 && !first)
        return NULL;
    PyObject *text = s->custom->reason ? s->custom->reason(utf8_or_mark(first), o, s->data)
                                       : custom_text(s, first);
    Py_XDECREF(first);
    return text;
}

static PyObject *reason_of(const guard_program *p, const step *s, PyObject *const *regs) {
    PyObject *first = !step_is_load(s) && s->a >= 0 ? regs[s->a] : NULL;
    if (s->op == STEP_CHECK + GUARD_CUSTOM && (s->a < 0 || first))
        return custom_reason(p, s, first);
    PyObject *text = step_text(p, s);
    bool computed = s->op == SOURCE_EXPR;
    PyObject *now = !text             ? NULL
                    : computed        ? expression_now(s->object, regs, text_of_register, (void *)p)
                    : step_is_load(s) ? PyUnicode_FromString("not there")
                                      : step_now(p, s, regs);
    PyObject *reason = now ? PyUnicode_FromFormat("%U: now %U", text, now) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(now);
    return reason;
}

static PyObject *dead_reason(const guard_program *p) {
    PyObject *text = step_text(p, &p->steps[p->dead - 1]);
    PyObject *reason = text ? PyUnicode_FromFormat("%U: it can never pass again", text) : NULL;
    Py_XDECREF(text);
    return reason;
}

// What the loads before a step give now; strong, NULL where a place is not there. Nothing of it may
// die while its text is made.
static PyObject **load_registers(const guard_program *p, int until, guard_frame *f) {
    PyObject **regs = PyMem_Calloc((size_t)p->registers + 1, sizeof(PyObject *));
    if (!regs) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int i = 0; i < until; i++)
        if (step_is_load(&p->steps[i]))
            regs[p->steps[i].b] = Py_XNewRef(step_load(&p->steps[i], f, regs));
    return regs;
}

static void drop_registers(const guard_program *p, PyObject **regs) {
    for (int32_t i = 0; i < p->registers; i++)
        Py_XDECREF(regs[i]);
    PyMem_Free(regs);
}

PyObject *guard_reason(const guard_program *p, int failed, guard_frame *f) {
    if (p->dead)
        return dead_reason(p);
    if (failed < 0 || failed >= p->count)
        return PyUnicode_FromString("");
    bool collecting = raw_gc_off();
    PyObject **regs = load_registers(p, failed, f);
    PyObject *reason = regs ? reason_of(p, &p->steps[failed], regs) : NULL;
    raw_gc_restore(collecting);
    if (regs)
        drop_registers(p, regs);
    return reason;
}

bool guard_is_number(const guard_program *p, int failed, Py_ssize_t *slot) {
    const step *s = !p->dead && failed >= 0 && failed < p->count ? &p->steps[failed] : NULL;
    if (!s || s->op != STEP_CHECK + GUARD_VALUE || s->a < 0)
        return false;
    const step *load = &p->steps[p->loads[s->a]];
    *slot = load->index;
    return load->op == SOURCE_LOCAL &&
           (PyFloat_CheckExact(s->object) || PyLong_CheckExact(s->object));
}
