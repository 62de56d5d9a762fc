// Stand-ins by kind: the functions that the engine calls on an object that stands for a value of
// the graph. Today there are tensors (src/torch); symbolic numbers will be a second kind. Each kind
// has its own Python type, by which the engine finds the kind.
//
// If the operands of an operator are stand-ins of two kinds, the kind with the higher rank does the
// operation: a tensor knows what to do with a number, but a number does not know tensors.
#pragma once

#include "src/py/py.h"

#include "src/graph/graph.h"

struct world;

typedef struct standin_kind {
    PyTypeObject *type; // of the stand-ins themselves
    int rank;
    PyTypeObject *(*type_of)(PyObject *o); // the result of type()
    // Attributes; a value of NULL deletes.
    PyObject *(*get)(struct world *w, PyObject *o, PyObject *name);
    int (*set)(struct world *w, PyObject *o, PyObject *name, PyObject *value);
    // Operators. One of the operands is of this kind. The Python type itself has the unary
    // operators.
    PyObject *(*binary)(struct world *w, int operator, PyObject * left, PyObject *right);
    PyObject *(*compare)(struct world *w, PyObject *left, PyObject *right, int operator);
    PyObject *(*getitem)(struct world *w, PyObject *o, PyObject *key);
    int (*setitem)(struct world *w, PyObject *o, PyObject *key, PyObject *value);
    // What len() gives; new reference.
    PyObject *(*length)(struct world *w, PyObject *o);
    // Records a node that fails if the value is not true: 1; 0: there is no such node for this
    // value; -1.
    int (*check)(struct world *w, PyObject *o, PyObject *message);
    // The graph input or node that the stand-in stands for; borrowed.
    node *(*node_of)(PyObject *o);
    // The attributes that the program set on a stand-in made inside: dict, borrowed; NULL if there
    // are none.
    PyObject *(*attrs_of)(PyObject *o);
    // Of a stand-in made inside whose value leaves the graph without its class: the C function that
    // makes an object of *class of the value; borrowed. NULL: the value is the object.
    PyObject *(*dresser_of)(PyObject *o, PyTypeObject **class);
    // The stand-in was stored in a local variable or cell of that name: its node gets the name, if
    // it has none yet. NULL: the program dropped the result of an operation at once.
    void (*named)(struct world *w, PyObject *o, PyObject *name);
} standin_kind;

enum { STANDIN_MOST_KINDS = 4 };
extern const standin_kind *standin_kinds[STANDIN_MOST_KINDS]; // ends in NULL
void standin_add_kind(const standin_kind *kind);

// NULL if the object is no stand-in.
static inline const standin_kind *standin_kind_of(PyObject *o) {
    for (const standin_kind *const *at = standin_kinds; *at; at++)
        if (Py_TYPE(o) == (*at)->type)
            return *at;
    return NULL;
}
static inline bool is_standin(PyObject *o) {
    return standin_kind_of(o) != NULL;
}
// The kind that does an operation; NULL if neither operand is a stand-in.
static inline const standin_kind *standin_answering(PyObject *left, PyObject *right) {
    const standin_kind *a = standin_kind_of(left), *b = standin_kind_of(right);
    return !a || (b && b->rank > a->rank) ? b : a;
}
