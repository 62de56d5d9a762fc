// Stand-ins by kind: what the engine asks of an object that stands for a value of the graph. Today
// there are tensors (src/torch); symbolic numbers will be a second kind. Each kind has a Python
// type of its own, by which it is found.
//
// Where stand-ins of two kinds meet in an operator, the kind of the higher rank answers: a tensor
// knows what to do with a number, and not the other way round.
#pragma once

#include "src/py/py.h"

#include "src/graph/graph.h"

struct world;

typedef struct standin_kind {
    PyTypeObject *type; // of the stand-ins themselves
    int rank;
    PyTypeObject *(*type_of)(PyObject *o); // what type() answers
    // Attributes; a value of NULL deletes.
    PyObject *(*get)(struct world *w, PyObject *o, PyObject *name);
    int (*set)(struct world *w, PyObject *o, PyObject *name, PyObject *value);
    // Operators: one of the operands is of this kind. Unary ones are the Python type's own.
    PyObject *(*binary)(struct world *w, int operator, PyObject * left, PyObject *right);
    PyObject *(*compare)(struct world *w, PyObject *left, PyObject *right, int operator);
    PyObject *(*getitem)(struct world *w, PyObject *o, PyObject *key);
    int (*setitem)(struct world *w, PyObject *o, PyObject *key, PyObject *value);
    // A node that fails if the value is not true: 1; 0: there is none for such a value; -1.
    int (*check)(struct world *w, PyObject *o, PyObject *message);
    // The graph input or node it stands for; borrowed.
    node *(*node_of)(PyObject *o);
    // What was set on one made inside: dict, borrowed; NULL for nothing.
    PyObject *(*attrs_of)(PyObject *o);
    // It was stored in a local or cell of that name: its node is called so, once. NULL: what an
    // operation gave back was dropped at once.
    void (*named)(struct world *w, PyObject *o, PyObject *name);
} standin_kind;

enum { STANDIN_MOST_KINDS = 4 };
extern const standin_kind *standin_kinds[STANDIN_MOST_KINDS]; // ends in NULL
void standin_add_kind(const standin_kind *kind);

// NULL: no stand-in.
static inline const standin_kind *standin_kind_of(PyObject *o) {
    for (const standin_kind *const *at = standin_kinds; *at != NULL; at++)
        if (Py_TYPE(o) == (*at)->type)
            return *at;
    return NULL;
}
static inline bool is_standin(PyObject *o) {
    return standin_kind_of(o) != NULL;
}
// The kind that answers for an operator; NULL if neither operand is a stand-in.
static inline const standin_kind *standin_answering(PyObject *left, PyObject *right) {
    const standin_kind *a = standin_kind_of(left), *b = standin_kind_of(right);
    return a == NULL || (b != NULL && b->rank > a->rank) ? b : a;
}
