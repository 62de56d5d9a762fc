# ruff: noqa: E402
"""`torch._dynamo.export` while Stator is installed: torch's own graphs, by Stator's trace; torch's
own Dynamo only where a line in the log says so."""

import logging

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo

import stator

HELD = torch.ones(3)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = torch.nn.Parameter(torch.rand(3, 4))
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU())
        self.register_buffer("shift", torch.ones(2))
        self.plain = torch.full((2,), 0.5)

    def forward(self, x):
        return {"out": self.layers(x * self.weight) + self.shift * self.plain, "n": x.shape[0]}


def closes_over():
    held = torch.full((3,), 2.0)
    return lambda x: x * held + HELD


def by_sizes(x, y):
    n = x.shape[0]
    return x.view(n // 2, 2, -1).sum(1) + y * n


def in_states(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.mm(x, x)
    with torch.no_grad():
        return y.float().sin()


def branches(x):
    return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos() + HELD, (x,))


def writes_argument(x):
    x.add_(1)
    return x * 2, x


V, ROWS, SQUARE = torch.arange(3.0), torch.arange(12.0).view(6, 2), torch.rand(4, 4)
# program, arguments, other arguments that the graph is good for
SAME = {
    "module": (Net(), (torch.rand(3, 4),), (torch.rand(3, 4),)),
    "closure": (closes_over(), (V,), (V + 1,)),
    "sizes": (by_sizes, (ROWS, ROWS[:3]), (torch.rand(8, 2), torch.rand(4, 2))),
    "states": (in_states, (SQUARE,), (torch.rand(2, 2),)),
    "branches": (branches, (V,), (-V,)),
    "writes": (writes_argument, (V.clone(),), (torch.rand(5),)),
    "trees": (lambda x, d: [d["a"][0] + x, {"q": d["b"] * 2}], (V, {"a": [V], "b": V + 2}), None),
    "unused": (lambda x, unused, k: x + k, (V, V + 1, V + 2), None),
}


@pytest.fixture
def installed(caplog):
    caplog.set_level(logging.INFO, "stator.export")
    yield caplog
    stator.uninstall()


def _export(program, args, **options):
    copied = torch.utils._pytree.tree_map(
        lambda t: t.clone() if isinstance(t, torch.Tensor) else t, args
    )
    module, guards = torch._dynamo.export(program, **options)(*copied)
    torch.testing.assert_close(copied, args)  # an export computes nothing
    return module


@pytest.mark.parametrize("name", SAME)
def test_the_graph_is_torch_s_own(name, installed):
    program, args, others = SAME[name]
    want = _export(program, args)
    stator.install()
    made = _export(program, args)
    assert made.code == want.code and not installed.records
    assert dict(made.named_parameters()).keys() == dict(want.named_parameters()).keys()
    for given in (args, others or args):
        copies = [torch.utils._pytree.tree_map(torch.clone, given) for _ in range(2)]
        torch.testing.assert_close(made(*copies[0]), program(*copies[1]))
        torch.testing.assert_close(*copies)


class Writes(torch.nn.Module):
    def forward(self, x):
        self.seen = x + 1
        return x * 2


def prints(x):
    print(end="")
    return x + 1


LEFT = {
    "a size is given back": lambda x: (x + 1, x.shape[0]),
    "an object is written to": Writes(),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_torch_is_said(name, installed):
    want = _export(LEFT[name], (V,))
    stator.install()
    assert _export(LEFT[name], (V,)).code == want.code
    assert len(installed.records) == 1


def test_a_break_is_an_error(installed):
    def breaks(x):
        torch._dynamo.graph_break()
        return x + 1

    stator.install()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        _export(breaks, (V,))
    with pytest.raises(torch._dynamo.exc.TorchDynamoException):
        _export(prints, (V,))


def test_further_passes_of_torch_take_the_graph(installed):
    options = {"aten_graph": True, "tracing_mode": "fake"}
    want = _export(Net(), (SQUARE[:3],), **options)
    stator.install()
    made = _export(Net(), (SQUARE[:3],), **options)
    assert [str(n.target) for n in made.graph.nodes] == [str(n.target) for n in want.graph.nodes]
    assert not installed.records
