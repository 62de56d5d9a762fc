# ruff: noqa: E402
"""Other tracers over a compiled function, before and after it was compiled: they see the program,
and the program sees them."""

import pytest

torch = pytest.importorskip("torch")

from torch._functorch.aot_autograd import aot_function
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import stator
from tests.tensor.helpers import assert_same

pytestmark = pytest.mark.filterwarnings("ignore")


def argument():
    return torch.linspace(-1, 1, 12).reshape(3, 4)


# -- programs --

WEIGHT = torch.nn.Parameter(torch.ones(4))
CALLS = {"number": 0}


def computes(x):
    return (x.sin() * 2).relu()


def counts(x):
    CALLS["number"] += 1
    return x * 2 + WEIGHT


def asks(x):
    told = (
        torch.jit.is_tracing(),
        torch.compiler.is_compiling(),
        torch.fx._symbolic_trace.is_fx_tracing(),
    )
    return x * (2 if told[0] else 3) + (5 if told[1] else 7) + (11 if told[2] else 13)


def calls_another(x):
    return computes(x) + asks(x)


def makes_tensors(x):
    return x + torch.ones(4) * 2


PROGRAMS = [computes, counts, asks, calls_another, makes_tensors]


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x).relu()


# -- tracers: each gives what its trace computes, and how long the trace is --


def length(graph):
    return sum(node.op.startswith("call") for node in graph.nodes)


def by_symbolic_trace(f, x):
    traced = torch.fx.symbolic_trace(Root(f))
    return traced(x), length(traced.graph)


def by_make_fx(mode):
    def trace(f, x):
        traced = make_fx(f, tracing_mode=mode)(x)
        return traced(x), length(traced.graph)

    return trace


def by_jit(f, x):
    traced = torch.jit.trace(f, (x,))
    return traced(x), traced(x + 1), len(list(traced.graph.nodes()))


class Root(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x) * 1


def by_export(f, x):
    traced = torch.export.export(Root(f), (x,), strict=False)
    return traced.module()(x), length(traced.graph)


def by_aot(f, x):
    lengths = []

    def compiler(graph, examples):
        lengths.append(length(graph.graph))
        return graph

    return aot_function(f, fw_compiler=compiler)(x), lengths


def by_fakes(f, x):
    mode = FakeTensorMode()
    with mode:
        y = f(mode.from_tensor(x))
    return type(y), y.shape, y.dtype


TRACERS = {
    "symbolic_trace": by_symbolic_trace,
    "make_fx, real": by_make_fx("real"),
    "make_fx, fake": by_make_fx("fake"),
    "make_fx, symbolic": by_make_fx("symbolic"),
    "jit.trace": by_jit,
    "export": by_export,
    "aot_function": by_aot,
    "fakes": by_fakes,
    "vmap": lambda f, x: torch.func.vmap(f)(x),
    "grad": lambda f, x: torch.func.grad(lambda y: f(y).sum())(x),
    "jacrev": lambda f, x: torch.func.jacrev(f)(x),
    "functionalize": lambda f, x: torch.func.functionalize(f)(x),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("compiled_before", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("tracer", TRACERS)
def test_they_see_the_program(tracer, program, compiled_before, backend):
    trace, x = TRACERS[tracer], argument()
    outcomes, calls = [], []
    for f in (program, stator.compile(program, backend=backend)):
        if compiled_before:
            f(x)
        before = CALLS["number"]
        try:
            outcomes.append(trace(f, x))
        except (RuntimeError, AssertionError, NameError) as error:  # torch's own
            outcomes.append(type(error))
        calls.append(CALLS["number"] - before)
    assert_same(outcomes[1], outcomes[0])
    assert calls[0] == calls[1]
    fast = stator.compile(program, backend=backend)
    assert_same(fast(x), stator.compile(program, backend="eager")(x))  # nothing is left behind


@pytest.mark.parametrize("compiled_before", [False, True])
@pytest.mark.parametrize("tracer", ["symbolic_trace", "make_fx, real", "jit.trace", "export"])
def test_compiled_modules(tracer, compiled_before):
    module = Module()
    fast = stator.compile(module)
    x = argument()
    if compiled_before:
        fast(x)
    assert_same(TRACERS[tracer](Root(fast), x)[0], module(x) * 1)


def test_the_whole_graph_is_not_asked_of_a_call_that_another_tracer_sees():
    fast = stator.compile(computes, fullgraph=True)
    assert_same(torch.func.vmap(fast)(argument()), torch.func.vmap(computes)(argument()))
    assert length(make_fx(fast)(argument()).graph) == 3


def test_a_function_without_tensors_is_asked_again():
    def f():
        return torch.jit.is_tracing(), torch.compiler.is_compiling()

    fast = stator.compile(f)
    before = fast()
    seen = []

    def traced(x):
        seen.append(fast())
        return x * 2

    torch.jit.trace(traced, (argument(),), check_trace=False)
    assert seen[0] == (True, False)
    assert fast() == before


def test_arguments_that_are_fakes_of_nobodys_mode():
    fast = stator.compile(computes)
    fake = FakeTensorMode().from_tensor(argument())
    for _ in range(2):
        assert type(fast(fake)) is type(fake)
        assert_same(fast(argument()), computes(argument()))


def test_fake_tensors_go_through_what_is_compiled_as_one_graph():
    """Another compiler runs operators of the program's on fakes, with no mode on."""

    def program(x):
        return x.sin().cos()

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    fake = FakeTensorMode().from_tensor(torch.ones(3))
    for _ in range(2):
        assert type(compiled(fake)) is type(fake)
        assert torch.equal(compiled(torch.ones(3)), program(torch.ones(3)))
