// Sets the interpreter up, once: the native helpers, and the types that Python sees.
#include "src/interp/setup.h"

#include "src/py/frame.h"
#include "src/py/natives.h"

#include "src/interp/fault.h"
#include "src/interp/image.h"

int interp_setup(PyObject *module) {
    if (py_setup_natives() < 0 || py_setup_helper(py_native_file) < 0)
        return -1;
    if (fault_setup(module) < 0)
        return -1;
    return image_setup(module);
}
