"""What the tests of operators with bodies share. A program takes two tensors; the first requires a
gradient."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from torch._dynamo.testing import EagerAndRecordGraphs  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

import stator  # noqa: E402

torch.manual_seed(0)
LINEAR = torch.nn.Linear(4, 4)
STATE: list[Any] = []


def installed() -> Any:
    """A fixture."""
    stator.install()
    torch._dynamo.reset()
    counters.clear()
    yield
    stator.uninstall()
    torch._dynamo.reset()


def breaks() -> dict[str, int]:
    return dict(counters["graph_break"])


def _seen(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return "tensor", value.dtype, value.tolist(), value.stride(), value.requires_grad
    if isinstance(value, dict):
        return {key: _seen(item) for key, item in value.items()}
    return type(value)(map(_seen, value)) if isinstance(value, (tuple, list)) else value


def _loss(result: Any) -> Any:
    tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(result)
               if isinstance(leaf, torch.Tensor) and leaf.requires_grad]  # fmt: skip
    return sum((tensor * (i + 1)).sum() for i, tensor in enumerate(tensors)) if tensors else None


def outcome(function: Any, x: Any, y: Any) -> Any:
    """What comes out, and what is left behind. Of an error only its class: texts name files."""
    x, y = x.clone().requires_grad_(), y.clone()
    LINEAR.zero_grad()
    STATE.clear()
    torch.manual_seed(3)
    try:
        result = function(x, y)
        loss = _loss(result)
        if loss is not None:
            loss.backward()
    except Exception as error:
        torch._C._set_grad_enabled(True)
        return type(error), len(STATE)
    grads = [None if p.grad is None else p.grad.clone() for p in LINEAR.parameters()]
    return result, x.grad, y, grads, len(STATE), torch.rand(1)


def _compare(got: Any, want: Any) -> None:
    if isinstance(want[0], type):
        assert got == want
        return
    (result, *rest), (expected, *others) = got, want
    assert type(result) is type(expected)
    leaves, spec = torch.utils._pytree.tree_flatten(result)
    wanted, wanted_spec = torch.utils._pytree.tree_flatten(expected)
    assert spec == wanted_spec
    for a, b in zip(leaves, wanted, strict=True):
        assert type(a) is type(b)
        torch.testing.assert_close(a, b, check_stride=True)
        if isinstance(a, torch.Tensor):
            assert a.requires_grad == b.requires_grad
            assert a.is_leaf == b.is_leaf
    torch.testing.assert_close(rest, others)


def inputs() -> list[tuple[Any, Any]]:
    """With a positive sum, with a negative one."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.rand(4, 4, generator=generator), torch.rand(4, 4, generator=generator)
    return [(x, y), (-x, y)]


def check(program: Any, backend: Any) -> None:
    want = [outcome(program, x, y) for x, y in inputs()]
    torch._dynamo.reset()
    counters.clear()
    fast = torch.compile(program, backend=backend)
    for (x, y), expected in zip(inputs(), want, strict=True):
        _compare(outcome(fast, x, y), expected)


def _lines(module: Any) -> list[str]:
    """Nodes as text, with those of bodies behind them."""
    lines = [f"{n.name} {n.op} {n.target} {n.args} {n.kwargs}" for n in module.graph.nodes]
    for name, child in module.named_children():
        lines += [name, *_lines(child)]
    return lines


def graph_lines(program: Any) -> list[str]:
    backend = EagerAndRecordGraphs()
    x, y = inputs()[0]
    torch.compile(program, backend=backend, fullgraph=True)(x.requires_grad_(), y)
    (graph,) = backend.graphs
    return _lines(graph)


def stock_lines(program: Any) -> list[str]:
    stator.uninstall()
    torch._dynamo.reset()
    return graph_lines(program)
