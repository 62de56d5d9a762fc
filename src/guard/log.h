// The log of a guard pass: the words of memory that decided it, so that the next pass need only
// compare words where nothing has changed. For the files of this room only.
#pragma once

#include "src/py/words.h"

#include "src/guard/program.h"

typedef enum log_act {
    LOG_LOAD,     // do the load
    LOG_PIN,      // do the load: it must give the same object
    LOG_CHECK,    // do the check
    LOG_DISTINCT, // compare the objects of loads that are done with the others
} log_act;

// A step that is done in each pass, after the words before `words`.
typedef struct log_item {
    log_act act;
    int32_t step;
    uint32_t words;
    PyObject *object; // LOG_PIN: its address; not a reference
} log_item;

// A register that no load fills: its object is the same as in the last full pass.
typedef struct log_saved {
    int32_t reg;
    PyObject *object; // not a reference: the words prove that something holds the object
} log_saved;

typedef struct guard_log {
    bool made;            // what follows up to `values` is there
    words words;          // `all`: the words, parents before children
    VEC(int32_t) owners;  // the step that each word belongs to
    VEC(log_item) items;  // in the order of the steps
    VEC(log_saved) saved; // registers that the plan or a step needs
    VEC(int32_t) loose;   // LOG_DISTINCT: registers that loads fill in each pass
    map settled;          // LOG_DISTINCT: the objects of the others; not references
    PyObject **values;    // by register: what the last full pass loaded; not references
    // By register: how often the object was another one; how often words about it were not equal,
    // though nothing that mattered had changed.
    uint8_t *changes, *misses;
    int32_t missed; // the step whose word was not equal, or -1
    int busy;       // the number of passes that are comparing now
    long hits;      // since the log was made
    int credit;     // how often it may be made again before many passes hit
    long wait;      // full passes before it is made again
    long pause;     // the next `wait`
    long passes;    // full passes
} guard_log;

// When logs are made and used; only tests and measurements set it.
typedef enum log_when {
    LOGS_NEVER,
    LOGS_IF_WORTH,
    LOGS_ALWAYS, // from the first pass on, however little they spare, and however often they change
    LOG_WHENS,
} log_when;
extern log_when log_use;

// Makes room for what is counted. NULL if there is no memory; no exception is set.
guard_log *log_new(const guard_program *p);
void log_free(guard_log *l);
// Forgets the words.
void log_clear(guard_log *l);
// Whether the words are equal and the steps among them pass; the registers are filled then.
bool log_holds(const guard_program *p, guard_frame *f, PyObject **regs);
// Writes down what the full pass has read that just filled these registers. False if there is no
// memory, or if words would save too little; no exception is set.
bool log_build(const guard_program *p, PyObject *const *regs);
// After a full pass that succeeded: makes the log, unless it has too often been in vain.
void log_passed(guard_program *p, PyObject *const *regs);
