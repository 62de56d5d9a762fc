// Marks that people put on the dimensions of tensors (torch._dynamo.mark_dynamic and its kin).
#pragma once

#include "src/world/world.h"

typedef enum dim_mark {
#define DIM_MARK(id, ...) DIM_##id##_MARK,
#include "src/torch/dim_marks.def"
#undef DIM_MARK
    DIM_MARKS,
} dim_mark;

typedef enum dim_effect { DIM_OPEN, DIM_PROMISED, DIM_UNHINTED, DIM_FIXED } dim_effect;

typedef struct dim_marks {
    uint32_t at[DIM_MARKS]; // bit d: dimension d has the mark
    bool any;               // there is one
    bool odd;               // an attribute is no set of small ints: it is taken for a mark that no
                            // other tensor has
    bool address;           // mark_static_address(guard=True)
} dim_marks;

int dims_setup(void);
// Reads the attributes themselves: no Python code runs.
dim_marks dim_marks_read(PyObject *tensor);
// Whether an entry made for a tensor with marks `then` is good for one with marks `now`.
bool dim_marks_fit(const dim_marks *then, const dim_marks *now);
// The dimensions that have a mark with this effect: bits.
uint32_t dim_marks_with(const dim_marks *marks, dim_effect effect);
// "_dynamo_dynamic_indices[0]", or "none": new str.
PyObject *dim_marks_text(const dim_marks *marks);

// The symbol that was made last is promised to stay open, by the mark of a tensor. `range`: None, or
// a tuple of its least and its greatest value, each an int or None; it is guarded. ST_ERROR with an
// exception.
status dim_promise(world *w, PyObject *range);
// See tensor_ops.
status dim_promises(world *w, const char *whose);
