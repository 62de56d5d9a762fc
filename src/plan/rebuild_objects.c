// Turns an inside object of a C type that is no container into the steps that make it again:
// functions, bound methods, views, descriptors.
#include "src/interp/image.h"

#include "src/call/numpy.h"

#include "src/plan/build.h"

// --- functions and what is bound ---

static status rebuild_cell(builder *b, PyObject *o, operand *out) {
    TRY(rebuild_make(b, o, step_of(STEP_CELL, -1, OPERAND_NONE, OPERAND_NONE), NULL, NULL, out));
    step s = step_of(STEP_CELL_FILL, -1, *out, OPERAND_NONE);
    if (!PyCell_GET(o))
        return ST_OK;
    TRY(rebuild(b, PyCell_GET(o), &s.b));
    return build_step(b, &b->making, s, NULL, NULL);
}

// Globals are found by the functions that came in; those that share them now must do so again.
static status globals_source(builder *b, PyObject *globals, source **found) {
    guards *g = b->w->guards;
    record *known = record_of(b->w, globals);
    *found = known ? known->source : NULL;
    for (uint32_t i = 0; !known && i < b->w->in.all.count; i++) {
        record *r = b->w->in.all.items[i];
        if (!PyFunction_Check(r->outside) || PyFunction_GET_GLOBALS(r->outside) != globals)
            continue;
        source *s = guard_source(g, SOURCE_GLOBALS, r->source, NULL, 0);
        if (!s)
            return ST_ERROR;
        if (*found && *found != s)
            TRY(guard_add(g, GUARD_SAME, *found, s, NULL, 0));
        *found = *found ? *found : s;
    }
    return ST_OK;
}

status rebuild_field(builder *b, PyObject *value, operands *to) {
    operand item = OPERAND_NONE;
    if (value)
        TRY(rebuild(b, value, &item));
    return vec_push(to, item);
}

static status fill_function(builder *b, PyFunctionObject *f, operand to) {
    PyObject *fields[] = {f->func_defaults, f->func_kwdefaults,  f->func_closure,
                          f->func_doc,      f->func_name,        f->func_qualname,
                          f->func_module,   f->func_annotations, f->func_dict};
    operands items = {0};
    status done = ST_OK;
    for (size_t i = 0; done == ST_OK && i < Py_ARRAY_LENGTH(fields); i++)
        done = rebuild_field(b, fields[i], &items);
    if (done == ST_OK)
        done = build_step(b, &b->making, step_of(STEP_FUNCTION_FILL, -1, to, OPERAND_NONE), &items,
                          NULL);
    vec_free(&items);
    return done;
}

static status check_type_parameters(builder *b, PyObject *o) {
    PyObject *parameters = PyObject_GetAttrString(o, "__type_params__");
    if (!parameters) {
        PyErr_Clear(); // before 3.12 there are none
        return ST_OK;
    }
    bool none = PyTuple_CheckExact(parameters) && PyTuple_GET_SIZE(parameters) == 0;
    Py_DECREF(parameters);
    return none ? ST_OK : rebuild_refuse(b, o);
}

static status rebuild_function(builder *b, PyObject *o, operand *out) {
    PyFunctionObject *f = (PyFunctionObject *)o;
    source *globals;
    step s = step_of(STEP_FUNCTION, -1, OPERAND_NONE, OPERAND_NONE);
    TRY(check_type_parameters(b, o));
    TRY(globals_source(b, f->func_globals, &globals));
    if (!globals)
        return rebuild_refuse(b, o);
    TRY(build_load(b, globals, &s.a));
    TRY(rebuild_make(b, o, s, NULL, f->func_code, out));
    return fill_function(b, f, *out);
}

// A call of a C constructor or method descriptor, which is a constant.
static status rebuild_call(builder *b, PyObject *o, PyObject *callable, PyObject *const *args,
                           Py_ssize_t count, operand *out) {
    step s = step_of(STEP_CALL, -1, OPERAND_NONE, OPERAND_NONE);
    operands items = {0};
    status done = build_constant(b, callable, &s.a);
    if (done == ST_OK)
        done = rebuild_each(b, args, count, &items);
    if (done == ST_OK)
        done = rebuild_make(b, o, s, &items, NULL, out);
    vec_free(&items);
    return done;
}

static status rebuild_method(builder *b, PyObject *o, operand *out) {
    PyObject *args[] = {PyMethod_GET_FUNCTION(o), PyMethod_GET_SELF(o)};
    if (!PyCallable_Check(args[0])) // a classmethod binds anything
        return rebuild_refuse(b, o);
    return rebuild_call(b, o, (PyObject *)&PyMethod_Type, args, 2, out);
}

static status rebuild_slice(builder *b, PyObject *o, operand *out) {
    PySliceObject *s = (PySliceObject *)o;
    PyObject *args[] = {s->start, s->stop, s->step};
    return rebuild_call(b, o, (PyObject *)&PySlice_Type, args, 3, out);
}

static status rebuild_range(builder *b, PyObject *o, operand *out) {
    PyObject *args[] = {raw_field_get(RAW_RANGE_START, o), raw_field_get(RAW_RANGE_STOP, o),
                        raw_field_get(RAW_RANGE_STEP, o)};
    return rebuild_call(b, o, (PyObject *)&PyRange_Type, args, 3, out);
}

// --- arrays of numpy's ---

// The array whose memory an array has, or itself; new reference.
static PyObject *owner_of_memory(PyObject *array) {
    PyObject *base = PyObject_GetAttrString(array, "base");
    if (base == Py_None)
        Py_SETREF(base, Py_NewRef(array));
    return base;
}

// Whether an array is as its copy would be: not large, and not closed to writes. 1, 0, -1.
static int is_copied_alike(PyObject *array) {
    enum { MOST_BYTES = 1 << 16 };
    PyObject *size = PyObject_GetAttrString(array, "nbytes");
    PyObject *flags = size ? PyObject_GetAttrString(array, "flags") : NULL;
    PyObject *open = flags ? PyObject_GetAttrString(flags, "writeable") : NULL;
    bool alike = open == Py_True && PyLong_AsSsize_t(size) <= MOST_BYTES;
    Py_XDECREF(size);
    Py_XDECREF(flags);
    Py_XDECREF(open);
    return PyErr_Occurred() ? -1 : alike;
}

// Whether the plan may make an array of its own memory: no other array that it makes shares that.
static status check_memory(builder *b, PyObject *o) {
    PyObject *owner = world_keep(b->w, owner_of_memory(o));
    if (!owner)
        return ST_ERROR;
    if (!Py_IS_TYPE(owner, Py_TYPE(o)) || map_get(&b->memories, map_key(owner)))
        return rebuild_refuse(b, o);
    return map_put(&b->memories, map_key(owner), 1);
}

// An array that numpy made of values that the trace knew: a copy of one that the plan keeps. No row
// of numpy's writes to an array, so its content is what the trace found.
static status rebuild_array(builder *b, PyObject *o, operand *out) {
    int alike = is_copied_alike(o);
    if (alike <= 0)
        return alike < 0 ? ST_ERROR : rebuild_refuse(b, o);
    TRY(check_memory(b, o));
    PyObject *kept = world_keep(b->w, PyObject_CallMethod(o, "__copy__", NULL));
    PyObject *copy = kept ? world_keep(b->w, PyObject_GetAttrString(kept, "__copy__")) : NULL;
    return copy ? rebuild_call(b, o, copy, NULL, 0, out) : ST_ERROR;
}

// The descriptor of a C type that gives this method, bound to an object or to a class.
static PyObject *descriptor_of(PyObject *self, PyObject *name, const PyMethodDef *method) {
    bool class = PyType_Check(self) && (method->ml_flags & METH_CLASS);
    PyTypeObject *kind = class ? &PyClassMethodDescr_Type : &PyMethodDescr_Type;
    PyTypeObject *type = class ? (PyTypeObject *)self : Py_TYPE(self);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++) {
        PyTypeObject *t = (PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i);
        PyObject *d = PyDict_GetItemWithError(raw_type_dict(t), name);
        if (d && Py_IS_TYPE(d, kind) && ((PyMethodDescrObject *)d)->d_method == method)
            return d;
    }
    return NULL;
}

static status bind(builder *b, PyObject *o, PyObject *self, PyObject *descriptor, operand *out) {
    step s = step_of(STEP_BIND, -1, OPERAND_NONE, OPERAND_NONE);
    if (!descriptor)
        return rebuild_refuse(b, o);
    TRY(rebuild(b, self, &s.a));
    return rebuild_make(b, o, s, NULL, descriptor, out);
}

static status rebuild_c_method(builder *b, PyObject *o, operand *out) {
    PyMethodDef *method = ((PyCFunctionObject *)o)->m_ml;
    PyObject *self = PyCFunction_GET_SELF(o); // a module's or a fixed class's are constants
    PyObject *name = PyUnicode_InternFromString(method->ml_name);
    if (!name)
        return ST_ERROR;
    status done = bind(b, o, self, descriptor_of(self, name, method), out);
    Py_DECREF(name);
    return done;
}

static status rebuild_method_wrapper(builder *b, PyObject *o, operand *out) {
    return bind(b, o, raw_method_self(o), raw_method_wrapped(o), out);
}

static status rebuild_partial(builder *b, PyObject *o, operand *out) {
    PyObject *function = raw_field_get(RAW_PARTIAL_FUNC, o);
    PyObject *args = raw_field_get(RAW_PARTIAL_ARGS, o);
    PyObject *named = raw_field_get(RAW_PARTIAL_KEYWORDS, o);
    if (!function || !args || !named || !PyTuple_CheckExact(args) || !PyDict_CheckExact(named) ||
        Py_REFCNT(named) > 1) // whoever has the keywords can change them
        return rebuild_refuse(b, o);
    step s = step_of(STEP_CALL_NAMED, -1, OPERAND_NONE, OPERAND_NONE);
    operands items = {0};
    PyObject *names = PySequence_Tuple(named);
    status done = names ? build_constant(b, (PyObject *)plan_type.partial, &s.a) : ST_ERROR;
    if (done == ST_OK)
        done = rebuild_each(b, &function, 1, &items);
    if (done == ST_OK)
        done = rebuild_each(b, PySequence_Fast_ITEMS(args), PyTuple_GET_SIZE(args), &items);
    for (Py_ssize_t i = 0; done == ST_OK && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *value = PyDict_GetItemWithError(named, PyTuple_GET_ITEM(names, i));
        done = value ? rebuild_each(b, &value, 1, &items) : ST_ERROR;
    }
    if (done == ST_OK)
        done = rebuild_make(b, o, s, &items, names, out);
    vec_free(&items);
    Py_XDECREF(names);
    TRY(done);
    return rebuild_instance_dict(b, o, *out);
}

// --- views ---

static status rebuild_view(builder *b, PyObject *o, operand *out) {
    PyTypeObject *t = Py_TYPE(o);
    PyObject *dict = raw_view_mapping(o);
    bool ordered = t == &PyODictKeys_Type || t == &PyODictValues_Type || t == &PyODictItems_Type;
    const char *name = t == &PyDictKeys_Type || t == &PyODictKeys_Type       ? "keys"
                       : t == &PyDictValues_Type || t == &PyODictValues_Type ? "values"
                                                                             : "items";
    PyObject *method =
        PyObject_GetAttrString((PyObject *)(ordered ? &PyODict_Type : &PyDict_Type), name);
    status done = method ? rebuild_call(b, o, method, &dict, 1, out) : ST_ERROR;
    Py_XDECREF(method);
    return done;
}

// --- descriptors ---

static status rebuild_wrapper(builder *b, PyObject *o, operand *out) {
    bool is_static = Py_TYPE(o) == &PyStaticMethod_Type;
    PyObject *function = raw_field_get(is_static ? RAW_STATICMETHOD_FUNC : RAW_CLASSMETHOD_FUNC, o);
    if (!function || !PyFunction_Check(function)) // its name and text are read again
        return rebuild_refuse(b, o);
    return rebuild_call(b, o, (PyObject *)Py_TYPE(o), &function, 1, out);
}

// The text, unless it is the getter's: then the property finds it there again. NULL with an
// exception, or without one: the getter has another text by now.
static PyObject *property_doc(PyObject *o, PyObject *getter) {
    PyObject *doc = PyObject_GetAttrString(o, "__doc__");
    if (!doc || !raw_property_has_getters_doc(o))
        return doc;
    PyObject *its = PyFunction_Check(getter) ? ((PyFunctionObject *)getter)->func_doc : NULL;
    Py_DECREF(doc);
    return its == doc ? Py_NewRef(Py_None) : NULL;
}

static status rebuild_property(builder *b, PyObject *o, operand *out) {
    static const raw_field fields[] = {RAW_PROPERTY_GET, RAW_PROPERTY_SET, RAW_PROPERTY_DEL};
    PyObject *args[4];
    for (int i = 0; i < 3; i++) {
        PyObject *part = raw_field_get(fields[i], o);
        args[i] = part ? part : Py_None;
    }
    if (!(args[3] = property_doc(o, args[0])))
        return PyErr_Occurred() ? ST_ERROR : rebuild_refuse(b, o);
    TRY(arena_own(&b->w->arena, args[3]));
    return rebuild_call(b, o, (PyObject *)&PyProperty_Type, args, 4, out);
}

static status rebuild_proxy(builder *b, PyObject *o, operand *out) {
    PyObject *mapping = raw_view_mapping(o);
    if (!mapping)
        return rebuild_refuse(b, o);
    return rebuild_call(b, o, (PyObject *)&PyDictProxy_Type, &mapping, 1, out);
}

static status rebuild_class(builder *b, PyObject *o, operand *out) {
    if (type_is_made(b->w, (PyTypeObject *)o))
        return rebuild_refuse_for(b, o, REASON_CLASS_STATEMENT);
    source *s = type_source(b->w, (PyTypeObject *)o);
    if (s)
        return build_load(b, s, out);
    return PyErr_Occurred() ? ST_ERROR : rebuild_refuse(b, o);
}

// list[int], and what a Python class makes of it (Callable[[int], str]): by the C function below.
static status rebuild_alias(builder *b, PyObject *o, operand *out) {
    static const char *const names[] = {"__origin__", "__args__", "__unpacked__"};
    PyObject *parts[3], *make;
    for (int i = 0; i < 3; i++) {
        parts[i] = PyObject_GetAttrString(o, names[i]);
        if (!parts[i] || arena_own(&b->w->arena, parts[i]) != ST_OK)
            return ST_ERROR;
    }
    if (parts[2] != Py_False || !PyTuple_CheckExact(parts[1]))
        return rebuild_refuse(b, o);
    if (!(make = PyObject_GetAttrString((PyObject *)&Py_GenericAliasType, "__new__")))
        return ST_ERROR;
    PyObject *args[] = {(PyObject *)Py_TYPE(o), parts[0], parts[1]};
    status done = rebuild_call(b, o, make, args, 3, out);
    Py_DECREF(make);
    return done;
}

// int | None, list[int] | None: of two whose | is the one of classes and aliases.
static status rebuild_union(builder *b, PyObject *o, operand *out) {
    PyObject *args = PyObject_GetAttrString(o, "__args__"), *make;
    if (!args || arena_own(&b->w->arena, args) != ST_OK)
        return ST_ERROR;
    if (PyTuple_GET_SIZE(args) != 2)
        return rebuild_refuse(b, o);
    for (int i = 0; i < 2; i++) {
        PyNumberMethods *number = Py_TYPE(PyTuple_GET_ITEM(args, i))->tp_as_number;
        if (!number || number->nb_or != PyType_Type.tp_as_number->nb_or)
            return rebuild_refuse(b, o);
    }
    make = py_import("_operator", "or_");
    if (!make)
        return ST_ERROR;
    status done = rebuild_call(b, o, make, PySequence_Fast_ITEMS(args), 2, out);
    Py_DECREF(make);
    return done;
}

static bool is_alias(PyObject *o) {
    return PyObject_TypeCheck(o, &Py_GenericAliasType) && Py_TYPE(o)->tp_dictoffset == 0;
}

// --- the rows ---

maker rebuild_maker_of(PyObject *o) {
    const struct {
        const PyTypeObject *type;
        maker make;
    } rows[] = {
        {&PyFunction_Type, rebuild_function},   {&PyCell_Type, rebuild_cell},
        {&PyMethod_Type, rebuild_method},       {&PyCFunction_Type, rebuild_c_method},
        {&PySlice_Type, rebuild_slice},         {&PyRange_Type, rebuild_range},
        {plan_type.partial, rebuild_partial},   {&PyDictKeys_Type, rebuild_view},
        {&PyDictValues_Type, rebuild_view},     {&PyDictItems_Type, rebuild_view},
        {&PyODictKeys_Type, rebuild_view},      {&PyODictValues_Type, rebuild_view},
        {&PyODictItems_Type, rebuild_view},     {&PyStaticMethod_Type, rebuild_wrapper},
        {&PyClassMethod_Type, rebuild_wrapper}, {&PyProperty_Type, rebuild_property},
        {&PyDictProxy_Type, rebuild_proxy},     {&image_type, rebuild_image},
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(rows); i++) {
        if (rows[i].type == Py_TYPE(o))
            return rows[i].make;
    }
    if (Py_IS_TYPE(o, numpy_array_type()))
        return rebuild_array;
    if (is_alias(o))
        return rebuild_alias;
    if (strcmp(Py_TYPE(o)->tp_name, "types.UnionType") == 0)
        return rebuild_union;
    if (raw_method_wrapped(o))
        return rebuild_method_wrapper;
    return PyType_Check(o) ? rebuild_class : NULL;
}
