// Debuggers, profilers and monitors. While one watches a thread, CPython runs the thread's frames,
// compiled or not, so that the tool sees the same as without Stator.
#pragma once

#include "src/py/frame.h"

#include "src/compile/compiler.h"

// Whether CPython must run a call of this code because of a tool. The first such call is logged.
bool watch_leaves(compiler *c, PyThreadState *ts, PyCodeObject *co);

// Around a trace: hides the trace's frames from tools that are to be ignored. watch_suspend returns
// whether there is one.
bool watch_suspend(PyThreadState *ts, PyCodeObject *co);
void watch_resume(PyThreadState *ts, bool suspended);

extern PyMethodDef watch_methods[];
