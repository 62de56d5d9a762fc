// Turns iterators of C types into their fields and back. The structs are CPython's own (Objects,
// Modules, Python/bltinmodule.c). A type whose size differs from its row is not known.
#include "src/py/iterators.h"

#include <stddef.h>

// --- the structs that more than one version has, as far as they are needed ---

typedef struct counting { // list, tuple, str, bytes, bytearray, sequence; reversed
    PyObject_HEAD
    Py_ssize_t index;
    PyObject *sequence;
} counting;

typedef struct dict_iterator {
    PyObject_HEAD
    PyDictObject *dict;
    Py_ssize_t used, at;
    PyObject *result;
    Py_ssize_t left;
} dict_iterator;

typedef struct set_iterator {
    PyObject_HEAD
    PySetObject *set;
    Py_ssize_t used, at, left;
} set_iterator;

typedef struct ordered_iterator {
    PyObject_HEAD
    int kind;
    PyObject *dict;
    Py_ssize_t size;
    size_t state;
    PyObject *current, *result;
} ordered_iterator;

typedef struct ordered_dict {
    PyDictObject dict;
    void *first, *last;
    void **fast_nodes;
    Py_ssize_t fast_nodes_size;
    void *resize_sentinel;
    size_t state;
} ordered_dict;

enum { DEQUE_BLOCK = 64 };

typedef struct deque_block {
    struct deque_block *left;
    PyObject *items[DEQUE_BLOCK];
    struct deque_block *right;
} deque_block;

typedef struct deque {
    PyObject_VAR_HEAD
    deque_block *leftmost, *rightmost;
    Py_ssize_t left_index, right_index;
    size_t state;
} deque;

typedef struct deque_iterator {
    PyObject_HEAD
    deque_block *block;
    Py_ssize_t index;
    deque *deque;
    size_t state;
    Py_ssize_t left;
} deque_iterator;

typedef struct enumerating {
    PyObject_HEAD
    Py_ssize_t index;
    PyObject *iterator, *result, *long_index;
    PyObject *one; // not owned, and the same for good
} enumerating;

typedef struct zipping {
    PyObject_HEAD
    Py_ssize_t size;
    PyObject *iterators, *result;
    int strict;
} zipping;

typedef struct zipping_longest {
    PyObject_HEAD
    Py_ssize_t size, active;
    PyObject *iterators, *result, *filler;
} zipping_longest;

typedef struct slicing {
    PyObject_HEAD
    PyObject *iterator;
    Py_ssize_t next, stop, step, count;
} slicing;

typedef struct cycling {
    PyObject_HEAD
    PyObject *iterator, *saved;
    Py_ssize_t index;
    int first_pass;
} cycling;

typedef struct telling { // takewhile, dropwhile
    PyObject_HEAD
    PyObject *function, *iterator;
    long decided;
} telling;

typedef struct repeating {
    PyObject_HEAD
    PyObject *item;
    Py_ssize_t left;
} repeating;

typedef struct counting_up {
    PyObject_HEAD
    Py_ssize_t at;
    PyObject *long_at, *step;
} counting_up;

typedef struct accumulating {
    PyObject_HEAD
    PyObject *total, *iterator, *function, *initial;
#if PY_VERSION_HEX >= 0x030c0000
    void *state; // the module's
#endif
} accumulating;

typedef struct pairing {
    PyObject_HEAD
    PyObject *iterator, *old;
#if PY_VERSION_HEX >= 0x030d0000
    PyObject *result;
#endif
} pairing;

typedef struct two_parts { // map, filter, chain, starmap, compress, callable and others
    PyObject_HEAD
    PyObject *one, *other;
} two_parts;

typedef struct choosing { // product, combinations, permutations
    PyObject_HEAD
    PyObject *pool;
    Py_ssize_t *indices;
    PyObject *result; // its items are gone on from
    int stopped;
} choosing;

typedef struct choosing_some {
    PyObject_HEAD
    PyObject *pool;
    Py_ssize_t *indices;
    PyObject *result;
    Py_ssize_t length;
    int stopped;
} choosing_some;

typedef struct permuting {
    PyObject_HEAD
    PyObject *pool;
    Py_ssize_t *indices, *cycles;
    PyObject *result;
    Py_ssize_t length;
    int stopped;
} permuting;

enum { TEE_LINK = 57 };

typedef struct tee_link {
    PyObject_HEAD
    PyObject *iterator;
    int read, running;
    PyObject *next;
    PyObject *items[TEE_LINK];
} tee_link;

typedef struct tee {
    PyObject_HEAD
    PyObject *link;
    int index;
    PyObject *weak_references; // there are none where one is copied
#if PY_VERSION_HEX >= 0x030c0000
    void *state; // the module's
#endif
} tee;

typedef struct grouping {
    PyObject_HEAD
    PyObject *iterator, *function, *target_key, *key, *value;
    PyObject *group; // not owned: the one that may go on
#if PY_VERSION_HEX >= 0x030c0000
    void *state;
#endif
} grouping;

typedef struct group {
    PyObject_HEAD
    PyObject *groups, *target_key;
} group;

#if PY_VERSION_HEX >= 0x030c0000
typedef struct batching {
    PyObject_HEAD
    PyObject *iterator;
    Py_ssize_t length;
#if PY_VERSION_HEX >= 0x030d0000
    bool strict;
#endif
} batching;
#endif

typedef struct long_range {
    PyObject_HEAD
#if PY_VERSION_HEX < 0x030c0000
    PyObject *index;
#endif
    PyObject *start, *step, *length;
} long_range;

typedef struct range_iterator {
    PyObject_HEAD
#if PY_VERSION_HEX < 0x030c0000
    long index;
#endif
    long start, step, length;
} range_iterator;

// --- forms ---

typedef enum placing {
    PLACE_NOT,
    PLACE_DICT,
    PLACE_DICT_BACK,
    PLACE_SET,
    PLACE_ORDERED,
    PLACE_DEQUE,
    PLACE_DEQUE_BACK,
    PLACE_GROUP,
} placing;

enum { MOST_FIELDS = 5 };

// Offsets; 0 is none.
struct py_iterator_form {
    PyTypeObject *type;
    Py_ssize_t size;
    placing placing;
    Py_ssize_t result;                  // a tuple that is used again and again
    Py_ssize_t fields[MOST_FIELDS + 1]; // ends with 0
    Py_ssize_t row, row_length;         // a row of further fields
    Py_ssize_t row_used;                // how many of them are set: an int
    Py_ssize_t arrays[2];               // of numbers, in memory of their own
    Py_ssize_t lengths[2];              // of each: a tuple as long, or the length itself
    Py_ssize_t unowned;                 // a reference that is set by the one it refers to
    bool simple;                        // it gives items of what it holds, or numbers
};

enum { FORMS = 64 };
static py_iterator_form forms[FORMS];
static int form_count;

#define AT(struct_name, field) ((Py_ssize_t)offsetof(struct_name, field))

static py_iterator_form *add(PyTypeObject *type, size_t size, placing placing, Py_ssize_t result) {
    static py_iterator_form unknown;
    if (!type || type->tp_basicsize != (Py_ssize_t)size || type->tp_itemsize != 0)
        return memset(&unknown, 0, sizeof(unknown));
    assert(form_count < FORMS);
    py_iterator_form *f = &forms[form_count++];
    *f = (py_iterator_form){
        .type = type, .size = (Py_ssize_t)size, .placing = placing, .result = result};
    return f;
}

static int own_fields(const py_iterator_form *form);

static void field(py_iterator_form *f, Py_ssize_t offset) {
    int count = own_fields(f);
    assert(count < MOST_FIELDS);
    f->fields[count] = offset;
}

static void add_counting(PyTypeObject *type) {
    py_iterator_form *f = add(type, sizeof(counting), PLACE_NOT, 0);
    field(f, AT(counting, sequence));
    f->simple = type != &PyReversed_Type && type != &PySeqIter_Type; // these call __getitem__
}

static void add_two(PyTypeObject *type) {
    py_iterator_form *f = add(type, sizeof(two_parts), PLACE_NOT, 0);
    field(f, AT(two_parts, one));
    field(f, AT(two_parts, other));
}

static void add_telling(PyTypeObject *type) {
    py_iterator_form *f = add(type, sizeof(telling), PLACE_NOT, 0);
    field(f, AT(telling, function));
    field(f, AT(telling, iterator));
}

static void add_dict(PyTypeObject *type, placing placing) {
    field(add(type, sizeof(dict_iterator), placing, AT(dict_iterator, result)),
          AT(dict_iterator, dict));
}

static void add_deque(PyTypeObject *type, placing placing) {
    field(add(type, sizeof(deque_iterator), placing, 0), AT(deque_iterator, deque));
}

// --- finding the types ---

static PyTypeObject *named(PyObject *module, const char *name) {
    PyObject *found = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(found); // the module keeps it
    if (!found)
        PyErr_Clear();
    return found && PyType_Check(found) ? (PyTypeObject *)found : NULL;
}

static int add_text_iterator(const char *text) {
    PyObject *string = PyUnicode_FromString(text);
    PyObject *sample = string ? PyObject_GetIter(string) : NULL;
    if (sample)
        add_counting(Py_TYPE(sample));
    Py_XDECREF(string);
    Py_XDECREF(sample);
    return sample ? 0 : -1;
}

static void add_tables(void) {
    add_dict(&PyDictIterKey_Type, PLACE_DICT);
    add_dict(&PyDictIterValue_Type, PLACE_DICT);
    add_dict(&PyDictIterItem_Type, PLACE_DICT);
    add_dict(&PyDictRevIterKey_Type, PLACE_DICT_BACK);
    add_dict(&PyDictRevIterValue_Type, PLACE_DICT_BACK);
    add_dict(&PyDictRevIterItem_Type, PLACE_DICT_BACK);
    field(add(&PySetIter_Type, sizeof(set_iterator), PLACE_SET, 0), AT(set_iterator, set));
    py_iterator_form *f = add(&PyODictIter_Type, sizeof(ordered_iterator), PLACE_ORDERED,
                              AT(ordered_iterator, result));
    field(f, AT(ordered_iterator, dict));
    field(f, AT(ordered_iterator, current));
}

static void add_ranges(void) {
    add(&PyRangeIter_Type, sizeof(range_iterator), PLACE_NOT, 0)->simple = true;
    py_iterator_form *f = add(&PyLongRangeIter_Type, sizeof(long_range), PLACE_NOT, 0);
    f->simple = true;
#if PY_VERSION_HEX < 0x030c0000
    field(f, AT(long_range, index));
#endif
    field(f, AT(long_range, start));
    field(f, AT(long_range, step));
    field(f, AT(long_range, length));
}

static void add_builtins(void) {
    static PyTypeObject *const count[] = {
        &PyListIter_Type,    &PyTupleIter_Type, &PyBytesIter_Type, &PyByteArrayIter_Type,
        &PyListRevIter_Type, &PyReversed_Type,  &PySeqIter_Type};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(count); i++)
        add_counting(count[i]);
    add_two(&PyMap_Type);
    add_two(&PyFilter_Type);
    add_two(&PyCallIter_Type);
    py_iterator_form *f =
        add(&PyEnum_Type, sizeof(enumerating), PLACE_NOT, AT(enumerating, result));
    field(f, AT(enumerating, iterator));
    field(f, AT(enumerating, long_index));
    f->simple = true;
    f = add(&PyZip_Type, sizeof(zipping), PLACE_NOT, AT(zipping, result));
    field(f, AT(zipping, iterators));
}

static void add_wrapping_tools(PyObject *module) {
    static const char *const two[] = {"chain", "starmap", "compress", "filterfalse"};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(two); i++)
        add_two(named(module, two[i]));
    add_telling(named(module, "takewhile"));
    add_telling(named(module, "dropwhile"));
    py_iterator_form *f = add(named(module, "islice"), sizeof(slicing), PLACE_NOT, 0);
    field(f, AT(slicing, iterator));
    f->simple = true;
    f = add(named(module, "cycle"), sizeof(cycling), PLACE_NOT, 0);
    field(f, AT(cycling, iterator));
    field(f, AT(cycling, saved));
    f = add(named(module, "zip_longest"), sizeof(zipping_longest), PLACE_NOT,
            AT(zipping_longest, result));
    field(f, AT(zipping_longest, iterators));
    field(f, AT(zipping_longest, filler));
    f = add(named(module, "accumulate"), sizeof(accumulating), PLACE_NOT, 0);
    field(f, AT(accumulating, total));
    field(f, AT(accumulating, iterator));
    field(f, AT(accumulating, function));
    field(f, AT(accumulating, initial));
    Py_ssize_t result = 0;
#if PY_VERSION_HEX >= 0x030d0000
    result = AT(pairing, result);
#endif
    f = add(named(module, "pairwise"), sizeof(pairing), PLACE_NOT, result);
    field(f, AT(pairing, iterator));
    field(f, AT(pairing, old));
}

static py_iterator_form *add_choosing(PyTypeObject *type) {
    py_iterator_form *f = add(type, sizeof(choosing_some), PLACE_NOT, 0);
    field(f, AT(choosing_some, pool));
    field(f, AT(choosing_some, result));
    f->arrays[0] = AT(choosing_some, indices);
    f->lengths[0] = AT(choosing_some, length);
    return f;
}

static void add_choosing_tools(PyObject *module) {
    add_choosing(named(module, "combinations"));
    add_choosing(named(module, "combinations_with_replacement"));
    py_iterator_form *f = add(named(module, "product"), sizeof(choosing), PLACE_NOT, 0);
    field(f, AT(choosing, pool));
    field(f, AT(choosing, result));
    f->arrays[0] = AT(choosing, indices);
    f->lengths[0] = AT(choosing, pool);
    f = add(named(module, "permutations"), sizeof(permuting), PLACE_NOT, 0);
    field(f, AT(permuting, pool));
    field(f, AT(permuting, result));
    f->arrays[0] = AT(permuting, indices);
    f->lengths[0] = AT(permuting, pool);
    f->arrays[1] = AT(permuting, cycles);
    f->lengths[1] = AT(permuting, length);
}

static void add_sharing_tools(PyObject *module) {
    field(add(named(module, "_tee"), sizeof(tee), PLACE_NOT, 0), AT(tee, link));
    py_iterator_form *f = add(named(module, "_tee_dataobject"), sizeof(tee_link), PLACE_NOT, 0);
    field(f, AT(tee_link, iterator));
    field(f, AT(tee_link, next));
    f->row = AT(tee_link, items);
    f->row_length = TEE_LINK;
    f->row_used = AT(tee_link, read);
    f = add(named(module, "groupby"), sizeof(grouping), PLACE_NOT, 0);
    field(f, AT(grouping, iterator));
    field(f, AT(grouping, function));
    field(f, AT(grouping, target_key));
    field(f, AT(grouping, key));
    field(f, AT(grouping, value));
    f->unowned = AT(grouping, group);
    f = add(named(module, "_grouper"), sizeof(group), PLACE_GROUP, 0);
    field(f, AT(group, groups));
    field(f, AT(group, target_key));
}

static void add_endless_tools(PyObject *module) {
    py_iterator_form *f = add(named(module, "repeat"), sizeof(repeating), PLACE_NOT, 0);
    field(f, AT(repeating, item));
    f->simple = true;
    f = add(named(module, "count"), sizeof(counting_up), PLACE_NOT, 0);
    f->simple = true;
    field(f, AT(counting_up, long_at));
    field(f, AT(counting_up, step));
#if PY_VERSION_HEX >= 0x030c0000
    field(add(named(module, "batched"), sizeof(batching), PLACE_NOT, 0), AT(batching, iterator));
#endif
}

static int setup(void) {
    PyObject *tools = PyImport_ImportModule("itertools");
    PyObject *collections = tools ? PyImport_ImportModule("_collections") : NULL;
    int done = collections ? 0 : -1;
    form_count = 0;
    if (done == 0)
        done = add_text_iterator("a");
    if (done == 0)
        done = add_text_iterator("\xc3\xa4");
    if (done == 0) {
        add_tables();
        add_ranges();
        add_builtins();
        add_wrapping_tools(tools);
        add_choosing_tools(tools);
        add_sharing_tools(tools);
        add_endless_tools(tools);
        add_deque(named(collections, "_deque_iterator"), PLACE_DEQUE);
        add_deque(named(collections, "_deque_reverse_iterator"), PLACE_DEQUE_BACK);
    } else {
        form_count = 0;
    }
    Py_XDECREF(tools);
    Py_XDECREF(collections);
    return done;
}

static const py_iterator_form *form_of_type(const PyTypeObject *type) {
    for (int i = 0; i < form_count; i++) {
        if (forms[i].type == type)
            return &forms[i];
    }
    return NULL;
}

const py_iterator_form *py_iterator_form_of(PyObject *iterator) {
    if (form_count == 0 && setup() < 0)
        return NULL;
    return form_of_type(Py_TYPE(iterator));
}

// --- fields ---

static int own_fields(const py_iterator_form *form) {
    int count = 0;
    while (form->fields[count] != 0)
        count++;
    return count;
}

int py_iterator_fields(const py_iterator_form *form) {
    return own_fields(form) + (int)form->row_length;
}

static PyObject **place_at(const void *start, Py_ssize_t offset) {
    return (PyObject **)((char *)start + offset);
}

static PyObject **field_at(const py_iterator_form *form, const void *start, int index) {
    int own = own_fields(form);
    return index < own ? place_at(start, form->fields[index])
                       : place_at(start, form->row) + (index - own);
}

PyObject *py_iterator_field(const py_iterator_form *form, PyObject *iterator, int index) {
    int own = own_fields(form);
    if (index >= own && index - own >= *(int *)place_at(iterator, form->row_used))
        return NULL; // never set
    return *field_at(form, iterator, index);
}

// A product's, combination's or permutation's array is as long as a tuple, or as a number says.
static Py_ssize_t array_length(const py_iterator_form *form, PyObject *iterator, int index) {
    if (form->arrays[index] == 0)
        return 0;
    for (int i = 0; form->fields[i] != 0; i++) {
        if (form->fields[i] == form->lengths[index])
            return PyTuple_GET_SIZE(*place_at(iterator, form->lengths[index]));
    }
    return *(Py_ssize_t *)place_at(iterator, form->lengths[index]);
}

// What is kept of an iterator besides its fields. The struct follows with references as zero, then
// the arrays.
typedef struct numbers {
    Py_ssize_t result; // the length of the tuple for results, -1: it has none
    Py_ssize_t lengths[2];
    char rest[];
} numbers;

static void forget_references(const py_iterator_form *form, char *copy) {
    for (int i = 0; i < py_iterator_fields(form); i++)
        *field_at(form, copy, i) = NULL;
    const Py_ssize_t others[] = {form->result, form->arrays[0], form->arrays[1], form->unowned};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(others); i++) {
        if (others[i] != 0)
            *place_at(copy, others[i]) = NULL;
    }
}

PyObject *py_iterator_numbers(const py_iterator_form *form, PyObject *iterator) {
    PyObject *result = form->result ? *place_at(iterator, form->result) : NULL;
    numbers n = {.result = result ? PyTuple_GET_SIZE(result) : -1};
    for (int i = 0; i < 2; i++)
        n.lengths[i] = array_length(form, iterator, i);
    Py_ssize_t size = (Py_ssize_t)sizeof(numbers) + form->size +
                      (n.lengths[0] + n.lengths[1]) * (Py_ssize_t)sizeof(Py_ssize_t);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, size);
    if (!bytes)
        return NULL;
    char *to = PyBytes_AS_STRING(bytes);
    memcpy(to, &n, sizeof(numbers));
    to += sizeof(numbers);
    memcpy(to, iterator, (size_t)form->size);
    memset(to, 0, sizeof(PyObject)); // its count of references is none of its state
    forget_references(form, to);
    to += form->size;
    for (int i = 0; i < 2; i++) {
        size_t length = (size_t)n.lengths[i] * sizeof(Py_ssize_t);
        if (length > 0)
            memcpy(to, *place_at(iterator, form->arrays[i]), length);
        to += length;
    }
    return bytes;
}

// CPython gives out the tuple for results as long as nobody else has it.
static PyObject *new_result(Py_ssize_t length) {
    PyObject *result = PyTuple_New(length);
    for (Py_ssize_t i = 0; result && i < length; i++)
        PyTuple_SET_ITEM(result, i, Py_NewRef(Py_None));
    return result;
}

PyObject *py_iterator_new(PyTypeObject *type) {
    return PyType_GenericAlloc(type, 0);
}

// What has memory of its own; all or nothing. Arrays are CPython's even if they are empty.
static int new_parts(const py_iterator_form *form, const numbers *n, PyObject **result,
                     void *arrays[2]) {
    const char *from = n->rest + form->size;
    *result = n->result >= 0 ? new_result(n->result) : NULL;
    bool failed = n->result >= 0 && !*result;
    for (int i = 0; i < 2; i++) {
        size_t length = (size_t)n->lengths[i] * sizeof(Py_ssize_t);
        arrays[i] = form->arrays[i] && !failed ? PyMem_Malloc(length) : NULL;
        if (form->arrays[i] && !arrays[i])
            failed = true;
        else if (length > 0)
            memcpy(arrays[i], from, length);
        from += length;
    }
    if (!failed)
        return 0;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    Py_CLEAR(*result);
    PyMem_Free(arrays[0]);
    PyMem_Free(arrays[1]);
    return -1;
}

int py_iterator_fill(PyObject *iterator, PyObject *const *fields, PyObject *bytes) {
    const py_iterator_form *form = form_of_type(Py_TYPE(iterator));
    const numbers *n = (const numbers *)PyBytes_AS_STRING(bytes);
    PyObject *result, *unowned = form->unowned ? *place_at(iterator, form->unowned) : NULL;
    void *arrays[2];
    if (new_parts(form, n, &result, arrays) < 0)
        return -1;
    memcpy((char *)iterator + sizeof(PyObject), n->rest + sizeof(PyObject),
           (size_t)form->size - sizeof(PyObject));
    if (form->result)
        *place_at(iterator, form->result) = result;
    if (form->unowned)
        *place_at(iterator, form->unowned) = unowned;
    for (int i = 0; i < 2; i++) {
        if (form->arrays[i])
            *place_at(iterator, form->arrays[i]) = arrays[i];
    }
    for (int i = 0; i < py_iterator_fields(form); i++)
        *field_at(form, iterator, i) = Py_XNewRef(fields[i]);
    return 0;
}

bool py_iterator_is_simple(const py_iterator_form *form) {
    return form->simple;
}

void py_iterator_move(const py_iterator_form *form, PyObject *iterator, PyObject *const *fields,
                      PyObject *bytes, PyObject **old) {
    const numbers *n = (const numbers *)PyBytes_AS_STRING(bytes);
    PyObject *result = form->result ? *place_at(iterator, form->result) : NULL;
    for (int i = 0; i < py_iterator_fields(form); i++)
        old[i] = *field_at(form, iterator, i);
    memcpy((char *)iterator + sizeof(PyObject), n->rest + sizeof(PyObject),
           (size_t)form->size - sizeof(PyObject));
    if (form->result)
        *place_at(iterator, form->result) = result; // the tuple for results is used again
    for (int i = 0; i < py_iterator_fields(form); i++)
        *field_at(form, iterator, i) = Py_XNewRef(fields[i]);
}

// --- places ---

bool py_iterator_is_placed(const py_iterator_form *form) {
    return form->placing != PLACE_NOT;
}

// Entries of a dict are numbered; `at` is the next one's number.
static Py_ssize_t dict_steps(const dict_iterator *it, bool back) {
    Py_ssize_t at = 0, steps = 0;
    PyObject *dict = (PyObject *)it->dict;
    if (it->used != PyDict_GET_SIZE(dict))
        return -1;
    while (PyDict_Next(dict, &at, NULL, NULL))
        steps += back ? at - 1 > it->at : at <= it->at;
    return steps + it->left == it->used ? steps : -1;
}

static void place_in_dict(dict_iterator *it, Py_ssize_t steps, bool back) {
    PyObject *dict = (PyObject *)it->dict;
    Py_ssize_t at = 0, used = PyDict_GET_SIZE(dict);
    Py_ssize_t before = back ? used - steps : steps;
    for (Py_ssize_t i = 0; i < before && PyDict_Next(dict, &at, NULL, NULL); i++)
        continue;
    it->used = used;
    it->at = back ? at - 1 : at;
    it->left = used - steps;
}

static Py_ssize_t set_steps(const set_iterator *it) {
    Py_ssize_t at = 0, steps = 0;
    PyObject *key;
    Py_hash_t hash;
    if (it->used != it->set->used)
        return -1;
    while (_PySet_NextEntry((PyObject *)it->set, &at, &key, &hash))
        steps += at <= it->at;
    return steps + it->left == it->used ? steps : -1;
}

static void place_in_set(set_iterator *it, Py_ssize_t steps) {
    Py_ssize_t at = 0;
    PyObject *key;
    Py_hash_t hash;
    for (Py_ssize_t i = 0; i < steps; i++)
        _PySet_NextEntry((PyObject *)it->set, &at, &key, &hash);
    it->used = it->set->used;
    it->at = at;
    it->left = it->used - steps;
}

// The key that comes next says the place.
static Py_ssize_t ordered_steps(const ordered_iterator *it) {
    const ordered_dict *d = (ordered_dict *)it->dict;
    return it->state == d->state && it->size == d->dict.ma_used ? 0 : -1;
}

static void place_in_ordered(ordered_iterator *it) {
    const ordered_dict *d = (ordered_dict *)it->dict;
    it->state = d->state;
    it->size = d->dict.ma_used;
}

static Py_ssize_t deque_steps(const deque_iterator *it) {
    return it->state == it->deque->state ? Py_SIZE(it->deque) - it->left : -1;
}

// As dequeiter_next and dequereviter_next go on.
static void place_in_deque(deque_iterator *it, Py_ssize_t steps, bool back) {
    const deque *d = it->deque;
    it->block = back ? d->rightmost : d->leftmost;
    it->index = back ? d->right_index : d->left_index;
    it->state = d->state;
    it->left = Py_SIZE(d);
    for (; steps > 0 && it->left > 0; steps--) {
        it->left--;
        it->index += back ? -1 : 1;
        if (it->left == 0)
            break;
        if (!back && it->index == DEQUE_BLOCK) {
            it->block = it->block->right;
            it->index = 0;
        } else if (back && it->index < 0) {
            it->block = it->block->left;
            it->index = DEQUE_BLOCK - 1;
        }
    }
}

// Of groupby's groups only the last one goes on; groupby knows it without owning it.
static Py_ssize_t group_steps(const group *g) {
    return ((grouping *)g->groups)->group == (PyObject *)g;
}

static void place_group(group *g, bool last) {
    if (last)
        ((grouping *)g->groups)->group = (PyObject *)g;
}

Py_ssize_t py_iterator_steps(const py_iterator_form *form, PyObject *iterator) {
    switch (form->placing) {
    case PLACE_DICT:
    case PLACE_DICT_BACK:
        return dict_steps((dict_iterator *)iterator, form->placing == PLACE_DICT_BACK);
    case PLACE_SET:
        return set_steps((set_iterator *)iterator);
    case PLACE_ORDERED:
        return ordered_steps((ordered_iterator *)iterator);
    case PLACE_DEQUE:
    case PLACE_DEQUE_BACK:
        return deque_steps((deque_iterator *)iterator);
    case PLACE_GROUP:
        return group_steps((group *)iterator);
    default:
        return 0;
    }
}

void py_iterator_place(PyObject *iterator, Py_ssize_t steps) {
    const py_iterator_form *form = form_of_type(Py_TYPE(iterator));
    switch (form->placing) {
    case PLACE_DICT:
    case PLACE_DICT_BACK:
        place_in_dict((dict_iterator *)iterator, steps, form->placing == PLACE_DICT_BACK);
        break;
    case PLACE_SET:
        place_in_set((set_iterator *)iterator, steps);
        break;
    case PLACE_ORDERED:
        place_in_ordered((ordered_iterator *)iterator);
        break;
    case PLACE_DEQUE:
    case PLACE_DEQUE_BACK:
        place_in_deque((deque_iterator *)iterator, steps, form->placing == PLACE_DEQUE_BACK);
        break;
    case PLACE_GROUP:
        place_group((group *)iterator, steps > 0);
        break;
    default:
        break;
    }
}

size_t py_deque_state(PyObject *o) {
    return ((deque *)o)->state;
}

size_t py_ordered_state(PyObject *o) {
    return ((ordered_dict *)o)->state;
}
