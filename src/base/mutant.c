// The mutant of the process, and which rows were used.
#include "src/base/mutant.h"

#ifdef STATOR_FAULT
mutant mutant_now;
unsigned char mutant_used[MUTANT_TABLES][MUTANT_MOST_ROWS];
#endif
