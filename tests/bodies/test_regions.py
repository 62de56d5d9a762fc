"""nested_compile_region: a region is part of the graph that it lies in, and does what it does in
plain Python. Equal regions of a graph without gradients are one body."""

import flow_cases
import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402
from torch.compiler import nested_compile_region  # noqa: E402

import stator  # noqa: E402
from stator import _layers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


installed = pytest.fixture(autouse=True)(flow_cases.installed)


LOG = []


@nested_compile_region
def region(x, y=2):
    return x.sin() * y, x.cos()


@nested_compile_region
def with_effects(x):
    LOG.append(x.shape)
    return x + len(LOG)


@nested_compile_region
def in_place(x):
    return x.mul_(2)


@nested_compile_region
def around(x):
    return region(x)[0] + region(x, y=3)[1]


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)

    @nested_compile_region
    def forward(self, x):
        return self.norm(self.linear(x)).relu()


def two_calls(x):
    return region(region(x)[0])[1]


def other_arguments(x):
    return region(x, 3)[0] + region(x.double(), y=x)[0]


def in_place_twice(x):
    return in_place(in_place(x.clone()))


def gives_its_argument(x):
    y = x * 2
    return nested_compile_region(lambda v: v)(y) is y, y


def two_modules(x):
    first, second = LAYERS
    return second(first(x))


LAYERS = [Layer(), Layer()]
PROGRAMS = [two_calls, other_arguments, in_place_twice, gives_its_argument, two_modules, around]


def outcome(f):
    for layer in LAYERS:
        layer.zero_grad()
        layer.norm.reset_running_stats()
    x = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
    result = f(x)
    results = list(result) if isinstance(result, tuple) else [result]
    sum(r.sin().sum() for r in results if isinstance(r, torch.Tensor)).backward()
    tensors = [r if isinstance(r, torch.Tensor) else torch.tensor(r) for r in results]
    for layer in LAYERS:
        tensors += [p.grad for p in layer.parameters() if p.grad is not None]
        tensors += list(layer.buffers())
    return [x.grad, *(t.detach().clone() for t in tensors)]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_as_in_plain_python(program, backend):
    want = outcome(program)
    counter = CompileCounterWithBackend(backend)
    fast = torch.compile(program, backend=counter, fullgraph=True)
    for _ in range(2):
        got = outcome(fast)
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b)
    assert counter.frame_count == 1


def test_effects_happen_in_every_call():
    def f(x):
        return with_effects(with_effects(x))

    fast = torch.compile(f, backend="eager")
    x = torch.ones(2)
    for _ in range(3):
        LOG[:] = []
        assert fast(x).tolist() == [4.0, 4.0]
        assert LOG == [x.shape] * 2


def test_a_break_in_a_region():
    @nested_compile_region
    def breaks(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y + 1

    x = torch.ones(2)
    assert torch.equal(torch.compile(breaks, backend="eager")(x), x.sin() + 1)


def three_equal_and_one_other(x):
    return region(region(region(x)[0])[0])[0] + region(x, 3)[0]


def inner_in_outer(x):
    return around(around(x))


def two_layers(x):
    return LAYERS[1](LAYERS[0](x))


# Program, bodies, calls of them.
SHARED = [
    (two_calls, 0, 0),  # they give other items
    (three_equal_and_one_other, 1, 3),
    (inner_in_outer, 1, 2),
    (in_place_twice, 0, 0),
    (gives_its_argument, 0, 0),
    (two_layers, 1, 2),
]


@pytest.mark.parametrize("program, bodies, calls", SHARED)
def test_equal_regions_are_one_body(program, bodies, calls, monkeypatch):
    """aot_eager and inductor get such graphs; where gradients are recorded they stay as they are."""
    made = []
    share = _layers.share
    monkeypatch.setattr(
        _layers, "share", lambda module: made.append((share(module), module)) or made[-1][0]
    )
    for layer in LAYERS:
        layer.eval()
    x = torch.linspace(-1, 1, 12).view(3, 4)
    try:
        for grad in (False, True):
            with torch.set_grad_enabled(grad):
                fast = torch.compile(program, backend="aot_eager", fullgraph=True)
                torch.testing.assert_close(fast(x.requires_grad_(grad)), program(x))
                torch._dynamo.reset()
    finally:
        for layer in LAYERS:
            layer.train()
    ((names, module),) = made
    found = [node for node in module.graph.nodes if "invoke_subgraph" in str(node.target)]
    assert (len(names), len(found)) == (bodies, calls)
