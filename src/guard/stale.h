// For mutants of sources: a place is read once, and gives the same object again later. Only in a
// build with STATOR_FAULT.
#pragma once

#include "src/guard/program.h"

#ifdef STATOR_FAULT
status stale_new(guard_program *p);
// The object that the load `s` gave in the program's first pass; `now` in the first pass, or if
// that object has died. Borrowed.
PyObject *stale_load(const guard_program *p, const step *s, PyObject *now);
void stale_free(guard_program *p);
#endif
