// Calls and operators of a trace. Arguments are borrowed and may be lazies; results are new
// references; NULL or -1 comes with an exception or a break (world.stop.broken is set then).
#pragma once

#include "src/base/upcalls.h"

#include "src/world/world.h"

PyObject *call_any(world *w, const call *c);
// callable(*args), whose value is the engine's own: the instruction does more with it.
static inline PyObject *call_with(world *w, PyObject *callable, PyObject *const *args,
                                  size_t given) {
    return call_any(w, &(call){.callable = callable, .args = args, .given = given});
}
// The same arguments for another callable, whose value is the engine's own.
static inline call call_again(const call *c, PyObject *callable) {
    return (call){
        .callable = callable, .args = c->args, .given = c->given, .keywords = c->keywords};
}
// The same call, with one more argument before all others.
PyObject *call_with_first(world *w, const call *c, PyObject *first);
// callable(*args, **keywords); keywords may be NULL.
PyObject *call_star(world *w, PyObject *callable, PyObject *args, PyObject *keywords,
                    run_result result);
// type.__call__ of the class that is the callable: __new__, then __init__.
PyObject *call_type_call(world *w, const call *c);
// One-time setup of the names and types this room knows. 0, or -1 with an exception.
int call_setup(void);

// A native call with the engine's checks around it: a break in a callback is seen even if native
// code swallowed it, and an exception that a stand-in may have caused is not believed if
// `suspicious`.
PyObject *call_native(world *w, PyObject *callable, PyObject *const *args, size_t given,
                      PyObject *keywords, bool suspicious);

PyObject *op_unary(world *w, unaryfunc function, PyObject *o);
PyObject *op_binary(world *w, int kind, PyObject *left, PyObject *right);
PyObject *op_compare(world *w, PyObject *left, PyObject *right, int kind);
int op_truth(world *w, PyObject *o);
// The same for what an instruction decides by: a tensor that is asserted becomes a node.
int op_condition(world *w, PyObject *o);
// isinstance(o, class): by the class's own __instancecheck__, or by its MRO.
int op_isinstance(world *w, PyObject *o, PyObject *class);
// Whether the innermost frame's instruction is an assertion's, with a message that can be a node's.
bool op_asserts(world *w);
int op_contains(world *w, PyObject *container, PyObject *value);
PyObject *op_getitem(world *w, PyObject *container, PyObject *key);
int op_setitem(world *w, PyObject *container, PyObject *key, PyObject *value); // NULL deletes
PyObject *op_iter(world *w, PyObject *o);
PyObject *op_next(world *w, PyObject *iterator); // NULL without an exception at the end
PySendResult op_send(world *w, PyObject *receiver, PyObject *sent, PyObject **result);
int op_unpack(world *w, PyObject *sequence, int before, int after, py_slot *top);
PyObject *op_format(world *w, PyObject *value, int conversion, PyObject *spec);
PyObject *op_convert(world *w, PyObject *value, int conversion); // !s, !r, !a
int op_list_extend(world *w, PyObject *list, PyObject *iterable);
int op_set_update(world *w, PyObject *set, PyObject *iterable);
int op_set_add(world *w, PyObject *set, PyObject *value);
int op_dict_update(world *w, PyObject *dict, PyObject *update, bool merge);
int op_dict_set(world *w, PyObject *dict, PyObject *key, PyObject *value);
int op_except_match(world *w, PyObject *exception, PyObject *type);
PyObject *op_build_map(world *w, PyObject **keys, int key_step, PyObject **values, int value_step,
                       Py_ssize_t count);
PyObject *op_build_set(world *w, PyObject **items, Py_ssize_t count);
PyObject *op_build_string(world *w, PyObject **items, Py_ssize_t count);
PyObject *op_len(world *w, PyObject *o);
