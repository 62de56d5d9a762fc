// Sets the exceptions that CPython's eval loop itself raises.
#include "src/interp/errors.h"

#include "src/py/natives.h"

// Sets `type` with a text made by a format with one %s for the name; a NameError gets `.name`.
static void error_name(PyObject *type, const char *format, PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    if (!text)
        return;
    PyErr_Format(type, format, text);
    if (type != PyExc_NameError)
        return;
    PyObject *class, *value, *tb;
    PyErr_Fetch(&class, &value, &tb);
    PyErr_NormalizeException(&class, &value, &tb);
    // Without the attribute the exception is still right, only the suggestion is missing.
    if (PyErr_GivenExceptionMatches(value, PyExc_NameError) &&
        !((PyNameErrorObject *)value)->name &&
        PyObject_SetAttr(value, py_name.plain_name, name) < 0)
        PyErr_Clear();
    PyErr_Restore(class, value, tb);
}

void error_undefined(PyObject *name) {
    error_name(PyExc_NameError, "name '%.200s' is not defined", name);
}

void error_unbound_local(PyCodeObject *code, int index) {
    error_name(PyExc_UnboundLocalError,
               "cannot access local variable '%s' where it is not associated with a value",
               PyTuple_GET_ITEM(code->co_localsplusnames, index));
}

void error_unbound_cell(PyCodeObject *code, int index) {
    if (PyErr_Occurred())
        return;
    if (index < code->co_nlocalsplus - code->co_nfreevars)
        error_unbound_local(code, index);
    else
        error_name(PyExc_NameError,
                   "cannot access free variable '%s' where it is not associated with a value in "
                   "enclosing scope",
                   PyTuple_GET_ITEM(code->co_localsplusnames, index));
}

static bool is_iterable(PyObject *o) {
    return Py_TYPE(o)->tp_iter || PySequence_Check(o);
}

// TypeError: `<function> <format of o>`, where the format has one %U for the function.
static void error_callable(PyObject *callable, const char *format, PyObject *what) {
    PyErr_Clear();
    PyObject *function = _PyObject_FunctionStr(callable);
    if (function)
        PyErr_Format(PyExc_TypeError, format, function, Py_TYPE(what)->tp_name);
    Py_XDECREF(function);
}

int error_check_star_args(PyObject *callable, PyObject *args) {
    if (is_iterable(args))
        return 0;
    error_callable(callable, "%U argument after * must be an iterable, not %.200s", args);
    return -1;
}

void error_list_extend(PyObject *iterable) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) && !is_iterable(iterable))
        PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s",
                     Py_TYPE(iterable)->tp_name);
}

void error_dict_update(PyObject *update) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Format(PyExc_TypeError, "'%.200s' object is not a mapping", Py_TYPE(update)->tp_name);
}

static void error_key_twice(PyObject *callable, PyObject *key) {
    PyObject *function = _PyObject_FunctionStr(callable);
    if (function)
        PyErr_Format(PyExc_TypeError, "%U got multiple values for keyword argument '%S'", function,
                     key);
    Py_XDECREF(function);
}

void error_dict_merge(PyObject *callable, PyObject *update) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
        error_callable(callable, "%U argument after ** must be a mapping, not %.200s", update);
        return;
    }
    if (!PyErr_ExceptionMatches(PyExc_KeyError))
        return;
    PyObject *key = py_take_key_error();
    if (!key)
        return;
    error_key_twice(callable, key);
    Py_DECREF(key);
}

static int check_exception_class(PyObject *type) {
    if (PyExceptionClass_Check(type))
        return 0;
    PyErr_SetString(PyExc_TypeError,
                    "catching classes that do not inherit from BaseException is not allowed");
    return -1;
}

static int check_no_group(PyObject *type) {
    int group = PyObject_IsSubclass(type, PyExc_BaseExceptionGroup);
    if (group > 0)
        PyErr_SetString(PyExc_TypeError,
                        "catching ExceptionGroup with except* is not allowed. Use except instead.");
    return group ? -1 : 0;
}

// Applies a check to a type, or to each of a tuple of types.
static int check_each(PyObject *type, int (*check)(PyObject *)) {
    if (!PyTuple_Check(type))
        return check(type);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type); i++)
        if (check(PyTuple_GET_ITEM(type, i)) < 0)
            return -1;
    return 0;
}

int error_check_except_type(PyObject *type) {
    return check_each(type, check_exception_class);
}

int error_check_except_star_type(PyObject *type) {
    if (error_check_except_type(type) < 0)
        return -1;
    return check_each(type, check_no_group);
}
