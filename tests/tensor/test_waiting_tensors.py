# ruff: noqa: E402
"""Tensors in frames that wait for a callee with a break in it: how many graphs there are and how large,
and that values, gradients and torch's state are those of plain Python."""

import pytest

torch = pytest.importorskip("torch")

import stator
from tests.tensor.helpers import Recorder, assert_same


@pytest.fixture(autouse=True)
def reset():
    yield
    stator.reset()


def operations(module):
    return sum(node.op not in ("placeholder", "output", "get_attr") for node in module.graph.nodes)


def sizes(function, *args):
    """The number of operations of each graph, in the order they were made."""
    backend = Recorder()
    fast = stator.compile(function, backend=backend)
    for _ in range(3):
        assert_same(fast(*args), function(*args))
    return [operations(g) for g in backend.graphs]


# -- graphs -------------------------------------------------------------------------------------------


def f1(x):
    y = x.sin()
    print(end="")
    return y.cos()


def f2(x):
    return f1(x + 1) * 2


def f3(x):
    return f2(x - 1) / 3


def test_a_break_three_calls_deep_leaves_two_graphs():
    assert sizes(f3, torch.ones(3)) == [3, 3]


def twice(x):
    return f3(x) + f3(x * 2)


def test_two_breaks_leave_three_graphs():
    assert sizes(twice, torch.ones(3)) == [3, 7, 4]


def in_a_loop(x):
    for _ in range(4):
        x = f2(x)
    return x


def test_the_rounds_of_a_loop_share_a_graph():
    assert sizes(in_a_loop, torch.ones(3)) == [2, 2, 2]


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        print(end="")
        return y.relu()


class Middle(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.linear = Inner(), torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(self.inner(x)) + x


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.middle, self.norm = Middle(), torch.nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(self.middle(x)).tanh()


def test_modules_three_deep_leave_two_graphs():
    torch.manual_seed(0)
    assert sizes(Outer(), torch.randn(2, 4)) == [1, 5]


# -- training -----------------------------------------------------------------------------------------


def train(model, forward, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = forward(x).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, [p.detach() for p in model.parameters()], [p.grad for p in model.parameters()]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_training_gives_the_same_gradients(backend):
    torch.manual_seed(0)
    plain, x = Outer(), torch.randn(2, 4)
    other = Outer()
    other.load_state_dict(plain.state_dict())
    want = train(plain, plain, x)
    assert_same(train(other, stator.compile(other, backend=backend), x), want)


# -- torch's state --------------------------------------------------------------------------------------


def state():
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_default_dtype(),
    )


@stator.disable
def note(log):
    log.append(state())


def told(x, log):
    y = x @ x
    note(log)
    return y @ x


def without_gradients(x, log):
    with torch.no_grad():
        y = told(x, log)
        z = y * 2
    return y + x, z, y.requires_grad


def gradients_inside(x, log):
    with torch.no_grad():
        with torch.enable_grad():
            y = told(x, log)
        z = y * 2
    return y, z, z.requires_grad


def with_autocast(x, log):
    with torch.autocast("cpu", torch.bfloat16):
        y = told(x, log)
        z = y @ x
    return z, (z @ x.bfloat16()).dtype, (x @ x).dtype


@torch.no_grad()
def decorated(x, log):
    return told(x, log) + 1


def calls_decorated(x, log):
    y = decorated(x, log)
    return y * x, y.requires_grad


def switched_below(x, log):
    y = switches(x, log)
    z = y * x
    torch.set_grad_enabled(True)
    return y, z, z.requires_grad


def switches(x, log):
    torch.set_grad_enabled(False)
    return told(x, log)


def left_by_an_exception(x, log):
    try:
        with torch.no_grad():
            raises(x, log)
    except KeyError:
        return x * 2, torch.is_grad_enabled()


def raises(x, log):
    told(x, log)
    raise KeyError


def guard_in_a_variable(x, log):
    y = holds_a_guard(x, log)
    return y, torch._C._is_torch_function_enabled()


def holds_a_guard(x, log):
    guard = torch._C.DisableTorchFunctionSubclass()
    y = told(x, log)
    return y if guard is not None else x


STATES = [
    without_gradients,
    gradients_inside,
    with_autocast,
    calls_decorated,
    switched_below,
    left_by_an_exception,
    guard_in_a_variable,
]


def through(function, x, log):
    return function(x, log)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", STATES, ids=lambda f: f.__name__)
def test_the_state_of_torch_is_that_of_plain_python(program, backend):
    x = torch.linspace(-1, 1, 16).reshape(4, 4).requires_grad_()
    fast = stator.compile(through, backend=backend)
    for _ in range(3):
        want_log, got_log = [], []
        want = program(x, want_log)
        assert_same(fast(program, x, got_log), want)
        assert got_log == want_log
        assert state() == (True, False, False, torch.float32)


def test_what_began_in_another_state_is_not_used():
    x = torch.ones(4, 4, requires_grad=True)
    fast = stator.compile(lambda x, log: told(x, log) * 2, backend="eager")
    for on in (True, False, True, False):
        with torch.set_grad_enabled(on):
            assert fast(x, []).requires_grad == on


# -- sharing ----------------------------------------------------------------------------------------------


def adds(x):
    print(end="")
    x.add_(1)
    return x.sum()


def shares(x, y):
    s = adds(x)
    y.mul_(2)
    return s, x * y, y


def test_tensors_of_two_frames_that_share_memory():
    fast = stator.compile(shares, backend="eager")
    for make in (
        lambda x: (x, x),
        lambda x: (x, x.clone()),
        lambda x: (x[1:], x[:3]),
        lambda x: (x[:2], x[1:3]),
        lambda x: (x, x),
    ):
        plain, other = make(torch.arange(4.0)), make(torch.arange(4.0))
        assert_same(fast(*other), shares(*plain))
        assert_same(other, plain)


def test_shapes_that_only_the_caller_looks_at():
    def outer(x, y):
        s = adds(x)
        return s * y.shape[0] + y.sum()

    fast = stator.compile(outer, backend="eager")
    for n in (1, 2, 5, 1, 7):
        args = [(torch.ones(3), torch.ones(n)) for _ in range(2)]
        assert_same(fast(*args[0]), outer(*args[1]))
