"""C callables inside a trace do what they do outside: the same results and errors, and another
result as soon as something they depend on has changed."""

import _json
import _operator
import _sre
import _thread
import abc
import ast
import bisect
import cmath
import codecs
import collections.abc
import contextvars
import copy
import datetime
import functools
import heapq
import itertools
import json
import math
import operator
import os
import random
import re
import struct
import sys
import threading
import types
import warnings
import weakref
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

import pytest

import stator
from tests.stage.opaque_programs import OPAQUE
from tests.stage.rule_programs import CHANGES, DROPPED, OUTSIDE, QUIET, WHOLE
from tests.stage.seen_programs import METHODS, SEEN, SUBCLASSED, UNKNOWN


class P:
    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        return self.v < other.v

    def __eq__(self, other):
        return isinstance(other, P) and self.v == other.v

    def __hash__(self):
        return hash(self.v)

    def __repr__(self):
        return f"P({self.v})"

    def __add__(self, other):
        return P(self.v + (other.v if isinstance(other, P) else other))

    __radd__ = __add__

    def __bool__(self):
        return self.v > 2

    def __len__(self):
        return self.v

    def __iter__(self):
        return iter(range(self.v))

    def __call__(self, x):
        return self.v + x

    def __reversed__(self):
        return iter([self.v, 1])

    def __format__(self, spec):
        return f"<{self.v}:{spec}>"

    def __contains__(self, x):
        return x == self.v

    def __getitem__(self, k):
        return self.v * k


class Doubling(dict):
    def __missing__(self, key):
        return key * 2


class Twice(list):
    def append(self, x):
        super().append(x * 2)


class Near:
    def __floor__(self):
        return 3

    def __round__(self):
        return 4

    def __trunc__(self):
        return 5

    def __repr__(self):
        return "Near"


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...


class Square(Shape):
    def area(self):
        return 1

    def __repr__(self):
        return "Square"


def error(f):
    try:
        return f()
    except Exception as e:
        return type(e).__name__, str(e)


FAILING = [
    lambda: sorted([1, "a"]), lambda: max([]), lambda: int("x"), lambda: [].pop(),
    lambda: {}.popitem(), lambda: sum(["a"]), lambda: ",".join([1]), lambda: list(5),
    lambda: {}[1], lambda: len(5), lambda: abs("a"), lambda: math.sqrt(-1), lambda: chr(-1),
    lambda: range(1.5), lambda: isinstance(1, 2), lambda: getattr(1, 2), lambda: set([[]]),
    lambda: hash([]), lambda: [1].index(2), lambda: "%d" % "a", lambda: "{}".format(),
    lambda: sorted(5), lambda: min(1), lambda: functools.reduce(max, []), lambda: float("q"),
    lambda: sorted([1], foo=2), lambda: [].append(), lambda: isinstance(1), lambda: dict(1, 2),
    lambda: bytes([300]), lambda: divmod(1, 0), lambda: issubclass(1, int), lambda: reversed(5),
    lambda: enumerate(5), lambda: iter(5), lambda: setattr(1, "a", 2), lambda: next(iter([])),
]  # fmt: skip


async def numbers():
    yield 1


async def work():
    pass


def closed():
    coroutine = work()
    coroutine.close()
    return coroutine


VARIABLE, KEPT, FRAME = contextvars.ContextVar("variable"), P(3), sys._getframe()

NAMES = {
    **vars(itertools), **globals(), "ABC": abc.ABC, "Pair": namedtuple("Pair", "a b"),
    "Iterable": collections.abc.Iterable, "Hashable": collections.abc.Hashable,
    "Sized": collections.abc.Sized, "reduce": functools.reduce, "partial": functools.partial,
    "cmp_to_key": functools.cmp_to_key, "cached": functools.lru_cache(lambda v: v), "seen": [],
    "BY_SECOND": operator.itemgetter(1), "BY_V": operator.attrgetter("v"),
    "UPPER": operator.methodcaller("upper"), "DIGITS": re.compile(r"(\d+)-(\w+)"),
}  # fmt: skip


def function(expression: str, names: dict[str, Any]) -> Callable[[Any], Any]:
    return eval(f"lambda x: ({expression})", names)


def shown(f: Callable[[Any], Any], x: Any) -> str:
    return repr((f(x), x))


def drops(compiled: Any) -> list[str]:
    return [text.splitlines()[0] for text in compiled.metrics["drops"]]


def parts(text: str) -> list[str]:
    """Expressions of one native call each: what one opens, the next finds open."""
    return [ast.unparse(part) for part in ast.parse(f"({text},)", mode="eval").body.elts]


OPENED = [(part, row[1:]) for row in OUTSIDE for part in parts(row[0])]


@pytest.mark.parametrize("expression, values", [(row[0], row[1:]) for row in WHOLE] + OPENED)
def test_traced_whole_and_alike(expression: str, values: tuple[str, ...]) -> None:
    names = dict(NAMES)
    f = function(expression, names)
    compiled = stator.compile(f, backend="eager", _keep_empty=True)
    for value in values * 2:
        assert shown(compiled, eval(value, names)) == shown(f, eval(value, names)), value
    assert drops(compiled) == [] and compiled.metrics["breaks"] == []
    assert compiled.metrics["hits"] >= len(values)


@pytest.mark.parametrize("expression, setup, change", CHANGES)
def test_sees_changes(expression: str, setup: str, change: str) -> None:
    names = dict(NAMES)
    exec("class C:\n def __init__(s, v): s.v = v\n" + setup, names)
    f = function(expression, names)
    compiled = stator.compile(f, backend="eager", _keep_empty=True)
    for _ in range(2):
        assert repr(compiled(names["x"])) == repr(f(names["x"]))
    before = repr(f(names["x"]))
    exec(change, names)
    f = function(expression, names)  # CPython 3.12 keeps a property's function once it is warm
    after = repr(f(names["x"]))
    assert before != after, "the change is to be seen"
    for _ in range(2):
        assert repr(compiled(names["x"])) == after
    assert drops(compiled) == []


@pytest.mark.parametrize("expression, setup, change", QUIET)
def test_does_not_look_further(expression: str, setup: str, change: str) -> None:
    names = dict(NAMES)
    exec("class C:\n def __init__(s, v): s.v = v\n" + setup, names)
    f = function(expression, names)
    compiled = stator.compile(f, backend="eager", _keep_empty=True)
    before = [repr(compiled(names["x"])) for _ in range(2)]
    exec(change, names)
    assert [repr(compiled(names["x"])) for _ in range(2)] == before == [repr(f(names["x"]))] * 2
    assert compiled.metrics["traces"] == 1


def outcome(f: Callable[[Any], Any], x: Any) -> str:
    try:
        text = repr(f(x))
    except Exception as e:
        text = f"{type(e).__name__}: {e}"
    return re.sub("0x[0-9a-f]{6,}", "0x", text)


class Seen:
    """An expression over an object of a class with one special method, which can be changed."""

    def __init__(self, expression: str, method: str) -> None:
        self.names = dict(NAMES)
        exec("class C:\n def __init__(s, v): s.v = v\n def __repr__(s): return 'C'", self.names)
        self.function = function(expression, self.names)
        self.attribute = f"__{method.partition('_of_')[0]}__"
        self.bodies = METHODS[method]

    def become(self, i: int) -> Any:
        """Another argument of the class, whose method does now what its i-th body says."""
        setattr(self.names["C"], self.attribute, eval(self.bodies[i], self.names))
        if self.attribute == "__eq__":
            self.names["C"].__hash__ = lambda s: 1
        if self.attribute == "__hash__":
            self.names["C"].__eq__ = lambda s, o: True
        return self.names["C"](1)

    def differs(self) -> bool:
        return outcome(self.function, self.become(0)) != outcome(self.function, self.become(1))


def seen() -> list[Any]:
    """Each part of each expression, with each method of which it shows a change."""
    found = []
    for text, methods in SEEN:
        for part in parts(text):
            shown = [m for m in methods.split() if Seen(part.replace("OBJ", "C(1)"), m).differs()]
            assert shown, f"{part} does not show what any of {methods} does"
            for how in ("C(1)", "x"):
                found += [(part.replace("OBJ", how), method) for method in shown]
    return found


@pytest.mark.parametrize("expression, method", seen())
def test_sees_changes_of_a_special_method(expression: str, method: str) -> None:
    case = Seen(expression, method)
    compiled = stator.compile(case.function, backend="eager", _keep_empty=True)
    for i in (0, 0, 1, 1, 0):
        x = case.become(i)
        assert outcome(compiled, x) == outcome(case.function, x)
    # Where a row says what its function does to a value, every Python function behind that value is
    # known before native code calls it.
    unknown = [text for text in compiled.metrics["breaks"] if "[UNKNOWN_FUNCTION]" in text]
    assert bool(unknown) == (expression in UNKNOWN), unknown


def subclassed() -> list[Any]:
    """Each part of each expression, on an object made inside and on one made outside."""
    found = []
    for text, setup, change in SUBCLASSED:
        for part in parts(text):
            found += [(part.replace("OBJ", how), setup, change) for how in ("MADE", "x")]
    return found


@pytest.mark.parametrize("expression, setup, change", subclassed())
def test_sees_changes_of_a_subclass(expression: str, setup: str, change: str) -> None:
    if "OrderedDict.__repr__" in expression and sys.version_info >= (3, 12):
        pytest.skip("3.12 does not ask for items")
    names = dict(NAMES)
    exec(setup, names)
    made = "C(int)" if issubclass(names["C"], defaultdict) else "C([('a', 5)])"
    f = function(expression.replace("MADE", made), names)
    compiled = stator.compile(f, backend="eager", _keep_empty=True)
    before = outcome(f, eval(made, names))
    for _ in range(2):
        assert outcome(compiled, eval(made, names)) == before
    exec(change, names)
    after = outcome(f, eval(made, names))
    assert after != before, "the change is to be seen"
    for _ in range(2):
        assert outcome(compiled, eval(made, names)) == after
    assert not [text for text in compiled.metrics["breaks"] if "[UNKNOWN_FUNCTION]" in text]


@pytest.mark.parametrize("expression, value, reason", DROPPED)
def test_breaks(expression: str, value: str, reason: str) -> None:
    compiled = stator.compile(
        function(expression, dict(NAMES)), backend="eager", fullgraph=True, _keep_empty=True
    )
    with warnings.catch_warnings(), pytest.raises(stator.Unsupported, match=rf"\[{reason}\]"):
        compiled(eval(value, dict(NAMES)))


@pytest.mark.parametrize("path, expression, value", OPAQUE, ids=[row[0] for row in OPAQUE])
def test_never_runs_in_a_trace(path: str, expression: str, value: str) -> None:
    compiled = stator.compile(
        function(expression, dict(NAMES)), backend="eager", fullgraph=True, _keep_empty=True
    )
    try:
        argument = eval(value, dict(NAMES))
    except AttributeError:
        pytest.skip("not in this Python")
    with pytest.raises(stator.Unsupported, match=re.escape(f"{path}, which ")):
        compiled(argument)
