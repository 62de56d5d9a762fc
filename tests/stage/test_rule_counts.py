"""Rows with a handler say how many arguments it takes. Called with one argument fewer, with one
more, or with a keyword that it does not take, each callable says what CPython says."""

import _string
import contextvars
import functools
import itertools
import operator
import random
import re
import struct
import sys
import threading
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import pytest

import stator
from stator import _engine
from tests.stage.callables import owners, resolve

MANY = 2**32 - 1
ROWS = [(row[0], row[5]) for row in _engine.rules() if row[1] == "handled"]

KNOWN = {**owners(), "sys": sys}
ARGUMENTS = ["None", "None", "1", "1", "1"]


class Thing:
    def method(self) -> None: ...


def numbers() -> Any:
    yield 1


def views(d: Any) -> list[Any]:
    found = [d.keys(), d.values(), d.items()]
    return [*found, *map(iter, found), *map(reversed, found)]


ORDERED = OrderedDict(a=1)
# One object of each type that has methods with a handler.
SELVES: list[Any] = [
    random.Random(1),
    True, 1, 1.5, 1j, "a", b"a", bytearray(b"a"), ..., [1], (1,), {1: 1}, {1}, frozenset([1]),
    deque([1]), ORDERED, defaultdict(int), types.MappingProxyType({}), range(3), slice(1),
    numbers.__code__, re.compile("a"), Thing, Thing.method, Thing().method, len, int.__add__,
    (1).__add__, str.upper, dict.__dict__["fromkeys"], property(), types.FunctionType.__code__,
    types.FunctionType.__globals__, Thing.__dict__["__weakref__"], classmethod(len),
    staticmethod(len), functools.partial(len), functools.cmp_to_key(max)(1), super(Thing, Thing()),
    KeyError(1), sys, types.SimpleNamespace(), struct.Struct("i"), operator.itemgetter(1),
    operator.attrgetter("a"), operator.methodcaller("a"), contextvars.ContextVar("v"),
    weakref.ref(Thing), numbers(),
    map(str, []), filter(None, []), zip(), enumerate([]), reversed("a"), iter(Thing.method, 1),
    iter([]), reversed([]), iter(()), iter("a"), iter("é"), iter(b""), iter(bytearray()),
    iter(range(1)), iter(range(2**70)), iter(set()), iter(memoryview(b"")), iter(list[int]),
    iter(deque()), reversed(deque()), *views({1: 1}), *views(ORDERED), iter(ORDERED),
    itertools.accumulate([]), itertools.chain(), itertools.combinations([], 1),
    itertools.combinations_with_replacement([], 1), itertools.compress([], []), itertools.count(),
    itertools.cycle([]), itertools.dropwhile(len, []), itertools.filterfalse(len, []),
    itertools.groupby([]), next(itertools.groupby([1]))[1], itertools.islice([], 1),
    itertools.pairwise([]), itertools.permutations([]), itertools.product(), itertools.repeat(1),
    itertools.starmap(len, []), itertools.takewhile(len, []), itertools.tee([])[0],
    itertools.zip_longest(), struct.iter_unpack("i", b""), _string.formatter_parser(""),
    _string.formatter_field_name_split("a")[1], threading.Lock(), threading.RLock(),
]  # fmt: skip
if sys.version_info >= (3, 12):
    SELVES.append(itertools.batched([], 1))


class Sequence:
    def __getitem__(self, i: int) -> int:
        raise IndexError


SELVES.append(iter(Sequence()))


def self_of(owner: type) -> Any:
    exact = [o for o in SELVES if type(o) is owner]
    return [*exact, *(o for o in SELVES if isinstance(o, owner))][0]


def outcome(f: Callable[[Any], Any], x: Any) -> str:
    try:
        return f"gave {f(x)!r}"
    except TypeError as e:
        return str(e)


def call(path: str, given: list[str], form: str = "T({})") -> tuple[Callable[[Any], Any], Any]:
    """A function that calls what the row is of, and its argument: self, or a class."""
    holder = KNOWN[path.rpartition(".")[0] or "builtins"]
    found, owner = resolve(path, KNOWN) or (None, None)
    raw = vars(holder).get(path.rpartition(".")[2]) if owner is None else found
    x = self_of(owner) if owner else holder
    of_class = isinstance(raw, types.ClassMethodDescriptorType)
    if given and (owner or of_class or path.endswith("__new__")):
        given = ["x", *given[1:]]
    names = {"T": raw if of_class else found}
    return eval(f"lambda x: {form.format(', '.join(given))}", names), x


def check(path: str, given: list[str]) -> None:
    """An argument from outside is not opened to be refused: the call breaks, and CPython says what
    is wrong. Else the trace ends by the exception that CPython raises."""
    f, x = call(path, given)
    compiled = stator.compile(f, backend="eager", _keep_empty=True)
    said = outcome(f, x)
    assert not said.startswith("gave"), "the row refuses what CPython takes"
    assert [outcome(compiled, x), outcome(compiled, x)] == [said] * 2
    breaks = compiled.metrics["breaks"] + compiled.metrics["drops"]
    refused = (" with these arguments [NATIVE_CALL]", f": TypeError: {said} [EXCEPTION_LEAVES]")
    assert breaks and all(any(word in text for word in refused) for text in breaks), breaks


@pytest.mark.parametrize("path, least", [(path, t[0]) for path, t in ROWS if t[0] > 0])
def test_too_few(path: str, least: int) -> None:
    check(path, ARGUMENTS[: least - 1])


@pytest.mark.parametrize("path, most", [(path, t[1]) for path, t in ROWS if t[1] < MANY])
def test_too_many(path: str, most: int) -> None:
    check(path, ARGUMENTS[: most + 1])


@pytest.mark.parametrize("path, least", [(path, t[0]) for path, t in ROWS if not t[2]])
def test_an_unknown_keyword(path: str, least: int) -> None:
    check(path, [*ARGUMENTS[:least], "unknown=1"])


ABOUT_COUNTS = re.compile(
    r"arguments? \(\d+ given|expected (at \w+ |exactly )?\d+ arguments?, got|at (least|most) \w+ "
    r"(positional )?argument|takes (no|exactly|from|\w+ positional)|missing .*argument|needs an argument"
)


# Their handlers break for a reason of their own, whatever the number; an iterator over calls of a
# function is refused by that function.
BREAK_ANYWAY = {"type.__new__", "type.__init__", "type.__prepare__", "classmethod", "staticmethod"}
BREAK_ANYWAY |= {"re.Pattern.sub", "re.Pattern.subn", "callable_iterator.__next__"}
BREAK_ANYWAY |= {"_bisect.bisect_left", "_bisect.bisect_right"}
BREAK_ANYWAY |= {"_bisect.insort_left", "_bisect.insort_right", "compile"}
# A second call would wait for the first.
WAIT = {"_thread.lock.acquire", "_thread.lock.acquire_lock", "_thread.lock.__enter__"}


@pytest.mark.parametrize("path", [path for path, _ in ROWS if path not in WAIT])
def test_any_count_that_cpython_refuses(path: str) -> None:
    """Asks CPython and not the table: a row that takes too much would take its own test with it.
    Where CPython complains about the number of arguments, the handler does not look at them."""
    for count in range(len(ARGUMENTS) + 1):
        f, x = call(path, ARGUMENTS[:count])
        try:
            f(x)
        except TypeError as e:
            if ABOUT_COUNTS.search(str(e)) and path not in BREAK_ANYWAY:
                check(path, ARGUMENTS[:count])
            compiled = stator.compile(f, backend="eager", _keep_empty=True)
            assert [outcome(compiled, x), outcome(compiled, x)] == [str(e)] * 2, count
            # Behind arguments that are spread lies nothing, not even a part of the stack.
            check_spread(path, ARGUMENTS[:count])
        except Exception:
            continue


def check_spread(path: str, given: list[str]) -> None:
    f, x = call(path, given, "T(*[{}])")
    compiled = stator.compile(f, backend="eager", _keep_empty=True)
    assert outcome(compiled, x) == outcome(f, x)
