// Torch: what the world asks of tensors (`tensor_ops`), installed when the Python glue attaches
// torch.
#pragma once

#include "src/world/world.h"

// Adds nothing that needs torch: the engine runs without it.
int torch_setup(PyObject *module);
extern PyMethodDef torch_methods[];

// Around Python code that the traced program did not ask for (torch's own, run for meta): frames go
// to CPython. Set by the hook room; NULL as long as there is no hook.
extern void (*torch_quiet_enter)(void **state);
extern void (*torch_quiet_leave)(void **state);
