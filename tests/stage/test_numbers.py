"""Symbolic numbers: what is known of them without a condition, what a decision tells, and when a
guard of the conditions lets other values pass."""

from __future__ import annotations

from typing import Any

import pytest
from number_tools import Numbers


@pytest.fixture
def t() -> Numbers:
    return Numbers()


# Each is true for all sizes n, m, k of at least 2.
LEMMAS = {
    "same": lambda n, m, k: n + m * 2 == m + n + m,
    "bounds": lambda n, m, k: n * m + 3 > 6,
    "bounds of a square": lambda n, m, k: (n // -3) ** 2 > 0,
    "factor": lambda n, m, k: n * m - n > 0,
    "unequal by content": lambda n, m, k: n * 2 != m * 4 + 1,
    "factor leaves //": lambda n, m, k: (n * m) // n == m,
    "factors leave //": lambda n, m, k: (n * m * k) // (m * k) == n,
    "factor leaves %": lambda n, m, k: (n * m) % n == 0,
    "factor comes out of %": lambda n, m, k: (n * 4) % (m * 4) == (n % m) * 4,
    "sum leaves //": lambda n, m, k: ((n + 3) * (m + k)) // (m + k) == n + 3,
    "sum leaves %": lambda n, m, k: ((n + m) * (n + m) * k) % (n + m) == 0,
    "difference leaves //": lambda n, m, k: (n * n - m * m * 4) // (n + m * 2) == n - m * 2,
    "multiple leaves //": lambda n, m, k: (n + m * 8) // 8 == n // 8 + m,
    "multiple leaves %": lambda n, m, k: (n + m * 8) % 8 == n % 8,
    "// within //": lambda n, m, k: n // 2 // 3 == n // 6,
    "// and %": lambda n, m, k: n // 8 * 8 + n % 8 == n,
    "// and % by a symbol": lambda n, m, k: n // m * m + n % m == n,
    "// below": lambda n, m, k: n // 8 * 8 <= n,
    "// above": lambda n, m, k: n < n // 8 * 8 + 8,
    "// is less": lambda n, m, k: n // 2 <= n,
    "% is less": lambda n, m, k: n % m < m,
    "% is not negative": lambda n, m, k: (n - m) % k >= 0,
    "up to a multiple": lambda n, m, k: n + (-n) % 8 == (n + 7) // 8 * 8,
    "up, the other way": lambda n, m, k: -(-n // 8) == (n + 7) // 8,
    "up is no less": lambda n, m, k: n + (-n) % 8 >= n,
    "min": lambda n, m, k: n.numbers.apply("min", n, m) <= n,
    "min of both": lambda n, m, k: n.numbers.apply("min", n, m) <= m,
    "min with more": lambda n, m, k: n.numbers.apply("min", n, m) < n + m,
    "max": lambda n, m, k: n.numbers.apply("max", n, m) >= m,
    "min of what is known": lambda n, m, k: n.numbers.apply("min", n, n + m) == n,
    "abs": lambda n, m, k: abs(n) == n,
    "shift": lambda n, m, k: n << 3 == n * 8,
    "shift back": lambda n, m, k: (n << 3) >> 3 == n,
    "mask": lambda n, m, k: (n & 7) < 8,
    "power": lambda n, m, k: (n + m) ** 2 == n**2 + n * m * 2 + m**2,
    "invert": lambda n, m, k: ~n == -n - 1,
    "rounded": lambda n, m, k: (n < 1.5) == False,  # noqa: E712
    "convolution": lambda n, m, k: (n - 1) // 2 + 1 >= 1,
}


@pytest.mark.parametrize("name", LEMMAS)
def test_what_holds_for_all_sizes_is_known(t: Numbers, name: str) -> None:
    truth = LEMMAS[name](t.size("n", 10), t.size("m", 7), t.size("k", 5))
    assert truth.known() is True
    assert t.apply("not", truth).known() is False
    assert truth.decide() is True
    assert t.conditions() == []


# (what is decided, what is known then and was not before); n, m, k = 24, 24, 6.
TOLD = {
    "equal": (lambda n, m, k: n == m, lambda n, m, k: n * k + 1 == m * k + 1),
    "equal bounds": (lambda n, m, k: [n == m, m >= 5], lambda n, m, k: n > 4),
    "a number": (lambda n, m, k: n == 24, lambda n, m, k: n * m == m * 24),
    "linear": (lambda n, m, k: n == k * 4, lambda n, m, k: n % 4 == 0),
    "product": (lambda n, m, k: n * k == 144, lambda n, m, k: n * k + m > 100),
    "a sum": (lambda n, m, k: n + m == 48, lambda n, m, k: n + m - 48 == 0),
    "no solution": (lambda n, m, k: n * 2 + m * 3 == 120, lambda n, m, k: n * 2 + m * 3 > 100),
    "divides": (lambda n, m, k: n % 8 == 0, lambda n, m, k: n // 8 * 8 == n),
    "divides less": (lambda n, m, k: n % 8 == 0, lambda n, m, k: (n * m) % 4 == 0),
    "divides again": (lambda n, m, k: [n % 4 == 0, n // 4 % 3 == 0], lambda n, m, k: n % 12 == 0),
    "divides a product": (lambda n, m, k: n * k % 4 == 0, lambda n, m, k: n * k // 4 * 4 == n * k),
    "divides a sum": (lambda n, m, k: (n + m) % 4 == 0, lambda n, m, k: (n + m + 8) % 4 == 0),
    "divides, with a rest": (lambda n, m, k: (n + 3) % 9 == 0, lambda n, m, k: n % 3 == 0),
    "divides by a symbol": (lambda n, m, k: n % k == 0, lambda n, m, k: n // k * k == n),
    "divides a product by a symbol": (
        lambda n, m, k: n * m % k == 0,
        lambda n, m, k: n * m // k * k == m * n,
    ),
    "divides an equal": (lambda n, m, k: [n % 8 == 0, m == n], lambda n, m, k: m % 8 == 0),
    "less": (lambda n, m, k: n < 30, lambda n, m, k: n < 40),
    "less than another": (lambda n, m, k: k < n, lambda n, m, k: n - k > 0),
    "less, turned": (lambda n, m, k: k < n, lambda n, m, k: k * 2 - 2 * n < 0),
    "less, then equal": (lambda n, m, k: [k < n, n == m], lambda n, m, k: k < m),
    "hole": (lambda n, m, k: n != 5, lambda n, m, k: n != 5),
    "hole at the end": (lambda n, m, k: n != 2, lambda n, m, k: n > 2),
    "hole, then equal": (lambda n, m, k: [k != 7, k == m - 18], lambda n, m, k: m != 25),
    "quotient": (lambda n, m, k: n // 4 >= 3, lambda n, m, k: n >= 12),
    "quotient is": (lambda n, m, k: n // 4 == 6, lambda n, m, k: n < 28),
    "factor": (lambda n, m, k: n * k == m * k, lambda n, m, k: n == m),
    "float": (lambda n, m, k: n / 2 < 20.5, lambda n, m, k: n / 2 < 20.5),
    "float, as an int": (
        lambda n, m, k: n / 4 == 6.0,
        lambda n, m, k: n.numbers.apply("int", n / 4 == 6.0) == 1,
    ),
    "both": (lambda n, m, k: (n > 3) & (m > 3), lambda n, m, k: m > 2),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_decision_tells_more(t: Numbers, name: str) -> None:
    sizes = t.size("n", 24), t.size("m", 24), t.size("k", 6)
    decided, told = TOLD[name]
    before = told(*sizes)
    start, unconditional = t.sizes.now(), list(t.conditions())
    assert before.known() is None
    for truth in decided(*sizes) if isinstance(decided(*sizes), list) else [decided(*sizes)]:
        truth.decide()
    noted = t.conditions()
    assert len(noted) > len(unconditional)
    assert told(*sizes).known() is True and before.known() is True
    assert told(*sizes).decide() is True
    assert t.conditions() == noted
    t.sizes.rollback(*start)
    assert t.conditions() == unconditional
    assert before.known() is None


def test_what_is_made_of_settled_numbers_is_settled(t: Numbers) -> None:
    n, f = t.size("n", 24), t.symbol("f", -0.0)
    made = t.apply("int", n / 4 + f), n * 3 + 1, f * 2.0, n % 5, t.apply("bool", f)
    assert not any(m.plain() or m.current().plain() for m in made)
    n.settle()
    f.settle()
    assert [m.current().plain() for m in made] == [True] * 5
    assert t.conditions()[-2:] == [("eq", ("symbol", "n"), 24), ("same", ("symbol", "f"), -0.0)]
    assert t.holds({"n": 24, "f": -0.0})
    assert not t.holds({"n": 24, "f": 0.0})
    assert not t.holds({"n": 25, "f": -0.0})


# What has no expression: Python raises, or gives a number of another kind or size.
NONE = {
    "by zero": lambda t, n, f: n // 0,
    "float by zero": lambda t, n, f: f % 0.0,
    "root of a negative": lambda t, n, f: t.apply("sqrt", -n),
    "int of infinity": lambda t, n, f: t.apply("int", f * 1e308 * 1e308),
    "complex": lambda t, n, f: (-f) ** 0.5,
    "negative power": lambda t, n, f: n**-1,
    "symbolic power": lambda t, n, f: n**n,
    "shift by a symbol": lambda t, n, f: n << n,
    "too large": lambda t, n, f: n * 2**62,
    "no double": lambda t, n, f: (n + 2**53 + 1) * 0.5,
    "int or float": lambda t, n, f: t.apply("min", n, f),
    "not of a bool": lambda t, n, f: ~(n > 30),
    "deep": lambda t, n, f: deep(n),
}


def deep(n: Any) -> Any:
    for k in range(200):
        rest = n % (k + 7)
        if rest is None:
            return None
        n = rest * 3 + k
    return n


@pytest.mark.parametrize("name", NONE)
def test_there_is_no_expression(t: Numbers, name: str) -> None:
    assert NONE[name](t, t.size("n", 24), t.symbol("f", 2.5)) is None
    assert len(t.conditions()) <= 1  # nothing is required in vain


def test_what_python_would_raise_for_is_a_condition(t: Numbers) -> None:
    n, m = t.symbol("n", 7), t.symbol("m", 2)
    assert (n // m).hint() == 3
    assert t.conditions() == [("ne", ("symbol", "m"), 0)]
    assert (n / m).hint() == 3.5
    assert [c[0] for c in t.conditions()] == ["ne", "le", "ge", "le", "ge"]
    assert not t.holds({"n": 2**53 + 1, "m": 2})
    assert not t.holds({"n": 7, "m": 0})


def test_a_guard_fails_where_int64_ends(t: Numbers) -> None:
    n = t.symbol("n", 7)
    assert (n * n < 50).decide()
    assert t.holds({"n": -7}) and not t.holds({"n": 8})
    assert (n * n).at(n=2**40) is None
    assert not t.holds({"n": 2**40})
    assert (n * n - 1).at(n=-(2**63)) is None


def test_expressions_are_read_back(t: Numbers) -> None:
    n, m, f = t.size("n", 24), t.size("m", 5), t.symbol("f", 2.5)
    made = [n * m - m // 3 + n % m, t.apply("min", n * 2, m), f * n - 1.0, (n > m) | (f < n)]
    for number in made:
        again = t.sizes.read(number.text())
        assert t.sizes.is_same(again, number.index)
    assert t.sizes.read(("no such operation", 1, 2)) is None
    assert t.sizes.read(("symbol", "nobody")) is None
    assert t.sizes.read(("add", 2**70, ("symbol", "n"))) is None
