// Where the program was when a node was recorded: a chain of frames, which the nodes of one frame
// share. The tuple that people read is made when somebody asks for it.
#pragma once

#include <Python.h>

int trail_setup(void);
// A frame that `parent` (a trail, or NULL) has called; row: (filename, line, function name). New
// reference, or NULL with an exception.
PyObject *trail_new(PyObject *parent, PyObject *row);
// The rows of a trail as a tuple, outermost first; whatever else it is, as it is. New reference.
PyObject *trail_rows(PyObject *o);
// Adds the files of its rows to a set. -1 with an exception.
int trail_files(PyObject *o, PyObject *set);
