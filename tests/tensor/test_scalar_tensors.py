"""Tensors of one number in the place of a number (`alpha=`): one graph, which takes the tensor's
value anew in each call."""

import warnings

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402

F = torch.nn.functional

PROGRAMS = {
    "add": lambda a, b, s: a.add(b, alpha=s),
    "add, by position": lambda a, b, s: a.add(s, b),
    "torch.add": lambda a, b, s: torch.add(a, b, alpha=s),
    "add_": lambda a, b, s: a.clone().add_(b, alpha=s),
    "an input is written to": lambda a, b, s: a.add_(b, alpha=s),
    "addcmul": lambda a, b, s: a.addcmul(s, b, b),
    "addcdiv": lambda a, b, s: a.addcdiv(s, b, b.abs() + 1),
    "baddbmm": lambda a, b, s: a[None].baddbmm(a[None], b[None], alpha=s, beta=s),
    "_foreach_addcmul": lambda a, b, s: torch._foreach_addcmul([a], [b], [b], value=1 - s)[0],
    "_foreach_addcdiv": lambda a, b, s: torch._foreach_addcdiv([a], [b], [b.exp()], value=s)[0],
    "factors of lists": lambda a, b, s: torch._foreach_addcdiv(
        [a, b], [b, a], [b.exp(), a.exp()], torch.stack([s, s * 2])
    ),
    "factors of lists that are written to": lambda a, b, s: torch._foreach_addcmul_(
        [a, b], [b + 1, a], [b.exp(), b + 2], scalars=torch.stack([s, s * 2])
    ),
    "full": lambda a, b, s: torch.full((2, 3), s),
    "clamp": lambda a, b, s: a.clamp(-s, s),
    "leaky_relu": lambda a, b, s: F.leaky_relu(a, s),
    "linspace": lambda a, b, s: torch.linspace(0, s, 5),
    "sizes behind it": lambda a, b, s: a.add(b, alpha=s).view(-1)[1:].exp().sum(0, keepdim=True),
    "a write behind it": lambda a, b, s: a.add(b, alpha=s).mul_(2).index_fill_(0, LONGS, 3.0),
}
LONGS = torch.tensor([0, 2])


@pytest.mark.filterwarnings("ignore:This overload of")
@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_value_is_read_in_each_call(name, backend, fullgraph):
    program = PROGRAMS[name]
    fast = stator.compile(program, backend=backend, fullgraph=fullgraph)
    for number in (0.5, 2.0, 7.0, 0.25):
        given = torch.randn(4, 4), torch.randn(4, 4), torch.tensor(number)
        copies = [t.clone() for t in given]
        torch.testing.assert_close(fast(*given), program(*copies))
        torch.testing.assert_close(list(given), copies)
    assert fast.metrics["entries"] == 1


FACTORS = {
    "short floats": (torch.float16, [2.0, 3.0]),
    "no dimension": (torch.float32, 2.0),
    "too few": (torch.float32, [2.0]),
}


@pytest.mark.parametrize("name", FACTORS)
def test_torch_is_asked_for_other_factors_of_lists(name):
    dtype, numbers = FACTORS[name]

    def program(a, factors):
        try:
            return torch._foreach_addcdiv([a, a + 1], [a, a], [a.exp(), a.exp()], factors)
        except RuntimeError as error:
            return str(error)

    given = torch.randn(3, dtype=dtype), torch.tensor(numbers, dtype=dtype)
    assert str(stator.compile(program)(*given)) == str(program(*given))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients(backend):
    def program(a, b, s):
        return a.add(b, alpha=s).sin()

    fast = stator.compile(program, backend=backend)
    for number in (0.5, 2.0):
        grads = []
        for function in (program, fast):
            a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
            function(a, b, torch.tensor(number)).sum().backward()
            grads.append((a.grad, b.grad))
        torch.testing.assert_close(*grads)


def test_the_setting_still_counts_for_numbers_that_leave_the_operation():
    graphs = []

    def backend(module, examples):
        graphs.append(module)
        return module.forward

    def program(a, b, s):
        return a.add(b, alpha=s) * s.item()

    fast = stator.compile(program, backend=backend)
    given = torch.randn(3), torch.randn(3), torch.tensor(0.5)
    torch.testing.assert_close(fast(*given), program(*given))
    nodes = [node.target for graph in graphs for node in graph.graph.nodes]
    assert "add" in nodes
    assert "item" not in nodes


def test_what_the_kernel_refuses_is_eagers_error():
    def program(a, b, s):
        return a.add(b, alpha=s)

    fast = stator.compile(program, backend="eager")
    whole = torch.ones(3, dtype=torch.int64)
    outcomes = []
    for function in (program, fast):
        with warnings.catch_warnings(), pytest.raises(RuntimeError) as raised:
            function(whole, whole, torch.tensor(0.5))
        outcomes.append(str(raised.value))
    assert outcomes[0] == outcomes[1]
