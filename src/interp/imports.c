// The three import instructions: they turn names into modules and attributes.
#include "src/interp/imports.h"

#include "src/py/natives.h"

PyObject *import_name(PyObject *globals, PyObject *builtins, PyObject *locals, PyObject *name,
                      PyObject *fromlist, PyObject *level) {
    PyObject *import, *module;
    int found = py_lookup_item(builtins, py_name.import, &import);
    if (found == 0)
        PyErr_SetString(PyExc_ImportError, "__import__ not found");
    if (found <= 0)
        return NULL;
    if (!locals)
        locals = Py_None;
    if (py_is_plain_import(import)) {
        int depth = (int)PyLong_AsLong(level);
        module = depth == -1 && PyErr_Occurred()
                     ? NULL
                     : PyImport_ImportModuleLevelObject(name, globals, locals, fromlist, depth);
    } else {
        PyObject *args[] = {name, globals, locals, fromlist, level};
        module = PyObject_Vectorcall(import, args, 5, NULL);
    }
    Py_DECREF(import);
    return module;
}

// sys.modules['package.name']: a circular import may have left the attribute unset so far.
static PyObject *import_submodule(PyObject *package, PyObject *name) {
    PyObject *full = PyUnicode_FromFormat("%U.%U", package, name);
    if (!full)
        return NULL;
    PyObject *module = PyImport_GetModule(full);
    Py_DECREF(full);
    return module;
}

// The module's __file__ if it is a str, else NULL without an exception.
static PyObject *import_path(PyObject *module) {
    if (!PyModule_Check(module))
        return NULL;
    PyObject *path = PyModule_GetFilenameObject(module);
    if (!path)
        PyErr_Clear();
    return path;
}

// `package` is NULL for an object without a usable __name__.
static void import_from_error(PyObject *module, PyObject *package, PyObject *name) {
    PyObject *shown = package ? Py_NewRef(package) : PyUnicode_FromString("<unknown module name>");
    if (!shown)
        return;
    PyObject *path = import_path(module);
    int initializing = path ? py_is_initializing(module) : 0;
    if (initializing >= 0) {
        PyObject *text;
        if (!path)
            text = PyUnicode_FromFormat("cannot import name %R from %R (unknown location)", name,
                                        shown);
        else
            text = PyUnicode_FromFormat(
                initializing ? "cannot import name %R from partially initialized module %R (most "
                               "likely due to a circular import) (%S)"
                             : "cannot import name %R from %R (%S)",
                name, shown, path);
        py_import_error(text, package, path, name);
        Py_XDECREF(text);
    }
    Py_DECREF(shown);
    Py_XDECREF(path);
}

PyObject *import_from(PyObject *module, PyObject *name) {
    PyObject *value, *package;
    if (py_lookup_attr(module, name, &value) != 0)
        return value;
    if (py_lookup_for_import(module, py_name.name, &package) < 0)
        return NULL;
    if (package && !PyUnicode_Check(package))
        Py_CLEAR(package);
    value = package ? import_submodule(package, name) : NULL;
    if (!value && !PyErr_Occurred())
        import_from_error(module, package, name);
    Py_XDECREF(package);
    return value;
}

// A name in __all__ or in the module's __dict__ that is no str.
static void error_star_name(PyObject *module, PyObject *name, bool from_dict) {
    PyObject *package = PyObject_GetAttr(module, py_name.name);
    if (!package)
        return;
    if (!PyUnicode_Check(package))
        PyErr_Format(PyExc_TypeError, "module __name__ must be a string, not %.100s",
                     Py_TYPE(package)->tp_name);
    else
        PyErr_Format(PyExc_TypeError, "%s in %U.%s must be str, not %.100s",
                     from_dict ? "Key" : "Item", package, from_dict ? "__dict__" : "__all__",
                     Py_TYPE(name)->tp_name);
    Py_DECREF(package);
}

static int import_one(PyObject *module, PyObject *locals, PyObject *name, bool from_dict) {
    if (!PyUnicode_Check(name)) {
        error_star_name(module, name, from_dict);
        return -1;
    }
    if (from_dict && PyUnicode_GET_LENGTH(name) > 0 && PyUnicode_READ_CHAR(name, 0) == '_')
        return 0;
    PyObject *value = PyObject_GetAttr(module, name);
    if (!value)
        return -1;
    int failed = PyDict_CheckExact(locals) ? PyDict_SetItem(locals, name, value)
                                           : PyObject_SetItem(locals, name, value);
    Py_DECREF(value);
    return failed;
}

// The names to import: __all__, or else the keys of __dict__.
static PyObject *star_names(PyObject *module, bool *from_dict) {
    PyObject *names, *dict;
    *from_dict = false;
    if (py_lookup_attr(module, py_name.all, &names) != 0)
        return names;
    *from_dict = true;
    int found = py_lookup_attr(module, py_name.dict, &dict);
    if (found == 0)
        PyErr_SetString(PyExc_ImportError, "from-import-* object has no __dict__ and no __all__");
    if (found <= 0)
        return NULL;
    names = PyMapping_Keys(dict);
    Py_DECREF(dict);
    return names;
}

int import_star(PyObject *module, PyObject *locals) {
    if (!locals) {
        PyErr_SetString(PyExc_SystemError, "no locals found during 'import *'");
        return -1;
    }
    bool from_dict;
    PyObject *names = star_names(module, &from_dict);
    if (!names)
        return -1;
    int failed = 0;
    for (Py_ssize_t i = 0; !failed; i++) {
        PyObject *name = PySequence_GetItem(names, i);
        if (!name) {
            if (PyErr_ExceptionMatches(PyExc_IndexError))
                PyErr_Clear();
            else
                failed = -1;
            break;
        }
        failed = import_one(module, locals, name, from_dict);
        Py_DECREF(name);
    }
    Py_DECREF(names);
    return failed ? -1 : 0;
}
