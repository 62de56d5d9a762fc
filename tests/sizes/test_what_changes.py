"""What is left open after a miss: the numbers that alone keep the best entry from fitting."""

import pytest

from stator import _compile, _engine
from stator._policy import Policy

CHANGED, ALL, INTS, FLOATS = 1, 2, 4, 8


class Saying(Policy):
    numbers = 0

    def __init__(self, numbers):
        super().__init__()
        self.numbers = numbers


def compile_with(f, numbers=CHANGED | INTS | FLOATS):
    return _engine.compiled(f, _compile.make_compiler("eager", Saying(numbers), keep_empty=True))


def opened(f, calls, numbers=CHANGED | INTS | FLOATS):
    """What is said after each call to be left open from then on."""
    fast, said = compile_with(f, numbers), []
    for args in calls:
        before = len(fast.metrics["recompiles"])
        assert fast(*args) == f(*args)
        new = fast.metrics["recompiles"][before:]
        said += [text.partition(" will do for ")[2].rstrip(")") for text in new]
    return said


def of_int(n):
    return 2 * n


def of_two(n, m):
    return n + m if n else m


def of_list(ns):
    return ns[0] + ns[1]


class Counter:
    k = 0


def of_attribute(o):
    return o.k + 1


@pytest.mark.parametrize(
    ("f", "calls", "said"),
    [
        (of_int, [(3,), (4,)], ["L['n']"]),
        (of_int, [(3.0,), (4.0,)], ["L['n']"]),
        (of_int, [(3,), (4.0,)], [""]),
        (of_int, [(3,), (True,)], [""]),
        (of_int, [(True,), (False,)], [""]),
        (of_int, [(3,), (1 << 70,)], [""]),
        (of_int, [("a",), ("b",)], [""]),
        (of_two, [(3, 4), (5, 6)], ["L['n'], L['m']"]),
        (of_two, [(3, 4), (5, 6.0)], [""]),
        (of_two, [(3, 4), (3, 6.0)], [""]),
        (of_list, [([1, 2],), ([1, 3],)], ["L['ns'][1]"]),
        (of_list, [([1, 2],), ([1, 3, 4],)], [""]),
    ],
)
def test_numbers_that_alone_differ_are_left_open(f, calls, said):
    assert opened(f, calls) == said


def test_an_object_of_another_class_leaves_nothing_open():
    class Other:
        k = 5

    one, two, three = Counter(), Counter(), Other()
    one.k, two.k = 1, 2
    assert opened(of_attribute, [(one,), (three,)]) == [""]
    assert opened(of_attribute, [(one,), (two,)]) == ["L['o'].k"]


@pytest.mark.parametrize(
    ("numbers", "calls", "said"),
    [
        (0, [(3,), (4,)], [""]),
        (CHANGED | FLOATS, [(3,), (4,)], [""]),
        (CHANGED | INTS, [(3,), (4,)], ["L['n']"]),
        (CHANGED | INTS, [(3.0,), (4.0,)], [""]),
        (CHANGED | FLOATS, [(3.0,), (4.0,)], ["L['n']"]),
    ],
)
def test_settings_say_which_numbers_may_be_left_open(numbers, calls, said):
    assert opened(of_int, calls, numbers) == said
