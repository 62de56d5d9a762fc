// The decoded form of a code object: canonical instructions, exception regions, lines, and, once
// code_flow was called, stack depths and live variables. It is made once per code object, which
// owns it.
#pragma once

#include "src/base/status.h"

#include "src/py/py.h"

#include <stdint.h>

typedef enum op_arg {
    ARG_NONE,
    ARG_RAW,
    ARG_COUNT,
    ARG_DEPTH,
    ARG_CONST,
    ARG_NAME,
    ARG_LOCAL,
    ARG_BINARY,
    ARG_COMPARE,
    ARG_INVERT,
    ARG_CONVERT,
    ARG_FLAGS,
    ARG_JUMP,
} op_arg;

enum {
    OPF_JUMP = 1,     // may go to `target`
    OPF_END = 2,      // never falls through
    OPF_SURE = 4,     // cannot fail
    OPF_SETS = 8,     // gives its local variable a value without reading the old one
    OPF_CALL = 16,    // calls a callable on the stack, which may be super
    OPF_HANDLER = 32, // begins or ends an exception handler
    OPF_REAL = 64,    // no trace begins before it: a frame that goes on runs it for real
};

// The operands (counted from the top of the stack) whose own methods an instruction calls before it
// does anything else.
enum {
    ASKS_TOP = 1, // << n: a method of the operand n below the top is called
    ASKS_BOTH = 3,
    ASKS_THIRD = 4,
    ASKS_STILL = 8, // << n: that operand must not be a C iterator, which moves on before it calls
    ASKS_STILL_BOTH = 24,
    ASKS_NO_EQ = 64, // __eq__ of other objects is called, too
    ASKS_NEXT = 128, // only __next__ is called
    ASKS_GET = 256,  // the getter, setter or deleter of a property of the top is called
    ASKS_SET = 512,
    ASKS_DELETE = 1024,
    ASKS_OPERANDS = 3, // how many operands have bits
};
static_assert(ASKS_TOP << ASKS_OPERANDS <= ASKS_STILL && ASKS_STILL << ASKS_OPERANDS <= ASKS_NO_EQ,
              "each operand has its own bits");

typedef enum op {
#define OP(name, ...) OP_##name,
#include "src/code/opcodes.def"
    OP_COUNT
} op;

// Flags of one instruction. BOUNDARY: a frame may be taken or put back before the instruction;
// unset on the later parts of a fused instruction. POLLS: a taken jump first looks at the eval
// breaker (all jumps backward except JUMP_BACKWARD_NO_INTERRUPT).
enum { INSN_BOUNDARY = 1, INSN_POLLS = 2 };

typedef struct insn {
    uint8_t op;
    uint8_t flags;
    uint8_t prefix; // code units between the start (first EXTENDED_ARG, KW_NAMES) and `at`
    uint8_t spare;
    int32_t arg;
    union {
        int32_t extra;  // second argument; opcodes.def says its meaning
        int32_t target; // of a jump: index in `insns` (`arg` is 0 then, except for SEND)
    };
    uint32_t at; // the code unit at which the frame's pointer stands while the instruction runs
} insn;
static_assert(sizeof(insn) == 16, "an instruction is two words");

// A row of the exception table, by code units.
typedef struct region {
    uint32_t start, end; // half open
    uint32_t target;     // index of the handler's first instruction in `insns`
    int32_t depth;       // the stack is cut to this depth
    bool lasti;          // the offset that failed is pushed below the exception
} region;

// The stack and the local variables before each instruction.
typedef struct flow {
    int32_t *depth;   // stack depth before each instruction; -1: no path leads there
    int32_t *handled; // index in `handlers` of the innermost active handler, -1 for none
    struct handled {
        int32_t slot;  // stack slot in which PUSH_EXC_INFO left the previous exception
        int32_t outer; // index of the next outer handler in the same frame, -1 for none
    } *handlers;
    uint32_t handler_count;
    uint64_t *live; // count × live_words bits: the slots of localsplus that may still be read
    uint32_t live_words;
} flow;

typedef struct code {
    PyCodeObject *py; // borrowed: the code object owns this struct through its extra slot
    uint32_t count;
    uint32_t units;
    uint32_t region_count;
    insn *insns;
    uint32_t *at_unit; // code unit -> instruction that starts or executes there, or NO_INSN
    region *regions;   // sorted, not overlapping
    flow *flow;        // NULL until code_flow
    bool skip;         // CPython runs the frames of this code
    int8_t library;    // whose code it is: 0 not known yet, 1 a library's that is not compiled, -1
                       // the program's
    int8_t torch;      // whether it names torch: 0 not known yet, 1 yes, -1 no
} code;

#define NO_INSN UINT32_MAX

// Sets this room up, once (the extra slot of code objects). 0, or -1 with an exception.
int code_setup(void);

// The decoded form, made on the first call. NULL with an exception: SystemError for a malformed
// code object (with a clear message; nothing is kept), MemoryError.
code *code_of(PyCodeObject *py);
// The folders of libraries, a tuple of str: their code is not compiled by itself, only where the
// program's code calls it.
void code_set_library(PyObject *folders);
// Whether the code's file lies in one of them; true of code that cannot be decoded.
bool code_in_library(PyCodeObject *py);

// Depths, handlers and liveness; made on the first call, then kept. NULL with an exception.
const flow *code_flow(code *c);

// The instruction that starts or executes at a code unit, or NULL.
static inline const insn *code_at(const code *c, long unit) {
    if (unit < 0 || unit >= (long)c->units || c->at_unit[unit] == NO_INSN)
        return NULL;
    return &c->insns[c->at_unit[unit]];
}

// The code unit at which an instruction starts, prefixes included. CPython can take the frame over
// there.
static inline uint32_t insn_start(const insn *i) {
    return i->at - i->prefix;
}

// The region that covers an instruction, or NULL.
const region *code_region(const code *c, const insn *i);

const char *op_name(op o);
op_arg op_argument(op o);
int op_flags(op o);
// Whether a jump back leads over an instruction, so that it may run more than once in a frame.
bool code_in_loop(const code *c, const insn *pc);
int op_asks(op o, int extra);
// The change of the stack depth by one instruction, if it falls through or if it jumps.
int op_effect(op o, int arg, int extra, bool jumped);
// How many values an instruction pops, and how many values it needs on the stack.
int op_pops(op o, int arg, int extra);
int op_needs(op o, int arg, int extra);

// `stator.dis`: the listing of a code object as a str, with its nested code objects if `nested`.
PyObject *code_print(PyCodeObject *py, bool nested);
