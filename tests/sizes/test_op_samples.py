"""Every operation that torch has samples for, traced with all sizes open, then called with other
sizes: each size of the sample's tensors becomes another one everywhere. The results are eager's, and
where eager refuses, so does the compiled function."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import stator  # noqa: E402
from tests.tensor.fake_strides import op_db  # noqa: E402

FULL = os.environ.get("STATOR_FULL") == "1"
SAMPLES = 40 if FULL else 1  # of an operation
TENSORS_SEEN = 4  # of a sample's largest dimensions: what grows beyond takes long
MOST_ELEMENTS = 20_000

# Each maps a size to another one; sizes that were equal stay equal, 0 and 1 stay what they are.
OTHERS: list[Callable[[int], int]] = [
    lambda n: n,
    lambda n: n + 1,
    lambda n: n + 2,
    lambda n: 2 * n,
    lambda n: 2 * n + 1,
    lambda n: 3 * n,
    lambda n: max(2, n - 1),
    lambda n: max(2, n // 2),
    lambda n: n + 7,
    lambda n: 4 * n,
]

# Operations whose results are not determined by their arguments, or that have no values to compare.
RANDOM = ("rand", "bernoulli", "dropout", "multinomial", "normal", "poisson", "empty", "uniform")
RANDOM += ("resize", "exponential", "cauchy", "geometric", "rrelu", "gumbel", "nondeterministic")
# Vectors of unknown sign or order: another run of the same function may give others.
UNSTABLE = ("svd", "eig", "qr", "pca", "lobpcg", "geqrf", "householder", "ormqr", "lstsq", "schur")


def is_comparable(name: str) -> bool:
    return not any(part in name for part in RANDOM + UNSTABLE)


OPERATIONS = [op for op in op_db() if is_comparable(op.name) and torch.float32 in op.dtypes]
OPERATIONS = OPERATIONS if FULL else OPERATIONS[::3]


def resized(value: Any, other: Callable[[int], int]) -> Any:
    """The value with tensors of other sizes. What they hold repeats what the tensor held."""
    if isinstance(value, torch.Tensor):
        sizes = [n if n < 2 else other(n) for n in value.shape]
        if value.layout != torch.strided or value.is_quantized:
            return value
        rows = value.detach()
        for dim, size in enumerate(sizes):
            if rows.shape[dim] not in (0, size):
                index = torch.arange(size) % rows.shape[dim]
                rows = rows.index_select(dim, index)
        return rows.clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(resized(item, other) for item in value)
    return value


def outcome(call: Callable[..., Any], sample: Any, other: Callable[[int], int]) -> Any:
    args = resized((sample.input, *sample.args), other)
    kwargs = {name: resized(value, other) for name, value in sample.kwargs.items()}
    torch.manual_seed(0)
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return error


def assert_alike(ours: Any, theirs: Any, what: str) -> None:
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"{what}: eager raises {theirs!r}, we give {ours!r}"
        return
    if isinstance(ours, Exception):
        raise AssertionError(f"{what}: {ours!r}") from ours
    torch.testing.assert_close(
        ours,
        theirs,
        rtol=1e-4,
        atol=1e-4,
        equal_nan=True,
        check_stride=False,
        msg=lambda m: what + m,
    )


def is_small(sample: Any) -> bool:
    tensors = [t for t in (sample.input, *sample.args) if isinstance(t, torch.Tensor)]
    return all(t.numel() * 4 ** min(t.dim(), TENSORS_SEEN) <= MOST_ELEMENTS for t in tensors)


NAMES = [f"{op.name}-{op.variant_test_name}" for op in OPERATIONS]


@pytest.mark.parametrize("op", OPERATIONS, ids=NAMES)
def test_other_sizes_than_were_traced(op: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = [s for s in op.sample_inputs("cpu", torch.float32) if is_small(s)]
        step = max(1, len(samples) // SAMPLES)
        for number, sample in enumerate(samples[::step][:SAMPLES]):

            def call(*args: Any, **kwargs: Any) -> Any:
                return op.op(*args, **kwargs)

            compiled = stator.compile(call, backend="eager", dynamic=True)
            for at, other in enumerate(OTHERS if FULL else OTHERS[:8:2]):
                theirs = outcome(call, sample, other)
                ours = outcome(compiled, sample, other)
                assert_alike(ours, theirs, f"sample {number}, sizes {at}: ")
