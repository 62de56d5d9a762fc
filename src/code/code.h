// The decoded form of a code object: canonical instructions, exception regions, lines, and, when
// asked for, stack depths and live variables. Made once per code object and owned by it.
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
    OPF_SETS = 8,     // gives its local a value without looking at the old one
    OPF_CALL = 16,    // calls what lies on the stack, which may be super
    OPF_HANDLER = 32, // puts an exception handler on or takes it off
    OPF_REAL = 64,    // is run for real in a frame that goes on: no trace begins before it
};

// What an instruction does with its operands, counted from the top of the stack, when it only hands
// them to an operand's own method.
enum {
    ASKS_TOP = 1, // << n: the operand n below the top is asked
    ASKS_BOTH = 3,
    ASKS_THIRD = 4,
    ASKS_STILL = 8, // << n: that operand must not be an iterator, which moves on before it calls
    ASKS_STILL_BOTH = 24,
    ASKS_NO_EQ = 64, // __eq__ is asked of other objects too
    ASKS_NEXT = 128, // __next__ and nothing else
    ASKS_GET = 256,  // the getter, setter or deleter of a property of the top
    ASKS_SET = 512,
    ASKS_DELETE = 1024,
    ASKS_OPERANDS = 3, // how many operands these words can speak of
};
static_assert(ASKS_TOP << ASKS_OPERANDS <= ASKS_STILL && ASKS_STILL << ASKS_OPERANDS <= ASKS_NO_EQ,
              "each operand has its own bits");

typedef enum op {
#define OP(name, ...) OP_##name,
#include "src/code/opcodes.def"
    OP_COUNT
} op;

// Flags of one instruction. BOUNDARY: a frame may be taken or put back here; unset on the later
// part of a fused one. POLLS: a taken jump looks at the eval breaker first (jumps backward, but for
// the quiet one).
enum { INSN_BOUNDARY = 1, INSN_POLLS = 2 };

typedef struct insn {
    uint8_t op;
    uint8_t flags;
    uint8_t prefix; // code units between the start (first EXTENDED_ARG, KW_NAMES) and `at`
    uint8_t spare;
    int32_t arg;
    union {
        int32_t extra;  // second argument; opcodes.def says what it is
        int32_t target; // of a jump: index in `insns` (and `arg` is 0, but for SEND)
    };
    uint32_t at; // code unit that executes: where the frame's pointer stands meanwhile
} insn;
static_assert(sizeof(insn) == 16, "an instruction is two words");

// A row of the exception table, by code units.
typedef struct region {
    uint32_t start, end; // half open
    uint32_t target;     // index of the handler's first instruction in `insns`
    int32_t depth;       // the stack is cut to this
    bool lasti;          // push the failing offset below the exception
} region;

// What the stack and the locals look like before an instruction.
typedef struct flow {
    int32_t *depth;   // stack depth before each instruction, -1 where no path leads
    int32_t *handled; // index into `handlers` of the innermost active one, -1 for none
    struct handled {
        int32_t slot;  // stack slot in which PUSH_EXC_INFO left the previous exception
        int32_t outer; // next one out in the same frame, -1 for none
    } *handlers;
    uint32_t handler_count;
    uint64_t *live; // count × live_words bits: which of localsplus may still be read
    uint32_t live_words;
} flow;

typedef struct code {
    PyCodeObject *py; // borrowed: the code object owns this through its extra slot
    uint32_t count;
    uint32_t units;
    uint32_t region_count;
    insn *insns;
    uint32_t *at_unit; // code unit -> instruction that starts or executes there, or NO_INSN
    region *regions;   // sorted, not overlapping
    flow *flow;        // NULL until code_flow
    bool skip;         // frames of this code are CPython's to run
    int8_t library;    // whose it is: 0 not asked yet, 1 a library's that is not compiled, -1 the
                       // program's
} code;

#define NO_INSN UINT32_MAX

// One-time setup of this room (the extra slot on code objects). 0, or -1 with an exception.
int code_setup(void);

// The decoded form, made on the first call. NULL with an exception: SystemError for a malformed
// code object (a clear message, nothing cached), MemoryError.
code *code_of(PyCodeObject *py);

// Depths, handlers and liveness; made on the first call, then kept. NULL with an exception.
const flow *code_flow(code *c);

// The instruction that starts or executes at a code unit, or NULL.
static inline const insn *code_at(const code *c, long unit) {
    if (unit < 0 || unit >= (long)c->units || c->at_unit[unit] == NO_INSN)
        return NULL;
    return &c->insns[c->at_unit[unit]];
}

// Where an instruction starts, prefixes included: where CPython may take the frame over.
static inline uint32_t insn_start(const insn *i) {
    return i->at - i->prefix;
}

// The region that covers an instruction, or NULL.
const region *code_region(const code *c, const insn *i);

const char *op_name(op o);
op_arg op_argument(op o);
int op_flags(op o);
int op_asks(op o, int extra);
// Change of depth by one instruction, on the fall-through or the taken side.
int op_effect(op o, int arg, int extra, bool jumped);
// How many values it takes off the stack, and how many it finds there at least.
int op_pops(op o, int arg, int extra);
int op_needs(op o, int arg, int extra);

// `stator.dis`: the listing of one code object as a str; nested code objects too if asked.
PyObject *code_print(PyCodeObject *py, bool nested);
