// Torch's C types by name: how the door takes their objects, and which of their slots may run
// natively.
#include "src/torch/room.h"

const slots_row types_slots[] = {
#define TYPE(name, protocols, where, manner) {name, protocols, SLOTS_##where},
#include "src/torch/types.def"
#undef TYPE
    {0},
};

type_manner type_manner_of(PyTypeObject *t) {
    static const type_manner manners[] = {
#define TYPE(name, protocols, where, manner) TYPE_##manner,
#include "src/torch/types.def"
#undef TYPE
    };
    if (raw_is_python_class(t) || strncmp(t->tp_name, "torch.", strlen("torch.")) != 0)
        return TYPE_UNKNOWN;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(manners); i++)
        if (strcmp(types_slots[i].name, t->tp_name) == 0)
            return manners[i];
    return TYPE_FIXED;
}
