// Signal handlers wait while code runs that an exception out of nowhere would leave in pieces.
// CPython runs them in its main thread only (_Py_ThreadCanHandleSignals): for a while, no thread is
// that.
#pragma once

#include "src/py/py.h"

// 0 if this is not the main thread, or they wait already: then nothing is to be let go.
static inline unsigned long py_hold_signals(void) {
    unsigned long main = _PyRuntime.main_thread;
    if (main != PyThread_get_thread_ident())
        return 0;
    _PyRuntime.main_thread = 0;
    return main;
}

// What came meanwhile is seen at the next poll.
static inline void py_let_signals_go(unsigned long held) {
    if (held == 0)
        return;
    _PyRuntime.main_thread = held;
#if PY_VERSION_HEX < 0x030d0000 // later ones keep a bit that nobody lowers
    if (_Py_atomic_load_relaxed(&_PyRuntime.ceval.signals_pending))
        _Py_atomic_store_relaxed(&PyInterpreterState_Get()->ceval.eval_breaker, 1);
#endif
}
