// Reads the places where outside objects are found.
#include "src/base/upcalls.h"

#include "src/py/iterators.h"
#include "src/py/random.h"
#include "src/py/raw.h"

#include "src/guard/expression.h"
#include "src/guard/guard.h"
#include "src/guard/program.h"

// --- reads, one a kind or family ---

static PyObject *set_item(PyObject *o, Py_ssize_t i) {
    PyObject *item = NULL;
    if (!PyAnySet_Check(o) || i < 0 || i >= PySet_GET_SIZE(o))
        return NULL;
    for (Py_ssize_t at = 0; i >= 0; i--)
        if (!raw_set_next(o, &at, &item))
            return NULL;
    return item;
}

static PyObject *slice_field(PyObject *o, Py_ssize_t i) {
    if (!PySlice_Check(o))
        return NULL;
    PySliceObject *s = (PySliceObject *)o;
    return i == 0 ? s->start : i == 1 ? s->stop : i == 2 ? s->step : NULL;
}

// A key with its own __hash__ is only looked for where all keys are guarded: by identity.
static PyObject *dict_item(PyObject *o, PyObject *key, raw_hint *hint) {
    PyObject *value;
    raw there = raw_key_simple(key) ? raw_dict_get_near(o, key, hint, &value)
                                    : raw_dict_get_identical(o, key, hint, &value);
    return there == RAW_FOUND ? value : NULL;
}

static PyObject *attr(PyObject *o, PyObject *name, raw_hint *hint) {
    PyObject *value;
    return raw_attr_get_near(o, name, hint, &value) == RAW_FOUND ? value : NULL;
}

static PyObject *dict_or_itself(PyObject *o) {
    PyObject *dict = raw_dict(o);
    return dict ? dict : o;
}

static PyObject *slot(PyObject *o, Py_ssize_t offset) {
    PyObject *value;
    return raw_slot_get(o, offset, &value) == RAW_FOUND ? value : NULL;
}

static PyObject *type_attr(PyObject *o, PyObject *name, memo *m) {
    PyTypeObject *type = (PyTypeObject *)o;
    if (!PyType_Check(o))
        return NULL;
    unsigned version = raw_type_version(type);
    PyObject *value = version != 0 ? memo_get(m, version) : NULL;
    if (value)
        return value;
    if (raw_type_get(type, name, &value) != RAW_FOUND)
        return NULL;
    memo_put(m, raw_type_version_make(type, name), value);
    return value;
}

static PyObject *type_base(PyObject *o, Py_ssize_t i) {
    PyObject *mro = PyType_Check(o) ? ((PyTypeObject *)o)->tp_mro : NULL;
    return mro ? read_tuple_item(mro, i) : NULL;
}

static PyObject *method_function(PyObject *o) {
    return PyMethod_Check(o) ? PyMethod_GET_FUNCTION(o) : NULL;
}

static PyObject *wrapped(PyObject *o) {
    PyObject *function = raw_field_get(RAW_STATICMETHOD_FUNC, o);
    return function ? function : raw_field_get(RAW_CLASSMETHOD_FUNC, o);
}

static PyObject *closure_cell(PyObject *o, Py_ssize_t i) {
    PyObject *closure = ((PyFunctionObject *)o)->func_closure;
    PyObject *cell = closure ? read_tuple_item(closure, i) : NULL;
    return cell && PyCell_Check(cell) ? cell : NULL;
}

// --- reads that make something ---

// Takes the reference; what comes back is borrowed from the list.
static PyObject *keep(PyObject *o, PyObject **kept) {
    if (!*kept)
        *kept = PyList_New(0);
    bool stays = *kept && PyList_Append(*kept, o) == 0;
    Py_DECREF(o); // the list has it
    return stays ? o : NULL;
}

static PyObject *instance_dict(PyObject *o) {
    PyObject *dict = raw_dict(o);
    if (dict || !raw_has_dict(Py_TYPE(o)))
        return dict;
    dict = raw_dict_make(o);
    Py_XDECREF(dict); // the object has it
    return dict;
}

static PyObject *context_value(PyObject *o) {
    PyObject *value = NULL;
    if (!PyContextVar_CheckExact(o) || PyContextVar_Get(o, NULL, &value) < 0)
        return NULL;
    Py_XDECREF(value); // the context or the variable has it
    return value;
}

static PyObject *iterator_field(PyObject *o, Py_ssize_t index) {
    const py_iterator_form *form = py_iterator_form_of(o);
    if (!form)
        PyErr_Clear();
    bool there = form && index >= 0 && index < py_iterator_fields(form);
    return there ? py_iterator_field(form, o, (int)index) : NULL;
}

static PyObject *dimension(source_kind kind, PyObject *o, Py_ssize_t index, PyObject **kept) {
    number n;
    return dimension_read(kind, o, index, &n) ? source_keep_number(n, kept) : NULL;
}

// No collection may run meanwhile, and no error gets out.
PyObject *source_keep_number(number n, PyObject **kept) {
    bool collecting = raw_gc_off();
    PyObject *o = number_as_object(n);
    PyObject *result = o ? keep(o, kept) : NULL;
    if (!result)
        PyErr_Clear();
    raw_gc_restore(collecting);
    return result;
}

static PyObject *number_text_of(PyObject *o, PyObject **kept) {
    if (!PyLong_CheckExact(o) && !PyFloat_CheckExact(o))
        return NULL;
    bool collecting = raw_gc_off();
    PyObject *text = PyObject_Str(o), *result = text ? keep(text, kept) : NULL;
    if (!result)
        PyErr_Clear();
    raw_gc_restore(collecting);
    return result;
}

static PyObject *tensor_value(PyObject *o, PyObject *name, PyObject **kept) {
    PyObject *value = source_read_tensor && name ? source_read_tensor(o, name) : NULL;
    return value ? keep(value, kept) : NULL;
}

static bool is_named(PyObject *descriptor, const char *name) {
    return PyUnicode_CompareWithASCIIString(PyDescr_NAME(descriptor), name) == 0;
}

// type.__doc__ and type.__annotations__ bind what the class has there; the second is made if
// missing.
static bool class_field_quiet(PyObject *descriptor, PyObject *o) {
    bool annotations = is_named(descriptor, "__annotations__");
    PyObject *value, *dict = raw_type_dict((PyTypeObject *)o);
    if (!annotations && !is_named(descriptor, "__doc__"))
        return true;
    raw there = dict ? raw_dict_get(dict, PyDescr_NAME(descriptor), &value) : RAW_UNSURE;
    return there == RAW_FOUND ? !Py_TYPE(value)->tp_descr_get : there == RAW_ABSENT && !annotations;
}

// Getters that ask another object, make something or warn: whether this one does not, as things are
// now.
static bool field_quiet(PyObject *descriptor, PyObject *o) {
    PyTypeObject *owner = PyDescr_TYPE(descriptor);
    if (owner == &PyType_Type)
        return class_field_quiet(descriptor, o);
    if (owner == &PyFunction_Type)
        return !is_named(descriptor, "__annotations__") ||
               raw_function_field(o, PyDescr_NAME(descriptor));
    if (owner == &PyMethod_Type)
        return PyFunction_Check(PyMethod_GET_FUNCTION(o)) || !is_named(descriptor, "__doc__");
    if (owner == &PyProperty_Type && is_named(descriptor, "__name__")) {
        PyObject *getter = raw_field_get(RAW_PROPERTY_GET, o);
        return getter && (getter == Py_None || PyFunction_Check(getter));
    }
    return owner != &PyCode_Type || !is_named(descriptor, "co_lnotab");
}

static bool is_field(PyObject *o) {
    return Py_IS_TYPE(o, &PyMemberDescr_Type) || Py_IS_TYPE(o, &PyGetSetDescr_Type);
}

// A C member or getset that runs no code; the object may be of another type by now.
static PyObject *descriptor_value(PyObject *o, PyObject *descriptor, PyObject **kept) {
    if (!descriptor || !is_field(descriptor) || !PyObject_TypeCheck(o, PyDescr_TYPE(descriptor)) ||
        !field_quiet(descriptor, o))
        return NULL;
    PyObject *type = (PyObject *)Py_TYPE(o);
    PyObject *value = Py_TYPE(descriptor)->tp_descr_get(descriptor, o, type);
    return value ? keep(value, kept) : NULL;
}

// These allocate: no collection may run meanwhile, and no error gets out.
static PyObject *read_making(source_kind kind, PyObject *parent, PyObject *key, PyObject **kept) {
    bool collecting = raw_gc_off();
    PyObject *result = kind == SOURCE_DICT          ? instance_dict(parent)
                       : kind == SOURCE_CONTEXT_VAR ? context_value(parent)
                       : kind == SOURCE_THREAD_DICT ? raw_thread_dict(parent)
                       : kind == SOURCE_FIELD       ? descriptor_value(parent, key, kept)
                                                    : tensor_value(parent, key, kept);
    if (!result)
        PyErr_Clear();
    raw_gc_restore(collecting);
    return result;
}

// --- all reads ---

static PyObject *or_none(PyObject *o) {
    return o ? o : Py_None;
}

static PyObject *read_function(source_kind kind, PyObject *o, PyObject *key, Py_ssize_t index,
                               raw_hint *hint) {
    PyFunctionObject *f = (PyFunctionObject *)o;
    if (!PyFunction_Check(o))
        return NULL;
    switch ((int)kind) {
    case SOURCE_GLOBALS:
        return f->func_globals;
    case SOURCE_BUILTINS:
        return f->func_builtins;
    case SOURCE_CLOSURE:
        return closure_cell(o, index);
    case SOURCE_DEFAULT:
        return f->func_defaults ? read_tuple_item(f->func_defaults, index) : NULL;
    case SOURCE_KWDEFAULT:
        return f->func_kwdefaults ? dict_item(f->func_kwdefaults, key, hint) : NULL;
    case SOURCE_DEFAULTS:
        return or_none(f->func_defaults);
    case SOURCE_KWDEFAULTS:
        return or_none(f->func_kwdefaults);
    default:
        return raw_function_field(o, key);
    }
}

static PyObject *read_field(source_kind kind, PyObject *o, Py_ssize_t index) {
    switch ((int)kind) {
    case SOURCE_METHOD_FUNC:
        return method_function(o);
    case SOURCE_METHOD_SELF:
        return raw_method_self(o);
    case SOURCE_WRAPPED:
        return wrapped(o);
    case SOURCE_PROPERTY_GET:
        return raw_field_get(RAW_PROPERTY_GET, o);
    case SOURCE_PROPERTY_SET:
        return raw_field_get(RAW_PROPERTY_SET, o);
    case SOURCE_PROPERTY_DEL:
        return raw_field_get(RAW_PROPERTY_DEL, o);
    case SOURCE_PARTIAL_FUNC:
        return raw_field_get(RAW_PARTIAL_FUNC, o);
    case SOURCE_PARTIAL_ARGS:
        return raw_field_get(RAW_PARTIAL_ARGS, o);
    case SOURCE_PARTIAL_KEYWORDS:
        return raw_field_get(RAW_PARTIAL_KEYWORDS, o);
    case SOURCE_SUPER_TYPE:
        return raw_field_get(RAW_SUPER_TYPE, o);
    case SOURCE_SUPER_SELF:
        return raw_field_get(RAW_SUPER_SELF, o);
    case SOURCE_DEFAULT_FACTORY:
        return raw_field_get(RAW_DEFAULT_FACTORY, o);
    case SOURCE_CACHED:
        return raw_cached_result(o);
    case SOURCE_WEAKREF:
        return raw_weakref_get(o);
    case SOURCE_VIEW_DICT:
        return raw_view_mapping(o);
    case SOURCE_SLICE_FIELD:
        return slice_field(o, index);
    case SOURCE_ITERATOR_FIELD:
        return iterator_field(o, index);
    default:
        return NULL;
    }
}

static PyObject *stack_item(PyObject *getter, Py_ssize_t index, PyObject **kept) {
    bool collecting = raw_gc_off();
    PyObject *number = getter == source_stack ? PyLong_FromSsize_t(index) : NULL;
    PyObject *item = number ? PyObject_CallOneArg(getter, number) : NULL;
    Py_XDECREF(number);
    PyObject *result = item ? keep(item, kept) : NULL;
    PyErr_Clear();
    raw_gc_restore(collecting);
    return result;
}

static PyObject *array_tensor(PyObject *array, PyObject **kept) {
    bool collecting = raw_gc_off();
    PyObject *tensor = source_read_array ? source_read_array(array) : NULL;
    PyObject *result = tensor ? keep(tensor, kept) : NULL;
    PyErr_Clear();
    raw_gc_restore(collecting);
    return result;
}

static PyObject *next_draw(PyObject *generator, PyObject *draws, PyObject **kept) {
    bool collecting = raw_gc_off();
    PyObject *drawn = py_is_random(generator) ? py_random_peek(generator, draws) : NULL;
    PyObject *result = drawn ? keep(drawn, kept) : NULL;
    PyErr_Clear();
    raw_gc_restore(collecting);
    return result;
}

PyObject *source_read_near(source_kind kind, PyObject *parent, PyObject *key, Py_ssize_t index,
                           PyObject **kept, memo *m) {
    if (kind == SOURCE_FIXED)
        return key;
    if (!parent)
        return NULL; // roots are the frame's
    switch (kind) {
    case SOURCE_GLOBALS:
    case SOURCE_BUILTINS:
    case SOURCE_CLOSURE:
    case SOURCE_DEFAULT:
    case SOURCE_KWDEFAULT:
    case SOURCE_DEFAULTS:
    case SOURCE_KWDEFAULTS:
    case SOURCE_FUNCTION_ATTR:
        return read_function(kind, parent, key, index, &m->hint);
    case SOURCE_CELL:
        return PyCell_Check(parent) ? PyCell_GET(parent) : NULL;
    case SOURCE_TYPE:
        return (PyObject *)Py_TYPE(parent);
    case SOURCE_TYPE_ATTR:
        return type_attr(parent, key, m);
    case SOURCE_TYPE_BASE:
        return type_base(parent, index);
    case SOURCE_ATTR:
        return attr(parent, key, &m->hint);
    case SOURCE_OWN_DICT:
        return dict_or_itself(parent);
    case SOURCE_SLOT:
        return slot(parent, index);
    case SOURCE_ITEM:
    case SOURCE_TENSOR_ITEM:
        return dict_item(parent, key, &m->hint);
    case SOURCE_DICT_KEY:
        return raw_dict_key(parent, index);
    case SOURCE_DICT_VALUE:
        return raw_dict_value(parent, index);
    case SOURCE_LIST_ITEM:
        return read_list_item(parent, index);
    case SOURCE_TUPLE_ITEM:
        return read_tuple_item(parent, index);
    case SOURCE_DEQUE_ITEM:
        return raw_deque_item(parent, index);
    case SOURCE_SET_ITEM:
        return set_item(parent, index);
    case SOURCE_DICT:
    case SOURCE_CONTEXT_VAR:
    case SOURCE_THREAD_DICT:
    case SOURCE_FIELD:
    case SOURCE_TENSOR_GRAD:
        return read_making(kind, parent, key, kept);
    case SOURCE_ARRAY:
        return array_tensor(parent, kept);
    case SOURCE_STACK:
        return stack_item(parent, index, kept);
    case SOURCE_DRAW:
        return next_draw(parent, key, kept);
    case SOURCE_TEXT:
        return number_text_of(parent, kept);
    case SOURCE_SIZE:
    case SOURCE_STRIDE:
        return dimension(kind, parent, index, kept);
    default: // EXPR is read from registers, and has no parent
        return read_field(kind, parent, index);
    }
}

PyObject *source_read(source_kind kind, PyObject *parent, PyObject *key, Py_ssize_t index,
                      PyObject **kept) {
    memo none = {0};
    return source_read_near(kind, parent, key, index, kept, &none);
}

// --- text ---

// --- as text ---

static PyObject *text_of_place(void *data, source *place, int reg) {
    (void)data, (void)reg;
    return source_text(place);
}

enum { LONGEST_QUICK = 400 };

// A text in the making, of ASCII characters only.
typedef struct quick_text {
    char bytes[LONGEST_QUICK];
    Py_ssize_t size;
    bool fits; // no piece was too long, or of other characters
} quick_text;

static void put(quick_text *t, const char *piece, Py_ssize_t size) {
    t->fits = t->fits && t->size + size <= LONGEST_QUICK;
    if (!t->fits)
        return;
    memcpy(t->bytes + t->size, piece, (size_t)size);
    t->size += size;
}

static void put_str(quick_text *t, PyObject *piece) {
    t->fits = t->fits && piece && PyUnicode_IS_COMPACT_ASCII(piece);
    if (t->fits)
        put(t, (const char *)PyUnicode_1BYTE_DATA(piece), PyUnicode_GET_LENGTH(piece));
}

static void put_index(quick_text *t, Py_ssize_t index) {
    char digits[24];
    put(t, digits, snprintf(digits, sizeof(digits), "%zd", index));
}

// Whether the repr of a key is the key between quotes; *bare: it is an identifier, too.
static bool is_plain_key(PyObject *key, bool *bare) {
    if (!PyUnicode_CheckExact(key) || !PyUnicode_IS_COMPACT_ASCII(key))
        return false;
    const unsigned char *s = PyUnicode_1BYTE_DATA(key);
    Py_ssize_t size = PyUnicode_GET_LENGTH(key);
    *bare = size > 0 && !Py_ISDIGIT(s[0]);
    for (Py_ssize_t i = 0; i < size; i++) {
        bool word = Py_ISALNUM(s[i]) || s[i] == '_';
        if (!word && s[i] != '.' && s[i] != '-')
            return false;
        *bare = *bare && word;
    }
    return size <= LONGEST_QUICK / 4;
}

static void put_key(quick_text *t, PyObject *key, bool bare) {
    put(t, "'", bare ? 0 : 1);
    put_str(t, key);
    put(t, "'", bare ? 0 : 1);
}

// Most places are reached by plain names. NULL without an exception: the text is not that simple.
static PyObject *quick_source_text(const char *pattern, PyObject *parent, PyObject *key,
                                   Py_ssize_t index) {
    quick_text t; // its bytes need no first value
    t.size = 0;
    t.fits = true;
    bool bare = false;
    if (key && !is_plain_key(key, &bare))
        return NULL;
    while (*pattern && t.fits) {
        size_t plain = strcspn(pattern, "%");
        put(&t, pattern, (Py_ssize_t)plain);
        pattern += plain;
        if (!*pattern)
            break;
        if (pattern[1] == 'p')
            put_str(&t, parent);
        else if (pattern[1] == 'i')
            put_index(&t, index);
        else
            put_key(&t, key, bare && pattern[1] == 'n');
        pattern += 2;
    }
    return t.fits ? PyUnicode_FromStringAndSize(t.bytes, t.size) : NULL;
}

PyObject *source_text_of(source_kind kind, PyObject *parent, PyObject *key, Py_ssize_t index) {
    PyObject *quick = quick_source_text(step_rows[kind].text, parent, key, index);
    if (quick || PyErr_Occurred())
        return quick;
    PyObject *object = key ? object_text(key) : NULL;
    if (key && !object)
        return NULL;
    bool bare = key && PyUnicode_CheckExact(key) && PyUnicode_IsIdentifier(key);
    PyObject *name = bare ? key : object;
    if (kind == SOURCE_FIELD && is_field(key))
        name = PyDescr_NAME(key);
    pattern_texts texts = {.first = parent, .object = object, .name = name, .index = index};
    PyObject *text = pattern_fill(step_rows[kind].text, &texts);
    Py_XDECREF(object);
    return text;
}

PyObject *source_text(const source *s) {
    if (s->kind == SOURCE_EXPR)
        return expression_text(s->key, text_of_place, NULL);
    PyObject *parent = s->parent ? source_text(s->parent) : NULL;
    if (s->parent && !parent)
        return NULL;
    PyObject *text = source_text_of(s->kind, parent, s->key, s->index);
    Py_XDECREF(parent);
    return text;
}
