# ruff: noqa: E402
"""Graphs beside Dynamo's: operations, names, order of inputs. Logs and people's tests know those."""

import operator

import pytest

torch = pytest.importorskip("torch")

import torch.nn as nn
import torch.nn.functional as F

import stator
from tests.tensor.helpers import Recorder, compiled


def x():
    return torch.linspace(-1, 1, 12).reshape(3, 4)


def show(value, names):
    if isinstance(value, torch.fx.Node):
        return names[value]
    if isinstance(value, (tuple, list)):
        return type(value)(show(item, names) for item in value)
    if isinstance(value, dict):
        return {key: show(item, names) for key, item in value.items()}
    return value


def lines(module, names=None):
    names = names or {node: node.name for node in module.graph.nodes}
    return [
        (names[node], node.op, node.target, show(node.args, names), show(dict(node.kwargs), names))
        for node in module.graph.nodes
    ]


def places(module):
    """The operations by position, not by name; inputs by where they come from, in any order."""
    inputs = module.graph.find_nodes(op="placeholder")
    names = {node: node.target for node in inputs}
    names |= {node: f"%{i - len(inputs)}" for i, node in enumerate(module.graph.nodes)
              if node.op != "placeholder"}  # fmt: skip
    found = lines(module, names)
    return sorted(found[: len(inputs)]), found[len(inputs) :]


# Other versions name and order alike in most programs, but not in all.
EXACT = torch.__version__.startswith("2.13.")


def theirs(function, *args, **kwargs):
    recorder = Recorder()
    torch._dynamo.reset()
    torch.compile(function, backend=recorder, fullgraph=True)(*args, **kwargs)
    return recorder.graphs[0]


def ours(function, *args, **kwargs):
    recorder = Recorder()
    compiled(function, recorder)(*args, **kwargs)
    return recorder.graphs[0]


def compare(function, make_args, **kwargs):
    mine, other = ours(function, *make_args(), **kwargs), theirs(function, *make_args(), **kwargs)
    if EXACT:
        assert lines(mine) == lines(other)
    else:
        assert places(mine) == places(other)


# -- operations --


def operators(x):
    y = 1 - x
    y += 2
    return (-y, y @ y.T, ~(x > 0), y[0, ..., 1:], x**2, 2**x, x // 2, x % 2, x <= 3)


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


def in_place(x):
    x.add_(1)
    y = torch.zeros(3)
    y.mul_(3)
    z = y + 1
    y += 1
    w = y
    w = torch.ones(2).fill_(2).neg_()
    x = x.t().contiguous()
    return x, y, z, w


def assigned(x, y):
    y[0] = x[1]
    x[:, 1] = 3
    return y + x


def unpacked(x):
    first, second, _ = x
    head, *rest = x.split(1)
    (a, b), c = torch.std_mean(x), x.sort(0).values
    return first + second, head, rest, a * b, c


def keywords(x, y):
    return torch.add(input=y, other=x, alpha=2), F.softmax(input=x, dim=-1), y.mul(other=x)


# -- names --


def locals_name_nodes(x):
    hiddenState = x + 1
    sum = hiddenState.sum(0)
    z_1 = sum * 2
    z = z_1 + 1
    z = z + 1
    again = hiddenState
    sø = z * 3
    return again, sø


def calls_name_nodes(x):
    def inner(u):
        t = u + 1
        return t * 2

    y = inner(x)
    z = inner(y)
    return [v + 1 for v in (y, z)]


def cells_name_nodes(x):
    def inner(u):
        hidden = u + 1  # a cell, but none of the root's

        def innermost():
            return hidden

        return innermost()

    def change():
        nonlocal out
        out = out - 1
        return out

    out = inner(x)
    change()
    return out


# -- order of inputs --


def used_in_another_order(x, y, z):
    return torch.cat([z - y, x])


def looked_at_first(x, y, z):
    size = z.shape[0]
    if y is None:
        return x
    return torch.cat([x + z * size, y])


def asked_for_its_class(x, y, z):
    assert isinstance(y, torch.Tensor)
    return z - x + y


def from_containers(x, y, z):
    return {"z": z["b"] * 2 + z["a"], "y": y[1] - y[0] + x}


def unused_inputs(x, y, z):
    assert y.dim() == 2
    return z * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("offset", torch.ones(4))
        self.extra = torch.ones(4)
        self.first = nn.Linear(4, 4)
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.first.weight
        self.rest = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.LayerNorm(4))

    def forward(self, hidden, scale=None, *, shift=None):
        hidden = self.first(hidden) * self.weight
        hidden = self.tied(hidden + self.extra) + self.offset
        if scale is not None:
            hidden = hidden * scale
        return self.rest(hidden) if shift is None else self.rest(hidden) + shift


class Forwards(Net):
    def forward(self, *args, **options):
        return super().forward(*args, **options)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)
        self.relu, self.embed = nn.ReLU(inplace=True), nn.Embedding(10, 4)

    def forward(self, x, indices=None):
        identity = x
        out = self.relu(self.norm(self.conv(x)))
        out += identity
        out = self.relu(out)
        if indices is not None:
            out = out + self.embed(indices).mean()
        return {"out": out, "flat": torch.flatten(out, 1)}


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.out, self.norm = nn.Linear(4, 4, bias=False), nn.LayerNorm(4)
        self.register_buffer("mask", torch.tril(torch.ones(3, 3)).bool())

    def forward(self, hidden_states):
        length, width = hidden_states.shape
        h = self.norm(hidden_states)
        q, k, v = (
            part(h).view(length, 2, width // 2).transpose(0, 1)
            for part in (self.query, self.key, self.value)
        )
        scores = (q @ k.transpose(-2, -1)) * (1.0 / (width // 2) ** 0.5)
        scores = scores.masked_fill(~self.mask[:length, :length], float("-inf"))
        out = F.softmax(scores, dim=-1) @ v
        out = out.transpose(0, 1).contiguous().view(length, width)
        return self.out(out) + hidden_states


class Lists(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.named = nn.ModuleDict({"a": nn.Tanh()})
        self.scales = nn.ParameterDict({"z": nn.Parameter(torch.ones(4))})

    def forward(self, x):
        outs = []
        for layer in self.layers:
            x = self.named["a"](layer(x)) * self.scales["z"]
            outs.append(x)
        return torch.stack(outs).sum(0), {"last": x}


net = Net()
module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.1), nn.LayerNorm(4))
norm = nn.BatchNorm1d(4)


def with_module(x):
    return module(x) + 1


def with_tied_weights(x):
    return net(x)


def with_parameters(x):
    late = net.weight
    y = x + net.offset
    return torch.mul(y, late) + net.extra + net.first.bias


def with_buffers(x):
    return norm(x)


ONE = [operators, methods, functions, modes, in_place, unpacked, locals_name_nodes,
       calls_name_nodes, cells_name_nodes, with_module, with_tied_weights, with_parameters,
       with_buffers]  # fmt: skip
TWO = [assigned, keywords]
THREE = [used_in_another_order, looked_at_first, asked_for_its_class, unused_inputs]


@pytest.mark.parametrize("function", ONE, ids=lambda f: f.__name__)
def test_graphs_are_dynamo_s(function):
    compare(function, lambda: (x(),))


@pytest.mark.parametrize("function", TWO, ids=lambda f: f.__name__)
def test_graphs_of_two_are_dynamo_s(function):
    compare(function, lambda: (x(), x() + 1))


@pytest.mark.parametrize("function", THREE, ids=lambda f: f.__name__)
def test_graphs_of_three_are_dynamo_s(function):
    compare(function, lambda: (x(), x() + 1, x() + 2))


def test_inputs_in_containers_are_dynamo_s():
    compare(from_containers, lambda: (x(), [x(), x() + 1], {"a": x() + 2, "b": x() + 3}))


MODULES = {
    "Net": Net,
    "Forwards": Forwards,
    "Attention": Attention,
    "Lists": Lists,
    "Sequential": lambda: module,
    "Linear": lambda: nn.Linear(4, 4),
    "Encoder": lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
}


@pytest.mark.parametrize("make", MODULES.values(), ids=MODULES)
def test_graphs_of_modules_are_dynamo_s(make):
    compare(make(), lambda: (x(),))


def test_the_graph_of_a_residual_network_is_dynamo_s():
    compare(Residual(), lambda: (torch.ones(2, 3, 5, 5), torch.tensor([1, 2])))
    compare(Residual().eval(), lambda: (torch.ones(2, 3, 5, 5),))


def test_arguments_of_modules_have_their_names():
    compare(Net(), lambda: (x(),), scale=torch.ones(4), shift=torch.ones(4))
    compare(Net(), lambda: (x(), torch.ones(4)), shift=torch.ones(4))
    compare(Forwards(), lambda: (x(), torch.ones(4)))
    found = [node.target for node in ours(Net(), x()).graph.find_nodes(op="placeholder")]
    assert found[:3] == [
        "L_self_modules_first_parameters_weight_",
        "L_self_modules_first_parameters_bias_",
        "L_hidden_",
    ]


def test_methods_and_callables_are_dynamo_s():
    class Scale:
        def __init__(self):
            self.factor = torch.ones(4)

        def __call__(self, x):
            return x * self.factor

        def method(self, x):
            return x - self.factor

    compare(Scale(), lambda: (x(),))
    compare(Scale().method, lambda: (x(),))
    compare(net.forward, lambda: (x(),))


def test_inputs_whose_names_collide():
    compare(
        lambda d: d["a.b"] - d["a_b"] * d["a b"], lambda: ({"a.b": x(), "a_b": x(), "a b": x()},)
    )


def test_outputs_are_given_out_once():
    def f(x):
        y = x + 1
        return y, [y, x], y * 2

    compare(f, lambda: (x(),))


def test_switches_that_cancel_go():
    def f(x):
        with torch.no_grad():
            with torch.enable_grad():
                pass
            y = x + 1
        return y

    compare(f, lambda: (x(),))


def modules_of(graph):
    return [list(node.meta.get("nn_module_stack", {}).values()) for node in graph.graph.nodes]


def called_by(graph):
    calls = [node for node in graph.graph.nodes if node.op.startswith("call_")]
    return [node.meta["source_fn_stack"][-1][1] for node in calls]


def test_nodes_know_their_modules():
    def f(x):
        return net(x) + module(x)

    mine = ours(f, x())
    place = "G['net'].rest"
    path = [("G['net']", Net), (place, nn.Sequential), (place + ".0", nn.Linear)]
    assert path in modules_of(mine)
    if EXACT:
        other = theirs(f, x())
        assert modules_of(mine) == modules_of(other)
        assert called_by(mine) == called_by(other)


def test_free_variables_are_dynamo_s():
    weight, names = torch.ones(4), {"bias": torch.ones(4)}
    compare(lambda x: x * weight + names["bias"], lambda: (x(),))


def test_what_versions_of_dynamo_disagree_about():
    """The reflected comparison of a number with a tensor, and abs."""
    graph = ours(lambda x: (abs(x), 3 < x, 3 == x), x())
    made = [node for node in graph.graph.nodes if node.op == "call_function"]
    source = graph.graph.find_nodes(op="placeholder")[0]
    assert [(node.target, node.args) for node in made] == [
        (operator.abs, (source,)),
        (operator.gt, (source, 3)),
        (operator.eq, (source, 3)),
    ]


def test_what_is_given_back_goes_on_as_in_dynamo():
    """A statement leaves the variable what it was; an expression replaces it."""
    compare(lambda x: x.add_(1).mul(2), lambda: (x(),))

    def f(x):
        x += 1
        y = x.mul_(2)
        return y * 2

    compare(f, lambda: (x(),))


# -- modules that change after they were compiled --


def test_hooks_and_forwards_of_later_are_seen():
    net = Net()
    fast = stator.compile(net, backend="eager")
    want = net(x())
    torch.testing.assert_close(fast(x()), want)
    handle = net.register_forward_hook(lambda module, args, result: result + 1)
    torch.testing.assert_close(fast(x()), want + 1)
    handle.remove()
    torch.testing.assert_close(fast(x()), want)
    net.forward = lambda x: x * 3
    torch.testing.assert_close(fast(x()), x() * 3)
    del net.forward
    torch.testing.assert_close(fast(x()), want)


def test_a_compiled_module_in_a_compiled_function():
    net = Net()
    inner = stator.compile(net, backend="eager")
    recorder = Recorder()
    torch.testing.assert_close(compiled(lambda x: inner(x) + 1, recorder)(x()), net(x()) + 1)
    assert len(recorder.graphs) == 1
