"""Compiled `nn.Module`s: torch's own wrapper class, over a call compiled by Stator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.eval_frame import OptimizedModule


def wrap(module: torch.nn.Module, wrap_callable: Callable[[Any], Any]) -> OptimizedModule:
    """The module in the class that users know from `torch.compile`; attributes are the module's."""
    return OptimizedModule(module, wrap_callable)  # type: ignore[arg-type]
