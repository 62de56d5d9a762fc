"""Operations without a rule, on open sizes: torch's fakes are asked once for calls that are alike,
and again for each call that differs in anything that its result depends on."""

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402
from stator import _fakes  # noqa: E402


@pytest.fixture
def ran(monkeypatch):
    """The functions that ran on fakes with symbols."""
    seen = []
    monkeypatch.setattr(_fakes, "watcher", lambda f, symbolic: symbolic and seen.append(f.__name__))
    return seen


def check(f, *sizes, **made):
    compiled = stator.compile(f, backend="eager", dynamic=True)
    for n in sizes:
        torch.manual_seed(0)
        x = torch.randn(n, 4, **made)
        torch.testing.assert_close(compiled(x.clone()), f(x.clone()), equal_nan=True)
    return compiled


def test_layers_that_are_alike_are_asked_once(ran):
    def f(x):
        for _ in range(5):
            x = torch.rot90(x + 1, 2)
        return x

    compiled = check(f, 6, 8, 3)
    assert ran.count("rot90") == 1
    assert compiled.metrics["entries"] == 1


DIFFERENT = {
    "an int and a float": lambda x: (torch.xlogy(x.long(), 2), torch.xlogy(x.long(), 2.0)),
    "one and True": lambda x: (torch.nan_to_num(x.long(), 1), torch.nan_to_num(x.long(), True)),
    "signs of zero": lambda x: (torch.nan_to_num(x * torch.nan, 0.0).copysign(x),
                                1 / torch.nan_to_num(x * torch.nan, -0.0)),
    "dimensions": lambda x: (torch.rot90(x, 1, (0, 1)).shape, torch.rot90(x, 2, (0, 1)).shape),
    "dtypes": lambda x: (torch.rot90(x, 2), torch.rot90(x.double(), 2)),
    "layouts": lambda x: (torch.rot90(x, 2), torch.rot90(x.t(), 2)),
    "tensors and the same tensor": lambda x: (torch.kron(x, x), torch.kron(x, x + 1)),
    "lists and tuples": lambda x: (torch.rot90(x, 1, [0, 1]), torch.rot90(x, 1, (0, 1))),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_calls_that_differ_in(name):
    check(DIFFERENT[name], 6, 8, 3)


def test_with_and_without_gradient():
    def f(x):
        with torch.no_grad():
            a = torch.rot90(x, 2)
        b = torch.rot90(x, 2)
        return a, b, a.requires_grad, b.requires_grad

    compiled = stator.compile(f, backend="eager", dynamic=True)
    for n in (5, 7):
        assert compiled(torch.randn(n, 4, requires_grad=True))[2:] == (False, True)


STATES = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast to another dtype": lambda: torch.autocast("cpu", dtype=torch.float16),
    "inference mode": torch.inference_mode,
    "no gradient": torch.no_grad,
}


@pytest.mark.parametrize("name", STATES)
def test_calls_in_another_state(name):
    def f(x):
        y = x.expand(2, -1, -1)
        a = torch.baddbmm(y[:, :, :1], y, y.transpose(1, 2))
        with STATES[name]():
            b = torch.baddbmm(y[:, :, :1], y, y.transpose(1, 2))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            c = torch.baddbmm(y[:, :, :1], y, y.transpose(1, 2))
        d = torch.baddbmm(y[:, :, :1], y, y.transpose(1, 2))
        return a, b, c, d, [t.element_size() for t in (a, b, c, d)]

    check(f, 5, 7)


def test_writes_go_to_the_tensors_of_each_call():
    def f(x):
        a, b = x * 1, x * 2
        a.index_fill_(0, torch.tensor([0]), 9.0)
        b.index_fill_(0, torch.tensor([0]), 9.0)
        x.index_fill_(0, torch.tensor([1]), 7.0)
        return a, b, x

    check(f, 5, 7)
