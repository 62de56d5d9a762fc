// Handlers: attributes, operators, subscripts, comparisons.

OP(LOAD_ATTR) {
    PyObject *owner = TOP;
    PyObject *value = DO_GETATTR(owner, NAME(ARG));
    if (!value)
        FAIL();
    SET_TOP(value);
    Py_DECREF(owner);
    NEXT();
}

// Pushes function and self if the attribute is a plain method, else the value and a NULL.
OP(LOAD_METHOD) {
    PyObject *owner = TOP, *value = NULL;
    int unbound = DO_GETMETHOD(owner, NAME(ARG), &value);
    if (!value)
        FAIL();
    if (unbound) {
        SET_TOP(value);
        PUSH(owner);
        NEXT();
    }
    SET_TOP(PY_CALLABLE_FIRST ? value : NULL);
    PUSH(PY_CALLABLE_FIRST ? NULL : value);
    Py_DECREF(owner);
    NEXT();
}

OP(STORE_ATTR) {
    PyObject *owner = TOP, *value = PEEK(2);
    int failed = DO_SETATTR(owner, NAME(ARG), value);
    sp -= 2;
    Py_DECREF(value);
    Py_DECREF(owner);
    if (failed < 0)
        FAIL();
    NEXT();
}

OP(DELETE_ATTR) {
    PyObject *owner = TOP;
    int failed = DO_SETATTR(owner, NAME(ARG), NULL);
    sp--;
    Py_DECREF(owner);
    if (failed < 0)
        FAIL();
    NEXT();
}

OP(LOAD_SUPER_ATTR) {
    PyObject *self = TOP, *type = PEEK(2), *super = PEEK(3), *method = NULL;
    bool wants_method = EXTRA & 1;
    PyObject *value = DO_SUPER_ATTR(super, type, self, NAME(ARG), (EXTRA & 2) != 0,
                                    wants_method ? &method : NULL);
    sp -= 3;
    Py_DECREF(super);
    Py_DECREF(type);
    Py_DECREF(self);
    if (!value)
        FAIL();
    if (wants_method && !method && !PY_CALLABLE_FIRST)
        PUSH(NULL);
    PUSH(value);
    if (wants_method && (method || PY_CALLABLE_FIRST))
        PUSH(method);
    NEXT();
}

#define UNARY(function)                                                                            \
    do {                                                                                           \
        PyObject *operand = TOP;                                                                   \
        PyObject *result = DO_UNARY(function, operand);                                            \
        sp--;                                                                                      \
        Py_DECREF(operand);                                                                        \
        if (!result)                                                                               \
            FAIL();                                                                                \
        PUSH(result);                                                                              \
        NEXT();                                                                                    \
    } while (0)

OP(UNARY_POSITIVE) {
    UNARY(PyNumber_Positive);
}

OP(UNARY_NEGATIVE) {
    UNARY(PyNumber_Negative);
}

OP(UNARY_INVERT) {
    UNARY(PyNumber_Invert);
}

#undef UNARY

OP(UNARY_NOT) OP(TO_BOOL) {
    PyObject *operand = TOP;
    int truth = DO_TRUTH(operand);
    sp--;
    Py_DECREF(operand);
    if (truth < 0)
        FAIL();
    PUSH(Py_NewRef((truth ^ (pc->op == OP_UNARY_NOT)) ? Py_True : Py_False));
    NEXT();
}

OP(BINARY_OP) {
    PyObject *right = TOP, *left = PEEK(2);
    if (PyUnicode_CheckExact(left) && PyUnicode_CheckExact(right) &&
        (ARG == PY_ADD || ARG == PY_INPLACE_ADD) && pc[1].op == OP_STORE_FAST &&
        SLOT(pc[1].arg) == left) {
        // `s += t`: as in CPython, the variable about to be overwritten lets go first, so that the
        // string can grow in place and building one piece by piece is not quadratic.
        SET_SLOT(pc[1].arg, NULL);
        Py_DECREF(left);
        sp--;
        PyUnicode_Append(&left, right);
        Py_DECREF(right);
        SET_TOP(left);
        if (!left)
            FAIL();
        NEXT();
    }
    PyObject *result = DO_BINARY(ARG, left, right);
    sp -= 2;
    Py_DECREF(left);
    Py_DECREF(right);
    if (!result)
        FAIL();
    PUSH(result);
    NEXT();
}

OP(BINARY_SUBSCR) {
    PyObject *key = TOP, *container = PEEK(2);
    PyObject *result = DO_GETITEM(container, key);
    sp -= 2;
    Py_DECREF(container);
    Py_DECREF(key);
    if (!result)
        FAIL();
    PUSH(result);
    NEXT();
}

OP(STORE_SUBSCR) {
    PyObject *key = TOP, *container = PEEK(2), *value = PEEK(3);
    int failed = DO_SETITEM(container, key, value);
    sp -= 3;
    Py_DECREF(value);
    Py_DECREF(container);
    Py_DECREF(key);
    if (failed < 0)
        FAIL();
    NEXT();
}

OP(DELETE_SUBSCR) {
    PyObject *key = TOP, *container = PEEK(2);
    int failed = DO_DELITEM(container, key);
    sp -= 2;
    Py_DECREF(container);
    Py_DECREF(key);
    if (failed < 0)
        FAIL();
    NEXT();
}

OP(BINARY_SLICE) {
    PyObject *slice = DO_BUILD_SLICE(sp - 2, 2);
    if (!slice)
        FAIL();
    PyObject *container = PEEK(3);
    PyObject *result = DO_GETITEM(container, slice);
    DROP_TO(sp - 2);
    Py_DECREF(slice);
    sp--;
    Py_DECREF(container);
    if (!result)
        FAIL();
    PUSH(result);
    NEXT();
}

OP(STORE_SLICE) {
    PyObject *slice = DO_BUILD_SLICE(sp - 2, 2);
    if (!slice)
        FAIL();
    PyObject *container = PEEK(3), *value = PEEK(4);
    int failed = DO_SETITEM(container, slice, value);
    DROP_TO(sp - 2);
    Py_DECREF(slice);
    sp -= 2;
    Py_DECREF(value);
    Py_DECREF(container);
    if (failed < 0)
        FAIL();
    NEXT();
}

OP(COMPARE_OP) {
    PyObject *right = TOP, *left = PEEK(2);
    PyObject *result = EXTRA ? DO_COMPARE_TRUTH(left, right, ARG) : DO_COMPARE(left, right, ARG);
    if (EXTRA && result && !PyBool_Check(result)) {
        int truth = DO_TRUTH(result);
        Py_DECREF(result);
        result = truth < 0 ? NULL : Py_NewRef(truth ? Py_True : Py_False);
    }
    sp -= 2;
    Py_DECREF(left);
    Py_DECREF(right);
    if (!result)
        FAIL();
    PUSH(result);
    NEXT();
}

OP(IS_OP) {
    PyObject *right = TOP, *left = PEEK(2);
    int same = DO_IS(left, right);
    sp -= 2;
    Py_DECREF(left);
    Py_DECREF(right);
    if (same < 0)
        FAIL();
    PUSH(Py_NewRef((same ^ ARG) ? Py_True : Py_False));
    NEXT();
}

OP(CONTAINS_OP) {
    PyObject *container = TOP, *value = PEEK(2);
    int found = DO_CONTAINS(container, value);
    sp -= 2;
    Py_DECREF(value);
    Py_DECREF(container);
    if (found < 0)
        FAIL();
    PUSH(Py_NewRef((found ^ ARG) ? Py_True : Py_False));
    NEXT();
}
