"""What a C callable writes to is guarded to be what the trace took it for.

For every row that writes, from the table: `a` and `b` are two objects in one call and the same in
the next (or the other way round), `a` is written to, `b` is read, and where the row can do so by
itself, `a` is restored. A row that writes and has no case here fails.
"""

from __future__ import annotations

import abc
import bisect
import heapq
import io
import itertools
import operator
import random
import struct
import threading
import types
from collections import Counter, OrderedDict, defaultdict, deque
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

import pytest

import stator
from stator import _engine
from tests.stage.callables import owners, resolve


class P:
    def __init__(self, x):
        self.x = x

    def method(self):
        return self.x


class Q:
    pass


class Kept(P):
    def __iadd__(self, other):
        self.x = self.x, other
        return self

    __isub__ = __imul__ = __imatmul__ = __ifloordiv__ = __itruediv__ = __imod__ = __iadd__
    __ilshift__ = __irshift__ = __iand__ = __ixor__ = __ior__ = __ipow__ = __iadd__


def numbers():
    try:
        yield from (1, 2, 3)
    except ValueError:
        yield 9


def made_class() -> Any:
    return type("Made", (), {"x": 1})


def made_abstract() -> Any:
    return abc.ABCMeta("Made", (), {"x": 1})


def made_module() -> Any:
    module = types.ModuleType("made")
    module.x = 1  # type: ignore[attr-defined]
    return module


class SubList(list):
    pass


class SubDeque(deque):
    pass


class SubDict(dict):
    pass


class SubOrdered(OrderedDict):
    pass


class SubSet(set):
    pass


class SubBytes(bytearray):
    pass


class SubDefault(defaultdict):
    pass


class Value(NamedTuple):
    make: str  # of a and of b, as an expression
    read: str  # of b
    sub: str = ""  # of an instance of a subclass


VALUES = {
    "list": Value("[3, 1, 2]", "list(b)", "SubList([3, 1, 2])"),
    "bytearray": Value("bytearray(b'cab')", "bytes(b)", "SubBytes(b'cab')"),
    "collections.deque": Value("deque([3, 1, 2])", "list(b)", "SubDeque([3, 1, 2])"),
    "dict": Value("{'p': 1, 'q': 2}", "list(b.items())", "SubDict(p=1, q=2)"),
    "collections.OrderedDict": Value(
        "OrderedDict(p=1, q=2)", "list(b.items())", "SubOrdered(p=1, q=2)"
    ),
    "collections.defaultdict": Value(
        "defaultdict(list, p=1)", "list(b.items())", "SubDefault(list, p=1)"
    ),
    "set": Value("{1, 2}", "sorted(b)", "SubSet({1, 2})"),
    "_random.Random": Value("random.Random(3)", "b.random()"),
    "object": Value("P(1)", "dict(vars(b))"),
    "type": Value("made_class()", "getattr(b, 'x', None), getattr(b, 'y', None)"),
    "_abc": Value("made_abstract()", "issubclass(int, b), sorted(b.__abstractmethods__)"),
    "module": Value("made_module()", "getattr(b, 'x', None), getattr(b, 'y', None)"),
    "method": Value("P(1).method", "b()"),
    "types.SimpleNamespace": Value("types.SimpleNamespace(x=1)", "dict(vars(b))"),
    "functools.partial": Value("with_x(partial(max, 1))", "dict(vars(b))"),
    "_struct.Struct": Value("struct.Struct('i')", "b.size, b.format"),
    "_io.StringIO": Value("io.StringIO('abc')", "b.closed or (b.tell(), b.getvalue())"),
    "_thread.lock": Value("threading.Lock()", "b.locked()"),
    "_thread.RLock": Value("threading.RLock()", "b._is_owned()"),
    "_contextvars.ContextVar": Value("ContextVar('v')", "b.get(0)"),
    "generator": Value("numbers()", "list(b)"),
    "builtins": Value("P(1)", "dict(vars(b))"),
    "_operator": Value("Kept(1)", "dict(vars(b))"),
    "_heapq": Value("[1, 3, 5]", "list(b)", "SubList([1, 3, 5])"),
    "_bisect": Value("[1, 3, 5]", "list(b)", "SubList([1, 3, 5])"),
    "_collections": Value("{'p': 1}", "list(b.items())", "SubDict(p=1)"),
}
SPECIAL_VALUES = {
    "_operator.setitem": VALUES["list"],
    "_operator.delitem": VALUES["list"],
    "_operator.iconcat": VALUES["list"],
    "_operator.iadd": VALUES["list"],
    "_operator.ior": VALUES["dict"],
    "_operator.ixor": VALUES["set"],
}
# Arguments behind a, and of a second call that restores it; by the row, or by the row's name.
WRITES: dict[str, tuple[str, str | None]] = {
    "random": ("", None), "getrandbits": ("7", None),
    "append": ("7", None), "appendleft": ("7", None), "extend": ("[7]", None),
    "extendleft": ("[7]", None), "insert": ("0, 7", None), "pop": ("", None),
    "popleft": ("", None), "popitem": ("", None), "remove": ("1", None), "clear": ("", None),
    "discard": ("1", None), "sort": ("", None), "reverse": ("", ""), "rotate": ("1", "-1"),
    "add": ("7", None), "update": ("{7: 7}", None), "setdefault": ("'z', 1", None),
    "move_to_end": ("'p'", "'q'"), "difference_update": ("{1}", None),
    "intersection_update": ("{1}", None), "symmetric_difference_update": ("{7}", "{7}"),
    "__setitem__": ("0, 7", "0, 3"), "__delitem__": ("0", None), "__iadd__": ("[7]", None),
    "__imul__": ("2", None), "__isub__": ("{1}", None), "__iand__": ("{1}", None),
    "__ixor__": ("{7}", "{7}"), "__ior__": ("{7: 7}", None), "__missing__": ("'z'", None),
    "__setattr__": ("'x', 7", "'x', 1"), "__delattr__": ("'x'", None), "__init__": ("7", None),
    "setattr": ("'x', 7", "'x', 1"), "delattr": ("'x'", None),
    "__next__": ("", None), "send": ("None", None), "throw": ("ValueError()", None),
    "close": ("", None), "add_note": ("'n'", None), "with_traceback": ("None", None),
    "setitem": ("0, 7", "0, 3"), "delitem": ("0", None), "iconcat": ("[7]", None),
    "ixor": ("{7}", "{7}"), "ior": ("{7: 7}", None), "iadd": ("[7]", None),
    "set": ("7", "0"), "acquire": ("", None), "acquire_lock": ("", None), "release": ("", None),
    "release_lock": ("", None), "__enter__": ("", None), "__exit__": ("None, None, None", None),
    "write": ("'q'", None), "seek": ("1", "0"), "truncate": ("1", None), "readline": ("", None),
    "_io.StringIO.__init__": ("'q'", "'abc'"),
    "heappush": ("0", None), "heappushpop": ("4", None), "heappop": ("", None),
    "heapreplace": ("0", "1"), "heapify": ("", None), "_heappop_max": ("", None),
    "_heapify_max": ("", None), "_heapreplace_max": ("0", None), "insort_left": ("2", None),
    "insort_right": ("2", None), "_count_elements": ("'pz'", None),
    "list.__init__": ("[7]", "[3, 1, 2]"), "set.__init__": ("[7]", "[1, 2]"),
    "bytearray.__init__": ("b'q'", "b'cab'"), "dict.__init__": ("{7: 7}", None),
    "collections.deque.__init__": ("[7]", "[3, 1, 2]"),
    "collections.OrderedDict.__init__": ("{7: 7}", None),
    "collections.defaultdict.__init__": ("list, {7: 7}", None),
    "types.SimpleNamespace.__init__": ("", None), "_struct.Struct.__init__": ("'q'", "'i'"),
    "bytearray.extend": ("b'q'", None), "bytearray.__iadd__": ("b'q'", None),
    "bytearray.__setitem__": ("0, 7", "0, 99"), "bytearray.remove": ("97", None),
    "dict.__setitem__": ("'p', 7", "'p', 1"), "dict.__delitem__": ("'p'", None),
    "dict.pop": ("'p'", None), "collections.OrderedDict.pop": ("'p'", None),
    "collections.OrderedDict.__setitem__": ("'p', 7", "'p', 1"),
    "collections.OrderedDict.__delitem__": ("'p'", None), "set.update": ("{7}", None),
    "set.__ior__": ("{7}", None), "_abc._abc_init": ("", None), "_abc._abc_register": ("int", None),
    "type.__delattr__": ("'x'", None),
    "UnicodeDecodeError.__init__": ("'a', b'b', 0, 1, 'c'", "'a', b'a', 0, 1, 'q'"),
    "UnicodeEncodeError.__init__": ("'a', 'b', 0, 1, 'c'", "'a', 'a', 0, 1, 'q'"),
    "UnicodeTranslateError.__init__": ("'b', 0, 1, 'c'", "'a', 0, 1, 'q'"),
}  # fmt: skip
# What is moved by __next__: an iterator of each type.
ITERATORS = {
    "map": "map(str, [1, 2])", "filter": "filter(None, [1, 2])", "zip": "zip([1, 2])",
    "enumerate": "enumerate('ab')", "reversed": "reversed((1, 2))", "iterator": "iter(Sequence())",
    "callable_iterator": "iter([0, 2, 1].pop, 0)", "list_iterator": "iter([1, 2])",
    "list_reverseiterator": "reversed([1, 2])", "tuple_iterator": "iter((1, 2))",
    "str_iterator": "iter('éa')", "str_ascii_iterator": "iter('ab')",
    "bytes_iterator": "iter(b'ab')", "bytearray_iterator": "iter(bytearray(b'ab'))",
    "range_iterator": "iter(range(3))", "longrange_iterator": "iter(range(2**99, 2**99 + 2))",
    "set_iterator": "iter({1, 2})", "dict_keyiterator": "iter({1: 2, 3: 4})",
    "dict_valueiterator": "iter({1: 2, 3: 4}.values())",
    "dict_itemiterator": "iter({1: 2, 3: 4}.items())",
    "dict_reversekeyiterator": "reversed({1: 2, 3: 4})",
    "dict_reversevalueiterator": "reversed({1: 2, 3: 4}.values())",
    "dict_reverseitemiterator": "reversed({1: 2, 3: 4}.items())",
    "odict_iterator": "iter(OrderedDict(p=1, q=2))", "memory_iterator": "iter(memoryview(b'ab'))",
    "generic_alias_iterator": "iter(list[int])", "generator": "numbers()",
    "_collections._deque_iterator": "iter(deque([1, 2]))",
    "_collections._deque_reverse_iterator": "reversed(deque([1, 2]))",
    "itertools.accumulate": "itertools.accumulate([1, 2])",
    "itertools.batched": "itertools.batched([1, 2], 1)",
    "itertools.chain": "itertools.chain([1, 2])",
    "itertools.combinations": "itertools.combinations([1, 2, 3], 2)",
    "itertools.combinations_with_replacement": "itertools.combinations_with_replacement('ab', 2)",
    "itertools.compress": "itertools.compress('ab', [1, 1])",
    "itertools.count": "itertools.count()", "itertools.cycle": "itertools.cycle([1, 2])",
    "itertools.dropwhile": "itertools.dropwhile(bool, [0, 1])",
    "itertools.filterfalse": "itertools.filterfalse(None, [0, 0])",
    "itertools.groupby": "itertools.groupby([1, 2])",
    "itertools._grouper": "next(itertools.groupby([1, 1]))[1]",
    "itertools.islice": "itertools.islice([1, 2], 2)",
    "itertools.pairwise": "itertools.pairwise([1, 2, 3])",
    "itertools.permutations": "itertools.permutations([1, 2])",
    "itertools.product": "itertools.product([1, 2])", "itertools.repeat": "itertools.repeat(1, 3)",
    "itertools.starmap": "itertools.starmap(max, [(1, 2), (3, 4)])",
    "itertools.takewhile": "itertools.takewhile(bool, [1, 2])",
    "itertools._tee": "itertools.tee([1, 2])[0]",
    "itertools.zip_longest": "itertools.zip_longest([1, 2])",
    "_struct.unpack_iterator": "struct.iter_unpack('b', b'ab')",
    "formatteriterator": "''._formatter_parser()", "fieldnameiterator": "parsed_field()",
}  # fmt: skip


class Sequence:
    def __getitem__(self, i):
        return [1, 2][i]


def parsed_field() -> Any:
    import _string

    return _string.formatter_field_name_split("a.b.c")[1]


def parsed_format() -> Any:
    import _string

    return _string.formatter_parser("a{b}c{d}")


ITERATORS["formatteriterator"] = "parsed_format()"


def with_x(o: Any) -> Any:
    o.x = 1
    return o


def view(read: str) -> str:
    return f"str([*itertools.islice({read[5:-1]}, 9)])" if read == "list(b)" else read


def is_exception(owner: Any) -> bool:
    return isinstance(owner, type) and issubclass(owner, BaseException)


def value_of(path: str, known: dict[str, Any]) -> Value:
    owner, _, name = path.rpartition(".")
    if path in SPECIAL_VALUES:
        return SPECIAL_VALUES[path]
    if name == "__next__":
        groups = owner == "itertools.groupby"
        return Value(ITERATORS[owner], "[k for k, _ in b]" if groups else "list(b)")
    if is_exception(known.get(owner)):
        arguments = WRITES.get(path, ("", "1"))[1] if "Unicode" in owner else "1"
        made = f"{owner}({arguments or '1'})"
        return Value(made, "b.args, getattr(b, '__notes__', None), getattr(b, 'x', None)")
    return VALUES[owner or "builtins"]


class Case(NamedTuple):
    path: str
    row: Any
    make: str
    write: str
    read: str
    restore: str


def cases_of(path: str, known: dict[str, Any]) -> list[Case]:
    target, _ = resolve(path, known)
    value = value_of(path, known)
    write, restore = WRITES.get(path) or WRITES.get(path.rpartition(".")[2]) or ("1", None)
    found = []
    for make in filter(None, [value.make, value.sub]):
        found.append(Case(path, target, make, write, value.read, ""))
        if restore is not None:
            again = f"ROW(a, {restore})" if restore else "ROW(a)"
            found.append(Case(path, target, make, write, value.read, again))
    return found


WRITING = [row[0] for row in _engine.rules() if row[-2] != "none"]
KNOWN = owners()
CASES = [case for path in WRITING for case in cases_of(path, KNOWN)]


def test_every_row_that_writes_has_a_case() -> None:
    assert len(WRITING) > 200
    assert {case.path for case in CASES} == set(WRITING)
    restoring = {case.path for case in CASES if case.restore}
    assert len(restoring) > 25


def outcome(function: Any, a: Any, b: Any, read: Any) -> Any:
    try:
        result = function(a, b)
    except Exception as error:
        result = type(error).__name__
    return result, read(a), read(b)


def check(case: Case, same_first: bool) -> None:
    names = {**globals(), "ROW": case.row}
    lines = [f"ROW(a, {case.write})" if case.write else "ROW(a)"]
    lines += [f"x = {view(case.read)}", case.restore or "pass", "return x"]
    exec("def f(a, b):\n " + "\n ".join(lines), names)
    read = eval(f"lambda b: ({view(case.read)})", names)
    ours = stator.compile(names["f"], backend="eager", _keep_empty=True)
    for same in (same_first, not same_first, same_first):
        results = []
        for function in (names["f"], ours):
            a, b = eval(case.make, names), eval(case.make, names)
            results.append(outcome(function, a, a if same else b, read))
        assert results[1] == results[0], (case, same)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.path} {c.make} {bool(c.restore)}")
def test_which_object_was_written(case: Case) -> None:
    for same_first in (False, True):
        check(case, same_first)


# --- written by one row and restored by another ---

NAMES = {
    "operator": operator, "heapq": heapq, "bisect": bisect,
    "_count_elements": Counter.update.__globals__["_count_elements"],
}  # fmt: skip
# (values of a and b, what writes to a, what restores it)
PAIRS = [
    (deque([1, 2, 3]), "a.append(4)", "a.pop()"),
    (deque([1, 2, 3]), "a.appendleft(4)", "a.popleft()"),
    ([1, 2, 3], "a.append(4)", "a.pop()"),
    ([1, 2, 3], "a.insert(0, 4)", "a.pop(0)"),
    ([3, 4, 5], "heapq.heappush(a, 1)", "heapq.heappop(a)"),
    ([3, 4, 5], "bisect.insort(a, 4.5)", "a.remove(4.5)"),
    ([1, 2], "operator.iconcat(a, [7])", "a.pop()"),
    ([1, 2], "operator.iadd(a, [7])", "a.pop()"),
    ([1, 2], "operator.setitem(a, 0, 7)", "a[0] = 1"),
    ({"p": 1}, "_count_elements(a, 'p')", "a['p'] = 1"),
    ({"p": 1}, "a.setdefault('q', 2)", "a.pop('q')"),
    ({"p": 1}, "a.update(q=2)", "a.popitem()"),
    ({1, 2}, "a.add(7)", "a.discard(7)"),
    ({1, 2}, "a.update([7])", "a.difference_update([7])"),
    (bytearray(b"ab"), "a.append(7)", "a.pop()"),
]


@pytest.mark.parametrize("same_first", [False, True], ids=["apart first", "same first"])
@pytest.mark.parametrize("value, write, restore", PAIRS, ids=[case[1] for case in PAIRS])
def test_what_another_row_restores(value: Any, write: str, restore: str, same_first: bool) -> None:
    names = dict(NAMES)
    exec(f"def f(a, b):\n {write}\n x = list(b)\n {restore}\n return x", names)
    compiled = stator.compile(names["f"], backend="eager", _keep_empty=True)
    for same in (same_first, not same_first, same_first):
        a, b = value.copy(), value.copy()
        theirs = names["f"](a, a if same else b), a, b
        a, b = value.copy(), value.copy()
        ours = compiled(a, a if same else b), a, b
        assert ours == theirs
