# ruff: noqa: E402
"""Parameters and buffers change between warm calls whose guards are compared by words of memory:
the result is eager's every time. (The build for tests also runs the guard program after each pass by
words, and stops where the program says otherwise.)"""

import gc
import random

import pytest

torch = pytest.importorskip("torch")

import stator
from stator import _engine
from tests.tensor.helpers import assert_same


@pytest.fixture(autouse=True)
def always_logs():
    before = _engine.guard_logs(2)
    yield
    _engine.guard_logs(before)


class Other(torch.nn.Parameter):
    pass


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
        self.b = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("seen", torch.zeros(2, 3, requires_grad=True).requires_grad_(False))
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x):
        w, b, seen = self.w, self.b, self.seen
        facts = [(type(t), t.shape, t.stride(), t.dtype, t.requires_grad) for t in (w, b, seen)]
        return w * 2, b + 1, seen - 1, self.inner(x), facts


def reborn(m):
    """Perhaps at the same address."""
    del m.w
    gc.collect()
    m.w = torch.nn.Parameter(torch.ones(2, 3), requires_grad=bool(random.randrange(2)))


def strided(m):
    m.w.data = torch.arange(6.0).reshape(3, 2).t()


def change_class(m):
    m.b.__class__ = Other if type(m.b) is not Other else torch.nn.Parameter


def with_history(m):
    """The same buffer, written by an operation that autograd knows: requires_grad without a flag."""
    m.seen.mul_(torch.ones((), requires_grad=True))


def forget_history(m):
    m.seen = m.seen.detach()


def swap(m):
    torch._C._swap_tensor_impl(m.b, torch.nn.Parameter(torch.ones(3, dtype=torch.float64)))


CHANGES = {
    "other data": lambda m: setattr(m.w, "data", torch.randn(2, 3)),
    "data of another size": lambda m: setattr(m.w, "data", torch.randn(3, 2)),
    "data of more dimensions": lambda m: setattr(m.w, "data", torch.randn(1, 2, 1, 3, 1, 1)),
    "data of one dimension more": lambda m: setattr(m.w, "data", torch.randn(2, 3, 1)),
    "data without dimensions": lambda m: setattr(m.w, "data", torch.tensor(2.0)),
    "data of another dtype": lambda m: setattr(m.w, "data", torch.randn(2, 3).double()),
    "data with other strides": strided,
    "negated data": lambda m: setattr(m.seen, "data", torch._neg_view(torch.ones(2, 3))),
    "requires_grad": lambda m: m.b.requires_grad_(not m.b.requires_grad),
    "a gradient": lambda m: setattr(m.b, "grad", torch.ones_like(m.b)),
    "no gradient": lambda m: setattr(m.b, "grad", None),
    "an attribute": lambda m: setattr(m.b, "note", random.random()),
    "a mark": lambda m: torch._dynamo.mark_dynamic(m.seen, 1),
    "no attributes": lambda m: m.seen.__dict__.clear(),
    "another dict": lambda m: setattr(m.b, "__dict__", {"note": 1}),
    "a hook": lambda m: m.b.requires_grad_().register_hook(lambda g: g),
    "history": with_history,
    "no history": forget_history,
    "class": change_class,
    "in place, transposed": lambda m: m.seen.detach_().t_(),
    "in place, set": lambda m: m.seen.detach_().set_(torch.zeros(4, 1)),
    "in place, resized": lambda m: m.seen.detach_().resize_(2, 2),
    "swapped": swap,
    "reborn": reborn,
    "deleted and set again": lambda m: setattr(m, "b", m._parameters.pop("b")),
    "converted": lambda m: m.inner.double().float(),
    "frozen": lambda m: m.inner.requires_grad_(False),
    "another layer": lambda m: setattr(m, "inner", torch.nn.Linear(2, 2)),
    "nothing": lambda m: None,
}


def compare(fast, m, x):
    for _ in range(3):
        assert_same(fast(x), m(x))


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_warm_calls(change):
    m, x = Layer(), torch.ones(1, 2)
    fast = stator.compile(m, backend="eager", dynamic=False)
    compare(fast, m, x)
    CHANGES[change](m)
    compare(fast, m, x)


@pytest.mark.parametrize("seed", range(2))
def test_many_changes(seed):
    """Layers come back to states that have an entry."""
    random.seed(seed)
    x = torch.ones(1, 2)
    compiled = stator.compile(Layer.forward, backend="eager", dynamic=False, recompile_limit=99)
    layers = [Layer() for _ in range(2)]
    names = list(CHANGES)
    for _ in range(80):
        m = random.choice(layers)
        CHANGES[random.choice(names)](m)
        for _ in range(2):
            assert_same(compiled(m, x), m(x))
        if random.random() < 0.2:
            layers[random.randrange(2)] = Layer()
