# ruff: noqa: E402
"""Inputs that share memory, one of which is written to: values, memory and histories are those of
plain Python, however the inputs came to share it."""

import pytest

torch = pytest.importorskip("torch")

from tests.tensor.helpers import compiled


def numbers():
    return torch.arange(6.0)


def with_history():
    return torch.arange(6.0, requires_grad=True) * 2


def given(tensor, data):
    tensor.data = data
    return tensor


def set_to(tensor, other):
    return tensor.set_(other)


def parameter():
    return torch.nn.Parameter(torch.zeros(6))


# How to make the first input of the second.
PAIRS = {
    "detached": (numbers, lambda b: b.detach()),
    "set": (numbers, lambda b: set_to(torch.zeros(6), b)),
    "set to a part": (numbers, lambda b: set_to(torch.zeros(3), b[2:5])),
    "a view, set to another part": (numbers, lambda b: set_to(b[0:3], b[2:5])),
    "set, of a view": (lambda: numbers().view(2, 3), lambda b: set_to(torch.zeros(1), b)),
    "given as data": (numbers, lambda b: given(torch.zeros(6), b)),
    "a view with other data": (numbers, lambda b: given(b[1:4], torch.ones(3))),
    "a view of another, with its data": (numbers, lambda b: given(numbers()[1:4], b[1:4])),
    "data of a parameter": (parameter, lambda p: p.data),
    "detached parameter": (parameter, lambda p: p.detach()),
    "part of a parameter's data": (parameter, lambda p: p.data[1:3]),
    "a view": (numbers, lambda b: b[1:4]),
    "a view, detached": (lambda: numbers()[2:5], lambda b: b._base[1:4].detach()),
    "two views": (lambda: numbers()[2:5], lambda b: b._base[1:4]),
    "another dtype": (numbers, lambda b: b.view(torch.int32)),
    "by NumPy": (numbers, lambda b: torch.from_numpy(b.numpy())),
    "a view with a history": (with_history, lambda b: b.view(2, 3)),
    "detached from a history": (with_history, lambda b: b.detach()),
}


def writes_first(a, b):
    a.add_(1)
    return b * 1


def writes_second(a, b):
    with torch.no_grad():
        b.mul_(2)
    return a + 1


def gives_views(a, b):
    a.add_(1)
    return b.detach() * 2, a.view(-1)[:2]


def outcome(function, pair):
    make, other = pair
    second = make()
    inputs = (other(second), second)
    result = function(*inputs)
    tensors = [*inputs, *(result if isinstance(result, tuple) else (result,))]
    places = [tensor.data_ptr() for tensor in tensors]
    return [
        (tensor.tolist(), tensor.requires_grad, tensor.is_leaf, places.index(place))
        for tensor, place in zip(tensors, places, strict=True)
    ]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_as_in_plain_python(pair, backend):
    for function in (writes_first, writes_second, gives_views):
        fast = compiled(function, backend, fullgraph=False)
        for _ in range(2):
            assert outcome(fast, pair) == outcome(function, pair), function.__name__


def test_other_pairs_do_not_fit_an_entry():
    fast = compiled(writes_first, "aot_eager", fullgraph=False)
    for name in ("a view", "a view with other data", "detached", "by NumPy", "two views", "set"):
        assert outcome(fast, PAIRS[name]) == outcome(writes_first, PAIRS[name]), name
