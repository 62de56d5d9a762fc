# ruff: noqa: E402
"""`torch._dynamo.export` while Stator is installed: torch's own graphs, by Stator's trace; torch's
own Dynamo only where a line in the log says so."""

import logging

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo

import stator
from stator._versions import private

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
    "a branch is chosen by a size": lambda x: torch.cond(
        x.shape[0] > 4, lambda x: x.cos(), lambda x: x.sin(), (x,)
    ),
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


# -- torch.export.export(strict=True) --


class Normed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2)

    def forward(self, x):
        return self.norm(self.conv(x))


class Trees(torch.nn.Module):
    def forward(self, x, d, *, k=2):
        return [d["a"][0] + x, {"q": d["b"] * k}], None, "text"


class Counts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x):
        self.seen.add_(x)
        x.mul_(2)
        return x + self.seen, x


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


class Unused(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.unused, self.used = torch.nn.Linear(2, 2), torch.nn.Linear(3, 3)

    def forward(self, x, y, z=None):
        return self.used(x)


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(3)])
        self.named = torch.nn.ParameterDict({"a": torch.nn.Parameter(torch.ones(3))})

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) + self.named["a"]
        return (x,)


class Drops(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        with torch.no_grad():
            y = x * 2
        return self.drop(x) + y


class Constants(torch.nn.Module):
    def forward(self, x, n, f=1.5, flag=True):
        return x + torch.tensor([1.0, 2.0, 3.0]) * n, 5, f


class Told(torch.nn.Module):
    def forward(self, x):
        return x + 1 if torch.compiler.is_exporting() else x - 1


class Attends(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class GivesParameter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.weight, self.weight


class ReadsNumber(torch.nn.Module):
    def forward(self, x, n):
        k = n.item()
        torch._check(k >= 0)
        return x * k


# module, arguments, keywords
STRICT = {
    "module": (Net(), (torch.rand(3, 4),), {}),
    "in training": (Normed(), (torch.rand(1, 1, 5, 5),), {}),
    "in evaluation": (Normed().eval(), (torch.rand(1, 1, 5, 5),), {}),
    "trees": (Trees(), (V, {"a": [V + 1], "b": V + 2}), {"k": 3}),
    "writes": (Counts(), (V.clone(),), {}),
    "tied": (Tied(), (torch.rand(2, 3),), {}),
    "unused": (Unused(), (V, V + 1), {}),
    "branches": (Branches(), (V,), {}),
    "layers": (Layers(), (torch.rand(2, 3),), {}),
    "states": (Drops(), (V,), {}),
    "constants": (Constants(), (V, 3), {}),
    "told": (Told(), (V,), {}),
    "attention": (Attends(), (torch.rand(1, 3, 4),), {}),
}
ROW = torch.export.Dim("row", max=64)
STRICT_LEFT = {
    "a parameter is given back": (GivesParameter(), (V,), None),
    "a number is read": (ReadsNumber(), (V, torch.tensor(2)), None),
    "sizes stay open": (Tied(), (torch.rand(4, 3),), {"x": {0: ROW}}),
}


def _program(module, args, kwargs, shapes=None):
    made = torch.export.export(module, args, kwargs, dynamic_shapes=shapes, strict=True)
    notes = [(node.name, str(node.meta.get("source_fn_stack")),
              [place for place, _ in node.meta.get("nn_module_stack", {}).values()])
             for node in made.graph.nodes]  # fmt: skip
    return made, (
        made.graph_module.code,
        str(made.graph_signature),
        str(made.range_constraints),
        str(made.call_spec),
        sorted(made.state_dict),
        sorted(made.constants),
        notes,
    )


def _tensors(result):
    return [value for value in torch.utils._pytree.tree_leaves(result)
            if isinstance(value, torch.Tensor)]  # fmt: skip


@pytest.mark.parametrize("name", STRICT)
def test_a_strict_export_is_torch_s_own(name, installed):
    module, args, kwargs = STRICT[name]
    want = _program(module, args, kwargs)[1]
    stator.install()
    made, got = _program(module, args, kwargs)
    assert got == want and not installed.records
    if name not in ("states", "writes", "in training", "told"):
        results = made.module()(*args, **kwargs), module(*args, **kwargs)
        torch.testing.assert_close(*map(_tensors, results))


@pytest.mark.parametrize("name", STRICT_LEFT)
def test_a_strict_export_that_is_left_to_torch(name, installed):
    module, args, shapes = STRICT_LEFT[name]
    want = _program(module, args, {}, shapes)[1]
    stator.install()
    assert _program(module, args, {}, shapes)[1] == want
    asked = "capture" in private.PATCHED  # older versions of torch ask nobody
    assert len(installed.records) == asked
