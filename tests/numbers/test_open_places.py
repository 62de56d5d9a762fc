"""Open numbers wherever a program puts them: containers, objects, closures, generators, exceptions,
frames at a break. Each program runs with many numbers, plain and compiled, and with breaks in the
middle; results and what was written are compared."""

import collections
import contextvars
import dataclasses
import functools
import itertools
import random

import pytest

from tests.numbers.numbers_tools import *


@dataclasses.dataclass
class Point:
    x: int = 0
    y: float = 0.0


class Slots:
    __slots__ = ("k",)


class Counter:
    def __init__(self, k=0):
        self.k = k

    def step(self, n):
        self.k += n
        return self.k


VARIABLE = contextvars.ContextVar("VARIABLE", default=0)
GLOBAL = 0


def returned(n):
    return n


def in_a_tuple(n):
    return n, n + 1, (n, [n - 1])


def in_a_dict(n):
    d = {"a": n, "b": {"c": n * 2}}
    d["d"] = d["a"] + 1
    d.update(e=n)
    return d


def in_a_list(n):
    xs = [n]
    xs.append(n + 1)
    xs.extend([n, xs[0]])
    xs.insert(0, -n)
    xs.reverse()
    return xs, xs[1:3], xs.pop(), len(xs)


def in_a_deque(n):
    d = collections.deque([n], maxlen=3)
    d.append(n + 1)
    d.rotate(1)
    return list(d)


def unpacked(n):
    a, *b = n, n + 1, n + 2
    (c, d), e = (n, a), b
    return a, b, c, d, e


def in_an_object(n):
    p = Point(n, n / 2)
    p.x += 1
    return p.x, p.y, p


def in_slots(n):
    s = Slots()
    s.k = n + 1
    return s.k


def in_a_closure(n):
    def inner(k):
        nonlocal n
        n += k
        return n

    return inner(1), inner(2), n


def given_out_in_a_closure(n):
    def inner(k):
        return n + k

    n = n + 1
    return inner


given_out_in_a_closure.use = lambda inner: (inner(1), inner.__closure__[0].cell_contents)


def in_a_default(n):
    def inner(k=n + 1):
        return k

    return inner


in_a_default.use = lambda inner: (inner(), inner.__defaults__)


def in_a_partial(n):
    return functools.partial(max, n + 1, 3)


in_a_partial.use = lambda partial: (partial(), partial.args)


def in_a_generator(n):
    def numbers():
        k = n
        while True:
            k = k + 1
            yield k

    g = numbers()
    for first in g:
        break
    for second in g:
        break
    return first, second, g


in_a_generator.use = lambda got: (got[:2], list(itertools.islice(got[2], 3)))


def in_an_iterator(n):
    return list(map(lambda k: k + 1, [n, n * 2])), iter([n, n + 1]), enumerate([n], n + 0)


in_an_iterator.use = lambda got: (got[0], *map(list, got[1:]))


def in_an_exception(n):
    try:
        raise ValueError(n + 1, n)
    except ValueError as raised:
        return raised.args


def raised(n):
    if n > 3:
        raise KeyError(n - 1)
    return n


def in_a_slice(n):
    return slice(n, n + 1, None)


def star_arguments(n):
    def f(*args, **kwargs):
        return args, kwargs

    return f(n, *[n + 1], a=n, **{"b": n * 2})


def context_variable(n):
    token = VARIABLE.set(n + 1)
    try:
        return VARIABLE.get()
    finally:
        VARIABLE.reset(token)


def matched(n):
    match (n, n + 1):
        case (0, k):
            return "zero", k
        case (k, 5):
            return "four", k
        case _:
            return "other", n


def compared(n):
    return [n < 3, n == 4, (n, 2) == (4, 2), [n] < [5], n in (1, 2), n in [4, 5]]


def looped(n):
    k = 0
    while n > 1:
        n //= 2
        k += 1
    return k, n


def sorted_and_extreme(n):
    return sorted([n, 3, 2 * n]), max([n, 4], key=lambda k: -k), min(n, 4, 2 * n), sum([n] * 3)


def swapped(n):
    a, b = n, n + 1
    a, b = b, a
    return a, b


def formatted(n):
    return f"{n:>4} {n!r} {n + 1}", "%d" % n, str(n)


def as_a_key(n):
    d = {n: "n"}
    d[n + 1] = "more"
    return d, {n, 3}


def as_an_index(n):
    return list(range(10))[n % 10], "abcdefghij"[n % 10 :], tuple(range(n % 5))


def identical(n):
    m = n
    return n is m, (n + 1) is None, n is None, (n > 3) is True


def walrus_and_chain(n):
    if 0 < (m := n + 1) < 9:
        return m
    return -m


def recursive(n):
    return n if n < 4 else recursive(n - 3) + 1


def deleted(n):
    m = n + 1
    k = m
    del m
    return k


PROGRAMS = [f for f in list(globals().values()) if getattr(f, "__module__", "") == __name__]
PROGRAMS = [f for f in PROGRAMS if callable(f) and not isinstance(f, type)]
VALUES_OF_PLACES = [5, 9, 12, 0, 1, 4, 3, -7, 30, 2**31, 2**53 + 1, 2**63 - 1, 2**70, True, Step(3)]
VALUES_OF_PLACES += [0.5, -0.0, 1e308, Color.RED]
TOO_LONG = {"as_an_index": 0, "recursive": 10**6}


def result(f, *args):
    use = getattr(f, "use", None) or getattr(getattr(f, "__wrapped__", None), "use", None)
    return outcome(lambda: use(f(*args)) if use else f(*args))


def calls(f):
    most = TOO_LONG.get(f.__name__, 2**200)
    return [v for v in VALUES_OF_PLACES if abs(v) <= most or most == 0]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("breaks", [0, 1, 3, 7])
def test_programs(f, breaks):
    more = {"break_every": breaks, "break_seed": breaks} if breaks else {}
    compiled = compile_open(f, **more)
    for value in calls(f):
        expected = result(f, value)
        for _ in range(2):
            assert result(compiled, value) == expected, (value, compiled.metrics["breaks"][:3])


ONE = "returned in_a_tuple in_a_dict in_a_list in_a_deque unpacked in_an_object in_slots "
ONE += "in_a_closure given_out_in_a_closure in_a_default in_a_partial in_a_generator "
ONE += "in_an_exception in_a_slice star_arguments swapped deleted"


@pytest.mark.parametrize("name", ONE.split())
def test_moving_needs_one_entry(name):
    f = globals()[name]
    compiled = compile_open(f)
    for value in [5, 9, 1000, 0, 1, -7, 2**40]:
        assert result(compiled, value) == result(f, value)
    assert entries(compiled) == 1, [row["guards"] for row in compiled.compiler.entries()]


# --- what is written ---


def run_counter(compiled, seen, steps):
    c = Counter(3)
    for n in steps:
        seen.append(compiled(c, n))
    return c.k, seen


def test_a_counter_needs_one_entry():
    def step(c, n):
        return c.step(n)

    compiled = compile_open(step, ["n", "L['c'].k"])
    steps = [1, 2, 5, 100, -3, 0, 2**40]
    assert run_counter(compiled, [], steps) == run_counter(step, [], steps)
    assert entries(compiled) == 1


def test_each_outcome_of_a_counter_needs_one_entry():
    def step(c):
        c.k += 1
        return "tenth" if c.k % 10 == 0 else c.k

    compiled = compile_open(step, ["L['c'].k"])
    plain, other = Counter(), Counter()
    for _ in range(35):
        assert compiled(plain) == step(other)
        assert plain.k == other.k
    assert entries(compiled) == 2


def test_a_counter_beyond_64_bits():
    def step(c):
        c.k *= 3
        return c.k

    compiled = compile_open(step, ["L['c'].k"])
    plain, other = Counter(1), Counter(1)
    for _ in range(60):
        assert compiled(plain) == step(other)


def test_numbers_of_globals_and_containers():
    names = {}
    exec("K = 1\ndef f(xs, d):\n    global K\n    K += xs[0]\n    d['n'] += K\n    return K", names)
    f = names["f"]
    places = ["function.__globals__['K']", "L['xs'][0]", "L['d']['n']"]
    compiled = compile_open(f, places)
    d, total, n = {"n": 0}, 1, 0
    for k in [3, 4, 100, -7, 0]:
        total, n = total + k, n + total + k
        assert compiled([k], d) == total and d == {"n": n} and names["K"] == total
    assert entries(compiled) == 1, [row["guards"] for row in compiled.compiler.entries()]


def test_floats_that_only_move_or_are_computed_with():
    def f(c, lr):
        c.k = c.k * 0.9 + lr
        return c.k, lr / 2

    compiled = compile_open(f, ["lr", "L['c'].k"])
    plain, other = Counter(0.5), Counter(0.5)
    for lr in [0.1, 0.25, 1e-3, -0.0, 1e300, float("inf")]:
        assert repr(compiled(plain, lr)) == repr(f(other, lr))
        assert repr(plain.k) == repr(other.k)
    assert entries(compiled) <= 2


def test_a_swap_of_two_places():
    def f(c, d):
        c.k, d.k = d.k, c.k

    compiled = compile_open(f, ["L['c'].k", "L['d'].k"])
    for a, b in [(1, 2), (3, 4), (10**20, 5), (5, True)]:
        c, d = Counter(a), Counter(b)
        compiled(c, d)
        assert (c.k, d.k) == (b, a) and type(c.k) is type(b)


def test_a_number_that_is_written_and_read_again():
    def f(c, n):
        c.k = n + 1
        c.k = c.k * 2
        return c.k - n, vars(c)["k"]

    compiled = compile_open(f, ["n"])
    for n in [1, 5, 100, -7]:
        c = Counter()
        assert compiled(c, n) == (n + 2, 2 * n + 2) and c.k == 2 * n + 2
    assert entries(compiled) == 1


# --- what is said ---


def test_reasons_say_what_was_decided():
    def f(n):
        return "big" if n * 2 > 10 else "small"

    compiled = compile_open(f)
    assert [compiled(n) for n in (9, 12, 3)] == ["big", "big", "small"]
    assert compiled.metrics["recompiles"] == ["L['n'] >= 6: now 3"]
    guards = [row["guards"] for row in compiled.compiler.entries()]
    (rows,) = [rows for rows in guards if rows[-1][0] == "L['n'] >= 6"]
    assert rows[-1][2] == f.__code__.co_firstlineno + 1


def test_zero_divisors_raise():
    def f(n, m):
        n // m
        return n + m

    compiled = compile_open(f)
    assert compiled(7, 2) == 9
    for n, m in [(1, 5), (-7, 3)]:
        assert compiled(n, m) == n + m
    with pytest.raises(ZeroDivisionError):
        compiled(7, 0)
    assert compiled(8, 2) == 10


def test_a_part_of_a_sum_does_not_fit_though_the_sum_does():
    def f(n, m):
        return n - m - m, -m - m + n

    compiled = compile_open(f)
    calls = [(2**63 - 1, 2**62), (5, 3), (2**62, 2**62), (0, -(2**62)), (-1, 2**62), (1, 2**63 - 1)]
    assert differences(f, compiled, calls) == []
    compiled = compile_open(f)
    assert differences(f, compiled, calls[::-1]) == []


def test_a_question_whose_negation_alone_is_known():
    def f(n, m):
        return 1 if (n // -1) >= (n % m) else 2

    compiled = compile_open(f)
    calls = [(2**62, 3), (5, 3), (-7, 3), (0, 1), (2**62, -3), (-(2**62), 7), (3, 0)]
    assert differences(f, compiled, calls) == []


@pytest.mark.parametrize("power", [52, 53, 60, 61, 62, 63, 64])
def test_comparisons_near_the_ends_of_64_bits(power):
    def f(n, m):
        return (n ^ 0) > True, n < m, n - m > 0, -n >= m, n == -m, 1 if n + m else 2

    ends = [sign * 2**power + near for sign in (1, -1) for near in (-2, -1, 0, 1, 2)] + [0, 2, -7]
    pairs = list(itertools.product(ends, ends))
    for seed in range(3):
        random.Random(seed).shuffle(pairs)
        assert differences(f, compile_open(f), pairs[:60]) == []
