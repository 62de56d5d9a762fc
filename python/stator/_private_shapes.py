"""What Stator takes of torch's symbolic sizes (`torch.fx.experimental.symbolic_shapes`) and sympy.
Importing these takes a third of a second, so `_private` imports this file when somebody asks for
one of its names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch.fx.experimental.symbolic_shapes import (
    ConstraintViolationError as ConstraintViolationError,
)
from torch.fx.experimental.symbolic_shapes import DimDynamic as DimDynamic
from torch.fx.experimental.symbolic_shapes import ShapeEnv as ShapeEnv
from torch.fx.experimental.symbolic_shapes import StatefulSymbolicContext as StatefulSymbolicContext
from torch.fx.experimental.symbolic_shapes import SubclassSymbolicContext as SubclassSymbolicContext
from torch.fx.experimental.symbolic_shapes import (
    compute_unbacked_bindings as compute_unbacked_bindings,
)
from torch.fx.experimental.symbolic_shapes import guard_size_oblivious as guard_size_oblivious
from torch.utils._sympy.symbol import SymT, symbol_is_type

from stator._private import find

expect_true = find("torch.fx.experimental.symbolic_shapes.expect_true")
guard_or_false = find("torch.fx.experimental.symbolic_shapes.guard_or_false")
guard_or_true = find("torch.fx.experimental.symbolic_shapes.guard_or_true")
statically_known_true = find("torch.fx.experimental.symbolic_shapes.statically_known_true")
has_static_value = find("torch.fx.experimental.symbolic_shapes.has_static_value")


def is_unbacked_symbol(found: Any) -> bool:
    return symbol_is_type(found, (SymT.UNBACKED_INT, SymT.UNBACKED_FLOAT))


def shape_env(scalars: bool, shapes: bool) -> ShapeEnv:
    """Whether the numbers of tensors, and sizes that depend on values, are symbols in it."""
    return ShapeEnv(
        tracked_fakes=[], allow_scalar_outputs=scalars, allow_dynamic_output_shape_ops=shapes
    )


sympy_eq: Callable[[Any, Any], Any] = sympy.Eq


def to_sympy(number: Any) -> Any:
    """The expression of a SymInt, or a plain number as one."""
    return number.node.expr if isinstance(number, torch.SymInt) else sympy.Integer(number)
