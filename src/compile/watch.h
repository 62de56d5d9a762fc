// Debuggers, profilers and monitors that watch a thread: its frames are CPython's then, compiled or
// not, so that the tool sees what it would see without Stator.
#pragma once

#include "src/py/frame.h"

#include "src/compile/compiler.h"

// Whether a call of this code is CPython's because of a tool. Says so in the log, once.
bool watch_leaves(compiler *c, PyThreadState *ts, PyCodeObject *co);

// Around a trace: tools that are to be ignored do not see its frames. Gives back whether one is on.
bool watch_suspend(PyThreadState *ts, PyCodeObject *co);
void watch_resume(PyThreadState *ts, bool suspended);

extern PyMethodDef watch_methods[];
