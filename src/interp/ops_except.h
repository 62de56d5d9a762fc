// Handlers: raising, catching, re-raising.

// Stack: exit, lasti, previous exception, exception.
OP(WITH_EXCEPT_START) {
    PyObject *result = DO_WITH_EXIT(PEEK(4), TOP);
    if (!result)
        FAIL();
    PUSH(result);
    NEXT();
}

OP(PUSH_EXC_INFO) {
    PyObject *exception = TOP;
    DO_CAUGHT(exception);
    _PyErr_StackItem *info = ts->exc_info;
    SET_TOP(info->exc_value ? info->exc_value : Py_NewRef(Py_None));
    info->exc_value = Py_NewRef(exception);
    PUSH(exception);
    NEXT_QUIET();
}

OP(POP_EXCEPT) {
    PyObject *previous = POP();
    if (PY_NO_EXCEPTION_IS_NULL && previous == Py_None)
        Py_CLEAR(previous);
    Py_XSETREF(ts->exc_info->exc_value, previous);
    NEXT();
}

OP(CHECK_EXC_MATCH) {
    PyObject *type = TOP, *exception = PEEK(2);
    int matches = DO_EXCEPT_MATCH(exception, type);
    sp--;
    Py_DECREF(type);
    if (matches < 0)
        FAIL();
    PUSH(Py_NewRef(matches ? Py_True : Py_False));
    NEXT();
}

OP(CHECK_EG_MATCH) {
    PyObject *type = TOP, *exception = PEEK(2), *match, *rest;
    int failed = DO_EXCEPT_STAR_MATCH(exception, type, &match, &rest);
    sp--;
    Py_DECREF(type);
    if (failed < 0)
        FAIL();
    SET_TOP(rest);
    Py_DECREF(exception);
    PUSH(match);
    NEXT();
}

OP(PREP_RERAISE_STAR) {
    PyObject *raised = TOP, *original = PEEK(2);
    PyObject *result = DO_PREP_RERAISE_STAR(original, raised);
    sp -= 2;
    Py_DECREF(original);
    Py_DECREF(raised);
    if (!result)
        FAIL();
    PUSH(result);
    NEXT();
}

// The frame's pointer moves back to the instruction that raised. The handler is looked up from this
// instruction.
OP(RERAISE) {
    PyObject *exception = TOP;
    if (DO_RERAISE(exception, ARG ? sp - (ARG + 1) : NULL) < 0)
        FAIL();
    sp--;
    failing = pc->at;
    if (ARG) {
        PyObject *lasti = PEEK(ARG);
        if (!PyLong_Check(lasti)) {
            Py_DECREF(exception);
            PyErr_SetString(PyExc_SystemError, "lasti is not an int");
            FAIL();
        }
        py_frame_set_executing(frame, units + PyLong_AsLong(lasti));
    }
    py_set_raised(exception);
    goto unwind;
}

OP(RAISE_VARARGS) {
    PyObject *cause = ARG > 1 ? POP() : NULL;
    PyObject *exception = ARG > 0 ? POP() : NULL;
    bool again = DO_RAISE(exception, cause);
    Py_XDECREF(exception);
    Py_XDECREF(cause);
    failing = pc->at;
    if (again)
        goto unwind;
    goto error_at;
}
