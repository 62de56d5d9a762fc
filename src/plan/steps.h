// The data of a plan. Registers hold strong references to this call's objects; an operand is a
// register or a constant of the plan.
#pragma once

#include "src/plan/plan.h"

typedef enum step_kind {
#define STEP(name, text) STEP_##name,
#include "src/plan/steps.def"
#undef STEP
    STEP_COUNT,
} step_kind;

// The number of a register; a number below zero is the constant ~operand.
typedef int operand;
enum { OPERAND_NONE = INT_MIN };

typedef struct step {
    step_kind kind;
    int out; // the register it sets, or -1
    operand a, b, c;
    uint32_t first, count; // further operands
    PyObject *object;      // borrowed from the plan's constants, or NULL
    Py_ssize_t index, end;
} step;

typedef struct load {
    int from; // the register of the guard pass
    int to;
    PyObject *text; // strong: the text of the source
} load;

struct plan {
    graph *graph; // strong
    bool has_graph, breaks;
    plan_graph how;
    VEC(load) loads;
    VEC(int) inputs;  // registers with the inputs of the graph
    VEC(int) outputs; // registers for the outputs of the graph
    VEC(int) early;   // loads that only the graph needs
    VEC(step) steps;
    uint32_t writes; // the first step that writes
    uint32_t later;  // the first one behind all writes that runs code of the program
    VEC(operand) operands;
    VEC(PyObject *) constants; // strong
    Py_ssize_t dropped;        // references that the writes drop, at most
    int registers;
    operand result;
    int active; // number of runs of this plan now
    bool dead;  // the last of these runs frees the plan
};

typedef struct plan_types {
    PyTypeObject *deque, *defaultdict, *partial, *namespace;
    PyObject *append, *appendleft, *pop, *popleft, *clear, *maxlen; // descriptors of deque
} plan_types;
extern plan_types plan_type;
