// Torch: what the world asks of tensors (`tensor_ops`), installed when the Python glue attaches
// torch.
#pragma once

#include "src/world/world.h"

// Adds nothing that needs torch: the engine runs without it.
int torch_setup(PyObject *module);
extern PyMethodDef torch_methods[];
