// What src/code/opcodes.def says of each canonical instruction, as functions.
#include "src/code/code.h"

static const char *const names[] = {
#define OP(name, argument, pops, pushes, jumped, flags) #name,
#include "src/code/opcodes.def"
#undef OP
};

static const uint8_t arguments[] = {
#define OP(name, argument, pops, pushes, jumped, flags) argument,
#include "src/code/opcodes.def"
#undef OP
};

static const uint8_t all_flags[] = {
#define OP(name, argument, pops, pushes, jumped, flags) flags,
#include "src/code/opcodes.def"
#undef OP
};

const char *op_name(op o) {
    return names[o];
}

op_arg op_argument(op o) {
    return arguments[o];
}

int op_flags(op o) {
    return all_flags[o];
}

int op_pops(op o, int a, int x) {
    (void)a, (void)x;
    switch (o) {
#define OP(name, argument, pops, pushes, jumped, flags)                                            \
    case OP_##name:                                                                                \
        return pops;
#include "src/code/opcodes.def"
#undef OP
    case OP_COUNT:
        break;
    }
    Py_UNREACHABLE();
}

static int op_pushes(op o, int a, int x, bool is_jumped) {
    (void)a, (void)x;
    switch (o) {
#define OP(name, argument, pops, pushes, jumped, flags)                                            \
    case OP_##name:                                                                                \
        return is_jumped ? (jumped) : (pushes);
#include "src/code/opcodes.def"
#undef OP
    case OP_COUNT:
        break;
    }
    Py_UNREACHABLE();
}

int op_effect(op o, int arg, int extra, bool jumped) {
    return op_pushes(o, arg, extra, jumped) - op_pops(o, arg, extra);
}
