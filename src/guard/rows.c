// The rows of sources.def, kinds.def and customs.def as arrays.
#include "src/guard/program.h"

#include <string.h>

const step_row step_rows[] = {
#define SOURCE(name, holds, gives, text) [SOURCE_##name] = {#name, text, HOLD_##holds},
#include "src/guard/sources.def"
#define GUARD(name, holds, text) [STEP_CHECK + GUARD_##name] = {#name, text, HOLD_##holds},
#include "src/guard/kinds.def"
};

static const uint8_t gives_of[] = {
#define SOURCE(name, holds, gives, text) [SOURCE_##name] = GIVES_##gives,
#include "src/guard/sources.def"
};

static const char *const custom_names[] = {
#define CUSTOM(name) name,
#include "src/guard/customs.def"
};

int custom_row(const guard_custom *custom) {
    int i = Py_ARRAY_LENGTH(custom_names) - 1;
    while (i >= 0 && strcmp(custom_names[i], custom->name) != 0)
        i--;
    return i;
}

source_gives source_what(source_kind kind) {
    return gives_of[kind];
}
