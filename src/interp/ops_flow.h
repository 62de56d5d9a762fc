// Handlers: jumps and loops.

OP(JUMP) {
    JUMP();
}

#define JUMP_ON(wanted)                                                                            \
    do {                                                                                           \
        PyObject *condition = POP();                                                               \
        int truth;                                                                                 \
        if (condition == Py_True) {                                                                \
            truth = 1;                                                                             \
        } else if (condition == Py_False) {                                                        \
            truth = 0;                                                                             \
        } else {                                                                                   \
            truth = DO_TRUTH(condition);                                                           \
        }                                                                                          \
        Py_DECREF(condition);                                                                      \
        if (truth < 0)                                                                             \
            FAIL();                                                                                \
        if (truth == (wanted))                                                                     \
            JUMP();                                                                                \
        NEXT();                                                                                    \
    } while (0)

OP(POP_JUMP_IF_TRUE) {
    JUMP_ON(1);
}

OP(POP_JUMP_IF_FALSE) {
    JUMP_ON(0);
}

#undef JUMP_ON

OP(POP_JUMP_IF_NONE) OP(POP_JUMP_IF_NOT_NONE) {
    PyObject *value = POP();
    int none = DO_IS(value, Py_None);
    Py_DECREF(value);
    if (none < 0)
        FAIL();
    if (none == (pc->op == OP_POP_JUMP_IF_NONE))
        JUMP();
    NEXT();
}

// The operand stays on the taken side, so it is dropped only when falling through.
OP(JUMP_IF_TRUE_OR_POP) OP(JUMP_IF_FALSE_OR_POP) {
    int truth = DO_TRUTH(TOP);
    if (truth < 0)
        FAIL();
    if (truth == (pc->op == OP_JUMP_IF_TRUE_OR_POP))
        JUMP();
    Py_DECREF(POP());
    NEXT();
}

OP(GET_ITER) {
    PyObject *iterable = TOP;
    PyObject *iterator = DO_ITER(iterable);
    sp--;
    Py_DECREF(iterable);
    if (!iterator)
        FAIL();
    PUSH(iterator);
    NEXT();
}

OP(FOR_ITER) {
    PyObject *item = DO_ITERNEXT(TOP);
    if (item) {
        PUSH(item);
        NEXT();
    }
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_StopIteration))
            FAIL();
        PyErr_Clear();
    }
    Py_DECREF(POP());
    JUMP();
}

OP(END_FOR) {
    for (int i = 0; i < EXTRA; i++)
        Py_DECREF(POP());
    NEXT();
}
