# ruff: noqa: E402
"""Lines E1 to E4: exporting stays torch's own, and works while Stator is installed."""

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
from torch._dynamo import exc

import stator
from tests.spec.helpers import assert_same, both, value


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(value())

    def forward(self, x):
        return x * self.weight


def _export(function, *args):
    return torch._dynamo.export(function)(*args)


@both
def test_E1_one_graph_with_all_inputs():
    module, guards = _export(lambda x, unused, k: x + k, value(), value(), value() * 2)
    assert_same(module(value(), value(), value() * 2), value() + value() * 2)
    assert len(module.graph.find_nodes(op="placeholder")) == 3


@both
def test_E1_a_break_is_an_error():
    def program(x):
        y = x + 1
        print(end="")
        return y

    with pytest.raises(exc.TorchDynamoException):
        _export(program, value())


@both
def test_E1_torch_export():
    program = torch.export.export(Net(), (value(),))
    assert_same(program.module()(value()), Net()(value()))


class Holds:
    def __init__(self, tensor):
        self.tensor = tensor


@both
def test_E2_an_input_that_is_no_argument_is_told():
    held = value()

    def program(x):
        return x + held

    module, guards = _export(program, value())
    assert_same(module(value()), value() * 2)

    strict = torch.export.export(Net(), (value(),))
    assert list(strict.state_dict) == ["weight"]


@both
def test_E3_no_hidden_inputs_and_no_lasting_writes():
    class Writes(torch.nn.Module):
        def forward(self, x):
            self.seen = x + 1
            return x * 2

    net = Writes()
    exported = torch.export.export(net, (value(),), strict=True)
    assert_same(exported.module()(value()), value() * 2)
    assert not hasattr(net, "seen")

    program = torch.export.export(Net(), (value(),), strict=True)
    kinds = [spec.kind.name for spec in program.graph_signature.input_specs]
    assert kinds == ["PARAMETER", "USER_INPUT"]


@both
def test_E4_an_empty_graph():
    module, guards = _export(lambda x: x, value())
    x = value()
    assert_same(module(x), x)
    assert not [node for node in module.graph.nodes if "call" in node.op]


class Named(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x, y, *, k):
        return {"z": self.linear(x) * self.shift * k + y, "n": x.shape[0]}


class Branches(torch.nn.Module):
    def forward(self, x, flag):
        return torch.cond(flag, torch.sin, torch.cos, (x,))


def _texts(dim):
    """What torch makes of the programs by exporting."""
    torch.manual_seed(0)
    rows = value(12).view(3, 4)
    named = torch.export.export(
        Named(), (rows, value(6).view(3, 2)), {"k": 2}, strict=True,
        dynamic_shapes={"x": {0: dim}, "y": {0: dim}, "k": None},
    )  # fmt: skip
    branches = torch.export.export(Branches(), (rows, torch.tensor(True)), strict=True)
    module, _ = torch._dynamo.export(lambda x, y: x.sin() + y, tracing_mode="symbolic")(
        rows, value(4)
    )
    programs = [str(part) for program in (named, branches)
                for part in (program.graph, program.graph_signature, program.range_constraints)]  # fmt: skip
    return [*programs, module.code]


def test_E1_names_signatures_and_constraints_are_torch_s_own():
    dim = torch.export.Dim("rows", min=2, max=64)
    want = _texts(dim)
    stator.install()
    try:
        assert _texts(dim) == want
    finally:
        stator.uninstall()
    assert any("VR[2, 64]" in text for text in want)
