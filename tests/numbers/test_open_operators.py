"""Operators and functions of numbers that are kept open: the same results as plain Python's, of the
same types, whether or not an entry fits; and few entries where the number need not be known."""

import itertools
import random
import re
from pathlib import Path

import pytest

from tests.numbers.numbers_tools import *

UNARY = ["-n", "+n", "~n", "abs(n)", "not n", "int(n)", "float(n)", "bool(n)", "round(n)"]
UNARY += ["math.floor(n)", "math.ceil(n)", "math.trunc(n)", "math.sqrt(n)", "round(n, 1)", "n"]
MATHS = "acos asin atan cos cosh exp expm1 log log10 log1p log2 sin sinh tan tanh".split()
UNARY += [f"math.{name}(n)" for name in MATHS]
UNARY += ["2 ** n", "3 ** n", "1 << n", "5 << n", "0.9 ** n", "2 ** n // 3", "math.log(2 ** n)"]
UNARY += ["(n, n)", "[n, n + 1]", "str(n)", "f'{n}'", "hash(n)", "n.real", "type(n)"]
UNARY += ["isinstance(n, int)", "isinstance(n, float)", "n is None", "n in (1, 2)", "n is n"]
UNARY += ["1 if n else 2", "n and 7", "n or 7", "n == n", "{n: 1}", "[1, 2, 3][n]", "[0] * n"]
UNARY += ["list(range(n))[:5]", "sum([n, n, 1])", "sum((n, 0.5))", "max(n, 3)", "min(n, 3)"]
UNARY += ["max([n, 3, 1])", "max(n, True)", "min(n, 1.0)", "sorted([n, 3, 1, 2])", "divmod(n, 3)"]
UNARY += ["divmod(7, n)", "math.prod([n, 2, n])", "pow(n, 2)", "pow(3, n, 5)", "(n, 1) == (3, 1)"]
UNARY += ["(n, 1) < (3, 2)", "n == 'a'", "n != None", "operator.add(n, 1)"]
UNARY += ["functools.reduce(lambda a, b: a * b, [n, 2, n])", "-n + abs(n)", "(n + 1) is n"]
UNARY += ["slice(n, n + 1)", "{'a': n}['a']", "any([n])", "all([n, 1])", "[n].index(n)"]
UNARY += ["[1, 2, 3].count(n)", "(lambda *a: a)(n)", "[i for i in (n, 1)]", "next(iter([n]))"]
UNARY += ["n < 5 < n + 10", "0 <= n < 4", "complex(n)", "divmod(n, n)", "bin(n)", "n.bit_length()"]

BINARY = ["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "@"]
BINARY += ["==", "!=", "<", "<=", ">", ">="]
CONSTANTS = ["0", "1", "2", "-3", "7", "64", "0.5", "-0.0", "1e308", "True", "2**62", "2**70"]

QUICK = [3, 0, 1, -1, -7, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**70, True, 0.0, -0.0, 0.5]
QUICK += [float("nan"), float("inf"), 1e308, Color.RED, Step(3)]


def small(value):
    """Shifts and powers of large numbers take all memory, plain or not."""
    return not isinstance(value, (int, float)) or abs(value) < 200


def suits(text, *values):
    risky = "<<" in text or "**" in text or "range" in text or "pow" in text or "] * n" in text
    return not risky or all(small(value) for value in values)


def program(text, names="n"):
    return from_source(f"def f({names}):\n    return {text}\n")


def shuffled(values, seed):
    values = list(values)
    random.Random(seed).shuffle(values)
    return values


@pytest.mark.parametrize("text", UNARY)
def test_of_one_number(text):
    f = program(text)
    for seed in range(3):
        values = shuffled((v for v in VALUES if suits(text, v)), seed)
        assert differences(f, compile_open(f), [(v,) for v in values]) == []


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("constant", CONSTANTS)
def test_with_a_constant(op, constant):
    for text in (f"n {op} {constant}", f"{constant} {op} n"):
        if not suits(text, eval(constant)):
            continue
        f = program(text)
        for seed in range(2):
            values = shuffled((v for v in VALUES if suits(text, v)), seed)
            assert differences(f, compile_open(f), [(v,) for v in values]) == []


@pytest.mark.parametrize("op", BINARY)
def test_of_two_numbers(op):
    text = f"n {op} m"
    f = program(text, "n, m")
    pairs = [pair for pair in itertools.product(QUICK, QUICK) if suits(text, *pair)]
    for seed in range(2):
        assert differences(f, compile_open(f), shuffled(pairs, seed)) == []
    half = compile_open(f, ["n"])
    assert differences(f, half, shuffled(pairs, 5)[:60]) == []


@pytest.mark.parametrize(
    "op", [op for op in BINARY if op not in ("==", "!=", "<", "<=", ">", ">=")]
)
def test_in_place(op):
    f = from_source(f"def f(n, m):\n    n {op}= m\n    return n\n")
    pairs = [pair for pair in itertools.product(QUICK, QUICK) if suits(f"n {op} m", *pair)]
    assert differences(f, compile_open(f), shuffled(pairs, 3)) == []


# Programs in which the number need not be known: one entry for ints, one for floats.
MOVES = ["n", "(n, n)", "[n, n + 1]", "n + 1", "2 * n - 7", "-n", "n * 0.5", "n / 4", "n - 0.25"]
MOVES += ["float(n)", "n // 2", "n % 3", "n > 3", "n == 4", "{'a': n}", "slice(n, n + 1)", "abs(n)"]
MOVES += ["int(n)", "(lambda a: a + 1)(n)", "isinstance(n, int)", "type(n)", "n is None", "n & 6"]
MOVES += ["max(n, 4)", "min(4, n, 9)", "sum([n, n, 1])", "divmod(n, 3)", "math.prod([n, 2, n])"]
MOVES += ["bool(n)", "math.sqrt(n * n)", "round(n)", "operator.add(n, 1)", "n ** 2"]
MOVES += ["functools.reduce(lambda a, b: a * b, [n, 2, n])", "n ^ 5", "~n", "n >> 1", "n << 2"]


@pytest.mark.parametrize("text", MOVES)
def test_one_entry_for_ints(text):
    f = program(text)
    compiled = compile_open(f)
    values = [5, 9, 1000, 12, 3, 1, -7, 2**20]
    assert differences(f, compiled, [(v,) for v in values]) == []
    assert entries(compiled) == 1, [row["guards"] for row in compiled.compiler.entries()]


@pytest.mark.parametrize("text", ["n", "n + 1", "n * 0.1", "-n", "n / 3", "n > 0.5", "(n, n - 1)"])
def test_one_entry_for_floats(text):
    f = program(text)
    compiled = compile_open(f)
    values = [0.5, 0.1, -2.5, 0.0, -0.0, 1e300, float("inf"), float("nan")]
    assert differences(f, compiled, [(v,) for v in values]) == []
    assert entries(compiled) <= 2


@pytest.mark.parametrize(
    ("text", "values", "most"),
    [
        *((f"math.{name}(n)", [0.5, 0.25, 0.75, 0.125], 1) for name in MATHS),
        *((f"math.{name}(n)", [1, 1], 1) for name in MATHS),
        ("math.log(n)", [5, 9, 1000, 12, 3], 1),
        ("math.cos(n) + math.sin(n)", [5, 9, 1000, 12, 3, -7], 1),
        ("2 ** n", [5, 9, 12, 3, 0, 62], 1),
        ("3 << n", [5, 9, 12, 3, 0, 60], 1),
        ("1 if n > 3 else 2", [5, 9, 100, 2, 1, -7], 2),
        ("1 if n % 10 == 0 else n", [5, 9, 10, 20, 11, 30], 2),
        ("n in (1, 2)", [1, 2, 3, 4, 5], 3),
        ("(n, 1) == (3, 1)", [3, 4, 5, 6], 2),
        ("sorted([n, 10])", [3, 4, 12, 13], 2),
        ("[1, 2] if n else 0", [1, 2, 0, 3], 2),
        ("n and n + 1", [1, 2, 0, 3], 2),
        ("0 <= n < 4", [1, 2, 3], 1),
        ("(n + 1) is None", [1, 2, 3], 1),
        ("max(n, True)", [3, 4, 5], 1),
    ],
)
def test_decisions_are_guarded_and_values_are_not(text, values, most):
    f = program(text)
    compiled = compile_open(f)
    assert differences(f, compiled, [(v,) for v in values]) == []
    assert entries(compiled) <= most, [row["guards"] for row in compiled.compiler.entries()]


ROWS = re.findall(
    r'^NUMBERS\("([\w.]+)", (\d)',
    (Path(__file__).parents[2] / "src/call/numbers.def").read_text(),
    re.M,
)


def works(f, value):
    try:
        f(value)
    except (ValueError, OverflowError):
        return False
    return True


@pytest.mark.parametrize("path, takes", ROWS)
def test_every_function_of_the_table_keeps_numbers_open(path, takes):
    for text in [f"{path}(n)"] if takes == "1" else [f"{path}(n, 3)", f"{path}(100, n)"]:
        f = program(text)
        compiled = compile_open(f)
        values = (5, 9, 1000, 2**20, 7) if works(f, 2**20) else (0.5, 0.25, 0.125)
        assert differences(f, compiled, [(v,) for v in values]) == []
        assert entries(compiled) == 1
        wrong = program(text.replace("(n", "(n, n, n, n").replace(", n)", ", n, n, n)"))
        assert differences(wrong, compile_open(wrong), [(5,), (9,)]) == []
