// Turns objects and patterns into short texts without running the user's code: a __repr__ may do
// anything, and a failed guard must not change the program's behaviour.
#include "src/py/raw.h"

#include "src/guard/guard.h"
#include "src/guard/program.h"

enum { LONGEST = 160, MOST_ITEMS = 8, DEEPEST = 3, MOST_BITS = 2000 };

static PyObject *text_of(PyObject *o, int depth);

// Appends, taking the piece over; *text is NULL after an error.
static void append(PyObject **text, PyObject *piece) {
    if (!piece)
        Py_CLEAR(*text);
    else if (*text)
        PyUnicode_Append(text, piece);
    Py_XDECREF(piece);
}

static void append_ascii(PyObject **text, const char *piece) {
    append(text, PyUnicode_FromString(piece));
}

// Of CPython's own types. PyObject_Repr looks for signals first, and with the text the exception of
// a handler would be lost.
static PyObject *repr_of(PyObject *o) {
    return Py_TYPE(o)->tp_repr(o);
}

static PyObject *shorten(PyObject *text) {
    if (!text || PyUnicode_GET_LENGTH(text) <= LONGEST)
        return text;
    PyObject *start = PyUnicode_Substring(text, 0, LONGEST);
    Py_DECREF(text);
    append_ascii(&start, "...");
    return start;
}

static PyObject *long_text(PyObject *o) {
    size_t bits = _PyLong_NumBits(o);
    if (bits > MOST_BITS)
        return PyUnicode_FromFormat("<int of %zu bits>", bits);
    return shorten(repr_of(o));
}

static PyObject *string_text(PyObject *o) {
    if (PyUnicode_GET_LENGTH(o) <= LONGEST)
        return repr_of(o);
    PyObject *start = PyUnicode_Substring(o, 0, LONGEST);
    PyObject *text = start ? repr_of(start) : NULL;
    Py_XDECREF(start);
    append_ascii(&text, "...");
    return text;
}

static PyObject *bytes_text(const char *bytes, Py_ssize_t size) {
    PyObject *start = PyBytes_FromStringAndSize(bytes, size < LONGEST ? size : LONGEST);
    PyObject *text = start ? repr_of(start) : NULL;
    Py_XDECREF(start);
    if (size > LONGEST)
        append_ascii(&text, "...");
    return text;
}

// A name as a str, whatever was put there.
static PyObject *name_or(PyObject *name, const char *otherwise) {
    return name && PyUnicode_CheckExact(name) ? shorten(Py_NewRef(name))
                                              : PyUnicode_FromString(otherwise);
}

static bool is_shown_bare(PyObject *module) {
    return !module || !PyUnicode_CheckExact(module) ||
           PyUnicode_CompareWithASCIIString(module, "builtins") == 0 ||
           PyUnicode_CompareWithASCIIString(module, "__main__") == 0;
}

static PyObject *type_text(PyTypeObject *type) {
    PyObject *dict = raw_type_dict(type), *name = PyUnicode_FromString("__module__");
    PyObject *module = NULL;
    if (!name)
        return NULL;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        Py_DECREF(name);
        return shorten(PyUnicode_FromString(type->tp_name));
    }
    if (!dict || raw_dict_get(dict, name, &module) != RAW_FOUND)
        module = NULL;
    Py_DECREF(name);
    PyObject *own = name_or(((PyHeapTypeObject *)type)->ht_qualname, "<class>");
    if (!own || is_shown_bare(module))
        return own;
    PyObject *text = PyUnicode_FromFormat("%U.%U", module, own);
    Py_DECREF(own);
    return shorten(text);
}

// <what name>
static PyObject *named_text(const char *what, PyObject *name) {
    PyObject *plain = name_or(name, "?");
    PyObject *text = plain ? PyUnicode_FromFormat("<%s %U>", what, plain) : NULL;
    Py_XDECREF(plain);
    return text;
}

static PyObject *module_text(PyObject *o) {
    PyObject *dict = raw_dict(o), *key = PyUnicode_FromString("__name__"), *name = NULL;
    if (!key)
        return NULL;
    if (!dict || raw_dict_get(dict, key, &name) != RAW_FOUND)
        name = NULL;
    Py_DECREF(key);
    return named_text("module", name);
}

static PyObject *other_text(PyObject *o) {
    PyObject *type = type_text(Py_TYPE(o));
    PyObject *text = type ? PyUnicode_FromFormat("<%U object>", type) : NULL;
    Py_XDECREF(type);
    return text;
}

// --- containers ---

typedef struct items_text {
    PyObject *text;
    int count, depth;
} items_text;

// False once there is enough.
static bool add_item(items_text *t, PyObject *item) {
    if (t->count++ > 0)
        append_ascii(&t->text, ", ");
    if (t->count > MOST_ITEMS) {
        append_ascii(&t->text, "...");
        return false;
    }
    append(&t->text, text_of(item, t->depth + 1));
    return t->text != NULL;
}

static PyObject *sequence_text(PyObject *o, const char *open, const char *close, int depth) {
    items_text t = {PyUnicode_FromString(open), 0, depth};
    Py_ssize_t count = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < count && add_item(&t, PySequence_Fast_GET_ITEM(o, i)); i++)
        ;
    append_ascii(&t.text, count == 1 && PyTuple_Check(o) ? ",)" : close);
    return t.text;
}

static PyObject *set_text(PyObject *o, const char *open, const char *close, int depth) {
    items_text t = {PyUnicode_FromString(open), 0, depth};
    PyObject *item;
    for (Py_ssize_t at = 0; raw_set_next(o, &at, &item) && add_item(&t, item);)
        ;
    append_ascii(&t.text, close);
    return t.text;
}

static PyObject *dict_text(PyObject *o, int depth) {
    items_text t = {PyUnicode_FromString("{"), 0, depth};
    PyObject *key, *value;
    for (raw_cursor c = {0}; raw_dict_next(o, &c, &key, &value) && value && add_item(&t, key);) {
        append_ascii(&t.text, ": ");
        append(&t.text, text_of(value, depth + 1));
    }
    append_ascii(&t.text, "}");
    return t.text;
}

static PyObject *slice_text(PyObject *o, int depth) {
    PySliceObject *s = (PySliceObject *)o;
    items_text t = {PyUnicode_FromString("slice("), 0, depth};
    (void)(add_item(&t, s->start) && add_item(&t, s->stop) && add_item(&t, s->step));
    append_ascii(&t.text, ")");
    return t.text;
}

static PyObject *container_text(PyObject *o, int depth) {
    PyTypeObject *type = Py_TYPE(o);
    if (depth >= DEEPEST)
        return PyUnicode_FromString("...");
    if (type == &PyTuple_Type)
        return sequence_text(o, "(", ")", depth);
    if (type == &PyList_Type)
        return sequence_text(o, "[", "]", depth);
    if (type == &PyDict_Type)
        return dict_text(o, depth);
    if (type == &PySlice_Type)
        return slice_text(o, depth);
    return type == &PySet_Type ? set_text(o, "{", "}", depth)
                               : set_text(o, "frozenset({", "})", depth);
}

static bool is_plain(PyTypeObject *type) {
    return type == &PyFloat_Type || type == &PyComplex_Type || type == &PyBool_Type ||
           type == &PyRange_Type || type == Py_TYPE(Py_None) || type == Py_TYPE(Py_Ellipsis) ||
           type == Py_TYPE(Py_NotImplemented);
}

static bool is_container(PyTypeObject *type) {
    return type == &PyTuple_Type || type == &PyList_Type || type == &PyDict_Type ||
           type == &PySet_Type || type == &PyFrozenSet_Type || type == &PySlice_Type;
}

static PyObject *text_of(PyObject *o, int depth) {
    PyTypeObject *type = Py_TYPE(o);
    if (is_plain(type))
        return shorten(repr_of(o));
    if (type == &PyLong_Type)
        return long_text(o);
    if (type == &PyUnicode_Type)
        return string_text(o);
    if (type == &PyBytes_Type)
        return bytes_text(PyBytes_AS_STRING(o), PyBytes_GET_SIZE(o));
    if (type == &PyByteArray_Type)
        return bytes_text(PyByteArray_AS_STRING(o), PyByteArray_GET_SIZE(o));
    if (is_container(type))
        return container_text(o, depth);
    if (PyType_Check(o))
        return type_text((PyTypeObject *)o);
    if (PyFunction_Check(o))
        return named_text("function", ((PyFunctionObject *)o)->func_qualname);
    if (PyCode_Check(o))
        return named_text("code", ((PyCodeObject *)o)->co_qualname);
    if (PyModule_Check(o))
        return module_text(o);
    if (PyCFunction_CheckExact(o))
        return PyUnicode_FromFormat("<built-in %s>", ((PyCFunctionObject *)o)->m_ml->ml_name);
    return other_text(o);
}

PyObject *object_text(PyObject *o) {
    return text_of(o, 0);
}

// Bound methods, partials and itemgetters show what they hold, and classes ask their metaclass.
static bool shows_itself(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    return type == &PyCFunction_Type || type == &PyMethodDescr_Type ||
           type == &PyClassMethodDescr_Type || type == &PyWrapperDescr_Type ||
           type == &PyFunction_Type || type == &PyType_Type;
}

// Functions that C++ made have no module as `self`, but a record of which only its address differs.
static bool is_cpp_function(PyObject *o) {
    PyObject *self = PyCFunction_CheckExact(o) ? ((PyCFunctionObject *)o)->m_self : NULL;
    return self && strstr(Py_TYPE(self)->tp_name, "pybind11_detail");
}

static PyObject *cpp_function_text(PyCFunctionObject *o) {
    if (o->m_module && PyUnicode_CheckExact(o->m_module))
        return PyUnicode_FromFormat("<built-in function %U.%s>", o->m_module, o->m_ml->ml_name);
    return PyUnicode_FromFormat("<built-in function %s>", o->m_ml->ml_name);
}

PyObject *callable_text(PyObject *o) {
    if (is_cpp_function(o))
        return cpp_function_text((PyCFunctionObject *)o);
    return shows_itself(o) ? repr_of(o) : object_text(o);
}

// --- patterns ---

static void append_text(PyObject **text, PyObject *piece) {
    append(text, piece ? Py_NewRef(piece) : PyUnicode_FromString("?"));
}

static void append_place(PyObject **text, char letter, const pattern_texts *t) {
    switch (letter) {
    case 'a':
    case 'p':
        append_text(text, t->first);
        break;
    case 'b':
        append_text(text, t->second);
        break;
    case 'o':
    case 'k':
        append_text(text, t->object);
        break;
    case 'n':
        append_text(text, t->name);
        break;
    default:
        append(text, PyUnicode_FromFormat("%zd", t->index));
    }
}

PyObject *pattern_fill(const char *pattern, const pattern_texts *t) {
    PyObject *text = PyUnicode_FromString("");
    while (text && *pattern) {
        const char *end = strchr(pattern, '%');
        Py_ssize_t plain = end ? end - pattern : (Py_ssize_t)strlen(pattern);
        append(&text, PyUnicode_FromStringAndSize(pattern, plain));
        pattern += plain;
        if (end) {
            append_place(&text, end[1], t);
            pattern += 2;
        }
    }
    return text;
}
