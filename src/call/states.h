// State of the process that the result of a C callable depends on (states.def). Reading such a
// state adds a guard, or breaks.
#pragma once

#include "src/call/rules.h"

// To be called before a PURE or STRUCT row runs on these opened arguments (self first, values of
// keywords last). Guards the state that the row reads, as far as it matters for these arguments.
status state_read(world *w, const rule *row, const call *c);
// The same for native code that makes a text of this value.
status state_read_text(world *w, PyObject *value);
// The same for native code that formats this value by this spec.
status state_read_spec(world *w, PyObject *value, PyObject *spec);
bool state_is_dated(PyObject *value); // a value of datetime: any spec may depend on the locale

// Whether a row may name its states. A PURE or STRUCT row may not name a state that only a handler
// can guard.
bool states_allowed(const rule *row);
// Makes C code that warns during a trace break, from now on.
void states_setup(void);
// Whether the call makes an instance of a warning class, which gives no warning yet.
static inline bool state_makes_warning(const call *c) {
    PyObject *type = PyType_Check(c->callable) ? c->callable : c->given ? c->args[0] : NULL;
    return type && PyType_Check(type) &&
           PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)PyExc_Warning);
}
