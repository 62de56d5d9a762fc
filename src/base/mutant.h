// Mutants test the tests. In a build with STATOR_FAULT a test can make one row of a table laxer
// while the process runs, and every row notes that it was used. Other builds compile all of this
// away.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// The tables, by the .def files that hold them.
typedef enum mutant_table {
    MUTANT_RULE,   // call/rules.def: call/mutate.c changes the rows, this file notes their use
    MUTANT_GUARD,  // guard/kinds.def, then guard/customs.def: the check always passes
    MUTANT_SOURCE, // guard/sources.def: the place is read once and never again
    MUTANT_STEP,   // plan/steps.def: the step does nothing, and its result is None
    MUTANT_META,   // graph/meta_rules.def: the answer of meta_infer is changed
    MUTANT_TABLES,
} mutant_table;

#ifdef STATOR_FAULT
enum { MUTANT_MOST_ROWS = 8192 };

// The one mutant of the process. `change` is 0 if there is none; else it is the way in which the
// row is changed (1 if there is only one way).
typedef struct mutant {
    mutant_table table;
    size_t row;
    int change;
} mutant;
extern mutant mutant_now;
extern unsigned char mutant_used[MUTANT_TABLES][MUTANT_MOST_ROWS];

// Notes that a row is used. Returns the way in which the row is changed, or 0.
static inline int mutant_of(mutant_table table, size_t row) {
    if (row < MUTANT_MOST_ROWS)
        mutant_used[table][row] = 1;
    return mutant_now.table == table && mutant_now.row == row ? mutant_now.change : 0;
}
#else
static inline int mutant_of(mutant_table table, size_t row) {
    (void)table, (void)row;
    return 0;
}
#endif
