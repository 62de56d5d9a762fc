// Operators, items, iteration and the building of containers during a trace. src/ops, a later room,
// defines these functions: handlers use operators to do what a C function would do, and operators
// call special methods by their rules. Operands are borrowed and may be lazies; results are new
// references; NULL or -1 comes with an exception or a break (world.stop.broken is set then).
#pragma once

#include "src/world/world.h"

PyObject *op_unary(world *w, unaryfunc function, PyObject *o);
PyObject *op_binary(world *w, int kind, PyObject *left, PyObject *right);
PyObject *op_compare(world *w, PyObject *left, PyObject *right, int kind);
// The same where one of them is a number that is kept open: an open bool. As number_binary.
int op_compare_numbers(world *w, PyObject *left, PyObject *right, int kind, PyObject **result);
int op_truth(world *w, PyObject *o);
// The same for the condition of an instruction: if the program asserts a tensor, the check becomes
// a node.
int op_condition(world *w, PyObject *o);
// isinstance(o, class): by the class's own __instancecheck__, or by its MRO.
int op_isinstance(world *w, PyObject *o, PyObject *class);
// Whether the innermost frame's instruction belongs to an assertion whose message can be part of a
// node.
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

// --- tuples of C classes that look at their items (tuples.c) ---

// Whether it is one of ints, some of which are kept open: its own C code must not see them.
bool op_is_open_tuple(world *w, PyObject *o);
// Whether it can be joined with one: a tuple of ints.
bool op_takes_open_tuple(world *w, PyObject *o);
// What the function gives that only moves their items. One of both may be no tuple.
PyObject *op_on_tuples(binaryfunc function, PyObject *left, PyObject *right);
