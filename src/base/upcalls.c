// The pointers themselves. Each is NULL until the later room is set up.
#include "src/base/upcalls.h"

PyObject *(*image_drive)(PyThreadState *ts, struct _PyInterpreterFrame *f, struct resume_request *q,
                         const struct image_place *at);
PyObject *(*source_read_tensor)(PyObject *tensor, PyObject *name);
bool (*source_read_sizes)(PyObject *tensor, int64_t *dims, const int64_t **sizes,
                          const int64_t **strides);
PyObject *(*source_read_array)(PyObject *array);
PyObject *source_stack;
PyObject *(*call_function)(struct world *w, const struct call *c);
const struct rule *(*call_mark_rule)(struct world *w, const struct call *c, const struct rule *row);
PyTypeObject *call_compiled_type;
PyObject *(*call_compiled_function)(PyObject *compiled);
bool (*call_compiled_strict)(PyObject *compiled);
