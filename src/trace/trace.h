// One trace: runs the tracing build of the interpreter from a function's call to its end.
#pragma once

#include "src/py/frame.h"

#include "src/world/world.h"

typedef enum trace_end {
    TRACE_DONE,  // `result` is the value that the function returns, an inside object
    TRACE_BROKE, // the world says why; its image, if it has one, says where the frames go on
    TRACE_ERROR, // a Python exception is set: MemoryError, KeyboardInterrupt, an engine error
} trace_end;

int trace_setup(void);
// Traces a call, whose slots are the bound arguments; or a frame that goes on, with all its slots
// up to the top of its stack. When that frame has returned, the next `below` frames continue in the
// same trace. The slots must live as long as the world. The hook must be installed and must call
// trace_eval. The caller keeps the world, builds the plan from it and frees it.
trace_end trace_function(world *w, guard_frame *f, int below, PyObject **result);

// To be called in a child process: the traces of other threads are gone. Needs a current thread
// state.
void trace_after_fork(void);

// For the hook: runs a frame that came to it while this thread traces.
PyObject *trace_eval(PyThreadState *ts, py_frame *f, int throwing);
