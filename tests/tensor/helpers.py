"""Eager beside compiled: same values, same identities, and how often a call was compiled."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree

import stator


def compiled(function, backend="eager", fullgraph=True):
    return stator.compile(function, backend=backend, fullgraph=fullgraph)


class Recorder:
    """A backend that keeps what it got."""

    def __init__(self):
        self.graphs, self.examples = [], []

    def __call__(self, module, examples):
        self.graphs.append(module)
        self.examples.append(examples)
        return module.forward


# The wider ones first: to set one sets those within it.
_PRECISIONS = (
    ("generic", "all"),
    *((home, what) for home in ("cuda", "mkldnn") for what in ("all", "conv", "rnn", "matmul")),
)


@contextlib.contextmanager
def same_precisions() -> Iterator[None]:
    """What a test sets is put back: torch's own code asks, and raises where two do not agree."""
    before = [torch._C._get_fp32_precision_getter(*which) for which in _PRECISIONS]
    yield
    for which, value in zip(_PRECISIONS, before, strict=True):
        torch._C._set_fp32_precision_setter(*which, value)


def count(function) -> int:
    """How many entries a compiled function has."""
    return function.metrics["entries"]


def describe(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (
        type(tensor),
        tensor.dtype,
        tensor.device,
        tuple(tensor.shape),
        tensor.stride(),
        tensor.requires_grad,
        tensor.is_conj(),
        tensor.is_neg(),
    )


def assert_same(got: Any, want: Any) -> None:
    got_leaves, got_tree = pytree.tree_flatten(got)
    want_leaves, want_tree = pytree.tree_flatten(want)
    assert got_tree == want_tree
    for mine, other in zip(got_leaves, want_leaves, strict=True):
        if isinstance(other, torch.Tensor):
            assert describe(mine) == describe(other)
            if other.device.type != "meta":
                torch.testing.assert_close(mine, other, rtol=0, atol=0, equal_nan=True)
        else:
            assert type(mine) is type(other)
            assert mine == other


def copies(args: Any) -> Any:
    """Arguments that share nothing with the given ones, but among themselves what those share."""
    storages: dict[Any, torch.UntypedStorage] = {}
    made: dict[int, torch.Tensor] = {}

    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.device.type == "meta":
            return value
        if id(value) not in made:
            made[id(value)] = copy_tensor(value, storages)
        return made[id(value)]

    return pytree.tree_map(copy, args)


def copy_tensor(value: torch.Tensor, storages: dict[Any, torch.UntypedStorage]) -> torch.Tensor:
    storage = value.untyped_storage()
    twin = storages.setdefault(storage.data_ptr(), storage.clone())
    made = torch.empty(0, dtype=value.dtype).set_(
        twin, value.storage_offset(), value.shape, value.stride()
    )
    made = made.conj() if value.is_conj() else made
    made = torch._neg_view(made) if value.is_neg() else made
    if isinstance(value, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad=value.requires_grad)
    return made.requires_grad_(value.requires_grad)


def check(function, *args, backend="eager", calls=2, fullgraph=True):
    """Calls both, compares results and what became of the arguments; the compiled function."""
    torch.manual_seed(0)
    eager_args = copies(args)
    want = function(*eager_args)
    fast = compiled(function, backend, fullgraph)
    for _ in range(calls):
        torch.manual_seed(0)
        own = copies(args)
        got = fast(*own)
        assert_same(got, want)
        assert_same(own, eager_args)
        for mine, theirs in zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=True):
            same = [mine is arg for arg in pytree.tree_leaves(own)]
            assert same == [theirs is arg for arg in pytree.tree_leaves(eager_args)]
    if fullgraph:
        assert count(fast) == 1
    return fast
