// The three ways in which a function of the engine can end, and the one macro that returns a bad
// end to the caller.
#pragma once

typedef enum status {
    ST_OK = 0,
    ST_ERROR, // a Python exception is set
    ST_BREAK, // the trace must stop here; a reason is set
} status;

#define TRY(expression)                                                                            \
    do {                                                                                           \
        status try_status_ = (expression);                                                         \
        if (try_status_ != ST_OK)                                                                  \
            return try_status_;                                                                    \
    } while (0)

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
