// Turns the raw bytes of a code object into canonical instructions and exception regions, checks
// every index in them, and keeps the result in the code object's extra slot.
#include "src/py/codeobject.h"
#include "src/py/opcodes.h"

#include "src/code/code.h"
#include "src/code/flow.h"

// More of anything than a code object could hold; keeps sums of counts within an int.
enum { MANY = 1 << 24 };

typedef struct row {
    uint8_t shape; // a raw_shape
    uint8_t number;
    uint8_t op;
    uint8_t second; // of a pair
} row;

#define ROW_BAD [0] = {0, 0, 0, 0}

static const row rows[256] = {
    ROW_BAD,
#define RAW(raw, shape, number, op) [raw] = {RAW_##shape, number, OP_##op, 0},
#define PAIR(raw, first, second) [raw] = {RAW_PAIR, 0, OP_##first, OP_##second},
#include "src/py/raw_opcodes.def"
};

static const row unary_rows[PY_UNARY_COUNT] = {
    ROW_BAD,
#define UNARY(raw, number, op) [raw] = {RAW_NONE, number, OP_##op, 0},
#include "src/py/raw_opcodes.def"
};

static const row binary_rows[PY_BINARY_COUNT] = {
    ROW_BAD,
#define BINARY(raw, number, op) [raw] = {RAW_NONE, number, OP_##op, 0},
#include "src/py/raw_opcodes.def"
};

typedef struct decoder {
    code *c;
    const uint8_t *bytes;
    uint32_t unit;               // the next to read
    int32_t bound[ARG_JUMP + 1]; // per kind of argument: one more than the highest
} decoder;

// One raw instruction with all that belongs to it.
typedef struct raw {
    const row *row;
    uint32_t start, at, next; // code units
    int32_t oparg;
    int32_t names; // constant index from KW_NAMES, or -1
} raw;

static status bad(const code *c, uint32_t unit, const char *what) {
    PyErr_Format(PyExc_SystemError, "malformed code object %R: %s at offset %u", c->py->co_name,
                 what, 2 * unit);
    return ST_ERROR;
}

// CPython's own words; it says them when it comes to the instruction.
static status bad_opcode(const code *c, uint32_t unit, int opcode) {
    PyErr_Format(PyExc_SystemError, "%U:%d: unknown opcode %d", c->py->co_filename,
                 PyCode_Addr2Line(c->py, (int)(2 * unit)), opcode);
    return ST_ERROR;
}

// ---- reading raw instructions

// EXTENDED_ARGs and the opcode they extend.
static status read_word(decoder *d, raw *r) {
    uint64_t oparg = 0;
    for (int extended = 0;; extended++) {
        if (d->unit >= d->c->units)
            return bad(d->c, r->start, "an instruction runs past the end");
        const uint8_t *unit = d->bytes + 2 * (size_t)d->unit++;
        r->row = &rows[unit[0]];
        oparg = oparg << 8 | unit[1];
        if (LIKELY(r->row->shape != RAW_EXTENDED)) {
            d->unit += py_opcode_caches[unit[0]];
            break;
        }
        if (extended == 3)
            return bad(d->c, r->start, "too many EXTENDED_ARG");
        r->at = d->unit;
    }
    r->next = d->unit;
    if (r->row->shape == RAW_BAD)
        return bad_opcode(d->c, r->at, py_code_raw_opcode(d->c->py, r->at));
    if (r->next > d->c->units || oparg > INT32_MAX)
        return bad(d->c, r->start, "an instruction runs past the end");
    r->oparg = (int32_t)oparg;
    return ST_OK;
}

// KW_NAMES and PRECALL, each once at most, up to and with their CALL.
static status read_call(decoder *d, raw *r) {
    int32_t count = -1;
    do {
        int32_t *seen = r->row->shape == RAW_KW_NAMES ? &r->names : &count;
        if (*seen >= 0)
            return bad(d->c, r->start, "a call has the same prefix twice");
        *seen = r->oparg;
        r->at = d->unit;
        TRY(read_word(d, r));
    } while (r->row->shape == RAW_KW_NAMES || r->row->shape == RAW_PRECALL);
    if (r->row->shape != RAW_CALL || (count >= 0 && count != r->oparg))
        return bad(d->c, r->start, "a call's prefix without its call");
    return ST_OK;
}

static status read_raw(decoder *d, raw *r) {
    r->start = r->at = d->unit;
    r->names = -1;
    TRY(read_word(d, r));
    if (UNLIKELY(r->row->shape == RAW_KW_NAMES || r->row->shape == RAW_PRECALL))
        return read_call(d, r);
    return ST_OK;
}

// ---- checking one canonical instruction

static status check_names(const decoder *d, const raw *r) {
    if (r->names < 0)
        return ST_OK;
    if (r->names >= d->bound[ARG_CONST])
        return bad(d->c, r->start, "keyword names out of range");
    PyObject *names = PyTuple_GET_ITEM(d->c->py->co_consts, r->names);
    if (!PyTuple_Check(names) || PyTuple_GET_SIZE(names) > r->oparg)
        return bad(d->c, r->start, "bad keyword names");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        if (!PyUnicode_Check(PyTuple_GET_ITEM(names, i)))
            return bad(d->c, r->start, "bad keyword names");
    }
    return ST_OK;
}

static bool is_cell(const code *c, int32_t local) {
    const char *kinds = PyBytes_AS_STRING(c->py->co_localspluskinds);
    return kinds[local] & (CO_FAST_CELL | CO_FAST_FREE);
}

static bool is_generator(const code *c) {
    return c->py->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
}

static bool is_one_bit(int32_t arg) {
    return __builtin_popcount((unsigned)arg) == 1;
}

// What the bound of the argument's kind does not say.
static bool fits(const code *c, op o, int32_t a, int32_t x) {
#define ANY true
    switch (o) {
#define OP(name, argument, pops, looks, pushes, jumped, fits, asks, flags)                         \
    case OP_##name:                                                                                \
        return fits;
#include "src/code/opcodes.def"
#undef ANY
    case OP_COUNT:
        break;
    }
    Py_UNREACHABLE();
}

// ---- writing canonical instructions

static insn *put(decoder *d, const raw *r, op o, int32_t arg, int32_t extra) {
    insn *i = &d->c->insns[d->c->count++];
    *i = (insn){
        .op = (uint8_t)o,
        .flags = INSN_BOUNDARY,
        .prefix = (uint8_t)(r->at - r->start),
        .arg = arg,
        .extra = extra,
        .at = r->at,
    };
    return i;
}

static status emit(decoder *d, const raw *r, op o, int32_t arg, int32_t extra) {
    put(d, r, o, arg, extra);
    if (UNLIKELY(arg >= d->bound[op_argument(o)]))
        return bad(d->c, r->start, "an argument out of range");
    if (UNLIKELY(!fits(d->c, o, arg, extra)))
        return bad(d->c, r->start, "an impossible argument");
    return ST_OK;
}

static status emit_jump(decoder *d, const raw *r, int64_t target, int32_t arg, bool polls) {
    if (target < 0 || target >= d->c->units)
        return bad(d->c, r->start, "a jump out of the code");
    insn *i = put(d, r, r->row->op, arg, 0);
    i->target = (int32_t)target; // a code unit, until resolve_jumps
    if (polls)
        i->flags |= INSN_POLLS;
    return fits(d->c, r->row->op, arg, 0) ? ST_OK
                                          : bad(d->c, r->start, "a generator's instruction");
}

static status emit_call(decoder *d, const raw *r) {
    TRY(check_names(d, r));
    return emit(d, r, r->row->op, r->oparg, r->names);
}

static status emit_pair(decoder *d, const raw *r) {
    TRY(emit(d, r, r->row->op, r->oparg >> 4, 0));
    TRY(emit(d, r, r->row->second, r->oparg & 15, 0));
    d->c->insns[d->c->count - 1].flags = 0;
    return ST_OK;
}

static status emit_intrinsic(decoder *d, const raw *r, const row *table, int32_t count) {
    if (r->oparg == 0 || r->oparg >= count)
        return bad(d->c, r->start, "unknown intrinsic");
    const row *known = &table[r->oparg];
    if (known->shape == RAW_BAD)
        return emit(d, r, r->row->op, r->oparg, 0);
    return emit(d, r, known->op, 0, known->number);
}

static status decode_raw(decoder *d, const raw *r) {
    op o = r->row->op;
    int n = r->row->number;
    int32_t oparg = r->oparg, mask = (1 << n) - 1;
    int64_t next = r->next;
    switch ((raw_shape)r->row->shape) {
    case RAW_NONE:
        return emit(d, r, o, 0, n);
    case RAW_ARG:
        return emit(d, r, o, oparg >> n, 0);
    case RAW_EXTRA:
        return emit(d, r, o, 0, oparg & 1);
    case RAW_HIGH:
        return emit(d, r, o, oparg >> n, oparg & mask);
    case RAW_LOW:
        return emit(d, r, o, oparg & mask, oparg >> n);
    case RAW_COMPARE:
        return emit(d, r, o, oparg >> (n + 1), oparg >> n & 1);
    case RAW_ATTR:
        return emit(d, r, oparg & 1 ? OP_LOAD_METHOD : o, oparg >> 1, 0);
    case RAW_FORWARD:
        return emit_jump(d, r, next + oparg + n, 0, false);
    case RAW_BACKWARD:
        return emit_jump(d, r, next - oparg, 0, n);
    case RAW_SEND:
        return emit_jump(d, r, next + oparg, n, false);
    case RAW_CALL:
        return emit_call(d, r);
    case RAW_PAIR:
        return emit_pair(d, r);
    case RAW_UNARY:
        return emit_intrinsic(d, r, unary_rows, PY_UNARY_COUNT);
    case RAW_BINARY:
        return emit_intrinsic(d, r, binary_rows, PY_BINARY_COUNT);
    case RAW_BAD:
    case RAW_EXTENDED:
    case RAW_KW_NAMES:
    case RAW_PRECALL:
        break; // read_raw left none of these
    }
    Py_UNREACHABLE();
}

// The instruction that starts at a code unit, prefixes included, or NO_INSN.
static uint32_t start_at(const code *c, uint32_t unit) {
    const insn *i = code_at(c, unit);
    return i && insn_start(i) == unit ? (uint32_t)(i - c->insns) : NO_INSN;
}

static status resolve_jumps(code *c) {
    for (insn *i = c->insns; i < c->insns + c->count; i++) {
        if (!(op_flags(i->op) & OPF_JUMP))
            continue;
        uint32_t target = start_at(c, (uint32_t)i->target);
        if (target == NO_INSN)
            return bad(c, insn_start(i), "a jump into the middle of an instruction");
        i->target = (int32_t)target;
    }
    return ST_OK;
}

static status decode_insns(decoder *d) {
    code *c = d->c;
    while (d->unit < c->units) {
        raw r;
        TRY(read_raw(d, &r));
        c->at_unit[r.start] = c->at_unit[r.at] = c->count;
        TRY(decode_raw(d, &r));
    }
    if (c->count == 0 || !(op_flags(c->insns[c->count - 1].op) & OPF_END))
        return bad(c, c->units, "the code does not end");
    return resolve_jumps(c);
}

// ---- the exception table: varints of six bits a byte, the first byte of a row marked by bit 7

typedef struct table {
    const uint8_t *next, *end;
} table;

enum { ROW_START = 0x80, MORE = 0x40, PAYLOAD = 0x3f };

// The next number, or -1 if there is none.
static int64_t table_number(table *t) {
    int64_t value = 0;
    for (int i = 0; i < 5 && t->next < t->end; i++) {
        uint8_t byte = *t->next++;
        value = value << 6 | (byte & PAYLOAD);
        if (!(byte & MORE))
            return value;
    }
    return -1;
}

static status read_region(code *c, table *t, uint32_t after) {
    if (!(*t->next & ROW_START))
        return bad(c, after, "a broken exception table");
    int64_t start = table_number(t), size = table_number(t);
    int64_t target = table_number(t), depth = table_number(t);
    if (start < after || size <= 0 || start + size > c->units)
        return bad(c, after, "a broken exception table");
    if (target < 0 || target >= c->units || start_at(c, (uint32_t)target) == NO_INSN)
        return bad(c, (uint32_t)start, "a bad exception handler");
    if (depth < 0 || (depth >> 1) + (depth & 1) + 1 > c->py->co_stacksize)
        return bad(c, (uint32_t)start, "a bad depth of an exception handler");
    c->regions[c->region_count++] = (region){
        .start = (uint32_t)start,
        .end = (uint32_t)(start + size),
        .target = start_at(c, (uint32_t)target),
        .depth = (int32_t)(depth >> 1),
        .lasti = depth & 1,
    };
    return ST_OK;
}

static status decode_regions(code *c) {
    PyObject *bytes = c->py->co_exceptiontable;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(bytes);
    table t = {start, start + PyBytes_GET_SIZE(bytes)};
    uint32_t after = 0;
    while (t.next < t.end) {
        TRY(read_region(c, &t, after));
        after = c->regions[c->region_count - 1].end;
    }
    return ST_OK;
}

// ---- making and keeping

static uint32_t count_insns(const uint8_t *bytes, uint32_t units) {
    uint32_t count = 0;
    for (uint32_t unit = 0; unit < units; unit++) {
        uint8_t opcode = bytes[2 * (size_t)unit];
        count += 1 + (rows[opcode].shape == RAW_PAIR);
        unit += py_opcode_caches[opcode];
    }
    return count; // prefixes too: a little more than needed
}

static uint32_t count_regions(PyObject *table) {
    const char *bytes = PyBytes_AS_STRING(table);
    uint32_t count = 0;
    for (Py_ssize_t i = 0; i < PyBytes_GET_SIZE(table); i++)
        count += (bytes[i] & ROW_START) != 0;
    return count;
}

// One block holds the struct and its three arrays.
static code *code_new(PyCodeObject *py, PyObject *bytes) {
    uint32_t units = (uint32_t)(PyBytes_GET_SIZE(bytes) / 2);
    size_t insns = count_insns((const uint8_t *)PyBytes_AS_STRING(bytes), units);
    size_t regions = count_regions(py->co_exceptiontable);
    size_t at_unit_size = units * sizeof(uint32_t);
    code *c =
        PyMem_Malloc(sizeof(code) + insns * sizeof(insn) + regions * sizeof(region) + at_unit_size);
    if (!c) {
        PyErr_NoMemory();
        return NULL;
    }
    *c = (code){.py = py, .units = units};
    c->insns = (insn *)(c + 1);
    c->regions = (region *)(c->insns + insns);
    c->at_unit = (uint32_t *)(c->regions + regions);
    memset(c->at_unit, 0xff, at_unit_size);
    return c;
}
static_assert(NO_INSN == UINT32_MAX, "memset fills at_unit with it");

static void code_free(void *p) {
    code *c = p;
    if (c)
        flow_free(c->flow);
    PyMem_Free(c);
}

static status decode(code *c, const uint8_t *bytes) {
    decoder d = {
        .c = c,
        .bytes = bytes,
        .bound =
            {
                [ARG_NONE] = MANY,
                [ARG_RAW] = MANY,
                [ARG_COUNT] = MANY,
                [ARG_DEPTH] = MANY,
                [ARG_CONST] = (int32_t)PyTuple_GET_SIZE(c->py->co_consts),
                [ARG_NAME] = (int32_t)PyTuple_GET_SIZE(c->py->co_names),
                [ARG_LOCAL] = c->py->co_nlocalsplus,
                [ARG_BINARY] = NB_INPLACE_XOR + 1,
                [ARG_COMPARE] = Py_GE + 1,
                [ARG_INVERT] = 2,
                [ARG_CONVERT] = FVC_ASCII + 1,
                [ARG_FLAGS] = 16,
                [ARG_JUMP] = MANY,
            },
    };
    TRY(decode_insns(&d));
    return decode_regions(c);
}

static code *code_make(PyCodeObject *py) {
    PyObject *bytes = py_code_bytes(py);
    if (!bytes)
        return NULL;
    code *c = code_new(py, bytes);
    if (c && decode(c, (const uint8_t *)PyBytes_AS_STRING(bytes)) != ST_OK) {
        code_free(c);
        c = NULL;
    }
    Py_DECREF(bytes);
    return c;
}

static Py_ssize_t code_slot = -1;

int code_setup(void) {
    if (code_slot < 0)
        code_slot = py_code_slot_new(code_free);
    return code_slot < 0 ? -1 : 0;
}

code *code_of(PyCodeObject *py) {
    code *c = py_code_slot_get(py, code_slot);
    if (LIKELY(c))
        return c;
    c = code_make(py);
    if (c && py_code_slot_set(py, code_slot, c) < 0) {
        code_free(c);
        c = NULL;
    }
    return c;
}

const region *code_region(const code *c, const insn *i) {
    uint32_t low = 0, high = c->region_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const region *r = &c->regions[middle];
        if (i->at < r->start)
            high = middle;
        else if (i->at >= r->end)
            low = middle + 1;
        else
            return r;
    }
    return NULL;
}

// --- whose code it is ---

static PyObject *library; // strong: a tuple of str, or NULL

void code_set_library(PyObject *folders) {
    Py_XSETREF(library, Py_NewRef(folders));
}

bool code_in_library(PyCodeObject *py) {
    code *c = code_of(py);
    if (!c) {
        PyErr_Clear();
        return true;
    }
    for (Py_ssize_t i = 0; c->library == 0 && library && i < PyTuple_GET_SIZE(library); i++)
        if (PyUnicode_Tailmatch(py->co_filename, PyTuple_GET_ITEM(library, i), 0, PY_SSIZE_T_MAX,
                                -1) == 1)
            c->library = 1;
    if (c->library == 0)
        c->library = -1;
    return c->library > 0;
}
