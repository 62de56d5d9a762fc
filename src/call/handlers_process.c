// Handlers of what belongs to the process and not to the program: the thread, locks, the recursion
// limit, context variables.
#include "src/py/raised.h"

#include "src/call/call.h"
#include "src/call/handlers.h"

// --- the thread ---

static bool thread_is(PyObject *object, void *data) {
    (void)object;
    return PyThread_get_thread_ident() == (unsigned long)(uintptr_t)data;
}

static PyObject *thread_text(const char *source, void *data) {
    (void)source;
    return PyUnicode_FromFormat("threading.get_ident() == %zu", (size_t)(uintptr_t)data);
}

HANDLER(thread_ident) {
    (void)c;
    static const guard_custom guard = {.name = "thread", .check = thread_is, .text = thread_text};
    unsigned long ident = PyThread_get_thread_ident();
    if (guard_add_custom(w->guards, NULL, &guard, (void *)(uintptr_t)ident) != ST_OK)
        return NULL;
    return PyLong_FromUnsignedLong(ident);
}

// --- locks ---

// Whether taking a lock that the trace made would wait: for this thread itself, for ever. A lock
// that counts lets its own thread in.
static int would_wait(PyObject *lock) {
    if (strcmp(Py_TYPE(lock)->tp_name, "_thread.lock") != 0)
        return 0;
    PyObject *answer = PyObject_CallMethod(lock, "locked", NULL);
    int held = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return held;
}

static bool takes_lock(const rule *row) {
    return strstr(row->path, ".acquire") || strstr(row->path, ".__enter__");
}

// With the arguments made ready; an __exit__ does not look at the exception.
static PyObject *use_lock(world *w, const call *c, PyObject *self) {
    bool exits = strstr(c->rule->path, ".__exit__");
    call rest = *c;
    arg_room r;
    rest.args++;
    rest.given--;
    PyObject **items = room_open(&r, Py_NewRef(self), &rest), *result = NULL;
    if (!items)
        return NULL;
    status st = ST_OK;
    for (size_t i = 1; st == ST_OK && i < r.count; i++)
        st = exits ? protocol_open(w, &items[i], P_NONE) : rule_open_exact(w, c->rule, &items[i]);
    if (st == ST_OK)
        result = call_native(w, c->callable, items, c->given, c->keywords, false);
    room_close(&r);
    return result;
}

HANDLER(lock_method) {
    PyObject *self = door_open(w, c->args[0]);
    if (!self)
        return NULL;
    if (record_of(w, self) || raw_is_python_class(Py_TYPE(self)))
        return world_break(w, REASON_NATIVE_CALL, "%s, which waits for other threads",
                           c->rule->path);
    int waits = takes_lock(c->rule) ? would_wait(self) : 0;
    if (waits > 0)
        world_break(w, REASON_NATIVE_CALL, "%s of a lock that is held", c->rule->path);
    return waits == 0 ? use_lock(w, c, self) : NULL;
}

// --- the recursion limit ---

static bool limit_is(PyObject *object, void *data) {
    (void)object;
    return Py_GetRecursionLimit() == (int)(intptr_t)data;
}

static PyObject *limit_text(const char *source, void *data) {
    (void)source;
    return PyUnicode_FromFormat("sys.getrecursionlimit() == %d", (int)(intptr_t)data);
}

static const guard_custom limit_guard = {
    .name = "recursion limit", .check = limit_is, .text = limit_text};

// A backend that raises the limit while it compiles would make the guard fail at once. So the limit is
// raised before the program sees it.
HANDLER(recursion_limit) {
    (void)c;
    if (Py_GetRecursionLimit() < w->terms.recursion)
        Py_SetRecursionLimit(w->terms.recursion);
    int limit = Py_GetRecursionLimit();
    if (guard_add_custom(w->guards, NULL, &limit_guard, (void *)(intptr_t)limit) != ST_OK)
        return NULL;
    return PyLong_FromLong(limit);
}

// Text from outside may be interned in one call, and another object with the same letters in the
// next: then what comes out is not what came in. Of text made inside one object is given for good.
HANDLER(interned) {
    PyObject *text = c->args[0];
    if (is_lazy(text) || !PyUnicode_CheckExact(text) || record_of(w, text))
        return world_break(w, REASON_NATIVE_CALL, "sys.intern of text from outside");
    Py_INCREF(text);
    PyUnicode_InternInPlace(&text);
    return text;
}

// --- context variables ---

// The variable itself is guarded, and its default is its own for good.
static PyObject *context_default(world *w, PyObject *variable) {
    PyObject *value = raw_context_default(variable);
    if (!value) {
        PyErr_SetObject(PyExc_LookupError, variable);
        return NULL;
    }
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, value, 0);
    return s ? door_load(w, s, value) : NULL;
}

HANDLER(context_get) {
    PyObject *variable = door_open(w, c->args[0]);
    PyObject *value = variable ? context_get(w, variable) : NULL;
    if (value || w->stop.broken || PyErr_Occurred())
        return value;
    return c->given == 2 ? Py_NewRef(c->args[1]) : context_default(w, variable);
}

// A token of ours is a real one, of a variable that nobody else knows: its old value is (the
// program's variable, what that held before, or nothing). It cannot be rebuilt, so a trace that
// ends while it is needed breaks before `set`.
static PyObject *token_variable(void) {
    static PyObject *variable;
    if (!variable)
        variable = PyContextVar_New("stator's", NULL);
    return variable;
}

// The variable is unset again for the context: what copies that must not see it.
static PyObject *token_new(PyObject *variable, PyObject *old) {
    PyObject *ours = token_variable();
    PyObject *data = !ours ? NULL
                     : old ? PyTuple_Pack(2, variable, old)
                           : PyTuple_Pack(1, variable);
    PyObject *first = data ? PyContextVar_Set(ours, data) : NULL;
    PyObject *token = first ? PyContextVar_Set(ours, Py_None) : NULL;
    if (first && PyContextVar_Reset(ours, first) < 0)
        Py_CLEAR(token);
    Py_XDECREF(data);
    Py_XDECREF(first);
    return token;
}

// Marks it as used; NULL with an exception if it was already. New reference to its data.
static PyObject *token_use(PyObject *token) {
    PyObject *ours = token_variable();
    PyObject *data = PyObject_GetAttrString(token, "old_value");
    PyObject *unset = data ? PyContextVar_Set(ours, Py_None) : NULL;
    int used = unset ? PyContextVar_Reset(ours, token) : -1;
    py_raised aside = py_put_aside();
    if (unset && PyContextVar_Reset(ours, unset) < 0)
        PyErr_WriteUnraisable(ours);
    py_put_on(aside);
    Py_XDECREF(unset);
    if (used < 0)
        Py_CLEAR(data);
    return data;
}

static bool is_our_token(PyObject *token) {
    if (!PyContextToken_CheckExact(token))
        return false;
    PyObject *of = PyObject_GetAttrString(token, "var");
    Py_XDECREF(of); // the token has it
    return of && of == token_variable();
}

HANDLER(context_set) {
    PyObject *variable = door_open(w, c->args[0]);
    PyObject *old = variable ? context_get(w, variable) : NULL;
    if (!old && (!variable || w->stop.broken || PyErr_Occurred()))
        return NULL;
    PyObject *token = token_new(variable, old);
    Py_XDECREF(old);
    if (token && context_set(w, variable, c->args[1]) != ST_OK)
        Py_CLEAR(token);
    return token;
}

// Of another token, or of another variable: CPython decides.
HANDLER(context_reset) {
    PyObject *variable = door_open(w, c->args[0]),
             *token = variable ? door_open(w, c->args[1]) : NULL;
    if (!token)
        return NULL;
    if (!is_our_token(token))
        return PyErr_Occurred() ? NULL : world_break(w, REASON_NATIVE_CALL, "a token made outside");
    PyObject *data = token_use(token);
    if (!data) {
        PyErr_Clear();
        return world_break(w, REASON_NATIVE_CALL, "a token that was used before");
    }
    bool fits = PyTuple_GET_ITEM(data, 0) == variable;
    PyObject *old = PyTuple_GET_SIZE(data) > 1 ? PyTuple_GET_ITEM(data, 1) : NULL;
    status done = fits ? context_set(w, variable, old) : ST_BREAK;
    Py_DECREF(data);
    if (!fits)
        return world_break(w, REASON_NATIVE_CALL, "a token of another variable");
    return done == ST_OK ? Py_NewRef(Py_None) : NULL;
}
