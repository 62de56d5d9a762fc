// How the running Python's raw opcodes become canonical instructions. Each version has one table,
// whose rows name a shape, the canonical instruction, and a number that the shape explains.
//
//   RAW(opcode, shape, number, canonical)    PAIR(opcode, first, second): two in one
//   UNARY(intrinsic, number, canonical) and BINARY(intrinsic, number, canonical): what the two
//   CALL_INTRINSIC opcodes become, by their argument; no row: INTRINSIC_1 and INTRINSIC_2
//
// raw_opcodes.def is the running version's table. <opcode.h> defines names like CALL and COPY:
// include this late, in few places.
#pragma once

#include "src/py/py.h"

#include <opcode.h>

#if PY_VERSION_HEX >= 0x030c0000
#include <internal/pycore_intrinsics.h>
#endif

#ifdef MAX_INTRINSIC_1
enum { PY_UNARY_COUNT = MAX_INTRINSIC_1 + 1, PY_BINARY_COUNT = MAX_INTRINSIC_2 + 1 };
#else
enum { PY_UNARY_COUNT = 1, PY_BINARY_COUNT = 1 }; // there are none
#endif

// n is the row's number. A field that is not named is 0.
typedef enum raw_shape {
    RAW_BAD,      // does not occur in code of users
    RAW_NONE,     // the opcode has no argument; extra: n
    RAW_ARG,      // arg: all bits above the lowest n
    RAW_EXTRA,    // extra: the lowest bit
    RAW_HIGH,     // extra: the lowest n bits, arg: those above
    RAW_LOW,      // arg: the lowest n bits, extra: those above
    RAW_COMPARE,  // extra: bit n, arg: those above
    RAW_ATTR,     // LOAD_METHOD where the lowest bit is set; arg: those above
    RAW_FORWARD,  // a jump, which skips n units more than the argument says
    RAW_BACKWARD, // a jump; n: whether it looks at the eval breaker
    RAW_SEND,     // a jump forward; arg: n
    RAW_CALL,     // extra: the keyword names before it
    RAW_PAIR,     // first arg: upper four bits, second arg: lower four bits
    RAW_UNARY,    // CALL_INTRINSIC_1
    RAW_BINARY,   // CALL_INTRINSIC_2
    RAW_EXTENDED, // EXTENDED_ARG
    RAW_KW_NAMES, // prefix of a call
    RAW_PRECALL,  // prefix of a call
} raw_shape;

// Code units of inline cache behind each raw opcode.
extern const uint8_t *const py_opcode_caches;

// The code as bytes, neither specialised nor instrumented. New reference, or NULL with an
// exception: SystemError if the cache of the last instruction would end behind the code.
PyObject *py_code_bytes(PyCodeObject *code);
