// The guard pass: does loads and checks in order, up to the first that fails. Nothing here runs
// Python code, so all references may be borrowed.
#include "src/base/mutant.h"

#include "src/py/raw.h"

#include "src/guard/guard.h"
#include "src/guard/death.h"
#include "src/guard/expression.h"
#include "src/guard/program.h"
#include "src/guard/stale.h"
#include "src/guard/value.h"

PyObject *guard_any;

int guard_setup(void) {
    static bool done;
    if (done)
        return 0;
    if (raw_setup() < 0 || death_setup() < 0 || expression_setup() < 0)
        return -1;
    if (!guard_any && !(guard_any = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type)))
        return -1;
    done = true;
    return 0;
}

int guard_registers(const guard_program *p) {
    return p->registers;
}

bool guard_dead(const guard_program *p) {
    return atomic_load_explicit(&p->dead, memory_order_relaxed) != 0;
}

// --- loads ---

static PyObject *load_local(const guard_frame *f, Py_ssize_t index) {
    f = guard_frame_at(f, guard_slot_level(index));
    index = guard_slot_number(index);
    return f && index < f->count ? py_slot_get(&f->slots[index]) : NULL;
}

static PyObject *load_caller(const guard_frame *f, Py_ssize_t index) {
    f = guard_frame_at(f, (int)index + 1);
    return f ? f->function : NULL;
}

static PyObject *load_expression(const step *s, guard_frame *f, PyObject *const *regs) {
    number value;
    return expression_value(s->object, regs, &value) ? source_keep_number(value, &f->kept) : NULL;
}

PyObject *step_load(const step *s, guard_frame *f, PyObject *const *regs) {
    PyObject *parent = s->a >= 0 ? regs[s->a] : NULL, *value;
    if (s->op == SOURCE_LOCAL)
        return load_local(f, s->index);
    if (s->op == SOURCE_FUNCTION)
        return f->function;
    if (s->op == SOURCE_CALLER)
        return load_caller(f, s->index);
    if (s->op == SOURCE_HANDLED)
        return f->handled;
    if (s->op == SOURCE_EXPR)
        return load_expression(s, f, regs);
    if (!parent && s->op != SOURCE_FIXED)
        return NULL;
    switch (s->op) {
    case SOURCE_ATTR: // these few are most of what there is
        return raw_attr_get_near(parent, s->object, &step_memo(s)->hint, &value) == RAW_FOUND
                   ? value
                   : NULL;
    case SOURCE_LIST_ITEM:
        return read_list_item(parent, s->index);
    case SOURCE_TUPLE_ITEM:
        return read_tuple_item(parent, s->index);
    case SOURCE_ITEM:
        if (PyUnicode_CheckExact(s->object))
            return raw_dict_get_near(parent, s->object, &step_memo(s)->hint, &value) == RAW_FOUND
                       ? value
                       : NULL;
        break;
    default:
        break;
    }
    return source_read_near((source_kind)s->op, parent, s->object, s->index, &f->kept,
                            step_memo(s));
}

// --- checks ---

static bool check_expression(const step *s, PyObject *const *regs) {
    number value;
    return expression_value(s->object, regs, &value) && value.kind == NUMBER_BOOL &&
           value.hint.i != 0;
}

static bool is_item(const step *s, Py_ssize_t i, PyObject *o) {
    return s->items[i] == guard_any || value_same_key(o, s->items[i]);
}

static __attribute__((noinline)) bool check_keys_anew(const step *s, PyObject *o,
                                                      uint64_t version) {
    Py_ssize_t count = s->index, i = 0;
    PyObject *key, *value;
    for (raw_cursor c = {0}; raw_dict_next(o, &c, &key, &value); i++)
        if (i == count || !value || !is_item(s, i, key))
            return false;
    raw_hint_set(&step_memo(s)->hint, (Py_ssize_t)version);
    return i == count;
}

static inline bool check_keys(const step *s, PyObject *o) {
    if (!PyDict_Check(o) || PyDict_GET_SIZE(o) != s->index)
        return false;
    uint64_t version = PyODict_Check(o) ? 0 : raw_dict_version(o);
    bool known = version != 0 && (Py_ssize_t)version == raw_hint_get(&step_memo(s)->hint);
    return known || check_keys_anew(s, o, version);
}

static bool check_set_items(const step *s, PyObject *o) {
    Py_ssize_t count = s->index, at = 0, i = 0;
    PyObject *item;
    if (!PyAnySet_Check(o) || PySet_GET_SIZE(o) != count)
        return false;
    for (; raw_set_next(o, &at, &item); i++)
        if (i == count || !is_item(s, i, item))
            return false;
    return i == count;
}

static __attribute__((noinline)) bool check_absent(const step *s, PyObject *o) {
    PyObject *value;
    return PyDict_Check(o) &&
           raw_dict_get_near(o, s->object, &step_memo(s)->hint, &value) == RAW_ABSENT;
}

static __attribute__((noinline)) bool check_key_in(const step *s, PyObject *o, PyObject *other,
                                                   raw expected) {
    PyObject *key = PyDict_Check(o) ? raw_dict_key(o, s->index) : NULL, *value;
    return key && PyLong_CheckExact(key) && PyDict_Check(other) &&
           raw_dict_get(other, key, &value) == expected;
}

static __attribute__((noinline)) bool check_no_attr(const step *s, PyObject *o) {
    PyObject *value;
    return raw_attr_get_near(o, s->object, &step_memo(s)->hint, &value) == RAW_ABSENT;
}

// Set and undo gives a class another version for good, so a version is only a memo of the lookup.
static __attribute__((noinline)) bool check_lookup_again(const step *s, PyTypeObject *type) {
    PyObject *value;
    if (raw_type_get(type, s->object, &value) == RAW_UNSURE || value != s->second)
        return false;
    raw_hint_set(&step_memo(s)->hint, raw_type_version_make(type, s->object));
    return true;
}

static inline bool check_type_lookup(const step *s, PyObject *o) {
    if (!PyType_Check(o))
        return false;
    unsigned version = raw_type_version((PyTypeObject *)o);
    if (version != 0 && (Py_ssize_t)version == raw_hint_get(&step_memo(s)->hint))
        return true;
    return check_lookup_again(s, (PyTypeObject *)o);
}

static bool check_mro(const step *s, PyObject *o) {
    PyObject *mro = PyType_Check(o) ? ((PyTypeObject *)o)->tp_mro : NULL;
    if (!mro || PyTuple_GET_SIZE(mro) != s->index)
        return false;
    for (Py_ssize_t i = 0; i < s->index; i++)
        if (PyTuple_GET_ITEM(mro, i) != s->items[i])
            return false;
    return true;
}

static bool check_bytes(const step *s, PyObject *o) {
    return PyByteArray_Check(o) && PyByteArray_GET_SIZE(o) == PyBytes_GET_SIZE(s->object) &&
           memcmp(PyByteArray_AS_STRING(o), PyBytes_AS_STRING(s->object),
                  (size_t)PyBytes_GET_SIZE(s->object)) == 0;
}

static bool check_type_slot(const step *s, PyObject *o) {
    if (!PyType_Check(o))
        return false;
    bool heap = ((PyTypeObject *)o)->tp_flags & Py_TPFLAGS_HEAPTYPE;
    size_t size = heap ? sizeof(PyHeapTypeObject) : sizeof(PyTypeObject);
    if (s->index < 0 || (size_t)s->index > size - sizeof(void *))
        return false;
    void *now;
    memcpy(&now, (char *)o + s->index, sizeof(now));
    return now == s->slot;
}

static bool check_bound(const step *s, const guard_frame *f) {
    f = guard_frame_at(f, (int)s->index);
    if (!f || !PyBytes_Check(s->object) || PyBytes_GET_SIZE(s->object) != f->count)
        return false;
    const char *bound = PyBytes_AS_STRING(s->object);
    for (Py_ssize_t i = 0; i < f->count; i++)
        if (bound[i] != (py_slot_get(&f->slots[i]) != NULL))
            return false;
    return true;
}

static bool distinct_few(const guard_program *p, PyObject *const *regs) {
    for (int32_t i = 1; i < p->distinct_count; i++)
        for (int32_t j = 0; j < i; j++)
            if (regs[p->distinct[i]] == regs[p->distinct[j]])
                return false;
    return true;
}

enum { SLOTS_ON_STACK = 1024 };

// A hash table that lasts for one pass.
static bool distinct_many(const guard_program *p, PyObject *const *regs) {
    PyObject *here[SLOTS_ON_STACK], **slots = here;
    uint32_t room = (uint32_t)1 << p->distinct_bits;
    bool distinct = true;
    if (room > SLOTS_ON_STACK && !(slots = PyMem_Malloc(room * sizeof(PyObject *))))
        return distinct_few(p, regs);
    memset(slots, 0, room * sizeof(PyObject *));
    for (int32_t i = 0; distinct && i < p->distinct_count; i++) {
        PyObject *o = regs[p->distinct[i]];
        uint64_t at = (uintptr_t)o * UINT64_C(0x9E3779B97F4A7C15) >> (64 - p->distinct_bits);
        while (slots[at] && slots[at] != o)
            at = (at + 1) & (room - 1);
        distinct = !slots[at];
        slots[at] = o;
    }
    if (slots != here)
        PyMem_Free(slots);
    return distinct;
}

static bool check_distinct(const guard_program *p, PyObject *const *regs) {
    return p->distinct_bits > 0 ? distinct_many(p, regs) : distinct_few(p, regs);
}

static inline bool step_check(const guard_program *p, const step *s, const guard_frame *f,
                              PyObject *const *regs) {
    PyObject *o = s->a >= 0 ? regs[s->a] : NULL;
    switch (s->op - STEP_CHECK) {
    case GUARD_TYPE:
        return (PyObject *)Py_TYPE(o) == s->object;
    case GUARD_IS:
        return o == s->object;
    case GUARD_IS_NOT:
        return o != s->object;
    case GUARD_SAME:
        return o == regs[s->b];
    case GUARD_NOT_SAME:
        return o != regs[s->b];
    case GUARD_VALUE:
        return o == s->object || value_same(o, s->object);
    case GUARD_LENGTH:
        return raw_length(o) == s->index;
    case GUARD_EMPTY:
        return s->index ? raw_length(o) == 0 : raw_length(o) > 0;
    case GUARD_KEYS:
        return check_keys(s, o);
    case GUARD_ATTR_NAMES:
        return raw_attr_names_are(o, s->object, value_same_key);
    case GUARD_ABSENT:
        return check_absent(s, o);
    case GUARD_HAS_KEY:
        return check_key_in(s, o, regs[s->b], RAW_FOUND);
    case GUARD_LACKS_KEY:
        return check_key_in(s, o, regs[s->b], RAW_ABSENT);
    case GUARD_NO_ATTR:
        return check_no_attr(s, o);
    case GUARD_TYPE_LOOKUP:
        return check_type_lookup(s, o);
    case GUARD_MRO:
        return check_mro(s, o);
    case GUARD_CODE:
        return PyFunction_Check(o) && ((PyFunctionObject *)o)->func_code == s->object;
    case GUARD_SET_ITEMS:
        return check_set_items(s, o);
    case GUARD_BYTES:
        return check_bytes(s, o);
    case GUARD_TYPE_FLAGS:
        return check_type_slot(s, o);
    case GUARD_DISTINCT:
        return check_distinct(p, regs);
    case GUARD_BOUND:
        return check_bound(s, f);
    case GUARD_EXPR:
        return check_expression(s, regs);
    case GUARD_CUSTOM:
        return s->custom->check(o, s->data);
    default:
        return false;
    }
}

static inline bool pass_load(const guard_program *p, const step *s, guard_frame *f,
                             PyObject **regs) {
    PyObject *value = step_load(s, f, regs);
#ifdef STATOR_FAULT
    if (mutant_of(MUTANT_SOURCE, (size_t)s->op))
        value = stale_load(p, s, value);
#else
    (void)p;
#endif
    regs[s->b] = value;
    return value != NULL;
}

// As mutants count: first the kinds, then the checks of later rooms.
static inline size_t mutant_row(const step *s) {
    size_t kind = (size_t)(s->op - STEP_CHECK);
#ifdef STATOR_FAULT
    if (kind == GUARD_CUSTOM)
        return GUARD_COUNT + (size_t)custom_row(s->custom);
#endif
    return kind;
}

static inline bool pass_check(const guard_program *p, const step *s, const guard_frame *f,
                              PyObject *const *regs) {
    return mutant_of(MUTANT_GUARD, mutant_row(s)) || step_check(p, s, f, regs);
}

bool step_passes(const guard_program *p, const step *s, guard_frame *f, PyObject **regs) {
    return step_is_load(s) ? pass_load(p, s, f, regs) : pass_check(p, s, f, regs);
}

bool guard_check(const guard_program *p, guard_frame *f, PyObject **regs, int *failed) {
    if (UNLIKELY(guard_dead(p))) {
        *failed = p->dead - 1;
        return false;
    }
    for (const step *s = p->steps, *end = s + p->count; s < end; s++) {
        bool passed = step_is_load(s) ? pass_load(p, s, f, regs) : pass_check(p, s, f, regs);
        if (UNLIKELY(!passed)) {
            *failed = (int)(s - p->steps);
            return false;
        }
    }
    return true;
}

// --- all that fails ---

// An int of 64 bits or a float, and no object of a subclass.
static bool is_number(PyObject *o) {
    number n;
    return number_from_object(o, &n) && n.kind != NUMBER_BOOL;
}

guard_parts guard_parts_of(PyObject *value) {
    if (PyTuple_CheckExact(value))
        return (guard_parts){SOURCE_TUPLE_ITEM, &PyTuple_GET_ITEM(value, 0),
                             PyTuple_GET_SIZE(value)};
    if (PySlice_Check(value))
        return (guard_parts){SOURCE_SLICE_FIELD, &((PySliceObject *)value)->start, 3};
    return (guard_parts){0};
}

// The bits of a number that has become another one of its type; 0 for anything else.
static unsigned number_misfit(PyObject *then, PyObject *now) {
    if (Py_TYPE(then) != Py_TYPE(now) || !is_number(then) || !is_number(now))
        return 0;
    return GUARD_OPEN_VALUE | (PyFloat_CheckExact(now) ? GUARD_OPEN_FLOAT : 0);
}

// Whether a check fails, and which numbers of what it looks at make it fail. (Those in a tuple or
// slice have places of their own.)
static bool is_misfit(const guard_program *p, const step *s, const guard_frame *f,
                      PyObject *const *regs, unsigned *open) {
    PyObject *o = s->a >= 0 ? regs[s->a] : NULL;
    *open = 0;
    if (s->op == STEP_CHECK + GUARD_CUSTOM && s->custom->misfit)
        return s->custom->misfit(o, s->data, open);
    if (pass_check(p, s, f, regs))
        return false;
    if (s->op == STEP_CHECK + GUARD_VALUE)
        *open = number_misfit(s->object, o);
    return true;
}

unsigned guard_open_bits(PyObject *places, PyObject *place) {
    PyObject *bits = places ? PyDict_GetItemWithError(places, place) : NULL;
    return bits ? (unsigned)PyLong_AsUnsignedLongMask(bits) : 0;
}

status guard_open_set(PyObject *places, PyObject *place, unsigned bits) {
    if (!bits && !PyDict_Contains(places, place))
        return ST_OK;
    if (!bits)
        return PyDict_DelItem(places, place) < 0 ? ST_ERROR : ST_OK;
    PyObject *all = PyLong_FromUnsignedLong(bits);
    int failed = all ? PyDict_SetItem(places, place, all) : -1;
    Py_XDECREF(all);
    return failed < 0 ? ST_ERROR : ST_OK;
}

status guard_open_add(PyObject **places, PyObject *place, unsigned bits) {
    if (!*places && !(*places = PyDict_New()))
        return ST_ERROR;
    return guard_open_set(*places, place, guard_open_bits(*places, place) | bits);
}

static status note_place(const guard_program *p, int32_t reg, unsigned open, PyObject **places) {
    PyObject *text = register_text(p, reg);
    status done = text ? guard_open_add(places, text, open) : ST_ERROR;
    Py_XDECREF(text);
    return done;
}

static status note_numbers(PyObject *text, PyObject *then, PyObject *now, guard_misfits *m);

static status note_parts(PyObject *text, guard_parts then, guard_parts now, guard_misfits *m) {
    for (Py_ssize_t i = 0; i < then.count; i++) {
        PyObject *part = source_text_of(then.kind, text, NULL, i);
        status done = part ? note_numbers(part, then.items[i], now.items[i], m) : ST_ERROR;
        Py_XDECREF(part);
        TRY(done);
    }
    return ST_OK;
}

// In which numbers a value differs from an earlier one.
static status note_numbers(PyObject *text, PyObject *then, PyObject *now, guard_misfits *m) {
    if (value_same(then, now))
        return ST_OK;
    unsigned open = number_misfit(then, now);
    m->count += open != 0;
    if (open)
        return guard_open_add(&m->places, text, open);
    guard_parts before = guard_parts_of(then), after = guard_parts_of(now);
    bool alike = Py_TYPE(then) == Py_TYPE(now) && before.items && before.count == after.count;
    m->numbers &= alike;
    return alike ? note_parts(text, before, after, m) : ST_OK;
}

// What a step looks at is not there, or a check of it failed: steps that rely on it may not be run.
// Checks of later rooms, and expressions, look at more than their registers.
static bool is_lost(const step *s, PyObject *const *regs, bool failed) {
    bool load = step_is_load(s), many = !load && (s->a < 0 || s->op >= STEP_CHECK + GUARD_DISTINCT);
    return (failed && many) || (s->a >= 0 && !regs[s->a]) || (!load && s->b >= 0 && !regs[s->b]);
}

static void lose(const step *s, PyObject **regs) {
    if (!step_is_load(s) && s->a >= 0)
        regs[s->a] = NULL;
    if (s->b >= 0)
        regs[s->b] = NULL;
}

static status note_values(const guard_program *p, const step *s, PyObject **regs,
                          guard_misfits *m) {
    bool before = m->numbers;
    PyObject *text = register_text(p, s->a);
    m->numbers = true;
    status done = text ? note_numbers(text, s->object, regs[s->a], m) : ST_ERROR;
    if (!m->numbers)
        lose(s, regs);
    m->numbers &= before;
    Py_XDECREF(text);
    return done;
}

static bool compares_parts(const step *s) {
    return s->op == STEP_CHECK + GUARD_VALUE && guard_parts_of(s->object).items;
}

// A number that differs keeps no later step from being run: no place hangs from its value.
static status note_misfit(const guard_program *p, const step *s, PyObject **regs, unsigned open,
                          guard_misfits *m) {
    int numbers = __builtin_popcount(open & ~(unsigned)GUARD_OPEN_FLOAT);
    m->count += numbers > 0 ? numbers : 1;
    if (open)
        return note_place(p, s->a, open, &m->places);
    m->numbers = false;
    lose(s, regs);
    return ST_OK;
}

static status find_misfits(const guard_program *p, guard_frame *f, PyObject **regs,
                           guard_misfits *m) {
    memset(regs, 0, sizeof(*regs) * (size_t)p->registers);
    for (const step *s = p->steps, *end = s + p->count; s < end; s++) {
        unsigned open = 0;
        bool load = step_is_load(s);
        if (is_lost(s, regs, !m->numbers)) {
            if (load)
                lose(s, regs);
        } else if (load ? pass_load(p, s, f, regs) : !is_misfit(p, s, f, regs, &open)) {
            continue;
        } else if (!load && compares_parts(s)) {
            TRY(note_values(p, s, regs, m));
        } else {
            TRY(note_misfit(p, s, regs, open, m));
        }
    }
    return ST_OK;
}

status guard_find_misfits(const guard_program *p, guard_frame *f, PyObject **regs,
                          guard_misfits *found) {
    *found = (guard_misfits){.numbers = !guard_dead(p), .places = PyDict_New()};
    if (!found->places)
        return ST_ERROR;
    bool collecting = raw_gc_off(); // registers are borrowed
    status done = guard_dead(p) ? ST_OK : find_misfits(p, f, regs, found);
    raw_gc_restore(collecting);
    if (done != ST_OK)
        Py_CLEAR(found->places);
    return done;
}
