"""Symbolic numbers as Python objects with operators, so that tests read as programs do."""

from __future__ import annotations

import math
from typing import Any

from stator import _engine

INFIX = {
    "add": "__add__",
    "sub": "__sub__",
    "mul": "__mul__",
    "floordiv": "__floordiv__",
    "mod": "__mod__",
    "truediv": "__truediv__",
    "pow": "__pow__",
    "lshift": "__lshift__",
    "rshift": "__rshift__",
    "and": "__and__",
    "or": "__or__",
    "xor": "__xor__",
    "eq": "__eq__",
    "ne": "__ne__",
    "lt": "__lt__",
    "le": "__le__",
    "gt": "__gt__",
    "ge": "__ge__",
}
PREFIX = {"neg": "__neg__", "abs": "__abs__", "invert": "__invert__"}

# What each operation is in Python, on plain numbers.
PYTHON = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "truediv": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "lshift": lambda a, b: a << b,
    "rshift": lambda a, b: a >> b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "min": min,
    "max": max,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "neg": lambda a: -a,
    "abs": abs,
    "invert": lambda a: ~a,
    "not": lambda a: not a,
    "int": int,
    "float": float,
    "bool": bool,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "sqrt": math.sqrt,
}
UNARY = list(PYTHON)[list(PYTHON).index("neg") :]
BINARY = [name for name in PYTHON if name not in UNARY]


class Numbers:
    """The symbols of one imagined trace."""

    def __init__(self) -> None:
        self.sizes = _engine.Sizes()

    def symbol(self, name: str, value: float, *bounds: int) -> Number:
        return Number(self, self.sizes.symbol(name, value, *bounds))

    def size(self, name: str, value: int, low: int = 2) -> Number:
        return self.symbol(name, value, low, 2**63 - 1)

    def number(self, value: Any) -> Number:
        return value if isinstance(value, Number) else Number(self, self.sizes.plain(value))

    def apply(self, op: str, *operands: Any) -> Number | None:
        found = self.sizes.apply(op, *(self.number(o).index for o in operands))
        return None if found is None else Number(self, found)

    def conditions(self) -> list[Any]:
        return [self.sizes.object(c) for c in self.sizes.conditions()]

    def holds(self, values: dict[str, Any]) -> bool:
        """Whether a guard made of the conditions lets these values of the symbols pass."""
        return all(self.sizes.evaluate(c, values) is True for c in list(self.sizes.conditions()))


class Number:
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, numbers: Numbers, index: int) -> None:
        self.numbers = numbers
        self.index = index

    @property
    def sizes(self) -> Any:
        return self.numbers.sizes

    def known(self) -> bool | None:
        return {1: True, 0: False, -1: None}[self.sizes.known(self.index)]

    def decide(self) -> bool:
        return self.sizes.decide(self.index)

    def settle(self) -> Any:
        return self.sizes.settle(self.index)

    def current(self) -> Number:
        return Number(self.numbers, self.sizes.current(self.index))

    def plain(self) -> bool:
        return self.sizes.is_plain(self.index)

    def hint(self) -> Any:
        return self.sizes.hint(self.index)

    def bounds(self) -> tuple[int, int]:
        return self.sizes.bounds(self.index)

    def text(self) -> Any:
        return self.sizes.object(self.index)

    def at(self, **values: Any) -> Any:
        return self.sizes.evaluate(self.index, values)

    def is_same(self, other: Number) -> bool:
        return self.sizes.is_same(self.index, other.index)


def _infix(op: str) -> Any:
    return lambda a, b: a.numbers.apply(op, a, b)


def _turned(op: str) -> Any:
    return lambda a, b: a.numbers.apply(op, b, a)


for _op, _name in INFIX.items():
    setattr(Number, _name, _infix(_op))
    if _op not in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Number, f"__r{_name[2:]}", _turned(_op))
for _op, _name in PREFIX.items():
    setattr(Number, _name, (lambda op: lambda a: a.numbers.apply(op, a))(_op))
