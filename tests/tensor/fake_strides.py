"""Compares the strides that torch's fakes say with those of the tensors that its kernels make.

python tests/tensor/fake_strides.py            the functions where they differ, one a line
"""

from __future__ import annotations

import itertools
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map_only

Layout = Callable[[torch.Tensor], torch.Tensor]


def op_db() -> list[Any]:
    """Torch's own samples. They import a package of which they need one class."""
    if "expecttest" not in sys.modules:
        try:
            import expecttest  # noqa: F401
        except ImportError:
            sys.modules["expecttest"] = types.ModuleType("expecttest")
            sys.modules["expecttest"].TestCase = unittest.TestCase
    from torch.testing._internal.common_methods_invocations import op_db

    # For its own tests the package forbids to set torch's backends.
    names = torch.backends.disable_global_flags.__globals__
    names["__allow_nonbracketed_mutation_flag"] = True
    return op_db


# -- the same values, laid out otherwise --


def _as_permuted(t: torch.Tensor, order: list[int]) -> torch.Tensor:
    back = [order.index(i) for i in range(t.dim())]
    return t.detach().permute(order).contiguous().permute(back).requires_grad_(t.requires_grad)


def plain(t: torch.Tensor) -> torch.Tensor:
    return t


def transposed(t: torch.Tensor) -> torch.Tensor:
    dims = t.dim()
    return t if dims < 2 else _as_permuted(t, [dims - 1, *range(1, dims - 1), 0])


def channels_last(t: torch.Tensor) -> torch.Tensor:
    dims = t.dim()
    return t if dims < 3 else _as_permuted(t, [0, *range(2, dims), 1])


def turned(t: torch.Tensor) -> torch.Tensor:
    dims = t.dim()
    return t if dims < 3 else _as_permuted(t, [dims - 2, dims - 1, *range(dims - 3, -1, -1)])


def with_gaps(t: torch.Tensor) -> torch.Tensor:
    if t.dim() == 0:
        return t
    return torch.stack([t.detach()] * 2, -1)[..., 0].requires_grad_(t.requires_grad)


# Of the first tensor, and of the others.
LAYOUTS: list[tuple[Layout, Layout]] = [
    (plain, plain),
    (transposed, transposed),
    (channels_last, channels_last),
    (turned, turned),
    (with_gaps, with_gaps),
    (transposed, plain),
    (plain, transposed),
    (channels_last, plain),
    (turned, transposed),
]
MORE_SIZES = [(3, 4), (2, 3, 4), (2, 3, 4, 5)]


def _samples(op: Any, most: int) -> Iterator[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Torch's samples; where the input is the only tensor, also inputs of several dimensions."""
    dtype = torch.float32 if torch.float32 in op.dtypes else min(op.dtypes, key=str)
    for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), most):
        yield sample.input, sample.args, sample.kwargs
        others = [x for x in tree_leaves((sample.args, sample.kwargs)) if torch.is_tensor(x)]
        if torch.is_tensor(sample.input) and sample.input.dtype == dtype and not others:
            for sizes in MORE_SIZES if dtype.is_floating_point else ():
                yield torch.rand(sizes, dtype=dtype), sample.args, sample.kwargs


def _strides(t: torch.Tensor) -> list[int | None]:
    """Those that tell something; of one element any stride will do."""
    return [s if n > 1 else None for s, n in zip(t.stride(), t.shape, strict=True)]


def _dense(result: Any) -> list[torch.Tensor]:
    return [t for t in tree_leaves(result) if torch.is_tensor(t) and t.layout is torch.strided]


def laid_out(sample: Any, first: Layout, others: Layout) -> tuple[Any, ...]:
    input_ = tree_map_only(torch.Tensor, first, sample[0])
    return input_, *tree_map_only(torch.Tensor, others, tuple(sample[1:]))


def differs(function: Callable[..., Any], sample: Any, layout: tuple[Layout, Layout]) -> bool:
    """Whether fakes say other strides than the kernel. Calls that fail in either way say nothing."""
    try:
        given = laid_out(sample, *layout)
        with FakeTensorMode() as mode:
            fakes = tree_map_only(torch.Tensor, mode.from_tensor, given)
        real = _dense(function(given[0], *given[1], **given[2]))
        with mode:
            fake = _dense(function(fakes[0], *fakes[1], **fakes[2]))
    except Exception:
        return False
    return len(real) == len(fake) and any(
        a.shape == b.shape and a.numel() and _strides(a) != _strides(b)
        for a, b in zip(real, fake, strict=True)
    )


def measure(wanted: Callable[[str], bool] = lambda name: True, most: int = 12) -> set[str]:
    """The names, as torch's samples have them, of functions where fakes have other strides."""
    found = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in op_db():
            if not op.dtypes or not wanted(op.name) or op.name in found:
                continue
            try:
                samples = list(_samples(op, most))
            except Exception:  # some need a package
                continue
            if any(differs(op.op, s, layout) for s in samples for layout in LAYOUTS):
                found.add(op.name)
    return found


if __name__ == "__main__":
    print(*sorted(measure()), sep="\n")
