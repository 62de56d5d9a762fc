// Handlers: generators, coroutines, asynchronous iteration.

// Only CPython can make the generator, so the loop never gets a fresh frame of such code.
OP(RETURN_GENERATOR) {
    goto hand_over;
}

OP(YIELD_VALUE) {
    r->value = POP();
    r->how = ARG;
    r->sp = sp;
    return RUN_YIELD;
}

OP(SEND) {
    PyObject *sent = TOP, *receiver = PEEK(2), *result = NULL;
    PySendResult status = DO_SEND(receiver, sent, &result);
    sp--;
    Py_DECREF(sent);
    if (status == PYGEN_ERROR)
        FAIL();
    if (status == PYGEN_RETURN && ARG) {
        SET_TOP(result);
        Py_DECREF(receiver);
        JUMP();
    }
    PUSH(result);
    if (status == PYGEN_RETURN)
        JUMP();
    NEXT();
}

OP(END_SEND) {
    PyObject *value = POP(), *receiver = TOP;
    SET_TOP(value);
    Py_DECREF(receiver);
    NEXT();
}

// throw() into a generator has ended the generator that it delegates to. StopIteration carries the
// value.
OP(CLEANUP_THROW) {
    PyObject *exception = TOP;
    if (!PyErr_GivenExceptionMatches(exception, PyExc_StopIteration)) {
        py_set_raised(Py_NewRef(exception));
        failing = pc->at;
        goto unwind;
    }
    PyObject *value = Py_NewRef(((PyStopIterationObject *)exception)->value);
    PyObject *sent = PEEK(2), *receiver = PEEK(3);
    sp -= 3;
    Py_DECREF(receiver);
    Py_DECREF(sent);
    Py_DECREF(exception);
    PUSH(Py_NewRef(Py_None));
    PUSH(value);
    NEXT();
}

#define REPLACE_TOP(expression)                                                                    \
    do {                                                                                           \
        PyObject *before = TOP;                                                                    \
        PyObject *after = (expression);                                                            \
        sp--;                                                                                      \
        Py_DECREF(before);                                                                         \
        if (!after)                                                                                \
            FAIL();                                                                                \
        PUSH(after);                                                                               \
        NEXT();                                                                                    \
    } while (0)

OP(GET_YIELD_FROM_ITER) {
    REPLACE_TOP(DO_YIELD_FROM_ITER(before, r->code->py->co_flags));
}

OP(GET_AWAITABLE) {
    REPLACE_TOP(DO_AWAITABLE(before, ARG));
}

OP(GET_AITER) {
    REPLACE_TOP(DO_AITER(before));
}

OP(ASYNC_GEN_WRAP) {
    REPLACE_TOP(py_async_gen_wrap(before));
}

OP(STOPITERATION_ERROR) {
    REPLACE_TOP(py_stopiteration_error(before, r->code->py->co_flags));
}

#undef REPLACE_TOP

OP(GET_ANEXT) {
    PyObject *awaitable = DO_ANEXT(TOP);
    if (!awaitable)
        FAIL();
    PUSH(awaitable);
    NEXT();
}

OP(END_ASYNC_FOR) {
    PyObject *exception = POP();
    if (!PyErr_GivenExceptionMatches(exception, PyExc_StopAsyncIteration)) {
        py_set_raised(exception);
        failing = pc->at;
        goto unwind;
    }
    PyObject *iterator = POP();
    Py_DECREF(exception);
    Py_DECREF(iterator);
    NEXT();
}

OP(BEFORE_ASYNC_WITH) OP(BEFORE_WITH) {
    PyObject *manager = TOP, *enter, *leave;
    if (DO_WITH_LOOKUP(manager, pc->op == OP_BEFORE_ASYNC_WITH, &enter, &leave) < 0)
        FAIL();
    PyObject *result = DO_CALL(enter, NULL, 0, NULL);
    SET_TOP(leave);
    Py_DECREF(manager);
    Py_DECREF(enter);
    if (!result)
        FAIL();
    PUSH(result);
    NEXT();
}
