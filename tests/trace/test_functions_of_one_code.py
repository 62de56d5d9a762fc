"""Functions that share a code object share what was compiled for it: what each of them has of its own
(closure, defaults, globals, builtins) is read anew in each call."""

import types

import pytest
from worlds import keep_empty


def closure(n):
    return lambda x: (x, n)


def default(n):
    return lambda x, y=n: (x, y)


def keyword_default(n):
    return lambda x, *, y=n: (x, y)


def with_globals(n):
    code = (lambda x: (x, SOME_NAME)).__code__  # noqa: F821
    return types.FunctionType(code, {"SOME_NAME": n})


def with_builtins(n):
    code = (lambda x: (x, some_builtin(x))).__code__  # noqa: F821
    return types.FunctionType(code, {"__builtins__": {"some_builtin": lambda x: n}})


def attribute(n):
    def f(x):
        return x, f.n

    f.n = n
    return f


def broken(f):
    """The same, run as a frame of its own: the call is made by something that breaks."""
    return lambda x: eval("f(x)", {"f": f[0], "x": x})


MAKERS = [closure, default, keyword_default, with_globals, with_builtins, attribute]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_called_in_turns(make):
    functions = [make(1), make(2)]
    box = [None]
    compiled = keep_empty(broken(box))
    for _ in range(3):
        for f in functions:
            box[0] = f
            assert compiled(5) == f(5)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_compiled_each(make):
    functions = [make(1), make(2)]
    compiled = [keep_empty(f) for f in functions]
    for _ in range(3):
        for f, g in zip(functions, compiled):
            assert g(5) == f(5)


def reads(module):
    return module.value, module.__dict__["value"]


def test_modules_in_turns():
    modules = [types.ModuleType("m"), types.ModuleType("m")]
    for i, module in enumerate(modules):
        module.value = i
    compiled = keep_empty(reads)
    for _ in range(3):
        for module in modules:
            assert compiled(module) == reads(module)
