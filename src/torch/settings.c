// Torch's state that all threads share. A trace holds changes back: a setting of the program is set
// for real only while torch's own code runs for the trace, and by nodes of the graph.
#include "src/py/raised.h"

#include "src/torch/room.h"

// One that the program has set: what to call, what it was, what it is for the program.
typedef struct setting {
    PyObject *setter, *getter; // borrowed from the rows
    PyObject *before, *now;    // strong: argument tuples of the setter
} setting;

typedef struct settings {
    VEC(setting) all;
    int depth; // of quiet parts: the program's hold in the outermost
} settings;

static settings *settings_of(const world *w) {
    const torch_trace *t = w ? w->torch : NULL;
    return t ? t->settings : NULL;
}

// --- around torch's own code ---

static void call_setters(const settings *s, bool program) {
    py_raised aside = py_put_aside();
    for (uint32_t i = 0; i < s->all.count; i++) {
        const setting *one = &s->all.items[i];
        PyObject *done = PyObject_CallObject(one->setter, program ? one->now : one->before);
        if (!done)
            PyErr_WriteUnraisable(one->setter);
        Py_XDECREF(done);
    }
    py_put_on(aside);
}

void settings_on(void) {
    settings *s = settings_of(world_here);
    if (s && s->depth++ == 0)
        call_setters(s, true);
}

void settings_off(void) {
    settings *s = settings_of(world_here);
    if (s && s->depth > 0 && --s->depth == 0) // the first may be set in between
        call_setters(s, false);
}

void settings_free(torch_trace *t) {
    settings *s = t->settings;
    for (uint32_t i = 0; s && i < s->all.count; i++) {
        Py_DECREF(s->all.items[i].before);
        Py_DECREF(s->all.items[i].now);
    }
    if (s)
        vec_free(&s->all);
    PyMem_Free(s);
    t->settings = NULL;
}

// --- setting ---

static setting *find(const settings *s, PyObject *setter) {
    for (uint32_t i = 0; s && i < s->all.count; i++)
        if (s->all.items[i].setter == setter)
            return &s->all.items[i];
    return NULL;
}

static setting *add(torch_trace *t, const rule *r, PyObject *before) {
    if (!t->settings && !(t->settings = PyMem_Calloc(1, sizeof(settings)))) {
        PyErr_NoMemory();
        return NULL;
    }
    settings *s = t->settings;
    PyObject *args = vec_reserve(&s->all, 1) == ST_OK ? PyTuple_Pack(1, before) : NULL;
    if (!args)
        return NULL;
    s->all.items[s->all.count++] = (setting){r->object, r->extra, args, Py_NewRef(args)};
    return &s->all.items[s->all.count - 1];
}

static setting *find_or_add(world *w, torch_trace *t, const rule *r) {
    setting *known = find(t->settings, r->object);
    PyObject *before = known ? NULL : state_answer(w, r->extra);
    return known ? known : before ? add(t, r, before) : NULL;
}

// What the setter makes of the value (or its complaint) is seen by setting it, for a moment.
static PyObject *try_out(const setting *s, PyObject *args) {
    PyObject *done = PyObject_CallObject(s->setter, args);
    PyObject *answer = done ? PyObject_CallNoArgs(s->getter) : NULL;
    Py_XDECREF(done);
    py_raised aside = py_put_aside();
    PyObject *back = PyObject_CallObject(s->setter, s->before);
    if (!back)
        PyErr_WriteUnraisable(s->setter);
    Py_XDECREF(back);
    py_put_on(aside);
    return answer;
}

static status set(world *w, torch_trace *t, const rule *r, PyObject *args) {
    t->switched = true;
    setting *s = find_or_add(w, t, r);
    PyObject *answer = s ? try_out(s, args) : NULL;
    if (!answer)
        return ST_ERROR;
    world_touch(w);
    w->held.writes++;
    Py_SETREF(s->now, Py_NewRef(args));
    status known = state_answers(w, r->extra, answer);
    Py_DECREF(answer);
    TRY(known);
    node *n = record_setter(w, r->object, args);
    Py_XDECREF(n);
    return n ? ST_OK : ST_ERROR;
}

PyObject *settings_set(world *w, const call *c) {
    const rule *r = c->rule;
    torch_trace *t = trace_of(w);
    if (!t || state_save(t) != ST_OK)
        return NULL;
    PyObject *value = plain_value(w, c->args[0]);
    PyObject *args = value ? PyTuple_Pack(1, value) : NULL;
    status done = args ? set(w, t, r, args) : ST_ERROR;
    Py_XDECREF(value);
    Py_XDECREF(args);
    return done == ST_OK ? Py_NewRef(Py_None) : NULL;
}

// A backend that compiles the graph as a whole makes operations of it that ask for the state when they
// run, and not for what it was in the program.
PyObject *settings_set_replayed(world *w, const call *c) {
    if (!w->terms.replayed)
        return world_break(w, REASON_TORCH_STATE, "%s",
                           ((PyCFunctionObject *)c->rule->object)->m_ml->ml_name);
    return settings_set(w, c);
}

// --- the end of a trace ---

static int is_changed(const setting *s) {
    return PyObject_RichCompareBool(s->before, s->now, Py_NE);
}

static status leave_one(world *w, const setting *s, PyObject *switches) {
    int changed = is_changed(s);
    if (changed <= 0)
        return changed < 0 ? ST_ERROR : ST_OK;
    PyObject *change = PyTuple_Pack(4, s->setter, s->now, s->setter, s->before);
    int failed = change ? PyList_Append(switches, change) : -1;
    node *n = failed < 0 ? NULL : record_setter(w, s->setter, s->before);
    Py_XDECREF(change);
    Py_XDECREF(n);
    return n ? ST_OK : ST_ERROR;
}

status settings_leave(world *w, torch_trace *t, PyObject *switches) {
    const settings *s = t->settings;
    for (uint32_t i = s ? s->all.count : 0; i-- > 0;)
        TRY(leave_one(w, &s->all.items[i], switches));
    return ST_OK;
}

PyObject *settings_pairs(const torch_trace *t) {
    const settings *s = t->settings;
    PyObject *pairs = PyTuple_New(s ? s->all.count : 0);
    for (uint32_t i = 0; pairs && s && i < s->all.count; i++) {
        PyObject *pair = PyTuple_Pack(2, s->all.items[i].setter, s->all.items[i].getter);
        if (pair)
            PyTuple_SET_ITEM(pairs, i, pair);
        else
            Py_CLEAR(pairs);
    }
    return pairs;
}
