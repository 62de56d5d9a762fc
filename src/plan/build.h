// Functions that build a plan: registers, loads, constants and steps; and, built on these,
// rebuilding and writing.
#pragma once

#include "src/plan/steps.h"

typedef VEC(operand) operands;
typedef VEC(step) step_list;

typedef struct builder {
    world *w;
    plan *p;
    map objects;          // object → operand, or BUSY
    map sources;          // source → register
    map nodes;            // node → the register of its output; `outputs` has the order of the
                          // plan's outputs
    VEC(source *) loaded; // the source of each load of the plan
    VEC(node *) outputs;
    step_list making, writing;
    VEC(PyObject *) queue; // objects that were made and are filled later, since they lie too deep
                           // for the C stack
    step_list late;        // steps behind all writes
    step_list later;       // steps behind these, which run code of the program
    map constants;         // constants of code that have an identity
    map memories;          // arrays of numpy's whose memory the plan makes again → 1
    bool constants_known;
    struct funeral *funeral; // data that the guards about dying objects share, or NULL; the guards
                             // own it
    bool lets_go;            // frames dropped objects that others hold, too
    int depth;
} builder;

static inline step step_of(step_kind kind, int out, operand a, operand b) {
    return (step){.kind = kind, .out = out, .a = a, .b = b, .c = OPERAND_NONE};
}

int build_register(builder *b);
status build_load(builder *b, source *s, operand *out);
// Borrowed; the plan keeps it.
status build_constant(builder *b, PyObject *o, operand *out);
// Adds a step with its further operands (may be NULL). `object` is borrowed; the plan keeps it.
status build_step(builder *b, step_list *to, step s, const operands *more, PyObject *object);
status build_output(builder *b, node *n, operand *out);

// Whether an object has the same value in every call, if its identity does not matter.
bool constant_is(PyObject *o);
// Whether a plan may give out this very object in every call. If its identity matters and it came
// from outside, *out is the operand of its source, else OPERAND_NONE.
status constant_stays(builder *b, PyObject *o, bool *stays, operand *out);

// Adds steps that make an inside object again, or load an outside one.
status rebuild(builder *b, PyObject *o, operand *out);
// Fills the objects in the queue. To be called until no object is left to be rebuilt.
status rebuild_rest(builder *b);
// Adds a step that makes a tuple of inside objects.
status rebuild_tuple(builder *b, PyObject *const *items, Py_ssize_t count, operand *out);
// How a key is hashed when the plan runs. HASH_AGAIN: it is hashed again, which runs only C code.
// HASH_KNOWN: it has the hash of the trace, which follows from guarded facts.
typedef enum hashing { HASH_AGAIN, HASH_KNOWN, HASH_NEVER } hashing;
hashing rebuild_hashing(builder *b, PyObject *key);
// Clears *lasting unless a key has the same hash in every call.
status rebuild_lasting(builder *b, PyObject *key, bool *lasting);
// The C type that decides the layout of a class's instances; NULL if the class was not made by a
// class statement on top of that type.
PyTypeObject *rebuild_base(PyTypeObject *type);

// Functions for the files of rebuilding only.
typedef status (*maker)(builder *b, PyObject *o, operand *out);
maker rebuild_maker_of(PyObject *o); // the function for an object of a C type that is no container;
                                     // NULL for others
status rebuild_refuse(builder *b, PyObject *o);
status rebuild_refuse_for(builder *b, PyObject *o, reason why);
// Adds a step that makes `o`, unless rebuilding its parts has done so already (in a cycle).
status rebuild_make(builder *b, PyObject *o, step s, const operands *more, PyObject *object,
                    operand *out);
status rebuild_each(builder *b, PyObject *const *items, Py_ssize_t count, operands *to);
// Like rebuild; NULL becomes OPERAND_NONE.
status rebuild_field(builder *b, PyObject *value, operands *to);
status rebuild_exception(builder *b, PyObject *o, operand *out);
status rebuild_image(builder *b, PyObject *o, operand *out);
// Generators and iterators: they are made empty and filled later.
status rebuild_empty_generator(builder *b, PyObject *o, operand *out);
status rebuild_fill_generator(builder *b, PyObject *o, operand to);
bool rebuild_weakly_known(PyObject *generator); // whether others than the trace have a weak
                                                // reference to it
bool rebuild_is_iterator(PyObject *o);
status rebuild_empty_iterator(builder *b, PyObject *o, operand *out);
status rebuild_fill_iterator(builder *b, PyObject *o, operand to);
// Breaks unless a set made inside iterates in the same order in every call.
status rebuild_set_order(builder *b, PyObject *set);
// Fills the instance dict of the object in a register.
status rebuild_instance_dict(builder *b, PyObject *o, operand to);

// Where the objects lie that a write displaces.
typedef enum death_place {
    DEATH_ITSELF, // the object at the source
    DEATH_LIST,   // items low to high
    DEATH_DICT,   // the value under the key, if there is one
    DEATH_ATTR,
    DEATH_SLOT, // at the offset low
    DEATH_CELL,
    DEATH_DEQUE, // all items
    DEATH_SET,
    DEATH_NONE, // no object dies: the plan gives it out
} death_place;
// Guards that displaced objects which die run no code as they die; breaks if one would. `o` is the
// object at `s` now.
status deaths_guard(builder *b, source *s, PyObject *o, death_place place, PyObject *key,
                    Py_ssize_t low, Py_ssize_t high);
// The same for the object that a lazy stands for.
status deaths_guard_lazy(builder *b, PyObject *lazy);
// The same for objects that a frame that goes on held and that nobody will hold: they die at the
// end of the plan, not where the program dropped them.
status deaths_of_roots(builder *b);
// Breaks if a suspended generator lives only in a cycle that nothing leads to: its end would run
// code.
status deaths_of_generators(builder *b);
// Whether the object that a lazy stands for was checked already.
bool death_known(PyObject *lazy);

// Adds the steps that do the held-back writes.
status writes_build(builder *b);
