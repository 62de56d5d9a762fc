// Of which calls of modules, and of regions, an operation is part.
#include "src/interp/run.h"

#include "src/torch/overrides.h"

// A frame that calls a module, or a region: its first variable is that one.
static bool is_call_of_its_own(const run *r) {
    PyObject *code = (PyObject *)r->code->py;
    return code == facts.module_call || code == facts.region_call;
}

// Where the module is found whose call this frame is; NULL if it was made inside.
static source *module_place(world *w, const run *r, PyObject **module) {
    PyObject *self = py_frame_get(r->frame, 0);
    if (self && PyCell_Check(self)) // a function within the frame's uses it
        self = PyCell_GET(self);
    if (self && is_lazy(self)) {
        *module = ((lazy *)self)->outside;
        return ((lazy *)self)->source;
    }
    record *known = self ? record_of(w, self) : NULL;
    *module = known ? known->outside : NULL;
    return known ? known->source : NULL;
}

// The modules of the calls around this one, and this one; new reference.
static PyObject *with_module(world *w, PyObject *outer, const run *r) {
    PyObject *module;
    source *place = module_place(w, r, &module);
    if (!place)
        return outer ? Py_NewRef(outer) : PyTuple_New(0);
    PyObject *text = input_name(w, place);
    bool region = (PyObject *)r->code->py == facts.region_call; // it has no class
    PyObject *one = text ? Py_BuildValue("((NNOK))", PyLong_FromVoidPtr(module), text,
                                         region ? Py_None : (PyObject *)Py_TYPE(module),
                                         (unsigned long long)r->started)
                         : NULL;
    PyObject *all = one && outer ? PySequence_Concat(outer, one) : Py_XNewRef(one);
    Py_XDECREF(one);
    return all;
}

void modules_cut(torch_trace *t, uint32_t count) {
    while (t->modules.count > count)
        Py_DECREF(t->modules.items[--t->modules.count].all);
}

// Finds the innermost call of a module from r on: *depth is the number of such calls, whose last
// one is the last of t->modules.
static status find_modules(world *w, torch_trace *t, const run *r, uint32_t *depth) {
    while (r && !is_call_of_its_own(r))
        r = r->below;
    *depth = t->modules.count;
    while (r && *depth > 0 &&
           (t->modules.items[*depth - 1].run != r ||
            t->modules.items[*depth - 1].started != r->started))
        --*depth;
    if (!r || *depth > 0) {
        *depth = r ? *depth : 0;
        return ST_OK;
    }
    TRY(find_modules(w, t, r->below, depth));
    modules_cut(t, *depth);
    PyObject *all = with_module(w, *depth > 0 ? t->modules.items[*depth - 1].all : NULL, r);
    module_run new = {r, r->started, all};
    if (!all || vec_push(&t->modules, new) != ST_OK) {
        Py_XDECREF(all);
        return ST_ERROR;
    }
    ++*depth;
    return ST_OK;
}

// Operations of one call of a module have the same modules: these are put in words once.
status record_modules(world *w, node *n) {
    torch_trace *t = w->torch;
    uint32_t depth;
    TRY(find_modules(w, t, w->run, &depth));
    if (depth > 0)
        Py_SETREF(n->modules, Py_NewRef(t->modules.items[depth - 1].all));
    return ST_OK;
}
