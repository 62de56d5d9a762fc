// A mutant's way of reading a place: what was there the first time. Only in a build with
// STATOR_FAULT.
#pragma once

#include "src/guard/program.h"

#ifdef STATOR_FAULT
status stale_new(guard_program *p);
// What the load `s` gave in the program's first pass; `now` if this is the first, or if that has
// died. Borrowed.
PyObject *stale_load(const guard_program *p, const step *s, PyObject *now);
void stale_free(guard_program *p);
#endif
