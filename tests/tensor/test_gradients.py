# ruff: noqa: E402
"""Backward passes in a compiled function, with torch's setting that puts them into the graph: results,
gradients and errors are plain Python's."""

import copy

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.testing import CompileCounterWithBackend
from torch._dynamo.utils import counters

import stator


@pytest.fixture(autouse=True)
def _traced():
    torch.manual_seed(0)
    stator.install()
    torch._dynamo.reset()
    counters.clear()
    with torch._dynamo.config.patch(trace_autograd_ops=True):
        yield
    stator.uninstall()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(4, 4)
        self.two = torch.nn.Linear(4, 4)
        self.rows = torch.nn.Embedding(5, 4, sparse=True)
        self.frozen = torch.nn.Parameter(torch.ones(4), requires_grad=False)

    def loss(self, x):
        return (self.two(self.one(x).relu()) * self.frozen).square().mean()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def grad_of_parameters(net, x):
    loss = net.loss(x)
    found = torch.autograd.grad(loss, tuple(net.one.parameters()))
    return loss.detach(), found


def grad_by_names(net, x):
    loss = net.loss(x)
    found = torch.autograd.grad(outputs=loss, inputs=dict(net.one.named_parameters()))
    return loss.detach(), found["weight"], found["bias"]


def grad_not_used(net, x):
    return torch.autograd.grad(net.one(x).sum(), (net.two.weight, net.one.bias), allow_unused=True)


def grad_made_zeros(net, x):
    return torch.autograd.grad(
        net.one(x).sum(), (net.two.weight, net.one.bias), allow_unused=True, materialize_grads=True
    )


def grad_of_grad(net, x):
    out = net.loss(x)
    (first,) = torch.autograd.grad(out, net.one.weight, create_graph=True)
    second = torch.autograd.grad(first.square().sum(), (net.one.weight, net.two.weight))
    return out.detach(), first.detach(), second


def grad_by_hand(net, x):
    loss = net.loss(x)
    for p, g in zip(net.two.parameters(), torch.autograd.grad(loss, tuple(net.two.parameters()))):
        p.grad = g if p.grad is None else p.grad + g
    return loss.detach()


def grad_by_an_intermediate(net, x):
    middle = net.one(x)
    (found,) = torch.autograd.grad(net.two(middle).sum(), middle)
    return found, middle


def kept_and_returned(net, x):
    loss = net.loss(x)
    (found,) = torch.autograd.grad(loss, net.one.weight, retain_graph=True)
    return loss, found


def backward(net, x):
    loss = net.loss(x)
    loss.backward()
    return loss.detach()


def backward_twice(net, x):
    loss = net.loss(x)
    loss.backward(retain_graph=True)
    loss.backward(inputs=[net.one.weight, net.one.weight])
    return loss.detach()


def backward_with_gradient(net, x):
    out = net.one(x)
    out.backward(torch.arange(out.numel()).view_as(out).float(), inputs=net.one.weight)
    return out.detach()


def backward_and_read(net, x):
    net.loss(x).backward()
    return net.one.weight.grad.norm(), net.two.weight.grad * 2


def backward_in_no_grad(net, x):
    loss = net.loss(x)
    with torch.no_grad():
        loss.backward()
        net.one.weight.grad.mul_(2)
    return loss.detach()


def steps(net, x):
    for _ in range(2):
        net.loss(x).backward()
        with torch.no_grad():
            for p in net.one.parameters():
                p.sub_(p.grad, alpha=0.1)
                p.grad = None
    return net.one.weight.detach().sum()


TRACED = [grad_of_parameters, grad_by_names, grad_not_used, grad_made_zeros, grad_of_grad,
          grad_by_hand, grad_by_an_intermediate, kept_and_returned, backward, backward_twice,
          backward_with_gradient, backward_and_read, backward_in_no_grad, steps]  # fmt: skip


def with_create_graph(net, x):
    net.loss(x).backward(create_graph=True)
    return net.one.weight.grad.requires_grad


def through_a_function(net, x):
    Doubled.apply(net.one(x)).sum().backward()


def through_branches(net, x):
    torch.cond(x.sum() > 0, torch.sin, torch.cos, (net.one(x),)).sum().backward()


def of_rows(net, x):
    net.rows(torch.tensor([1, 2, 2])).sum().backward()
    return net.rows.weight.grad.is_sparse


def behind_a_hook(net, x):
    middle = net.one(x)
    middle.register_hook(lambda grad: grad * 3)
    middle.sum().backward()


def by_an_intermediate(net, x):
    middle = net.one(x)
    middle.retain_grad()
    middle.sum().backward(inputs=[middle, net.one.weight])
    return middle.grad


def returned(net, x):
    loss = net.loss(x)
    return loss, torch.autograd.grad(loss, net.one.weight)


def middle_returned(net, x):
    middle = net.one(x).sin()
    middle.sum().backward()
    return middle


def twice(net, x):
    loss = net.loss(x)
    loss.backward()
    loss.backward()


def not_used(net, x):
    return torch.autograd.grad(net.one(x).sum(), net.two.weight)


def of_no_history(net, x):
    x.sum().backward()


def in_batches(net, x):
    out = net.one(x)
    return torch.autograd.grad(out, net.one.bias, torch.ones(3, *out.shape), is_grads_batched=True)


BROKEN = [with_create_graph, through_a_function, through_branches, of_rows, behind_a_hook,
          by_an_intermediate, returned, middle_returned, twice, not_used, of_no_history,
          in_batches]  # fmt: skip


def _outcome(program, net, x):
    """What it gave, and what a backward pass from there gives, or raises; the gradients."""
    try:
        found = program(net, x)
        told = copy.deepcopy([t.detach() for t in _flat(found)]), found if found is True else None
        for tensor in _flat(found):
            if tensor.requires_grad:
                tensor.sum().backward()
    except RuntimeError as error:
        told = str(error).partition(".")[0][:40]
    return told, [p.grad for p in net.parameters()]


def _flat(found):
    if isinstance(found, torch.Tensor):
        return [found]
    return [t for item in found for t in _flat(item)] if isinstance(found, tuple | list) else []


def _same(program, fast, net, x):
    other = copy.deepcopy(net)
    for _ in range(2):  # gradients add up
        (said, grads), (expected, wanted) = _outcome(fast, net, x), _outcome(program, other, x)
        if isinstance(expected, str):
            assert said == expected
            return
        for ours, theirs in ((said[0], expected[0]), (grads, wanted)):
            for a, b in zip(ours, theirs, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    torch.testing.assert_close(a, b)
                    assert a.stride() == b.stride() if not a.is_sparse else b.is_sparse
        assert said[1] is expected[1]


backends = pytest.mark.parametrize(
    "backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.full)]
)


@backends
@pytest.mark.parametrize("program", TRACED, ids=lambda program: program.__name__)
def test_one_graph(program, backend):
    fast = torch.compile(program, backend=backend, fullgraph=True)
    _same(program, fast, Net(), torch.randn(2, 4))


@backends
@pytest.mark.parametrize("program", BROKEN, ids=lambda program: program.__name__)
def test_what_a_graph_cannot_do_runs_outside(program, backend):
    fast = torch.compile(program, backend=backend)
    _same(program, fast, Net(), torch.randn(2, 4))


@backends
def test_a_history_from_outside(backend):
    fast, net, x = torch.compile(backward, backend=backend), Net(), torch.randn(2, 4)
    other = copy.deepcopy(net)
    for make in (torch.clone, lambda x: x.clone().requires_grad_() * 2, torch.clone):
        _same_gradients(lambda: fast(net, make(x)), lambda: backward(other, make(x)), net, other)


def _same_gradients(fast, plain, net, other):
    torch.testing.assert_close(fast(), plain())
    for a, b in zip(net.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


@backends
def test_hooks_of_leaves_are_called(backend):
    fast, net, x = torch.compile(backward, backend=backend), Net(), torch.randn(2, 4)
    other = copy.deepcopy(net)
    seen = []
    _same_gradients(lambda: fast(net, x), lambda: backward(other, x), net, other)
    handles = [m.one.weight.register_hook(lambda grad: grad * 3) for m in (net, other)]
    _same_gradients(lambda: fast(net, x), lambda: backward(other, x), net, other)
    for handle in handles:
        handle.remove()
    net.one.bias.register_post_accumulate_grad_hook(seen.append)
    _same_gradients(lambda: fast(net, x), lambda: backward(other, x), net, other)
    assert len(seen) == 1


def test_the_gradient_stays_the_same_tensor():
    fast = torch.compile(backward, backend="aot_eager", fullgraph=True)
    net, x = Net(), torch.ones(2, 4)
    fast(net, x)
    kept = net.one.weight.grad
    fast(net, x)
    assert net.one.weight.grad is kept
    net.zero_grad()
    fast(net, x)
    assert net.one.weight.grad is not kept


def test_without_the_setting_a_pass_runs_outside():
    counter = CompileCounterWithBackend("eager")
    with torch._dynamo.config.patch(trace_autograd_ops=False):
        _same(backward, torch.compile(backward, backend=counter), Net(), torch.randn(2, 4))
    assert counter.frame_count and "backward" not in str(counter.graphs[0].graph)
