// Writes the log of a guard pass: for each step the words that prove its outcome; or the step
// itself, where there are no such words, or where they have changed too often.
#include "src/guard/expression.h"
#include "src/guard/log.h"

enum {
    OFTEN = 2,      // after so many misses, words about an object are not compared any more
    WORTH = 8,      // a log must spare so many steps
    MOST_LOOSE = 4, // more are compared by the step itself
};

// What is known of a register's object while the words so far are equal.
typedef enum settled {
    LOOSE,   // a load fills it in each pass, with any object
    POINTER, // an object at the same address
    SAME,    // the same object
} settled;

typedef struct writing {
    const guard_program *p;
    guard_log *log;
    PyObject *const *regs;
    settled *known; // by register
    bool *used;     // by register: a step of the log needs it
    bool *filled;   // by register: a step of the log fills it
    int32_t spared;
    bool failed;
} writing;

static settled settled_of(proof how) {
    return how == PROVES_SAME ? SAME : POINTER;
}

static void own_words(writing *w, int32_t step) {
    while (!w->failed && w->log->owners.count < w->log->words.all.count)
        w->failed = vec_push(&w->log->owners, step) != ST_OK;
}

static void use(writing *w, int32_t reg) {
    if (reg >= 0)
        w->used[reg] = true;
}

static void use_places(writing *w, PyObject *expression) {
    int32_t reg;
    for (int i = 0; (reg = expression_register(expression, i)) >= 0; i++)
        use(w, reg);
}

// The registers that a step reads.
static void use_all(writing *w, const step *s) {
    use(w, s->a);
    if (!step_is_load(s))
        use(w, s->b);
    if (s->op == SOURCE_EXPR || s->op == STEP_CHECK + GUARD_EXPR)
        use_places(w, s->object);
    for (int32_t i = 0; s->op == STEP_CHECK + GUARD_DISTINCT && i < w->p->distinct_count; i++)
        use(w, w->p->distinct[i]);
}

static void do_step(writing *w, const step *s, log_act act) {
    log_item item = {act, (int32_t)(s - w->p->steps), w->log->words.all.count,
                     act == LOG_PIN ? w->regs[s->b] : NULL};
    if (act != LOG_DISTINCT)
        use_all(w, s);
    if (step_is_load(s))
        w->filled[s->b] = true;
    w->failed |= vec_push(&w->log->items, item) != ST_OK;
}

// --- loads ---

static bool is_loose(const writing *w, int32_t reg) {
    return reg >= 0 && w->known[reg] == LOOSE;
}

static bool word_pointer(writing *w, const void *at) {
    words_add(&w->log->words, at);
    return true;
}

static proof pointer_if(bool proved) {
    return proved ? PROVES_POINTER : PROVES_NOTHING;
}

static proof load_tuple_item(writing *w, PyObject *tuple, Py_ssize_t i) {
    word_pointer(w, &((PyVarObject *)tuple)->ob_size);
    return pointer_if(word_pointer(w, &PyTuple_GET_ITEM(tuple, i)));
}

static proof load_list_item(writing *w, PyObject *list, Py_ssize_t i) {
    word_pointer(w, &((PyVarObject *)list)->ob_size);
    word_pointer(w, &((PyListObject *)list)->ob_item);
    return pointer_if(word_pointer(w, &((PyListObject *)list)->ob_item[i]));
}

static proof load_closure(writing *w, PyFunctionObject *f, Py_ssize_t i) {
    word_pointer(w, &f->func_closure);
    load_tuple_item(w, f->func_closure, i);
    return pointer_if(word_pointer(w, &PyTuple_GET_ITEM(f->func_closure, i)->ob_type));
}

static proof load_default(writing *w, PyFunctionObject *f, Py_ssize_t i) {
    word_pointer(w, &f->func_defaults);
    return load_tuple_item(w, f->func_defaults, i);
}

static proof load_keyword_default(writing *w, PyFunctionObject *f, PyObject *key) {
    word_pointer(w, &f->func_kwdefaults);
    return words_item(&w->log->words, f->func_kwdefaults, key, false);
}

// A field of a function; functions have no subclasses.
static proof load_function(writing *w, const step *s, PyObject *o, bool same) {
    PyFunctionObject *f = (PyFunctionObject *)o;
    if (!words_type(&w->log->words, o, same))
        return PROVES_NOTHING;
    switch (s->op) {
    case SOURCE_GLOBALS:
        return pointer_if(word_pointer(w, &f->func_globals));
    case SOURCE_BUILTINS:
        return pointer_if(word_pointer(w, &f->func_builtins));
    case SOURCE_CLOSURE:
        return load_closure(w, f, s->index);
    case SOURCE_DEFAULT:
        return load_default(w, f, s->index);
    case SOURCE_KWDEFAULT:
        return load_keyword_default(w, f, s->object);
    case SOURCE_DEFAULTS:
        return pointer_if(word_pointer(w, &f->func_defaults));
    case SOURCE_KWDEFAULTS:
        return pointer_if(word_pointer(w, &f->func_kwdefaults));
    default:
        return PROVES_NOTHING;
    }
}

static proof load_method(writing *w, PyObject *o, bool self, bool same) {
    PyMethodObject *m = (PyMethodObject *)o;
    if (!Py_IS_TYPE(o, &PyMethod_Type) || !words_type(&w->log->words, o, same))
        return PROVES_NOTHING;
    return pointer_if(word_pointer(w, self ? &m->im_self : &m->im_func));
}

// What a class has along its MRO; the object is proved to be a class.
static bool is_class(writing *w, PyObject *o, bool same) {
    words *all = &w->log->words;
    return PyType_Check(o) && words_type(all, o, same) && words_class(all, (PyTypeObject *)o);
}

// Whether the object in a register was read from a container that holds it, and is not read as the
// __dict__ of an object.
static bool is_held_item(const writing *w, int32_t reg) {
    switch (w->p->steps[w->p->loads[reg]].op) {
    case SOURCE_ATTR:
    case SOURCE_ITEM:
    case SOURCE_LIST_ITEM:
    case SOURCE_TUPLE_ITEM:
    case SOURCE_CELL:
        return true;
    default:
        return false;
    }
}

static proof load_item(writing *w, const step *s, PyObject *dict, bool same) {
    words *all = &w->log->words;
    if (!words_type(all, dict, same))
        return PROVES_NOTHING;
    return words_item(all, dict, s->object, is_held_item(w, s->a));
}

static proof load_slot(writing *w, PyObject *o, Py_ssize_t offset, bool same) {
    return pointer_if(offset > 0 && offset % (Py_ssize_t)sizeof(void *) == 0 &&
                      words_type(&w->log->words, o, same) && word_pointer(w, (char *)o + offset));
}

// The words of a load whose parent is settled.
static proof words_of_load(writing *w, const step *s, PyObject *o, bool same) {
    words *all = &w->log->words;
    switch (s->op) {
    case SOURCE_GLOBALS:
    case SOURCE_BUILTINS:
    case SOURCE_CLOSURE:
    case SOURCE_DEFAULT:
    case SOURCE_KWDEFAULT:
    case SOURCE_DEFAULTS:
    case SOURCE_KWDEFAULTS:
        return load_function(w, s, o, same);
    case SOURCE_CELL:
        return pointer_if(words_type(all, o, same) &&
                          word_pointer(w, &((PyCellObject *)o)->ob_ref));
    case SOURCE_TYPE:
        return pointer_if(word_pointer(w, &o->ob_type));
    case SOURCE_TYPE_ATTR:
    case SOURCE_TYPE_BASE:
        return is_class(w, o, same) ? PROVES_SAME : PROVES_NOTHING;
    case SOURCE_ATTR:
        return words_attr(all, o, s->object, same);
    case SOURCE_DICT:
    case SOURCE_OWN_DICT:
        return pointer_if(!PyType_Check(o) && words_own_dict(all, o, same));
    case SOURCE_SLOT:
        return load_slot(w, o, s->index, same);
    case SOURCE_ITEM:
        return load_item(w, s, o, same);
    case SOURCE_LIST_ITEM:
        return words_type(all, o, same) ? load_list_item(w, o, s->index) : PROVES_NOTHING;
    case SOURCE_TUPLE_ITEM:
        return words_type(all, o, same) ? load_tuple_item(w, o, s->index) : PROVES_NOTHING;
    case SOURCE_METHOD_FUNC:
    case SOURCE_METHOD_SELF:
        return load_method(w, o, s->op == SOURCE_METHOD_SELF, same);
    default:
        return PROVES_NOTHING;
    }
}

// Reads that compute a fresh object.
static bool is_fresh(const step *s) {
    return s->op == SOURCE_SIZE || s->op == SOURCE_STRIDE || s->op == SOURCE_EXPR ||
           s->op == SOURCE_TEXT || s->op == SOURCE_GRAPH || s->op == SOURCE_DRAW;
}

static void log_load(writing *w, const step *s) {
    const guard_log *l = w->log;
    if (s->op == SOURCE_FIXED) {
        w->known[s->b] = SAME; // the program holds it
        w->spared++;
        return;
    }
    if (is_loose(w, s->a) || is_fresh(s) || l->changes[s->b] >= OFTEN) {
        w->known[s->b] = LOOSE;
        do_step(w, s, LOG_LOAD);
        return;
    }
    bool tried = s->a >= 0 && l->misses[s->a] < OFTEN;
    proof how = tried ? words_of_load(w, s, w->regs[s->a], w->known[s->a] == SAME) : PROVES_NOTHING;
    w->known[s->b] = settled_of(how);
    w->spared += how != PROVES_NOTHING;
    if (how == PROVES_NOTHING)
        do_step(w, s, LOG_PIN);
}

// --- checks ---

// The length of a list, a tuple or a dict.
static bool words_of_length(writing *w, PyObject *o, bool same) {
    if (!PyList_Check(o) && !PyTuple_Check(o) && !PyDict_Check(o))
        return false;
    if (!words_type(&w->log->words, o, same))
        return false;
    return word_pointer(w, PyDict_Check(o) ? (void *)&((PyDictObject *)o)->ma_used
                                           : (void *)&((PyVarObject *)o)->ob_size);
}

static bool words_of_code(writing *w, PyObject *o, bool same) {
    return words_type(&w->log->words, o, same) &&
           word_pointer(w, &((PyFunctionObject *)o)->func_code);
}

static bool words_of_slot(writing *w, const step *s, PyObject *o, bool same) {
    return s->index % (Py_ssize_t)sizeof(void *) == 0 && is_class(w, o, same) &&
           word_pointer(w, (char *)o + s->index);
}

static bool is_absent(proof how) {
    return how != PROVES_NOTHING;
}

// Whether words prove that a check of settled objects passes.
static bool words_of_check(writing *w, const step *s, PyObject *o, bool same) {
    words *all = &w->log->words;
    switch (s->op - STEP_CHECK) {
    case GUARD_TYPE:
        return (same && words_class_is_fixed(o)) || word_pointer(w, &o->ob_type);
    case GUARD_IS:
    case GUARD_IS_NOT:
    case GUARD_SAME:
    case GUARD_NOT_SAME:
        return true;
    case GUARD_VALUE: // immutable; and the program holds its own object, so no other has its address
        return same || (o == s->object && !PyCode_Check(o));
    case GUARD_LENGTH:
    case GUARD_EMPTY:
        return words_of_length(w, o, same);
    case GUARD_KEYS:
        return words_type(all, o, same) && words_keys(all, o);
    case GUARD_ATTR_NAMES:
        return words_attr_names(all, o, same);
    case GUARD_ABSENT:
        return words_type(all, o, same) && is_absent(words_item(all, o, s->object, false));
    case GUARD_NO_ATTR:
        return is_absent(words_attr(all, o, s->object, same));
    case GUARD_TYPE_LOOKUP:
    case GUARD_MRO:
        return is_class(w, o, same);
    case GUARD_CODE:
        return words_of_code(w, o, same);
    case GUARD_TYPE_FLAGS:
        return words_of_slot(w, s, o, same);
    case GUARD_CUSTOM:
        return s->custom->words && s->custom->words(all, o, s->data);
    default:
        return false;
    }
}

// Few new objects are compared with all others; those among themselves are as distinct as before.
static bool log_distinct(writing *w, const step *s) {
    guard_log *l = w->log;
    const guard_program *p = w->p;
    for (int32_t i = 0; i < p->distinct_count && !w->failed; i++) {
        int32_t reg = p->distinct[i];
        w->failed = is_loose(w, reg) ? vec_push(&l->loose, reg) != ST_OK
                                     : map_put(&l->settled, map_key(w->regs[reg]), 0) != ST_OK;
    }
    if (l->loose.count > MOST_LOOSE)
        return false;
    if (l->loose.count > 0)
        do_step(w, s, LOG_DISTINCT);
    else
        map_clear(&l->settled);
    return true;
}

static bool is_settled(writing *w, const step *s) {
    if (s->op == STEP_CHECK + GUARD_DISTINCT)
        return log_distinct(w, s);
    if (s->a < 0 || is_loose(w, s->a) || is_loose(w, s->b) || w->log->misses[s->a] >= OFTEN)
        return false;
    return words_of_check(w, s, w->regs[s->a], w->known[s->a] == SAME);
}

static void log_check(writing *w, const step *s) {
    if (is_settled(w, s))
        w->spared++;
    else
        do_step(w, s, LOG_CHECK);
}

// --- the whole ---

static void log_steps(writing *w) {
    for (const step *s = w->p->steps, *end = s + w->p->count; s < end && !w->failed; s++) {
        if (step_is_load(s))
            log_load(w, s);
        else
            log_check(w, s);
        own_words(w, (int32_t)(s - w->p->steps));
        w->failed |= w->log->words.failed;
    }
}

static void save(writing *w) {
    for (int32_t i = 0; i < w->p->registers && !w->failed; i++) {
        bool needed = w->used[i] || w->p->wanted[i];
        if (needed && !w->filled[i])
            w->failed = vec_push(&w->log->saved, ((log_saved){i, w->regs[i]})) != ST_OK;
    }
}

static bool write_all(writing *w) {
    log_steps(w);
    save(w);
    map_clear(&w->log->words.known);
    memcpy(w->log->values, w->regs, (size_t)w->p->registers * sizeof(PyObject *));
    w->log->made = !w->failed && (w->spared >= WORTH || log_use == LOGS_ALWAYS);
    return w->log->made;
}

bool log_build(const guard_program *p, PyObject *const *regs) {
    size_t count = (size_t)p->registers + 1;
    writing w = {.p = p, .log = p->log, .regs = regs};
    w.known = PyMem_Calloc(count, sizeof(*w.known));
    w.used = PyMem_Calloc(count, sizeof(*w.used));
    w.filled = PyMem_Calloc(count, sizeof(*w.filled));
    bool made = w.known && w.used && w.filled && write_all(&w);
    PyMem_Free(w.known);
    PyMem_Free(w.used);
    PyMem_Free(w.filled);
    if (w.failed)
        PyErr_Clear();
    return made;
}
