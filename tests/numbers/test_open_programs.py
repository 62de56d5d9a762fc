"""Random programs of numbers, plain and compiled with all their numbers kept open: results, types
and what they write to an object are the same, whatever numbers come and wherever a trace breaks."""

import os
import random

import pytest

from tests.numbers.numbers_tools import *

PROGRAMS = int(os.environ.get("STATOR_OPEN_PROGRAMS", "150"))
BINARY = "+ - * // % / & | ^ min max".split()
COMPARE = "== != < <= > >=".split()
UNARY = ["-{}", "abs({})", "~{}", "int({})", "float({})", "round({})", "bool({})", "+{}"]
UNARY += ["math.floor({})", "math.ceil({})", "(not {})", "sum([{}, 1])", "math.trunc({})"]
POOL = [0, 1, 2, 3, -1, -7, 5, 10, 100, 255, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**64, -(2**63)]
POOL += [0.5, -0.0, 0.0, 2.5, -1.5, 1e308, float("inf"), float("nan"), True, False]
CONSTANTS = ["0", "1", "2", "3", "-1", "7", "10", "0.5", "-2.5", "True", "2**40"]


class Maker:
    """One program, by chance."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.names = ["a", "b", "c.k"]
        self.lines = []

    def atom(self):
        if self.chance.random() < 0.7:
            return self.chance.choice(self.names)
        return self.chance.choice(CONSTANTS)

    def number(self, depth=2):
        roll = self.chance.random()
        if depth == 0 or roll < 0.3:
            return self.atom()
        if roll < 0.45:
            return self.chance.choice(UNARY).format(self.number(depth - 1))
        op = self.chance.choice(BINARY)
        left, right = self.number(depth - 1), self.number(depth - 1)
        return f"{op}({left}, {right})" if op.isalpha() else f"({left} {op} {right})"

    def condition(self):
        roll = self.chance.random()
        left, right = self.number(1), self.number(1)
        if roll < 0.6:
            return f"{left} {self.chance.choice(COMPARE)} {right}"
        if roll < 0.7:
            return f"{left} in ({right}, 3, {self.atom()})"
        if roll < 0.8:
            return f"({left}, 1) == ({right}, 1)"
        return left

    def statement(self, indent, depth):
        roll, pad = self.chance.random(), "    " * indent
        name = self.chance.choice(["a", "b", "c.k", "d", "e"])
        if roll < 0.35:
            self.lines.append(f"{pad}{name} = {self.number()}")
        elif roll < 0.5:
            self.lines.append(f"{pad}{name} {self.chance.choice('+ - *'.split())}= {self.atom()}")
        elif roll < 0.6:
            self.lines.append(f"{pad}seen.append({self.number()})")
        elif roll < 0.68:
            self.lines.append(f"{pad}{name} = sorted([{self.atom()}, {self.atom()}, 4])[0]")
        elif roll < 0.74:
            self.lines.append(f"{pad}{name} = (lambda x, y={self.atom()}: x - y)({self.atom()})")
        elif roll < 0.8 and depth:
            self.lines.append(f"{pad}for i in range(3):")
            self.block(indent + 1, depth - 1)
        elif depth:
            self.lines.append(f"{pad}if {self.condition()}:")
            self.block(indent + 1, depth - 1)
            self.lines.append(f"{pad}else:")
            self.block(indent + 1, depth - 1)
        else:
            self.lines.append(f"{pad}seen.append({self.condition()})")

    def block(self, indent, depth):
        for _ in range(self.chance.randrange(1, 4)):
            self.statement(indent, depth)

    def text(self):
        self.lines = ["def f(a, b, c):", "    seen, d, e = [], a, b"]
        self.names += ["d", "e"]
        self.block(1, 2)
        self.block(1, 2)
        self.lines.append("    return a, b, d, e, seen, c.k")
        return "\n".join(self.lines) + "\n"


class Holder:
    def __init__(self, k):
        self.k = k


def run(f, a, b, k):
    c = Holder(k)
    result = outcome(f, a, b, c)
    return result, seen(c.k)


@pytest.mark.parametrize("first", range(0, PROGRAMS, 10))
def test_random_programs(first):
    for seed in range(first, first + 10):
        text = Maker(seed).text()
        f, chance = from_source(text), random.Random(seed)
        more = {"break_every": 9, "break_seed": seed} if seed % 3 == 0 else {}
        compiled = compile_open(f, ["a", "b", "L['c'].k"], limit=60, **more)
        near = [chance.choice(POOL) for _ in range(3)]
        for _ in range(12):
            args = [v if chance.random() < 0.5 else chance.choice(POOL) for v in near]
            expected = run(f, *args)
            for _ in range(2):
                assert run(compiled, *args) == expected, (seed, args, text)
