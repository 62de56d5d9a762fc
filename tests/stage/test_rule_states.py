"""What C callables read of the process is in their row, and noticed when it has changed.

Every PURE and STRUCT row is called natively, with arguments from a pool, in one state of the process
and in another. Where the outcomes differ the row must name that state, and a compiled call must come
to what the plain one comes to, before the change, after it, and when it is undone.
"""

from __future__ import annotations

import codecs
import collections
import contextlib
import contextvars
import decimal
import functools
import gc
import itertools
import json
import locale
import math
import operator
import os
import random
import re
import struct
import subprocess
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import stator
from stator import _engine
from tests.stage.callables import owners, resolve

BIG = 10**1000  # between the least limit of digits and the usual one
DIGITS = "7" * 1000


class Index:
    """C code that is given a subclass of int warns."""

    def __index__(self):
        return True

    def __repr__(self):
        return "Index()"


class Truncated:
    def __trunc__(self):
        return 3

    def __repr__(self):
        return "Truncated()"


class Floating:
    def __float__(self):
        return type("SubFloat", (float,), {})(1.5)

    def __repr__(self):
        return "Floating()"


# --- states, and how to change them for a while ---


@contextlib.contextmanager
def fewer_digits() -> Iterator[None]:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)


USED = {"codec": codecs.utf_8_encode, "decoder": codecs.utf_8_decode}


def find_codec(name: str) -> codecs.CodecInfo | None:
    if name == "statorcodec":
        return codecs.CodecInfo(USED["codec"], USED["decoder"], name=name)
    return None


@contextlib.contextmanager
def codecs_for_tests() -> Iterator[None]:
    codecs.register(find_codec)
    codecs.register_error("statorerrors", codecs.ignore_errors)
    try:
        yield
    finally:
        codecs.unregister(find_codec)


@contextlib.contextmanager
def other_codecs() -> Iterator[None]:
    USED.update(codec=codecs.latin_1_encode, decoder=codecs.latin_1_decode)
    codecs.unregister(find_codec)
    codecs.register(find_codec)
    names = ("statorerrors", "strict", "xmlcharrefreplace")
    before = [codecs.lookup_error(name) for name in names]
    for name in names:
        codecs.register_error(name, codecs.replace_errors)
    try:
        yield
    finally:
        USED.update(codec=codecs.utf_8_encode, decoder=codecs.utf_8_decode)
        codecs.unregister(find_codec)
        codecs.register(find_codec)
        for name, handler in zip(names, before):
            codecs.register_error(name, handler)


@contextlib.contextmanager
def warnings_as(action: str) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        yield


@contextlib.contextmanager
def other_surroundings() -> Iterator[None]:
    """All that no row should look at."""
    folder, collecting, limit = os.getcwd(), gc.isenabled(), sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 500)
    os.chdir("/")
    os.environ["STATOR_STATE"] = "1"
    gc.disable()
    random.seed(4)
    try:
        with decimal.localcontext(decimal.Context(prec=2)):
            yield
    finally:
        sys.setrecursionlimit(limit)
        os.chdir(folder)
        del os.environ["STATOR_STATE"]
        if collecting:
            gc.enable()


# The name that a row has to say (None: none does, and compiled code notices all the same).
CHANGES: dict[str, tuple[str | None, Callable[[], Any]]] = {
    "fewer digits": ("DIGITS", fewer_digits),
    "other codecs": ("CODECS", other_codecs),
    "warnings are errors": (None, lambda: warnings_as("error")),
    "surroundings": ("NOTHING", other_surroundings),
}

# --- calls ---

# What computes for ever with large numbers.
UNSAFE = re.compile("pow|__mul__|__rmul__")

SMALL: list[Callable[[], Any]] = [
    lambda: 2, lambda: 0.5, lambda: "a", lambda: "é", lambda: b"a\xff", lambda: None,
    lambda: "ascii", lambda: "statorcodec", lambda: "statorerrors", lambda: "xmlcharrefreplace",
    lambda: [3, 1], lambda: (1, 2), lambda: {"a": 1}, lambda: {1, 2}, lambda: 1j,
    lambda: bytearray(b"a\xff"), lambda: ["a", "b"], lambda: NotImplemented, Index, Truncated,
    Floating, lambda: len, lambda: "%d", lambda: b"%d", lambda: slice(1, 2), lambda: ValueError(1),
]  # fmt: skip
LARGE: list[Callable[[], Any]] = [
    lambda: BIG, lambda: DIGITS, lambda: DIGITS.encode(), lambda: [BIG], lambda: (BIG,),
    lambda: {BIG: BIG}, lambda: ValueError(BIG), lambda: slice(BIG),
]  # fmt: skip
SECOND = [lambda: 10, lambda: "ascii", lambda: "statorerrors", Index, lambda: [3, 1]]
TOGETHER = [*SMALL[:10], *LARGE[:3], *SMALL[-4:]]
# What a method is called on.
SELVES: list[Callable[[], Any]] = [
    *LARGE, lambda: 2, lambda: True, lambda: 1.5, lambda: 1j, lambda: None, lambda: "é",
    lambda: "%d %s", lambda: b"a\xff", lambda: b"%d", lambda: bytearray(b"a\xff"),
    lambda: bytearray(b"%d"), lambda: [3, 1], lambda: {1, 2}, lambda: {"a": 1}, lambda: {BIG},
    lambda: frozenset([BIG]), lambda: range(BIG, BIG + 3), lambda: range(3), lambda: collections.deque([BIG]),
    lambda: collections.OrderedDict([(BIG, BIG)]), lambda: {BIG: 1}.keys(), lambda: slice(1, 2),
    lambda: {1: BIG}.values(), lambda: {1: BIG}.items(), lambda: itertools.count(BIG),
    lambda: collections.defaultdict(list, {1: BIG}), lambda: OSError(BIG, BIG),
    lambda: KeyError(BIG), lambda: ImportError(BIG), lambda: AttributeError(BIG),
    lambda: NameError(BIG), lambda: SyntaxError(BIG), lambda: re.compile("a"),
    lambda: re.match("(a)", "a"), lambda: struct.Struct("i"), lambda: ..., lambda: iter("a"),
    lambda: compile("1", "", "eval"), lambda: iter([1]), lambda: zip([1], [2]),
    lambda: UnicodeDecodeError("ascii", b"a", 0, 1, "é"),
]  # fmt: skip


def show(value: Any) -> Any:
    """What can be compared, whatever the state."""
    if isinstance(value, BaseException):
        return type(value).__name__, show(value.args)
    if isinstance(value, dict):
        return type(value).__name__, [(show(k), show(v)) for k, v in dict.items(value)]
    if isinstance(value, set | frozenset):
        return type(value).__name__, len(value)  # in an order that may be one of addresses
    if isinstance(value, list | tuple | collections.deque):
        return type(value).__name__, [show(v) for v in value]
    if isinstance(value, int | str | bytes | bytearray | complex | float | None):
        return type(value).__name__, value if value == value else "nan"
    if isinstance(value, Iterator):
        return type(value).__name__, show(list(itertools.islice(value, 5)))
    return type(value).__name__


def outcome(function: Callable[..., Any], arguments: list[Any]) -> Any:
    """What it gives or raises, and what became of what it was called on."""
    try:
        result = show(function(*arguments))
    except Exception as error:
        result = show(error)
    return result, show(arguments[0]) if arguments else None


def argument_lists(
    path: str, owner: Any, self: type | None
) -> Iterator[tuple[Callable[[], Any], ...]]:
    unsafe = UNSAFE.search(path)
    pool = SMALL if unsafe else SMALL + LARGE
    candidates = SMALL if unsafe else SELVES
    first = [s for s in candidates if isinstance(s(), self)][:4] if self else [None]
    decodes = path in ("str", "bytes", "bytearray", "bytearray.__init__") or "__new__" in path
    if path.endswith("__new__"):
        first = [lambda: owner]
    for mine in first:
        start = () if mine is None else (mine,)
        yield start
        for one in pool:
            yield (*start, one)
            for two in SECOND if one in TOGETHER else ():
                yield (*start, one, two)
                for three in SECOND[1:3] if decodes else ():
                    yield (*start, one, two, three)


ROWS = [row for row in _engine.rules() if row[1] in ("pure", "struct")]


@functools.cache
def calls() -> dict[str, tuple[Any, list[Any], list[Any]]]:
    """Of each row: the callable, lists of makers of arguments, and what they come to."""
    known, found = owners(), {}
    for path, *_ in ROWS:
        target, self = resolve(path, known)
        lists = list(argument_lists(path, known.get(path.rpartition(".")[0]), self))
        with warnings_as("ignore"):
            found[path] = target, lists, [call(target, makers) for makers in lists]
    return found


def call(function: Callable[..., Any], makers: Any) -> Any:
    return outcome(function, [make() for make in makers])


@functools.cache
def differing(change: str) -> dict[str, tuple[Any, list[Any]]]:
    """Rows whose outcome changes with the state: the callable, and arguments that show it."""
    found = {}
    for path, (target, lists, before) in calls().items():
        with warnings_as("ignore"), CHANGES[change][1]():
            after = [call(target, makers) for makers in lists]
        shown = [makers for makers, one, two in zip(lists, before, after) if one != two]
        if shown:
            found[path] = target, shown
    return found


# Rows that show an attribute which no call here sets; test_expressions_notice_a_changed_state does.
CAUTIOUS = {
    "UnicodeDecodeError.__str__", "UnicodeEncodeError.__str__", "UnicodeTranslateError.__str__",
}  # fmt: skip
# P_STR, P_REPR, P_FORMAT: what makes texts of values asks each of them for its digits.
TEXT = 1 << 10 | 1 << 14 | 1 << 15


@pytest.mark.parametrize("change", CHANGES)
def test_rows_name_the_state_they_read(change: str) -> None:
    name = CHANGES[change][0]
    said = {row[0] for row in ROWS if name in row[-1]}
    texts = {row[0] for row in ROWS if name == "DIGITS" and (row[2] | row[4]) & TEXT}
    with codecs_for_tests():
        read = set(differing(change))
    if name is not None:
        assert read - said - texts == set()
        assert said - read <= CAUTIOUS


# --- compiled ---


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return stator.compile(function, backend="eager", _keep_empty=True)


def same_in_both_states(function: Callable[..., Any], makers: Any, change: Any) -> bool:
    """Compiled in one state and called in the other; and the other way round."""
    for changed_first in (False, True):
        ours = compiled(function)
        for changed in (changed_first, not changed_first, changed_first):
            with warnings_as("ignore"), change() if changed else contextlib.nullcontext():
                if call(function, makers) != call(ours, makers):
                    return False
    return True


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_state_is_noticed(change: str) -> None:
    with codecs_for_tests():
        wrong = [
            path
            for path, (target, lists) in differing(change).items()
            for makers in lists[:2]
            if not same_in_both_states(lambda *args: target(*args), makers, CHANGES[change][1])
        ]
    assert wrong == []


# Texts and numbers that are made without a call of a row: expressions in x, by the state.
EXPRESSIONS = {
    "fewer digits": (
        BIG,
        """f"{x}" | f"{x!r}" | f"{x!s:>5}" | f"{x:d}" | f"{x:x}" | "%d" % x | "%s" % (x,) | "%(a)d" % {"a": x}
        b"%d" % x | bytearray(b"%d") % x | "{}".format(x) | "{0!r:}".format([x]) | f"{[x]}" | str([x])
        format(x) | ",".join(map(str, [x])) | repr({"a": (x,)}) | str(Exception(x)) | f"{{x}}" | Sub(x).__str__()
        f"{Sub(x)}" | str(Sub(x)) | "%s" % Sub(x) | repr([Sub(x)]) | json.dumps([x]) | repr(range(x)) | f"{range(x)}"
        int("7" * 1000) | int(b"7" * 1000) | int("7" * 1000, 10) | int("7" * 1000, 7) | sum(map(int, ["7" * 1000]))
        json.loads("7" * 1000) | float("7" * 1000) | [1].index(x) | operator.mod("%d", x) | hex(x) | x // 3
        repr(Point(x)) | f"{Color.RED}" | functools.reduce(lambda a, b: a + str(b), [x], "") | max([x], key=str)
        sorted([x, 1], key=lambda v: str(v)) | str(-x) | ascii({x}) | print_to(x) | repr(slice(x)) | str(KeyError(x))
        OSError.__str__(OSError(x, x)) | str(OSError(x, x)) | f"{OSError(x, x)}" | "%s" % OSError(x, x) | str(SubError(x, x))
        itertools.count(x).__repr__() | repr(itertools.count(x)) | repr([itertools.count(x)])
        caught(lambda: [1].index(x)) | caught(lambda: deque([1]).index(x)) | caught(lambda: deque([1]).remove(x))
        caught(lambda: range(3).index(x)) | AttributeError.__str__(AttributeError(x + 1)) | NameError.__str__(NameError(x + 1))
        ImportError.__str__(ImportError(x + 1)) | SyntaxError.__str__(SyntaxError(x)) | UnicodeDecodeError.__str__(undecodable(x))
        UnicodeEncodeError.__str__(unencodable(x)) | UnicodeTranslateError.__str__(untranslatable(x)) | [x].__repr__()
        (x,).__repr__() | deque([x]).__repr__() | {1: x}.__repr__() | {1: x}.values().__repr__() | {x: 1}.keys().__repr__()
        {1: x}.items().__repr__() | slice(x).__repr__() | collections.OrderedDict.__repr__(collections.OrderedDict({1: x}))
        str(undecodable(x)) | repr(OSError(x, x)) | print_to(OSError(x, x)) | "{}".format(SubError(x, x))""",
    ),
    "other codecs": (
        "é",
        """x.encode("ascii", "statorerrors") | x.encode("ascii", errors="statorerrors") | x.encode("ascii", "ignore")
        x.encode("ascii") | x.encode("statorcodec") | bytes(x, "ascii", "statorerrors") | b"\\xff".decode()
        b"\\xff".decode(errors="statorerrors") | str(b"\\xff", "ascii", "xmlcharrefreplace") | x.encode("utf-16-le")
        list(map(lambda e: x.encode("ascii", e), ["ignore", "xmlcharrefreplace"])) | x.encode("cp1252")
        bytearray(x, "ascii", "statorerrors") | bytearray(b"a\\xff").decode("ascii", "statorerrors") | x.encode()
        x.encode(encoding="ascii", errors="statorerrors") | x.encode("ascii", "nosuchhandler") | "a".encode("ascii", "q")""",
    ),
    "warnings are errors": (
        Index(),
        """[1, 2][x] | [1, 2][:x] | "a" * x | range(x) | int(x) | round(1.5, x) | bool(NotImplemented)
        (1 if NotImplemented else 2) | not NotImplemented | [v for v in [1] if NotImplemented] | any([NotImplemented])
        ~(x is not None) | operator.inv(x is not None) | NotImplemented and 1 | (1).__eq__("a") or 3 | thrown(x)
        hex(x) | list(filter(None, [NotImplemented])) | UserWarning(1).args | math.sqrt(Floating()) | int(Truncated())
        sorted([2, 1], key=lambda v: [v][x - x]) | [3, 1].pop(x) | memoryview(b"ab")[x] | re.compile("[[a]b]")""",
    ),
}


class Sub(int):
    pass


class SubError(OSError):
    pass


def undecodable(x):
    error = UnicodeDecodeError("ascii", b"a", 0, 1, "")
    error.reason = x
    return error


def unencodable(x):
    error = UnicodeEncodeError("ascii", "a", 0, 1, "")
    error.reason = x
    return error


def untranslatable(x):
    error = UnicodeTranslateError("a", 0, 1, "")
    error.reason = x
    return error


def caught(thunk):
    try:
        return thunk()
    except ValueError as e:
        return str(e)


class Point:
    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return f"Point({self.x})"


Color = __import__("enum").IntEnum("Color", {"RED": BIG})


def print_to(x):
    import io

    out = io.StringIO()
    print(x, file=out)
    return out.getvalue()


def thrown(x):
    def numbers():
        try:
            yield 1
        except ValueError:
            yield 2

    g = numbers()
    return next(g), g.throw(ValueError, ValueError(1), None)


def expressions() -> list[Any]:
    return [
        pytest.param(change, x, text.strip(), id=text.strip())
        for change, (x, lines) in EXPRESSIONS.items()
        for text in re.split(r" \| |\n", lines)
    ]


@pytest.mark.parametrize("change, x, text", expressions())
def test_expressions_notice_a_changed_state(change: str, x: Any, text: str) -> None:
    function = eval(f"lambda x: {text}", globals())
    with codecs_for_tests():
        assert same_in_both_states(function, [lambda: x], CHANGES[change][1])


# --- changed inside ---


def digits_inside(x):
    before = len(str(x)), sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        return before, str(x)
    except ValueError:
        return before, "refused"
    finally:
        sys.set_int_max_str_digits(before[1])


def handler_inside(x):
    before = x.encode("ascii", "statorerrors")
    codecs.register_error("statorerrors", codecs.replace_errors)
    after = x.encode("ascii", "statorerrors")
    codecs.register_error("statorerrors", lambda e: ("q", e.end))
    mine = x.encode("ascii", "statorerrors")
    codecs.register_error("statorerrors", codecs.ignore_errors)
    return before, after, mine


def filters_inside(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quiet = [1, 2][x]
        warnings.simplefilter("error")
        try:
            return quiet, [1, 2][x]
        except DeprecationWarning:
            return quiet, "refused"


@pytest.mark.parametrize(
    "function, x", [(digits_inside, BIG), (handler_inside, "aé"), (filters_inside, Index())]
)
def test_a_state_that_is_changed_inside(function: Callable[..., Any], x: Any) -> None:
    ours = compiled(function)
    with codecs_for_tests():
        for _ in range(3):
            assert ours(x) == function(x)


# --- rows with a handler ---

VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("VARIABLE", default=1)


class Abstract(__import__("abc").ABC):
    pass


class Concrete:
    pass


def while_handling(thunk: Callable[[], Any]) -> Any:
    try:
        raise ValueError
    except ValueError:
        return thunk()


def in_thread(thunk: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(thunk()))
    thread.start()
    thread.join()
    return results[0]


def in_context(thunk: Callable[[], Any]) -> Any:
    return contextvars.copy_context().run(lambda: (VARIABLE.set(5), thunk())[1])


def with_limit(thunk: Callable[[], Any]) -> Any:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + 100)
    try:
        return thunk()
    finally:
        sys.setrecursionlimit(before)


def with_digits(thunk: Callable[[], Any]) -> Any:
    with fewer_digits():
        return thunk()


def with_class(thunk: Callable[[], Any]) -> Any:
    Abstract.register(Concrete)  # for good
    return thunk()


CALLERS = {
    "RAISED": while_handling, "THREAD": in_thread, "CONTEXT": in_context,
    "RECURSION": with_limit, "DIGITS": with_digits, "ABSTRACT": with_class,
}  # fmt: skip
# (row, state): an expression that shows it. The locale has a test of its own.
HANDLED = {
    ("int.__format__", "DIGITS"): "BIG.__format__('d')",
    ("str.format", "DIGITS"): "'{:d}{!r}'.format(1, BIG)",
    ("set.__repr__", "DIGITS"): "{BIG}.__repr__()",
    ("frozenset.__repr__", "DIGITS"): "frozenset([BIG]).__repr__()",
    ("BaseException.__repr__", "DIGITS"): "ValueError(BIG).__repr__()",
    ("BaseException.__str__", "DIGITS"): "ValueError(BIG).__str__()",
    ("KeyError.__str__", "DIGITS"): "KeyError(BIG).__str__()",
    ("sys.getrecursionlimit", "RECURSION"): "sys.getrecursionlimit()",
    ("sys.exc_info", "RAISED"): "str(sys.exc_info()[0])",
    ("sys.exception", "RAISED"): "type(sys.exception()).__name__",
    ("_thread.get_ident", "THREAD"): "threading.get_ident()",
    ("_contextvars.ContextVar.get", "CONTEXT"): "VARIABLE.get()",
    (
        "_contextvars.ContextVar.set",
        "CONTEXT",
    ): "(VARIABLE.get(), VARIABLE.set(9), VARIABLE.get(), VARIABLE.set(1))[:3:2]",
    (
        "_contextvars.ContextVar.reset",
        "CONTEXT",
    ): "VARIABLE.reset(VARIABLE.set(9)) or VARIABLE.get()",
    ("_abc._abc_instancecheck", "ABSTRACT"): "isinstance(Concrete(), Abstract)",
    ("_abc._abc_subclasscheck", "ABSTRACT"): "issubclass(Concrete, Abstract)",
}


def test_every_handled_row_that_reads_state_is_shown() -> None:
    said = {(row[0], name) for row in _engine.rules() if row[1] == "handled" for name in row[-1]}
    local = {(path, name) for path, name in said if name == "LOCALE"}
    assert said - local == {key for key in HANDLED if key[0] != "sys.exception"} | {
        key for key in HANDLED if key[0] == "sys.exception" and hasattr(sys, "exception")
    }
    assert {path for path, _ in local} == set(LOCAL) - PATTERNS


@pytest.mark.parametrize("path, state", HANDLED, ids=lambda v: v)
def test_handled_rows_notice_a_changed_state(path: str, state: str) -> None:
    if state == "RAISED":
        function = eval(f"lambda: ({HANDLED[path, state]},)[0]", globals())
    else:
        function = eval(f"lambda: {HANDLED[path, state]}", globals())
    Abstract._abc_impl = __import__("_abc")._abc_init(Abstract) or Abstract._abc_impl
    ours = compiled(function)
    callers = [lambda thunk: thunk(), CALLERS[state], lambda thunk: thunk()]
    for caller in callers:
        if state == "THREAD":  # in the same one
            theirs, got = caller(lambda: (outcome(function, []), outcome(ours, [])))
        else:
            theirs, got = caller(lambda: outcome(function, [])), caller(lambda: outcome(ours, []))
        assert got == theirs


# --- the locale ---

PATTERNS = {
    f"re.Pattern.{name}" for name in "match fullmatch search findall split finditer".split()
}
LOCAL = {
    "format": "format(x, 'n')",
    "int.__format__": "x.__format__('n')",
    "float.__format__": "(x + 0.5).__format__('n')",
    "complex.__format__": "(x + 1j).__format__('n')",
    "str.format": "'{:n}'.format(x)",
    "re.Pattern.sub": "PATTERN.sub(b'q', b'\\xe9')",
    "re.Pattern.subn": "PATTERN.subn(b'q', b'\\xe9')",
    **{path: f"show({path.replace('re.Pattern', 'PATTERN')}(b'\\xe9'))" for path in PATTERNS},
}
MORE_LOCAL = [
    "f'{x:n}'", "f'{x + 0.5:.3n}'", "'{:{}}'.format(x, 'n')", "'{:{}n}'.format(x, '')",
    "f'{Sub(x):n}'", "f'{DAY:%B}'", "'{:%B}'.format(DAY)", "format(DAY, '%A')",
]  # fmt: skip
PATTERN = re.compile(rb"\w", re.LOCALE)
DAY = __import__("datetime").date(2020, 5, 6)


def check_locale(name: str) -> None:
    """In a process that has this locale, which groups digits and has months of its own."""
    for text in [*LOCAL.values(), *MORE_LOCAL]:
        function = eval(f"lambda x: {text}", globals())
        ours = compiled(function)
        for used in ("C", name, "C"):
            locale.setlocale(locale.LC_ALL, used)
            assert outcome(ours, [1234567]) == outcome(function, [1234567]), (text, used)
    locale.setlocale(locale.LC_ALL, name)
    print(format(1234567, "n"), f"{DAY:%B}")


def test_the_locale_is_noticed(tmp_path: Path) -> None:
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(tmp_path / "de_DE")],
        capture_output=True,
    )
    if made.returncode > 1:
        pytest.skip("this system cannot make a locale")
    path = [str(Path(__file__).parents[2]), *sys.path]
    code = f"import sys; sys.path[:0] = {path!r}; from tests.stage import test_rule_states as t; t.check_locale('de_DE')"
    child = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LOCPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout == "1.234.567 Mai\n"


def test_what_is_by_the_locale_is_not_traced() -> None:
    for text in [*LOCAL.values(), *MORE_LOCAL]:
        function = eval(f"lambda x: {text}", globals())
        with pytest.raises(stator.Unsupported, match="by the locale"):
            stator.compile(function, backend="eager", fullgraph=True, _keep_empty=True)(1234567)


# --- flags of the process ---


def check_bytes_warnings() -> None:
    """Under -b."""
    for text in (
        "str(x)", "'%s' % x", "f'{x}'", "'{}'.format(x)", "x == 'a'", "'a' == x", "x in ['a']",
        "{'a': 1}.get(x)", "x == 1", "bytearray(x) == 'a'", "x.__str__()", "str(bytearray(x))",
    ):  # fmt: skip
        function = eval(f"lambda x: {text}", globals())
        assert same_in_both_states(function, [lambda: b"a"], lambda: warnings_as("error")), text


def test_warnings_about_bytes_are_noticed() -> None:
    path = [str(Path(__file__).parents[2]), *sys.path]
    code = f"import sys; sys.path[:0] = {path!r}; from tests.stage import test_rule_states as t; t.check_bytes_warnings()"
    child = subprocess.run(
        [sys.executable, "-b", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert child.returncode == 0, child.stderr
