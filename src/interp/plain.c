// The plain build of the interpreter: every operation is CPython's own, and nothing is recorded. It
// turns a frame into its result, or into a frame at rest where the countdown ends.
#include "src/py/evalhook.h"
#include "src/py/frame.h"
#include "src/py/natives.h"
#include "src/py/operators.h"
#include "src/py/raised.h"

#include "src/interp/build.h"
#include "src/interp/call.h"
#include "src/interp/errors.h"
#include "src/interp/fault.h"
#include "src/interp/image.h"
#include "src/interp/imports.h"
#include "src/interp/interp.h"
#include "src/interp/match.h"
#include "src/interp/names.h"
#include "src/interp/raise.h"
#include "src/interp/run.h"
#include "src/interp/unpack.h"
#include "src/interp/unwind.h"

_Thread_local interp_thread interp_here;

// --- operations ---

static int list_extend(PyObject *list, PyObject *iterable) {
    PyObject *none = _PyList_Extend((PyListObject *)list, iterable);
    Py_XDECREF(none);
    return none ? 0 : -1;
}

static int truth_of(PyObject *o) {
    if (o == Py_True)
        return 1;
    if (o == Py_False || o == Py_None)
        return 0;
    return PyObject_IsTrue(o);
}

// Numbers and strings compare without PyObject_RichCompare, whose check of the recursion limit
// CPython's specialised instructions do not make either.
static PyObject *compare(PyObject *left, PyObject *right, int kind) {
    PyTypeObject *type = Py_TYPE(left);
    if (type == Py_TYPE(right) &&
        (type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type))
        return type->tp_richcompare(left, right, kind);
    return PyObject_RichCompare(left, right, kind);
}

// Built-in functions that take an array are called directly, as CPython's specialised calls do: the
// general call would count a level of recursion.
static PyObject *call(PyThreadState *ts, PyObject *callable, PyObject *const *args, size_t given,
                      PyObject *keywords) {
    if (!PyCFunction_CheckExact(callable))
        return PyObject_Vectorcall(callable, args, given, keywords);
    PyObject *self = PyCFunction_GET_SELF(callable), *result;
    PyCFunction function = PyCFunction_GET_FUNCTION(callable);
    Py_ssize_t count = PyVectorcall_NARGS(given);
    int flags = PyCFunction_GET_FLAGS(callable);
    if (flags == METH_FASTCALL && !keywords)
        result = ((_PyCFunctionFast)(void (*)(void))function)(self, args, count);
    else if (flags == (METH_FASTCALL | METH_KEYWORDS))
        result =
            ((_PyCFunctionFastWithKeywords)(void (*)(void))function)(self, args, count, keywords);
    else
        return PyObject_Vectorcall(callable, args, given, keywords);
    return _Py_CheckFunctionResult(ts, callable, result, NULL);
}

static int set_cell(PyObject *cell, PyObject *value) {
    PyObject *old = PyCell_GET(cell);
    PyCell_SET(cell, Py_XNewRef(value));
    Py_XDECREF(old);
    return 0;
}

static PyObject *length_of(PyObject *o) {
    Py_ssize_t length = PyObject_Length(o);
    return length < 0 ? NULL : PyLong_FromSsize_t(length);
}

static int get_method(PyObject *o, PyObject *name, PyObject **value) {
    return _PyObject_GetMethod(o, name, value);
}

#define DO_CALL(callable, args, given, keywords)                                                   \
    FAULTY(call(ts, callable, args, given, keywords), NULL)
#define DO_CALL_STAR(callable, args, keywords) FAULTY(PyObject_Call(callable, args, keywords), NULL)
#define DO_GETATTR(o, name) FAULTY(PyObject_GetAttr(o, name), NULL)
#define DO_GETMETHOD(o, name, value) FAULTY(get_method(o, name, value), 0)
#define DO_SETATTR(o, name, value) FAULTY(PyObject_SetAttr(o, name, value), -1)
#define DO_SUPER_ATTR(super, type, self, name, two, method)                                        \
    FAULTY(py_super_attr(super, type, self, name, two, method), NULL)
#define DO_UNARY(function, o) FAULTY(function(o), NULL)
#define DO_BINARY(kind, left, right) FAULTY(py_binary_functions[kind](left, right), NULL)
#define DO_COMPARE(left, right, kind) FAULTY(compare(left, right, kind), NULL)
#define DO_TRUTH(o) FAULTY(truth_of(o), -1)
#define DO_IS(left, right) ((left) == (right))
#define DO_CONTAINS(container, value) FAULTY(PySequence_Contains(container, value), -1)
#define DO_GETITEM(container, key) FAULTY(PyObject_GetItem(container, key), NULL)
#define DO_SETITEM(container, key, value) FAULTY(PyObject_SetItem(container, key, value), -1)
#define DO_LIST_APPEND(list, value) PyList_Append(list, value)
#define DO_LIST_TO_TUPLE(list) PyList_AsTuple(list)
#define DO_SETITEM_DICT(dict, key, value) FAULTY(PyDict_SetItem(dict, key, value), -1)
#define DO_DELITEM(container, key) FAULTY(PyObject_DelItem(container, key), -1)
#define DO_SET_ADD(set, value) FAULTY(PySet_Add(set, value), -1)
#define DO_SET_UPDATE(set, iterable) FAULTY(_PySet_Update(set, iterable), -1)
#define DO_LIST_EXTEND(list, iterable) FAULTY(list_extend(list, iterable), -1)
#define DO_DICT_UPDATE(dict, update) FAULTY(PyDict_Update(dict, update), -1)
#define DO_DICT_MERGE(dict, update) FAULTY(_PyDict_MergeEx(dict, update, 2), -1)
#define DO_UNPACK(sequence, before, after, top)                                                    \
    FAULTY(unpack_sequence(sequence, before, after, top), -1)
#define DO_FORMAT(value, conversion, spec) FAULTY(format_value(value, conversion, spec), NULL)
#define DO_ITER(o) FAULTY(PyObject_GetIter(o), NULL)
#define DO_ITERNEXT(iterator) FAULTY(Py_TYPE(iterator)->tp_iternext(iterator), NULL)
#define DO_SEND(receiver, sent, result) FAULTY(PyIter_Send(receiver, sent, result), PYGEN_ERROR)
#define DO_LOAD_GLOBAL(globals, builtins, name) FAULTY(load_global(globals, builtins, name), NULL)
#define DO_STORE_GLOBAL(globals, name, value) FAULTY(PyDict_SetItem(globals, name, value), -1)
#define DO_LOAD_NAME(locals, globals, builtins, name)                                              \
    FAULTY(load_name(locals, globals, builtins, name), NULL)
#define DO_STORE_NAME(locals, name, value) FAULTY(store_name(locals, name, value), -1)
#define DO_COMPARE_TRUTH(left, right, kind) DO_COMPARE(left, right, kind)
#define DO_EXCEPT_MATCH(exception, type) FAULTY(except_match(exception, type), -1)
#define DO_WITH_EXIT(leave, exception) FAULTY(with_exit(leave, exception), NULL)
#define DO_CELL_GET(cell) Py_XNewRef(PyCell_GET(cell))
#define DO_CELL_SET(cell, value) set_cell(cell, value)
#define DO_STORED(index, value) ((void)0)
#define DO_DROPPED(value) ((void)0)
#define DO_BUILD_SET(items, count) build_set(items, count)
#define DO_BUILD_MAP(keys, key_step, values, value_step, count)                                    \
    build_map(keys, key_step, values, value_step, count)
#define DO_BUILD_SLICE(parts, count) build_slice(py_slots_objects(parts), count)
#define DO_BUILD_STRING(parts, count) build_string(parts, count)
#define DO_CONVERT(value, conversion) convert_value(value, conversion)
#define DO_LENGTH(o) length_of(o)
#define DO_TYPE(o) Py_TYPE(o)
#define DO_MATCH_KEYS(subject, keys) match_keys(subject, keys)
#define DO_MATCH_CLASS(subject, type, positional, names)                                           \
    match_class(subject, type, positional, names)
#define DO_PREPARE_STAR(callable, args, keywords) call_prepare_star(callable, args, keywords)
#define DO_SET_FUNCTION_ATTRIBUTE(sp) 0
#define DO_MAKE_FUNCTION(globals, sp, flags) call_make_function(globals, sp, flags)
#define DO_BUILD_CLASS(builtins) load_build_class(builtins)
#define DO_PRINT_EXPR(value) print_expr(value)
#define DO_INTRINSIC_1(number, value) py_intrinsic_1(ts, number, value)
#define DO_INTRINSIC_2(number, first, second) py_intrinsic_2(ts, number, first, second)
#define DO_EXCEPT_STAR_MATCH(exception, type, match, rest)                                         \
    except_star_match(exception, type, match, rest)
#define DO_CAUGHT(exception) ((void)0)
#define DO_RETURN() 0
#define DO_PREP_RERAISE_STAR(original, raised) py_prep_reraise_star(original, raised)
#define DO_RERAISE(exception, lasti) ((void)(lasti), 0)
#define DO_RAISE(exception, cause) raise_varargs(ts, exception, cause)
#define DO_LOAD_DICT_OR_CELL(dict, cell, code, index) load_dict_or_cell(dict, cell, code, index)
#define DO_DELETE_NAME(locals, name) delete_name(locals, name)
#define DO_DELETE_GLOBAL(globals, name) delete_global(globals, name)
#define DO_LOAD_LOCALS(locals) load_locals(locals)
#define DO_LOAD_DICT_OR_GLOBAL(dict, globals, builtins, name)                                      \
    load_dict_or_global(dict, globals, builtins, name)
#define DO_SETUP_ANNOTATIONS(locals) setup_annotations(locals)
#define DO_IMPORT_NAME(globals, builtins, locals, name, fromlist, level)                           \
    import_name(globals, builtins, locals, name, fromlist, level)
#define DO_IMPORT_FROM(module, name) import_from(module, name)
#define DO_IMPORT_STAR(module, locals) import_star(module, locals)
#define DO_YIELD_FROM_ITER(o, flags) get_yield_from_iter(o, flags)
#define DO_AWAITABLE(o, how) py_get_awaitable(o, how)
#define DO_AITER(o) get_aiter(o)
#define DO_ANEXT(o) get_anext(o)
#define DO_WITH_LOOKUP(manager, async, enter, leave) with_lookup(manager, async, enter, leave)
#define DO_POLL() py_poll(ts)
#define LOOP_ABANDONED(r) ((r)->thread->abandoning && image_is_abandoning())

// Arguments of a Python function are lent: run.h says what for.
#define LEND(function, first, number)                                                              \
    do {                                                                                           \
        if (LIKELY(PyFunction_Check(function))) {                                                  \
            r->thread->lent.callee = (function);                                                   \
            r->thread->lent.slots = (first);                                                       \
            r->thread->lent.count = (number);                                                      \
            r->thread->lent.counted = r->countdown != NULL;                                        \
            if (PY_CALL_STANDS_ON_CACHE)                                                           \
                py_frame_set_executing(frame, units + insn_start(pc + 1) - 1);                     \
        }                                                                                          \
    } while (0)
#define UNLEND() (r->thread->lent.callee = NULL)

// --- the loop ---

#define LOOP_LENDS 1
#define LOOP_TICK() ((void)0)
#define LOOP_STOP_LABEL
#define LOOP_NAME plain_loop
#include "src/interp/loop.h"

// --- frames ---

#define MAKES_GENERATOR (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)

bool interp_can_run(PyThreadState *ts, py_frame *f) {
    PyCodeObject *co = py_frame_code(f);
    if ((co->co_flags & MAKES_GENERATOR) && !py_frame_in_generator(f))
        return false;
    return !py_tools_on(ts, co);
}

PyObject *interp_hand_over(run *r) {
    py_leave_handed_over(r->ts, r->frame, &r->entry);
    if (py_tools_on(r->ts, r->code->py))
        return hook_pass_on_watched(r->ts, r->frame, 0);
    return py_eval_default(r->ts, r->frame, 0, true);
}

// It may have stood anywhere: CPython's own frames end with nothing on their stack.
PyObject *interp_end_frame(run *r) {
    py_slot *base = py_frame_stack(r->frame), *sp = py_frame_stack_pointer(r->frame);
    py_raised aside = py_put_aside();
    sp = py_slots_drop(base, sp);
    py_put_on(aside);
    py_leave_ended(r->ts, r->frame, &r->entry, sp);
    return NULL;
}

run_end interp_loop(run *r, bool throwing) {
    return plain_loop(r, throwing);
}

PyObject *interp_run(run *r, bool throwing) {
    PyObject *result;
    stopped what;
    for (;;) {
        switch (plain_loop(r, throwing)) {
        case RUN_YIELD:
            py_leave_suspended(r->ts, r->frame, &r->entry, r->sp, r->how);
            return r->value;
        case RUN_HAND_OVER:
            return interp_hand_over(r);
        case RUN_STOP:
            what = image_stopped(r, &result);
            break;
        case RUN_ABANDON:
            what = image_abandoned(r, &result);
            break;
        default:
            py_leave_ended(r->ts, r->frame, &r->entry, r->sp);
            return r->value;
        }
        if (what == STOPPED_LEFT)
            return result;
        throwing = what == STOPPED_RAISE;
        r->failing = r->pc->at;
    }
}

// Where an exception is thrown in, the pointer may stand on a unit that starts nothing (3.11 moves
// it when a delegated generator ends): then only the unit counts.
static const insn *start_of(run *r, bool throwing) {
    const insn *pc = code_at(r->code, throwing ? r->failing : py_frame_next(r->frame));
    return !pc && throwing ? r->code->insns : pc;
}

PyObject *interp_eval(PyThreadState *ts, py_frame *f, bool throwing, bool thin, long *countdown) {
    run r = {.ts = ts, .thread = &interp_here, .frame = f, .countdown = countdown};
    if (py_enter(ts, f, &r.entry, !thin && !py_frame_in_generator(f)) < 0)
        return interp_end_frame(&r);
    r.code = code_of(py_frame_code(f));
    if (!r.code)
        return interp_end_frame(&r);
    r.failing = py_frame_last(f);
    r.pc = start_of(&r, throwing);
    r.sp = py_frame_stack_pointer(f);
    if (!r.pc) {
        PyErr_Format(PyExc_SystemError, "%U: frame stands between instructions",
                     r.code->py->co_name);
        return interp_end_frame(&r);
    }
    return interp_run(&r, throwing);
}
