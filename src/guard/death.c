// Ends a guard program when an object dies that the program holds weakly.
#include "src/guard/guard.h"
#include "src/guard/death.h"
#include "src/guard/program.h"

typedef struct death {
    PyObject_HEAD
    guard_program *program; // NULL once it is gone
} death;

static bool forget_in(PyObject **all, Py_ssize_t count, PyObject *o) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (all[i] == o)
            return all[i] = NULL, true;
    return false;
}

// Nothing may point to what has died: its address may soon be another object's.
static bool forget_object(step *s, PyObject *o) {
    switch (step_rows[s->op].holds) {
    case HOLD_VALUE:
    case HOLD_KEY:
    case HOLD_VERY:
    case HOLD_OTHER:
        return forget_in(&s->object, 1, o);
    case HOLD_ITEMS:
        return forget_in(s->items, s->index, o);
    case HOLD_FOUND:
        return forget_in(&s->second, 1, o);
    case HOLD_NONE:
    case HOLD_STRONG:
    case HOLD_FIXED:
        return false;
    }
    Py_UNREACHABLE();
}

// What can never pass again keeps nothing of the classes it looked at. Dropping may run any code,
// and free the program.
static void drop_found(guard_program *p) {
    found_list found = p->found;
    p->found = (found_list){0};
    for (int32_t i = 0; found.count && i < p->count; i++)
        if (step_rows[p->steps[i].op].holds == HOLD_FOUND)
            p->steps[i].second = NULL;
    for (uint32_t i = 0; i < found.count; i++)
        Py_DECREF(found.items[i]);
    vec_free(&found);
}

static void object_died(guard_program *p, hold *h) {
    PyObject *o = h->object;
    h->object = NULL;
    for (int32_t i = 0; o && i < p->count; i++) {
        bool meant = forget_object(&p->steps[i], o);
        // What must not be the object that died never will be.
        if (meant && !p->dead && step_rows[p->steps[i].op].holds != HOLD_OTHER) {
            p->dead = i + 1;
        }
    }
}

static PyObject *death_call(PyObject *self, PyObject *args, PyObject *keywords) {
    guard_program *p = ((death *)self)->program;
    (void)keywords;
    for (uint32_t i = 0; p && i < p->holds.count; i++)
        if (PyTuple_GET_SIZE(args) == 1 && p->holds.items[i].reference == PyTuple_GET_ITEM(args, 0))
            object_died(p, &p->holds.items[i]);
    if (p && p->dead)
        drop_found(p);
    Py_RETURN_NONE;
}

static PyTypeObject death_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stator._engine.death",
    .tp_basicsize = sizeof(death),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_call = death_call,
};

bool guard_owns_weakref(PyObject *reference) {
    PyObject *callback = ((PyWeakReference *)reference)->wr_callback;
    return callback && Py_IS_TYPE(callback, &death_type);
}

int death_setup(void) {
    return PyType_Ready(&death_type);
}

PyObject *death_new(guard_program *p) {
    death *d = PyObject_New(death, &death_type);
    if (d)
        d->program = p;
    return (PyObject *)d;
}

void death_forget(PyObject *o) {
    ((death *)o)->program = NULL;
}
