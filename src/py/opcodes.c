// CPython's own tables of caches and base opcodes (CPython's headers define them, its library
// exports none), and the bytes of a code object, which are checked while they are read.
#define NEED_OPCODE_TABLES   // up to 3.12
#define NEED_OPCODE_METADATA // from 3.13
#include "src/py/opcodes.h"

#if PY_VERSION_HEX < 0x030d0000
#include <internal/pycore_opcode.h>
#else
#include <internal/pycore_opcode_metadata.h>
#endif

const uint8_t *const py_opcode_caches = _PyOpcode_Caches;

// Whether CPython wrote opcodes of its own into the code, and keeps what they stand for elsewhere.
static bool is_instrumented(PyCodeObject *code) {
#if PY_VERSION_HEX < 0x030c0000
    (void)code;
    return false;
#else
    return code->_co_monitoring != NULL;
#endif
}

// Opcodes for which PyCode_GetCode would look where nothing is, since CPython did not write them.
static bool is_foreign(PyCodeObject *code, uint8_t opcode) {
#if PY_VERSION_HEX < 0x030c0000
    (void)code, (void)opcode;
    return false;
#elif PY_VERSION_HEX < 0x030d0000
    (void)code;
    return opcode >= MIN_INSTRUMENTED_OPCODE;
#else
    return opcode >= MIN_INSTRUMENTED_OPCODE || (opcode == ENTER_EXECUTOR && !code->co_executors);
#endif
}

// PyCode_GetCode trusts the opcodes, and clears the caches of the last one even where they would
// lie behind the end. What is wrong with the code, or NULL.
static const char *find_trap(PyCodeObject *code) {
    const uint8_t *bytes = (const uint8_t *)_PyCode_CODE(code);
    Py_ssize_t units = Py_SIZE(code), unit = 0;
    while (unit < units) {
        uint8_t opcode = bytes[2 * unit];
        if (is_foreign(code, opcode))
            return "an opcode that only CPython may write";
        unit += 1 + _PyOpcode_Caches[_PyOpcode_Deopt[opcode]];
    }
    return unit == units ? NULL : "the last instruction is cut off";
}

PyObject *py_code_bytes(PyCodeObject *code) {
    const char *trap = is_instrumented(code) ? NULL : find_trap(code);
    if (!trap)
        return PyCode_GetCode(code);
    PyErr_Format(PyExc_SystemError, "malformed code object %R: %s", code->co_name, trap);
    return NULL;
}
