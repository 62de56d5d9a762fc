// State of the process that a C callable's result depends on (states.def): reading it is guarded,
// or breaks.
#pragma once

#include "src/call/rules.h"

// A PURE or STRUCT row is about to run on these arguments, opened: self first, then values of
// keywords. What the row says that it reads is guarded, as far as these arguments make it matter.
status state_read(world *w, const rule *row, const call *c);
// Native code makes a text of this value.
status state_read_text(world *w, PyObject *value);
// Native code formats this value by this spec.
status state_read_spec(world *w, PyObject *value, PyObject *spec);
bool state_is_dated(PyObject *value); // of datetime: any spec may be by the locale

// Whether a row may say these: what only a handler can guard is none of a PURE or STRUCT row.
bool states_allowed(const rule *row);
// From now on C code that warns during a trace breaks.
void states_setup(void);
// The program makes an object of a category of warnings, which is no warning yet.
static inline bool state_makes_warning(const call *c) {
    PyObject *type = PyType_Check(c->callable) ? c->callable : c->given ? c->args[0] : NULL;
    return type && PyType_Check(type) &&
           PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)PyExc_Warning);
}
