// Expands OP_ROW(name) for each canonical instruction. The loop already uses OP for its labels.
#pragma push_macro("OP")
#undef OP
#define OP(name, ...) OP_ROW(name)
#include "src/code/opcodes.def"

#pragma pop_macro("OP")
