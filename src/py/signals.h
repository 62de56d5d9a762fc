// Holds signal handlers back while code runs that a handler's exception would leave half done.
// CPython runs handlers in its main thread only (_Py_ThreadCanHandleSignals): while they are held
// back, no thread counts as the main thread.
#pragma once

#include "src/py/py.h"

// 0 if this is not the main thread, or if signals are held back already; py_let_signals_go does
// nothing then.
static inline unsigned long py_hold_signals(void) {
    unsigned long main = _PyRuntime.main_thread;
    if (main != PyThread_get_thread_ident())
        return 0;
    _PyRuntime.main_thread = 0;
    return main;
}

// Handlers of signals that came meanwhile run at the next poll. Whoever polled meanwhile found no
// main thread, and may have lowered what asks for a poll (handle_signals of ceval_gil.c does, from
// 3.13 on): it is raised again.
static inline void py_let_signals_go(unsigned long held) {
    if (held == 0)
        return;
    _PyRuntime.main_thread = held;
#if PY_VERSION_HEX >= 0x030d0000
    if (_Py_atomic_load_int(&_PyRuntime.signals.is_tripped))
        _Py_set_eval_breaker_bit(PyThreadState_GET(), _PY_SIGNALS_PENDING_BIT);
#else
    if (_Py_atomic_load_relaxed(&_PyRuntime.ceval.signals_pending))
        _Py_atomic_store_relaxed(&PyInterpreterState_Get()->ceval.eval_breaker, 1);
#endif
}
