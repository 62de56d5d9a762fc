# ruff: noqa: E402
"""autograd.Function in graphs that a backend compiles as a whole: forward and backward are bodies of
torch's operator, with the values and gradients of plain Python."""

import pytest

torch = pytest.importorskip("torch")

from torch.autograd import Function
from torch.autograd.function import once_differentiable

import stator
from stator._versions import private
from tests.tensor.helpers import Recorder, assert_same, compiled

pytestmark = pytest.mark.skipif(
    private.function_operator is None, reason="this torch's operator has another form"
)

WEIGHT = torch.linspace(1, 2, 4).requires_grad_()
SEEN: list = []


class Scale:
    def __init__(self, factor):
        self.factor = factor


def function(forward, backward, apart=None):
    """A class of these methods; with `apart` a setup_context."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    if apart is not None:
        methods["setup_context"] = staticmethod(apart)
    return type("Made", (Function,), methods)


class Saves(Function):
    """An input, an output and something between."""

    @staticmethod
    def forward(ctx, x, y, factor):
        between = x * y
        result = between * factor
        ctx.save_for_backward(x, result)
        ctx.between, ctx.factor = between, factor
        return result, between + 1

    @staticmethod
    def backward(ctx, first, second):
        x, result = ctx.saved_tensors
        return first * result + second, (second * x + ctx.between) * ctx.factor, None


class Chooses(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        return grad * y * 3, grad * x if ctx.needs_input_grad[1] else None


class Marks(Function):
    @staticmethod
    def forward(ctx, x):
        order, copy = x.argsort(), x * 2
        ctx.mark_non_differentiable(copy)
        return x * 3, order, copy, None, 7

    @staticmethod
    def backward(ctx, grad, order, copy, nothing, seven):
        assert nothing is None and seven is None
        return grad + order + copy.sum()


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos() * 2


class Writes(Function):
    """Into tensors of its own."""

    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y.mul_(2)
        ctx.save_for_backward(y)
        return y + 1

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        result = grad.clone()
        result[y < 0] = 0
        return result


class Unused(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return None, grad * 5


class Reverses(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad


class Same(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


class Dirty(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class NotMade(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        return first if second is None else first * 100


Free = function(lambda ctx, x: x * WEIGHT, lambda ctx, grad: grad * WEIGHT * 2)
Apart = function(
    lambda x, power=3: x**power,
    lambda ctx, grad: (grad * ctx.saved_tensors[0], None),
    lambda ctx, inputs, output: ctx.save_for_backward(output),
)
OfObjects = function(
    lambda ctx, x, scale, xs: (setattr(ctx, "scale", scale), x * scale.factor + sum(xs))[1],
    lambda ctx, grad: (grad * ctx.scale.factor, None, None),
)
FreeBackwards = function(lambda ctx, x: x * 2, lambda ctx, grad: grad * WEIGHT)
Tells = function(lambda ctx, x: x * 2, lambda ctx, grad: (SEEN.append(1), grad)[1])
TooFew = function(lambda ctx, x, y: x * y, lambda ctx, grad: grad)
OfANumber = function(lambda ctx, x, k: x * k, lambda ctx, grad: (grad, grad))
Broadcasts = function(lambda ctx, x: x.sum(), lambda ctx, grad: grad * 2)
Draws = function(lambda ctx, x: x + torch.rand(4), lambda ctx, grad: grad * 2)
Flat = function(lambda ctx, x: x * 2, lambda ctx, grad: (grad, None, None))
Kept = function(
    lambda ctx, x: (setattr(ctx, "n", 1), x * 2)[1],
    lambda ctx, grad: (setattr(ctx, "n", ctx.n + 1), grad * ctx.n)[1],
)


def twice_one_tensor(x, y):
    return Saves.apply(x, x, 2)[0] + Saves.apply(y, x, 3)[1]


def returned_beside_its_argument(x, y):
    z = x.sin()
    return Reverses.apply(z), z


def a_view_of_what_it_returns(x, y):
    return Reverses.apply(x).view(-1)


def within_checkpoint(x, y):
    return torch.utils.checkpoint.checkpoint(lambda x: Once.apply(x) * 2, x, use_reentrant=False)


def under_autocast(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return Once.apply(x.float())


def without_gradients(x, y):
    with torch.no_grad():
        return Saves.apply(x, y, 2)[0] + x


# Name, program, whether bodies come of it; of `None` the graph is not looked at.
PROGRAMS = [
    ("saves", lambda x, y: sum(Saves.apply(x.sin(), y, 3)), True),
    ("one of two", lambda x, y: Saves.apply(x, y, 3)[1], True),
    ("chooses", lambda x, y: Chooses.apply(x, y.detach()), True),
    ("marks", lambda x, y: Marks.apply(x), True),
    ("once differentiable", lambda x, y: Once.apply(x), True),
    ("writes to its own", lambda x, y: Writes.apply(x), True),
    ("an argument that it does not use", lambda x, y: Unused.apply(x, y), True),
    ("free tensor", lambda x, y: Free.apply(x), True),
    ("setup_context", lambda x, y: Apart.apply(x), True),
    ("keyword", lambda x, y: Apart.apply(x, power=2), False),
    ("objects", lambda x, y: OfObjects.apply(x, Scale(3), [y, y]), True),
    ("one tensor twice", twice_one_tensor, True),
    ("a gradient of another shape", lambda x, y: Broadcasts.apply(x), None),
    ("draws", lambda x, y: Draws.apply(x), True),
    ("more gradients than arguments", lambda x, y: Flat.apply(x), True),
    ("nothing requires a gradient", lambda x, y: Once.apply(x.detach()) * y, False),
    ("without gradients", without_gradients, False),
    ("autocast", under_autocast, False),
    ("reverses", lambda x, y: Reverses.apply(x) * 2, False),
    ("returned as it is", lambda x, y: Reverses.apply(x), False),
    ("its argument", lambda x, y: Same.apply(x), False),
    ("its argument, computed", lambda x, y: Same.apply(x.sin()), False),
    ("returned beside its argument", returned_beside_its_argument, None),
    ("a view of what it returns", a_view_of_what_it_returns, None),
    ("dirty", lambda x, y: Dirty.apply(x * 1) * y, None),
    ("gradients that are not made", lambda x, y: NotMade.apply(x)[0] * 1, False),
    ("a free tensor in the backward alone", lambda x, y: FreeBackwards.apply(x), None),
    ("effects in the backward", lambda x, y: Tells.apply(x), None),
    ("changes its context in the backward", lambda x, y: Kept.apply(x), None),
    ("too few gradients", lambda x, y: TooFew.apply(x, y), None),
    ("a gradient of a number", lambda x, y: OfANumber.apply(x, 2), None),
    ("in checkpoint", within_checkpoint, None),
]  # fmt: skip
IDS = [program[0] for program in PROGRAMS]


def outcome(program):
    SEEN.clear()
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 4).requires_grad_()
    y = torch.linspace(2, 3, 4).requires_grad_()
    WEIGHT.grad = None
    result = program(x, y)
    results = result if isinstance(result, tuple) else (result,)
    loss = sum(
        (r.float() ** 2).sum() for r in results if isinstance(r, torch.Tensor) and r.requires_grad
    )
    try:
        for _ in range(2 if isinstance(loss, torch.Tensor) else 0):
            loss.backward(retain_graph=True)
    except RuntimeError as error:
        return [result, type(error)]
    return [result, x.grad, y.grad, WEIGHT.grad, list(SEEN)]


def bodies_in(graph):
    return [node for node in graph.graph.nodes if node.target is private.function_operator]


@pytest.mark.parametrize("name, program, bodied", PROGRAMS, ids=IDS)
def test_as_in_plain_python(name, program, bodied):
    want = outcome(program)
    fast = compiled(program, "aot_eager", fullgraph=bodied is not None)
    for _ in range(2):
        assert_same(outcome(fast), want)


@pytest.mark.parametrize("name, program, bodied", PROGRAMS, ids=IDS)
def test_bodies(name, program, bodied):
    recorder = Recorder()
    outcome(compiled(program, recorder, fullgraph=bodied is not None))
    assert bodied is None or bool(bodies_in(recorder.graphs[0])) == bodied


@pytest.mark.full
@pytest.mark.parametrize("name, program, bodied", PROGRAMS, ids=IDS)
def test_with_inductor(name, program, bodied):
    if name == "draws":
        pytest.skip("inductor draws numbers of its own")
    made = torch.utils._pytree.tree_leaves(outcome(compiled(program, "inductor", fullgraph=False)))
    for one, other in zip(made, torch.utils._pytree.tree_leaves(outcome(program)), strict=True):
        if isinstance(other, torch.Tensor):
            torch.testing.assert_close(one, other)
        else:
            assert one == other


def test_layout_of_the_node():
    recorder = Recorder()
    outcome(compiled(lambda x, y: sum(Saves.apply(x.sin(), y, 3)), recorder))
    (graph,) = recorder.graphs
    (node,) = bodies_in(graph)
    assert [str(arg) for arg in node.args[2:]] == ["x", "l_y_"]
    assert node.kwargs == {"non_differentiable_idx": [], "saved_for_backward_idx": [0, 1]}
    forward, backward = graph.fwd_body_0, graph.bwd_body_0
    outputs, saved = forward.graph.output_node().args[0]
    assert len(outputs) == 2 and [str(node) for node in saved] == ["result", "sin", "between"]
    assert len(list(backward.graph.find_nodes(op="placeholder"))) == 5
    assert len(backward.graph.output_node().args[0]) == 2


def test_backward_hooks_of_modules_find_their_function():
    """torch's function for them gives back its arguments, and is looked for in their history."""
    gradients = []
    for backend in (None, "aot_eager"):
        layer, log = torch.nn.Linear(4, 4), []
        torch.nn.init.constant_(layer.weight, 2.0)
        layer.register_full_backward_hook(lambda module, given, made, log=log: log.append(given))
        net = torch.nn.Sequential(layer, torch.nn.ReLU())
        x = torch.linspace(0, 1, 4).requires_grad_()
        (stator.compile(net, backend=backend) if backend else net)(x).sum().backward()
        gradients.append([x.grad, log])
    assert_same(*gradients)


def test_what_it_reads_is_guarded():
    scale = Scale(2)
    program = lambda x, y: OfObjects.apply(x, scale, [y])  # noqa: E731
    fast = stator.compile(program, backend="aot_eager")
    for factor in (2, 5, 2):
        scale.factor = factor
        assert_same(outcome(fast), outcome(program))
