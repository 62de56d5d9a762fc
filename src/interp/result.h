// What becomes of the value that a frame returns.
#pragma once

// How the value of a frame becomes that of the instruction it was called by.
typedef enum run_result {
    RUN_NATIVE,   // native code is in between, or the instruction does more with it
    RUN_OPERATOR, // so it is, but it has done nothing yet: the instruction can be begun once more
    RUN_THIN,     // it is pushed
    RUN_INIT,     // it is an __init__'s None, and its object is pushed
} run_result;
