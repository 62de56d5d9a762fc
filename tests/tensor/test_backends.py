# ruff: noqa: E402
"""Handing graphs over: real example inputs, names and targets as Dynamo's, torch's own backends."""

import operator

import pytest

torch = pytest.importorskip("torch")

import torch.nn as nn
import torch.nn.functional as F

import stator
from stator import _backends, _engine
from tests.tensor.helpers import assert_same, check, compiled, count


def x():
    return torch.linspace(-1, 1, 12).reshape(3, 4)


class Recorder:
    """A backend that keeps what it got."""

    def __init__(self):
        self.graphs, self.examples = [], []

    def __call__(self, module, examples):
        self.graphs.append(module)
        self.examples.append(examples)
        return module.forward


def nodes(module):
    """The operations by position, not by name; inputs by where they come from, in any order."""
    inputs = module.graph.find_nodes(op="placeholder")
    places = {node: node.target for node in inputs}
    places |= {node: f"%{i - len(inputs)}" for i, node in enumerate(module.graph.nodes)
               if node.op != "placeholder"}  # fmt: skip

    def show(value):
        if isinstance(value, torch.fx.Node):
            return places[value]
        if isinstance(value, (tuple, list)):
            return type(value)(show(item) for item in value)
        if isinstance(value, dict):
            return {key: show(item) for key, item in value.items()}
        return value

    return sorted(places[node] for node in inputs), [
        (node.op, node.target, show(tuple(node.args)), show(dict(node.kwargs)))
        for node in module.graph.nodes
        if node.op != "placeholder"
    ]


def operators(x):
    y = 1 - x
    y += 2
    return (-y, y @ y.T, ~(x > 0), abs(x), y[0, ..., 1:], x**2, 2**x, x // 2, x % 2, 3 < x)


def methods(x):
    values, indices = x.max(1)
    return (
        x.add(1),
        torch.Tensor.mul(x, 2),
        values,
        x.split(2, 1),
        x.sum(dim=0),
        x.to(torch.float64),
    )


def functions(x):
    y = torch.add(x, 1, out=torch.zeros(3, 4))
    z = y.clone()
    z[0] = 5
    return F.relu(x), F.pad(x, (1, 1)), torch.cat([x, y]), F.layer_norm(x, (4,)), z, x.data + 1


def modes(x):
    with torch.no_grad():
        y = x * 2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = x @ x.T
    return y, z


module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.1), nn.LayerNorm(4))


def with_module(x):
    return module(x) + 1


@pytest.mark.parametrize("function", [operators, methods, functions, modes, with_module])
def test_graphs_are_dynamo_s(function):
    ours, theirs = Recorder(), Recorder()
    compiled(function, ours)(x())
    torch._dynamo.reset()
    torch.compile(function, backend=theirs, fullgraph=True)(x())
    assert nodes(ours.graphs[0]) == nodes(theirs.graphs[0])


def test_placeholders_are_labelled():
    recorder = Recorder()
    compiled(with_module, recorder)(x())
    graph = recorder.graphs[0].graph
    found = {node.target: node for node in graph.find_nodes(op="placeholder")}
    assert list(found)[:2] == ["L_x_", "G_module_modules_0_parameters_weight_"]
    assert found["L_x_"]._dynamo_source.name == "L['x']"
    assert all(isinstance(value, torch.Tensor) for value in recorder.examples[0])
    assert recorder.examples[0][1] is module[0].weight
    assert type(recorder.examples[0][0]) is torch.Tensor


def test_nodes_carry_meta_and_lines():
    recorder = Recorder()
    compiled(operators, recorder)(x())
    for node in recorder.graphs[0].graph.nodes:
        if node.op == "call_function":
            assert node.meta["example_value"].shape is not None
            assert "in operators" in node.meta["stack_trace"]
    assert recorder.graphs[0].print_readable(print_output=False)


@pytest.mark.parametrize("backend", ["aot_eager", Recorder()], ids=["aot_eager", "callable"])
@pytest.mark.parametrize("function", [operators, methods, functions, modes])
def test_backends_agree_with_eager(function, backend):
    check(function, x(), backend=backend)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_training(backend):
    def step(model, optimizer_free_grads, x):
        model.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer_free_grads.append([p.grad.clone() for p in model.parameters()])
        return loss.detach()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4))
    twin = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4))
    twin.load_state_dict(model.state_dict())
    fast = stator.compile(model, backend=backend, fullgraph=True)
    mine, other = [], []
    for _ in range(3):
        got, want = step(fast, mine, x()), step(twin, other, x())
        torch.testing.assert_close(got, want)
    torch.testing.assert_close(mine, other)
    torch.testing.assert_close(dict(model.state_dict()), dict(twin.state_dict()))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_mutations_reach_the_inputs(backend):
    def f(x, y):
        x.add_(1)
        x[0].mul_(y[0])
        return x, x.t(), y * 2

    check(f, x(), x() * 2, backend=backend)


def test_errors_of_backends():
    def failing(module, examples):
        raise ValueError("not today")

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="not today"):
        compiled(lambda x: x + 1, failing)(x())
    with pytest.raises(TypeError, match="cannot be called"):
        compiled(lambda x: x + 1, lambda module, examples: 3)(x())
    with pytest.raises(torch._dynamo.exc.InvalidBackend):
        compiled(lambda x: x + 1, "nothing like this")


def test_a_graph_made_by_hand():
    graph = _engine.Graph()
    a, b = graph.add_input("L['a']"), graph.add_input("L['self'].b[0]")
    c = graph.add_call(operator.add, (a, b))
    graph.close((graph.add_call("relu", (c,)), c))
    made = _backends.to_fx(graph)
    assert_same(made(x(), x()), ((x() * 2).relu(), x() * 2))
    for name in ("eager", "aot_eager"):
        run = _backends.resolve(name)(graph, [x(), x()])
        assert_same(tuple(run(x(), x())), ((x() * 2).relu(), x() * 2))


@pytest.mark.full
def test_inductor():
    check(lambda x: (x.sin() + 1).relu() * 2, x(), backend="inductor")
