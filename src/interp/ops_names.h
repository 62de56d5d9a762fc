// Handlers: names in namespaces, imports.

OP(LOAD_CLASSDEREF) {
    PyObject *value = DO_LOAD_DICT_OR_CELL(LOCALS, SLOT(ARG), r->code->py, ARG);
    if (!value)
        FAIL();
    PUSH(value);
    NEXT();
}

OP(LOAD_FROM_DICT_OR_DEREF) {
    PyObject *dict = TOP;
    PyObject *value = DO_LOAD_DICT_OR_CELL(dict, SLOT(ARG), r->code->py, ARG);
    if (!value)
        FAIL();
    SET_TOP(value);
    Py_DECREF(dict);
    NEXT();
}

OP(LOAD_NAME) {
    PyObject *value = DO_LOAD_NAME(LOCALS, GLOBALS, BUILTINS, NAME(ARG));
    if (!value)
        FAIL();
    PUSH(value);
    NEXT();
}

OP(STORE_NAME) {
    PyObject *value = TOP;
    int failed = DO_STORE_NAME(LOCALS, NAME(ARG), value);
    sp--;
    Py_DECREF(value);
    if (failed < 0)
        FAIL();
    NEXT();
}

OP(DELETE_NAME) {
    if (DO_DELETE_NAME(LOCALS, NAME(ARG)) < 0)
        FAIL();
    NEXT();
}

OP(LOAD_GLOBAL) {
    PyObject *value = DO_LOAD_GLOBAL(GLOBALS, BUILTINS, NAME(ARG));
    if (!value)
        FAIL();
    if (EXTRA && !PY_CALLABLE_FIRST)
        PUSH(NULL);
    PUSH(value);
    if (EXTRA && PY_CALLABLE_FIRST)
        PUSH(NULL);
    NEXT();
}

OP(STORE_GLOBAL) {
    PyObject *value = TOP;
    int failed = DO_STORE_GLOBAL(GLOBALS, NAME(ARG), value);
    sp--;
    Py_DECREF(value);
    if (failed < 0)
        FAIL();
    NEXT();
}

OP(DELETE_GLOBAL) {
    if (DO_DELETE_GLOBAL(GLOBALS, NAME(ARG)) < 0)
        FAIL();
    NEXT();
}

OP(LOAD_LOCALS) {
    PyObject *locals = DO_LOAD_LOCALS(LOCALS);
    if (!locals)
        FAIL();
    PUSH(locals);
    NEXT();
}

OP(LOAD_FROM_DICT_OR_GLOBALS) {
    PyObject *dict = TOP;
    PyObject *value = DO_LOAD_DICT_OR_GLOBAL(dict, GLOBALS, BUILTINS, NAME(ARG));
    if (!value)
        FAIL();
    SET_TOP(value);
    Py_DECREF(dict);
    NEXT();
}

OP(SETUP_ANNOTATIONS) {
    if (DO_SETUP_ANNOTATIONS(LOCALS) < 0)
        FAIL();
    NEXT();
}

OP(IMPORT_NAME) {
    PyObject *fromlist = TOP, *level = PEEK(2);
    PyObject *module = DO_IMPORT_NAME(GLOBALS, BUILTINS, LOCALS, NAME(ARG), fromlist, level);
    sp--;
    SET_TOP(module);
    Py_DECREF(level);
    Py_DECREF(fromlist);
    if (!module)
        FAIL();
    NEXT();
}

OP(IMPORT_FROM) {
    PyObject *value = DO_IMPORT_FROM(TOP, NAME(ARG));
    if (!value)
        FAIL();
    PUSH(value);
    NEXT();
}

OP(IMPORT_STAR) {
    PyObject *module = TOP;
    if (DO_IMPORT_STAR(module, LOCALS) < 0)
        FAIL();
    sp--;
    Py_DECREF(module);
    if (EXTRA)
        PUSH(Py_NewRef(Py_None));
    NEXT();
}
