// Names that src/attr and src/call look up, interned, and C types that CPython does not export.
#pragma once

#include "src/py/py.h"

#define WORDS(X)                                                                                   \
    X(abstractmethods, "__abstractmethods__")                                                      \
    X(annotations, "__annotations__")                                                              \
    X(args, "args")                                                                                \
    X(builtins, "__builtins__")                                                                    \
    X(call, "__call__")                                                                            \
    X(class_, "__class__")                                                                         \
    X(closure, "__closure__")                                                                      \
    X(code, "__code__")                                                                            \
    X(context, "__context__")                                                                      \
    X(defaults, "__defaults__")                                                                    \
    X(del, "__del__")                                                                              \
    X(delattr, "__delattr__")                                                                      \
    X(delete_, "__delete__")                                                                       \
    X(dict, "__dict__")                                                                            \
    X(dir, "__dir__")                                                                              \
    X(doc, "__doc__")                                                                              \
    X(entries, "__entries")                                                                        \
    X(fdel, "fdel")                                                                                \
    X(fget, "fget")                                                                                \
    X(fset, "fset")                                                                                \
    X(func, "__func__")                                                                            \
    X(generator_frame, "gi_frame")                                                                 \
    X(get, "__get__")                                                                              \
    X(getattr, "__getattr__")                                                                      \
    X(getattribute, "__getattribute__")                                                            \
    X(globals, "__globals__")                                                                      \
    X(init, "__init__")                                                                            \
    X(init_subclass, "__init_subclass__")                                                          \
    X(isabstract, "__isabstractmethod__")                                                          \
    X(iter, "__iter__")                                                                            \
    X(keywords, "keywords")                                                                        \
    X(kwdefaults, "__kwdefaults__")                                                                \
    X(module, "__module__")                                                                        \
    X(mro, "mro")                                                                                  \
    X(name, "__name__")                                                                            \
    X(new_, "__new__")                                                                             \
    X(orig_bases, "__orig_bases__")                                                                \
    X(partial_func, "func")                                                                        \
    X(qualname, "__qualname__")                                                                    \
    X(spec, "__spec__")                                                                            \
    X(self, "__self__")                                                                            \
    X(set, "__set__")                                                                              \
    X(set_name, "__set_name__")                                                                    \
    X(setattr, "__setattr__")                                                                      \
    X(subclasscheck, "__subclasscheck__")                                                          \
    X(subclasshook, "__subclasshook__")                                                            \
    X(thisclass, "__thisclass__")                                                                  \
    X(traceback_frame, "tb_frame")                                                                 \
    X(traceback, "__traceback__")                                                                  \
    X(weakref, "__weakref__")                                                                      \
    X(wrapped, "__wrapped__")

typedef struct words {
#define WORD(id, text) PyObject *id;
    WORDS(WORD)
#undef WORD
    PyTypeObject *partial, *cached; // functools.partial, and the type of functions that
                                    // functools.lru_cache wraps
    PyTypeObject *tuple_getter;     // fields of namedtuples
    PyTypeObject *method_wrapper;   // bound slot wrappers
} words;

extern words word;
// Fills `word`: 0, or -1 with an exception. A second call does nothing.
int words_setup(void);
