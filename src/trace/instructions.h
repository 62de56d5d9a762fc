// Instructions of a trace that are more than one operation of src/call and src/ops: names, imports,
// making functions, raise, with, star calls, super. Arguments are borrowed, results are new
// references; NULL or -1 comes with an exception or a break.
#pragma once

#include "src/interp/run.h"

#include "src/world/world.h"

PyObject *do_load_global(run *r, PyObject *name);
int do_store_global(run *r, PyObject *name, PyObject *value); // NULL deletes
int do_set_cell(world *w, PyObject *cell, PyObject *value);

// Class statements, and names in their bodies; `dict` is the namespace.
PyObject *do_build_class(run *r);
PyObject *do_load_name(run *r, PyObject *dict, PyObject *name);
PyObject *do_load_cell_name(run *r, PyObject *dict, PyObject *cell, int index);
int do_store_name(world *w, PyObject *dict, PyObject *name, PyObject *value); // NULL deletes
PyObject *do_load_locals(world *w, PyObject *dict);
int do_setup_annotations(world *w, PyObject *dict);

PyObject *do_import_name(run *r, PyObject *name, PyObject *fromlist, PyObject *level);
PyObject *do_import_from(world *w, PyObject *module, PyObject *name);

PyObject *do_make_function(run *r, py_slot *sp, int flags);
int do_set_function_attribute(world *w, py_slot *sp);
int do_prepare_star(world *w, PyObject *callable, py_slot *args, py_slot *keywords);
PyObject *do_super_attr(world *w, PyObject *super, PyObject *type, PyObject *self, PyObject *name,
                        bool two, PyObject **method);
PyObject *do_build_slice(world *w, py_slot *parts, int count);

bool do_raise(world *w, PyThreadState *ts, PyObject *exception, PyObject *cause);
PyObject *do_prep_reraise_star(world *w, PyObject *original, PyObject *raised);
int do_except_star_match(world *w, PyObject *exception, PyObject *type, PyObject **match,
                         PyObject **rest);
int do_with_lookup(world *w, PyObject *manager, bool async, PyObject **enter, PyObject **leave);
PyObject *do_with_exit(world *w, PyObject *leave, PyObject *exception);

PyObject *do_yield_from_iter(world *w, PyObject *o);
PyObject *do_next(world *w, PyObject *iterator);
PySendResult do_send(world *w, PyObject *receiver, PyObject *sent, PyObject **result);

PyObject *do_match_keys(world *w, PyObject *subject, PyObject *keys);
PyObject *do_match_class(world *w, PyObject *subject, PyObject *type, Py_ssize_t positional,
                         PyObject *keywords);

int instructions_setup(void);
int poll_signals(run *r);
// Whether a frame is that of a signal handler, which native code called because a signal came.
bool is_signal_handler(const world *w, py_frame *f);
