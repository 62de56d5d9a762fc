# ruff: noqa: E402
"""A graph that raises when it runs: the program goes on as if it had never been compiled."""

import traceback

import pytest

torch = pytest.importorskip("torch")

from tests.tensor import asserting
from tests.tensor.helpers import Recorder, compiled, count


def x():
    return torch.linspace(-1, 1, 12).reshape(3, 4)


def caught(operation):
    def f(x, indices, log):
        log.append("begin")
        y = operation(x)
        try:
            return x[indices]
        except IndexError:
            log.append("caught")
            return y

    return f


LEAVES_NOTHING = {
    "nothing": lambda x: x + 1,
    "own": lambda x: torch.zeros(2).add_(1),
    "own view": lambda x: torch.zeros(3, 2)[0].mul_(2),
    "out": lambda x: torch.ones(3, out=torch.zeros(3)),
    "copy": lambda x: x.clone().add_(1),
    "assigned": lambda x: torch.zeros(2).__setitem__(0, 1),
    "buffer": lambda x: torch.empty(3, 4).copy_(x),
}
LEAVES_SOMETHING = {
    "input": lambda x: x.add_(1),
    "view": lambda x: x[0].mul_(2),
    "detached": lambda x: x.detach().add_(1),
    "data": lambda x: x.data.zero_(),
    "itself": lambda x: x.contiguous().add_(1),
    "reshaped": lambda x: x.reshape(-1).add_(1),
    "out": lambda x: torch.add(x, 1, out=x.t().t()),
    "assigned": lambda x: x.__setitem__(0, 1),
    "list": lambda x: torch._foreach_add_([torch.zeros(2), x], 1),
    "random": lambda x: torch.rand(2),
}


@pytest.mark.parametrize("name", LEAVES_NOTHING)
def test_the_program_handles_it(name):
    f = caught(LEAVES_NOTHING[name])
    fast = compiled(f)
    fast(x(), torch.tensor([0]), [])
    log: list[str] = []
    got = fast(x(), torch.tensor([99]), log)
    assert log == ["begin", "caught"]
    torch.testing.assert_close(got, f(x(), torch.tensor([99]), []))


@pytest.mark.parametrize("name", LEAVES_SOMETHING)
def test_nothing_is_done_twice(name):
    fast = compiled(caught(LEAVES_SOMETHING[name]))
    fast(x(), torch.tensor([0]), [])
    torch.manual_seed(0)
    mine, log = x(), []
    fast(mine, torch.tensor([99]), log)
    assert log == ["begin", "caught"]
    once = x()
    torch.manual_seed(0)
    LEAVES_SOMETHING[name](once)
    torch.testing.assert_close(mine, once)


# -- assertions: nodes, that make the graph fail --


IN_ONE_GRAPH = [
    asserting.with_message,
    asserting.without_message,
    asserting.of_a_tensor_itself,
    asserting.in_a_with_block,
    asserting.handled,
    asserting.in_a_callee,
    asserting.raises,
    asserting.raises_and_handles,
    asserting.raises_in_a_loop,
    asserting.asserts_in_a_loop,
    asserting.raises_otherwise,
    asserting.of_two,
]
IN_PIECES = [
    asserting.makes_its_message,
    asserting.raises_if_true,
    asserting.negated,
    asserting.of_many,
    asserting.then_writes,
    asserting.then_draws,
]
# Torch 2.15 takes the truth itself, as a bool.
takes_truth = hasattr(torch.distributions.distribution, "_all_true_or_runtime_assert")
(IN_PIECES if takes_truth else IN_ONE_GRAPH).append(asserting.checks_a_distribution)


def outcome(f, x):
    torch.manual_seed(0)
    try:
        return f(x), x, None, []
    except (AssertionError, RuntimeError) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)]
        return None, x, (type(error), str(error)), lines[-1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", IN_ONE_GRAPH + IN_PIECES)
def test_assertions(function, backend):
    fast = compiled(function, backend, fullgraph=function in IN_ONE_GRAPH)
    outcome(fast, torch.ones(3))
    assert count(fast) == 1 or function in IN_PIECES
    for value in (torch.ones(3), -torch.ones(3), torch.ones(3) * 2, torch.zeros(3), torch.ones(3)):
        got, want = outcome(fast, value.clone()), outcome(function, value.clone())
        torch.testing.assert_close(got[:2], want[:2], rtol=0, atol=0)
        assert got[2:] == want[2:]


def test_an_assertion_is_a_node():
    recorder = Recorder()
    compiled(asserting.with_message, recorder)(torch.ones(3))
    (node,) = recorder.graphs[0].graph.find_nodes(op="call_function", target=torch._assert_async)
    assert node.args[1] == "not positive"


def test_a_whole_graph_asserts_as_plain_python_does():
    fast = compiled(asserting.then_writes)
    assert fast(torch.ones(3)).sum() == 12
    x = -torch.ones(3)
    with pytest.raises(AssertionError, match="not positive"):
        fast(x)
    assert x.sum() == -3
