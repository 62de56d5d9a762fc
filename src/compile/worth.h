// Which frames are worth compiling that the user did not name: callees of frames that CPython runs.
#pragma once

#include "src/py/frame.h"

// The frame's code is not a library's, and names torch, or a local of the frame holds a tensor or a
// torch.nn.Module, or a list, tuple or dict that holds one.
bool worth_compiling(py_frame *f);
// set_library(folders): the folders of libraries, a tuple of str. METH_O.
PyObject *worth_set_library(PyObject *module, PyObject *folders);
