# ruff: noqa: E402
"""autograd.Function: one node where it only computes, plain Python where it does more."""

import enum

import pytest

torch = pytest.importorskip("torch")

from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable

import stator
from stator._versions import private
from tests.tensor.helpers import Recorder, assert_same, compiled

BACKENDS = ("eager", "aot_eager")
SEEN: list = []
STATE = {"scale": 2.0}
OUTSIDE = torch.full((4, 4), 3.0)


class Product(Function):
    @staticmethod
    def forward(ctx, a, b, factor):
        half = a * 0.5
        ctx.save_for_backward(a, b, half)
        ctx.factor = factor
        assert isinstance(ctx, FunctionCtx) and not torch.is_grad_enabled()
        return half * b * factor

    @staticmethod
    def backward(ctx, grad):
        a, b, half = ctx.saved_tensors
        first = grad * b * ctx.factor if ctx.needs_input_grad[0] else None
        return first, grad * (a + half), None


class Apart(Function):
    @staticmethod
    def forward(x, power=3):
        return x.pow(power)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)
        ctx.power = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * x * ctx.power + y, None


class Parts(Function):
    @staticmethod
    def forward(ctx, x, sizes):
        low, high, order = x[: sizes[0]] * 1, x[sizes[0] :] * 2, x.argsort()
        ctx.mark_non_differentiable(order)
        ctx.set_materialize_grads(False)
        ctx.shape = x.shape
        return low, high, order, None

    @staticmethod
    def backward(ctx, low, high, order, nothing):
        grad = torch.zeros(ctx.shape)
        if low is not None:
            grad[: low.shape[0]] = low * 5
        if high is not None:
            grad[-high.shape[0] :] = high
        return grad, None


class Reversal(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad * STATE["scale"]


class Straight(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * 3


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Outer(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x)
        return Product.apply(x, w, 2) + Straight.apply(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x, Straight.apply(grad)


class Noisy(Function):
    @staticmethod
    def forward(ctx, x):
        mask = torch.rand_like(x) > 0.5
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask


class Refusing(Function):
    @staticmethod
    def forward(ctx, x, limit):
        if x.dim() > limit:
            raise ValueError(f"more than {limit} dimensions")
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 7, None


class Telling(Function):
    @staticmethod
    def forward(ctx, x):
        SEEN.append("forward")
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 5


class TellingBackwards(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        SEEN.append("backward")
        print("backward")
        return grad * 5


class Reaching(Function):
    @staticmethod
    def forward(ctx, x):
        return x * OUTSIDE

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 + OUTSIDE


class Reading(Function):
    @staticmethod
    def forward(ctx, x, log):
        log.append(len(log))
        return x * len(log)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


class ByGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return x * x.grad

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


class Cast(Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.t(), x.t() @ grad


class Named(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.label = ctx.name()
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        SEEN.append(ctx.label)
        return grad


def product(x, w, log):
    return Product.apply(x, w, 3).sum()


def product_without_gradient(x, w, log):
    with torch.no_grad():
        y = Product.apply(x, w, 3)
    return (y + Product.apply(x.detach(), w, 2) + Product.apply(x, w.detach(), 2)).sum(), y


def apart(x, w, log):
    return (Apart.apply(x * w) + Apart.apply(w, 2)).sum()


def parts(x, w, log):
    low, high, order, nothing = Parts.apply(x * w, (1, 3))
    log.append((order.requires_grad, nothing))
    return high.sum(), order


def reversal(x, w, log):
    y = Reversal.apply(x * w)
    log.append(y.requires_grad)
    return (y * y).sum()


def straight(x, w, log):
    y = x * w
    z = Straight.apply(y)
    log.append(z is y)
    return (z * Straight.apply(w)).sum(), z


def straight_and_used(x, w, log):
    y = Straight.apply(x * w)
    log.append(y.requires_grad)
    return (Straight.apply(y) * Straight.apply(w)).sum()


def writes_to_its_argument(x, w, log):
    y = x * w
    z = Doubled.apply(y)
    log.append(z is y)
    return (z + y).sum(), y


def nested(x, w, log):
    return Outer.apply(x, w).sum()


def random(x, w, log):
    torch.manual_seed(3)
    torch._dynamo.graph_break()
    return Noisy.apply(x * w).sum()


def raises(x, w, log):
    y = Refusing.apply(x, 3)
    try:
        y = Refusing.apply(x, 1)
    except ValueError as error:
        log.append(str(error))
    return (y * w).sum()


def misused(x, w, log):
    try:
        Product.apply(x)
    except TypeError as error:
        log.append("Product.forward" in str(error))
    try:
        Product.apply(x, w, factor=2)
    except TypeError as error:
        log.append("keyword" in str(error))
    return (x * w).sum()


def tells(x, w, log):
    return (Telling.apply(x) * w).sum(), list(SEEN)


def tells_backwards(x, w, log):
    return (TellingBackwards.apply(x) * w).sum()


def reaches(x, w, log):
    return (Reaching.apply(x) * w).sum()


def reads_what_was_written(x, w, log):
    log.append(7)
    return (Reading.apply(x, log) * w).sum()


def after_a_write(x, w, log):
    STATE["scale"] += 1
    y = Reversal.apply(x * w)
    STATE["scale"] -= 1
    return y.sum()


def after_setting_a_gradient(x, w, log):
    x.grad = torch.ones(4, 4)
    y = ByGradient.apply(x)
    x.grad = None
    return (y * w).sum()


def cast(x, w, log):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (Cast.apply(x, w) + x @ w).float().sum()


def named(x, w, log):
    return (Named.apply(x) * w).sum()


def in_a_loop(x, w, log):
    apply = Product.apply
    for factor in range(3):
        x = apply(x, w, factor)
    return sum(map(Straight.apply, (x, w))).sum()


def hooked(x, w, log):
    y = Product.apply(x, w, 2)
    y.register_hook(lambda grad: grad * 2)
    w.register_hook(lambda grad: grad + 1)
    return (y + Straight.apply(y)).sum()


PROGRAMS = [value for value in list(globals().values())
            if getattr(value, "__code__", None) and value.__code__.co_varnames[:3] == ("x", "w", "log")]  # fmt: skip
WHOLE = [product, product_without_gradient, apart, parts, reversal, straight_and_used, nested]


def outcome(function):
    SEEN.clear()
    x = torch.linspace(-1, 1, 16).reshape(4, 4).requires_grad_()
    w = torch.nn.Parameter(torch.linspace(1, 3, 16).reshape(4, 4))
    log: list = []
    result = function(x, w, log)
    loss = result[0] if isinstance(result, tuple) else result
    loss.backward(retain_graph=True)
    loss.backward()
    return [result, x.grad, w.grad, log, list(SEEN)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_eager(program, backend):
    want = outcome(program)
    fast = compiled(program, backend, fullgraph=False)
    for _ in range(3):
        assert_same(outcome(fast), want)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", WHOLE, ids=lambda program: program.__name__)
def test_what_only_computes_needs_no_break(program, backend):
    fast = compiled(program, backend)
    for _ in range(2):
        assert_same(outcome(fast), outcome(program))
    assert fast.metrics["entries"] == 1
    assert fast.metrics["traces"] == 1  # the graph ran: nothing was left to callees


def test_what_its_operations_give_back_is_what_it_was():
    fast = compiled(cast)  # casts to the type that is there already
    for _ in range(2):
        assert_same(outcome(fast), outcome(cast))
    assert fast.metrics["breaks"] == []


NODES = ["apply", "sum_1"]
if private.function_operator is not None:
    NODES = ["autograd_function_apply", "getitem", "sum_1"]


def test_it_is_one_node():
    recorder = Recorder()
    assert_same(outcome(compiled(nested, recorder)), outcome(nested))
    (graph,) = recorder.graphs
    nodes = [node for node in graph.graph.nodes if node.op.startswith("call")]
    assert [node.name for node in nodes] == NODES


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_it_reads_is_guarded(backend, monkeypatch):
    fast = compiled(reversal, backend)
    for scale in (2.0, 5.0, 2.0):
        monkeypatch.setitem(STATE, "scale", scale)
        assert_same(outcome(fast), outcome(reversal))


def test_its_methods_are_guarded(monkeypatch):
    fast = compiled(reversal, "aot_eager")
    assert_same(outcome(fast), outcome(reversal))
    monkeypatch.setattr(Reversal, "backward", staticmethod(lambda ctx, grad: grad * 11))
    assert_same(outcome(fast), outcome(reversal))


def test_a_backward_with_effects_is_plain_python():
    recorder = Recorder()
    fast = compiled(tells_backwards, recorder, fullgraph=False)
    assert_same(outcome(fast), outcome(tells_backwards))
    assert "PRINT" in fast.metrics["breaks"][0] or "autograd.Function" in fast.metrics["breaks"][0]
    eager = compiled(tells_backwards)  # autograd runs it, as ever
    assert_same(outcome(eager), outcome(tells_backwards))
    assert eager.metrics["entries"] == 1


def test_a_second_backward():
    def f(x):
        return Product.apply(x, x, 2)

    x = torch.linspace(1, 2, 4, dtype=torch.float64, requires_grad=True)
    results = []
    for function in (f, compiled(f)):
        (grad,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
        results.append([grad, torch.autograd.grad(grad.sum(), x)[0]])
    assert_same(*results)


def test_a_look_at_a_function_leaves_no_autocast_context_open():
    def depth():
        torch.autocast_increment_nesting()
        return torch.autocast_decrement_nesting()

    before = depth()
    f = compiled(lambda x: Product.apply(x, x, 2) + 1)
    f(torch.ones(2))
    f(torch.ones(3))
    assert depth() == before


class Choice(enum.Enum):
    SIN = 0
    COS = 1


def square(y):
    return y * y


class Chosen(torch.autograd.Function):
    @staticmethod
    def forward(ctx, choice, x, function, module, y):
        ctx.choice, ctx.module = choice, module
        ctx.save_for_backward(y)
        return (x.sin() if choice is Choice.SIN else x.cos()) + function(y) + module.k

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        factor = 1 if ctx.choice is Choice.SIN else 2
        return None, g * ctx.module.k * factor, None, None, g * y


@pytest.mark.parametrize("backend", ("eager", "aot_eager"))
def test_arguments_that_are_no_values_but_last(backend):
    def program(choice, x, y, module):
        return Chosen.apply(choice, x, square, module, y) * 2

    def run(function, choice):
        x, y = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
        out = function(choice, x, y, module)
        out.sum().backward()
        return [out, x.grad, y.grad]

    module = torch.nn.Module()
    made = stator.compile(program, backend=backend, fullgraph=True)
    for choice in (*Choice, *Choice):
        module.k = len(choice.name) + choice.value
        torch.testing.assert_close(run(made, choice), run(program, choice))


@torch._dynamo.allow_in_graph
class Allowed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        torch._dynamo.graph_break()  # nobody looks into the class
        ctx.size = x.size(0)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * ctx.size


@pytest.mark.parametrize("backend", ("eager", "aot_eager"))
def test_a_class_that_is_allowed_in_graphs_is_one_node(backend):
    made = stator.compile(lambda x: Allowed.apply(x) + 1, backend=backend, fullgraph=True)
    x = torch.ones(3, requires_grad=True)
    out = made(x)
    out.sum().backward()
    assert out.tolist() == [3.0] * 3 and x.grad.tolist() == [3.0] * 3
