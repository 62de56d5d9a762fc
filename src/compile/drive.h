// Frames that go on after a break: each is driven from one boundary to the next, by entries where
// there are some, by one instruction run for real where the trace broke.
#pragma once

#include "src/py/evalhook.h"

#include "src/interp/image.h"

#include "src/compile/compiler.h"
#include "src/compile/compiled.h"

// Under whose settings this thread's frames may be compiled, or NULL.
extern __attribute__((tls_model("initial-exec"))) _Thread_local compiler *drive_compiler;

typedef struct drive_scope {
    compiler *outer;
    hook_scope hook;
} drive_scope;

void drive_setup(void);

// From here on this thread's frames may be compiled. Scopes nest.
void drive_enter(drive_scope *before, compiler *c);
void drive_leave(const drive_scope *before);

// Frames of a call that broke are made and driven to their end: what the outermost returns. Takes
// the reference.
PyObject *drive_images(compiler *c, image *innermost);

// A fresh frame, called with `count` bound arguments: its result, if it was run.
PyObject *drive_call(PyThreadState *ts, py_frame *f, Py_ssize_t count, drive_whose *whose);
