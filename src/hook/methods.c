// `evaluate`, images and hops as Python functions. Each puts the thread into the mode it needs,
// makes its call, and restores the mode.
#include "src/py/natives.h"
#include "src/py/raised.h"

#include "src/code/code.h"

#include "src/interp/image.h"
#include "src/interp/interp.h"

#include "src/hook/hook.h"
#include "src/hook/methods.h"
#include "src/hook/program.h"
#include "src/hook/scope.h"

// --- what can be evaluated ---

// The Python function that a call starts with; NULL if it starts with native code.
static PyObject *function_of(PyObject *callable) {
    if (PyMethod_Check(callable))
        callable = PyMethod_GET_FUNCTION(callable);
    return PyFunction_Check(callable) ? callable : NULL;
}

// Callables that are C through and through. Whatever else can be called may come to Python code.
static bool is_native(PyObject *callable) {
    if (PyType_Check(callable))
        return !(((PyTypeObject *)callable)->tp_flags & Py_TPFLAGS_HEAPTYPE);
    return PyCFunction_Check(callable) || Py_IS_TYPE(callable, &PyMethodDescr_Type) ||
           Py_IS_TYPE(callable, &PyClassMethodDescr_Type) ||
           Py_IS_TYPE(callable, &PyWrapperDescr_Type) ||
           strcmp(Py_TYPE(callable)->tp_name, "method-wrapper") == 0; // the type is not exported
}

static int check_callable(PyObject *callable, const char *who) {
    if (!PyCallable_Check(callable)) {
        PyErr_Format(PyExc_TypeError, "%s() needs a callable, not '%.200s'", who,
                     Py_TYPE(callable)->tp_name);
        return -1;
    }
    if (is_native(callable)) {
        PyErr_Format(PyExc_TypeError, "%s() needs a function with Python code, and %R has none",
                     who, callable);
        return -1;
    }
    return 0;
}

// *keywords is a dict or None, and NULL for None afterwards.
static int check_keywords(PyObject **keywords) {
    if (*keywords == Py_None)
        *keywords = NULL;
    if (!*keywords || PyDict_Check(*keywords))
        return 0;
    PyErr_Format(PyExc_TypeError, "kwargs must be a dict or None, not '%.200s'",
                 Py_TYPE(*keywords)->tp_name);
    return -1;
}

// --- evaluate ---

static PyObject *evaluate(PyObject *self, PyObject *const *args, Py_ssize_t count,
                          PyObject *keywords) {
    (void)self;
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "evaluate() needs a function as its first argument");
        return NULL;
    }
    if (check_callable(args[0], "evaluate") < 0)
        return NULL;
    scope s;
    scope_enter(&s, HOOK_EVALUATE);
    PyObject *result = PyObject_Vectorcall(args[0], args + 1, (size_t)(count - 1), keywords);
    scope_leave(&s);
    return result;
}

// Calls a function with the hook passing everything on: all below runs as without Stator.
static PyObject *passthrough(PyObject *self, PyObject *const *args, Py_ssize_t count,
                             PyObject *keywords) {
    (void)self;
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "passthrough() needs a callable as its first argument");
        return NULL;
    }
    scope s;
    scope_enter(&s, HOOK_OFF);
    PyObject *result = PyObject_Vectorcall(args[0], args + 1, (size_t)(count - 1), keywords);
    scope_leave(&s);
    return result;
}

// --- hops ---

static PyObject *evaluate_hopping(PyObject *self, PyObject *args, PyObject *keywords) {
    (void)self;
    static char *names[] = {"fn", "args", "kwargs", "seed", "every", "at", NULL};
    PyObject *fn, *fn_args, *fn_keywords = NULL;
    unsigned long long seed = 1;
    long every = 1, at = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!|OKll", names, &fn, &PyTuple_Type,
                                     &fn_args, &fn_keywords, &seed, &every, &at))
        return NULL;
    if (check_callable(fn, "evaluate_hopping") < 0 || check_keywords(&fn_keywords) < 0)
        return NULL;
    if (every < 1 || at < 0) {
        PyErr_SetString(PyExc_ValueError, "every must be 1 or more, at 0 or more");
        return NULL;
    }
    scope s;
    interp_thread *t = scope_enter(&s, HOOK_EVALUATE);
    t->stop = STOP_HOP;
    t->every = at ? 0 : every;
    t->left = at;
    t->random = seed * 0x9E3779B97F4A7C15ull | 1;
    PyObject *result = PyObject_Call(fn, fn_args, fn_keywords);
    scope_leave(&s);
    return result;
}

// --- images ---

// (image, None) if the countdown stopped it, (None, value) if it came to its end.
static PyObject *outcome(interp_thread *t, PyObject *result) {
    image *taken = t->taken;
    t->taken = NULL;
    if (!taken)
        return result ? Py_BuildValue("(ON)", Py_None, result) : NULL;
    t->abandoning = false;
    PyErr_Clear();
    return Py_BuildValue("(NO)", taken, Py_None);
}

static PyObject *take_image(PyObject *self, PyObject *args, PyObject *keywords) {
    (void)self;
    static char *names[] = {"fn", "args", "kwargs", "boundary", NULL};
    PyObject *fn, *fn_args, *fn_keywords = NULL;
    long boundary = 1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!|Ol", names, &fn, &PyTuple_Type, &fn_args,
                                     &fn_keywords, &boundary))
        return NULL;
    if (check_callable(fn, "take_image") < 0 || check_keywords(&fn_keywords) < 0)
        return NULL;
    if (boundary < 1) {
        PyErr_SetString(PyExc_ValueError, "boundaries count from 1");
        return NULL;
    }
    scope s;
    interp_thread *t = scope_enter(&s, HOOK_EVALUATE);
    t->stop = STOP_TAKE;
    t->left = boundary;
    t->lent = (lent_slots){.callee = function_of(fn), .counted = true};
    PyObject *result = PyObject_Call(fn, fn_args, fn_keywords);
    PyObject *pair = outcome(t, result);
    scope_leave(&s);
    return pair;
}

static int check_resume(image *i, PyObject *value, PyObject *exception) {
    for (image *each = i; each; each = each->caller) {
        if (each->spent) {
            PyErr_SetString(PyExc_ValueError, each == i ? "the image was put back already"
                                                        : "a caller's image was put back already");
            return -1;
        }
    }
    if (i->generator) {
        PyErr_SetString(PyExc_TypeError, "the image of a generator is put back as a generator");
        return -1;
    }
    if (value && exception) {
        PyErr_SetString(PyExc_TypeError, "a value or an exception, not both");
        return -1;
    }
    if (exception && !PyExceptionInstance_Check(exception)) {
        PyErr_SetString(PyExc_TypeError, "only an exception instance can be thrown");
        return -1;
    }
    if (i->awaiting == (!value && !exception)) {
        PyErr_SetString(PyExc_ValueError, i->awaiting
                                              ? "the image awaits a value or an exception"
                                              : "the image does not await a value or an exception");
        return -1;
    }
    return 0;
}

static PyObject *resume_image(PyObject *self, PyObject *args, PyObject *keywords) {
    (void)self;
    static char *names[] = {"image", "cpython", "value", "exception", "boundary", NULL};
    PyObject *value = NULL, *exception = NULL;
    image *i;
    int cpython = 0;
    long boundary = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|pOOl", names, &image_type, &i, &cpython,
                                     &value, &exception, &boundary))
        return NULL;
    if (check_resume(i, value, exception) < 0)
        return NULL;
    scope s;
    interp_thread *t = scope_enter(&s, HOOK_EVALUATE);
    t->stop = boundary > 0 ? STOP_TAKE : STOP_NEVER;
    t->left = boundary;
    PyObject *result = image_resume(i, cpython ? ENGINE_CPYTHON : ENGINE_STATOR, value, exception,
                                    boundary > 0 ? &t->left : NULL);
    PyObject *pair = outcome(t, result);
    scope_leave(&s);
    return pair;
}

static PyObject *take_generator(PyObject *self, PyObject *generator) {
    (void)self;
    return (PyObject *)image_of_generator(generator);
}

static PyObject *put_generator(PyObject *self, PyObject *object) {
    (void)self;
    if (!Py_IS_TYPE(object, &image_type))
        return PyErr_Format(PyExc_TypeError, "an image is needed, not %R", object);
    scope s;
    scope_enter(&s, HOOK_EVALUATE);
    PyObject *generator = image_to_generator((image *)object);
    scope_leave(&s);
    return generator;
}

// --- the hook itself ---

static PyObject *skip_code(PyObject *self, PyObject *args) {
    PyObject *object;
    int reach = HOOK_FRAME;
    if (!PyArg_ParseTuple(args, "O|i", &object, &reach))
        return NULL;
    (void)self;
    if (!PyCode_Check(object))
        return PyErr_Format(PyExc_TypeError, "a code object is needed, not %R", object);
    return hook_skip((PyCodeObject *)object, (hook_reach)reach) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *is_installed(PyObject *self, PyObject *none) {
    (void)self;
    (void)none;
    return PyBool_FromLong(hook_installed());
}

static PyObject *hook_cycle(PyObject *self, PyObject *object) {
    (void)self;
    long count = PyLong_AsLong(object);
    if (count == -1 && PyErr_Occurred())
        return NULL;
    for (long n = 0; n < count; n++) {
        hook_scope before;
        hook_enter(&before, HOOK_OFF);
        hook_leave(&before);
    }
    Py_RETURN_NONE;
}

static PyObject *first_function(PyObject *self, PyObject *args) {
    PyObject *callable, *its_args, *its_kwargs;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!O!:first_function", &callable, &PyTuple_Type, &its_args,
                          &PyDict_Type, &its_kwargs))
        return NULL;
    return hook_first_function(callable, its_args, its_kwargs);
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

PyMethodDef hook_methods[] = {
    {"evaluate", FAST(evaluate), METH_FASTCALL | METH_KEYWORDS,
     "evaluate(fn, /, *args, **kwargs)\n--\n\nCall fn in Stator's interpreter, with all that it "
     "calls."},
    {"passthrough", FAST(passthrough), METH_FASTCALL | METH_KEYWORDS,
     "passthrough(fn, /, *args, **kwargs)\n--\n\nCall fn in CPython's own eval, with all it "
     "calls."},
    {"run_program", program_run, METH_VARARGS,
     "Evaluate a module's code in its globals, or a function, as the process's first frame; print "
     "what\n"
     "leaves it, and return the exit status (negative: the signal to die of)."},
    {"evaluate_hopping", FAST(evaluate_hopping), METH_VARARGS | METH_KEYWORDS,
     "Call fn with its frames moved into fresh ones at instruction boundaries."},
    {"take_image", FAST(take_image), METH_VARARGS | METH_KEYWORDS,
     "Call fn up to its n-th boundary: (image, None), or (None, value) if it ended before."},
    {"resume_image", FAST(resume_image), METH_VARARGS | METH_KEYWORDS,
     "Put an image back and go on: as take_image."},
    {"take_generator", take_generator, METH_O,
     "The image of a generator at rest, which is severed."},
    {"put_generator", put_generator, METH_O, "A new generator that stands where the image's did."},
    {"skip_code", skip_code, METH_VARARGS, "Let CPython run frames of this code from now on."},
    {"first_function", first_function, METH_VARARGS,
     "first_function(callable, args, kwargs): the function of the first Python frame that the call "
     "makes,\nwhich does not run; None if there is none."},
    {"hook_installed", is_installed, METH_NOARGS, "Whether the eval hook is on."},
    {"hook_cycle", hook_cycle, METH_O, "Install and remove the hook n times."},
    {NULL, NULL, 0, NULL},
};
