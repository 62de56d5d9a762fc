"""Functions that share a code object share what was compiled for it: what each of them has of its own
(closure, defaults, globals, builtins, attributes) is read anew in each call. What is only moved is
not looked at: one entry serves all the functions. What is looked at makes an entry for each."""

import gc
import types

import pytest

from stator import _engine

# How a function comes to a value of its own: (parameters besides x and pause, expression, what is
# done with `f`, the function that was made).
OWN = {
    "closure": ("", "n", "f"),
    "default": (", y=n", "y", "f"),
    "keyword_default": (", *, y=n", "y", "f"),
    "with_globals": ("", "SOME_NAME", "FunctionType(f.__code__, {'SOME_NAME': n})"),
    "with_builtins": (
        "",
        "some_builtin()",
        "FunctionType(f.__code__, {'__builtins__': {'some_builtin': lambda: n}})",
    ),
    "attribute": ("", "f.n", "with_attribute(f, n)"),
}

# What is done with the value: (the body, entries made for one function, and for two of them).
USES = {
    "moved": ("return x, {own}", 1, 1),
    "looked_at": ("return x + {own}", 1, 2),
    "moved_behind_a_break": ("pause(); return x, {own}", 2, 2),
    "looked_at_behind_a_break": ("pause(); return x + {own}", 2, 3),
    "looked_at_before_a_break": ("y_ = x + {own}; pause(); return y_", 2, 3),
}

CASES = [pytest.param(own, use, id=f"{own}-{use}") for own in OWN for use in USES]
ROUNDS = 3


def with_attribute(f, n):
    f.n = n
    return f


def make_two(own, use):
    """Two functions of one code, each with a number of its own."""
    parameters, expression, finish = OWN[own]
    body = USES[use][0].format(own=expression)
    text = f"def make(n):\n def f(x, pause{parameters}):\n  {body}\n return {finish}"
    names = {"FunctionType": types.FunctionType, "with_attribute": with_attribute}
    exec(text, names)
    functions = [names["make"](1), names["make"](2)]
    assert functions[0].__code__ is functions[1].__code__
    return functions


def compiler():
    return _engine.compiler(None, RuntimeError, False, True, 8)


def call_in_turns(functions, compiled):
    for _ in range(ROUNDS):
        for f, g in zip(functions, compiled, strict=True):
            assert g(5, gc.isenabled) == f(5, gc.isenabled)


def check_counts(settings, code, entries, shared):
    """How many entries there are of the code, that no trace was dropped, and that `shared` of the
    entries were run by both functions."""
    metrics = settings.metrics
    assert metrics["traces"] == metrics["entries"] and not metrics["drops"]
    made = [entry for entry in settings.entries() if entry["code"] is code]
    assert len(made) == entries
    hits = sorted(entry["hits"] for entry in made)
    # Its first run is not counted: it was traced. One entry of two is run in every second call.
    assert hits == sorted([2 * ROUNDS - 1] * shared + [ROUNDS - 1] * (entries - shared))


@pytest.mark.parametrize("own, use", CASES)
def test_compiled_each(own, use):
    functions = make_two(own, use)
    settings = compiler()
    call_in_turns(functions, [_engine.compiled(f, settings) for f in functions])
    _, one, two = USES[use]
    check_counts(settings, functions[0].__code__, two, 2 * one - two)


@pytest.mark.parametrize("own, use", CASES)
def test_called_in_turns(own, use):
    """Here the functions are what a compiled function finds in a list, and calls."""
    functions = make_two(own, use)
    settings = compiler()
    box = [None]

    def caller(x, pause):
        return box[0](x, pause)

    compiled = _engine.compiled(caller, settings)

    def call(f):
        box[0] = f
        return compiled(5, gc.isenabled)

    for _ in range(ROUNDS):
        for f in functions:
            assert call(f) == f(5, gc.isenabled)
    _, one, two = USES[use]
    before = caller.__code__  # the frame of the callee is part of its caller's trace
    made = [entry for entry in settings.entries() if entry["code"] is before]
    starts = two if one == 1 else two - 1 if "before" in use else 1
    assert len([entry for entry in made if entry["offset"] == 0]) == starts
    assert settings.metrics["entries"] == two and not settings.metrics["drops"]


def reads(module):
    return module.value, module.__dict__["value"]


def test_modules_in_turns():
    modules = [types.ModuleType("m"), types.ModuleType("m")]
    for i, module in enumerate(modules):
        module.value = i
    settings = compiler()
    compiled = _engine.compiled(reads, settings)
    for _ in range(ROUNDS):
        for module in modules:
            assert compiled(module) == reads(module)
    check_counts(settings, reads.__code__, 1, 1)
