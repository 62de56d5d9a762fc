// The interpreter as the other rooms see it: a replacement for _PyEval_EvalFrameDefault.
#pragma once

#include "src/py/frame.h"

#include "src/interp/run.h"

// Whether the interpreter may take this frame: not one that only makes a generator, not one that a
// debugger, profiler or monitor watches. Those are CPython's.
bool interp_can_run(PyThreadState *ts, py_frame *f);

// Runs a frame, fresh or suspended, to its return, its yield, or its exception; returns what a
// _PyFrameEvalFunction does. `thin`: an instruction of ours called this function, with no native
// code in between. A frame that a countdown stops goes to image_stopped.
PyObject *interp_eval(PyThreadState *ts, py_frame *f, bool throwing, bool thin, long *countdown);

// The same for a run whose frame is entered already.
PyObject *interp_run(run *r, bool throwing);

// One run of the loop, for a frame whose end is the caller's affair.
run_end interp_loop(run *r, bool throwing);

// Leaves a frame at rest: to CPython's own eval, whose result is returned; or for good, with an
// exception.
PyObject *interp_hand_over(run *r);
PyObject *interp_end_frame(run *r);
