"""Guards on open numbers, given values that they were not traced with: too large, zero, negative, of
other types that look alike. Whatever comes, a call gives what plain Python gives."""

import enum
import fractions
import math
import random
import warnings

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402
from tests.sizes.test_changing import told  # noqa: E402


class Step(int):
    pass


class Loud(int):
    """Arithmetic and comparisons of its own."""

    def __add__(self, other):
        return "added"

    def __mul__(self, other):
        return -1

    __rmul__ = __mul__

    def __gt__(self, other):
        return "greater"

    def __bool__(self):
        return False


class Rate(float):
    pass


class Level(enum.IntEnum):
    LOW = 3


class Index:
    def __index__(self):
        return 3


INTS = [0, 1, 2, 3, 4, 5, 6, 7, 12, -1, -2, -3, -7, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**61]
INTS += [2**62, 2**63 - 1, -(2**62), -(2**63), 3037000499, 3037000500, -3037000500]
LARGE = [2**63, 2**64, 2**70, -(2**63) - 1, -(2**70), 10**30]
FLOATS = [3.0, 5.0, 0.0, -0.0, 0.5, -2.5, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324]
FLOATS += [float(2**53), float(2**63), -1e-320]
ODD = [
    True,
    False,
    Step(3),
    Step(0),
    Loud(3),
    Level.LOW,
    Rate(0.5),
    Rate("nan"),
    None,
    "3",
    Index(),
]
ODD += [fractions.Fraction(3), 3 + 0j]

try:
    import numpy

    ODD += [numpy.int64(3), numpy.int32(-3), numpy.uint8(255), numpy.bool_(True)]
    ODD += [numpy.float64(3.0), numpy.float64("nan"), numpy.float32(0.5), numpy.array(3)]
except ImportError:
    pass

VALUES = [*INTS, *LARGE, *FLOATS, *ODD]

# Questions about one number, and about two; a trace answers them, and guards the answer.
ONE = ["n > 3", "n == 3", "n != 4", "n <= -1", "n % 3 == 0", "n // 2 == 2", "-n // 2 < -1", "n < m"]
ONE += ["n * n > 10", "n * n * n > 10", "n + 2**62 > 5", "n - 2**62 < 5", "n * 2**40 > 2**42"]
ONE += ["n / 2 > 1", "n * 0.5 < 2", "1 / n < 1", "7 // n > 1", "7 % n == 1", "n << 3 > 9"]
ONE += ["n >> 1 == 1", "n & 6", "n | 1 == 3", "n ^ 3", "~n < -3", "abs(n) > 2", "-n > 0", "not n"]
ONE += ["n ** 2 > 5", "float(n) > 2.5", "int(n) == 3", "bool(n)", "round(n) == 3", "n == n", "n"]
ONE += ["math.sqrt(n) > 1", "math.floor(n / 2) == 1", "math.ceil(n / 2) == 2", "math.log(n) > 1"]
ONE += ["max(n, 3) == 3", "min(n, 3) == 3", "n in (3, 5)", "0 <= n < 5", "(n, 1) == (3, 1)"]
ONE += ["divmod(n, 3) == (1, 0)", "sum([n, n]) > 6", "n is True", "isinstance(n, int)"]
ONE += ["type(n) is int", "n * x.shape[0] > 12", "n > x.shape[0]", "n + x.numel() == 8"]
TWO = ["n > m", "n == m", "n * m > 12", "n + m == 7", "n - m < 0", "n // m == 1", "n % m == 0"]
TWO += ["n / m > 1", "n * m == m * n", "max(n, m) == n", "(n, m) < (3, 4)", "n * m // 2 > 5"]
TWO += ["n & m", "(n + m) * (n - m) > 0", "n % m + m > n", "divmod(n, m)[1]", "-n % m == 1"]

# What a tensor may be given: the call raises, or has a value to the bit.
USES = [
    "x * n",
    "x + n",
    "x - n",
    "n - x",
    "x / n",
    "x // n",
    "x % n",
    "x ** 2 + n",
    "x[:n]",
    "x[n:]",
]
USES += ["x[-n:]", "x[n]", "x[n:n + 2]", "x.view(-1, n)", "x.reshape(n, -1)", "x.expand(2, n)"]
USES += [
    "x.narrow(0, 1, n)",
    "x.sum() * n",
    "x.add(x, alpha=n)",
    "x.clamp(max=n)",
    "x.repeat(n % 4)",
]
USES += ["torch.zeros(n % 5)", "torch.full((2,), n)", "torch.arange(n % 9)", "x > n", "x == n"]
USES += [
    "torch.where(x > 1, x, n)",
    "x.masked_fill(x > 1, n)",
    "x.to(torch.int64) * n",
    "x.roll(n)",
]
USES += ["x.split(n)", "x.chunk(n)", "torch.tensor(n)", "x.fill_(n)", "x.new_full((2,), n)"]
USES += ["torch.nn.functional.pad(x, (0, n % 3))", "x.to(torch.int32) + n", "(x > 1) * n"]

# Calls that leave the number open, of ints and of floats.
STARTS = {"ints": [3, 4, 5], "floats": [0.5, 0.25, 0.75]}


def function(text, names="x, n, m=5"):
    space = {"math": math, "torch": torch}
    exec(f"def f({names}):\n    return {text}\n", space)
    return space["f"]


def branch(text):
    return function(f"(x * 2, 1) if {text} else (x * 3, 2)")


def outcome(f, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = f(*args) if torch.is_tensor(args[0]) else f(torch.arange(6.0), *args)
        except Exception as error:  # behind the first line there may be addresses
            return type(error).__name__, str(error).split("\n")[0]
        return told(result)


def size_bound(text, value):
    """Sizes and shifts that would take all memory are left out."""
    large = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) > 4096
    return not (
        large and ("reshape" in text or "expand" in text or "chunk" in text or "**" in text)
    )


def differences(f, calls, **options):
    torch._dynamo.reset()
    found = []
    with torch._dynamo.config.patch(recompile_limit=500, accumulated_recompile_limit=5000):
        fast = stator.compile(f, backend="eager", **options)
        for args in calls:
            expected = outcome(f, *args)
            for _ in range(2):
                got = outcome(fast, *args)
                if got != expected:
                    found.append(f"{args}: {expected} expected, {got} found")
    return found


def shuffled(values, seed):
    values = list(values)
    random.Random(seed).shuffle(values)
    return values


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("text", ONE)
def test_a_question_about_a_number(text, start):
    later = [v for v in VALUES if size_bound(text, v)]
    calls = [(v,) for v in [*STARTS[start], *shuffled(later, text)]]
    assert differences(branch(text), calls) == []
    assert differences(branch(text), calls[3:], dynamic=True) == []


@pytest.mark.parametrize("text", TWO)
def test_a_question_about_two_numbers(text):
    starts = [(3, 4), (4, 5), (5, 7)]
    pairs = [(a, b) for a in shuffled(VALUES, text)[:9] for b in shuffled(VALUES, text + "b")[:9]]
    assert differences(branch(text), starts + pairs) == []


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("text", USES)
def test_what_a_tensor_is_given(text, start):
    later = [v for v in VALUES if size_bound(text, v)]
    calls = [(v,) for v in [*STARTS[start], *shuffled(later, text)]]
    assert differences(function(text), calls) == []


# Questions about sizes of up to 2**62, which tensors have that repeat one element.
HUGE = [
    "x.shape[0] > 4",
    "x.shape[0] * x.shape[0] > 40",
    "x.numel() * 4 > 40",
    "x.shape[0] * n > 40",
]
HUGE += ["x.shape[0] + 2**62 > 2**62 + 4", "x.shape[0] * 2**40 > 2**43", "x.shape[0] % 7 == 3"]
HUGE += [
    "x.shape[0] // n == 2",
    "x.shape[0] ** 3 > 100",
    "x.shape[0] / 3 > 2",
    "-x.shape[0] % 4 == 1",
]
HUGE += [
    "x.shape[0] * 0.1 > 1",
    "x.shape[0] << 2 > 30",
    "x.shape[0] - n * n > 0",
    "x.dim() * n == 2",
]
LENGTHS = [5, 6, 7, 0, 1, 2, 3, 2**31, 2**32 + 1, 2**40, 2**53 + 1, 2**61, 2**62]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("text", HUGE)
def test_a_question_about_huge_sizes(text, dynamic):
    def f(x, n):
        return (x[:2] * 2, x.shape, 1) if asked(x, n) else (x[:2] * 3, x.shape[0] * n, 2)

    asked = function(text, "x, n")
    calls = [
        (torch.ones(1, dtype=torch.int8).expand(length), n)
        for length in LENGTHS
        for n in (3, 4, 0, 2**62, -3)
    ]
    assert differences(f, calls, dynamic=dynamic) == []


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n * n > 10", [3, 4, 5, 7, 100]),
        ("n / 2 > 1", [3, 4, 5, 7, 100]),
        ("n % 3 == 0", [3, 4, 5, 7, 9]),
        ("n - 2**40 < 5", [3, 4, 5, 7, 100]),
        ("n > 0.3", [0.5, 0.25, 0.75, 2.5, 1e308]),
    ],
)
def test_the_numbers_are_open(text, values):
    """What is asked is one of few entries for all values that have one answer."""
    torch._dynamo.reset()
    fast = stator.compile(branch(text), backend="eager")
    for value in values:
        assert outcome(fast, value) == outcome(branch(text), value)
    assert fast.metrics["entries"] <= 3


# Remainders of even numbers, some of which sympy takes for 0.
EVEN = ["abs(4 - 2 * n) % 6", "max(2 * n, 4) % 6", "min(2 * n, 40) % 6", "(2 * n + 4) * n % 6"]
EVEN += ["(n + 1) * (2 * n + 2) % 6", "abs(4 * n - 8) % 6", "abs(2 * n) % 10", "max(2 * n, 4) % 14"]
EVEN += ["x.numel() * max(2 * n, 4) % 6", "abs(4 - 2 * n) // 6", "max(2 * n, 4) // 6 % 6"]


@pytest.mark.parametrize("text", EVEN)
@pytest.mark.parametrize("first", [0, 1, 2, 3, 5])
def test_remainders_of_even_sizes(text, first):
    f = function(f"x.new_zeros({text})[:3].shape[0], x * 2", "x, n")
    calls = [(n,) for n in (first, *range(9))]
    assert differences(f, calls, dynamic=True) == []


# Questions by way of floats, which torch draws wrong conclusions from about the int.
BY_FLOATS = ["int(n / 2) >= 0", "int(n / 2) == 0", "int(-n / 3) <= 0", "round(n / 2) >= 0"]
BY_FLOATS += ["math.ceil(n / 2) >= 0", "math.floor(n / 2) < 0", "n * 0.5 > -1", "int(n * 0.5) < 1"]


def as_it_is(module, examples):
    return module.forward


@pytest.mark.parametrize("text", BY_FLOATS)
@pytest.mark.parametrize("backend", [as_it_is, "aot_eager"], ids=["handed over", "aot_eager"])
def test_questions_by_way_of_floats_where_a_backend_has_the_int(text, backend):
    f = function(f"x * abs(n) + n if {text} else x * n", "x, n")
    fast = stator.compile(f, backend=backend)
    for n in (4, 5, -1, 0, 1, -2, -5, 7, 2):
        assert outcome(fast, n) == outcome(f, n)
