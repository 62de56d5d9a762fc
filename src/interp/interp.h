// The interpreter as the other rooms see it: a replacement for _PyEval_EvalFrameDefault.
#pragma once

#include "src/py/frame.h"

#include "src/interp/run.h"

// Whether the interpreter may run this frame. CPython runs frames that only make a generator, and
// frames that a debugger, profiler or monitor watches.
bool interp_can_run(PyThreadState *ts, py_frame *f);

// Runs a frame, fresh or suspended, to its return, its yield, or its exception; returns what a
// _PyFrameEvalFunction returns. `thin`: an instruction of ours called this function, with no native
// code in between. A frame that a countdown stops goes to image_stopped.
PyObject *interp_eval(PyThreadState *ts, py_frame *f, bool throwing, bool thin, long *countdown);

// The same for a run whose frame was entered already.
PyObject *interp_run(run *r, bool throwing);

// Runs the loop once. The caller ends the frame.
run_end interp_loop(run *r, bool throwing);

// Leaves a frame at rest: interp_hand_over hands it to CPython's own eval and returns the result;
// interp_end_frame ends it with an exception.
PyObject *interp_hand_over(run *r);
PyObject *interp_end_frame(run *r);
