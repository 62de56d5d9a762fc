// The extra slot of code objects: Stator keeps one pointer in each code object, and CPython frees
// it with the code object.
#pragma once

#include "src/py/py.h"

#if PY_VERSION_HEX < 0x030c0000
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#define PyUnstable_Code_SetExtra _PyCode_SetExtra
#endif

// The struct of Objects/codeobject.c, the same in all versions. Reading it directly saves a call of
// CPython's function.
typedef struct py_code_extras {
    Py_ssize_t size;
    void *extras[];
} py_code_extras;

// A slot number, or -1 with an exception.
static inline Py_ssize_t py_code_slot_new(freefunc release) {
    Py_ssize_t slot = PyUnstable_Eval_RequestCodeExtraIndex(release);
    if (slot < 0)
        PyErr_SetString(PyExc_SystemError, "no free extra slot on code objects");
    return slot;
}

static inline void *py_code_slot_get(PyCodeObject *code, Py_ssize_t slot) {
    const py_code_extras *extras = code->co_extra;
    return extras && slot < extras->size ? extras->extras[slot] : NULL;
}

// 0, or -1 with an exception.
static inline int py_code_slot_set(PyCodeObject *code, Py_ssize_t slot, void *value) {
    if (PyUnstable_Code_SetExtra((PyObject *)code, slot, value) == 0)
        return 0;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return -1;
}

// The opcode as the code object has it. (PyCode_GetCode gives 0 for an opcode that does not exist.)
static inline int py_code_raw_opcode(PyCodeObject *code, uint32_t unit) {
    return ((uint8_t *)_PyCode_CODE(code))[2 * (size_t)unit];
}
