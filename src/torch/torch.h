// Torch: the functions that the world calls for tensors (`tensor_ops`). They are set when the
// Python glue attaches torch.
#pragma once

#include "src/world/world.h"

// Uses nothing of torch: the engine runs without it.
int torch_setup(PyObject *module);
extern PyMethodDef torch_methods[];

// Whether torch.jit traces what this thread runs. Torch must be attached.
bool torch_is_traced(void);
