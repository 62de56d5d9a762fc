// Interns the names of `word`, and finds the types that need an import.
#include "src/attr/words.h"

words word;

static PyTypeObject *find_type(const char *module, const char *name) {
    PyObject *from = PyImport_ImportModule(module);
    PyObject *type = from ? PyObject_GetAttrString(from, name) : NULL;
    Py_XDECREF(from);
    return (PyTypeObject *)type;
}

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
    if (!word.partial && !(word.partial = find_type("_functools", "partial")))
        return -1;
    if (!word.cached && !(word.cached = find_type("_functools", "_lru_cache_wrapper")))
        return -1;
    if (!word.method_wrapper && !(word.method_wrapper = type_of_bound_wrapper()))
        return -1;
    word.tuple_getter = find_type("_collections", "_tuplegetter");
    return word.tuple_getter ? 0 : -1;
}
