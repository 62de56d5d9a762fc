"""What a compiled function costs where it does not settle: nobody is asked the same question for ever."""

import collections
import contextlib
import dataclasses
import gc
import random
import re
import sys
import threading
import types
import typing
import warnings
import weakref

import pytest
from forced import compile_breaking

import stator
from stator import _engine


class Asked:
    """A policy that compiles so many times, and counts the questions."""

    fullgraph = False

    def __init__(self, most, then):
        self.most = most
        self.then = then
        self.questions = []

    def miss(self, code, offset, entries, reasons):
        self.questions.append(entries)
        return True if entries < self.most else self.then

    def broke(self, *why):
        pass

    def made(self, *what):
        pass

    def failed(self, *how):
        return False


def double(x):
    return x * 2


def with_policy(function, policy):
    settings = _engine.compiler(None, RuntimeError, False, True, 8, policy=policy)
    return _engine.compiled(function, settings)


def test_a_policy_that_says_never_is_not_asked_again():
    policy = Asked(2, None)
    f = with_policy(double, policy)
    assert [f(x) for x in range(8)] == [2 * x for x in range(8)]
    assert policy.questions == [0, 1, 2]
    hits = f.metrics["hits"]
    assert f(1) == 2 and f.metrics["hits"] == hits + 1  # what was compiled still serves


def test_a_policy_that_says_not_now_is_asked_again():
    policy = Asked(2, False)
    f = with_policy(double, policy)
    assert [f(x) for x in range(5)] == [2 * x for x in range(5)]
    assert policy.questions == [0, 1, 2, 2, 2]


def test_never_ends_with_a_reset():
    policy = Asked(1, None)
    f = with_policy(double, policy)
    assert [f(x) for x in range(4)] == [0, 2, 4, 6]
    f.compiler.reset()
    assert f(5) == 10
    assert policy.questions == [0, 1, 0]
    assert f.metrics["entries"] == 1


def test_reasons_are_not_gathered_past_the_limit():
    f = stator.compile(double, backend="eager", _keep_empty=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in range(20):
            assert f(x) == 2 * x
        seen = len(f.metrics["recompiles"])
        for x in range(20, 40):
            assert f(x) == 2 * x
    assert len(f.metrics["recompiles"]) == seen


# -- objects that are made for each call ------------------------------------------------------------


def lock_it(lock):
    with lock:
        x = 1
    return x + (lock is not None)


def use_namespace(space):
    space.b = space.a + 1
    print(end="")
    return space.b, sorted(vars(space))


def draw(chance):
    x = [1]
    x.append(chance.randrange(10))
    y = chance.random()
    return len(x), y


def match_it(found):
    return found.group(), found.string


MADE = {
    "lock": (lock_it, threading.Lock),
    "recursive lock": (lock_it, threading.RLock),
    "condition": (lock_it, threading.Condition),
    "namespace": (use_namespace, lambda: types.SimpleNamespace(a=1)),
    "random numbers": (draw, lambda: random.Random(7)),
    "match": (match_it, lambda: re.match("a*", "aab")),
}


@pytest.mark.parametrize("kind", MADE)
def test_an_object_of_each_call_is_no_reason_to_trace_again(kind):
    function, make = MADE[kind]
    f = compile_breaking(function)
    kept = [make() for _ in range(4)]
    assert f(kept[0]) == function(make())
    traces = f.metrics["traces"]
    for each in kept[1:]:
        assert f(each) == function(make())
    assert f.metrics["traces"] == traces
    assert f.metrics["drops"] == []


def bump(a, b):
    a.n = b.n + 1
    b.n = 10
    return a.n


def test_namespaces_that_are_one_are_told_from_two():
    f = compile_breaking(bump)
    for n in range(3):
        one, two, both = (types.SimpleNamespace(n=n) for _ in range(3))
        assert f(one, two) == n + 1
        assert (one.n, two.n) == (n + 1, 10)
        assert f(both, both) == 10
        assert both.n == 10


# -- what cannot be made again ----------------------------------------------------------------------

PATTERN = re.compile("a+")


class Base:
    def name(self):
        return "base"


class Derived(Base):
    def name(self):
        above = super()
        print(end="")
        return above.name() + "!"


class Watched:
    pass


def a_match():
    found = PATTERN.match("aab")
    print(end="")
    return found.group()


def a_super_object():
    return Derived().name()


def a_union():
    kinds = int | str
    print(end="")
    return kinds is not None


def a_watched_object():
    watched = Watched()
    weak = weakref.ref(watched)
    print(end="")
    return weak() is watched


@pytest.mark.parametrize("function", [a_match, a_super_object, a_union, a_watched_object])
def test_what_cannot_be_made_again_is_made_behind_a_break(function):
    f = compile_breaking(function)
    assert f() == function()
    traces = f.metrics["traces"]
    assert f() == f() == function()
    assert f.metrics["drops"] == []
    assert f.metrics["entries"] > 0
    assert f.metrics["traces"] == traces


def a_namedtuple_class():
    pair = collections.namedtuple("pair", "a b", defaults=[2])
    made = pair(1)
    return made, made._replace(b=3).b, pair.__module__, pair._field_defaults


def a_typed_namedtuple_class():
    pair = typing.NamedTuple("pair", [("a", int), ("b", str)])
    return pair(1, "b")._asdict(), pair.__annotations__["a"], pair.__module__


def a_dataclass():
    @dataclasses.dataclass
    class Pair:
        a: int
        b: list = dataclasses.field(default_factory=list)

    return Pair(1).b, Pair(1) == Pair(1), Pair.__match_args__


@pytest.mark.parametrize("function", [a_namedtuple_class, a_typed_namedtuple_class, a_dataclass])
def test_a_class_that_the_library_makes_is_at_most_one_break(function):
    f = compile_breaking(function)
    for _ in range(3):
        assert repr(f()) == repr(function())
    made = [text for text in f.metrics["breaks"] if "CLASS_STATEMENT" in text]
    known = "namedtuple", "NamedTuple", "dataclass"
    assert all(any(name in text for name in known) for text in made[-1:])
    assert f.metrics["entries"] <= 6


@contextlib.contextmanager
def noting(out):
    out.append("in")
    try:
        yield len(out)
    finally:
        out.append("out")


def in_a_manager(out):
    with noting(out) as n:
        print(end="")
        out.append(n)
    return len(out)


def test_a_manager_that_is_a_generator_settles():
    f = compile_breaking(in_a_manager)
    for _ in range(2):
        out = []
        assert f(out) == 3 and out == ["in", 1, "out"]
    traces = f.metrics["traces"]
    for _ in range(5):
        out = []
        assert f(out) == 3 and out == ["in", 1, "out"]
    assert f.metrics["traces"] == traces
    assert not any("FINALIZER" in text for text in f.metrics["breaks"])
    assert f.metrics["entries"] == 3  # up to print(), up to the end of the block, and the rest


def leave_without_a_generator(log):
    manager = noting(log)
    print(end="")
    with contextlib.suppress(TypeError):
        manager.__exit__(None)
    del manager.gen
    try:
        manager.__exit__(None, None, None)
    except AttributeError as error:
        log.append(error.__traceback__.tb_next.tb_frame.f_code.co_name)


def test_a_manager_that_lost_its_generator():
    f = compile_breaking(leave_without_a_generator)
    for _ in range(2):
        log = []
        f(log)
        assert log == ["__exit__"]


def what_is_handled(out):
    out.append(sys.exc_info()[0])
    return sys.exc_info()[1]


def test_a_call_from_a_handler_is_traced_once():
    f = compile_breaking(what_is_handled)
    for _ in range(4):
        out = []
        try:
            raise KeyError("k")
        except KeyError as e:
            assert f(out) is e and out == [KeyError]
    traces = f.metrics["traces"]
    assert f([]) is None
    try:
        raise OSError
    except OSError as e:
        assert f([]) is e
    assert f.metrics["traces"] == traces
    assert f.metrics["drops"] == []


# -- numbers that are others each time --------------------------------------------------------------


def sum_of_times(numbers):
    total = 0.0
    for number in numbers:
        total = total + next(number)
        if total > 100:
            total = total - 100
    return total


def test_numbers_from_outside_need_no_entry_each():
    f = compile_breaking(sum_of_times)
    for start in range(0, 80, 8):
        numbers = [start + i / 8 for i in range(8)]
        got = f([iter([number]) for number in numbers])
        assert got == sum_of_times([iter([number]) for number in numbers])
    traces = f.metrics["traces"]
    assert any("VARYING" in text for text in f.metrics["breaks"])
    for start in range(100, 200, 8):
        numbers = [start + i / 16 for i in range(8)]
        got = f([iter([number]) for number in numbers])
        assert got == sum_of_times([iter([number]) for number in numbers])
    assert f.metrics["traces"] <= traces + 2  # the other arm, where the sums above met it rarely


def test_few_numbers_have_an_entry_each():
    def f(it):
        n = next(it)
        return [n] * n

    fast = compile_breaking(f)
    for n in (1, 2, 3, 1, 2, 3):
        assert fast(iter([n])) == [n] * n
    assert not any("VARYING" in text for text in fast.metrics["breaks"])


def test_a_varying_number_is_still_the_number():
    def f(it, out):
        n = next(it)
        out.append(n)
        return n + 1 if n % 2 else -n

    fast = compile_breaking(f)
    for n in [*range(20), 1 << 70, -5, *range(20)]:
        out = []
        assert fast(iter([n]), out) == f(iter([n]), [])
        assert out == [n]


# -- what entries keep -------------------------------------------------------------------------------


def a_class_that_is_its_own_key():
    class A:
        table = {}

    A.table[A] = None
    weak = weakref.ref(A)
    del A
    gc.collect()
    return weak


def test_an_entry_does_not_keep_a_key_that_it_wrote_under():
    f = compile_breaking(a_class_that_is_its_own_key)
    assert f()() is None
    assert f()() is None


# -- objects of one call ----------------------------------------------------------------------------


class Node:
    def __init__(self, n=1):
        self.n = n


def visited(node):
    seen = {node}
    return node in seen, node.n


def visited_behind_a_break(node):
    seen, memo = {node}, {node: node.n}
    print(end="")
    return node in seen, memo[node]


def put_behind_a_break(node):
    memo = {}
    print(end="")
    memo[node] = node.n
    print(end="")
    return node in memo, memo[node]


def class_of_one_call(node):
    class Box:
        def __init__(self, n):
            self.n = n

    return Box(node.n).n == 1, 1


@pytest.mark.parametrize(
    "function, most",
    [(visited, 1), (visited_behind_a_break, 2), (put_behind_a_break, 3), (class_of_one_call, 1)],
)
def test_objects_that_are_made_for_each_call_share_an_entry(function, most):
    f = compile_breaking(function)
    for _ in range(20):
        assert f(Node()) == (True, 1)
    assert f.metrics["traces"] == most
