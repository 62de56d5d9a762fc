// Awaiting, wrapping, intrinsics, super, and the lookups whose errors differ by version: CPython's
// eval loop does these things without exporting them. All #if about them are here.
#include "src/py/natives.h"

#include "src/py/frame.h"

#if PY_VERSION_HEX >= 0x030c0000
#include <internal/pycore_intrinsics.h>
#endif
#if PY_VERSION_HEX < 0x030d0000
#include <opcode.h>
#endif

py_names py_name;
PyObject *py_native_file;

// ---- code objects that let CPython do it

#if PY_VERSION_HEX < 0x030d0000

// The bytecode: load the arguments, `opcode` with `arg`, return.
static PyObject *helper_bytecode(int arguments, int opcode, int arg) {
    unsigned char units[10] = {RESUME, 0, LOAD_FAST, 0};
    int at = 4;
    if (arguments == 2) {
        units[at++] = LOAD_FAST;
        units[at++] = 1;
    }
    units[at++] = (unsigned char)opcode;
    units[at++] = (unsigned char)arg;
    units[at++] = RETURN_VALUE;
    units[at++] = 0;
    return PyBytes_FromStringAndSize((const char *)units, at);
}

static PyObject *helper_code(int arguments, int opcode, int arg) {
    PyObject *code = NULL, *none = PyTuple_New(0);
    PyObject *empty = (PyObject *)PyCode_NewEmpty("", "native", 0);
    PyObject *replace = empty ? PyObject_GetAttrString(empty, "replace") : NULL;
    PyObject *bytecode = helper_bytecode(arguments, opcode, arg);
    PyObject *names = arguments == 1 ? Py_BuildValue("(s)", "a") : Py_BuildValue("(ss)", "a", "b");
    if (none && replace && bytecode && names) {
        PyObject *changes = Py_BuildValue(
            "{s:O,s:O,s:O,s:i,s:i,s:i,s:i}", "co_code", bytecode, "co_varnames", names,
            "co_filename", py_native_file, "co_argcount", arguments, "co_nlocals", arguments,
            "co_stacksize", 2, "co_flags", CO_OPTIMIZED | CO_NEWLOCALS);
        code = changes ? PyObject_Call(replace, none, changes) : NULL;
        Py_XDECREF(changes);
    }
    Py_XDECREF(none);
    Py_XDECREF(empty);
    Py_XDECREF(replace);
    Py_XDECREF(bytecode);
    Py_XDECREF(names);
    return code;
}

// A function of that code, kept for ever.
static PyObject *helper_new(int arguments, int opcode, int arg) {
    PyObject *code = helper_code(arguments, opcode, arg);
    if (!code)
        return NULL;
    assert(py_is_native_helper((PyCodeObject *)code));
    // Importing below it (typing, by SUBSCRIPT_GENERIC) looks for __builtins__ in the globals.
    PyObject *builtins = PyInterpreterState_Get()->builtins;
    PyObject *globals = Py_BuildValue("{s:O}", "__builtins__", builtins);
    PyObject *function = globals ? PyFunction_New(code, globals) : NULL;
    Py_DECREF(code);
    Py_XDECREF(globals);
    return function;
}

// The helper's own frame is the last to add itself to the traceback: take it off again.
static void helper_forget_frame(void) {
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    if (tb) {
        PyObject *next = (PyObject *)((PyTracebackObject *)tb)->tb_next;
        Py_XINCREF(next);
        Py_SETREF(tb, next);
    }
    PyErr_Restore(type, value, tb);
}

// Trace functions and monitors are not to see the helper's frame. (They then miss what a user's
// derive() or typing's own code does below it, which is the lesser harm.)
static PyObject *helper_call(PyObject **helper, int opcode, int arg, PyObject **args, int count) {
    if (!*helper && !(*helper = helper_new(count, opcode, arg)))
        return NULL;
    PyThreadState *ts = PyThreadState_Get();
    PyThreadState_EnterTracing(ts);
    py_give_recursion(ts, 1); // the helper's frame is not the program's
    PyObject *result = PyObject_Vectorcall(*helper, args, (size_t)count, NULL);
    py_give_recursion(ts, -1);
    PyThreadState_LeaveTracing(ts);
    if (!result)
        helper_forget_frame();
    return result;
}

#endif

// ---- intrinsics

static PyObject *intrinsic_invalid(void) {
    PyErr_SetString(PyExc_SystemError, "invalid intrinsic function");
    return NULL;
}

#if PY_VERSION_HEX >= 0x030d0000

PyObject *py_intrinsic_1(PyThreadState *ts, int number, PyObject *value) {
    if (number < 0 || number > MAX_INTRINSIC_1)
        return intrinsic_invalid();
    return _PyIntrinsics_UnaryFunctions[number].func(ts, value);
}

PyObject *py_intrinsic_2(PyThreadState *ts, int number, PyObject *a, PyObject *b) {
    if (number < 0 || number > MAX_INTRINSIC_2)
        return intrinsic_invalid();
    return _PyIntrinsics_BinaryFunctions[number].func(ts, a, b);
}

#elif PY_VERSION_HEX >= 0x030c0000

PyObject *py_intrinsic_1(PyThreadState *ts, int number, PyObject *value) {
    (void)ts;
    static PyObject *helpers[MAX_INTRINSIC_1 + 1];
    if (number < 0 || number > MAX_INTRINSIC_1)
        return intrinsic_invalid();
    return helper_call(&helpers[number], CALL_INTRINSIC_1, number, &value, 1);
}

PyObject *py_intrinsic_2(PyThreadState *ts, int number, PyObject *a, PyObject *b) {
    (void)ts;
    static PyObject *helpers[MAX_INTRINSIC_2 + 1];
    // CPython's table starts at 1 here, and number 0 would call through NULL.
    if (number <= 0 || number > MAX_INTRINSIC_2)
        return intrinsic_invalid();
    PyObject *args[] = {a, b};
    return helper_call(&helpers[number], CALL_INTRINSIC_2, number, args, 2);
}

#else

PyObject *py_intrinsic_1(PyThreadState *ts, int number, PyObject *value) {
    (void)ts, (void)number, (void)value;
    return intrinsic_invalid();
}

PyObject *py_intrinsic_2(PyThreadState *ts, int number, PyObject *a, PyObject *b) {
    (void)ts, (void)number, (void)a, (void)b;
    return intrinsic_invalid();
}

#endif

// ---- exception groups

PyObject *py_prep_reraise_star(PyObject *orig, PyObject *excs) {
#if PY_VERSION_HEX >= 0x030d0000
    return _PyIntrinsics_BinaryFunctions[INTRINSIC_PREP_RERAISE_STAR].func(PyThreadState_Get(),
                                                                           orig, excs);
#elif PY_VERSION_HEX >= 0x030c0000
    return _PyExc_PrepReraiseStar(orig, excs);
#else
    static PyObject *helper;
    PyObject *args[] = {orig, excs};
    return helper_call(&helper, PREP_RERAISE_STAR, 0, args, 2);
#endif
}

// Since 3.12.9 and 3.13.2 the wrapping group shows the frame of the clause.
static bool wrapped_has_traceback(void) {
    unsigned long minor = (Py_Version >> 16) & 0xff;
    return (minor == 12 && Py_Version >= 0x030c09f0) || Py_Version >= 0x030d02f0;
}

static int add_current_frame(PyObject *exc) {
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    if (!frame)
        return 0;
    PyObject *tb = PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii", Py_None, frame,
                                         PyFrame_GetLasti(frame), PyFrame_GetLineNumber(frame));
    int failed = !tb ? -1 : PyException_SetTraceback(exc, tb);
    Py_XDECREF(tb);
    Py_DECREF(frame);
    return failed;
}

PyObject *py_wrap_naked(PyObject *exc) {
    PyObject *group = PyObject_CallFunction(PyExc_BaseExceptionGroup, "s(O)", "", exc);
    if (group && wrapped_has_traceback() && add_current_frame(group) < 0)
        Py_CLEAR(group);
    return group;
}

// ---- coroutines and generators

static int gen_flags(PyObject *gen) {
#if PY_VERSION_HEX >= 0x030c0000
    PyCodeObject *code = PyGen_GetCode((PyGenObject *)gen);
    int flags = code->co_flags;
    Py_DECREF(code);
    return flags;
#else
    return ((PyGenObject *)gen)->gi_code->co_flags;
#endif
}

static bool is_coroutine(PyObject *o) {
    return PyCoro_CheckExact(o) ||
           (PyGen_CheckExact(o) && (gen_flags(o) & CO_ITERABLE_COROUTINE) != 0);
}

static bool has_await(PyTypeObject *type) {
    return type->tp_as_async && type->tp_as_async->am_await;
}

PyObject *py_awaitable_iter(PyObject *o) {
    if (is_coroutine(o))
        return Py_NewRef(o);
    PyTypeObject *type = Py_TYPE(o);
    if (!has_await(type)) {
        PyErr_Format(PyExc_TypeError, "object %.100s can't be used in 'await' expression",
                     type->tp_name);
        return NULL;
    }
    PyObject *iter = type->tp_as_async->am_await(o);
    if (!iter)
        return NULL;
    if (is_coroutine(iter)) {
        PyErr_SetString(PyExc_TypeError, "__await__() returned a coroutine");
        Py_CLEAR(iter);
    } else if (!PyIter_Check(iter)) {
        PyErr_Format(PyExc_TypeError, "__await__() returned non-iterator of type '%.100s'",
                     Py_TYPE(iter)->tp_name);
        Py_CLEAR(iter);
    }
    return iter;
}

// Whether a coroutine is suspended in an await: 1, 0, -1. One that has not started needs no look at
// its frame, which is the usual case.
static int is_awaiting(PyObject *coro) {
    if (((PyCoroObject *)coro)->cr_frame_state == FRAME_CREATED)
        return 0;
    PyObject *inner = PyObject_GetAttrString(coro, "cr_await");
    if (!inner)
        return -1;
    Py_DECREF(inner);
    return inner != Py_None;
}

PyObject *py_get_awaitable(PyObject *o, int how) {
    PyObject *iter = py_awaitable_iter(o);
    if (!iter) {
        if ((how == 1 || how == 2) && !has_await(Py_TYPE(o)))
            PyErr_Format(PyExc_TypeError,
                         "'async with' received an object from %s that does not implement "
                         "__await__: %.100s",
                         how == 1 ? "__aenter__" : "__aexit__", Py_TYPE(o)->tp_name);
        return NULL;
    }
    if (!PyCoro_CheckExact(iter))
        return iter;
    int awaiting = is_awaiting(iter);
    if (awaiting > 0)
        PyErr_SetString(PyExc_RuntimeError, "coroutine is being awaited already");
    if (awaiting != 0)
        Py_CLEAR(iter);
    return iter;
}

#if PY_VERSION_HEX >= 0x030d0000

PyObject *py_async_gen_wrap(PyObject *value) {
    return _PyIntrinsics_UnaryFunctions[INTRINSIC_ASYNC_GEN_WRAP].func(PyThreadState_Get(), value);
}

#else

// The layout of CPython's _PyAsyncGenWrappedValue, which no header shows; setup compares the size.
typedef struct wrapped_value {
    PyObject_HEAD
    PyObject *value;
} wrapped_value;

PyObject *py_async_gen_wrap(PyObject *value) {
    wrapped_value *w = PyObject_GC_New(wrapped_value, &_PyAsyncGenWrappedValue_Type);
    if (!w)
        return NULL;
    w->value = Py_NewRef(value);
    PyObject_GC_Track(w);
    return (PyObject *)w;
}

#endif

static const char *stopiteration_text(PyObject *exc, int flags) {
    if (PyErr_GivenExceptionMatches(exc, PyExc_StopIteration)) {
        if (flags & CO_ASYNC_GENERATOR)
            return "async generator raised StopIteration";
        if (flags & CO_COROUTINE)
            return "coroutine raised StopIteration";
        return "generator raised StopIteration";
    }
    if ((flags & CO_ASYNC_GENERATOR) && PyErr_GivenExceptionMatches(exc, PyExc_StopAsyncIteration))
        return "async generator raised StopAsyncIteration";
    return NULL;
}

PyObject *py_stopiteration_error(PyObject *exc, int flags) {
    const char *text = stopiteration_text(exc, flags);
    if (!text)
        return Py_NewRef(exc);
    PyObject *error = PyObject_CallFunction(PyExc_RuntimeError, "s", text);
    if (error) {
        PyException_SetCause(error, Py_NewRef(exc));
        PyException_SetContext(error, Py_NewRef(exc));
    }
    return error;
}

// ---- super

#if PY_VERSION_HEX >= 0x030d0000

static PyObject *super_fast(PyObject *type, PyObject *self, PyObject *name, PyObject **method,
                            bool *done) {
    int unbound = 0;
    // Found through a class, a function stays as it is; this lookup would say it wants a self.
    int *may_be_unbound = method && !PyType_Check(self) ? &unbound : NULL;
    PyObject *found = _PySuper_Lookup((PyTypeObject *)type, self, name, may_be_unbound);
    if (found && unbound)
        *method = Py_NewRef(self);
    *done = true;
    return found;
}

#elif PY_VERSION_HEX >= 0x030c0000

// What follows `type` in the method resolution order of self's type and has the name; NULL without
// an exception if nothing does.
static PyObject *super_find(PyTypeObject *type, PyObject *self, PyObject *name) {
    PyObject *mro = Py_XNewRef(Py_TYPE(self)->tp_mro), *found = NULL;
    Py_ssize_t i = 0, count = mro ? PyTuple_GET_SIZE(mro) : 0;
    while (i < count && PyTuple_GET_ITEM(mro, i) != (PyObject *)type)
        i++;
    for (i++; i < count && !found && !PyErr_Occurred(); i++) {
        PyObject *dict = PyType_GetDict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        if (dict)
            found = Py_XNewRef(PyDict_GetItemWithError(dict, name));
        Py_XDECREF(dict);
    }
    Py_XDECREF(mro);
    return found;
}

// Only the plain case, a method of an instance: the rest goes through a super object.
static PyObject *super_fast(PyObject *type, PyObject *self, PyObject *name, PyObject **method,
                            bool *done) {
    if (!method || PyType_Check(self) || !PyType_IsSubtype(Py_TYPE(self), (PyTypeObject *)type))
        return NULL;
    PyObject *found = super_find((PyTypeObject *)type, self, name);
    if (!found) {
        *done = PyErr_Occurred() != NULL;
    } else if (PyType_HasFeature(Py_TYPE(found), Py_TPFLAGS_METHOD_DESCRIPTOR)) {
        *method = Py_NewRef(self);
        *done = true;
    } else {
        Py_CLEAR(found);
    }
    return found;
}

#else

static PyObject *super_fast(PyObject *type, PyObject *self, PyObject *name, PyObject **method,
                            bool *done) {
    (void)type, (void)self, (void)name, (void)method, (void)done;
    return NULL;
}

#endif

PyObject *py_super_attr(PyObject *super, PyObject *type, PyObject *self, PyObject *name,
                        bool two_args, PyObject **method) {
    if (method)
        *method = NULL;
    // super(type, None) is an unbound super object, which the fast way does not know.
    if (super == (PyObject *)&PySuper_Type && PyType_Check(type) && self != Py_None) {
        bool done = false;
        PyObject *found = super_fast(type, self, name, method, &done);
        if (done)
            return found;
    }
    PyObject *args[] = {type, self};
    PyObject *object = PyObject_Vectorcall(super, args, two_args ? 2 : 0, NULL);
    if (!object)
        return NULL;
    PyObject *found = PyObject_GetAttr(object, name);
    Py_DECREF(object);
    return found;
}

// ---- lookups

int py_lookup_attr(PyObject *o, PyObject *name, PyObject **value) {
#if PY_VERSION_HEX >= 0x030d0000
    return PyObject_GetOptionalAttr(o, name, value);
#else
    return _PyObject_LookupAttr(o, name, value);
#endif
}

PyObject *py_lookup_special(PyObject *o, PyObject *name) {
    PyTypeObject *type = Py_TYPE(o);
    PyObject *found = Py_XNewRef(_PyType_Lookup(type, name));
    descrgetfunc get = found ? Py_TYPE(found)->tp_descr_get : NULL;
    if (get)
        Py_SETREF(found, get(found, o, (PyObject *)type));
    return found;
}

int py_lookup_item(PyObject *o, PyObject *name, PyObject **value) {
#if PY_VERSION_HEX >= 0x030d0000
    return PyMapping_GetOptionalItem(o, name, value);
#else
    if (PyDict_CheckExact(o)) {
        *value = Py_XNewRef(PyDict_GetItemWithError(o, name));
        return *value ? 1 : PyErr_Occurred() ? -1 : 0;
    }
    *value = PyObject_GetItem(o, name);
    if (*value)
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_KeyError))
        return -1;
    PyErr_Clear();
    return 0;
#endif
}

PyObject *py_take_key_error(void) {
    PyObject *type, *value, *tb, *args;
    PyErr_Fetch(&type, &value, &tb);
#if PY_VERSION_HEX >= 0x030c0000
    args = value ? ((PyBaseExceptionObject *)value)->args : NULL;
#else
    args = value; // of an exception that nobody has made an object of yet
#endif
    if (!args || !PyTuple_Check(args) || PyTuple_GET_SIZE(args) != 1) {
        PyErr_Restore(type, value, tb);
        return NULL;
    }
    PyObject *key = Py_NewRef(PyTuple_GET_ITEM(args, 0));
    Py_DECREF(type);
    Py_DECREF(value);
    Py_XDECREF(tb);
    return key;
}

// ---- imports

// Before 3.13 the making of the text swallowed whatever went wrong in it.
static int import_failure(int result) {
#if PY_VERSION_HEX < 0x030d0000
    if (result < 0) {
        PyErr_Clear();
        return 0;
    }
#endif
    return result;
}

int py_lookup_for_import(PyObject *module, PyObject *name, PyObject **value) {
    return import_failure(py_lookup_attr(module, name, value));
}

int py_is_initializing(PyObject *module) {
    PyObject *spec, *value = NULL;
    int found = py_lookup_for_import(module, py_name.spec, &spec);
    if (found <= 0)
        return found;
    found = py_lookup_for_import(spec, py_name.initializing, &value);
    if (found > 0)
        found = import_failure(PyObject_IsTrue(value));
    Py_DECREF(spec);
    Py_XDECREF(value);
    return found;
}

void py_import_error(PyObject *text, PyObject *name, PyObject *path, PyObject *name_from) {
#if PY_VERSION_HEX < 0x030c0000
    (void)name_from;
    PyErr_SetImportError(text, name, path);
#else
    if (!text) { // as PyErr_SetImportError says it
        PyErr_SetString(PyExc_TypeError, "expected a message argument");
        return;
    }
    PyObject *attributes =
        Py_BuildValue("{s:O,s:O,s:O}", "name", name ? name : Py_None, "path", path ? path : Py_None,
                      "name_from", name_from ? name_from : Py_None);
    if (!attributes)
        return;
    PyObject *error = PyObject_VectorcallDict(PyExc_ImportError, &text, 1, attributes);
    Py_DECREF(attributes);
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
#endif
}

bool py_is_plain_import(PyObject *f) {
#if PY_VERSION_HEX >= 0x030c0000
    return f == PyInterpreterState_Get()->imports.import_func;
#else
    return f == PyInterpreterState_Get()->import_func;
#endif
}

// ---- setup

static int setup_names(void) {
    const struct {
        PyObject **slot;
        const char *text;
    } rows[] = {
        {&py_name.aenter, "__aenter__"},
        {&py_name.aexit, "__aexit__"},
        {&py_name.all, "__all__"},
        {&py_name.annotations, "__annotations__"},
        {&py_name.build_class, "__build_class__"},
        {&py_name.dict, "__dict__"},
        {&py_name.enter, "__enter__"},
        {&py_name.exit, "__exit__"},
        {&py_name.get, "get"},
        {&py_name.getattr, "__getattr__"},
        {&py_name.import, "__import__"},
        {&py_name.initializing, "_initializing"},
        {&py_name.match_args, "__match_args__"},
        {&py_name.name, "__name__"},
        {&py_name.path, "__path__"},
        {&py_name.plain_name, "name"},
        {&py_name.spec, "__spec__"},
        {&py_name.split, "split"},
    };
    static_assert(sizeof rows / sizeof rows[0] == sizeof(py_names) / sizeof(PyObject *),
                  "every name has a row");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!*rows[i].slot && !(*rows[i].slot = PyUnicode_InternFromString(rows[i].text)))
            return -1;
    return 0;
}

int py_setup_natives(void) {
#if PY_VERSION_HEX < 0x030d0000
    if (_PyAsyncGenWrappedValue_Type.tp_basicsize != (Py_ssize_t)sizeof(wrapped_value)) {
        PyErr_SetString(PyExc_SystemError, "this CPython wraps async generators' values otherwise");
        return -1;
    }
#endif
    if (!py_native_file && !(py_native_file = PyUnicode_FromString("<stator native>")))
        return -1;
    return setup_names();
}
