"""What `Tensor.backward` does with a gradient, for traces. The variables here name nodes, unlike
those of `_gradients`."""

from typing import Any

import torch


def refuse(why: str, raises: bool = False) -> Any:
    """A break before the call; `raises`: plain Python raises there."""
    raise NotImplementedError


def accumulate(leaf: Any, gradient: Any) -> None:
    """Autograd keeps the order of the leaf's dimensions in memory, and adds in place."""
    if gradient is None:
        return
    if gradient.layout != torch.strided or leaf.layout != torch.strided:
        refuse("a gradient that is sparse")
    new_grad_strided = torch.empty_like(leaf)
    new_grad_strided.copy_(gradient)
    if leaf.grad is None:
        leaf.grad = new_grad_strided
    elif leaf.grad.layout != torch.strided:
        refuse("a gradient that is sparse")
    else:
        leaf.grad.add_(new_grad_strided)
