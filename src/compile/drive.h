// Frames that go on after a break. The driver brings each frame from one boundary to the next: by
// an entry if one fits, and by running one instruction for real where a trace broke.
#pragma once

#include "src/py/evalhook.h"

#include "src/interp/image.h"

#include "src/compile/compiler.h"
#include "src/compile/compiled.h"

// The compiler whose settings apply to this thread's frames; NULL: the frames are not compiled.
extern __attribute__((tls_model("initial-exec"))) _Thread_local compiler *drive_compiler;

typedef struct drive_scope {
    compiler *outer;
    hook_scope hook;
} drive_scope;

void drive_setup(void);

// Between these two calls this thread's frames may be compiled. Scopes nest.
void drive_enter(drive_scope *before, compiler *c);
void drive_leave(const drive_scope *before);

// Makes the frames of a call that broke, drives them to their end, and returns the value of the
// outermost frame. Takes the reference.
PyObject *drive_images(compiler *c, image *innermost);

// Gets a fresh frame with `count` bound arguments. Returns the frame's value, if it ran.
PyObject *drive_call(PyThreadState *ts, py_frame *f, Py_ssize_t count, drive_whose *whose);

// make.c, for Python: the function that an entry is being made for, and its variables; or None.
PyObject *make_frame(PyObject *module, PyObject *none);
