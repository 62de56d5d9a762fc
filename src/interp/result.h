// How the value that a frame returns is used.
#pragma once

// How the value that a frame returns becomes the value of the instruction that called the frame.
typedef enum run_result {
    RUN_NATIVE,   // native code lies between them, or the instruction does more with the value
    RUN_OPERATOR, // native code lies between them, but has done nothing yet: the instruction can
                  // start again
    RUN_THIN,     // the value is pushed
    RUN_INIT,     // the value is an __init__'s None, and the object is pushed
} run_result;

// What a frame that waits does with the value of the frame above.
typedef enum awaited {
    AWAITS_VALUE,    // its call's operands are gone, and the value is pushed
    AWAITS_INIT,     // the value is an __init__'s None, and the object lies on the stack
    AWAITS_OPERATOR, // the operator's operands lie on the stack still, and the value takes their
                     // place, if the operator has one
} awaited;
