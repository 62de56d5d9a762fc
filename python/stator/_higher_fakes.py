"""Fakes for operators that take functions: of the tensors that they give their bodies, and of those
that they give themselves. The engine calls these by name, with the trace's mode."""

from typing import Any

import torch

from stator import _fakes
from stator._versions import private


def given_like(mode: Any, question: tuple[torch.Tensor, bool]) -> Any:
    """A tensor of the same kind in memory of its own, or a slice of one."""
    tensor, sliced = question
    sizes, strides = tuple(tensor.shape), tensor.stride()
    if sliced:
        sizes, strides = sizes[1:], strides[1:]
    return _fakes.fake_like(mode, sizes, strides, tensor.dtype, tensor.device, tensor.requires_grad)


def gradient_like(mode: Any, tensor: torch.Tensor) -> Any:
    """A gradient of the tensor. None is recorded of gradients themselves."""
    return _fakes.fake_like(
        mode, tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device, False
    )


def result_like(mode: Any, question: tuple[torch.Tensor, int | None, bool]) -> Any:
    """A result of torch's operator, or that many of them stacked."""
    tensor, count, needs = question
    sizes, strides = tuple(tensor.shape), tensor.stride()
    if count is not None:
        sizes = (count, *sizes)
        strides = torch.empty(sizes, device="meta").stride()
    needs = needs and (tensor.is_floating_point() or tensor.is_complex())
    made = _fakes.fake_like(mode, sizes, strides, tensor.dtype, tensor.device, needs)
    if not needs:
        return made
    with mode, torch.enable_grad():
        return made.clone()  # no leaf


def share_memory(mode: Any, question: tuple[list[Any], list[Any]]) -> bool:
    """Whether the results of a body share memory with each other, or with what it was given."""
    made, given = question
    storages = [private.storage_of(tensor) for tensor in made]
    others = {private.storage_of(tensor) for tensor in given}
    return len(set(storages)) < len(storages) or not others.isdisjoint(storages)


def are_alike(mode: Any, question: tuple[torch.Tensor, torch.Tensor]) -> bool:
    a, b = question
    same = a.dtype == b.dtype and a.device == b.device and a.layout == b.layout
    return same and a.shape == b.shape and a.stride() == b.stride()


def need_gradients(mode: Any, given: list[torch.Tensor]) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)


GLUE = (given_like, gradient_like, result_like, share_memory, are_alike, need_gradients)
