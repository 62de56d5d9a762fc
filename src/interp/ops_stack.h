// Handlers: the stack, constants, locals and cells.

OP(NOP) {
    NEXT_QUIET();
}

OP(RESUME) {
    // The low two bits of the argument say where it stands. Behind `yield from` and `await` no
    // signal may be handled.
    if (UNLIKELY(py_poll_wanted(ts)) && (ARG & 3) < 2)
        goto poll;
    NEXT();
}

OP(POP_TOP) {
    PyObject *dropped = POP();
    DO_DROPPED(dropped);
    Py_DECREF(dropped);
    NEXT();
}

OP(PUSH_NULL) {
    PUSH(NULL);
    NEXT_QUIET();
}

OP(COPY) {
    PyObject *copied = PEEK(ARG);
    PUSH(Py_XNewRef(copied));
    NEXT_QUIET();
}

OP(SWAP) {
    PyObject *top = TOP;
    SET_TOP(PEEK(ARG));
    py_slot_put(sp - ARG, top);
    NEXT_QUIET();
}

OP(LOAD_CONST) {
    PUSH(Py_NewRef(CONST(ARG)));
    NEXT_QUIET();
}

OP(LOAD_FAST) {
    PUSH(Py_NewRef(SLOT(ARG)));
    NEXT_QUIET();
}

OP(LOAD_FAST_CHECK) OP(LOAD_CLOSURE) {
    PyObject *value = SLOT(ARG);
    if (UNLIKELY(!value)) {
        error_unbound_local(r->code->py, ARG);
        FAIL();
    }
    PUSH(Py_NewRef(value));
    NEXT_QUIET();
}

OP(LOAD_FAST_AND_CLEAR) {
    PUSH(py_slot_take(&slots[ARG]));
    NEXT_QUIET();
}

OP(STORE_FAST) {
    PyObject *old = SLOT(ARG);
    SET_SLOT(ARG, POP());
    DO_STORED(ARG, SLOT(ARG));
    DO_DROPPED(old);
    Py_XDECREF(old);
    NEXT();
}

OP(DELETE_FAST) {
    PyObject *old = SLOT(ARG);
    if (UNLIKELY(!old)) {
        error_unbound_local(r->code->py, ARG);
        FAIL();
    }
    SET_SLOT(ARG, NULL);
    DO_DROPPED(old);
    Py_DECREF(old);
    NEXT();
}

OP(MAKE_CELL) {
    PyObject *initial = SLOT(ARG);
    PyObject *cell = PyCell_New(initial);
    if (!cell)
        FAIL();
    SET_SLOT(ARG, cell);
    Py_XDECREF(initial);
    NEXT();
}

OP(COPY_FREE_VARS) {
    PyObject *closure = ((PyFunctionObject *)py_frame_function(frame))->func_closure;
    int first = r->code->py->co_nlocalsplus - ARG;
    for (int i = 0; i < ARG; i++)
        SET_SLOT(first + i, Py_NewRef(PyTuple_GET_ITEM(closure, i)));
    NEXT_QUIET();
}

OP(LOAD_DEREF) {
    PyObject *value = DO_CELL_GET(SLOT(ARG));
    if (UNLIKELY(!value)) {
        error_unbound_cell(r->code->py, ARG);
        FAIL();
    }
    PUSH(value);
    NEXT_QUIET();
}

OP(STORE_DEREF) {
    PyObject *value = POP();
    int failed = DO_CELL_SET(SLOT(ARG), value);
    DO_STORED(ARG, value);
    Py_DECREF(value);
    if (failed < 0)
        FAIL();
    NEXT();
}

OP(DELETE_DEREF) {
    PyObject *old = DO_CELL_GET(SLOT(ARG));
    if (UNLIKELY(!old)) {
        error_unbound_cell(r->code->py, ARG);
        FAIL();
    }
    int failed = DO_CELL_SET(SLOT(ARG), NULL);
    Py_DECREF(old);
    if (failed < 0)
        FAIL();
    NEXT();
}
