# ruff: noqa: E402
"""Equal layers of a model that a backend compiles once (python/stator/_layers.py)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

import stator
from stator import _layers
from stator._versions import private


@pytest.fixture(autouse=True)
def as_before():
    yield
    stator.share_layers("auto")
    stator.reset()


class Block(nn.Module):
    def __init__(self, drop: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.inner, self.outer = nn.Linear(8, 16), nn.Linear(16, 8)
        self.drop = nn.Dropout(drop)

    def forward(self, x, k=1.0):
        h = self.norm(x).sin().cos() * k
        h = F.gelu(self.inner(h)).tanh().sigmoid() + 1
        return x + self.drop(self.outer(h).relu() * 2)


class Net(nn.Module):
    """`how` changes the blocks or how they are called."""

    def __init__(self, how: str = "plain") -> None:
        super().__init__()
        self.how = how
        self.blocks = nn.ModuleList(Block(0.5 if how == "dropout" else 0.0) for _ in range(5))
        if how == "frozen":
            self.blocks[4].requires_grad_(False)
        if how == "tied":
            for block in self.blocks:
                block.outer.weight = self.blocks[0].outer.weight
        self.norms = nn.ModuleList(nn.BatchNorm1d(8) for _ in range(5))
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = self.first(x)
        return self.last(getattr(self, self.how, self.all)(x))

    def all(self, x):
        for block in self.blocks:
            x = block(x)
        return x

    def by_number(self, x):
        for i, block in enumerate(self.blocks):
            x = block(x, float(i))
        return x

    def one_block(self, x):
        for _ in range(5):
            x = self.blocks[0](x)
        return x

    def without_grad_first(self, x):
        with torch.no_grad():
            scale = x.abs().mean()
        return self.all(x * scale)

    def made_inside(self, x):
        return self.all(x + torch.arange(8.0))

    def without_grad(self, x):
        with torch.no_grad():
            return self.all(x)

    def cast(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.all(x)


class Writes(Block):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(8))

    def forward(self, x, k=1.0):
        self.seen.add_(x.detach().mean(0))
        return super().forward(x, k)


class Views(Block):
    def forward(self, x, k=1.0):
        return super().forward(x, k), x.view(-1)


class ViewNet(Net):
    def all(self, x):
        for block in self.blocks:
            x, flat = block(x)
            x = x + flat.sum()
        return x


def made_of(kind: type[nn.Module], net: Net) -> Net:
    net.blocks = nn.ModuleList(kind() for _ in range(5))
    return net


def captured(net: nn.Module, x: torch.Tensor) -> torch.fx.GraphModule:
    graphs = []

    def backend(module, examples):
        graphs.append((module, examples))
        return module.forward

    stator.compile(net, backend=backend, fullgraph=True)(x)
    ((module, examples),) = graphs
    module.examples = examples
    return module


def shared(net: nn.Module) -> tuple[int, int]:
    """Bodies, and calls of them; the graph gives the same results afterwards."""
    torch.manual_seed(0)
    module = captured(net, torch.randn(6, 4))
    torch.manual_seed(1)
    expected = module(*module.examples)
    bodies = _layers.share(module)
    calls = module.graph.find_nodes(op="call_function", target=private.invoke_subgraph)
    torch.manual_seed(1)
    with torch.no_grad():
        for mine, other in zip(module(*module.examples), expected, strict=True):
            torch.testing.assert_close(mine, other, rtol=0, atol=0)
    return len(bodies), len(calls)


# (bodies, calls of them)
ROWS: dict[str, tuple[Any, tuple[int, int]]] = {
    "equal blocks": (lambda: Net().eval(), (1, 5)),
    "dropout that is on": (lambda: Net("dropout").train(), (1, 5)),
    "weights of all blocks are one": (lambda: Net("tied").eval(), (1, 5)),
    "one block called five times": (lambda: Net("one_block").eval(), (1, 5)),
    "no gradients before the blocks": (lambda: Net("without_grad_first").eval(), (1, 5)),
    "the last block needs no gradients": (lambda: Net("frozen").eval(), (1, 4)),
    "a number that differs": (lambda: Net("by_number").eval(), (0, 0)),
    "blocks within a context of autocast": (lambda: Net("cast").eval(), (0, 0)),
    "blocks within no_grad": (lambda: Net("without_grad").eval(), (0, 0)),
    "blocks write to buffers": (lambda: made_of(Writes, Net()).eval(), (0, 0)),
    "results are views of operands": (lambda: made_of(Views, ViewNet()).eval(), (0, 0)),
}


@pytest.mark.parametrize("row", ROWS)
def test_which_calls_share_a_body(row: str) -> None:
    make, expected = ROWS[row]
    assert shared(make()) == expected


def test_fewer_calls_than_four_are_left_alone() -> None:
    net = Net().eval()
    net.blocks = net.blocks[:3]
    assert shared(net) == (0, 0)


def test_a_graph_with_gradients_is_not_shared() -> None:
    module = captured(Net(), torch.randn(6, 4))
    seen = []
    once = _layers.once(lambda module, _: seen.append(len(list(module.children()))), None, list)
    once(module, module.examples)
    assert seen == [0]


def step(function: Any, net: nn.Module, x: torch.Tensor, train: bool) -> list[torch.Tensor]:
    if not train:
        with torch.no_grad():
            return [function(x)]
    net.zero_grad()
    out = function(x)
    out.square().sum().backward()
    return [out.detach(), *(p.grad.clone() for p in net.parameters() if p.grad is not None)]


@pytest.mark.parametrize("how, train", [("auto", False), ("apart", False), ("apart", True)])
@pytest.mark.parametrize(
    "kind",
    [
        "plain",
        "tied",
        "one_block",
        "without_grad_first",
        "made_inside",
        "frozen",
        "by_number",
        "cast",
    ],
)
def test_results_and_gradients_are_plain_python_s(kind: str, train: bool, how: str) -> None:
    torch.manual_seed(0)
    net = Net(kind).train(train)
    stator.share_layers(how)
    fast = stator.compile(net, backend="aot_eager")
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        x = torch.randn(6, 4)
        for mine, other in zip(step(fast, net, x, train), step(net, net, x, train), strict=True):
            torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("how", ["auto", "apart"])
def test_blocks_that_write_to_buffers(how: str) -> None:
    torch.manual_seed(0)
    net = made_of(Writes, Net()).eval()
    other = copy.deepcopy(net)
    stator.share_layers(how)
    fast = stator.compile(net, backend="aot_eager")
    for _ in range(3):
        x = torch.randn(6, 4)
        with torch.no_grad():
            torch.testing.assert_close(fast(x), other(x))
    torch.testing.assert_close(dict(net.named_buffers()), dict(other.named_buffers()))


def test_the_body_is_compiled_once() -> None:
    """And what lies before and behind it."""
    module = captured(Net(), torch.randn(6, 4))
    compiled = []

    def backend(module, examples):
        compiled.append(module)
        return module.forward

    mode = private.FakeTensorMode()
    given = [mode.from_tensor(example) for example in module.examples]
    expected = module(*module.examples)
    run = _layers.apart(module, backend, mode, lambda: given)
    assert run is not None and len(compiled) == 3
    torch.testing.assert_close(run(*module.examples), expected)


def test_a_way_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="'auto', 'apart', 'off'"):
        stator.share_layers("always")
