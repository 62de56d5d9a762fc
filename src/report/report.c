// The rows of reasons.def as a table.
#include "src/report/report.h"

const reason_row reason_rows[REASON_COUNT] = {
    [REASON_NONE] = {"NONE", "", ""},
#define REASON(id, sentence, hint) [REASON_##id] = {#id, sentence, hint},
#include "src/report/reasons.def"
#undef REASON
};
