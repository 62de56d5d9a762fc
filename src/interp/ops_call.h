// Handlers: calls, functions, returns.

// The two slots under the arguments hold function and self of a method, or the callable and a NULL.
OP(CALL) OP(CALL_KW) {
    PyObject *keywords = NULL;
    if (pc->op == OP_CALL_KW)
        keywords = POP();
    else if (EXTRA >= 0)
        keywords = CONST(EXTRA);
    py_slot *bottom = sp - ARG - 2;
    bool method = py_slot_get(bottom + (PY_CALLABLE_FIRST ? 1 : 0)) || call_open_method(bottom);
    PyObject *callable = py_slot_get(bottom + (PY_CALLABLE_FIRST || method ? 0 : 1));
    size_t given = (size_t)ARG + method - (keywords ? (size_t)PyTuple_GET_SIZE(keywords) : 0);
    LEND(callable, sp - ARG - method, ARG + method);
    PyObject *result = DO_CALL(callable, py_slots_objects(sp - ARG - method),
                               given | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords);
    UNLEND();
    // A call whose arguments do not fit drops those without a parameter first.
    if (!result && PyFunction_Check(callable))
        sp = py_slots_drop(bottom + 2, sp);
    DROP_TO(bottom);
    if (pc->op == OP_CALL_KW)
        Py_DECREF(keywords);
    if (!result)
        FAIL();
    PUSH(result);
    NEXT_AFTER_CALL();
}

OP(CALL_FUNCTION_EX) {
    int keywords = EXTRA;
    py_slot *bottom = sp - 3 - keywords;
    PyObject *callable = py_slot_get(bottom + (PY_CALLABLE_FIRST ? 0 : 1));
    if (DO_PREPARE_STAR(callable, &bottom[2], keywords ? &bottom[3] : NULL) < 0)
        FAIL();
    PyObject *result;
    PyObject *star = py_slot_get(bottom + 2), *named = keywords ? py_slot_get(bottom + 3) : NULL;
    if (LOOP_LENDS && PY_STAR_CALL_LENDS && named && PyFunction_Check(callable) &&
        PyDict_GET_SIZE(named) > 0) {
        flat_args flat = call_flatten(star, named);
        if (!flat.items)
            FAIL();
        py_slot_set(bottom + 2, NULL);
        py_slot_set(bottom + 3, NULL);
        LEND(callable, flat.items, flat.count);
        result = DO_CALL(callable, py_slots_objects(flat.items), flat.given, flat.names);
        UNLEND();
        call_drop_flat(&flat);
    } else {
        LEND(callable, bottom + 2, PY_STAR_CALL_LENDS ? 1 + keywords : 0);
        result = DO_CALL_STAR(callable, star, named);
        UNLEND();
    }
    DROP_TO(bottom);
    if (!result)
        FAIL();
    PUSH(result);
    NEXT_AFTER_CALL();
}

OP(MAKE_FUNCTION) {
    PyObject *body = TOP;
    PyObject *function = DO_MAKE_FUNCTION(GLOBALS, sp, ARG);
    if (!function)
        FAIL();
    sp -= __builtin_popcount((unsigned)ARG);
    SET_TOP(function);
    Py_DECREF(body);
    NEXT();
}

OP(SET_FUNCTION_ATTRIBUTE) {
    if (DO_SET_FUNCTION_ATTRIBUTE(sp) < 0)
        FAIL();
    PyObject *function = POP();
    call_set_function_attribute(function, ARG, TOP);
    SET_TOP(function);
    NEXT();
}

OP(LOAD_BUILD_CLASS) {
    PyObject *builder = DO_BUILD_CLASS(BUILTINS);
    if (!builder)
        FAIL();
    PUSH(builder);
    NEXT();
}

OP(LOAD_ASSERTION_ERROR) {
    PUSH(Py_NewRef(PyExc_AssertionError));
    NEXT_QUIET();
}

OP(PRINT_EXPR) {
    PyObject *value = TOP;
    PyObject *result = DO_PRINT_EXPR(value);
    sp--;
    Py_DECREF(value);
    if (!result)
        FAIL();
    if (EXTRA)
        PUSH(result);
    else
        Py_DECREF(result);
    NEXT();
}

OP(INTRINSIC_1) {
    PyObject *value = TOP;
    PyObject *result = DO_INTRINSIC_1(ARG, value);
    sp--;
    Py_DECREF(value);
    if (!result)
        FAIL();
    PUSH(result);
    NEXT();
}

OP(INTRINSIC_2) {
    PyObject *second = TOP, *first = PEEK(2);
    PyObject *result = DO_INTRINSIC_2(ARG, first, second);
    sp -= 2;
    Py_DECREF(first);
    Py_DECREF(second);
    if (!result)
        FAIL();
    PUSH(result);
    NEXT();
}

OP(RETURN_VALUE) {
    if (DO_RETURN() < 0)
        FAIL();
    r->value = POP();
    r->sp = sp;
    return RUN_RETURN;
}

OP(RETURN_CONST) {
    if (DO_RETURN() < 0)
        FAIL();
    r->value = Py_NewRef(CONST(ARG));
    r->sp = sp;
    return RUN_RETURN;
}
