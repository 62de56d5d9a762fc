// Follows every path through a decoded code object. Going forward it finds the stack depth and the
// handled exceptions before each instruction; going backward, the variables that may still be read.
#include "src/base/vec.h"

#include "src/code/flow.h"

// Deeper than the compiler nests handlers in one function; keeps the recursion over a chain small.
enum { MAX_HANDLERS = 100 };

// ---- forward: depths and handled exceptions

typedef struct walk {
    const code *c;
    flow *f;
    uint32_t handler_room;
    uint32_t *todo; // instructions reached and not yet followed
    uint32_t todo_count;
} walk;

static status bad(const code *c, const insn *i, const char *what) {
    PyErr_Format(PyExc_SystemError, "malformed code object %R: %s at offset %u", c->py->co_name,
                 what, 2 * insn_start(i));
    return ST_ERROR;
}

// The one chain with this slot inside of `outer`: equal chains have equal numbers.
static status chain_of(walk *w, int32_t slot, int32_t outer, int32_t *result) {
    flow *f = w->f;
    for (uint32_t i = 0; i < f->handler_count; i++) {
        if (f->handlers[i].slot == slot && f->handlers[i].outer == outer) {
            *result = (int32_t)i;
            return ST_OK;
        }
    }
    TRY(vec_grow(&f->handlers, f->handler_count, &w->handler_room, 1, sizeof(*f->handlers)));
    f->handlers[f->handler_count] = (struct handled){.slot = slot, .outer = outer};
    *result = (int32_t)f->handler_count++;
    return ST_OK;
}

// The chain without what lies at or above a depth. The innermost need not lie highest.
static status chain_cut(walk *w, int32_t chain, int32_t depth, int32_t *result) {
    *result = chain;
    if (chain < 0)
        return ST_OK;
    struct handled h = w->f->handlers[chain];
    TRY(chain_cut(w, h.outer, depth, result));
    if (h.slot < depth)
        return chain_of(w, h.slot, *result, result);
    return ST_OK;
}

static status chain_swap(walk *w, int32_t chain, int32_t a, int32_t b, int32_t *result) {
    *result = chain;
    if (chain < 0)
        return ST_OK;
    struct handled h = w->f->handlers[chain];
    TRY(chain_swap(w, h.outer, a, b, result));
    int32_t slot = h.slot == a ? b : h.slot == b ? a : h.slot;
    return chain_of(w, slot, *result, result);
}

static status chain_push(walk *w, const insn *i, int32_t depth, int32_t *chain) {
    int32_t length = 0;
    for (int32_t link = *chain; link >= 0; link = w->f->handlers[link].outer)
        length++;
    if (length == MAX_HANDLERS)
        return bad(w->c, i, "too many nested exception handlers");
    TRY(chain_cut(w, *chain, depth - 1, chain));
    return chain_of(w, depth - 1, *chain, chain);
}

// The handled exceptions behind an instruction that does not jump.
static status chain_after(walk *w, const insn *i, int32_t depth, int32_t chain, int32_t *result) {
    *result = chain;
    switch (i->op) {
    case OP_PUSH_EXC_INFO:
        return chain_push(w, i, depth, result);
    case OP_POP_EXCEPT:
        if (chain < 0)
            return bad(w->c, i, "no exception is handled");
        *result = w->f->handlers[chain].outer;
        return ST_OK;
    case OP_SWAP:
        return chain_swap(w, chain, depth - 1, depth - i->arg, result);
    default:
        return ST_OK;
    }
}

// A path leads from one instruction to another.
static status reach(walk *w, const insn *from, uint32_t to, int32_t depth, int32_t chain) {
    TRY(chain_cut(w, chain, depth, &chain));
    if (depth > w->c->py->co_stacksize)
        return bad(w->c, from, "stack overflow");
    if (w->f->depth[to] < 0) {
        w->f->depth[to] = depth;
        w->f->handled[to] = chain;
        w->todo[w->todo_count++] = to;
        return ST_OK;
    }
    if (w->f->depth[to] != depth)
        return bad(w->c, &w->c->insns[to], "paths meet with different stack depths");
    if (w->f->handled[to] != chain)
        return bad(w->c, &w->c->insns[to], "paths meet in different exception handlers");
    return ST_OK;
}

// What is left on the stack where an instruction fails, at least.
static int32_t depth_failing(const insn *i, int32_t depth) {
    if (i->op == OP_YIELD_VALUE)
        return depth; // what throw() finds has had a value pushed (gen_send_ex2)
    return depth - op_pops(i->op, i->arg, i->extra);
}

static bool can_fail(const insn *i) {
    return !(op_flags(i->op) & OPF_SURE);
}

static status reach_handler(walk *w, const insn *i, int32_t depth, int32_t chain) {
    const region *r = code_region(w->c, i);
    if (!r || !can_fail(i))
        return ST_OK;
    if (depth_failing(i, depth) < r->depth)
        return bad(w->c, i, "less on the stack than its exception handler keeps");
    TRY(chain_cut(w, chain, r->depth, &chain));
    return reach(w, i, r->target, r->depth + r->lasti + 1, chain);
}

// To all places where one instruction can lead.
static status follow(walk *w, uint32_t index) {
    const insn *i = &w->c->insns[index];
    int32_t depth = w->f->depth[index], chain = w->f->handled[index];
    int flags = op_flags(i->op);
    if (depth < op_needs(i->op, i->arg, i->extra))
        return bad(w->c, i, "stack underflow");
    TRY(reach_handler(w, i, depth, chain));
    int32_t extra = flags & OPF_JUMP ? 0 : i->extra;
    if (flags & OPF_JUMP)
        TRY(reach(w, i, (uint32_t)i->target, depth + op_effect(i->op, i->arg, extra, true), chain));
    if (flags & OPF_END)
        return ST_OK;
    TRY(chain_after(w, i, depth, chain, &chain));
    return reach(w, i, index + 1, depth + op_effect(i->op, i->arg, extra, false), chain);
}

static status follow_all(walk *w) {
    while (w->todo_count > 0)
        TRY(follow(w, w->todo[--w->todo_count]));
    return ST_OK;
}

// Handlers of regions in which nothing fails by itself: an exception may still be thrown there.
static status reach_quiet_handlers(walk *w) {
    for (uint32_t index = 0; index < w->c->count; index++) {
        const insn *i = &w->c->insns[index];
        const region *r = code_region(w->c, i);
        int32_t depth = w->f->depth[index], chain = w->f->handled[index];
        if (!r || depth < 0 || depth_failing(i, depth) < r->depth || w->f->depth[r->target] >= 0)
            continue;
        TRY(chain_cut(w, chain, r->depth, &chain));
        TRY(reach(w, i, r->target, r->depth + r->lasti + 1, chain));
        TRY(follow_all(w));
    }
    return ST_OK;
}

static status walk_all(const code *c, flow *f) {
    walk w = {.c = c, .f = f, .todo = PyMem_New(uint32_t, c->count)};
    if (!w.todo) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    status s = reach(&w, c->insns, 0, 0, -1);
    if (s == ST_OK)
        s = follow_all(&w);
    if (s == ST_OK)
        s = reach_quiet_handlers(&w);
    PyMem_Free(w.todo);
    return s;
}

// ---- backward: live variables

static void set_bit(uint64_t *row, int32_t bit) {
    row[bit / 64] |= UINT64_C(1) << bit % 64;
}

static void clear_bit(uint64_t *row, int32_t bit) {
    row[bit / 64] &= ~(UINT64_C(1) << bit % 64);
}

static void add_row(uint64_t *row, const uint64_t *other, uint32_t words) {
    for (uint32_t i = 0; i < words; i++)
        row[i] |= other[i];
}

// The slot of the cell that zero-argument super() reads through the frame, or -1.
static int32_t class_cell(PyCodeObject *py) {
    for (int32_t i = py->co_nlocalsplus - py->co_nfreevars; i < py->co_nlocalsplus; i++) {
        PyObject *name = PyTuple_GET_ITEM(py->co_localsplusnames, i);
        if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0)
            return i;
    }
    return -1;
}

// super() looks at the first argument and the class without an instruction that says so.
static void add_super(uint64_t *row, const code *c, int32_t cell) {
    set_bit(row, cell);
    if (c->py->co_argcount > 0)
        set_bit(row, 0);
}

// From the variables live behind an instruction (on any path but the handler's) to those before it.
static void live_before(uint64_t *row, const code *c, const insn *i, int32_t cell) {
    int flags = op_flags(i->op);
    if (flags & OPF_SETS)
        clear_bit(row, i->arg);
    else if (op_argument(i->op) == ARG_LOCAL)
        set_bit(row, i->arg);
    if ((flags & OPF_CALL) && cell >= 0)
        add_super(row, c, cell);
    if (i->op == OP_COPY_FREE_VARS)
        for (int32_t free = c->py->co_nlocalsplus - i->arg; free < c->py->co_nlocalsplus; free++)
            clear_bit(row, free);
}

// One pass from the last instruction to the first; whether anything changed.
static bool live_pass(const code *c, flow *f, uint64_t *row, int32_t cell) {
    uint32_t words = f->live_words, left = c->region_count;
    bool changed = false;
    for (uint32_t index = c->count; index-- > 0;) {
        const insn *i = &c->insns[index];
        int flags = op_flags(i->op);
        memset(row, 0, words * sizeof(*row));
        if (!(flags & OPF_END))
            add_row(row, f->live + (size_t)(index + 1) * words, words);
        if (flags & OPF_JUMP)
            add_row(row, f->live + (size_t)i->target * words, words);
        live_before(row, c, i, cell);
        while (left > 0 && c->regions[left - 1].start > i->at)
            left--;
        const region *r =
            left > 0 && i->at < c->regions[left - 1].end ? &c->regions[left - 1] : NULL;
        if (r && can_fail(i))
            add_row(row, f->live + (size_t)r->target * words, words);
        uint64_t *old = f->live + (size_t)index * words;
        if (memcmp(old, row, words * sizeof(*row)) != 0) {
            memcpy(old, row, words * sizeof(*row));
            changed = true;
        }
    }
    return changed;
}

static status live_all(const code *c, flow *f) {
    if (f->live_words == 0)
        return ST_OK;
    uint64_t *row = PyMem_New(uint64_t, f->live_words);
    if (!row) {
        PyErr_NoMemory();
        return ST_ERROR;
    }
    int32_t cell = class_cell(c->py);
    while (live_pass(c, f, row, cell))
        ;
    PyMem_Free(row);
    return ST_OK;
}

// ---- making and keeping

// One block holds the struct and the arrays whose size is known.
static flow *flow_new(const code *c) {
    uint32_t words = ((uint32_t)c->py->co_nlocalsplus + 63) / 64;
    size_t live_size = (size_t)c->count * words * sizeof(uint64_t);
    size_t column_size = (size_t)c->count * sizeof(int32_t);
    flow *f = PyMem_Malloc(sizeof(flow) + live_size + 2 * column_size);
    if (!f) {
        PyErr_NoMemory();
        return NULL;
    }
    *f = (flow){.live_words = words};
    f->live = (uint64_t *)(f + 1);
    f->depth = (int32_t *)((char *)f->live + live_size);
    f->handled = f->depth + c->count;
    memset(f->live, 0, live_size);
    memset(f->depth, 0xff, 2 * column_size); // -1
    return f;
}

void flow_free(flow *f) {
    if (f)
        PyMem_Free(f->handlers);
    PyMem_Free(f);
}

const flow *code_flow(code *c) {
    if (c->flow)
        return c->flow;
    flow *f = flow_new(c);
    if (f && (walk_all(c, f) != ST_OK || live_all(c, f) != ST_OK)) {
        flow_free(f);
        f = NULL;
    }
    return c->flow = f;
}
