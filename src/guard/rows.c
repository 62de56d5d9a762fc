// What sources.def and kinds.def say of each kind, as arrays.
#include "src/guard/program.h"

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

source_gives source_what(source_kind kind) {
    return gives_of[kind];
}
