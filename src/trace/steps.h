// What instructions do in a trace beyond the operations of src/call: names, imports, functions
// made, raise, with, star calls, super. Arguments are borrowed, results are new references; NULL or
// -1 comes with an exception or a break.
#pragma once

#include "src/interp/run.h"

#include "src/world/world.h"

PyObject *step_load_global(run *r, PyObject *name);
int step_store_global(run *r, PyObject *name, PyObject *value); // NULL deletes
int step_set_cell(world *w, PyObject *cell, PyObject *value);

// Class statements, and names in their bodies; `dict` is the namespace.
PyObject *step_build_class(run *r);
PyObject *step_load_name(run *r, PyObject *dict, PyObject *name);
PyObject *step_load_cell_name(run *r, PyObject *dict, PyObject *cell, int index);
int step_store_name(world *w, PyObject *dict, PyObject *name, PyObject *value); // NULL deletes
PyObject *step_load_locals(world *w, PyObject *dict);
int step_setup_annotations(world *w, PyObject *dict);

PyObject *step_import_name(run *r, PyObject *name, PyObject *fromlist, PyObject *level);
PyObject *step_import_from(world *w, PyObject *module, PyObject *name);

PyObject *step_make_function(run *r, py_slot *sp, int flags);
int step_set_function_attribute(world *w, py_slot *sp);
int step_prepare_star(world *w, PyObject *callable, py_slot *args, py_slot *keywords);
PyObject *step_super_attr(world *w, PyObject *super, PyObject *type, PyObject *self, PyObject *name,
                          bool two, PyObject **method);
PyObject *step_build_slice(world *w, py_slot *parts, int count);

bool step_raise(world *w, PyThreadState *ts, PyObject *exception, PyObject *cause);
PyObject *step_prep_reraise_star(world *w, PyObject *original, PyObject *raised);
int step_except_star_match(world *w, PyObject *exception, PyObject *type, PyObject **match,
                           PyObject **rest);
int step_with_lookup(world *w, PyObject *manager, bool async, PyObject **enter, PyObject **leave);
PyObject *step_with_exit(world *w, PyObject *leave, PyObject *exception);

PyObject *step_yield_from_iter(world *w, PyObject *o);
PyObject *step_next(world *w, PyObject *iterator);
PySendResult step_send(world *w, PyObject *receiver, PyObject *sent, PyObject **result);

PyObject *step_match_keys(world *w, PyObject *subject, PyObject *keys);
PyObject *step_match_class(world *w, PyObject *subject, PyObject *type, Py_ssize_t positional,
                           PyObject *keywords);

int step_setup(void);
int step_poll(run *r);
// Whether a frame is that of a signal's handler, which native code has called on its own account.
bool step_handles_signal(const world *w, py_frame *f);
