// What the building of a plan shares: registers, loads, constants, steps; then rebuilding and
// writing on top of it.
#pragma once

#include "src/plan/steps.h"

typedef VEC(operand) operands;
typedef VEC(step) step_list;

typedef struct builder {
    world *w;
    plan *p;
    map objects;          // object → operand, or BUSY
    map sources;          // source → register
    map nodes;            // node → output's register; its place in `outputs` is that in the plan's
    VEC(source *) loaded; // of each load of the plan
    VEC(node *) outputs;
    step_list making, writing;
    VEC(PyObject *) queue; // made, to be filled: what lies too deep for the C stack
    step_list late;        // behind all writes
    map constants;         // constants of code that have an identity
    bool constants_known;
    struct funeral *funeral; // what its guards share, once there is one; theirs
    bool lets_go;            // of what frames held, and others hold, too
    int depth;
} builder;

static inline step step_of(step_kind kind, int out, operand a, operand b) {
    return (step){.kind = kind, .out = out, .a = a, .b = b, .c = OPERAND_NONE};
}

int build_register(builder *b);
status build_load(builder *b, source *s, operand *out);
// Borrowed; the plan keeps it.
status build_constant(builder *b, PyObject *o, operand *out);
// A step with its further operands (may be NULL); `object` is borrowed, the plan keeps it.
status build_step(builder *b, step_list *to, step s, const operands *more, PyObject *object);
status build_output(builder *b, node *n, operand *out);

// Whether an object is the same in every call, whatever its identity is worth.
bool constant_is(PyObject *o);
// Whether a plan gives out this very object in every call. If it has an identity and came from
// outside, *out is that place's operand, else OPERAND_NONE.
status constant_stays(builder *b, PyObject *o, bool *stays, operand *out);

// Steps that make an inside object again, or load an outside one.
status rebuild(builder *b, PyObject *o, operand *out);
// Fills what was put off; to be called until nothing is left to be rebuilt.
status rebuild_rest(builder *b);
// A tuple of inside objects.
status rebuild_tuple(builder *b, PyObject *const *items, Py_ssize_t count, operand *out);
// How a key is hashed when the plan runs: again, as nothing but C code is run for it (HASH_AGAIN),
// or as the trace found it, since that followed from what is guarded (HASH_KNOWN).
typedef enum hashing { HASH_AGAIN, HASH_KNOWN, HASH_NEVER } hashing;
hashing rebuild_hashing(builder *b, PyObject *key);
// Clears *lasting unless a key hashes alike in every call.
status rebuild_lasting(builder *b, PyObject *key, bool *lasting);
// The C type that lays out the instances of a class, or NULL if the class is not one made by a
// class statement on top of it.
PyTypeObject *rebuild_base(PyTypeObject *type);

// What the files of rebuilding share.
typedef status (*maker)(builder *b, PyObject *o, operand *out);
maker rebuild_maker_of(PyObject *o); // of C types that are no containers; NULL for others
status rebuild_refuse(builder *b, PyObject *o);
status rebuild_refuse_for(builder *b, PyObject *o, reason why);
// A step that makes `o`. If `o` is part of a cycle, its parts may have asked for it and made it.
status rebuild_make(builder *b, PyObject *o, step s, const operands *more, PyObject *object,
                    operand *out);
status rebuild_each(builder *b, PyObject *const *items, Py_ssize_t count, operands *to);
// As rebuild, and NULL is OPERAND_NONE.
status rebuild_field(builder *b, PyObject *value, operands *to);
status rebuild_exception(builder *b, PyObject *o, operand *out);
status rebuild_image(builder *b, PyObject *o, operand *out);
// Generators and iterators: made without content, filled later.
status rebuild_empty_generator(builder *b, PyObject *o, operand *out);
status rebuild_fill_generator(builder *b, PyObject *o, operand to);
bool rebuild_weakly_known(PyObject *generator); // to others than the trace
bool rebuild_is_iterator(PyObject *o);
status rebuild_empty_iterator(builder *b, PyObject *o, operand *out);
status rebuild_fill_iterator(builder *b, PyObject *o, operand to);
// Breaks unless a set made inside iterates alike in every call.
status rebuild_set_order(builder *b, PyObject *set);
// Fills the instance dict of what is in a register.
status rebuild_instance_dict(builder *b, PyObject *o, operand to);

// What a write is about to displace, by where it is found.
typedef enum death_place {
    DEATH_ITSELF, // the object at the source
    DEATH_LIST,   // items low to high
    DEATH_DICT,   // the value under the key, if there is one
    DEATH_ATTR,
    DEATH_SLOT, // at the offset low
    DEATH_CELL,
    DEATH_DEQUE, // all of it
    DEATH_SET,
    DEATH_NONE, // it lives on: the plan gives it out
} death_place;
// Guards that what is displaced dies, if it does, without running code; breaks if it would not. `o`
// is what is at `s` now.
status deaths_guard(builder *b, source *s, PyObject *o, death_place place, PyObject *key,
                    Py_ssize_t low, Py_ssize_t high);
// The same for what a lazy stands for, which may be known already.
status deaths_guard_lazy(builder *b, PyObject *lazy);
// What a frame that goes on held, and nobody will: it dies with the trace's end, not where it died.
status deaths_of_roots(builder *b);
// A suspended generator that lives on, in a cycle that nothing leads to: its end would run code.
status deaths_of_generators(builder *b);
// Whether that is known of what a lazy stands for.
bool death_known(PyObject *lazy);

// Steps that write back what the trace held back.
status writes_build(builder *b);
