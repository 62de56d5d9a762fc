// Break reasons. Each has one row: its id, and the sentence and the hint that people see.
#pragma once

typedef enum reason {
    REASON_NONE,
#define REASON(id, sentence, hint) REASON_##id,
#include "src/report/reasons.def"

#undef REASON
    REASON_COUNT,
} reason;

typedef struct reason_row {
    const char *id, *sentence, *hint;
} reason_row;

// Finds a reason by its id. REASON_COUNT if no reason has it.
reason reason_by_id(const char *id);
extern const reason_row reason_rows[REASON_COUNT];
