// The extension module `stator._engine`: sets every room up and collects the functions they offer.
#include "src/py/py.h"

#include "src/code/code.h"
#include "src/code/methods.h"

#include "src/interp/setup.h"

#include "src/graph/graph.h"

#include "src/guard/methods.h"

#include "src/world/world.h"

#include "src/call/call.h"
#include "src/call/attempt.h"
#include "src/call/methods.h"

#include "src/trace/trace.h"

#include "src/torch/marks.h"
#include "src/torch/torch.h"

#include "src/compile/compiled.h"
#include "src/compile/module.h"
#include "src/compile/watch.h"

#include "src/hook/hook.h"
#include "src/hook/methods.h"

// One row per room that has something to set up or to offer, in the order of rooms. Each part may
// be missing; the functions return 0, or -1 with an exception.
static const struct room {
    int (*setup)(void);
    int (*add)(PyObject *module); // setup that also puts types or objects into the module
    PyMethodDef *methods;         // ends in an empty row
} rooms[] = {
    {.setup = code_setup, .methods = code_methods},
    {.add = interp_setup, .methods = interp_methods},
    {.add = graph_setup},
    {.methods = guard_methods},
    {.add = world_setup},
    {.setup = call_setup},
    {.methods = call_methods},
    {.methods = mutate_methods},
    {.setup = attempt_setup, .methods = attempt_methods},
    {.setup = trace_setup},
    {.setup = marks_setup, .methods = marks_methods},
    {.methods = logging_methods},
    {.add = torch_setup, .methods = torch_methods},
    {.add = compile_setup, .methods = compile_methods},
    {.add = module_setup, .methods = module_methods},
    {.methods = watch_methods},
    {.setup = hook_setup, .methods = hook_methods},
};

static int room_open(const struct room *room, PyObject *module) {
    if (room->setup && room->setup() < 0)
        return -1;
    if (room->add && room->add(module) < 0)
        return -1;
    return room->methods ? PyModule_AddFunctions(module, room->methods) : 0;
}

// The eval hook and the slot on code objects are shared by all that the process runs; 3.11 has no
// way to say so in the module's definition.
static int refuse_subinterpreter(void) {
    if (PyInterpreterState_Get() == PyInterpreterState_Main())
        return 0;
    PyErr_SetString(PyExc_ImportError, "stator cannot be used in a subinterpreter");
    return -1;
}

static int module_exec(PyObject *module) {
    if (refuse_subinterpreter() < 0)
        return -1;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(rooms); i++)
        if (room_open(&rooms[i], module) < 0)
            return -1;
    return 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#ifdef Py_mod_multiple_interpreters
    // The eval hook and the slot on code objects are shared by all that the process runs.
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stator._engine",
    .m_doc = "Stator's engine; the functions of `stator` stand on it.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__engine(void) {
    return PyModuleDef_Init(&module_def);
}
