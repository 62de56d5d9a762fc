// Turns instructions that are more than one operation (namespaces, imports, functions, raise, with,
// star calls) into reads through the door and held-back writes.
#include "src/py/frame.h"
#include "src/py/natives.h"
#include "src/py/raised.h"

#include "src/interp/build.h"
#include "src/interp/call.h"
#include "src/interp/errors.h"
#include "src/interp/imports.h"
#include "src/interp/names.h"
#include "src/interp/raise.h"

#include "src/world/number.h"

#include "src/attr/attr.h"

#include "src/call/call.h"
#include "src/call/protocol.h"

#include "src/trace/instructions.h"

#include <signal.h>

// --- namespaces ---

// The namespace a function from outside leads to. What one made inside sees is what its maker saw,
// and that is known by the time it is made.
static names *find_namespace(run *r, PyObject *dict, source_kind kind) {
    world *w = r->world;
    record *function = record_of(w, py_frame_function(r->frame));
    if (function) {
        source *s = guard_source(w->guards, kind, function->source, NULL, 0);
        return s ? names_of_globals(w, s, dict) : NULL;
    }
    record *known = record_of(w, dict);
    if (known)
        return names_of_dict(w, known);
    world_break(w, REASON_FRAME, "a namespace that no function leads to");
    return NULL;
}

static names *globals_of(run *r) {
    if (!r->globals)
        r->globals = find_namespace(r, py_frame_globals(r->frame), SOURCE_GLOBALS);
    return r->globals;
}

static names *builtins_of(run *r) {
    if (!r->builtins)
        r->builtins = find_namespace(r, py_frame_builtins(r->frame), SOURCE_BUILTINS);
    return r->builtins;
}

// NULL without an exception if the frame's globals do not have the name.
static PyObject *find_global(run *r, PyObject *name) {
    PyObject *dict = py_frame_globals(r->frame);
    if (namespace_is_made(r->world, dict))
        return Py_XNewRef(PyDict_GetItemWithError(dict, name));
    names *globals = globals_of(r);
    return globals ? names_get(r->world, globals, name) : NULL;
}

static PyObject *find_builtin(run *r, PyObject *name) {
    PyObject *dict = py_frame_builtins(r->frame);
    if (namespace_is_made(r->world, dict))
        return Py_XNewRef(PyDict_GetItemWithError(dict, name));
    names *builtins = builtins_of(r);
    return builtins ? names_get(r->world, builtins, name) : NULL;
}

PyObject *do_load_global(run *r, PyObject *name) {
    PyObject *value = find_global(r, name);
    if (value || PyErr_Occurred())
        return value;
    value = find_builtin(r, name);
    if (!value && !PyErr_Occurred())
        error_undefined(name);
    return value;
}

int do_store_global(run *r, PyObject *name, PyObject *value) {
    world *w = r->world;
    PyObject *dict = py_frame_globals(r->frame);
    if (namespace_is_made(w, dict)) {
        world_touch(w);
        return value ? PyDict_SetItem(dict, name, value) : delete_name(dict, name);
    }
    names *globals = globals_of(r);
    if (!globals)
        return -1;
    if (!value) {
        PyObject *old = names_get(w, globals, name);
        if (!old) {
            if (!PyErr_Occurred())
                error_undefined(name);
            return -1;
        }
        Py_DECREF(old);
    }
    return names_set(w, globals, name, value) == ST_OK ? 0 : -1;
}

PyObject *do_build_class(run *r) {
    PyObject *value = find_builtin(r, py_name.build_class);
    if (!value && !PyErr_Occurred())
        PyErr_SetString(PyExc_NameError, "__build_class__ not found");
    return value;
}

// --- class bodies ---

// What __build_class__ made for the body, or what the metaclass's __prepare__ gave: a dict of this
// trace.
static bool is_namespace(world *w, PyObject *dict) {
    bool own = dict && PyDict_Check(dict) && !record_of(w, dict);
    if (!own)
        world_break(w, REASON_CODE, "a name of a class body or module");
    return own;
}

// NULL without an exception if the namespace does not have the name.
static PyObject *find_name(world *w, PyObject *dict, PyObject *name) {
    if (!is_namespace(w, dict))
        return NULL;
    if (PyDict_CheckExact(dict))
        return Py_XNewRef(PyDict_GetItemWithError(dict, name));
    PyObject *value = op_getitem(w, dict, name);
    if (!value && !w->stop.broken && PyErr_ExceptionMatches(PyExc_KeyError))
        PyErr_Clear();
    return value;
}

PyObject *do_load_name(run *r, PyObject *dict, PyObject *name) {
    PyObject *value = find_name(r->world, dict, name);
    return value || PyErr_Occurred() ? value : do_load_global(r, name);
}

PyObject *do_load_cell_name(run *r, PyObject *dict, PyObject *cell, int index) {
    PyCodeObject *co = r->code->py;
    PyObject *value = find_name(r->world, dict, PyTuple_GET_ITEM(co->co_localsplusnames, index));
    if (value || PyErr_Occurred())
        return value;
    value = cell_get(r->world, cell);
    if (!value && !PyErr_Occurred())
        error_unbound_cell(co, index);
    return value;
}

int do_store_name(world *w, PyObject *dict, PyObject *name, PyObject *value) {
    if (!is_namespace(w, dict))
        return -1;
    world_touch(w);
    if (PyDict_CheckExact(dict))
        return value ? store_name(dict, name, value) : delete_name(dict, name);
    int failed = op_setitem(w, dict, name, value);
    if (failed < 0 && !value && !w->stop.broken)
        error_undefined(name); // whatever went wrong
    return failed;
}

PyObject *do_load_locals(world *w, PyObject *dict) {
    return is_namespace(w, dict) ? Py_NewRef(dict) : NULL;
}

// SETUP_ANNOTATIONS of a namespace with items of its own.
static int annotate_mapping(world *w, PyObject *dict) {
    PyObject *found = find_name(w, dict, py_name.annotations), *made = NULL;
    int failed = 0;
    if (!found && !PyErr_Occurred())
        failed = (made = PyDict_New()) ? op_setitem(w, dict, py_name.annotations, made) : -1;
    else if (!found)
        failed = -1;
    Py_XDECREF(found);
    Py_XDECREF(made);
    return failed;
}

int do_setup_annotations(world *w, PyObject *dict) {
    if (!is_namespace(w, dict))
        return -1;
    if (!PyDict_CheckExact(dict))
        return annotate_mapping(w, dict);
    world_touch(w);
    return setup_annotations(dict);
}

int do_set_cell(world *w, PyObject *cell, PyObject *value) {
    return cell_set(w, cell, value) == ST_OK ? 0 : -1;
}

// --- imports: done for real; the module is then found in sys.modules ---

// Where a module is in sys.modules: under the name it was asked for, or its own. NULL without an
// exception if under neither.
static source *module_source(world *w, PyObject *name, PyObject *module) {
    PyObject *modules = PyImport_GetModuleDict(), *found;
    if (raw_dict_get(modules, name, &found) != RAW_FOUND || found != module)
        return NULL;
    source *all = guard_source(w->guards, SOURCE_FIXED, NULL, modules, 0);
    return all ? guard_source(w->guards, SOURCE_ITEM, all, name, 0) : NULL;
}

static PyObject *load_module(world *w, PyObject *imported, PyObject *module) {
    source *s = module_source(w, imported, module);
    PyObject *own = !s && PyModule_Check(module) ? PyModule_GetNameObject(module) : NULL;
    if (own)
        s = module_source(w, own, module);
    else if (!s)
        PyErr_Clear();
    Py_XDECREF(own);
    if (!s && !PyErr_Occurred())
        s = guard_source(w->guards, SOURCE_FIXED, NULL, module, 0);
    return s ? door_load(w, s, module) : NULL;
}

// `import a.b` gives `a`, but it is `a.b` that must have been imported.
static status guard_imported(world *w, PyObject *name) {
    PyObject *found;
    if (raw_dict_get(PyImport_GetModuleDict(), name, &found) != RAW_FOUND)
        return ST_OK;
    source *s = module_source(w, name, found);
    return s ? guard_add(w->guards, GUARD_IS, s, NULL, found, 0) : ST_ERROR;
}

// Import looks at the real sys.modules, not at what the program is going to make of it.
static bool modules_written(const world *w) {
    const record *r = record_of(w, PyImport_GetModuleDict());
    return r && r->names && names_written(r->names);
}

static status guard_not_imported(world *w, PyObject *name) {
    PyObject *modules = PyImport_GetModuleDict();
    source *all = guard_source(w->guards, SOURCE_FIXED, NULL, modules, 0);
    return all ? guard_add(w->guards, GUARD_ABSENT, all, NULL, name, 0) : ST_ERROR;
}

// What an import found, or did not, may be another thing in the next call; that it is the same in
// sys.modules is guarded. Where it had to look further, only who may not break takes its word.
static PyObject *fail_import(world *w, PyObject *name, PyObject *found) {
    if (!PyErr_ExceptionMatches(PyExc_ImportError))
        return NULL;
    py_raised aside = py_put_aside();
    status guarded = found == Py_None           ? guard_imported(w, name)
                     : !found && w->terms.whole ? guard_not_imported(w, name)
                                                : ST_BREAK;
    if (guarded == ST_OK)
        return py_put_on(aside), NULL;
    py_forget(aside);
    return guarded == ST_ERROR
               ? NULL
               : world_break(w, REASON_NATIVE_CALL, "import of %U, which fails", name);
}

static PyObject *first_part(PyObject *name) {
    Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1);
    return dot < 0 ? Py_NewRef(name) : PyUnicode_Substring(name, 0, dot);
}

static PyObject *load_imported(world *w, PyObject *name, bool whole, PyObject *module) {
    if (guard_imported(w, name) != ST_OK)
        return NULL;
    PyObject *imported = whole ? Py_NewRef(name) : first_part(name);
    PyObject *loaded = imported ? load_module(w, imported, module) : NULL;
    Py_XDECREF(imported);
    return loaded;
}

static int has_name(world *w, names *n, PyObject *name) {
    PyObject *value = names_get(w, n, name);
    Py_XDECREF(value);
    return value ? 1 : PyErr_Occurred() || w->stop.broken ? -1 : 0;
}

// Whether `from module import …` runs nobody's code: a module is asked for __path__, a package for
// the names, which may be modules that are not there yet. 1, 0, -1.
static int is_quiet_import(world *w, PyObject *name, PyObject *module, PyObject *fromlist) {
    source *s = PyModule_Check(module) ? module_source(w, name, module) : NULL;
    PyObject *known = s ? door_bring(w, s, module) : NULL;
    record *r = known ? record_of(w, known) : NULL;
    names *n = r ? names_of_object(w, r) : NULL;
    if (!n)
        return PyErr_Occurred() ? -1 : 0;
    int package = has_name(w, n, py_name.path);
    if (package == 0 && PyModule_CheckExact(module)) {
        int asks = has_name(w, n, py_name.getattr);
        return asks < 0 ? -1 : !asks;
    }
    for (Py_ssize_t i = 0; package > 0 && i < PyTuple_GET_SIZE(fromlist); i++)
        package = has_name(w, n, PyTuple_GET_ITEM(fromlist, i));
    return package;
}

PyObject *do_import_name(run *r, PyObject *name, PyObject *fromlist, PyObject *level) {
    world *w = r->world;
    py_frame *f = r->frame;
    PyObject *import = find_builtin(r, py_name.import);
    PyObject *opened = import ? door_open(w, import) : NULL;
    bool plain = opened && py_is_plain_import(opened);
    Py_XDECREF(import);
    if (!plain)
        return PyErr_Occurred() ? NULL
                                : world_break(w, REASON_NATIVE_CALL, "a replaced __import__");
    if (modules_written(w))
        return world_break(w, REASON_NATIVE_CALL, "import after a write to sys.modules");
    // A module that is not there yet runs code, which must not miss what the program did before,
    // and must not run twice if the trace is done again.
    PyObject *there = NULL;
    bool absolute = PyLong_CheckExact(level) && PyLong_AsLong(level) == 0;
    bool known = absolute && raw_dict_get(PyImport_GetModuleDict(), name, &there) == RAW_FOUND;
    int quiet =
        known && PyTuple_CheckExact(fromlist) ? is_quiet_import(w, name, there, fromlist) : known;
    if (quiet < 0)
        return NULL;
    if (!quiet && ((absolute && !w->terms.whole) || world_wrote(w)))
        return world_break(w, REASON_NATIVE_CALL, "import of %U, which runs its code", name);
    w->inside.quiet++;
    PyObject *module = import_name(py_frame_globals(f), py_frame_builtins(f), py_frame_locals(f),
                                   name, fromlist, level);
    w->inside.quiet--;
    if (!module)
        return fail_import(w, name, absolute ? there : name);
    PyObject *loaded = absolute ? load_imported(w, name, fromlist != Py_None, module)
                                : load_module(w, name, module);
    Py_DECREF(module);
    return loaded;
}

static PyObject *submodule_name(PyObject *module, PyObject *name) {
    PyObject *package = PyModule_GetNameObject(module);
    PyObject *whole = package ? PyUnicode_FromFormat("%U.%U", package, name) : NULL;
    Py_XDECREF(package);
    return whole;
}

// It is no attribute, and there is no such submodule.
static PyObject *fail_import_from(world *w, PyObject *whole) {
    py_raised aside = py_put_aside();
    if (guard_not_imported(w, whole) == ST_OK)
        py_put_on(aside);
    else
        py_forget(aside);
    return NULL;
}

static PyObject *import_submodule(world *w, PyObject *module, PyObject *name) {
    PyObject *whole = submodule_name(module, name);
    if (!whole)
        return NULL;
    w->inside.quiet++;
    PyObject *value = import_from(module, name);
    w->inside.quiet--;
    PyObject *loaded = value ? load_imported(w, whole, true, value) : fail_import_from(w, whole);
    Py_XDECREF(value);
    Py_DECREF(whole);
    return loaded;
}

// A submodule that is no attribute of its package yet is found in sys.modules.
PyObject *do_import_from(world *w, PyObject *module, PyObject *name) {
    PyObject *value = attr_get(w, module, name);
    if (value || w->stop.broken || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    PyObject *opened = door_open(w, module);
    if (!opened)
        return NULL;
    if (!PyModule_Check(opened))
        return world_break(w, REASON_ATTRIBUTE, "import from an object that is no module");
    if (modules_written(w))
        return world_break(w, REASON_NATIVE_CALL, "import after a write to sys.modules");
    return import_submodule(w, opened, name);
}

// --- functions and calls ---

static int open_slot(world *w, py_slot *slot) {
    PyObject *opened = door_open(w, py_slot_get(slot));
    if (!opened)
        return -1;
    py_slot_set(slot, Py_NewRef(opened));
    return 0;
}

// What a function made here will see is known by the time it is called.
static bool knows_namespaces(run *r) {
    const world *w = r->world;
    return (namespace_is_made(w, py_frame_globals(r->frame)) || globals_of(r)) &&
           (namespace_is_made(w, py_frame_builtins(r->frame)) || builtins_of(r));
}

PyObject *do_make_function(run *r, py_slot *sp, int flags) {
    world *w = r->world;
    for (int i = 1; i <= 1 + __builtin_popcount((unsigned)flags); i++)
        if (open_slot(w, sp - i) < 0)
            return NULL;
    if (!knows_namespaces(r))
        return NULL;
    PyObject *function = call_make_function(py_frame_globals(r->frame), sp, flags);
    if (!function || arena_own(&w->arena, Py_NewRef(function)) != ST_OK ||
        map_put(&w->made.objects, map_key(function), 1) != ST_OK)
        Py_CLEAR(function);
    return function;
}

// Of a frame that goes on, the function is one from outside.
int do_set_function_attribute(world *w, py_slot *sp) {
    PyObject *function = py_slot_get(sp - 1);
    if (is_lazy(function) || record_of(w, function)) {
        world_break(w, REASON_ATTRIBUTE, "a function that is still being made");
        return -1;
    }
    return open_slot(w, sp - 2);
}

int do_prepare_star(world *w, PyObject *callable, py_slot *args, py_slot *keywords) {
    PyObject *tuple = call_star_args(w, callable, py_slot_get(args));
    if (!tuple)
        return -1;
    py_slot_set(args, tuple);
    PyObject *dict = keywords ? call_star_keywords(w, callable, py_slot_get(keywords)) : NULL;
    if (dict)
        py_slot_set(keywords, dict);
    return !keywords || dict ? 0 : -1;
}

PyObject *do_super_attr(world *w, PyObject *super, PyObject *type, PyObject *self, PyObject *name,
                        bool two, PyObject **method) {
    if (method)
        *method = NULL;
    super = door_open(w, super);
    type = super ? door_open(w, type) : NULL;
    self = type ? door_open(w, self) : NULL;
    if (!self)
        return NULL;
    if (super == (PyObject *)&PySuper_Type && PyType_Check(type))
        return attr_super(w, (PyTypeObject *)type, self, name);
    PyObject *args[] = {type, self};
    PyObject *made = call_with(w, super, args, two ? 2 : 0);
    PyObject *value = made ? attr_get(w, made, name) : NULL;
    Py_XDECREF(made);
    return value;
}

// Numbers that are left open stay so: tensors take them, and lists ask for their __index__.
PyObject *do_build_slice(world *w, py_slot *parts, int count) {
    for (int i = 0; i < count; i++) {
        number n;
        int open = door_number(w, py_slot_get(&parts[i]), &n);
        if (open < 0 || (!open && open_slot(w, &parts[i]) < 0))
            return NULL;
    }
    return build_slice(py_slots_objects(parts), count);
}

// --- exceptions ---

// What a class makes, which may be anything: what CPython says to that depends on the version.
static PyObject *exception_by(world *w, PyObject *class) {
    PyObject *made = call_with(w, class, NULL, 0), *opened = made ? door_open(w, made) : NULL;
    if (opened && !PyExceptionInstance_Check(opened))
        world_break(w, REASON_CODE, "an exception class that makes a %s", Py_TYPE(opened)->tp_name);
    if (!opened || w->stop.broken)
        Py_CLEAR(made);
    return made;
}

// A class is called by the trace's own call, so that its Python __init__ is known.
static PyObject *exception_of(world *w, PyObject *raised) {
    PyObject *o = door_open(w, raised);
    if (!o)
        return NULL;
    PyObject *exception = NULL;
    if (PyExceptionClass_Check(o))
        exception = exception_by(w, o);
    else
        exception = Py_NewRef(o);
    if (!exception)
        return NULL;
    if (record_of(w, exception)) {
        // Raising writes its traceback and context.
        Py_DECREF(exception);
        return world_break(w, REASON_EXCEPTION_LIVES, "an exception from outside is raised");
    }
    return exception;
}

// The exception of the innermost handler that is active in this trace; borrowed.
static PyObject *handled_here(PyThreadState *ts) {
    _PyErr_StackItem *info = ts->exc_info;
    while ((!info->exc_value || info->exc_value == Py_None) && info->previous_item)
        info = info->previous_item;
    return info->exc_value;
}

bool do_raise(world *w, PyThreadState *ts, PyObject *exception, PyObject *cause) {
    if (!exception) {
        PyObject *handled = handled_here(ts);
        if (handled && handled != Py_None && record_of(w, handled)) {
            world_break(w, REASON_EXCEPTION_LIVES, "an exception from outside is raised again");
            return false;
        }
        if (handled && handled != Py_None)
            return raise_varargs(ts, NULL, NULL);
        world_break(w, REASON_EXCEPTION_LEAVES, "raise without an exception of its own");
        return false;
    }
    if (world_nobody_handles(w)) {
        world_break_raised(w, exception);
        return false;
    }
    PyObject *raised = exception_of(w, exception), *from = NULL;
    if (raised && cause) {
        PyObject *opened = door_open(w, cause);
        bool class = opened && PyExceptionClass_Check(opened);
        from = class ? exception_by(w, opened) : Py_XNewRef(opened);
    }
    if (raised && (!cause || from))
        raise_varargs(ts, raised, from);
    Py_XDECREF(raised);
    Py_XDECREF(from);
    return false;
}

// Groups are taken apart natively: what is in one from outside would come in unseen.
static bool refuse_group(world *w, PyObject *exception) {
    if (!record_of(w, exception))
        return false;
    world_break(w, REASON_EXCEPTION_LIVES, "an exception from outside meets except*");
    return true;
}

PyObject *do_prep_reraise_star(world *w, PyObject *original, PyObject *raised) {
    if (refuse_group(w, original))
        return NULL;
    PyObject *opened = door_open(w, raised);
    if (!opened)
        return NULL;
    for (Py_ssize_t i = 0; PyList_CheckExact(opened) && i < PyList_GET_SIZE(opened); i++) {
        PyObject *item = door_open(w, PyList_GET_ITEM(opened, i));
        if (!item || refuse_group(w, item))
            return NULL;
    }
    world_touch(w);
    return py_prep_reraise_star(original, opened);
}

int do_except_star_match(world *w, PyObject *exception, PyObject *type, PyObject **match,
                         PyObject **rest) {
    *match = *rest = NULL;
    if (refuse_group(w, exception))
        return -1;
    PyObject *opened = Py_NewRef(type);
    int failed = -1;
    if (protocol_open(w, &opened, P_NONE) == ST_OK &&
        protocol_open_elements(w, &opened, P_NONE) == ST_OK)
        failed = except_star_match(exception, opened, match, rest);
    Py_DECREF(opened);
    if (!w->stop.broken || failed < 0)
        return failed;
    Py_CLEAR(*match);
    Py_CLEAR(*rest);
    return -1;
}

int do_with_lookup(world *w, PyObject *manager, bool async, PyObject **enter, PyObject **leave) {
    *enter = *leave = NULL;
    if (async) {
        world_break(w, REASON_GENERATOR, "async with");
        return -1;
    }
    PyObject *opened = door_open(w, manager);
    if (!opened)
        return -1;
    *enter = attr_special(w, opened, py_name.enter);
    if (*enter)
        *leave = attr_special(w, opened, py_name.exit);
    if (*leave)
        return 0;
    Py_CLEAR(*enter);
    if (!PyErr_Occurred()) // CPython's own words for what is missing
        return with_lookup(opened, false, enter, leave);
    return -1;
}

PyObject *do_with_exit(world *w, PyObject *leave, PyObject *exception) {
    PyObject *traceback = PyException_GetTraceback(exception);
    PyObject *args[] = {(PyObject *)Py_TYPE(exception), exception, traceback ? traceback : Py_None};
    PyObject *result = call_with(w, leave, args, 3);
    Py_XDECREF(traceback);
    return result;
}

// --- generators ---

PyObject *do_yield_from_iter(world *w, PyObject *o) {
    PyObject *opened = door_open(w, o);
    if (!opened)
        return NULL;
    if (PyCoro_CheckExact(opened))
        return world_break(w, REASON_GENERATOR, "a coroutine");
    return PyGen_CheckExact(opened) ? Py_NewRef(opened) : op_iter(w, opened);
}

// A generator that an instruction resumes gives its value to that instruction, not to native code.
PyObject *do_next(world *w, PyObject *iterator) {
    w->expected = expect_generator(iterator);
    PyObject *item = op_next(w, iterator);
    w->expected.of = NULL;
    return item;
}

PySendResult do_send(world *w, PyObject *receiver, PyObject *sent, PyObject **result) {
    w->expected = expect_generator(receiver);
    PySendResult how = op_send(w, receiver, sent, result);
    w->expected.of = NULL;
    return how;
}

// --- signals ---

// A signal's handler is not the program's: it runs in CPython, and what it raises is the user's.
int poll_signals(run *r) {
    world *w = r->world;
    w->inside.quiet++;
    int failed = py_poll(r->ts);
    w->inside.quiet--;
    if (failed < 0)
        w->stop.interrupted = true;
    return failed;
}

static PyObject *getsignal; // strong, for good

int instructions_setup(void) {
    if (!getsignal)
        getsignal = py_import("_signal", "getsignal");
    return getsignal ? 0 : -1;
}

static bool is_handler(int number, PyObject *function) {
    PyObject *handler = PyObject_CallFunction(getsignal, "i", number);
    if (!handler)
        PyErr_Clear();
    PyObject *behind =
        handler && PyMethod_Check(handler) ? PyMethod_GET_FUNCTION(handler) : handler;
    Py_XDECREF(handler); // the module has it
    return behind == function;
}

bool is_signal_handler(const world *w, py_frame *f) {
    PyObject *function = py_frame_function(f);
    if (w->stop.broken || py_frame_in_generator(f) ||
        map_get(&w->made.objects, map_key(function)) || record_of(w, function))
        return false;
    bool handles = false;
    for (int number = 1; !handles && number < NSIG; number++)
        handles = is_handler(number, function);
    return handles;
}
