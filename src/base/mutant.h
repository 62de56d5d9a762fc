// Mutants, for tests of the tests: in a build with STATOR_FAULT one row of a table can be made
// laxer while the process runs, and every row notes that it was used. In other builds nothing of
// this is left.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// The tables, by the .def files that hold them.
typedef enum mutant_table {
    MUTANT_RULE,   // call/rules.def, whose rows are changed by call/mutate.c; here they are noted
    MUTANT_GUARD,  // guard/kinds.def: the check passes always
    MUTANT_SOURCE, // guard/sources.def: the place is read once, and never again
    MUTANT_STEP,   // plan/steps.def: the step does nothing, what it should make is None
    MUTANT_META,   // graph/meta_rules.def: what meta_infer says is changed
    MUTANT_TABLES,
} mutant_table;

#ifdef STATOR_FAULT
enum { MUTANT_MOST_ROWS = 8192 };

// The one mutant; `change` is 0 if there is none, else says what is changed (1 where there is only
// one way).
typedef struct mutant {
    mutant_table table;
    size_t row;
    int change;
} mutant;
extern mutant mutant_now;
extern unsigned char mutant_used[MUTANT_TABLES][MUTANT_MOST_ROWS];

// Notes that a row is used; what is changed about it, or 0.
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
