// Things that CPython's eval loop does and CPython does not export. Each version has its own
// shortest way: an exported internal function, a few lines of our own, or a small code object that
// CPython runs. Arguments are borrowed, results are new references, NULL or -1 comes with an
// exception.
#pragma once

#include "src/py/py.h"

// One-time setup. 0 or -1.
int py_setup_natives(void);

// Names that instructions look up, interned.
typedef struct py_names {
    PyObject *aenter, *aexit, *all, *annotations, *build_class, *dict, *enter, *exit, *get,
        *getattr, *import, *initializing, *match_args, *name, *path, *plain_name, *spec, *split;
} py_names;
extern py_names py_name;

// Texts that differ by version.
#if PY_VERSION_HEX >= 0x030c0000
#define PY_TEXT_MATCH_NOT_CLASS "called match pattern must be a class"
#define PY_TEXT_NO_LOCALS_LOADING "no locals found"
#else
#define PY_TEXT_MATCH_NOT_CLASS "called match pattern must be a type"
#define PY_TEXT_NO_LOCALS_LOADING "no locals when loading %R"
#endif

// Whether `raise X from C` checks the type of what calling the class C returned.
#define PY_CHECKS_CAUSE (PY_VERSION_HEX >= 0x030d0000)
// Whether an `except*` clause that matched nothing leaves the same exception object, even if
// split() returned another one.
#define PY_KEEPS_UNMATCHED (PY_VERSION_HEX < 0x030c0000)

// Whether a code object is one of those small ones, which only CPython's own eval can run. A hook
// passes such a frame on at once.
extern PyObject *py_native_file;
static inline bool py_is_native_helper(const PyCodeObject *code) {
    return code->co_filename == py_native_file;
}

// GET_AWAITABLE. `how` is its argument (0 plain await, 1 from __aenter__, 2 from __aexit__).
PyObject *py_get_awaitable(PyObject *o, int how);
// The iterator behind `await o`, even if somebody else awaits `o` (GET_ANEXT).
PyObject *py_awaitable_iter(PyObject *o);

// ASYNC_GEN_WRAP: the object that an async generator hands out in place of the value it yields.
PyObject *py_async_gen_wrap(PyObject *value);

// CALL_INTRINSIC_1 and _2 by the version's own numbers, for type parameters and type aliases. The
// other intrinsics look at the current frame, or have functions here. 3.11 has none (SystemError).
PyObject *py_intrinsic_1(PyThreadState *ts, int number, PyObject *value);
PyObject *py_intrinsic_2(PyThreadState *ts, int number, PyObject *a, PyObject *b);

// The exception that is still to be raised after all `except*` clauses, or None. `excs` is a list.
PyObject *py_prep_reraise_star(PyObject *orig, PyObject *excs);

// STOPITERATION_ERROR: the RuntimeError that replaces a StopIteration leaving a generator,
// coroutine or async generator (the code's co_flags say which); else `exc` itself. In 3.11
// generators do this themselves.
PyObject *py_stopiteration_error(PyObject *exc, int flags);

// LOAD_SUPER_ATTR. `super` is the value of the name `super`; two_args tells super(type, self) from
// super(). If `method` is not NULL, a plain method may be returned unbound: *method is then a new
// reference to self. Else *method is NULL and the result is the attribute itself.
PyObject *py_super_attr(PyObject *super, PyObject *type, PyObject *self, PyObject *name,
                        bool two_args, PyObject **method);

// getattr(o, name) where AttributeError is no error: 1 found, 0 not found (*value is NULL), -1.
int py_lookup_attr(PyObject *o, PyObject *name, PyObject **value);
// A special method of o, looked up on its type and bound. NULL without an exception if there is
// none.
PyObject *py_lookup_special(PyObject *o, PyObject *name);
// o[name] where KeyError is no error: 1, 0, -1 as above. An exact dict is read directly.
int py_lookup_item(PyObject *o, PyObject *name, PyObject **value);
// Clears a KeyError that is set and returns its key; NULL if the error has no single key, and then
// it stays set. (3.11 knows the key only if the error was raised while no exception was handled,
// and we do the same.)
PyObject *py_take_key_error(void);
// An attribute of a module for the text of an import error: 1, 0, -1. Before 3.13 it is never -1.
int py_lookup_for_import(PyObject *module, PyObject *name, PyObject **value);
// Whether a module is still being imported, as its __spec__ says: 1, 0, -1.
int py_is_initializing(PyObject *module);
// Sets ImportError with name, path and, where the version has it, name_from; each may be NULL.
void py_import_error(PyObject *text, PyObject *name, PyObject *path, PyObject *name_from);
// Whether `f` is the interpreter's own __import__.
bool py_is_plain_import(PyObject *f);
// The exception group that CPython puts around a single exception which an `except*` clause of the
// current frame caught.
PyObject *py_wrap_naked(PyObject *exc);
