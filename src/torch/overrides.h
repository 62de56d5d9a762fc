// Who is asked before torch does a call: modes, and arguments whose class has `__torch_function__`. The trace
// finds out by doing the call natively on probes, which note whom torch asks, in what order and with
// which arguments. Then it interprets the methods of the real ones.
#pragma once

#include "src/torch/room.h"

// What torch lets be asked in a thread.
typedef enum function_state {
    FUNCTIONS_ON,
    FUNCTIONS_NO_SUBCLASSES, // within torch._C.DisableTorchFunctionSubclass
    FUNCTIONS_OFF,           // within torch._C.DisableTorchFunction
} function_state;

typedef struct overrides {
    PyObject *guard;       // strong: torch's context that keeps its own calls from asking; or NULL
    function_state before; // when the trace began
    function_state state;  // of the program, now
    VEC(PyObject *) entered; // borrowed from the arena: contexts that the program is in, which the
                             // trace entered
    VEC(function_state) outer; // the state around each of these
    bool skip;                 // nobody is asked of the next call that would ask
    map classes;               // class → whether it has a __torch_function__ that is asked
    PyObject *modes;           // strong: list of the modes that are on, outermost first; or NULL
    VEC(uint64_t) pushed;      // when each of them was entered
    int64_t outside;           // how many of them were on before the trace
    int64_t below;             // default devices below them
} overrides;

// The part of the trace for this. The first call makes it: from then on torch's own code, run for
// the trace, asks nobody. NULL with an exception or a break.
overrides *overrides_of(world *w);
void overrides_free(torch_trace *t);
// At the end of the trace: ST_BREAK if a context or a mode is not left. The trace is done again, and
// breaks before it was entered.
status overrides_end(world *w, torch_trace *t);
// From now on torch may ask again.
void overrides_wake(torch_trace *t);

// Asks those whom torch would ask of this call. False: there is nobody, and the call is torch's own.
// True: *result is the answer; NULL with an exception or a break.
bool overrides_answer(world *w, const call *c, PyObject **result);
// The same for a call of `function` by position.
bool overrides_answer_of(world *w, PyObject *function, PyObject *const *args, size_t given,
                         PyObject **result);
// The handler of rows whose kind says ASKED: asks, or goes on to the row's own handler.
PyObject *overrides_first(world *w, const call *c);
// Checks that the class of no operand has special methods of its own in the place of torch's, from
// `first` on; ST_BREAK if one has.
status overrides_check(world *w, PyObject *const *operands, int count, special first, int methods);
// Checks that the question which redispatch_function answers does not lie behind this operation, of
// which the trace asked nobody; ST_BREAK if it does.
status overrides_asked(world *w);
// Whether torch would ask the class of this stand-in; 1, 0, -1.
int overrides_of_tensor(world *w, const standin *s);

// --- modes (mode_stack.c) ---

// How many modes are on in this thread that are no default devices below all others.
int64_t modes_now(void);
bool modes_are_on(const overrides *o);
// Finds the modes that are on before the trace.
status modes_begin(world *w, overrides *o);
// ST_BREAK if a mode that the trace entered is still on: the trace is done again, and breaks before.
status modes_end(world *w, const overrides *o);
// Asks the innermost mode, which is off meanwhile; new reference.
PyObject *mode_ask(world *w, overrides *o, PyObject *const *args, size_t given);

// --- subclasses that only have __torch_function__ (subclass.c) ---

// Checks that objects of this class can be traced; else ST_BREAK. `slots`: it may have `__slots__`.
status subclass_check(world *w, PyTypeObject *class, bool slots);
