"""Writes to views that autograd refuses because of how the view was made: several at once, or without
grad mode. A compiled function raises where eager raises, whatever its backend's results remember."""

import itertools
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402


def without_grad(t):
    with torch.no_grad():
        return t.view(-1)


def unbound_without_grad(t):
    with torch.no_grad():
        return t.unbind(0)[0]


def unpacked(t):
    first, _ = t
    return first


def written_without_grad(v):
    with torch.no_grad():
        v.mul_(2)


def added(v):
    v += 1


def set_item(v):
    v[0] = 1.0


VIEWS = {
    "unbind": lambda t: t.unbind(0)[0],
    "split": lambda t: t.split(1)[0],
    "chunk": lambda t: t.chunk(2)[1],
    "tensor_split": lambda t: t.tensor_split(2)[0],
    "iterated": lambda t: [*t][0],
    "unpacked": unpacked,
    "a view of one of several": lambda t: t.unbind(0)[0].view(-1),
    "without grad": without_grad,
    "several without grad": unbound_without_grad,
    "select": lambda t: t[0],
    "view": lambda t: t.view(-1),
    "itself": lambda t: t,
}
WRITES = {
    "mul_": lambda v: v.mul_(2),
    "+=": added,
    "[0] =": set_item,
    "relu": lambda v: torch.nn.functional.relu(v, inplace=True),
    "detach_": lambda v: v.detach_(),
    "without grad": written_without_grad,
}


def leaf():
    return torch.ones(2, 2, requires_grad=True)


GIVEN = {
    "a leaf": leaf,
    "a result": lambda: leaf() * 1,
    "a view": lambda: (leaf() * 1)[0:2],
    "one of several": lambda: (leaf() * 1).view(1, 2, 2).unbind(0)[0],
}
# (what the function is given, whether the view is made of a result of its own)
CASES = [*((given, False) for given in GIVEN), ("a leaf", True)]


def program(view: Callable, write: Callable, inside: bool) -> Callable:
    def f(t):
        made = t * 1 if inside else t
        v = view(made)
        write(v)
        return v

    return f


def outcome(f: Callable, make: Callable) -> object:
    t = make()
    try:
        result = f(t)
    except RuntimeError as e:
        return str(e).split(".")[0]
    return result.tolist(), t.tolist(), result.requires_grad


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("view", VIEWS)
def test_raises_where_eager_does(view: str, backend: str) -> None:
    refused = 0
    for write, (given, inside) in itertools.product(WRITES, CASES):
        f, make = program(VIEWS[view], WRITES[write], inside), GIVEN[given]
        eager = outcome(f, make)
        if not isinstance(eager, str):
            continue
        refused += 1
        compiled = stator.compile(f, backend=backend)
        got = [outcome(compiled, make), outcome(compiled, make)]
        assert got == [eager] * 2, (write, given, inside)
    assert refused
