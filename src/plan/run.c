// Runs a plan: takes its inputs from the registers of the guard pass, runs the graph, makes the
// result, does the writes, returns.
#include "src/base/mutant.h"

#include "src/py/each.h"
#include "src/py/entries.h"
#include "src/py/functions.h"
#include "src/py/iterators.h"
#include "src/py/raised.h"
#include "src/py/sets.h"
#include "src/py/signals.h"

#include "src/interp/fault.h"
#include "src/interp/image.h"

#include "src/plan/steps.h"

enum { FEW = 48 }; // registers and dropped references that fit on the C stack

// A run. Registers are strong; so is what writes drop, until all is done.
typedef struct running {
    const plan *p;
    PyObject **regs;
    PyObject **dropped;
    Py_ssize_t drops;
} running;

static inline PyObject *get(const running *r, operand o) {
    return o >= 0 ? r->regs[o] : o == OPERAND_NONE ? NULL : r->p->constants.items[~o];
}

static inline PyObject *more(const running *r, const step *s, uint32_t i) {
    return get(r, r->p->operands.items[s->first + i]);
}

// What a write takes out of an object lives on until no more is to be written. NULL is nothing.
static inline void hold(running *r, PyObject *o) {
    if (!o)
        return;
    assert(r->drops < r->p->dropped);
    r->dropped[r->drops++] = Py_NewRef(o);
}

static int set(running *r, const step *s, PyObject *made) {
    if (!made)
        return -1;
    assert(!r->regs[s->out]);
    r->regs[s->out] = made;
    return 0;
}

// --- making ---

static PyObject *make_tuple(const running *r, const step *s) {
    PyObject *tuple = PyTuple_New(s->count);
    for (uint32_t i = 0; tuple && i < s->count; i++)
        PyTuple_SET_ITEM(tuple, i, Py_XNewRef(more(r, s, i)));
    return tuple;
}

static PyObject *make_list(const running *r, const step *s) {
    PyObject *list = PyList_New(s->count);
    for (uint32_t i = 0; list && i < s->count; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(more(r, s, i)));
    return list;
}

static int fill_dict(const running *r, const step *s, PyObject *dict,
                     int (*put)(PyObject *, PyObject *, PyObject *)) {
    for (uint32_t i = 0; i < s->count; i += 2) {
        if (put(dict, more(r, s, i), more(r, s, i + 1)) < 0)
            return -1;
    }
    return 0;
}

static PyObject *make_dict(const running *r, const step *s) {
    PyObject *dict = PyDict_New();
    if (dict && fill_dict(r, s, dict, PyDict_SetItem) < 0)
        Py_CLEAR(dict);
    return dict;
}

static PyObject *make_instance(PyObject *base, PyObject *class, PyObject *value) {
    PyObject *args = value ? PyTuple_Pack(1, value) : PyTuple_New(0);
    if (!args)
        return NULL;
    PyObject *made = ((PyTypeObject *)base)->tp_new((PyTypeObject *)class, args, NULL);
    Py_DECREF(args);
    return made;
}

// All further operands in a row, in `few` (of FEW) if there is room. NULL with an exception.
static PyObject **gather(const running *r, const step *s, PyObject **few) {
    PyObject **all = s->count > FEW ? PyMem_New(PyObject *, s->count) : few;
    if (!all)
        PyErr_NoMemory();
    for (uint32_t i = 0; all && i < s->count; i++)
        all[i] = more(r, s, i);
    return all;
}

static PyObject *make_call(const running *r, const step *s) {
    PyObject *few[FEW], **args = gather(r, s, few);
    if (!args)
        return NULL;
    size_t named = s->object ? (size_t)PyTuple_GET_SIZE(s->object) : 0;
    PyObject *made =
        PyObject_Vectorcall(get(r, s->a), args, s->count - named, named ? s->object : NULL);
    if (args != few)
        PyMem_Free(args);
    return made;
}

void plan_each_code(const plan *p, plan_visit visit, void *data) {
    for (uint32_t i = 0; i < p->constants.count; i++) {
        PyObject *o = p->constants.items[i];
        if (PyCode_Check(o))
            visit(o, data);
        else if (Py_IS_TYPE(o, &image_type))
            visit((PyObject *)((image *)o)->code, data);
    }
}

// An image of the parts function, slots, handled exception, namespace, as rebuild's frame_parts
// has them.
static image *new_image(const step *s, PyObject *const *parts, uint32_t count, image *caller) {
    image *t = (image *)s->object;
    image *i = image_from_template(t, parts[0], parts + 1, parts[count - 2], caller);
    if (i)
        i->locals = Py_XNewRef(parts[count - 1]);
    return i;
}

static PyObject *make_image(const running *r, const step *s) {
    PyObject *few[FEW], **parts = gather(r, s, few);
    if (!parts)
        return NULL;
    image *made = new_image(s, parts + 1, s->count - 1, (image *)parts[0]);
    if (parts != few)
        PyMem_Free(parts);
    return (PyObject *)made;
}

static PyObject *make_generator(const step *s) {
    PyObject *made = image_make_generator(s->object);
    if (!made || !s->index)
        return made;
    PyObject *emptied = (PyObject *)image_of_generator(made);
    if (!emptied)
        Py_CLEAR(made);
    Py_XDECREF(emptied);
    return made;
}

static PyObject *make_bound(PyObject *descriptor, PyObject *self) {
    if (Py_IS_TYPE(descriptor, &PyClassMethodDescr_Type))
        return Py_TYPE(descriptor)->tp_descr_get(descriptor, NULL, self);
    return Py_TYPE(descriptor)->tp_descr_get(descriptor, self, (PyObject *)Py_TYPE(self));
}

// As if it was computed once more: small ints are one object, others are not.
static PyObject *copy_number(PyObject *o) {
    if (PyLong_CheckExact(o))
        return _PyLong_Copy((PyLongObject *)o);
    if (PyUnicode_CheckExact(o)) // a number's text
        return PyUnicode_FromKindAndData(PyUnicode_KIND(o), PyUnicode_DATA(o),
                                         PyUnicode_GET_LENGTH(o));
    return PyFloat_CheckExact(o) ? PyFloat_FromDouble(PyFloat_AS_DOUBLE(o)) : Py_NewRef(o);
}

static PyObject *make(const running *r, const step *s) {
    switch (s->kind) {
    case STEP_TUPLE:
        return make_tuple(r, s);
    case STEP_LIST:
        return make_list(r, s);
    case STEP_DICT:
        return make_dict(r, s);
    case STEP_INSTANCE:
        return make_instance(s->object, get(r, s->a), NULL);
    case STEP_VALUE:
        return make_instance(s->object, get(r, s->a), get(r, s->b));
    case STEP_CALL:
    case STEP_CALL_NAMED:
        return make_call(r, s);
    case STEP_BIND:
        return make_bound(s->object, get(r, s->a));
    case STEP_NUMBER_COPY:
        return copy_number(get(r, s->a));
    case STEP_FUNCTION:
        return py_function_new(s->object, get(r, s->a));
    case STEP_CELL:
        return PyCell_New(NULL);
    case STEP_ITERATOR:
        return py_iterator_new((PyTypeObject *)s->object);
    case STEP_GENERATOR:
        return make_generator(s);
    case STEP_IMAGE:
        return make_image(r, s);
    default:
        Py_UNREACHABLE();
    }
}

// --- filling ---

static int fill_list(const running *r, const step *s) {
    PyObject *list = get(r, s->a), *items = make_tuple(r, s);
    if (!items)
        return -1;
    Py_ssize_t size = PyList_GET_SIZE(list);
    int done = PyList_SetSlice(list, size, size, items);
    Py_DECREF(items);
    return done;
}

static int fill_set(const running *r, const step *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        if (PySet_Add(get(r, s->a), more(r, s, i)) < 0)
            return -1;
    }
    return 0;
}

static int lay_out(const running *r, const step *s) {
    PyObject *items = make_tuple(r, s);
    int done =
        items ? py_set_lay_out(get(r, s->a), s->object, ((PyTupleObject *)items)->ob_item) : -1;
    Py_XDECREF(items);
    return done;
}

// Calls a method of deque and gives the result up.
static int deque_call(PyObject *method, PyObject *deque, PyObject *value) {
    PyObject *args[] = {deque, value};
    PyObject *result = PyObject_Vectorcall(method, args, value ? 2 : 1, NULL);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static int fill_deque(const running *r, const step *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        if (deque_call(plan_type.append, get(r, s->a), more(r, s, i)) < 0)
            return -1;
    }
    return 0;
}

static int init(PyTypeObject *base, PyObject *o, PyObject *args) {
    int done = args ? base->tp_init(o, args, NULL) : -1;
    Py_XDECREF(args);
    return done;
}

static int fill_bytes(PyObject *array, PyObject *content) {
    Py_ssize_t size = PyBytes_GET_SIZE(content);
    if (PyByteArray_Resize(array, size) < 0)
        return -1;
    memcpy(PyByteArray_AS_STRING(array), PyBytes_AS_STRING(content), (size_t)size);
    return 0;
}

static int fill_attrs(const running *r, const step *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        if (raw_attr_set(get(r, s->a), PyTuple_GET_ITEM(s->object, i), more(r, s, i)) < 0)
            return -1;
    }
    return 0;
}

static int fill_exception(running *r, const step *s) {
    PyBaseExceptionObject *e = (PyBaseExceptionObject *)get(r, s->a);
    PyObject **fields[] = {&e->args, &e->cause, &e->context};
    for (uint32_t i = 0; i < s->count; i++)
        Py_XSETREF(*fields[i], Py_XNewRef(more(r, s, i)));
    e->suppress_context = (char)s->index;
    return 0;
}

// The order of the fields is that of rebuild's fill_function.
static int fill_function(const running *r, const step *s) {
    PyFunctionObject *f = (PyFunctionObject *)get(r, s->a);
    PyObject **fields[] = {&f->func_defaults, &f->func_kwdefaults,  &f->func_closure,
                           &f->func_doc,      &f->func_name,        &f->func_qualname,
                           &f->func_module,   &f->func_annotations, &f->func_dict};
    assert(s->count == Py_ARRAY_LENGTH(fields));
    for (uint32_t i = 0; i < s->count; i++) {
        PyObject *old = *fields[i];
        *fields[i] = Py_XNewRef(more(r, s, i));
        Py_XDECREF(old);
    }
    return 0;
}

static int fill_iterator(const running *r, const step *s) {
    PyObject *few[FEW], **fields = gather(r, s, few);
    int done = fields ? py_iterator_fill(get(r, s->a), fields, s->object) : -1;
    if (fields != few)
        PyMem_Free(fields);
    return done;
}

// The fields are borrowed from registers. What the iterator held lives on until all is written.
static int write_iterator(running *r, const step *s) {
    PyObject *few[FEW], **fields = gather(r, s, few), *iterator = get(r, s->a);
    const py_iterator_form *form = fields ? py_iterator_form_of(iterator) : NULL;
    assert(!form || (s->count <= FEW && r->drops + (Py_ssize_t)s->count <= r->p->dropped));
    if (form) {
        PyObject *old[FEW];
        py_iterator_move(form, iterator, fields, s->object, old);
        for (uint32_t i = 0; i < s->count; i++)
            if (old[i])
                r->dropped[r->drops++] = old[i];
    }
    if (fields != few)
        PyMem_Free(fields);
    return form ? 0 : -1;
}

static int fill_generator(const running *r, const step *s) {
    PyObject *few[FEW], **parts = gather(r, s, few);
    image *i = parts ? new_image(s, parts, s->count, NULL) : NULL;
    if (parts != few)
        PyMem_Free(parts);
    if (!i)
        return -1;
    image_fill_generator(i, get(r, s->a));
    Py_DECREF(i);
    return 0;
}

// --- writing ---

static int write_bytes(PyObject *array, const step *s) {
    PyObject *low = PyLong_FromSsize_t(s->index), *high = PyLong_FromSsize_t(s->end);
    PyObject *slice = low && high ? PySlice_New(low, high, NULL) : NULL;
    int done =
        slice ? PyByteArray_Type.tp_as_mapping->mp_ass_subscript(array, slice, s->object) : -1;
    Py_XDECREF(low);
    Py_XDECREF(high);
    Py_XDECREF(slice);
    return done;
}

static int write_slice(running *r, PyObject *list, const step *s, PyObject *items) {
    Py_ssize_t size = PyList_GET_SIZE(list), end = s->end < size ? s->end : size;
    for (Py_ssize_t i = s->index; i < end; i++)
        hold(r, PyList_GET_ITEM(list, i));
    return PyList_SetSlice(list, s->index, end, items);
}

// The value under a key; without code to be run, as the guards have found.
static PyObject *value_of(PyObject *dict, PyObject *key) {
    PyObject *value = NULL;
    return raw_dict_get(dict, key, &value) == RAW_FOUND ? value : NULL;
}

static int write_dict(running *r, const step *s, int (*put)(PyObject *, PyObject *, PyObject *)) {
    PyObject *dict = get(r, s->a), *key = get(r, s->b);
    hold(r, value_of(dict, key));
    return put(dict, key, get(r, s->c));
}

// A key that was set and deleted again may never have been there before: then there is nothing to
// do.
static int delete_from_dict(running *r, const step *s, int (*remove)(PyObject *, PyObject *)) {
    PyObject *dict = get(r, s->a), *key = get(r, s->b), *old = value_of(dict, key);
    hold(r, old);
    return old ? remove(dict, key) : 0;
}

static int write_hashed(running *r, const step *s) {
    PyObject *dict = get(r, s->a), *key = get(r, s->b), *value = get(r, s->c);
    PyObject *old = _PyDict_GetItem_KnownHash(dict, key, s->index);
    hold(r, old);
    if (!old && (PyErr_Occurred() || !value))
        return PyErr_Occurred() ? -1 : 0;
    return value ? _PyDict_SetItem_KnownHash(dict, key, value, s->index)
                 : _PyDict_DelItem_KnownHash(dict, key, s->index);
}

static int write_attr(running *r, const step *s) {
    PyObject *o = get(r, s->a), *value = get(r, s->b), *old = NULL;
    if (raw_attr_get(o, s->object, &old) == RAW_FOUND)
        hold(r, old);
    return value || old ? raw_attr_set(o, s->object, value) : 0;
}

static int write_class(running *r, const step *s) {
    PyObject *class = get(r, s->a), *value = get(r, s->b);
    PyObject *old = value_of(raw_type_dict((PyTypeObject *)class), s->object);
    hold(r, old);
    return value || old ? PyType_Type.tp_setattro(class, s->object, value) : 0;
}

static int write_slot(running *r, const step *s) {
    PyObject **place = (PyObject **)((char *)get(r, s->a) + s->index), *old = *place;
    hold(r, old);
    *place = Py_XNewRef(get(r, s->b));
    Py_XDECREF(old);
    return 0;
}

// By torch's own C functions: tensors of other classes have no stand-ins.
static int write_gradient(running *r, PyObject *tensor, PyObject *gradient) {
    PyObject *old = PyObject_GetAttrString(tensor, "grad");
    if (!old)
        return -1;
    hold(r, old);
    Py_DECREF(old);
    return PyObject_SetAttrString(tensor, "grad", gradient);
}

// What the function made dies; its attributes are those of the one that was made for it.
static int take_attributes(PyObject *made, PyObject *from) {
    PyObject *names = raw_attr_names(from), *value;
    int done = names ? 0 : -1;
    for (Py_ssize_t i = 0; done == 0 && i < PyList_GET_SIZE(names); i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        if (raw_attr_get(from, name, &value) == RAW_FOUND)
            done = raw_attr_set(made, name, value);
    }
    Py_XDECREF(names);
    return done;
}

// Signals wait: their handlers are the program's code.
static int call_held(const running *r, const step *s) {
    PyObject *args[] = {get(r, s->a), get(r, s->b)}, *made = get(r, s->c);
    unsigned long held = py_hold_signals();
    PyObject *result = PyObject_Vectorcall(s->object, args, args[1] ? 2 : 1, NULL);
    py_let_signals_go(held);
    int done = !result ? -1 : made ? take_attributes(made, result) : 0;
    Py_XDECREF(result);
    return done;
}

static int call_later(const running *r, const step *s) {
    PyObject *args = get(r, s->b);
    Py_ssize_t named = s->object ? PyTuple_GET_SIZE(s->object) : 0;
    PyObject *result = PyObject_Vectorcall(get(r, s->a), &PyTuple_GET_ITEM(args, 0),
                                           (size_t)(PyTuple_GET_SIZE(args) - named), s->object);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static int write_cell(running *r, const step *s) {
    PyObject *cell = get(r, s->a);
    hold(r, PyCell_GET(cell));
    return PyCell_Set(cell, get(r, s->b));
}

static int write_discard(PyObject *set, PyObject *value) {
    return PySet_Discard(set, value) < 0 ? -1 : 0;
}

static void hold_set(running *r, PyObject *set) {
    Py_ssize_t at = 0;
    PyObject *item;
    while (r->drops < r->p->dropped && raw_set_next(set, &at, &item))
        hold(r, item);
}

// From the end (left false) or the start.
static int write_pop(running *r, const step *s, bool left) {
    PyObject *deque = get(r, s->a);
    if (Py_SIZE(deque) > 0)
        hold(r, raw_deque_item(deque, left ? 0 : Py_SIZE(deque) - 1));
    return deque_call(left ? plan_type.popleft : plan_type.pop, deque, NULL);
}

static int write_clear(running *r, const step *s) {
    PyObject *deque = get(r, s->a);
    Py_ssize_t room = r->p->dropped - r->drops, count = Py_SIZE(deque);
    for (Py_ssize_t i = 0; i < count && i < room; i++)
        hold(r, raw_deque_item(deque, i));
    return deque_call(plan_type.clear, deque, NULL);
}

static int write_deque_item(running *r, const step *s) {
    PyObject *deque = get(r, s->a);
    if (s->index < Py_SIZE(deque))
        hold(r, raw_deque_item(deque, s->index));
    return plan_type.deque->tp_as_sequence->sq_ass_item(deque, s->index, get(r, s->b));
}

static int write_context(running *r, const step *s) {
    PyObject *variable = get(r, s->a), *old = NULL;
    if (PyContextVar_Get(variable, NULL, &old) < 0)
        return -1;
    hold(r, old);
    Py_XDECREF(old);
    PyObject *token = PyContextVar_Set(variable, get(r, s->b));
    Py_XDECREF(token);
    return token ? 0 : -1;
}

// --- torch's state ---

static int call_switch(PyObject *row, int at) {
    PyObject *done = PyObject_Call(PyTuple_GET_ITEM(row, at), PyTuple_GET_ITEM(row, at + 1), NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

// Undoes the first `count` switches, last first.
static void undo_switches(PyObject *switches, Py_ssize_t count) {
    py_raised aside = py_put_aside();
    while (count-- > 0)
        if (call_switch(PyTuple_GET_ITEM(switches, count), 2) < 0)
            PyErr_WriteUnraisable(switches);
    py_put_on(aside);
}

static int write_state(const step *s) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(s->object); i++) {
        if (call_switch(PyTuple_GET_ITEM(s->object, i), 0) < 0) {
            undo_switches(s->object, i);
            return -1;
        }
    }
    return 0;
}

// --- the whole ---

static int append(PyObject *list, PyObject *items) {
    Py_ssize_t size = PyList_GET_SIZE(list);
    return PyList_SetSlice(list, size, size, items);
}

static int run_step(running *r, const step *s) {
    PyObject *a = get(r, s->a), *b = get(r, s->b);
    if (mutant_of(MUTANT_STEP, s->kind))
        return s->out >= 0 ? set(r, s, Py_NewRef(Py_None)) : 0;
    switch (s->kind) {
    case STEP_LIST_FILL:
        return fill_list(r, s);
    case STEP_DICT_FILL:
        return fill_dict(r, s, a, PyDict_SetItem);
    case STEP_DICT_PUT:
        return s->index == -1 ? PyDict_SetItem(a, b, get(r, s->c))
                              : _PyDict_SetItem_KnownHash(a, b, get(r, s->c), s->index);
    case STEP_ORDERED_FILL:
        return fill_dict(r, s, a, PyODict_SetItem);
    case STEP_SET_FILL:
        return fill_set(r, s);
    case STEP_SET_TABLE:
        return lay_out(r, s);
    case STEP_DEQUE_LENGTH:
        return init(plan_type.deque, a, Py_BuildValue("(()n)", s->index));
    case STEP_DEQUE_FILL:
        return fill_deque(r, s);
    case STEP_BYTES_FILL:
        return fill_bytes(a, s->object);
    case STEP_FACTORY:
        return init(plan_type.defaultdict, a, PyTuple_Pack(1, b));
    case STEP_ATTRS_FILL:
        return fill_attrs(r, s);
    case STEP_DICT_IS:
        return py_set_instance_dict(a, b);
    case STEP_SLOT_FILL:
        Py_XSETREF(*(PyObject **)((char *)a + s->index), Py_NewRef(b));
        return 0;
    case STEP_FUNCTION_FILL:
        return fill_function(r, s);
    case STEP_EXCEPTION_FILL:
        return fill_exception(r, s);
    case STEP_CELL_FILL:
        return PyCell_Set(a, b);
    case STEP_ITERATOR_FILL:
        return fill_iterator(r, s);
    case STEP_ITERATOR_SET:
        return write_iterator(r, s);
    case STEP_GENERATOR_FILL:
        return fill_generator(r, s);
    case STEP_STATE:
        return write_state(s);
    case STEP_CALL_HELD:
    case STEP_CALL_MAKES:
        return call_held(r, s);
    case STEP_CALL_LATER:
        return call_later(r, s);
    case STEP_GRAD_SET:
        return write_gradient(r, a, b);
    case STEP_BYTES_SLICE:
        return write_bytes(a, s);
    case STEP_LIST_SLICE:
    case STEP_LIST_DELETE:
        return write_slice(r, a, s, b);
    case STEP_LIST_APPEND:
        return append(a, b);
    case STEP_DICT_SET:
        return write_dict(r, s, PyDict_SetItem);
    case STEP_DICT_DELETE:
        return delete_from_dict(r, s, PyDict_DelItem);
    case STEP_DICT_SET_HASHED:
    case STEP_DICT_DELETE_HASHED:
        return write_hashed(r, s);
    case STEP_ORDERED_SET:
        return write_dict(r, s, PyODict_SetItem);
    case STEP_ORDERED_DELETE:
        return delete_from_dict(r, s, PyODict_DelItem);
    case STEP_ATTR_SET:
    case STEP_ATTR_DELETE:
        return write_attr(r, s);
    case STEP_CLASS_SET:
    case STEP_CLASS_DELETE:
        return write_class(r, s);
    case STEP_SLOT_SET:
    case STEP_SLOT_DELETE:
        return write_slot(r, s);
    case STEP_CELL_SET:
    case STEP_CELL_DELETE:
        return write_cell(r, s);
    case STEP_CACHE_HIT:
        raw_cached_hit(a, b);
        return 0;
    case STEP_SET_ADD:
        return PySet_Add(a, b);
    case STEP_SET_DISCARD:
        return write_discard(a, b);
    case STEP_SET_LAYOUT:
        hold_set(r, a);
        return lay_out(r, s);
    case STEP_DEQUE_POP:
    case STEP_DEQUE_POP_LEFT:
        return write_pop(r, s, s->kind == STEP_DEQUE_POP_LEFT);
    case STEP_DEQUE_CLEAR:
        return write_clear(r, s);
    case STEP_DEQUE_APPEND:
        return deque_call(plan_type.append, a, b);
    case STEP_DEQUE_APPEND_LEFT:
        return deque_call(plan_type.appendleft, a, b);
    case STEP_DEQUE_SET:
        return write_deque_item(r, s);
    case STEP_CONTEXT_SET:
        return write_context(r, s);
    case STEP_ITERATOR_PLACE:
        py_iterator_place(a, s->index);
        return 0;
    default:
        return set(r, s, make(r, s));
    }
}

static int run_steps(running *r, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        if (i < r->p->writes && FAULTY(false, true)) // writes do not fail but for lack of memory
            return -1;
        if (run_step(r, &r->p->steps.items[i]) < 0)
            return -1;
    }
    return 0;
}

static bool writes_to(const plan *p, uint32_t input) {
    return ((node *)PyList_GET_ITEM(p->graph->nodes, input))->effects & EFFECT_OUTSIDE;
}

// The inputs that the graph writes to, from the n-th on; new list.
static PyObject *written_from(const plan *p, uint32_t n, PyObject *const *inputs) {
    PyObject *written = PyList_New(0);
    for (; written && n < p->inputs.count; n++)
        if (writes_to(p, n) && PyList_Append(written, inputs[n]) < 0)
            Py_CLEAR(written);
    return written;
}

// A function of the graph's witness, on the inputs that the graph writes to.
static PyObject *ask_witness(const plan *p, int which, PyObject *const *inputs) {
    PyObject *function = PyTuple_GET_ITEM(p->graph->witness, which), *result = NULL;
    uint32_t first = 0;
    while (first < p->inputs.count && !writes_to(p, first))
        first++;
    if (first == p->inputs.count)
        return PyObject_CallNoArgs(function);
    PyObject *written = written_from(p, first, inputs);
    PyObject *args = written ? PyList_AsTuple(written) : NULL;
    if (args)
        result = PyObject_Call(function, args, NULL);
    Py_XDECREF(args);
    Py_XDECREF(written);
    return result;
}

// Whether all that the graph did was undone.
static bool undo(const plan *p, PyObject *saved) {
    py_raised aside = py_put_aside();
    PyObject *all = PyObject_CallOneArg(PyTuple_GET_ITEM(p->graph->witness, 1), saved);
    Py_XDECREF(all);
    PyErr_Clear();
    py_put_on(aside);
    return all == Py_True;
}

// Where it failed, only the backend knows.
static PyObject *call_compiled(const plan *p, PyObject *const *inputs, graph_failure *failure) {
    PyObject *saved = p->graph->witness ? ask_witness(p, 0, inputs) : NULL;
    if (p->graph->witness && !saved)
        return NULL;
    PyObject *outputs = PyObject_Vectorcall(p->how.callable, inputs, p->inputs.count, NULL);
    if (!outputs) {
        *failure = (graph_failure){.failed = true, .number = -1, .done = p->graph->effects};
        if (saved && undo(p, saved))
            failure->done &= ~(EFFECT_WRITES | EFFECT_OUTSIDE | EFFECT_RANDOM);
        failure->saved = Py_XNewRef(saved);
    }
    Py_XDECREF(saved);
    return outputs;
}

// The outputs' tuple or list; new reference.
static PyObject *call_graph(const running *r, PyObject *const *inputs, graph_failure *failure) {
    const plan *p = r->p;
    if (p->how.replay)
        return replay_run(p->how.replay, inputs, failure);
    if (p->how.callable)
        return call_compiled(p, inputs, failure);
    PyErr_SetString(PyExc_SystemError, "the plan's graph was never compiled");
    return NULL;
}

static int take_outputs(running *r, PyObject *outputs) {
    const plan *p = r->p;
    if ((!PyTuple_Check(outputs) && !PyList_Check(outputs)) ||
        PySequence_Fast_GET_SIZE(outputs) != p->outputs.count) {
        PyErr_Format(PyExc_TypeError, "a compiled graph must give a tuple or list of %u values",
                     p->outputs.count);
        return -1;
    }
    for (uint32_t i = 0; i < p->outputs.count; i++)
        r->regs[p->outputs.items[i]] = Py_NewRef(PySequence_Fast_GET_ITEM(outputs, i));
    return 0;
}

static PyObject *call_in_context(const running *r, PyObject *const *inputs,
                                 graph_failure *failure) {
    PyObject *class = r->p->graph->context, *context = class ? py_enter_context(class) : NULL;
    if (class && !context)
        return NULL;
    PyObject *outputs = call_graph(r, inputs, failure);
    if (context)
        py_leave_context(context);
    return outputs;
}

static int run_graph(running *r, graph_failure *failure) {
    const plan *p = r->p;
    PyObject *few[FEW], **inputs = few;
    if (p->inputs.count > FEW && !(inputs = PyMem_New(PyObject *, p->inputs.count))) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = 0; i < p->inputs.count; i++)
        inputs[i] = r->regs[p->inputs.items[i]];
    PyObject *outputs = call_in_context(r, inputs, failure);
    if (inputs != few)
        PyMem_Free(inputs);
    int done = outputs ? take_outputs(r, outputs) : -1;
    Py_XDECREF(outputs);
    for (uint32_t i = 0; i < p->early.count; i++)
        Py_CLEAR(r->regs[p->early.items[i]]);
    return done;
}

// The value of a call, by its number; borrowed. A subscript that nobody used was taken out of the
// graph that failed. NULL, without an exception: it is not there.
static PyObject *value_of_call(PyObject *values, node *n) {
    PyObject *number = PyLong_FromLong(n->number);
    PyObject *found = number ? PyDict_GetItemWithError(values, number) : NULL;
    Py_XDECREF(number);
    bool item = !found && n->op == NODE_CALL_FUNCTION && PyTuple_GET_SIZE(n->args) == 2 &&
                PyCFunction_Check(n->target) && is_node(PyTuple_GET_ITEM(n->args, 0)) &&
                PyLong_Check(PyTuple_GET_ITEM(n->args, 1));
    PyObject *whole = item ? value_of_call(values, (node *)PyTuple_GET_ITEM(n->args, 0)) : NULL;
    if (whole && (PyTuple_Check(whole) || PyList_Check(whole))) {
        Py_ssize_t index = PyLong_AsSsize_t(PyTuple_GET_ITEM(n->args, 1));
        if (index >= 0 && index < PySequence_Fast_GET_SIZE(whole))
            found = PySequence_Fast_GET_ITEM(whole, index);
    }
    PyErr_Clear();
    return found;
}

static bool take_values(running *r, PyObject *values) {
    const plan *p = r->p;
    PyObject *nodes = p->graph->nodes;
    node *output = (node *)PyList_GET_ITEM(nodes, PyList_GET_SIZE(nodes) - 1);
    PyObject *outputs = PyTuple_GET_ITEM(output->args, 0);
    assert(PyTuple_GET_SIZE(outputs) == p->outputs.count);
    for (uint32_t i = 0; i < p->outputs.count; i++) {
        PyObject *value = value_of_call(values, (node *)PyTuple_GET_ITEM(outputs, i));
        if (!value)
            return false;
        r->regs[p->outputs.items[i]] = Py_NewRef(value);
    }
    return true;
}

// No code may run between the first write and the last: the collector is off on the way.
static int run_writes(running *r) {
    const plan *p = r->p;
    if (p->writes == p->later)
        return 0;
    const step *first = &p->steps.items[p->writes];
    uint32_t from = p->writes + (first->kind == STEP_STATE);
    PyObject *class = first->kind == STEP_STATE ? p->graph->context : NULL;
    PyObject *context = class ? py_enter_context(class) : NULL;
    if (class && !context)
        return -1;
    bool collecting = raw_gc_off();
    int done = run_steps(r, p->writes, from);
    if (context)
        py_leave_context(context);
    if (done == 0 && run_steps(r, from, p->later) < 0) {
        if (first->kind == STEP_STATE)
            undo_switches(first->object, PyTuple_GET_SIZE(first->object));
        done = -1;
    }
    raw_gc_restore(collecting);
    return done;
}

// `values`: taken instead of running the graph; NULL: it is run.
static PyObject *run_all(running *r, graph_failure *failure, PyObject *values) {
    const plan *p = r->p;
    if (values && !take_values(r, values))
        return NULL;
    if (!values && p->has_graph && run_graph(r, failure) < 0)
        return NULL;
    if (run_steps(r, 0, p->writes) < 0 || run_writes(r) < 0 ||
        run_steps(r, p->later, p->steps.count) < 0)
        return NULL;
    return Py_NewRef(get(r, p->result));
}

// What was made for nothing dies without a word: a generator would run its finally blocks.
static void silence(const running *r) {
    for (uint32_t i = 0; i < r->p->writes; i++) {
        const step *s = &r->p->steps.items[i];
        if (s->kind == STEP_GENERATOR && r->regs[s->out])
            image_silence_generator(r->regs[s->out]);
    }
}

// Letting go may run code, which must not see an exception that is on its way.
static void let_go(running *r) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    while (r->drops > 0)
        Py_DECREF(r->dropped[--r->drops]);
    for (int i = 0; i < r->p->registers; i++)
        Py_XDECREF(r->regs[i]);
    PyErr_Restore(type, value, traceback);
}

static PyObject *run_plan(plan *p, PyObject *const *regs, graph_failure *failure,
                          PyObject *values) {
    PyObject *few[FEW];
    size_t room = (size_t)p->registers + (size_t)p->dropped;
    running r = {.p = p, .regs = room > FEW ? PyMem_New(PyObject *, room) : few};
    if (!r.regs)
        return PyErr_NoMemory();
    r.dropped = r.regs + p->registers;
    memset(r.regs, 0, (size_t)p->registers * sizeof(PyObject *));
    for (uint32_t i = 0; i < p->loads.count; i++)
        r.regs[p->loads.items[i].to] = Py_NewRef(regs[p->loads.items[i].from]);
    p->active++;
    PyObject *result = run_all(&r, failure, values);
    if (!result)
        silence(&r);
    let_go(&r);
    if (r.regs != few)
        PyMem_Free(r.regs);
    if (--p->active == 0 && p->dead)
        plan_free(p);
    return result;
}

PyObject *plan_run(plan *p, PyObject *const *regs, graph_failure *failure) {
    return run_plan(p, regs, failure, NULL);
}

PyObject *plan_run_taken(plan *p, PyObject *const *regs, PyObject *values) {
    return run_plan(p, regs, NULL, values);
}

// --- a compiled graph that failed ---

// Puts the copies where the inputs are that the graph writes to. Borrowed from the list.
static bool put_copies(const plan *p, PyObject *copies, PyObject **inputs) {
    Py_ssize_t next = 0;
    for (uint32_t i = 0; i < p->inputs.count; i++) {
        const node *n = (node *)PyList_GET_ITEM(p->graph->nodes, i);
        if ((n->effects & EFFECT_OUTSIDE) && next < PyList_GET_SIZE(copies))
            inputs[i] = PyList_GET_ITEM(copies, next++);
    }
    return next == PyList_GET_SIZE(copies);
}

// On the inputs themselves, if they are as they were before the graph ran.
static bool probe(const plan *p, PyObject *given, bool undone, bool stop, graph_failure *failure) {
    PyObject **inputs = ((PyListObject *)given)->ob_item; // borrowed from here on
    PyObject *copies = undone ? PyList_New(0) : ask_witness(p, 2, inputs);
    replay *r = copies ? replay_new(p->graph) : NULL;
    PyObject **mixed = r ? PyMem_New(PyObject *, p->inputs.count + 1) : NULL;
    bool found = false;
    if (mixed) {
        memcpy(mixed, inputs, p->inputs.count * sizeof(PyObject *));
        found = (undone || put_copies(p, copies, mixed)) && replay_probe(r, mixed, stop, failure);
    }
    py_raised aside = py_put_aside();
    PyMem_Free(mixed);
    replay_free(r);
    Py_XDECREF(copies);
    py_put_on(aside);
    return found;
}

bool plan_find_failure(plan *p, PyObject *const *regs, bool stop, graph_failure *failure) {
    bool undone = failure->saved && undo(p, failure->saved);
    PyObject *inputs = failure->saved ? plan_examples(p, regs) : NULL;
    bool found = inputs && probe(p, inputs, undone, stop, failure);
    py_raised aside = py_put_aside();
    Py_XDECREF(inputs);
    if (found)
        py_put_on(aside);
    else
        py_forget(aside);
    return found;
}
