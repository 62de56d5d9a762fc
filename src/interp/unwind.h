// An exception that leaves an instruction: its traceback entry, and the handler that gets it. Both
// builds of the loop use these functions.
#pragma once

#include "src/py/raised.h"

#include "src/interp/run.h"

// If memory is short, there may be no frame object. The exception then gets no entry for this
// frame.
static void run_note_traceback(run *r) {
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_SystemError, "error return without exception set");
    if (py_frame_incomplete(r->frame))
        return;
    if (py_frame_object(r->frame)) {
        PyTraceBack_Here(py_frame_object(r->frame));
        return;
    }
    py_raised aside = py_put_aside();
    PyFrameObject *object = PyThreadState_GetFrame(r->ts);
    py_put_on(aside);
    if (!object)
        return;
    PyTraceBack_Here(object);
    Py_DECREF(object);
}

static const region *run_find_handler(const code *c, long unit) {
    insn at = {.at = (uint32_t)unit};
    return c->region_count ? code_region(c, &at) : NULL;
}
