// Turns reads of the process's state into guards. Each state has one function here, which
// states.def names.
#include "src/call/states.h"

#include "src/py/process.h"

#include "src/call/handlers.h"

// A call whose row reads state.
typedef struct reading {
    world *w;
    const rule *row;
    const call *call;
} reading;

// Whether this was not guarded yet: 1, and it is noted; 0; -1 error.
static int is_first(world *w, PyObject *what) {
    if (!w->in.states && !(w->in.states = world_keep(w, PySet_New(NULL))))
        return -1;
    int there = PySet_Contains(w->in.states, what);
    return there ? (there < 0 ? -1 : 0) : PySet_Add(w->in.states, what) < 0 ? -1 : 1;
}

// --- how many digits an int may have ---

static bool digits_same(PyObject *object, void *data) {
    (void)object;
    return py_most_digits() == (int)(intptr_t)data;
}

static PyObject *digits_text(const char *source, void *data) {
    (void)source;
    return PyUnicode_FromFormat("sys.get_int_max_str_digits() == %d", (int)(intptr_t)data);
}

static status guard_digits(world *w) {
    static const guard_custom guard = {.name = "digits", .check = digits_same, .text = digits_text};
    int first = is_first(w, Py_None);
    if (first <= 0)
        return first < 0 ? ST_ERROR : ST_OK;
    return guard_add_custom(w->guards, NULL, &guard, (void *)(intptr_t)py_most_digits());
}

// An exception of a C type that keeps more than its arguments: str() shows what it keeps, which
// nobody made ready (OSError_str, UnicodeDecodeError_str).
static bool shows_fields(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    while (raw_is_python_class(type))
        type = type->tp_base;
    return PyExceptionInstance_Check(o) &&
           type->tp_basicsize > (Py_ssize_t)sizeof(PyBaseExceptionObject);
}

// No limit is less than PY_LEAST_DIGITS, and a decimal digit takes more than three bits.
static bool has_many_digits(PyObject *o) {
    if (PyLong_Check(o))
        return _PyLong_NumBits(o) > 3 * PY_LEAST_DIGITS;
    if (PyUnicode_Check(o))
        return PyUnicode_GET_LENGTH(o) > PY_LEAST_DIGITS;
    if (PyBytes_Check(o) || PyByteArray_Check(o))
        return PyObject_Size(o) > PY_LEAST_DIGITS;
    if (PyTuple_Check(o)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
            if (has_many_digits(PyTuple_GET_ITEM(o, i)))
                return true;
        return false;
    }
    if (shows_fields(o))
        return true;
    // Python code answers for itself, and so do elements that are made ready as texts.
    bool walked = PyList_Check(o) || PyDict_Check(o) || PyAnySet_Check(o) || PySlice_Check(o) ||
                  PyExceptionInstance_Check(o) || raw_view_mapping(o);
    return o != Py_None && !PyFloat_Check(o) && !PyComplex_Check(o) && !walked &&
           !raw_is_python_class(Py_TYPE(o)) && !is_standin(o);
}

static status read_digits(const reading *r) {
    for (size_t i = 0; i < call_count(r->call); i++)
        if (has_many_digits(r->call->args[i]))
            return guard_digits(r->w);
    return ST_OK;
}

// What a container holds is asked one by one, see protocol.c.
status state_read_text(world *w, PyObject *value) {
    bool shown = PyLong_Check(value) || PyRange_Check(value) || shows_fields(value);
    return shown && has_many_digits(value) ? guard_digits(w) : ST_OK;
}

// --- codecs and their error handlers ---

// A name of the registry, and what it stood for (NULL: for nothing).
typedef struct error_handler {
    PyObject *name, *handler; // strong
} error_handler;

static PyObject *lookup_handler(PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    PyObject *handler = text ? PyCodec_LookupError(text) : NULL;
    if (!handler)
        PyErr_Clear();
    return handler;
}

static bool handler_same(PyObject *object, void *data) {
    const error_handler *h = data;
    PyObject *now = lookup_handler(h->name);
    Py_XDECREF(now); // the registry has it
    (void)object;
    return now == h->handler;
}

static PyObject *handler_text(const char *source, void *data) {
    const error_handler *h = data;
    (void)source;
    if (!h->handler)
        return PyUnicode_FromFormat("there is no error handler %R", h->name);
    return PyUnicode_FromFormat("codecs.lookup_error(%R) is codecs.%s", h->name,
                                ((PyCFunctionObject *)h->handler)->m_ml->ml_name);
}

static void handler_drop(void *data) {
    error_handler *h = data;
    Py_DECREF(h->name);
    Py_XDECREF(h->handler);
    PyMem_Free(h);
}

// CPython's own handlers look at nothing but the error (_PyCodecRegistry_Init makes them, bound to
// nothing).
static bool is_known_handler(PyObject *o) {
    static const char *const names[] = {"strict_errors",      "ignore_errors",
                                        "replace_errors",     "xmlcharrefreplace_errors",
                                        "namereplace_errors", "backslashreplace_errors",
                                        "surrogateescape",    "surrogatepass"};
    if (!PyCFunction_CheckExact(o) || ((PyCFunctionObject *)o)->m_self)
        return false;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++)
        if (strcmp(((PyCFunctionObject *)o)->m_ml->ml_name, names[i]) == 0)
            return true;
    return false;
}

static status guard_handler(world *w, PyObject *name, PyObject *handler) {
    static const guard_custom guard = {
        .name = "error handler", .check = handler_same, .text = handler_text, .drop = handler_drop};
    int first = is_first(w, name);
    if (first <= 0)
        return first < 0 ? ST_ERROR : ST_OK;
    error_handler *h = PyMem_Malloc(sizeof(error_handler));
    if (!h) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    *h = (error_handler){Py_NewRef(name), Py_XNewRef(handler)};
    return guard_add_custom(w->guards, NULL, &guard, h);
}

static status read_handler(const reading *r, PyObject *name) {
    PyObject *handler = lookup_handler(name);
    status st = handler && !is_known_handler(handler)
                    ? world_break_status(r->w, REASON_NATIVE_CALL,
                                         "%s by the error handler %R, which was registered",
                                         r->row->path, name)
                    : guard_handler(r->w, name, handler);
    Py_XDECREF(handler);
    return st;
}

// Encodings that CPython knows by name, and does not look up (PyUnicode_AsEncodedString,
// PyUnicode_Decode): lower case, with "_".
static bool is_own_encoding(PyObject *name) {
    static const char *const names[] = {"utf_8",   "utf8",   "ascii",     "us_ascii",
                                        "latin_1", "latin1", "iso8859_1", "iso_8859_1"};
    char text[16];
    Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    if (length >= (Py_ssize_t)sizeof(text))
        return false;
    for (Py_ssize_t i = 0; i < length; i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(name, i);
        text[i] = c == '-' ? '_' : c < 128 ? (char)Py_TOLOWER(c) : '?';
    }
    text[length] = '\0';
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}

// The argument at that place or of that name; borrowed, or NULL.
static PyObject *argument(const reading *r, size_t at, const char *name) {
    return at < r->call->given ? r->call->args[at] : handler_keyword(r->call, name);
}

// encode and decode are methods; who makes an object takes what it is made of before the encoding.
static status read_codecs(const reading *r) {
    bool method = Py_IS_TYPE(r->row->object, &PyMethodDescr_Type);
    size_t at = method ? 1 : r->row->owner || r->row->makes ? 2 : 1;
    PyObject *encoding = argument(r, at, "encoding"), *errors = argument(r, at + 1, "errors");
    if (!encoding && !errors && !method)
        return ST_OK;
    if (encoding && PyUnicode_Check(encoding) && !is_own_encoding(encoding))
        return world_break_status(r->w, REASON_NATIVE_CALL,
                                  "%s by the codec %R, which is looked up", r->row->path, encoding);
    PyObject *name = errors ? Py_NewRef(errors) : PyUnicode_InternFromString("strict");
    if (!name)
        return ST_ERROR;
    status st = PyUnicode_Check(name) ? read_handler(r, name) : ST_OK; // the function says so
    Py_DECREF(name);
    return st;
}

// --- the locale ---

// A pattern with re.LOCALE.
static status read_locale(const reading *r) {
    enum { LOCALE = 4 };
    PyObject *flags = r->call->given ? PyObject_GetAttrString(r->call->args[0], "flags") : NULL;
    long bits = flags && PyLong_Check(flags) ? PyLong_AsLong(flags) : LOCALE;
    Py_XDECREF(flags);
    PyErr_Clear();
    if (!(bits & LOCALE))
        return ST_OK;
    return world_break_status(r->w, REASON_NATIVE_CALL, "%s by the locale", r->row->path);
}

// Dates and times spell days and months in the process's locale.
static bool is_dated(PyTypeObject *type) {
    while (type && raw_is_python_class(type))
        type = type->tp_base;
    return type && strncmp(type->tp_name, "datetime.", 9) == 0;
}

// And 'n' takes its separators.
static bool is_local(PyObject *value, PyObject *spec) {
    Py_ssize_t length = PyUnicode_GET_LENGTH(spec);
    if (length == 0 || PyUnicode_Check(value))
        return false;
    return is_dated(Py_TYPE(value)) || PyUnicode_READ_CHAR(spec, length - 1) == 'n';
}

status state_read_spec(world *w, PyObject *value, PyObject *spec) {
    if (!PyUnicode_Check(spec) || !is_local(value, spec))
        return ST_OK;
    return world_break_status(w, REASON_NATIVE_CALL, "format() by the locale");
}

bool state_is_dated(PyObject *value) {
    return is_dated(Py_TYPE(value));
}

// --- warnings ---

// What happens to a warning depends on filters, and on which were given before. (Code that is not
// the trace's own gives its warnings.)
static int break_warning(void) {
    world *w = world_here;
    bool quiet = w && w->inside.quiet && !w->inside.wary;
    if (!w || quiet || w->stop.broken || w->inside.warning)
        return 0;
    world_break(w, REASON_WARNING, "C code");
    return -1;
}

void states_setup(void) {
    py_watch_warnings(break_warning);
}

// --- the table ---

typedef status (*state_reader)(const reading *r);
#define BY_HANDLER NULL

static const state_reader readers[] = {
#define STATE(name, text, reader) [STATE_##name] = reader,
#include "src/call/states.def"
#undef STATE
};

bool states_allowed(const rule *row) {
    for (int i = 0; i < STATE_COUNT; i++)
        if (row->state & (1u << i) && !readers[i] && row->kind != RULE_HANDLED)
            return false;
    return true;
}

status state_read(world *w, const rule *row, const call *c) {
    reading r = {w, row, c};
    for (int i = 0; i < STATE_COUNT; i++)
        if (row->state & (1u << i))
            TRY(readers[i](&r));
    return ST_OK;
}
