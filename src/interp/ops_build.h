// Handlers: building containers and strings, taking them apart, match statements.

#define BUILD(expression, count)                                                                   \
    do {                                                                                           \
        PyObject *built = (expression);                                                            \
        if (!built)                                                                                \
            FAIL();                                                                                \
        sp = py_slots_drop(sp - (count), sp);                                                      \
        PUSH(built);                                                                               \
        NEXT();                                                                                    \
    } while (0)

OP(BUILD_TUPLE) {
    PyObject *built = build_tuple(py_slots_objects(sp - ARG), ARG);
    if (!built)
        FAIL();
    sp -= ARG;
    PUSH(built);
    NEXT();
}

OP(BUILD_LIST) {
    PyObject *built = build_list(py_slots_objects(sp - ARG), ARG);
    if (!built)
        FAIL();
    sp -= ARG;
    PUSH(built);
    NEXT();
}

OP(BUILD_SET) {
    PyObject *built = DO_BUILD_SET(py_slots_objects(sp - ARG), ARG);
    if (!built)
        FAIL();
    DROP_TO(sp - ARG);
    PUSH(built);
    NEXT();
}

OP(BUILD_MAP) {
    PyObject **first = py_slots_objects(sp - 2 * ARG);
    BUILD(DO_BUILD_MAP(first, 2, first + 1, 2, ARG), 2 * ARG);
}

OP(BUILD_CONST_KEY_MAP) {
    PyObject *keys = TOP;
    PyObject **values = py_slots_objects(sp - 1 - ARG);
    BUILD(DO_BUILD_MAP(((PyTupleObject *)keys)->ob_item, 1, values, 1, ARG), ARG + 1);
}

OP(BUILD_SLICE) {
    BUILD(DO_BUILD_SLICE(sp - ARG, ARG), ARG);
}

OP(BUILD_STRING) {
    BUILD(DO_BUILD_STRING(py_slots_objects(sp - ARG), ARG), ARG);
}

#undef BUILD

OP(LIST_APPEND) {
    PyObject *value = POP();
    int failed = DO_LIST_APPEND(PEEK(ARG), value);
    Py_DECREF(value);
    if (failed < 0)
        FAIL();
    NEXT();
}

OP(LIST_EXTEND) {
    PyObject *iterable = TOP;
    if (DO_LIST_EXTEND(PEEK(ARG + 1), iterable) < 0) {
        error_list_extend(iterable);
        FAIL();
    }
    sp--;
    Py_DECREF(iterable);
    NEXT();
}

OP(SET_ADD) {
    PyObject *value = POP();
    int failed = DO_SET_ADD(PEEK(ARG), value);
    Py_DECREF(value);
    if (failed < 0)
        FAIL();
    NEXT();
}

OP(SET_UPDATE) {
    PyObject *iterable = POP();
    int failed = DO_SET_UPDATE(PEEK(ARG), iterable);
    Py_DECREF(iterable);
    if (failed < 0)
        FAIL();
    NEXT();
}

OP(MAP_ADD) {
    PyObject *value = TOP, *key = PEEK(2);
    int failed = DO_SETITEM_DICT(PEEK(ARG + 2), key, value);
    sp -= 2;
    Py_DECREF(key);
    Py_DECREF(value);
    if (failed < 0)
        FAIL();
    NEXT();
}

OP(DICT_UPDATE) {
    PyObject *update = TOP;
    if (DO_DICT_UPDATE(PEEK(ARG + 1), update) < 0) {
        error_dict_update(update);
        FAIL();
    }
    sp--;
    Py_DECREF(update);
    NEXT();
}

// Collects the keywords of a call. The callable lies below them.
OP(DICT_MERGE) {
    PyObject *update = TOP;
    if (DO_DICT_MERGE(PEEK(ARG + 1), update) < 0) {
        error_dict_merge(PEEK(ARG + (PY_CALLABLE_FIRST ? 4 : 3)), update);
        FAIL();
    }
    sp--;
    Py_DECREF(update);
    NEXT();
}

OP(LIST_TO_TUPLE) {
    PyObject *list = TOP;
    PyObject *tuple = DO_LIST_TO_TUPLE(list);
    if (!tuple)
        FAIL();
    SET_TOP(tuple);
    Py_DECREF(list);
    NEXT();
}

OP(UNPACK_SEQUENCE) {
    PyObject *sequence = POP();
    int failed = DO_UNPACK(sequence, ARG, -1, sp + ARG);
    Py_DECREF(sequence);
    if (failed < 0)
        FAIL();
    sp += ARG;
    NEXT();
}

OP(UNPACK_EX) {
    PyObject *sequence = POP();
    int count = ARG + 1 + EXTRA;
    int failed = DO_UNPACK(sequence, ARG, EXTRA, sp + count);
    Py_DECREF(sequence);
    if (failed < 0)
        FAIL();
    sp += count;
    NEXT();
}

OP(FORMAT_VALUE) {
    PyObject *spec = EXTRA ? TOP : NULL;
    PyObject *value = PEEK(1 + EXTRA);
    PyObject *text = DO_FORMAT(value, ARG, spec);
    sp -= 1 + EXTRA;
    Py_DECREF(value);
    Py_XDECREF(spec);
    if (!text)
        FAIL();
    PUSH(text);
    NEXT();
}

OP(CONVERT_VALUE) {
    PyObject *value = TOP;
    PyObject *text = DO_CONVERT(value, ARG);
    sp--;
    Py_DECREF(value);
    if (!text)
        FAIL();
    PUSH(text);
    NEXT();
}

OP(GET_LEN) {
    PyObject *number = DO_LENGTH(TOP);
    if (!number)
        FAIL();
    PUSH(number);
    NEXT();
}

OP(MATCH_MAPPING) OP(MATCH_SEQUENCE) {
    unsigned long wanted = pc->op == OP_MATCH_MAPPING ? Py_TPFLAGS_MAPPING : Py_TPFLAGS_SEQUENCE;
    PyTypeObject *type = DO_TYPE(TOP);
    if (!type)
        FAIL();
    bool matches = (type->tp_flags & wanted) != 0;
    PUSH(Py_NewRef(matches ? Py_True : Py_False));
    NEXT_QUIET();
}

OP(MATCH_KEYS) {
    PyObject *values = DO_MATCH_KEYS(PEEK(2), TOP);
    if (!values)
        FAIL();
    PUSH(values);
    NEXT();
}

OP(MATCH_CLASS) {
    PyObject *keywords = TOP, *type = PEEK(2), *subject = PEEK(3);
    PyObject *attributes = DO_MATCH_CLASS(subject, type, ARG, keywords);
    if (!attributes)
        FAIL();
    sp -= 3;
    Py_DECREF(subject);
    Py_DECREF(type);
    Py_DECREF(keywords);
    PUSH(attributes);
    NEXT();
}
