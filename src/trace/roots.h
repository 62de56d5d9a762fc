// The frames that existed before the trace: the first one, in which the trace begins, and those
// below that wait for its value. When the first one has returned, the trace continues in the next.
// The contents of a frame come through the door when the trace comes to the frame.
#pragma once

#include "src/interp/run.h"

#include "src/world/world.h"

// To be called before a frame that goes on is traced: finds the objects that only these frames
// hold.
status roots_look(world *w, int below);
// Makes the frame of a level, runs it, and returns its value. Frames are made outermost first, and
// each calls the next one.
PyObject *root_call(world *w, int level, run_result result);
// How sources call a slot of a frame that is `level` frames below the first one: new str.
PyObject *root_slot_name(PyCodeObject *co, int level, Py_ssize_t i);
// Fills the first frame: its bound arguments, or all its slots and the instruction at which it goes
// on.
status root_begin(world *w, PyThreadState *ts, py_frame *f);
// Fills all slots of a frame that waited. The caller still pushes the value for which it waited.
status root_resume(world *w, run *r);
// Drops the contents of a frame that returns, or that an exception leaves.
void root_leave(run *r);
// Whether a frame that stands at `unit` must end for real, not in a trace.
bool root_ends_for_real(code *c, uint32_t unit);
