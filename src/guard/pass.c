// The guard pass that a warm call makes: the same answer as that of guard_check, in fewer steps.
#include "src/base/mutant.h"

#include "src/guard/guard.h"
#include "src/guard/log.h"

// --- what failed last time ---

static bool is_suspect(const guard_program *p, int32_t step) {
    for (int32_t i = 0; i < p->suspect_count; i++)
        if (p->suspects[i] == step)
            return true;
    return false;
}

static bool suspect(guard_program *p, int32_t step);

static bool suspect_register(guard_program *p, int32_t reg) {
    return reg < 0 || suspect(p, p->loads[reg]);
}

// Whether a check can be made alone: it reads only its registers, and keeps no notes of a pass.
static bool stands_alone(const step *s) {
    switch (s->op - STEP_CHECK) {
    case GUARD_EXPR:
    case GUARD_DISTINCT:
        return false;
    case GUARD_CUSTOM:
        return s->a >= 0 && s->custom->misfit;
    default:
        return s->op != SOURCE_EXPR;
    }
}

// Adds a step behind the loads that it needs.
static bool suspect(guard_program *p, int32_t number) {
    const step *s = &p->steps[number];
    if (is_suspect(p, number))
        return true;
    if (!stands_alone(s) || !suspect_register(p, s->a) ||
        (!step_is_load(s) && !suspect_register(p, s->b)) || p->suspect_count == MOST_SUSPECTS)
        return false;
    p->suspects[p->suspect_count++] = number;
    return true;
}

static void suspect_only(guard_program *p, int32_t step) {
    if (p->suspect_count > 0 && p->suspects[p->suspect_count - 1] == step)
        return;
    p->suspect_count = 0;
    if (!suspect(p, step))
        p->suspect_count = 0;
}

static bool suspect_fails(const guard_program *p, const step *s, guard_frame *f, PyObject **regs) {
    unsigned open;
    if (s->op == STEP_CHECK + GUARD_CUSTOM)
        return s->custom->misfit(regs[s->a], s->data, &open);
    return !step_passes(p, s, f, regs);
}

// Whether the program fails where it has failed last.
static bool fails_again(const guard_program *p, guard_frame *f, PyObject **regs) {
    for (int32_t i = 0; i < p->suspect_count; i++)
        if (suspect_fails(p, &p->steps[p->suspects[i]], f, regs))
            return true;
    return false;
}

// --- a pass ---

log_when log_use = LOGS_IF_WORTH;

#ifdef STATOR_FAULT
// Tests run on a build that does not believe a log: the program must give the same registers.
static void doubt(const guard_program *p, guard_frame *f, PyObject *const *regs) {
    PyObject **again = PyMem_Calloc((size_t)p->registers + 1, sizeof(PyObject *));
    int failed = -1;
    bool agree = !again || mutant_now.change || guard_check(p, f, again, &failed);
    for (uint32_t i = 0; again && !mutant_now.change && i < p->log->saved.count; i++) {
        const log_saved *s = &p->log->saved.items[i];
        agree &= again[s->reg] == s->object && regs[s->reg] == s->object;
    }
    if (!agree)
        fprintf(stderr, "a log passes where the program does not: step %d, %s\n", failed,
                failed < 0 ? "registers" : step_rows[p->steps[failed].op].name);
    if (!agree)
        abort();
    PyMem_Free(again);
}
#else
static void doubt(const guard_program *p, guard_frame *f, PyObject *const *regs) {
    (void)p, (void)f, (void)regs;
}
#endif

static bool log_passes(guard_program *p, guard_frame *f, PyObject **regs) {
    if (!p->log || !p->log->made || log_use == LOGS_NEVER || !log_holds(p, f, regs))
        return false;
    doubt(p, f, regs);
    return true;
}

static bool pass_all(guard_program *p, guard_frame *f, PyObject **regs) {
    int failed;
    if (!guard_check(p, f, regs, &failed)) {
        suspect_only(p, failed);
        return false;
    }
    if (log_use != LOGS_NEVER)
        log_passed(p, regs);
    return true;
}

bool guard_pass(guard_program *p, guard_frame *f, PyObject **regs) {
    if (UNLIKELY(guard_dead(p)))
        return false;
    if (p->suspect_count > 0 && fails_again(p, f, regs))
        return false;
    return log_passes(p, f, regs) || pass_all(p, f, regs);
}
