"""Compiles functions with numbers that are kept open, and compares their calls with plain ones."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from stator import _engine

VALUE = 1 << 30


class Color(enum.IntEnum):
    RED = 2


class Step(int):
    pass


class Rate(float):
    pass


INTS = [3, 0, 1, -1, 2, -7, 5, 100, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.5, 0.0, -0.0, 1.0, -1.5, 2.5, 3.7, 1e308, -1e308, 1e-320, float("inf"), -float("inf")]
ODD = [2**63, 2**70, -(2**70), True, False, float("nan"), Color.RED, Step(3), Rate(0.5), None, "a"]
VALUES = [*INTS, *FLOATS, *ODD]


def compile_open(
    function: Any, places: Iterable[str] = (), limit: int = 1000, **more: Any
) -> _engine.Compiled:
    """`places`: parameters whose numbers are kept open, or texts of places."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    texts = [f"L[{place!r}]" if place in names else place for place in places or names]
    symbolic = dict.fromkeys(texts, VALUE)
    compiler = _engine.compiler(None, RuntimeError, False, True, limit, symbolic=symbolic, **more)
    return _engine.compiled(function, compiler)


def entries(compiled: Any) -> int:
    return len(compiled.compiler.entries())


def seen(o: Any) -> Any:
    """What can be told of a result: types and text, deeply."""
    if type(o) in (tuple, list):
        return (type(o), [seen(item) for item in o])
    if type(o) is dict:
        return (dict, [(seen(key), seen(value)) for key, value in o.items()])
    return (type(o), hex(o) if type(o) is int else repr(o))


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ("gave", seen(function(*args)))
        except Exception as raised:
            return ("raised", type(raised), str(raised))


def differences(function: Any, compiled: Any, calls: Iterable[tuple[Any, ...]]) -> list[str]:
    """Calls whose outcome is another one than the plain function's. Each is made twice."""
    found = []
    for args in calls:
        expected = outcome(function, *args)
        for _ in range(2):
            got = outcome(compiled, *args)
            if got != expected:
                found.append(f"{args}: {expected} expected, {got} found")
    return found


def from_source(text: str) -> Any:
    """The function `f` of a program's text."""
    import functools
    import math
    import operator

    names = {"math": math, "operator": operator, "functools": functools}
    exec(text, names)
    return names["f"]
