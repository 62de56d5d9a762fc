# ruff: noqa: E402
"""Handing graphs over: real example inputs, labels, torch's own backends."""

import enum
import functools
import math
import operator
import pickle

import pytest

torch = pytest.importorskip("torch")

import torch.nn as nn
import torch.nn.functional as F
from torch._dynamo.symbolic_convert import TensorifyState

import stator
from stator import _backends, _engine
from tests.tensor.helpers import Recorder, assert_same, check, compiled
from tests.tensor.test_dynamo_graphs import (
    functions,
    methods,
    modes,
    module,
    operators,
    with_module,
)


def x():
    return torch.linspace(-1, 1, 12).reshape(3, 4)


def test_placeholders_are_labelled():
    recorder = Recorder()
    compiled(with_module, recorder)(x())
    graph = recorder.graphs[0].graph
    found = {node.target: node for node in graph.find_nodes(op="placeholder")}
    assert list(found)[:3] == [
        "G_module_modules_0_parameters_weight_",
        "G_module_modules_0_parameters_bias_",
        "L_x_",
    ]
    assert found["L_x_"]._dynamo_source.name == "L['x']"
    assert all(isinstance(value, torch.Tensor) for value in recorder.examples[0])
    assert recorder.examples[0][0] is module[0].weight
    assert type(recorder.examples[0][2]) is torch.Tensor


def test_sources_survive_pickling():
    """Inductor keeps graphs on disk, and with them the places that its guards name."""
    recorder = Recorder()
    compiled(with_module, recorder)(x())
    source = next(iter(recorder.graphs[0].graph.find_nodes(op="placeholder")))._dynamo_source
    again = pickle.loads(pickle.dumps(source))
    assert again == source
    assert again.name == source.name


class Kind(enum.Enum):
    FIRST = 1
    SECOND = 2


@functools.lru_cache(maxsize=None)
def mask(n):
    return torch.ones(n, n).tril()


@functools.lru_cache(maxsize=None)
def positions(n):
    return torch.arange(float(n))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_inputs_from_places_that_look_the_same(backend):
    tensors = {Kind.FIRST: torch.ones(4), Kind.SECOND: torch.full((4,), 2.0)}

    def f(x):
        n = x.shape[0]
        return mask(n) @ x + positions(n) + tensors[Kind.FIRST] * tensors[Kind.SECOND]

    fast = stator.compile(f, backend=backend)
    for x in (torch.ones(4), torch.zeros(4), torch.ones(4)):
        assert torch.equal(fast(x), f(x))


def test_nodes_carry_meta_and_lines():
    recorder = Recorder()
    compiled(operators, recorder)(x())
    for node in recorder.graphs[0].graph.nodes:
        if node.op == "call_function":
            assert node.meta["example_value"].shape is not None
            assert "in operators" in node.meta["stack_trace"]
            assert node.meta["source_fn_stack"][-1][1] is node.target
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
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="cannot be called"):
        compiled(lambda x: x + 1, lambda module, examples: 3)(x())
    with pytest.raises(torch._dynamo.exc.InvalidBackend):
        compiled(lambda x: x + 1, "nothing like this")


def test_errors_of_backends_keep_their_traceback():
    def failing(module, examples):
        raise ValueError("not today")

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught:
        compiled(lambda x: x + 1, failing)(x())
    assert [entry.name for entry in caught.traceback][-1] == "failing"
    with pytest.raises(IndexError):  # not wrapped, as in Dynamo
        compiled(lambda x: x + 1, lambda module, examples: examples[7])(x())


def test_a_backend_may_decline():
    def declining(module, examples):
        raise torch._dynamo.exc.SkipFrame("not this one")

    check(lambda x: (x + 1, [x.sum()]), x(), backend=declining)


def test_inputs_that_stay_in_place_are_marked():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))
            self.register_buffer("offset", torch.ones(4))

        def forward(self, x, cache):
            return x * self.weight + self.offset + cache

    cache, recorder = torch.ones(4), Recorder()
    torch._dynamo.mark_static_address(cache)
    compiled(Net(), recorder)(x(), cache)
    inputs = recorder.graphs[0].graph.find_nodes(op="placeholder")
    static = {node.target for node in inputs if node.meta["tensor_dict"]}
    names = {"L_self_parameters_weight_", "L_self_buffers_offset_", "L_cache_"}
    assert static == names


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


def test_a_body_made_by_hand_is_a_submodule():
    graph = _engine.Graph()
    a, b = graph.add_input("L['a']"), graph.add_input("L['b']")
    body = graph.open_body()
    inner = body.open_body()
    inner.close((inner.add_call("sin", (inner.lift(a),)),))
    wrap = torch.ops.higher_order.wrap
    sin = body.add_call(wrap, (body.add_attribute("wrap_body", inner), body.lift(a)))
    sin = body.add_call(operator.getitem, (sin, 0))
    body.close((body.add_call(operator.mul, (sin, body.lift(b))),))
    assert [n.name for n in body.lifted] == ["l_a_", "l_b_"]
    call = graph.add_call(wrap, (graph.add_attribute("wrap_body", body), *body.lifted))
    graph.close((graph.add_call(operator.getitem, (call, 0)),))
    made = _backends.to_fx(graph)
    assert isinstance(made.wrap_body_1, torch.fx.GraphModule)
    assert isinstance(made.wrap_body_1.wrap_body_0, torch.fx.GraphModule)
    assert [node.name for node in made.wrap_body_1.graph.nodes][:2] == ["l_a_", "l_b_"]
    expected = (x().sin() * x(),)
    assert_same(made(x(), x()), expected)
    assert_same(graph.replay(x(), x()), expected)
    for name in ("eager", "aot_eager"):
        run = _backends.resolve(name)(graph, [x(), x()])
        assert_same(tuple(run(x(), x())), expected)


@pytest.mark.full
def test_inductor():
    check(lambda x: (x.sin() + 1).relu() * 2, x(), backend="inductor")


def test_a_number_that_grows_by_tensors():
    """`0 += x` is what fx would write for the operator in place."""

    def f(xs):
        total = 0
        for x in xs:
            total += x
        return total

    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    xs = [torch.ones(2), torch.full((2,), 3.0)]
    assert torch.equal(stator.compile(f, backend=backend)(xs), f(xs))
    assert [node.target for node in graphs[0].graph.nodes if node.op == "call_function"] == [
        operator.add,
        operator.iadd,
    ]


# -- what torch.fx writes as code --


@pytest.mark.parametrize("backend", ["eager", "aot_eager", Recorder()])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 5).to(bool).to(float).to(int) + 8,
        lambda x: torch.zeros(3, 4, dtype=complex) + x,
        lambda x: (x.sum(dtype=float), torch.tensor([1, 2], dtype=int)),
        lambda x: (-2.0) ** x,
        lambda x: (-math.inf) ** (x * 4).int(),
        lambda x: -(2**x) + x**-2,
    ],
)
def test_constants_survive_being_written_as_code(function, backend):
    check(function, x(), backend=backend)


@pytest.mark.parametrize(
    "number", [complex(-0.0, 0.0), complex(1, -0.0), complex(0, math.inf), complex(math.nan, 1)]
)
def test_complex_numbers_survive_being_written_as_code(number):
    recorder = Recorder()
    fast = compiled(lambda x: x * number, recorder)
    assert str(fast(x())) == str(x() * number)
    assert str(recorder.graphs[0](x())) == str((x() * number,))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64, torch.bool])
def test_tensors_without_dimensions_are_no_numbers(dtype):
    """Dynamo knows some of them as symbols; backends ask it to start again without."""
    TensorifyState.clear()

    def f(x, c):
        return x * c + c, torch.where(x > c, x, c), c + 1

    for backend in ("aot_eager", "aot_eager_decomp_partition"):
        fast = compiled(f, backend)
        for value in (1, 2, 0):
            c = torch.tensor(value, dtype=dtype)
            assert_same(fast(x(), c), f(x(), c))
        assert fast.metrics["entries"] == 1


def test_backend_that_fails_in_the_middle_leaves_no_state():
    def backend(module, inputs):
        def run():
            for node in module.graph.nodes:
                if node.target is torch._C._set_grad_enabled:
                    node.target(*node.args)
                    raise RuntimeError("in the middle")

        run()

    def f(x):
        with torch.no_grad():
            y = x.sin()
        return y + x

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="in the middle"):
        stator.compile(f, backend=backend)(torch.ones(3))
    assert torch.is_grad_enabled()


VIEWS = {
    "row": lambda x: x[2],
    "transposed": lambda x: x.t(),
    "part": lambda x: x[1:, 1:],
    "expanded": lambda x: x[2].expand(2, 4),
    "diagonal": lambda x: x.diagonal(),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 1), 1),
    "by an operation without a rule": lambda x: x.unfold(0, 2, 1).movedim(0, 1),
}


@pytest.mark.parametrize("dynamic", [False, True])
def test_outputs_that_are_views_of_inputs_which_share_a_storage(dynamic):
    """AOTAutograd makes these of the wrong tensor, if an input is written to."""
    for view in VIEWS.values():

        def f(x, y):
            result = view(x)
            y[2:] = 7
            return result

        def make():
            x = torch.arange(24.0).view(6, 4)
            return x, x.view(-1)[:6]

        result = stator.compile(f, backend="aot_eager", dynamic=dynamic)(*make())
        assert torch.equal(result, f(*make()))
        assert result.stride() == f(*make()).stride()
