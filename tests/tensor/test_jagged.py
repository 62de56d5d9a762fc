"""Jagged tensors are traced, and give what plain Python gives. Two ragged sizes are equal if they
are of one tensor of offsets: entries are for that."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from helpers import Recorder  # noqa: E402

import stator  # noqa: E402
from tests import older  # noqa: E402

LENGTHS = (2, 3, 4)
build = torch.nested.nested_tensor_from_jagged


def offsets_of(lengths=LENGTHS):
    return torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()])


def jagged(lengths=LENGTHS, offsets=None, grad=False, seed=0):
    torch.manual_seed(seed)
    values = torch.randn(sum(lengths), 5, requires_grad=grad)
    return build(values, offsets_of(lengths) if offsets is None else offsets)


# The first jagged tensor of a process brings modules of torch's with it, whose import breaks.
jagged().sin()


def parts(value: Any) -> Any:
    """What can be compared: of a jagged tensor its values, offsets and lengths."""
    if isinstance(value, (tuple, list)):
        return [parts(item) for item in value]
    if isinstance(value, torch.Tensor) and value.is_nested:
        held = value.lengths()
        return [type(value), value._ragged_idx, *map(parts, (value.values(), value.offsets())),
                None if held is None else held.tolist()]  # fmt: skip
    return value.tolist() if isinstance(value, torch.Tensor) else value


def tried(function, *args):
    try:
        return parts(function(*args))
    except RuntimeError as error:
        return type(error)


def offsets_twice(n):
    other = build(n.values() * 3, n.offsets())
    return n + other, other


def from_lengths(n):
    return build(n.values(), lengths=n.offsets().diff()).sin()


def own_offsets(n):
    offsets = n.offsets().clone()
    return build(n.values(), offsets) * build(n.values() + 1, offsets)


def class_called(n):
    return type(n)(n.values() * 2, offsets=n.offsets()) - 1


def asked(n):
    return n * 2 if n.is_nested and n.layout is torch.jagged and n.dim() == 3 else n


PROGRAMS = [
    lambda n: n.abs(), lambda n: n + n * 2, lambda n: n.values() * 2, lambda n: n.offsets() + 1,
    lambda n: n.transpose(1, 2), lambda n: n.unsqueeze(-1), lambda n: n.clone().neg_(),
    lambda n: n @ torch.ones(5, 2), lambda n: torch.nn.functional.linear(n, torch.ones(3, 5)),
    lambda n: n.to(torch.float64), lambda n: torch.cat([n, n], dim=-1), lambda n: n.size(0),
    offsets_twice, from_lengths, own_offsets, class_called, asked,
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_traced_whole(program, backend):
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for seed in (0, 1):
        assert parts(compiled(jagged(seed=seed))) == parts(program(jagged(seed=seed)))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients(backend):
    def program(values, offsets):
        n = build(values * 2, offsets)
        return (n.sin() * n).values()

    def gradient(function):
        values = torch.arange(45.0).reshape(9, 5).requires_grad_()
        function(values, offsets_of()).sum().backward()
        return values.grad

    compiled = stator.compile(program, backend=backend, fullgraph=True)
    torch.testing.assert_close(gradient(compiled), gradient(program))


def add(a, b):
    return a + b


def add_made(a, b):
    return build(a.values(), a.offsets()) + build(b.values(), b.offsets())


def is_same(a, b):
    try:
        return a + b
    except RuntimeError:
        return "other"


@pytest.mark.parametrize("program", [add, add_made, is_same])
@pytest.mark.parametrize("first", ["same", "one", "other"])
def test_which_offsets_are_one(program, first):
    a = jagged()
    pairs = {
        "same": (a, jagged(offsets=a.offsets(), seed=1)),
        "one": (a, a),
        "other": (a, jagged(seed=1)),
    }
    compiled = stator.compile(program, backend="eager")
    for which in (first, *pairs, first):
        assert tried(compiled, *pairs[which]) == tried(program, *pairs[which])


def test_offsets_that_are_told_to_be_one():
    from torch.nested._internal import nested_tensor

    registry: Any = nested_tensor._tensor_symint_registry
    one, other = offsets_of(), offsets_of()
    a = jagged(offsets=one)
    registry[other] = registry[one]
    pairs = [(a, jagged(offsets=other)), (jagged(), jagged()), (a, a)]
    for order in (pairs, pairs[::-1]):
        compiled = stator.compile(add, backend="eager")
        for pair in order:
            assert tried(compiled, *pair) == tried(add, *pair)


def test_entries():
    recorder = Recorder()
    compiled = stator.compile(lambda n: n.sin(), backend=recorder)
    for lengths in ((2, 3, 4), (4, 4, 1), (3, 3, 3)):  # no entry is for one tensor of offsets
        compiled(jagged(lengths))
    # Since 2.15 the object that is a ragged size is looked at, and each tensor has its own.
    assert len(recorder.graphs) == (1 if older.version() < (2, 15) else 3)
    for lengths in ((2, 3, 5), (2, 3), (2, 7)):
        assert parts(compiled(jagged(lengths))) == parts(jagged(lengths).sin())
    compiled(build(torch.ones(12, 5), offsets_of(), torch.tensor([1, 2, 3])))


@pytest.mark.full
def test_inductor():
    def program(n, values, offsets):
        return (n * build(values, offsets)).transpose(1, 2), offsets + 1

    compiled = stator.compile(program, backend="inductor", fullgraph=True)
    n = jagged()
    for seed in (0, 1):
        values = jagged(seed=seed).values()
        expected = program(n, values, n.offsets())
        torch.testing.assert_close(
            [compiled(n, values, n.offsets())[0].values(), compiled(n, values, n.offsets())[1]],
            [expected[0].values(), expected[1]],
        )
