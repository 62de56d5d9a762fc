// Runs numpy's own functions on values that are known: numbers, dtypes, and arrays made inside.
//
// Numpy says floating-point errors (an overflow, 0/0, an underflow) in a way that the program can
// set for a thread or a context: by a warning, an exception, a call, or not at all. A call here runs
// with all of them set to raise, and breaks if one does, so that no result depends on the setting.
#include "src/call/numpy.h"

#include "src/py/each.h"
#include "src/py/operators.h"
#include "src/py/process.h"

#include "src/guard/value.h"

#include "src/world/number.h"

#include "src/call/call.h"
#include "src/call/handlers.h"
#include "src/call/native.h"
#include "src/call/special.h"

// What is known of the program's numpy; objects are strong.
static struct known {
    PyObject *errors;  // the context variable that says what is done about errors
    PyObject *raising; // its value where all errors raise
    PyTypeObject *array;
    PyTypeObject *dtype;
    PyTypeObject *generic; // the base of the classes of its numbers
    bool met;
} known;

// --- native calls ---

// A call that runs now: errors raise, CPython runs the frames, warnings break.
typedef struct careful {
    world *w;
    PyObject *token; // strong
} careful;

static bool careful_begin(careful *c, world *w) {
    *c = (careful){w, PyContextVar_Set(known.errors, known.raising)};
    if (!c->token)
        return false;
    w->inside.quiet++;
    w->inside.wary++;
    return true;
}

// Ours to handle: numpy's complaint is the program's only if eager would have made it.
static PyObject *break_for_error(world *w) {
    bool floating = PyErr_ExceptionMatches(PyExc_FloatingPointError);
    bool serious = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) ||
                   PyErr_ExceptionMatches(PyExc_MemoryError);
    if (serious)
        return NULL;
    PyErr_Clear();
    return world_break(w, floating ? REASON_FLOAT_ERROR : REASON_NATIVE_ERROR,
                       "numpy refuses, or may warn");
}

static PyObject *careful_end(careful *c, PyObject *result) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (PyContextVar_Reset(known.errors, c->token) < 0)
        PyErr_Clear(); // another context: none is left here
    Py_DECREF(c->token);
    PyErr_Restore(type, value, traceback);
    c->w->inside.quiet--;
    c->w->inside.wary--;
    if (!result && !c->w->stop.broken)
        return break_for_error(c->w);
    return native_result(c->w, result, false);
}

// --- values that go in ---

static bool is_array(PyObject *o) {
    return known.met && Py_IS_TYPE(o, known.array);
}

static bool is_dtype(PyObject *o) {
    return known.met && PyObject_TypeCheck(o, known.dtype) && value_is_fixed(o);
}

static bool is_number_type(PyObject *o) {
    return PyType_Check(o) && (o == (PyObject *)&PyLong_Type || o == (PyObject *)&PyFloat_Type ||
                               o == (PyObject *)&PyBool_Type || o == (PyObject *)&PyComplex_Type ||
                               value_bits_of((PyTypeObject *)o) || o == (PyObject *)known.array);
}

// np.integer and its like: classes of C code that say what kind a number is.
static bool is_kind(PyObject *o) {
    return PyType_Check(o) && !raw_is_python_class((PyTypeObject *)o) &&
           PyType_IsSubtype((PyTypeObject *)o, known.generic);
}

PyTypeObject *numpy_array_type(void) {
    return known.met ? known.array : NULL;
}

bool numpy_is_dtype(PyObject *o) {
    return is_dtype(o) || (known.met && is_number_type(o) && o != (PyObject *)known.array);
}

// Whether a value is an array or a tensor of the graph's, or holds one: 1, 0, -1.
static int has_traced(world *w, PyObject *o, int depth);

static int any_traced(world *w, PyObject *const *items, Py_ssize_t count, int depth) {
    int found = 0;
    for (Py_ssize_t i = 0; found == 0 && i < count; i++)
        found = has_traced(w, items[i], depth);
    return found;
}

static int has_traced(world *w, PyObject *o, int depth) {
    number n;
    int open = is_lazy(o) ? door_number(w, o, &n) : 0;
    if (open != 0)
        return open < 0 ? -1 : 0;
    if (!(o = door_open(w, o)))
        return -1;
    if (is_standin(o))
        return 1;
    bool holds = (PyTuple_CheckExact(o) || PyList_CheckExact(o)) && depth > 0;
    return holds ? any_traced(w, PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o), depth - 1)
                 : 0;
}

static int is_traced(world *w, const call *c) {
    enum { DEPTH = 10 };
    return world_tensors ? any_traced(w, c->args, (Py_ssize_t)call_count(c), DEPTH) : 0;
}

// A value on its way to numpy; `depth` lists and tuples lie around it.
typedef struct arguing {
    world *w;
    int depth;
} arguing;

static PyObject *argument(void *data, PyObject *o);

// What numpy may see of a value: a new reference, with lists and tuples made again. NULL with a break
// or an exception.
static PyObject *argument(void *data, PyObject *o) {
    const arguing *a = data;
    world *w = a->w;
    arguing within = {w, a->depth + 1};
    if (!(o = door_open(w, o)))
        return NULL;
    if (value_immutable(o) || is_dtype(o) || is_number_type(o) || is_kind(o))
        return Py_NewRef(o);
    if (is_array(o) && !record_of(w, o))
        return Py_NewRef(o);
    bool tuple = PyTuple_Check(o) && !raw_is_python_class(Py_TYPE(o));
    if ((tuple || PyList_CheckExact(o)) && a->depth < 10)
        return py_each(PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o), tuple, argument,
                       &within);
    if (PySlice_Check(o))
        return py_each_of_slice((PySliceObject *)o, argument, &within);
    return world_break(w, REASON_ARRAY, "%s", Py_TYPE(o)->tp_name);
}

// --- values that come out ---

static bool is_made_of_values(PyObject *o) {
    if (value_immutable(o) || is_array(o))
        return true;
    if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o))
        return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
        if (!is_made_of_values(PySequence_Fast_GET_ITEM(o, i)))
            return false;
    return true;
}

static PyObject *give_fixed(world *w, PyObject *o) {
    source *s = guard_source(w->guards, SOURCE_FIXED, NULL, o, 0);
    return s ? Py_XNewRef(door_bring(w, s, o)) : NULL;
}

// No plan makes an array again: one that lives at the end has to be made by the program.
static void note_arrays(world *w, PyObject *o) {
    if (is_array(o))
        native_made(w, o);
    bool holds = PyList_CheckExact(o) || PyTuple_CheckExact(o);
    for (Py_ssize_t i = 0; holds && i < PySequence_Fast_GET_SIZE(o); i++)
        note_arrays(w, PySequence_Fast_GET_ITEM(o, i));
}

// Takes the reference.
static PyObject *result_of(world *w, PyObject *result) {
    if (!result)
        return NULL;
    if (is_made_of_values(result)) {
        note_arrays(w, result);
        return result;
    }
    PyObject *given = is_dtype(result) || is_number_type(result)
                          ? give_fixed(w, result)
                          : world_break(w, REASON_ARRAY, "%s", Py_TYPE(result)->tp_name);
    Py_DECREF(result);
    return given;
}

// --- rows ---

static bool is_out(PyObject *name) {
    return PyUnicode_CompareWithASCIIString(name, "out") == 0;
}

static bool has_out(const call *c) {
    for (Py_ssize_t i = 0; c->keywords && i < PyTuple_GET_SIZE(c->keywords); i++)
        if (is_out(PyTuple_GET_ITEM(c->keywords, i)))
            return true;
    return false;
}

static PyObject *call_careful(world *w, const call *c, PyObject *const *items) {
    careful careful;
    if (!careful_begin(&careful, w))
        return NULL;
    PyObject *result = PyObject_Vectorcall(c->callable, items, c->given, c->keywords);
    return result_of(w, careful_end(&careful, result));
}

static PyObject *handle_function(world *w, const call *c) {
    int traced = is_traced(w, c);
    if (traced)
        return traced < 0 ? NULL : world_tensors->call_array(w, c);
    if (has_out(c))
        return world_break(w, REASON_ARRAY, "%s with out=", c->rule->path);
    size_t count = call_count(c);
    PyObject *all = py_each(c->args, (Py_ssize_t)count, true, argument, &(arguing){w, 0});
    PyObject *result = all ? call_careful(w, c, ((PyTupleObject *)all)->ob_item) : NULL;
    Py_XDECREF(all);
    return result;
}

// Has an answer for arrays of the graph's alone.
static PyObject *handle_traced(world *w, const call *c) {
    int traced = is_traced(w, c);
    if (traced)
        return traced < 0 ? NULL : world_tensors->call_array(w, c);
    return world_break(w, REASON_ARRAY, "%s", c->rule->path);
}

// A ufunc takes its outputs by position, too, behind its inputs (nin).
static PyObject *handle_ufunc(world *w, const call *c) {
    int traced = is_traced(w, c);
    if (traced)
        return traced < 0 ? NULL : world_tensors->call_array(w, c);
    PyObject *inputs = PyObject_GetAttrString(c->callable, "nin");
    size_t most = inputs ? PyLong_AsSize_t(inputs) : 0;
    Py_XDECREF(inputs);
    if (PyErr_Occurred())
        return NULL;
    if (c->given > most)
        return world_break(w, REASON_ARRAY, "%s with an output", c->rule->path);
    return handle_function(w, c);
}

static PyObject *handle_field(world *w, const call *c) {
    PyObject *o = argument(&(arguing){w, 0}, c->args[0]);
    careful careful;
    if (!o || !careful_begin(&careful, w)) {
        Py_XDECREF(o);
        return NULL;
    }
    PyObject *value = Py_TYPE(c->callable)->tp_descr_get(c->callable, o, (PyObject *)Py_TYPE(o));
    Py_DECREF(o);
    return result_of(w, careful_end(&careful, value));
}

// round() of a number of numpy's: its __round__ may warn.
static bool applies_to_number(world *w, const call *c) {
    PyObject *first = c->given ? c->args[0] : Py_None;
    if (is_lazy(first) && !value_bits_of(Py_TYPE(((lazy *)first)->outside)))
        return false; // the other row opens it
    return value_bits_of(Py_TYPE(first)) || (is_lazy(first) && door_open(w, first));
}

// --- operators ---

bool numpy_is_operand(PyObject *o) {
    return value_bits_of(Py_TYPE(o)) || is_array(o);
}

PyObject *numpy_plain_number(PyObject *o) {
    const value_bits *bits = value_bits_of(Py_TYPE(o));
    if (!bits || bits->kind == 'b' || bits->kind == 'c')
        return NULL;
    return bits->kind == 'f' ? PyNumber_Float(o) : PyNumber_Index(o);
}

static bool is_plain_number(PyObject *o) {
    return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) ||
           PyComplex_CheckExact(o);
}

// What the operator of a number or an array may meet: a list would become an array, None or a text
// another dtype.
static status check_operand(world *w, PyObject *o) {
    if (is_plain_number(o) || value_bits_of(Py_TYPE(o)) || (is_array(o) && !record_of(w, o)))
        return ST_OK;
    return world_break_status(w, REASON_ARRAY, "an operator of numpy's and a %s",
                              Py_TYPE(o)->tp_name);
}

PyObject *numpy_unary(world *w, unaryfunc function, PyObject *o) {
    careful careful;
    if (check_operand(w, o) != ST_OK || !careful_begin(&careful, w))
        return NULL;
    return result_of(w, careful_end(&careful, function(o)));
}

PyObject *numpy_binary(world *w, int kind, PyObject *left, PyObject *right) {
    careful careful;
    if (check_operand(w, left) != ST_OK || check_operand(w, right) != ST_OK)
        return NULL;
    if (kind >= PY_INPLACE_ADD && is_array(left))
        return world_break(w, REASON_ARRAY, "an operator that writes to an array");
    if (!careful_begin(&careful, w))
        return NULL;
    return result_of(w, careful_end(&careful, py_binary_functions[kind](left, right)));
}

bool numpy_compares(PyObject *o) {
    return numpy_is_operand(o) || is_dtype(o);
}

// A dtype takes what it is compared with for another dtype.
static status check_compared(world *w, PyObject *o, PyObject *other) {
    if (!is_dtype(other) && !is_dtype(o))
        return check_operand(w, o);
    if (is_dtype(o) || is_number_type(o) || PyUnicode_CheckExact(o))
        return ST_OK;
    return world_break_status(w, REASON_ARRAY, "a dtype and a %s", Py_TYPE(o)->tp_name);
}

PyObject *numpy_compare(world *w, int kind, PyObject *left, PyObject *right) {
    careful careful;
    if (check_compared(w, left, right) != ST_OK || check_compared(w, right, left) != ST_OK ||
        !careful_begin(&careful, w))
        return NULL;
    return result_of(w, careful_end(&careful, PyObject_RichCompare(left, right, kind)));
}

PyObject *numpy_getitem(world *w, PyObject *array, PyObject *key) {
    arguing a = {w, 0};
    PyObject *of = argument(&a, array), *at = of ? argument(&a, key) : NULL, *result = NULL;
    careful careful;
    if (at && careful_begin(&careful, w))
        result = result_of(w, careful_end(&careful, PyObject_GetItem(of, at)));
    Py_XDECREF(of);
    Py_XDECREF(at);
    return result;
}

// --- the table ---

static PyObject *member(PyObject *owner, const char *name) { // borrowed
    PyObject *dict =
        PyType_Check(owner) ? raw_type_dict((PyTypeObject *)owner) : PyModule_GetDict(owner);
    return PyDict_GetItemString(dict, name);
}

static status add_row(PyObject *callable, const char *type, const char *name,
                      rule_handler handler) {
    rule *row = PyMem_Calloc(1, sizeof(rule));
    char *path = PyMem_Malloc(strlen(type) + strlen(name) + 8);
    if (!row || !path) {
        PyMem_Free(row);
        PyMem_Free(path);
        PyErr_NoMemory();
        return ST_ERROR;
    }
    sprintf(path, "numpy.%s%s", type, name);
    bool method = Py_IS_TYPE(callable, &PyMethodDescr_Type);
    *row = (rule){.path = path,
                  .kind = RULE_HANDLED,
                  .handler = handler,
                  .takes = ANY,
                  .writes = W_NONE,
                  .weak = true,
                  .object = Py_NewRef(callable),
                  .owner = method || Py_IS_TYPE(callable, &PyWrapperDescr_Type)
                               ? PyDescr_TYPE(callable)
                               : NULL};
    if (method)
        TRY(rules_add_definition(((PyMethodDescrObject *)callable)->d_method, row));
    return rules_add(callable, row);
}

// Which names of an owner get a row, and whose handler; `type` is "" or "generic.".
static status add_rows(PyObject *owner, const char *type, const char *names, rule_handler handler) {
    PyObject *text = PyUnicode_FromString(names);
    PyObject *list = text ? PyUnicode_Split(text, NULL, -1) : NULL;
    status end = list ? ST_OK : ST_ERROR;
    for (Py_ssize_t i = 0; end == ST_OK && i < PyList_GET_SIZE(list); i++) {
        const char *name = PyUnicode_AsUTF8(PyList_GET_ITEM(list, i));
        PyObject *callable = name ? member(owner, name) : NULL;
        if (!callable)
            continue;
        end = add_row(callable, type, name, handler);
        bool plain =
            PyType_Check(callable) || PyCFunction_Check(callable) || PyFunction_Check(callable);
        if (end == ST_OK && !plain)
            end = value_fix(callable);
    }
    Py_XDECREF(text);
    Py_XDECREF(list);
    return end;
}

// Whether the bits of a number lie where value.c looks for them.
static bool lies_plainly(PyTypeObject *type, size_t size) {
    PyObject *one = PyObject_CallFunction((PyObject *)type, "i", 1);
    Py_buffer view;
    bool plain = false;
    if (one && PyObject_GetBuffer(one, &view, PyBUF_SIMPLE) == 0) {
        plain = (size_t)view.len == size && (size_t)type->tp_basicsize >= sizeof(PyObject) + size &&
                memcmp(view.buf, (char *)one + sizeof(PyObject), size) == 0;
        PyBuffer_Release(&view);
    }
    Py_XDECREF(one);
    PyErr_Clear();
    return plain;
}

// Which slots of numbers native code may use by itself. Their text depends on how the program has set
// numpy to print, and their operators may warn.
enum { NUMBER_SLOTS = P_HASH | P_EQ | P_ORDER | P_TRUTH | P_INDEX };

// A type of numbers, and its dtype, of which there is one.
static status add_number(PyObject *module, const char *name, size_t size, char kind,
                         slots_row *slots) {
    PyObject *type = member(module, name);
    if (!type || !PyType_Check(type) || raw_is_python_class((PyTypeObject *)type) ||
        value_bits_of((PyTypeObject *)type) || !lies_plainly((PyTypeObject *)type, size))
        return ST_OK;
    PyObject *dtype = PyObject_CallOneArg((PyObject *)known.dtype, type);
    status end = dtype ? value_fix(dtype) : ST_ERROR;
    Py_XDECREF(dtype);
    TRY(end);
    value_add_bits(&(value_bits){(PyTypeObject *)Py_NewRef(type), size, kind});
    *slots = (slots_row){((PyTypeObject *)type)->tp_name, NUMBER_SLOTS, SLOTS_VALUE};
    return add_row(type, "", name, handle_function);
}

static status add_numbers(PyObject *module) {
    static const struct {
        const char *name;
        size_t size;
        char kind;
    } numbers[] = {
#define NUMBER(name, size, kind) {#name, size, kind},
#include "src/call/numpy.def"
    };
    static_assert(Py_ARRAY_LENGTH(numbers) <= VALUE_BITS_MOST, "value.c has room for them");
    static slots_row slots[Py_ARRAY_LENGTH(numbers) + 2];
    size_t count = 0;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(numbers); i++) {
        TRY(add_number(module, numbers[i].name, numbers[i].size, numbers[i].kind, &slots[count]));
        count += slots[count].name != NULL;
    }
    slots[count] = (slots_row){known.array->tp_name, P_LEN | P_ITER, SLOTS_INSIDE};
    special_add_slots(slots);
    return ST_OK;
}

// The module itself, or a type or a module in it, which numpy imports at its first use. New reference,
// or NULL.
static PyObject *owner_of(PyObject *module, const char *name) {
    if (!name || !*name)
        return Py_NewRef(module);
    PyObject *owner = PyObject_GetAttrString(module, name);
    PyErr_Clear();
    return owner;
}

static status add_callables(PyObject *module) {
    static const struct {
        const char *type, *prefix, *names;
        rule_handler handler;
    } lines[] = {
#define UFUNCS(names) {NULL, "", names, handle_ufunc},
#define FUNCTIONS(names) {NULL, "", names, handle_function},
#define TRACED(owner, names) {#owner, "", names, handle_traced},
#define METHODS(type, names) {#type, #type ".", names, handle_function},
#define FIELDS(type, names) {#type, #type ".", names, handle_field},
#include "src/call/numpy.def"
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(lines); i++) {
        PyObject *owner = owner_of(module, lines[i].type);
        if (owner)
            TRY(add_rows(owner, lines[i].prefix, lines[i].names, lines[i].handler));
        Py_XDECREF(owner);
    }
    return ST_OK;
}

static status add_round(void) {
    static rule row;
    PyObject *round = py_import("builtins", "round");
    if (!round)
        return ST_ERROR;
    row = (rule){.path = "round",
                 .kind = RULE_HANDLED,
                 .handler = handle_function,
                 .takes = NAMED(1, 2),
                 .writes = W_NONE,
                 .applies = applies_to_number,
                 .otherwise = rule_of(round),
                 .object = round};
    return rules_add(round, &row);
}

// --- meeting numpy ---

// Errors are a context variable since numpy 2.
static status learn(PyObject *module) {
    PyObject *array = member(module, "ndarray"), *dtype = member(module, "dtype");
    PyObject *generic = member(module, "generic");
    PyObject *umath = PyImport_ImportModule("numpy._core.umath");
    PyObject *errors = umath ? PyObject_GetAttrString(umath, "_extobj_contextvar") : NULL;
    PyObject *make = errors ? PyObject_GetAttrString(umath, "_make_extobj") : NULL;
    PyObject *names = Py_BuildValue("{s:s}", "all", "raise"), *none = PyTuple_New(0);
    PyObject *raising = make && names && none ? PyObject_Call(make, none, names) : NULL;
    bool fits = raising && PyContextVar_CheckExact(errors) && array && PyType_Check(array) &&
                dtype && PyType_Check(dtype) && generic && PyType_Check(generic);
    if (fits)
        known = (struct known){.errors = Py_NewRef(errors),
                               .raising = Py_NewRef(raising),
                               .array = (PyTypeObject *)Py_NewRef(array),
                               .dtype = (PyTypeObject *)Py_NewRef(dtype),
                               .generic = (PyTypeObject *)Py_NewRef(generic)};
    Py_XDECREF(umath);
    Py_XDECREF(errors);
    Py_XDECREF(make);
    Py_XDECREF(names);
    Py_XDECREF(none);
    Py_XDECREF(raising);
    PyErr_Clear(); // a numpy that is not known has no rows
    return fits ? ST_OK : ST_BREAK;
}

// Numpy's C code warns by these.
static status watch_warnings(void) {
    PyObject *module = PyImport_ImportModule("numpy.exceptions"), *name, *value;
    Py_ssize_t at = 0;
    while (module && PyDict_Next(PyModule_GetDict(module), &at, &name, &value))
        if (PyType_Check(value) &&
            PyType_IsSubtype((PyTypeObject *)value, (PyTypeObject *)PyExc_Warning))
            py_watch_category((PyTypeObject *)value);
    Py_XDECREF(module);
    return module ? ST_OK : ST_ERROR;
}

static bool is_importing(PyObject *module) {
    PyObject *spec = member(module, "__spec__");
    PyObject *now = spec ? PyObject_GetAttrString(spec, "_initializing") : NULL;
    bool importing = now && PyObject_IsTrue(now);
    Py_XDECREF(now);
    PyErr_Clear();
    return importing;
}

static status attach(PyObject *module) {
    if (learn(module) != ST_OK)
        return ST_OK;
    TRY(watch_warnings());
    TRY(add_numbers(module));
    TRY(add_callables(module));
    TRY(add_round());
    known.met = true;
    return ST_OK;
}

status numpy_meet(void) {
    static bool tried;
    if (tried)
        return ST_OK;
    PyObject *name = PyUnicode_InternFromString("numpy");
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    Py_XDECREF(name);
    if (!module || !PyModule_Check(module) || is_importing(module)) {
        Py_XDECREF(module);
        return PyErr_Occurred() ? ST_ERROR : ST_OK;
    }
    tried = true;
    status end = attach(module);
    Py_DECREF(module);
    return end;
}
