// The frames that were there before the trace: the one it begins in, and those below that await its
// value, in which it goes on when that has returned. What they hold comes in by the door when the
// trace comes to them.
#pragma once

#include "src/interp/run.h"

#include "src/world/world.h"

// Before a frame that goes on is traced: who else has what the frames hold.
status roots_look(world *w, int below);
// Makes the frame of that level; they are made outermost first, and each calls the next one. What
// it returns.
PyObject *root_call(world *w, int level, run_result result);
// The first frame: its bound arguments, or all its slots, and where it goes on.
status root_begin(world *w, PyThreadState *ts, py_frame *f);
// One that waited: all its slots. Its value is still to be pushed.
status root_resume(world *w, run *r);
// It returns, or an exception leaves it: what it still holds goes now.
void root_leave(run *r);
// Whether a frame that stands at `unit` is to end for real.
bool root_ends_for_real(code *c, uint32_t unit);
