# ruff: noqa: E402
"""The default dtype that a compiled function sets: with backend eager without a break, and with any
backend as in plain Python."""

import contextlib

import pytest

torch = pytest.importorskip("torch")

import stator
from tests.tensor.helpers import assert_same


@contextlib.contextmanager
def default(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def within(x):
    with default(torch.float64):
        made = torch.ones(3) + x
    return made, torch.zeros(2)


def many(x):
    torch.set_default_dtype(torch.float64)
    made = (torch.tensor(1.5), torch.arange(3) / 2, torch.full((2,), 1.5), x.long() * 1.5,
            torch.finfo().max, torch.get_default_dtype(), torch.nn.Linear(2, 2).weight.dtype)  # fmt: skip
    torch.set_default_dtype(torch.float32)
    return made, torch.ones(1)


def left(x):
    torch.set_default_dtype(torch.float64)
    return torch.ones(3) * x


def across_a_break(x):
    torch.set_default_dtype(torch.float64)
    stator.graph_break()
    return torch.ones(2)


def of_ints(x):
    try:
        torch.set_default_dtype(torch.int32)
    except TypeError as error:
        return str(error)


def fails(x):
    torch.set_default_dtype(torch.float64)
    return torch.ones(2), x.view(7)


PROGRAMS = [within, many, left, across_a_break, of_ints, fails]


def outcome(program):
    torch.set_default_dtype(torch.float32)
    try:
        result = program(torch.arange(3.0))
    except RuntimeError as error:
        result = str(error).partition("\n")[0]
    after = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    return [result, after]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_plain_python(program, backend):
    fast = stator.compile(program, backend=backend)
    for _ in range(2):
        assert_same(outcome(fast), outcome(program))


@pytest.mark.parametrize("program", [within, many, left, of_ints])
def test_eager_needs_no_break(program):
    fast = stator.compile(program, backend="eager", fullgraph=True)
    assert_same(outcome(fast), outcome(program))
