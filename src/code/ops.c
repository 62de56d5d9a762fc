// Functions that read the columns of src/code/opcodes.def.
#include "src/code/code.h"

static const struct {
    const char *name;
    uint8_t argument, flags;
} rows[] = {
#define OP(name, argument, pops, looks, pushes, jumped, fits, asks, flags) {#name, argument, flags},
#include "src/code/opcodes.def"
};

typedef struct stack_use {
    int pops, looks, pushes, jumped, asks;
} stack_use;

static stack_use use_of(op o, int a, int x) {
    (void)a, (void)x;
    switch (o) {
#define OP(name, argument, pops, looks, pushes, jumped, fits, asks, flags)                         \
    case OP_##name:                                                                                \
        return (stack_use){pops, looks, pushes, jumped, asks};
#include "src/code/opcodes.def"
    case OP_COUNT:
        break;
    }
    Py_UNREACHABLE();
}

const char *op_name(op o) {
    return rows[o].name;
}

op_arg op_argument(op o) {
    return rows[o].argument;
}

int op_flags(op o) {
    return rows[o].flags;
}

bool code_in_loop(const code *c, const insn *pc) {
    int32_t here = (int32_t)(pc - c->insns);
    for (uint32_t i = (uint32_t)here; i < c->count; i++) {
        const insn *jump = &c->insns[i];
        if ((op_flags(jump->op) & OPF_JUMP) && jump->target <= here)
            return true;
    }
    return false;
}

int op_asks(op o, int extra) {
    return use_of(o, 0, extra).asks;
}

int op_pops(op o, int arg, int extra) {
    return use_of(o, arg, extra).pops;
}

int op_needs(op o, int arg, int extra) {
    stack_use use = use_of(o, arg, extra);
    return use.pops + use.looks;
}

int op_effect(op o, int arg, int extra, bool jumped) {
    stack_use use = use_of(o, arg, extra);
    return (jumped ? use.jumped : use.pushes) - use.pops;
}
