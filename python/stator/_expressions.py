"""Open numbers as nested tuples, which the engine gives and takes.

A plain number is itself, a symbol is ("symbol", index), anything else ("add", a, b) or ("neg", a),
with the operators of src/graph/numbers.def. Torch's backends use sympy for such numbers.
"""

import functools
import math
import operator
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from stator._versions import private

Expr = Any  # int, float, bool, or a tuple as above


def _same(a: float, b: float) -> bool:
    return struct.pack("d", a) == struct.pack("d", b)


def _remainder(a: Any, b: Any) -> Any:
    """a % b. sympy up to 1.14 takes some quotients of even numbers for ints, so that torch finds a
    remainder of 0 where there may be another; torch's // has a way around that."""
    found = a % b
    return a - a // b * b if private.is_known_zero(found) else found


# The function of each operator, for Python's numbers and for torch's SymInts and SymFloats.
OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": _remainder,
    "truediv": operator.truediv,
    "pow": operator.pow,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "min": torch.sym_min,
    "max": torch.sym_max,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "same": _same,
    "neg": operator.neg,
    "abs": operator.abs,
    "invert": operator.invert,
    "not": torch.sym_not,
    "int": torch.sym_int,
    "float": torch.sym_float,
    "bool": lambda a: a != 0,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "sqrt": private.sym_sqrt,
    **private.math_functions,
}


def symbol(index: int) -> Expr:
    return "symbol", index


def evaluate(expr: Expr, values: Mapping[int, Any]) -> Any:
    """The value of an expression, with these values of the symbols."""
    if type(expr) is not tuple:
        return expr
    if expr[0] == "symbol":
        return values[expr[1]]
    return OPERATORS[expr[0]](*(evaluate(part, values) for part in expr[1:]))


# Operators that give whole numbers of whole numbers, and truths about them.
WHOLE = {"add", "sub", "mul", "floordiv", "mod", "min", "max", "neg", "abs"}
WHOLE |= {"eq", "ne", "lt", "le", "gt", "ge", "not", "and", "or", "bool"}


def is_whole(expr: Expr) -> bool:
    """Whether no part of an expression of ints is a float."""
    if not isinstance(expr, tuple):
        return not isinstance(expr, float)
    return expr[0] == "symbol" or (expr[0] in WHOLE and all(map(is_whole, expr[1:])))


def symbols_of(expr: Expr) -> frozenset[int]:
    if type(expr) is not tuple:
        return frozenset()
    if expr[0] == "symbol":
        return frozenset(expr[1:])
    return frozenset().union(*map(symbols_of, expr[1:]))


# -- bounds --

Bounds = tuple[int | None, int | None]  # the least and the greatest value; None: there is none

_ANY: Bounds = (None, None)


def _add(a: Bounds, b: Bounds) -> Bounds:
    low = None if a[0] is None or b[0] is None else a[0] + b[0]
    high = None if a[1] is None or b[1] is None else a[1] + b[1]
    return low, high


def _neg(a: Bounds) -> Bounds:
    return (None if a[1] is None else -a[1], None if a[0] is None else -a[0])


def _mul(a: Bounds, b: Bounds) -> Bounds:
    """Bounds of a product, if no factor is negative or one of them is a number; else any."""
    for one, other in ((a, b), (b, a)):
        if one[0] is not None and one[0] == one[1]:
            factor = one[0]
            low, high = other if factor >= 0 else (other[1], other[0])
            return (None if low is None else low * factor, None if high is None else high * factor)
    if a[0] is None or b[0] is None or a[0] < 0 or b[0] < 0:
        return _ANY
    return a[0] * b[0], None if a[1] is None or b[1] is None else a[1] * b[1]


def _floordiv(a: Bounds, b: Bounds) -> Bounds:
    if b[0] is None or b[0] != b[1] or b[0] <= 0:
        return _ANY
    return (None if a[0] is None else a[0] // b[0], None if a[1] is None else a[1] // b[0])


def _mod(a: Bounds, b: Bounds) -> Bounds:
    return (0, None if b[1] is None else b[1] - 1) if b[0] is not None and b[0] > 0 else _ANY


_BOUNDS: dict[str, Callable[..., Bounds]] = {
    "add": _add,
    "sub": lambda a, b: _add(a, _neg(b)),
    "neg": _neg,
    "mul": _mul,
    "floordiv": _floordiv,
    "mod": _mod,
}


def bounds(expr: Expr, ranges: Mapping[int, Bounds]) -> Bounds:
    """Bounds of an int, with the symbols within these ranges."""
    if type(expr) is int:
        return expr, expr
    if type(expr) is not tuple:
        return _ANY
    if expr[0] == "symbol":
        return ranges.get(expr[1], _ANY)
    found = _BOUNDS.get(expr[0])
    return _ANY if found is None else found(*(bounds(part, ranges) for part in expr[1:]))


_ABOVE: dict[str, int] = {"ge": 0, "gt": 1}
_TURNED = {"le": "ge", "lt": "gt"}


def follows(condition: Expr, ranges: Mapping[int, Bounds]) -> bool:
    """Whether a comparison is true for all values within these ranges, as far as bounds tell."""
    if type(condition) is not tuple or len(condition) != 3:
        return False
    op, a, b = condition
    if op in _TURNED:
        op, a, b = _TURNED[op], b, a
    least, most = _add(bounds(a, ranges), _neg(bounds(b, ranges)))
    if op == "ne":
        return (least is not None and least > 0) or (most is not None and most < 0)
    return op in _ABOVE and least is not None and least >= _ABOVE[op]


# -- of sympy --


class Unknown(Exception):
    """sympy's expression is of a kind that Stator has no operator for."""


def _fold(name: str) -> Callable[..., Expr]:
    """An operator of two operands for a function of sympy's, which takes any number of them."""

    def make(*parts: Expr) -> Expr:
        return functools.reduce(lambda a, b: (name, a, b), parts)

    return make


def _plain(name: str) -> Callable[..., Expr]:
    return lambda *parts: (name, *parts)


def _power(base: Expr, exponent: Expr) -> Expr:
    if type(exponent) is not int or exponent < 0:  # a quotient, or a root
        raise Unknown("Pow")
    return ("pow", base, exponent)


# By the names of classes: sympy's own, and those of torch.utils._sympy.functions.
_KINDS: dict[str, Callable[..., Expr]] = {
    "Add": _fold("add"),
    "Mul": _fold("mul"),
    "Max": _fold("max"),
    "Min": _fold("min"),
    "And": _fold("and"),
    "Or": _fold("or"),
    "Not": _plain("not"),
    "Equality": _plain("eq"),
    "Unequality": _plain("ne"),
    "StrictLessThan": _plain("lt"),
    "LessThan": _plain("le"),
    "StrictGreaterThan": _plain("gt"),
    "GreaterThan": _plain("ge"),
    "Pow": _power,
    "PowByNatural": _plain("pow"),
    "FloatPow": _plain("pow"),
    "FloorDiv": _plain("floordiv"),
    "CleanDiv": _plain("floordiv"),
    "Mod": _plain("mod"),
    "PythonMod": _plain("mod"),
    "ModularIndexing": lambda base, by, modulus: ("mod", ("floordiv", base, by), modulus),
    "IntTrueDiv": _plain("truediv"),
    "FloatTrueDiv": _plain("truediv"),
    "ToFloat": _plain("float"),
    "TruncToInt": _plain("int"),
    "FloorToInt": _plain("floor"),
    "CeilToInt": _plain("ceil"),
    "RoundToInt": _plain("round"),
    **{f"OpaqueUnaryFn_{name}": _plain(name) for name in ("sqrt", *private.math_functions)},
    "LShift": _plain("lshift"),
    "RShift": _plain("rshift"),
    "BitwiseFn_bitwise_and": _plain("and"),
    "BitwiseFn_bitwise_or": _plain("or"),
    "BitwiseFn_bitwise_xor": _plain("xor"),
    "Identity": lambda part: part,
}


def from_sympy(found: Any, known: Mapping[Any, Expr]) -> Expr:
    """sympy's expression as a tuple; `known` has the expression of each symbol of sympy's."""
    if found.is_Symbol:
        if found not in known:
            raise Unknown(str(found))
        return known[found]
    if found.is_Integer:
        return int(found)
    if found.is_Float:
        return float(found)
    if found.is_Boolean and not found.args:
        return bool(found)
    make = _KINDS.get(type(found).__name__)
    if make is None:
        raise Unknown(type(found).__name__)
    return make(*(from_sympy(part, known) for part in found.args))


def shown(expr: Expr, names: Mapping[int, str]) -> str:
    """As text, for logs and tests."""
    if type(expr) is not tuple:
        return repr(expr)
    if expr[0] == "symbol":
        return names[expr[1]]
    parts: Iterable[str] = (shown(part, names) for part in expr[1:])
    return f"{expr[0]}({', '.join(parts)})"
