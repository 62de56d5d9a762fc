// Interns the names of `word`, and finds the types that need an import.
#include "src/attr/words.h"

words word;

static PyTypeObject *type_of_bound_wrapper(void) {
    PyObject *bound = PyObject_GetAttrString(Py_None, "__repr__");
    PyTypeObject *type = bound ? (PyTypeObject *)Py_NewRef(Py_TYPE(bound)) : NULL;
    Py_XDECREF(bound);
    return type;
}

int words_setup(void) {
    if (word.tuple_getter)
        return 0;
#define WORD(id, text)                                                                             \
    if (!word.id && !(word.id = PyUnicode_InternFromString(text)))                                 \
        return -1;
    WORDS(WORD)
#undef WORD
    if (!word.partial && !(word.partial = (PyTypeObject *)py_import("_functools", "partial")))
        return -1;
    if (!word.cached &&
        !(word.cached = (PyTypeObject *)py_import("_functools", "_lru_cache_wrapper")))
        return -1;
    if (!word.method_wrapper && !(word.method_wrapper = type_of_bound_wrapper()))
        return -1;
    word.tuple_getter = (PyTypeObject *)py_import("_collections", "_tuplegetter");
    return word.tuple_getter ? 0 : -1;
}
