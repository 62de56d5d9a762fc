// The mutant of the process, and a note for each row that was used.
#include "src/base/mutant.h"

#ifdef STATOR_FAULT
mutant mutant_now;
unsigned char mutant_used[MUTANT_TABLES][MUTANT_MOST_ROWS];
#endif
