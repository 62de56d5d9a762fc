// Compares the words of a log, and decides when a log is worth making anew.
#include "src/guard/guard.h"
#include "src/guard/log.h"

enum {
    FIRST = 2,        // full passes before a log is made
    MOST_CREDIT = 8,  // logs in a row that were made in vain
    CREDIT_HITS = 16, // so many hits are worth another log
    RARE = 256,       // a change after so many hits says nothing about the next one
    FIRST_PAUSE = 64, // full passes without a log
    LONGEST_PAUSE = 8192,
};

guard_log *log_new(const guard_program *p) {
    guard_log *l = PyMem_Calloc(1, sizeof(guard_log));
    size_t count = (size_t)p->registers + 1;
    if (!l)
        return NULL;
    l->values = PyMem_Calloc(count, sizeof(PyObject *));
    l->changes = PyMem_Calloc(count, 1);
    l->misses = PyMem_Calloc(count, 1);
    l->credit = MOST_CREDIT;
    l->pause = FIRST_PAUSE;
    l->missed = -1;
    if (l->values && l->changes && l->misses)
        return l;
    log_free(l);
    return NULL;
}

void log_clear(guard_log *l) {
    words_free(&l->words);
    vec_free(&l->owners);
    vec_free(&l->items);
    vec_free(&l->saved);
    vec_free(&l->loose);
    map_clear(&l->settled);
    memset(l, 0, offsetof(guard_log, values));
}

void log_free(guard_log *l) {
    if (!l)
        return;
    log_clear(l);
    PyMem_Free(l->values);
    PyMem_Free(l->changes);
    PyMem_Free(l->misses);
    PyMem_Free(l);
}

// --- comparing ---

// The objects of other loads are as distinct as they were.
static bool are_distinct(const guard_log *l, PyObject *const *regs) {
    for (uint32_t i = 0; i < l->loose.count; i++) {
        PyObject *o = regs[l->loose.items[i]];
        for (uint32_t j = 0; j < i; j++)
            if (regs[l->loose.items[j]] == o)
                return false;
        if (map_get(&l->settled, map_key(o)))
            return false;
    }
    return true;
}

static bool item_passes(const guard_program *p, const log_item *i, guard_frame *f,
                        PyObject **regs) {
    const step *s = &p->steps[i->step];
    switch (i->act) {
    case LOG_LOAD:
    case LOG_CHECK:
        return step_passes(p, s, f, regs);
    case LOG_PIN:
        return step_passes(p, s, f, regs) && regs[s->b] == i->object;
    case LOG_DISTINCT:
        return are_distinct(p->log, regs);
    }
    Py_UNREACHABLE();
}

static inline bool four_hold(const word *w) {
    return LIKELY(word_holds(w)) && LIKELY(word_holds(w + 1)) && LIKELY(word_holds(w + 2)) &&
           LIKELY(word_holds(w + 3));
}

// The first word that is not equal, or the end.
static inline const word *words_hold(const word *w, const word *end) {
    while (end - w >= 8 && four_hold(w) && four_hold(w + 4))
        w += 8;
    while (w < end && LIKELY(word_holds(w)))
        w++;
    return w;
}

static bool compare(const guard_program *p, guard_log *l, guard_frame *f, PyObject **regs) {
    const word *first = l->words.all.items, *w = first, *end = first + l->words.all.count;
    for (const log_item *i = l->items.items, *last = i + l->items.count; i < last; i++) {
        w = words_hold(w, first + i->words);
        if (w < first + i->words)
            return l->missed = l->owners.items[w - first], false;
        if (!item_passes(p, i, f, regs))
            return false;
    }
    w = words_hold(w, end);
    if (w < end)
        l->missed = l->owners.items[w - first];
    return w == end;
}

// Steps run no Python code and keep the GIL; `busy` is for those that call torch.
bool log_holds(const guard_program *p, guard_frame *f, PyObject **regs) {
    guard_log *l = p->log;
    l->missed = -1;
    for (const log_saved *s = l->saved.items, *end = s + l->saved.count; s < end; s++)
        regs[s->reg] = s->object;
    l->busy++;
    bool holds = compare(p, l, f, regs);
    l->busy--;
    l->hits += holds;
    return holds;
}

// --- making it anew ---

static void count_up(uint8_t *count) {
    if (*count < UINT8_MAX)
        ++*count;
}

// Notes what kept the words from being equal, though the program has passed.
static void note_miss(const guard_program *p, guard_log *l, PyObject *const *regs) {
    for (int32_t i = 0; i < p->registers; i++)
        if (l->values[i] != regs[i])
            count_up(&l->changes[i]);
    int32_t about = l->missed >= 0 ? p->steps[l->missed].a : -1;
    if (about >= 0)
        count_up(&l->misses[about]);
}

// Whether it may be made again.
static bool pays(guard_log *l) {
    long earned = l->hits / CREDIT_HITS;
    l->credit = earned >= MOST_CREDIT - l->credit ? MOST_CREDIT : l->credit + (int)earned;
    if (earned > 0)
        l->pause = FIRST_PAUSE;
    if (l->credit-- > 0)
        return true;
    l->credit = 1;
    l->wait = l->pause;
    l->pause = l->pause < LONGEST_PAUSE ? 2 * l->pause : LONGEST_PAUSE;
    return false;
}

void log_passed(guard_program *p, PyObject *const *regs) {
    if (!p->log && !(p->log = log_new(p)))
        return;
    guard_log *l = p->log;
    if ((++l->passes < FIRST && log_use != LOGS_ALWAYS) || l->busy > 0)
        return;
    if (l->wait > 0 && log_use != LOGS_ALWAYS) {
        l->wait--;
        return;
    }
    bool may = true;
    if (l->made) {
        if (l->hits < RARE)
            note_miss(p, l, regs);
        may = pays(l) || log_use == LOGS_ALWAYS;
        log_clear(l);
    }
    l->hits = 0;
    if (may && !log_build(p, regs)) {
        log_clear(l);
        l->wait = LONGEST_PAUSE;
    }
}
