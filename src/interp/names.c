// Names in namespaces, and the special methods and built-in protocols that single instructions use.
#include "src/interp/names.h"

#include "src/py/natives.h"

#include "src/interp/errors.h"

// ---- namespaces

// Borrowed, or NULL with or without an exception.
static PyObject *dict_get(PyObject *dict, PyObject *name) {
    Py_hash_t hash = ((PyASCIIObject *)name)->hash;
    if (hash == -1 && (hash = PyObject_Hash(name)) == -1)
        return NULL;
    return _PyDict_GetItem_KnownHash(dict, name, hash);
}

PyObject *load_global(PyObject *globals, PyObject *builtins, PyObject *name) {
    PyObject *value;
    if (PyDict_CheckExact(globals) && PyDict_CheckExact(builtins)) {
        value = dict_get(globals, name);
        if (!value && !PyErr_Occurred())
            value = dict_get(builtins, name);
        if (value)
            return Py_NewRef(value);
        if (!PyErr_Occurred())
            error_undefined(name);
        return NULL;
    }
    if (py_lookup_item(globals, name, &value) == 0 && py_lookup_item(builtins, name, &value) == 0)
        error_undefined(name);
    return value;
}

PyObject *load_name(PyObject *locals, PyObject *globals, PyObject *builtins, PyObject *name) {
    if (!locals) {
        PyErr_Format(PyExc_SystemError, PY_TEXT_NO_LOCALS_LOADING, name);
        return NULL;
    }
    PyObject *value;
    if (py_lookup_item(locals, name, &value) != 0)
        return value;
    // A dict subclass as globals is read as a plain dict here, other than by load_global.
    value = dict_get(globals, name);
    if (value)
        return Py_NewRef(value);
    if (PyErr_Occurred())
        return NULL;
    if (py_lookup_item(builtins, name, &value) == 0)
        error_undefined(name);
    return value;
}

PyObject *load_dict_or_global(PyObject *dict, PyObject *globals, PyObject *builtins,
                              PyObject *name) {
    PyObject *value;
    if (py_lookup_item(dict, name, &value) != 0)
        return value;
    return load_global(globals, builtins, name);
}

PyObject *load_dict_or_cell(PyObject *dict, PyObject *cell, PyCodeObject *code, int index) {
    PyObject *value, *name = PyTuple_GET_ITEM(code->co_localsplusnames, index);
    if (py_lookup_item(dict, name, &value) != 0)
        return value;
    value = Py_XNewRef(PyCell_GET(cell));
    if (!value)
        error_unbound_cell(code, index);
    return value;
}

PyObject *load_locals(PyObject *locals) {
    if (!locals)
        PyErr_SetString(PyExc_SystemError, "no locals found");
    return Py_XNewRef(locals);
}

int store_name(PyObject *locals, PyObject *name, PyObject *value) {
    if (!locals) {
        PyErr_Format(PyExc_SystemError, "no locals found when storing %R", name);
        return -1;
    }
    int failed = PyDict_CheckExact(locals) ? PyDict_SetItem(locals, name, value)
                                           : PyObject_SetItem(locals, name, value);
    return failed ? -1 : 0;
}

int delete_name(PyObject *locals, PyObject *name) {
    if (!locals) {
        PyErr_Format(PyExc_SystemError, "no locals when deleting %R", name);
        return -1;
    }
    if (PyObject_DelItem(locals, name) == 0)
        return 0;
    error_undefined(name); // whatever went wrong
    return -1;
}

int delete_global(PyObject *globals, PyObject *name) {
    if (PyDict_DelItem(globals, name) == 0)
        return 0;
    if (PyErr_ExceptionMatches(PyExc_KeyError))
        error_undefined(name);
    return -1;
}

PyObject *load_build_class(PyObject *builtins) {
    PyObject *value;
    if (py_lookup_item(builtins, py_name.build_class, &value) == 0)
        PyErr_SetString(PyExc_NameError, "__build_class__ not found");
    return value;
}

int setup_annotations(PyObject *locals) {
    if (!locals) {
        PyErr_SetString(PyExc_SystemError, "no locals found when setting up annotations");
        return -1;
    }
    PyObject *annotations;
    int found = py_lookup_item(locals, py_name.annotations, &annotations);
    if (found == 0) {
        annotations = PyDict_New();
        if (!annotations || store_name(locals, py_name.annotations, annotations) < 0)
            found = -1;
    }
    Py_XDECREF(annotations);
    return found < 0 ? -1 : 0;
}

// ---- with

// A method by the type, bound; a TypeError that ends in `missed` if there is none.
static PyObject *with_method(PyObject *manager, PyObject *name, bool async, const char *missed) {
    PyObject *method = py_lookup_special(manager, name);
    if (!method && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError,
                     "'%.200s' object does not support the %scontext manager protocol%s",
                     Py_TYPE(manager)->tp_name, async ? "asynchronous " : "", missed);
    return method;
}

int with_lookup(PyObject *manager, bool async, PyObject **enter, PyObject **exit) {
    *exit = NULL;
    *enter = with_method(manager, async ? py_name.aenter : py_name.enter, async, "");
    if (!*enter)
        return -1;
    *exit = with_method(manager, async ? py_name.aexit : py_name.exit, async,
                        async ? " (missed __aexit__ method)" : " (missed __exit__ method)");
    if (!*exit)
        Py_CLEAR(*enter);
    return *exit ? 0 : -1;
}

PyObject *with_exit(PyObject *exit, PyObject *exc) {
    PyObject *tb = PyException_GetTraceback(exc);
    PyObject *args[] = {NULL, PyExceptionInstance_Class(exc), exc, tb ? tb : Py_None};
    PyObject *result =
        PyObject_Vectorcall(exit, args + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_XDECREF(tb);
    return result;
}

// ---- iteration

static bool has_anext(PyTypeObject *type) {
    return type->tp_as_async && type->tp_as_async->am_anext;
}

PyObject *get_aiter(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    if (!type->tp_as_async || !type->tp_as_async->am_aiter) {
        PyErr_Format(PyExc_TypeError,
                     "'async for' requires an object with __aiter__ method, got %.100s",
                     type->tp_name);
        return NULL;
    }
    PyObject *iter = type->tp_as_async->am_aiter(o);
    if (iter && !has_anext(Py_TYPE(iter))) {
        PyErr_Format(PyExc_TypeError,
                     "'async for' received an object from __aiter__ that does not implement "
                     "__anext__: %.100s",
                     Py_TYPE(iter)->tp_name);
        Py_CLEAR(iter);
    }
    return iter;
}

PyObject *get_anext(PyObject *aiter) {
    PyTypeObject *type = Py_TYPE(aiter);
    if (!has_anext(type)) {
        PyErr_Format(PyExc_TypeError,
                     "'async for' requires an iterator with __anext__ method, got %.100s",
                     type->tp_name);
        return NULL;
    }
    PyObject *next = type->tp_as_async->am_anext(aiter);
    if (!next || PyAsyncGen_CheckExact(aiter))
        return next;
    PyObject *iter = py_awaitable_iter(next);
    if (!iter)
        _PyErr_FormatFromCause(PyExc_TypeError,
                               "'async for' received an invalid object from __anext__: %.100s",
                               Py_TYPE(next)->tp_name);
    Py_DECREF(next);
    return iter;
}

PyObject *get_yield_from_iter(PyObject *o, int flags) {
    if (PyGen_CheckExact(o))
        return Py_NewRef(o);
    if (!PyCoro_CheckExact(o))
        return PyObject_GetIter(o);
    if (flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE))
        return Py_NewRef(o);
    PyErr_SetString(PyExc_TypeError,
                    "cannot 'yield from' a coroutine object in a non-coroutine generator");
    return NULL;
}

// ---- text

PyObject *convert_value(PyObject *value, int conversion) {
    switch (conversion) {
    case 0:
        return Py_NewRef(value);
    case 1:
        return PyObject_Str(value);
    case 2:
        return PyObject_Repr(value);
    case 3:
        return PyObject_ASCII(value);
    }
    PyErr_Format(PyExc_SystemError, "unexpected conversion flag %d", conversion);
    return NULL;
}

PyObject *format_value(PyObject *value, int conversion, PyObject *spec) {
    PyObject *converted = convert_value(value, conversion);
    if (!converted || (!spec && PyUnicode_CheckExact(converted)))
        return converted;
    PyObject *text = PyObject_Format(converted, spec);
    Py_DECREF(converted);
    return text;
}

PyObject *print_expr(PyObject *value) {
    PyObject *hook = Py_XNewRef(PySys_GetObject("displayhook"));
    if (!hook) {
        PyErr_SetString(PyExc_RuntimeError, "lost sys.displayhook");
        return NULL;
    }
    PyObject *result = PyObject_CallOneArg(hook, value);
    Py_DECREF(hook);
    return result;
}
