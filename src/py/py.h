// CPython's headers, internal ones included, and facts about a version that other rooms use by
// name. The version itself is tested only in this folder. The build defines Py_BUILD_CORE.
#pragma once

#include <Python.h>
#include <structmember.h>

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030e0000
#error "Stator supports CPython 3.11, 3.12 and 3.13"
#endif

#if PY_VERSION_HEX < 0x030d0000
#include <internal/pycore_atomic.h>
#endif
#include <internal/pycore_call.h>
#include <internal/pycore_ceval.h>
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_genobject.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pyerrors.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_runtime.h>
#if PY_VERSION_HEX >= 0x030d0000
#include <internal/pycore_setobject.h>
#endif

#undef _PyObject_LookupSpecial

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

// module.name. New reference, or NULL with an exception.
static inline PyObject *py_import(const char *module, const char *name) {
    PyObject *from = PyImport_ImportModule(module);
    PyObject *found = from ? PyObject_GetAttrString(from, name) : NULL;
    Py_XDECREF(from);
    return found;
}

// Which of the two slots under a call's arguments holds the callable when there is no bound self:
// 3.11 and 3.12 have NULL, callable; 3.13 has callable, NULL.
#define PY_CALLABLE_FIRST (PY_VERSION_HEX >= 0x030d0000)

// Whether a jump backward looks at the eval breaker before it moves (3.13) or after. The exception
// table is searched for an exception from there at the jump (3.13), or one unit before the jump's
// target.
#define PY_POLLS_BEFORE_JUMP (PY_VERSION_HEX >= 0x030d0000)

// Whether `except` leaves the previous exception as NULL, not None, once nothing is handled (3.13).
#define PY_NO_EXCEPTION_IS_NULL (PY_VERSION_HEX >= 0x030d0000)

// Whether f(*args) of a Python function drops its tuple as soon as the callee's frame exists (3.12
// on).
#define PY_STAR_CALL_LENDS (PY_VERSION_HEX >= 0x030c0000)

// Where the pointer of a frame stands while a Python function that it calls runs: on the last cache
// of the call (3.11, 3.12), or on the call itself (3.13).
#define PY_CALL_STANDS_ON_CACHE (PY_VERSION_HEX < 0x030d0000)

// Whether tools can tell by CPython's events that an eval hook is on (3.12 on).
#define PY_HOOK_SHOWS (PY_VERSION_HEX >= 0x030c0000)
