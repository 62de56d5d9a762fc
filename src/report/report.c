// The rows of reasons.def as a table.
#include "src/report/report.h"

#include <string.h>

const reason_row reason_rows[REASON_COUNT] = {
    [REASON_NONE] = {"NONE", "", ""},
#define REASON(id, sentence, hint) [REASON_##id] = {#id, sentence, hint},
#include "src/report/reasons.def"
#undef REASON
};

reason reason_by_id(const char *id) {
    int i = REASON_NONE + 1;
    while (i < REASON_COUNT && strcmp(reason_rows[i].id, id) != 0)
        i++;
    return (reason)i;
}
